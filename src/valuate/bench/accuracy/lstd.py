"""LSTD as a user of NumPy and SciPy would write it, at its best setting: the way and the block that are fastest here.

Trajectories go in blocks of rows, each a matrix product on all cores that adds to A; a table through counts; sparse
rows by a sparse product, or in dense blocks, whichever is faster. Settings are tried on the first rows, off the clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg as la

from valuate.bench.accuracy.contestants import Bout, Needs, Outcome, Refused

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.bench.accuracy.logs import Log
    from valuate.bench.accuracy.recording import Recorder

    Vector = NDArray[np.float64]
    Matrix = NDArray[Any]

#: Rows of a block that are tried.
BLOCKS = (1024, 4096, 16384)
#: Rows on which a setting is tried, and how often.
TRIED, TIMES = 4096, 2
#: Columns of the product that tells how fast the machine multiplies.
CUBE = 1024
#: Up to this many states, transitions are counted in a dense matrix.
DENSE_COUNTS = 4096
#: Share of the memory that A may take.
SHARE = 0.5


@dataclass(frozen=True, slots=True)
class Way:
    """A way to form A and b, with what it will take by a trial of it."""

    name: str
    form: Callable[[Log], tuple[Matrix, Vector]]
    seconds: float


def solved(bout: Bout, recorder: Recorder, *, double: bool = False) -> Outcome:
    """Form A and b, solve; ``double``: rows that are float32 are made float64 first, block by block."""
    if double and bout.log.table.dtype == np.float64:
        raise Refused("rows are float64 already")
    known = "LSTD in float64" if double else "LSTD"
    if known not in bout.known:
        bout.known[known] = plan(bout.log, bout.direct_limit, double=double)
    way = bout.known[known]
    if isinstance(way, Needs):
        return Outcome(message=way.why, needs=way)
    recorder.start()
    theta = solve(*way.form(bout.log))
    recorder.look(theta, passes=1.0)
    return Outcome(setting=way.name)


def solve(a: Matrix, b: Vector) -> Vector:
    """By elimination, in place."""
    return np.asarray(la.solve(a, b, assume_a="general", overwrite_a=True, overwrite_b=True, check_finite=False))


def plan(log: Log, limit: float, *, double: bool = False) -> Way | Needs:
    """The fastest way; or what it would need, where that is more than there is or takes longer than ``limit``."""
    dim = log.dim
    eliminating = (2 / 3) * float(dim) ** 3
    rate = speed()
    room = 8.0 * dim * dim
    if room > SHARE * _memory():
        pairs = 2.0 * _entries(log) * log.n
        needs = Needs(room, pairs + eliminating, (pairs + eliminating) / rate, "A does not fit in memory")
        return needs
    way = min(_ways(log, double), key=lambda found: found.seconds)
    expected = way.seconds + eliminating / rate
    if expected > limit:
        forming = 2.0 * log.n * dim * dim if not log.is_sparse else 2.0 * _entries(log) * log.n
        return Needs(room, forming + eliminating, expected, f"it would take longer than {limit:.0f} s")
    return way


def speed() -> float:
    """Operations a second of a matrix product on all cores."""
    left: Matrix = np.ones((CUBE, CUBE))
    return 2.0 * CUBE**3 / min(_timed(lambda: left @ left) for _ in range(TIMES))


def _ways(log: Log, double: bool) -> list[Way]:
    if log.states is not None:
        return [Way("through counts", by_counts, 0.0)]
    n = log.n
    few = min(n, TRIED)
    ways = []
    if log.is_sparse:
        seconds = _tried(log, by_sparse_product, few) * n / few
        ways.append(Way("a sparse product", by_sparse_product, seconds))
    blocks = [size for size in BLOCKS if size <= n // 2] or [n]
    for size in blocks if log.dim <= TRIED else []:
        form = partial(by_blocks, size=size, double=double)
        rows = max(few, size)
        ways.append(Way(f"blocks of {size:,} rows", form, _tried(log, form, rows) * n / rows))
    return ways


def _tried(log: Log, form: Callable[[Log], Any], rows: int) -> float:
    """Seconds on the first rows."""
    part = log.head(rows)
    return min(_timed(lambda: form(part)) for _ in range(TIMES))


def by_blocks(log: Log, *, size: int, double: bool = False) -> tuple[Matrix, Vector]:
    """A = sum phi (scale phi - scale discount phi')', in products of blocks; of float32 rows each block in float32."""
    table, scale, decay = _columns(log, double)
    kind = scale.dtype
    gemm = la.get_blas_funcs("gemm", dtype=kind)
    a: Any = np.zeros((log.dim, log.dim), order="F")
    b = np.zeros(log.dim)
    buffer = np.empty((size, log.dim), kind)
    for first in range(0, log.n, size):
        last = min(first + size, log.n)
        both = table[first : last + 1]
        both = both.toarray() if log.is_sparse else both.astype(kind, copy=False)
        phi, following, delta = both[:-1], both[1:], buffer[: last - first]
        np.multiply(following, decay[first:last, None], out=delta)
        if log.ratios is None:
            np.subtract(phi, delta, out=delta)
        else:
            np.subtract(phi * scale[first:last, None], delta, out=delta)
        # Fortran order: A is (phi' delta), stored column by column.
        if kind == np.float64:
            a = gemm(1.0, phi.T, delta.T, beta=1.0, c=a, trans_b=True, overwrite_c=True)
        else:
            a += gemm(1.0, phi.T, delta.T, trans_b=True)
        b += phi.T @ (scale * log.rewards.astype(kind, copy=False))[first:last]
    return _mean(a, b, log)


def by_sparse_product(log: Log) -> tuple[Matrix, Vector]:
    """The same product of two sparse matrices."""
    import scipy.sparse as sp

    _, scale, decay = _columns(log, False)
    phi, following = log.features, log.next_features
    delta = sp.diags_array(scale) @ phi - sp.diags_array(decay) @ following
    return _mean((phi.T @ delta).toarray(), phi.T @ (scale * log.rewards), log)


def by_counts(log: Log) -> tuple[Matrix, Vector]:
    """A through the (weighted) number of transitions between each two states."""
    scale, decay = _columns(log, False)[1:]
    counts = count(log, scale, decay)
    table = log.table.astype(np.float64, copy=False)
    earned = np.bincount(log.states, weights=scale * log.rewards, minlength=len(table))
    return _mean(table.T @ (counts @ table), table.T @ earned, log)


def count(log: Log, scale: Vector, decay: Vector) -> Any:
    """K with n A = T' K T for the table T: dense for few states, else sparse."""
    import scipy.sparse as sp

    states = len(log.table)
    from_states = np.bincount(log.states, weights=scale, minlength=states)
    if states <= DENSE_COUNTS:
        flat = np.bincount(log.states.astype(np.int64) * states + log.next_states, weights=decay, minlength=states**2)
        counts = -flat.reshape(states, states)
        counts[np.diag_indices(states)] += from_states
        return counts
    between = sp.coo_array((decay, (log.states, log.next_states)), shape=(states, states)).tocsr()
    return sp.diags_array(from_states) - between


def _columns(log: Log, double: bool) -> tuple[Any, Any, Any]:
    """The table; ratios, and ratios times discounts, in the type of the products."""
    kind = np.float64 if double else log.table.dtype
    scale = np.ones(log.n) if log.ratios is None else log.ratios
    return log.table, scale.astype(kind, copy=False), (scale * log.discounts).astype(kind, copy=False)


def _mean(a: Matrix, b: Vector, log: Log) -> tuple[Matrix, Vector]:
    a /= log.n
    a[np.diag_indices(log.dim)] += log.ridge
    return a, b / log.n


def _entries(log: Log) -> float:
    """Products of entries that a row adds to A."""
    if not log.is_sparse:
        return float(log.dim) ** 2
    each = float(log.table.nnz / log.table.shape[0])
    return 2.0 * each * each


def _timed(run: Callable[[], object]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


def _memory() -> float:
    if hasattr(os, "sysconf"):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return 8e9
