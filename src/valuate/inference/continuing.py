"""Episodes that were cut short and go on with a model's values: what the model's own error adds to the interval."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from valuate.errors import PrecisionWarning
from valuate.inference.fixed_point import policy_value
from valuate.inference.returns import logged_return
from valuate.inference.scores import in_memory
from valuate.inference.trajectories import Trajectories
from valuate.inference.value import PolicyValue, Standing, student

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from valuate.problem import Problem
    from valuate.solution import Solution
    from valuate.transitions import Transitions

    Vector = NDArray[np.float64]

#: Rows of features that are added up at a time.
BLOCK = 1 << 14


def continued_return(
    log: Transitions,
    problem: Problem,
    solution: Solution,
    discount: ArrayLike = 0.99,
    *,
    confidence: float = 0.95,
) -> PolicyValue:
    """The logged return in which episodes that were cut short go on with the values of a model of the same log.

    Unlike `logged_return` with ``after``, which takes these values as exact, its standard error has the model's own.
    Where nothing was cut short it is the logged return.

    Parameters
    ----------
    log : Transitions
    problem, solution
        Of the model, fitted to the rows of ``log`` in their order; for action values with next features of the
        policy that wrote the log.
    discount : float or (n,) array
    confidence : float
    """
    records = in_memory(problem).records
    values = solution.values(problem)
    after = np.where(records["discount"] > 0, values[records["next"]], 0.0)
    found = logged_return(log, discount, after=after, confidence=confidence)
    return with_model_error(found, log, problem, solution, discount)


def with_model_error(
    found: PolicyValue,
    log: Transitions,
    problem: Problem,
    solution: Solution,
    discount: ArrayLike,
    ratios: Vector | None = None,
) -> PolicyValue:
    """A number from returns that go on with a model's values, with the error of these values in its interval.

    The number moves with the weights theta by p, the mean over episodes of what the features behind the cut are worth
    at the start. p . theta has an influence of its own on each episode, as the value of initial states has, which is
    added draw by draw: an episode moves the number through its own return and through the model.

    Parameters
    ----------
    found : PolicyValue
        Of a function of this package, made with the values of ``solution``.
    log, problem, solution, discount
        As in `continued_return`.
    ratios : (n,) array, optional
        Where returns are weighted by their products, as in the doubly robust estimator.

    Returns
    -------
    PolicyValue
        Without an interval where the model's error is not known.
    """
    if found.complete:
        return found
    p = _slope(Trajectories.read(log, discount, None, None), problem, ratios)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrecisionWarning)  # said in a note below
        model = policy_value(problem, solution, p, confidence=found.confidence)
    same = found.source is not None and model.source is not None and found.source.clusters == model.source.clusters
    known = model.standing is Standing.DETERMINED and same and len(model.deviations) == len(found.deviations)
    cut, *others = found.notes
    if not known:
        return replace(
            found,
            standard_error=np.inf,
            interval=(-np.inf, np.inf),
            standing=Standing.UNDETERMINED,
            notes=(f"{cut} How far these are off is not known: there is no interval.", *others),
        )
    deviations = found.deviations + model.deviations
    error = float(np.sqrt(deviations @ deviations))
    # The model's values were those of the weights given; theirs is the fixed point's error.
    value = found.value + model.value - float(p @ solution.theta)
    return replace(
        found,
        value=value,
        standard_error=error,
        interval=student(value, error, found.degrees, found.confidence),
        correction=model.correction,
        complete=True,
        notes=(cut.replace(Trajectories.TAKEN_AS_EXACT, Trajectories.COUNTED), *others),
        influence=found.influence + model.influence,
        deviations=deviations,
    )


def _slope(runs: Trajectories, problem: Problem, ratios: Vector | None) -> Vector:
    """The derivative of the mean return by the weights, through the values of what follows cut ends: (dim,)."""
    stored = in_memory(problem)
    worth = runs.discounting()[runs.last] * runs.onward * runs.weights / runs.weights.sum()
    if ratios is not None:
        worth = worth * runs.products(np.asarray(ratios))[runs.last]
    some = np.flatnonzero(worth)
    out = np.zeros(problem.dim)
    for first in range(0, len(some), BLOCK):
        part = some[first : first + BLOCK]
        rows = stored.taken(stored.records["next"][runs.last[part]].astype(np.intp))
        out += np.asarray(rows.T @ worth[part], dtype=np.float64)
    return out
