"""Table 1: what the theory says that each method costs on each task, beside the passes that it takes."""

from __future__ import annotations

from valuate.experiments.figure_1 import ROWS
from valuate.experiments.plan import Cell, Data, Experiment
from valuate.experiments.tasks import TASKS
from valuate.solvers import GTD2, SAGA, SCSG, SVRG, BatchingSVRG

RUNS = {"smoke": 2, "paper": 10}
PASSES = {"smoke": 50.0, "paper": 200.0}

#: Every method at the same steps, those that are safe for the rows: the methods are compared, not their tuning.
METHODS = {
    "gtd2": GTD2(),
    "saga": SAGA(),
    "svrg": SVRG(),
    "batching-svrg": BatchingSVRG(),
    "scsg": SCSG(),
}


def cells(scale: str, runs: int | None) -> list[Cell]:
    """The constants of each task, and all methods from zero."""
    out = []
    for task in TASKS:
        data = Data(task=task, rows=ROWS)
        out.append(Cell(name=f"{task}/theory", data=data, method=None, runs=1))
        for name, method in METHODS.items():
            out.append(
                Cell(
                    name=f"{task}/{name}",
                    data=data,
                    method=method,
                    runs=runs or RUNS[scale],
                    passes=PASSES[scale],
                    record=0.5,
                    distance=True,
                )
            )
    return out


EXPERIMENT = Experiment(name="table-1", title="Predicted and measured cost of every method", cells=cells)
