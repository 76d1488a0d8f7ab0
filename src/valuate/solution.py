"""What a solver returns: the weights, how the run ended, what it cost, and how it went."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from valuate.certificate import certify
from valuate.errors import SolverError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.certificate import Certificate
    from valuate.problem import Problem


class Status(Enum):
    """How a run ended."""

    #: The tolerance was reached, or a direct solve is exact.
    CONVERGED = "converged"
    #: The budget ran out, or the callback stopped the run; the answer is the last point.
    BUDGET_SPENT = "budget spent"
    #: The steps grew without bound; the answer is the best point that was recorded.
    DIVERGED = "diverged"
    #: The residual no longer falls, above the tolerance; the answer is the best point.
    STALLED = "stalled"
    #: The log does not determine what was asked; the answer is one of the best.
    SINGULAR = "singular"


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Trace:
    """The points recorded during a run, one column an attribute; empty unless ``record`` was given.

    Attributes
    ----------
    epoch : (k,) int array
        Finished epochs.
    row_visits : (k,) int array
    passes : (k,) array
        Row visits divided by the number of rows.
    seconds : (k,) array
        On the solver's clock, which does not run while a point is recorded.
    mspbe : (k,) array
    """

    epoch: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    row_visits: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    passes: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    seconds: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    mspbe: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))

    def __len__(self) -> int:
        return len(self.epoch)

    def as_dict(self) -> dict[str, NDArray[Any]]:
        """Columns by name, as ``pandas.DataFrame`` takes them."""
        return {name: getattr(self, name) for name in self.__slots__}

    def __repr__(self) -> str:
        if not len(self):
            return "Trace(empty)"
        return (
            f"Trace({len(self)} points, {self.passes[-1]:g} passes, mspbe {self.mspbe[0]:.3g} to {self.mspbe[-1]:.3g})"
        )


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Solution:
    """The answer of a solver.

    Attributes
    ----------
    theta, omega : (dim,) array
        Primal weights, whose product with features is the value; and dual weights.
    status : Status
    message : str
        How the run ended, in a sentence or two, with advice where there is something to do.
    solver : solver
        The solver, with the numbers it used where it chose them itself.
    relative_residual : float
        sqrt(MSPBE(theta) / MSPBE(0)), in the norm that the message names.
    row_visits : int
        Evaluations of one row's gradient: the paper's count.
    setup_visits : int
        Visits that only measured: row norms for steps, checks of the tolerance, the closing residual.
    passes : float
        ``row_visits`` divided by the number of rows.
    epochs : int
    seconds : float
        Without recorded points, callbacks and the closing residual.
    trace : Trace
    """

    theta: NDArray[np.float64]
    omega: NDArray[np.float64]
    status: Status
    message: str
    solver: Any
    relative_residual: float
    row_visits: int
    setup_visits: int
    passes: float
    epochs: int
    seconds: float
    trace: Trace
    tolerance: float | None = None

    def require(self) -> Self:
        """The solution itself, where it can be used.

        Raises
        ------
        SolverError
            With the message: where the run diverged, stalled or was not determined; or where it spent its budget
            before it met the tolerance that was set, or further off than the value 0 everywhere.
        """
        spent = self.status is Status.BUDGET_SPENT and self.tolerance is None and not self.relative_residual > 1
        usable = self.status is Status.CONVERGED or spent
        if not usable:
            raise SolverError(self.message, solution=self)
        return self

    def values(self, problem: Problem) -> NDArray[np.float64]:
        """The value of each stored row of ``problem``'s features (each state of a table): (n_stored,)."""
        return problem.rows.times(self.theta)

    def certificate(self, problem: Problem, *, passes: float = 10, seed: int | np.random.Generator = 0) -> Certificate:
        """How good this answer is, what limits it, and what to do about that.

        Parameters
        ----------
        problem : Problem
            The one that was solved: a solution does not keep it, so that it stays small. On the rows of another log
            the MSPBE is at its floor or above even for a perfect optimiser, and the verdict does not apply.
        passes : float
            Most passes over the rows; at least 6. Only where A and C are too large to be formed is there a use for
            more than that: their eigenvalues are then bounded by products with them.
        seed : int or numpy.random.Generator
            Of the rows that are sampled and the vectors that iterations start from, where there are any.

        Returns
        -------
        Certificate
        """
        return certify(self, problem, passes=passes, seed=seed)

    def __repr__(self) -> str:
        return (
            f"Solution({self.status.value}, {len(self.theta):,} weights, relative residual "
            f"{self.relative_residual:.2g}, {self.passes:.4g} passes, {self.seconds:.3g} s)"
        )
