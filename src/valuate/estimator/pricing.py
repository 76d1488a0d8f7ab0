"""The number that a model stands for: the value of its policy, with an interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from valuate import inference
from valuate.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from valuate.inference import Difference, PolicyValue

__all__ = ["compare_policies"]


def policy_value(model: Any, initial_states: Any, initial_actions: Any, asked: dict[str, Any]) -> PolicyValue:
    """See `LinearValue.policy_value`."""
    if not hasattr(model, "problem_"):
        raise InputError(
            "an interval needs the rows, which are not kept by partial_fit nor in a file: fit the model to the log."
        )
    if initial_states is not None:
        initial = model.feature_rows(initial_states, initial_actions)
        return inference.policy_value(model.problem_, model.solution_, initial, **asked)
    if model.kind_ == "state":
        if initial_actions is not None:
            raise InputError("these are state values, the same whatever the action: leave initial_actions out.")
        return inference.policy_value(model.problem_, model.solution_, None, **asked)
    starts = model._starts
    if initial_actions is not None and starts is None:
        raise InputError("initial_actions need initial_states, or a log with episodes (groups=) and without weights.")
    if starts is not None and asked["blocks"] in (None, False) and asked["episodes"] is None:
        rows = starts.rows if initial_actions is None else model.feature_rows(starts.states, initial_actions)
        if rows is not None:
            # One long chain is cut into blocks, and its first state is no sample.
            sampled = len(starts.labels) > 1 and not asked["fixed_initial"]
            asked = {**asked, "initial_episodes": starts.labels if sampled else None}
            return inference.policy_value(model.problem_, model.solution_, rows, **asked)
    if model.policy is None and not model._follows:
        raise InputError(
            "first states have no action of the policy: it was given for the next states alone. Give initial_actions "
            "for the first states of the episodes, one each or the probabilities of all, or the policy as a function."
        )
    if model.policy is None:
        return inference.policy_value(model.problem_, model.solution_, None, **asked)
    raise InputError(
        "the first states under a policy are known for logs with episodes (groups=) and without weights, and where "
        "episodes are the draws: give initial_states."
    )


def compare_policies(
    first: Any, second: Any, *, confidence: float | None = None, independent: bool = False
) -> Difference:
    """The interval of the difference of two policies' values, ``first`` minus ``second``.

    Parameters
    ----------
    first, second : fitted LinearValue, or PolicyValue
        Of a model, `LinearValue.policy_value` with the episodes' first states is taken.
    confidence, independent
        As in `valuate.inference.compare`: two models of one log are compared episode by episode.

    Returns
    -------
    Difference
    """
    values = [_value(name, given, confidence) for name, given in (("first", first), ("second", second))]
    return inference.compare(*values, confidence=confidence, independent=independent)


def _value(name: str, given: Any, confidence: float | None) -> Any:
    if isinstance(given, inference.PolicyValue):
        return given
    if not hasattr(given, "policy_value"):
        raise InputTypeError(f"{name} must be a fitted LinearValue or a PolicyValue, not {type(given).__name__}.")
    return given.policy_value(confidence=0.95 if confidence is None else confidence)
