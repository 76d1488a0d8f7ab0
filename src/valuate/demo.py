"""The main job on a small log that is made on the spot: a policy in, its value out, beside the exact one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.environments import BoyanChain
from valuate.problem import Problem
from valuate.solvers import LSTD, SVRG

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from rich.console import Console

    from valuate.solution import Solution

TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Found:
    """What the demonstration found.

    Attributes
    ----------
    rows : int
    values, exact : (n_states,) array
        Estimated and exact value of each state, the start first.
    solution, direct : Solution
        Of SVRG and, to compare, of LSTD.
    """

    rows: int
    values: NDArray[np.float64]
    exact: NDArray[np.float64]
    solution: Solution
    direct: Solution

    def as_dict(self) -> dict[str, Any]:
        """The same as plain numbers and text."""
        found = self.solution
        return {
            "rows": self.rows,
            "value_of_start": float(self.values[0]),
            "exact_value_of_start": float(self.exact[0]),
            "values": self.values.tolist(),
            "exact_values": self.exact.tolist(),
            "status": found.status.value,
            "message": found.message,
            "row_visits": found.row_visits,
            "setup_visits": found.setup_visits,
            "passes": found.passes,
            "seconds": found.seconds,
            "largest_difference_from_lstd": float(np.abs(found.theta - self.direct.theta).max()),
        }


def run(*, rows: int = 10_000, seed: int = 0) -> Found:
    """Collect a log of Boyan's chain and evaluate its policy from the log alone."""
    chain = BoyanChain()
    log = chain.collect(rows, seed=seed)
    problem = Problem.from_transitions(log, chain.features, discount=1.0)
    solution = SVRG().solve(problem, passes=500, tolerance=TOLERANCE, seed=seed).require()
    return Found(rows, chain.table @ solution.theta, chain.values(), solution, LSTD().solve(problem).require())


def show(found: Found, console: Console) -> None:
    """Print the values as a table, and what the run was."""
    from rich.table import Table

    solution = found.solution
    console.print(
        f"Boyan's chain: {found.rows:,} logged transitions, {len(found.values)} states, {len(solution.theta)} features."
    )
    table = Table("state", "value", "exact", "", box=None, header_style="bold", pad_edge=False)
    for column in table.columns[1:3]:
        column.justify = "right"
    longest = np.abs(found.exact).max()
    for state, (value, exact) in enumerate(zip(found.values, found.exact, strict=True)):
        bar = "█" * round(30 * abs(value) / longest)
        table.add_row(str(state), f"{value:.2f}", f"{exact:.2f}", bar)
    console.print(table)
    console.print(
        f"[bold]Value of the policy from the start: {found.values[0]:.2f}[/bold] (exact: {found.exact[0]:.2f})"
    )
    console.print(f"Status: {solution.message}")
    console.print(
        f"Cost:   {solution.row_visits:,} row visits and {solution.setup_visits:,} that only measured, "
        f"{1e3 * solution.seconds:.0f} ms."
    )
    gap = np.abs(found.values - found.exact).max()
    apart = float(np.abs(solution.theta - found.direct.theta).max())
    console.print(
        f"Check:  LSTD solves the same log directly; its weights are within {apart:.0e}. What is left, {gap:.2f}, "
        "is the noise of so few transitions."
    )
