"""Table 2: passes over the data that SVRG and batching SVRG take with Figure 1's settings, counted row by row."""

from __future__ import annotations

from typing import Any

from valuate.experiments.figure_1 import EPOCHS, ROWS, SCHEDULES, STEPS
from valuate.experiments.plan import Cell, Data, Experiment
from valuate.solvers import SVRG, BatchingSVRG


def cells(scale: str, runs: int | None) -> list[Cell]:
    """One run of each: the counts do not depend on chance, nor on the scale."""
    out = []
    for task, step in STEPS.items():
        steps: dict[str, Any] = {"step_theta": step, "step_omega": step}
        for name, method in (("svrg", SVRG(**steps)), ("batching-svrg", BatchingSVRG(**steps, **SCHEDULES[task]))):
            data = Data(task=task, rows=ROWS)
            out.append(Cell(name=f"{task}/{name}", data=data, method=method, runs=1, epochs=EPOCHS[task]))
    return out


EXPERIMENT = Experiment(name="table-2", title="Passes of SVRG and batching SVRG", cells=cells)
