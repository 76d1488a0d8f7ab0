"""Blocks of rows side by side, made on all cores, so that sums of outer products are matrix products."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg as la

from valuate._kernels import gather
from valuate._threads import one_blas_thread, run_all, thread_count

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[Any]

#: Entries of a block: small enough for the cache that the cores share ...
ENTRIES = 1 << 19
#: ... but no fewer rows than these, for a product also has to read and write all of its result ...
FEWEST = 1024
#: ... and no more.
MOST = 8192
#: Entries from which on another thread is worth while.
WORTH = 1 << 15
#: Rows of fewer entries are filled in by one thread: products of so few columns take so short that the threads of the
#: matrix library, which go on asking for work for a while, would hold up ours. Measured at 20 columns: 5 times slower.
NARROW = 128


#: Up to so many columns every thread multiplies blocks of its own, which is as quick as several threads on one product
#: and leaves none of the library's behind that ask for work.
COLUMNS_ALONE = 4096
#: Sums of their own that these make, which are added in order; and where there are more columns than this only two.
PARTS, NARROW_SUMS = 8, 512


class Factors(NamedTuple):
    """A factor a row of a block, (m,) each: left = on_left phi and right = on_state phi - on_next phi'."""

    on_left: Vector
    on_state: Vector
    on_next: Vector


def blocks(n_rows: int, dim: int) -> list[tuple[int, int]]:
    """Rows cut into blocks; the cut depends on the shape alone."""
    return _cut(0, n_rows, dim)


def _cut(begin: int, end: int, dim: int) -> list[tuple[int, int]]:
    size = min(MOST, max(FEWEST, ENTRIES // max(1, dim)))
    return [(first, min(first + size, end)) for first in range(begin, end, size)]


class Units(NamedTuple):
    """A unit a column, (dim,) each, for the left and the right matrix."""

    left: Vector
    right: Vector


def pairs(
    table: Any,
    dim: int,
    records: Any,
    factors: Callable[[int, int], Factors],
    units: Units | None = None,
    kind: type[np.floating[Any]] = np.float64,
    *,
    may_share: bool = False,
    part: tuple[int, int] | None = None,
) -> Iterator[tuple[int, int, Matrix, Matrix]]:
    """For each block its first and last row, and the matrices left and right, (m, dim), that the next block reuses.

    Parameters
    ----------
    table : (n_stored, padded) array
    records : (n,) array of `layouts.RECORD`
    factors : callable
        The factors of the rows from the first to the last of a block.
    units : Units, optional
        What columns are multiplied by.
    kind : type
        Of the entries of the matrices.
    may_share : bool
        Where left is a part of the table as it lies, it may be that part, to which nobody may write.
    part : (int, int), optional
        Only the records from the first to the last, by the calling thread alone.
    """
    cuts = blocks(len(records), dim) if part is None else _cut(*part, dim)
    buffers: list[Any] = [None, np.empty((cuts[0][1], dim), kind)]
    as_it_lies = may_share and units is None and table.dtype == kind and table.shape[1] == dim
    on_columns = (None, None) if units is None else tuple(units)
    for first, last in cuts:
        given = [np.ascontiguousarray(part, dtype=np.float64) for part in factors(first, last)]
        right, left = buffers[1][: last - first], None
        states = records["state"][first:last]
        shared = as_it_lies and bool((given[0] == 1.0).all()) and bool((np.diff(states) == 1).all())
        if not shared:
            if buffers[0] is None:
                buffers[0] = np.empty_like(buffers[1])
            left = buffers[0][: last - first]
        run_all(
            [
                partial(gather.pair_rows, table, records, first, begin, end, *given, *on_columns, left, right)
                for begin, end in _parts(last - first, dim, alone=part is not None)
            ]
        )
        yield first, last, table[states[0] : states[0] + last - first] if left is None else left, right


def scaled(
    table: Any,
    dim: int,
    factors: Vector,
    places: Any = None,
    units: Vector | None = None,
    kind: type[np.floating[Any]] = np.float64,
    part: tuple[int, int] | None = None,
) -> Iterator[Matrix]:
    """Blocks of rows of the table, each times its factor, a column its unit: (m, dim), reused by the next block.

    The rows at ``places``, or all in order; a ``part`` of them by the calling thread alone.
    """
    cuts = blocks(len(factors), dim) if part is None else _cut(*part, dim)
    buffer = np.empty((cuts[0][1], dim), kind)
    for first, last in cuts:
        given = np.ascontiguousarray(factors[first:last], dtype=np.float64)
        out = buffer[: last - first]
        run_all(
            [
                partial(gather.scaled_rows, table, places, first, begin, end, given, units, out)
                for begin, end in _parts(last - first, dim, alone=part is not None)
            ]
        )
        yield out


def combined(counts: Any, table: Any, dim: int, part: tuple[int, int] | None) -> Iterator[tuple[Matrix, Matrix]]:
    """Blocks of the table's rows, and of a CSR matrix's, (n_stored, n_stored), times the table: (m, dim) each.

    Of a part of the rows or of all, by the calling thread; both are reused by the next block.
    """
    cuts = _cut(*(part or (0, len(table))), dim)
    left, right = np.empty((2, max(last - first for first, last in cuts), dim))
    for first, last in cuts:
        here, there = left[: last - first], right[: last - first]
        here[...] = table[first:last, :dim]
        gather.combined_rows(counts.indptr, counts.indices, counts.data, table, first, last, there)
        yield here, there


def add_traces(rows: Matrix, keep: Vector, carry: Vector) -> None:
    """Turn a block of rows into traces, in place; ``carry`` is the trace before it, and then that of its last row."""
    dim = rows.shape[1]
    # Whole cache lines for each thread; a column's traces do not depend on the others.
    count = _workers(len(rows), dim)
    edges = [8 * (dim * k // (8 * count)) for k in range(count)] + [dim]
    run_all(
        [
            partial(gather.add_traces, rows, keep, carry, begin, end)
            for begin, end in zip(edges[:-1], edges[1:], strict=True)
            if begin < end
        ]
    )


def add_product(out: Matrix, left: Matrix, right: Matrix) -> Matrix:
    """``out`` + left' right, written to ``out``: (dim, dim), C-contiguous; all float64 or all float32."""
    multiply = la.blas.sgemm if out.dtype == np.float32 else la.blas.dgemm
    return np.asarray(multiply(1.0, right.T, left.T, beta=1.0, c=out.T, trans_b=True, overwrite_c=True).T)


def add_square(upper: Matrix, rows: Matrix) -> Matrix:
    """``upper`` + rows' rows in the upper triangle, written to ``upper``: (dim, dim), Fortran-contiguous."""
    multiply = la.blas.ssyrk if upper.dtype == np.float32 else la.blas.dsyrk
    return np.asarray(multiply(1.0, rows.T, beta=1.0, c=upper, overwrite_c=True))


def added_up(
    given: Callable[[tuple[int, int] | None], Iterable[tuple[Matrix, Matrix | None]]],
    n_rows: int,
    dim: int,
    kind: type[np.floating[Any]] = np.float64,
    *,
    square: bool = False,
) -> tuple[Matrix, Matrix]:
    """The sums of left' right and, in the upper triangle, of left' left over blocks: (dim, dim) each.

    What is below that triangle means nothing.

    Parameters
    ----------
    given : callable
        The blocks of a part of the rows, or of all; ``right`` may be None, and the first sum is then 0.
    square : bool
        Whether the second sum is wanted; 0 otherwise.
    """
    if dim > COLUMNS_ALONE:
        across, upper = np.zeros((dim, dim), kind), np.zeros((dim, dim), kind, order="F")
        for left, right in given(None):
            across = across if right is None else add_product(across, left, right)
            upper = add_square(upper, left) if square else upper
        return across, upper
    count = max(1, min(PARTS if dim <= NARROW_SUMS else 2, n_rows // FEWEST))
    edges = [n_rows * k // count for k in range(count + 1)]
    sums = np.zeros((2, count, dim, dim), kind)

    def add(k: int) -> None:
        room = np.empty((dim, dim), kind)
        for left, right in given((edges[k], edges[k + 1])):
            if right is not None:
                sums[0, k] += np.matmul(left.T, right, out=room)
            if square:
                sums[1, k] += np.matmul(left.T, left, out=room)

    with one_blas_thread():
        run_all([partial(add, k) for k in range(count)])
    across, whole = (part.sum(axis=0) if count > 1 else part[0] for part in sums)
    return across, whole.T  # symmetric: the upper triangle is there, and more


def mirrored(upper: Matrix) -> Matrix:
    """The symmetric matrix with this upper triangle, in place and as a C-contiguous array."""
    for first in range(0, len(upper), 512):
        part = slice(first, first + 512)
        corner = upper[part, part]
        corner[...] = np.triu(corner) + np.triu(corner, 1).T
        upper[first + 512 :, part] = upper[part, first + 512 :].T
    return upper.T


def _workers(n_rows: int, dim: int) -> int:
    return 1 if dim < NARROW else max(1, min(thread_count(), n_rows * dim // WORTH))


def _parts(n_rows: int, dim: int, *, alone: bool = False) -> list[tuple[int, int]]:
    count = 1 if alone else _workers(n_rows, dim)
    edges = [n_rows * k // count for k in range(count + 1)]
    return list(zip(edges[:-1], edges[1:], strict=True))
