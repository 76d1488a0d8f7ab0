"""What `LinearValue`'s methods do: its attributes are set here, from a log that was read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate import _checks
from valuate.errors import InputError
from valuate.estimator import increments, intercept, mapping, policies, running, task
from valuate.estimator.coordinates import Coordinates
from valuate.estimator.frames import take
from valuate.estimator.increments import Increments
from valuate.estimator.policies import Decisions, Policy
from valuate.estimator.reference import Reference
from valuate.solution import Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from valuate.estimator.inputs import Given
    from valuate.estimator.task import Task
    from valuate.problem import Problem
    from valuate.solution import Solution

    Vector = NDArray[np.float64]

#: States whose features are made at a time.
BLOCK = 1 << 14


def fit(model: Any, given: Given) -> Solution:
    """Fit a model to all rows of a log."""
    _check_numbers(model)
    what = task.plan(model, given, fit=True)
    solver = running.find(model.solver)

    def build(unit: float) -> Problem:
        return what.problem(unit, model.discount, model.ridge)

    def run(problem: Problem) -> Solution:
        return running.run(model, problem, solver)

    if model.fit_intercept:
        ending, sample = what.ending(model.discount), what.sample()
        found = intercept.fit(build, run, solver=solver, ridge=model.ridge, ending=ending, sample=sample)
    else:
        found = intercept.without(build, run)
    _describe(model, what)
    _keep(model, found.solution, found.coordinates, *found.coordinates.weights(found.solution.theta))
    model.problem_, model._increments = found.problem, None
    model._starts = _starts(model, what)
    return found.solution


def add(model: Any, given: Given, *, first: bool) -> tuple[Solution, bool]:
    """Take in a batch; whether its status is worth a warning comes beside the solution."""
    _check_numbers(model)
    what = task.plan(model, given, fit=False, map=None if first else model._map)
    state: Increments | None = None if first else getattr(model, "_increments", None)
    if first:
        state = Increments.begin(what.sample(2).shape[1] + bool(model.fit_intercept))
    elif state is None:
        if not hasattr(model, "problem_"):
            raise InputError("this model is from a file without moments: fit it, or save it after a partial_fit.")
        state = Increments.after(model)
    solution = increments.add(model, what, state)
    if first:
        _describe(model, what)
    unit = 1.0 if model.fit_intercept else 0.0
    coordinates = Coordinates(len(state.theta) - int(unit), unit)
    _keep(model, solution, coordinates, *coordinates.weights(state.theta))
    model._increments = state
    for name in ("problem_", "_starts"):  # the rows of earlier batches are gone
        if hasattr(model, name):
            delattr(model, name)
    return solution, state.moments is not None or solution.status is not Status.BUDGET_SPENT


def errors(model: Any, what: Task) -> Vector:
    """The temporal-difference error of each row: (n,)."""
    problem = what.problem(1.0, model.discount, 0.0)
    values = problem.rows.times(np.append(model.coef_, model.intercept_))
    records: Any = problem.rows.records  # type: ignore[attr-defined]
    return np.asarray(records["reward"] + records["discount"] * values[records["next"]] - values[records["state"]])


def in_blocks(model: Any, states: Any, actions: Any, use: Callable[[Any], Any]) -> list[Any]:
    """What is made of the features of states, or of them with actions, a block at a time."""
    count = int(states.shape[0])
    given = _decisions(model, actions, count)
    policy = None
    if model.kind_ == "action" and given is None:
        if model.policy is None:
            raise InputError(
                "these are action values: give actions=, or set a policy whose probabilities weight them "
                "(model.set_params(policy=...))."
            )
        policy = Policy(model.policy, discrete=model._map.n_actions is not None)
    out = []
    for first in range(0, max(1, count), BLOCK):
        places = np.arange(first, min(first + BLOCK, count))
        part = take(states, places)
        if policy is not None:
            rows = mapping.decided(model._map, part, policy(part, places), places)
        elif given is not None:
            rows = mapping.decided(model._map, part, given.take(places), places)
        else:
            rows = model._map.rows(part, None)
        out.append(use(mapping.checked(rows, len(places), model._coordinates.n_features)))
    return out


def _decisions(model: Any, actions: Any, count: int) -> Decisions | None:
    """What is done in so many states: actions as a user gives them, or probabilities of all of them."""
    if actions is None:
        return None
    if model.kind_ == "state":
        raise InputError("these are state values, the same whatever the action: leave actions out.")
    taken = _checks.as_array("actions", actions)
    if taken.ndim == 0 or len(taken) != count:
        raise InputError(f"actions has shape {taken.shape} and there are {count} states: they must agree.")
    n_actions = model._map.n_actions
    if n_actions is None:
        return Decisions(None, taken)
    if taken.ndim == 2 and taken.shape[1] > 1:
        return Decisions(policies.probabilities("actions", taken, n_rows=count, n_actions=n_actions), None)
    found = policies.numbered(taken)
    if found is None:
        raise InputError(
            f"actions must be whole numbers from 0, one a state, or probabilities of the {n_actions} actions, "
            f"({count}, {n_actions})."
        )
    policies.require_known("actions", found, n_actions)
    return Decisions(None, found)


def _check_numbers(model: Any) -> None:
    _checks.number("discount", model.discount, low=0.0, high=1.0)
    _checks.number("ridge", model.ridge, low=0.0)
    _checks.flag("fit_intercept", model.fit_intercept)


def _describe(model: Any, what: Task) -> None:
    model._map, model.kind_ = what.map, what.kind
    model.features_, model.features_note_, model.evaluates_ = what.map.map, what.note, what.sentence
    model.reference_ = Reference.of(what.given, what.kind, what.map.n_actions)
    model._bootstraps = not bool(what.given.ended.all())
    #: Whether logged actions are the evaluated policy's own, in first states too.
    model._follows = model.policy is None and what.given.next_probabilities is None and not what.given.chosen


def _keep(model: Any, solution: Solution, coordinates: Coordinates, coef: Vector, level: float) -> None:
    model.solution_, model._coordinates, model.coef_, model.intercept_ = solution, coordinates, coef, level
    model.n_iter_ = max(1, solution.epochs)


class Starts(NamedTuple):
    """The first states of a log's episodes, whose labels they have, and their features under the policy if known."""

    states: Any
    labels: Any
    rows: Any


def _starts(model: Any, what: Task) -> Starts | None:
    """For action values, whose policy need not be that of the log; None where episodes are not known."""
    known = model.problem_.episodes
    if what.kind == "state" or known is None or what.given.log.weights is not None:
        return None
    labels = known.labels
    changes = np.ones(len(labels), bool)
    changes[1:] = labels[1:] != labels[:-1]
    seen: dict[Any, int] = {}
    for row in np.flatnonzero(changes).tolist():
        seen.setdefault(labels[row], row)
    first = np.array(list(seen.values()))
    rows = None if what.policy is None else model._coordinates.rows(what.initial(first))
    return Starts(what.given.some_states(first), labels[first], rows)
