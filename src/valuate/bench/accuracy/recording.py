"""One clock for everyone: it runs while a solver works, and stands still while a point is measured."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from valuate.bench.accuracy.yardstick import ACCURACIES, Measured, Yardstick

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Reached:
    """The first point of a run that had an accuracy.

    Attributes
    ----------
    seconds : float
        Until the point was known: without building the problem.
    relative_residual, ratio : float
        See `Measured`.
    passes : float or None
        Over the rows, as the solver counts.
    theta : (dim,) array
        The point itself; not written to files.
    """

    seconds: float
    relative_residual: float
    ratio: float
    passes: float | None
    theta: Vector = field(repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Without the point."""
        return {name: getattr(self, name) for name in ("seconds", "relative_residual", "ratio", "passes")}


class Recorder:
    """The clock of one run, and the first points that had each accuracy.

    Parameters
    ----------
    yardstick : Yardstick
    limit : float
        Seconds after which the run is told to stop.

    Attributes
    ----------
    reached : dict
        By name of the accuracy.
    last : Measured
        The last point.
    seconds : float
        When it was known.
    """

    def __init__(self, yardstick: Yardstick, limit: float = math.inf) -> None:
        self.yardstick, self.limit = yardstick, limit
        self.reached: dict[str, Reached] = {}
        self.last: Measured = yardstick.at_zero
        self.seconds = 0.0
        self._paused, self._offset, self._inner = 0.0, 0.0, math.inf
        self._started = time.perf_counter()

    def start(self) -> None:
        """Set the clock to 0."""
        self._paused, self._started = 0.0, time.perf_counter()

    def now(self) -> float:
        """Seconds since the start, without pauses."""
        return time.perf_counter() - self._started - self._paused

    @contextmanager
    def paused(self) -> Iterator[None]:
        """The clock stands still."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self._paused += time.perf_counter() - began

    def look(
        self, theta: Vector, *, seconds: float | None = None, passes: float | None = None, only: str | None = None
    ) -> bool:
        """Measure a point, off the clock; whether to stop: it has every accuracy, or time is up.

        ``only`` names the one accuracy that counts, where the run was for that.
        """
        self.seconds = self.now() if seconds is None else seconds
        with self.paused():
            self.last = found = self.yardstick.measure(theta)
            for accuracy in ACCURACIES:
                if only in (None, accuracy.name) and accuracy.name not in self.reached and accuracy.met(found):
                    self.reached[accuracy.name] = Reached(
                        self.seconds, found.relative_residual, found.ratio, passes, theta.copy()
                    )
        return self.finished

    def watch(self, progress: Any) -> bool:
        """The same as a callback of our solvers, whose own clock stands still while they prepare the point for it.

        What came before that clock was started, such as a scaled copy, is added.
        """
        if progress.seconds < self._inner:
            self._offset = max(0.0, self.now() - progress.seconds)
        self._inner = progress.seconds
        return self.look(progress.theta, seconds=self._offset + progress.seconds, passes=progress.passes)

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to wait for."""
        return len(self.reached) == len(ACCURACIES) or self.seconds > self.limit
