"""Features of some columns beside features of others."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.errors import InputError, InputTypeError
from valuate.features._base import FeatureMap

__all__ = ["ByColumn", "Identity"]


class ByColumn(FeatureMap):
    """Features of some columns of a state beside features of others: for tables of numbers and categories.

    Parameters
    ----------
    parts : sequence of (feature map, columns)
        Each map sees the columns beside it, a whole number or a sequence of them, counted from 0. A column may be in
        several parts; those in none are left out.

    Attributes
    ----------
    parts_ : tuple of feature maps
        Fitted copies, in the order of ``parts``.
    n_columns_ : int
        Of the states that `fit` saw.
    n_features_ : int
        Of all parts; known from `fit` alone, not from a file.

    Examples
    --------
    >>> table = np.array([[0.0, "red"], [1.0, "blue"]], dtype=object)
    >>> ByColumn([(Identity(), 0), (OneHot(sparse_output=False), 1)]).fit_transform(table).tolist()
    [[0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """

    learned = ("parts_", "n_columns_")

    def __init__(self, parts: Sequence[tuple[Any, int | Sequence[int]]]) -> None:
        self.parts = parts

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a copy of each part's map on its columns of the states ``X``, (m, k)."""
        states = _table(X)
        fitted = []
        for feature_map, columns in self._read(states.shape[1]):
            part = deepcopy(feature_map)
            if hasattr(part, "fit"):
                part.fit(states[:, columns])
            fitted.append(part)
        self.parts_, self.n_columns_ = tuple(fitted), states.shape[1]
        self.n_features_: int = self._rows(states[:1]).shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """The features of all parts side by side, (m, n_features): sparse where those of any part are."""
        self._require_fitted()
        states = _table(X)
        if states.shape[1] != self.n_columns_:
            raise InputError(f"states have {states.shape[1]} columns and the map was fitted on {self.n_columns_}.")
        return self._rows(states)

    def _rows(self, states: NDArray[Any]) -> Any:
        columns = [chosen for _, chosen in self._read(self.n_columns_)]
        found = [_apply(part, states[:, chosen]) for part, chosen in zip(self.parts_, columns, strict=True)]
        if not any(map(_checks.is_sparse, found)):
            return np.hstack(found)
        from scipy import sparse

        return sparse.hstack([sparse.csr_array(part) for part in found], format="csr")

    def _read(self, k: int) -> list[tuple[Any, list[int]]]:
        """The parts, with their columns as lists, checked."""
        if not isinstance(self.parts, list | tuple) or not self.parts:
            raise InputTypeError("parts must be a list of pairs (feature map, columns), and not empty.")
        out = []
        for pair in self.parts:
            if not isinstance(pair, tuple | list) or len(pair) != 2:
                raise InputTypeError(f"parts must be pairs (feature map, columns); there is {pair!r} among them.")
            feature_map, given = pair
            columns = [_checks.whole("columns", j, low=0) for j in np.atleast_1d(np.asarray(given)).tolist()]
            if not columns or max(columns) >= k:
                raise InputError(f"columns {given!r} must be one or more of 0 to {k - 1}: states have {k} columns.")
            out.append((feature_map, columns))
        return out


class Identity(FeatureMap):
    """The numbers of a state, or its sparse row, as they are."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the states ``X``."""
        self.n_features_: int = self._rows(X).shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """The states (m, k) or (m,), as (m, k) or (m, 1)."""
        return self._rows(X)

    def _rows(self, X: Any) -> Any:
        from valuate.features._inputs import numbers

        return _checks.sparse_rows("states", X) if _checks.is_sparse(X) else numbers(X)


def _table(X: Any) -> NDArray[Any]:
    states = _checks.as_array("states", X)
    if states.ndim == 1:
        states = states[:, None]
    if states.ndim != 2:
        raise InputError(f"states must have one row each, (m, k), and have shape {states.shape}.")
    return states


def _apply(feature_map: Any, states: Any) -> Any:
    found = feature_map.transform(states) if hasattr(feature_map, "transform") else feature_map(states)
    return found if _checks.is_sparse(found) else _checks.matrix("features", found)
