"""From action values to actions: greedy policies, and how well they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from valuate import _checks
from valuate.environments import Simulated, TabularMDP
from valuate.environments._recording import generator
from valuate.errors import InputError, InputTypeError
from valuate.features import StateActionBlocks
from valuate.transitions import Transitions

__all__ = ["GreedyPolicy", "Scores", "greedy", "pairs", "score"]

Array: TypeAlias = NDArray[np.float64]
Environment: TypeAlias = TabularMDP | Simulated

#: Of a model that has none of its own.
DISCOUNT = 0.99


@dataclass(frozen=True, eq=False)
class GreedyPolicy:
    """The policy that takes the first of the best actions; made by `greedy`.

    Attributes
    ----------
    theta : (dim,) array
    feature_map : feature map
        Of pairs of state and action, or of states where there is a model.
    n_actions : int
    model : environment or None
    discount : float
        Of the value of the model's next state.
    """

    theta: Array
    feature_map: Any
    n_actions: int
    model: Environment | None = None
    discount: float = DISCOUNT

    def action_values(self, observations: Any) -> Array:
        """The value of each action in m states: (m, n_actions)."""
        count = observations.shape[0] if hasattr(observations, "shape") else len(observations)
        many = _Policies(self.theta[None], self.feature_map, self.n_actions, self.model, self.discount)
        states = observations
        if self.model is not None:
            states = _model_states(self.model, observations)
        return many.values(states, observations, np.array([0, count]))

    def __call__(self, observations: Any) -> NDArray[np.int64]:
        """The action in each of m states: (m,) whole numbers."""
        return np.asarray(self.action_values(observations).argmax(axis=1))


def greedy(
    theta: ArrayLike,
    feature_map: Any,
    n_actions: int,
    *,
    model: Environment | None = None,
    discount: float | None = None,
) -> GreedyPolicy:
    """The policy that is greedy in linear values.

    Parameters
    ----------
    theta : (dim,) array-like
        Weights of action values or, with a model, of state values.
    feature_map : feature map
        Of pairs of state and action, as `valuate.features.StateActionBlocks`; with a model, of states.
    n_actions : int
    model : environment, optional
        Actions are then judged by the expected reward of one step in it plus the discounted value of where it leads.
    discount : float, optional
        Of that value. None: the model's own, which a `valuate.environments.TabularMDP` has; .99 where it has none.

    Returns
    -------
    GreedyPolicy
        Callable from m states or observations to m actions. Of equal values the first action's wins.
    """
    _readable(feature_map)
    n_actions = _checks.whole("n_actions", n_actions, low=1)
    if model is not None and model.n_actions != n_actions:
        raise InputError(f"n_actions is {n_actions} and the model has {model.n_actions} actions.")
    if discount is None:
        discount = getattr(model, "discount", DISCOUNT)
    discount = _checks.number("discount", discount, low=0.0, high=1.0)
    return GreedyPolicy(_checks.column("theta", theta), feature_map, n_actions, model, discount)


@dataclass(frozen=True, eq=False)
class Scores:
    """How p policies did in a number of episodes each.

    Attributes
    ----------
    lengths : int64, (p, episodes)
        Steps of each episode.
    returns : float64, (p, episodes)
        Sum of its rewards, discounted where that was asked for.
    terminated : bool, (p, episodes)
        Whether the process ended; else the time limit did.
    """

    lengths: NDArray[np.int64]
    returns: Array
    terminated: NDArray[np.bool_]

    @property
    def mean_lengths(self) -> Array:
        """Mean episode length of each policy, (p,)."""
        return np.asarray(self.lengths.mean(axis=1))

    @property
    def mean_returns(self) -> Array:
        """Mean return of each policy, (p,)."""
        return np.asarray(self.returns.mean(axis=1))

    def __repr__(self) -> str:
        policies, episodes = self.lengths.shape
        return f"Scores({policies} policies, {episodes} episodes each, mean length {self.lengths.mean():.4g})"


def score(
    env: Environment,
    thetas: ArrayLike,
    feature_map: Any,
    *,
    episodes: int = 100,
    limit: int | None = None,
    seed: int | np.random.Generator = 0,
    discount: float = 1.0,
    same_starts: bool = False,
    lookahead: float | None = None,
) -> Scores:
    """Run the greedy policies of many weights, all at once.

    Parameters
    ----------
    env : environment
    thetas : (dim,) or (p, dim) array-like
        Weights of action values, one row a policy; of state values with ``lookahead``.
    feature_map : feature map
        Of pairs of state and action; of states with ``lookahead``.
    episodes : int
        Of each policy.
    limit : int, optional
        Most steps of an episode. None: the environment's.
    seed : int or numpy.random.Generator
    discount : float
        Of the rewards in the returns.
    same_starts : bool
        Whether all policies begin their episodes in the same states, so that they compare better, or each in its own.
    lookahead : float, optional
        Choose actions by one step in the environment itself; the number discounts the value of the next state.

    Returns
    -------
    Scores
    """
    _readable(feature_map)
    thetas = np.atleast_2d(_checks.as_array("thetas", thetas))
    thetas = _checks.matrix("thetas", thetas).astype(np.float64)
    episodes = _checks.whole("episodes", episodes, low=1)
    limit = env.limit if limit is None else _checks.whole("limit", limit, low=1)
    if limit is None:
        raise InputError("The environment has no time limit: give one with limit, as an episode may never end.")
    discount = _checks.number("discount", discount, low=0.0, high=1.0)
    step_discount = 0.0 if lookahead is None else _checks.number("lookahead", lookahead, low=0.0, high=1.0)
    policies = _Policies(thetas, feature_map, env.n_actions, None if lookahead is None else env, step_discount)
    rng, p = generator(seed), len(thetas)
    states = np.concatenate([env.reset(episodes, rng)] * p) if same_starts else env.reset(p * episodes, rng)
    return _run(env, policies, states, limit, discount, rng)


def _run(
    env: Environment, policies: _Policies, states: Any, limit: int, discount: float, rng: np.random.Generator
) -> Scores:
    """Step all episodes together; those that ended are left out of the following steps."""
    p, n = len(policies.thetas), len(states)
    lengths, returns, terminated = np.full(n, limit), np.zeros(n), np.zeros(n, dtype=bool)
    running, factor = np.arange(n), 1.0
    for t in range(limit):
        edges = np.searchsorted(running, np.arange(p + 1) * (n // p))
        actions = policies.values(states, env.observe(states), edges).argmax(axis=1)
        states, rewards, ended = env.step(states, actions, rng)
        returns[running] += factor * rewards
        factor *= discount
        if ended.any():
            lengths[running[ended]], terminated[running[ended]] = t + 1, True
            running, states = running[~ended], states[~ended]
            if not len(running):
                break
    return Scores(lengths.reshape(p, -1), returns.reshape(p, -1), terminated.reshape(p, -1))


def pairs(log: Transitions, n_actions: int | None = None) -> Transitions:
    """The log as one over pairs of state and action, for the evaluation of action values.

    Parameters
    ----------
    log : Transitions
        With actions and next actions, as ``collect(..., next_actions=True)`` gives, and without ratios: the next
        actions must be those of the policy that is evaluated.
    n_actions : int, optional
        Needed where states are whole numbers.

    Returns
    -------
    Transitions
        Its states are ``state * n_actions + action`` where states are whole numbers, else the state's numbers with the
        action behind them: what `valuate.features.StateActionBlocks` takes. Weights, flags and episodes stay.
    """
    if log.actions is None or log.next_actions is None:
        raise InputError("The log needs actions and next actions. Collect it with next_actions=True.")
    if log.ratios is not None:
        # Passed on they would weigh the rows and no more: what follows a pair would still be the behaviour's.
        raise InputError(
            "The log has ratios, and action values need none: a ratio corrects for the row's own action, which is "
            "given, and the next actions stay draws of the policy that acted, so that its values would come out. They "
            "need next actions, or expected next features, of the policy that is evaluated. Collect with that policy "
            'and without a target, or let valuate.LinearValue(policy=..., values="action") take the expectation.'
        )
    states, next_states = log.states, log.next_states
    if _checks.is_sparse(states) or states.dtype.kind not in "iuf":
        raise InputTypeError("Pairs are made of states that are numbers, in a dense array.")
    if states.ndim == 1 and states.dtype.kind != "f":
        if n_actions is None:
            raise InputError("Where states are whole numbers, pairs need n_actions.")
        k = _checks.whole("n_actions", n_actions, low=1)
        actions = _checks.indices("actions", log.actions, len(log), k)
        next_actions = _checks.indices("next_actions", log.next_actions, len(log), k)
        both: tuple[Any, Any] = (states * k + actions, next_states * k + next_actions)
    else:
        both = (np.column_stack([states, log.actions]), np.column_stack([next_states, log.next_actions]))
    return Transitions(
        both[0],
        log.rewards,
        both[1],
        terminated=log.terminated,
        truncated=log.truncated,
        weights=log.weights,
        episodes=log.episodes,
    )


class _Policies:
    """Action values under p weights at once; rows that belong to one policy are next to each other."""

    def __init__(
        self, thetas: Array, feature_map: Any, n_actions: int, model: Environment | None, discount: float
    ) -> None:
        self.thetas, self.feature_map, self.n_actions = thetas, feature_map, n_actions
        self.model, self.discount = model, discount
        self._tables: Array | None = None

    def values(self, states: Any, seen: Any, edges: NDArray[np.int64]) -> Array:
        """Values (m, n_actions) of m states; those of policy i lie from ``edges[i]`` to ``edges[i + 1]``."""
        if self.model is not None:
            return self._one_step(self.model, states, edges)
        if isinstance(self.feature_map, StateActionBlocks):
            rows = self.feature_map.state_features(seen)
            self._fits(rows.shape[1] * self.n_actions)
            return _products(rows, self.thetas.reshape(len(self.thetas), self.n_actions, -1), edges)
        out = np.empty((len(seen), self.n_actions))
        for action in range(self.n_actions):
            rows = _transform(self.feature_map, (seen, np.full(len(seen), action)))
            self._fits(rows.shape[1])
            out[:, action] = _products(rows, self.thetas[:, None, :], edges)[:, 0]
        return out

    def _one_step(self, model: Environment, states: Any, edges: NDArray[np.int64]) -> Array:
        if isinstance(model, TabularMDP):
            if self._tables is None:
                rows = _transform(self.feature_map, np.arange(model.n_states))
                self._fits(rows.shape[1])
                self._tables = np.stack([model.lookahead(rows @ theta, self.discount) for theta in self.thetas])
            owners = np.repeat(np.arange(len(self.thetas)), np.diff(edges))
            return np.asarray(self._tables[owners, states])
        out = np.empty((len(states), self.n_actions))
        for action in range(self.n_actions):
            following, rewards, ended = model.step(states, np.full(len(states), action))
            rows = _transform(self.feature_map, model.observe(following))
            self._fits(rows.shape[1])
            values = _products(rows, self.thetas[:, None, :], edges)[:, 0]
            out[:, action] = rewards + self.discount * np.where(ended, 0.0, values)
        return out

    def _fits(self, dim: int) -> None:
        if dim != self.thetas.shape[1]:
            raise InputError(f"The weights have {self.thetas.shape[1]} entries and the feature map gives {dim}.")


def _products(rows: Any, weights: Array, edges: NDArray[np.int64]) -> Array:
    """(m, k) products of rows (m, d) with the weights (p, k, d) of the policy that each belongs to."""
    p, k, _ = weights.shape
    out = np.zeros((rows.shape[0], k))
    if not _checks.is_sparse(rows):
        for owner, (first, last) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
            if first < last:
                np.matmul(rows[first:last], weights[owner].T, out=out[first:last])
        return out
    filled = np.flatnonzero(np.diff(rows.indptr))
    owners = np.repeat(np.repeat(np.arange(p), np.diff(edges)), np.diff(rows.indptr))
    terms = rows.data[:, None] * weights.transpose(0, 2, 1)[owners, rows.indices]
    if len(filled):
        out[filled] = np.add.reduceat(terms, rows.indptr[:-1][filled], axis=0)
    return out


def _transform(feature_map: Any, given: Any) -> Any:
    rows = feature_map.transform(given) if hasattr(feature_map, "transform") else feature_map(given)
    return _checks.sparse_rows("features", rows) if _checks.is_sparse(rows) else _checks.matrix("features", rows)


def _model_states(model: Environment, observations: Any) -> Any:
    if isinstance(model, TabularMDP):
        return _checks.indices("observations", observations, None, model.n_states)
    width = len(model.low)
    return model.states_of(_checks.matrix("observations", observations, n_columns=width).astype(np.float64))


def _readable(feature_map: Any) -> None:
    if not (hasattr(feature_map, "transform") or callable(feature_map)):
        raise InputTypeError(
            f"feature_map must have a transform method or be callable, and {type(feature_map).__name__} does neither."
        )
