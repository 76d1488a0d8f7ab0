"""Minari data sets on disk, without Minari: a folder of HDF5, or of an Arrow or Parquet file for each episode."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from valuate.errors import InputError, MissingPartError
from valuate.io.arrow import ArrowTable, pyarrow

__all__ = ["episodes_of", "find", "group_episodes"]

MAIN = "main_data.hdf5"
_SPACES = {"observations": "observation_space", "actions": "action_space"}


def find(path: Path) -> Path | None:
    """The folder of a data set's data, from its own folder, the data's, or the name it has among Minari's."""
    for folder in (path / "data", path):
        if (folder / MAIN).is_file() or (folder / "metadata.json").is_file():
            return folder
    if not path.exists() and not path.is_absolute():
        root = Path(os.environ.get("MINARI_DATASETS_PATH") or Path.home() / ".minari" / "datasets")
        if (root / path / "data").is_dir():
            return find(root / path)
    return None


def episodes_of(folder: Path) -> Iterator[dict[str, Any]]:
    """The episodes of a data set, in order, without padding."""
    about = _metadata(folder)
    packed = bool(about.get("jpeg_encoding", True))
    shapes = {part: _shape(folder, about.get(space), packed) for part, space in _SPACES.items()}
    main = folder / MAIN
    if main.is_file():
        try:
            import h5py
        except ImportError:
            raise MissingPartError("h5py", "io", "Reading HDF5 files") from None
        with h5py.File(main, "r") as file:
            yield from group_episodes(file, main)
        return
    folders = sorted((item for item in folder.iterdir() if item.name.isdigit()), key=lambda item: int(item.name))
    if not folders:
        raise InputError(f"{folder} has no episodes: there is no {MAIN} and no folder 0, 1, ... in it.")
    for item in folders:
        found = _padded_episode(item)
        for part, shape in shapes.items():
            if part in found and shape:  # arrays of several dimensions lie there as one row of numbers
                found[part] = found[part].reshape(len(found[part]), *shape)
        yield found


def group_episodes(file: Any, path: Path) -> Iterator[dict[str, Any]]:
    """The groups episode_0, episode_1, ... of an HDF5 file."""
    names = sorted((name for name in file if name.startswith("episode_")), key=lambda name: int(name.split("_")[1]))
    if not names:
        raise InputError(f"{path} has no episodes.")
    for name in names:
        found = {part: _loaded(value) for part, value in file[name].items() if part != "infos"}
        found["id"] = int(name.split("_")[1])
        observations = _first(found.get("observations"))
        rewards = found.get("rewards")
        if observations is not None and rewards is not None and len(rewards) == len(observations) > 1:
            found = {part: _cut(value, part, len(rewards) - 1) for part, value in found.items()}
        yield found


def _padded_episode(folder: Path) -> dict[str, Any]:
    """One episode of an Arrow or Parquet data set: everything but observations has a row of padding at its end."""
    files = sorted(file for file in folder.iterdir() if file.suffix in (".parquet", ".arrow", ".feather"))
    if len(files) != 1:
        raise InputError(f"{folder} should hold one Arrow or Parquet file and holds {len(files)}.")
    pa = pyarrow("Reading Minari data sets")
    if files[0].suffix == ".parquet":
        import pyarrow.parquet as pq

        table = pq.ParquetFile(files[0]).read()
    else:
        with pa.memory_map(str(files[0]), "r") as source:
            table = pa.ipc.open_file(source).read_all()
    if not table.num_rows:
        raise InputError(f"{files[0]} is an episode without rows.")
    columns = ArrowTable(table, "minari")
    kept = [name for name in columns.names if not name.startswith("infos") and name != "episode_id"]
    found: dict[str, Any] = {}
    for name in kept:
        column = columns.column(name)
        # What is missing here is missing in the padding alone, or told of when the values are looked at.
        observed = name.split(".")[0] == "observations"
        found[name.replace(".", "/")] = column.values if observed else column.values[:-1]
    return {**found, "id": int(folder.name)}


def _loaded(value: Any) -> Any:
    return {name: _loaded(part) for name, part in value.items()} if hasattr(value, "items") else value[...]


def _first(value: Any) -> Any:
    while isinstance(value, dict):
        value = next(iter(value.values()), None)
    return value


def _cut(value: Any, part: str, n: int) -> Any:
    if part in ("observations", "id"):
        return value
    return {name: _cut(inner, name, n) for name, inner in value.items()} if isinstance(value, dict) else value[:n]


def _metadata(folder: Path) -> dict[str, Any]:
    path = folder / "metadata.json"
    if not path.is_file():
        return {}
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _shape(folder: Path, space: Any, packed: bool) -> tuple[int, ...]:
    """The shape of a Box, () for other spaces; pictures, which lie there as JPEG, are refused."""
    space = json.loads(space) if isinstance(space, str) else space
    shape = space.get("shape") if isinstance(space, dict) and space.get("type") == "Box" else None
    if not isinstance(shape, list):
        return ()
    if packed and len(shape) in (2, 3) and min(shape[:2]) >= 32 and space.get("dtype") == "uint8":
        raise InputError(
            f"{folder} holds pictures as JPEG, which only Minari itself unpacks: "
            "valuate.read(minari.load_dataset(...)) reads them."
        )
    return tuple(int(size) for size in shape)
