"""Directions: which way the two scalars of a row move theta and omega, and which steps are safe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate._kernels import loop
from valuate.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.problem import Problem
    from valuate.solvers.points import Kernel

    Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Maxima:
    """The largest w |phi|^2, w rho^2 |delta|^2 and w rho |phi| |delta| of a row, each plus the ridge."""

    phi: float
    delta: float
    both: float

    @classmethod
    def of(cls, problem: Problem) -> Maxima:
        """Look at every row; one visit each. Where all are zero nothing moves, and 1 will do."""
        return cls(*(found + problem.ridge or 1.0 for found in problem.rows.maxima()))


@dataclass(frozen=True, slots=True)
class Direction:
    """A way to move.

    Attributes
    ----------
    name : str
    kernel : callable
        From the steps and the pull to what the kernels take.
    pull : callable
        From step_theta, step_omega and the ridge to the `loop.Pull` of every step, whatever its row.
    steps : callable
        From `Maxima` to step_theta and step_omega that are safe for every row.
    moves_omega : bool
    """

    name: str
    kernel: Callable[..., Kernel]
    pull: Callable[[float, float, float], loop.Pull]
    steps: Callable[[Maxima], tuple[float, float]]
    moves_omega: bool = True

    def for_kernels(self, step_theta: float, step_omega: float, ridge: float) -> Kernel:
        """The direction with its numbers."""
        return self.kernel(step_theta, step_omega, self.pull(step_theta, step_omega, ridge))

    def mean(self, problem: Problem, theta: Vector, omega: Vector, order: Any) -> tuple[Vector, Vector]:
        """The mean of the moves at a point over the rows of ``order``, or all, before the steps multiply them."""
        if self.moves_omega:
            return problem.mean_gradient(theta, omega, order)
        return problem.mean_residual(theta, order), np.zeros_like(omega)


def read_direction(name: Any) -> str:
    """A direction that methods with a reference can take."""
    if name not in VARIANCE_REDUCED:
        words = " or ".join(f'"{word}"' for word in VARIANCE_REDUCED)
        raise InputError(f"direction must be {words}, not {name!r}.")
    return str(name)


#: The paper's: the gradient field of the saddle point. A_t is the product of sqrt(w) phi and sqrt(w) rho delta, and C
#: carries no ratio, so the dual step has none.
SADDLE = Direction(
    "saddle",
    loop.Saddle,
    lambda s, t, e: loop.Pull(0.0, -s * e, t * e, t * e),
    lambda most: (0.3 / most.delta, 0.5 / most.phi),
)

#: Temporal difference learning (Sutton 1988): theta - s (A_t theta - b_t).
TD = Direction(
    "td",
    loop.Primal,
    lambda s, t, e: loop.Pull(s * e, 0.0, 0.0, 0.0),
    lambda most: (0.5 / most.both, 0.5 / most.phi),
    moves_omega=False,
)

#: TD with gradient correction (Sutton et al. 2009; with ratios as in Maei 2011).
TDC = Direction(
    "tdc",
    loop.Corrected,
    lambda s, t, e: loop.Pull(s * e, 0.0, t * e, t * e),
    lambda most: (0.25 / most.both, 0.5 / most.phi),
)

#: GTD (Sutton, Szepesvari and Maei 2008): omega follows b - A theta itself, with no C in between.
GTD = Direction(
    "gtd",
    loop.Unscaled,
    lambda s, t, e: loop.Pull(0.0, -s * e, t * e, t),
    lambda most: (0.3 / most.both**2, 0.5),
)

DIRECTIONS = {direction.name: direction for direction in (SADDLE, TD, TDC, GTD)}

#: Directions whose mean over many rows is at hand.
VARIANCE_REDUCED = ("saddle", "td")
