"""User input in, checked arrays out.

Every function takes the name the user knows the argument by, and raises `InputError` or `InputTypeError` with what is
wrong, where it is (row, column) and what to do. What is in order passes without a copy: finiteness is looked at in
blocks and ranges by reductions, so checking a large log allocates next to nothing.
"""

from __future__ import annotations

import numbers
import operator
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from valuate.errors import InputError, InputTypeError

__all__ = [
    "all_finite",
    "as_array",
    "column",
    "finite",
    "flag",
    "flags",
    "indices",
    "is_sparse",
    "matrix",
    "number",
    "one_a_row",
    "same_columns",
    "sparse_rows",
    "vector",
    "weights",
    "whole",
]

# Entries looked at in one go: the mask of a block is 1 MB and stays in cache.
BLOCK_ENTRIES = 1_000_000


def is_sparse(value: object) -> bool:
    """Whether `value` is a scipy.sparse matrix or array, found out without importing SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(value))


def as_array(name: str, value: Any) -> NDArray[Any]:
    """A NumPy array of any shape and dtype from an array-like or a data frame, without a copy where possible."""
    if value is None:
        raise InputTypeError(f"{name} is None and an array is needed.")
    if is_sparse(value):
        raise InputTypeError(
            f"{name} is a sparse matrix and a dense array is needed here. Call .toarray() if it fits in memory."
        )
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        # np.asarray would keep the numbers behind the mask without a word.
        hidden = np.count_nonzero(np.ma.getmaskarray(value))
        raise InputError(f"{name} has {hidden} masked entries. Drop those rows or fill them with .filled(...).")
    try:
        return np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise InputError(
            f"{name} cannot be read as one array; all its rows must have the same shape. ({error})"
        ) from error


def matrix(
    name: str, value: ArrayLike, *, n_rows: int | None = None, n_columns: int | None = None
) -> NDArray[np.float32] | NDArray[np.float64]:
    """Finite rows of features, shape (n_rows, n_columns), float32 or float64.

    float32 and float64 pass as they are, in whatever memory order; float16 becomes float32; booleans and integers
    become float64.
    """
    array = as_array(name, value)
    _require_real(name, array)
    if array.ndim != 2:
        advice = (
            " Use .reshape(-1, 1) for one feature a row, .reshape(1, -1) for a single row." if array.ndim == 1 else ""
        )
        raise InputError(f"{name} must have 2 dimensions, (rows, columns), and has shape {array.shape}.{advice}")
    _check_shape(name, array.shape, n_rows, n_columns)
    array = _as_float(array)
    finite(name, array)
    return array


def sparse_rows(name: str, value: Any, *, n_rows: int | None = None, n_columns: int | None = None) -> Any:
    """Finite sparse rows as a canonical scipy.sparse.csr_array, (n_rows, n_columns), float32 or float64.

    The index structure is checked whole, because compiled code trusts it. Buffers are shared with `value` where they
    can be; `value` itself is never changed.
    """
    from scipy import sparse

    _require_real(name, value)
    if value.ndim != 2:
        raise InputError(f"{name} must have 2 dimensions, (rows, columns), and has shape {value.shape}.")
    _check_shape(name, value.shape, n_rows, n_columns)
    try:
        given = value.tocsr()
        rows = sparse.csr_array((_as_float(given.data), given.indices, given.indptr), shape=given.shape, copy=False)
        rows.check_format(full_check=True)
    except (ValueError, IndexError) as error:
        raise InputError(
            f"{name} is a sparse matrix with broken indices: {error}. Build it again from its entries."
        ) from error
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if not all_finite(rows.data):
        bad = np.flatnonzero(~np.isfinite(rows.data))
        row = int(np.searchsorted(rows.indptr, bad[0], side="right")) - 1
        _raise_not_finite(name, bad.size, f"row {row}, column {rows.indices[bad[0]]}", rows.data[bad[0]])
    return rows


def column(
    name: str, value: ArrayLike, n_rows: int | None = None, *, low: float | None = None, high: float | None = None
) -> NDArray[np.float64]:
    """One finite real number a row, C-contiguous float64 of shape (n_rows,), within [low, high]."""
    array = one_a_row(name, value, n_rows)
    _require_real(name, array)
    values = np.ascontiguousarray(array, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        least, most = values.min(), values.max()
    if not (np.isfinite(least) and np.isfinite(most)):
        finite(name, values)
    if (low is not None and least < low) or (high is not None and most > high):
        outside = np.zeros(values.size, dtype=bool)
        if low is not None:
            outside |= values < low
        if high is not None:
            outside |= values > high
        row = int(outside.argmax())
        raise InputError(
            f"{name} must be {_range(low, high)}; row {row} has {values[row]:.6g} "
            f"({np.count_nonzero(outside)} of {values.size} rows are outside)."
        )
    return values


def vector(name: str, value: ArrayLike, dim: int) -> NDArray[np.float64]:
    """One finite real number a feature, C-contiguous float64 of shape (dim,)."""
    array = as_array(name, value)
    _require_real(name, array)
    if array.ndim == 0:
        raise InputTypeError(f"{name} must have one entry a feature, shape ({dim},), and is one number.")
    if array.ndim != 1:
        advice = " Use .ravel()." if array.size == dim else ""
        raise InputError(f"{name} must have 1 dimension, one entry a feature, and has shape {array.shape}.{advice}")
    if len(array) != dim:
        raise InputError(f"{name} has {len(array)} entries and the problem has {dim} features.")
    found = np.ascontiguousarray(array, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(found))
    if len(bad):
        entries = "entry that is" if len(bad) == 1 else "entries that are"
        raise InputError(
            f"{name} has {len(bad)} {entries} NaN or infinite, the first at feature {bad[0]} ({found[bad[0]]})."
        )
    return found


def same_columns(name: str, one: Any, other_name: str, other: Any) -> None:
    """Refuse two data frames whose columns are not the same, in the same order: they are matched by position."""
    names = [list(getattr(frame, "columns", ())) for frame in (one, other)]
    if all(names) and names[0] != names[1]:
        place, pair = next(
            ((k, pair) for k, pair in enumerate(zip(*names, strict=False)) if pair[0] != pair[1]),
            (min(map(len, names)), None),
        )
        which = f"column {place} is {pair[0]!r} in one and {pair[1]!r} in the other" if pair else "one has more"
        raise InputError(
            f"{name} and {other_name} have different columns: {which}. Columns are matched by position: select them "
            "by name in the same order, and rename those of the next states to match."
        )


def weights(name: str, value: ArrayLike, n_rows: int | None = None) -> NDArray[np.float64]:
    """Multiplicities, float64 of shape (n_rows,): at least 0, not all 0, with a sum that float64 can hold."""
    values = column(name, value, n_rows, low=0.0)
    with np.errstate(over="ignore"):
        total = values.sum()
    if total == 0.0:
        raise InputError(f"{name} are all 0: no row would count. Give at least one row a positive weight.")
    if not np.isfinite(total):
        raise InputError(f"{name} add up to more than float64 can hold. Divide them by their largest value.")
    return values


def flags(name: str, value: ArrayLike, n_rows: int | None = None) -> NDArray[np.bool_]:
    """One yes or no a row, bool of shape (n_rows,), from booleans or numbers that are exactly 0 or 1."""
    array = one_a_row(name, value, n_rows)
    if array.dtype.kind == "b":
        return array
    _require_real(name, array)
    answer = array.astype(bool)
    if not np.array_equal(answer, array):
        row = int((answer != array).argmax())
        raise InputError(f"{name} must be True or False (or 1 and 0) in each row; row {row} has {array[row]:.6g}.")
    return answer


def indices(name: str, value: ArrayLike, n_rows: int | None, upper: int) -> NDArray[np.integer[Any]]:
    """One index a row, in [0, upper), shape (n_rows,); an integer array passes as it is, of whatever width."""
    array = one_a_row(name, value, n_rows)
    if array.dtype.kind not in "iu":
        advice = " Convert them with .astype(np.int64)." if array.dtype.kind in "fO" else ""
        if array.dtype.kind in "SUT":
            advice = " Names become indices with np.unique(names, return_inverse=True)."
        if array.dtype.kind == "b":
            advice = " A mask becomes indices with np.flatnonzero."
        raise InputTypeError(f"{name} must be integers and has dtype {array.dtype}.{advice}")
    if int(array.min()) < 0 or int(array.max()) >= upper:
        outside = (array < 0) | (array >= upper)
        row = int(outside.argmax())
        raise InputError(
            f"{name} must be in [0, {upper}), which is where the table has rows; row {row} has {array[row]} "
            f"({np.count_nonzero(outside)} of {array.size} rows are outside). Indices count from 0."
        )
    return _native(array)


def number(
    name: str, value: Any, *, low: float | None = None, high: float | None = None, above: float | None = None
) -> float:
    """One finite real number: at least `low`, at most `high`, strictly more than `above`."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
        raise InputTypeError(f"{name} must be a real number, not {_kind(value)}.")
    try:
        answer = float(value)
    except OverflowError:
        raise InputError(f"{name} must be a number that float64 can hold, not {value}.") from None
    inside = (low is None or answer >= low) and (high is None or answer <= high) and (above is None or answer > above)
    if not (np.isfinite(answer) and inside):
        raise InputError(f"{name} must be {_range(low, high, above)}, not {answer:.6g}.")
    return answer


def whole(name: str, value: Any, *, low: int | None = None) -> int:
    """One whole number, at least `low`. Floats are refused even where they are whole, as they are for indices."""
    if isinstance(value, bool | np.bool_ | float | np.floating):
        # Beyond 2^53 a float is not the number that was meant.
        exact = not isinstance(value, bool | np.bool_) and abs(float(value)) < 2**53 and float(value).is_integer()
        advice = f" Write {int(value)}." if exact else ""
        raise InputTypeError(f"{name} must be a whole number (int), not {_kind(value)} {value}.{advice}")
    try:
        answer = operator.index(value)
    except TypeError:
        raise InputTypeError(f"{name} must be a whole number (int), not {_kind(value)}.") from None
    if low is not None and answer < low:
        raise InputError(f"{name} must be at least {low}, not {answer}.")
    return answer


def flag(name: str, value: Any) -> bool:
    """One True or False, also as an exact 1 or 0."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, bool | np.bool_ | int | float | np.number) or value not in (0, 1):
        raise InputTypeError(f"{name} must be one True or False, not {_kind(value)}.")
    return bool(value)


def one_a_row(name: str, value: ArrayLike, n_rows: int | None = None) -> NDArray[Any]:
    """A 1-d array of any dtype with `n_rows` entries (any number above 0 where `n_rows` is None)."""
    array = as_array(name, value)
    if array.ndim == 0:
        raise InputTypeError(
            f"{name} must have one entry a row and is {_kind(value)}. Use np.full(n_rows, value) for a constant."
        )
    if array.ndim > 1:
        advice = " Use .ravel()." if array.size == len(array) else ""
        raise InputError(f"{name} must have 1 dimension, one entry a row, and has shape {array.shape}.{advice}")
    if n_rows is not None and len(array) != n_rows:
        raise InputError(f"{name} has {len(array)} entries and the log has {n_rows} rows: they must agree.")
    if not len(array):
        raise InputError(f"{name} is empty: at least one row is needed.")
    return array


def finite(name: str, values: NDArray[Any], advice: str = "Drop those rows or fill the gaps first.") -> None:
    """Raise `InputError` if an array of any shape holds NaN or infinity, naming the first place by row and column."""
    if all_finite(values):
        return
    total, first = 0, None
    for start, block in _blocks(values):
        bad = np.argwhere(~np.isfinite(block))
        if first is None and len(bad):
            first = (start + int(bad[0, 0]), *map(int, bad[0, 1:]))
        total += len(bad)
    assert first is not None
    rest = first[1:]
    place = f"row {first[0]}" + (f", column {rest[0]}" if len(rest) == 1 else f", entry {rest}" if rest else "")
    _raise_not_finite(name, total, place, values[first], advice)


def all_finite(values: NDArray[Any]) -> bool:
    """Whether a float array of any shape and memory order holds no NaN and no infinity."""
    if values.flags.f_contiguous:  # walk along the memory, whichever way it lies
        values = values.T
    return all(bool(np.isfinite(block).all()) for _, block in _blocks(values))


def _blocks(values: NDArray[Any]) -> Iterator[tuple[int, NDArray[Any]]]:
    """Views of consecutive rows, each with its first row's number, of about `BLOCK_ENTRIES` entries."""
    n_rows = len(values)
    step = max(1, BLOCK_ENTRIES * n_rows // max(1, values.size))
    for start in range(0, n_rows, step):
        yield start, values[start : start + step]


def _raise_not_finite(
    name: str, total: int, place: str, value: Any, advice: str = "Drop those rows or fill the gaps first."
) -> None:
    entries = "1 entry that is" if total == 1 else f"{total} entries that are"
    raise InputError(f"{name} has {entries} NaN or infinite, the first at {place} ({value}). {advice}")


def _require_real(name: str, array: Any) -> None:
    dtype = array.dtype
    if dtype.kind in "biu" or (dtype.kind == "f" and dtype.itemsize <= 8):
        return
    reasons = {
        "c": "Values here are real: take .real if the imaginary part is 0.",
        "f": "Convert it with .astype(np.float64).",
        "O": "Convert it with .astype(np.float64); what fails to convert is what to mend (None, text, lists).",
        "M": "Subtract a start and divide by np.timedelta64(1, 's') to get numbers.",
        "m": "Divide it by np.timedelta64(1, 's') to get numbers.",
    }
    advice = reasons.get(dtype.kind, "Turn text into numbers first, for example with a feature map.")
    raise InputTypeError(f"{name} must be real numbers (float32 or float64) and has dtype {dtype}. {advice}")


def _as_float(array: NDArray[Any]) -> NDArray[Any]:
    narrow = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    return array.astype(np.float32 if narrow else np.float64, copy=False)


def _native(array: NDArray[Any]) -> NDArray[Any]:
    # Files in the other byte order read as such; compiled code takes only the machine's own.
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _check_shape(name: str, shape: tuple[int, ...], n_rows: int | None, n_columns: int | None) -> None:
    if n_rows is not None and shape[0] != n_rows:
        raise InputError(f"{name} has {shape[0]} rows and the log has {n_rows}: they must agree.")
    if n_columns is not None and shape[1] != n_columns:
        raise InputError(f"{name} has {shape[1]} columns and {n_columns} are needed.")
    if shape[0] == 0:
        raise InputError(f"{name} is empty, with shape {shape}: at least one row is needed.")
    if shape[1] == 0:
        raise InputError(f"{name} has no columns, with shape {shape}: at least one feature is needed.")


def _range(low: float | None, high: float | None, above: float | None = None) -> str:
    if low is not None and high is not None:
        return f"in [{low:g}, {high:g}]"
    least = f"at least {low:g}" if low is not None else f"above {above:g}" if above is not None else ""
    most = f"at most {high:g}" if high is not None else ""
    *parts, last = filter(None, ["finite", least, most])
    return f"{', '.join(parts)} and {last}" if parts else last


def _kind(value: object) -> str:
    if value is None:
        return "None"
    word = "an" if type(value).__name__[0] in "aeiou" else "a"
    return f"{word} {type(value).__name__}"
