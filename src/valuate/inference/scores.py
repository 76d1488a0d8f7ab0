"""What each row, and each draw, contributes to A theta = b seen along one direction: scalars, and no matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import gathering, traces
from valuate.errors import InputError
from valuate.rows import COUNTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.inference.clusters import Clusters
    from valuate.problem import Problem

    Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Form:
    """The equations that were solved: A theta = b of the problem, or those of LSTD(lambda)."""

    trace_decay: float = 0.0
    ratio_on: str = "row"

    @classmethod
    def of(cls, solution: Any) -> Form:
        """From the solver of a solution; plain where only weights are known."""
        solver = getattr(solution, "solver", None)
        return cls(float(getattr(solver, "trace_decay", 0.0)), str(getattr(solver, "ratio_on", "row")))

    @property
    def plain(self) -> bool:
        """Whether these are the problem's own equations."""
        return self.trace_decay == 0.0 and self.ratio_on == "row"


def errors(problem: Problem, theta: Vector, form: Form) -> Vector:
    """What multiplies phi, or its trace, in each row's part of b - A theta: (n,).

    That is weight * ratio * temporal-difference error, in the plain form.
    """
    rows = in_memory(problem)
    values = rows.times(theta)
    out = np.empty(problem.n_rows)
    for first in range(0, problem.n_rows, COUNTED):
        part = rows.records[first : first + COUNTED]
        ahead = part["reward"] + part["discount"] * values[part["next"]]
        if form.ratio_on == "row":
            out[first : first + COUNTED] = part["scale"] * (ahead - values[part["state"]])
        else:
            weights = rows.weights[first : first + COUNTED] if len(rows.weights) else 1.0
            out[first : first + COUNTED] = part["scale"] * ahead - weights * values[part["state"]]
    return out


def along(problem: Problem, z: Vector, form: Form, starts: NDArray[np.bool_] | None) -> Vector:
    """z . phi of each row, or z . e with its trace: (n,)."""
    rows = in_memory(problem)
    u = np.asarray(rows.times(z)[rows.records["state"]])
    if form.trace_decay == 0.0:
        return u
    assert starts is not None
    kept = traces.kept(rows, starts, form.trace_decay, 0, problem.n_rows)
    column = u[:, None].copy()
    gathering.add_traces(column, kept, np.zeros(1))
    return column[:, 0]


def shares(problem: Problem, clusters: Clusters) -> Vector:
    """The share of the log's weight that each draw has: (count,)."""
    weights = in_memory(problem).weights
    if not len(weights):
        return np.bincount(clusters.codes, minlength=clusters.count) / problem.n_rows
    return clusters.total(weights) / problem.n_rows


def influence(problem: Problem, theta: Vector, z: Vector, terms: Vector, clusters: Clusters, share: Vector) -> Vector:
    """Derivative of the value at fixed states by the weight of each draw: (count,).

    With weights w of mean 1, (A - e I) and b are sum w (...) / n. To multiply the weights of a draw by 1 + h adds
    h times its own terms to the sums, and h times its share to their divisor; with A theta = b that leaves

        z . (1/n sum over its rows of w rho tdError phi - e share theta),    A' z = mean of the initial features.

    Parameters
    ----------
    terms : (n,) array
        `errors` times `along`.
    """
    return np.asarray(clusters.total(terms) / problem.n_rows - problem.ridge * float(z @ theta) * share)


def in_memory(problem: Problem) -> Any:
    """The problem's rows, where each can be looked at."""
    if not hasattr(problem.rows, "records"):
        raise InputError("an interval needs rows that lie in memory: build the problem from arrays or a log.")
    return problem.rows
