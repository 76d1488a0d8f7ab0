"""A preconditioner from some of the rows: their A, factored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg as sla

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from valuate.problem import Problem
    from valuate.solvers.scaled import Scaled

    Vector = NDArray[np.float64]

#: Rows for each feature. Measured: from 2 to 5 the solver becomes slower than without, from 20 on faster.
ROWS_A_FEATURE = 40
#: Largest dim for which the matrix is formed.
MOST_DIM = 4096
#: Smallest reciprocal condition of the matrix for which it is used.
TRUSTED = 1e-10


def from_subsample(
    problem: Problem, system: Scaled, rng: np.random.Generator
) -> tuple[Callable[[Vector], Vector] | None, int, str]:
    """The inverse of the scaled A of `ROWS_A_FEATURE` rows a feature.

    Returns
    -------
    invert : callable or None
        None where it would not pay.
    visits : int
        Rows that were read.
    note : str
        Why there is none; empty where there is.
    """
    dim, wanted = problem.dim, ROWS_A_FEATURE * problem.dim
    if dim > MOST_DIM:
        return None, 0, f"No subsample preconditioner: {dim:,} features are more than {MOST_DIM:,}."
    if problem.n_rows < wanted:
        return (
            None,
            0,
            (
                f"No subsample preconditioner: it takes {ROWS_A_FEATURE} rows a feature, {wanted:,}, and there are "
                f"{problem.n_rows:,}."
            ),
        )
    a = problem.rows.cross(problem.rows.subset(wanted, rng)) / wanted
    a[np.diag_indices(dim)] += problem.ridge
    a *= system.left[:, None] * system.right
    unused = np.flatnonzero(system.left == 0)  # 0 = 0: these coordinates stay as they are
    a[unused] = 0.0
    a[unused, unused] = 1.0
    size = np.abs(a).sum(axis=0).max()
    factors, pivots, info = sla.lapack.dgetrf(a)
    if info != 0 or not sla.lapack.dgecon(factors, size)[0] > TRUSTED:
        return None, wanted, f"No subsample preconditioner: A of {wanted:,} rows is singular or close to it."

    def invert(x: Vector) -> Vector:
        return np.asarray(sla.lu_solve((factors, pivots), x, check_finite=False))

    return invert, wanted, ""
