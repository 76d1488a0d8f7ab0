"""Which solver runs, what it is asked for, and what is said about how it ended."""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state

from valuate import _checks, solvers
from valuate.errors import InputError, InputTypeError, SolverError
from valuate.solution import Status

if TYPE_CHECKING:
    from valuate.problem import Problem
    from valuate.solution import Solution
    from valuate.summing import Moments

#: Far below what the noise of a log leaves to know.
TOLERANCE = 1e-8
#: "auto" stops by itself, where the optimiser is so many standard errors from the answer of the log: nearer than `Auto`
#: does elsewhere, for with many features the error that is left may lie along the one direction that is asked for.
STANDARD_ERRORS = 0.01


def find(given: Any) -> Any:
    """The solver itself: one that was given, "auto", or one by its name in small letters."""
    if given == "auto":
        return solvers.Auto(standard_errors=STANDARD_ERRORS)
    if isinstance(given, str):
        known = {name.lower(): getattr(solvers, name) for name in solvers.__all__}
        known = {name: kind for name, kind in known.items() if hasattr(kind, "solve") and name != "stochastic"}
        if given.lower() not in known:
            raise InputError(f"solver must be one of {', '.join(sorted(known))}, or a solver; not {given!r}.")
        return known[given.lower()]()
    if inspect.isclass(given) or not hasattr(given, "solve"):
        advice = f" Make one: {given.__name__}()." if inspect.isclass(given) and hasattr(given, "solve") else ""
        raise InputTypeError(f'solver must be "auto", the name of a solver or a solver, not {given!r}.{advice}')
    return given


def run(model: Any, problem: Problem | Moments, solver: Any) -> Solution:
    """Solve with the budget, tolerance and seed of a model."""
    asked: dict[str, Any] = {"tolerance": tolerance(model, solver), "seed": seed(model.random_state)}
    if model.passes is not None:
        asked["passes"] = model.passes
    found: Solution = solver.solve(problem, **asked)
    return found


def tolerance(model: Any, solver: Any) -> float | None:
    """The relative residual to reach; None leaves the end to the solver."""
    if isinstance(model.tolerance, str):
        if model.tolerance != "auto":
            raise InputError(f'tolerance must be a number above 0, None or "auto", not {model.tolerance!r}.')
        return None if isinstance(solver, solvers.Auto) else TOLERANCE
    return None if model.tolerance is None else _checks.number("tolerance", model.tolerance, above=0.0)


def seed(random_state: Any) -> Any:
    """What scikit-learn calls a random state as what a solver calls a seed; None draws a new one."""
    if random_state is None:
        return np.random.default_rng()
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return int(check_random_state(random_state).randint(2**31 - 1))
    return _checks.whole("random_state", random_state, low=0)


def tell(solution: Solution) -> None:
    """Warn where the solver did not converge; raise where it diverged."""
    if solution.status is Status.DIVERGED:
        raise SolverError(solution.message, solution=solution)
    if solution.status is not Status.CONVERGED:
        warnings.warn(f"{solution.status.value}: {solution.message}", ConvergenceWarning, stacklevel=3)
