"""From checked input to rows in memory: the only place that picks a layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks, storing
from valuate.errors import InputError, InputTypeError
from valuate.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from valuate.transitions import Transitions

#: States transformed at a time, so that dense features exist twice for one block only.
BLOCK = 16384


def from_arrays(
    features: Any,
    rewards: ArrayLike,
    next_features: Any,
    discount: ArrayLike,
    terminated: ArrayLike | None,
    ratios: ArrayLike | None,
    weights: ArrayLike | None,
) -> Rows:
    """See `Problem.from_arrays`."""
    sparse = _checks.is_sparse(features)
    if sparse != _checks.is_sparse(next_features):
        raise InputTypeError("features and next_features must both be dense or both be sparse matrices.")
    read: Callable[..., Any] = _checks.sparse_rows if sparse else _checks.matrix
    features = read("features", features)
    n, dim = features.shape
    columns = _columns(n, rewards, discount, terminated, ratios, weights)
    ended = columns["discounts"] == 0
    next_features = read("next_features", _blank(next_features, ended), n_rows=n, n_columns=dim)
    common = np.promote_types(features.dtype, next_features.dtype)
    features, next_features = features.astype(common, copy=False), next_features.astype(common, copy=False)
    pairs = storing.sparse_pairs if sparse else storing.dense_pairs
    table, state, follower = pairs(features, next_features, ended)
    return _rows(table, dim, state, follower, columns, "sparse" if sparse else "dense")


def from_table(
    table: Any,
    states: ArrayLike,
    rewards: ArrayLike,
    next_states: ArrayLike,
    discount: ArrayLike,
    terminated: ArrayLike | None,
    ratios: ArrayLike | None,
    weights: ArrayLike | None,
) -> Rows:
    """See `Problem.from_table`."""
    sparse = _checks.is_sparse(table)
    table = _checks.sparse_rows("table", table) if sparse else _checks.matrix("table", table)
    state = _checks.indices("states", states, None, table.shape[0])
    n = len(state)
    columns = _columns(n, rewards, discount, terminated, ratios, weights)
    follower = _checks.one_a_row("next_states", next_states, n)
    if columns["ended"] is not None and follower.dtype.kind in "iu":
        ended = columns["ended"]
        if ended.any():
            follower = np.where(ended, state, follower)
    follower = _checks.indices("next_states", follower, n, table.shape[0])
    stored = storing.tidy(table) if sparse else storing.padded_table(table)
    return _rows(stored, table.shape[1], state, follower, columns, "sparse" if sparse else "indexed")


def from_transitions(log: Transitions, feature_map: Any, discount: ArrayLike) -> Rows:
    """See `Problem.from_transitions`."""
    if not hasattr(log, "indexed_states"):
        raise InputTypeError(
            f"log must be a Transitions, not {type(log).__name__}. Arrays of features go to Problem.from_arrays."
        )
    columns = _columns(len(log), log.rewards, discount, log.terminated, log.ratios, log.weights)
    ended = columns["discounts"] == 0
    distinct = log.indexed_states() or _distinct(log)
    if distinct is None:
        states, next_states = log.states, log.next_states
        if _checks.is_sparse(states):
            chained = np.zeros(len(log), bool)
        else:
            chained = storing.follows(states, next_states, ended)
        state, follower, apart = storing.places(chained, ended)
        own = np.flatnonzero(apart)
        table, dim = _transformed(feature_map, states, next_states, state, follower[own], own)
    else:
        table, dim = _transformed(feature_map, distinct[0], None, None, None, None)
        state, follower = distinct[1], distinct[2]
    if _checks.is_sparse(table):
        return _rows(storing.tidy(table), dim, state, follower, columns, "sparse")
    few = distinct is not None and 2 * len(table) <= len(log)
    return _rows(table, dim, state, follower, columns, "indexed" if few else "dense")


def _columns(
    n: int,
    rewards: ArrayLike,
    discount: ArrayLike,
    terminated: ArrayLike | None,
    ratios: ArrayLike | None,
    weights: ArrayLike | None,
) -> dict[str, Any]:
    """The scalars of each row, checked."""
    ended = None if terminated is None else _checks.flags("terminated", terminated, n)
    if np.ndim(discount) == 0:
        discounts: Any = np.full(n, _checks.number("discount", discount, low=0.0, high=1.0))
    else:
        discounts = _checks.column("discount", discount, n, low=0.0, high=1.0)
    if ended is not None and ended.any():
        discounts = np.where(ended, 0.0, discounts)
    return {
        "rewards": _checks.column("rewards", rewards, n),
        "discounts": discounts,
        "ended": ended,
        "ratios": None if ratios is None else _checks.column("ratios", ratios, n, low=0.0),
        "weights": None if weights is None else _checks.weights("weights", weights, n),
    }


def _rows(table: Any, dim: int, state: Any, follower: Any, columns: dict[str, Any], layout: str) -> Rows:
    made, weights = storing.records(
        state,
        follower,
        columns["rewards"],
        columns["discounts"],
        columns["discounts"] == 0,
        columns["ratios"],
        columns["weights"],
    )
    return Rows(table, dim, made, weights, layout)


def _blank(next_features: Any, ended: NDArray[np.bool_]) -> Any:
    """``next_features`` with zeros where nothing follows, if there is anything there that a check would refuse."""
    if _checks.is_sparse(next_features) or not ended.any():
        return next_features
    array = np.asarray(next_features)
    if array.dtype.kind != "f" or array.ndim != 2 or len(array) != len(ended) or _checks.all_finite(array):
        return next_features
    array = array.copy()
    array[ended] = 0
    return array


def _distinct(log: Transitions) -> tuple[Any, Any, Any] | None:
    """The distinct states of a log of whole numbers or labels, when there are few; where each row's are."""
    states, next_states = np.asarray(log.states), np.asarray(log.next_states)
    if states.ndim != 1 or states.dtype.kind not in "iubUSO" or states.dtype.kind != next_states.dtype.kind:
        return None
    table, places = np.unique(np.concatenate([states, next_states]), return_inverse=True)
    if 2 * len(table) > len(log):
        return None
    return table, places[: len(log)], places[len(log) :]


def _transformed(
    feature_map: Any, states: Any, next_states: Any, place: Any, next_place: Any, own: Any
) -> tuple[Any, int]:
    """The table of features of ``states`` at ``place`` and of ``next_states[own]`` at ``next_place``.

    ``place`` is None where the states are the table's rows already. Dense features are written block by block.
    """
    n = states.shape[0]
    total = n if place is None else n + len(own)
    place = np.arange(n) if place is None else place
    table: Any = None
    sparse: list[tuple[Any, Any]] = []
    pieces = [(states, np.arange(at, min(at + BLOCK, n)), place) for at in range(0, n, BLOCK)]
    if own is not None:
        pieces += [(next_states, own[at : at + BLOCK], None) for at in range(0, len(own), BLOCK)]
    at_own = 0
    for source, rows, where in pieces:
        features = _features_of(feature_map, source[rows] if place is not None else source)
        target = where[rows] if where is not None else next_place[at_own : at_own + len(rows)]
        at_own += len(rows) if where is None else 0
        if _checks.is_sparse(features):
            sparse.append((features, target))
            continue
        if table is None:
            shape = (total, storing.layouts.padded(features.shape[1], features.dtype))
            table, dim = storing.layouts.aligned_zeros(shape, features.dtype), features.shape[1]
        if features.shape[1] != dim:
            raise InputError(f"the feature map gave {features.shape[1]} features and, for earlier states, {dim}.")
        table[target, :dim] = features
    if not sparse:
        return table, dim
    from scipy.sparse import vstack

    stacked = vstack([features for features, _ in sparse], format="csr")
    order = np.empty(total, np.int64)
    order[np.concatenate([target for _, target in sparse])] = np.arange(total)
    return stacked[order], stacked.shape[1]


def _features_of(feature_map: Any, states: Any) -> Any:
    if feature_map is None:
        features = states.reshape(-1, 1) if states.ndim == 1 else states
    elif hasattr(feature_map, "transform"):
        features = feature_map.transform(states)
    elif callable(feature_map):
        features = feature_map(states)
    else:
        raise InputTypeError(
            f"feature_map must have a transform method or be callable, and {type(feature_map).__name__} does neither."
        )
    if _checks.is_sparse(features):
        return _checks.sparse_rows("features", features, n_rows=states.shape[0])
    return _checks.matrix("features", features, n_rows=states.shape[0])
