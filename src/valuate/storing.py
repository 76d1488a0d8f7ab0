"""Features copied once into the memory that the kernels like: aligned, padded, each row once; and one look at them."""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from valuate import _checks, _threads, sparse_tables
from valuate._kernels import layouts, sums, survey
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
    """A CSR table of ``size`` rows from blocks of (places in the table, canonical CSR features)."""
    starts, order = np.zeros(size + 1, np.int64), np.empty(size, np.int64)
    columns, values = np.empty(0, np.int32), np.empty(0, np.float32)
    at = dim = 0
    for places, features in blocks:
        rows, dim = features.shape
        begin = int(starts[at])
        starts[at + 1 : at + rows + 1] = features.indptr[1:]
        starts[at + 1 : at + rows + 1] += begin
        order[places] = np.arange(at, at + rows)
        at += rows
        end = int(starts[at])
        if end > len(columns):  # as much as all rows would need if they were like those so far
            columns, values = (_longer(array, begin, max(end, end * size // at)) for array in (columns, values))
        if values.dtype != np.promote_types(values.dtype, features.dtype):  # earlier blocks were float32
            kept, values = values, np.empty(len(values), features.dtype)
            values[:begin] = kept[:begin]  # what lies beyond is not set yet, and may be no number to convert
        columns[begin:end], values[begin:end] = features.indices, features.data
    table = sparse_tables.csr(values[: starts[-1]], columns[: starts[-1]], starts, (size, dim))
    return table if (order[1:] > order[:-1]).all() else tidy(table[order], copy=False)


def _longer(array: NDArray[Any], used: int, length: int) -> NDArray[Any]:
    out = np.empty(length, array.dtype)
    out[:used] = array[:used]
    return out


def some_rows(table: Any, places: NDArray[Any]) -> Any:
    """The rows of a CSR table at these places, CSR.

    Indexing the table would copy all of its column numbers where row ends are of another type.
    """
    first = table.indptr[places].astype(np.int64)
    starts = np.zeros(len(places) + 1, np.int64)
    np.cumsum(table.indptr[np.asarray(places) + 1] - first, out=starts[1:])
    at = np.repeat(first - starts[:-1], np.diff(starts)) + np.arange(starts[-1])
    return sp.csr_matrix((table.data[at], table.indices[at], starts), (len(places), table.shape[1]))


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
    if _checks.is_sparse(states):
        return sparse_tables.follows(states, next_states, ended)
    likely = np.flatnonzero(~ended[:-1])
    for first in range(0, len(likely), BLOCK):
        rows = likely[first : first + BLOCK]
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
    """One table of all rows of two arrays, a trajectory stored once; and where each state and next state lies."""
    state, follower, own = places(follows(features, next_features, ended), ended)
    if not len(own):
        return padded_table(features), state, follower
    blocks = chain(
        ((place, features[rows]) for rows, place in cut(None, state)),
        ((place, next_features[rows]) for rows, place in cut(own, follower[own])),
    )
    return dense_table(blocks, len(ended) + len(own)), state, follower


def sparse_pairs(
    features: sparse_tables.Read, next_features: sparse_tables.Read, ended: Flags
) -> tuple[sparse_tables.Read, Index, Index]:
    """As `pairs`, of sparse matrices; where no next row has a place of its own the table is that of ``features``."""
    sizes = features.sizes.beside(next_features.sizes)
    alike = not np.isnan(sizes.constant)
    chained = sparse_tables.follows(features.table, next_features.table, ended, constant=alike)
    state, follower, own = places(chained, ended)
    return sparse_tables.joined(features, next_features, state, follower, own), state, follower


def tidy(table: Any, *, copy: bool = True) -> Any:
    """A canonical CSR matrix with 64-bit row starts, 32-bit columns and arrays of its own; values kept."""
    if not table.has_canonical_format:
        table = table.copy()
        table.sum_duplicates()
    values = np.array(table.data) if copy else table.data
    columns = table.indices.astype(np.int32, copy=copy)
    return sparse_tables.csr(values, columns, table.indptr.astype(np.int64, copy=copy), table.shape)


class Survey(NamedTuple):
    """What one look at all stored rows tells of the columns.

    Attributes
    ----------
    peaks : (dim,) array
        Size of the largest entry of each.
    squares, rewards : (dim,) array
        Sums over transitions of weight * phi_j^2 and of weight * ratio * reward * phi_j.
    finite : bool
        Whether no entry is NaN or infinite; where some are the rest means nothing.
    """

    peaks: NDArray[np.float64]
    squares: NDArray[np.float64]
    rewards: NDArray[np.float64]
    finite: bool


def surveyed(table: Any, dim: int, records: NDArray[Any], shares: NDArray[np.float64]) -> Survey:
    """Look at a dense table once, on all cores."""
    n_stored = table.shape[0]
    factors = np.zeros(n_stored), np.zeros(n_stored)
    survey.from_states(records, shares, 0, len(records), *factors)
    blocks = _threads.cut(n_stored, dim, 3 * dim)
    peaks = np.zeros((len(blocks), dim), table.dtype)
    sums_ = np.zeros((len(blocks), 2, dim))
    fine = [True] * len(blocks)

    def look(k: int) -> None:
        fine[k] = survey.dense_survey(table, *factors, *blocks[k], peaks[k], *sums_[k])

    _threads.run_all([partial(look, k) for k in range(len(blocks))])
    squares, rewards = sums_.sum(axis=0)
    return Survey(peaks.max(axis=0).astype(np.float64), squares, rewards, all(fine))


def require_range(table: Any, found: Survey, records: NDArray[Any], shares: NDArray[np.float64]) -> None:
    """Refuse columns too large to be squared, or too small in all the rows that are states (next rows may be so).

    What is computed from them would be wrong, or NaN.
    """
    low, high = RANGE[table.dtype.itemsize]
    n = len(records)
    # The mean square, by weights of mean 1, is no larger than the square of the largest entry.
    if (found.peaks <= high).all() and ((found.squares >= n * low * low) | (found.peaks == 0)).all():
        return
    _require_columns(table, found.peaks, records, shares)


def require_sizes(table: Any, sizes: sparse_tables.Sizes, records: NDArray[Any], shares: NDArray[np.float64]) -> None:
    """As `require_range`, of a sparse table: columns are looked at where the sizes of all entries leave a doubt."""
    low, high = RANGE[table.dtype.itemsize]
    if sizes.least < low or sizes.most > high:
        _require_columns(table, column_peaks(table, table.shape[1]), records, shares)


def _require_columns(
    table: Any, peaks: NDArray[np.float64], records: NDArray[Any], shares: NDArray[np.float64]
) -> None:
    low, high = RANGE[table.dtype.itemsize]
    used = np.zeros(table.shape[0], bool)
    used[records["state"][shares > 0] if len(shares) else records["state"]] = True
    of_states = peaks if used.all() else column_peaks(table, len(peaks), used)
    outside = (peaks > high) | ((of_states < low) & (of_states > 0))
    if outside.any():
        column = int(outside.argmax())
        size = peaks[column] if peaks[column] > high else of_states[column]
        wider = " or give the features as float64" if table.dtype.itemsize == 4 else ""
        raise InputError(
            f"features of column {column} are at most {size:.2g} in size, and {low:g} to {high:g} is what can be "
            f"computed with in {table.dtype}. Rescale the column{wider}; its weight changes by the inverse."
        )


def column_peaks(table: Any, dim: int, used: Flags | None = None) -> NDArray[np.float64]:
    """The size of the largest entry of each column of a table, or of those of its rows that are ``used``: (dim,)."""
    if _checks.is_sparse(table):
        return sparse_tables.column_peaks(table, dim, used)
    blocks = _threads.cut(len(table), table.shape[1], dim)
    parts = np.zeros((len(blocks), dim), table.dtype)
    _threads.run_all(
        [partial(sums.dense_column_peaks, table, used, *block, out) for block, out in zip(blocks, parts, strict=True)]
    )
    return np.asarray(parts.max(axis=0), dtype=np.float64)


def scaled_table(table: Any, dim: int, units: NDArray[np.float64]) -> Any:
    """A padded copy of a table whose columns are multiplied by ``units``, (dim,)."""
    units = units.astype(table.dtype)
    if _checks.is_sparse(table):
        out = tidy(table)
        out.data *= units[out.indices]
        return out
    scaled = layouts.aligned_zeros((len(table), layouts.padded(dim, table.dtype)), table.dtype)
    np.multiply(table[:, :dim], units, out=scaled[:, :dim])
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
