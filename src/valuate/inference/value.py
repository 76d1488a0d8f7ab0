"""A number with its interval: what the functions of this package return."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate import _checks
from valuate.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


class Standing(Enum):
    """Whether a number and its interval can be used."""

    #: The log determines the value, and it was computed to well within its standard error.
    DETERMINED = "determined"
    #: The log does not determine the value: the interval is without bounds.
    UNDETERMINED = "not determined"
    #: The equations could not be solved to a tenth of a standard error.
    UNSOLVED = "not solved"


class Source(NamedTuple):
    """What a number was computed from, so that two of them are compared only where that makes sense."""

    #: Digest of the rows' rewards.
    log: bytes
    #: Digest of what counts as one draw.
    clusters: bytes
    #: The largest discount of a row.
    discount: float
    #: "first states", "given" or "sample".
    initial: str


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class PolicyValue:
    """The value of a policy from a log, with its standard error and interval; prints as a table.

    Attributes
    ----------
    value : float
    standard_error : float
        Infinite where the log does not determine the value.
    interval : (float, float)
        By Student's t with ``degrees`` degrees of freedom.
    confidence : float
    episodes : int
        Independent draws that the log was taken to be made of: episodes, blocks or rows.
    degrees : float
    method : {"episodes", "blocks", "rows"}
        What these draws are.
    estimator : str
        "fixed point", "logged return", "PDIS", "weighted PDIS", "weighted IS" or "doubly robust"; with
        ", continued by the model" where episodes that were cut short go on with a model's values.
    complete : bool
        False where episodes were cut short and what would have followed is left out, or taken from values that count
        as exact: the interval is then not one of the policy's value.
    standing : Standing
        Whether the number can be used. Its interval is that of the fixed point, for "fixed point".
    optimisation_error : float
        How far the weights that were given lie from the fixed point, in the value. ``value`` is corrected for it.
    correction : {"deletion", "none"}
        Whether each draw's part in the standard error is what leaving it out changes, exactly, or to first order.
    notes : tuple of str
        What should be known beside the numbers, in sentences.
    bootstrap_error : float or None
    bootstrap_interval : (float, float) or None
        By the multiplier bootstrap, where one was asked for.
    influence : (episodes,) array
        Derivative of the value by the weight of each draw.
    deviations : (k,) array
        Terms whose squares add up to the squared standard error.
    source : Source
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    confidence: float
    episodes: int
    degrees: float
    method: str
    estimator: str
    standing: Standing = Standing.DETERMINED
    optimisation_error: float = 0.0
    correction: str = "none"
    notes: tuple[str, ...] = ()
    bootstrap_error: float | None = None
    bootstrap_interval: tuple[float, float] | None = None
    influence: Vector = field(default_factory=lambda: np.empty(0))
    deviations: Vector = field(default_factory=lambda: np.empty(0))
    source: Source | None = None
    complete: bool = True

    def as_dict(self) -> dict[str, Any]:
        """The numbers and words by name, without arrays, as JSON takes them (infinite ones become None)."""
        hidden = {"influence", "deviations", "source"}
        out = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in hidden}
        out |= {"standing": self.standing.value, "notes": list(self.notes)}
        for name in ("standard_error", "interval", "bootstrap_interval"):
            out[name] = _plain(out[name])
        return out

    def __repr__(self) -> str:
        draws = f"{self.episodes:,} {self.method}"
        lines = [("value", f"{self.value:.6g} ({self.estimator})")]
        if self.standing is Standing.UNDETERMINED:
            lines.append(("interval", "without bounds: the log does not determine the value"))
        else:
            lines += [
                ("standard error", f"{self.standard_error:.3g}, from {draws}"),
                _line(self),
            ]
        if self.estimator == "fixed point" and np.isfinite(self.standard_error):
            share = self.optimisation_error / self.standard_error if self.standard_error > 0 else 0.0
            size = f"{share:.2g} standard errors" if share >= 1e-6 else "below 1e-06 standard errors"
            lines.append(("optimisation error", f"{size}, corrected"))
        if self.bootstrap_error is not None and self.bootstrap_interval is not None:
            low, high = self.bootstrap_interval
            lines.append(("bootstrap", f"standard error {self.bootstrap_error:.3g}, interval {low:.6g} to {high:.6g}"))
        width = max(len(name) for name, _ in lines)
        table = [f"  {name:{width}}  {value}" for name, value in lines]
        return "\n".join(["PolicyValue", *table, *(f"  {note}" for note in self.notes)])

    __str__ = __repr__


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Difference:
    """The difference of two policies' values, first minus second; prints as a table.

    Attributes
    ----------
    value, standard_error, interval, confidence, episodes, degrees, method, standing, notes
        As in `PolicyValue`.
    paired : bool
        Whether both come from one log, so that what moves both together cancels.
    first, second : float
        The two values.
    """

    value: float
    standard_error: float
    interval: tuple[float, float]
    confidence: float
    episodes: int
    degrees: float
    method: str
    paired: bool
    first: float
    second: float
    standing: Standing = Standing.DETERMINED
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The numbers and words by name, as JSON takes them (infinite ones become None)."""
        out = {f.name: getattr(self, f.name) for f in fields(self)}
        out |= {"standing": self.standing.value, "notes": list(self.notes)}
        return {**out, "standard_error": _plain(self.standard_error), "interval": _plain(self.interval)}

    def __repr__(self) -> str:
        how = "paired by" if self.paired else "from independent logs,"
        lines = [
            ("difference", f"{self.value:.6g} ({self.first:.6g} minus {self.second:.6g})"),
            ("standard error", f"{self.standard_error:.3g}, {how} {self.episodes:,} {self.method}"),
            _line(self),
        ]
        width = max(len(name) for name, _ in lines)
        return "\n".join(["Difference", *(f"  {name:{width}}  {text}" for name, text in lines), *self.notes])

    __str__ = __repr__


def _line(number: PolicyValue | Difference) -> tuple[str, str]:
    low, high = number.interval
    text = f"{low:.6g} to {high:.6g} (t with {count(number.degrees)} degrees)"
    return f"{100 * number.confidence:g}% interval", text


def count(degrees: float) -> str:
    """Degrees of freedom, which need not be whole, as people read them."""
    return f"{degrees:,.0f}" if degrees >= 100 else f"{degrees:.4g}"


def student(value: float, error: float, degrees: float, confidence: float) -> tuple[float, float]:
    """The interval around ``value`` by Student's t."""
    from scipy.special import stdtrit

    if not np.isfinite(error) or degrees <= 0:
        return -np.inf, np.inf
    reach = float(stdtrit(degrees, 0.5 + confidence / 2)) * error
    return value - reach, value + reach


def read_confidence(confidence: Any) -> float:
    """A confidence strictly between 0 and 1."""
    found = _checks.number("confidence", confidence, above=0.0, high=1.0)
    if found == 1.0:
        raise InputError("confidence must be below 1: an interval that is always right is all numbers.")
    return found


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, float):
        return value if value is None or np.isfinite(value) else None
    return [_plain(entry) for entry in value]
