"""What a report is made of, before anything is drawn or written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from valuate.experiments.results import Curve, Spread

Vector = NDArray[np.float64]


class Verdict(Enum):
    """How a number of ours stands to one of the paper's, or whether something that the paper says came out."""

    AGREES = "agrees"
    OVERLAPS = "within the spread"
    DIFFERS = "differs"
    OPEN = "not compared"


#: What the verdicts mean, for the page.
RULE = (
    f"<b>{Verdict.AGREES.value}</b>: the two means differ by at most t standard errors of their difference, "
    "t &radic;(s&sup2;/r + S&sup2;/R), for r repetitions of ours with standard deviation s and R of the paper's with "
    "S, plus the half unit that the paper rounds away; t is the 97.5% point of Student's distribution at Welch's "
    "degrees of freedom, 2 for many repetitions and more for few. Where two equal things are compared this fails "
    "about one time in twenty, with three repetitions of ours one in thirteen, with two one in eight. "
    f"<b>{Verdict.OVERLAPS.value}</b>: beyond that, but by at most one standard deviation of a repetition, "
    "&radic;((s&sup2;+S&sup2;)/2): single repetitions could be either's, the means are not the same. "
    f"<b>{Verdict.DIFFERS.value}</b>: further apart. "
    f"<b>{Verdict.OPEN.value}</b>: data sets of another size, or a single run."
)


def compare(ours: Spread, paper: Spread, *, rounding: float = 0.5) -> Verdict:
    """The verdict on a mean of ours beside one of the paper's, by the rule above; an unknown deviation counts as 0."""
    if ours.count < 2:
        return Verdict.OPEN
    apart = max(0.0, abs(ours.mean - paper.mean) - rounding)
    s, big_s = ours.sd or 0.0, paper.sd or 0.0
    if apart <= _most_by_chance(s**2 / ours.count, ours.count, big_s**2 / paper.count, paper.count):
        return Verdict.AGREES
    return Verdict.OVERLAPS if apart <= math.sqrt((s**2 + big_s**2) / 2.0) else Verdict.DIFFERS


def _most_by_chance(ours: float, r: int, paper: float, big_r: int) -> float:
    """What two means with these squared standard errors differ by at most in 19 of 20 times: Welch's test."""
    total = ours + paper
    if total == 0.0:
        return 0.0
    freedom = total**2 / (ours**2 / (r - 1) + (paper**2 / (big_r - 1) if big_r > 1 else 0.0))
    return float(stdtrit(freedom, 0.975)) * math.sqrt(total)


def holds(true: bool) -> Verdict:
    """The verdict on something that is either so or not."""
    return Verdict.AGREES if true else Verdict.DIFFERS


@dataclass(frozen=True, slots=True)
class Sentence:
    """Something that the results say; with a verdict where it is about something that the paper says."""

    text: str
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A line of a chart: a method's curve, under the name that gives it its colour."""

    method: str
    label: str
    curve: Curve
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over one axis, on a logarithmic scale upwards."""

    name: str
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]


@dataclass(frozen=True, slots=True)
class Compared:
    """A cell of a table: our number, the paper's, and the verdict."""

    ours: Spread
    paper: Spread | None = None
    verdict: Verdict = Verdict.OPEN
    digits: int = 0


Entry: TypeAlias = "str | float | int | None | Compared"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of entries under columns."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Entry]]
    note: str = ""


@dataclass(slots=True)
class Section:
    """A part of the report; its note stands under the charts."""

    name: str
    title: str
    lead: str = ""
    sentences: list[Sentence] = field(default_factory=list)
    charts: list[Chart] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    note: str = ""


#: Names of methods for readers, in the order of the paper.
LABELS = {
    "gtd2": "GTD2",
    "svrg": "SVRG",
    "saga": "SAGA",
    "batching-svrg": "Batching SVRG",
    "scsg": "SCSG",
    "lstd": "LSTD",
}


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, for readers."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-3 <= abs(value) < 1e6:
        places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{value:,.{places}f}"
    mantissa, power = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(power)}"


def span(seconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("years", 31_557_600.0), ("days", 86_400.0), ("hours", 3600.0), ("minutes", 60.0)):
        if seconds >= 2 * size:
            return f"{number(seconds / size, 2)} {unit}"
    return f"{number(seconds, 2)} seconds"


def listed(words: Sequence[str]) -> str:
    """Words as a list in a sentence."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1] if words else "none"
