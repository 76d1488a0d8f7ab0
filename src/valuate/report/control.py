"""Table 3: how the greedy policies do, beside the paper's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from valuate.experiments import published
from valuate.experiments.results import Results, spread
from valuate.experiments.tasks import TASKS
from valuate.report.parts import LABELS, Compared, Entry, Section, Sentence, Table, Verdict, compare, listed, number

Record = dict[str, Any]
Cells = dict[str, dict[str, tuple[Compared, list[Record]]]]


def table_3(results: Results, experiment: str) -> Section:
    """One of the readings of Table 3."""
    found = _found(results, experiment)
    right = experiment != "table-3"
    section = Section(
        experiment,
        "Table 3: control" + (", with nothing after the end of an episode" if right else ""),
        "Mean length of 100 episodes under the policy that is greedy in the action values which a method found; mean "
        "and standard deviation over repetitions, each with a data set of its own. Low is good in Mountain Car and "
        "Acrobot, high in Cart Pole. "
        + (
            "The value after an episode's end is 0, as it should be; the paper goes on from the last observation."
            if right
            else "As in the paper, an episode's last row goes on from its last observation whatever ended it."
        ),
    )
    section.tables.append(_grid(experiment, found))
    sizes = _other_sizes(found)
    if sizes:
        section.sentences.append(Sentence(sizes))
    section.sentences += _tally(found)
    for name, row in found.items():
        section.sentences += _row_by_row(name, row)
    section.sentences += _ridges(results, experiment)
    return section


def _found(results: Results, experiment: str) -> Cells:
    out: Cells = {}
    for name in published.TABLE_3:
        for method in published.METHODS:
            records = results.of(experiment, f"{name}/{method}")
            if not records:
                continue
            ours = spread([record["score"]["mean_length"] for record in records])
            paper = published.steps(name, method)
            same_size = records[0]["data"]["rows"] == published.rows_of(name)
            verdict = compare(ours, paper) if same_size else Verdict.OPEN
            out.setdefault(name, {})[method] = Compared(ours, paper, verdict), records
    return out


def title_of(name: str) -> str:
    """A row's name for readers."""
    return TASKS[name.removesuffix("-large")].title + (", large data" if name.endswith("-large") else "")


def _grid(experiment: str, found: Cells) -> Table:
    columns = ("Task", "Rows", *(LABELS[method] for method in published.METHODS))
    rows: list[list[Entry]] = []
    for name, row in found.items():
        size = next(iter(row.values()))[1][0]["data"]["rows"]
        rows.append([title_of(name), size, *(row[m][0] if m in row else None for m in published.METHODS)])
    return Table(experiment, "Steps of an episode", columns, rows)


def _other_sizes(found: Cells) -> str:
    other = []
    for name, row in found.items():
        rows = next(iter(row.values()))[1][0]["data"]["rows"]
        if rows != published.rows_of(name):
            other.append(f"{title_of(name)} {rows:,} rows instead of {published.rows_of(name):,}")
    return f"Not compared, for their size: {listed(other)}." if other else ""


def _tally(found: Cells) -> list[Sentence]:
    """The cells by verdict."""
    out = []
    for verdict, words in (
        (Verdict.AGREES, "Agree with the paper"),
        (Verdict.OVERLAPS, "Differ in the mean, within the spread of single repetitions"),
        (Verdict.DIFFERS, "Differ from the paper"),
    ):
        cells = [
            f"{LABELS[method]} on {title_of(name)} ({_means(cell)})"
            for name, row in found.items()
            for method, (cell, _) in row.items()
            if cell.verdict is verdict
        ]
        if cells:
            out.append(Sentence(f"{words}, {len(cells)} cells (ours and the paper's): {listed(cells)}.", verdict))
    return out


def _means(cell: Compared) -> str:
    assert cell.paper is not None
    return f"{cell.ours.mean:.0f}, {cell.paper.mean:.0f}"


def _row_by_row(name: str, row: dict[str, tuple[Compared, list[Record]]]) -> list[Sentence]:
    """What the records tell about a row: rewards that never come, methods that never move, runs that overflow."""
    out = []
    title = title_of(name)
    data = next(iter(row.values()))[1]
    ended, rows = sum(r["data"]["terminated"] for r in data), sum(r["data"]["rows"] for r in data)
    if ended == 0 and TASKS[name.removesuffix("-large")].title == "Mountain Car":
        out.append(
            Sentence(
                f"{title} carries no signal: the random policy reaches the goal in none of the {rows:,} rows, so every "
                "reward is the same and every policy looks alike. What the row compares is how far each method, its "
                "steps and the ridge stop short of a constant, not policy evaluation."
            )
        )
    still = {m: cell for m, (cell, records) in row.items() if all(r["score"]["all_zero"] for r in records)}
    waiting = [m for m in still if row[m][1][0]["result"]["status"] == "budget spent"]
    if waiting:
        lengths = listed(sorted({number(still[m].ours.mean, 2) for m in waiting}))
        out.append(
            Sentence(
                f"{title}: {listed([LABELS[m] for m in waiting])} took no step within the pass, which the mean gradient "
                f"takes whole; weights of zero choose action 0 for ever, which lasts {lengths} steps."
            )
        )
    for method, (_, records) in row.items():
        lost = [r for r in records if r["result"]["status"] == "diverged"]
        if lost:
            after = np.mean([r["result"]["passes"] for r in lost])
            out.append(
                Sentence(
                    f"{title}: {LABELS[method]} overflowed in {len(lost)} of {len(records)} repetitions, after "
                    f"{number(float(after), 2)} passes on average, and is scored at its starting point."
                )
            )
    saga = row.get("saga")
    if saga is not None and saga[0].verdict is Verdict.DIFFERS and ended:
        out.append(
            Sentence(
                f"{title}: SAGA differs ({_means(saga[0])}). In the authors' code its update carries the step size "
                "twice; ours is the method as it is defined."
            )
        )
    return out


def _ridges(results: Results, experiment: str) -> list[Sentence]:
    """How far LSTD's score on Acrobot depends on the ridge."""
    cells = [cell for cell in results.cells(experiment) if cell.startswith("acrobot/lstd")]
    scores = {}
    for cell in cells:
        records = results.of(experiment, cell)
        ridge = records[0]["settings"]["ridge"]
        ridge = TASKS["acrobot"].ridge if ridge is None else ridge
        scores[ridge] = float(np.mean([record["score"]["mean_length"] for record in records]))
    if len(scores) < 2:
        return []
    words = [f"{scores[ridge]:.0f} at {ridge:g}" for ridge in sorted(scores)]
    swing = max(scores.values()) / min(scores.values())
    what = "LSTD's score on Acrobot is the ridge's more than the method's" if swing > 1.5 else "The ridge matters little"
    return [Sentence(f"{what}: {listed(words)}.")]
