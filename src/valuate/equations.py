"""A theta = b as matrices, measured in the norm of C^-1: where the rows are gone, or are not those of a problem."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.linalg as la

from valuate import _checks, metric, moments, problem
from valuate.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from valuate.metric import Metric

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Flags = NDArray[np.bool_]


class Equations:
    """A theta = b with the norm of C^-1, the ridge in A and C already.

    Parameters
    ----------
    matrices : moments.Matrices
    noise : (dim,) array
        An entry of b no larger than this may be the rounding of a sum that is 0.
    measure : callable, optional
        Makes the norm of C^-1, where rows know it better than C does.
    """

    def __init__(
        self,
        matrices: moments.Matrices,
        noise: Vector,
        *,
        ridge: float = 0.0,
        measure: Callable[[], Metric] | None = None,
    ) -> None:
        self.A, self.b, self.C = matrices
        self.noise, self.ridge, self._measure = noise, ridge, measure
        self.dim = len(self.b)

    @classmethod
    def traced(cls, given: problem.Problem, starts: Flags, decay: float, ratio_on: str) -> Self:
        """The equations of LSTD(lambda) on a problem; see `traces.traced`."""
        moments.require_room(given.dim, 3)
        sums = given.rows.traced(starts, decay, ratio_on)
        a, n = sums.A, given.n_rows
        a /= n
        a[np.diag_indices(given.dim)] += given.ridge
        c = given.second_moment()
        noise = rounding(n, sums.sizes / n)
        return cls(moments.Matrices(a, sums.b / n, c), noise, ridge=given.ridge, measure=given.metric)

    def moments(self) -> moments.Matrices:
        """A, b and C."""
        return moments.Matrices(self.A, self.b, self.C)

    def residual(self, theta: ArrayLike) -> Vector:
        """b - A theta: (dim,)."""
        return np.asarray(self.b - self.A @ self.vector("theta", theta))

    def mspbe(self, theta: ArrayLike) -> float:
        """1/2 |A theta - b|^2 in the norm of C^-1."""
        g = self.residual(theta)
        if self.dim <= metric.MOST_DIM:
            return 0.5 * self.metric().square(g)
        return 0.5 * metric.by_products(g, self.C.__matmul__, np.diagonal(self.C), self.ridge)

    def relative_residual(self, theta: ArrayLike, *, exact: bool | None = None) -> float:
        """As `Problem.relative_residual`."""
        exact = self.measures_exactly if exact is None else exact
        norms = [self._norm(g, exact) for g in (self.residual(theta), self.b)]
        return norms[0] / norms[1] if norms[1] > 0 else norms[0]

    @property
    def diagonal(self) -> Vector:
        """The diagonal of C: (dim,)."""
        return np.diagonal(self.C)

    @property
    def measures_exactly(self) -> bool:
        """Whether `relative_residual` is in the norm of C^-1 rather than diag(C)^-1."""
        return self.dim <= problem.EXACT_DIM

    def metric(self) -> Metric:
        """The factored norm of C^-1, computed once and kept."""
        return self._metric

    @cached_property
    def _metric(self) -> Metric:
        if self._measure is not None:
            return self._measure()
        return metric.from_matrix(self.C) or metric.from_singular(self.C)

    def _norm(self, g: Vector, exact: bool) -> float:
        return self.metric().norm(g) if exact else float(la.norm(g * self._unit))

    @cached_property
    def _unit(self) -> Vector:
        return metric.unit_scale(np.diagonal(self.C))

    def vector(self, name: str, value: ArrayLike) -> Vector:
        """``value`` as a finite vector with one entry a feature, or an error that names it."""
        vector = _checks.column(name, value)
        if len(vector) != self.dim:
            raise InputError(f"{name} has {len(vector)} entries and there are {self.dim} features.")
        return vector


def rounding(n_rows: int, sizes: Vector) -> Vector:
    """What rounding makes of the mean of n terms of these mean sizes, where it should be 0."""
    return np.asarray(np.finfo(float).eps * (2 + np.sqrt(n_rows)) * sizes)
