"""Episodes as sequences: sums and products along time, for all episodes at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from valuate import _checks, _columns, gathering
from valuate.episodes import Episodes
from valuate.errors import InputError, InputTypeError
from valuate.inference.clusters import Clusters

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from valuate.transitions import Transitions

    Vector = NDArray[np.float64]
    Flags = NDArray[np.bool_]
    Index = NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class Trajectories:
    """The episodes of a log, row after row in time.

    Attributes
    ----------
    rewards : (n,) array
        With the discounted value of what follows where the recording was cut short, if that was given.
    discounts : (n,) array
        Of what follows each row: 0 at the last row of an episode.
    first, last : (m,) int arrays
        Rows with which episodes begin and end.
    draws : Clusters
        Labels; one label may have several episodes.
    weights : (m,) array
        Of the episodes; 1 where there are none.
    onward : (m,) array
        Discount of what follows the last row of each episode: 0 where the process ended.
    bootstrapped : bool
        Whether the value of what follows was given for these.
    discount : float
        The largest of a row.
    """

    rewards: Vector
    discounts: Vector
    first: Index
    last: Index
    draws: Clusters
    weights: Vector
    onward: Vector
    bootstrapped: bool
    discount: float

    #: What is said of values that stand for what was cut off: where they count as exact, and where they do not.
    TAKEN_AS_EXACT: ClassVar[str] = "which the interval takes as exact: it is too short where it is not"
    COUNTED: ClassVar[str] = "whose own error is in the interval"

    @classmethod
    def read(cls, log: Transitions, discount: ArrayLike, episodes: Any, after: ArrayLike | None) -> Trajectories:
        """From a log; ``after`` are the values of the next states, by which what was cut short goes on."""
        if not hasattr(log, "indexed_states"):
            raise InputTypeError(f"log must be a Transitions, not {type(log).__name__}.")
        n = len(log)
        labels = log.episodes if episodes is None else _columns.labels(episodes, n)
        if labels is None:
            raise InputError(
                "returns need to know which rows are an episode, and this log does not. Give episodes=, one label a "
                "row. Where flags mark the last row of every episode: episodes = np.cumsum(ends) - ends with "
                "ends = log.terminated | log.truncated."
            )
        known = Episodes(labels, log.terminated | log.truncated)
        starts = known.starts()
        first = np.flatnonzero(starts)
        last = np.append(first[1:], n) - 1
        discounts = _discounts(discount, n) * ~log.terminated
        largest = float(discounts.max())
        onward = discounts[last]
        rewards = log.rewards.copy()
        if after is not None:
            values = _checks.column("the values of the next states", after, n)
            rewards[last] += onward * values[last]
        discounts[last] = 0.0
        draws = Clusters.of_episodes(known)
        weights = _weights(log.weights, first, last)
        return cls(rewards, discounts, first, last, draws, weights, onward, after is not None, largest)

    def backward(self, keep: Vector, add: Vector) -> Vector:
        """x_t = add_t + keep_t x_{t+1}, from x = 0 behind each last row: (n,)."""
        column = add[::-1].copy()[:, None]
        factors = keep[::-1].copy()
        factors[len(factors) - 1 - self.last] = 0.0
        gathering.add_traces(column, factors, np.zeros(1))
        return _finite(column[::-1, 0])

    def products(self, factors: Vector) -> Vector:
        """The product of the factors from the start of the episode to each row: (n,)."""
        column = np.zeros((len(factors), 1))
        column[self.first, 0] = factors[self.first]
        keep = factors.copy()
        keep[self.first] = 0.0
        gathering.add_traces(column, keep, np.zeros(1))
        return _finite(column[:, 0])

    def discounting(self) -> Vector:
        """What a reward of each row is worth at the start of its episode: (n,)."""
        factors = np.ones(len(self.rewards))
        factors[1:] = self.discounts[:-1]
        factors[self.first] = 1.0
        return self.products(factors)

    def steps(self) -> Index:
        """The number of each row within its episode, from 0: (n,)."""
        return np.arange(len(self.rewards)) - np.repeat(self.first, self.last - self.first + 1)

    @property
    def cut(self) -> int:
        """Episodes whose end is not in the log."""
        return int(np.count_nonzero(self.onward))

    def notes(self) -> list[str]:
        """What to say of episodes that were cut short."""
        if not self.cut:
            return []
        count = f"{self.cut:,} of {len(self.first):,} episodes were cut short"
        if self.bootstrapped:
            return [f"{count}: they go on with the model's value of their last state, {self.TAKEN_AS_EXACT}."]
        low, high = self.rewards.min(), self.rewards.max()
        bound = ": a lower bound, for no reward is negative" if low >= 0 else ""
        bound = ": an upper bound, for no reward is positive" if high <= 0 else bound
        return [f"{count}, and what would have followed is left out{bound}."]


def read_ratios(log: Transitions, ratios: ArrayLike | None) -> Vector:
    """Importance ratios of the rows, given or the log's."""
    found = log.ratios if ratios is None else _checks.column("ratios", ratios, len(log), low=0.0)
    if found is None:
        raise InputError(
            "importance sampling needs ratios: give ratios=, the chance that the target takes the logged action "
            "divided by the chance that the logging policy took it, or put them into the log."
        )
    return np.asarray(found)


def _discounts(discount: ArrayLike, n: int) -> Vector:
    if np.ndim(_checks.as_array("discount", discount)) == 0:
        return np.full(n, _checks.number("discount", discount, low=0.0, high=1.0))
    return _checks.column("discount", discount, n, low=0.0, high=1.0).copy()


def _weights(weights: Vector | None, first: Index, last: Index) -> Vector:
    if weights is None:
        return np.ones(len(first))
    low, high = np.minimum.reduceat(weights, first), np.maximum.reduceat(weights, first)
    bad = np.flatnonzero(low != high)
    if len(bad):
        raise InputError(
            f"the rows {first[bad[0]]} to {last[bad[0]]} are one episode and have different weights ({low[bad[0]]:g} "
            f"to {high[bad[0]]:g}): a return counts as a whole. Give one weight an episode."
        )
    return weights[first]


def _finite(values: Vector) -> Vector:
    if not np.isfinite(values).all():
        raise InputError(
            "products of ratios along an episode grow beyond float64: clip the ratios, or use the fitted value, which "
            "needs no products."
        )
    return values
