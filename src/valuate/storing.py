"""Copying features once into the memory that the kernels like: aligned, padded, each row stored once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from valuate._kernels import layouts
from valuate.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[Any]
    Flags = NDArray[np.bool_]

#: Rows and transitions are counted in 32 bits.
MOST_ROWS = 2**31 - 1
#: Rows compared or copied at a time.
BLOCK = 8192


def padded_table(features: NDArray[Any]) -> NDArray[Any]:
    """``features`` itself where it is already aligned and padded, else a copy that is; (n, padded)."""
    n, dim = features.shape
    width = layouts.padded(dim, features.dtype)
    if width == dim and features.flags.c_contiguous and features.ctypes.data % layouts.LINE == 0:
        if features.flags.writeable and type(features) is np.ndarray:
            return features
    table = layouts.aligned_empty((n, width), features.dtype)
    table[:, :dim] = features
    table[:, dim:] = 0
    return table


def follows(states: Any, next_states: Any, ended: Flags) -> Flags:
    """Where the next state is the state of the following row: (n,) flags. Compares in blocks."""
    n = len(ended)
    out = np.zeros(n, bool)
    for first in range(0, n - 1, BLOCK):
        last = min(first + BLOCK, n - 1)
        same = next_states[first:last] == states[first + 1 : last + 1]
        out[first:last] = same.reshape(last - first, -1).all(axis=1)
    return out & ~ended


def places(chained: Flags, ended: Flags) -> tuple[Index, Index, Flags]:
    """Where each row's state and next state are stored when every row of a trajectory is stored once.

    An ended row needs no next state and points at itself; a chained one points at the following row; any other
    next state is stored right behind its state.

    Returns
    -------
    state, next : (n,) places in the table
    apart : (n,) flags of the next states that need a place of their own
    """
    apart = ~(chained | ended)
    state = np.arange(len(ended), dtype=np.int64)
    state[1:] += np.cumsum(apart[:-1])
    follower = state.copy()
    follower[apart] += 1
    follower[:-1][chained[:-1]] = state[1:][chained[:-1]]
    return state, follower, apart


def dense_pairs(features: NDArray[Any], next_features: NDArray[Any], ended: Flags) -> tuple[NDArray[Any], Index, Index]:
    """One table of all rows of two matrices, a trajectory stored once; and where each state and next state lies."""
    chained = follows(features, next_features, ended)
    state, follower, apart = places(chained, ended)
    if not apart.any():
        return padded_table(features), state, follower
    n, dim = features.shape
    table = layouts.aligned_empty((n + int(apart.sum()), layouts.padded(dim, features.dtype)), features.dtype)
    table[:, dim:] = 0
    for first in range(0, n, BLOCK):
        rows = slice(first, min(first + BLOCK, n))
        table[state[rows], :dim] = features[rows]
        own = np.flatnonzero(apart[rows]) + first
        table[follower[own], :dim] = next_features[own]
    return table, state, follower


def sparse_pairs(features: Any, next_features: Any, ended: Flags) -> tuple[Any, Index, Index]:
    """As `dense_pairs`, for CSR matrices."""
    chained = np.zeros(len(ended), bool)
    n = len(ended)
    # Rows are equal where their difference has no entries; lengths are compared first, to keep the difference small.
    lengths, nexts = np.diff(features.indptr), np.diff(next_features.indptr)
    likely = np.flatnonzero((nexts[:-1] == lengths[1:]) & ~ended[:-1]) if n > 1 else np.zeros(0, int)
    for first in range(0, len(likely), BLOCK):
        rows = likely[first : first + BLOCK]
        difference = features[rows + 1] - next_features[rows]
        chained[rows] = np.asarray(abs(difference).sum(axis=1)).ravel() == 0
    state, follower, apart = places(chained, ended)
    if not apart.any():
        return tidy(features), state, follower
    stacked = sp.vstack([features, next_features[apart]], format="csr")
    order = np.empty(stacked.shape[0], np.int64)
    order[state] = np.arange(n)
    order[follower[apart]] = n + np.arange(int(apart.sum()))
    return tidy(stacked[order]), state, follower


def tidy(table: Any) -> Any:
    """A CSR matrix with 64-bit row starts, 32-bit sorted unique columns and its own arrays; values kept."""
    table = sp.csr_matrix(table, copy=True)
    table.sum_duplicates()
    table.sort_indices()
    out = sp.csr_matrix(table.shape, dtype=table.dtype)
    # Assigned after the fact: the constructor would give both index arrays the same type.
    out.data = np.ascontiguousarray(table.data)
    out.indices = np.ascontiguousarray(table.indices, dtype=np.int32)
    out.indptr = np.ascontiguousarray(table.indptr, dtype=np.int64)
    return out


def records(
    state: Index,
    follower: Index,
    rewards: NDArray[np.float64],
    discounts: NDArray[np.float64] | float,
    ended: Flags | None,
    ratios: NDArray[np.float64] | None,
    weights: NDArray[np.float64] | None,
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """The records of all transitions, and their weights normalised to mean 1 (empty when all are equal)."""
    if len(state) > MOST_ROWS:
        raise InputError(f"{len(state):,} rows are more than {MOST_ROWS:,}, the most that one problem in memory holds")
    out = layouts.aligned_empty((len(state),), layouts.RECORD)
    out["state"], out["next"], out["reward"], out["discount"] = state, follower, rewards, discounts
    if ended is not None:
        out["discount"][ended] = 0.0
        out["next"][ended] = out["state"][ended]
    out["scale"] = 1.0 if ratios is None else ratios
    if weights is None or (weights == weights[0]).all():
        return out, np.empty(0)
    normal = weights * (len(weights) / weights.sum())
    out["scale"] *= normal
    return out, normal
