"""Everything that looks at a stochastic run without moving it: tolerance, divergence, stalls, the closing message."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from valuate.solution import Solution, Status
from valuate.solvers import sampling
from valuate.solvers.observer import Observer
from valuate.solvers.remarks import remarks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.solvers.driver import Run

    Vector = NDArray[np.float64]

#: Steps that the dense kernels take together.
BLOCK = 4
#: Pulls of a chunk beyond this are on their way to overflow.
OVERFLOW = {4: 1e30, 8: 1e140}
#: A run whose relative residual ends this many times above its start (and above 1) has diverged.
GREW = 1e3
#: What is usual is known after so many passes; or, where only some rows were looked at, this share of the budget.
USUAL, EARLY = 2, 0.1
#: A run has stalled when the best residual has not improved for so many passes, and for so many row visits, and the
#: worst has not either: a saddle point is approached in circles, in which the residual may fall low by chance and rise
#: again for many passes. So the worst of the second half of the run is held against that of its second eighth.
PATIENCE, CIRCLE = 20, 10_000
#: Columns whose sizes differ by more than this are worth a word.
UNEVEN = 1e3
#: An improvement of the best smaller than this share is none, nor one of the worst smaller than that.
IMPROVEMENT, LOWERED = 1e-3, 0.1


class Watch(Observer):
    """Observes a `Run`; every method that returns a `Status` gives the reason to stop, or None."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.run = run
        self.checked_at = 0
        self.start = self.best[1]
        #: The point with the smallest mean gradient, and the size of the first one.
        self.least, self.first_mean = self.best, math.inf  # in the run's own columns
        #: The hardest pull of a row in the first passes, and where they began.
        self.usual, self.set_out_at = 0.0, 0
        self.mark, self.marked_at = math.inf, 0
        #: Row visits and residuals of the checks since the batch stopped growing.
        self.checks: list[tuple[int, float]] = []
        self.began: float | None = None
        self.bound = math.inf
        #: Rows from which the closing residual was estimated; 0 where all were asked.
        self.estimated = 0

    def begin(self) -> Status | None:
        """Look at the starting point."""
        run = self.run
        self.bound = OVERFLOW[4 if run.rows.dtype.itemsize == 4 else 8]
        ended = self._record() if self.request.record is not None else None
        if ended is None and self.request.tolerance is not None:
            ended = self._check()
        return ended

    def moved(self, pulled: float, steps: int = 0) -> Status | None:
        """After a chunk of steps, or a mean."""
        if not pulled < self.bound or (steps and self._pulls_grow(pulled / steps)):
            return Status.DIVERGED
        if self.run.row_visits >= self.next_point:
            return self._record()
        return None

    def _pulls_grow(self, rate: float) -> bool:
        """Whether rows pull far harder than in the first passes, where the steps can be made smaller."""
        run = self.run
        if not run.chosen:
            return False
        first = USUAL * self.n_rows  # a memory is filled in the first
        if run.sample is not None and run.limit is not None:
            first = min(first, int(EARLY * run.limit))
        if run.row_visits - self.set_out_at <= first:
            self.usual = max(self.usual, rate)
            return False
        return rate > GREW * self.usual > 0.0

    def met_mean(self, mean: tuple[Vector, Vector]) -> Status | None:
        """After a mean: whether it has grown, where the steps can be made smaller."""
        size = math.hypot(*map(np.linalg.norm, mean))
        if math.isinf(self.first_mean):
            self.first_mean = size
        if size < self.least[0]:
            self.least = (size, self.run.theta.copy(), self.run.omega.copy())
        if not size < math.inf or (self.run.chosen and size > GREW * self.first_mean > 0):
            return Status.DIVERGED
        return self.moved(0.0)

    def epoch_ended(self) -> Status | None:
        """After an epoch."""
        if self.request.record == "epoch":
            ended = self._record()
        else:
            ended = self._call(None)
        due = self.run.row_visits - self.checked_at >= self.n_rows
        if ended is None and self.request.tolerance is not None and due:
            ended = self._check()
        return ended

    def go_back(self) -> tuple[Vector, Vector]:
        """The best point that was seen, to go on from with smaller steps."""
        self.mark, self.marked_at = math.inf, self.run.row_visits
        self.checks.clear()
        self.usual, self.set_out_at = 0.0, self.run.row_visits
        if math.isfinite(self.least[0]):
            return self.least[1].copy(), self.least[2].copy()
        _, theta, omega = self.best
        return self.run.columns.inside(theta), self.run.columns.inside(omega)

    def until_next_point(self) -> int:
        """Steps until the next point is to be recorded (a large number where none is).

        A multiple of the kernels' block, so that blocks fall as they do without a record: looking changes nothing.
        """
        if self.next_point == math.inf:
            return self.n_rows + (1 << 20)
        return max(BLOCK, -(-(math.ceil(self.next_point) - self.run.row_visits) // BLOCK) * BLOCK)

    def finish(self, ended: Status | None) -> Solution:
        """Measure the end, judge it and say so."""
        seconds = self.clock.seconds
        theta, omega = self.run.answer()
        if ended not in (Status.CONVERGED, Status.DIVERGED, Status.STALLED):
            self.residual = self._close(theta)
            if self.request.tolerance is not None and self.residual <= self.request.tolerance:
                ended = Status.CONVERGED
            elif self._has_grown():
                ended = Status.DIVERGED
        if ended in (Status.DIVERGED, Status.STALLED):
            _, theta, omega = self.best
            self.estimated, self.residual = 0, self._measure(theta)
        if not self.estimated and not self.problem.b.any():
            return self.at_zero("b = 0")
        status = ended or Status.BUDGET_SPENT
        return self._solution(status, theta, omega, self._message(status) + remarks(self.problem), seconds)

    def _check(self) -> Status | None:
        """Compare the relative residual with the tolerance."""
        theta, omega = self.run.answer()
        self.checked_at = self.run.row_visits
        self.residual = self._measure(theta)
        self._keep(self.residual, theta, omega)
        if self.residual <= self.request.tolerance:
            return Status.CONVERGED
        if self._has_grown():
            return Status.DIVERGED
        if self.residual < (1 - IMPROVEMENT) * self.mark or not self.run.settled:
            self.mark, self.marked_at = min(self.mark, self.residual), self.run.row_visits
        if not self.run.settled:
            self.checks.clear()
        self.checks.append((self.run.row_visits, self.residual))
        return Status.STALLED if self._is_stuck() else None

    def _is_stuck(self) -> bool:
        """Whether neither the best nor the worst residuals fall any more."""
        enough = max(PATIENCE * self.n_rows, CIRCLE)
        began, now = self.checks[0][0], self.run.row_visits
        if now - self.marked_at < enough or now - began < 4 * enough:
            return False
        early, late = ((now - began) / 8, (now - began) / 4), (now - began) / 2
        before = [residual for visits, residual in self.checks if early[0] < visits - began <= early[1]]
        after = [residual for visits, residual in self.checks if late < visits - began]
        return not before or max(after) > (1 - LOWERED) * max(before)

    def _has_grown(self) -> bool:
        """Whether the residual is far above where it began."""
        if self.residual <= GREW:
            return False
        if self.began is None:
            self.began = self._measure(self.start) if self.start.any() else 1.0
        return not self.residual <= GREW * max(1.0, self.began)

    def _measure(self, theta: Vector) -> float:
        """The relative residual; counts the visits that it costs."""
        self.run.setup_visits += self.problem.measuring_visits(exact=self.exact)
        return self.problem.relative_residual(theta, exact=self.exact)

    def _close(self, theta: Vector) -> float:
        """The closing residual: by a sample of the rows where one stands for all, and nothing more was asked for."""
        sample = self.run.sample
        if sample is None or self.request.tolerance is not None or self.request.record is not None:
            return self._measure(theta)
        self.run.setup_visits += 3 * len(sample.order)
        found = sampling.relative_residual(self.problem, theta, sample.order)
        if not math.isfinite(found):
            return self._measure(theta)
        self.estimated = len(sample.order)
        return found

    def _found(self) -> str:
        """See `Observer`."""
        if not self.estimated:
            return super()._found()
        return (
            f"relative residual at most about {self.residual:.2g} in the norm of diag(C)^-1 (estimated from "
            f"{self.estimated:,} rows)"
        )

    def _message(self, status: Status) -> str:
        run, tolerance = self.run, self.request.tolerance
        passes = f"{run.row_visits / self.n_rows:.4g} passes"
        residual = self._found()
        name = type(run.method).__name__
        sizes = f"step_theta={run.method.step_theta:.3g}"
        if run.direction.moves_omega:
            sizes += f", step_omega={run.method.step_omega:.3g}"
        if run.retries and status is not Status.DIVERGED:
            passes += f" (the run grew, and went back to its best point with smaller steps {run.retries} times)"
        if status is Status.CONVERGED:
            return f"Converged: {residual} after {passes}."
        if status is Status.DIVERGED:
            best = "the best recorded point" if math.isfinite(self.best[0]) else "the starting point"
            advice = (
                f"They were made smaller {run.retries} times. Use LSTD, or a ridge."
                if run.retries
                else 'Divide the steps by 10, or leave them at "auto".'
            )
            if not run.direction.moves_omega:
                advice += ' Off-policy TD may diverge whatever its step: direction="saddle" and GTD2 do not.'
            return (
                f"Diverged after {passes} with {sizes}: the steps are too large for these rows. The answer is {best} "
                f"({residual}). {advice}"
            )
        if status is Status.STALLED:
            advice = (
                "The noise of single rows keeps it there: use smaller steps, or a method whose noise vanishes (SVRG, "
                "SAGA, BatchingSVRG, LSTD)."
                if run.method.reference.value == "nothing"
                else "LSTD tells whether the equations can be met at all; where not, a small ridge makes them so."
            )
            return (
                f"Stalled after {passes} with {sizes}: the best {residual} no longer improves and is above the "
                f"tolerance {tolerance:.2g}. {advice}{self._uneven()}"
            )
        if self.stopped:
            return f"Stopped by the callback after {passes}: {residual}."
        missed = ""
        if tolerance is not None:
            missed = f", above the tolerance {tolerance:.2g}. Give {name} more passes, or solve directly with LSTD"
        worse = " That is further off than the value 0 everywhere: use smaller steps, or average=True."
        return (
            f"Spent its budget of {passes}: {residual}{missed}.{worse if self.residual > 1.0 else ''}{self._uneven()}"
        )

    def _uneven(self) -> str:
        """Advice where columns differ so much in size that the steps suit only the largest."""
        if math.isnan(self.residual) or self.residual < 1e-3:
            return ""
        sizes = self.run.rows.column_peaks()
        small = sizes[sizes > 0]
        if not len(small) or small.max() <= UNEVEN * small.min():
            return ""
        return (
            f" Feature {int(sizes.argmax())} is {small.max() / small.min():.1g} times as large as the smallest, and "
            'steps that are safe for it are tiny for the others: scale the columns alike, or leave steps at "auto".'
        )
