"""Figure 1: MSPBE against epochs and passes on the four tasks; and again at the best steps of the paper's grid."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from valuate.experiments.plan import Cell, Data, Experiment, Solver
from valuate.experiments.results import Results
from valuate.solvers import GTD2, SAGA, SCSG, SVRG, BatchingSVRG

ROWS = 5000
RUNS = {"smoke": 3, "paper": 10}

#: The authors' step sizes, the same for theta and omega.
STEPS = {"random-mdp": 1e-3, "mountain-car": 0.1, "cart-pole": 1.0, "acrobot": 0.01}
EPOCHS = {"random-mdp": 50, "mountain-car": 20, "cart-pole": 50, "acrobot": 50}
#: Batches of batching SVRG.
SLOW: dict[str, Any] = {"initial_fraction": 0.1, "growth": 1.05}
FAST: dict[str, Any] = {"initial_fraction": 0.2, "growth": 1.1}
SCHEDULES = {"random-mdp": SLOW, "mountain-car": FAST, "cart-pole": SLOW, "acrobot": SLOW}
#: Where theta and omega start, when not at zero.
STARTS = {"acrobot": (0.0, 10.0)}

#: The paper's grid: steps of theta, steps of omega, inner steps of an epoch in multiples of n; seeds for each.
GRID_STEPS = tuple(10.0**power for power in range(1, -7, -1))
GRID_INNER = (1, 2)
GRID_SEEDS = {"smoke": 2, "paper": 5}
#: At smoke scale a corner of it.
SMOKE_STEPS, SMOKE_TASKS = (10.0, 1.0), ("cart-pole",)


def cells(scale: str, runs: int | None) -> list[Cell]:
    """The paper's two methods for the same number of epochs, the others for the passes that SVRG takes."""
    out = []
    for task, step in STEPS.items():
        steps: dict[str, Any] = {"step_theta": step, "step_omega": step}
        by_epoch: dict[str, Any] = {"epochs": EPOCHS[task], "record": "epoch"}
        by_pass: dict[str, Any] = {"passes": 2.0 * EPOCHS[task], "record": 1.0}
        for name, method, budget in (
            ("svrg", SVRG(**steps), by_epoch),
            ("batching-svrg", BatchingSVRG(**steps, **SCHEDULES[task]), by_epoch),
            ("gtd2", GTD2(**steps), by_pass),
            ("saga", SAGA(**steps), by_pass),
            ("scsg", SCSG(**steps), by_pass),
        ):
            data = Data(task=task, rows=ROWS)
            start = STARTS.get(task)
            out.append(
                Cell(name=f"{task}/{name}", data=data, method=method, runs=runs or RUNS[scale], start=start, **budget)
            )
    return out


def grid_cells(scale: str, runs: int | None) -> list[Cell]:
    """Every combination of the grid on validation data, for as many passes as SVRG takes in the figure."""
    steps, tasks = (SMOKE_STEPS, SMOKE_TASKS) if scale == "smoke" else (GRID_STEPS, tuple(STEPS))
    out = []
    for task, theta, omega in product(tasks, steps, steps):
        data = Data(task=task, rows=ROWS, role="validation")
        for name, method, inner in _grid_methods(task, theta, omega):
            epochs = round(2 * EPOCHS[task] / (1 + inner)) if inner else 2 * EPOCHS[task]
            out.append(
                Cell(
                    name=f"validation/{task}/{name}/{theta:g}/{omega:g}/{inner}n",
                    data=data,
                    method=method,
                    runs=GRID_SEEDS[scale],
                    epochs=epochs,
                    start=STARTS.get(task),
                )
            )
    return out


def best_cells(cells: list[Cell], results: Results) -> list[Cell]:
    """The best combination of each task and method, on the figure's data and as often as its seeds."""
    chosen: dict[str, tuple[float, Cell]] = {}
    for cell in cells:
        ended = [record["result"] for record in results.of(GRID.name, cell.name)]
        ends = [result["mspbe"]["end"] for result in ended if result["status"] != "diverged"]
        if len(ends) < cell.runs:  # one that diverges once is no choice
            continue
        group = "/".join(cell.name.split("/")[1:3])
        mean = sum(ends) / len(ends)
        if group not in chosen or mean < chosen[group][0]:
            chosen[group] = mean, cell
    return [
        replace(cell, name=f"best/{group}", data=replace(cell.data, role="training"), record=_points(cell))
        for group, (_, cell) in chosen.items()
    ]


def _grid_methods(task: str, theta: float, omega: float) -> list[tuple[str, Solver, int]]:
    """Methods and their inner steps in multiples of n; GTD2 has none."""
    steps: dict[str, Any] = {"step_theta": theta, "step_omega": omega}
    out: list[tuple[str, Solver, int]] = [("gtd2", GTD2(**steps), 0)]
    for inner in GRID_INNER:
        out.append(("svrg", SVRG(steps_per_row=inner, **steps), inner))
        out.append(("batching-svrg", BatchingSVRG(steps_per_row=inner, **steps, **SCHEDULES[task]), inner))
    return out


def _points(cell: Cell) -> float | str:
    return 1.0 if isinstance(cell.method, GTD2) else "epoch"


EXPERIMENT = Experiment(name="figure-1", title="SVRG and batching SVRG on four tasks", cells=cells)
GRID = Experiment(
    name="figure-1-grid", title="Figure 1 at the best steps of the paper's grid", cells=grid_cells, then=best_cells
)
