"""What solving directly would cost on this machine: counted, and calibrated by a few milliseconds of work."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg as la

from valuate import moments

if TYPE_CHECKING:
    from valuate.problem import Problem

#: Rows and most columns of the product that is timed.
ROWS, WIDTH = 1024, 512
#: Columns of the larger product; the speed of factoring is that.
CUBE = 512
#: Seconds for each pair of non-zeros of a sparse row that is added to a matrix; each transition that is counted.
PAIR, COUNT = 2.5e-9, 8e-9
#: Matrices of dim x dim that a direct solve holds at a time, and the share of the free memory that they may take.
MATRICES, SHARE = 4, 0.6
#: What a direct solve costs at least, whatever the size.
LEAST = 2e-4


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
    forming, seconds = _forming(problem)
    factoring = (2 / 3) * float(dim) ** 3
    if problem.knows("A"):
        forming, seconds, a_pass = 0.0, 0.0, 0.0
    # Twice a pass for filling the blocks, once to look at the residual.
    seconds += 3 * a_pass + factoring / _speed(CUBE) + LEAST
    return Direct(seconds, room, room <= SHARE * free_memory(), forming + factoring)


def products(rows: float, dim: int) -> float:
    """Seconds for the matrix X'X of so many dense rows, and for factoring it."""
    return (rows * float(dim) ** 2 + float(dim) ** 3 / 3) / _speed(dim)


def _forming(problem: Problem) -> tuple[float, float]:
    """Operations and seconds for A."""
    rows, dim = problem.rows, float(problem.dim)
    if rows.is_sparse:
        entries = problem.rows.entries / 2
        pairs = 2 * problem.n_rows * entries * entries
        return 2 * pairs, pairs * PAIR
    stored = float(rows.n_stored)
    if 2 * stored <= problem.n_rows:
        through = min(stored, float(problem.n_rows))
        between = 2 * stored * stored * dim if stored <= moments.DENSE_COUNTS else 2 * problem.n_rows * dim
        operations = between + 2 * through * dim * dim
        return operations, operations / _speed(problem.dim) + problem.n_rows * COUNT
    operations = 2 * problem.n_rows * dim * dim
    return operations, operations / _speed(problem.dim)


def _speed(dim: int) -> float:
    """Operations a second of matrix products with so many columns."""
    return _measured(min(WIDTH, max(16, 1 << (dim - 1).bit_length())))


@cache
def _measured(width: int) -> float:
    left, right = np.ones((ROWS, width)), np.ones((ROWS, width))
    best = np.inf
    for _ in range(3):
        began = time.perf_counter()
        la.blas.dgemm(1.0, right.T, left.T, trans_b=True)
        best = min(best, time.perf_counter() - began)
    return 2 * ROWS * width * width / best


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
