"""A preconditioner from some of the rows: their A, factored."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg as sla

from valuate._threads import blas_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from valuate.problem import Problem
    from valuate.solvers.scaled import Scaled

    Vector = NDArray[np.float64]

#: Rows for each feature where nobody says how many. They lie in stretches of the log; measured on slow trajectories of
#: 1,000 and 2,000 features: a residual of 1e-6 takes 130 to 140 products without, 60 with 5 rows a feature, off-policy,
#: 30 with 8 and 20 with 10; and as much as without, or more, with 3.
ROWS_A_FEATURE = 10.0
#: Largest dim for which the matrix is formed.
MOST_DIM = 4096
#: Smallest reciprocal condition of the matrix for which it is used: as float32, which takes half the time, as float64.
TRUSTED: dict[type[np.floating[Any]], float] = {np.float32: 1e-6, np.float64: 1e-10}


def from_subsample(
    problem: Problem, system: Scaled, rng: np.random.Generator, rows_a_feature: float
) -> tuple[Callable[[Vector], Vector] | None, int, str]:
    """The inverse of the scaled A of so many rows a feature, or of all where there are no more.

    Returns
    -------
    invert : callable or None
        None where it would not pay.
    visits : int
        Rows that were read.
    note : str
        Why there is none; empty where there is.
    """
    dim, wanted = problem.dim, max(1, round(rows_a_feature * problem.dim))
    if dim > MOST_DIM:
        return None, 0, f"No subsample preconditioner: {dim:,} features are more than {MOST_DIM:,}."
    order = None if wanted >= problem.n_rows else problem.rows.stretches(wanted, rng)
    size, visits = problem.n_rows if order is None else len(order), 0
    with blas_threads(dim):
        for kind in TRUSTED:
            visits += size
            factors = _factored(problem, system, order, kind)
            if factors is not None:
                return partial(_solve, factors), visits, ""
    return None, visits, f"No subsample preconditioner: A of {size:,} rows is singular or close to it."


def _factored(problem: Problem, system: Scaled, order: Any, kind: type[np.floating[Any]]) -> tuple[Any, Any] | None:
    """LU factors of the scaled A of these rows, or None where it is too close to singular for the type."""
    a = problem.rows.scaled_cross(system.left, system.right, order, kind)
    if problem.ridge > 0:
        a[np.diag_indices(problem.dim)] += (problem.ridge * system.left * system.right).astype(kind)
    unused = np.flatnonzero(system.left == 0)  # 0 = 0: these coordinates stay as they are
    a[unused] = 0.0
    a[unused, unused] = 1.0
    size = np.abs(a).sum(axis=1).max()
    # Transposed, so that the memory is that of LAPACK: these are the factors of A'.
    getrf, gecon = sla.get_lapack_funcs(("getrf", "gecon"), dtype=kind)
    factors, pivots, info = getrf(a.T, overwrite_a=True)
    if info != 0 or not gecon(factors, size)[0] > TRUSTED[kind]:
        return None
    return factors, pivots


def _solve(factors: tuple[Any, Any], x: Vector) -> Vector:
    """A^-1 x, by the type of the factors."""
    getrs = sla.get_lapack_funcs("getrs", dtype=factors[0].dtype)
    found, _ = getrs(*factors, x.astype(factors[0].dtype), trans=1)
    return np.asarray(found, dtype=np.float64)
