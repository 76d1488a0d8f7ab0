"""Fitting a batch at a time: by moments while they are small enough, by averaged TD beyond."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError
from valuate.estimator import running
from valuate.estimator.coordinates import Coordinates
from valuate.estimator.intercept import NONE, NOT_IDENTIFIED, unit_for
from valuate.metric import MOST_DIM
from valuate.solution import Status
from valuate.solvers import LSTD, TD
from valuate.summing import Moments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.estimator.task import Task
    from valuate.solution import Solution

    Vector = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class Increments:
    """What is kept between batches.

    Attributes
    ----------
    moments : Moments or None
        Of all rows so far, features and a column of ones where there is an intercept; None beyond 4096 columns.
    theta : (dim,) array
        The answer so far; beyond 4096 columns, the mean over batches of those of averaged TD, by their rows.
    last : (dim,) array
        Where the next batch's TD starts: the answer of the last batch alone.
    n_rows : int
    """

    moments: Moments | None
    theta: Vector
    last: Vector
    n_rows: int = 0

    @classmethod
    def begin(cls, dim: int) -> Increments:
        """Nothing yet."""
        return cls(Moments() if dim <= MOST_DIM else None, np.zeros(dim), np.zeros(dim))

    @classmethod
    def after(cls, model: Any) -> Increments:
        """From a fitted model, whose problem is there."""
        coordinates: Coordinates = model._coordinates
        problem, theta = model.problem_, np.append(model.coef_, model.intercept_ if model.fit_intercept else [])
        if len(theta) > MOST_DIM:
            return cls(None, theta, theta.copy(), problem.n_rows)
        return cls(_moved(Moments.of(problem), coordinates), theta, theta.copy(), problem.n_rows)


def add(model: Any, task: Task, state: Increments) -> Solution:
    """Take in the rows of a batch; the answer is in ``state.theta``: weights and, behind them, the intercept."""
    problem = task.problem(1.0 if model.fit_intercept else 0.0, model.discount, 0.0)
    if problem.dim != len(state.theta):
        raise InputError(f"this batch has {problem.dim} columns of features and those before it {len(state.theta)}.")
    state.n_rows += problem.n_rows
    if state.moments is not None:
        state.moments.add(problem)
        return _solved(model, state)
    if model.ridge and model.fit_intercept:
        raise InputError(
            f"beyond {MOST_DIM} features partial_fit runs TD, which cannot keep a ridge off the intercept: use "
            "ridge=0, or fit_intercept=False with a constant among the features."
        )
    # The log's order sees each row once; steps that shrink take away what rows that depend on each other leave behind.
    method = TD(average=True, sampling="log", decay=0.5)
    solution = method.solve(
        problem.with_ridge(model.ridge), passes=1, theta=state.last, seed=running.seed(model.random_state)
    )
    state.last = solution.theta
    state.theta = state.theta + problem.n_rows / state.n_rows * (solution.theta - state.theta)
    return replace(solution, theta=state.theta.copy())


def _solved(model: Any, state: Increments) -> Solution:
    """Solve the moments, whose last column is the intercept's, with the ridge on the others."""
    assert state.moments is not None
    moments = state.moments.with_ridge(model.ridge)
    solver = LSTD()
    tolerance = running.tolerance(model, solver)
    if not model.fit_intercept:
        solution = solver.solve(moments, tolerance=tolerance)
        state.theta = solution.theta.copy()
        return solution
    ending = float(moments.A[-1, -1])
    unit = unit_for(model.ridge, ending)
    scale = np.ones(moments.dim)
    scale[-1] = unit
    moments.A, moments.C = moments.A * scale[:, None] * scale, moments.C * scale[:, None] * scale
    moments.b = moments.b * scale
    solution = solver.solve(moments, tolerance=tolerance)
    solution = replace(solution, theta=solution.theta * scale)
    if not ending > NONE:
        solution = replace(solution, status=Status.SINGULAR, message=f"Not determined: {NOT_IDENTIFIED}")
    state.theta = solution.theta.copy()
    return solution


def _moved(moments: Moments, coordinates: Coordinates) -> Moments:
    """Moments of a problem's columns as those of the features and a column of ones."""
    change = coordinates.to_features()
    out = Moments()
    out.A, out.C = change @ moments.A @ change.T, change @ moments.C @ change.T
    out.b = change @ moments.b
    out.n_rows, out.weight, out.square_rewards = moments.n_rows, moments.weight, moments.square_rewards
    return out
