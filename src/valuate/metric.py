"""The norm in which the MSPBE is measured, g' C^+ g, by the means that the size and condition of C allow.

Three ways, tried in this order:

- *Cholesky* of C with its columns scaled to unit diagonal, while its condition there is below 1e8.
- *Rows*: beyond that, a pivoted QR of the weighted rows X themselves (C = X'X), whose condition is only the root
  of that of C. Pivots below max(rows, dim) * 2.2e-16 of the largest, after scaling the columns to unit length,
  count as zero: that is the rank.
- *Products*: where C would not fit (`MOST_DIM`), conjugate gradients on products with C, to a stated accuracy.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

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
#: Relative accuracy of a norm that is computed by products.
ACCURACY = 1e-8


class Metric:
    """g' C^+ g from a triangular factor: C = D^-1 P R'R P' D^-1 with D scaling to unit diagonal.

    Attributes
    ----------
    rank : int
        Rank of C.
    scale : (dim,) array
        diag(C)^-1/2, and 0 where the diagonal is 0.
    """

    def __init__(self, factor: NDArray[np.float64], order: NDArray[np.intp], scale: Vector) -> None:
        self.factor, self.order, self.scale = factor, order, scale
        self.rank = len(factor)

    def whiten(self, g: NDArray[np.float64]) -> NDArray[np.float64]:
        """K g with K'K = C^+ on the range of C: (rank,) or, for the columns of a matrix, (rank, k)."""
        scaled = (g.T * self.scale).T[self.order[: self.rank]]
        return np.asarray(la.solve_triangular(self.factor, scaled, trans="T", check_finite=False))

    def square(self, g: Vector) -> float:
        """g' C^+ g."""
        white = self.whiten(g)
        return float(white @ white)


def unit_scale(diagonal: Vector) -> Vector:
    """diagonal^-1/2, and 0 where a column is zero."""
    return np.where(diagonal > 0, 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1)), 0.0)


def from_matrix(c: NDArray[np.float64]) -> Metric | None:
    """The metric from C itself, or None where C is too close to singular to be factored."""
    scale = unit_scale(np.diagonal(c))
    if not (scale > 0).all():
        return None
    scaled = c * scale[:, None] * scale
    factor, info = la.lapack.dpotrf(scaled)
    if info != 0:
        return None
    rcond, info = la.lapack.dpocon(factor, np.abs(scaled).sum(axis=0).max())
    if info != 0 or not rcond > TRUSTED:
        return None
    return Metric(factor, np.arange(len(c)), scale)


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
    cutoff = max(n_rows, dim) * np.finfo(float).eps * (pivots[0] if len(pivots) else 0.0)
    rank = int((pivots > cutoff).sum())
    return Metric(triangle[:rank, :rank], order, scale)


def by_products(
    g: Vector,
    times: Callable[[Vector], Vector],
    diagonal: Vector,
    ridge: float,
    *,
    accuracy: float = ACCURACY,
    most: int = 2000,
    delay: int = 10,
) -> float:
    """g' C^+ g by conjugate gradients with the diagonal as preconditioner.

    Every step adds a positive term; what is still missing is estimated by the last ``delay`` terms and, with a
    ridge, bounded by the residual. A `PrecisionWarning` says what was reached where ``most`` steps are not enough.
    """
    invert = unit_scale(diagonal) ** 2
    residual = g.copy()
    steer = invert * residual
    direction = steer.copy()
    power = float(residual @ steer)
    total, terms, missing = 0.0, [], np.inf
    for _ in range(most):
        if power == 0.0:
            return total
        image = times(direction)
        curvature = float(direction @ image)
        if not curvature > 0.0:
            return total
        length = power / curvature
        terms.append(length * power)
        total += terms[-1]
        residual -= length * image
        steer = invert * residual
        last, power = power, float(residual @ steer)
        direction = steer + power / last * direction
        missing = sum(terms[-delay:]) if len(terms) > delay else np.inf
        if ridge > 0:
            missing = min(missing, float(residual @ residual) / ridge)
        if missing <= accuracy * total:
            return total
    reached = missing / total if total else np.inf
    warnings.warn(
        f"the norm of C^-1 is known to about {reached:.1e} of its value after {most} products, not to {accuracy:.1e}:"
        " C is badly conditioned. A ridge, or fewer features, makes it exact.",
        PrecisionWarning,
        stacklevel=4,
    )
    return total
