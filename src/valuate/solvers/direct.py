"""Direct solvers: one linear system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

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

#: Smallest reciprocal condition of the scaled A for which its LU factors are tried; below, its rank is looked at.
TRUSTED = 1e-12
#: A residual below this share of b means that the equations hold, whatever their rank.
CONSISTENT = 1e-8
#: Corrections of an answer by the residual of the rows themselves, at most.
ROUNDS = 5
#: Rows whose size tells what rounding does to a sum over all.
SAMPLE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LSTD:
    """Least-squares temporal difference learning (Boyan 2002): form A and b, solve A theta = b.

    Columns are scaled by diag(C)^-1/2 first, so that units do not matter. Where A is singular the answer is the
    minimiser of the MSPBE with the smallest norm, and the message gives the rank. What is small counts as zero when it
    is lost in rounding: see `_Pseudoinverse`.
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
            CONVERGED, with the rank in its message where A is singular but the equations hold to 1e-8; SINGULAR where
            they do not; STALLED where they do, but not to the ``tolerance``.
        """
        if not hasattr(problem, "moments"):
            raise InputTypeError(f"problem must be a Problem, not {type(problem).__name__}.")
        request = Request(passes, epochs, tolerance, record, seed, theta, omega, callback)
        request.start(problem)
        if (request.epochs if request.epochs is not None else request.passes) < 1:
            raise InputError("LSTD reads every row once: a budget below one pass is not enough. Use GTD2 or SCSG.")
        clock, n = Clock(), problem.n_rows
        answer = _solve(problem)
        seconds = clock.seconds
        found = answer.theta
        residual = 0.0 if answer.zero else problem.relative_residual(found)
        status, message = _judge(problem, answer, residual, request.tolerance)
        mspbe = [problem.mspbe(np.zeros(problem.dim)), problem.mspbe(found)] if record is not None else []
        ends = np.array([0, 1][: len(mspbe)])
        return Solution(
            theta=found,
            omega=np.zeros(problem.dim),
            status=status,
            message=message,
            solver=self,
            relative_residual=residual,
            row_visits=n,
            setup_visits=n * (1 + answer.checks),
            passes=1.0,
            epochs=1,
            seconds=seconds,
            trace=Trace(ends, ends * n, ends * 1.0, ends * seconds, np.array(mspbe)),
            tolerance=request.tolerance,
        )


class _Answer(NamedTuple):
    theta: Vector
    rank: int
    #: Passes over the rows that looked at residuals on the way.
    checks: int = 0
    #: Why the answer is 0, where nothing had to be solved.
    zero: str = ""


def _solve(problem: Problem) -> _Answer:
    a, b, c = problem.moments()
    if not b.any():
        return _Answer(np.zeros(problem.dim), problem.dim, zero="b = 0")
    scale = unit_scale(np.diagonal(c))
    # A feature that neither states nor next states have is left out: its weight is free, and 0.
    used = np.flatnonzero((scale > 0) | a.any(axis=0))
    found = _by_elimination(a, b, scale, used)
    if found is not None and problem.relative_residual(found) <= CONSISTENT:
        return _Answer(found, len(used), 1)
    if _is_rounding(problem, b):
        return _Answer(np.zeros(problem.dim), problem.dim, 1, "b = 0 up to rounding")
    careful = _Pseudoinverse(problem, a, scale, used).smallest_minimiser()
    return careful._replace(checks=careful.checks + (found is not None))


def _is_rounding(problem: Problem, b: Vector) -> bool:
    """Whether b is no larger than what rounding makes of a sum that is 0, judged by the terms of some rows."""
    n = problem.n_rows
    rows = np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int32)
    terms = [np.abs(problem.rows.sums(reward=1.0, phi=True, order=rows[[k]])[0]) for k in range(len(rows))]
    noise = np.finfo(float).eps * (2 + np.sqrt(n)) * np.mean(terms, axis=0)
    return bool((np.abs(b) <= noise).all())


def _by_elimination(a: Matrix, b: Vector, scale: Vector, used: NDArray[np.intp]) -> Vector | None:
    """The solution by LU factors of the scaled A, corrected once; None where A is close to singular."""
    scale = scale[used]
    if not (scale > 0).all():
        return None
    scaled, target = a[np.ix_(used, used)] * scale[:, None] * scale, b[used] * scale
    factors, pivots, info = la.lapack.dgetrf(scaled)
    if info != 0 or not la.lapack.dgecon(factors, np.abs(scaled).sum(axis=0).max())[0] > TRUSTED:
        return None
    found = la.lu_solve((factors, pivots), target, check_finite=False)
    found += la.lu_solve((factors, pivots), target - scaled @ found, check_finite=False)
    theta = np.zeros(len(b))
    theta[used] = scale * found
    return theta


class _Pseudoinverse:
    """The pseudo-inverse of K A, K'K = C^-1, with columns scaled so that units do not decide the rank.

    Whitening multiplies the rounding errors of A by the condition of the rows, as far as C determines them. Measured
    on singular problems of all sizes, what is left where there should be zero is at most .6 of 2.2e-16 times that
    condition. Singular values below 10 times it, or below 100 times 2.2e-16, count as zero.
    """

    def __init__(self, problem: Problem, a: Matrix, scale: Vector, used: NDArray[np.intp]) -> None:
        self.problem, self.used = problem, used
        self.metric = problem.metric()
        white = self.metric.whiten(a[:, used])
        # A feature that only next states have is nowhere in C: its own column gives its unit.
        own = unit_scale(np.einsum("ij,ij->j", white, white))
        self.unit = np.where(scale[used] > 0, scale[used], own)
        left, sizes, right = la.svd(white * self.unit, full_matrices=True, check_finite=False)
        noise = np.finfo(float).eps * max(100.0, 10 * self.metric.condition())
        self.rank = rank = int((sizes > noise * max(1.0, sizes.max(initial=0.0))).sum())
        self.left, self.sizes, self.right = left[:, :rank], sizes[:rank], right[:rank]
        # Directions that change no equation, orthonormal in the units of theta.
        free = self.unit[:, None] * right[rank:].T
        largest = np.abs(free).max(axis=0)
        free = free[:, largest > 0] / largest[largest > 0]
        self.free = la.qr(free, mode="economic", check_finite=False)[0]

    def smallest_minimiser(self) -> _Answer:
        """The minimiser of the MSPBE with the smallest norm.

        Where units differ by many orders, making the norm small costs digits of the residual; what the rows
        themselves say of it brings them back.
        """
        theta = np.zeros(self.problem.dim)
        gap, checks = self._gap(theta), 0
        for _ in range(ROUNDS):
            trial = theta.copy()
            trial[self.used] += self.unit * (self.right.T @ (gap / self.sizes))
            trial[self.used] -= self.free @ (self.free.T @ trial[self.used])
            trial_gap, checks = self._gap(trial), checks + 1
            if not la.norm(trial_gap) < 0.5 * la.norm(gap):
                break
            theta, gap = trial, trial_gap
        return _Answer(theta, self.rank, checks)

    def _gap(self, theta: Vector) -> Vector:
        """What is missing of the equations that can be met, whitened."""
        return np.asarray(self.left.T @ self.metric.whiten(self.problem.residual(theta)))


def _judge(problem: Problem, answer: _Answer, residual: float, tolerance: float | None) -> tuple[Status, str]:
    rank, dim = answer.rank, problem.dim
    if answer.zero:
        return Status.CONVERGED, f"Converged at zero: {answer.zero}, so the value is 0 everywhere."
    # Below 1e-12 the figure is rounding; it would not be the same for other units or another order of the rows.
    size = f"{residual:.1g}" if residual >= 1e-12 else "below 1e-12"
    norm = f"relative residual {size} in the norm of {'C^-1' if problem.measures_exactly else 'diag(C)^-1'}"
    lacks = "" if rank == dim else f" A has rank {rank} of {dim}:"
    if residual <= max(CONSISTENT, tolerance or 0.0):
        if lacks:
            lacks += (
                " the equations hold, the weights are the smallest that meet them, and others meet them too. A small"
                " ridge makes them unique."
            )
        if tolerance is not None and residual > tolerance:
            return Status.STALLED, (
                f"Solved directly as far as float64 goes: {norm}, above the tolerance {tolerance:.2g}.{lacks} "
                "Ask for less, or make A better conditioned by a small ridge or fewer features."
            )
        return Status.CONVERGED, f"Solved directly: {norm}.{lacks}"
    advice = "The answer is the smallest minimiser of the MSPBE. Use a small ridge, fewer features or more rows."
    if lacks:
        return (
            Status.SINGULAR,
            f"A theta = b has no solution: {norm}.{lacks} its equations contradict the rewards. {advice}",
        )
    return Status.SINGULAR, f"A is too close to singular for float64: {norm}. {advice}"
