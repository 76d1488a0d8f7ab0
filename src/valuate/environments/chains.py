"""Small processes with known answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.environments.tabular import TabularMDP
from valuate.errors import InputError

__all__ = ["BairdStar", "BoyanChain", "RandomWalk"]


class RandomWalk(TabularMDP):
    """A walk on n states in a row, from the middle, that ends past either end; the right one pays 1.

    Action 0 goes left, action 1 right. Under equal chances state i has value (i + 1) / (n + 1).

    Parameters
    ----------
    n : int
    features : {"tabular", "inverted", "dependent"}
        The three sets of Sutton et al. (2009): an indicator of each state; the opposite, scaled to unit length; or,
        for odd n, (n + 1) / 2 features so that the states in the middle are sums of their neighbours'.
    discount : float

    References
    ----------
    R. S. Sutton et al., "Fast gradient-descent methods for temporal-difference learning with linear function
    approximation", ICML 2009.
    """

    def __init__(self, n: int = 5, features: str = "tabular", discount: float = 1.0) -> None:
        n = _checks.whole("n", n, low=1)
        places = np.arange(n)
        successors = np.stack([places - 1, places + 1], axis=1)[:, :, None]
        rewards = np.zeros((n, 2, 1))
        rewards[-1, 1] = 1.0
        successors[0, 0] = n  # the end, on the left as on the right
        start = np.zeros(n)
        start[[(n - 1) // 2, n // 2]] = 0.5
        start /= start.sum()
        super().__init__(
            np.ones((n, 2, 1)), rewards, successors, discount=discount, table=_walk_features(n, features), start=start
        )


class BoyanChain(TabularMDP):
    """A chain that moves on by one or two places, with equal chances, for a reward of -3 (Boyan 2002).

    State i is ``length - i`` places from the end; from the last one there is one step, with reward -2. The value of a
    state is -2 times its distance, and its features interpolate between every fourth state, so that the weights
    (-2 length, ..., -16, -8, 0) are exact.

    Parameters
    ----------
    length : int
        A multiple of 4.

    References
    ----------
    J. A. Boyan, "Technical update: least-squares temporal difference learning", Machine Learning 49, 2002.
    """

    def __init__(self, length: int = 12, discount: float = 1.0) -> None:
        n = _checks.whole("length", length, low=4)
        if n % 4:
            raise InputError(f"length must be a multiple of 4, the distance between two features, not {n}.")
        places = np.arange(n)
        successors = np.stack([places + 1, np.minimum(places + 2, n)], axis=1)[:, None, :]
        rewards = np.full((n, 1, 1), -3.0)
        rewards[-1] = -2.0
        knots = np.arange(0, n + 1, 4)
        table = np.maximum(0.0, 1.0 - np.abs(places[:, None] - knots) / 4)
        super().__init__(
            np.full((n, 1, 2), 0.5),
            rewards,
            successors,
            discount=discount,
            table=table,
            start=np.eye(n)[0],
        )


class BairdStar(TabularMDP):
    """Seven states on which off-policy TD learning diverges (Baird 1995, in the form of Sutton et al. 2009).

    Action 0 leads to one of the states 0 to 5, with equal chances, action 1 to state 6; no step has a reward. The
    behaviour takes action 1 once in seven times, the target always. The values, all 0, are within reach of the 8
    features, by many weights.

    Parameters
    ----------
    discount : float

    References
    ----------
    L. Baird, "Residual algorithms: reinforcement learning with function approximation", ICML 1995.
    """

    def __init__(self, discount: float = 0.99) -> None:
        probabilities = np.zeros((7, 2, 7))
        probabilities[:, 0, :6] = 1 / 6
        probabilities[:, 1, 6] = 1.0
        table = np.zeros((7, 8))
        table[:6, :6] = 2.0 * np.eye(6)
        table[:6, 7], table[6, 6], table[6, 7] = 1.0, 1.0, 2.0
        super().__init__(
            probabilities,
            np.zeros((1, 1, 1)),
            discount=discount,
            table=table,
            behaviour=np.tile([6 / 7, 1 / 7], (7, 1)),
            target=np.ones(7, dtype=np.int64),
        )


def _walk_features(n: int, kind: str) -> NDArray[np.float64]:
    if kind == "tabular":
        return np.eye(n)
    if kind == "inverted":
        if n < 2:
            raise InputError("Inverted features need at least 2 states.")
        return np.asarray((1.0 - np.eye(n)) / np.sqrt(n - 1))
    if kind == "dependent":
        if n % 2 == 0:
            raise InputError(f"Dependent features need an odd number of states, not {n}.")
        half = (n + 1) // 2
        gap = np.arange(n)[:, None] - np.arange(half)
        table = ((gap >= 0) & (gap < half)).astype(np.float64)
        return np.asarray(table / np.sqrt(table.sum(axis=1, keepdims=True)))
    raise InputError(f"features must be 'tabular', 'inverted' or 'dependent', not {kind!r}.")
