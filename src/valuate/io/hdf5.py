"""HDF5: flat, as D4RL and d3rlpy have it, or a group an episode, as Minari has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from valuate.errors import MissingPartError
from valuate.io.minari import group_episodes
from valuate.io.paths import readable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["opened"]


@contextmanager
def opened(path: Path) -> Iterator[tuple[str, Any]]:
    """What a file holds: ("columns", a group of data sets by name) or ("episodes", an iterator of them)."""
    try:
        import h5py
    except ImportError:
        raise MissingPartError("h5py", "io", "Reading HDF5 files") from None
    with readable(path, "hdf5"):
        file = h5py.File(path, "r")
    with file:
        with readable(path, "hdf5"):
            kind = _kind(file)
        if kind == "minari":
            yield kind, group_episodes(file, path)
        elif kind == "d3rlpy":
            yield kind, _dumped(file)
        else:
            yield kind, file


def _kind(file: Any) -> str:
    if any(name.startswith("episode_") and hasattr(file[name], "items") for name in file):
        return "minari"
    return "d3rlpy" if "num_episodes" in file and "columns" in file else "columns"


def _dumped(file: Any) -> Iterator[dict[str, Any]]:
    """The episodes that d3rlpy's ReplayBuffer.dump wrote: observations_0, actions_0, ..., observations_1, ..."""
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in file["columns"][...]]
    for number in range(int(file["num_episodes"][()])):
        yield {name: file[f"{name}_{number}"][()] for name in names if f"{name}_{number}" in file}
