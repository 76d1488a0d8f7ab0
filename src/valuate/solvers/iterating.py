"""The driver of the methods that follow the residual b - A theta: products, budget, checks, restarts, the end."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.linalg as la

from valuate._threads import same_blas_threads
from valuate.solution import Solution, Status
from valuate.solvers.ending import Ending
from valuate.solvers.request import Callback, Request, require_problem
from valuate.solvers.scaled import Scaled

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]

#: Without a tolerance a run ends where the residual is this share of b: what is left is rounding.
EXACT = 1e-12
#: Residuals that a method carries along are not believed below this share of b.
FLOOR = 1e-15
#: A new start that has improved the residual by less than this share is the last one.
IMPROVEMENT = 1e-3
#: Length of A'g, as a share of |A| |g|, below which no step lowers the residual.
STATIONARY = 1e-8


class Turn(Enum):
    """What a method says after an iteration."""

    GOES_ON = "goes on"
    #: It wants to start again from the residual of the rows themselves, which costs a pass.
    RENEW = "renew"
    #: It cannot go on from here, and does not expect to.
    STUCK = "stuck"


class Process(Protocol):
    """A method at work: it lowers the length of the scaled residual, ``gap``, which it carries along."""

    gap: float

    def visits(self) -> int:
        """Row visits that the next iteration needs, at least."""

    def begin(self, theta: Vector, residual: Vector) -> None:
        """Start from a point and its residual b - A theta."""

    def step(self) -> Turn:
        """One iteration."""

    def answer(self) -> Vector:
        """The best point so far: (dim,)."""

    def left_over(self) -> Vector:
        """The residual of the best point as it is carried along, times diag(C)^-1/2: (dim,)."""

    def rounding(self) -> float:
        """The most by which the residual that is carried along may differ from that of the rows; infinite: unknown."""


class Judge(Protocol):
    """Somebody who looks at a run after each iteration and may end it."""

    def look(self, run: Iteration) -> Status | None:
        """The reason to stop, or None. For CONVERGED it has put the point and its residual in ``run.ending.judged``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iterative:
    """What the methods share that follow the residual of A theta = b.

    They work in columns scaled by diag(C)^-1/2, so that units of features make no difference, and lower the norm of
    the residual in diag(C)^-1. A product with A or its transpose is one pass over the rows.
    """

    def process(self, run: Iteration) -> Process:
        """The method at work on the problem of ``run``."""
        raise NotImplementedError

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
        callback: Callback | None = None,
    ) -> Solution:
        """Solve A theta = b.

        Parameters
        ----------
        problem : Problem
        passes, epochs : float, int
            The budget: row visits in multiples of the number of rows, or iterations. A product that does not fit in
            is not begun. Give one; 100 passes when neither is given.
        tolerance : float, optional
            Stop once the relative residual is at most this. None: go on to the budget's end, or to 1e-12, which is
            where rounding begins.
        record : float or "epoch", optional
            Record the MSPBE every so many passes, at the end of an iteration, or at each iteration's end.
        seed : int or numpy.random.Generator
            One seed, one path. Makes no difference where nothing is drawn.
        theta, omega : (dim,) array, optional
            Where to start; zeros otherwise. Not changed; omega is handed back. Another start than zero costs a pass.
        callback : callable, optional
            Called with a `Progress` at each iteration's end and each recorded point; a true answer stops the run.

        Returns
        -------
        Solution
            CONVERGED where the tolerance is met or, without one, the residual is at most 1e-12; SINGULAR where
            A theta = b has no solution as far as the method can tell; STALLED where the residual no longer falls.

        Raises
        ------
        InputError, InputTypeError
            For budgets, tolerances or starting points that make no sense.
        """
        require_problem(problem)
        request = Request(passes, epochs, tolerance, record, seed, theta, omega, callback)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
            with same_blas_threads():
                return Iteration(self, problem, request).go()


class Iteration:
    """One run: the process, what was spent, and the best point whose residual was computed from the rows."""

    def __init__(self, method: Any, problem: Problem, request: Request, judge: Judge | None = None) -> None:
        self.method, self.problem, self.request, self.judge = method, problem, request, judge
        self.rng: np.random.Generator = request.seed
        self.theta, self.omega = request.start(problem)
        self.steps = self.setup_visits = self.epoch = 0
        self.limit = None if request.epochs is not None else round(request.passes * problem.n_rows)
        #: What the closing message says beside how the run ended.
        self.notes: list[str] = []
        self.system: Scaled | None = None
        self.work: Process | None = None
        #: The carried residual at which the true one is looked at.
        self.aim = EXACT / 10 if request.tolerance is None else max(request.tolerance, FLOOR)
        #: The last point whose residual was computed from the rows, as a share of b; and that point.
        self.proven: tuple[float, Vector] = (np.inf, self.theta)
        self.ending = Ending(self)

    @property
    def row_visits(self) -> int:
        """Products and, where the method takes any, steps."""
        return self.steps + (self.system.products * self.problem.n_rows if self.system is not None else 0)

    def go(self) -> Solution:
        """Run to the end of the budget, or until there is a reason to stop."""
        if not self.problem.rows.any_reward():
            return self.ending.at_zero("every reward is 0")
        self.setup_visits += self.problem.preparing_visits()
        if not self.problem.b.any():
            return self.ending.at_zero("b = 0")
        self.system = Scaled(self.problem)
        ended = self.ending.begin() or self._start()
        while ended is None and self.fits(self.work.visits()):  # type: ignore[union-attr]
            turn = self.work.step()  # type: ignore[union-attr]
            self.epoch += 1
            ended = self.ending.iterated() or self._look(turn) or (self.judge and self.judge.look(self)) or None
        return self.ending.finish(ended)

    def answer(self) -> tuple[Vector, Vector]:
        """The best point so far."""
        theta = self.theta if self.work is None else self.work.answer()
        return theta.copy(), self.omega.copy()

    def fits(self, visits: int) -> bool:
        """Whether the budget has room for so many visits more."""
        if self.limit is None:
            return self.epoch < int(self.request.epochs)
        return bool(self.row_visits + visits <= self.limit)

    def room(self) -> int | None:
        """Visits left; None where the budget is in epochs."""
        return None if self.limit is None else self.limit - self.row_visits

    def check(self, theta: Vector) -> tuple[Vector, float]:
        """The residual by the rows themselves, and its relative size in the norm of the tolerance."""
        self.setup_visits += self.problem.measuring_visits(exact=self.ending.exact)
        g = self.problem.residual(theta)
        return g, self.problem.relative_size(g, exact=self.ending.exact)

    def met(self, relative: float) -> bool:
        """Whether a relative residual is small enough."""
        return relative <= (EXACT if self.request.tolerance is None else self.request.tolerance)

    def _start(self) -> Status | None:
        """The residual of the starting point, and the method set to work."""
        assert self.system is not None
        if not self.theta.any():
            residual = self.problem.b
        elif self.fits(self.problem.n_rows):
            residual = self._renewed(self.theta)
            if not np.isfinite(residual).all():
                self.notes.append("The residual of the starting point is not finite: the run began at zero.")
                self.theta, residual = np.zeros_like(self.theta), self.problem.b
        else:
            return Status.BUDGET_SPENT
        self.proven = self.system.norm(residual) / self.system.whole, self.theta
        work = self.method.process(self)
        work.begin(self.theta, residual)
        self.work = work
        if self.proven[0] <= self.aim:
            return self._look(Turn.GOES_ON)
        return None

    def _renewed(self, theta: Vector) -> Vector:
        """The residual by the rows, as a part of the method: a product."""
        assert self.system is not None
        self.system.products += 1
        return -self.problem.mean_residual(theta, None)

    def _look(self, turn: Turn) -> Status | None:
        """Compare what the method says with the rows, where it says that it is done or cannot go on."""
        assert self.system is not None and self.work is not None
        carried = self.work.gap / self.system.whole
        done = carried <= self.aim
        if turn is Turn.GOES_ON and not done:
            return None
        theta = self.work.answer()
        if turn is Turn.RENEW and not done:
            if not self.fits(self.problem.n_rows):
                return Status.BUDGET_SPENT
            residual = self._renewed(theta)
        else:
            residual, relative = self.check(theta)
            self.ending.judged = theta, relative
            if self.met(relative):
                return Status.CONVERGED
        real = self.system.norm(residual) / self.system.whole
        if done and real <= 2 * carried:  # the two norms differ, not the two residuals
            self.aim = 0.5 * carried * min(1.0, max(self.ending.goal / relative, 1e-3))
            if turn is Turn.GOES_ON:
                return None
        if not real <= (1 - IMPROVEMENT) * self.proven[0]:
            return self._give_up(theta, residual, real)
        self.proven = real, theta
        self.work.begin(theta, residual)
        return None

    def _give_up(self, theta: Vector, residual: Vector, real: float) -> Status:
        """Whether the residual no longer falls because it is as small as it can be."""
        assert self.system is not None
        if not real <= self.proven[0]:
            theta = self.proven[1]
            residual, _ = self.check(theta)
        self.setup_visits += self.problem.n_rows
        scaled = self.system.left * residual
        pull = self.system.right * self.problem.times_At(self.system.left * scaled)
        flat = float(la.norm(pull)) <= STATIONARY * self.system.largest * float(la.norm(scaled))
        return Status.SINGULAR if flat and real > STATIONARY else Status.STALLED
