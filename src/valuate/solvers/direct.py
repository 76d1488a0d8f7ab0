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
from valuate.solvers.pseudoinverse import Pseudoinverse
from valuate.solvers.remarks import remarks
from valuate.solvers.request import Request

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Smallest reciprocal condition of the scaled A for which its LU factors are tried; below, its rank is looked at.
TRUSTED = 1e-12
#: A residual below this share of b means that the equations hold, whatever their rank.
CONSISTENT = 1e-8
#: A residual below this share of b is rounding.
EXACT = 1e-12
#: Corrections of an answer by the residual of the rows themselves, at most.
ROUNDS = 2
#: Rows whose size tells what rounding does to a sum over all.
SAMPLE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class LSTD:
    """Least-squares temporal difference learning (Boyan 2002): form A and b, solve A theta = b.

    Columns are scaled by diag(C)^-1/2 first, so that units do not matter. Where A is singular the answer is the
    minimiser of the MSPBE with the smallest norm, and the message gives the rank. What is small counts as zero when it
    is lost in rounding: see `Pseudoinverse`.
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
        if not hasattr(problem, "rows"):  # also for the class itself
            raise InputTypeError(f"problem must be a Problem, not {type(problem).__name__}.")
        request = Request(passes, epochs, tolerance, record, seed, theta, omega, callback)
        request.start(problem)
        if (request.epochs if request.epochs is not None else request.passes) < 1:
            raise InputError("LSTD reads every row once: a budget below one pass is not enough. Use GTD2 or SCSG.")
        clock, n = Clock(), problem.n_rows
        answer = _solve(problem, clock)
        seconds = clock.seconds
        status, message = _judge(problem, answer, request.tolerance)
        if not answer.zero:
            message += remarks(problem, says_rank=True)
        mspbe = [problem.mspbe(np.zeros(problem.dim)), problem.mspbe(answer.theta)] if record is not None else []
        ends = np.array([0, 1][: len(mspbe)])
        return Solution(
            theta=answer.theta,
            omega=np.zeros(problem.dim),
            status=status,
            message=message,
            solver=self,
            relative_residual=answer.residual,
            row_visits=n,
            setup_visits=n * answer.checks,
            passes=1.0,
            epochs=1,
            seconds=seconds,
            trace=Trace(ends, ends * n, ends * 1.0, ends * seconds, np.array(mspbe)),
            tolerance=request.tolerance,
        )


class _Answer(NamedTuple):
    theta: Vector
    rank: int
    residual: float
    #: Passes over the rows that looked at residuals.
    checks: int
    #: Why the answer is 0, where nothing had to be solved.
    zero: str = ""


def _solve(problem: Problem, clock: Clock) -> _Answer:
    a, b, c = problem.moments()
    at_zero = _Answer(np.zeros(problem.dim), 0, residual=0.0, checks=0, zero="b = 0")
    if not b.any():
        return at_zero
    scale = unit_scale(np.diagonal(c))
    # A feature that neither states nor next states have is left out: its weight is free, and 0.
    used = np.flatnonzero((scale > 0) | a.any(axis=0))
    eliminate = _elimination(a, scale, used)
    found, residual, checks = np.zeros(problem.dim), np.inf, 0
    while eliminate is not None and checks < 2 * ROUNDS and residual > EXACT:
        trial = found + eliminate(problem.residual(found) if checks else b)
        with clock:
            gap = problem.relative_residual(trial)
        checks += 1 if checks == 0 else 2
        if not gap < 0.5 * residual:
            break
        found, residual = trial, gap
    if residual <= CONSISTENT:
        return _Answer(found, len(used), residual, checks)
    if _is_rounding(problem, b):
        return at_zero._replace(checks=checks, zero="b = 0 up to rounding")
    inverse = Pseudoinverse(problem, a, scale, used)
    found, looked = inverse.smallest_minimiser()
    with clock:
        residual = problem.relative_residual(found)
    return _Answer(found, inverse.rank, residual, checks + looked + 1)


def _is_rounding(problem: Problem, b: Vector) -> bool:
    """Whether b is no larger than what rounding makes of a sum that is 0, judged by the terms of some rows."""
    n = problem.n_rows
    rows = np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int32)
    terms = [np.abs(problem.rows.sums(reward=1.0, phi=True, order=rows[[k]])[0]) for k in range(len(rows))]
    noise = np.finfo(float).eps * (2 + np.sqrt(n)) * np.mean(terms, axis=0)
    return bool((np.abs(b) <= noise).all())


def _elimination(a: Matrix, scale: Vector, used: NDArray[np.intp]) -> Callable[[Vector], Vector] | None:
    """What solves A theta = g by LU factors of the scaled A; None where A is close to singular."""
    scale = scale[used]
    if not (scale > 0).all():
        return None
    scaled = a[np.ix_(used, used)] * scale[:, None] * scale
    factors, pivots, info = la.lapack.dgetrf(scaled)
    if info != 0 or not la.lapack.dgecon(factors, np.abs(scaled).sum(axis=0).max())[0] > TRUSTED:
        return None

    def eliminate(g: Vector) -> Vector:
        theta = np.zeros(len(g))
        theta[used] = scale * la.lu_solve((factors, pivots), scale * g[used], check_finite=False)
        return theta

    return eliminate


def _judge(problem: Problem, answer: _Answer, tolerance: float | None) -> tuple[Status, str]:
    rank, dim, residual = answer.rank, problem.dim, answer.residual
    if answer.zero:
        return Status.CONVERGED, f"Converged at zero: {answer.zero}, so the value is 0 everywhere."
    # Below that the figure is rounding: it would not be the same for other units or another order of the rows.
    size = f"{residual:.1g}" if residual >= EXACT else f"below {EXACT:g}"
    norm = f"relative residual {size} in the norm of {'C^-1' if problem.measures_exactly else 'diag(C)^-1'}"
    holds, lacks = residual <= CONSISTENT, f"A has rank {rank} of {dim}"
    if rank == dim:
        note = "" if holds else " A is too close to singular for float64."
    elif holds:
        note = (
            f" {lacks}: the equations hold, the weights are the smallest that meet them, and others meet them too. "
            "A small ridge makes them unique."
        )
    else:
        note = f" {lacks} and A theta = b has no solution: the weights are the smallest minimiser of the MSPBE."
    if residual <= (CONSISTENT if tolerance is None else tolerance):
        return Status.CONVERGED, f"Solved directly: {norm}.{note}"
    if holds:
        return Status.STALLED, (
            f"Solved directly as far as float64 goes: {norm}, above the tolerance {tolerance:.2g}.{note} "
            "Ask for less, or make A better conditioned by a small ridge or fewer features."
        )
    return Status.SINGULAR, f"Not determined: {norm}.{note} Use a small ridge, fewer features or more rows."
