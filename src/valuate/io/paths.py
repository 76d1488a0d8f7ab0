"""Files: which are there, of which format, and what is said where they cannot be read or written."""

from __future__ import annotations

import difflib
import os
import struct
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from valuate.errors import InputError, ValuateError

__all__ = ["FILE_FORMATS", "format_of", "piped", "readable", "require_file", "require_piped", "write_safely"]

#: Formats of files and the endings of their names.
FILE_FORMATS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "npz": (".npz",),
    "hdf5": (".hdf5", ".h5", ".hdf"),
    "arrow": (".arrow", ".feather", ".ipc"),
}
#: How files of each format begin.
_BEGINNINGS = {b"PAR1": "parquet", b"PK\x03\x04": "npz", b"\x89HDF\r\n\x1a\n": "hdf5", b"ARROW1": "arrow"}
#: What reading damaged files has been seen to raise, of Python's and of the libraries' own.
_FAILURES = (
    *(OSError, ValueError, TypeError, LookupError, ArithmeticError, EOFError, RuntimeError, SyntaxError),
    *(AttributeError, AssertionError, struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
_SPOKEN = {"parquet": "Parquet", "csv": "CSV", "npz": "NPZ", "hdf5": "HDF5", "arrow": "Arrow", "minari": "Minari"}


def piped(path: Path) -> bytes | None:
    """What is piped to us, by "-" or a path that is no file, such as /dev/stdin; None for files."""
    if str(path) == "-":
        content = sys.stdin.buffer.read()
    else:
        try:
            if not (path.is_fifo() or path.is_char_device()):
                return None
            content = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    if not content:
        raise InputError(f"{path} is empty: it has 0 bytes.")
    return content


def require_piped(path: Path, content: bytes, container: str | None) -> None:
    """Refuse what is no CSV: other formats are read here and there, which a pipe does not allow."""
    kind = next((format for mark, format in _BEGINNINGS.items() if content.startswith(mark)), container or "csv")
    if kind != "csv":
        raise InputError(f"{path} is a pipe, from which only CSV is read. Write {_SPOKEN[kind]} to a file first.")


def require_file(path: Path) -> None:
    """Refuse a path that is no file with something in it."""
    try:
        if path.is_dir():
            raise InputError(
                f"{path} is a directory and no Minari data set: there is no data/main_data.hdf5 and no "
                "data/metadata.json in it. Give one file."
            )
        if not path.exists():
            raise InputError(f"There is no file {path}.{_others(path)}")
        if not path.stat().st_size:
            raise InputError(f"{path} is empty: it has 0 bytes.")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None


def _others(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" There is no folder {folder} either."
    near = difflib.get_close_matches(path.name, [file.name for file in folder.iterdir()], n=3, cutoff=0.6)
    return f" In its folder there is {' and '.join(near)}." if near else ""


def format_of(path: Path) -> str:
    """The format of a file by its name, else by how it begins."""
    name = path.name.lower()
    for format, endings in FILE_FORMATS.items():
        if name.endswith(endings):
            return format
    try:
        with path.open("rb") as file:
            beginning = file.read(8)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    for mark, format in _BEGINNINGS.items():
        if beginning.startswith(mark):
            return format
    known = ", ".join(ending for endings in FILE_FORMATS.values() for ending in endings)
    raise InputError(
        f"{path} has a name that does not say its format. Known endings are {known}; or name it: "
        f"format={', '.join(map(repr, FILE_FORMATS))}."
    )


@contextmanager
def readable(path: Path, format: str) -> Iterator[None]:
    """Turn whatever a library raises on a damaged file into one sentence; around that library's own work only."""
    try:
        yield
    except ValuateError:
        raise
    except MemoryError:
        raise InputError(f"{path} does not fit in memory, or it is damaged and says so.") from None
    except _FAILURES as error:
        said = " ".join(str(error).split()) or type(error).__name__
        said = said if len(said) <= 200 else said[:200] + " ..."
        raise InputError(
            f"{path} cannot be read as {_SPOKEN.get(format, format)}: it is damaged, cut short, or of another format. "
            f"({said.rstrip('.')})"
        ) from None


@contextmanager
def write_safely(path: Path, *, force: bool) -> Iterator[Path]:
    """A path to write to beside the one asked for, renamed once all is written; nothing is left of a failure.

    Raises
    ------
    InputError
        Where the path exists and ``force`` is False, or cannot be written to.
    """
    _require_free(path, force)
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}.")
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        yield part
        _require_free(path, force)  # somebody else may have written it in the meantime
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}. Nothing was changed.") from None
    finally:
        part.unlink(missing_ok=True)


def _require_free(path: Path, force: bool) -> None:
    if path.is_dir():
        raise InputError(f"{path} is a directory. Give the name of a file in it.")
    if path.exists() and not force:
        raise InputError(f"{path} exists already. Give force=True to overwrite it, or another name.")
