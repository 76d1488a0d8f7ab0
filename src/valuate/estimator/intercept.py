"""An intercept that no ridge shrinks, although a problem has one ridge for all its columns.

With phi, ratio rho, weight w and effective discount g, the intercept's own equation is

    mean w rho (phi - g phi')' theta + s c = mean w rho r,      s = mean w rho (1 - g).

Two ways, and both give the theta of a dense system whose ridge has a 0 at the intercept:

- *Centred features*, where rows are dense. With mu = mean w rho (1 - g) phi / s taken off phi and phi', the equations
  for theta have no c in them, whatever the ridge: they are solved alone, and c follows from its own equation. Features
  far from 0 then cost no digits, and no steps of stochastic methods.
- *A large column*, where rows are sparse, or LSTD has traces in the place of phi. The constant column has the value K,
  so that a ridge e shrinks the intercept like e / K^2 in the place of e. K is a power of two such that e / K^2 is at
  most 1e-16 of s: the rounding of s itself. Solvers that scale columns by diag(C)^-1/2 (LSTD and the Krylov methods) do
  not notice K; steps of stochastic methods would become tiny, and these are refused.

The problem that is kept has the column in both, with e / K^2 below rounding, so that intervals and certificates are
those of the model with its intercept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate.errors import InputError
from valuate.estimator.coordinates import Coordinates
from valuate.problem import Problem
from valuate.rows import Rows
from valuate.solution import Solution, Status
from valuate.solvers import Stochastic

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]
    #: Makes the problem with a constant column of this value; none for 0.
    Build = Callable[[float], Problem]
    Run = Callable[[Problem], Solution]

#: What the ridge takes off the intercept, relative to it, at most.
SHRINKAGE = 1e-16
#: The constant column's largest value, well inside float32 and what a problem takes.
LARGEST = 2.0**49
#: A share of the rows' values that ends in them, below which it is 0 up to rounding.
NONE = 1e-13
#: Columns whose size after centring is below so many roundings of what it was are constant.
ROUNDINGS = 8
#: The rounding of a centre, as a share of what is left of its column, from which on it is taken off in two rounds.
ROUGH = 1e-14
#: How far from 1 rows may sum where the features contain the constant.
CLOSE = 1e-9
#: Rows copied at a time.
BLOCK = 1 << 14

NOT_IDENTIFIED = (
    "the intercept is not determined: the discount is 1 and no row of the log terminated, so that all values may be "
    "raised by any number. Use a discount below 1, or mark the rows where the process ended as terminated."
)


class Fitted(NamedTuple):
    """A problem, its solution and what its columns are."""

    problem: Problem
    solution: Solution
    coordinates: Coordinates


def without(build: Build, run: Run) -> Fitted:
    """Fit weights alone."""
    problem = build(0.0)
    return Fitted(problem, run(problem), Coordinates(problem.dim))


def fit(build: Build, run: Run, *, solver: Any, ridge: float, ending: float, sample: Any) -> Fitted:
    """Fit weights and an intercept that the ridge does not touch.

    Parameters
    ----------
    build, run : callables
    solver : solver
        What runs, for its kind.
    ridge : float
    ending : float
        s: the weighted mean of ratio * (1 - discount), the discount being 0 where a row ended.
    sample : (m, d) array or sparse matrix
        Features of some rows.

    Returns
    -------
    Fitted
        With status SINGULAR where the intercept is not determined.
    """
    identified = ending > NONE
    found = _spanned(build, run, sample) if ridge == 0 else None
    if found is None:
        found = _with_column(build, run, solver, ridge, ending)
    if identified:
        return found
    return found._replace(
        solution=replace(found.solution, status=Status.SINGULAR, message=f"Not determined: {NOT_IDENTIFIED}")
    )


def unit_for(ridge: float, ending: float) -> float:
    """The value of a constant column whose weight the ridge does not shrink: a power of two, at least 1."""
    if ridge == 0 or not ending > NONE:
        return 1.0
    return float(np.clip(2.0 ** np.ceil(0.5 * np.log2(ridge / (SHRINKAGE * ending))), 1.0, LARGEST))


def _spanned(build: Build, run: Run, sample: Any) -> Fitted | None:
    """Fit without a column where the features contain the constant already; None where they do not."""
    span = _span(sample)
    if span is None:
        return None
    problem = build(0.0)
    used = np.zeros(problem.rows.n_stored, bool)
    records = problem.rows.records  # type: ignore[attr-defined]
    used[records["state"]] = used[records["next"]] = True
    if not np.allclose(problem.rows.times(span)[used], 1.0, rtol=0.0, atol=CLOSE):
        return None
    return Fitted(problem, run(problem), Coordinates(problem.dim, span=span))


def _span(sample: Any) -> Vector | None:
    """v with phi.v = 1 for the sampled rows, where all of their entries have one sum or a column is constant."""
    m, d = sample.shape
    sums = np.asarray(sample.sum(axis=1), dtype=np.float64).ravel()
    if sums[0] != 0 and np.allclose(sums, sums[0], rtol=CLOSE, atol=0.0):
        return np.full(d, 1 / sums[0])
    dense = sample.toarray() if hasattr(sample, "toarray") else np.asarray(sample, dtype=np.float64)
    constant = (dense == dense[0]).all(axis=0) & (dense[0] != 0)
    if m < 2 or not constant.any():
        return None
    span, column = np.zeros(d), int(constant.argmax())
    span[column] = 1 / float(dense[0, column])
    return span


def _with_column(build: Build, run: Run, solver: Any, ridge: float, ending: float) -> Fitted:
    unit = unit_for(ridge, ending)
    problem = build(unit)
    plain = getattr(solver, "trace_decay", 0.0) == 0.0 and getattr(solver, "ratio_on", "row") == "row"
    if ending > NONE and plain and not problem.rows.is_sparse:
        return _centred(problem, run, unit, ending)
    if unit > 1.0 and isinstance(solver, Stochastic):
        raise InputError(
            f"{type(solver).__name__} cannot keep the ridge off the intercept where features are sparse. Use "
            'solver="gmres" or "lstd", ridge=0, or fit_intercept=False with a constant among the features.'
        )
    return Fitted(problem, run(problem), Coordinates(problem.dim - 1, unit))


def _centred(problem: Problem, run: Run, unit: float, ending: float) -> Fitted:
    """Solve for the weights on centred features, then for the intercept; the table is changed in place."""
    rows: Any = problem.rows
    d = problem.dim - 1
    centre = np.zeros(d)
    for _ in range(2):
        taken, rough = _take_off(rows.table, _centre(rows, d, ending))
        centre += taken
        if not rough:
            break
    rows.table[:, d] = 0.0  # padding, for a problem without the column
    solution = run(Problem(_over(rows, d), ridge=problem.ridge, episodes=problem.episodes))
    rows.table[:, d] = unit
    whole = Problem(_over(rows, d + 1), ridge=problem.ridge, episodes=problem.episodes)
    theta = np.append(solution.theta, 0.0)
    # The column is orthogonal to the rest in A: its equation has no other unknown.
    theta[d] = whole.residual(theta)[d] / (unit**2 * ending + problem.ridge)
    solution = replace(solution, theta=theta, omega=np.append(solution.omega, 0.0))
    return Fitted(whole, solution, Coordinates(d, unit, centre))


def _centre(rows: Any, d: int, ending: float) -> Vector:
    """mean w rho (1 - g) phi / s: (d,)."""
    share = np.zeros(rows.n_stored)
    for first in range(0, rows.n_rows, 1 << 20):
        part = rows.records[first : first + (1 << 20)]
        share += np.bincount(part["state"], part["scale"] * (1 - part["discount"]), rows.n_stored)
    return np.asarray(rows.transposed_times(share)[:d] / (rows.n_rows * ending))


def _take_off(table: Any, centre: Vector) -> tuple[Vector, bool]:
    """Centre the first columns of a table; what is constant up to rounding becomes 0.

    Returns
    -------
    taken : (d,) array
        The centre as the table's type holds it.
    rough : bool
        Whether the rounding of the centre counts beside what is left: a second round takes that away.
    """
    d, taken = len(centre), centre.astype(table.dtype)
    before, after = np.zeros(d), np.zeros(d)
    for first in range(0, len(table), BLOCK):
        part = table[first : first + BLOCK, :d]
        np.maximum(before, np.abs(part).max(axis=0), out=before)
        part -= taken
        np.maximum(after, np.abs(part).max(axis=0), out=after)
    rounding = np.finfo(table.dtype).eps * before
    constant = after <= ROUNDINGS * rounding
    if constant.any():
        table[:, np.flatnonzero(constant)] = 0.0
    return taken.astype(np.float64), bool((rounding > ROUGH * after)[~constant].any())


def _over(rows: Any, dim: int) -> Rows:
    """The same rows, of the first ``dim`` columns of the table."""
    return Rows(rows.table, dim, rows.records, rows.weights, rows.layout, None, rows.total_weight)
