"""Columns that were not used and look as if they should have been: ids of episodes, flags of ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError
from valuate.io import ordering
from valuate.io.columns import Column
from valuate.io.draft import NO_WORDS, YES_WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from valuate.io.columns import Table
    from valuate.io.draft import Draft

    Flags = NDArray[np.bool_]

__all__ = ["resembling"]

#: Columns looked at, rows of each, and rows of a log whose text is looked at: a look must cost little beside reading.
MOST_COLUMNS, MOST_ROWS, MOST_TEXT = 64, 1 << 17, 1 << 18
#: An id has this many values at least, nearly as many as runs of rows, which are this long on average.
LEAST_VALUES, LEAST_SHARE, LEAST_LENGTH = 5, 0.9, 2.0
#: This share of the rows with a flag are last rows of episodes of this many rows on average.
LEAST_LAST, LEAST_EPISODE = 0.8, 3.0
#: What tells where episodes, or the process, end.
_ENDS = ("terminated", "done", "discounts")


def resembling(draft: Draft, unused: Sequence[str], asked: Collection[str]) -> dict[str, str]:
    """What unused columns look like: "episodes" where none was taken for these, "terminated" where nothing tells ends.

    Parameters
    ----------
    asked : collection of str
        Roles that the user said something of, were it that there is no such column.
    """
    wants_ids = "episodes" not in draft.picks and "episodes" not in asked
    marked = any(draft.flags[role].any() for role in _ENDS if role in draft.flags) or "discounts" in draft.picks
    wants_ends = not marked and not any(role in asked for role in _ENDS)
    if not (wants_ids or wants_ends):
        return {}
    found: dict[str, str] = {}
    starts = draft.starts if "episodes" in draft.picks else None
    columns = {name: column for name in unused[:MOST_COLUMNS] if (column := _looked_at(draft, name)) is not None}
    if wants_ids:
        for name, column in columns.items():
            if _is_id(column.values):
                found[name] = "episodes"
                starts = ordering.changes(column.values) if starts is None else starts
    if wants_ends and starts is not None:
        for name, column in columns.items():
            if name not in found and (flags := _as_flags(column)) is not None and _on_last_rows(flags, starts):
                found[name] = "terminated"
    return found


def _looked_at(draft: Draft, name: str) -> Column | None:
    """The first rows of a column with one number or text a row, in order of time; None for others, or with gaps."""
    table = draft.table
    try:
        if table.length(name) != draft.n:
            return None
        if not table.is_number(name):
            if draft.n > MOST_TEXT or table.dtype(name).kind not in "OUS":
                return None
            column = table.column(name)
        else:
            column = _begun(table, name, draft.n if draft.order is not None else MOST_ROWS)
    except InputError:  # a column that nobody needs may hold anything
        return None
    if column.missing is not None or column.values.ndim != 1 or column.values.dtype.kind not in "biuf":
        return None
    values = column.values if draft.order is None else column.values[draft.order]
    return type(column)(values, column.labels)


def _begun(table: Table, name: str, rows: int) -> Column:
    parts, gaps = [], False
    for start, [(values, missing)] in table.blocks([name]):
        parts.append(values)
        gaps = gaps or (missing is not None and bool(missing.any()))
        if start + len(values) >= rows:
            break
    values = np.concatenate(parts)
    return Column(values, None, np.ones(len(values), bool) if gaps else None)


def _is_id(values: NDArray[Any]) -> bool:
    """Whether each run of equal values has one that no other run has, or nearly."""
    if values.dtype.kind == "b" or (values.dtype.kind == "f" and not (values == np.floor(values)).all()):
        return False
    runs = values[ordering.changes(values)]
    different = len(np.unique(runs))
    return different >= max(LEAST_VALUES, LEAST_SHARE * len(runs)) and len(values) >= LEAST_LENGTH * len(runs)


def _as_flags(column: Column) -> Flags | None:
    values = column.values
    if column.labels is not None:
        words = [str(label).strip().lower() for label in column.labels]
        if len(words) != 2 or not set(words) <= YES_WORDS | NO_WORDS:
            return None
        flags: Flags = np.array([word in YES_WORDS for word in words])[values]
        return flags
    return values.astype(bool) if values.dtype.kind == "b" or np.isin(values, (0, 1)).all() else None


def _on_last_rows(flags: Flags, starts: Flags) -> bool:
    n = len(flags)
    last = np.append(starts[1:n], True) if n == len(starts) else starts[1 : n + 1]
    count = int(np.count_nonzero(flags))
    few = bool(n >= LEAST_EPISODE * np.count_nonzero(last))
    return few and bool(np.count_nonzero(flags & last) >= LEAST_LAST * count > 0)
