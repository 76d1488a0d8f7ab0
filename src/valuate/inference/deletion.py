"""What leaving a draw out changes, exactly: the leave-one-cluster-out form of the influence."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from numpy.typing import NDArray

    from valuate.inference.adjoint import Dense
    from valuate.inference.clusters import Clusters
    from valuate.inference.starting import Initial
    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Cube = NDArray[np.float64]
    Flags = NDArray[np.bool_]

#: Multiply-adds up to which draws are left out one by one.
WORK = 2e10
#: Draws at most: each costs a system of its own.
DRAWS = 20_000
#: Up to this rank the systems of many draws are solved together, while their entries are so many.
SMALL, TOGETHER = 64, 1 << 20
#: Up to this rank more threads are no use to a single system.
MIDDLING = 300
#: Smallest reciprocal condition of what is left for which it is solved.
TRUSTED = 1e-12
#: Share of the initial features that what is left may miss, and count as rounding.
ROUNDING = 1e-8


class Deleted(NamedTuple):
    """The value minus that without each draw, (count,); and the draws without which there is no value, (k,)."""

    changes: Vector
    needed: NDArray[np.intp]


def affordable(problem: Problem, dense: Dense, clusters: Clusters) -> bool:
    """Whether every draw can be left out in about a second."""
    work = (problem.n_rows + clusters.count * dense.rank) * float(dense.rank) ** 2
    return clusters.count <= DRAWS and work <= WORK


def deleted(
    problem: Problem,
    dense: Dense,
    clusters: Clusters,
    initial: Initial,
    theta: Vector,
    errors: Vector,
    share: Vector,
    first_order: Vector,
) -> Deleted:
    """Leave every draw out.

    Without the draw g the fixed point is theta - (A - A_g)^-1 m_g, where A_g and m_g are what its rows add to A and to
    b - A theta (the ridge with the draw's share): the value changes by y . m_g with (A - A_g)' y = the initial
    features. In linear regression this is the CV3 estimator of MacKinnon, Nielsen and Webb ("Fast and reliable
    jackknife and bootstrap methods for cluster-robust inference", Journal of Applied Econometrics 38, 2023).

    Parameters
    ----------
    theta : (dim,) array
        The fixed point.
    errors : (n,) array
        See `scores.errors`.
    share : (count,) array
        Of each draw in the log's weight.
    first_order : (count,) array
        The influence, which stands where what is left does not determine the value.
    """
    pieces = Pieces(problem, dense, clusters, theta, errors, share)
    states = States(dense, clusters, initial, theta)
    out = first_order.copy()
    needed: list[int] = []
    with _few_threads(dense.rank):
        for first, last in pieces.chunks():
            cores, pulls = pieces.of(first, last)
            asked, changes = states.without(first, last)
            found, known = _solved(np.swapaxes(dense.core - cores, 1, 2), asked)
            out[first:last] = np.where(known, changes + np.einsum("gk,gk->g", found, pulls), out[first:last])
            needed.extend(first + np.flatnonzero(~known))
    return Deleted(out, np.array(needed, dtype=np.intp))


def _few_threads(rank: int) -> AbstractContextManager[Any]:
    """One thread of the matrix library where matrices are so small that more would mostly wait for each other."""
    if not SMALL < rank <= MIDDLING:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    limits: AbstractContextManager[Any] = threadpool_limits(1, "blas")
    return limits


def _solved(cores: Cube, asked: Matrix) -> tuple[Matrix, Flags]:
    """The y with core y = asked of each draw, (m, k); and where there is one."""
    out, known = np.zeros_like(asked), np.zeros(len(asked), bool)
    if cores.shape[1] <= SMALL:
        try:
            inverse = np.linalg.inv(cores)
        except np.linalg.LinAlgError:  # one of them is singular: each by itself
            pass
        else:
            sizes = np.abs(cores).sum(axis=1).max(axis=1) * np.abs(inverse).sum(axis=1).max(axis=1)
            known = sizes < 1 / TRUSTED
            out[known] = (inverse[known] @ asked[known, :, None])[:, :, 0]
    for g in np.flatnonzero(~known):
        y = _solved_alone(cores[g], asked[g])
        if y is not None:
            out[g], known[g] = y, True
    return out, known


def _solved_alone(core: Matrix, asked: Vector) -> Vector | None:
    factors, pivots, info = la.lapack.dgetrf(core)
    if info == 0 and la.lapack.dgecon(factors, np.abs(core).sum(axis=0).max())[0] > TRUSTED:
        return np.asarray(la.lapack.dgetrs(factors, pivots, asked)[0])
    y = np.linalg.lstsq(core, asked, rcond=1e-10)[0]
    missing = np.linalg.norm(core @ y - asked)
    return np.asarray(y) if missing <= ROUNDING * np.linalg.norm(asked) else None


class Pieces:
    """What each draw adds to A and to b - A theta, in the units of the core."""

    def __init__(
        self, problem: Problem, dense: Dense, clusters: Clusters, theta: Vector, errors: Vector, share: Vector
    ) -> None:
        self.n, self.errors, self.share = problem.n_rows, errors, share
        self.order = np.argsort(clusters.codes, kind="stable")
        self.edges = np.searchsorted(clusters.codes[self.order], np.arange(clusters.count + 1))
        self.table = _Table(problem, dense)
        e = problem.ridge
        self.ridge_core = e * dense.lefts(dense.rights(np.eye(dense.dim)).T).T if e > 0 else None
        self.ridge_pull = e * dense.lefts(theta[None])[0]

    def chunks(self) -> list[tuple[int, int]]:
        """The draws cut into pieces whose matrices fit in the cache."""
        k = max(1, len(self.ridge_pull))
        if k > SMALL:
            return [(g, g + 1) for g in range(len(self.edges) - 1)]
        entries = (np.arange(len(self.edges)) + self.edges) * k**2
        edges = [0]
        while edges[-1] < len(self.edges) - 1:
            most = int(np.searchsorted(entries, entries[edges[-1]] + TOGETHER, side="right")) - 1
            edges.append(max(most, edges[-1] + 1))
        return list(zip(edges[:-1], edges[1:], strict=True))

    def of(self, first: int, last: int) -> tuple[Cube, Matrix]:
        """The parts of the draws from ``first`` to ``last``: (m, k, k) and (m, k)."""
        edges = self.edges[first : last + 1] - self.edges[first]
        rows = self.order[self.edges[first] : self.edges[last]]
        left, right, scale = self.table.of(rows)
        right *= scale[:, None]
        own = self.errors[rows]
        k = left.shape[1]
        cores, pulls = np.empty((last - first, k, k)), np.empty((last - first, k))
        for g, (begin, end) in enumerate(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)):
            part = left[begin:end]
            np.matmul(part.T, right[begin:end], out=cores[g])
            np.matmul(own[begin:end], part, out=pulls[g])
        cores /= self.n
        pulls /= self.n
        share = self.share[first:last]
        if self.ridge_core is not None:
            cores += share[:, None, None] * self.ridge_core
        return cores, pulls - share[:, None] * self.ridge_pull


class States:
    """The initial states and their values when draws, and with them their first states, count more or less."""

    def __init__(self, dense: Dense, clusters: Clusters, initial: Initial, theta: Vector) -> None:
        values = initial.values(theta)
        self.mean = dense.rights(initial.mean[None])[0]
        own, count = initial.codes is not None, clusters.count
        codes = initial.codes if initial.codes is not None else np.zeros(0, np.int64)
        weights = initial.weights if own else np.zeros(0)
        #: Of each draw: the share of its initial states, and the sums of their features and of their values, which
        #: are counted from the mean.
        self.weights = np.bincount(codes, weights, count)
        self.values = np.bincount(codes, weights * (values - initial.weights @ values) if own else None, count)
        self.features = np.zeros((count, dense.rank))
        if own:
            gather = sp.csr_array((weights, (codes, np.arange(len(codes)))), shape=(count, len(codes)))
            summed = gather @ initial.rows
            self.features = dense.rights(summed.toarray() if sp.issparse(summed) else np.asarray(summed))

    def without(self, first: int, last: int) -> tuple[Matrix, Vector]:
        """The mean features without the states of each draw, (m, k); and how far the old mean's value is above."""
        rest = 1.0 - self.weights[first:last]
        return (self.mean - self.features[first:last]) / rest[:, None], self.values[first:last] / rest

    def under(self, weights: Vector) -> tuple[Vector, float]:
        """The mean features where the draws' weights are multiplied by these, (k,); and the value of that change."""
        more = weights - 1.0
        total = 1.0 + float(more @ self.weights)
        return (self.mean + more @ self.features) / total, float(more @ self.values) / total


class _Table:
    """phi and delta of some rows in the units of the core."""

    def __init__(self, problem: Problem, dense: Dense) -> None:
        self.rows, self.dense = problem.rows, dense
        small = self.rows.n_stored <= max(4096, problem.n_rows // 2) and self.rows.n_stored * dense.dim <= 1 << 24
        self.left = self.right = None
        if small:  # each stored row is turned once
            stored = self.rows.stored_at(np.arange(self.rows.n_stored))
            self.left, self.right = dense.lefts(stored), dense.rights(stored)

    def of(self, rows: NDArray[np.intp]) -> tuple[Matrix, Matrix, Vector]:
        """Left phi (m, k), right delta (m, k), and scale (m,)."""
        part = self.rows.records[rows]  # type: ignore[attr-defined]
        state, follower, discount = part["state"], part["next"], part["discount"][:, None]
        if self.left is not None and self.right is not None:
            return self.left[state], self.right[state] - discount * self.right[follower], part["scale"]
        phi = self.rows.stored_at(state)
        ahead = self.rows.stored_at(follower)
        return self.dense.lefts(phi), self.dense.rights(phi - discount * ahead), part["scale"]
