"""Environments with finitely many states: exact values, and logs of any length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.linalg as la
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack

from valuate import _checks
from valuate.environments import _recording
from valuate.environments._alias import AliasTables
from valuate.errors import InputError, InputTypeError
from valuate.transitions import Transitions

__all__ = ["Expectation", "TabularMDP"]

Vector: TypeAlias = NDArray[np.float64]
Seed: TypeAlias = int | np.random.Generator
Policy: TypeAlias = ArrayLike | Callable[[NDArray[np.int64]], Any]

#: Steps that a copy takes in a log, unless told otherwise.
STEPS = 5000
#: Size of 1 / |inverse| of I - discount * P below which rounding of the chances, which are up to 1, leaves no digit.
SINGULAR = 1e-15


class Expectation(NamedTuple):
    """What A, b and C of a log's rows become in the limit: (d, d), (d,), (d, d)."""

    A: NDArray[np.float64]
    b: NDArray[np.float64]
    C: NDArray[np.float64]


class TabularMDP:
    """A Markov decision process with states 0 to n_states - 1, from its probabilities.

    Where the process ends is no state: it is written ``n_states`` in ``successors``, its value is 0, and in a log the
    row's own state stands for it.

    Policies are given as probabilities (n_states, n_actions), as one action a state, whole numbers (n_states,), as a
    callable from the states, ``np.arange(n_states)``, to either, or as None for `behaviour`.

    Parameters
    ----------
    probabilities : (n_states, n_actions, k) array
        Of the k outcomes of an action; along k they sum to 1.
    rewards : array that broadcasts to (n_states, n_actions, k)
    successors : whole numbers that broadcast to (n_states, n_actions, k), optional
        The state that each outcome leads to. None: outcome j leads to state j.
    discount : float
    table : (n_states, n_features) array, optional
        Features of the states. None: one indicator a state.
    start : (n_states,) array, optional
        Chances to start in each state. None: equal.
    limit : int, optional
        Most steps of an episode; the row that reaches it is truncated.
    behaviour : policy, optional
        What logs are collected with. None: every action equally often.
    target : policy, optional
        What values are asked of, and what importance ratios in a log lead to. None: the behaviour.

    Attributes
    ----------
    n_states, n_actions, n_features : int
    probabilities, successors, rewards, discount, table, start, limit
        As given.
    behaviour : (n_states, n_actions) array
    target : (n_states, n_actions) array or None
    """

    def __init__(
        self,
        probabilities: ArrayLike,
        rewards: ArrayLike,
        successors: ArrayLike | None = None,
        *,
        discount: float,
        table: ArrayLike | None = None,
        start: ArrayLike | None = None,
        limit: int | None = None,
        behaviour: Policy | None = None,
        target: Policy | None = None,
    ) -> None:
        p = self.probabilities = np.asarray(probabilities, dtype=np.float64)
        if p.ndim != 3:
            raise InputError(f"probabilities must have shape (states, actions, outcomes) and has {p.shape}.")
        self.n_states, self.n_actions, _ = p.shape
        _distributions("probabilities", p)
        self.rewards = np.asarray(rewards, dtype=np.float64)
        _checks.finite("rewards", np.atleast_1d(self.rewards))
        n = self.n_states
        self.successors = _whole("successors", np.arange(n) if successors is None else successors, n)
        for name, array in (("rewards", self.rewards), ("successors", self.successors)):
            _broadcasts(name, array, p.shape)
        self.discount = _checks.number("discount", discount, low=0.0, high=1.0)
        self.table = np.eye(n) if table is None else _checks.matrix("table", table, n_rows=n).astype(np.float64)
        self.n_features = self.table.shape[1]
        self.start = np.full(n, 1.0 / n) if start is None else _checks.column("start", start, n)
        _distributions("start", self.start)
        self.limit = None if limit is None else _checks.whole("limit", limit, low=1)
        uniform = np.full((n, self.n_actions), 1.0 / self.n_actions)
        self.behaviour = uniform if behaviour is None else self._policy("behaviour", behaviour)
        self.target = None if target is None else self._policy("target", target)
        self._ends = bool((self.successors == n).any())
        self._outcomes: AliasTables | None = None
        self._starts = AliasTables(self.start[None])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_states} states, {self.n_actions} actions, {self.n_features} features)"

    def features(self, states: ArrayLike) -> NDArray[np.float64]:
        """Rows of `table`: (m, n_features) for m states. A feature map for `Problem.from_transitions`."""
        return np.asarray(self.table[_checks.indices("states", states, None, self.n_states)])

    # Exact quantities.

    def transition_matrix(self, policy: Policy | None = None) -> NDArray[np.float64]:
        """Chances to go from state to state under a policy, (n_states, n_states); what is missing to 1 ends."""
        return self._chances(policy)[:, : self.n_states]

    def _chances(self, policy: Policy | None) -> NDArray[np.float64]:
        """The same with a last column for the end, (n_states, n_states + 1)."""
        n = self.n_states
        chance = self._policy("policy", policy)[:, :, None] * self.probabilities
        place = np.arange(n)[:, None, None] * (n + 1) + np.broadcast_to(self.successors, chance.shape)
        sums = np.bincount(place.ravel(), chance.ravel(), n * (n + 1)).astype(np.float64, copy=False)
        return sums.reshape(n, n + 1)

    def mean_rewards(self) -> NDArray[np.float64]:
        """Expected reward of each action in each state, (n_states, n_actions)."""
        return np.asarray((self.probabilities * self.rewards).sum(axis=2))

    def values(self, policy: Policy | None = None) -> Vector:
        """Exact values of a policy (None: the target, else the behaviour), (n_states,)."""
        policy = self._evaluated(policy)
        rewards = (policy * self.mean_rewards()).sum(axis=1)
        chances = self._chances(policy)
        onward, ends = chances[:, :-1], chances[:, -1] > 0
        # Told by the links, as rounding can make a singular system look like one that is only close to it.
        if self.discount == 1.0 and not _reached(onward.T, ends).all():
            raise InputError(_ENDLESS)
        return _solve(np.eye(self.n_states) - self.discount * onward, rewards)

    def action_values(self, policy: Policy | None = None) -> NDArray[np.float64]:
        """Exact action values of a policy (None: the target, else the behaviour), (n_states, n_actions)."""
        return self.lookahead(self.values(policy))

    def lookahead(self, values: ArrayLike, discount: float | None = None) -> NDArray[np.float64]:
        """Expected reward plus discounted ``values`` of the next state: (n_states, n_actions) from (n_states,)."""
        discount = self.discount if discount is None else _checks.number("discount", discount, low=0.0, high=1.0)
        following = np.append(_checks.column("values", values, self.n_states), 0.0)[self.successors]
        return np.asarray(self.mean_rewards() + discount * (self.probabilities * following).sum(axis=2))

    def stationary_distribution(self, policy: Policy | None = None) -> Vector:
        """Share of each state in the rows of an endless log under a policy, (n_states,).

        Episodes that end, or reach `limit`, begin again from `start`. States that no episode reaches have none.
        """
        chances = self._chances(policy)
        onward = chances[:, :-1]
        if self.limit is not None:
            share, total = self.start, np.zeros(self.n_states)
            for _ in range(self.limit):
                total += share
                share = share @ onward
            return np.asarray(total / total.sum())
        chain = onward + np.outer(1.0 - onward.sum(axis=1), self.start)
        met = np.flatnonzero(_reached(onward, self.start > 0))
        # d' (I - chain + 1 1') = 1', which is singular exactly where there is more than one such d.
        system = np.eye(len(met)) - chain[np.ix_(met, met)].T + 1.0
        if not la.cond(system, 1) < 1e12:
            raise InputError("The policy has more than one stationary distribution: some states never meet others.")
        share = np.zeros(self.n_states)
        share[met] = np.maximum(la.solve(system, np.ones(len(met))), 0.0)
        return np.asarray(share / share.sum())

    def expectation(self, behaviour: Policy | None = None, target: Policy | None = None) -> Expectation:
        """A, b and C of an endless log that ``behaviour`` collects, with ratios to ``target``.

        None takes the environment's own; without any target the log is on-policy.
        """
        behaviour = self._policy("behaviour", behaviour)
        target = self._evaluated(target) if target is not None or self.target is not None else behaviour
        self._ratios(behaviour, target)  # refuses a target that the behaviour does not cover
        weighted = self.table.T * self.stationary_distribution(behaviour)
        delta = self.table - self.discount * self.transition_matrix(target) @ self.table
        return Expectation(
            weighted @ delta, weighted @ (target * self.mean_rewards()).sum(axis=1), weighted @ self.table
        )

    def fixed_point(self, behaviour: Policy | None = None, target: Policy | None = None) -> Vector:
        """The weights theta with A theta = b in expectation, (n_features,): the smallest where there are many."""
        a, b, _ = self.expectation(behaviour, target)
        return np.asarray(la.lstsq(a, b, rcond=1e-12)[0])

    # Simulation.

    def reset(self, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
        """Start states of ``count`` episodes, (count,)."""
        return self._starts.draw(np.zeros(count, dtype=np.int64), rng)

    def step(
        self, states: NDArray[np.int64], actions: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], Vector, NDArray[np.bool_]]:
        """Next states, rewards and whether the process ended, for (count,) states and actions."""
        k = self.probabilities.shape[2]
        if self._outcomes is None:  # kept: the tables are as large as the probabilities
            self._outcomes = AliasTables(self.probabilities.reshape(-1, k))
        outcome = self._outcomes.draw(states * self.n_actions + actions, rng)
        rewards = _pick(self.rewards, states, actions, outcome)
        after = _pick(self.successors, states, actions, outcome)
        ended = after == self.n_states if self._ends else np.zeros(len(after), dtype=bool)
        return np.where(ended, states, after) if self._ends else after, rewards, ended

    def observe(self, states: NDArray[np.int64]) -> NDArray[np.int64]:
        """The states themselves."""
        return states

    def collect(
        self,
        n: int,
        policy: Policy | None = None,
        *,
        target: Policy | None = None,
        seed: Seed = 0,
        start: str = "start",
        copies: int | None = None,
        next_actions: bool = False,
    ) -> Transitions:
        """A log of n transitions; its states are whole numbers.

        Parameters
        ----------
        n : int
        policy : policy, optional
            What acts: probabilities, actions, or a callable that is asked once for all states. None: `behaviour`.
        target : policy, optional
            What the ratios lead to. None: `target`; where that is None too, or is the policy, there are no ratios.
        seed : int or numpy.random.Generator
        start : {"start", "stationary"}
            Where each copy's first episode starts: as every episode, or from `stationary_distribution(policy)`, which
            makes every row's state a draw from it as long as there is no time limit.
        copies : int, optional
            Copies of the environment that are stepped side by side. None: one for every 5,000 rows.
        next_actions : bool
            Whether to keep an action for each next state: the next row's within an episode, a draw at its end.

        Returns
        -------
        Transitions
            The rows of the first copy in order of time, then those of the second, and so on; within an episode a
            row's next state is the state of the following row. ``terminated`` where the process ended (the row's
            own state stands for the next), ``truncated`` where a time limit or a copy's recording did. Takes about
            26 bytes a row.
        """
        n = _checks.whole("n", n, low=1)
        copies = -(-n // STEPS) if copies is None else _checks.whole("copies", copies, low=1)
        acting = self._policy("policy", policy)
        wanted = self.target if target is None else self._policy("target", target)
        ratios = None if wanted is None or np.array_equal(wanted, acting) else self._ratios(acting, wanted)
        if start not in ("start", "stationary"):
            raise InputError(f"start must be 'start' or 'stationary', not {start!r}.")
        rng = _recording.generator(seed)
        first = None
        if start == "stationary":
            first = rng.choice(self.n_states, size=min(n, copies), p=self.stationary_distribution(acting))
        found = _recording.record(
            self, n, copies, _Sampled(acting), rng, first=first, next_actions=next_actions, dtype=np.int32
        )
        if ratios is not None:
            ratios = ratios[found.observations, found.actions]
        return found.log(np.arange(self.n_states), ratios)

    def random_policy(self, seed: Seed = 0) -> NDArray[np.float64]:
        """Chances of the actions proportional to draws from U[0, 1], as in Dann et al. (2014)."""
        draws = _recording.generator(seed).random((self.n_states, self.n_actions))
        return np.asarray(draws / draws.sum(axis=1, keepdims=True))

    # Reading policies.

    def _policy(self, name: str, value: Policy | None) -> NDArray[np.float64]:
        if value is None:
            return self.behaviour
        if callable(value):
            value = value(np.arange(self.n_states))
        array = _checks.as_array(name, value)
        if array.ndim == 1 and array.dtype.kind in "iu" and len(array) == self.n_states:
            chosen = _checks.indices(name, array, self.n_states, self.n_actions)
            return np.asarray(np.eye(self.n_actions)[chosen])
        wanted = (self.n_states, self.n_actions)
        if array.shape != wanted:
            raise InputError(
                f"{name} must be probabilities of shape {wanted}, or one action a state, whole numbers of shape "
                f"{wanted[:1]}; it has shape {array.shape} and dtype {array.dtype}."
            )
        policy = _checks.matrix(name, array).astype(np.float64)
        _distributions(name, policy)
        return policy

    def _evaluated(self, policy: Policy | None) -> NDArray[np.float64]:
        return self._policy("policy", self.target if policy is None else policy)

    def _ratios(self, behaviour: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
        missing = np.argwhere((target > 0) & (behaviour == 0))
        if len(missing):
            state, action = missing[0]
            raise InputError(
                f"In state {state} the target takes action {action}, which the behaviour never takes "
                f"({len(missing)} such pairs): a log cannot tell what would follow."
            )
        return np.divide(target, behaviour, out=np.zeros_like(target), where=behaviour > 0)


class _Sampled:
    """Acts by probabilities (n_states, n_actions)."""

    def __init__(self, policy: NDArray[np.float64]) -> None:
        self._tables = AliasTables(policy)

    def __call__(self, states: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        return self._tables.draw(states, rng)


_ENDLESS = "The values are not finite: with discount 1 the process must end from every state."


def _solve(system: NDArray[np.float64], rewards: Vector) -> Vector:
    factors, pivots, info = lapack.dgetrf(system)
    rcond, size = 0.0, np.abs(system).sum(axis=0).max()
    if info == 0:
        rcond, info = lapack.dgecon(factors, size)
    if info != 0 or not rcond * size > SINGULAR:
        raise InputError(_ENDLESS)
    values, _ = lapack.dgetrs(factors, pivots, rewards)
    return np.asarray(values)


def _reached(links: NDArray[np.float64], first: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The states that can be reached from the ``first``, with these among them, where links[i, j] > 0 leads on."""
    reached, newest = first, first
    while newest.any():
        newest = (links[newest] > 0).any(axis=0) & ~reached
        reached = reached | newest
    return reached


def _distributions(name: str, array: NDArray[np.float64]) -> None:
    _checks.finite(name, array)
    if array.min() < 0:
        raise InputError(f"{name} must be at least 0; the least is {array.min():.6g}.")
    sums = array.sum(axis=-1)
    off = np.abs(sums - 1.0) > 1e-9
    if off.any():
        place = tuple(int(i) for i in np.argwhere(off)[0])
        where = f" at {place[0] if len(place) == 1 else place}" if place else ""
        raise InputError(f"{name} must sum to 1{where}; the sum is {np.atleast_1d(sums[off])[0]:.6g}.")


def _whole(name: str, value: ArrayLike, n_states: int) -> NDArray[np.int64]:
    array = _checks.as_array(name, value)
    if array.dtype.kind not in "iu":
        raise InputTypeError(f"{name} must be whole numbers and has dtype {array.dtype}.")
    if array.min() < 0 or array.max() > n_states:
        raise InputError(f"{name} must be in [0, {n_states}], where {n_states} stands for the end of the process.")
    return array.astype(np.int64)


def _broadcasts(name: str, array: NDArray[Any], shape: tuple[int, ...]) -> None:
    try:
        np.broadcast_to(array, shape)
    except ValueError:
        raise InputError(f"{name} has shape {array.shape}, which does not broadcast to {shape}.") from None


def _pick(array: NDArray[Any], *places: NDArray[np.int64]) -> NDArray[Any]:
    """Entries of an array that broadcasts to as many axes as there are places, without broadcasting it."""
    used = places[len(places) - array.ndim :]
    at = tuple(0 if size == 1 else place for size, place in zip(array.shape, used, strict=True))
    return np.asarray(array[at])
