"""The mean of a run's points over its last four fifths, known at any time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

#: Points before this share of the steps are left out.
SKIPPED = 0.2
#: Sums are kept at numbers of steps that grow by this factor, so that what is left out is known to within it.
GROWTH = 1.2


class TailMean:
    """Weighted sums of points, and those of a few earlier moments, to be taken off.

    A point stands for the steps that led to it: points are looked at every so many steps, far fewer than a run takes
    to forget where it was.
    """

    def __init__(self, dim: int) -> None:
        self.total, self.weight = np.zeros((2, dim)), 0.0
        self._kept: list[tuple[float, NDArray[np.float64]]] = [(0.0, self.total.copy())]

    def add(self, weight: float, theta: Vector, omega: Vector) -> None:
        """Take in a point that stands for so many steps."""
        self.total[0] += weight * theta
        self.total[1] += weight * omega
        self.weight += weight
        if self.weight >= GROWTH * self._kept[-1][0]:
            self._kept.append((self.weight, self.total.copy()))
        while len(self._kept) > 1 and self._kept[1][0] <= SKIPPED * self.weight:
            del self._kept[0]

    def mean(self) -> tuple[Vector, Vector]:
        """The mean of theta and of omega; there must be a point."""
        first, before = self._kept[0]
        theta, omega = (self.total - before) / (self.weight - first)
        return theta, omega
