"""Tables 1 and 2: what methods should cost, and what they do cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from valuate.experiments import published
from valuate.experiments.results import Results, spread
from valuate.experiments.tasks import TASKS
from valuate.report.parts import LABELS, Compared, Entry, Section, Sentence, Table, Verdict, holds, listed, number

Record = dict[str, Any]

#: Accuracies as shares of the start's.
SHARES = (0.5, 0.1, 0.01)


def table_1(results: Results) -> Section:
    """Predicted passes beside measured ones."""
    section = Section(
        "table-1",
        "Table 1: predicted and measured cost",
        "Predicted: the table's formulas with every constant 1, for the constants of the task's own data, in passes "
        "to reduce the squared distance to the solution to a tenth; &ldquo;corrected&rdquo; adds the factor that the "
        "proof of the paper's second corollary loses; &ldquo;guaranteed&rdquo; is what the theorems prove, with all of "
        "their constants. Measured: passes until the mean MSPBE (or squared distance) of the runs first is at that "
        "share of the start's, all methods at the steps that are safe for the rows.",
    )
    for task in TASKS:
        theory = results.of("table-1", f"{task}/theory")
        if theory:
            section.tables.append(_cost_table(results, task, theory[0]["constants"]))
    section.sentences += _against_theory(results)
    return section


def table_2(results: Results) -> Section:
    """Passes counted by the solver."""
    section = Section(
        "table-2",
        "Table 2: passes of SVRG and batching SVRG",
        "Row visits that the solvers counted in one run of each with the settings of Figure 1, divided by the rows: "
        "they do not depend on chance. The paper rounds to whole passes; the verdict is whether ours, rounded, are "
        "its.",
    )
    rows: list[list[Entry]] = []
    wrong = []
    for task, printed in published.PASSES.items():
        row: list[Entry] = [TASKS[task].title]
        for method, passes in printed.items():
            records = results.of("table-2", f"{task}/{method}")
            if not records:
                row.append(None)
                continue
            ours = spread([record["result"]["passes"] for record in records])
            same = round(ours.mean) == passes
            row.append(Compared(ours, spread([float(passes)]), holds(same), digits=4))
            if not same:
                wrong.append(f"{LABELS[method]} on {TASKS[task].title} ({ours.mean:.2f}, not {passes})")
        rows.append(row)
    section.tables.append(Table("table-2", "Passes", ("Task", "SVRG", "Batching SVRG"), rows))
    have, wanted = sum(isinstance(entry, Compared) for row in rows for entry in row), 2 * len(rows)
    if wrong:
        section.sentences.append(Sentence(f"Passes differ for {listed(wrong)}.", Verdict.DIFFERS))
    elif have == wanted:
        section.sentences.append(Sentence("Every number of passes is the paper's.", Verdict.AGREES))
    if have < wanted:
        what = f"{have} of the {wanted} numbers of passes {'is' if have == 1 else 'are'} there"
        section.sentences.append(Sentence(f"{what}; of these, {have - len(wrong)} {_are_theirs(have - len(wrong))}."))
    return section


def _are_theirs(count: int) -> str:
    return "is the paper's" if count == 1 else "are the paper's"


def _cost_table(results: Results, task: str, constants: dict[str, Any]) -> Table:
    predicted = {cost["method"].lower().replace("batchingsvrg", "batching-svrg"): cost for cost in _costs(constants)}
    rows: list[list[Entry]] = []
    for method in LABELS:
        records = results.of("table-1", f"{task}/{method}")
        if not records:
            continue
        cost = predicted.get(method, {})
        rows.append(
            [
                LABELS[method],
                *(cost.get(name) for name in ("passes", "corrected_passes", "bound_passes")),
                *(_reached(records, "mspbe", share) for share in SHARES),
                _reached(records, "distance", SHARES[1]),
            ]
        )
    columns = (
        "Method",
        "Predicted",
        "Corrected",
        "Guaranteed",
        *(f"Measured, MSPBE to {share:g}" for share in SHARES),
        f"Measured, distance to {SHARES[1]:g}",
    )
    note = f"Constants: {_described(constants)}"
    return Table(f"table-1-{task}", f"{TASKS[task].title}: passes", columns, rows, note)


def _costs(constants: dict[str, Any]) -> list[dict[str, Any]]:
    return list(constants.get("costs", {}).get(str(SHARES[1]), []))


def _described(constants: dict[str, Any]) -> str:
    if "refused" in constants:
        return f"there are none. {constants['refused']}"
    names = ("lambda_min", "lambda_max", "kappa", "L_G_squared", "H", "beta")
    return ", ".join(f"{name} {number(constants['numbers'][name])}" for name in names) + "."


def _reached(records: list[Record], column: str, share: float) -> str | float:
    """Passes until the mean over the runs is at a share of its start."""
    values = [record["trace"][column] for record in records]
    count = min(len(line) for line in values)
    mean = np.mean([line[:count] for line in values], axis=0)
    there = np.flatnonzero(mean <= share * mean[0])
    passes = records[0]["trace"]["passes"]
    return float(passes[int(there[0])]) if len(there) else f"not in {passes[count - 1]:g}"


def _against_theory(results: Results) -> list[Sentence]:
    """How far the predictions are from what methods take, and from each other."""
    words, refused, alike = [], [], {}
    for task in TASKS:
        theory = results.of("table-1", f"{task}/theory")
        records = results.of("table-1", f"{task}/svrg")
        if not theory or not records:
            continue
        title, constants = TASKS[task].title, theory[0]["constants"]
        passes = {cost["method"]: cost["passes"] for cost in _costs(constants)}
        if not passes:
            refused.append(Sentence(f"The theory does not apply on {title}: {constants['refused']}"))
            continue
        took = _reached(records, "distance", SHARES[1])
        taken = f"{took:g} passes" if isinstance(took, float) else f"{took} passes"
        words.append(f"{title} {number(passes['SVRG'], 2)} ({taken})")
        linear = [passes[name] for name in passes if name != "GTD2"]
        alike[title] = max(linear) <= 1.01 * min(linear)
    out = []
    if words:
        out.append(
            Sentence(
                "Passes that the table predicts for SVRG to a tenth of the squared distance, and in brackets what it "
                f"took: {listed(words)}."
            )
        )
    if alike and all(alike.values()):
        out.append(
            Sentence(
                f"The table cannot tell SVRG, SAGA, batching SVRG and SCSG apart on {listed(list(alike))}: beside "
                "kappa&sup2; L_G&sup2; / lambda_min&sup2; the rows of a mean do not count."
            )
        )
    return out + refused
