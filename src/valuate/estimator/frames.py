"""States in data frames, beside those in arrays and sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing


def is_frame(value: Any) -> bool:
    """Whether states are rows of a data frame, pandas' or polars'."""
    return hasattr(value, "columns") and hasattr(value, "to_numpy")


def take(states: Any, places: Any) -> Any:
    """Rows of states by their numbers, whatever holds them."""
    return _safe_indexing(states, places) if is_frame(states) else states[places]


def plain(value: Any) -> Any:
    """A pandas frame or column of nullable numbers without gaps as one of NumPy's numbers; all else as it is.

    NumPy makes objects of nullable numbers. Those with gaps stay what they are: a transformer may fill them.
    """
    if not hasattr(value, "astype") or not hasattr(value, "isna"):
        return value
    if not hasattr(value, "columns"):
        return value.astype(value.dtype.numpy_dtype) if _is_nullable(value) and not value.isna().any() else value
    dtypes = list(value.dtypes)
    if not any(hasattr(dtype, "numpy_dtype") for dtype in dtypes) or not value.columns.is_unique:
        return value
    columns = {name: value[name] for name in value.columns if _is_nullable(value[name])}
    found = {name: column.dtype.numpy_dtype for name, column in columns.items() if not column.isna().any()}
    return value.astype(found) if found else value


def _is_nullable(column: Any) -> bool:
    """Whether a column has a type of pandas' own for numbers, which NumPy has too."""
    dtype = getattr(column, "dtype", None)
    own = getattr(dtype, "numpy_dtype", None)
    return own is not None and not isinstance(dtype, np.dtype) and np.dtype(own).kind in "iufb"
