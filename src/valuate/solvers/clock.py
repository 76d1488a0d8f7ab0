"""The clock of a run."""

from __future__ import annotations

import time


class Clock:
    """Seconds of a run, which can be paused while something only measures."""

    def __init__(self) -> None:
        self.started, self.paused = time.perf_counter(), 0.0

    @property
    def seconds(self) -> float:
        """Seconds since the start, without pauses."""
        return time.perf_counter() - self.started - self.paused

    def __enter__(self) -> None:
        self._since = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.paused += time.perf_counter() - self._since
