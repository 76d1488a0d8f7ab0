"""One walk over a column of states: a number for each row by which rows are told apart, and what each entry spans.

Rows are compared many times, at many distances; so each row is turned once into 64 bits that are equal for equal rows.
Different rows share them one time in 2^60 or so, which is nothing where shares of rows are counted.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate import _checks
from valuate._threads import cut, run_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Hashes = NDArray[np.uint64]
    Vector = NDArray[np.float64]

#: Entries looked at together: an eighth of a megabyte, so that what is made of them stays in cache.
TOGETHER = 1 << 14
#: Rows folded onto each other before the least and the largest of each entry are taken, so that loops are long.
FOLD = 64


class Survey(NamedTuple):
    """What one walk finds.

    Attributes
    ----------
    hashes : (n,) uint64
    low, high : (k,) array, or None where the entries are not real numbers
        The least and the largest of each entry of a row.
    prints : (k,) array or None
        A weighted sum of each entry over the rows: equal for equal entries, but for rounding.
    """

    hashes: Hashes
    low: Vector | None = None
    high: Vector | None = None
    prints: Vector | None = None


def common_dtype(*columns: Any) -> np.dtype[Any]:
    """The type in which rows of these columns are compared: the coarser of two kinds of float."""
    dtypes = [column.dtype for column in columns]
    kinds = {dtype.kind for dtype in dtypes}
    if kinds == {"f"}:
        return min(dtypes, key=lambda dtype: int(dtype.itemsize))
    if kinds <= set("biu"):
        return np.dtype(np.int64)
    return np.result_type(*dtypes)


def survey(column: Any, dtype: np.dtype[Any] | None = None, *, entries: bool = False) -> Survey | None:
    """Look at every row of a column of states; None where rows cannot be compared.

    Parameters
    ----------
    column : (n, ...) array or CSR matrix
    dtype : numpy dtype, optional
        That rows are compared in; see `common_dtype`.
    entries : bool
        Whether to look at what each entry spans too.
    """
    if _checks.is_sparse(column):
        return Survey(_sparse_hashes(column, column.dtype if dtype is None else dtype))
    dtype = column.dtype if dtype is None else dtype
    if dtype.kind == "O":
        return _object_hashes(column)
    rows = _as_words(column.reshape(len(column), -1))
    if rows.dtype != column.dtype:
        dtype = rows.dtype
    n, width = rows.shape
    factors = np.random.default_rng(0).integers(0, 1 << 63, width, dtype=np.uint64) | np.uint64(1)
    hashes = np.empty(n, np.uint64)
    blocks = cut(n, width, 1)
    entries = entries and column.dtype.kind in "biuf"
    outs: list[Any] = [None] * len(blocks)

    def look(k: int) -> None:
        outs[k] = _walk(rows, dtype, factors, hashes, *blocks[k], entries)

    run_all([partial(look, k) for k in range(len(blocks))])
    if not entries:
        return Survey(hashes)
    lows, highs, prints = zip(*outs, strict=True)
    return Survey(hashes, np.min(lows, axis=0), np.max(highs, axis=0), np.sum(prints, axis=0))


def _walk(
    rows: Any, dtype: np.dtype[Any], factors: Hashes, hashes: Hashes, first: int, last: int, entries: bool
) -> tuple[Vector, Vector, Vector] | None:
    width = rows.shape[1]
    step = max(1, TOGETHER // width)
    rng = np.random.default_rng(first)
    weights = rng.normal(size=step)
    low, high, prints = np.full(width, np.inf), np.full(width, -np.inf), np.zeros(width)
    for at in range(first, last, step):
        part = np.ascontiguousarray(rows[at : min(at + step, last)])
        hashes[at : at + len(part)] = np.einsum("ij,j->i", _mixed(part, dtype), factors)
        if entries:
            np.minimum(low, _folded(np.minimum, part), out=low)
            np.maximum(high, _folded(np.maximum, part), out=high)
            with np.errstate(over="ignore", invalid="ignore"):
                prints += rng.random() * (part.T.astype(np.float64, copy=False) @ weights[: len(part)])
    return (low, high, prints) if entries else None


def _as_words(rows: Any) -> Any:
    """Text and records as whole numbers, anything else as it is."""
    if rows.dtype.kind in "SUV":
        size = 4 if rows.dtype.kind == "U" else 1
        return np.ascontiguousarray(rows).view(f"u{size}").reshape(len(rows), -1)
    return rows


def _mixed(part: Any, dtype: np.dtype[Any]) -> Any:
    """The entries as 64 bits each, with the upper half in the lower half too: small floats have nothing there."""
    if dtype.kind == "f":
        # Adding 0 makes 0 of -0, which is equal to it and has other bits.
        exact = np.float64 if dtype.itemsize >= 8 else np.float32
        bits = (part.astype(exact, copy=False) + exact(0)).view(np.uint64 if exact is np.float64 else np.uint32)
    elif dtype.kind == "c":
        bits = (part.astype(np.complex128, copy=False) + 0.0).view(np.uint64)
        bits = bits[:, ::2] + np.uint64(0x9E3779B97F4A7C15) * bits[:, 1::2]
    else:
        bits = part.astype(np.int64, copy=False).view(np.uint64)
    bits = bits.astype(np.uint64, copy=False)
    return bits ^ (bits >> np.uint64(32))


def _folded(least: Any, part: Any) -> Any:
    """The least, or largest, of each column."""
    m, width = part.shape
    whole = m - m % FOLD
    if not whole:
        return least.reduce(part, axis=0)
    wide = least.reduce(part[:whole].reshape(FOLD, -1), axis=0)
    out = least.reduce(wide.reshape(-1, width), axis=0)
    return out if whole == m else least(out, least.reduce(part[whole:], axis=0))


def _sparse_hashes(matrix: Any, dtype: np.dtype[Any]) -> Hashes:
    factors = np.random.default_rng(0).integers(0, 1 << 63, matrix.shape[1], dtype=np.uint64) | np.uint64(1)
    terms = _mixed(matrix.data[:, None], dtype)[:, 0] * factors[matrix.indices]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    return np.asarray(sums[matrix.indptr[1:]] - sums[matrix.indptr[:-1]])


def _object_hashes(column: Any) -> Survey | None:
    rows = column.reshape(len(column), -1)
    try:
        found = [hash(tuple(row)) for row in rows.tolist()]
    except TypeError:  # states that cannot be hashed
        return None
    return Survey(np.array(found, np.int64).view(np.uint64))


def equal_entries(column: Any, found: Survey) -> list[tuple[int, int]]:
    """Pairs (i, j) of entries, i < j, that are equal in every row, each j once; constant ones are left out."""
    if found.prints is None or found.low is None or found.high is None or len(found.prints) < 2:
        return []
    rows = column.reshape(len(column), -1)
    order = np.lexsort((np.arange(len(found.prints)), found.prints))
    values = found.prints[order]
    near = np.abs(np.diff(values)) <= 1e-9 * np.maximum(np.abs(values[1:]), np.abs(values[:-1]))
    pairs, tried = [], 0
    for k in np.flatnonzero(near):
        i, j = sorted((int(order[k]), int(order[k + 1])))
        if found.low[i] == found.high[i] or found.low[i] != found.low[j] or found.high[i] != found.high[j]:
            continue
        tried += 1
        if tried > MOST_PAIRS:
            break
        if _equal(rows, i, j):
            pairs.append((i, j))
    return sorted(pairs)


#: Pairs of entries compared row by row, at most.
MOST_PAIRS = 100


def _equal(rows: Any, i: int, j: int) -> bool:
    step = TOGETHER
    return all(np.array_equal(rows[at : at + step, i], rows[at : at + step, j]) for at in range(0, len(rows), step))
