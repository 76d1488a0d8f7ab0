"""BiCGSTAB and LSMR at work: recurrences of a few vectors, whatever the number of iterations."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.linalg as la

from valuate.solvers.iterating import Turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.solvers.iterating import Iteration
    from valuate.solvers.scaled import Scaled

    Vector = NDArray[np.float64]

#: Products of two vectors below this share of their lengths are rounding: the recurrence has broken down.
BREAKDOWN = 1e-15
#: Iterations without a better residual after which BiCGSTAB starts anew: so many, and as many as there are features.
PATIENCE = 40
#: An improvement smaller than this share is none.
IMPROVEMENT = 1e-3
#: Length of A'g, as a share of |A| |g|, at which LSMR has found its minimum.
STATIONARY = 1e-11


class Stabilised:
    """BiCGSTAB (van der Vorst 1992). Its residual goes up and down, so the best point is kept."""

    def __init__(self, run: Iteration, system: Scaled) -> None:
        self.run, self.system, self.n = run, system, system.problem.n_rows
        self.patience = max(PATIENCE, system.problem.dim)
        self.gap = 0.0

    def visits(self) -> int:
        """See `Process`. Half an iteration is one product."""
        return self.n

    def begin(self, theta: Vector, residual: Vector) -> None:
        """See `Process`."""
        self.base, self.move = theta, np.zeros_like(theta)
        self.residual = self.system.left * residual
        self.shadow, self.way = self.residual.copy(), self.residual.copy()
        self.rho = float(self.shadow @ self.residual)
        self.gap, self.best, self.lowest = float(la.norm(self.residual)), self.move, self.residual
        self.mark, self.fruitless = self.gap, 0

    def step(self) -> Turn:
        """See `Process`."""
        image = self.system.times(self.way)
        across = float(self.shadow @ image)
        if not abs(across) > BREAKDOWN * float(la.norm(self.shadow) * la.norm(image)):
            return Turn.STUCK
        alpha = self.rho / across
        half = self.residual - alpha * image
        self.move = self.move + alpha * self.way
        if not self._keep(half):
            return Turn.STUCK
        if not half.any() or not self.run.fits(self.n):
            return Turn.GOES_ON
        second = self.system.times(half)
        power = float(second @ second)
        omega = float(second @ half) / power if power > 0 else 0.0
        self.move = self.move + omega * half
        self.residual = half - omega * second
        last, self.rho = self.rho, float(self.shadow @ self.residual)
        sizes = float(la.norm(self.shadow) * la.norm(self.residual))
        if not self._keep(self.residual) or omega == 0.0 or not abs(self.rho) > BREAKDOWN * sizes:
            return Turn.STUCK
        self.way = self.residual + self.rho / last * alpha / omega * (self.way - omega * image)
        return Turn.GOES_ON if np.isfinite(self.way).all() and self._improves() else Turn.STUCK

    def answer(self) -> Vector:
        """See `Process`."""
        return np.asarray(self.base + self.system.right * self.best)

    def left_over(self) -> Vector:
        """See `Process`."""
        return self.lowest

    def rounding(self) -> float:
        """See `Process`."""
        return np.inf

    def _keep(self, residual: Vector) -> bool:
        """Take note of a point; whether one can go on from it."""
        size = float(la.norm(residual))
        if size < self.gap:
            self.gap, self.best, self.lowest = size, self.move, residual
        return bool(size < np.inf and np.isfinite(self.move).all())

    def _improves(self) -> bool:
        self.fruitless += 1
        if self.gap < (1 - IMPROVEMENT) * self.mark:
            self.mark, self.fruitless = self.gap, 0
        return self.fruitless < self.patience


class Bidiagonal:
    """LSMR (Fong and Saunders 2011), with the residual itself carried along.

    The images of its directions follow the same recurrences as the directions, from products that are made anyway.
    """

    def __init__(self, system: Scaled) -> None:
        self.system, self.n = system, system.problem.n_rows
        self.gap = 0.0

        self.begun = False
        zero = np.zeros(system.problem.dim)
        #: The two bases' last vectors, the directions and the images of these, in the paper's letters.
        self.u, self.v = zero, zero
        self.h, self.h_bar, self.image_h, self.image_h_bar = zero, zero, zero, zero
        self.alpha = self.beta = self.zeta_bar = self.carry = 0.0

    def visits(self) -> int:
        """See `Process`. The first iteration takes one product more."""
        return self.n * (2 if self.begun else 3)

    def begin(self, theta: Vector, residual: Vector) -> None:
        """See `Process`."""
        self.base, self.move, self.begun = theta, np.zeros_like(theta), False
        self.residual = self.system.left * residual
        self.beta = self.gap = float(la.norm(self.residual))

    def step(self) -> Turn:
        """See `Process`."""
        if not self.begun and not self._set_out():
            return Turn.STUCK
        image = self.system.times(self.v)
        self.image_h = image - self.carry * self.image_h
        self.u, self.beta = _unit(image - self.alpha * self.u)
        self.v, self.alpha = _unit(self.system.times_transposed(self.u) - self.beta * self.v)
        if not self._rotate():
            return Turn.STUCK
        self.gap = float(la.norm(self.residual))
        flat = abs(self.zeta_bar) <= STATIONARY * self.system.largest * self.gap
        return Turn.STUCK if flat else Turn.GOES_ON

    def answer(self) -> Vector:
        """See `Process`."""
        return np.asarray(self.base + self.system.right * self.move)

    def left_over(self) -> Vector:
        """See `Process`."""
        return self.residual

    def rounding(self) -> float:
        """See `Process`."""
        return np.inf

    def _set_out(self) -> bool:
        self.u = self.residual / self.beta
        self.v, self.alpha = _unit(self.system.times_transposed(self.u))
        self.alpha_bar, self.zeta_bar = self.alpha, self.alpha * self.beta
        self.rho = self.rho_bar = self.c_bar = 1.0
        self.s_bar = self.carry = 0.0
        self.h = self.v
        self.h_bar, self.image_h, self.image_h_bar = (np.zeros_like(self.v) for _ in range(3))
        self.begun = True
        return self.zeta_bar > 0

    def _rotate(self) -> bool:
        """The two rotations of an iteration, in the paper's letters, and the step that they give."""
        rho_old, rho_bar_old = self.rho, self.rho_bar
        self.rho = float(np.hypot(self.alpha_bar, self.beta))
        if not self.rho > 0:
            return False
        theta_new = self.beta / self.rho * self.alpha
        theta_bar = self.s_bar * self.rho
        shrunk = self.c_bar * self.rho
        self.rho_bar = float(np.hypot(shrunk, theta_new))
        if not self.rho_bar > 0:
            return False
        self.alpha_bar *= self.alpha / self.rho
        self.c_bar, self.s_bar = shrunk / self.rho_bar, theta_new / self.rho_bar
        zeta = self.c_bar * self.zeta_bar
        self.zeta_bar *= -self.s_bar
        back = theta_bar * self.rho / (rho_old * rho_bar_old)
        self.h_bar = self.h - back * self.h_bar
        self.image_h_bar = self.image_h - back * self.image_h_bar
        length = zeta / (self.rho * self.rho_bar)
        self.move = self.move + length * self.h_bar
        self.residual = self.residual - length * self.image_h_bar
        self.carry = theta_new / self.rho
        self.h = self.v - self.carry * self.h
        return True


def _unit(vector: Vector) -> tuple[Vector, float]:
    """A vector divided by its length, and that; zero stays."""
    size = float(la.norm(vector))
    return (vector / size if size > 0 else vector), size
