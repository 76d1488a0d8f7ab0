"""The full gradient held against reading the rows once, and against matrix-vector products."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from valuate._kernels import limits
from valuate._threads import thread_count
from valuate.bench import data
from valuate.bench.against import matrices
from valuate.bench.steps import small_vectors
from valuate.bench.timing import Taken, clocked, interleaved
from valuate.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from valuate.bench.scale import Scale

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Rows of a block that stays in a core's own cache.
BLOCK = 256


def against_reading(scale: Scale) -> Taken:
    """Each row read once, from its first byte to its last; and, beside, the gradient on all cores."""
    rng = np.random.default_rng(21)
    rows = data.dense_pairs(scale.dram_bytes, data.DIM, "float64", rng)
    problem, point = Problem(rows), small_vectors(data.DIM, rng)
    entries = rows.table.reshape(-1)

    def on_one_core(_: None) -> None:
        with threads(1):
            problem.gradient(*point)

    def nothing() -> None:
        return None

    cores = thread_count()
    samplers = {
        "gradient": clocked(on_one_core, nothing, rows.n_rows),
        "sequential read": clocked(lambda _: limits.read(entries), nothing, rows.n_rows),
        f"gradient on {cores} cores": clocked(lambda _: problem.gradient(*point), nothing, rows.n_rows),
    }
    samples = interleaved(samplers, scale.rounds)
    speed = entries.nbytes / rows.n_rows / min(samples["sequential read"])
    return Taken(samples, notes=[f"sequential read {speed:.1f} GB/s"])


def against_products(scale: Scale) -> Taken:
    """Matrix-vector products of the same two matrices, phi and phi', each in memory of its own and without padding.

    Beside it stand two ways that ask more of the user: products in blocks of rows that stay in cache, and products
    with a matrix of all deltas, which must fit in memory as well and is formed off the clock.
    """
    from threadpoolctl import threadpool_limits

    rng = np.random.default_rng(22)
    rows = data.dense_pairs(scale.dram_bytes, data.DIM, "float64", rng)
    problem, point = Problem(rows), small_vectors(data.DIM, rng)
    phi, following = (np.ascontiguousarray(matrix) for matrix in matrices(rows))
    delta = phi - data.DISCOUNT * following
    rewards = np.ascontiguousarray(rows.records["reward"])

    def sampler(run: Callable[[], object]) -> Callable[[], float]:
        return clocked(lambda _: run(), lambda: None, rows.n_rows)

    samplers = {
        "gradient": sampler(lambda: problem.gradient(*point)),
        "gemv": sampler(lambda: by_products(phi, following, rewards, data.DISCOUNT, *point)),
        "gemv in blocks": sampler(lambda: by_blocks(phi, following, rewards, data.DISCOUNT, *point)),
        "gemv with delta given": sampler(lambda: by_delta(phi, delta, rewards, *point)),
    }
    with threads(1), threadpool_limits(1):
        return Taken(interleaved(samplers, scale.rounds))


def by_products(
    phi: Matrix, following: Matrix, rewards: Vector, discount: float, theta: Vector, omega: Vector
) -> tuple[Vector, Vector]:
    """The gradient field by products with the matrices of phi and phi': three forward, three back."""
    u = phi @ omega
    v = phi @ theta - discount * (following @ theta) - rewards + u
    return (discount * (u @ following) - u @ phi) / len(phi), v @ phi / len(phi)


def by_delta(phi: Matrix, delta: Matrix, rewards: Vector, theta: Vector, omega: Vector) -> tuple[Vector, Vector]:
    """As `by_products`, with the matrix of delta: two products forward, two back."""
    u = phi @ omega
    v = delta @ theta - rewards + u
    return -(u @ delta) / len(phi), v @ phi / len(phi)


def by_blocks(
    phi: Matrix, following: Matrix, rewards: Vector, discount: float, theta: Vector, omega: Vector
) -> tuple[Vector, Vector]:
    """As `by_products`, a block of rows at a time."""
    on_theta, on_omega = np.zeros_like(theta), np.zeros_like(omega)
    for first in range(0, len(phi), BLOCK):
        block = slice(first, first + BLOCK)
        part = by_products(phi[block], following[block], rewards[block], discount, theta, omega)
        share = len(phi[block]) / len(phi)
        on_theta += share * part[0]
        on_omega += share * part[1]
    return on_theta, on_omega


@contextmanager
def threads(count: int) -> Iterator[None]:
    """Sums over rows on so many threads."""
    name = "VALUATE_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = str(count)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
