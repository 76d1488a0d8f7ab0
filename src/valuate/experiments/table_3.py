"""Table 3: how the policies do that are greedy in the action values which each method finds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

from valuate.experiments.plan import Cell, Data, Experiment, Solver
from valuate.solvers import GTD2, LSTD, SAGA, SCSG, SVRG, BatchingSVRG

#: Episodes that a policy is scored in.
EPISODES = 100
SMALL = {"smoke": 20_000, "paper": 20_000}
LARGE = {"smoke": 50_000, "paper": 1_000_000}
SMALL_RUNS = {"smoke": 3, "paper": 50}
LARGE_RUNS = {"smoke": 2, "paper": 20}
#: Ridges at which LSTD is looked at again on small Acrobot data.
RIDGES = {"smoke": (1e-4,), "paper": (1e-7, 1e-6, 1e-4, 1e-3)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of the table: its task, the most steps of an episode, and the authors' settings of each method."""

    task: str
    limit: int
    passes: float
    methods: dict[str, Solver]


def _both(theta: float, omega: float) -> dict[str, Any]:
    return {"step_theta": theta, "step_omega": omega}


ONE, TEN, TENTH = _both(1.0, 1.0), _both(1.0, 10.0), _both(0.1, 1.0)

ROWS = {
    "mountain-car": Row(
        task="mountain-car",
        limit=500,
        passes=100.0,
        methods={
            "gtd2": GTD2(**ONE),
            "svrg": SVRG(steps_per_row=2.0, **ONE),
            "saga": SAGA(**ONE),
            "batching-svrg": BatchingSVRG(initial_fraction=0.1, growth=1.1, **ONE),
            "scsg": SCSG(batch_fraction=0.1, **ONE),
            "lstd": LSTD(),
        },
    ),
    "cart-pole": Row(
        task="cart-pole",
        limit=500,
        passes=100.0,
        methods={
            "gtd2": GTD2(**TEN),
            "svrg": SVRG(**TEN),
            "saga": SAGA(**ONE),
            "batching-svrg": BatchingSVRG(initial_fraction=0.1, growth=1.1, **TEN),
            "scsg": SCSG(batch_fraction=0.1, **TEN),
            "lstd": LSTD(),
        },
    ),
    "acrobot": Row(
        task="acrobot",
        limit=500,
        passes=100.0,
        methods={
            "gtd2": GTD2(**ONE),
            "svrg": SVRG(steps_per_row=2.0, **TENTH),
            "saga": SAGA(**TENTH),
            "batching-svrg": BatchingSVRG(initial_fraction=0.1, growth=1.1, **TENTH),
            "scsg": SCSG(batch_fraction=0.1, **TENTH),
            "lstd": LSTD(),
        },
    ),
    "mountain-car-large": Row(
        task="mountain-car",
        limit=200,
        passes=1.0,
        methods={
            "gtd2": GTD2(**ONE),
            "svrg": SVRG(**ONE),
            "saga": SAGA(**ONE),
            "batching-svrg": BatchingSVRG(initial_fraction=0.001, growth=5.0, steps_per_row=0.2, **ONE),
            "scsg": SCSG(batch_fraction=0.01, **ONE),
            "lstd": LSTD(),
        },
    ),
    "cart-pole-large": Row(
        task="cart-pole",
        limit=500,
        passes=1.0,
        methods={
            "gtd2": GTD2(**TEN),
            "svrg": SVRG(**TEN),
            "saga": SAGA(**TEN),
            "batching-svrg": BatchingSVRG(initial_fraction=0.1, growth=1.1, steps_per_row=0.1, **TEN),
            "scsg": SCSG(batch_fraction=0.05, **TEN),
            "lstd": LSTD(),
        },
    ),
    "acrobot-large": Row(
        task="acrobot",
        limit=500,
        passes=1.0,
        methods={
            "gtd2": GTD2(**TEN),
            "svrg": SVRG(**TENTH),
            "saga": SAGA(**TENTH),
            "batching-svrg": BatchingSVRG(initial_fraction=0.001, growth=5.0, steps_per_row=0.2, **TENTH),
            "scsg": SCSG(batch_fraction=0.01, **TENTH),
            "lstd": LSTD(),
        },
    ),
}


def cells(scale: str, runs: int | None, *, right_ends: bool = False) -> list[Cell]:
    """Every row and method, a new data set for every repetition."""
    out = []
    for name, row in ROWS.items():
        large = name.endswith("-large")
        data = Data(
            task=row.task,
            rows=(LARGE if large else SMALL)[scale],
            pairs=True,
            limit=row.limit,
            right_ends=right_ends,
            fresh=True,
        )
        repetitions = runs or (LARGE_RUNS if large else SMALL_RUNS)[scale]
        make = partial(Cell, data=data, runs=repetitions, episodes=EPISODES)
        out += [
            make(name=f"{name}/{method}", method=solver, passes=row.passes) for method, solver in row.methods.items()
        ]
        if name == "acrobot":
            out += [
                make(name=f"{name}/lstd-{ridge:g}", method=LSTD(), ridge=ridge, passes=1.0) for ridge in RIDGES[scale]
            ]
    return out


EXPERIMENT = Experiment(name="table-3", title="Control with the values that each method finds", cells=cells)
RIGHT_TERMINATION = Experiment(
    name="table-3-right-termination",
    title="Control, with nothing after the end of an episode",
    cells=partial(cells, right_ends=True),
)
