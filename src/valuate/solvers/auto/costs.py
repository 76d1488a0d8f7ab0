"""What ways to solve would cost on this machine: counted, and calibrated by a few milliseconds of work."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from valuate import moments
from valuate._threads import one_blas_thread, thread_count

if TYPE_CHECKING:
    from valuate.problem import Problem

Kind: TypeAlias = type[np.floating[Any]]

#: Rows and most columns of the product that is timed.
ROWS, WIDTH = 1024, 512
#: Columns of the larger product; the speed of factoring is that.
CUBE = 512
#: Seconds for each pair of non-zeros of a sparse row that is added to a matrix; each transition that is counted.
PAIR, COUNT = 2.5e-9, 8e-9
#: Matrices of dim x dim that a direct solve holds at a time, and the share of the free memory that they may take.
MATRICES, SHARE = 4, 0.6
#: Bytes that are there in any case.
SMALL = 1e8
#: What a direct solve costs at least, whatever the size.
LEAST = 2e-4
#: An iteration of GMRES with A of m rows as preconditioner leaves this times sqrt(dim / m) of the residual, off-policy
#: sqrt(dim / effective rows). Measured on slow trajectories of 1,000 and 2,000 features, on- and off-policy.
LEAVES = 1.4
#: Rows a feature that are thought of; where less than `HELPS` of the residual goes in an iteration it is no help.
SAMPLES = (4.0, 5.0, 6.0, 8.0, 10.0, 14.0, 20.0, 28.0, 40.0)
HELPS = 0.72
#: Without a preconditioner it takes about so many times the iterations that it takes with so many rows a feature.
PLAIN, MIDDLING, SLOW = 5, 8.0, 0.95
#: Iterations at least; and what is left by one with A of all rows, whose factors are float32.
FEWEST, WITH_ALL = 2, 1e-3
#: Seconds for each entry of a factor that a vector is solved with, twice.
ENTRY = 2.5e-10
#: Share of all entries on which a pass is timed, and entries at least and at most.
TIMED, LEAST_TIMED, MOST_TIMED = 1 / 16, 4e6, 4e7


@dataclass(frozen=True, slots=True)
class Direct:
    """A direct solve, predicted.

    Attributes
    ----------
    seconds : float
    bytes : float
        Of its matrices.
    fits : bool
        Whether they fit in memory.
    operations : float
        Multiplications and additions.
    """

    seconds: float
    bytes: float
    fits: bool
    operations: float

    def __str__(self) -> str:
        return f"{_bytes(self.bytes)} of matrices and {self.operations:.1g} operations, about {seconds(self.seconds)}"


def direct(problem: Problem, a_pass: float) -> Direct:
    """What LSTD would cost; ``a_pass`` is the time of one pass over the rows in seconds."""
    dim = problem.dim
    room = 8.0 * MATRICES * dim * dim
    forming, seconds = _forming(problem, problem.n_rows)
    factoring = (2 / 3) * float(dim) ** 3
    if problem.knows("A"):
        forming, seconds, a_pass = 0.0, 0.0, 0.0
    # Twice a pass for filling the blocks, once to look at the residual.
    seconds += 3 * a_pass + factoring / _speed(CUBE) + LEAST
    return Direct(seconds, room, room <= SMALL or room <= SHARE * free_memory(), forming + factoring)


@dataclass(frozen=True, slots=True)
class Sampled:
    """GMRES with A of some of the rows as preconditioner, predicted.

    Attributes
    ----------
    seconds : float
    rows_a_feature : float
    alone : float
        What it would take without a preconditioner, roughly.
    """

    seconds: float
    rows_a_feature: float
    alone: float = np.inf


def sampled(problem: Problem, goal: float, a_pass: float) -> Sampled:
    """The number of rows with which a relative residual of ``goal`` would be there first."""
    dim, n = problem.dim, problem.n_rows
    _, forming = _forming(problem, n, np.float32)
    mean, square = (total / n for total in problem.rows.ratio_sums())
    spread = square / mean**2 if mean > 0 else 1.0
    once = (2 / 3) * float(dim) ** 3 / _speed(CUBE, np.float32) + LEAST
    each = a_pass + ENTRY * dim * dim
    wanted = -math.log(min(max(goal, 1e-15), 0.5))

    def count(rows: float) -> int:
        leaves = min(LEAVES * math.sqrt(spread / rows), SLOW)
        return max(FEWEST, math.ceil(wanted / -math.log(leaves)))

    with_all = forming + 2 * a_pass + once + max(FEWEST, math.ceil(wanted / -math.log(WITH_ALL))) * each
    best = with_all, n / dim
    for rows in SAMPLES:
        share = rows * dim / n
        if LEAVES * math.sqrt(spread / rows) < HELPS and share < 1:
            forming = _forming(problem, rows * dim, np.float32)[1]
            best = min(best, (forming + 2 * share * a_pass + once + count(rows) * each, rows))
    return Sampled(*best, PLAIN * count(MIDDLING) * a_pass)


def a_pass(problem: Problem) -> tuple[float, int]:
    """Seconds of a product with A, by a part of the rows where there are many; and visits that this took."""
    rows, x = problem.rows, problem.b
    entries = problem.n_rows * rows.entries
    part = max(1, int(min(max(TIMED * entries, LEAST_TIMED), MOST_TIMED) / rows.entries))
    whole = part >= problem.n_rows or 2 * rows.n_stored <= problem.n_rows
    order = None if whole else np.arange(part, dtype=np.int32)
    best = np.inf
    for _ in range(2):  # the first may have to load code
        began = time.perf_counter()
        rows.sums(x, phi=True, order=order)
        best = min(best, time.perf_counter() - began)
    seen = problem.n_rows if order is None else part
    return best * problem.n_rows / seen, 2 * seen


def products(rows: float, dim: int) -> float:
    """Seconds for the matrix X'X of so many dense rows, and for factoring it, in float32."""
    return (rows * float(dim) ** 2 + float(dim) ** 3 / 3) / _speed(dim, np.float32)


def _forming(problem: Problem, n_rows: float, kind: Kind = np.float64) -> tuple[float, float]:
    """Operations and seconds for A of so many rows."""
    rows, dim = problem.rows, float(problem.dim)
    speed = _speed(problem.dim, kind)
    if rows.is_sparse:
        entries = problem.rows.entries / 2
        pairs = 2 * n_rows * entries * entries
        return 2 * pairs, pairs * PAIR
    stored = float(rows.n_stored)
    if 2 * stored <= n_rows:
        between = 2 * stored * stored * dim if stored <= moments.DENSE_COUNTS else 2 * n_rows * dim
        operations = between + 2 * stored * dim * dim
        return operations, operations / _speed(problem.dim) + n_rows * COUNT
    operations = 2 * n_rows * dim * dim
    return operations, operations / speed


def _speed(dim: int, kind: Kind = np.float64) -> float:
    """Operations a second of matrix products with so many columns, on all cores."""
    return _measured(min(WIDTH, max(16, 1 << (dim - 1).bit_length())), np.dtype(kind).char)


@cache
def _measured(width: int, kind: str) -> float:
    left, right = np.ones((ROWS, width), kind), np.ones((ROWS, width), kind)
    out, best = np.empty((width, width), kind), np.inf
    with one_blas_thread():
        for _ in range(3):
            began = time.perf_counter()
            np.matmul(left.T, right, out=out)
            best = min(best, time.perf_counter() - began)
    return thread_count() * 2 * ROWS * width * width / best


def free_memory() -> float:
    """Bytes of memory that are free, as far as the system tells."""
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return 1024.0 * float(line.split()[1])
    except OSError:
        pass
    if hasattr(os, "sysconf"):
        return 0.5 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 4e9


def _bytes(size: float) -> str:
    for unit in ("bytes", "KB", "MB", "GB", "TB"):
        if size < 1000 or unit == "TB":
            break
        size /= 1000
    return f"{size:,.3g} {unit}"


def seconds(value: float) -> str:
    """A time in words."""
    if value < 1.0:
        return f"{1000 * value:.0f} ms" if value >= 0.01 else f"{1000 * value:.2g} ms"
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0), ("seconds", 1.0)):
        if value >= 2 * length:
            return f"{value / length:,.3g} {unit}"
    return f"{value:.2g} seconds"
