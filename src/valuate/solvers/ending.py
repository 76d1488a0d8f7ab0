"""What looks at a run that follows the residual, and closes it: trace, callback, the best point, the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valuate.solution import Solution, Status
from valuate.solvers.observer import Observer
from valuate.solvers.remarks import remarks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.solvers.iterating import Iteration

    Vector = NDArray[np.float64]

#: Without a tolerance this is what a run goes for.
GOAL = 1e-12


class Ending(Observer):
    """Observes an `Iteration` and makes a `Solution` of its end."""

    def __init__(self, run: Iteration) -> None:
        super().__init__(run)
        self.run = run
        #: The tolerance, or what stands in for it.
        self.goal = GOAL if self.request.tolerance is None else float(self.request.tolerance)
        #: The tolerance that messages speak of.
        self.asked = self.request.tolerance
        #: The last point that was checked, and its relative residual.
        self.judged: tuple[Vector, float] | None = None
        #: Where somebody else goes on, and the relative residual as it was carried along: not worth a look.
        self.left_at: tuple[Vector, float] | None = None

    def begin(self) -> Status | None:
        """Look at the starting point."""
        return self._record() if self.request.record is not None else None

    def iterated(self) -> Status | None:
        """After an iteration."""
        if self.request.record == "epoch" or self.seen.row_visits >= self.next_point:
            return self._record()
        return self._call(None)

    def finish(self, ended: Status | None) -> Solution:
        """Measure the end, judge it and say so."""
        seconds, run = self.clock.seconds, self.run
        if ended is Status.CONVERGED and self.judged is not None:
            theta, self.residual = self.judged
        elif self.left_at is not None:
            theta, self.residual = self.left_at
        else:
            theta = self._measured_best()
            if run.met(self.residual):
                ended = Status.CONVERGED
        status = ended or Status.BUDGET_SPENT
        message = " ".join([self._message(status), *run.notes]) + remarks(self.problem)
        return self._solution(status, theta.copy(), run.omega.copy(), message, seconds)

    def _measured_best(self) -> Vector:
        """The last point, or the best one whose residual was computed where that is better."""
        run = self.run
        theta, _ = run.answer()
        residual, self.residual = run.check(theta)
        if run.system is not None and run.work is not None:
            real = run.system.norm(residual) / run.system.whole
            if not real <= run.proven[0]:
                theta = run.proven[1]
                _, self.residual = run.check(theta)
        return theta

    def _message(self, status: Status) -> str:
        run, tolerance = self.run, self.asked
        name, found = type(run.method).__name__, self._found()
        passes = f"{run.row_visits / self.n_rows:.4g} passes"
        above = "" if tolerance is None else f", above the tolerance {tolerance:.2g}"
        if status is Status.CONVERGED:
            return f"Converged: {found} after {passes}."
        if status is Status.SINGULAR:
            return (
                "Not determined: A theta = b has no solution, or only one with weights of another order of size. The "
                "answer makes the norm of its residual in diag(C)^-1 as small as it gets: "
                f"{found} after {passes}{above}. LSTD gives the minimiser of the MSPBE; a small ridge, fewer features "
                "or more rows give a solution."
            )
        if status is Status.STALLED:
            return (
                f"Stalled after {passes}: the residual of {name} no longer falls, {found}{above}. A is singular or "
                f"badly conditioned for it. {run.method.advice}"
            )
        if self.stopped:
            return f"Stopped by the callback after {passes}: {found}."
        missed = f"{above}. Give {name} more passes, or solve directly with LSTD" if above else ""
        return f"Spent its budget of {passes}: {found}{missed}."
