"""From checked input to rows in memory: the only place that picks a layout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate import _checks, distinct, sharing, sparse_tables, storing, transforming
from valuate.errors import InputError, InputTypeError
from valuate.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from valuate.transitions import Transitions

    Vector = NDArray[np.float64]

#: Rewards and ratios lie between these, so that their squares neither vanish nor overflow.
RANGE = (1e-50, 1e50)


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
    _checks.same_columns("features", features, "next_features", next_features)
    sparse = _checks.is_sparse(features)
    if sparse != _checks.is_sparse(next_features):
        raise InputTypeError("features and next_features must both be dense or both be sparse matrices.")
    if sparse:
        return _from_sparse(features, next_features, rewards, discount, terminated, ratios, weights)
    whole = sharing.one_matrix(features, next_features)
    if whole is None:
        features = _checks.matrix("features", features)
    n, dim = features.shape
    columns = _columns(n, rewards, discount, terminated, ratios, weights)
    if whole is not None:
        table = whole[: n if columns.ended[-1] else n + 1]
        state = np.arange(n)
        follower = np.where(columns.ended, state, state + 1)
        return _rows(table, dim, state, follower, columns, "dense", given=(features, next_features))
    next_features = _blank(next_features, columns.ended)
    next_features = _checks.matrix("next_features", next_features, n_rows=n, n_columns=dim)
    common = np.promote_types(features.dtype, next_features.dtype)
    features, next_features = features.astype(common, copy=False), next_features.astype(common, copy=False)
    table, state, follower = storing.pairs(features, next_features, columns.ended)
    return _rows(table, dim, state, follower, columns, "dense")


def _from_sparse(features: Any, next_features: Any, *scalars: Any) -> Rows:
    """As `from_arrays`; matrices that are in order are used as they are, and others looked at again, to say why."""
    whole = sparse_tables.in_one(features, next_features)
    if whole is not None:
        n, dim = features.shape
        columns = _columns(n, *scalars)
        state = np.arange(n)
        found = sparse_tables.head(whole, n) if columns.ended[-1] else whole
        return _rows(found.table, dim, state, state + 1, columns, "sparse", sizes=found.sizes)
    first = sparse_tables.read("features", features)
    n, dim = first.table.shape
    columns = _columns(n, *scalars)
    second = sparse_tables.quick(next_features, n_rows=n, n_columns=dim)
    if second is None:
        next_features = _blank(next_features, columns.ended)
        second = sparse_tables.read("next_features", next_features, n_rows=n, n_columns=dim)
    found, state, follower = storing.sparse_pairs(first, second, columns.ended)
    return _rows(found.table, dim, state, follower, columns, "sparse", sizes=found.sizes)


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
    size, dim = table.shape
    state = _checks.indices("states", states, None, size)
    columns = _columns(len(state), rewards, discount, terminated, ratios, weights)
    follower = _checks.one_a_row("next_states", next_states, len(state))
    if columns.ended.any() and follower.dtype.kind in "iuf":
        gaps = follower.dtype.kind == "f" and bool(np.isnan(follower[columns.ended]).any())
        follower = follower.copy()
        follower[columns.ended] = 0  # not looked at
        if gaps and not (follower % 1).any():  # as pandas holds whole numbers beside gaps
            follower = follower.astype(np.int64)
    follower = _checks.indices("next_states", follower, len(state), size)
    stored = storing.tidy(table) if sparse else storing.padded_table(table)
    return _rows(stored, dim, state, follower, columns, "sparse" if sparse else "indexed")


def from_transitions(log: Transitions, feature_map: Any, discount: ArrayLike) -> Rows:
    """See `Problem.from_transitions`."""
    if not hasattr(log, "indexed_states"):
        raise InputTypeError(
            f"log must be a Transitions, not {type(log).__name__}. Arrays of features go to Problem.from_arrays."
        )
    columns = _columns(len(log), log.rewards, discount, log.terminated, log.ratios, log.weights)
    few = distinct.few_states(log, columns.ended)
    plan = transforming.plan(log, few, columns.ended)
    table, dim = transforming.table(feature_map, plan, columns.ended)
    layout = "sparse" if _checks.is_sparse(table) else "indexed" if few else "dense"
    return _rows(table, dim, plan.state, plan.follower, columns, layout)


class _Columns(NamedTuple):
    """The scalars of each row, checked; ``ended`` where nothing follows: terminated, or the discount is 0."""

    rewards: Vector
    discounts: Vector | float
    ended: NDArray[np.bool_]
    ratios: Vector | None
    weights: Vector | None


def _columns(
    n: int,
    rewards: ArrayLike,
    discount: ArrayLike,
    terminated: ArrayLike | None,
    ratios: ArrayLike | None,
    weights: ArrayLike | None,
) -> _Columns:
    rewards = _checks.column("rewards", rewards, n)
    scalar = np.ndim(_checks.as_array("discount", discount)) == 0
    discounts = (
        _checks.number("discount", discount, low=0.0, high=1.0)
        if scalar
        else _checks.column("discount", discount, n, low=0.0, high=1.0)
    )
    ended = np.broadcast_to(np.equal(discounts, 0.0), n)
    if terminated is not None:
        ended = ended | _checks.flags("terminated", terminated, n)
    ratios = None if ratios is None else _checks.column("ratios", ratios, n, low=0.0)
    _require_range(rewards, ratios)
    return _Columns(
        rewards, discounts, ended, ratios, None if weights is None else _checks.weights("weights", weights, n)
    )


def _require_range(rewards: Vector, ratios: Vector | None) -> None:
    """Refuse rewards whose squares, times those of the ratios, would overflow or vanish."""
    low, high = RANGE
    largest = max(float(rewards.max()), -float(rewards.min()))
    if not (largest == 0.0 or low <= largest <= high):
        raise InputError(
            f"rewards are {largest:.2g} at most, and {low:g} to {high:g} is what can be computed with. Rescale them; "
            "the values change by the same factor."
        )
    most = 1.0 if ratios is None else float(ratios.max())
    if not (most == 0.0 or low <= most * max(1.0, largest) <= high):
        raise InputError(
            f"ratios are {most:.2g} at most, and {low:g} to {high:g} is what can be computed with, rewards included. "
            "Clip or rescale them."
        )


def _rows(
    table: Any,
    dim: int,
    state: Any,
    follower: Any,
    columns: _Columns,
    layout: str,
    given: tuple[Any, ...] = (),
    sizes: sparse_tables.Sizes | None = None,
) -> Rows:
    """The rows, looked at once; ``given`` are features and next features that have not been checked before.

    ``sizes`` are those of the entries of a sparse table, where they are known.
    """
    rewards, discounts, ended, ratios, weights = columns
    records, shares = storing.records(state, follower, rewards, discounts, ended, ratios, weights)
    total = None if weights is None else float(weights.sum())
    if layout == "sparse":
        sizes = sizes or sparse_tables.survey(table.data)
        storing.require_sizes(table, sizes, records, shares)
        return Rows(table, dim, records, shares, layout, sizes, total)
    found = storing.surveyed(table, dim, records, shares)
    if not found.finite:
        for name, features in zip(("features", "next_features"), given, strict=False):
            _checks.finite(name, features)
    storing.require_range(table, found, records, shares)
    return Rows(table, dim, records, shares, layout, found, total)


def _blank(next_features: Any, ended: NDArray[np.bool_]) -> Any:
    """``next_features`` with zeros where nothing follows, if there is anything there that a check would refuse."""
    sparse = _checks.is_sparse(next_features)
    array: Any = next_features.tocsr() if sparse else _checks.as_array("next_features", next_features)
    fits = array.ndim == 2 and array.shape[0] == len(ended) and array.dtype.kind == "f"
    values = array.data if sparse else array
    if not fits or not ended.any() or _checks.all_finite(values):
        return next_features
    array = array.copy()
    if sparse:
        array.data[np.repeat(ended, np.diff(array.indptr))] = 0
    else:
        array[ended] = 0
    return array
