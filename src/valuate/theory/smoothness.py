"""L_G^2 = |mean G_t' G_t| from weighted second moments of features: no matrix a row.

Without the ridge, with scale s = w rho, A_t = s phi delta' and C_t = w phi phi', and

    G_t' G_t = |phi|^2 p p' + beta s^2 |delta|^2 q q',   p = (sqrt(beta) s delta, beta w phi),   q = (0, phi).

A ridge adds e I to every A_t and C_t; what it adds to the mean is known from A and C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp

from valuate.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Transitions whose features are gathered at a time.
GATHERED = 4096
#: Transitions counted at a time.
COUNTED = 1 << 20
#: Up to this many stored rows sums go through counts of pairs of them, where there are more transitions than rows.
FEW_STORED = 2048


class Fourth(NamedTuple):
    """Sums over rows of |phi|^2 (s delta, w phi)(s delta, w phi)', (2 dim, 2 dim), and s^2 |delta|^2 phi phi'."""

    first: Any
    second: Any


def mean_square(problem: Problem, beta: float) -> Matrix:
    """Mean over rows of G_t' G_t, the matrix whose norm is L_G^2: (2 dim, 2 dim)."""
    d, e = problem.dim, problem.ridge
    a, _, c = problem.moments()
    first, second = fourth_moments(rows_of(problem))
    scale = np.repeat([np.sqrt(beta), beta], d)
    out = scale[:, None] * (first / problem.n_rows) * scale
    out[d:, d:] += beta / problem.n_rows * second
    if e > 0:
        # a and c hold the ridge already: e (A0 + A0') + e^2 I = e (A + A') - e^2 I, and so on.
        e2 = e * e * np.eye(d)
        both = beta * (e * (a + a.T) - e2)
        mixed = beta**1.5 * (e * (c + a) - e2)
        out[:d, :d] += both
        out[d:, d:] += both + beta**2 * (2 * e * c - e2)
        out[d:, :d] += mixed
        out[:d, d:] += mixed.T
    return np.asarray(out)


def fourth_moments(rows: Any) -> Fourth:
    """The sums of `Fourth`, through counts of pairs of stored rows where these are few."""
    if goes_through_counts(rows):
        return _through_counts(rows)
    first, second = np.zeros((2 * rows.dim, 2 * rows.dim), order="F"), np.zeros((rows.dim, rows.dim), order="F")
    for part, weight, phi, delta in feature_blocks(rows):
        on_phi, on_delta = (np.sqrt(np.einsum("ij,ij->i", x, x)) for x in (phi, delta))
        scale = part["scale"]
        long = np.hstack([(on_phi * scale)[:, None] * delta, (on_phi * weight)[:, None] * phi])
        phi *= (scale * on_delta)[:, None]
        first = la.blas.dsyrk(1.0, long.T, beta=1.0, c=first, overwrite_c=True)
        second = la.blas.dsyrk(1.0, phi.T, beta=1.0, c=second, overwrite_c=True)
    return Fourth(_from_upper(first), _from_upper(second))


def goes_through_counts(rows: Any) -> bool:
    """Whether transitions are counted by their pair of stored rows."""
    return bool(rows.n_stored <= min(FEW_STORED, rows.n_rows))


def feature_blocks(rows: Any) -> Iterator[tuple[Any, Any, Matrix, Matrix]]:
    """Blocks of transitions: records, weights (or 1), phi and delta, dense and float64, which may be written to."""
    for first in range(0, rows.n_rows, GATHERED):
        part = rows.records[first : first + GATHERED]
        delta = _gather(rows, part["next"])
        delta *= -part["discount"][:, None]
        phi = _gather(rows, part["state"])
        delta += phi
        yield part, weights_of(rows, first, first + GATHERED), phi, delta


def weights_of(rows: Any, first: int, last: int) -> Any:
    """Normalised weights of the rows ``first`` to ``last``; 1 where all are equal."""
    return rows.weights[first:last] if len(rows.weights) else 1.0


def stored_table(rows: Any) -> Matrix:
    """All stored rows, dense and float64: for few of them."""
    return np.concatenate([rows.stored(*block) for block in rows.stored_blocks()])


def rows_of(problem: Problem) -> Any:
    """The problem's rows, or an error where they cannot be looked at one by one."""
    rows: Any = problem.rows
    if not hasattr(rows, "records"):
        raise InputError(
            f"the constants need the rows themselves in memory, and these are {type(rows).__name__}. Take a sample of "
            "the log into memory: the constants are means over rows."
        )
    return rows


def _gather(rows: Any, places: Any) -> Matrix:
    if rows.is_sparse:
        return np.asarray(rows.table[places].toarray(), dtype=np.float64)
    return np.asarray(rows.table[places, : rows.dim], dtype=np.float64)


def _through_counts(rows: Any) -> Fourth:
    """With sums over the transitions from i to j of s^2, s^2 g, s^2 g^2, w s, w s g and w^2, and products of rows."""
    table = stored_table(rows)
    inner = table @ table.T
    square = np.diagonal(inner).copy()
    counts = _pair_counts(rows)
    ss, ws, ww = (np.asarray(counts[name].sum(axis=1)).ravel() for name in ("ss", "ws", "ww"))
    ssg, ssgg, wsg = counts["ssg"], counts["ssgg"], counts["wsg"]

    def between(middle: Any) -> Matrix:
        return np.asarray(table.T @ (middle @ table))

    once = sp.diags_array(square) @ ssg
    delta_delta = between(sp.diags_array(square * ss + ssgg.T @ square) - once - once.T)
    phi_delta = between(sp.diags_array(square * ws) - sp.diags_array(square) @ wsg)
    phi_phi = between(sp.diags_array(square * ww))
    lengths = square * ss - 2 * np.asarray((ssg * inner).sum(axis=1)).ravel() + ssgg @ square
    second = between(sp.diags_array(np.maximum(lengths, 0.0)))
    return Fourth(np.block([[delta_delta, phi_delta.T], [phi_delta, phi_phi]]), second)


def _pair_counts(rows: Any) -> dict[str, Any]:
    """Sparse matrices, stored rows by stored rows, of sums over the transitions between them."""
    n = rows.n_stored
    names = ("ss", "ssg", "ssgg", "ws", "wsg", "ww")
    totals = {name: sp.csr_array((n, n)) for name in names}
    for first in range(0, rows.n_rows, COUNTED):
        part = rows.records[first : first + COUNTED]
        s, g, w = part["scale"], part["discount"], weights_of(rows, first, first + COUNTED)
        values = (s * s, s * s * g, s * s * g * g, w * s, w * s * g, w * w * np.ones(len(part)))
        for name, value in zip(names, values, strict=True):
            totals[name] = totals[name] + sp.csr_array((value, (part["state"], part["next"])), shape=(n, n))
    return totals


def _from_upper(matrix: Matrix) -> Matrix:
    return np.asarray(np.triu(matrix) + np.triu(matrix, 1).T)
