"""CSV of plain numbers and categories, compressed or not."""

from __future__ import annotations

import gzip
import io
from typing import TYPE_CHECKING, Any

from valuate.errors import InputError
from valuate.io.arrow import ArrowTable, is_number, pyarrow
from valuate.io.listing import has_comma
from valuate.io.paths import readable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_csv"]

#: What may stand between the values of a line.
SEPARATORS = (",", "\t", ";", "|")
#: How a compressed file begins.
_GZIP = b"\x1f\x8b"


def read_csv(path: Path, content: bytes | None = None) -> ArrowTable:
    """The columns of a CSV file with a line of names; the separator is the one that this line has most of.

    Parameters
    ----------
    path : Path
        Also what messages call it.
    content : bytes, optional
        What a pipe held, which cannot be read twice.
    """
    pyarrow("Reading CSV files")
    with readable(path, "csv"):
        if content is not None and content.startswith(_GZIP):
            content = gzip.decompress(content)
        header = _first_line(path, content)
    separator = max(SEPARATORS, key=header.count)
    _require_names(path, header, [name.strip().strip('"') for name in header.split(separator)])
    table = _table(path, content, separator, ".")
    if not table.num_rows:
        raise InputError(f"{path} has the names of columns and no rows.")
    commas = [] if separator == "," else [name for name in table.column_names if _has_commas(table.column(name))]
    if not commas:
        return ArrowTable(table, "csv")
    again = _table(path, content, separator, ",")
    if any(is_number(field.type) and not is_number(again.schema.field(field.name).type) for field in table.schema):
        return ArrowTable(table, "csv")  # points in other columns: what is of use and has commas will be told of
    more = len(commas) - 1
    others = f" and {more} more column{'s' * (more > 1)}" if more else ""
    return ArrowTable(again, "csv", [f"The comma in numbers of {commas[0]!r}{others} is a decimal comma."])


def _table(path: Path, content: bytes | None, separator: str, point: str) -> Any:
    from pyarrow import csv

    with readable(path, "csv"):
        return csv.read_csv(
            path if content is None else io.BytesIO(content),
            parse_options=csv.ParseOptions(delimiter=separator),
            convert_options=csv.ConvertOptions(strings_can_be_null=True, decimal_point=point),
        )


def _require_names(path: Path, header: str, names: list[str]) -> None:
    """Refuse a first line of values, and names that come twice."""
    again = next((name for name in names if name and names.count(name) > 1), None)
    # A column may be called 0 or 1, hardly 0.5 or False, and no two are.
    broken = [name for name in names if _is_value(name) and not name.isdigit()]
    if all(map(_is_value, names)) or 2 * len(broken) > len(names) or (again is not None and _is_value(again)):
        what = "numbers" if all(map(_is_number, names)) else "values"
        raise InputError(
            f"{path} begins with {what}, {header[:60]!r}: the first line must have the names of the columns."
        )
    if again is not None:
        raise InputError(f"{path} has more than one column called {again!r}. Rename or drop one.")


def _has_commas(column: Any) -> bool:
    """Whether a column is text of numbers with a comma in them, as far as its first rows show."""
    from pyarrow import types

    if not types.is_string(column.type):
        return False
    return has_comma(column.slice(0, 1000).drop_null().to_pylist())


def _first_line(path: Path, content: bytes | None) -> str:
    if content is not None:
        line = content.split(b"\n", 1)[0]
    else:
        opened = gzip.open(path, "rb") if path.name.lower().endswith(".gz") else path.open("rb")
        with opened as file:
            line = file.readline(1 << 20)
    try:
        return line.decode("utf-8-sig").rstrip("\r\n")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8, which CSV must be here. Save it as such.") from None


def _is_value(name: str) -> bool:
    return _is_number(name) or name.lower() in ("true", "false")


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True
