"""The clock of a run."""

from __future__ import annotations

import time

from valuate._kernels.compiled import seconds_compiling


class Clock:
    """Seconds of a run. It can be paused while something only measures, and does not run while kernels compile."""

    def __init__(self) -> None:
        self.started, self.paused = self._now(), 0.0

    @staticmethod
    def _now() -> float:
        return time.perf_counter() - seconds_compiling()

    @property
    def seconds(self) -> float:
        """Seconds since the start, without pauses."""
        return max(0.0, self._now() - self.started - self.paused)

    def __enter__(self) -> None:
        self._since = self._now()

    def __exit__(self, *_: object) -> None:
        self.paused += self._now() - self._since
