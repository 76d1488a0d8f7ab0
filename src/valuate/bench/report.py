"""What was measured, and what it says of the targets."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Literal

from valuate.bench import machine
from valuate.bench.scale import Scale
from valuate.bench.timing import Taken

if TYPE_CHECKING:
    from rich.table import Table

Direction = Literal["at most", "at least"]
Verdict = Literal["met", "missed", "skipped", "failed"]

COLOURS = {"met": "green", "missed": "red", "skipped": "dim", "failed": "red"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A line of the benchmark before it is measured.

    Parameters
    ----------
    name : str
    what : str
        What the value is, for a reader.
    target : float
    direction : {"at most", "at least"}
        On which side of the target the value should be. Where it is a ratio of samples, "at most" divides ours by the
        other's and "at least" the other's by ours.
    unit : str
        Of the value; "x" for ratios.
    take : callable
        Measures, given a `Scale`.
    """

    name: str
    what: str
    target: float
    direction: Direction
    take: Callable[[Scale], Taken]
    unit: str = "x"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampled:
    """The samples of one of the things compared; ``unit`` is that of each."""

    best: float
    median: float
    samples: list[float]
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A line of the benchmark.

    Attributes
    ----------
    name, what, target, direction, unit
        As in `Target`.
    value : float or None
        The ratio of the best samples, which is judged. None where nothing was measured.
    value_of_medians : float or None
        The ratio of the medians; far from ``value`` where something else was using the machine.
    verdict : {"met", "missed", "skipped", "failed"}
    sampled : dict of Sampled
        By name: first ours, then what it is held against, then what is shown beside.
    notes : list of str
        Why it was skipped or failed; what else a reader should know.
    """

    name: str
    what: str
    target: float
    direction: Direction
    unit: str
    value: float | None = None
    value_of_medians: float | None = None
    verdict: Verdict = "skipped"
    sampled: dict[str, Sampled] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    @property
    def measured(self) -> str:
        """The value as text, or why there is none."""
        return _with_unit(self.value, self.unit) if self.value is not None else ", ".join(self.notes)

    @property
    def wanted(self) -> str:
        """The target as text."""
        return f"{'<=' if self.direction == 'at most' else '>='} {_with_unit(self.target, self.unit)}"

    @property
    def shown(self) -> str:
        """The best samples as text: ours, what it is held against and what stands beside, with notes."""
        parts = [f"{name} {_with_unit(found.best, found.unit)}" for name, found in self.sampled.items()]
        beside = list(self.sampled.values())[2:]
        if beside and self.value_of_medians is not None:
            ours = next(iter(self.sampled.values())).best
            power = 1 if self.direction == "at most" else -1
            parts[2:] = [
                f"{part} ({_with_unit((ours / found.best) ** power, 'x')})"
                for part, found in zip(parts[2:], beside, strict=True)
            ]
        return "; ".join(parts + (self.notes if self.value is not None else []))


def judged(line: Target, taken: Taken) -> Measurement:
    """The measurement that ``taken`` makes of a line."""
    sampled = {
        name: Sampled(best=min(found), median=median(found), samples=found, unit=taken.unit)
        for name, found in taken.samples.items()
    }
    value, of_medians = taken.value, None
    if value is None:
        ours, other = list(sampled.values())[:2]
        if line.direction == "at least":
            ours, other = other, ours
        value, of_medians = ours.best / other.best, ours.median / other.median
    met = value <= line.target if line.direction == "at most" else value >= line.target
    return Measurement(
        **_heading(line),
        value=value,
        value_of_medians=of_medians,
        verdict="met" if met else "missed",
        sampled=sampled,
        notes=taken.notes,
    )


def unmeasured(line: Target, verdict: Verdict, reason: str) -> Measurement:
    """A line without a value: "skipped" or "failed", and why."""
    return Measurement(**_heading(line), verdict=verdict, notes=[reason])


@dataclass(frozen=True, slots=True)
class Report:
    """All measurements of a run, and the machine that they were made on."""

    machine: dict[str, Any]
    scale: dict[str, int]
    measurements: list[Measurement]

    @property
    def missed(self) -> list[Measurement]:
        """Lines whose target was missed, or whose measurement failed."""
        return [line for line in self.measurements if line.verdict in ("missed", "failed")]

    @property
    def met(self) -> list[Measurement]:
        """Lines whose target was met."""
        return [line for line in self.measurements if line.verdict == "met"]

    def to_json(self) -> str:
        """Everything, with all samples."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> Report:
        """The report that `to_json` wrote."""
        read = json.loads(text)
        lines = [
            Measurement(**{**line, "sampled": {name: Sampled(**found) for name, found in line["sampled"].items()}})
            for line in read["measurements"]
        ]
        return cls(read["machine"], read["scale"], lines)

    def header(self) -> list[str]:
        """The machine in a few lines."""
        return machine.lines(self.machine)

    def table(self) -> Table:
        """The lines as a table for a terminal."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        for title in ("measurement", "measured", "target", "verdict"):
            table.add_column(title, justify="right" if title in ("measured", "target") else "left", no_wrap=True)
        table.add_column("what, and the best samples: ours; held against; beside")
        for line in self.measurements:
            below = line.shown or ", ".join(line.notes)
            table.add_row(
                line.name,
                "-" if line.value is None else line.measured,
                line.wanted,
                Text(line.verdict, COLOURS[line.verdict]),
                Text.assemble(line.what, "\n", (below, "dim")),
            )
        return table

    def summary(self) -> str:
        """How many targets were met, and which were not, in a sentence."""
        judged_lines = len(self.met) + len(self.missed)
        missed = f"; missed: {', '.join(line.name for line in self.missed)}" if self.missed else ""
        return f"{len(self.met)} of {judged_lines} targets met{missed}."


def _heading(line: Target) -> dict[str, Any]:
    return {name: getattr(line, name) for name in ("name", "what", "target", "direction", "unit")}


def _with_unit(value: float, unit: str) -> str:
    digits = f"{value:,.0f}" if abs(value) >= 100 or value == 0 else f"{value:.3g}"
    return digits + unit if unit == "x" else f"{digits} {unit}"
