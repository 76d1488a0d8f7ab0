"""What the doctor says: findings, and the facts that they rest on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from rich.console import Group


class Severity(StrEnum):
    """How bad it is."""

    #: The answer would be wrong.
    WRONG = "wrong"
    #: The answer may be wrong, or worse than it could be.
    WARNING = "warning"
    #: Worth knowing.
    NOTE = "note"


#: Every code that a finding can have, and what it stands for.
CODES = {
    "next-equals-state": "the next states are the states",
    "shifted": "the next states are some rows off",
    "backwards": "rows run backwards in time, or state and next state are swapped",
    "interleaved": "rows of several recordings alternate",
    "misaligned": "next states that are not the state of the following row",
    "unordered": "rows are not in order of time",
    "ends-late": "flags stand one row after the end that they mean",
    "goes-on": "terminated rows after which the process goes on",
    "reset-as-next": "truncated rows whose next state belongs to the next episode",
    "padding": "a row after each end that is no transition",
    "row-after-end": "rows after an end, in the same episode",
    "no-ends": "episodes end and no flag says how",
    "no-terminated": "no row is terminated",
    "unflagged-ends": "ends of episodes without a flag",
    "both-flags": "rows that are terminated and truncated",
    "time-limit": "time limits recorded as terminations",
    "not-contiguous": "episodes whose rows do not lie together",
    "episodes-unknown": "nothing says where episodes begin",
    "few-episodes": "few episodes",
    "constant-columns": "columns of the states that never change",
    "duplicate-columns": "columns of the states that are equal",
    "missing-code": "numbers that stand for a missing one",
    "constant-rewards": "rewards that are all equal",
    "reward-outliers": "rewards far away from all others",
    "ratio-outliers": "importance ratios that outweigh the others",
    "ratio-mean": "importance ratios whose mean is not 1",
    "few-effective-rows": "ratios or weights that leave few rows",
    "probabilities": "probabilities that do not fit the logged actions",
    "copies": "rows that are written more than once",
    "endless": "a sum of rewards without an end",
    "horizon": "a discount that looks further than the log",
    "discounted-away": "rewards that the discount leaves nothing of",
    "features-fail": "features that cannot be computed",
    "unused-features": "features that are 0 in every row",
    "duplicate-features": "features that are multiples of each other",
    "rank": "features that depend on each other",
    "condition": "features that nearly depend on each other",
    "singular": "equations without a unique answer",
    "indefinite": "A is not positive definite",
    "few-rows": "few rows for so many features",
    "unused-id": "a column that was not used and looks like ids of episodes",
    "unused-flag": "a column that was not used and looks like the ends of episodes",
    "dropped": "rows that were dropped in reading",
    "reading": "remarks of the reader",
}

_ORDER = tuple(Severity)
_COLOURS = {Severity.WRONG: "bold red", Severity.WARNING: "yellow", Severity.NOTE: "cyan"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the doctor found.

    Attributes
    ----------
    severity : Severity
        "wrong", "warning" or "note"; it compares equal to the word.
    code : str
        A name for programs; `CODES` has them all.
    message : str
        What was found, in a sentence.
    where : str
        The first place: "row 17", "column 2 of states", "episode 4"; or empty.
    advice : str
        What to do, in a sentence or two; or empty.
    """

    severity: Severity
    code: str
    message: str
    where: str = ""
    advice: str = ""

    def as_dict(self) -> dict[str, str]:
        """The fields by name."""
        return {
            "severity": self.severity.value,
            "code": self.code,
            "message": self.message,
            "where": self.where,
            "advice": self.advice,
        }

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        advice = f" {self.advice}" if self.advice else ""
        return f"{self.severity}: {self.message}{place}{advice}"


@dataclass(frozen=True, slots=True, repr=False)
class Findings:
    """What `valuate.inspect` found; prints as text, and goes through a loop as a list of `Finding`.

    Attributes
    ----------
    findings : tuple of Finding
        The worst first.
    facts : dict
        Counts and measures by name: rows, episodes, lengths, columns, rewards, ratios, features, ...
    """

    findings: tuple[Finding, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether nothing was found that would make the answer wrong."""
        return not self.of(Severity.WRONG)

    @property
    def exit_code(self) -> int:
        """0 where `ok`, else 1: what the command line ends with."""
        return 0 if self.ok else 1

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes of the findings, in order."""
        return tuple(found.code for found in self.findings)

    def of(self, severity: str) -> tuple[Finding, ...]:
        """The findings of one severity."""
        return tuple(found for found in self.findings if found.severity == severity)

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers, text, lists and dicts, for JSON; what is not finite becomes None."""
        return {
            "ok": self.ok,
            "counts": {severity.value: len(self.of(severity)) for severity in Severity},
            "findings": [found.as_dict() for found in self.findings],
            "facts": _plain(self.facts),
        }

    def table(self) -> Group:
        """Two tables and a closing sentence for `rich.console.Console.print`."""
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        facts = Table(box=None, show_header=False, pad_edge=False)
        facts.add_column(style="dim", no_wrap=True)
        facts.add_column()
        for name, value in self.lines():
            facts.add_row(Text(name), Text(value))
        parts: list[Any] = [facts]
        if self.findings:
            table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
            table.add_column("")
            table.add_column("finding", no_wrap=True)
            table.add_column("what, and what to do")
            for found in self.findings:
                said = Text(found.message)
                said.append(f" ({found.where})" if found.where else "", style="dim")
                said.append(f" {found.advice}" if found.advice else "", style="italic")
                table.add_row(Text(found.severity.value, style=_COLOURS[found.severity]), Text(found.code), said)
            parts += [Text(), table]
        return Group(*parts, Text(), Text(self.verdict, style="bold red" if not self.ok else "bold"))

    @property
    def verdict(self) -> str:
        """The closing sentence."""
        wrong, warnings = len(self.of(Severity.WRONG)), len(self.of(Severity.WARNING))
        more = f", and {warnings} warning{'s' * (warnings != 1)}" if warnings else ""
        if wrong:
            return f"{wrong} thing{'s' * (wrong != 1)} would make the answer wrong{more}."
        if warnings:
            return f"Nothing that would make the answer wrong; {warnings} warning{'s' * (warnings != 1)}."
        return "Nothing that would make the answer wrong."

    def lines(self) -> list[tuple[str, str]]:
        """The facts as names and words, for readers."""
        return [(name, _words(value)) for name, value in self.facts.items()]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, index: int) -> Finding:
        return self.findings[index]

    def __str__(self) -> str:
        lines = self.lines()
        width = max((len(name) for name, _ in lines), default=0)
        facts = [f"  {name:{width}}  {value}" for name, value in lines]
        return "\n".join(["The log", *facts, *map(str, self.findings), self.verdict])

    __repr__ = __str__


def ordered(findings: Iterator[Finding]) -> tuple[Finding, ...]:
    """The worst first, otherwise in the order of the checks."""
    return tuple(sorted(findings, key=lambda found: _ORDER.index(found.severity)))


def share(part: float, whole: float) -> str:
    """A share in percent that is 0 or 100 only where it is exactly that."""
    if not whole or part == whole or not part:
        return "100%" if part else "0%"
    percent = 100 * part / whole
    return "below 0.1%" if percent < 0.1 else "above 99.9%" if percent > 99.9 else f"{percent:.3g}%"


def plural(count: int, one: str, many: str | None = None) -> str:
    """A count with its noun."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def be(count: int) -> str:
    """The verb that goes with a count."""
    return "is" if count == 1 else "are"


def have(count: int) -> str:
    """The verb that goes with a count."""
    return "has" if count == 1 else "have"


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(part)}" for name, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_words, value))
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, int | np.integer):
        return f"{value:,}"
    if isinstance(value, float | np.floating):
        value = float(value)
        return f"{value:,.4g}" if 1e-3 <= abs(value) < 1e6 or value == 0 else f"{value:.3g}"
    return "unknown" if value is None else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
