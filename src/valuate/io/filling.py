"""States from columns: one C-contiguous array, filled block by block; next states stored only where they are new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks
from valuate.errors import InputError
from valuate.io.columns import BLOCK
from valuate.io.listing import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.io.columns import Column, Table
    from valuate.io.resolving import Pick

    Index = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = ["Followers", "Values", "fill", "follow", "matches", "same_codes"]

#: Bytes of an array that are written in one go, column by column.
CACHED = 1 << 18
#: One next state in so many may be new before all of them are stored.
SPARE = 4


@dataclass(slots=True)
class Values:
    """An array of a row each, as it was filled.

    Attributes
    ----------
    array : (n, ...) array or CSR
    missing : (n,) flags or None
        Rows with a value that is missing, NaN or infinite; None where there are none.
    labels : list of (tuple or None)
        For each column, what its codes stand for.
    base : (m, ...) array or None
        The memory of ``array``, which it begins, where more rows fit behind it.
    written : tuple of str
        Columns whose lists were text.
    """

    array: Any
    missing: Flags | None
    labels: list[tuple[Any, ...] | None]
    base: Any = None
    written: tuple[str, ...] = ()


@dataclass(slots=True)
class Followers:
    """Next states, in one table with the states.

    Attributes
    ----------
    table : (m, k) array
        The states, and behind them the next states that are none of them.
    rows : (n,) places in the table
    missing : (n,) flags or None
    follows : (n,) flags
        Whether a row's next state is the state of the row after it.
    """

    table: Any
    rows: Index
    missing: Flags | None
    follows: Flags


def fill(table: Table, pick: Pick, *, spare: bool = False) -> Values:
    """What a pick stands for, whole.

    A single column is as the source has it, without a copy where possible. Several make one (n, k) array.

    Parameters
    ----------
    spare : bool
        Whether to leave room behind the array. Memory that is not touched costs nothing.
    """
    if not pick.flat:
        text = table.column(pick.names[0])
        found = listed(pick.names[0], text)
        return Values(found.values, _absent(found), [found.labels], written=() if found is text else pick.names)
    numbers = [name for name in pick.names if table.is_number(name)]
    texts = {name: table.column(name) for name in pick.names if name not in numbers}
    others = {name: listed(name, column) for name, column in texts.items()}
    if any(column.values.ndim > 1 for column in others.values()):
        joined = _joined(table, pick, others)
        joined.written = tuple(name for name in texts if texts[name] is not others[name])
        return joined
    n = table.length(pick.names[0])
    kinds = [table.dtype(name) for name in numbers] + [_kind(name, column) for name, column in others.items()]
    dtype = np.result_type(*kinds)
    base = np.empty((n + n // SPARE + 1 if spare else n, len(pick.names)), dtype)
    array = base[:n]
    missing: Flags | None = None
    if numbers:
        places = [pick.names.index(name) for name in numbers]
        for start, block in table.blocks(numbers):
            _put(array[start : start + len(block[0][0])], places, [values for values, _ in block])
            for place, (_, absent) in zip(places, block, strict=True):
                missing = _mark(missing, absent, start, n)
                _blank(array[start:], place, absent)
    for name, column in others.items():
        array[:, pick.names.index(name)] = column.values
        missing = _mark(missing, column.missing, 0, n)
        _blank(array, pick.names.index(name), column.missing)
    labels = [others[name].labels if name in others else None for name in pick.names]
    return Values(array, _with_bad(missing, array), labels, base if spare else None)


def follow(table: Table, pick: Pick, states: Values, successor: Index | None) -> Followers | None:
    """Next states from columns that are numbers, those that are not the state of a later row put behind the states.

    Parameters
    ----------
    states : Values
        With room behind them.
    successor : (n,) array or None
        The row that comes after each one, -1 for none. None: the one below.

    Returns
    -------
    Followers or None
        None where so many are new that they had better be stored by themselves.
    """
    n, k = states.array.shape
    room = len(states.base) - n
    rows = np.empty(n, np.int64)
    follows = np.zeros(n, bool)
    missing: Flags | None = None
    new = 0
    for start, block in table.blocks(list(pick.names)):
        m = len(block[0][0])
        values = np.empty((m, k), np.result_type(*[column.dtype for column, _ in block]))
        absent: Flags | None = None
        _put(values, list(range(k)), [column for column, _ in block])
        for _, gone in block:
            absent = _mark(absent, gone, 0, m)
        absent = _with_bad(absent, values)
        after, same = _compared(states.array, values, successor, start)
        if absent is not None:
            same &= ~absent
            missing = _mark(missing, absent, start, n)
        own = ~same if absent is None else ~same & ~absent
        count = int(np.count_nonzero(own))
        if new + count > room or not np.can_cast(values.dtype, states.array.dtype):
            return None
        states.base[n + new : n + new + count] = values[own]
        place_of = np.where(same, after, np.arange(start, start + m))  # a missing one: the row itself, until dropped
        place_of[own] = n + new + np.arange(count)
        rows[start : start + m] = place_of
        follows[start : start + m] = same
        new += count
    return Followers(states.base[: n + new], rows, missing, follows)


def matches(states: Any, next_states: Any, successor: Index | None) -> Flags:
    """Whether each row's next state is the state of the row after it; (n,) flags, dense arrays only."""
    n = len(states)
    same = np.zeros(n, bool)
    for start in range(0, n, BLOCK):
        stop = min(n, start + BLOCK)
        same[start:stop] = _compared(states, next_states[start:stop], successor, start)[1]
    return same


def same_codes(one: Values, other: Values) -> None:
    """Give both the same codes, where they are text: those of all labels of either, in sorted order."""
    for place, (labels, others) in enumerate(zip(one.labels, other.labels, strict=True)):
        if labels is None or others is None or labels == others:
            continue
        union = tuple(sorted({*labels, *others}))
        code = {label: k for k, label in enumerate(union)}
        for values, own in ((one, labels), (other, others)):
            new = np.array([code[label] for label in own], np.int32)
            codes = values.array if len(values.labels) == 1 else values.array[:, place]
            if len(own):
                held = np.isfinite(codes)  # NaN stands where a text is missing
                codes[held] = new[codes[held].astype(np.int64)]
            values.labels[place] = union


def _put(array: NDArray[Any], places: list[int], columns: list[NDArray[Any]]) -> None:
    """Write columns into their places, so many rows at a time that these stay in the cache."""
    rows = max(256, CACHED // (array.strides[0] or 1))
    for start in range(0, len(array), rows):
        part = array[start : start + rows]
        for place, column in zip(places, columns, strict=True):
            part[:, place] = column[start : start + rows]


def _blank(array: NDArray[Any], place: int, absent: Flags | None) -> None:
    """Write NaN where a value is missing and the array can hold it, so that messages can tell the column."""
    if absent is not None and array.dtype.kind == "f":
        array[np.flatnonzero(absent), place] = np.nan


def _compared(states: Any, values: Any, successor: Index | None, start: int) -> tuple[Index, Flags]:
    """The rows after some rows, and whether their states are ``values``, to the bit."""
    m, n = len(values), len(states)
    states, values = _bits(states), _bits(values)
    same = np.zeros(m, bool)
    if successor is None:
        inside = min(m, n - start - 1)
        if inside:
            equal = values[:inside] == states[start + 1 : start + 1 + inside]
            same[:inside] = equal.reshape(inside, -1).all(axis=1)
        return np.arange(start + 1, start + m + 1), same
    after = successor[start : start + m]
    equal = values == states[np.maximum(after, 0)]
    same[:] = (after >= 0) & equal.reshape(m, -1).all(axis=1)
    return after, same


def _bits(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers that differ where floats do, 0 and -0 included."""
    simple = array.dtype.kind == "f" and array.dtype.isnative and array.dtype.itemsize in (2, 4, 8)
    return array.view(f"i{array.dtype.itemsize}") if simple else array


def _joined(table: Table, pick: Pick, others: dict[str, Column]) -> Values:
    """Columns of several numbers a row side by side, as (n, k)."""
    parts = []
    missing: Flags | None = None
    for name in pick.names:
        column = others.get(name) or table.column(name)
        _kind(name, column)
        missing = _mark(missing, column.missing, 0, len(column.values))
        parts.append(column.values.reshape(len(column.values), -1))
    lengths = {len(part) for part in parts}
    if len(lengths) > 1:
        raise InputError(f"columns {', '.join(pick.names)} have different numbers of rows: {sorted(lengths)}.")
    array = np.concatenate(parts, axis=1)
    return Values(array, _with_bad(missing, array), [None] * len(pick.names))


def _kind(name: str, column: Column) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(column.values.dtype)
    if dtype.kind not in "biuf":
        raise InputError(
            f"column {name!r} holds {dtype}, which cannot stand beside numbers. Make a number of it, or leave it out."
        )
    return dtype


def _absent(column: Column) -> Flags | None:
    if _checks.is_sparse(column.values):
        return None
    missing = column.missing
    if missing is not None:
        missing = np.asarray(missing.reshape(len(missing), -1).any(axis=1))
    return _with_bad(missing, column.values)


def _with_bad(missing: Flags | None, array: NDArray[Any]) -> Flags | None:
    """Missing rows and those with NaN or infinity."""
    if array.dtype.kind not in "fc" or not array.size or _checks.all_finite(array):
        return missing
    bad: Flags = ~np.isfinite(array).reshape(len(array), -1).all(axis=1)
    return bad if missing is None else bad | missing


def _mark(missing: Flags | None, absent: Flags | None, start: int, n: int) -> Flags | None:
    if absent is None or not absent.any():
        return missing
    missing = np.zeros(n, bool) if missing is None else missing
    missing[start : start + len(absent)] |= absent
    return missing
