"""Arrow columns as NumPy arrays: what Parquet, CSV, polars, pandas and Arrow tables go through."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError, MissingPartError
from valuate.io.columns import BLOCK, Block, Column, coded

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["ArrowTable", "PandasTable", "as_column", "blocks_of", "is_number", "numpy_type", "pyarrow"]


def pyarrow(purpose: str) -> Any:
    """The package, or an error that says what needs it."""
    try:
        import pyarrow as pa
    except ImportError:
        raise MissingPartError("pyarrow", "io", purpose) from None
    return pa


class ArrowTable:
    """An Arrow table in memory.

    Attributes
    ----------
    remarks : tuple of str
        What was decided in making it.
    """

    def __init__(self, table: Any, format: str, remarks: Iterable[str] = ()) -> None:
        self.format = format
        self.remarks = tuple(remarks)
        while any(is_struct(field.type) for field in table.schema):
            table = table.flatten()
        self._table = table

    @property
    def names(self) -> list[str]:
        """All columns, in order."""
        return list(self._table.column_names)

    def is_number(self, name: str) -> bool:
        """Whether a column has one number or flag a row."""
        return is_number(self._table.schema.field(name).type)

    def dtype(self, name: str) -> np.dtype[Any]:
        """Of a column that is a number."""
        return numpy_type(self._table.schema.field(name).type)

    def length(self, name: str) -> int:
        """Rows of a column."""
        return int(self._table.num_rows)

    def column(self, name: str) -> Column:
        """A whole column of any kind."""
        return as_column(name, self._table.column(name))

    def blocks(self, names: list[str]) -> Iterator[Block]:
        """Some columns that are numbers, block by block."""
        return blocks_of(self._table.select(names).to_batches(max_chunksize=BLOCK), names)


class PandasTable:
    """A pandas data frame, whose columns become Arrow's when they are asked for; numbers are not copied."""

    format = "pandas"

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._places = {str(name): place for place, name in enumerate(frame.columns)}
        if len(self._places) < len(frame.columns):
            again = frame.columns[frame.columns.map(str).duplicated()][0]
            raise InputError(f"the data frame has more than one column called {str(again)!r}. Rename or drop one.")
        self._arrow: dict[str, Any] = {}

    @property
    def names(self) -> list[str]:
        """All columns, in order."""
        return list(self._places)

    def is_number(self, name: str) -> bool:
        """Whether a column has one number or flag a row."""
        return is_number(self._column(name).type)

    def dtype(self, name: str) -> np.dtype[Any]:
        """Of a column that is a number."""
        return numpy_type(self._column(name).type)

    def length(self, name: str) -> int:
        """Rows of a column."""
        return len(self._frame)

    def column(self, name: str) -> Column:
        """A whole column of any kind."""
        return as_column(name, self._column(name))

    def blocks(self, names: list[str]) -> Iterator[Block]:
        """Some columns that are numbers, block by block."""
        columns = [self._column(name) for name in names]
        for start in range(0, len(self._frame), BLOCK):
            yield start, [values_of(column.slice(start, BLOCK)) for column in columns]

    def _column(self, name: str) -> Any:
        if name not in self._arrow:
            pa = pyarrow("Reading data frames")
            series = self._frame.iloc[:, self._places[name]]
            try:
                self._arrow[name] = pa.array(series, from_pandas=True)
            except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
                values = series.to_numpy(dtype=object)
                coded(name, values)  # says which row is the odd one, where one is
                raise InputError(f"column {name!r} cannot be read: {first_line(error)}") from None
        return self._arrow[name]


def is_number(kind: Any) -> bool:
    """Whether an Arrow type is that of one number or flag a row."""
    from pyarrow import types

    return bool(types.is_boolean(kind) or types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


def is_struct(kind: Any) -> bool:
    """Whether an Arrow type is that of parts with names."""
    from pyarrow import types

    return bool(types.is_struct(kind))


def numpy_type(kind: Any) -> np.dtype[Any]:
    """The NumPy type of a number or flag."""
    from pyarrow import types

    return np.dtype(np.float64) if types.is_decimal(kind) else np.dtype(kind.to_pandas_dtype())


def blocks_of(batches: Any, names: list[str]) -> Iterator[Block]:
    """Record batches as blocks of NumPy columns."""
    start = 0
    for batch in batches:
        yield start, [values_of(batch.column(batch.schema.get_field_index(name))) for name in names]
        start += batch.num_rows


def values_of(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """The numbers or flags of an Arrow array, with 0 where one is missing, and which are."""
    pa = pyarrow("Reading columns")
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if not column.null_count:
        return _numpy(column), None
    missing = _numpy(column.is_null())
    return _numpy(column.fill_null(False if pa.types.is_boolean(column.type) else 0)), missing


def as_column(name: str, column: Any) -> Column:
    """A whole Arrow column of any kind."""
    pa = pyarrow("Reading columns")
    if isinstance(column, pa.ExtensionArray) or isinstance(column.type, pa.BaseExtensionType):
        column = column.cast(column.type.storage_type)
    kind = column.type
    if pa.types.is_null(kind):
        return Column(np.full(len(column), np.nan), None, np.ones(len(column), bool))
    if is_number(kind):
        return Column(*_with_labels(values_of(column)))
    if pa.types.is_dictionary(kind) or _is_text(pa, kind):
        return _text(pa, column)
    if _is_list(pa, kind):
        return Column(_vectors(pa, name, column))
    if pa.types.is_temporal(kind):
        return Column(_numpy(column), None, _numpy(column.is_null()) if column.null_count else None)
    raise InputError(f"column {name!r} has the type {kind}, of which no numbers can be made. Leave it out.")


def first_line(error: BaseException) -> str:
    """What an error says, without the lines that only programmers read."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0].rstrip(".") if lines else type(error).__name__) + "."


def _with_labels(found: tuple[Any, Any]) -> tuple[Any, None, Any]:
    return found[0], None, found[1]


def _numpy(column: Any) -> NDArray[Any]:
    pa = pyarrow("Reading columns")
    if isinstance(column, pa.ChunkedArray):
        return np.asarray(column.to_numpy())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _is_text(pa: Any, kind: Any) -> bool:
    tests: list[Callable[[Any], bool]] = [pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view]
    tests += [pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary]
    return any(test(kind) for test in tests)


def _is_list(pa: Any, kind: Any) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _text(pa: Any, column: Any) -> Column:
    """Codes and labels, in sorted order of the labels, those only that are used."""
    if not pa.types.is_dictionary(column.type):
        if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
            column = column.cast(pa.large_string())
        column = column.dictionary_encode()
    if not isinstance(column, pa.ChunkedArray):
        column = pa.chunked_array([column])
    column = column.unify_dictionaries()
    missing = _numpy(column.is_null()) if column.null_count else None
    parts = [_numpy(chunk.indices.fill_null(0)) for chunk in column.chunks]
    places = np.concatenate(parts) if parts else np.zeros(0, np.int32)
    labels = column.chunk(0).dictionary.to_pylist() if column.num_chunks else []
    if any(isinstance(label, int | float) for label in labels):  # categories that are numbers
        return Column(np.array(labels)[places], None, missing)
    words = np.array([label.decode(errors="replace") if isinstance(label, bytes) else str(label) for label in labels])
    used = np.zeros(len(words), bool)
    used[places if missing is None else places[~missing]] = True
    kept, new = np.unique(words[used], return_inverse=True)
    place_of = np.zeros(len(words), np.int32)
    place_of[used] = new
    codes = place_of[places] if len(words) else np.zeros(len(places), np.int32)
    return Column(codes, tuple(kept.tolist()), missing)


def _vectors(pa: Any, name: str, column: Any) -> NDArray[Any]:
    """Lists of one length as (n, k), lists of lists as (n, k, l)."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    out: NDArray[Any] | None = None
    at = 0
    for chunk in chunks:
        part = _vectors_of(pa, name, chunk, at)
        if out is None:
            out = np.empty((len(column), *part.shape[1:]), part.dtype)
        if part.shape[1:] != out.shape[1:]:
            raise _ragged(name, at, part.shape[1:], out.shape[1:])
        out[at : at + len(part)] = part
        at += len(part)
    return np.empty((0, 0)) if out is None else out


def _vectors_of(pa: Any, name: str, chunk: Any, at: int) -> NDArray[Any]:
    if not len(chunk):
        return np.empty((0, 0))
    if chunk.null_count:
        row = int(_numpy(chunk.is_null()).argmax())
        raise InputError(
            f"column {name!r} has {chunk.null_count} rows without a value, the first at row {at + row}. Drop those "
            "rows or fill the gaps first."
        )
    if pa.types.is_fixed_size_list(chunk.type):
        width = chunk.type.list_size
    else:
        lengths = _numpy(chunk.value_lengths())
        width = int(lengths[0])
        odd = np.flatnonzero(lengths != width)
        if len(odd):
            raise _ragged(name, at + int(odd[0]), (int(lengths[odd[0]]),), (width,))
    inner = chunk.flatten()
    if _is_list(pa, inner.type):
        values = _vectors_of(pa, name, inner, at * width)
    elif is_number(inner.type):
        values, missing = values_of(inner)
        if missing is not None:
            values = np.where(missing, np.nan, values)
    else:
        raise InputError(f"column {name!r} holds lists of {inner.type}: lists of numbers are needed.")
    return values.reshape(len(chunk), width, *values.shape[1:])


def _ragged(name: str, row: int, found: tuple[int, ...], wanted: tuple[int, ...]) -> InputError:
    return InputError(
        f"column {name!r} has lists of different lengths: {'x'.join(map(str, found))} at row {row} and "
        f"{'x'.join(map(str, wanted))} before. All rows of a log must be alike."
    )
