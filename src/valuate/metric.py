"""The norm in which the MSPBE is measured, g' C^+ g, by the means that the size and condition of C allow.

Four ways, tried in this order:

- *Cholesky* of C with its columns scaled to unit diagonal, while its condition there is below 1e8. Columns that are
  zero in every row are left out.
- *Rows*: beyond that, a pivoted QR of the weighted rows X themselves (C = X'X), whose condition is only the root
  of that of C. Pivots below (100 + 10 sqrt(rows)) * 2.2e-16 of the largest, after scaling the columns to unit length,
  count as zero: that is the rank. Exactly dependent columns leave pivots of a tenth of that and less.
- *Checked*: in place of the rows where these are sparse and so many that filling them up would take minutes, a pivoted
  Cholesky of C. What it takes for dependent is looked at in the rows: where features vary in such a direction by more
  than 1e-7 of their size, a `PrecisionWarning` says by how much.
- *Products*: where C would not fit (`MOST_DIM`), conjugate gradients on products with C, to a stated accuracy.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg as la

from valuate.errors import PrecisionWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

#: Largest dim for which C is formed.
MOST_DIM = 4096
#: Smallest reciprocal condition number of the scaled C for which its Cholesky factor is trusted.
TRUSTED = 1e-8
#: The same by bytes an entry where the norm need be known to some percent only.
ROUGHLY = {4: 1e-7, 8: 1e-12}
#: Operations of a QR of the rows above which sparse rows are not filled up for it.
COSTLY = 2e12
#: Columns of a triangle that are added up together.
TOGETHER = 256
#: Random combinations of what is taken for dependent that are looked at in the rows, and the length of their images, as
#: a share of their own, from which on they are not dependent.
COMBINATIONS, VISIBLE = 8, 1e-7
#: Relative accuracy of a norm that is computed by products.
ACCURACY = 1e-8
#: Smallest eigenvalue, but 0, that the scaled C is supposed to have where its norm is computed by products.
FLOOR = 1e-14


class Metric:
    """g' C^+ g from a triangular factor: C = D^-1 P R'R P' D^-1 with D scaling to unit diagonal.

    Attributes
    ----------
    rank : int
        Rank of C.
    scale : (dim,) array
        diag(C)^-1/2, and 0 where the diagonal is 0.
    squared : bool
        Whether the factor came from a singular C without the rows, whose rounding the condition of C multiplies.
    """

    def __init__(
        self, factor: NDArray[np.float64], order: NDArray[np.intp], scale: Vector, *, squared: bool = False
    ) -> None:
        self.factor, self.order, self.scale, self.squared = factor, order, scale, squared
        self.rank = len(factor)
        self.ordered = bool((np.diff(order) == 1).all())

    def whiten(self, g: NDArray[np.float64]) -> NDArray[np.float64]:
        """K g with K'K = C^+ on the range of C: (rank,) or, for the columns of a matrix, (rank, k)."""
        scaled = (g.T * self.scale).T
        if self.rank < len(scaled) or not self.ordered:
            scaled = scaled[self.order[: self.rank]]
        if not self.rank:
            return scaled
        unit = 1.0
        if self.factor.dtype == np.float32:  # whose range is smaller, too
            unit = float(np.abs(scaled).max()) or 1.0
            scaled = (scaled / unit).astype(np.float32)
        solve = la.get_lapack_funcs("trtrs", dtype=self.factor.dtype)
        found, _ = solve(self.factor, scaled, trans=1)
        return np.asarray(found, dtype=np.float64) * unit

    def square(self, g: Vector) -> float:
        """g' C^+ g, infinite where float64 does not hold it."""
        with np.errstate(over="ignore", invalid="ignore"):
            white = self.whiten(g)
            square = float(white @ white)
        return square if square == square else np.inf

    def norm(self, g: Vector) -> float:
        """The root of g' C^+ g, also where the square would overflow or vanish."""
        largest = float(np.abs(g).max())
        if not 0.0 < largest < np.inf:
            return 0.0 if largest == 0.0 else np.inf
        return largest * float(np.linalg.norm(self.whiten(g / largest)))

    def condition(self) -> float:
        """What multiplies rounding errors: the condition of the scaled rows on their range; 1 at rank 0.

        That is the root of the condition of the scaled C, or that itself where only C is known.
        """
        if not self.rank:
            return 1.0
        sizes = la.svdvals(self.factor, check_finite=False)
        return float(sizes[0] / sizes[-1]) ** (2 if self.squared else 1)

    def least_condition(self) -> float:
        """A lower bound on the condition number of the scaled C on its range, from the factor's diagonal."""
        pivots = np.abs(np.diagonal(self.factor))
        return float((pivots.max() / pivots.min()) ** 2) if self.rank else 1.0


def unit_scale(diagonal: Vector) -> Vector:
    """diagonal^-1/2, and 0 where a column is zero."""
    return np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 0.0)


def from_scaled(upper: NDArray[Any], scale: Vector) -> Metric | None:
    """The metric to some percent, from the upper triangle of C times ``scale``, diag(C)^-1/2, on both sides; or None.

    The matrix is overwritten. The factor is float32 where that is.
    """
    size = _size(upper)
    potrf, pocon = la.get_lapack_funcs(("potrf", "pocon"), dtype=upper.dtype)
    factor, info = potrf(upper, overwrite_a=True, clean=False)
    if info != 0 or not pocon(factor, size)[0] > ROUGHLY[upper.dtype.itemsize]:
        return None
    return Metric(factor, np.arange(len(scale)), scale)


def _size(upper: NDArray[Any]) -> float:
    """The largest sum of sizes of a column of a symmetric matrix with this upper triangle."""
    sums = np.zeros(len(upper))
    for first in range(0, len(upper), TOGETHER):
        last = min(first + TOGETHER, len(upper))
        above, corner = np.abs(upper[:first, first:last]), np.abs(np.triu(upper[first:last, first:last]))
        sums[first:last] += above.sum(axis=0) + corner.sum(axis=0) + corner.sum(axis=1) - np.diagonal(corner)
        sums[:first] += above.sum(axis=1)
    return float(sums.max())


def from_matrix(c: NDArray[np.float64]) -> Metric | None:
    """The metric from C itself, or None where C is too close to singular to be factored."""
    scale = unit_scale(np.diagonal(c))
    used = np.flatnonzero(scale)
    if not len(used):
        return Metric(np.empty((0, 0)), used, scale)
    scaled = (c if len(used) == len(c) else c[np.ix_(used, used)]) * scale[used, None] * scale[used]
    factor, info = la.lapack.dpotrf(scaled)
    if info != 0:
        return None
    rcond, info = la.lapack.dpocon(factor, np.abs(scaled).sum(axis=0).max())
    if info != 0 or not rcond > TRUSTED:
        return None
    return Metric(factor, used, scale)


def from_singular(c: NDArray[np.float64], image: Callable[[Vector], float] | None = None) -> Metric:
    """The metric from C alone where it is close to singular: its rank is that of a pivoted Cholesky factor.

    Pivots below 100 dim * 2.2e-16 of the scaled C count as zero: half the digits of `from_rows`, which needs rows.

    Parameters
    ----------
    c : (dim, dim) array
    image : callable, optional
        The root of x' C x for a vector x, from the rows: to check what is taken for dependent.
    """
    scale = unit_scale(np.diagonal(c))
    used = np.flatnonzero(scale)
    scaled = c[np.ix_(used, used)] * scale[used, None] * scale[used]
    factor, pivots, rank, _ = la.lapack.dpstrf(scaled, tol=100 * len(used) * np.finfo(float).eps)
    order = used[pivots - 1]
    found = Metric(np.triu(factor[:rank, :rank]), order, scale, squared=True)
    if image is not None and rank < len(used):
        weights = np.random.default_rng(0).normal(size=(len(used) - rank, COMBINATIONS))
        across = -la.solve_triangular(found.factor, factor[:rank, rank:] @ weights, check_finite=False)
        directions = np.vstack([across, weights])
        directions /= np.linalg.norm(directions, axis=0)
        x = np.zeros((len(scale), COMBINATIONS))
        x[order] = scale[order, None] * directions
        seen = max(image(column) for column in x.T)
        if seen > VISIBLE:
            warnings.warn(
                f"the norm of C^-1 leaves out directions in which features vary by {seen:.1e} of their size or less: C "
                "is badly conditioned, and factoring its rows would take minutes. A ridge, or fewer features, makes it "
                "exact.",
                PrecisionWarning,
                stacklevel=4,
            )
    return found


def from_rows(blocks: Iterator[NDArray[np.float64]], dim: int) -> Metric:
    """The metric from blocks of the rows X with X'X = C, by a QR that takes the blocks one after the other."""
    factor = np.zeros((0, dim))
    held: list[NDArray[np.float64]] = []
    n_rows = 0

    def fold() -> NDArray[np.float64]:
        return np.asarray(np.linalg.qr(np.vstack([factor, *held]), mode="r"))

    for block in blocks:
        n_rows += len(block)
        held.append(block)
        if sum(map(len, held)) >= 4 * dim:
            factor, held = fold(), []
    if held:
        factor = fold()
    scale = unit_scale(np.einsum("ij,ij->j", factor, factor))
    triangle, order = la.qr(factor * scale, mode="r", pivoting=True, check_finite=False)
    pivots = np.abs(np.diagonal(triangle))
    cutoff = (100 + 10 * np.sqrt(n_rows)) * np.finfo(float).eps
    rank = int((pivots > cutoff * pivots.max(initial=0.0)).sum())
    return Metric(triangle[:rank, :rank], order, scale)


def by_products(
    g: Vector,
    times: Callable[[Vector], Vector],
    diagonal: Vector,
    ridge: float,
    *,
    accuracy: float = ACCURACY,
    most: int = 2000,
) -> float:
    """g' C^+ g by conjugate gradients with the diagonal as preconditioner.

    Every step adds a positive term. What is still missing is bounded by the residual over the ridge or, without one,
    over `FLOOR`: a direction in which the scaled C is weak counts as much as any other and shows up late, so that
    small terms alone prove nothing. What rounding of the products does to the sum is estimated from the solution. A
    `PrecisionWarning` says what was reached where this is more than ``accuracy``.
    """
    if not np.isfinite(g).all():
        return np.inf
    invert = unit_scale(diagonal) ** 2
    residual, solution = g.copy(), np.zeros_like(g)
    direction = steer = invert * residual
    power = float(residual @ steer)
    total, terms = 0.0, [0.0]
    while power > 0.0 and len(terms) <= most:
        image = times(direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:  # what is left lies where C is zero
            break
        length = power / curvature
        terms.append(length * power)
        total += terms[-1]
        solution += length * direction
        residual = residual - length * image
        missing = power / FLOOR if ridge == 0.0 else float(residual @ residual) / ridge
        if missing <= accuracy * total:
            break
        steer = invert * residual
        last, power = power, float(residual @ steer)
        direction = steer + power / last * direction
    else:
        late = sum(terms[len(terms) // 2 :]) / total if power > 0.0 else 0.0
        _warn_above(accuracy, late, most)
    rounding = 10 * np.finfo(float).eps * float(solution @ (diagonal * solution)) / total if total else 0.0
    _warn_above(accuracy, rounding, len(terms) - 1)
    return total


def _warn_above(accuracy: float, reached: float, products: int) -> None:
    if reached > accuracy:
        warnings.warn(
            f"the norm of C^-1 is known to about {reached:.1e} of its value after {products} products, not to "
            f"{accuracy:.1e}: C is badly conditioned. A ridge, or fewer features, makes it exact.",
            PrecisionWarning,
            stacklevel=5,
        )
