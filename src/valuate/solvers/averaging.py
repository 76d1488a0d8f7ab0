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
GROWTH = 1.12
#: A mean begins at the very start or leaves out between these shares of the run.
EARLIEST, LATEST = 0.04, 0.9
#: The mean and the noise of the later part of the run, from this share on, are what windows are held against.
LATER = 0.5
#: So many stretches tell what noise is, at least.
STRETCHES = 3
#: The means of two windows differ by more than noise where their squared distance is this many times what noise makes.
CAUTION = 1.5
#: What stretches show beside their neighbours is known less well than what they show together, and taken so many times.
DOUBT = 2.0


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
    the start, which grows with it. The noise is v / length, with v from how much stretches of the later half of the run
    differ. The bias of a window is at least what its mean is away from the mean of a later one,
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
    noise = _noise(shares, means) / lengths
    errors = noise.copy()
    for k in range(len(shares) - 1):
        away = np.square(means[k + 1 :] - means[k]).sum(axis=1)
        errors[k] += max(0.0, float((away - CAUTION * (noise[k + 1 :] - noise[k])).max()))
    return int(np.argmin(np.where(np.isfinite(errors), errors, np.inf)))


def _noise(shares: Vector, means: Matrix) -> float:
    """The squared noise of a mean over the whole run, from stretches of its later part.

    How much these differ from their common mean counts a drift as noise; how much each differs from the line through
    its two neighbours does not, but is known less well. Of the two, with that doubt, the smaller holds.
    """
    lengths, edges = 1.0 - shares, np.append(shares, 1.0)
    sums = np.vstack([lengths[:, None] * means, np.zeros((1, means.shape[1]))])
    first = max(0, min(int(np.searchsorted(shares, LATER, side="right")) - 1, len(shares) - STRETCHES))
    pieces = np.diff(edges)[first:]
    stretches = (sums[first:-1] - sums[first + 1 :]) / pieces[:, None]
    spread = np.square(stretches - sums[first] / lengths[first]).sum(axis=1)
    together = float(pieces @ spread) / max(1, len(pieces) - 1)
    if len(pieces) < STRETCHES:
        return together
    middles = edges[first:-1] + pieces / 2
    left = (middles[2:] - middles[1:-1]) / (middles[2:] - middles[:-2])
    off = stretches[1:-1] - left[:, None] * stretches[:-2] - (1 - left)[:, None] * stretches[2:]
    made = 1 / pieces[1:-1] + left**2 / pieces[:-2] + (1 - left) ** 2 / pieces[2:]
    return min(together, DOUBT * float(np.mean(np.square(off).sum(axis=1) / made)))
