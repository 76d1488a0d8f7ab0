"""Seeing that states were transformed on their way here and next states were not, which would be a silent wrong number.

A Pipeline gives its last step transformed states, and next states as they were unless its ``transform_input`` names
them. Where both have as many columns nothing in the arrays proves it, so two things are looked at: who is calling, and
whether the columns lie where those of the states do. The first is certain for scikit-learn's own wrappers and is an
error; the second is a sign and is a warning.
"""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline

from valuate import _checks
from valuate.errors import InputError, ValuateWarning

if TYPE_CHECKING:
    from collections.abc import Iterator

    from valuate.estimator.inputs import Given

#: Rows that are looked at.
SAMPLE = 10_000
#: A column lies elsewhere when its mean is this many standard deviations away, or its spread this many times another.
AWAY, WIDER = 4.0, 30.0
#: Fewer rows tell nothing.
FEWEST = 30

_FORM = "Put the transformers into the model instead: LinearValue(features=make_pipeline(...))"


def require_same_space(model: Any, given: Given, verb: str) -> None:
    """Refuse, or warn of, next states that are not in the space of the states.

    Parameters
    ----------
    model : LinearValue
    given : Given
    verb : {"fit", "score"}
        Which of the model's methods is running.
    """
    if given.ended.all():
        return
    for wrapper, method in _wrappers(model):
        if isinstance(wrapper, TransformedTargetRegressor):
            raise InputError(
                "TransformedTargetRegressor shifts rewards, and the value of a shifted reward is not a shifted value "
                "where next states count. Leave it out: units of rewards make no difference to a linear solver."
            )
        if method == "score" or "next_states" not in (getattr(wrapper, "transform_input", None) or ()):
            raise InputError(
                f"a Pipeline has transformed the states before {verb}, and not the next states. {_FORM}"
                + (". (A Pipeline's score() cannot transform next states.)" if method == "score" else _ROUTING)
            )
    _look(given)


_ROUTING = (
    "; or enable metadata routing, with set_fit_request(next_states=True) and Pipeline(..., "
    'transform_input=["next_states"]).'
)


def _wrappers(model: Any) -> Iterator[tuple[Any, str]]:
    """The Pipelines with transformers, and transformers of targets, that are calling this model as their last step.

    A Pipeline that is itself fitting its transformers is no such caller: the model is then a part of one of these.
    """
    inner: set[int] = set()
    frame = sys._getframe(2)
    while frame is not None:
        method = frame.f_code.co_name
        caller = frame.f_locals.get("self") if method in ("fit", "_fit", "fit_transform", "score") else None
        if isinstance(caller, Pipeline):
            if method == "_fit":
                inner.add(id(caller))
            elif id(caller) not in inner and _transforms(caller) and _holds(caller.steps[-1][1], model):
                yield caller, method
        elif isinstance(caller, TransformedTargetRegressor) and method == "fit" and _holds(caller.regressor, model):
            yield caller, method
        frame = frame.f_back  # type: ignore[assignment]


def _transforms(pipeline: Pipeline) -> bool:
    return any(step is not None and step != "passthrough" for _, step in pipeline.steps[:-1])


def _holds(estimator: Any, model: Any) -> bool:
    """Whether an estimator is the model, or has one of its kind among its parameters."""
    if isinstance(estimator, type(model)):
        return True
    parameters = estimator.get_params(deep=True).values() if hasattr(estimator, "get_params") else ()
    return any(isinstance(value, type(model)) for value in parameters)


def _look(given: Given) -> None:
    """Warn where most columns of the next states lie elsewhere than those of the states."""
    states, nexts = given.states, given.next_states
    goes_on = np.flatnonzero(~given.ended)
    dense = not (given.frames is not None or _checks.is_sparse(states))
    if not dense or states.ndim != 2 or {states.dtype.kind, nexts.dtype.kind} - set("iuf") or len(goes_on) < FEWEST:
        return
    rows = goes_on[:: max(1, len(goes_on) // SAMPLE)]
    here, there = (np.asarray(part[rows], dtype=np.float64) for part in (states, nexts))
    spreads = here.std(axis=0), there.std(axis=0)
    varies = (spreads[0] > 0) & (spreads[1] > 0)
    if not varies.any():
        return
    one, other = (spread[varies] for spread in spreads)
    far = np.abs(here.mean(axis=0) - there.mean(axis=0))[varies] > AWAY * np.maximum(one, other)
    odd = far | (np.maximum(one, other) > WIDER * np.minimum(one, other))
    if 2 * odd.sum() > len(odd):
        column = int(np.flatnonzero(varies)[odd.argmax()])
        warnings.warn(
            f"next_states lie elsewhere than X in {int(odd.sum())} of {len(odd)} columns that vary: column {column} "
            f"has mean {here[:, column].mean():.3g} and spread {spreads[0][column]:.2g} in X, and "
            f"{there[:, column].mean():.3g} and {spreads[1][column]:.2g} in next_states. If X was scaled or "
            f"transformed, so must next_states be. {_FORM}.",
            ValuateWarning,
            stacklevel=4,
        )
