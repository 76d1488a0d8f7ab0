"""Direct solvers: one linear system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg as la

from valuate.errors import InputError, InputTypeError
from valuate.metric import unit_scale
from valuate.solution import Solution, Status, Trace
from valuate.solvers.clock import Clock
from valuate.solvers.request import Request

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Smallest reciprocal condition of the scaled A for which its LU factors are trusted; below, its rank is looked at.
TRUSTED = 1e-12
#: A residual below this share of b means that the equations hold, whatever their rank.
CONSISTENT = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class LSTD:
    """Least-squares temporal difference learning (Boyan 2002): form A and b, solve A theta = b.

    Columns are scaled by diag(C)^-1/2 first, so that units do not matter. Where A is singular the answer is the
    minimiser of the MSPBE with the smallest norm, and the message gives the rank.
    """

    def solve(
        self,
        problem: Problem,
        *,
        passes: float | None = None,
        epochs: int | None = None,
        tolerance: float | None = None,
        record: float | str | None = None,
        seed: int | np.random.Generator = 0,
        theta: ArrayLike | None = None,
        omega: ArrayLike | None = None,
        callback: Any = None,
    ) -> Solution:
        """Solve directly, in one pass.

        Takes the arguments of every solver, so that solvers can be exchanged. A budget below one pass is refused;
        ``seed``, ``theta`` and ``omega`` make no difference.

        Returns
        -------
        Solution
            CONVERGED, with the rank in its message where A is singular but the equations hold; SINGULAR where
            they cannot hold.
        """
        if not hasattr(problem, "moments"):
            raise InputTypeError(f"problem must be a Problem, not {type(problem).__name__}.")
        request = Request(passes, epochs, tolerance, record, seed, theta, omega, callback)
        request.start(problem)
        if (request.epochs if request.epochs is not None else request.passes) < 1:
            raise InputError("LSTD reads every row once: a budget below one pass is not enough. Use GTD2 or SCSG.")
        clock = Clock()
        found, rank = _solve(problem)
        seconds = clock.seconds
        residual = problem.relative_residual(found)
        status, message = _judge(problem, found, residual, rank, tolerance)
        mspbe = [problem.mspbe(np.zeros(problem.dim)), problem.mspbe(found)] if record is not None else []
        ends = np.array([0, 1][: len(mspbe)])
        n = problem.n_rows
        return Solution(
            theta=found,
            omega=np.zeros(problem.dim),
            status=status,
            message=message,
            solver=self,
            relative_residual=residual,
            row_visits=n,
            setup_visits=n,
            passes=1.0,
            epochs=1,
            seconds=seconds,
            trace=Trace(ends, ends * n, ends * 1.0, ends * seconds, np.array(mspbe)),
            tolerance=tolerance,
        )


def _solve(problem: Problem) -> tuple[Vector, int]:
    """The solution and the rank of A."""
    a, b, c = problem.moments()
    scale = unit_scale(np.diagonal(c))
    scaled, target = a * scale[:, None] * scale, b * scale
    if (scale > 0).all():
        factors, pivots, info = la.lapack.dgetrf(scaled)
        rcond = la.lapack.dgecon(factors, np.abs(scaled).sum(axis=0).max())[0] if info == 0 else 0.0
        if rcond > TRUSTED:
            found = la.lu_solve((factors, pivots), target, check_finite=False)
            found += la.lu_solve((factors, pivots), target - scaled @ found, check_finite=False)
            return scale * found, problem.dim
    return _smallest_minimiser(problem, a, b, scale)


def _smallest_minimiser(problem: Problem, a: Matrix, b: Vector, scale: Vector) -> tuple[Vector, int]:
    """The minimiser of the MSPBE with the smallest norm.

    The rank is decided with columns scaled to unit length, so that units do not decide it; the norm that is made
    smallest is that of theta itself.
    """
    metric = problem.metric()
    left = metric.whiten(a)
    # A feature that only next states have is nowhere in C: its own column of A gives its unit.
    lengths = np.where(scale > 0, scale, unit_scale(np.einsum("ij,ij->j", left, left)))
    used = np.flatnonzero(lengths)
    found = np.zeros(problem.dim)
    if not len(used):
        return found, 0
    u, sizes, vt = la.svd(left[:, used] * lengths[used], full_matrices=True, check_finite=False)
    # What whitening has left of rounding errors must not count as rank.
    noise = np.finfo(float).eps * max(problem.dim, 10) * max(100.0, metric.spread)
    rank = int((sizes > noise * sizes[0]).sum())
    smallest = vt[:rank].T @ ((u[:, :rank].T @ metric.whiten(b)) / sizes[:rank])
    smallest *= lengths[used]
    if rank < len(used):
        basis = lengths[used, None] * vt[rank:].T
        basis = la.qr(basis / np.abs(basis).max(axis=0), mode="economic", check_finite=False)[0]
        smallest -= basis @ (basis.T @ smallest)
    found[used] = smallest
    return found, rank


def _judge(problem: Problem, theta: Vector, residual: float, rank: int, tolerance: float | None) -> tuple[Status, str]:
    norm = f"relative residual {residual:.2g}"
    full = rank == problem.dim
    holds = residual <= max(CONSISTENT, tolerance or 0.0)
    if not problem.b.any():
        return Status.CONVERGED, "Converged at zero: b = 0, so the value is 0 everywhere."
    if full and holds:
        return Status.CONVERGED, f"Solved directly: {norm}."
    if holds:
        return Status.CONVERGED, (
            f"Solved directly: {norm}. A has rank {rank} of {problem.dim}: the values of the log's states are determined "
            "as far as it goes, the weights are the smallest that give them. A small ridge makes them unique."
        )
    return Status.SINGULAR, (
        f"A has rank {rank} of {problem.dim} and A theta = b has no solution: {norm}. The answer is the smallest minimiser "
        "of the MSPBE. Use a small ridge, fewer features or more rows."
    )
