"""A policy-evaluation problem: rows of features, rewards and discounts, and everything that is a sum over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.linalg as la

from valuate import _checks, building, metric, moments
from valuate.episodes import Episodes

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from valuate.protocols import RowSource
    from valuate.transitions import Transitions

    Vector = NDArray[np.float64]

#: Up to this dim the relative residual is measured in the norm of C^-1, beyond it in that of diag(C)^-1.
EXACT_DIM = 1000


class Problem:
    """Estimate theta with A theta = b from the rows of a log; the paper's saddle-point problem.

    With phi and phi' the features of a row's state and next state, delta = phi - discount * phi', ratio rho, weight w
    and ridge e,

        A = sum w rho phi delta' / sum w + e I,   b = sum w rho r phi / sum w,   C = sum w phi phi' / sum w + e I.

    Build one with `from_transitions`, `from_arrays` or `from_table`. Nothing of size dim x dim is formed unless
    `moments`, `mspbe` (up to 4096 features) or LSTD is asked for.

    Attributes
    ----------
    n_rows, dim : int
    layout : {"dense", "indexed", "sparse"}
        How the features lie in memory.
    ridge : float
    rows : RowSource
        Where the rows are, which the solvers visit.
    episodes : Episodes or None
        Where the log's episodes start, for eligibility traces; None where that is not known.
    """

    def __init__(self, rows: RowSource, *, ridge: float = 0.0, episodes: Episodes | None = None) -> None:
        self.rows = rows
        self.episodes = episodes
        self.ridge = _checks.number("ridge", ridge, low=0.0)
        self.n_rows, self.dim, self.layout = rows.n_rows, rows.dim, rows.layout
        self._cache: dict[str, Any] = {}

    @classmethod
    def from_transitions(
        cls, log: Transitions, feature_map: Any = None, *, discount: ArrayLike = 0.99, ridge: float = 0.0
    ) -> Self:
        """Join a log and a feature map.

        Parameters
        ----------
        log : Transitions
        feature_map : object with ``transform``, or callable, or None
            Turns m states into an (m, dim) array or sparse matrix, row by row; it must be fitted already. It is
            called in blocks, and once for each distinct state where states repeat. None takes the states, vectors of
            numbers, as their own features.
        discount : float or (n,) array
            In [0, 1]; counts as 0 where a row terminated.
        ridge : float
        """
        rows = building.from_transitions(log, feature_map, discount)
        known = None if log.episodes is None else Episodes(log.episodes, log.terminated | log.truncated)
        return cls(rows, ridge=ridge, episodes=known)

    @classmethod
    def from_arrays(
        cls,
        features: Any,
        rewards: ArrayLike,
        next_features: Any,
        *,
        discount: ArrayLike = 0.99,
        terminated: ArrayLike | None = None,
        ratios: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        episodes: ArrayLike | None = None,
        ridge: float = 0.0,
    ) -> Self:
        """Take the features of states and next states as matrices, dense or scipy.sparse.

        Parameters
        ----------
        features, next_features : (n, dim) array or sparse matrix
            float32 or float64, kept; other real numbers become float64. Rows of ``next_features`` that terminated
            are not looked at. Where they are the following row of ``features`` they are not stored again. Where memory
            allows they are used where they lie, not copied: dense views ``x[:-1]`` and ``x[1:]`` of one array, and
            sparse matrices. Do not write to them while the problem is in use.
        rewards : (n,) array
        discount : float or (n,) array, in [0, 1]
        terminated : (n,) flags, optional
        ratios, weights : (n,) array, optional
            Importance ratios and multiplicities, at least 0.
        episodes : (n,) labels, optional
            Which episode each row belongs to, whose rows follow each other in time. Eligibility traces need it.
        ridge : float
        """
        rows = building.from_arrays(features, rewards, next_features, discount, terminated, ratios, weights)
        return cls(rows, ridge=ridge, episodes=Episodes.read(episodes, rows.n_rows))

    @classmethod
    def from_table(
        cls,
        table: Any,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        *,
        discount: ArrayLike = 0.95,
        terminated: ArrayLike | None = None,
        ratios: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        episodes: ArrayLike | None = None,
        ridge: float = 0.0,
    ) -> Self:
        """Take states as row numbers of a table of features, (n_states, dim), dense or sparse.

        Costs 32 bytes a row beside the table. ``next_states`` of rows that terminated are not looked at.
        """
        rows = building.from_table(table, states, rewards, next_states, discount, terminated, ratios, weights)
        return cls(rows, ridge=ridge, episodes=Episodes.read(episodes, rows.n_rows))

    def with_ridge(self, ridge: float) -> Self:
        """The same rows with another ridge; what is known of a problem without one is not computed again."""
        out = type(self)(self.rows, ridge=ridge, episodes=self.episodes)
        if self.ridge == 0.0:
            known: dict[str, Any] = {name: self._cache[name] for name in ("A", "b", "C") if name in self._cache}
            if out.ridge > 0.0:
                shift = np.diag_indices(self.dim)
                for name in known.keys() - {"b"}:
                    known[name] = known[name].copy()
                    known[name][shift] += out.ridge
                    _frozen(known[name])
            out._cache.update(known)
        return out

    def __repr__(self) -> str:
        ridge = f", ridge {self.ridge:g}" if self.ridge else ""
        return f"Problem({self.n_rows:,} rows, {self.dim:,} features, {self.layout} {self.rows.dtype}{ridge})"

    # Products and gradients: matrix-free, on all cores.

    def times_A(self, x: ArrayLike) -> Vector:
        """A x, without A: (dim,)."""
        x = self.vector("x", x)
        return self.rows.sums(x, phi=True)[0] / self.n_rows + self.ridge * x

    def times_At(self, y: ArrayLike) -> Vector:
        """A' y, without A: (dim,)."""
        y = self.vector("y", y)
        return self.rows.sums(y=y, delta=True)[1] / self.n_rows + self.ridge * y

    def times_C(self, y: ArrayLike) -> Vector:
        """C y, without C: (dim,)."""
        y = self.vector("y", y)
        return self.rows.sums(y=y, phi=True)[0] / self.n_rows + self.ridge * y

    def gradient(self, theta: ArrayLike, omega: ArrayLike) -> tuple[Vector, Vector]:
        """The gradient field of the saddle point: -A' omega and A theta - b + C omega (paper, section 4)."""
        theta, omega = self.vector("theta", theta), self.vector("omega", omega)
        return self.mean_gradient(theta, omega, None)

    def mean_gradient(self, theta: Vector, omega: Vector, order: NDArray[np.int32] | None) -> tuple[Vector, Vector]:
        """As `gradient`, the mean over the rows of ``order`` only; the vectors are not checked."""
        count = self.n_rows if order is None else len(order)
        on_phi, on_delta = self.rows.sums(theta, omega, reward=1.0, phi=True, delta=True, order=order)
        return -on_delta / count - self.ridge * omega, on_phi / count + self.ridge * (theta + omega)

    def residual(self, theta: ArrayLike) -> Vector:
        """b - A theta, without A: (dim,)."""
        return -self.mean_residual(self.vector("theta", theta), None)

    def mean_residual(self, theta: Vector, order: NDArray[np.int32] | None) -> Vector:
        """A theta - b of the rows of ``order`` only, or of all; the vector is not checked."""
        count = self.n_rows if order is None else len(order)
        return self.rows.sums(theta, reward=1.0, phi=True, order=order)[0] / count + self.ridge * theta

    # Matrices and norms.

    def moments(self) -> moments.Matrices:
        """A, b and C as dense arrays, computed once and kept; do not write to them."""
        if "A" not in self._cache:
            moments.require_room(self.dim, 2)
            if "C" in self._cache:
                self.cross_moment()
            else:
                self._cache["A"], self._cache["C"] = map(self._mean, self.rows.cross_and_gram())
        return moments.Matrices(self._cache["A"], self.b, self.second_moment())

    def cross_moment(self) -> NDArray[np.float64]:
        """A as a matrix, computed once and kept, without C: (dim, dim); do not write to it."""
        if "A" not in self._cache:
            moments.require_room(self.dim, 1)
            self._cache["A"] = self._mean(self.rows.cross())
        return np.asarray(self._cache["A"])

    @property
    def b(self) -> Vector:
        """Mean of w rho r phi: (dim,)."""
        if "b" not in self._cache:
            self._cache["b"] = _frozen(self.rows.reward_sums() / self.n_rows)
        return np.asarray(self._cache["b"])

    @property
    def diagonal(self) -> Vector:
        """The diagonal of C: (dim,)."""
        if "diagonal" not in self._cache:
            self._cache["diagonal"] = _frozen(self.rows.column_squares() / self.n_rows + self.ridge)
        return np.asarray(self._cache["diagonal"])

    def mspbe(self, theta: ArrayLike) -> float:
        """The empirical MSPBE, 1/2 |A theta - b|^2 in the norm of C^-1 (the pseudo-inverse where C is singular).

        Up to 4096 features C is factored, from the rows themselves where it is badly conditioned (see
        `valuate.metric` for the rank cutoff). Beyond, the norm is computed by products to a relative accuracy
        of 1e-8; a PrecisionWarning says so where that cannot be reached.
        """
        return 0.5 * self.square_norm(self.residual(theta))

    def square_norm(self, g: Vector) -> float:
        """g' C^+ g."""
        if self.dim <= metric.MOST_DIM:
            return self.metric().square(g)
        return metric.by_products(g, self.times_C, self.diagonal, self.ridge)

    def metric(self) -> metric.Metric:
        """The factored norm of C^-1, computed once and kept."""
        if "metric" not in self._cache:
            c, rows = self.second_moment(), self.rows
            found = metric.from_matrix(c)
            if found is None and rows.is_sparse and 2 * rows.n_stored * self.dim**2 > metric.COSTLY:
                found = metric.from_singular(c, self._length)
            self._cache["metric"] = found or metric.from_rows(self._weighted_rows(), self.dim)
        found = self._cache["metric"]
        assert isinstance(found, metric.Metric)
        return found

    def _length(self, x: Vector) -> float:
        """The root of x' C x, by the rows: without the rounding of C as a matrix."""
        return float(np.sqrt(max(0.0, float(x @ self.times_C(x)))))

    def relative_residual(self, theta: ArrayLike, *, exact: bool | None = None) -> float:
        """sqrt(MSPBE(theta) / MSPBE(0)): 1 at zero, 0 at a solution, unchanged when a column is rescaled.

        Parameters
        ----------
        theta : (dim,) array
        exact : bool, optional
            True for the norm of C^-1, False for that of diag(C)^-1, which costs no matrix. Up to 1000 features the
            norm is that of C^-1 where nothing is said.

        Notes
        -----
        Where b = 0 there is nothing to be relative to, and the norm of the residual itself is returned.
        """
        return self.relative_size(self.residual(theta), exact=exact)

    def relative_size(self, g: Vector, *, exact: bool | None = None) -> float:
        """The relative residual where the residual ``g`` = b - A theta is known; see `relative_residual`."""
        exact = self.measures_exactly if exact is None else exact
        norms = [self._norm(residual, exact) for residual in (g, self.b)]
        return norms[0] / norms[1] if norms[1] > 0 else norms[0]

    @property
    def measures_exactly(self) -> bool:
        """Whether `relative_residual` is in the norm of C^-1 where nothing is said."""
        return self.dim <= EXACT_DIM

    def measuring_visits(self, *, exact: bool) -> int:
        """Row visits that the next `relative_residual` costs: b and C are computed once and kept."""
        known = ("b", "metric") if exact else ("b", "diagonal")
        return self.n_rows * (1 + sum(name not in self._cache for name in known))

    def preparing_visits(self) -> int:
        """Row visits that b and the diagonal of C cost, where they are not known yet."""
        return self.n_rows * sum(name not in self._cache for name in ("b", "diagonal"))

    def knows(self, name: str) -> bool:
        """Whether "A", "C", "b", "diagonal" or "metric" has been computed already, and costs nothing."""
        return name in self._cache

    def _norm(self, g: Vector, exact: bool) -> float:
        if exact:
            small = self.dim <= metric.MOST_DIM
            return self.metric().norm(g) if small else float(np.sqrt(self.square_norm(g)))
        return float(la.norm(g * metric.unit_scale(self.diagonal)))

    def second_moment(self) -> NDArray[np.float64]:
        """C as a matrix, computed once and kept: (dim, dim)."""
        if "C" not in self._cache:
            moments.require_room(self.dim, 2)
            self._cache["C"] = self._mean(self.rows.gram())
        return np.asarray(self._cache["C"])

    def _mean(self, total: NDArray[np.float64]) -> NDArray[np.float64]:
        """A sum over rows, of this problem's own, turned into the mean with the ridge on its diagonal."""
        total /= self.n_rows
        total[np.diag_indices(self.dim)] += self.ridge
        return _frozen(total)

    def _weighted_rows(self) -> Any:
        for block in self.rows.weighted_rows():
            yield block / np.sqrt(self.n_rows)
        if self.ridge > 0:
            yield np.sqrt(self.ridge) * np.eye(self.dim)

    def vector(self, name: str, value: ArrayLike) -> Vector:
        """``value`` as a finite vector with one entry a feature, or an error that names it."""
        return _checks.vector(name, value, self.dim)


def _frozen(array: NDArray[np.float64]) -> NDArray[np.float64]:
    array.flags.writeable = False
    return array
