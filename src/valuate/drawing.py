"""Rows drawn at random: a subset without replacement, stretches of the log, or the heavy ones first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valuate._kernels import sums

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Rows of a stretch of the log. Where the next row is the next state, A of a stretch is nearer to that of the log than
#: A of as many rows at random; from some dozens on it makes no difference how long it is.
STRETCH = 128
#: Stretches at least.
FEWEST = 16


def stretches(n_rows: int, size: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """About ``size`` rows in stretches, which begin at random, one in each of as many equal parts of the log."""
    length = max(1, min(STRETCH, size // FEWEST))
    count = max(1, round(size / length)) if size < n_rows else 1
    edges = np.linspace(0, n_rows, count + 1).astype(np.int64)
    length = min(-(-size // count), int(np.diff(edges).min()))
    starts = edges[:-1] + (rng.random(count) * (np.diff(edges) - length + 1)).astype(np.int64)
    return np.asarray((starts[:, None] + np.arange(length)).reshape(-1), dtype=np.int32)


def subset(n_rows: int, size: int, rng: np.random.Generator) -> NDArray[np.int32]:
    """Draw ``size`` of ``n_rows`` rows without replacement: distinct draws are marked until there are enough.

    Where more than half is wanted the rows left out are drawn instead, so that few draws fall twice on one row.
    """
    keep = 2 * size <= n_rows
    missing = size if keep else n_rows - size
    bits = np.zeros(n_rows // 64 + 1, np.uint64)
    while missing:
        missing = sums.mark(bits, rng.integers(0, n_rows, size=missing, dtype=np.int32), missing)
    out = np.empty(size, np.int32)
    sums.marked(bits, n_rows, keep, out)
    return out


def heavy_first(
    sizes: NDArray[np.float64], size: int, rng: np.random.Generator
) -> tuple[NDArray[np.int32], NDArray[np.float64]] | None:
    """Rows for a sum of terms of these sizes, and what the term of each is to be multiplied with.

    Rows that are more than the ``size``-th part of the whole are taken, each once. Of the others ``size`` are drawn,
    half of them alike and half by their sizes. None where more than half as many are heavy: no such sum is known from
    few.
    """
    heavy = size * sizes > sizes.sum()
    certain, rest = np.flatnonzero(heavy), np.flatnonzero(~heavy)
    if 2 * len(certain) > size or not len(rest):
        return None
    ends = np.cumsum(sizes[rest])
    drawn = rng.integers(0, len(rest), size)
    chances = np.full(size, 1 / len(rest))
    if ends[-1] > 0:
        half = size // 2
        by_size = np.searchsorted(ends, ends[-1] * rng.random(half), side="right")
        drawn[:half] = np.minimum(by_size, len(rest) - 1)
        chances = 0.5 * chances + 0.5 * sizes[rest[drawn]] / ends[-1]
    counts = np.concatenate([np.ones(len(certain)), 1 / (size * chances)])
    return np.concatenate([certain, rest[drawn]]).astype(np.int32), counts
