"""Indicators of categories."""

from __future__ import annotations

from itertools import repeat
from numbers import Real
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.errors import InputError, InputTypeError
from valuate.features._base import FeatureMap

__all__ = ["OneHot"]

Codes: TypeAlias = NDArray[np.int64]


class OneHot(FeatureMap):
    """One feature for each category of each column: whole numbers, texts or anything that repeats.

    Parameters
    ----------
    joint : bool
        Whether a category is a whole row, or an entry of one column. Joint categories of all columns make a table:
        one feature for each state that `fit` saw.
    unknown : {"zero", "error"}
        What `transform` does with a category that `fit` did not see: leave all its features 0, or refuse it.
    sparse_output : bool
        Whether `transform` gives a scipy.sparse.csr_array or a dense array.

    Attributes
    ----------
    categories_ : list of arrays
        Those of each column, sorted.
    rows_ : (n, k) array of int
        With ``joint``: the distinct rows, as places in ``categories_``; otherwise empty.

    Examples
    --------
    >>> OneHot(sparse_output=False).fit_transform([["red", "up"], ["blue", "up"]]).tolist()
    [[0.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
    """

    learned = ("categories_", "rows_")

    def __init__(self, joint: bool = False, unknown: str = "zero", sparse_output: bool = True) -> None:
        self.joint = joint
        self.unknown = unknown
        self.sparse_output = sparse_output

    @property
    def n_features_(self) -> int:
        """Number of features."""
        self._require_fitted()
        return len(self.rows_) if self.joint else sum(map(len, self.categories_))

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the categories of the states ``X``, (m, k) or (m,)."""
        self._strict()
        columns = _columns(X)
        self.categories_ = [np.array(sorted(set(column.tolist())), column.dtype) for column in columns]
        codes = [_codes(*pair) for pair in zip(columns, self.categories_, strict=True)]
        self.rows_ = np.unique(np.stack(codes, axis=1), axis=0) if self.joint else np.empty((0, len(codes)), np.int64)
        return self

    def transform(self, X: Any) -> Any:
        """Indicators, (m, n_features)."""
        self._require_fitted()
        strict, columns = self._strict(), _columns(X)
        if len(columns) != len(self.categories_):
            raise InputError(
                f"states have {len(columns)} columns and the feature map was fitted on {len(self.categories_)}."
            )
        codes = np.empty((len(columns[0]), len(columns)), np.int64)
        for j, (column, categories) in enumerate(zip(columns, self.categories_, strict=True)):
            codes[:, j] = _codes(column, categories)
            if strict and codes[:, j].min() < 0:
                row = int(codes[:, j].argmin())
                raise InputError(
                    f"row {row} of states has {column[row].item()!r} in column {j}, which is none of the "
                    f"{len(categories)} categories that were seen in fit. unknown='zero' gives such states no feature."
                )
        if self.joint:
            places = _places(codes, self.rows_)[:, None]
            if strict and places.min() < 0:
                row = int(places.argmin())
                found = [column[row].item() for column in columns]
                raise InputError(
                    f"row {row} of states is {found}, which is none of the {len(self.rows_)} rows that were seen in "
                    "fit. unknown='zero' gives such states no feature."
                )
        else:
            first = np.cumsum([0, *map(len, self.categories_[:-1])])
            places = np.where(codes < 0, -1, codes + first)
        return _indicators(places, self.n_features_, bool(self.sparse_output))

    def _strict(self) -> bool:
        if self.unknown not in ("zero", "error"):
            raise InputError(f"unknown must be 'zero' or 'error', not {self.unknown!r}.")
        return self.unknown == "error"


def _columns(X: Any) -> list[NDArray[Any]]:
    """The columns of states, each of whole or other numbers or of texts."""
    array = _checks.as_array("states", X)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not array.size:
        raise InputError(
            f"states must have one or more rows and columns, (m, k) or (m,), and have shape {array.shape}."
        )
    return [_of_one_kind(array[:, j], j) for j in range(array.shape[1])]


def _of_one_kind(column: NDArray[Any], place: int) -> NDArray[Any]:
    """Texts, or numbers as int64 or float64."""
    if column.dtype.kind == "O":
        entries = column.tolist()
        texts = [isinstance(entry, str) for entry in entries]
        if all(texts):
            return np.array(entries)
        if any(texts) or not all(isinstance(entry, Real | np.bool_) for entry in entries):
            odd = (
                next(row for row, entry in enumerate(entries) if type(entry) is not type(entries[0]) or entry is None)
                if len(set(map(type, entries))) > 1
                else 0
            )
            raise InputTypeError(
                f"column {place} of states must be all texts or all numbers to be told apart; row {odd} has "
                f"{entries[odd]!r}. Write gaps as a text of their own."
            )
        column = np.array(entries)
    if column.dtype.kind in "bi" or (column.dtype.kind == "u" and column.max() <= np.iinfo(np.int64).max):
        return column.astype(np.int64)
    if column.dtype.kind in "fu":
        _checks.finite(f"column {place} of states", column)
        return column.astype(np.float64)
    if column.dtype.kind in "US":
        return column.astype(np.str_)
    raise InputTypeError(f"column {place} of states has dtype {column.dtype}: categories are numbers or texts.")


def _codes(column: NDArray[Any], categories: NDArray[Any]) -> Codes:
    """The place of each entry among sorted categories, or -1."""
    if (column.dtype.kind == "U") != (categories.dtype.kind == "U"):
        return np.full(len(column), -1, np.int64)
    if categories.dtype.kind == "U":
        places = {entry: place for place, entry in enumerate(categories.tolist())}
        return np.fromiter(map(places.get, column.tolist(), repeat(-1)), np.int64, len(column))
    found = np.minimum(np.searchsorted(categories, column), len(categories) - 1)
    return np.where(categories[found] == column, found, -1)


def _places(codes: Codes, known: Codes) -> Codes:
    """The place of each row of ``codes`` among the sorted rows ``known``, or -1; columns are told apart one by one."""
    prefix, known_prefix = np.zeros(len(codes), np.int64), np.zeros(len(known), np.int64)
    for j in range(known.shape[1]):
        width = int(known[:, j].max()) + 1
        distinct, known_prefix = np.unique(known_prefix * width + known[:, j], return_inverse=True)
        valid = (prefix >= 0) & (codes[:, j] >= 0) & (codes[:, j] < width)
        prefix = np.where(valid, _codes(prefix * width + codes[:, j], distinct), -1)
    return prefix


def _indicators(places: Codes, size: int, sparse_output: bool) -> Any:
    """A one in each place of each row, (m, size); places of -1 are none."""
    known = places >= 0
    if not sparse_output:
        out = np.zeros((len(places), size))
        out[np.nonzero(known)[0], places[known]] = 1.0
        return out
    from scipy import sparse

    starts = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
    return sparse.csr_array((np.ones(int(starts[-1])), places[known], starts), shape=(len(places), size))
