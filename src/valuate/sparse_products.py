"""Sums over rows of a sparse table, on all cores: each block of rows into its own output, added in order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate._kernels import products, survey
from valuate._threads import cut, run_all

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Blocks = Sequence[tuple[int, int]]

#: An entry of a sparse row takes about as long as so many of a dense one, and one of an output, which lies anywhere in
#: memory that all blocks write, as so many.
ENTRY, OUTPUT = 4, 8
#: Columns from which on outputs are added on more than one thread.
WIDE = 1 << 14


class Entries:
    """The arrays of a CSR table as the kernels take them; where all entries are one number, that is a factor.

    Parameters
    ----------
    table : CSR matrix
    constant : float
        What all entries are, NaN where they differ.
    """

    def __init__(self, table: Any, constant: float) -> None:
        alike = not np.isnan(constant)
        self.n_stored, self.dim = map(int, table.shape)
        #: Entries of a row, on average.
        self.each = max(1, len(table.data) // max(1, self.n_stored))
        self.factor = constant if alike else 1.0
        self.arrays: tuple[Any, Any, Any] = table.indptr, table.indices, None if alike else table.data

    def times(self, vector: Vector, *, squared: bool = False) -> Vector:
        """The product of the rows, or of their squares, with ``vector``: (n_stored,)."""
        vector = np.ascontiguousarray(vector, dtype=np.float64)
        out = np.empty(self.n_stored)
        blocks = cut(self.n_stored, ENTRY * self.each, 1)
        run_all([partial(products.sparse_times, *self.arrays, *block, vector, squared, out) for block in blocks])
        return self._scaled(out, squared)

    def transposed_times(self, factors: Vector, *, squared: bool = False) -> Vector:
        """The sum of the rows, or of their squares, each times its factor: (dim,)."""
        factors = np.ascontiguousarray(factors, dtype=np.float64)

        def task(block: tuple[int, int], out: Vector) -> None:
            products.sparse_transposed(*self.arrays, *block, factors, squared, out)

        blocks = cut(self.n_stored, ENTRY * self.each, OUTPUT * self.dim)
        return self._scaled(_in_blocks(task, blocks, self.dim), squared)

    def column_sums(self, records: Any, weights: Vector, few: bool) -> tuple[Vector, Vector]:
        """Sums over transitions of weight * phi_j^2 and of scale * reward * phi_j: (dim,) each.

        Where stored rows are ``few`` beside the transitions, each of them is read once.
        """
        if few:
            factors = np.zeros(self.n_stored), np.zeros(self.n_stored)
            survey.from_states(records, weights, 0, len(records), *factors)
            return self.transposed_times(factors[0], squared=True), self.transposed_times(factors[1])

        def task(block: tuple[int, int], out: Vector) -> None:
            products.sparse_column_sums(*self.arrays, records, weights, *block, out)

        # Every entry is added to two sums.
        blocks = cut(len(records), 2 * ENTRY * self.each, 2 * OUTPUT * self.dim)
        found = _in_blocks(task, blocks, 2 * self.dim)
        return self._scaled(found[::2].copy(), squared=True), self._scaled(found[1::2].copy())

    def sums(
        self,
        records: Any,
        weights: Vector,
        order: Any,
        blocks: Blocks,
        x: Vector | None,
        y: Vector | None,
        reward: float,
        wanted: tuple[bool, bool],
    ) -> tuple[Vector, Vector]:
        """See `Rows.sums`; blocks are of ``order``."""
        x, y = (None if v is None else self._scaled(np.ascontiguousarray(v, dtype=np.float64)) for v in (x, y))
        phi, delta = wanted
        dim = self.dim

        def task(block: tuple[int, int], out: Vector) -> None:
            outs = out[:dim] if phi else None, out[-dim:] if delta else None
            products.sparse_sums(*self.arrays, records, weights, order, *block, x, y, reward, *outs)

        zero = np.zeros(dim)
        if not (phi or delta):
            return zero, zero
        total = self._scaled(_in_blocks(task, blocks, dim * (phi + delta)))
        return total[:dim] if phi else zero, total[-dim:] if delta else zero

    def _scaled(self, vector: Vector, squared: bool = False) -> Vector:
        factor = self.factor**2 if squared else self.factor
        return vector if factor == 1.0 else factor * vector


def _in_blocks(task: Callable[[tuple[int, int], Vector], None], blocks: Blocks, width: int) -> Vector:
    """The sum of what a task fills (width,) with for each block of rows."""
    parts = np.empty((len(blocks), width))
    run_all([partial(task, block, out) for block, out in zip(blocks, parts, strict=True)])
    total: Vector = parts[0]
    if len(blocks) == 1:
        return total
    total = np.empty(width)
    edges = [0, width] if width < WIDE else [width * k // 4 for k in range(5)]
    run_all(
        [partial(products.add_up, parts, first, last, total) for first, last in zip(edges[:-1], edges[1:], strict=True)]
    )
    return total
