"""A feature map applied to the states of a log: each state that is stored once is transformed once, in blocks."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate import _checks, distinct, storing
from valuate.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from valuate.transitions import Transitions

    Index = NDArray[Any]
    Flags = NDArray[np.bool_]

#: States transformed at a time, so that dense features exist twice for one block only.
BLOCK = 16384


class Plan(NamedTuple):
    """Which states are transformed, and where in a table of ``size`` rows their features go."""

    #: Of (states, rows of them or None for all, places in the table).
    parts: list[tuple[Any, Index | None, Index]]
    size: int
    state: Index
    follower: Index


def plan(log: Transitions, few: tuple[Any, Index, Index] | None, ended: Flags) -> Plan:
    """Every distinct state once, where they are few; else every trajectory once.

    A trajectory lies in the log's own table, or is where a next state is the state of the following row.
    """
    if few is not None:
        return Plan([(few[0], None, np.arange(len(few[0])))], len(few[0]), few[1], few[2])
    owned = log.indexed_states()
    if owned is not None:
        states, state, follower = owned
        used = distinct.in_use(states.shape[0], state, follower, ended)
        place, rows = np.cumsum(used) - 1, np.flatnonzero(used)
        return Plan([(states, rows, place[rows])], len(rows), place[state], np.where(ended, 0, place[follower]))
    states, next_states = log.states, log.next_states
    state, follower, own = storing.places(storing.follows(states, next_states, ended), ended)
    return Plan([(states, None, state), (next_states, own, follower[own])], len(log) + len(own), state, follower)


def table(feature_map: Any, plan: Plan, ended: Flags) -> tuple[Any, int]:
    """The table of features, padded or CSR, and their number."""
    blocks = _features(feature_map, plan, ended)
    first = next(blocks)
    store = storing.sparse_table if _checks.is_sparse(first[1]) else storing.dense_table
    return store(chain([first], blocks), plan.size), int(first[1].shape[1])


def _features(feature_map: Any, plan: Plan, ended: Flags) -> Iterator[tuple[Index, Any]]:
    """Blocks of (places in the table, features), checked; all of them dense or all sparse, and of one width."""
    kind: tuple[bool, int] | None = None
    for states, rows, places in plan.parts:
        for part, place in storing.cut(rows, places, BLOCK):
            # A copy: feature maps may write to what they are given.
            given = states[part].copy() if rows is None else states[part]
            features = _read_features(feature_map, given, place, plan, ended)
            found = _checks.is_sparse(features), int(features.shape[1])
            if kind is not None and found != kind:
                words = [f"{width} {'sparse' if sparse else 'dense'} features" for sparse, width in (found, kind)]
                raise InputError(
                    f"the feature map gave {words[0]} and, for earlier states, {words[1]}. It is called in blocks and "
                    "must treat each state alike, whichever others come with it: fit it before, on all states."
                )
            kind = found
            yield place, features


def _read_features(feature_map: Any, given: Any, place: Index, plan: Plan, ended: Flags) -> Any:
    name = "states" if feature_map is None else "the output of the feature map"
    features, count = _transform(feature_map, given), given.shape[0]
    sparse = _checks.is_sparse(features)
    if not sparse:
        features = _checks.as_array(name, features)
    if feature_map is not None and (features.ndim != 2 or features.shape[0] != count):
        advice = " Use .reshape(-1, 1) for one feature a state." if features.shape == (count,) else ""
        raise InputError(
            f"the feature map gave an array of shape {features.shape} for {count} states. It must give one row of "
            f"features a state, shape ({count}, dim).{advice}"
        )
    try:
        return _checks.sparse_rows(name, features) if sparse else _checks.matrix(name, features)
    except InputError:
        entries = features.tocoo() if sparse else None
        bad = np.argwhere(~np.isfinite(features if entries is None else entries.data))
        if not len(bad):
            raise
        row, column = bad[0] if entries is None else (entries.row[bad[0, 0]], entries.col[bad[0, 0]])
        state = f" ({given[row]})" if isinstance(given, np.ndarray) and given[row].size <= 8 else ""
        raise InputError(
            f"{name} has NaN or infinity in column {column} for {_whose(place[row], plan, ended)}{state}. "
            "Mend the map, or drop the rows."
        ) from None


def _whose(place: int, plan: Plan, ended: Flags) -> str:
    """The first row of the log whose state, or next state, has this place in the table."""
    rows = np.flatnonzero(plan.state == place)
    if len(rows):
        return f"row {rows[0]} of states"
    return f"row {np.flatnonzero((plan.follower == place) & ~ended)[0]} of next_states"


def _transform(feature_map: Any, states: Any) -> Any:
    if feature_map is None:
        return states.reshape(-1, 1) if states.ndim == 1 else states
    if isinstance(feature_map, type) and hasattr(feature_map, "transform"):
        raise InputTypeError(
            f"feature_map is the class {feature_map.__name__} itself; give a fitted object: {feature_map.__name__}()."
        )
    if hasattr(feature_map, "transform"):
        return feature_map.transform(states)
    if callable(feature_map):
        return feature_map(states)
    raise InputTypeError(
        f"feature_map must have a transform method or be callable, and {type(feature_map).__name__} does neither."
    )
