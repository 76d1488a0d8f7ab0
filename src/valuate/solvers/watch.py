"""Everything that looks at a run without moving it: trace points, tolerance, divergence, the closing message."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from valuate.solution import Solution, Status, Trace
from valuate.solvers.clock import Clock
from valuate.solvers.remarks import remarks
from valuate.solvers.request import Progress

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
#: A run has stalled when the best residual has not improved for so many passes, and for so many row visits: a saddle
#: point is approached in circles, and a circle may take many passes over a few rows.
PATIENCE, CIRCLE = 20, 10_000
#: An improvement smaller than this share is none.
IMPROVEMENT = 1e-3


class Watch:
    """Observes a `Run`; every method that returns a `Status` gives the reason to stop, or None."""

    def __init__(self, run: Run) -> None:
        self.run, self.request = run, run.request
        self.problem, self.n_rows = run.problem, run.problem.n_rows
        self.clock = Clock()
        self.every = self.request.record if isinstance(self.request.record, float) else None
        self.points: list[tuple[int, int, float, float]] = []
        self.next_point: float = math.inf
        self.checked_at = 0
        #: Best point that was measured: its measure (tolerance: residual, else MSPBE) and a copy of it.
        self.best: tuple[float, Vector, Vector] = (math.inf, run.theta.copy(), run.omega.copy())
        self.start = self.best[1]
        #: The point with the smallest mean gradient, and the size of the first one.
        self.least, self.first_mean = self.best, math.inf
        #: The norm of C^-1 is worth its cost where it was asked for, and out of reach where dim is large.
        asked = self.request.tolerance is not None or self.request.record is not None
        self.exact = asked and self.problem.measures_exactly
        self.stopped = False
        self.mark, self.marked_at = math.inf, 0
        self.began: float | None = None
        self.residual = math.nan
        self.bound = math.inf

    def begin(self) -> Status | None:
        """Look at the starting point."""
        run = self.run
        self.bound = OVERFLOW[4 if run.rows.dtype.itemsize == 4 else 8]
        ended = self._record() if self.request.record is not None else None
        if ended is None and self.request.tolerance is not None:
            ended = self._check()
        return ended

    def moved(self, pulled: float) -> Status | None:
        """After a chunk of steps, or a mean."""
        if not pulled < self.bound:
            return Status.DIVERGED
        if self.run.row_visits >= self.next_point:
            return self._record()
        return None

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
        _, theta, omega = self.least if math.isfinite(self.least[0]) else self.best
        return theta.copy(), omega.copy()

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
            self.residual = self._measure(theta)
            if self.request.tolerance is not None and self.residual <= self.request.tolerance:
                ended = Status.CONVERGED
            elif self._has_grown():
                ended = Status.DIVERGED
        if ended in (Status.DIVERGED, Status.STALLED):
            _, theta, omega = self.best
            self.residual = self._measure(theta)
        if not self.problem.b.any():
            return self.at_zero("b = 0")
        status = ended or Status.BUDGET_SPENT
        return self._solution(status, theta, omega, self._message(status) + remarks(self.problem), seconds)

    def at_zero(self, why: str) -> Solution:
        """The answer where b = 0."""
        zero = np.zeros(self.problem.dim)
        self.residual = 0.0
        message = f"Converged at zero: {why}, so the value is 0 everywhere."
        return self._solution(Status.CONVERGED, zero, zero.copy(), message, self.clock.seconds)

    def _record(self) -> Status | None:
        run = self.run
        seconds = self.clock.seconds
        with self.clock:
            theta, omega = run.answer()
            finite = bool(np.isfinite(theta).all())
            mspbe = self.problem.mspbe(theta) if finite else math.inf
            if mspbe < math.inf:
                self.points.append((run.epoch, run.row_visits, seconds, mspbe))
            if self.request.tolerance is None:
                self._keep(mspbe, theta, omega)
            if self.every is not None:
                step = self.every * self.n_rows
                self.next_point = step * (math.floor(run.row_visits / step * (1 + 1e-12)) + 1)
        if not mspbe < math.inf:
            return Status.DIVERGED
        return self._call(mspbe)

    def _call(self, mspbe: float | None) -> Status | None:
        if self.request.callback is None:
            return None
        run = self.run
        seconds = self.clock.seconds
        with self.clock:
            visits = run.row_visits
            stop = self.request.callback(
                Progress(run.epoch, visits, visits / self.n_rows, seconds, *run.answer(), mspbe)
            )
        if stop:
            self.stopped = True
            return Status.BUDGET_SPENT
        return None

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
        fruitless = self.run.row_visits - self.marked_at
        return Status.STALLED if fruitless >= max(PATIENCE * self.n_rows, CIRCLE) else None

    def _keep(self, measure: float, theta: Vector, omega: Vector) -> None:
        if measure < self.best[0]:
            self.best = (measure, theta, omega)

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

    def _message(self, status: Status) -> str:
        run, tolerance = self.run, self.request.tolerance
        passes = f"{run.row_visits / self.n_rows:.4g} passes"
        norm = "C^-1" if self.exact else "diag(C)^-1"
        residual = f"relative residual {self.residual:.2g} in the norm of {norm}"
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
            fruitless = (run.row_visits - self.marked_at) / self.n_rows
            return (
                f"Stalled after {passes} with {sizes}: the best {residual} has not "
                f"improved for {fruitless:.3g} passes and is above the tolerance {tolerance:.2g}. "
                "Divide the steps by 10, or use a method whose noise vanishes (SVRG, SAGA, BatchingSVRG, LSTD)."
            )
        if self.stopped:
            return f"Stopped by the callback after {passes}: {residual}."
        missed = ""
        if tolerance is not None:
            missed = f", above the tolerance {tolerance:.2g}. Give {name} more passes, or solve directly with LSTD"
        return f"Spent its budget of {passes}: {residual}{missed}."

    def _solution(self, status: Status, theta: Vector, omega: Vector, message: str, seconds: float) -> Solution:
        run = self.run
        epoch, visits, clock, mspbe = zip(*self.points, strict=True) if self.points else ((), (), (), ())
        return Solution(
            theta=theta,
            omega=omega,
            status=status,
            message=message,
            solver=run.method,
            relative_residual=self.residual,
            row_visits=run.row_visits,
            setup_visits=run.setup_visits,
            passes=run.row_visits / self.n_rows,
            epochs=run.epoch,
            seconds=seconds,
            trace=Trace(
                np.array(epoch, np.int64),
                np.array(visits, np.int64),
                np.array(visits, float) / self.n_rows,
                np.array(clock, float),
                np.array(mspbe, float),
            ),
            tolerance=self.request.tolerance,
        )
