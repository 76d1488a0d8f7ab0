"""The ends of spectra that a certificate names: of C, and of A's symmetric part; and whether A is singular.

Columns are scaled to unit diagonal of C throughout, so that the units of features do not matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.linalg as la

from valuate.metric import unit_scale

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Up to this dim eigenvalues are computed by dense solvers, beyond it by Lanczos steps.
DENSE = 1000
#: Lanczos steps on matrices that are there, which cost no pass.
STEPS = 60
#: Smallest reciprocal condition of the scaled A at which it counts as regular, as in LSTD.
REGULAR = 1e-12


class Bound(NamedTuple):
    """A number, and whether it is exact or only a bound."""

    value: float
    exact: bool


class Equations(NamedTuple):
    """What A theta = b can do: the rank of A, and the least MSPBE of all theta (0 where A is regular)."""

    rank: int
    least_mspbe: float


def least_eigenvalue(problem: Problem) -> Bound:
    """The smallest eigenvalue of (A + A') / 2, from the matrix; Lanczos gives an upper bound."""
    a, _, c = problem.moments()
    scale = unit_scale(np.diagonal(c))
    used = np.flatnonzero(scale)
    if not len(used):
        return Bound(0.0, True)
    part = a[np.ix_(used, used)] * scale[used, None] * scale[used]
    part = 0.5 * (part + part.T)
    if len(used) <= DENSE:
        return Bound(float(la.eigvalsh(part, subset_by_index=[0, 0], check_finite=False)[0]), True)
    return Bound(lanczos(lambda x: part @ x, _start(len(used), 0), STEPS)[0], False)


def least_by_products(problem: Problem, steps: int, seed: int | np.random.Generator) -> Bound:
    """The same from ``steps`` products, of two passes each: an upper bound."""
    scale = unit_scale(problem.diagonal)

    def times(x: Vector) -> Vector:
        y = scale * x
        return 0.5 * scale * (problem.times_A(y) + problem.times_At(y))

    return Bound(lanczos(times, _start(problem.dim, seed), steps)[0], False)


def condition(problem: Problem) -> Bound:
    """Condition number of C on its range, from its factor; Lanczos gives a lower bound."""
    metric = problem.metric()
    if metric.rank <= DENSE:
        return Bound(metric.condition() ** 2, True)
    factor = metric.factor

    def inverse(x: Vector) -> Vector:
        half = la.solve_triangular(factor, x, trans="T", check_finite=False)
        return np.asarray(la.solve_triangular(factor, half, check_finite=False))

    start = _start(metric.rank, 0)
    largest = lanczos(lambda x: factor.T @ (factor @ x), start, STEPS)[1]
    return Bound(largest * lanczos(inverse, start, STEPS)[1], False)


def condition_by_products(problem: Problem, steps: int, seed: int | np.random.Generator) -> Bound:
    """The same from ``steps`` products, of one pass each: a lower bound, nan where one step is not enough."""
    scale = unit_scale(problem.diagonal)
    least, largest = lanczos(lambda x: scale * problem.times_C(scale * x), _start(problem.dim, seed), steps)
    return Bound(largest / least if least > 0 else np.inf, False)


def equations(problem: Problem) -> Equations:
    """The rank of A and, where it is singular, how near the equations can be met."""
    a, b, c = problem.moments()
    metric, dim = problem.metric(), problem.dim
    scale = unit_scale(np.diagonal(c))
    if metric.rank == dim:
        scaled = a * scale[:, None] * scale
        factors, _, info = la.lapack.dgetrf(scaled)
        if info == 0 and la.lapack.dgecon(factors, np.abs(scaled).sum(axis=0).max())[0] > REGULAR:
            return Equations(dim, 0.0)
    white, target = metric.whiten(a), metric.whiten(b)
    own = unit_scale(np.einsum("ij,ij->j", white, white))
    white = white * np.where(scale > 0, scale, own)
    if not white.any():
        return Equations(0, 0.5 * float(target @ target))
    # The cutoff of LSTD's pseudo-inverse, so that both find the same rank.
    cutoff = np.finfo(float).eps * max(100.0, 10 * metric.condition())
    driver = "gelsd" if dim <= DENSE else "gelsy"
    found, _, rank, _ = la.lstsq(white, target, cond=cutoff, lapack_driver=driver, check_finite=False)
    left = target - white @ found
    return Equations(int(rank), 0.5 * float(left @ left))


def lanczos(times: Callable[[Vector], Vector], start: Vector, steps: int) -> tuple[float, float]:
    """The least and largest Ritz value of a symmetric operator after so many products.

    They lie between its least and its largest eigenvalue. Every direction is kept orthogonal to all before it.
    """
    basis: list[Vector] = []
    diagonal: list[float] = []
    beside: list[float] = []
    vector = start / la.norm(start)
    while len(basis) < min(steps, len(start)):
        basis.append(vector)
        image = times(vector)
        size = float(la.norm(image))
        diagonal.append(float(vector @ image))
        for _ in range(2):
            for known in basis:
                image = image - (known @ image) * known
        rest = float(la.norm(image))
        if not rest > 1e-12 * size:
            break
        beside.append(rest)
        vector = image / rest
    values = la.eigvalsh_tridiagonal(np.array(diagonal), np.array(beside[: len(diagonal) - 1]))
    return float(values[0]), float(values[-1])


def _start(size: int, seed: int | np.random.Generator) -> Vector:
    return np.random.default_rng(seed).normal(size=size)
