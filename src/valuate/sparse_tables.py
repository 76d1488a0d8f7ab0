"""Sparse matrices made into tables on all cores: checked, compared, and copied only where given arrays do not serve."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from valuate import _checks, _threads
from valuate._kernels import sparse, sums

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Index = NDArray[Any]
    Flags = NDArray[np.bool_]

#: Entries from which on another thread is worth while.
WORTH = 1 << 16


class Sizes(NamedTuple):
    """Of the entries of a table, or of more than those: the smallest size but 0, the largest size, and what all are.

    ``constant`` is the number that all entries are, NaN where they differ.
    """

    least: float
    most: float
    constant: float

    def beside(self, other: Sizes) -> Sizes:
        """Of the entries of both."""
        same = self.constant if self.constant == other.constant else np.nan
        return Sizes(min(self.least, other.least), max(self.most, other.most), same)


class Read(NamedTuple):
    """A table with what is known of its entries."""

    table: Any
    sizes: Sizes


def csr(values: NDArray[Any], columns: NDArray[np.int32], starts: NDArray[np.int64], shape: tuple[int, int]) -> Any:
    """A CSR matrix of these very arrays: the constructor would give both index arrays the same type."""
    out = sp.csr_matrix(shape, dtype=values.dtype)
    out.data, out.indices, out.indptr = values, columns, starts
    return out


def read(name: str, value: Any, *, n_rows: int | None = None, n_columns: int | None = None) -> Read:
    """As `_checks.sparse_rows`, made a table that uses the arrays of ``value`` where their types serve."""
    found = quick(value, n_rows=n_rows, n_columns=n_columns)
    if found is None:
        found = quick(_checks.sparse_rows(name, value, n_rows=n_rows, n_columns=n_columns))
    assert found is not None
    return found


def quick(value: Any, *, n_rows: int | None = None, n_columns: int | None = None) -> Read | None:
    """What `read` finds where ``value`` is in order; None where a slower look must say what is wrong, or mend it."""
    if not _plain_csr(value):
        return None
    shape, data, columns, starts = value.shape, value.data, value.indices, value.indptr
    wanted = shape[0] if n_rows is None else n_rows, shape[1] if n_columns is None else n_columns
    if shape != wanted or 0 in shape or len(starts) != shape[0] + 1:
        return None
    starts = _plain(starts.astype(np.int64, copy=False))
    used = int(starts[-1])
    if starts[0] != 0 or len(data) != len(columns) or not 0 <= used <= len(data):
        return None
    data, columns = _plain(data[:used]), _plain(columns[:used])
    found = _each(_look, shape[0], used, starts, columns, shape[1], *_bits(data))
    if None in found:
        return None
    sizes = _sizes(data, found)
    if not np.isfinite(sizes.most):
        return None
    return Read(_canonical(csr(data, columns.astype(np.int32, copy=False), starts, shape)), sizes)


def _usable(data: Any, columns: Any, starts: Any) -> bool:
    kinds = (np.float32, np.float64), (np.int32, np.int64), (np.int32, np.int64)
    return all(
        isinstance(array, np.ndarray) and array.ndim == 1 and array.dtype in kind
        for array, kind in zip((data, columns, starts), kinds, strict=True)
    )


def _canonical(table: Any) -> Any:
    table.has_canonical_format = True  # as has been seen; SciPy would look again
    return table


def survey(data: NDArray[Any]) -> Sizes:
    """What the entries of a table are; the largest is infinity or NaN where any is."""
    return _sizes(data, _each(sparse.survey, len(data), len(data), *_bits(data)))


def _look(starts: Any, columns: Any, dim: int, bits: Any, mask: Any, first: int, last: int) -> Any:
    """What `sparse.survey` finds in rows that are sound, None where some are not."""
    if not sparse.sound(starts, columns, dim, first, last):
        return None
    return sparse.survey(bits, mask, starts[first], starts[last])


def _bits(data: NDArray[Any]) -> tuple[NDArray[Any], Any]:
    """Floats as unsigned integers, and the mask of all bits but the sign."""
    kind = np.dtype(f"u{data.dtype.itemsize}")
    return data.view(kind), kind.type(np.iinfo(kind).max >> 1)


def _sizes(data: NDArray[Any], found: list[Any]) -> Sizes:
    """From what `sparse.survey` found in each part of the entries."""
    sizes = np.array([min(part[1] for part in found), max(part[0] for part in found)], f"u{data.dtype.itemsize}")
    sizes[:1] += 1  # back to 0 where nothing but 0 was found
    low, high = sizes.view(data.dtype).tolist()
    alike = len(data) > 0 and not any(part[2] for part in found)
    return Sizes(low if low != 0 else np.inf, high, float(data[0]) if alike else np.nan)


def in_one(features: Any, next_features: Any) -> Read | None:
    """One table of n + 1 rows where both are views of it, ``next_features`` one row ahead; else None.

    Told from addresses and row starts: no entry is compared.
    """
    if not (_plain_csr(features) and _plain_csr(next_features)) or features.shape != next_features.shape:
        return None
    n, dim = features.shape
    starts, nexts = features.indptr, next_features.indptr
    if n == 0 or dim == 0 or len(starts) != n + 1 or len(nexts) != n + 1 or starts[0] != 0 or nexts[0] != 0:
        return None
    ahead, length = int(starts[1]), int(nexts[n])
    if not all(_holds(matrix, int(matrix.indptr[n])) for matrix in (features, next_features)) or ahead < 0:
        return None
    if not np.array_equal(starts[2:] - starts[1], nexts[1:n]):
        return None
    parts = [
        _spanned(one, other, ahead, length)
        for one, other in ((features.data, next_features.data), (features.indices, next_features.indices))
    ]
    if parts[0] is None or parts[1] is None:
        return None
    whole = np.append(starts.astype(np.int64), ahead + length)
    return quick(csr(parts[0], parts[1], whole, (n + 1, dim)))


def _plain_csr(value: Any) -> bool:
    if getattr(value, "format", "") != "csr" or value.ndim != 2:
        return False
    return _usable(value.data, value.indices, value.indptr)


def _holds(matrix: Any, entries: int) -> bool:
    return 0 <= entries <= len(matrix.data) == len(matrix.indices)


def _spanned(one: NDArray[Any], other: NDArray[Any], ahead: int, length: int) -> NDArray[Any] | None:
    """``one`` up to the end of ``other``, where ``other`` lies ``ahead`` entries further on in the same memory."""
    if not length:  # an empty array has no address
        return one[:ahead]
    owner = one if one.base is None else one.base
    whose = other if other.base is None else other.base
    if owner is not whose or not isinstance(owner, np.ndarray) or not owner.flags.carray:
        return None
    if one.dtype != other.dtype or not (one.flags.carray and other.flags.carray):
        return None
    size = one.dtype.itemsize
    begin = one.ctypes.data - owner.ctypes.data
    if other.ctypes.data - one.ctypes.data != ahead * size or begin < 0:
        return None
    count = ahead + length
    return np.ndarray((count,), one.dtype, owner, begin) if begin + count * size <= owner.nbytes else None


def head(found: Read, n: int) -> Read:
    """The first ``n`` rows of a table."""
    starts = found.table.indptr[: n + 1]
    data, columns = found.table.data[: starts[-1]], found.table.indices[: starts[-1]]
    return Read(_canonical(csr(data, columns, starts, (n, found.table.shape[1]))), found.sizes)


def joined(features: Read, next_features: Read, state: Index, follower: Index, own: Index) -> Read:
    """One table of all rows and of the next rows that are ``own``, which lie right behind their states."""
    sizes = features.sizes.beside(next_features.sizes)
    if not len(own):
        return features
    (one, two), (n, dim) = (features.table, next_features.table), features.table.shape
    size = n + len(own)
    lengths = np.empty(size, np.int64)
    lengths[state], lengths[follower[own]] = np.diff(one.indptr), np.diff(two.indptr)[own]
    starts = np.zeros(size + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    apart = np.zeros(n, bool)
    apart[own] = True
    kind = np.promote_types(one.dtype, two.dtype)
    columns, values = np.empty(starts[-1], np.int32), np.empty(starts[-1], kind)
    given = (*_arrays(one, kind), *_arrays(two, kind), state, apart, starts)
    _each(sparse.interleave, n, int(starts[-1]), *given, after=(columns, values))
    return Read(_canonical(csr(values, columns, starts, (size, dim))), sizes)


def follows(states: Any, next_states: Any, ended: Flags, *, constant: bool = False) -> Flags:
    """Where the next row is the following row of ``states``: (n,) flags. Columns are sorted and unique.

    ``constant`` says that all entries of both are one number.
    """
    n = len(ended)
    out = np.zeros(n, bool)
    one, two = _arrays(states, states.dtype), _arrays(next_states, next_states.dtype)
    if constant:
        one, two = (*one[:2], None), (*two[:2], None)
    _each(sparse.following, n - 1, int(one[0][-1]), *one, *two, np.ascontiguousarray(ended), after=(out,))
    return out


def column_peaks(table: Any, dim: int, used: Flags | None = None) -> NDArray[np.float64]:
    """The size of the largest entry of each column of a table, or of those of its rows that are ``used``: (dim,)."""
    n, starts, columns = table.shape[0], table.indptr, table.indices
    # No more outputs than threads: the largest of all is the same however rows are cut.
    blocks = _blocks(n, min(len(columns), len(columns) * WORTH // dim))
    parts = np.zeros((len(blocks), dim))
    _threads.run_all(
        [
            partial(sums.column_peaks, starts, columns, table.data, used, *block, out)
            for block, out in zip(blocks, parts, strict=True)
        ]
    )
    return np.asarray(parts.max(axis=0))


def _arrays(table: Any, kind: Any) -> tuple[Any, Any, Any]:
    """Row starts, columns and entries as the kernels take them, which are copied where their types do not serve."""
    starts, columns = table.indptr.astype(np.int64, copy=False), table.indices.astype(np.int32, copy=False)
    data = table.data.astype(kind, copy=False)
    return _plain(starts), _plain(columns), _plain(data)


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """The array, or a copy where it does not lie as compiled code wants it.

    That does not write to it, but has another version for memory that must not be written to.
    """
    return np.require(array, requirements=["C", "A", "W"])


def _blocks(n_rows: int, entries: int) -> list[tuple[int, int]]:
    """Rows cut for as many threads as there are: for what comes out the same however they are cut."""
    count = max(1, min(_threads.thread_count(), entries // WORTH, n_rows))
    edges = [n_rows * k // count for k in range(count + 1)]
    return list(zip(edges[:-1], edges[1:], strict=True))


def _each(kernel: Callable[..., Any], n_rows: int, entries: int, *given: Any, after: tuple[Any, ...] = ()) -> list[Any]:
    """What a kernel returns for each block of the rows; it takes ``given``, the first and last row, and ``after``."""
    blocks = _blocks(n_rows, entries)
    found: list[Any] = [None] * len(blocks)

    def go(k: int) -> None:
        found[k] = kernel(*given, *blocks[k], *after)

    _threads.run_all([partial(go, k) for k in range(len(blocks))])
    return found
