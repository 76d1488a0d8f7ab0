"""The statistical floor of the MSPBE: how large it is at the right answer, because a log has finitely many rows.

On a log of n independent rows the residual b - A theta is the mean of w rho tdError phi over them. At the theta that
an endless log would give, its expectation is 0 and its covariance, estimated from the rows, is the sum of
(w rho tdError)^2 phi phi' over n^2. In the norm of C^-1 that makes an MSPBE of

    floor = 1/2 sum (w rho tdError)^2 phi' C^-1 phi / n^2,

with weights w of mean 1. An optimiser that goes far below it fits the noise of this log more closely, and no more.

A row is one draw whatever its weight: a heavy row is one draw that counts much, not many draws. Rows that are written
out several times are several draws. Only the second can be known to be independent, and only the first does not change
when all weights are doubled. Rows of one trajectory are dependent: their errors are uncorrelated under the true
values, but for features that cannot hold these the floor is too small, and that of whole episodes would be right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from valuate.metric import unit_scale

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]

#: Multiply-adds of whitening stored rows (rows * dim^2) up to which all are looked at: about a second.
WORK = 5e9
#: Rows of a sample, at least.
LEAST = 400
#: Entries of rows that are whitened together.
TOGETHER = 1 << 20


@dataclass(frozen=True, slots=True)
class Floor:
    """An estimate of the floor.

    Attributes
    ----------
    value : float
    error : float
        Standard error of the sampling of rows; 0 where all were looked at.
    looked_at : int
        Stored rows whose length in the norm was computed.
    sampled : bool
    norm : {"C^-1", "diag(C)^-1"}
    """

    value: float
    error: float
    looked_at: int
    sampled: bool
    norm: str


def floor(problem: Problem, theta: ArrayLike, *, exact: bool = True, seed: int | np.random.Generator = 0) -> Floor:
    """Estimate the floor from the rows and their temporal-difference errors at ``theta``.

    Parameters
    ----------
    problem : Problem
    theta : (dim,) array
        Should be near the answer: errors are larger elsewhere, and the floor with them.
    exact : bool
        True for the norm of C^-1, by `Problem.metric`. False for that of diag(C)^-1, which needs no matrix: to be
        compared with an MSPBE in the same norm only.
    seed : int or numpy.random.Generator
        Draws the sample, where there is one.

    Notes
    -----
    Every stored row is whitened once, and its squared length counts for all transitions from it. Where that would
    take more than `WORK` multiply-adds, rows are drawn with chances proportional to the squared errors from them,
    which are known for all: only the lengths are sampled, so that a few heavy ratios do not make the estimate coarse.
    """
    squares = problem.rows.square_errors(problem.vector("theta", theta))
    over = 0.5 / float(problem.n_rows) ** 2
    used = np.flatnonzero(squares)
    if not exact:
        lengths = problem.rows.square_lengths(unit_scale(problem.diagonal))
        return Floor(over * float(squares @ lengths), 0.0, len(used), False, "diag(C)^-1")
    size = max(LEAST, int(WORK / problem.dim**2))
    if len(used) <= size:
        total = sum(float(squares[part] @ _lengths(problem, part)) for part in _parts(used, problem.dim))
        return Floor(over * total, 0.0, len(used), False, "C^-1")
    # Chances are added up, and each of equal pieces of the total asked for the row it falls on.
    ends = np.cumsum(squares)
    drawn = np.searchsorted(ends, ends[-1] * np.sort(np.random.default_rng(seed).random(size)), side="right")
    drawn = np.minimum(drawn, used[-1])
    found = np.concatenate([_lengths(problem, part) for part in _parts(drawn, problem.dim)])
    scale = over * float(ends[-1])
    error = scale * float(found.std(ddof=1) / np.sqrt(size))
    return Floor(scale * float(found.mean()), error, size, True, "C^-1")


def _parts(places: NDArray[np.intp], dim: int) -> list[NDArray[np.intp]]:
    size = max(64, TOGETHER // dim)
    return [places[first : first + size] for first in range(0, len(places), size)]


def _lengths(problem: Problem, places: NDArray[np.intp]) -> Vector:
    """phi' C^+ phi of the stored rows at ``places``."""
    white = problem.metric().whiten(problem.rows.stored_at(places).T)
    return np.asarray(np.einsum("ij,ij->j", white, white))
