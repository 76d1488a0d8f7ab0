"""Runs on columns scaled alike and centred, so that the size of a step depends on no units and on no offset.

A step that is safe for the largest column is tiny for the others: columns are divided by the power of two next to their
largest entry, which loses nothing. And a step that is safe for the mean of all rows is tiny for what makes rows
different from each other: where a feature is constant, the mean of every other column can be taken from it and given
to the weight of the constant. Values stay what they are, and C becomes better conditioned, often by orders of
magnitude. What is changed is a copy of the table; answers are in the given columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError
from valuate.problem import Problem
from valuate.rows import FEW
from valuate.solvers.sampling import spread

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

#: Columns are left as they are when the largest peak is at most this many times the smallest.
ALIKE = 8.0
#: Where nothing is said, columns are centred if their means make at least this share of the squared length of rows.
OFFSET = 0.5
#: Rows from which means are known. A centre need not be exact: any will do, the mean does best.
LOOKED_AT = 4096
#: What is left of a column without its mean is rounding, below this share of it.
ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Columns:
    """The columns in which a run takes its steps, and the way there and back.

    Attributes
    ----------
    problem : Problem
        In these columns.
    units : (dim,) array
        What each is multiplied by, after centring.
    constant : int
        The column that holds the same number in every row.
    centre : (dim,) array
        What is taken from each, as a share of that number; 0 for the constant itself. Zeros where none is centred.
    visits : int
        Rows that were looked at to find it.
    """

    problem: Problem
    units: Vector
    constant: int = 0
    centre: Vector | None = None
    visits: int = 0

    def inside(self, vector: Vector) -> Vector:
        """Weights in these columns, from those of the given ones."""
        out = vector / self.units
        if self.centre is not None:
            out[self.constant] += float(self.centre @ vector) / self.units[self.constant]
        return np.asarray(out)

    def outside(self, vector: Vector) -> Vector:
        """Weights in the given columns, from those of these."""
        out = vector * self.units
        if self.centre is not None:
            out[self.constant] -= float(self.centre @ out)
        return np.asarray(out)


def columns(method: Any, problem: Problem) -> tuple[Any, Columns]:
    """The columns for a run, and the method with what was chosen.

    A ridge penalises weights in the columns that were given, so a problem with one stays as it is.
    """
    for name in ("scale", "center"):
        if getattr(method, name) and problem.ridge > 0:
            raise InputError(f"{name}=True and a ridge do not go together: the ridge is in the columns as given.")
    found = _centred(method, problem)
    factors = units(method, found.problem)
    if found.centre is not None:
        method = replace(method, center=True)
    if factors is not None:
        method = replace(method, scale=True)
        found = replace(found, problem=Problem(found.problem.rows.scaled(factors)), units=factors)
    return method, found


def units(method: Any, problem: Problem) -> Vector | None:
    """What every column is multiplied by before a run; None where it runs as it is."""
    wanted = _wanted(method.scale, method, problem)
    if not wanted:
        return None
    peaks = problem.rows.column_peaks()
    there = peaks[peaks > 0]
    if not len(there) or (method.scale is None and there.max() <= ALIKE * there.min()):
        return None
    return np.asarray(np.where(peaks > 0, np.exp2(-np.round(np.log2(np.where(peaks > 0, peaks, 1.0)))), 1.0))


def _centred(method: Any, problem: Problem) -> Columns:
    """Columns without their means, where that is wanted and there is a constant to take them."""
    rows, asked = problem.rows, method.center is not None
    plain = Columns(problem, np.ones(problem.dim))
    few = not rows.is_sparse and FEW * rows.n_stored <= rows.n_rows
    silent = method.center is None and (not few or method.step_theta == "theory")  # the paper's columns are as given
    if not _wanted(method.center, method, problem) or silent:
        return plain
    constant = rows.constant_column()
    if constant is None:
        if asked:
            raise InputError(
                "center=True needs dense features, and one that is the same number in every row, to take the means of "
                "the others. Add a column of ones, or leave center at None."
            )
        return plain
    order = spread(problem.n_rows, LOOKED_AT)
    phi, _, _, weights = rows.at(order)
    means = phi.mean(axis=0) if weights is None or not weights.any() else weights @ phi / weights.sum()
    means[np.abs(phi - means).max(axis=0) <= ROUNDING * np.abs(means)] = 0.0
    one = phi[0, constant]
    means[constant] = 0.0
    lengths = float(np.square(phi).sum(axis=1).mean()) - one**2
    if not asked and float(means @ means) < OFFSET * lengths:
        return replace(plain, visits=len(order))
    return Columns(Problem(rows.centred(means)), plain.units, constant, means / one, len(order))


def _wanted(setting: bool | None, method: Any, problem: Problem) -> bool:
    """A setting, or where nothing is said whether steps are chosen here and there is no ridge."""
    return method.is_automatic and problem.ridge == 0.0 if setting is None else setting
