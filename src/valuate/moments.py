"""A, b and C as matrices: through counts where few rows are stored, through blocked matrix products otherwise."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from valuate import gathering
from valuate._kernels import outer, sums
from valuate._threads import run_all, thread_count
from valuate.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from valuate.rows import Rows

    Matrix = NDArray[np.float64]
    Part = tuple[int, int] | None

#: Up to this many stored rows, transitions are counted in a dense matrix of stored rows by stored rows.
DENSE_COUNTS = 2048
#: Transitions counted at a time in a sparse matrix.
COUNTED = 1 << 20


class Matrices(NamedTuple):
    """A (dim, dim), b (dim,) and C (dim, dim)."""

    A: Any
    b: Any
    C: Any


def require_room(dim: int, matrices: int) -> None:
    """Refuse what would not fit in memory before it is tried."""
    need = 8 * matrices * dim * dim
    have = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 1 << 40
    if need > 0.8 * have:
        raise InputError(
            f"{matrices} matrices of {dim:,} x {dim:,} features need {need / 1e9:,.0f} GB and this machine has "
            f"{have / 1e9:,.0f} GB. Use a stochastic solver and gradient(), residual(): they need no matrix."
        )


def weighted_rows(rows: Rows) -> Iterator[Matrix]:
    """Blocks of rows X, dense and float64, with X'X = n C (without ridge): stored rows times root of their weight."""
    weights = np.sqrt(rows.state_weights())
    for first, last in rows.stored_blocks():
        used = weights[first:last] > 0
        if used.any():
            yield rows.stored(first, last)[used] * weights[first:last][used, None]


def square_rewards(rows: Rows) -> float:
    """Sum over rows of weight * (ratio * reward)^2."""
    total = 0.0
    for first in range(0, rows.n_rows, COUNTED):
        part = rows.records[first : first + COUNTED]
        terms = part["scale"] * part["reward"]
        terms *= terms
        if len(rows.weights):
            weights = rows.weights[first : first + COUNTED]
            terms /= np.where(weights > 0, weights, 1.0)
        total += float(terms.sum())
    return total


def gram(rows: Rows) -> Matrix:
    """n C without ridge: (dim, dim)."""
    if rows.is_sparse:
        lower = np.zeros((rows.dim, rows.dim))
        _add_outer(outer.sparse_gram, rows.view, rows.state_weights(), out=lower)
        return gathering.mirrored(lower.T)
    factors = np.sqrt(rows.state_weights())

    def blocks(part: Part) -> Iterator[tuple[Matrix, None]]:
        return ((block, None) for block in gathering.scaled(rows.table, rows.dim, factors, part=part))

    return gathering.mirrored(gathering.added_up(blocks, rows.n_stored, rows.dim, square=True)[1])


def cross(rows: Rows) -> Matrix:
    """n A without ridge: (dim, dim), the sum of scale * phi delta'."""
    if 2 * rows.n_stored <= rows.n_rows:
        return _cross_through_states(rows)
    if rows.is_sparse:
        out = np.zeros((rows.dim, rows.dim))
        _add_outer(outer.sparse_cross, rows.view, out=out)
        return out
    return gathering.added_up(_pairs(rows), rows.n_rows, rows.dim)[0]


def cross_and_gram(rows: Rows) -> tuple[Matrix, Matrix]:
    """n A and n C without ridge, from one pass over the rows where both are sums over these."""
    if rows.is_sparse or 2 * rows.n_stored <= rows.n_rows:
        return cross(rows), gram(rows)
    a, upper = gathering.added_up(_pairs(rows), rows.n_rows, rows.dim, square=True)
    return a, gathering.mirrored(upper)


def _add_outer(kernel: Any, *given: Any, out: Matrix) -> None:
    """Outer products of sparse rows added to ``out`` by as many threads as there are, each to its own rows of it."""
    parts = thread_count()
    run_all([partial(kernel, *given, part, parts, out) for part in range(parts)])


def scaled_cross(rows: Rows, units: gathering.Units, kind: type[np.floating[Any]]) -> Any:
    """A without ridge, its rows times the left units and its columns times the right: (dim, dim) of this type."""
    if rows.is_sparse or 2 * rows.n_stored <= rows.n_rows:
        out = cross(rows)
        out *= units.left[:, None] / rows.n_rows
        out *= units.right
        return out.astype(kind, copy=False)
    units = units._replace(left=units.left / rows.n_rows)
    return gathering.added_up(_pairs(rows, units, kind), rows.n_rows, rows.dim, kind)[0]


def scaled_gram(
    rows: Rows,
    order: NDArray[np.int32],
    shares: NDArray[np.float64],
    units: NDArray[np.float64],
    kind: type[np.floating[Any]],
) -> Matrix:
    """The sum of phi phi' over the rows of ``order``, each times its share, rows and columns times units.

    (dim, dim) of this type, of which the upper triangle means something.
    """
    places = rows.records["state"][order]
    if rows.is_sparse:
        lower = np.zeros((rows.dim, rows.dim))
        weights = np.bincount(places, shares, rows.n_stored)
        _add_outer(outer.sparse_gram, rows.view, weights, out=lower)
        lower *= units[:, None]
        lower *= units
        return lower.astype(kind, copy=False).T
    factors = np.sqrt(shares)

    def blocks(part: Part) -> Iterator[tuple[Matrix, None]]:
        found = gathering.scaled(rows.table, rows.dim, factors, places, units, kind, part)
        return ((block, None) for block in found)

    return gathering.added_up(blocks, len(order), rows.dim, kind, square=True)[1]


def _pairs(
    rows: Rows, units: gathering.Units | None = None, kind: type[np.floating[Any]] = np.float64
) -> Callable[[Part], Iterator[tuple[Matrix, Matrix]]]:
    """Blocks L = root(w) phi and R = scale delta / root(w): n A is the sum of L'R and n C that of L'L."""

    def factors(first: int, last: int) -> gathering.Factors:
        part = rows.records[first:last]
        on_left, scale = np.ones(last - first), part["scale"]
        if len(rows.weights):
            on_left = np.sqrt(rows.weights[first:last])
            scale = scale / np.where(on_left > 0, on_left, 1.0)
        return gathering.Factors(on_left, scale, scale * part["discount"])

    def blocks(part: Part) -> Iterator[tuple[Matrix, Matrix]]:
        found = gathering.pairs(rows.table, rows.dim, rows.records, factors, units, kind, may_share=True, part=part)
        return ((left, right) for _, _, left, right in found)

    return blocks


def _cross_through_states(rows: Rows) -> Matrix:
    if rows.is_sparse:
        table = rows.table.astype(np.float64, copy=False)
        return np.asarray((table.T @ (_counts(rows) @ table)).toarray())
    if rows.n_stored <= DENSE_COUNTS:
        counts = np.zeros((rows.n_stored, rows.n_stored))
        sums.count(rows.records, 0, rows.n_rows, counts)
        table = rows.stored(0, rows.n_stored)
        return np.asarray(table.T @ (counts @ table))
    counts = _counts(rows)
    blocks = partial(gathering.combined, counts, rows.table, rows.dim)
    return gathering.added_up(blocks, rows.n_stored, rows.dim)[0]


def _counts(rows: Rows) -> Any:
    """The sparse matrix K, stored rows by stored rows, with n A = T' K T for the table T."""
    shape = (rows.n_stored, rows.n_stored)
    total: Any = sp.csr_array(shape)
    for first in range(0, rows.n_rows, COUNTED):
        part = rows.records[first : first + COUNTED]
        scale, state = part["scale"], part["state"]
        total = total + sp.csr_array(
            (
                np.concatenate([scale, -scale * part["discount"]]),
                (np.concatenate([state, state]), np.concatenate([state, part["next"]])),
            ),
            shape=shape,
        )
    return total
