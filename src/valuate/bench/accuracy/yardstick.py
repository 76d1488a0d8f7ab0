"""How good a point is: measured off every clock, for all in the same way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg as la

from valuate import metric, spectra
from valuate.floor import floor
from valuate.solvers import GMRES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]

#: Corrections of the direct solution by the residual of the rows.
CORRECTIONS = 2
#: The reference is as good as exact for the floor where its MSPBE is below this share of it: .03 standard errors.
NOTHING = 1e-3
#: Where no matrix fits, GMRES goes there, in so many passes at most, and looks every so many where it is.
MOST_PASSES, EVERY = 300, 10


@dataclass(frozen=True, slots=True)
class Measured:
    """A point, measured.

    Attributes
    ----------
    relative_residual : float
        In the norm that a `tolerance` of valuate is in: that of C^-1 up to 1000 features, of diag(C)^-1 beyond.
    ratio : float
        MSPBE over its statistical floor, in the norm of C^-1 where that can be factored. Its root is the distance in
        standard errors.
    """

    relative_residual: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """An accuracy that time is taken to."""

    name: str
    what: str
    met: Callable[[Measured], bool]


#: The tightest first, most often.
ACCURACIES = (
    Accuracy("residual", "relative residual 1e-6", lambda found: found.relative_residual <= 1e-6),
    Accuracy("tenth", "10% of a standard error", lambda found: found.ratio <= 0.01),
    Accuracy("one", "1 standard error", lambda found: found.ratio <= 1.0),
)


class Yardstick:
    """Measures points of a problem.

    Attributes
    ----------
    theta : (dim,) array
        The reference: the direct solution, corrected by the rows; beyond 4096 features a point that GMRES has
        brought to .03 standard errors.
    reference : str
        Which of the two.
    norm : {"C^-1", "diag(C)^-1"}
        Of MSPBE and floor.
    floor, floor_error : float
        `valuate.floor` at the reference.
    at_zero : Measured
        The start of all runs.
    condition : (float, bool) or None
        Of C, columns scaled alike; and whether that is exact, or a lower bound.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.exact = problem.dim <= metric.MOST_DIM
        self.norm = "C^-1" if self.exact else "diag(C)^-1"
        self._scale = metric.unit_scale(problem.diagonal)
        self._a: Any = problem.moments().A if self.exact else None
        self.reference = "the direct solution" if self.exact else "a run of GMRES"
        self.theta = self._direct() if self.exact else self._by_products()
        found = floor(problem, self.theta, exact=self.exact)
        self.floor, self.floor_error = found.value, found.error
        self._whole = self._relative_size(problem.b)
        self.at_zero = self.measure(np.zeros(problem.dim))
        self.condition = tuple(spectra.condition(problem)) if self.exact else None

    def measure(self, theta: Vector) -> Measured:
        """Measure a point; infinite where it is not finite."""
        if not np.isfinite(theta).all():
            return Measured(np.inf, np.inf)
        g = self.problem.b - self._a @ theta if self.exact else self.problem.residual(theta)
        return Measured(self._relative_size(g) / self._whole, 0.5 * self._square(g) / self.floor)

    def notes(self) -> list[str]:
        """What a reader has to know of the reference."""
        found = self.measure(self.theta)
        if found.ratio <= NOTHING:
            return []
        return [
            f"The reference is itself {np.sqrt(found.ratio):.2g} standard errors from the solution, relative residual "
            f"{found.relative_residual:.1g}: the floor is that of this point."
        ]

    def _square(self, g: Vector) -> float:
        if self.exact:
            return self.problem.metric().square(g)
        scaled = g * self._scale
        return float(scaled @ scaled)

    def _relative_size(self, g: Vector) -> float:
        return self.problem.metric().norm(g) if self.problem.measures_exactly else float(la.norm(g * self._scale))

    def _by_products(self) -> Vector:
        def is_there(progress: Any) -> bool:
            if progress.epoch % EVERY:
                return False
            mspbe = 0.5 * self._square(self.problem.residual(progress.theta))
            return mspbe <= NOTHING * floor(self.problem, progress.theta, exact=False).value

        return GMRES().solve(self.problem, passes=MOST_PASSES, callback=is_there).theta

    def _direct(self) -> Vector:
        scale = np.where(self._scale > 0, self._scale, 1.0)
        scaled = self._a * scale[:, None] * scale
        empty = np.flatnonzero(~scaled.any(axis=1))
        scaled[empty, empty] = 1.0  # features that no state has: 0 = 0
        factors = la.lu_factor(scaled, check_finite=False)
        theta = scale * la.lu_solve(factors, scale * self.problem.b)
        for _ in range(CORRECTIONS):
            theta += scale * la.lu_solve(factors, scale * self.problem.residual(theta))
        return np.asarray(theta)
