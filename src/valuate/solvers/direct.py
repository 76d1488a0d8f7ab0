"""Direct solvers: one linear system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg as la

from valuate import _checks
from valuate._threads import blas_threads
from valuate.episodes import starts
from valuate.equations import Equations
from valuate.errors import InputError, InputTypeError
from valuate.metric import unit_scale
from valuate.solution import Solution, Status, Trace
from valuate.solvers.clock import Clock
from valuate.solvers.observer import settled_at_zero
from valuate.solvers.pseudoinverse import Pseudoinverse
from valuate.solvers.remarks import remarks
from valuate.solvers.request import Request
from valuate.summing import Moments

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from valuate.problem import Problem

    System = Problem | Equations
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
#: The same where A is close to singular, and each correction brings few digits.
MANY = 8
#: Weights so large that rounding of their products is this share of b may swallow it.
SWALLOWED = 1e-5
#: Rows whose size tells what rounding does to a sum over all.
SAMPLE = 64
#: Multiply-adds (stored rows * dim^2) up to which C is formed beside A where nobody asked for its norm.
CHEAP = 1e7


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LSTD:
    """Least-squares temporal difference learning (Boyan 2002): form A and b, solve A theta = b.

    Columns are scaled by diag(C)^-1/2 first, so that units do not matter. Where A is singular the answer is the
    minimiser of the MSPBE with the smallest norm, and the message gives the rank. What is small counts as zero when it
    is lost in rounding: see `Pseudoinverse`.

    Parameters
    ----------
    trace_decay : float, in [0, 1]
        The lambda of LSTD(lambda), whose equations have the eligibility trace

            e_t = discount_{t-1} lambda rho_{t-1} e_{t-1} + phi_t,    e_t = phi_t at the start of an episode

        in the place of phi. Above 0 the problem must know its episodes. On-policy, with 1 and whole episodes, this is
        least-squares regression on the returns.
    ratio_on : {"row", "next"}
        Where the importance ratio of a row stands beside the trace:

        - "row": A = sum w rho_t e_t (phi_t - discount_t phi'_t)',  b = sum w rho_t r_t e_t. With lambda = 0 this is A
          of the problem.
        - "next": A = sum w e_t (phi_t - discount_t rho_t phi'_t)', b = sum w rho_t r_t e_t.

        The two differ by the sum of w (rho_t - 1) e_t phi_t', whose expectation is 0: e_t and phi_t are settled before
        the action is taken, and a ratio is 1 on average over the actions. On a finite log they give two answers, which
        meet as it grows; without ratios they are the same.

    Notes
    -----
    With traces, or with "next" off-policy, the relative residual and the MSPBE of the `Solution` are those of these
    equations, in the same norm of C^-1. Ratios are in the trace already: never multiply by them twice.
    """

    trace_decay: float = 0.0
    ratio_on: str = "row"

    def __post_init__(self) -> None:
        object.__setattr__(self, "trace_decay", _checks.number("trace_decay", self.trace_decay, low=0.0, high=1.0))
        if self.ratio_on not in ("row", "next"):
            raise InputError(f'ratio_on must be "row" or "next", not {self.ratio_on!r}.')

    def __repr__(self) -> str:
        changed = [f"trace_decay={self.trace_decay:g}"] if self.trace_decay else []
        changed += [f"ratio_on={self.ratio_on!r}"] if self.ratio_on != "row" else []
        return f"LSTD({', '.join(changed)})"

    def solve(
        self,
        problem: Problem | Moments,
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
        """Solve directly, in one pass; or in none, from moments.

        Takes the arguments of every solver, so that solvers can be exchanged. A budget below one pass is refused;
        ``seed``, ``theta`` and ``omega`` make no difference.

        Returns
        -------
        Solution
            CONVERGED, with the rank in its message where A is singular but the equations hold to 1e-8; SINGULAR where
            they do not; STALLED where they do, but not to the ``tolerance``.
        """
        if not (hasattr(problem, "rows") or isinstance(problem, Moments)):  # also for the class itself
            raise InputTypeError(f"problem must be a Problem, not {type(problem).__name__}.")
        request, clock = Request(passes, epochs, tolerance, record, seed, theta, omega, callback), Clock()
        request.start(problem)
        if (request.epochs if request.epochs is not None else request.passes) < 1:
            raise InputError("LSTD reads every row once: a budget below one pass is not enough. Use GTD2 or SCSG.")
        system, n = self._system(problem), 0 if isinstance(problem, Moments) else problem.n_rows
        with blas_threads(system.dim):
            answer = _solve(system, clock, exact=_is_exact(system, request))
        seconds = clock.seconds
        status, message = _judge(system, answer, request.tolerance)
        if not answer.zero and system is problem:
            message += remarks(problem, says_rank=True)
        mspbe = [system.mspbe(np.zeros(system.dim)), system.mspbe(answer.theta)] if record is not None else []
        ends = np.array([0, 1][: len(mspbe)])
        return Solution(
            theta=answer.theta,
            omega=np.zeros(system.dim),
            status=status,
            message=message,
            solver=self,
            relative_residual=answer.residual,
            row_visits=n,
            # Equations held as matrices are looked at without the rows.
            setup_visits=0 if isinstance(system, Equations) else n * answer.checks,
            passes=float(n > 0),
            epochs=1,
            seconds=seconds,
            trace=Trace(ends, ends * n, ends * float(n > 0), ends * seconds, np.array(mspbe)),
            tolerance=request.tolerance,
        )

    def _system(self, problem: Problem | Moments) -> System:
        """The equations: the problem itself where they are its own, for its rows say more than matrices."""
        plain = self.trace_decay == 0.0 and self.ratio_on == "row"
        if isinstance(problem, Moments):
            if plain:
                return problem.equations()
            raise InputError(f"{self} needs the rows in their order: moments have no traces. Solve the problem itself.")
        if plain:
            return problem
        first = np.ones(problem.n_rows, bool) if self.trace_decay == 0.0 else starts(problem.episodes)
        return Equations.traced(problem, first, self.trace_decay, self.ratio_on)


def _is_exact(problem: System, request: Request) -> bool:
    """Whether residuals are measured in the norm of C^-1: where C is small, there already, or asked for."""
    if isinstance(problem, Equations) or request.tolerance is not None or request.record is not None:
        return problem.measures_exactly
    cheap = problem.knows("C") or problem.rows.n_stored * problem.dim**2 <= CHEAP
    return problem.measures_exactly and cheap


class _Answer(NamedTuple):
    theta: Vector
    rank: int
    residual: float
    #: Whether the residual is in the norm of C^-1.
    exact: bool
    #: Passes over the rows that looked at residuals.
    checks: int
    #: Why the answer is 0, where nothing had to be solved.
    zero: str = ""
    #: Whether directions were left out of A that may be more than rounding.
    doubtful: bool = False


def _solve(problem: System, clock: Clock, *, exact: bool) -> _Answer:
    at_zero = _Answer(np.zeros(problem.dim), 0, residual=0.0, exact=exact, checks=0, zero="b = 0")
    b = problem.b
    if not b.any():
        return at_zero
    # C and A come from one pass where both are wanted.
    a = problem.moments().A if exact or isinstance(problem, Equations) else problem.cross_moment()
    scale = unit_scale(problem.diagonal)
    # A feature that neither states nor next states have is left out: its weight is free, and 0.
    used = np.flatnonzero((scale > 0) | a.any(axis=0))
    found, residual, checks = _eliminated(problem, a, scale, used, clock, exact=exact, trusted=TRUSTED)
    if residual <= CONSISTENT:
        return _Answer(found, len(used), residual, exact, checks)
    if _is_rounding(problem, b):
        return at_zero._replace(checks=checks, zero="b = 0 up to rounding")
    inverse = Pseudoinverse(problem, a, scale, used)
    found, looked = inverse.smallest_minimiser()
    exact = problem.measures_exactly
    with clock:
        residual = problem.relative_residual(found, exact=exact)
    checks += looked + 1
    if residual > CONSISTENT and inverse.rank < problem.dim and not isinstance(problem, Equations):
        # Before it is said that there is no solution: one that is far away, which rounding hides from the rank.
        far, gap, looked = _eliminated(problem, a, scale, used, clock, exact=exact, trusted=0.0)
        checks += looked
        if gap <= CONSISTENT and _is_within_reach(far, problem.b, scale, a):
            return _Answer(far, len(used), gap, exact, checks)
    return _Answer(found, inverse.rank, residual, exact, checks, doubtful=inverse.doubtful)


def _is_within_reach(theta: Vector, b: Vector, scale: Vector, a: Matrix) -> bool:
    """Whether weights are small enough for the rows to tell their residual from rounding."""
    size = float(np.abs(scale[:, None] * a * scale).sum(axis=1).max())
    inside = np.divide(theta, scale, out=np.zeros_like(theta), where=scale > 0)
    return bool(np.finfo(float).eps * size * np.abs(inside).max() <= SWALLOWED * float(la.norm(scale * b)))


def _eliminated(
    problem: System,
    a: Matrix,
    scale: Vector,
    used: NDArray[np.intp],
    clock: Clock,
    *,
    exact: bool,
    trusted: float,
) -> tuple[Vector, float, int]:
    """A solution by LU factors, corrected by the residuals of the rows; its residual, infinite without, and checks."""
    eliminate = _elimination(a, scale, used, trusted)
    found, residual, checks = np.zeros(problem.dim), np.inf, 0
    rounds = ROUNDS if trusted > 0 else MANY
    while eliminate is not None and checks < 2 * rounds and residual > EXACT:
        trial = found + eliminate(problem.residual(found) if checks else problem.b)
        with clock:
            gap = problem.relative_residual(trial, exact=exact)
        checks += 1 if checks == 0 else 2
        if not gap < 0.5 * residual:
            break
        found, residual = trial, gap
    return found, residual, checks


def _is_rounding(problem: System, b: Vector) -> bool:
    """Whether b is no larger than what rounding makes of a sum that is 0, judged by the terms of some rows."""
    if isinstance(problem, Equations):
        return bool((np.abs(b) <= problem.noise).all())
    n = problem.n_rows
    rows = np.linspace(0, n - 1, min(n, SAMPLE)).astype(np.int32)
    terms = [np.abs(problem.rows.sums(reward=1.0, phi=True, order=rows[[k]])[0]) for k in range(len(rows))]
    noise = np.finfo(float).eps * (2 + np.sqrt(n)) * np.mean(terms, axis=0)
    return bool((np.abs(b) <= noise).all())


def _elimination(a: Matrix, scale: Vector, used: NDArray[np.intp], trusted: float) -> Callable[[Vector], Vector] | None:
    """What solves A theta = g by LU factors of the scaled A; None where its reciprocal condition is not ``trusted``."""
    scale = scale[used]
    if not (scale > 0).all():
        return None
    scaled = a[np.ix_(used, used)] * scale[:, None] * scale
    factors, pivots, info = la.lapack.dgetrf(scaled)
    if info != 0 or not la.lapack.dgecon(factors, np.abs(scaled).sum(axis=0).max())[0] > trusted:
        return None

    def eliminate(g: Vector) -> Vector:
        theta = np.zeros(len(g))
        theta[used] = scale * la.lu_solve((factors, pivots), scale * g[used], check_finite=False)
        return theta

    return eliminate


def _judge(problem: System, answer: _Answer, tolerance: float | None) -> tuple[Status, str]:
    rank, dim, residual = answer.rank, problem.dim, answer.residual
    if answer.zero:
        return settled_at_zero(problem, answer.zero)
    # Below that the figure is rounding: it would not be the same for other units or another order of the rows.
    size = f"{residual:.1g}" if residual >= EXACT else f"below {EXACT:g}"
    norm = f"relative residual {size} in the norm of {'C^-1' if answer.exact else 'diag(C)^-1'}"
    holds, lacks = residual <= CONSISTENT, f"A has rank {rank} of {dim}"
    unclear = answer.doubtful and rank < dim and not holds
    if rank == dim or unclear:
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
    if unclear:
        return Status.STALLED, f"Not solved: {norm}.{note} Use a small ridge or fewer features."
    return Status.SINGULAR, f"Not determined: {norm}.{note} Use a small ridge, fewer features or more rows."
