"""CSV of plain numbers and categories, compressed or not."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from valuate.errors import InputError
from valuate.io.arrow import ArrowTable, pyarrow
from valuate.io.paths import readable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_csv"]

#: What may stand between the values of a line.
SEPARATORS = (",", "\t", ";", "|")


def read_csv(path: Path) -> ArrowTable:
    """The columns of a CSV file with a line of names; the separator is the one that this line has most of."""
    pyarrow("Reading CSV files")
    from pyarrow import csv

    with readable(path, "csv"):
        header = _first_line(path)
    separator = max(SEPARATORS, key=header.count)
    names = [name.strip().strip('"') for name in header.split(separator)]
    if all(_is_number(name) for name in names):
        raise InputError(
            f"{path} begins with numbers, {header[:60]!r}: the first line must have the names of the columns."
        )
    again = next((name for name in names if name and names.count(name) > 1), None)
    if again is not None:
        raise InputError(f"{path} has more than one column called {again!r}. Rename or drop one.")
    with readable(path, "csv"):
        table = csv.read_csv(
            path,
            parse_options=csv.ParseOptions(delimiter=separator),
            convert_options=csv.ConvertOptions(strings_can_be_null=True),
        )
    if not table.num_rows:
        raise InputError(f"{path} has the names of columns and no rows.")
    return ArrowTable(table, "csv")


def _first_line(path: Path) -> str:
    opened = gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")
    with opened as file:
        line = file.readline(1 << 20)
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8, which CSV must be here. Save it as such.") from None


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
