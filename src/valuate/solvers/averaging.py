"""Means of a run's points over its later part: how long that is, the points themselves say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Sums are kept at weights that grow by this factor: where a mean may begin is known to within it.
GROWTH = 1.25
#: A mean begins at the very start or leaves out between these shares of the run.
EARLIEST, LATEST = 0.04, 0.9
#: The mean and the noise of the later part of the run, from this share on, are what windows are held against.
LATER = 0.5
#: So many stretches tell what noise is, at least.
STRETCHES = 3
#: The means of two windows differ by more than noise where their squared distance is this many times what noise makes.
CAUTION = 1.25


class TailMean:
    """Weighted sums of points, and those of a few earlier moments: the mean of the points since any of these.

    A point stands for the steps that led to it: points are looked at every so many steps, far fewer than a run takes
    to forget where it was.

    Parameters
    ----------
    parts, dim : int
        A point is theta alone, (1, dim), or theta and omega, (2, dim).
    """

    def __init__(self, parts: int, dim: int) -> None:
        self.total, self.weight = np.zeros((parts, dim)), 0.0
        self._cuts: list[tuple[float, NDArray[np.float64]]] = [(0.0, self.total.copy())]

    def add(self, weight: float, point: NDArray[np.float64], *, ends: bool = True) -> None:
        """Take in a point that stands for so many steps.

        A mean may begin behind a point that ``ends`` a stretch whose noise is its own: the steps of an epoch share the
        noise of their batch.
        """
        self.total += weight * point
        self.weight += weight
        if ends and self.weight >= GROWTH * self._cuts[-1][0]:
            self._cuts.append((self.weight, self.total.copy()))
        while len(self._cuts) > 2 and self._cuts[1][0] <= EARLIEST * self.weight:
            del self._cuts[1]

    def windows(self) -> tuple[Vector, NDArray[np.float64]]:
        """Shares of the run that are left out, rising from 0, and the mean of what follows each; there is a point."""
        cuts = [cut for cut in self._cuts if cut[0] <= LATEST * self.weight]
        starts = np.array([start for start, _ in cuts])
        means = np.array([(self.total - before) / (self.weight - start) for start, before in cuts])
        return starts / self.weight, means

    def best(self, image: Callable[[NDArray[np.float64]], Matrix]) -> NDArray[np.float64]:
        """The mean over the window that `choose` takes for theta: (parts, dim).

        Parameters
        ----------
        image : callable
            From (k, dim) thetas to (k, m) numbers: a linear map into a space in which a squared length is what counts.
        """
        shares, means = self.windows()
        return np.asarray(means[choose(shares, image(means[:, 0])) if len(shares) > 1 else 0])


def choose(shares: Vector, means: Matrix) -> int:
    """Which of several windows of one run, all of which reach to its end, has the mean with the least expected error.

    The error of a mean is its noise, which falls as the window grows, and its bias, from points that still remember
    the start, which grows with it. Noise is known from how much means of stretches of the later half of the run differ
    from each other: v / length. The bias of a window is at least what its mean is away from the mean of a later one,
    beyond what noise explains: v (1 / later length - 1 / length). Taken is the window for which the largest such excess
    and the noise add up to the least: the rule of Lepski (1991), in the form of Goldenshluger and Lepski (2011).

    Parameters
    ----------
    shares : (k,) array
        Of the run that each window leaves out, rising from 0.
    means : (k, m) array
        In a space in which a squared length is what counts.
    """
    lengths = 1.0 - shares
    edges = np.append(shares, 1.0)
    sums = np.vstack([lengths[:, None] * means, np.zeros((1, means.shape[1]))])
    pieces = np.diff(edges)
    stretches = (sums[:-1] - sums[1:]) / pieces[:, None]
    first = max(0, min(int(np.searchsorted(shares, LATER, side="right")) - 1, len(shares) - STRETCHES))
    later = sums[first] / lengths[first]
    spread = np.square(stretches[first:] - later).sum(axis=1)
    noise = float(pieces[first:] @ spread) / max(1, len(shares) - first - 1) / lengths
    errors = noise.copy()
    for k in range(len(shares) - 1):
        away = np.square(means[k + 1 :] - means[k]).sum(axis=1)
        errors[k] += max(0.0, float((away - CAUTION * (noise[k + 1 :] - noise[k])).max()))
    return int(np.argmin(np.where(np.isfinite(errors), errors, np.inf)))
