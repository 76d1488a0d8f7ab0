"""How much the gradients of single rows differ: H at the solution, Xi^2 at a given point.

At z = (theta, omega / sqrt(beta)) the two halves of G_t z - g_t are F_theta and sqrt(beta) F_omega, the paper's
gradient of the row, so that |G_t z - g_t|^2 = |F_theta|^2 + beta |F_omega|^2: scalars of the row, no vector.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.theory.smoothness import (
    feature_blocks,
    goes_through_counts,
    rows_of,
    stored_table,
    weights_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]

#: Transitions looked at a time.
BLOCK = 1 << 18


def mean_square_gradient(
    problem: Problem, theta: ArrayLike | None = None, omega: ArrayLike | None = None, *, beta: float
) -> float:
    """Mean over rows of |G_t z - g_t|^2 at z = (theta, omega / sqrt(beta)); H where z is the solution.

    Parameters
    ----------
    problem : Problem
    theta, omega : (dim,) array, optional
        Zeros where they are not given.
    beta : float
    """
    theta, omega = _point(problem, theta, omega)
    rows, e = rows_of(problem), problem.ridge
    on_theta, on_omega, both = (rows.times(vector) for vector in (theta, omega, theta + omega))
    square = _squares(rows)
    total: float = problem.n_rows * e * e * float(omega @ omega + beta * (theta + omega) @ (theta + omega))
    for first in range(0, rows.n_rows, BLOCK):
        part, w = rows.records[first : first + BLOCK], weights_of(rows, first, first + BLOCK)
        i, j, s, g = part["state"], part["next"], part["scale"], part["discount"]
        u = on_omega[i]
        v = s * (on_theta[i] - g * on_theta[j] - part["reward"]) + w * u
        total += beta * float((v * v) @ square[i] + 2 * e * (v @ both[i]))
        total += 2 * e * float((s * u) @ (u - g * on_omega[j]))
    if omega.any():
        total += sum(float(factor @ length) for factor, length in _dual_parts(rows, on_omega))
    return total / problem.n_rows


def gradient_variance(
    problem: Problem, theta: ArrayLike | None = None, omega: ArrayLike | None = None, *, beta: float
) -> float:
    """Xi^2 at one point: the sample variance over rows of G_t z - g_t, z = (theta, omega / sqrt(beta)).

    Corollary 1 wants one number for all z. There is none: G_t z - g_t is affine in z, and its variance grows with the
    square of z. It is convex, so on a segment it is largest at one of the ends.

    Parameters
    ----------
    problem : Problem
    theta, omega : (dim,) array, optional
        Zeros where they are not given.
    beta : float

    Notes
    -----
    The variance is 1/(n-1) (sum |G_t z - g_t|^2 - n |G z - g|^2), as the proof of the corollary uses it; where the
    paper writes it down the last n is missing. One row has none: 0.
    """
    theta, omega = _point(problem, theta, omega)
    n = problem.n_rows
    if n == 1:
        return 0.0
    on_theta, on_omega = problem.gradient(theta, omega)
    of_mean = float(on_theta @ on_theta + beta * on_omega @ on_omega)
    spread = mean_square_gradient(problem, theta, omega, beta=beta) - of_mean
    return max(0.0, spread) * n / (n - 1)


def _point(problem: Problem, theta: ArrayLike | None, omega: ArrayLike | None) -> tuple[Vector, Vector]:
    zero = np.zeros(problem.dim)
    found = [zero if x is None else problem.vector(name, x) for name, x in (("theta", theta), ("omega", omega))]
    return found[0], found[1]


def _squares(rows: Any) -> Vector:
    """|row|^2 of every stored row: (n_stored,)."""
    blocks = (rows.stored(*block) for block in rows.stored_blocks())
    return np.concatenate([np.einsum("ij,ij->i", block, block) for block in blocks])


def _dual_parts(rows: Any, on_omega: Vector) -> Iterator[tuple[Vector, Vector]]:
    """Blocks of (s phi.omega)^2 and |delta|^2."""
    if not goes_through_counts(rows):
        for part, _, _, delta in feature_blocks(rows):
            yield (part["scale"] * on_omega[part["state"]]) ** 2, np.einsum("ij,ij->i", delta, delta)
        return
    table = stored_table(rows)
    inner = table @ table.T
    square = np.diagonal(inner)
    for first in range(0, rows.n_rows, BLOCK):
        part = rows.records[first : first + BLOCK]
        i, j, g = part["state"], part["next"], part["discount"]
        yield (part["scale"] * on_omega[i]) ** 2, square[i] - 2 * g * inner[i, j] + g * g * square[j]
