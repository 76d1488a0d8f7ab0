"""Columns as NumPy arrays: what every source gives, and text as codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from valuate import _checks
from valuate.errors import InputError
from valuate.io.paths import readable

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

__all__ = ["Arrays", "Block", "Column", "Table", "coded", "flattened"]

#: Rows looked at in one go.
BLOCK = 65536

#: The first row of a block, and for each column its values and which of them are missing (None: none are).
Block: TypeAlias = "tuple[int, list[tuple[NDArray[Any], NDArray[np.bool_] | None]]]"


@dataclass(frozen=True, slots=True)
class Column:
    """A whole column.

    Attributes
    ----------
    values : (n, ...) array, or CSR
        Codes where there are labels; anything where a value is missing.
    labels : tuple or None
        What the codes stand for, in order. None for numbers, flags and dates.
    missing : (n,) flags or None
    """

    values: Any
    labels: tuple[Any, ...] | None = None
    missing: NDArray[np.bool_] | None = None


class Table(Protocol):
    """Columns by name."""

    format: str

    @property
    def names(self) -> list[str]:
        """All columns, in order."""

    def is_number(self, name: str) -> bool:
        """Whether a column has one number or flag a row, so that `blocks` gives it."""

    def dtype(self, name: str) -> np.dtype[Any]:
        """Of a column that is a number."""

    def length(self, name: str) -> int:
        """Rows of a column."""

    def column(self, name: str) -> Column:
        """A whole column of any kind."""

    def blocks(self, names: list[str]) -> Iterator[Block]:
        """Some columns that are numbers, block by block."""


class Arrays:
    """Arrays by name, of which some may be longer than others.

    Parameters
    ----------
    arrays : mapping of str to array-like
        Parts within parts have names with slashes; single values are left out.
    format : str
    path : Path or None
        Of the file that the arrays are still in.
    objects : iterable of str
        Names of what the source has and cannot be read: Python objects.
    """

    def __init__(
        self, arrays: Mapping[str, Any], format: str, path: Path | None = None, *, objects: Iterable[str] = ()
    ) -> None:
        self.format = format
        self.objects = tuple(objects)
        self.single: dict[str, Any] = {}
        self._path = path
        self._arrays: dict[str, Any] = {}
        with self._guarded():
            for name, value in flattened(arrays):
                if _is_single(value):
                    self.single[name] = value
                else:
                    self._arrays[name] = value

    @property
    def names(self) -> list[str]:
        """All columns, in order."""
        return list(self._arrays)

    def is_number(self, name: str) -> bool:
        """Whether a column has one number or flag a row."""
        array = self._known(name)
        return len(array.shape) == 1 and array.dtype.kind in "biuf"

    def dtype(self, name: str) -> np.dtype[Any]:
        """Of a column that is a number."""
        dtype: np.dtype[Any] = np.dtype(self._known(name).dtype)
        return dtype

    def length(self, name: str) -> int:
        """Rows of a column."""
        return int(self._known(name).shape[0])

    def column(self, name: str) -> Column:
        """A whole column of any kind; numbers as they are."""
        array = self._array(name)
        if _checks.is_sparse(array) or array.dtype.kind not in "OUST":
            return Column(array)
        return coded(name, array)

    def blocks(self, names: list[str]) -> Iterator[Block]:
        """Some columns that are numbers, block by block."""
        arrays = [self._array(name) for name in names]
        for start in range(0, len(arrays[0]), BLOCK):
            yield start, [(array[start : start + BLOCK], None) for array in arrays]

    def array(self, name: str) -> Any:
        """A whole column as it is: text stays text."""
        return self._array(name)

    def without(self, name: str) -> Arrays:
        """The same without a column."""
        return Arrays({other: value for other, value in self._arrays.items() if other != name}, self.format)

    def _known(self, name: str) -> Any:
        """Something with the column's shape and dtype; what lies in a file is not read for it."""
        value = self._arrays[name]
        return value if _is_stored(value) else self._array(name)

    def _array(self, name: str) -> Any:
        value = self._arrays[name]
        if not isinstance(value, np.ndarray) and not _checks.is_sparse(value):
            with self._guarded():
                value = _array(name, value)
            self._arrays[name] = value
        return value

    def _guarded(self) -> AbstractContextManager[None]:
        return nullcontext() if self._path is None else readable(self._path, self.format)


def flattened(parts: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Names and values, those of mappings within written above/below."""
    for name, value in parts.items():
        if isinstance(value, Mapping):
            yield from flattened(value, f"{above}{name}/")
        else:
            yield f"{above}{name}", value


def coded(name: str, array: NDArray[Any]) -> Column:
    """Text as codes, 0 for the first label in sorted order; objects that are numbers as numbers."""
    if array.dtype.kind != "O":
        labels, codes = np.unique(array, return_inverse=True)
        return Column(codes.reshape(array.shape).astype(np.int32), tuple(_text(label) for label in labels.tolist()))
    flat = array.ravel()
    if len(flat) and all(isinstance(value, list | tuple | np.ndarray) for value in flat):
        return Column(_array(name, flat.tolist()))
    absent = np.fromiter((value is None or value != value for value in flat), bool, count=len(flat))
    kinds = {_kind(value) for value in flat[~absent]}
    missing = None if not absent.any() else absent.reshape(array.shape)
    if kinds <= {"number"}:
        numbers = np.full(len(flat), np.nan)
        numbers[~absent] = [float(value) for value in flat[~absent]]
        whole = not absent.any() and all(float(value).is_integer() for value in flat)
        typed = numbers.astype(np.int64) if whole else numbers
        return Column(typed.reshape(array.shape), None, missing)
    if kinds == {"text"}:
        words = np.array([_text(value) for value in flat[~absent]])
        labels, places = np.unique(words, return_inverse=True)
        codes = np.zeros(len(flat), np.int32)
        codes[~absent] = places
        return Column(codes.reshape(array.shape), tuple(labels.tolist()), missing)
    raise _mixed(name, flat, kinds)


def _mixed(name: str, flat: NDArray[Any], kinds: set[str]) -> InputError:
    common = max(kinds, key=lambda kind: sum(_kind(value) == kind for value in flat))
    row = next(k for k, value in enumerate(flat) if value is not None and _kind(value) != common)
    return InputError(
        f"column {name!r} mixes kinds of values: most are {common}s, and row {row} has {flat[row]!r}. Mend those rows, "
        "or leave the column out."
    )


def _kind(value: Any) -> str:
    if isinstance(value, str | bytes):
        return "text"
    if isinstance(value, int | float | np.number | np.bool_):
        return "number"
    return "list" if isinstance(value, list | tuple | np.ndarray) else type(value).__name__


def _text(label: Any) -> Any:
    return label.decode(errors="replace") if isinstance(label, bytes) else label


def _is_single(value: Any) -> bool:
    """Whether a value is one thing for the whole log: a number, a word, an array without rows."""
    if value is None or isinstance(value, str | bytes | bool | int | float):
        return True
    shape = getattr(value, "shape", None)
    return not len(shape) if shape is not None else not hasattr(value, "__len__")


def _is_stored(value: Any) -> bool:
    """Whether a value is a dataset of an HDF5 file."""
    return hasattr(value, "chunks") and hasattr(value, "file") and hasattr(value, "dtype")


def _array(name: str, value: Any) -> NDArray[Any]:
    """A NumPy array from a list, a dataset of a file, or an array of another library."""
    if _is_stored(value):
        return np.asarray(value[...])
    if hasattr(value, "detach"):  # torch: gradients are of no use here
        value = value.detach().cpu()
    if isinstance(value, list | tuple):
        shapes = [np.shape(row) if isinstance(row, np.ndarray) else _lengths(row) for row in value]
        odd = next((row for row, shape in enumerate(shapes) if shape != shapes[0]), None)
        if odd is not None:
            raise InputError(
                f"column {name!r} has rows of different shapes: {shapes[0]} at row 0 and {shapes[odd]} at row {odd}. "
                "All rows of a log must be alike."
            )
    array = _checks.as_array(f"column {name!r}", value)
    return np.array(value, dtype=object) if isinstance(value, list | tuple) and _spoilt(array, value) else array


def _lengths(row: Any) -> tuple[int, ...]:
    return (len(row), *_lengths(row[0])) if isinstance(row, list | tuple) and len(row) else ()


def _spoilt(array: NDArray[Any], value: list[Any] | tuple[Any, ...]) -> bool:
    """Whether NumPy wrote numbers as text, because there is some text among them."""
    return array.ndim == 1 and array.dtype.kind in "US" and not all(isinstance(row, str | bytes) for row in value)
