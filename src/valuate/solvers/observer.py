"""What looks at any run without moving it: the clock, trace points, callbacks, the tolerance's norm, the answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from valuate.errors import InputTypeError
from valuate.solution import Solution, Status, Trace
from valuate.solvers.clock import Clock
from valuate.solvers.request import Progress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.problem import Problem
    from valuate.solvers.request import Request

    Vector = NDArray[np.float64]


def settled_at_zero(problem: Any, why: str) -> tuple[Status, str]:
    """How a run ends that has nothing to solve, and the sentence."""
    if hasattr(problem, "rows") and not problem.rows.ratio_sums()[0] > 0:
        return Status.SINGULAR, (
            "Not determined: the ratios are 0 in every row, so that none counts. The policy never does what was "
            "logged, and the log says nothing of its values."
        )
    return Status.CONVERGED, f"Converged at zero: {why}, so the value is 0 everywhere."


class Observed(Protocol):
    """What an observer sees of a run."""

    problem: Problem
    request: Request
    method: Any
    theta: Vector
    omega: Vector
    setup_visits: int
    epoch: int

    @property
    def row_visits(self) -> int:
        """Visits of the budget so far."""

    def answer(self) -> tuple[Vector, Vector]:
        """What the run would answer now."""


class Observer:
    """Observes a run; every method that returns a `Status` gives the reason to stop, or None."""

    def __init__(self, seen: Observed) -> None:
        self.seen, self.request = seen, seen.request
        self.problem, self.n_rows = seen.problem, seen.problem.n_rows
        self.clock = Clock()
        self.every = self.request.record if isinstance(self.request.record, float) else None
        self.points: list[tuple[int, int, float, float]] = []
        self.next_point: float = math.inf
        #: Best point that was measured: its measure (tolerance: residual, else MSPBE) and a copy of it.
        self.best: tuple[float, Vector, Vector] = (math.inf, seen.theta.copy(), seen.omega.copy())
        #: The norm of C^-1 is worth its cost where it was asked for, and out of reach where dim is large.
        asked = self.request.tolerance is not None or self.request.record is not None
        self.exact = asked and self.problem.measures_exactly
        self.stopped = False
        self.residual = math.nan

    def at_zero(self, why: str) -> Solution:
        """The answer where b = 0."""
        zero = np.zeros(self.problem.dim)
        self.residual = 0.0
        status, message = settled_at_zero(self.problem, why)
        return self._solution(status, zero, zero.copy(), message, self.clock.seconds)

    def _record(self) -> Status | None:
        seen = self.seen
        seconds = self.clock.seconds
        with self.clock:
            theta, omega = seen.answer()
            finite = bool(np.isfinite(theta).all())
            mspbe = self.problem.mspbe(theta) if finite else math.inf
            if mspbe < math.inf:
                self.points.append((seen.epoch, seen.row_visits, seconds, mspbe))
            if self.request.tolerance is None:
                self._keep(mspbe, theta, omega)
            if self.every is not None:
                step = self.every * self.n_rows
                self.next_point = step * (math.floor(seen.row_visits / step * (1 + 1e-12)) + 1)
        if not mspbe < math.inf:
            return Status.DIVERGED
        return self._call(mspbe)

    def _call(self, mspbe: float | None) -> Status | None:
        if self.request.callback is None:
            return None
        seen = self.seen
        seconds = self.clock.seconds
        with self.clock:
            visits = seen.row_visits
            stop = self.request.callback(
                Progress(seen.epoch, visits, visits / self.n_rows, seconds, *seen.answer(), mspbe)
            )
        if _is_true(stop):
            self.stopped = True
            return Status.BUDGET_SPENT
        return None

    def _keep(self, measure: float, theta: Vector, omega: Vector) -> None:
        if measure < self.best[0]:
            self.best = (measure, theta, omega)

    def _found(self) -> str:
        """The relative residual and its norm, in words."""
        return f"relative residual {self.residual:.2g} in the norm of {'C^-1' if self.exact else 'diag(C)^-1'}"

    def _solution(self, status: Status, theta: Vector, omega: Vector, message: str, seconds: float) -> Solution:
        seen = self.seen
        epoch, visits, clock, mspbe = zip(*self.points, strict=True) if self.points else ((), (), (), ())
        return Solution(
            theta=theta,
            omega=omega,
            status=status,
            message=message,
            solver=seen.method,
            relative_residual=self.residual,
            row_visits=seen.row_visits,
            setup_visits=seen.setup_visits,
            passes=seen.row_visits / self.n_rows,
            epochs=seen.epoch,
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


def _is_true(answer: object) -> bool:
    """What a callback answered, as yes or no."""
    try:
        return bool(answer)
    except (TypeError, ValueError):
        raise InputTypeError(
            f"callback must answer something that is true or false, not a {type(answer).__name__}."
        ) from None
