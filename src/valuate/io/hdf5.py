"""HDF5: flat, as D4RL and d3rlpy have it, or a group an episode, as Minari has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from valuate.errors import MissingPartError
from valuate.io.minari import group_episodes

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
    with h5py.File(path, "r") as file:
        if any(name.startswith("episode_") and hasattr(file[name], "items") for name in file):
            yield "minari", group_episodes(file, path)
        elif "num_episodes" in file and "columns" in file:
            yield "d3rlpy", _dumped(file)
        else:
            yield "columns", file


def _dumped(file: Any) -> Iterator[dict[str, Any]]:
    """The episodes that d3rlpy's ReplayBuffer.dump wrote: observations_0, actions_0, ..., observations_1, ..."""
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in file["columns"][...]]
    for number in range(int(file["num_episodes"][()])):
        yield {name: file[f"{name}_{number}"][()] for name in names if f"{name}_{number}" in file}
