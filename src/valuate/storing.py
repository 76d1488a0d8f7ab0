"""Copying features once into the memory that the kernels like: aligned, padded, each row stored once."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from valuate import _checks
from valuate._kernels import layouts
from valuate.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Index = NDArray[Any]
    Flags = NDArray[np.bool_]
    Blocks = Iterable[tuple[Any, Any]]

#: Rows and transitions are counted in 32 bits.
MOST_ROWS = 2**31 - 1
#: Rows compared or copied at a time.
BLOCK = 8192
#: The largest entry of a column lies between these, by bytes an entry, so that what is computed from its square
#: neither vanishes nor overflows.
RANGE = {4: (1e-15, 1e15), 8: (1e-50, 1e50)}


def padded_table(features: NDArray[Any]) -> NDArray[Any]:
    """An aligned and padded copy of ``features``, (n, padded): what the caller writes to later changes nothing."""
    return dense_table([(slice(0, len(features)), features)], len(features))


def dense_table(blocks: Blocks, size: int) -> NDArray[Any]:
    """A padded table of ``size`` rows from blocks of (places in the table, features); (size, padded)."""
    table: Any = None
    for places, features in blocks:
        dim = features.shape[1]
        if table is None:
            table = layouts.aligned_zeros((size, layouts.padded(dim, features.dtype)), features.dtype)
        elif table.dtype != np.promote_types(table.dtype, features.dtype):  # earlier blocks were float32
            wider = layouts.aligned_zeros((size, layouts.padded(dim, features.dtype)), features.dtype)
            wider[:, :dim] = table[:, :dim]
            table = wider
        table[places, :dim] = features
    return np.asarray(table)


def sparse_table(blocks: Blocks, size: int) -> Any:
    """A CSR table of ``size`` rows from blocks of (places in the table, CSR features)."""
    held = list(blocks)
    stacked = sp.vstack([features for _, features in held], format="csr")
    order = np.empty(size, np.int64)
    at = 0
    for places, features in held:
        order[places] = np.arange(at, at + features.shape[0])
        at += features.shape[0]
    return tidy(stacked if (order[1:] > order[:-1]).all() else stacked[order], copy=False)


def cut(rows: Index | None, places: Index, block: int = BLOCK) -> Iterator[tuple[Any, Index]]:
    """Pairs of (rows of a matrix, their places in a table), a block at a time; None means all rows in order."""
    for first in range(0, len(places), block):
        part = slice(first, min(first + block, len(places)))
        yield part if rows is None else rows[part], places[part]


def follows(states: Any, next_states: Any, ended: Flags) -> Flags:
    """Where the next state is the state of the following row: (n,) flags. Compares in blocks."""
    n = len(ended)
    out = np.zeros(n, bool)
    if n == 1:
        return out
    sparse = _checks.is_sparse(states)
    likely = np.flatnonzero(~ended[:-1])
    if sparse:  # lengths are compared first, to keep the differences small
        lengths, nexts = np.diff(states.indptr), np.diff(next_states.indptr)
        likely = likely[nexts[likely] == lengths[likely + 1]]
    for first in range(0, len(likely), BLOCK):
        rows = likely[first : first + BLOCK]
        if sparse:
            out[rows] = np.diff((states[rows + 1] != next_states[rows]).indptr) == 0
            continue
        whole = rows[-1] - rows[0] + 1 == len(rows)
        here = slice(rows[0], rows[-1] + 1) if whole else rows
        following = slice(rows[0] + 1, rows[-1] + 2) if whole else rows + 1
        try:
            same = np.asarray(next_states[here] == states[following])
            out[rows] = same.reshape(len(rows), -1).all(axis=1)
        except (TypeError, ValueError):  # objects that cannot be compared
            return np.zeros(n, bool)
    return out


def places(chained: Flags, ended: Flags) -> tuple[Index, Index, Index]:
    """Where each row's state and next state are stored when every row of a trajectory is stored once.

    An ended row needs no next state and points at itself; a chained one points at the following row; any other
    next state is stored right behind its state.

    Returns
    -------
    state, next : (n,) places in the table
    own : rows whose next state has a place of its own
    """
    apart = ~(chained | ended)
    state = np.arange(len(ended), dtype=np.int64)
    state[1:] += np.cumsum(apart[:-1])
    follower = state.copy()
    follower[apart] += 1
    follower[:-1][chained[:-1]] = state[1:][chained[:-1]]
    return state, follower, np.flatnonzero(apart)


def pairs(features: Any, next_features: Any, ended: Flags) -> tuple[Any, Index, Index]:
    """One table of all rows of two matrices, a trajectory stored once; and where each state and next state lies."""
    sparse = _checks.is_sparse(features)
    state, follower, own = places(follows(features, next_features, ended), ended)
    if not len(own):
        return (tidy(features) if sparse else padded_table(features)), state, follower
    blocks = chain(
        ((place, features[rows]) for rows, place in cut(None, state)),
        ((place, next_features[rows]) for rows, place in cut(own, follower[own])),
    )
    return (sparse_table if sparse else dense_table)(blocks, len(ended) + len(own)), state, follower


def tidy(table: Any, *, copy: bool = True) -> Any:
    """A canonical CSR matrix with 64-bit row starts, 32-bit columns and arrays of its own; values kept."""
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    out = sp.csr_matrix(table.shape, dtype=table.dtype)
    # Assigned after the fact: the constructor would give both index arrays the same type.
    out.data = np.array(table.data) if copy else table.data
    out.indices = np.array(table.indices, dtype=np.int32)
    out.indptr = np.array(table.indptr, dtype=np.int64)
    return out


def require_range(table: Any, dim: int, state: Index) -> NDArray[np.float64]:
    """Refuse columns too large to be squared, or too small in all the rows that are states (next rows may be so).

    What is computed from them would be wrong, or NaN. Returns the peaks of all columns.
    """
    low, high = RANGE[table.dtype.itemsize]
    largest = column_peaks(table, dim)
    used = np.zeros(table.shape[0], bool)
    used[state] = True
    # The first states show, nearly always, that no column is too small.
    if (largest <= high).all() and (column_peaks(table[:BLOCK][used[:BLOCK]], dim) >= low).all():
        return largest
    of_states = largest if used.all() else column_peaks(table[used], dim)
    outside = (largest > high) | ((of_states < low) & (of_states > 0))
    if outside.any():
        column = int(outside.argmax())
        size = largest[column] if largest[column] > high else of_states[column]
        wider = " or give the features as float64" if table.dtype.itemsize == 4 else ""
        raise InputError(
            f"features of column {column} are at most {size:.2g} in size, and {low:g} to {high:g} is what can be "
            f"computed with in {table.dtype}. Rescale the column{wider}; its weight changes by the inverse."
        )
    return largest


def column_peaks(table: Any, dim: int) -> NDArray[np.float64]:
    """The size of the largest entry of each column of a table: (dim,)."""
    peaks = np.zeros(dim)
    if _checks.is_sparse(table):
        np.maximum.at(peaks, table.indices, np.abs(table.data))
        return peaks
    for first in range(0, len(table), BLOCK):
        block = table[first : first + BLOCK, :dim]
        np.maximum(peaks, np.maximum(block.max(axis=0), -block.min(axis=0)), out=peaks)
    return peaks


def scaled_table(table: Any, units: NDArray[np.float64]) -> Any:
    """A copy of a table whose columns are multiplied by ``units``, (dim,)."""
    units = units.astype(table.dtype)
    if _checks.is_sparse(table):
        out = tidy(table)
        out.data *= units[out.indices]
        return out
    scaled = layouts.aligned_zeros(table.shape, table.dtype)
    np.multiply(table[:, : len(units)], units, out=scaled[:, : len(units)])
    return scaled


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
    largest = max(len(state), 1 + int(state.max()), 1 + int(follower.max()))
    if largest > MOST_ROWS:
        raise InputError(f"{largest:,} rows are more than {MOST_ROWS:,}, the most that one problem in memory holds.")
    out = layouts.aligned_empty((len(state),), layouts.RECORD)
    out["state"], out["next"], out["reward"], out["discount"] = state, follower, rewards, discounts
    if ended is not None and ended.any():
        out["discount"][ended] = 0.0
        out["next"][ended] = out["state"][ended]
    out["scale"] = 1.0 if ratios is None else ratios
    if weights is None or (weights == weights[0]).all():
        return out, np.empty(0)
    shares = weights / weights.max()  # first, for weights may be as small as float64 goes
    shares *= len(weights) / shares.sum()
    out["scale"] *= shares
    return out, shares
