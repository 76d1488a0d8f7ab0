"""Taking turns at the clock."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Samples = dict[str, list[float]]


class NotHere(Exception):
    """What a measurement needs is not on this machine; the message says what, and the line is skipped."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What a measurement found.

    Parameters
    ----------
    samples : dict of lists
        By name: first ours, then what it is held against, then whatever is worth seeing beside.
    unit : str
        Of the samples.
    value : float, optional
        What is judged, where it is not the ratio of the first two.
    notes : list of str
        What else a reader should know.
    """

    samples: Samples
    unit: str = "ns"
    value: float | None = None
    notes: list[str] = field(default_factory=list)


def clocked(run: Callable[[Any], object], prepare: Callable[[], Any], steps: int) -> Callable[[], float]:
    """A sampler: ``run(prepare())``, in nanoseconds a step, of which only ``run`` is on the clock."""

    def sample() -> float:
        work = prepare()
        started = time.perf_counter_ns()
        run(work)
        return (time.perf_counter_ns() - started) / steps

    return sample


def interleaved(samplers: dict[str, Callable[[], float]], rounds: int) -> Samples:
    """One sample of each in turn, ``rounds`` times over, after one of each that compiles, loads and is forgotten."""
    for sampler in samplers.values():
        sampler()
    samples: Samples = {name: [] for name in samplers}
    for _ in range(rounds):
        for name, sampler in samplers.items():
            samples[name].append(sampler())
    return samples
