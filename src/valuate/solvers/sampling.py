"""What a run can learn from some of the rows, where looking at all of them would cost more than the run itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from valuate import metric
from valuate.rows import FEW
from valuate.solvers.directions import Maxima

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.problem import Problem
    from valuate.protocols import Scalars

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Order = NDArray[np.int32]

#: A sample stands for all rows where there are so many, and the budget is less than so many passes.
LARGE, FEW_PASSES = 100_000, 10.0
#: It takes this share of the budget each time it is looked at, and at least so many rows.
SHARE, FEWEST = 0.01, 1000
#: Maxima of the rows of a sample are multiplied by this: they are to hold for the others too.
SAFETY = 1.1
#: Largest entries and scales so many times those of the sample are no surprise.
ALIKE = 3.0
#: Means of scalars over all rows are to be within so many standard errors of those of the sample.
STANDARD_ERRORS = 5.0
#: Parts of a sample, from whose differences the noise of its means is known.
PARTS = 32
#: Rows that tell how far apart two points are, and numbers that these may take.
LOOKED_AT, NUMBERS = 1024, 1 << 22
#: Rows gathered at a time.
BLOCK = 4096
#: 1 / golden ratio.
GOLDEN = (math.sqrt(5.0) - 1.0) / 2.0


def size(problem: Problem, budget: int | None) -> int:
    """Rows of a sample that a run of so many visits can afford; 0 where it can afford to look at all of them."""
    n = problem.n_rows
    if budget is None or n < LARGE or budget >= FEW_PASSES * n:
        return 0
    return min(max(FEWEST, int(SHARE * budget)), n // 4)


def spread(n_rows: int, count: int) -> Order:
    """``count`` different rows of ``n_rows``, spread evenly, as are any that follow each other; all from a half on.

    Row k is where k steps of the golden section, around and around, lead to. Nothing is drawn, and no period of the
    log is met.
    """
    if 2 * count >= n_rows:
        return np.arange(n_rows, dtype=np.int32)
    turns = np.modf(GOLDEN * np.arange(0.5, count))[0]
    return np.asarray(np.minimum(n_rows * turns, n_rows - 1), dtype=np.int32)


@dataclass(frozen=True, slots=True)
class Sample:
    """Some rows of a problem, and whether they may stand for all of them.

    Attributes
    ----------
    order : (m,) array
    maxima : Maxima
        With a margin for the rows that were not looked at.
    typical : bool
        Whether the largest entries and the scalars of all rows are what these let expect. Scalars take no look at
        features, and the largest entry of each column is known since the rows were stored.
    """

    order: Order
    maxima: Maxima
    typical: bool

    @classmethod
    def of(cls, problem: Problem, count: int) -> Sample:
        """Look at ``count`` rows; one visit each."""
        order = spread(problem.n_rows, count)
        rows, part = problem.rows, problem.rows.part(order)
        phi, delta, both = part.maxima()
        every, some = rows.scalars(), part.scalars()
        scale, weight = (
            max(1.0, mine / theirs) if theirs > 0 else math.inf
            for mine, theirs in ((every.most_scale, some.most_scale), (every.most_weight, some.most_weight))
        )
        peak = float(rows.column_peaks().max(initial=0.0)) ** 2 * some.most_weight
        typical = phi > 0 and peak <= ALIKE * phi and max(scale, weight) <= ALIKE and _agree(every, some)
        # A scale beyond those of the sample is known, and taken for that of its longest row.
        found = (weight * phi, scale**2 * delta, scale * both)
        return cls(order, Maxima(*(SAFETY * x + problem.ridge or 1.0 for x in found)), typical)


def _agree(every: Scalars, some: Scalars) -> bool:
    """Whether the means of scalars over all rows are within the noise of those over some."""
    for mine, theirs in ((every.scale, some.scale), (every.reward, some.reward)):
        mean, square = (x / some.n_rows for x in theirs)
        error = math.sqrt(max(0.0, square - mean**2) / some.n_rows)
        if abs(mine[0] / every.n_rows - mean) > STANDARD_ERRORS * error + 1e-9 * mean:
            return False
    return True


def relative_residual(problem: Problem, theta: Vector, order: Order) -> float:
    """The relative residual in the norm of diag(C)^-1 by the rows of ``order``, two standard errors up; three visits.

    The square of a mean over m rows is too large by its noise. So means are taken over parts of the rows: the products
    of different parts have no noise in common. Their standard error is that of the jackknife. NaN where the rows do
    not tell b from 0.
    """
    parts = np.array_split(order, PARTS)
    unit = metric.unit_scale(_squares(problem, order) / len(order) + problem.ridge)
    (found, error), (whole, doubt) = (
        _square(np.array([problem.mean_residual(point, part) for part in parts]) * unit)
        for point in (theta, np.zeros_like(theta))
    )
    if not whole > STANDARD_ERRORS * doubt:
        return math.nan
    return math.sqrt((max(0.0, found) + 2 * error) / whole)


def _squares(problem: Problem, order: Order) -> Vector:
    """The sum of w phi_j^2."""
    if FEW * problem.rows.n_stored <= len(order):
        return problem.rows.part(order).column_squares()
    total = np.zeros(problem.dim)
    for first in range(0, len(order), BLOCK):
        phi, _, _, weights = problem.rows.at(order[first : first + BLOCK])
        squared = phi.power(2) if problem.rows.is_sparse else np.square(phi)
        total += squared.T @ (np.ones(squared.shape[0]) if weights is None else weights)
    return total


def _square(parts: Matrix) -> tuple[float, float]:
    """The squared length of what the rows of ``parts`` are noisy copies of, without bias, and its standard error."""
    count, total = len(parts), parts.sum(axis=0)
    own, common = np.square(parts).sum(axis=1), parts @ total
    whole, alone = float(total @ total), float(own.sum())
    without = (whole - 2 * common + own - (alone - own)) / ((count - 1) * (count - 2))
    error = math.sqrt((count - 1) / count * float(np.square(without - without.mean()).sum()))
    return (whole - alone) / (count * (count - 1)), error


class Distances:
    """How far apart points are, by what some rows make of them: mean w (rho delta . x)^2 + e |x|^2.

    It bounds the norm of A x in C^-1, and takes no product with a matrix.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.order = spread(problem.n_rows, min(LOOKED_AT, max(1, NUMBERS // problem.rows.entries)))
        phi, following, records, weights = problem.rows.at(self.order)
        factors = records["scale"].copy()
        if weights is not None:
            factors /= np.sqrt(np.where(weights > 0, weights, 1.0))
        self.factors = factors / math.sqrt(len(self.order))
        self.delta = phi - _times(following, records["discount"])

    def image(self, points: Matrix) -> Matrix:
        """A linear map of (k, dim) points to (k, m) numbers, in whose space a squared length is a squared distance."""
        seen = np.asarray(self.delta @ points.T).T * self.factors
        return np.hstack([seen, math.sqrt(self.problem.ridge) * points]) if self.problem.ridge > 0 else seen


def _times(rows: Matrix, factors: Vector) -> Matrix:
    """Each row times its factor, dense or sparse."""
    return rows.multiply(factors[:, None]).tocsr() if hasattr(rows, "multiply") else rows * factors[:, None]
