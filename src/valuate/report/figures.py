"""What Figures 1 and 2 look like here, and what can be said about it."""

from __future__ import annotations

from typing import Any

import numpy as np

from valuate.experiments import published
from valuate.experiments.results import Curve, Results, curve, spread
from valuate.experiments.tasks import TASKS
from valuate.report.parts import (
    LABELS,
    Chart,
    Compared,
    Entry,
    Section,
    Sentence,
    Series,
    Table,
    Verdict,
    holds,
    listed,
    number,
)

Record = dict[str, Any]

MSPBE = "MSPBE"
#: Two levels are the same when they differ by at most this share of the way from the start.
LEVEL = 0.02
#: What standard deviations and bands are of, where all runs are on one data set.
ONE_DATA_SET = (
    "All runs{of} are on one data set{process}: {what} the methods' own chance, in the order of the rows{start}. "
    "Another data set, which another <code>--seed</code> makes, moves the levels by more than that as a rule."
)
#: With more than this share of the start left, nobody is near a solution.
NEAR = 0.05


def figure_1(results: Results) -> Section:
    """At the authors' steps: the figure's two methods along epochs, all of them along passes."""
    section = Section(
        "figure-1",
        "Figure 1: SVRG and batching SVRG on four tasks",
        "MSPBE on 5,000 rows, at the authors' step sizes. Lines are means over the runs, bands their least and most. "
        "The paper draws SVRG and batching SVRG along epochs; the other methods are added along passes. It prints no "
        "numbers for this figure.",
        note=_chance("bands show", tasks=True),
    )
    ends: dict[str, dict[str, Compared]] = {}
    for task in _tasks(results, "figure-1", ""):
        found = {name: results.of("figure-1", f"{task}/{name}") for name in LABELS}
        found = {name: records for name, records in found.items() if records}
        section.charts += _two_charts("figure-1", task, found)
        ends[task] = {name: _end(records) for name, records in found.items()}
    both = {task: row for task, row in ends.items() if {"svrg", "batching-svrg"} <= row.keys()}
    if both:
        section.sentences += _same_level(results, both)
        section.sentences += _far_from_done(results, both)
        section.sentences += _gtd2_beside(results, both)
    section.tables.append(_ends_table("figure-1-ends", "MSPBE at the end", ends))
    return section


def grid(results: Results) -> Section:
    """At the best steps of the paper's grid, chosen on validation data."""
    name = "figure-1-grid"
    section = Section(
        name,
        "Figure 1 at the best steps of the paper's grid",
        "For each task and method every pair of step sizes and number of inner steps was run with several seeds on a "
        "validation data set; the one with the least mean MSPBE, none of whose runs diverged, was then run on the data "
        "of the figure.",
        note=_chance("bands show", tasks=True),
    )
    ends: dict[str, dict[str, Compared]] = {}
    rows: list[list[Entry]] = []
    edge: list[bool] = []
    for task in _tasks(results, name, "best/"):
        found = {method: results.of(name, f"best/{task}/{method}") for method in LABELS}
        found = {method: records for method, records in found.items() if records}
        section.charts += _two_charts(name, task, found)
        ends[task] = {method: _end(records) for method, records in found.items()}
        for method, records in found.items():
            solver = records[0]["settings"]["method"]
            steps = solver["step_theta"], solver["step_omega"]
            inner = round(solver.get("steps_per_row", 0))
            runs = results.of(name, _validation(task, method, *steps, inner))
            beyond = _beyond(results, task, method, *steps, inner)
            edge += [any(map(_grew, beyond))] if beyond else []
            rows.append(
                [TASKS[task].title, LABELS[method], *steps, f"{inner}n" if inner else "", _end(runs), _end(records)]
            )
    columns = ("Task", "Method", "step_theta", "step_omega", "K", "On validation data", "On the figure's data")
    note = _spreads(tasks=True)
    section.tables.append(Table("figure-1-grid-best", "The settings that were chosen", columns, rows, note))
    if edge:
        section.sentences.append(
            Sentence(
                f"{sum(edge)} of the {len(edge)} chosen settings that the grid goes beyond lie next to the edge of "
                "stability: with one of their two steps 10 times as large, a run diverges or ends above its start."
            )
        )
    section.sentences += _lower_than_before(results, ends) + _after_as_many_passes(results, ends)
    return section


def figure_2(results: Results) -> Section:
    """All methods within one pass over a large data set."""
    names = [*LABELS, "gtd2-best"]
    found = {name: records for name in names if (records := results.of("figure-2", name))}
    rows = next(iter(found.values()))[0]["data"]["rows"]
    other = "" if rows == published.FIGURE_2_ROWS else f" The paper has {published.FIGURE_2_ROWS:,} rows."
    section = Section(
        "figure-2",
        "Figure 2: one pass over a large data set",
        f"Random MDP, {rows:,} rows, each method for one pass at the authors' step sizes; GTD2 also at a step that the "
        f"paper's grid has.{other} The paper prints no numbers for this figure.",
        note=_chance("bands show", tasks=False),
    )
    labels = LABELS | {"gtd2-best": "GTD2, best step"}
    series = [
        Series(name, labels[name], line, dashed=name in ("gtd2-best", "saga"))
        for name, records in found.items()
        if (line := curve(records, "passes")) is not None
    ]
    section.charts.append(Chart("figure-2", f"Random MDP, {rows:,} rows", "passes", MSPBE, series))
    table = [[labels[name], *_steps(records[0]), _end(records)] for name, records in found.items()]
    columns = ("Method", "step_theta", "step_omega", "MSPBE after one pass")
    note = _spreads(tasks=False)
    section.tables.append(Table("figure-2-ends", "MSPBE after one pass", columns, table, note))
    section.sentences = _one_pass(found)
    return section


def _one_pass(found: dict[str, list[Record]]) -> list[Sentence]:
    out = []
    end = {name: _end(records).ours.mean for name, records in found.items()}
    for name in ("svrg", "saga"):
        if name in found:
            flat = all(len(set(record["trace"]["mspbe"])) == 1 for record in found[name])
            how = "does not move: its mean gradient takes the whole pass" if flat else "moves"
            out.append(Sentence(f"{LABELS[name]} {how}.", holds(flat)))
    for name in ("batching-svrg", "scsg"):
        if name in end and "gtd2" in end:
            below = end[name] < end["gtd2"]
            out.append(
                Sentence(
                    f"{LABELS[name]} ends at {number(end[name])}, GTD2 at the authors' steps at {number(end['gtd2'])}: "
                    f"{number(end['gtd2'] / end[name], 2)} times as much.",
                    holds(below),
                )
            )
    if {"gtd2", "gtd2-best", "scsg"} <= end.keys():
        out.append(_gap_is_the_step(found, end))
    return out


def _gap_is_the_step(found: dict[str, list[Record]], end: dict[str, float]) -> Sentence:
    best, scsg = curve(found["gtd2-best"], "passes"), curve(found["scsg"], "passes")
    assert best is not None and scsg is not None
    ahead = best.mean < np.interp(best.x, scsg.x, scsg.mean)
    ahead[0] = True  # they start level
    until = float(best.x[-1] if ahead.all() else best.x[int((~ahead).argmax())])
    share = (end["gtd2"] - end["gtd2-best"]) / (end["gtd2"] - end["scsg"]) if end["gtd2"] != end["scsg"] else 1.0
    step = found["gtd2-best"][0]["settings"]["method"]["step_theta"]
    if ahead.all():
        leads = "and is ahead of SCSG all along"
    else:
        leads = (
            f"and is ahead of SCSG up to {until:.2g} of the pass" if until > 0.05 else "and is behind SCSG all along"
        )
    if share > 0.8:
        why = "The gap that the paper shows is one of GTD2's step size, not of its rate"
    else:
        why = f"The step size accounts for {max(share, 0):.0%} of the gap that the paper shows"
    return Sentence(
        f"{why}: with steps of {step:g}, which the paper's grid has, GTD2 ends at {number(end['gtd2-best'])} {leads}."
    )


def _same_level(results: Results, ends: dict[str, dict[str, Compared]]) -> list[Sentence]:
    """The paper's claim: the same level after as many epochs, in fewer passes."""
    out = []
    level: list[str] = []
    apart: list[str] = []
    for task, row in ends.items():
        start = _start(results.of("figure-1", f"{task}/svrg"))
        svrg, batching = row["svrg"].ours.mean, row["batching-svrg"].ours.mean
        off = abs(svrg - batching) / max(start - svrg, 1e-300)
        passes = [results.of("figure-1", f"{task}/{name}")[0]["result"]["passes"] for name in ("batching-svrg", "svrg")]
        numbers = f"{number(batching)} and {number(svrg)} with {passes[0]:.4g} and {passes[1]:.4g} passes"
        same = off <= LEVEL and passes[0] < passes[1]
        (level if same else apart).append(f"{TASKS[task].title} ({numbers})")
    rule = f"levels within {LEVEL:.0%} of the way from the start"
    if level:
        text = f"Batching SVRG ends level with SVRG after as many epochs, in fewer passes, on {listed(level)}; {rule}."
        out.append(Sentence(text, Verdict.AGREES))
    if apart:
        out.append(Sentence(f"Batching SVRG does not end level with SVRG on {listed(apart)}.", Verdict.DIFFERS))
    return out


def _far_from_done(results: Results, ends: dict[str, dict[str, Compared]]) -> list[Sentence]:
    left = {task: row["svrg"].ours.mean / _start(results.of("figure-1", f"{task}/svrg")) for task, row in ends.items()}
    far = [f"{TASKS[task].title} {share:.0%}" for task, share in left.items() if share > NEAR]
    if not far:
        return []
    return [
        Sentence(f"At these steps SVRG is not near a solution: of the MSPBE of its start is left, on {listed(far)}.")
    ]


def _gtd2_beside(results: Results, ends: dict[str, dict[str, Compared]]) -> list[Sentence]:
    """How GTD2 does with the same number of inner steps, which are half of SVRG's passes."""
    words = []
    for task, row in ends.items():
        line = curve(results.of("figure-1", f"{task}/gtd2"), "passes")
        if line is None:
            continue
        half = results.of("figure-1", f"{task}/svrg")[0]["result"]["passes"] / 2
        there = float(np.interp(half, line.x, line.mean))
        words.append(
            f"{TASKS[task].title} {number(there)} after {half:g} passes (SVRG {number(row['svrg'].ours.mean)})"
        )
    if not words:
        return []
    return [Sentence(f"GTD2, which the figure leaves out, with half of SVRG's passes: {listed(words)}.")]


def _lower_than_before(results: Results, ends: dict[str, dict[str, Compared]]) -> list[Sentence]:
    words = []
    for task, row in ends.items():
        before = results.of("figure-1", f"{task}/svrg")
        if before and "svrg" in row:
            words.append(f"{TASKS[task].title} {number(row['svrg'].ours.mean)} ({number(_end(before).ours.mean)})")
    if not words:
        return []
    return [Sentence(f"SVRG's end at the best steps of the grid, and in brackets at the authors': {listed(words)}.")]


def _after_as_many_passes(results: Results, ends: dict[str, dict[str, Compared]]) -> list[Sentence]:
    """Both methods of the figure at their best, where batching SVRG stops."""
    words, ahead = [], 0
    for task, row in ends.items():
        svrg = curve(results.of("figure-1-grid", f"best/{task}/svrg"), "passes")
        batching = results.of("figure-1-grid", f"best/{task}/batching-svrg")
        if svrg is None or not batching:
            continue
        passes, end = batching[0]["result"]["passes"], row["batching-svrg"].ours.mean
        there = float(np.interp(passes, svrg.x, svrg.mean))
        ahead += end < there
        words.append(f"{TASKS[task].title} {number(end)} and {number(there)} after {passes:.4g} passes")
    if not words:
        return []
    return [
        Sentence(
            f"Each at its best steps and after as many passes, batching SVRG is below SVRG on {ahead} of {len(words)} "
            f"tasks (batching SVRG and SVRG): {listed(words)}."
        )
    ]


def _beyond(results: Results, task: str, method: str, theta: float, omega: float, inner: int) -> list[Record]:
    """The runs of the setting with one of the steps 10 times as large; none at the corner of the grid."""
    ups = ((10 * theta, omega), (theta, 10 * omega))
    return [run for up in ups for run in results.of("figure-1-grid", _validation(task, method, *up, inner))]


def _grew(record: Record) -> bool:
    mspbe = record["result"]["mspbe"]
    return bool(record["result"]["status"] == "diverged" or mspbe["end"] > mspbe["start"])


def _validation(task: str, method: str, theta: float, omega: float, inner: int) -> str:
    return f"validation/{task}/{method}/{theta:g}/{omega:g}/{inner}n"


def _tasks(results: Results, experiment: str, prefix: str) -> list[str]:
    cells = results.cells(experiment)
    return [task for task in TASKS if any(cell.startswith(f"{prefix}{task}/") for cell in cells)]


def _two_charts(name: str, task: str, found: dict[str, list[Record]]) -> list[Chart]:
    """Along epochs the methods of the figure, along passes all."""
    out = []
    for axis, label, methods in (
        ("epoch", "epochs", [m for m in ("svrg", "batching-svrg") if m in found]),
        ("passes", "passes", list(found)),
    ):
        lines = {method: curve(found[method], axis) for method in methods}
        series = [Series(method, LABELS[method], line) for method, line in lines.items() if isinstance(line, Curve)]
        if series:
            out.append(Chart(f"{name}-{task}-{label}", f"{TASKS[task].title}, along {label}", label, MSPBE, series))
    return out


def _ends_table(name: str, title: str, ends: dict[str, dict[str, Compared]]) -> Table:
    columns = ("Task", *(LABELS[method] for method in LABELS if any(method in row for row in ends.values())))
    methods = [method for method in LABELS if LABELS[method] in columns]
    rows = [[TASKS[task].title, *(row.get(method) for method in methods)] for task, row in ends.items()]
    return Table(name, title, columns, rows, _spreads(tasks=True))


def _spreads(*, tasks: bool) -> str:
    return "Mean and standard deviation over the runs. " + _chance("&plusmn; is", tasks=tasks)


def _chance(what: str, *, tasks: bool) -> str:
    """What the spread of runs is, and is not; of several tasks or of Random MDP alone."""
    if tasks:
        words = {"of": " of a task", "process": "", "start": " and, on Acrobot, in where they start"}
    else:
        words = {"of": "", "process": " of one process", "start": ""}
    return ONE_DATA_SET.format(what=what, **words)


def _end(records: list[Record]) -> Compared:
    return Compared(spread([record["result"]["mspbe"]["end"] for record in records]), digits=3)


def _start(records: list[Record]) -> float:
    return float(np.mean([record["result"]["mspbe"]["start"] for record in records]))


def _steps(record: Record) -> list[Entry]:
    method = record["settings"]["method"]
    return [method["step_theta"], method["step_omega"]]
