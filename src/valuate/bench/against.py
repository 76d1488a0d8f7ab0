"""The step of the solvers held against the same step written by others."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.bench import data, rivals
from valuate.bench.steps import STEP, advancing, draw, moving_point, small_vectors
from valuate.bench.timing import NotHere, Taken, clocked, interleaved

if TYPE_CHECKING:
    from collections.abc import Callable

    from valuate.bench.scale import Scale
    from valuate.rows import Rows

SIZES = (STEP, STEP)


def numpy(scale: Scale) -> Taken:
    """Dense rows beyond the caches, NumPy on the very same memory."""
    rng = np.random.default_rng(11)
    rows = _dense(scale, rng)
    drifts = [STEP * mean for mean in small_vectors(data.DIM, rng)]
    x, y = small_vectors(data.DIM, rng)

    def run(order: list[int]) -> None:
        rivals.numpy_steps(*matrices(rows), data.DISCOUNT, order, x, y, drifts, SIZES)

    return _take(rows, scale, "NumPy", run, lambda: draw(rows, scale.slow_steps, rng).tolist(), scale.slow_steps, rng)


def torch(scale: Scale) -> Taken:
    """As `numpy`, with torch."""
    _require("torch")
    import torch

    rng = np.random.default_rng(12)
    rows = _dense(scale, rng)
    features, next_features = (torch.from_numpy(matrix) for matrix in matrices(rows))
    drifts = [torch.from_numpy(STEP * mean) for mean in small_vectors(data.DIM, rng)]
    x, y = (torch.from_numpy(vector) for vector in small_vectors(data.DIM, rng))

    def run(order: list[int]) -> None:
        rivals.torch_steps(features, next_features, data.DISCOUNT, order, x, y, drifts, SIZES)

    return _take(rows, scale, "torch", run, lambda: draw(rows, scale.slow_steps, rng).tolist(), scale.slow_steps, rng)


def jax(scale: Scale) -> Taken:
    """As `numpy`, with a compiled scan of JAX on copies of the rows."""
    _require("jax")
    import jax

    rng = np.random.default_rng(13)
    rows = _dense(scale, rng)
    steps = 4 * scale.slow_steps
    compiled = rivals.jax_steps()
    with rivals.jax_in_double_precision():
        features, next_features = (jax.numpy.asarray(matrix) for matrix in matrices(rows))
        drifts = [jax.numpy.asarray(STEP * mean) for mean in small_vectors(data.DIM, rng)]
        point = [jax.numpy.asarray(vector) for vector in small_vectors(data.DIM, rng)]

        def run(order: Any) -> None:
            moved = compiled(features, next_features, data.DISCOUNT, order, *point, drifts, SIZES)
            point[:] = jax.block_until_ready(moved)

        return _take(rows, scale, "JAX", run, lambda: jax.numpy.asarray(draw(rows, steps, rng)), steps, rng)


def authors(scale: Scale) -> Taken:
    """A table of few states: d x d matrices for every transition, one thread."""
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(14)
    rows = data.indexed(data.STATES, data.CACHED_ROWS, data.DIM, "float64", rng)
    slow = max(4, scale.slow_steps // 64)
    table = np.ascontiguousarray(rows.table[:, : data.DIM])
    point, anchor, mean = (tuple(small_vectors(data.DIM, rng)) for _ in range(3))

    def prepare() -> list[tuple[int, int, float]]:
        chosen = rows.records[draw(rows, slow, rng)]
        return list(zip(*(chosen[name].tolist() for name in ("state", "next", "reward")), strict=True))

    def run(transitions: list[tuple[int, int, float]]) -> None:
        rivals.authors_steps(table, transitions, data.DISCOUNT, point, anchor, mean, SIZES)  # type: ignore[arg-type]

    samplers = {
        "step": clocked(
            advancing(rows, moving_point(rows, rng)), lambda: draw(rows, scale.cached_steps, rng), scale.cached_steps
        ),
        "authors' way": clocked(run, prepare, slow),
    }
    with threadpool_limits(1):
        return Taken(interleaved(samplers, scale.rounds))


def matrices(rows: Rows) -> tuple[Any, Any]:
    """Features and next features of dense pairs, as views without padding."""
    return rows.table[0::2, : rows.dim], rows.table[1::2, : rows.dim]


def _dense(scale: Scale, rng: np.random.Generator) -> Rows:
    return data.dense_pairs(scale.dram_bytes, data.DIM, "float64", rng)


def _take(
    rows: Rows,
    scale: Scale,
    name: str,
    run: Callable[[Any], None],
    prepare: Callable[[], Any],
    steps: int,
    rng: np.random.Generator,
) -> Taken:
    ours = scale.steps(2 * rows.width * rows.dtype.itemsize)
    samplers = {
        "step": clocked(advancing(rows, moving_point(rows, rng)), lambda: draw(rows, ours, rng), ours),
        name: clocked(run, prepare, steps),
    }
    return Taken(interleaved(samplers, scale.rounds))


def _require(package: str) -> None:
    if find_spec(package) is None:
        raise NotHere("not installed")
