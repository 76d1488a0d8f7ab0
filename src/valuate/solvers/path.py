"""LSTD for many ridges from one factorisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg as la
from threadpoolctl import threadpool_limits

from valuate import _checks
from valuate._kernels.hessenberg import solve_shifted
from valuate.errors import InputError, InputTypeError
from valuate.metric import unit_scale
from valuate.solution import Status
from valuate.solvers.direct import EXACT, LSTD
from valuate.summing import Moments

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Smallest reciprocal condition, as two right sides show it, for which the common factorisation is used.
TRUSTED = 1e-9
#: Corrections of an answer by its residual, at most.
ROUNDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class RidgePath:
    """The answers of LSTD for k ridges.

    Attributes
    ----------
    ridges : (k,) array
        In the order in which they were given.
    thetas : (k, dim) array
    mspbe : (k,) array
        1/2 |A theta - b|^2 in the norm of C^-1, with A and C of the rows alone: what the ridge costs on the log, 0 for
        a ridge of 0 where the equations have a solution.
    relative_residuals : (k,) array
        Of the equations with their ridge, in the norm of diag(C + e I)^-1: how well they are solved.
    statuses : tuple of Status
        As `LSTD` has them.
    """

    ridges: Vector
    thetas: Matrix
    mspbe: Vector
    relative_residuals: Vector
    statuses: tuple[Status, ...]

    def __len__(self) -> int:
        return len(self.ridges)


def ridge_path(problem: Problem | Moments, ridges: ArrayLike) -> RidgePath:
    """Solve A theta = b for many ridges, of which A and C each get e I, from one Hessenberg form of A.

    A = Q H Q' with H upper Hessenberg gives A + e I = Q (H + e I) Q', which costs dim^2 operations a ridge. Answers are
    corrected by their residuals until these are rounding. A ridge where that fails, because A + e I is close to
    singular or the units of columns lie many orders apart, is solved by itself, as `LSTD` does, with its status.

    Parameters
    ----------
    problem : Problem or Moments
        Its own ridge makes no difference.
    ridges : (k,) array, at least 0

    Returns
    -------
    RidgePath

    Notes
    -----
    The Hessenberg form costs about as much as ten LU factors: for fewer ridges than that LSTD is as quick.
    """
    if isinstance(problem, type) or not (hasattr(problem, "rows") or isinstance(problem, Moments)):
        raise InputTypeError(f"problem must be a Problem or Moments, not {type(problem).__name__}.")
    if np.ndim(ridges) != 1:
        raise InputError("ridges must be a list of numbers, one or more.")
    shifts = _checks.column("ridges", ridges, low=0.0)
    bare = problem.with_ridge(0.0)
    measure = bare.equations() if isinstance(bare, Moments) else bare
    a, b, c = measure.moments()
    common = _Common(a, b, np.diagonal(c))
    thetas, gaps, statuses = np.zeros((len(shifts), len(b))), np.zeros(len(shifts)), []
    for k, shift in enumerate(map(float, shifts)):
        found = common.solve(shift)
        status = Status.CONVERGED
        if found is None:
            answer = LSTD().solve(bare.with_ridge(shift))
            found, status = answer.theta, answer.status
        thetas[k], gaps[k] = found, common.gap(found, shift)
        statuses.append(status)
    mspbe = np.array([measure.mspbe(theta) for theta in thetas])
    return RidgePath(shifts, thetas, mspbe, gaps, tuple(statuses))


class _Common:
    """The Hessenberg form of A, and what tells whether it will do for a ridge."""

    def __init__(self, a: Matrix, b: Vector, diagonal: Vector) -> None:
        self.a, self.b, self.diagonal = a, b, diagonal
        with threadpool_limits(limits=1, user_api="blas"):  # small products: threads cost more than they save
            form, basis = la.hessenberg(a, calc_q=True, check_finite=False)
        self.form, self.basis = np.ascontiguousarray(form), basis
        self.work = np.empty_like(self.form)
        dim = len(b)
        # The second right side looks in all directions, with alternating signs as LAPACK's estimators do.
        self.probe = (-1.0) ** np.arange(dim) * (1 + np.arange(dim) / max(1, dim - 1))
        self.size = float(np.linalg.norm(a))

    def solve(self, shift: float) -> Vector | None:
        """Theta for one ridge, or None where it is not as good as that of LSTD would be."""
        if not self.b.any():
            return np.zeros(len(self.b))
        right = np.stack([self.basis.T @ self.b, self.probe], axis=1)
        if solve_shifted(self.form, shift, right, self.work) == 0.0 or not np.isfinite(right).all():
            return None
        grown = np.linalg.norm(right[:, 1]) / np.linalg.norm(self.probe)
        if not grown * (self.size + shift) * TRUSTED < 1.0:
            return None
        theta = np.asarray(self.basis @ right[:, 0])
        for _ in range(ROUNDS):
            if self.gap(theta, shift) <= EXACT:
                return theta
            more = (self.basis.T @ self._residual(theta, shift))[:, None]
            solve_shifted(self.form, shift, more, self.work)
            theta = theta + self.basis @ more[:, 0]
        return theta if self.gap(theta, shift) <= EXACT else None

    def gap(self, theta: Vector, shift: float) -> float:
        """The relative residual in the norm of diag(C + e I)^-1."""
        scale = unit_scale(self.diagonal + shift)
        size = float(np.linalg.norm(scale * self.b))
        return float(np.linalg.norm(scale * self._residual(theta, shift))) / (size or 1.0)

    def _residual(self, theta: Vector, shift: float) -> Vector:
        return self.b - self.a @ theta - shift * theta
