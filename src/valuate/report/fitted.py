"""What a page on a fit is made of: the rows' values and errors, from a fitted model or from its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from valuate import inference
from valuate.certificate import forms_matrices
from valuate.errors import InputError, InputTypeError, ValuateError
from valuate.inspecting.look import Look

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.certificate import Certificate
    from valuate.inference import Difference, PolicyValue
    from valuate.problem import Problem
    from valuate.solution import Solution, Trace
    from valuate.transitions import Transitions

    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]

#: A solver that recorded nothing is run again for its path, where it took no more seconds than this.
SECONDS = 5.0
#: Points of such a path.
POINTS = 40


@dataclass(eq=False)
class Fitted:
    """A problem and its solution, with what is known around them.

    Attributes
    ----------
    problem : Problem
    solution : Solution
    log : Transitions or None
        The log that the problem is of, row by row.
    predict : callable or None
        From states to values; None where that takes more than the states.
    sentence : str
        What is evaluated.
    settings : mapping of str to str
        What the fit was asked for, for readers.
    seed : int
        Of the solver.
    off_policy : bool
        Whether the values are of another policy than the one that wrote the log.
    """

    problem: Problem
    solution: Solution
    log: Transitions | None = None
    predict: Callable[[Any], Vector] | None = None
    sentence: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    off_policy: bool = False

    @classmethod
    def of(cls, model: Any, log: Transitions | None) -> Self:
        """From a fitted `valuate.LinearValue`, or what is one of these already."""
        if isinstance(model, cls):
            if log is not None:
                model.log = log
            return model._checked()
        if not hasattr(model, "predict") or not hasattr(model, "get_params"):
            raise InputTypeError(
                f"model must be a fitted LinearValue, or report.Fitted(problem, solution), not {type(model).__name__}."
            )
        if not hasattr(model, "solution_"):
            raise InputError("the model is not fitted: call fit with the log first.")
        if not hasattr(model, "problem_"):
            raise InputError(
                "a page needs the rows, which are not kept by partial_fit nor in a file: fit the model to the log."
            )
        settings = {name: _described(value) for name, value in model.get_params(deep=False).items()}
        if model.features_note_:
            settings["features, as chosen"] = model.features_note_
        elif model.features is not None:
            settings["features, fitted"] = _described(model.features_)
        seed = model.random_state if isinstance(model.random_state, int) else 0
        predict = model.predict if model.kind_ == "state" or model.policy is not None else None
        other = model.policy is not None or not getattr(model, "_follows", True)
        return cls(model.problem_, model.solution_, log, predict, model.evaluates_, settings, seed, other)._checked()

    def _checked(self) -> Self:
        if self.log is not None and len(self.log) != self.problem.n_rows:
            raise InputError(
                f"the log has {len(self.log)} rows and the fit {self.problem.n_rows}: it is another one's."
            )
        if len(self.solution.theta) != self.problem.dim:
            raise InputError(
                f"the solution has {len(self.solution.theta)} weights and the problem {self.problem.dim} features."
            )
        return self

    @cached_property
    def certificate(self) -> Certificate:
        """How good the solution is."""
        return self.solution.certificate(self.problem)

    @cached_property
    def records(self) -> Any:
        """What the problem keeps of each row beside its features."""
        return self.problem.rows.records  # type: ignore[attr-defined]

    @cached_property
    def _stored(self) -> Vector:
        return self.solution.values(self.problem)

    @cached_property
    def values(self) -> Vector:
        """The value of each row's state, or of its action in it: (n,)."""
        return np.asarray(self._stored[self.records["state"]])

    @cached_property
    def next_values(self) -> Vector:
        """The value of what follows each row, 0 where nothing does: (n,)."""
        return np.where(self.records["discount"] > 0, self._stored[self.records["next"]], 0.0)

    @cached_property
    def errors(self) -> Vector:
        """The temporal-difference error of each row: (n,)."""
        records = self.records
        return np.asarray(records["reward"] + records["discount"] * self.next_values - self.values)

    @property
    def discount(self) -> float:
        """The largest discount of a row."""
        return float(self.records["discount"].max())

    @cached_property
    def look(self) -> Look | None:
        """The log as the doctor sees it."""
        return None if self.log is None else Look(self.log, min(1.0, self.discount))

    @cached_property
    def positions(self) -> Index | None:
        """The number of each row in its episode, from 0; None where episodes are not known."""
        if self.look is None or not self.look.known:
            return None
        lengths = self.look.lengths
        first = self.look.last - lengths + 1
        return np.arange(self.problem.n_rows) - np.repeat(first, lengths)

    def beyond_features(self, found: PolicyValue) -> Difference | None:
        """What the episodes brought, less the value, with an interval of 99%; None where nothing can be said.

        Logged returns need no features. Where they are those of the policy that is evaluated, and the interval leaves
        0 out, the features cannot tell something that matters.
        """
        if self.log is None or self.off_policy or self.log.ratios is not None:
            return None
        try:
            returns = inference.continued_return(self.log, self.problem, self.solution, self.discount)
            gap = inference.compare(returns, found, confidence=0.99)
        except ValuateError:
            return None
        return gap if np.isfinite(gap.standard_error) else None

    @cached_property
    def trace(self) -> Trace | None:
        """The solver's path: as it was recorded or, where it was quick, from the same run again; None for neither."""
        solution = self.solution
        if len(solution.trace) > 2:
            return solution.trace
        again = 0 < solution.passes < np.inf and solution.epochs > 0 and solution.seconds <= SECONDS
        if not again or not forms_matrices(self.problem):
            return None
        try:
            found = solution.solver.solve(
                self.problem,
                passes=solution.passes,
                record=max(solution.passes / POINTS, 1e-3),
                seed=self.seed,
            )
        except (ValuateError, TypeError, AttributeError):
            return None
        return found.trace if len(found.trace) > 2 else None


def _described(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, str):
        return value
    if callable(value) and hasattr(value, "__name__"):
        return str(value.__name__)
    words = " ".join(repr(value).split())
    return words if len(words) <= 300 else f"{words[:297]}..."
