"""Table 3: how the greedy policies do, beside the paper's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from valuate.experiments import published
from valuate.experiments.results import Results, Spread, spread
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
    section.sentences += _no_signal(found) + _no_step(found) + _overflows(found) + _saga(found)
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
        (Verdict.AGREES, "agree with the paper"),
        (Verdict.OVERLAPS, "differ in the mean, within the spread of single repetitions"),
        (Verdict.DIFFERS, "differ from the paper"),
    ):
        groups = {
            name: [f"{LABELS[method]} {_means(cell)}" for method, (cell, _) in row.items() if cell.verdict is verdict]
            for name, row in found.items()
        }
        count = sum(map(len, groups.values()))
        if count:
            cells = "; ".join(f"{title_of(name)}: {listed(group)}" for name, group in groups.items() if group)
            verb = words.split()[0]
            head = f"{count} cells {words}" if count > 1 else f"1 cell {words.replace(verb, verb + 's', 1)}"
            out.append(Sentence(f"{head} (ours | the paper's). {cells}.", verdict))
    return out


def _means(cell: Compared) -> str:
    assert cell.paper is not None
    return f"{cell.ours.mean:.0f}&nbsp;|&nbsp;{cell.paper.mean:.0f}"


def _no_signal(found: Cells) -> list[Sentence]:
    """Rows in whose data no episode ever ended although all rewards before the end are the same."""
    empty, rows = [], 0
    for name, row in found.items():
        data = [record["data"] for record in next(iter(row.values()))[1]]
        if name.startswith("mountain-car") and not any(facts["terminated"] for facts in data):
            empty.append(title_of(name))
            rows += sum(facts["rows"] for facts in data)
    if not empty:
        return []
    return [
        Sentence(
            f"{listed(empty)}: there is no signal. The random policy reaches the goal in none of the {rows:,} rows, so "
            "every reward is the same and every policy looks alike. What is compared is how far each method, its steps "
            "and the ridge stop short of a constant, not policy evaluation."
        )
    ]


def _no_step(found: Cells) -> list[Sentence]:
    """Methods whose weights are still zero at the end of their budget."""
    words = []
    for name, row in found.items():
        still = [
            method
            for method, (_, records) in row.items()
            if all(r["score"]["all_zero"] and r["result"]["status"] == "budget spent" for r in records)
        ]
        if still:
            length = number(row[still[0]][0].ours.mean, 2)
            words.append(f"{listed([LABELS[method] for method in still])} on {title_of(name)} ({length} steps)")
    if not words:
        return []
    return [
        Sentence(
            f"No step was taken within the pass, which the mean gradient takes whole, by {'; '.join(words)}: weights "
            "of zero choose action 0 for ever."
        )
    ]


def _overflows(found: Cells) -> list[Sentence]:
    out = []
    for name, row in found.items():
        for method, (_, records) in row.items():
            lost = [record for record in records if record["result"]["status"] == "diverged"]
            if lost:
                after = float(np.mean([record["result"]["passes"] for record in lost]))
                out.append(
                    Sentence(
                        f"{LABELS[method]} on {title_of(name)} overflowed in {len(lost)} of {len(records)} "
                        f"repetitions, after {number(after, 2)} passes on average, and is scored at its starting point."
                    )
                )
    return out


def _saga(found: Cells) -> list[Sentence]:
    """Where SAGA differs although it moved: the authors' is not quite the method."""
    scaled: list[str] = []
    other: list[str] = []
    for name, row in found.items():
        cell, records = row.get("saga", (None, []))
        moved = any(not record["score"]["all_zero"] for record in records)
        if cell is not None and moved and cell.verdict in (Verdict.DIFFERS, Verdict.OVERLAPS):
            once = records[0]["settings"]["method"]["step_theta"] == 1.0  # where twice is as much as once
            (other if once else scaled).append(f"{title_of(name)} ({_means(cell)})")
    out = []
    if scaled:
        text = (
            f"SAGA is off on {listed(scaled)}: in the authors' code its update carries the step size twice; ours is "
            "the method as it is defined."
        )
        out.append(Sentence(text))
    if other:
        text = (
            f"SAGA is off on {listed(other)}, at a step of 1, where it makes no difference that the authors' code "
            "carries the step size twice: the cause is not known."
        )
        out.append(Sentence(text))
    return out


def _ridges(results: Results, experiment: str) -> list[Sentence]:
    """How far LSTD's score on Acrobot depends on the ridge.

    A conclusion takes ridges from a hundredth to a hundred times the task's, and scores that differ by more than
    repetitions do; else the scores are listed and that is all.
    """
    cells = [cell for cell in results.cells(experiment) if cell.startswith("acrobot/lstd")]
    own, scores = TASKS["acrobot"].ridge, {}
    for cell in cells:
        records = results.of(experiment, cell)
        ridge = records[0]["settings"]["ridge"]
        scores[own if ridge is None else ridge] = spread([record["score"]["mean_length"] for record in records])
    if len(scores) < 2:
        return []
    words = [f"{_with_deviation(scores[ridge])} at {ridge:g}" for ridge in sorted(scores)]
    ends = [pick(scores.values(), key=lambda score: score.mean) for pick in (min, max)]
    deviations = [score.sd for score in ends]
    wide = min(scores) <= 1.001 * own / 100 and max(scores) >= 0.999 * own * 100
    known = wide and all(sd is not None and sd < ends[1].mean - ends[0].mean for sd in deviations)
    what = "LSTD on Acrobot, by the ridge"
    if known:
        much = ends[1].mean > 1.5 * ends[0].mean
        what = "LSTD's score on Acrobot is the ridge's more than the method's" if much else "The ridge matters little"
    return [Sentence(f"{what}: {listed(words)}.")]


def _with_deviation(score: Spread) -> str:
    return f"{score.mean:.0f}" + ("" if score.sd is None else f" &plusmn; {score.sd:.0f}")
