"""GMRES at work: an orthonormal basis of the Krylov space, and least squares in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.linalg as la
import scipy.linalg as sla

from valuate._threads import one_blas_thread
from valuate.solvers.iterating import Turn

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from valuate.solvers.scaled import Scaled

    Vector = NDArray[np.float64]

#: What is left of a product after orthogonalising, below this share of it, is rounding.
ROUNDING = 1e-14
#: Columns that there is room for at first; doubled when they are used up.
ROOM = 32


class Arnoldi:
    """GMRES (Saad and Schultz 1986) with the preconditioner on the right, so that the residual stays the true one.

    What the preconditioner makes of the basis is kept beside it (Saad 1993), so that its rounding, in float32 say, does
    no harm.

    Parameters
    ----------
    system : Scaled
    most : int
        Columns of the basis after which it starts anew.
    prepare : callable, optional
        Makes the preconditioner, or None where there is none after all ...
    after : int
        ... before the iteration of this number. What came before stays in the basis.
    """

    def __init__(
        self, system: Scaled, most: int, prepare: Callable[[], Callable[[Vector], Vector] | None] | None, after: int = 0
    ) -> None:
        self.system, self.most, self.prepare, self.after = system, most, prepare, after
        self.invert: Callable[[Vector], Vector] | None = None
        self.steps = 0
        dim = system.problem.dim
        room = min(ROOM, most)
        self.basis = np.empty((room + 1, dim))
        #: The directions that weights are of: the basis itself without a preconditioner.
        self.moves = self.basis if prepare is None else np.empty((room, dim))
        #: The product of all rotations, and the triangle that they make of the coefficients.
        self.rotation, self.triangle = np.empty((room + 1, room + 1)), np.empty((room, room))
        self.count, self.first, self.gap = 0, 0.0, 0.0
        self.base = np.zeros(dim)
        #: Length of the residual after so many columns.
        self.gaps = [0.0]

    def visits(self) -> int:
        """See `Process`."""
        return self.system.problem.n_rows

    def begin(self, theta: Vector, residual: Vector) -> None:
        """See `Process`."""
        scaled = self.system.left * residual
        self.base, self.count = theta, 0
        self.gap = self.first = float(la.norm(scaled))
        self.gaps = [self.gap]
        self.basis[0] = scaled / self.first if self.first > 0 else 0.0
        self.rotation[0, 0] = 1.0

    def step(self) -> Turn:
        """See `Process`."""
        if self.prepare is not None and self.steps >= self.after:
            self.invert, self.prepare = self.prepare(), None
        self.steps += 1
        with one_blas_thread():
            return self._step()

    def _step(self) -> Turn:
        k = self.count
        if k == len(self.triangle):
            self._grow()
        if self.moves is not self.basis:
            self.moves[k] = self.basis[k] if self.invert is None else self.invert(self.basis[k])
        image = self.system.times(self.moves[k])
        before = float(la.norm(image))
        known = self.basis[: k + 1]
        factors = known @ image
        image -= factors @ known
        again = known @ image  # once more: the basis stays orthogonal to rounding
        image -= again @ known
        below = float(la.norm(image))
        column = self.rotation[: k + 1, : k + 1] @ (factors + again)
        last = float(np.hypot(column[k], below))
        if not last > ROUNDING * max(before, self.system.largest):  # A makes nothing new of this direction
            return Turn.STUCK
        if below > 0:
            self.basis[k + 1] = image / below
        self._rotate(column, below, last)
        if below <= ROUNDING * before:
            return Turn.STUCK
        return Turn.RENEW if self.count >= self.most else Turn.GOES_ON

    def answer(self) -> Vector:
        """See `Process`."""
        if self.count == 0:
            return self.base
        k = self.count
        weights, total = self._weights(k)
        # A triangle that is close to singular makes weights whose rounding undoes what they gain: fewer are better.
        while k > 1 and self.gaps[k - 1] < total:
            k -= 1
            fewer, size = self._weights(k)
            if size < total:
                weights, total = fewer, size
        return np.asarray(self.base + self.system.right * (weights @ self.moves[: len(weights)]))

    def rounding(self) -> float:
        """See `Process`: a unit in the last place of each product, at the most that the scaled A makes of a vector."""
        k = self.count
        weights = np.abs(self._weights(k)[0])
        sizes = la.norm(self.moves[:k], axis=1)
        most = 2 * len(self.base) * max(1.0, self.system.largest)
        return float(np.finfo(float).eps * most * np.sum(weights * sizes))

    def left_over(self) -> Vector:
        """See `Process`."""
        k = self.count
        last = self.rotation[k, : k + 1]
        return np.asarray(self.first * self.rotation[k, 0] * (last @ self.basis[: k + 1]))

    def _weights(self, k: int) -> tuple[Vector, float]:
        """The weights of the first k directions, and what they leave of the residual, rounding included."""
        rhs = self.first * self.rotation[:k, 0]
        weights = np.asarray(sla.solve_triangular(self.triangle[:k, :k], rhs, check_finite=False))
        size = self.gaps[k] + np.finfo(float).eps * self.system.largest * float(la.norm(weights))
        return weights, size if np.isfinite(size) else np.inf

    def _rotate(self, column: Vector, below: float, last: float) -> None:
        """Take in the column (its entry below the triangle rotated away)."""
        k, q = self.count, self.rotation
        cosine, sine = column[k] / last, below / last
        self.triangle[:k, k] = column[:k]
        self.triangle[k, :k] = 0.0
        self.triangle[k, k] = last
        q[: k + 1, k + 1] = 0.0
        q[k + 1, : k + 1] = -sine * q[k, : k + 1]
        q[k + 1, k + 1] = cosine
        q[k, : k + 1] *= cosine
        q[k, k + 1] = sine
        self.count = k + 1
        self.gap = self.first * abs(float(q[k + 1, 0]))
        self.gaps.append(self.gap)

    def _grow(self) -> None:
        room = min(2 * len(self.triangle), self.most)
        dim, alone = self.basis.shape[1], self.moves is self.basis
        shapes = {"basis": (room + 1, dim), "rotation": (room + 1, room + 1), "triangle": (room, room)}
        if not alone:
            shapes["moves"] = room, dim
        for name, shape in shapes.items():
            old, new = getattr(self, name), np.empty(shape)
            new[: old.shape[0], : old.shape[1]] = old
            setattr(self, name, new)
        if alone:
            self.moves = self.basis
