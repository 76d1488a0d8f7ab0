"""Watching an iterative run: whether it is at the goal, and whether solving directly would be there before it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from valuate._threads import one_blas_thread
from valuate.solution import Status
from valuate.solvers.auto.gauge import LEAST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.solvers.auto.gauge import Gauge
    from valuate.solvers.iterating import Iteration

    Vector = NDArray[np.float64]

#: Iterations before anything is concluded from how fast the residual falls, while that costs less than this share of
#: a direct solve.
EARLY, SHARE = 6, 0.25
#: What is left of a run is taken to be so many times what it would be if the residual fell as it did.
SLOWER = 1.3
#: After a point that looked good and was not the next look comes so many times later.
PATIENCE = 1.25
#: A residual that is carried along is that of the rows where rounding is this share of it at most.
TRUSTED = 0.01
#: And only where it is this share of b at least: next features may be of any size, which no bound knows of.
FAR = 1e-5
#: Looks begin where the residual is so many times the goal as it was known before.
NEAR = 4.0
#: Between looks in the coarse norm the run goes on for this share of its iterations.
SPACING = 0.1


class Race:
    """Looks at a run after each iteration (a `Judge`).

    Parameters
    ----------
    gauge : Gauge
    rival : float
        Seconds that a direct solve would take; infinite where there is none.
    help : float
        Seconds that the run would take with the preconditioner that it has not yet; infinite where there is none.
    """

    def __init__(self, gauge: Gauge, rival: float, help: float = np.inf) -> None:
        self.gauge, self.rival, self.help = gauge, rival, help
        #: Seconds and lengths of the residual, as a share of b, after each iteration since it got its preconditioner.
        self.times: list[float] = []
        self.gaps: list[float] = []
        #: Seconds that looks have taken, which are not the run's.
        self.looking = 0.0
        #: Distance from the goal at the last look; 1 is there.
        self.distance = np.inf
        #: The length of the residual, as a share of b, that was the goal in the norm of diag(C)^-1 at the last look.
        self.goal: float | None = None
        self.given_up = False
        #: Iterations after which the preconditioner was asked for, and what was left without it, in seconds.
        self.helped: tuple[int, float] | None = None
        self.next_look = 1

    def look(self, run: Iteration) -> Status | None:
        """See `Judge`."""
        assert run.work is not None and run.system is not None
        self.times.append(run.ending.clock.seconds - self.looking)
        self.gaps.append(run.work.gap / run.system.whole)
        if run.epoch >= self.next_look and self._is_near():
            self.next_look = run.epoch + max(1, int(SPACING * run.epoch))
            began = run.ending.clock.seconds
            there = self._is_there(run)
            self.looking += run.ending.clock.seconds - began
            if there:
                return Status.CONVERGED
        if not self._is_behind():
            return None
        if self.help < np.inf:
            self._get_help(run)
            return None
        self.given_up = True
        run.ending.left_at = run.work.answer(), self.gaps[-1]
        return Status.BUDGET_SPENT

    def _get_help(self, run: Iteration) -> None:
        """From the next iteration on, with the preconditioner."""
        run.work.after = 0  # type: ignore[union-attr]
        run.method = replace(run.method, after=run.epoch)
        self.helped, self.help = (run.epoch, self.remaining()), np.inf
        self.times, self.gaps = [], []

    def _is_near(self) -> bool:
        """Whether the residual is small enough for a look."""
        if self.goal is None:
            self.goal = self.gauge.goal()
        if self.distance == np.inf:
            self.distance = self.gaps[-1] / self.goal
        return self.gaps[-1] <= NEAR * self.goal

    def _is_there(self, run: Iteration) -> bool:
        assert run.work is not None and run.system is not None
        with one_blas_thread():
            theta = run.work.answer()
            self.distance = self.gauge.coarse(run.work.gap, theta)
        self.goal = max(self.gaps[-1] / max(self.distance, LEAST), LEAST)
        if self.distance > 1:
            return False
        self.gauge.prepare()
        with one_blas_thread():
            left = run.system.left
            residual = run.work.left_over() / np.where(left > 0, left, 1.0)
            self.distance = self.gauge.fine(residual, theta)
            if self.distance > 1:
                return False
            relative = self.gauge.relative(residual)
            if not (self.gaps[-1] >= FAR and run.work.rounding() <= TRUSTED * run.work.gap):
                # What is carried along may be off by rounding where A is close to singular: ask the rows.
                residual = run.problem.residual(theta)
                run.setup_visits += run.problem.n_rows
                self.distance, relative = self.gauge.fine(residual, theta), self.gauge.relative(residual)
        if self.distance > 1:
            self.next_look = max(self.next_look, int(PATIENCE * run.epoch))
            return False
        run.ending.judged = theta, relative
        return True

    def _is_behind(self) -> bool:
        """Whether another way that begins now would be there first."""
        rival = min(self.rival, self.help)
        # What came before the first iteration, a preconditioner say, tells nothing of how long the others take.
        spent, count = self.times[-1] - self.times[0], len(self.gaps)
        if rival == np.inf or count < 2 or (count < EARLY and spent < SHARE * rival):
            return False
        # Krylov methods slow down on the way, and what was spent is not to be spent once more.
        return SLOWER * self.remaining() > rival / (1 + spent / rival)

    def remaining(self) -> float:
        """Seconds to the goal, should the residual go on falling as in the second half of the run so far."""
        count = len(self.gaps)
        if count < 2:
            return np.inf
        half = max(1, count // 2)
        fallen = math.log(max(self.gaps[half - 1], 1e-300) / max(self.gaps[-1], 1e-300))
        if not fallen > 0:
            return np.inf
        wanted = math.log(max(self.gaps[-1] / self.goal, self.distance, 1.0)) if self.goal else np.inf
        rate = fallen / max(self.times[-1] - self.times[half - 1], 1e-9)
        return wanted / rate
