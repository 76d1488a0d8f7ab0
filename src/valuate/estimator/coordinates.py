"""A problem's columns in terms of features and the constant 1, and its theta in terms of weights and intercept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """What a problem's row z is for features phi: phi - centre, and behind it the constant column.

    Parameters
    ----------
    n_features : int
        Of the map.
    unit : float
        The value of the constant column; 0 where there is none.
    centre : (n_features,) array, optional
        What is taken off the features.
    span : (n_features,) array, optional
        Where there is no constant column because the features contain it: v with phi.v = 1 in all rows.
    """

    n_features: int
    unit: float = 0.0
    centre: Vector | None = None
    span: Vector | None = None

    @property
    def dim(self) -> int:
        """Columns of the problem."""
        return self.n_features + (self.unit > 0)

    def rows(self, phi: Any) -> Any:
        """The problem's rows for features phi, (m, dim), dense or sparse as these are."""
        if self.centre is not None:
            phi = phi - self.centre
        return with_constant(phi, self.unit) if self.unit else phi

    def weights(self, theta: Vector) -> tuple[Vector, float]:
        """Weights of the features as the map gives them, and the intercept."""
        coef = np.array(theta[: self.n_features])
        intercept = float(theta[-1] * self.unit) if self.unit else 0.0
        return coef, intercept if self.centre is None else intercept - float(self.centre @ coef)

    def theta(self, coef: Vector, intercept: float) -> Vector:
        """The inverse of `weights`."""
        if not self.unit:
            return np.array(coef) if self.span is None else coef + intercept * self.span
        level = intercept if self.centre is None else intercept + float(self.centre @ coef)
        return np.append(coef, level / self.unit)

    def to_features(self) -> Matrix:
        """M with (phi, 1) = M z; with phi alone where neither a column nor a span makes the constant."""
        identity = np.eye(self.n_features)
        if not self.unit:
            return identity if self.span is None else np.vstack([identity, self.span])
        out = np.zeros((self.dim, self.dim))
        out[:-1, :-1], out[-1, -1] = identity, 1 / self.unit
        if self.centre is not None:
            out[:-1, -1] = self.centre / self.unit
        return out


class WithConstant:
    """A map with a column of a constant behind its features."""

    def __init__(self, rows: Callable[[Any], Any], unit: float) -> None:
        self.rows, self.unit = rows, unit

    def __call__(self, states: Any) -> Any:
        """(m, d + 1), dense or sparse."""
        phi = self.rows(states)
        # What has the wrong shape is refused, with the map's name, where the problem is built.
        return with_constant(phi, self.unit) if phi.ndim == 2 else phi


def with_constant(phi: Any, unit: float) -> Any:
    """A column of ``unit`` behind the columns of phi, of the same type: (m, d + 1)."""
    m, d = phi.shape
    if not _checks.is_sparse(phi):
        kind = phi.dtype if phi.dtype.kind == "f" else np.float64
        out = np.empty((m, d + 1), kind)
        out[:, :d], out[:, d] = phi, unit
        return out
    from scipy import sparse

    rows = sparse.csr_array(phi)
    starts = rows.indptr + np.arange(m + 1, dtype=rows.indptr.dtype)
    last = starts[1:] - 1
    own = np.ones(rows.nnz + m, bool)
    own[last] = False
    data, columns = np.empty(rows.nnz + m, rows.dtype), np.empty(rows.nnz + m, rows.indices.dtype)
    data[own], data[last] = rows.data, unit
    columns[own], columns[last] = rows.indices, d
    return sparse.csr_array((data, columns, starts), shape=(m, d + 1))
