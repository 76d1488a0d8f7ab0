"""Stepping many copies of an environment side by side and writing down what they do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.errors import InputTypeError
from valuate.transitions import Transitions

__all__ = ["Act", "Record", "Simulator", "generator", "record"]

Generator: TypeAlias = np.random.Generator
#: From observations (count, ...) to actions (count,).
Act: TypeAlias = Callable[[NDArray[Any], Generator], NDArray[np.int64]]


class Simulator(Protocol):
    """An environment of which any number of copies can be stepped at once."""

    limit: int | None

    def reset(self, count: int, rng: Generator) -> NDArray[Any]:
        """Start states of ``count`` episodes."""

    def step(
        self, states: NDArray[Any], actions: NDArray[np.int64], rng: Generator
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.bool_]]:
        """Next states, rewards and whether the process ended, for each copy."""

    def observe(self, states: NDArray[Any]) -> NDArray[Any]:
        """What an agent sees of each state."""


def generator(seed: Any) -> Generator:
    """A NumPy Generator from a seed: a whole number, or a Generator as it is."""
    if isinstance(seed, Generator):
        return seed
    if seed is None:
        raise InputTypeError("seed is None: give a whole number or a numpy.random.Generator, so that runs repeat.")
    return np.random.default_rng(_checks.whole("seed", seed, low=0))


@dataclass(frozen=True, slots=True)
class Record:
    """n rows, grouped by copy and in order of time within a copy."""

    observations: NDArray[Any]  # (n, ...)
    actions: NDArray[np.int32]  # (n,)
    next_actions: NDArray[np.int32] | None  # (n,)
    rewards: NDArray[np.float64]  # (n,)
    terminated: NDArray[np.bool_]  # (n,)
    truncated: NDArray[np.bool_]  # (n,)
    ends: NDArray[np.int64]  # (m,) rows that an episode ends with, ascending
    last: NDArray[Any]  # (m, ...) what was seen after each of them

    def log(self, table: NDArray[Any] | None = None, ratios: NDArray[np.float64] | None = None) -> Transitions:
        """As Transitions that store each observation once.

        With a table the observations are places in it; without, they are put into one, each episode's last behind
        its rows.
        """
        n = len(self.rewards)
        lengths = np.diff(self.ends, prepend=-1)
        episode_of_row = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)
        if table is None:
            state_rows = np.arange(n) + episode_of_row
            next_rows = state_rows + 1
            table = np.empty((n + len(lengths), *self.observations.shape[1:]), self.observations.dtype)
            table[state_rows] = self.observations
            table[next_rows[self.ends]] = self.last
        else:
            state_rows = self.observations
            next_rows = np.empty_like(state_rows)
            next_rows[:-1] = state_rows[1:]
            next_rows[self.ends] = self.last
        log = object.__new__(Transitions)  # the columns are in order: they were made here
        log._set(
            _table=table,
            _state_rows=state_rows,
            _next_rows=next_rows,
            rewards=self.rewards,
            terminated=self.terminated,
            truncated=self.truncated,
            actions=self.actions,
            next_actions=self.next_actions,
            ratios=ratios,
            episodes=episode_of_row,
        )
        return log


def record(
    simulator: Simulator,
    n: int,
    copies: int,
    act: Act,
    rng: Generator,
    *,
    first: NDArray[Any] | None = None,
    next_actions: bool = False,
    dtype: Any = None,
) -> Record:
    """Step ``copies`` copies until they have ``n`` rows between them; a copy whose episode ends begins another.

    Parameters
    ----------
    first : states of the copies at the first step; None takes start states.
    next_actions : whether to keep the action drawn for each next state. In mid-episode it is the next row's action.
    dtype : of the stored observations; None keeps that of `Simulator.observe`.
    """
    copies = min(copies, n)
    steps = -(-n // copies)
    full = n - (steps - 1) * copies  # copies that take the last step too
    starts = np.arange(copies) * steps - np.maximum(np.arange(copies) - full, 0)
    states = simulator.reset(copies, rng) if first is None else first
    seen = simulator.observe(states)
    actions = act(seen, rng)
    store = _Store(n, seen, dtype, next_actions)
    ages = np.zeros(copies, dtype=np.int64)
    for t in range(steps):
        if t == steps - 1:
            states, seen, actions, ages, starts = (x[:full] for x in (states, seen, actions, ages, starts))
        rows = starts + t
        new_states, rewards, terminated = simulator.step(states, actions, rng)
        new_seen = simulator.observe(new_states)
        new_actions = act(new_seen, rng)
        store.write(rows, seen, actions, new_actions, rewards)
        ages += 1
        ended = terminated if simulator.limit is None else terminated | (ages >= simulator.limit)
        if t >= steps - 2:
            ended = ended.copy()
            ended[full if t < steps - 1 else 0 :] = True  # the recording ends here
        if ended.any():
            which = np.flatnonzero(ended)
            store.end(rows[which], terminated[which], new_seen[which])
            new_states[which] = simulator.reset(len(which), rng)
            new_seen[which] = simulator.observe(new_states[which])
            new_actions[which] = act(new_seen[which], rng)
            ages[which] = 0
        states, seen, actions = new_states, new_seen, new_actions
    return store.finish()


class _Store:
    """The columns of a record while it is written."""

    def __init__(self, n: int, seen: NDArray[Any], dtype: Any, next_actions: bool) -> None:
        self.observations = np.empty((n, *seen.shape[1:]), seen.dtype if dtype is None else dtype)
        self.actions = np.empty(n, np.int32)
        self.next_actions = np.empty(n, np.int32) if next_actions else None
        self.rewards = np.empty(n)
        self.terminated, self.truncated = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
        self._ends: list[NDArray[np.int64]] = []
        self._last: list[NDArray[Any]] = []

    def write(
        self,
        rows: NDArray[np.int64],
        seen: NDArray[Any],
        actions: NDArray[np.int64],
        new_actions: NDArray[np.int64],
        rewards: NDArray[np.float64],
    ) -> None:
        self.observations[rows] = seen
        self.actions[rows] = actions
        self.rewards[rows] = rewards
        if self.next_actions is not None:
            self.next_actions[rows] = new_actions

    def end(self, rows: NDArray[np.int64], terminated: NDArray[np.bool_], last: NDArray[Any]) -> None:
        self.terminated[rows], self.truncated[rows] = terminated, ~terminated
        self._ends.append(rows)
        self._last.append(last)  # indexed by a list of rows: a copy already

    def finish(self) -> Record:
        ends, last = np.concatenate(self._ends), np.concatenate(self._last).astype(self.observations.dtype, copy=False)
        order = np.argsort(ends)
        return Record(
            self.observations,
            self.actions,
            self.next_actions,
            self.rewards,
            self.terminated,
            self.truncated,
            ends[order],
            last[order],
        )
