"""The difference of two policies' values, with its interval."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError, InputTypeError
from valuate.inference.value import Difference, PolicyValue, Standing, read_confidence, student

if TYPE_CHECKING:
    from valuate.inference.value import Source


def compare(
    first: PolicyValue, second: PolicyValue, *, confidence: float | None = None, independent: bool = False
) -> Difference:
    """The interval of ``first`` minus ``second``.

    Parameters
    ----------
    first, second : PolicyValue
        Of two policies, or two models, from the same log: what an episode does to both at once is then taken out,
        draw by draw. Or from two logs, with ``independent=True``.
    confidence : float, optional
        None: that of both.
    independent : bool
        Say that the two logs have nothing in common. It is not guessed: two halves of one log that overlap would look
        the same.

    Raises
    ------
    InputError
        Where the difference would mean nothing: other discounts, other initial states, other draws.
    """
    for name, given in (("first", first), ("second", second)):
        if not isinstance(given, PolicyValue):
            raise InputTypeError(f"{name} must be a PolicyValue, not {type(given).__name__}.")
        if given.source is None:
            raise InputError(f"{name} does not say which log it is from: make it with a function of valuate.inference.")
    if confidence is None:
        confidence = first.confidence
        if second.confidence != confidence:
            raise InputError(
                f"the two intervals have confidence {confidence:g} and {second.confidence:g}: say which one is wanted."
            )
    confidence = read_confidence(confidence)
    one, other = first.source, second.source
    assert one is not None and other is not None
    _require_one_question(one, other)
    paired = one.log == other.log
    if paired and independent:
        raise InputError("both values are from the same log: leave independent out, and they are compared by episode.")
    if not paired and not independent:
        raise InputError(
            "the two values are from different logs. Say independent=True where these have no episode in common; "
            "otherwise fit both policies on one log."
        )
    if paired:
        error, degrees, count = _paired(first, second)
    else:
        error, degrees, count = _independent(first, second)
    value = first.value - second.value
    standings = {first.standing, second.standing}
    standing = next(s for s in (Standing.UNDETERMINED, Standing.UNSOLVED, Standing.DETERMINED) if s in standings)
    if standing is Standing.UNDETERMINED:
        error = np.inf
    notes = tuple(dict.fromkeys((*first.notes, *second.notes)))
    return Difference(
        value=value,
        standard_error=error,
        interval=student(value, error, degrees, confidence),
        confidence=confidence,
        episodes=count,
        degrees=degrees,
        method=first.method if first.method == second.method else "draws",
        paired=paired,
        first=first.value,
        second=second.value,
        standing=standing,
        notes=notes,
    )


def _require_one_question(one: Source, other: Source) -> None:
    if one.discount != other.discount:
        raise InputError(
            f"the discounts are {one.discount:g} and {other.discount:g}: these values answer different questions, and "
            "their difference none."
        )
    if one.initial != other.initial:
        raise InputError(
            f'the initial states are "{one.initial}" for one value and "{other.initial}" for the other: ask both for '
            "the value of the same states."
        )


def _paired(first: PolicyValue, second: PolicyValue) -> tuple[float, float, int]:
    assert first.source is not None and second.source is not None
    if first.source.clusters != second.source.clusters or len(first.deviations) != len(second.deviations):
        raise InputError(
            f"both values are from one log, but its draws are {first.episodes:,} {first.method} for one and "
            f"{second.episodes:,} {second.method} for the other, or their initial states differ in number. Give both "
            "the same episodes=, blocks= and initial states."
        )
    gap = first.deviations - second.deviations
    return float(np.sqrt(gap @ gap)), min(first.degrees, second.degrees), first.episodes


def _independent(first: PolicyValue, second: PolicyValue) -> tuple[float, float, int]:
    variances = np.array([first.standard_error, second.standard_error]) ** 2
    total = float(variances.sum())
    if not (np.isfinite(total) and total > 0):
        return float(np.sqrt(total)), min(first.degrees, second.degrees), first.episodes + second.episodes
    # Welch and Satterthwaite.
    degrees: Any = total**2 / float(variances**2 @ (1 / np.array([first.degrees, second.degrees])))
    return float(np.sqrt(total)), float(degrees), first.episodes + second.episodes
