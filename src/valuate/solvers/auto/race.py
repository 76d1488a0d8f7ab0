"""Watching an iterative run: whether it is at the goal, and whether solving directly would be there before it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from valuate.solution import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.solvers.auto.gauge import Gauge
    from valuate.solvers.iterating import Iteration

    Vector = NDArray[np.float64]

#: Iterations before anything is concluded from how fast the residual falls, while that costs less than this share of
#: a direct solve.
EARLY, SHARE = 6, 0.25
#: A run is given up where what is left of it would take this many times as long as a direct solve.
SLOWER = 1.0
#: After a point that looked good and was not the next look comes so many times later.
PATIENCE = 1.25
#: A residual that is carried along is that of the rows where rounding is this share of it at most.
TRUSTED = 0.01
#: Between looks in the coarse norm the run goes on for this share of its iterations.
SPACING = 0.1


class Race:
    """Looks at a run after each iteration (a `Judge`).

    Parameters
    ----------
    gauge : Gauge
    rival : float
        Seconds that a direct solve would take; infinite where there is none.
    """

    def __init__(self, gauge: Gauge, rival: float) -> None:
        self.gauge, self.rival = gauge, rival
        #: Seconds and lengths of the residual, as a share of b, after each iteration.
        self.times: list[float] = []
        self.gaps: list[float] = []
        #: Distance from the goal at the last look, and whether it was in the gauge's own norm; 1 is there.
        self.distance = np.inf
        self.given_up = False
        self.next_look = 1

    def look(self, run: Iteration) -> Status | None:
        """See `Judge`."""
        assert run.work is not None and run.system is not None
        self.times.append(run.ending.clock.seconds)
        self.gaps.append(run.work.gap / run.system.whole)
        if len(self.gaps) >= self.next_look:
            self.next_look = len(self.gaps) + max(1, int(SPACING * len(self.gaps)))
            if self._is_there(run):
                return Status.CONVERGED
        if self._is_behind():
            self.given_up = True
            run.ending.left_at = run.work.answer(), self.gaps[-1]
            return Status.BUDGET_SPENT
        return None

    def _is_there(self, run: Iteration) -> bool:
        assert run.work is not None and run.system is not None
        theta = run.work.answer()
        self.distance = self.gauge.coarse(run.work.gap, theta)
        if self.distance > 1:
            return False
        left = run.system.left
        residual = run.work.left_over() / np.where(left > 0, left, 1.0)
        self.distance = self.gauge.fine(residual, theta)
        if self.distance > 1:
            return False
        relative = self.gauge.relative(residual)
        if not run.work.rounding() <= TRUSTED * run.work.gap:
            # What is carried along may be off by rounding where A is close to singular: the rows have the last word.
            residual = run.problem.residual(theta)
            run.setup_visits += run.problem.n_rows
            self.distance, relative = self.gauge.fine(residual, theta), self.gauge.relative(residual)
        if self.distance > 1:
            self.next_look = max(self.next_look, int(PATIENCE * len(self.gaps)))
            return False
        run.ending.judged = theta, relative
        return True

    def _is_behind(self) -> bool:
        """Whether a direct solve that begins now would be there first."""
        # What came before the first iteration, a preconditioner say, tells nothing of how long the others take.
        spent, count = self.times[-1] - self.times[0], len(self.gaps)
        if self.rival == np.inf or count < 2 or (count < EARLY and spent < SHARE * self.rival):
            return False
        return self.remaining() > SLOWER * self.rival

    def remaining(self) -> float:
        """Seconds to the goal, should the residual go on falling as in the second half of the run so far."""
        count = len(self.gaps)
        if count < 2:
            return np.inf
        half = max(1, count // 2)
        fallen = math.log(max(self.gaps[half - 1], 1e-300) / max(self.gaps[-1], 1e-300))
        if not fallen > 0:
            return np.inf
        wanted = math.log(max(self.distance, 1.0)) if math.isfinite(self.distance) else np.inf
        rate = fallen / max(self.times[-1] - self.times[half - 1], 1e-9)
        return wanted / rate
