"""What the environments with continuous states have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.environments import _recording
from valuate.errors import InputError, InputTypeError
from valuate.transitions import Transitions

__all__ = ["Simulated"]

States: TypeAlias = NDArray[np.float64]
Actions: TypeAlias = NDArray[np.int64]
Seed: TypeAlias = int | np.random.Generator
Policy: TypeAlias = Callable[[NDArray[Any]], Any]

#: Steps that a copy takes in a log when there is no time limit; with one it is ten times the limit.
STEPS = 5000


class Simulated(ABC):
    """An environment given by its dynamics, in float64, of which thousands of copies are stepped at once.

    Parameters
    ----------
    limit : int or None
        Most steps of an episode; the row that reaches it is truncated. None: no limit.

    Attributes
    ----------
    n_actions : int
    limit : int or None
    low, high : tuple of float
        The range of each observed number; infinite where there is none.
    """

    n_actions: ClassVar[int]
    low: ClassVar[tuple[float, ...]]
    high: ClassVar[tuple[float, ...]]

    def __init__(self, limit: int | None) -> None:
        self.limit = None if limit is None else _checks.whole("limit", limit, low=1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(limit={self.limit})"

    @abstractmethod
    def reset(self, count: int, rng: np.random.Generator) -> States:
        """Start states of ``count`` episodes."""

    @abstractmethod
    def step(
        self, states: States, actions: Actions, rng: np.random.Generator | None = None
    ) -> tuple[States, NDArray[np.float64], NDArray[np.bool_]]:
        """Next states, rewards and whether the process ended, for each copy; nothing is left to chance."""

    def observe(self, states: States) -> States:
        """What an agent sees of each state: the state itself."""
        return states

    def states_of(self, observations: States) -> States:
        """The states that look like ``observations``."""
        return observations

    def collect(
        self,
        n: int,
        policy: Policy | None = None,
        *,
        seed: Seed = 0,
        copies: int | None = None,
        next_actions: bool = False,
    ) -> Transitions:
        """A log of n transitions; its states are observations, (n, d) float64.

        Parameters
        ----------
        n : int
        policy : callable, optional
            From observations (m, d) to actions, whole numbers (m,), or to probabilities of the actions
            (m, n_actions). None: every action equally often.
        seed : int or numpy.random.Generator
        copies : int, optional
            Copies of the environment that are stepped side by side. None: as many as take ten time limits each. The
            fewer, the slower; the more, the larger the share of early steps among the rows, because each copy's last
            episode is cut short.
        next_actions : bool
            Whether to keep an action for each next state: the next row's within an episode, a draw at its end.

        Returns
        -------
        Transitions
            The rows of the first copy in order of time, then those of the second, and so on; within an episode a
            row's next state is the state of the following row, and each observation is stored once. ``terminated``
            where the process ended, ``truncated`` where the time limit or a copy's recording did.
        """
        n = _checks.whole("n", n, low=1)
        steps = STEPS if self.limit is None else 10 * self.limit
        copies = -(-n // steps) if copies is None else _checks.whole("copies", copies, low=1)
        act = _Random(self.n_actions) if policy is None else _Chosen(policy, self.n_actions)
        rng = _recording.generator(seed)
        return _recording.record(self, n, copies, act, rng, next_actions=next_actions).log()


class _Random:
    def __init__(self, n_actions: int) -> None:
        self.n_actions = n_actions

    def __call__(self, seen: States, rng: np.random.Generator) -> Actions:
        return rng.integers(self.n_actions, size=len(seen))


class _Chosen:
    """Asks a user's policy, and checks what it says."""

    def __init__(self, policy: Policy, n_actions: int) -> None:
        if not callable(policy):
            raise InputTypeError(
                f"policy must be callable, from observations to actions or probabilities, not {type(policy).__name__}."
            )
        self.policy, self.n_actions = policy, n_actions

    def __call__(self, seen: States, rng: np.random.Generator) -> Actions:
        given = _checks.as_array("the policy's actions", self.policy(seen))
        count, k = len(seen), self.n_actions
        if given.shape == (count,):
            return _checks.indices("the policy's actions", given, count, k).astype(np.int64)
        if given.shape != (count, k):
            raise InputError(
                f"policy gave an array of shape {given.shape} for {count} observations: actions have shape "
                f"{(count,)}, probabilities {(count, k)}."
            )
        chances = _checks.matrix("the policy's probabilities", given)
        if chances.min() < 0 or np.abs(chances.sum(axis=1) - 1.0).max() > 1e-6:
            raise InputError("The policy's probabilities must be at least 0 and sum to 1 for each observation.")
        drawn = (chances.cumsum(axis=1) <= rng.random((count, 1))).sum(axis=1)
        return np.asarray(np.minimum(drawn, k - 1))
