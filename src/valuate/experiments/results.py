"""Finished runs by experiment and cell, and what can be said of a number of runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Curve", "Results", "Spread", "curve", "spread"]

Record = dict[str, Any]
Vector = NDArray[np.float64]


class Results:
    """The finished runs among the records of a store."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._found: dict[tuple[str, str], dict[int, Record]] = {}
        self.failed: dict[tuple[str, str, int], str] = {}
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Take in a record; a finished run takes back an earlier failure."""
        if record["kind"] not in ("run", "failed"):
            return
        key = record["experiment"], record["cell"], record["run"]
        if record["kind"] == "failed":
            if key[2] not in self._found.get(key[:2], {}):
                self.failed[key] = record["reason"]
            return
        self.failed.pop(key, None)
        self._found.setdefault(key[:2], {})[key[2]] = record

    def __contains__(self, key: tuple[str, str, int]) -> bool:
        return key[2] in self._found.get(key[:2], {})

    def of(self, experiment: str, cell: str) -> list[Record]:
        """The records of a cell, by run; empty where there are none."""
        found = self._found.get((experiment, cell), {})
        return [found[index] for index in sorted(found)]

    def cells(self, experiment: str) -> list[str]:
        """Names of the cells of an experiment that have runs, in the order of their first record."""
        return [cell for name, cell in self._found if name == experiment]

    def all(self) -> list[Record]:
        """Every finished run."""
        return [record for group in self._found.values() for record in group.values()]


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and standard deviation of ``count`` runs; the deviation is None where it is not known."""

    mean: float
    sd: float | None
    count: int


def spread(values: ArrayLike) -> Spread:
    """Mean and sample standard deviation; None for the deviation of a single value."""
    array = np.asarray(values, dtype=np.float64)
    return Spread(float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else None, len(array))


@dataclass(frozen=True, slots=True)
class Curve:
    """MSPBE along runs: at each place the mean over the runs, and their least and most."""

    x: Vector
    mean: Vector
    low: Vector
    high: Vector


def curve(records: Sequence[Record], axis: str) -> Curve | None:
    """The runs of a cell along a column of the trace, "passes" or "epoch"; None where nothing was recorded.

    Runs that were recorded at the same places are averaged there; others at the places of the first, each by its
    straight line between points. A curve ends where the first run does.
    """
    traces = [(np.array(r["trace"].get(axis, [])), np.array(r["trace"].get("mspbe", []))) for r in records]
    traces = [pair for pair in traces if len(pair[0])]
    if not traces:
        return None
    shortest = min(x[-1] for x, _ in traces)
    x = traces[0][0][traces[0][0] <= shortest + 1e-9]
    values = np.array([np.interp(x, places, mspbe) for places, mspbe in traces])
    return Curve(x, values.mean(axis=0), values.min(axis=0), values.max(axis=0))
