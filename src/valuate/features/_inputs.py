"""States in, numbers out; and what a map learns of their columns: means, scales, ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.errors import InputError, InputTypeError

__all__ = ["Array", "Columns", "blocks", "columns", "numbers", "ranges", "share"]

Array: TypeAlias = NDArray[np.float64]

#: Rows that are looked at together.
BLOCK = 1 << 15
#: States, evenly spaced over all, that quantiles are taken of.
SAMPLE = 1 << 16


def numbers(X: Any, width: int | None = None, name: str = "states") -> NDArray[np.float32] | NDArray[np.float64]:
    """Finite numbers (m, k), float32 or float64; (m,) is one column. ``width`` is the k that a map was fitted on."""
    array = _checks.as_array(name, X)
    if array.ndim == 1:
        array = array[:, None]
    if array.dtype.kind in "OUS":
        array = _read(array, name)
    matrix = _checks.matrix(name, array)
    if width is not None and matrix.shape[1] != width:
        raise InputError(f"{name} have {matrix.shape[1]} numbers and the feature map was fitted on {width}.")
    return matrix


def _read(array: NDArray[Any], name: str) -> NDArray[Any]:
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError):
        pass
    for row, entries in enumerate(array.reshape(len(array), -1)):
        for column, entry in enumerate(entries):
            try:
                float(entry)
            except (TypeError, ValueError):
                raise InputTypeError(
                    f"{name} must be numbers; row {row}, column {column} has {entry!r}. Categories go to OneHot, "
                    "tables of numbers and categories to ByColumn."
                ) from None
    raise InputTypeError(f"{name} must be numbers, and {array.dtype} cannot be read as such.")


def blocks(matrix: NDArray[Any], rows: int = BLOCK) -> Iterator[tuple[slice, Array]]:
    """Consecutive rows as float64, each with its place."""
    for first in range(0, len(matrix), rows):
        part = slice(first, first + rows)
        yield part, matrix[part].astype(np.float64, copy=False)


class Columns(NamedTuple):
    """Of each column: mean, standard deviation (0 where it is constant), least, largest, and how many values it has.

    ``values`` is 1 for a constant column, 2 for one of two values, such as a flag, and 3 for others.
    """

    mean: Array
    scale: Array
    low: Array
    high: Array
    values: NDArray[np.int64]


def columns(matrix: NDArray[Any]) -> Columns:
    """What a map learns of states (m, k), block by block."""
    low, high = matrix.min(axis=0).astype(np.float64), matrix.max(axis=0).astype(np.float64)
    mean, square = np.zeros((2, matrix.shape[1]))
    between = low == high  # whether a value between the ends is known, or cannot be
    with np.errstate(over="ignore", invalid="ignore"):
        for part, block in blocks(matrix):
            centre = block.mean(axis=0)
            apart, share = centre - mean, len(block) / (part.start + len(block))
            square += np.square(block - centre).sum(axis=0) + apart * apart * part.start * share
            mean += apart * share
            if not between.all():
                unsure = block[:, ~between]
                between[~between] = ((unsure != low[~between]) & (unsure != high[~between])).any(axis=0)
        scale = np.sqrt(square / len(matrix))
    if not np.isfinite(scale).all():
        column = int(np.argmin(np.isfinite(scale)))
        raise InputError(
            f"states of column {column} lie between {low[column]:.3g} and {high[column]:.3g}: too far apart for "
            "float64. Rescale the column."
        )
    # What varies by rounding only is constant.
    constant = scale <= 4 * np.finfo(np.float64).eps * np.maximum(np.abs(low), np.abs(high))
    scale[constant] = 0.0
    return Columns(mean, scale, low, high, np.where(constant, 1, np.where(between, 3, 2)))


def share(tails: Any) -> float:
    """A share of states at one end, checked."""
    part = _checks.number("tails", tails, low=0.0)
    if part >= 0.5:
        raise InputError(f"tails must be below 0.5, the half of the states that lies at one end, not {part:g}.")
    return part


def ranges(matrix: NDArray[Any], found: Columns, tails: float) -> tuple[Array, Array]:
    """The range of each column, left out a share ``tails`` of the states at each end; equal ends where it is constant.

    Where all but a few states have the same value, the range is that of all.
    """
    low, high = found.low.copy(), found.high.copy()
    low[found.values == 1] = high[found.values == 1] = found.mean[found.values == 1]
    if tails == 0.0:
        return low, high
    sample = matrix[:: -(-len(matrix) // SAMPLE)].astype(np.float64)
    inner = np.quantile(sample, [tails, 1.0 - tails], axis=0)
    wide = (found.values == 3) & (inner[0] < inner[1])
    return np.where(wide, inner[0], low), np.where(wide, inner[1], high)
