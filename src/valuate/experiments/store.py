"""The folder of a reproduction: a manifest of what is asked for, and one line of JSON for each finished run."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from io import FileIO
from pathlib import Path
from typing import Any

from valuate.errors import InputError, ValuateError
from valuate.experiments.plan import Cell

FORMAT = 1
MANIFEST = "manifest.json"
RECORDS = "runs.jsonl"
_DRAFT = MANIFEST + ".new"

#: What a record of each kind has, and of which types: what is read without asking. Other kinds are not looked at.
_KEY: dict[str, Any] = {"experiment": str, "cell": str, "run": int}
_PARTS: dict[str, dict[str, Any]] = {
    "run": _KEY
    | dict.fromkeys(("settings", "data", "trace", "seconds", "versions"), dict)
    | dict.fromkeys(("result", "score"), (dict, type(None)))
    | {"peak_megabytes": (float, int, type(None))},
    "failed": _KEY | {"reason": str},
    "session": {"began": (float, int), "jobs": int, "machine": dict},
    "timing": {"authors_way": dict},
}
#: What parts of the record of a run have, where there is something in them.
_INNER = {
    "data": {"rows", "dim"},
    "result": {"status", "passes", "row_visits"},
    "seconds": {"data", "solve", "score"},
}


class StoreError(ValuateError):
    """A record could not be written."""


class Store:
    """An append-only file of records in a folder.

    Opened for writing, the file is locked, and a record that was cut short is taken off its end.

    Attributes
    ----------
    folder : Path
    manifest : dict
    records : list of dict
        Everything that could be read; `append` adds to it.
    notes : list of str
        What was wrong with the file.
    """

    def __init__(self, folder: Path, manifest: dict[str, Any], file: FileIO | None) -> None:
        self.folder, self.manifest, self._file = folder, manifest, file
        self.notes: list[str] = []
        self.records: list[dict[str, Any]] = []

    @classmethod
    def read(cls, folder: str | Path) -> Store:
        """Open the store of a folder to look at it."""
        folder = Path(folder)
        if not (folder / MANIFEST).is_file():
            raise InputError(f"{folder} holds no reproduction: there is no {MANIFEST} in it. Make one with reproduce.")
        store = cls(folder, _read_manifest(folder), None)
        path = folder / RECORDS
        store._take(path.read_bytes() if path.exists() else b"")
        return store

    @classmethod
    def write(cls, folder: str | Path, scale: str, seed: int, experiments: dict[str, list[Cell]]) -> Store:
        """Open the store of a folder to add to it, making what is missing.

        Raises
        ------
        InputError
            Where the folder cannot be written to, holds something else, a run with other settings, or is in use.
        """
        folder = Path(folder)
        wanted = {name: [cell.as_dict() for cell in cells] for name, cells in experiments.items()}
        file: FileIO | None = None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            manifest = _merged(folder, scale, seed, json.loads(json.dumps(wanted)))
            file = open(folder / RECORDS, "a+b", buffering=0)
            _lock(file, folder)
            _write_manifest(folder, manifest)
            store = cls(folder, manifest, file)
            file.seek(0)
            keep = store._take(file.read())
            file.truncate(keep)
        except OSError as error:
            raise InputError(
                f"{folder} cannot be written to: {error.strerror or error}. Give another folder with --out."
            ) from None
        return store

    def append(self, record: dict[str, Any]) -> None:
        """Add a record; it is on the disk when this returns."""
        assert self._file is not None
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        end = self._file.seek(0, os.SEEK_END)
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[self._file.write(rest) :]
            os.fsync(self._file.fileno())
        except OSError as error:
            why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else str(error.strerror or error)
            self._cut(end)
            raise StoreError(
                f"A record could not be written to {self.folder / RECORDS}: {why}. Finished runs are kept; make room "
                "and give the same command again."
            ) from None
        self.records.append(record)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _cut(self, end: int) -> None:
        assert self._file is not None
        try:
            self._file.truncate(end)
        except OSError:
            pass  # the next one to open the file takes the torn record off

    def _take(self, content: bytes) -> int:
        """Read the records; returns how many bytes of the file are whole lines."""
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            self.notes.append(
                f"The last record of {RECORDS} was cut short ({len(content) - whole} bytes without an end): it is left "
                "out and its run is repeated."
            )
        for number, line in enumerate(content[:whole].splitlines(), start=1):
            try:
                record = json.loads(line)
                sound = _is_record(record)
            except (ValueError, KeyError, TypeError):
                sound = False
            if not sound:
                self.notes.append(f"Line {number} of {RECORDS} is no record: it is left out and its run is repeated.")
                continue
            self.records.append(record)
        return whole


def _is_record(record: dict[str, Any]) -> bool:
    """Whether everything is there that a record of its kind is asked for; a KeyError or TypeError says no as well."""
    kind = record["kind"]
    if not all(isinstance(record[name], types) for name, types in _PARTS.get(kind, {}).items()):
        return False
    return kind != "run" or all(record[part] is None or names <= record[part].keys() for part, names in _INNER.items())


def _merged(folder: Path, scale: str, seed: int, wanted: dict[str, Any]) -> dict[str, Any]:
    """The folder's manifest with what is wanted added to it; an error where the two do not go together."""
    if not (folder / MANIFEST).exists():
        made = (RECORDS, _DRAFT)  # by a process that ended before it wrote the manifest
        others = sorted(
            e.name for e in folder.iterdir() if e.name not in made or (e.name == RECORDS and e.stat().st_size)
        )
        if others:
            raise InputError(
                f"{folder} is not empty and holds no reproduction (it has {others[0]}). Give another folder with --out."
            )
        return {"format": FORMAT, "scale": scale, "seed": seed, "experiments": wanted}
    manifest = _read_manifest(folder)
    for name, have, want in (("scale", manifest["scale"], scale), ("seed", manifest["seed"], seed)):
        if have != want:
            raise _other_run(folder, f"its {name} is {have} and not {want}")
    for name, cells in wanted.items():
        known = manifest["experiments"].get(name)
        if known is not None and known != cells:
            raise _other_run(folder, f"its settings of {name} are others: {_difference(known, cells)}")
    manifest["experiments"] |= wanted
    return manifest


def _other_run(folder: Path, why: str) -> InputError:
    return InputError(
        f"{folder} holds another run: {why}. Give another folder with --out, or the settings of the first run."
    )


def _difference(known: Sequence[dict[str, Any]], cells: Sequence[dict[str, Any]]) -> str:
    """The first thing in which two lists of cells differ."""
    for one, other in zip(known, cells, strict=False):
        for name in one:
            if one[name] != other.get(name):
                return f"{name} of {one['name']} is {one[name]} and not {other.get(name)}"
    return f"{len(known)} cells and not {len(cells)}"


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        known = manifest["format"] == FORMAT and {"scale", "seed", "experiments"} <= manifest.keys()
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise InputError(f"{folder / MANIFEST} cannot be read as the manifest of a reproduction. Give another folder.")
    return dict(manifest)


def _write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Replace the manifest as a whole, so that it is never half written."""
    draft = folder / _DRAFT
    draft.write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    os.replace(draft, folder / MANIFEST)


def _lock(file: FileIO, folder: Path) -> None:
    """Refuse a folder that another process writes to. The lock goes when the process ends, however it does."""
    try:
        import fcntl
    except ImportError:  # not on this system: nothing is checked
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise InputError(
            f"{folder} is being written to by another process. Wait for it, or give another folder."
        ) from None
