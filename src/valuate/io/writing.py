"""Writing a log so that reading it gives the same log, bit for bit: Parquet for others, NPZ for anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks
from valuate.errors import InputError, InputTypeError
from valuate.io.arrow import pyarrow
from valuate.io.parquet import MARK
from valuate.io.paths import write_safely
from valuate.transitions import Transitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["VERSION", "write"]

#: Of what is written; a reader refuses newer ones.
VERSION = 1
#: States with more numbers than this have one column of lists rather than one column a number.
MOST_COLUMNS = 1024
ROW_GROUP = 1 << 17
#: What our attributes are called as columns of a file.
NAMES = {
    "states": "state",
    "next_states": "next_state",
    "actions": "action",
    "next_actions": "next_action",
    "rewards": "reward",
    "terminated": "terminated",
    "truncated": "truncated",
    "episodes": "episode",
    "probabilities": "probability",
    "ratios": "ratio",
    "weights": "weight",
}


def write(log: Transitions, path: Any, *, force: bool = False) -> Path:
    """Write a log to a file that `valuate.read` gives back exactly.

    Parameters
    ----------
    log : Transitions
    path : str or os.PathLike
        Its ending says the format. ``.parquet``: a column for each dimension of the states, which other tools read as
        well. ``.npz``: arrays as they are, trajectories and repeated states stored once, sparse states too.
    force : bool
        Whether a file that is there may be overwritten.

    Returns
    -------
    Path

    Raises
    ------
    InputError
        Where the file exists, the folder does not, or the format cannot hold the log. Nothing is left behind: the log
        is written beside the path and renamed when it is complete.
    """
    if not isinstance(log, Transitions):
        raise InputTypeError(f"log must be Transitions, not {type(log).__name__}. valuate.read(...) makes one.")
    try:
        target = Path(path)
    except TypeError:
        raise InputTypeError(f"path must be the path of a file, not {type(path).__name__}.") from None
    writers = {".parquet": _write_parquet, ".pq": _write_parquet, ".npz": _write_npz}
    writer = writers.get(target.suffix.lower())
    if writer is None:
        raise InputError(f"{target} must end in .parquet or .npz, which says the format to write.")
    with write_safely(target, force=force) as part:
        writer(log, part)
    return target


@dataclass(frozen=True, slots=True)
class _Part:
    """One attribute of a log on its way to Parquet."""

    role: str
    values: Any  # (m, ...) array
    rows: NDArray[Any] | None  # of each row of the log in `values`, where that is a table
    names: list[str]
    listed: bool

    @property
    def width(self) -> int:
        """Numbers a row."""
        return int(np.prod(self.values.shape[1:], dtype=np.int64))

    def about(self) -> dict[str, Any]:
        """What reading needs to know."""
        return {"names": self.names, "shape": list(self.values.shape[1:]), "dtype": self.values.dtype.str}

    def columns(self, start: int, stop: int) -> Iterator[NDArray[Any]]:
        """The columns of some rows."""
        block = self.values[start:stop] if self.rows is None else self.values[self.rows[start:stop]]
        if block.dtype.kind in "Mm":
            block = block.view(np.int64)
        if self.listed:
            yield block.reshape(-1)
            return
        flat = block.reshape(len(block), -1)
        for k in range(self.width):
            yield np.ascontiguousarray(flat[:, k])


def _write_parquet(log: Transitions, path: Path) -> None:
    pa = pyarrow("Writing Parquet files")
    import pyarrow.parquet as pq

    parts = list(_parts(log))
    fields = [field for part in parts for field in _fields(pa, part)]
    about = {"version": VERSION, "columns": {part.role: part.about() for part in parts}, "labels": _labels(log)}
    schema = pa.schema(fields, metadata={MARK: json.dumps(about).encode()})
    few = [field.name for field in fields if not pa.types.is_floating(field.type)]
    with pq.ParquetWriter(path, schema, use_dictionary=few) as writer:
        for start in range(0, len(log), ROW_GROUP):
            stop = min(len(log), start + ROW_GROUP)
            flat = [values for part in parts for values in part.columns(start, stop)]
            arrays = [
                pa.FixedSizeListArray.from_arrays(pa.array(values), field.type.list_size)
                if pa.types.is_fixed_size_list(field.type)
                else pa.array(values, type=field.type)
                for values, field in zip(flat, fields, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _parts(log: Transitions) -> Iterator[_Part]:
    table = log.indexed_states()
    for role, name in NAMES.items():
        rows = None
        if role in ("states", "next_states") and table is not None:
            values, rows = table[0], table[1] if role == "states" else table[2]
        else:
            values = getattr(log, role)
        if values is None:
            continue
        values = _plain(role, values, "Parquet")
        part = _Part(role, values, rows, [name], False)
        if values.ndim > 1:
            listed = part.width > MOST_COLUMNS
            part = _Part(role, values, rows, [name] if listed else [f"{name}_{k}" for k in range(part.width)], listed)
        yield part


def _fields(pa: Any, part: _Part) -> list[Any]:
    dtype = part.values.dtype
    if dtype.kind == "U":
        kind = pa.large_string()
    else:
        kind = pa.int64() if dtype.kind in "Mm" else pa.from_numpy_dtype(dtype.newbyteorder("="))
    return [pa.field(name, pa.list_(kind, part.width) if part.listed else kind) for name in part.names]


def _plain(role: str, values: Any, format: str) -> Any:
    """An array that a file can hold exactly, or a refusal."""
    if _checks.is_sparse(values):
        raise InputError(f"{role} are a sparse matrix, which {format} cannot hold. Write to .npz instead.")
    if values.dtype.kind == "O":
        if not all(isinstance(value, str) for value in values.ravel()):
            raise InputError(
                f"{role} are Python objects, which a file cannot hold exactly. Give numbers or text: for ids, "
                "np.unique(ids, return_inverse=True)[1] numbers them."
            )
        values = values.astype(str)
    if format == "Parquet" and values.dtype.kind not in "biufUMm":
        raise InputError(f"{role} are {values.dtype}, which {format} cannot hold. Write to .npz instead.")
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def _labels(log: Transitions) -> dict[str, list[Any]]:
    return {} if log.reading is None else {name: list(labels) for name, labels in log.reading.labels.items()}


def _write_npz(log: Transitions, path: Path) -> None:
    arrays: dict[str, Any] = {}
    table = log.indexed_states()
    for role in NAMES:
        if role in ("states", "next_states") and table is not None:
            continue
        values = getattr(log, role)
        if values is not None:
            _put(arrays, role, values)
    if table is not None:
        _put(arrays, "table", table[0])
        arrays |= {"state_rows": table[1], "next_rows": table[2]}
    about = {"version": VERSION, "labels": _labels(log)}
    with path.open("wb") as file:
        np.savez(file, valuate=np.array(json.dumps(about)), **arrays)


def _put(arrays: dict[str, Any], role: str, values: Any) -> None:
    if not _checks.is_sparse(values):
        arrays[role] = _plain(role, values, "NPZ")
        return
    arrays |= {
        f"{role}.data": values.data,
        f"{role}.indices": values.indices,
        f"{role}.indptr": values.indptr,
        f"{role}.shape": np.array(values.shape),
    }
