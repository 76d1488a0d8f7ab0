"""Figure 2: MSPBE within a single pass over a very large data set of Random MDP."""

from __future__ import annotations

from typing import Any

from valuate.experiments.plan import Cell, Data, Experiment
from valuate.solvers import GTD2, SAGA, SCSG, SVRG, BatchingSVRG

ROWS = {"smoke": 200_000, "paper": 10_000_000}
RUNS = {"smoke": 3, "paper": 10}
#: Points of the trace in the one pass.
POINTS = 40

THOUSANDTH: dict[str, Any] = {"step_theta": 1e-3, "step_omega": 1e-3}
METHODS = {
    "gtd2": GTD2(step_theta=1e-5, step_omega=1e-4),
    # The same method at a step that the paper's grid has too.
    "gtd2-best": GTD2(**THOUSANDTH),
    "scsg": SCSG(batch_fraction=0.001, **THOUSANDTH),
    # The authors' K = n leaves time for one epoch only; with K = .01 n the batch grows as they meant it to.
    "batching-svrg": BatchingSVRG(initial_fraction=0.001, growth=1.1, steps_per_row=0.01, **THOUSANDTH),
    # The mean gradient takes the whole pass.
    "svrg": SVRG(**THOUSANDTH),
    "saga": SAGA(**THOUSANDTH),
}


def cells(scale: str, runs: int | None) -> list[Cell]:
    """All methods on one data set."""
    data = Data(task="random-mdp", rows=ROWS[scale], role="large")
    return [
        Cell(name=name, data=data, method=method, runs=runs or RUNS[scale], passes=1.0, record=1 / POINTS)
        for name, method in METHODS.items()
    ]


EXPERIMENT = Experiment(name="figure-2", title="One pass over ten million rows of Random MDP", cells=cells)
