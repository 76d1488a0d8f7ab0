"""Numbers that were written as text: lists, as a data frame writes them to CSV, and numbers with a decimal comma."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError
from valuate.io.columns import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["COMMAS", "has_comma", "listed"]

#: What is said of numbers with a comma.
COMMAS = (
    "holds numbers with a comma in them as text, such as {}. Write a point for a decimal comma and nothing between "
    "thousands; in a CSV file with ';' between its columns decimal commas are read."
)
_NUMBER = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?")
#: Texts among which one must have a comma.
MOST_LOOKED = 1000
#: Letters of a list that a message shows.
MOST_SHOWN = 60
#: What numbers that are not whole have in them: a point, an exponent, NaN.
_BROKEN = frozenset(".eEnN")


def listed(name: str, column: Column) -> Column:
    """The column with the numbers of its lists, (n, k), where all of its text is lists; else as it is.

    Raises
    ------
    InputError
        Where lists differ in length, or hold something else than numbers; where all text is numbers with a comma.
    """
    labels = column.labels
    if labels and has_comma(labels):
        raise InputError(f"column {name!r} {COMMAS.format(repr(_first_comma(labels)))}")
    if not labels or column.values.ndim != 1 or not all(_is_list(label) for label in labels):
        return column
    parts = [_numbers(label) for label in labels]
    shapes = [None if part is None else part.shape for part in parts]
    if None in shapes or len(set(shapes)) > 1:
        raise _refusal(name, column, shapes)
    whole = not any(_BROKEN & set(label) for label in labels)
    numbers = np.array(parts, np.int64 if whole else np.float64)
    return Column(numbers[column.values], None, column.missing)


def has_comma(texts: Sequence[Any]) -> bool:
    """Whether texts are numbers, some with a comma in them: "0,5"."""
    return any(_is_comma(text) for text in texts[:MOST_LOOKED]) and all(
        isinstance(text, str) and _NUMBER.fullmatch(text.strip()) for text in texts
    )


def _first_comma(texts: Sequence[Any]) -> Any:
    return next(text for text in texts if _is_comma(text))


def _is_comma(text: Any) -> bool:
    return isinstance(text, str) and "," in text and _NUMBER.fullmatch(text.strip()) is not None


def _is_list(label: Any) -> bool:
    text = label.strip() if isinstance(label, str) else ""
    return text.startswith("[") and text.endswith("]")


def _numbers(label: str) -> NDArray[np.float64] | None:
    """The numbers of a list, or of lists in a list; None where it holds something else."""
    inner = label.strip()[1:-1]
    try:
        if "[" in inner:
            found = np.array(json.loads(label), np.float64)
        else:
            found = np.array([float(part) for part in (inner.split(",") if "," in inner else inner.split())])
        return found if found.size else None
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
