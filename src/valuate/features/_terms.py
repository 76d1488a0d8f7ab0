"""Vectors of whole numbers that say what features are made of, powers or coefficients; and making the features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import log10

import numpy as np
from numpy.typing import NDArray

from valuate.errors import InputError
from valuate.features._inputs import Array, blocks

__all__ = ["MOST_FEATURES", "combined", "count", "require_few", "terms"]

#: Of a dense map. More are refused with their count: for a million rows they would take 160 GB.
MOST_FEATURES = 20_000
#: Entries computed at a time: they stay in the cache.
BLOCK_ENTRIES = 1 << 16


def require_few(features: int, advice: str) -> None:
    """Refuse a dense map of more features than `MOST_FEATURES`, with their number and what to do."""
    if features > MOST_FEATURES:
        text = f"{features:,}" if features < 10**12 else f"about 10^{log10(features):.0f}"
        raise InputError(f"These would be {text} features, and {MOST_FEATURES:,} are the most. {advice}")


def terms(highest: Sequence[int], together: int, max_sum: int | None, constant: bool, advice: str) -> NDArray[np.int64]:
    """Vectors c with entries from 0 to ``highest``, at most ``together`` of them above 0 and a sum up to ``max_sum``.

    Returns
    -------
    (n_terms, k) array
        Sums going up, and among equal sums those of the first columns first; without c = 0 unless ``constant`` asks
        for it, or there is no other: a map has at least one feature. Too many are refused, with ``advice``.
    """
    together = min(together, len(highest) if max_sum is None else max_sum)
    require_few(count(highest, together, max_sum) + constant, advice)
    found = list(_extend((), highest, together, sum(highest) if max_sum is None else max_sum))
    found.sort(key=lambda row: (sum(row), [-entry for entry in row]))
    zero = (0,) * len(highest)
    return np.array([zero, *found] if constant or not found else found, dtype=np.int64)


def combined(
    states: NDArray[np.float32] | NDArray[np.float64],
    rows: NDArray[np.int64],
    prepare: Callable[[Array], Array],
    combine: np.ufunc,
    empty: float,
    finish: np.ufunc | None = None,
) -> Array:
    """One feature for each of ``rows`` (d, k), which `terms` made: (m, d).

    Each column of ``prepare(states)`` is combined with itself and the others as often as the row says; ``empty`` is
    what nothing combined is. Every feature comes of an earlier one by one operation, entry by entry, so that a state
    has the same features whichever others come with it.
    """
    steps = _steps(rows)
    out = np.empty((len(states), len(steps)))
    height = max(256, BLOCK_ENTRIES // len(steps))
    buffer = np.empty((len(steps), height))
    for part, block in blocks(states, height):
        columns = np.ascontiguousarray(prepare(block).T)
        features = buffer[:, : len(block)]
        for j, (before, column) in enumerate(steps):
            if column is None:
                features[j] = empty
            elif before is None:
                features[j] = columns[column]
            else:
                combine(features[before], columns[column], out=features[j])
        if finish is not None:
            finish(features, out=features)
        out[part] = features.T
    return out


def _steps(rows: NDArray[np.int64]) -> list[tuple[int | None, int | None]]:
    """How each feature comes about: which earlier one is combined with which column. None: from nothing."""
    places: dict[tuple[int, ...], int] = {}
    steps: list[tuple[int | None, int | None]] = []
    for j, entries in enumerate(map(tuple, rows.tolist())):
        places[entries] = j
        used = [column for column, entry in enumerate(entries) if entry]
        if not used:
            steps.append((None, None))
            continue
        last = used[-1]
        before = (*entries[:last], entries[last] - 1, *entries[last + 1 :])
        steps.append((places[before] if any(before) else None, last))
    return steps


def count(highest: Sequence[int], together: int, max_sum: int | None = None) -> int:
    """How many vectors of `terms` there are, without 0."""
    # By the number of entries above 0 and, where it is bounded, the sum.
    ways = {(0, 0): 1}
    for high in highest:
        more = dict(ways)
        for (used, total), found in ways.items():
            if used == together:
                continue
            if max_sum is None:
                more[used + 1, 0] = more.get((used + 1, 0), 0) + high * found
                continue
            for entry in range(1, min(high, max_sum - total) + 1):
                key = used + 1, total + entry
                more[key] = more.get(key, 0) + found
        ways = more
    return sum(ways.values()) - 1


def _extend(start: tuple[int, ...], highest: Sequence[int], together: int, left: int) -> Iterator[tuple[int, ...]]:
    """The vectors that go on from ``start`` with 1 to ``together`` entries above 0, whose sum is up to ``left``."""
    k = len(highest)
    if not together:
        return
    for j in range(len(start), k):
        for entry in range(1, min(highest[j], left) + 1):
            begun = (*start, *(0,) * (j - len(start)), entry)
            yield (*begun, *(0,) * (k - len(begun)))
            yield from _extend(begun, highest, together - 1, left - entry)
