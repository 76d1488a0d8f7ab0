"""From a log to a number with an interval, with everything that is said beside it."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from valuate.commands import policies
from valuate.commands.options import Steps, warnings_kept
from valuate.errors import InputError, ValuateWarning

if TYPE_CHECKING:
    from valuate.estimator import LinearValue
    from valuate.inference import PolicyValue
    from valuate.inspecting import Findings
    from valuate.transitions import Transitions


@dataclass(slots=True)
class Evaluation:
    """What `evaluate` found."""

    log: Transitions
    model: LinearValue
    value: PolicyValue
    findings: Findings
    beside: dict[str, PolicyValue]
    notes: list[str] = field(default_factory=list)
    #: Seconds of each step.
    seconds: dict[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Numbers and words, as JSON takes them."""
        solution = self.model.solution_
        return {
            "value": self.value.as_dict(),
            "evaluates": self.model.evaluates_,
            "beside": {name: number.as_dict() for name, number in self.beside.items()},
            "features": {"chosen": self.model.features_note_, "count": len(self.model.coef_)},
            "solution": {
                "status": solution.status.value,
                "message": solution.message,
                "solver": repr(solution.solver),
                "relative_residual": solution.relative_residual,
                "passes": solution.passes,
                "seconds": solution.seconds,
            },
            "reading": None if self.log.reading is None else self.log.reading.as_dict(),
            "findings": self.findings.as_dict(),
            "notes": self.notes,
            "seconds": self.seconds,
        }


def evaluate(
    log: Transitions,
    *,
    features: str,
    discount: float,
    solver: str,
    ridge: float,
    policy: str | None,
    initial_policy: str | None,
    chain: bool,
    confidence: float,
    seed: int,
    intercept: bool,
    tell: Steps,
) -> Evaluation:
    """Fit, put a number on the policy, and look at the log."""
    from valuate import inference, inspecting
    from valuate.estimator import LinearValue
    from valuate.report.fitted import Fitted

    began, seconds = time.perf_counter(), {}

    def lap(name: str) -> None:
        nonlocal began
        now = time.perf_counter()
        seconds[name], began = now - began, now

    if log.episodes is None and not chain:
        raise InputError(
            "an interval needs to know which rows belong together, and this log does not say where episodes begin. "
            "Name their column, --column episodes=id, or give --chain where all rows are one long chain in the order "
            "of time."
        )
    asked = policies.chosen(policy, initial_policy, log)
    with warnings_kept() as notes:
        tell("Solving")
        wanted = None if features == "none" else features
        model = LinearValue(wanted, discount, solver, ridge, intercept, asked.policy, seed)
        model.fit(log, **asked.fit)
        lap("fit")
        tell("Interval")
        value = model.policy_value(
            initial_actions=asked.initial_actions, confidence=confidence, blocks=True if chain else None
        )
        lap("interval")
        tell("Beside it")
        parts = Fitted.of(model, log)
        beside = _beside(inference, log, parts, discount, confidence)
        lap("beside")
        tell("Looking at the log")
        map = model.feature_rows if model.kind_ == "state" else None
        findings = inspecting.inspect(log, map, discount=discount, ridge=ridge)
        lap("doctor")
    return Evaluation(log, model, value, findings, beside, notes, seconds)


def _beside(inference: Any, log: Transitions, parts: Any, discount: float, confidence: float) -> dict[str, PolicyValue]:
    """What else the log says of the same policy; nothing where it has no episodes."""
    problem, off = parts.problem, parts.off_policy
    ratios = None
    if off:
        records = problem.rows.records
        ratios = records["scale"] if log.weights is None and log.probabilities is not None else None
        if ratios is None or bool((ratios == 1.0).all()):
            ratios = None
    try:
        found = inference.baselines(
            log,
            discount,
            ratios=ratios,
            values=parts.values if ratios is not None else None,
            next_values=parts.next_values,
            confidence=confidence,
        )
        fitted = problem, parts.solution, discount
        out = {
            name: inference.with_model_error(number, log, *fitted, ratios)
            if name.startswith("doubly robust")
            else number
            for name, number in found.items()
        }
        if not off and log.ratios is None and not out["logged return"].complete:
            more = inference.continued_return(log, *fitted, confidence=confidence)
            out[more.estimator] = more
    except InputError:
        return {}
    for name, number in out.items():
        if not number.complete:  # what is said of a number belongs beside it, wherever it is printed
            warnings.warn(f"{name}: {number.notes[0]}", ValuateWarning, stacklevel=2)
    return out
