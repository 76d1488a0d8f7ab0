"""Columns of a log, of any shape and dtype: checking, comparing, selecting, joining.

A column here is an array with one row per transition or a scipy.sparse CSR matrix; what is a plain number or a flag a
row is checked by `valuate._checks`.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.errors import InputError, InputTypeError

__all__ = ["Indexed", "compact", "labels", "overlap", "require_alike", "selection", "stack", "states"]

Indexed: TypeAlias = tuple[Any, NDArray[np.int64], NDArray[np.int64]]

_GAPS = "Drop those rows or fill the gaps. A terminated row needs a next state too, though it counts for nothing."


def states(name: str, value: Any, n_rows: int | None = None) -> Any:
    """States or actions: an array of any shape and dtype with a row per transition, or CSR; floats are finite."""
    sparse = _checks.is_sparse(value)
    array = value if sparse else _checks.as_array(name, value)
    if not array.shape:
        raise InputTypeError(f"{name} must have one entry a row and is one {type(value).__name__}.")
    if n_rows is not None and array.shape[0] != n_rows:
        advice = ""
        if array.shape[0] == n_rows + 1:
            advice = " Whole episodes, with one observation more than rewards, go through Transitions.from_episodes."
        raise InputError(f"{name} has {array.shape[0]} rows and rewards has {n_rows}: all columns must agree.{advice}")
    if sparse:
        return _checks.sparse_rows(name, value)
    if array.size == 0:
        raise InputError(f"{name} is empty, with shape {array.shape}: at least one row and one entry a row are needed.")
    if array.dtype.kind in "fc":
        _checks.finite(name, array, _GAPS)
    return array


def require_alike(name: str, one: Any, other_name: str, other: Any) -> None:
    """Both dense or both sparse, both numbers or both the same kind of label, and the same shape a row."""
    if _checks.is_sparse(one) != _checks.is_sparse(other):
        raise InputTypeError(f"{name} and {other_name} must be both sparse or both dense.")
    if one.shape[1:] != other.shape[1:]:
        raise InputError(
            f"{name} has rows of shape {one.shape[1:]} and {other_name} of shape {other.shape[1:]}: they must agree."
        )
    kinds = ["number" if array.dtype.kind in "biufc" else array.dtype.kind for array in (one, other)]
    if kinds[0] != kinds[1] and "O" not in kinds:
        raise InputTypeError(f"{name} has dtype {one.dtype} and {other_name} {other.dtype}: they must be of one kind.")


def labels(value: Any, n_rows: int) -> NDArray[Any]:
    """Episode ids as a 1-d array; ids of mixed kinds and tuples stay what they are."""
    if isinstance(value, list | tuple):
        value = _compact_labels(value)
    ids = _checks.one_a_row("episodes", value, n_rows)
    if ids.dtype.kind == "f":
        _checks.finite("episodes", ids, "Give those rows an id.")
    if ids.dtype == object:
        for row, label in enumerate(ids):
            if not isinstance(label, Hashable):
                raise InputTypeError(f"episodes must be hashable ids; row {row} has a {type(label).__name__}.")
            if label != label:  # NaN, which is what a data frame has for a gap
                raise InputError(f"episodes has no id at row {row} ({label}). Give those rows an id.")
    return ids


def _compact_labels(value: list[Any] | tuple[Any, ...]) -> NDArray[Any]:
    # NumPy would turn ["1", 1] into two equal labels and pairs into a matrix.
    kinds = {type(label) for label in value}
    if kinds == {int} or kinds == {str}:
        ids = np.array(value)
        if ids.dtype.kind in "iuU":
            return ids
    return np.fromiter(value, dtype=object, count=len(value))


def selection(rows: Any, n: int) -> slice | NDArray[Any]:
    """A slice, or an array of row numbers or a mask that has been checked; one row becomes a slice."""
    if isinstance(rows, slice):
        if not len(range(n)[rows]):
            raise InputError(f"{rows} takes none of the {n} rows and a log cannot be empty.")
        return rows
    chosen = _checks.as_array("rows", rows)
    if chosen.ndim == 0 and chosen.dtype.kind in "iu":
        chosen = chosen[None]
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iub"):
        raise InputTypeError("Rows of a log are chosen by an index, a slice, a mask or a 1-d array of indices.")
    if chosen.dtype.kind == "b" and len(chosen) != n:
        raise InputError(f"The mask has {len(chosen)} entries and the log {n} rows: they must agree.")
    if not chosen.size or (chosen.dtype.kind == "b" and not chosen.any()):
        raise InputError("The selection takes no row and a log cannot be empty.")
    if chosen.dtype.kind != "b" and (chosen.min() < -n or chosen.max() >= n):
        outside = chosen[(chosen < -n) | (chosen >= n)][0]
        raise InputError(f"There is no row {outside}: the log has {n} rows, 0 to {n - 1}.")
    if chosen.dtype.kind != "b" and chosen.size == 1:
        row = int(chosen[0]) % n
        return slice(row, row + 1)
    return chosen


def compact(table: Any, state_rows: Any, next_rows: Any) -> dict[str, Any]:
    """Leave out of a table what no row uses, where that is most of it: a feature map would see all of it."""
    if 4 * len(state_rows) < table.shape[0]:
        used, places = np.unique(np.concatenate([state_rows, next_rows]), return_inverse=True)
        table, (state_rows, next_rows) = table[used], np.split(places, 2)
    return {"_table": table, "_state_rows": state_rows, "_next_rows": next_rows}


def stack(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if _checks.is_sparse(parts[0]):
        from scipy import sparse

        return sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def overlap(states: Any, next_states: Any) -> Indexed | None:
    """The one array that both are windows of, where the next states begin 0 to n - 1 rows after the states."""
    if not (isinstance(states, np.ndarray) and isinstance(next_states, np.ndarray)):
        return None
    same = states.dtype == next_states.dtype and states.strides == next_states.strides
    if not same or states.strides[0] <= 0 or _owner(states) is not _owner(next_states):
        return None
    n = len(states)
    shift, rest = divmod(_address(next_states) - _address(states), states.strides[0])
    if rest or not 0 <= shift < n:
        return None
    # The last rows of the next states follow on the states in memory, so this window stays within the two.
    table = np.lib.stride_tricks.as_strided(states, (n + shift, *states.shape[1:]), states.strides, writeable=False)
    rows = np.arange(n)
    return table, rows, rows + shift


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _owner(array: NDArray[Any]) -> object:
    """The object that owns an array's memory."""
    owner: Any = array
    while isinstance(owner, np.ndarray) and owner.base is not None:
        owner = owner.base
    return owner
