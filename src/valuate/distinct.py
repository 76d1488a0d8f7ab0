"""The few distinct states that a log visits over and over, so that a feature map sees each of them once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.transitions import Transitions

    Index = NDArray[Any]
    Flags = NDArray[np.bool_]

#: States are few when there are at least this many rows for each.
ROWS_A_STATE = 2
#: States of whole numbers are told apart by all their entries, up to this many.
MOST_ENTRIES = 8
#: States looked at before a log is sorted: where none of them repeats, the states are taken to be continuous.
SAMPLE = 4096


def few_states(log: Transitions, ended: Flags) -> tuple[Any, Index, Index] | None:
    """The distinct states, and where among them each row's state and next state are; None where they are not few.

    Next states of ended rows are left out and their places mean nothing. Looks at whole numbers, up to 8 a state,
    and at labels and single numbers of any kind.
    """
    most = len(log) // ROWS_A_STATE
    owned = log.indexed_states()
    if not _may_repeat(log.states if owned is None else owned[0]):
        return None
    if owned is not None:
        table, state, follower = owned
        used = in_use(table.shape[0], state, follower, ended)
        found = _distinct([table if used.all() else table[used]], most)
        if found is None:
            return None
        place = np.zeros(len(used), np.int32)
        place[used] = found[1]
        return found[0], place[state], place[follower]
    nexts = log.next_states
    found = _distinct([log.states, nexts if not ended.any() else nexts[~ended]], most)
    if found is None:
        return None
    state, follower = found[1][: len(log)], np.zeros(len(log), np.int32)
    follower[~ended] = found[1][len(log) :]
    return found[0], state, follower


def in_use(size: int, state: Index, follower: Index, ended: Flags) -> Flags:
    """Which of ``size`` table rows are a state, or the next state of a row that has not ended: (size,) flags."""
    used = np.zeros(size, bool)
    used[state] = True
    used[follower[~ended] if ended.any() else follower] = True
    return used


def _may_repeat(states: Any) -> bool:
    """Whether states are of a kind that is looked at: told before any of them is copied."""
    if _checks.is_sparse(states):
        return False
    entries = int(np.prod(states.shape[1:]))
    return entries == 1 or (states.dtype.kind in "iub" and entries <= MOST_ENTRIES)


def _distinct(pools: list[Any], most: int) -> tuple[Any, Index] | None:
    """The distinct rows of all pools, and the place among them of every row, pool after pool."""
    if _checks.is_sparse(pools[0]):
        return None
    pools = [pool for pool in pools if len(pool)]
    entries = pools[0].size // len(pools[0])
    kinds = {pool.dtype.kind for pool in pools}
    codes = _codes_of_numbers(pools, entries, 2 * most + SAMPLE) if kinds <= set("iub") else None
    # NumPy compares int64 with uint64 as float64, which does not hold all their digits.
    comparable = kinds.isdisjoint("V") and (np.result_type(*pools).kind != "f" or kinds == {"f"})
    if codes is None and entries == 1 and comparable:
        codes = _codes_of_labels([pool.reshape(-1) for pool in pools])
    if codes is None:
        return None
    count = int(codes.max()) + 1
    if count > most:
        return None
    first = np.empty(count, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    own = first < len(pools[0])
    labels = np.empty((count, *pools[0].shape[1:]), _common_dtype(pools))
    labels[own] = pools[0][first[own]]
    if not own.all():
        labels[~own] = pools[1][first[~own] - len(pools[0])]
    return labels, codes


def _common_dtype(pools: list[Any]) -> np.dtype[Any]:
    common: np.dtype[Any] = np.result_type(*pools)
    # NumPy would make float64 of int64 and uint64; what is here fits in int64.
    return np.dtype(np.int64) if common.kind == "f" and pools[0].dtype.kind in "iub" else common


def _codes_of_numbers(pools: list[Any], entries: int, most: int) -> Index | None:
    """A number from 0 on for each row of whole numbers, the same for equal rows; every number is used.

    The entries of a row are the digits of one number. Where all these numbers lie in a range of at most ``most`` they
    are looked up, otherwise sorted.
    """
    if entries > MOST_ENTRIES:
        return None
    rows = [pool.reshape(len(pool), entries) for pool in pools]
    low = [min(int(part[:, j].min()) for part in rows) for j in range(entries)]
    high = [max(int(part[:, j].max()) for part in rows) for j in range(entries)]
    info = np.iinfo(np.int64)
    if min(low) < info.min or max(high) > info.max:
        return None
    strides, span = [], 1
    for least, largest in zip(low, high, strict=True):
        strides.append(span)
        span *= largest - least + 1
    if span - 1 > info.max:
        return None
    codes = np.zeros(sum(map(len, rows)), np.int64)
    at = 0
    for part in rows:
        for j, (least, stride) in enumerate(zip(low, strides, strict=True)):
            codes[at : at + len(part)] += (part[:, j].astype(np.int64) - least) * stride
        at += len(part)
    if span > most:
        return _sorted_codes(codes)
    seen = np.zeros(span, bool)
    seen[codes] = True
    return (np.cumsum(seen, dtype=np.int32) - 1)[codes]


def _codes_of_labels(pools: list[Any]) -> Index | None:
    if all(pool.dtype.kind != "O" for pool in pools):
        return _sorted_codes(*pools)
    places: dict[Any, int] = {}
    try:
        # With its type, for 1 and True are equal and a feature map may tell them apart.
        return np.array([places.setdefault((type(s), s), len(places)) for pool in pools for s in pool.tolist()])
    except TypeError:  # states that cannot be hashed
        return None


def _sorted_codes(*pools: Any) -> Index | None:
    sample = pools[0][:: max(1, len(pools[0]) // SAMPLE)]
    if len(sample) >= SAMPLE and len(np.unique(sample)) == len(sample):
        return None
    return np.asarray(np.unique(np.concatenate(pools), return_inverse=True)[1])
