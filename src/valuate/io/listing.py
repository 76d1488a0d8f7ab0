"""Lists that were written as text, as a data frame writes a column of them to CSV: "[0.1, 2.3]" or "[0.1 2.3]"."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError
from valuate.io.columns import Column

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["listed"]

#: Letters of a list that a message shows.
MOST_SHOWN = 60
#: What numbers that are not whole have in them: a point, an exponent, NaN.
_BROKEN = frozenset(".eEnN")


def listed(name: str, column: Column) -> Column:
    """The column with the numbers of its lists, (n, k), where all of its text is lists; else as it is.

    Raises
    ------
    InputError
        Where lists differ in length, or hold something else than numbers.
    """
    labels = column.labels
    if not labels or column.values.ndim != 1 or not all(_is_list(label) for label in labels):
        return column
    parts = [_numbers(label) for label in labels]
    shapes = [None if part is None else part.shape for part in parts]
    if None in shapes or len(set(shapes)) > 1:
        raise _refusal(name, column, shapes)
    whole = not any(_BROKEN & set(label) for label in labels)
    numbers = np.array(parts, np.int64 if whole else np.float64)
    return Column(numbers[column.values], None, column.missing)


def _is_list(label: Any) -> bool:
    text = label.strip() if isinstance(label, str) else ""
    return text.startswith("[") and text.endswith("]")


def _numbers(label: str) -> NDArray[np.float64] | None:
    """The numbers of a list, or of lists in a list; None where it holds something else."""
    inner = label.strip()[1:-1]
    try:
        if "[" in inner:
            return np.array(json.loads(label), np.float64)
        return np.array([float(part) for part in (inner.split(",") if "," in inner else inner.split())])
    except (ValueError, TypeError):  # a word, "...", lists of different lengths
        return None


def _refusal(name: str, column: Column, shapes: list[Any]) -> InputError:
    assert column.labels is not None
    held = np.arange(len(column.values)) if column.missing is None else np.flatnonzero(~column.missing)
    codes = column.values[held]
    wanted = shapes[codes[0]]
    odd = int(np.array([shape is None or shape != wanted for shape in shapes])[codes].argmax())
    found, text = shapes[codes[odd]], column.labels[codes[odd]]
    if found is None:
        shown = text if len(text) <= MOST_SHOWN else text[:MOST_SHOWN] + " ..."
        what = f"row {held[odd]} has {shown!r}, which is not a list of numbers"
    else:
        counts = ["x".join(map(str, shape)) for shape in (wanted, found)]
        what = f"row {held[0]} has {counts[0]} numbers and row {held[odd]} {counts[1]}"
    return InputError(
        f"column {name!r} holds lists as text, and {what}. All rows need a list of as many numbers: mend those rows, "
        "or write a column for each number."
    )
