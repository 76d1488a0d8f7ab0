"""One pass over a very large log of Random MDP, and parts of it: how far methods come that need no step sizes.

::

    python -m valuate.experiments.one_pass                  # ten million rows, three logs: some minutes
    python -m valuate.experiments.one_pass --rows 1000000

Figure 2 has the paper's methods at the authors' steps. Here all but one choose their steps; what they look at to do so
is counted with the steps that they take.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate.environments import RandomMDP
from valuate.problem import Problem
from valuate.solvers import GTD2, LSTD, SCSG, TD

if TYPE_CHECKING:
    from valuate.transitions import Transitions

#: Budgets, as shares of a pass.
SHARES = (0.1, 0.5, 1.0)
#: Seeds of processes and logs.
SEEDS = (101, 102, 103)
DISCOUNT = 0.95

_GROWING: dict[str, Any] = {"batch_fraction": 1e-4, "growth": 1.1, "steps_per_row": 0.5, "sampling": "log"}
METHODS: dict[str, Any] = {
    "TD, averaged, rows as they lie": TD(average=True, sampling="log"),
    "TD, averaged, rows at random": TD(average=True),
    "TD, averaged, steps that decay": TD(average=True, sampling="log", decay=0.5),
    "TD-SCSG, averaged": SCSG(direction="td", average=True, **_GROWING),
    "TD-SCSG": SCSG(direction="td", **_GROWING),
    "GTD2, averaged": GTD2(average=True),
    "the authors' SCSG": SCSG(batch_fraction=1e-3, step_theta=1e-3, step_omega=1e-3),
}
#: The rows of the budget alone, solved directly.
DIRECT = "LSTD on so many rows"


class Entry(NamedTuple):
    """What a method came to with a budget on one log: the MSPBE on all rows, and visits as a share of a pass."""

    method: str
    share: float
    mspbe: float
    visits: float


def measure(rows: int, seed: int) -> list[Entry]:
    """All methods and budgets on one log of its own process."""
    environment = RandomMDP(seed=seed, discount=DISCOUNT)
    log = environment.collect(rows, seed=seed)
    problem = _problem(environment, log)
    found = []
    for share in SHARES:
        for name, method in METHODS.items():
            solution = method.solve(problem, passes=share, seed=seed)
            visits = (solution.row_visits + solution.setup_visits) / rows
            found.append(Entry(name, share, problem.mspbe(solution.theta), visits))
        part = LSTD().solve(_problem(environment, log[: round(share * rows)]))
        found.append(Entry(DIRECT, share, problem.mspbe(part.theta), share))
    return found


def _problem(environment: RandomMDP, log: Transitions) -> Problem:
    return Problem.from_transitions(log, environment.features, discount=DISCOUNT)


def table(entries: list[Entry]) -> str:
    """Means over the logs, in Markdown."""
    lines = [
        "| method | " + " | ".join(f"{share:g} of a pass" for share in SHARES) + " | visits for 1 |",
        "|---|" + "---|" * (len(SHARES) + 1),
    ]
    for name in (*METHODS, DIRECT):
        cells = [[e for e in entries if e.method == name and e.share == share] for share in SHARES]
        means = [f"{np.mean([e.mspbe for e in cell]):.2g}" for cell in cells]
        lines.append(f"| {name} | {' | '.join(means)} | {np.mean([e.visits for e in cells[-1]]):.3f} |")
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m valuate.experiments.one_pass", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--logs", type=int, default=len(SEEDS), help="logs, each of a process of its own")
    asked = parser.parse_args(arguments)
    entries = [entry for seed in range(SEEDS[0], SEEDS[0] + asked.logs) for entry in measure(asked.rows, seed)]
    sys.stdout.write(f"MSPBE on all {asked.rows:,} rows, mean of {asked.logs} logs\n\n{table(entries)}\n")


if __name__ == "__main__":
    main()
