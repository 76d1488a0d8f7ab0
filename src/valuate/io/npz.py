"""NPZ: arrays by name, as NumPy saves them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError
from valuate.io.columns import Arrays
from valuate.io.paths import readable

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["read_npz"]


def read_npz(path: Path) -> Arrays:
    """The arrays of an NPZ file; pickled ones are refused."""
    found: dict[str, Any] = {}
    with readable(path, "npz"), path.open("rb") as file:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            raise InputError(f"{path} holds one array without a name, and a log has several. Save it with np.savez.")
        for name in loaded.files:
            try:
                found[name] = loaded[name]
            except ValueError as error:
                if "pickle" not in str(error).lower():
                    raise
                found[name] = None  # Python objects: not read, for that could run code
    if found and all(value is None for value in found.values()):
        raise InputError(f"{path} holds pickled Python objects only. Save plain arrays with np.savez.")
    return Arrays(found, "npz", objects=[name for name, value in found.items() if value is None])
