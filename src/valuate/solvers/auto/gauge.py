"""How far a point is from the goal, for next to nothing: the MSPBE in a norm of few rows, and its statistical floor.

The norm of C^-1 takes n dim^2 operations, as much as half of LSTD. For a residual g that does not depend on which rows
are drawn, g' C_m^-1 g with C_m from m > dim random rows is g' C^-1 g times a number near m / (m - dim), the same for
every g, with a relative error of about sqrt(2 / (m - dim)). So ratios of such norms, of the MSPBE to that of theta = 0
or to its floor, are known well from few rows for each feature.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valuate import drawing, metric
from valuate._threads import blas_threads
from valuate.solvers.auto import costs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]

#: Rows for each feature in the norm, and rows at least.
ROWS_A_FEATURE, FEWEST = 1.5, 3000
#: Multiply-adds up to which all rows are taken for the norm: some milliseconds.
CHEAP = 2e8
#: Rows from which the floor is estimated, and with how many features it is half of them.
LOOKED_AT, MANY = 512, 1000
#: Multiply-adds of sparse rows up to which all of them are added up for the norm.
CHEAP_SPARSE = 1e8
#: A goal is no smaller than that, though the rows that are looked at show no noise: what is left then is rounding.
LEAST = 1e-15
#: What is estimated is to be so much better than asked for.
MARGIN = 0.9
#: The floor at a point counts for no more than so many times that at 0: weights that run away where A is close to
#: singular make errors, and with them the floor, as large as one likes.
MOST = 10.0


class Gauge:
    """Measures points of a problem against a goal.

    Parameters
    ----------
    problem : Problem
    tolerance : float, optional
        The relative residual to be reached. None: statistical accuracy instead.
    standard_errors : float
        How far the optimiser may stay from the answer of the log, in standard errors: the MSPBE may be the square of
        this times its floor.
    rng : numpy.random.Generator
        Draws rows.
    """

    def __init__(
        self, problem: Problem, tolerance: float | None, standard_errors: float, rng: np.random.Generator
    ) -> None:
        self.problem, self.tolerance, self.standard_errors, self.rng = problem, tolerance, standard_errors, rng
        #: Row visits that were made for measuring.
        self.visits = 0
        #: The norm that is measured in: that of C^-1, from all rows or some, or of its diagonal.
        self.sampled = 0
        self.floor = np.nan
        self._metric: metric.Metric | None = None
        self._rows: _Looked | None = None
        self._start: float | None = None

    @property
    def exact(self) -> bool:
        """Whether the norm is that of C^-1: where a matrix fits, and a tolerance is not by definition in diag(C)."""
        problem = self.problem
        return problem.dim <= metric.MOST_DIM and (self.tolerance is None or problem.measures_exactly)

    @property
    def norm(self) -> str:
        """The norm in words."""
        if not self.exact:
            return "diag(C)^-1"
        return f"C^-1 (estimated from {self.sampled:,} rows)" if self.sampled else "C^-1"

    def seconds(self) -> float:
        """What forming its norm takes, about; 0 where there is nothing to be formed."""
        problem = self.problem
        if not self.exact or problem.knows("metric"):
            return 0.0
        if problem.rows.is_sparse:
            return costs.products(0, problem.dim)
        return costs.products(problem.rows.n_stored if self._all_are_cheap() else self._some(), problem.dim)

    def goal(self) -> float:
        """The relative residual that is wanted, roughly: in the norm of diag(C)^-1, by the errors of zero weights."""
        if self.tolerance is not None:
            return self.tolerance
        zero = np.zeros(self.problem.dim)
        return max(1 / self.coarse(self._diagonal(self.problem.b), zero), LEAST)

    def prepare(self) -> None:
        """What `fine` needs that takes long."""
        if self.exact:
            with blas_threads(self.problem.dim):
                self._norm()
                if self.tolerance is None:
                    self._looked().white_lengths(self._norm())

    def coarse(self, size: float, theta: Vector) -> float:
        """The distance from the goal in the norm of diag(C)^-1, for a residual of this length in it: 1 is there."""
        if self.tolerance is not None:
            return size / (MARGIN * self.tolerance * self._diagonal(self.problem.b))
        rows = self._looked()
        rough = rows.floor(theta, self.problem.n_rows, rows.lengths(metric.unit_scale(self.problem.diagonal)))
        return float(size / (MARGIN * self.standard_errors * np.sqrt(2 * rough))) if rough > 0 else np.inf

    def fine(self, residual: Vector, theta: Vector) -> float:
        """The distance from the goal in the gauge's own norm, for a residual b - A theta: 1 is there."""
        size = self._size(residual)
        if self.tolerance is not None:
            whole = self.whole()
            return size / (MARGIN * self.tolerance * whole) if whole > 0 else np.inf
        rows = self._looked()
        if not self.exact:
            lengths = rows.lengths(metric.unit_scale(self.problem.diagonal))
        else:
            lengths = rows.white_lengths(self._norm())
        self.floor = rows.floor(theta, self.problem.n_rows, lengths)
        return float(size / (MARGIN * self.standard_errors * np.sqrt(2 * self.floor))) if self.floor > 0 else np.inf

    def relative(self, residual: Vector) -> float:
        """The relative residual in the gauge's norm."""
        whole = self.whole()
        return self._size(residual) / whole if whole > 0 else 0.0

    def whole(self) -> float:
        """The size of b in the gauge's norm."""
        if self._start is None:
            self._start = self._size(self.problem.b)
        return self._start

    def _size(self, residual: Vector) -> float:
        return self._norm().norm(residual) if self.exact else self._diagonal(residual)

    def _diagonal(self, residual: Vector) -> float:
        return float(np.linalg.norm(residual * metric.unit_scale(self.problem.diagonal)))

    def _norm(self) -> metric.Metric:
        if self._metric is None:
            self._metric = self._from_all() if self._all_are_cheap() else self._from_some()
        return self._metric

    def _all_are_cheap(self) -> bool:
        problem = self.problem
        if problem.knows("metric") or problem.knows("C"):
            return True
        few = problem.n_rows <= max(FEWEST, ROWS_A_FEATURE * problem.dim)
        return few or (not problem.rows.is_sparse and problem.rows.n_stored * problem.dim**2 <= CHEAP)

    def _from_all(self) -> metric.Metric:
        if not self.problem.knows("metric"):
            self.visits += self.problem.n_rows
        return self.problem.metric()

    def _from_some(self) -> metric.Metric:
        """From random rows; from all where these do not stand for them."""
        problem, scale = self.problem, metric.unit_scale(self.problem.diagonal)
        drawn = self._rows_of_norm(scale)
        if drawn is None:
            return self._from_all()
        order, shares = drawn
        found = None
        for kind in (np.float32, np.float64) if scale.all() else ():
            self.visits += len(order)
            upper = problem.rows.scaled_gram(order, shares, scale, kind)
            if problem.ridge > 0:
                upper[np.diag_indices(problem.dim)] += (problem.ridge * np.square(scale)).astype(kind)
            found = metric.from_scaled(upper, scale)
            if found is not None:
                break
        else:
            self.visits += len(order)
            found = metric.from_rows(self._blocks(order, shares), problem.dim)
        if found.rank < np.count_nonzero(scale) or not self._covers(found):
            self._rows = None
            return self._from_all()
        self.sampled = len(order) if len(order) < problem.n_rows else 0
        return found

    def _rows_of_norm(self, scale: Vector) -> tuple[NDArray[np.int32], Vector] | None:
        """Rows, and the share of each in C: long and heavy rows, which make much of it, before others."""
        problem, rows = self.problem, self.problem.rows
        n, size = problem.n_rows, self._some()
        if size == n:
            everyone = np.arange(n, dtype=np.int32)
            return everyone, rows.row_weights(everyone) / n
        self.visits += n
        found = drawing.heavy_first(rows.spans(scale), size, self.rng)
        if found is None:
            return None
        order, counts = found
        return order, counts * rows.row_weights(order) / n

    def _covers(self, norm: metric.Metric) -> bool:
        """Whether no row that is looked at is longer than it can be: its weight * phi' C^-1 phi is n at most."""
        looked = self._looked()
        weights = 1.0 if looked.weights is None else looked.weights
        return bool((weights * looked.white_lengths(norm) <= self.problem.n_rows).all())

    def _some(self) -> int:
        """Rows that the norm is estimated from."""
        n, rows = self.problem.n_rows, self.problem.rows
        if rows.is_sparse and n * (rows.entries / 2) ** 2 <= CHEAP_SPARSE:
            return n
        return int(min(n, max(FEWEST, ROWS_A_FEATURE * self.problem.dim)))

    def _blocks(self, order: NDArray[np.int32], shares: Vector) -> Iterator[NDArray[np.float64]]:
        """Rows X with X'X = C of these rows."""
        rows, ridge = self.problem.rows, self.problem.ridge
        for first in range(0, len(order), FEWEST):
            part = slice(first, first + FEWEST)
            phi = rows.at(order[part])[0]
            phi = phi.toarray() if rows.is_sparse else phi
            yield phi * np.sqrt(shares[part, None])
        if ridge > 0:
            yield np.sqrt(ridge) * np.eye(self.problem.dim)

    def _looked(self) -> _Looked:
        if self._rows is None:
            order, counts = self._drawn()
            self._rows = _Looked(*self.problem.rows.at(order), counts)
            self.visits += len(order)
        return self._rows

    def _drawn(self) -> tuple[NDArray[np.int32], Vector]:
        """Rows for the floor, and what each counts for: half of them at random, half by the size of its terms.

        So neither a few rewards among rows without any nor a few heavy ratios are missed.
        """
        n, rows = self.problem.n_rows, self.problem.rows
        half = LOOKED_AT // (2 if self.problem.dim <= MANY else 4)
        if n <= 2 * half:
            return np.arange(n, dtype=np.int32), np.ones(n)
        sizes = rows.square_terms()
        ends = np.cumsum(sizes)
        drawn = rows.subset(half, self.rng)
        if ends[-1] > 0:
            heavy = np.searchsorted(ends, ends[-1] * self.rng.random(half), side="right")
            drawn = np.concatenate([drawn, np.minimum(heavy, n - 1).astype(np.int32)])
            chances = 0.5 + 0.5 * sizes[drawn] * (n / ends[-1])
        else:
            chances = np.ones(len(drawn))
        return drawn, 1.0 / chances


class _Looked:
    """Rows whose errors and lengths give an estimate of the floor."""

    def __init__(
        self, phi: object, following: object, record: NDArray[np.void], weights: Vector | None, counts: Vector
    ) -> None:
        self.phi, self.following, self.record, self.weights, self.counts = phi, following, record, weights, counts
        self._lengths: dict[str, Vector] = {}

    def floor(self, theta: Vector, n_rows: int, lengths: Vector) -> float:
        """1/2 mean((w rho tdError)^2 phi' C^-1 phi) / n."""
        scale, rewards = self.record["scale"], self.record["reward"]
        steps = self.phi @ theta - self.record["discount"] * (self.following @ theta)  # type: ignore[operator]
        at_point, at_zero = (
            0.5 * float(np.mean(self.counts * np.square(scale * errors) * lengths)) / n_rows
            for errors in (steps - rewards, rewards)
        )
        return min(at_point, MOST * at_zero)

    def lengths(self, scale: Vector) -> Vector:
        """phi' diag(C)^-1 phi of each row."""
        if "diagonal" not in self._lengths:
            phi, squares = self.phi, np.square(scale)
            squared = phi.power(2) if hasattr(phi, "power") else np.square(phi)  # type: ignore[call-overload]
            self._lengths["diagonal"] = np.asarray(squared @ squares)
        return self._lengths["diagonal"]

    def white_lengths(self, norm: metric.Metric) -> Vector:
        """phi' C^-1 phi of each row."""
        if "white" not in self._lengths:
            phi = self.phi.toarray() if hasattr(self.phi, "toarray") else self.phi
            white = norm.whiten(np.asarray(phi).T)
            self._lengths["white"] = np.einsum("ij,ij->j", white, white)
        return self._lengths["white"]
