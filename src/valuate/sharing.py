"""The caller's own arrays as a table of stored rows, where their memory allows: no copy, and nothing to compare.

Somebody who holds a trajectory as one array passes ``x[:-1]`` and ``x[1:]``. By their addresses these are one matrix
whose next rows are the following ones, which is what a copy would have been made into.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def one_matrix(features: Any, next_features: Any) -> Any:
    """The matrix of (n + 1, dim) that holds both, next rows one behind their states; None where they do not lie so.

    Rows must be float32 or float64, and side by side.
    """
    arrays = features, next_features
    if not all(type(array) is np.ndarray and array.ndim == 2 for array in arrays):
        return None
    if not all(array.flags.c_contiguous and array.flags.aligned for array in arrays):
        return None
    same = features.shape == next_features.shape and features.dtype == next_features.dtype
    if not same or features.dtype not in (np.float32, np.float64) or not features.size:
        return None
    row = features.shape[1] * features.itemsize
    if next_features.ctypes.data - features.ctypes.data != row or _owner(features) is not _owner(next_features):
        return None
    return np.asarray(_Memory(features, len(features) + 1))


def _owner(array: Any) -> Any:
    """Whose memory it is."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return array


class _Memory:
    """Memory as NumPy's array interface describes it, kept alive, and writeable whatever the caller's flags say.

    Nobody writes to it: compiled code would have to be compiled again for arrays that are read only.
    """

    def __init__(self, features: Any, n_rows: int) -> None:
        self.kept = features
        self.__array_interface__ = {
            "version": 3,
            "data": (features.ctypes.data, False),
            "typestr": features.dtype.str,
            "shape": (n_rows, features.shape[1]),
            "strides": None,
        }
