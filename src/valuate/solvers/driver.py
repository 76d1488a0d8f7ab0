"""The one driver of all stochastic methods: epochs cut into chunks of rows, measured and watched in between."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from valuate import theory
from valuate._kernels import loop
from valuate.solution import Status
from valuate.solvers import sampling, scaling, steps
from valuate.solvers.averaging import TailMean
from valuate.solvers.directions import DIRECTIONS, Maxima
from valuate.solvers.points import point_for
from valuate.solvers.request import Request, require_problem
from valuate.solvers.watch import Watch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.problem import Problem
    from valuate.solution import Solution

    Vector = NDArray[np.float64]

#: Rows of a chunk: their order fits in cache, and a run that diverges is seen after so many steps at most.
CHUNK = 1 << 15
#: Steps between two points of an average, at least; where looking at a point costs more, so many of its coordinates.
SPACING = 1024
#: Steps that decay are whole for this share of a pass, or of a shorter budget, and are made smaller by this factor at a
#: time.
AT_FULL, SHRUNK = 0.1, 0.8
#: Steps that were chosen here and prove too large are divided by this, so many times at most.
SMALLER, RETRIES = 4.0, 6


class Reference(Enum):
    """What a step compares a row's gradient with."""

    NOTHING = "nothing"
    ANCHOR = "anchor"
    MEMORY = "memory"


@dataclass(frozen=True, slots=True)
class Epoch:
    """A plan: how many rows the mean is taken over, and how many steps follow."""

    mean_rows: int
    steps: int


class Method(Protocol):
    """What the driver needs of a method."""

    reference: Any
    direction: Any
    sampling: Any
    average: Any
    decay: Any
    is_automatic: Any
    step_theta: Any
    step_omega: Any

    def plan(self, n_rows: int, epoch: int, rng: np.random.Generator) -> Epoch:
        """The plan of an epoch."""


class Run:
    """One run: the base point, the moving point, and what has been spent."""

    def __init__(self, method: Method, problem: Problem, request: Request) -> None:
        self.problem, self.request = problem, request
        self.rng: np.random.Generator = request.seed
        self.theta, self.omega = request.start(problem)
        self.method, self.columns = scaling.columns(method, problem)
        #: The problem in the columns in which steps are taken: theta and omega are its weights once the run goes.
        self.inner = self.columns.problem
        self.rows = self.inner.rows
        self.direction = DIRECTIONS[method.direction]
        self.row_visits = self.epoch = 0
        self.setup_visits = self.columns.visits
        self.limit = None if request.epochs is not None else round(request.passes * problem.n_rows)
        #: The same rows in the memory that steps like.
        self.stepped = self.rows
        #: Rows that stand for all where these would cost too much to look at; None where they do not.
        self.sample: sampling.Sample | None = None
        self.reference: Any = loop.Fixed(1.0 if method.reference is Reference.NOTHING else 0.0)
        self.point: Any = None
        self.average = self._no_average()
        #: How far apart its windows are.
        self._distances: sampling.Distances | None = None
        self.spacing = max(SPACING, problem.dim // 64 * 4) if method.average or method.decay > 0 else CHUNK
        #: Whether the batch has stopped growing: until then noise does not mean that a run has stalled.
        self.settled, self._last_mean = True, 0
        #: Whether the steps were chosen here, and how often they have been made smaller since.
        self.chosen, self.retries = method.is_automatic, 0
        self._next_row, self._share, self._factor = 0, 1.0, 1.0
        self.watch = Watch(self)
        self.theta, self.omega = self.columns.inside(self.theta), self.columns.inside(self.omega)

    def go(self) -> Solution:
        """Run to the end of the budget, or until the watch has a reason to stop."""
        if not self.rows.any_reward():
            return self.watch.at_zero("every reward is 0")
        self._look_at_some()
        self._choose_steps()
        self._set_out()
        ended = self.watch.begin()
        while self._goes_on(ended):
            plan = self._plan()
            self.settled = plan.mean_rows <= self._last_mean
            self._last_mean, before = plan.mean_rows, self.row_visits
            # What an epoch has learnt is what its batch knows, however many steps follow.
            self._share = plan.mean_rows / plan.steps if plan.mean_rows and plan.steps else 1.0
            ended = self._take_mean(plan.mean_rows) or self._take_steps(plan.steps)
            if ended is None:
                # An epoch that the budget has cut is looked at like any other, but does not count as finished.
                self.epoch += self.row_visits - before == plan.mean_rows + plan.steps
                ended = self.watch.epoch_ended()
        return self.watch.finish(ended)

    def position(self) -> tuple[Vector, Vector]:
        """Where the run is now."""
        if self.point is None:
            return self.theta, self.omega
        x, y = self.point.read()
        return self.theta + x, self.omega + y

    def answer(self) -> tuple[Vector, Vector]:
        """What the run would answer now: where it is, or the mean of where it was."""
        theta, omega = self.position()
        if self.average is not None and self.average.weight:
            if self._distances is None:
                self._distances = sampling.Distances(self.inner)
                self.setup_visits += len(self._distances.order)
            theta, *more = self.average.best(self._distances.image)
            omega = more[0] if more else omega
        return self.columns.outside(theta), self.columns.outside(omega)

    def _no_average(self) -> TailMean | None:
        return TailMean(1 + self.direction.moves_omega, self.problem.dim) if self.method.average else None

    def _look_at_some(self) -> None:
        """Take a sample of the rows, where the budget is small and they may stand for the others."""
        count = sampling.size(self.inner, self.limit)
        if count:
            sample = sampling.Sample.of(self.inner, count)
            self.setup_visits += len(sample.order)
            self.sample = sample if sample.typical else None

    def _maxima(self) -> Maxima:
        if self.sample is not None:
            return self.sample.maxima
        self.setup_visits += self.rows.n_rows
        return Maxima.of(self.inner)

    def _choose_steps(self) -> None:
        given = {"step_theta": self.method.step_theta, "step_omega": self.method.step_omega}
        if given["step_theta"] == "theory":
            found = steps.theory_steps(self.method, self.inner)
            self.setup_visits += theory.PASSES * self.rows.n_rows
            self.method = replace(self.method, **dict(zip(given, found, strict=True)))
        elif not self.chosen and given["step_omega"] == "auto":  # omega stays where it is, whatever its step
            self.method = replace(self.method, step_omega=given["step_theta"])
        elif self.chosen:
            safe = dict(zip(given, self.direction.steps(self._maxima()), strict=True))
            chosen = {name: safe[name] if value == "auto" else value for name, value in given.items()}
            self.method = replace(self.method, **chosen)

    def _shrink(self) -> None:
        """Make the steps of a method whose steps decay as small as they should be by now."""
        whole = self.rows.n_rows if self.limit is None else min(self.rows.n_rows, self.limit)
        wanted = (self.row_visits / (AT_FULL * whole)) ** -self.method.decay
        if wanted < SHRUNK * self._factor:
            self._factor = wanted
            self.theta, self.omega = self.position()
            self._set_out()

    def _set_out(self) -> None:
        """Put a moving point where the run stands."""
        kernel = self.direction.for_kernels(
            self._factor * float(self.method.step_theta),
            self._factor * float(self.method.step_omega),
            self.inner.ridge,
        )
        self.stepped = self.rows.for_steps(np.inf if self.limit is None else self.limit)
        self.point = point_for(self.stepped, kernel, single=self.method.reference is Reference.ANCHOR)
        if self.method.reference is Reference.NOTHING:
            # Without a reference there is no point to be displaced from: the moving point is the whole of it.
            self.point.place(self.theta, self.omega)
            self.theta, self.omega = np.zeros_like(self.theta), np.zeros_like(self.omega)
        elif self.method.reference is Reference.MEMORY:
            self.reference = None  # filled at the first mean

    def _goes_on(self, ended: Status | None) -> bool:
        if ended is Status.DIVERGED and self.chosen and self.retries < RETRIES and self._has_budget():
            self.retries += 1
            self.method = replace(self.method, **self._smaller())
            self.theta, self.omega = self.watch.go_back()
            self.average = self._no_average()
            self._set_out()
            return True
        return ended is None and self._has_budget()

    def _smaller(self) -> dict[str, float]:
        """Steps in the place of those that proved too large: safe for all rows, where only some were looked at."""
        names = ("step_theta", "step_omega")
        smaller = {name: getattr(self.method, name) / SMALLER for name in names}
        if self.sample is None:
            return smaller
        self.sample = None
        safe = dict(zip(names, self.direction.steps(self._maxima()), strict=True))
        return {name: min(smaller[name], safe[name]) for name in names}

    def _plan(self) -> Epoch:
        plan = self.method.plan(self.rows.n_rows, self.epoch, self.rng)
        # A memory is lost when a run goes back.
        return Epoch(self.rows.n_rows, plan.steps) if self.reference is None else plan

    def _has_budget(self) -> bool:
        if self.limit is None:
            return self.epoch < int(self.request.epochs)
        return bool(self.row_visits < self.limit)

    def _room(self, wanted: int) -> int:
        return wanted if self.limit is None else min(wanted, self.limit - self.row_visits)

    def _take_mean(self, wanted: int) -> Status | None:
        """Take the mean gradient where the run stands and make that point the reference."""
        if wanted == 0:
            return None
        count = self._room(wanted)
        self.theta, self.omega = self.position()
        self.point.place(None, None)
        order = None if count == self.rows.n_rows else self._batch(count)
        mean = self.direction.mean(self.inner, self.theta, self.omega, order)
        self.row_visits += count
        self.point.drift(*mean)
        if self.method.reference is Reference.MEMORY:
            self.reference = loop.Memory(np.zeros((self.rows.n_rows, 2)), 1.0 / self.rows.n_rows)
        return self.watch.met_mean(mean)

    def _take_steps(self, wanted: int) -> Status | None:
        left, since = self._room(wanted), 0
        while left > 0:
            # Where points are averaged or steps decay lies fast, whatever is recorded in between.
            size = min(left, self.spacing - since, CHUNK, self.watch.until_next_point())
            order = self._draw(size)
            view, local = self.stepped.chunk(order)
            pulled = self.point.advance(view, self.reference, local, order)
            self.row_visits += size
            left, since = left - size, since + size
            if since == self.spacing or left == 0:
                self._mark(since, ends=left == 0 or self.method.reference is not Reference.ANCHOR)
                since = 0
            ended = self.watch.moved(pulled, size if self.method.reference is not Reference.ANCHOR else 0)
            if ended is not None:
                return ended
        return None

    def _mark(self, steps: int, *, ends: bool) -> None:
        """Take the point into the average, and let the steps decay, after so many more steps."""
        if self.average is not None:
            point = np.array(self.position()[: len(self.average.total)])
            self.average.add(steps * self._share, point, ends=ends)
        if self.method.decay > 0:
            self._shrink()

    def _batch(self, size: int) -> NDArray[np.int32]:
        """The rows of a mean."""
        return self.rows.subset(size, self.rng) if self.method.sampling == "random" else self._following(size)

    def _draw(self, size: int) -> NDArray[np.int32]:
        """The rows of the next steps."""
        if self.method.sampling == "log" and self.method.reference is Reference.NOTHING:
            return self._following(size)
        return self.rng.integers(0, self.rows.n_rows, size=size, dtype=np.int32)

    def _following(self, size: int) -> NDArray[np.int32]:
        """The next rows of the log, and its first again after its last."""
        order = np.arange(self._next_row, self._next_row + size) % self.rows.n_rows
        self._next_row = int(order[-1]) + 1
        return order.astype(np.int32)


def run(method: Any, problem: Problem, request: Request) -> Solution:
    """Run ``method`` on ``problem``; the body of every stochastic ``solve``."""
    require_problem(problem)
    # What overflows on the way shows as a status, not as a warning of NumPy's.
    with np.errstate(over="ignore", invalid="ignore"):
        return Run(method, problem, request).go()
