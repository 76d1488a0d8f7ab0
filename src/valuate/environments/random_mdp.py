"""Randomly generated Markov decision processes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.environments._recording import generator
from valuate.environments.tabular import TabularMDP
from valuate.errors import InputError

__all__ = ["Garnet", "RandomMDP"]


class RandomMDP(TabularMDP):
    """A Markov decision process where every state can follow every other (Dann et al. 2014).

    Transition probabilities are drawn from U[0, 1] and normalised, features from U[0, 1] but for the last, which is 1.

    Parameters
    ----------
    n_states, n_actions, n_features : int
    discount : float
    seed : int or numpy.random.Generator
        Of the process itself; a log has a seed of its own.
    variant : {"paper", "code"}
        "paper": rewards of state and action from U[0, 1], no episodes. "code": what was run for the paper: rewards
        of action and next state from U[0, 10], and episodes of 500 steps.

    References
    ----------
    C. Dann, G. Neumann and J. Peters, "Policy evaluation with temporal differences: a survey and comparison", JMLR 15,
    2014. The paper's experiments: Peng et al., "SVRG for policy evaluation with fewer gradient evaluations", IJCAI
    2020, appendix.
    """

    def __init__(
        self,
        n_states: int = 400,
        n_actions: int = 10,
        n_features: int = 201,
        discount: float = 0.95,
        *,
        seed: int | np.random.Generator = 0,
        variant: str = "paper",
    ) -> None:
        if variant not in ("paper", "code"):
            raise InputError(f"variant must be 'paper' or 'code', not {variant!r}.")
        s, a = _checks.whole("n_states", n_states, low=1), _checks.whole("n_actions", n_actions, low=1)
        d = _checks.whole("n_features", n_features, low=1)
        rng = generator(seed)
        probabilities = rng.random((s, a, s))
        probabilities /= probabilities.sum(axis=2, keepdims=True)
        rewards = rng.random((s, a, 1)) if variant == "paper" else 10.0 * rng.random((1, a, s))
        super().__init__(
            probabilities,
            rewards,
            discount=discount,
            table=random_features(s, d, rng),
            limit=500 if variant == "code" else None,
        )
        self.variant = variant


class Garnet(TabularMDP):
    """A random Markov decision process of few successors (Archibald, McKinnon and Thomas 1995).

    Each pair of state and action leads to ``branching`` different states, drawn without replacement. Their
    probabilities are the pieces of the unit interval between ``branching - 1`` cuts drawn from U[0, 1]. Rewards
    belong to state and action and are drawn from U[0, 1]. Features are as in `RandomMDP`.

    Parameters
    ----------
    n_states, n_actions, branching, n_features : int
    discount : float
    seed : int or numpy.random.Generator

    References
    ----------
    T. W. Archibald, K. I. M. McKinnon and L. C. Thomas, "On the generation of Markov decision processes", Journal of
    the Operational Research Society 46, 1995.
    """

    def __init__(
        self,
        n_states: int = 100,
        n_actions: int = 4,
        branching: int = 5,
        n_features: int = 20,
        discount: float = 0.95,
        *,
        seed: int | np.random.Generator = 0,
    ) -> None:
        s, a = _checks.whole("n_states", n_states, low=1), _checks.whole("n_actions", n_actions, low=1)
        d, k = _checks.whole("n_features", n_features, low=1), _checks.whole("branching", branching, low=1)
        if k > s:
            raise InputError(f"branching is {k} and there are {s} states to lead to: at most that many.")
        rng = generator(seed)
        cuts = np.sort(rng.random((s, a, k - 1)), axis=2)
        ends = np.concatenate([np.zeros((s, a, 1)), cuts, np.ones((s, a, 1))], axis=2)
        super().__init__(
            np.diff(ends, axis=2),
            rng.random((s, a, 1)),
            _distinct(s * a, k, s, rng).reshape(s, a, k),
            discount=discount,
            table=random_features(s, d, rng),
        )


def random_features(n_states: int, n_features: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """Features from U[0, 1], the last one 1: (n_states, n_features)."""
    table = rng.random((n_states, n_features))
    table[:, -1] = 1.0
    return table


def _distinct(rows: int, k: int, n: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """In each of ``rows`` rows, k different numbers below n, every set equally likely: Floyd's method, row by row."""
    out = np.empty((rows, k), dtype=np.int64)
    for column, top in enumerate(range(n - k, n)):
        drawn = rng.integers(top + 1, size=rows)
        out[:, column] = np.where((out[:, :column] == drawn[:, None]).any(axis=1), top, drawn)
    return out
