"""Random rows, made quickly: what is measured is how they are read, not what they say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import storing
from valuate._kernels import layouts
from valuate.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

DISCOUNT = 0.95
#: The paper's Random MDP has so many states, and so many features of each.
STATES, DIM = 400, 201
#: Random rows that all others are scaled copies of.
DISTINCT = 1024
#: Transitions whose records stay in cache beside a table of `STATES`.
CACHED_ROWS = 2000
NONZEROS = 32


def dense_pairs(n_bytes: int, dim: int, dtype: str, rng: np.random.Generator) -> Rows:
    """Transitions with two feature rows of their own each, ``n_bytes`` in all."""
    pair = 2 * layouts.padded(dim, dtype) * np.dtype(dtype).itemsize
    n = max(16, n_bytes // pair)
    state = 2 * np.arange(n)
    return _rows(random_table(2 * n, dim, dtype, rng), dim, state, state + 1, "dense", rng)


def indexed(n_states: int, n_rows: int, dim: int, dtype: str, rng: np.random.Generator) -> Rows:
    """Transitions between random rows of a table."""
    table = random_table(n_states, dim, dtype, rng)
    state, follower = (rng.integers(0, n_states, n_rows, dtype=np.int32) for _ in range(2))
    return _rows(table, dim, state, follower, "indexed", rng)


def sparse_pairs(n_stored: int, dim: int, rng: np.random.Generator) -> Rows:
    """Transitions with two sparse rows of their own each, `NONZEROS` anywhere among ``dim`` coordinates."""
    import scipy.sparse as sp

    # One in each equal part of the coordinates, so that they are sorted and differ.
    part = dim // NONZEROS
    columns = rng.integers(0, part, (n_stored, NONZEROS), dtype=np.int32)
    columns += part * np.arange(NONZEROS, dtype=np.int32)
    table = sp.csr_matrix((n_stored, dim))
    # Assigned, as the constructor would give both index arrays one type.
    table.data, table.indices = rng.standard_normal(columns.size), columns.ravel()
    table.indptr = NONZEROS * np.arange(n_stored + 1, dtype=np.int64)
    state = 2 * np.arange(n_stored // 2)
    return _rows(table, dim, state, state + 1, "sparse", rng)


def random_table(n: int, dim: int, dtype: str, rng: np.random.Generator) -> NDArray[Any]:
    """Rows of length about 1, padded and aligned: (n, padded)."""
    table = layouts.aligned_empty((n, layouts.padded(dim, dtype)), dtype)
    block = (rng.standard_normal((min(n, DISTINCT), dim)) / np.sqrt(dim)).astype(dtype)
    for first in range(0, n, DISTINCT):
        part = table[first : first + DISTINCT]
        np.multiply(block[: len(part)], rng.uniform(0.5, 1.0, (len(part), 1)).astype(dtype), out=part[:, :dim])
        part[:, dim:] = 0
    return table


def _rows(table: Any, dim: int, state: Any, follower: Any, layout: str, rng: np.random.Generator) -> Rows:
    rewards = rng.standard_normal(len(state))
    records, weights = storing.records(state, follower, rewards, DISCOUNT, None, None, None)
    return Rows(table, dim, records, weights, layout)
