"""The smallest minimiser of the MSPBE where A is singular, or too close to it for elimination."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg as la

from valuate.equations import Equations
from valuate.metric import unit_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Corrections of an answer by the residual of the rows themselves, at most.
ROUNDS = 5


class Pseudoinverse:
    """The pseudo-inverse of K A, K'K = C^-1, with columns scaled so that units do not decide the rank.

    Whitening multiplies the rounding errors of A by the condition of the rows, as far as C determines them. Measured
    on singular problems of all sizes, what is left where there should be zero is at most .6 of 2.2e-16 times that
    condition. Singular values below 10 times it, or below 100 times 2.2e-16, count as zero.
    """

    def __init__(self, problem: Problem | Equations, a: Matrix, scale: Vector, used: NDArray[np.intp]) -> None:
        self.problem, self.used = problem, used
        self.metric = problem.metric()
        white = self.metric.whiten(a[:, used])
        self.unit = np.where(scale[used] > 0, scale[used], self._own_units(white, np.flatnonzero(scale[used] == 0)))
        left, sizes, right = la.svd(white * self.unit, full_matrices=True, check_finite=False)
        condition = self.metric.condition()
        noise = np.finfo(float).eps * max(100.0, 10 * condition)
        most = max(1.0, sizes.max(initial=0.0))
        self.rank = rank = int((sizes > noise * most).sum())
        #: Whether what counts as zero may be more than rounding.
        self.doubtful = bool(sizes[rank:].max(initial=0.0) > np.finfo(float).eps * most * max(100.0, condition))
        self.left, self.sizes, self.right = left[:, :rank], sizes[:rank], right[:rank]
        # Directions that change no equation, orthonormal in the units of theta.
        self.right_free = right[rank:]
        free = self.unit[:, None] * self.right_free.T
        largest = np.abs(free).max(axis=0)
        free = free[:, largest > 0] / largest[largest > 0]
        self.free = np.linalg.qr(free)[0]

    def _own_units(self, white: Matrix, alone: NDArray[np.intp]) -> Vector:
        """Units of features that only next states have, which are nowhere in C: from the size that they have there.

        What such a column of A is by chance says nothing: it may be a sum of terms that cancel.
        """
        if isinstance(self.problem, Equations) or not len(alone):
            return unit_scale(np.einsum("ij,ij->j", white, white))
        out = np.zeros(white.shape[1])
        out[alone] = unit_scale(self.problem.rows.next_squares(self.used[alone]) / self.problem.n_rows)
        return out

    def smallest_minimiser(self) -> tuple[Vector, int]:
        """The minimiser of the MSPBE with the smallest norm, and the passes over the rows that it took.

        Where units differ by many orders, making the norm small costs digits of the residual; what the rows
        themselves say of it brings them back.
        """
        theta, gap, checks = np.zeros(self.problem.dim), self._gap(self.problem.b), 0
        while checks < ROUNDS:
            trial = theta.copy()
            trial[self.used] += self.unit * (self.right.T @ (gap / self.sizes))
            trial[self.used] -= self.free @ (self.free.T @ trial[self.used])
            trial_gap, checks = self._gap(self.problem.residual(trial)), checks + 1
            if not la.norm(trial_gap) < 0.5 * la.norm(gap):
                break
            theta, gap = trial, trial_gap
        return theta, checks

    def _gap(self, residual: Vector) -> Vector:
        """What is missing of the equations that can be met, whitened."""
        return np.asarray(self.left.T @ self.metric.whiten(residual))
