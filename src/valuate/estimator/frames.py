"""States in data frames, beside those in arrays and sparse matrices."""

from __future__ import annotations

from typing import Any

from sklearn.utils import _safe_indexing


def is_frame(value: Any) -> bool:
    """Whether states are rows of a data frame, pandas' or polars'."""
    return hasattr(value, "columns") and hasattr(value, "to_numpy")


def take(states: Any, places: Any) -> Any:
    """Rows of states by their numbers, whatever holds them."""
    return _safe_indexing(states, places) if is_frame(states) else states[places]
