"""Parquet: read column by column in batches, so that little more than the columns is ever in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from valuate.errors import InputError
from valuate.io.arrow import as_column, blocks_of, is_number, is_struct, numpy_type, pyarrow
from valuate.io.columns import BLOCK, Block, Column
from valuate.io.paths import readable

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

__all__ = ["MARK", "ParquetTable"]

#: Where our own files say what they hold.
MARK = b"valuate"


class ParquetTable:
    """The columns of a Parquet file.

    Attributes
    ----------
    ours : dict or None
        What `valuate.write` wrote down of the log, where it wrote the file.
    """

    format = "parquet"

    def __init__(self, path: Path) -> None:
        with readable(path, self.format):
            self._open(path)

    def _open(self, path: Path) -> None:
        pa = pyarrow("Reading Parquet files")
        import pyarrow.parquet as pq

        self._pa, self._path = pa, path
        # Little by little: otherwise a whole row group, or the whole file, is held in memory beside the columns.
        self._file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
        schema = self._file.schema_arrow
        self._structs = {field.name for field in schema if is_struct(field.type)}
        mark = (schema.metadata or {}).get(MARK)
        self.ours: dict[str, Any] | None = None if mark is None else json.loads(mark)
        if self._structs:
            empty = schema.empty_table()
            while any(is_struct(field.type) for field in empty.schema):
                empty = empty.flatten()
            schema = empty.schema
        if len(set(schema.names)) < len(schema.names):
            again = next(name for name in schema.names if schema.names.count(name) > 1)
            raise InputError(f"{path} has more than one column called {again!r}. Rename or drop one.")
        self._schema = schema

    @property
    def names(self) -> list[str]:
        """All columns, in order."""
        return list(self._schema.names)

    def is_number(self, name: str) -> bool:
        """Whether a column has one number or flag a row."""
        return is_number(self._schema.field(name).type)

    def dtype(self, name: str) -> np.dtype[Any]:
        """Of a column that is a number."""
        return numpy_type(self._schema.field(name).type)

    def length(self, name: str) -> int:
        """Rows of a column."""
        return int(self._file.metadata.num_rows)

    def column(self, name: str) -> Column:
        """A whole column of any kind."""
        chunks = [batch.column(batch.schema.get_field_index(name)) for batch in self._batches([name])]
        whole = self._pa.chunked_array(chunks, type=None if chunks else self._schema.field(name).type)
        return as_column(name, whole)

    def blocks(self, names: list[str]) -> Iterator[Block]:
        """Some columns that are numbers, block by block."""
        return blocks_of(self._batches(names), names)

    def _batches(self, names: list[str]) -> Iterator[Any]:
        with readable(self._path, self.format):
            for batch in self._file.iter_batches(batch_size=BLOCK, columns=names):
                if not self._structs:
                    yield batch
                    continue
                table = self._pa.Table.from_batches([batch])
                while any(is_struct(field.type) for field in table.schema):
                    table = table.flatten()
                yield from table.to_batches()
