"""The moving point of a run, in the memory that its layout's kernels like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from valuate._kernels import blocks, layouts, loop

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.protocols import RowSource

    Vector = NDArray[np.float64]

#: A direction as the kernels take it: its steps and its pull, in a class that says which it is.
Kernel: TypeAlias = loop.Saddle | loop.Primal | loop.Corrected | loop.Unscaled

#: Rows longer than this many bytes do not fit in the first cache four at a time; the hardware follows them better.
LONG = 16384
#: Rows shorter than this many bytes are worked on before the next block has come: three blocks are on the way.
SHORT = 256
#: Steps that sparse coordinates may sleep before all of them are made current.
LONGEST_SLEEP = 1 << 22


class Point(Protocol):
    """A displacement (x, y) from the reference point, and the drift that every step applies to it."""

    def place(self, x: Vector | None, y: Vector | None) -> None:
        """Go to a displacement; None is zero."""

    def drift(self, mean_theta: Vector | None, mean_omega: Vector | None) -> None:
        """Set the mean gradient of the reference; None is zero."""

    def advance(self, view: Any, reference: Any, local: Any, order: Any) -> float:
        """Take the steps of a chunk; returns the size of all pulls."""

    def read(self) -> tuple[Vector, Vector]:
        """The displacement, float64, (dim,) each."""


def point_for(rows: RowSource, direction: Kernel, *, single: bool) -> Point:
    """The point for a layout; ``single`` allows the precision of the rows where that is float32."""
    if rows.is_sparse:
        return SparsePoint(rows, direction)
    return DensePoint(rows, direction, rows.dtype if single else np.dtype(np.float64))


class DensePoint:
    """Four padded vectors; the saddle and primal directions take tuned blocks, anything else the plain loop."""

    def __init__(self, rows: RowSource, direction: Kernel, dtype: np.dtype[Any]) -> None:
        self.rows, self.direction = rows, direction
        self.state = loop.DenseState(*(rows.pad(None, dtype) for _ in range(4)))
        row_bytes = rows.width * rows.dtype.itemsize
        away = rows.n_stored * row_bytes > blocks.CACHED_BYTES
        self.far = away and row_bytes <= LONG
        self.asking = _pieces(row_bytes, rows.dtype.itemsize)
        self.ask = np.uint64(row_bytes if away and row_bytes <= blocks.PREFETCH_BYTES else 0)

    def place(self, x: Vector | None, y: Vector | None) -> None:
        """See `Point`."""
        _write(self.state.x, x)
        _write(self.state.y, y)

    def drift(self, mean_theta: Vector | None, mean_omega: Vector | None) -> None:
        """See `Point`."""
        _write(self.state.drift_theta, mean_theta, self.direction.step_theta)
        _write(self.state.drift_omega, mean_omega, self.direction.step_omega)

    def advance(self, view: Any, reference: Any, local: Any, order: Any) -> float:
        """See `Point`."""
        done, pulled = self._advance_blocks(view, reference, local)
        if done < len(local):
            rest = local[done:]
            pulled += loop.advance(view, reference, self.direction, rest, order[done:], self.state, 0.0)
        return float(pulled)

    def _advance_blocks(self, view: Any, reference: Any, local: Any) -> tuple[int, float]:
        """As many steps as a tuned block takes, if there is one: how many, and the size of their pulls."""
        direction, state = self.direction, self.state
        if not isinstance(reference, loop.Fixed):
            return 0, 0.0
        fours, steps = len(local) // 4 * 4, (direction.step_theta, direction.step_omega)
        if isinstance(direction, loop.Primal):
            pieces, ahead = self.asking
            decay = 1.0 - direction.pull.xx
            ahead = ahead if self.far else np.uint64(0)
            return fours, blocks.advance_primal_fours(
                view, local, state, steps[0], decay, reference.reward, pieces, ahead
            )
        if not isinstance(direction, loop.Saddle):
            return 0, 0.0
        if any(direction.pull):
            ridge = -direction.pull.xy, direction.pull.yy
            return len(local) // 2 * 2, blocks.advance_pairs(
                view, local, state, *steps, *ridge, reference.reward, self.ask
            )
        if self.far:
            return fours, blocks.advance_far_fours(view, local, state, *steps, reference.reward, *self.asking)
        return fours, blocks.advance_fours(view, local, state, *steps, reference.reward)

    def read(self) -> tuple[Vector, Vector]:
        """See `Point`."""
        dim = self.rows.dim
        return self.state.x[:dim].astype(np.float64), self.state.y[:dim].astype(np.float64)


class SparsePoint:
    """One cache line a coordinate; coordinates sleep until a row touches them."""

    def __init__(self, rows: RowSource, direction: Kernel) -> None:
        self.direction = direction
        cells = layouts.aligned_zeros((rows.dim, 8), np.float64)
        self.powers = _powers(direction)
        pulled = any(direction.pull)
        self.state: Any = loop.RidgedState(cells, *self.powers) if pulled else loop.SparseState(cells)
        self.clock = 0

    def place(self, x: Vector | None, y: Vector | None) -> None:
        """See `Point`."""
        self._wake()
        self.state.cells[:, 0] = 0.0 if x is None else x
        self.state.cells[:, 1] = 0.0 if y is None else y

    def drift(self, mean_theta: Vector | None, mean_omega: Vector | None) -> None:
        """See `Point`."""
        self._wake()
        self.state.cells[:, 2] = 0.0 if mean_theta is None else self.direction.step_theta * mean_theta
        self.state.cells[:, 3] = 0.0 if mean_omega is None else self.direction.step_omega * mean_omega

    def advance(self, view: Any, reference: Any, local: Any, order: Any) -> float:
        """See `Point`."""
        if self.clock + len(local) >= LONGEST_SLEEP:
            self._wake()
        pulled = loop.advance(view, reference, self.direction, local, order, self.state, float(self.clock))
        self.clock += len(local)
        return float(pulled)

    def read(self) -> tuple[Vector, Vector]:
        """See `Point`."""
        x, y = np.empty(len(self.state.cells)), np.empty(len(self.state.cells))
        loop.awake(self.state.cells, *self.powers, self.direction.pull, float(self.clock), x, y)
        return x, y

    def _wake(self) -> None:
        if self.clock:
            cells = self.state.cells
            cells[:, 0], cells[:, 1] = self.read()
            cells[:, 4] = 0.0
            self.clock = 0


def _pieces(row_bytes: int, itemsize: int) -> tuple[tuple[np.uint64, np.uint64], np.uint64]:
    """Entries of a piece in the two loops of far blocks, and the blocks to ask ahead; measured, not derived."""
    size = 256 if row_bytes > 4096 else 512
    second = size if itemsize == 8 else 2 * size
    pieces = np.uint64(size // itemsize), np.uint64(second // itemsize)
    return pieces, np.uint64(3 if row_bytes < SHORT else 1)


def _write(target: Any, vector: Vector | None, factor: float = 1.0) -> None:
    if vector is None:
        target[:] = 0
    else:
        target[: len(vector)] = factor * vector


def _powers(direction: Kernel) -> tuple[Any, Any]:
    """Powers 0 to 255 of a step's own map and, 256 steps apart, those beyond."""
    pull = direction.pull
    fine = loop.powers(pull, np.array([1.0, -1.0, 1.0, 0.0]), loop.COARSE + 1)
    coarse = loop.powers(pull, fine[loop.COARSE].copy(), LONGEST_SLEEP // loop.COARSE + 1)
    return fine[: loop.COARSE].copy(), coarse
