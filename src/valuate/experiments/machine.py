"""What the experiments run on, and how long a gradient takes there the way the authors wrote it."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from valuate._threads import thread_count

#: Seconds spent on measuring one size.
SECONDS = 0.3


def describe() -> dict[str, Any]:
    """Processor, cores, memory and system, as far as they can be told."""
    return {
        "cpu": _cpu(),
        "cores": thread_count(),
        "memory_gigabytes": _memory(),
        "system": platform.platform(),
        "python": platform.python_version(),
    }


def authors_way(dims: Iterable[int]) -> dict[str, float]:
    """Seconds of one gradient of a row by matrices, for each number of features.

    The authors form A_t, b_t and C_t of the row, (dim, dim), and multiply by them. This is the least of it: nothing is
    stored and nothing looked up.
    """
    return {str(dim): _matrix_gradient(dim) for dim in dims}


def _matrix_gradient(dim: int) -> float:
    rng = np.random.default_rng(0)
    phi, following, theta, omega = rng.random((4, dim))
    times: list[float] = []
    until = time.perf_counter() + SECONDS
    while len(times) < 5 or time.perf_counter() < until:
        began = time.perf_counter()
        a_t = np.outer(phi, phi - 0.95 * following)
        c_t = np.outer(phi, phi)
        b_t = 0.5 * phi
        gradient = -a_t.T @ omega, a_t @ theta - b_t + c_t @ omega
        times.append(time.perf_counter() - began)
        assert len(gradient) == 2
    return float(np.median(times))


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30), 1)
    except (AttributeError, OSError, ValueError):
        return None
