"""The step of the solvers held against a gather of the rows that it reads, one thread each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate._kernels import limits, loop
from valuate.bench import data
from valuate.bench.timing import Taken, clocked, interleaved
from valuate.solvers.directions import SADDLE
from valuate.solvers.driver import CHUNK
from valuate.solvers.points import Point, point_for

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from valuate.bench.scale import Scale
    from valuate.rows import Rows

    Order = NDArray[np.int32]

#: Small enough for any rows here; a step takes the same time whatever its size.
STEP = 1e-4


def dense(scale: Scale, *, dim: int, dtype: str) -> Taken:
    """Rows of their own, beyond the caches."""
    rng = np.random.default_rng(1)
    rows = data.dense_pairs(scale.dram_bytes, dim, dtype, rng)
    return _held_against_gather(rows, scale.steps(_pair_bytes(rows)), scale.rounds, rng)


def indexed(scale: Scale, *, dtype: str) -> Taken:
    """A table of so many states that it lies beyond the caches."""
    rng = np.random.default_rng(2)
    n_states = max(16, scale.dram_bytes // (data.DIM * np.dtype(dtype).itemsize))
    rows = data.indexed(n_states, n_states, data.DIM, dtype, rng)
    return _held_against_gather(rows, scale.steps(_pair_bytes(rows)), scale.rounds, rng)


def cached(scale: Scale, *, dtype: str) -> Taken:
    """A table of few states and few transitions, in a core's own cache."""
    rng = np.random.default_rng(3)
    rows = data.indexed(data.STATES, data.CACHED_ROWS, data.DIM, dtype, rng)
    return _held_against_gather(rows, scale.cached_steps, scale.rounds, rng)


def sparse(scale: Scale, *, dim: int) -> Taken:
    """Sparse rows beyond the caches; the limit touches the same coordinates' cache lines."""
    rng = np.random.default_rng(4)
    rows = data.sparse_pairs(scale.sparse_rows, dim, rng)
    point, steps = moving_point(rows, rng), scale.sparse_steps
    table, cells = rows.table, point.state.cells

    def gather(ask: bool) -> Callable[[], float]:
        def run(places: tuple[Order, Order]) -> None:
            limits.sparse_gather(table.indptr, table.indices, table.data, cells, *places, ask)

        return clocked(run, lambda: places_of(rows, draw(rows, steps, rng)), steps)

    samplers = {
        "step": clocked(advancing(rows, point), lambda: draw(rows, steps, rng), steps),
        "gather": gather(False),
        "gather, asked ahead": gather(True),
    }
    return Taken(interleaved(samplers, scale.rounds))


def sparse_against_every_coordinate(scale: Scale, *, dim: int) -> Taken:
    """Sparse steps held against steps that apply the mean to every coordinate at once."""
    rng = np.random.default_rng(5)
    rows = data.sparse_pairs(scale.sparse_rows, dim, rng)
    table, steps, slow = rows.table, scale.sparse_steps, max(4, scale.slow_steps // 16)
    x, y = small_vectors(dim, rng)
    drifts = [STEP * mean for mean in small_vectors(dim, rng)]

    def run(order: Order) -> None:
        limits.every_coordinate(table.indptr, table.indices, table.data, rows.records, order, x, y, *drifts, STEP, STEP)

    samplers = {
        "step": clocked(advancing(rows, moving_point(rows, rng)), lambda: draw(rows, steps, rng), steps),
        "mean applied to every coordinate": clocked(run, lambda: draw(rows, slow, rng), slow),
    }
    return Taken(interleaved(samplers, scale.rounds))


def moving_point(rows: Rows, rng: np.random.Generator) -> Any:
    """A point in the middle of an epoch of SVRG: displaced from its anchor, with a mean gradient."""
    point: Point = point_for(rows, SADDLE.for_kernels(STEP, STEP, 0.0), single=True)
    point.place(*small_vectors(rows.dim, rng))
    point.drift(*small_vectors(rows.dim, rng))
    return point


def advancing(rows: Rows, point: Point) -> Callable[[Order], None]:
    """The steps of an order, in chunks, as the driver takes them from an anchor."""
    reference = loop.Fixed(0.0)

    def run(order: Order) -> None:
        for first in range(0, len(order), CHUNK):
            part = order[first : first + CHUNK]
            view, local = rows.chunk(part)
            point.advance(view, reference, local, part)

    return run


def draw(rows: Rows, steps: int, rng: np.random.Generator) -> Order:
    """An order of rows, drawn as the driver draws it."""
    return rng.integers(0, rows.n_rows, size=steps, dtype=np.int32)


def places_of(rows: Rows, order: Order) -> tuple[Order, Order]:
    """Where the two feature rows of each transition of an order lie."""
    return rows.records["state"][order], rows.records["next"][order]


def small_vectors(dim: int, rng: np.random.Generator) -> list[NDArray[np.float64]]:
    """Two random vectors, small but far from where numbers lose digits."""
    return [1e-2 * rng.standard_normal(dim) for _ in range(2)]


def _held_against_gather(rows: Rows, steps: int, rounds: int, rng: np.random.Generator) -> Taken:
    def gather(ask: int) -> Callable[[], float]:
        def run(places: tuple[Order, Order]) -> None:
            limits.gather(rows.table, *places, np.uint64(ask))

        return clocked(run, lambda: places_of(rows, draw(rows, steps, rng)), steps)

    samplers = {
        "step": clocked(advancing(rows, moving_point(rows, rng)), lambda: draw(rows, steps, rng), steps),
        "gather": gather(0),
        "gather, asked ahead": gather(_pair_bytes(rows) // 2),
    }
    return Taken(interleaved(samplers, rounds))


def _pair_bytes(rows: Rows) -> int:
    return int(2 * rows.width * rows.dtype.itemsize)
