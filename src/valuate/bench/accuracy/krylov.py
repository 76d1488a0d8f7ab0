"""GMRES as a user of SciPy would write it: a product with A in two sweeps over the rows, columns scaled by diag(C)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.bench.accuracy.contestants import Bout, Outcome, Refused
from valuate.bench.accuracy.lstd import TIMES, count

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.bench.accuracy.logs import Log
    from valuate.bench.accuracy.recording import Recorder

    Vector = NDArray[np.float64]
    Product = Callable[[Vector], Vector]

#: Rows of a block that are tried, beside all rows at once; and rows on which they are tried.
BLOCKS, TRIED = (256, 1024, 4096), 65_536
#: Vectors that are kept, at most, and numbers in them.
MOST, NUMBERS = 300, 1 << 27
#: Cycles of GMRES, each from the best point of the one before.
CYCLES = 1000


class Enough(Exception):
    """The recorder has seen enough."""


def gmres(bout: Bout, recorder: Recorder, *, double: bool = False) -> Outcome:
    """Run SciPy's GMRES and follow it from product to product; ``double``: float32 rows are widened block by block."""
    log = bout.log
    if double and log.table.dtype == np.float64:
        raise Refused("rows are float64 already")
    known = "products in float64" if double else "products"
    if known not in bout.known:
        bout.known[known] = None if log.states is not None or log.is_sparse else fastest(log, double)
    size = bout.known[known]
    recorder.start()
    times = product(log, size, double)
    b = mean_rewards(log)
    scale = unit(diagonal(log))
    theta, restart = np.zeros(log.dim), int(np.clip(NUMBERS // log.dim, 20, min(MOST, log.dim)))
    passes = 0
    try:
        for _ in range(CYCLES):
            cycle = _Cycle(times, scale, b - times(theta) if theta.any() else b, theta, recorder, passes)
            theta = cycle.go(restart)
            passes = cycle.passes + 1
            if not cycle.moved:
                break
    except Enough:
        pass
    ways = {None: "all rows at once"}
    return Outcome(setting=f"{ways.get(size, f'blocks of {size} rows')}, restart {restart}")


class _Cycle:
    """One cycle from zero on the scaled system for what is left, in which every product is of a basis vector.

    GMRES tells nobody its points between restarts. Its k-th is the combination of the first k basis vectors whose
    images come nearest to the right side: it is formed from copies of both, off the clock.
    """

    def __init__(
        self, times: Product, scale: Vector, left: Vector, start: Vector, recorder: Recorder, passes: int
    ) -> None:
        self.times, self.scale, self.start, self.recorder, self.passes = times, scale, start, recorder, passes
        self.side = scale * left
        self.directions: list[Vector] = []
        self.images: list[Vector] = []
        self.triangle = np.zeros((0, 0))
        self.lengths = np.zeros(0)
        self.moved = False
        self._last: tuple[Vector, Vector] | None = None

    def go(self, restart: int) -> Vector:
        """The point at the end of the cycle."""
        from scipy.sparse.linalg import LinearOperator, gmres

        dim = len(self.scale)
        operator = LinearOperator((dim, dim), matvec=self._product, dtype=np.float64)
        found, _ = gmres(
            operator,
            self.side,
            rtol=1e-14,
            atol=0.0,
            restart=restart,
            maxiter=1,
            callback=self._after,
            callback_type="pr_norm",
        )
        self.moved = bool(np.isfinite(found).all() and found.any()) and len(self.images) > 1
        return np.asarray(self.start + self.scale * found)

    def _product(self, x: Vector) -> Vector:
        image = self.scale * self.times(self.scale * x)
        with self.recorder.paused():
            self._last = x.copy(), image.copy()
        return image

    def _after(self, _: float) -> None:
        self.passes += 1
        seconds = self.recorder.now()
        with self.recorder.paused():
            point = self._point()
        # What is measured off the clock is: the recorder pauses by itself.
        if self.recorder.look(point, seconds=seconds, passes=float(self.passes)):
            raise Enough

    def _point(self) -> Vector:
        assert self._last is not None
        direction, image = self._last
        column = np.zeros(len(self.images))
        for _ in range(2):
            for k, base in enumerate(self.images):
                part = float(base @ image)
                column[k] += part
                image = image - part * base
        size = float(np.linalg.norm(image))
        if size > 0:
            count = len(self.images)
            triangle = np.zeros((count + 1, count + 1))
            triangle[:count, :count] = self.triangle
            triangle[:count, count], triangle[count, count] = column, size
            self.triangle = triangle
            self.images.append(image / size)
            self.directions.append(direction)
            self.lengths = np.append(self.lengths, self.images[-1] @ self.side)
        from scipy.linalg import solve_triangular

        factors = solve_triangular(self.triangle, self.lengths, check_finite=False)
        out = self.start.copy()
        for factor, kept in zip(factors, self.directions, strict=True):
            out += factor * (self.scale * kept)
        return out


def product(log: Log, size: int | None, double: bool = False) -> Product:
    """x -> A x, in blocks of ``size`` rows or, for None, all rows at once."""
    kind = np.float64 if double else log.table.dtype
    scale = np.ones(log.n) if log.ratios is None else log.ratios
    decay = scale * log.discounts
    ridge = log.ridge
    if log.states is not None:
        counts, table = count(log, scale, decay), log.table
        return lambda x: table.T @ (counts @ (table @ x)) / log.n + ridge * x
    table, n = log.table, log.n
    if log.is_sparse:
        turned = log.features.T
        plain = log.ratios is None

        def sparse(x: Vector) -> Vector:
            values = table @ x
            errors = (values[:-1] if plain else scale * values[:-1]) - decay * values[1:]
            return np.asarray(turned @ errors / n + ridge * x)

        return sparse
    scale, decay = scale.astype(kind), decay.astype(kind)
    whole = n if size is None else size

    def dense(x: Vector) -> Vector:
        x_kind = x.astype(kind)
        out = np.zeros(len(x))
        for first in range(0, n, whole):
            last = min(first + whole, n)
            rows = table[first : last + 1].astype(kind, copy=False)
            values = rows @ x_kind
            errors = scale[first:last] * values[:-1] - decay[first:last] * values[1:]
            out += errors @ rows[:-1]
        return out / n + ridge * x

    return dense


def fastest(log: Log, double: bool) -> int | None:
    """The block in which a product takes least; tried on the first rows, off the clock."""
    part = log.head(min(log.n, TRIED))
    x = np.ones(log.dim) / log.dim
    # Widening all rows at once would take twice their memory.
    sizes: list[int | None] = [*([] if double else [None]), *BLOCKS]

    def seconds(size: int | None) -> float:
        times = product(part, size, double)
        found = []
        for _ in range(TIMES):
            began = time.perf_counter()
            times(x)
            found.append(time.perf_counter() - began)
        return min(found)

    return min(sizes, key=seconds)


def mean_rewards(log: Log) -> Vector:
    """b: (dim,)."""
    scaled = log.rewards if log.ratios is None else log.ratios * log.rewards
    if log.states is not None:
        return np.asarray(log.table.T @ np.bincount(log.states, weights=scaled, minlength=len(log.table)) / log.n)
    phi = log.features
    if log.is_sparse:
        return np.asarray(phi.T @ scaled / log.n)
    return np.asarray(scaled.astype(phi.dtype, copy=False) @ phi / log.n, dtype=np.float64)


def diagonal(log: Log) -> Vector:
    """That of C: (dim,)."""
    if log.states is not None:
        weights = np.bincount(log.states, minlength=len(log.table))
        squares: Any = np.square(log.table).T @ weights
    elif log.is_sparse:
        phi = log.features
        squares = np.bincount(phi.indices, weights=np.square(phi.data), minlength=log.dim)
    else:
        phi = log.features
        squares = np.einsum("ij,ij->j", phi, phi)
    return np.asarray(squares / log.n + log.ridge, dtype=np.float64)


def unit(squares: Vector) -> Vector:
    """diag(C)^-1/2, and 1 where a feature is 0."""
    return np.where(squares > 0, 1 / np.sqrt(np.where(squares > 0, squares, 1.0)), 1.0)
