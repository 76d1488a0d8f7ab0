"""What came of the cells: numbers for programs, tables for readers."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from valuate.bench import machine
from valuate.bench.accuracy.contestants import Run
from valuate.bench.accuracy.theirs import BASELINE
from valuate.bench.accuracy.yardstick import ACCURACIES
from valuate.errors import InputError

if TYPE_CHECKING:
    from rich.table import Table

#: The one that is held against the fastest of all others.
AUTO = "Auto"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """A cell, measured.

    Attributes
    ----------
    cell : dict
        Its settings, ``name``, ``bytes`` of features and ``ridge``.
    build_seconds : float
        What it took to build the `Problem` from arrays; in every ``total_seconds`` of ours.
    limit_seconds : float
        How long a run could take.
    floor, floor_error : float
        The MSPBE that one standard error is, and how well it is known.
    norm, reference : str
        Of MSPBE and floor; what the floor was taken at.
    at_zero : dict
        ``relative_residual`` and ``ratio`` of theta = 0, where everyone starts.
    condition : list or None
        Of C with columns scaled alike, as measured; and whether exactly.
    blas : list of dict
        What threadpoolctl said in the process that measured.
    notes : list of str
    runs : list of Run
    failed : str
        Why there is nothing, where there is nothing.
    """

    cell: dict[str, Any]
    build_seconds: float = 0.0
    limit_seconds: float = 0.0
    floor: float = 0.0
    floor_error: float = 0.0
    norm: str = ""
    reference: str = ""
    at_zero: dict[str, float] = field(default_factory=dict)
    condition: list[Any] | None = None
    blas: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    failed: str = ""

    @classmethod
    def from_dict(cls, read: dict[str, Any]) -> CellResult:
        """From what `taking.take` answers, or a file."""
        return cls(**{**read, "runs": [Run(**run) for run in read.get("runs", [])]})

    @property
    def name(self) -> str:
        """Of the cell."""
        return str(self.cell["name"])

    def run(self, solver: str) -> Run | None:
        """That of one solver."""
        return next((run for run in self.runs if run.solver == solver), None)

    def seconds(self, solver: str, accuracy: str) -> float:
        """Until it had the accuracy, building included; infinite where it did not."""
        return total(self.run(solver), accuracy)

    def fastest(self, accuracy: str, *, but: str | None = None) -> Run | None:
        """The run that had the accuracy first, building included."""
        there = [run for run in self.runs if accuracy in run.reached and run.solver != but]
        return min(there, key=lambda run: total(run, accuracy), default=None)

    def order(self) -> list[Run]:
        """From the fastest to the slowest, by the first accuracy that a run has."""
        return sorted(self.runs, key=lambda run: [total(run, accuracy.name) for accuracy in ACCURACIES])

    def heading(self) -> str:
        """The cell in a line."""
        cell = self.cell
        what = f"n={cell['n']:,}, d={cell['dim']:,}, {cell['dtype']}, {'off' if cell['off_policy'] else 'on'}-policy"
        condition = ""
        if self.condition is not None:
            value, exact = self.condition
            condition = f", condition of C {'' if exact else 'at least '}{value:.1e}"
        ridge = f", ridge {cell['ridge']:.1e}" if cell["ridge"] else ""
        zero = math.sqrt(self.at_zero["ratio"])
        return (
            f"{self.name}: {what}{condition}{ridge}; building the problem {seconds(self.build_seconds)}; theta = 0 is "
            f"{zero:.3g} standard errors away"
        )


def total(run: Run | None, accuracy: str) -> float:
    """Seconds to an accuracy, building included; infinite where it was not reached."""
    if run is None or accuracy not in run.reached:
        return math.inf
    return float(run.reached[accuracy]["total_seconds"])


@dataclass(frozen=True, slots=True)
class AccuracyReport:
    """All cells of a run, and the machine that they were measured on.

    Attributes
    ----------
    machine : dict
    grid : str
    limits : dict
    accuracies : dict
        What is measured to, by name.
    cells : list of CellResult
    left_out : dict
        Cells that were not measured, and why.
    """

    machine: dict[str, Any]
    grid: str
    limits: dict[str, float]
    cells: list[CellResult]
    left_out: dict[str, str] = field(default_factory=dict)
    accuracies: dict[str, str] = field(default_factory=lambda: {one.name: one.what for one in ACCURACIES})

    def to_json(self) -> str:
        """Everything but the points themselves."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: str) -> AccuracyReport:
        """The report that `to_json` wrote."""
        read = json.loads(text)
        cells = [CellResult.from_dict(cell) for cell in read.pop("cells")]
        return cls(cells=cells, **read)

    def save_json(self, path: str | Path) -> Path:
        """Write `to_json` to a file."""
        return _write(path, self.to_json() + "\n")

    def save_page(self, path: str | Path) -> Path:
        """Write one HTML page with all tables and charts, which needs nothing else."""
        from valuate.bench.accuracy.page import html

        return _write(path, html(self))

    def header(self) -> list[str]:
        """The machine in a few lines; the matrix library with its threads, as the measuring processes saw it."""
        seen = {
            f"{found.get('internal_api')} {found.get('version')} for {found.get('architecture')}, "
            f"{found.get('num_threads')} threads"
            for cell in self.cells
            for found in cell.blas
            if found.get("user_api") == "blas"
        }
        return [*machine.lines(self.machine), *(f"Measured with {text}" for text in sorted(seen))]

    def cell_table(self, result: CellResult) -> Table:
        """One cell: solvers from fast to slow."""
        from rich.table import Table

        table = Table(title=result.heading(), title_justify="left", box=None, pad_edge=False, header_style="bold")
        table.add_column("solver", no_wrap=True)
        for accuracy in ACCURACIES:
            table.add_column(accuracy.what, justify="right", no_wrap=True)
        table.add_column("ended at", justify="right", no_wrap=True)
        table.add_column("", overflow="fold", style="dim")
        for run in result.order():
            style = "" if run.side == "ours" else "cyan"
            entries = [entry(result, run, accuracy.name) for accuracy in ACCURACIES]
            table.add_row(run.solver, *entries, end(run), note(run), style=style)
        return table

    def summary_table(self) -> Table:
        """A line a cell: the fastest, the baseline, and Auto beside the fastest of the others."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold")
        table.add_column("cell", no_wrap=True)
        for accuracy in ACCURACIES:
            table.add_column(accuracy.what, justify="right")
            table.add_column(BASELINE, justify="right")
            table.add_column(AUTO, justify="right")
        for result in self.cells:
            if not result.failed:
                table.add_row(result.name, *(text for one in ACCURACIES for text in summed(result, one.name)))
        return table

    def summary(self) -> str:
        """How `Auto` compares with the fastest of the others, over all cells and accuracies."""
        shares = [share for cell in self.cells for one in ACCURACIES if (share := auto_share(cell, one.name))]
        if not shares:
            return f"{len(self.cells)} cells."
        worst = max(shares)
        good = sum(share <= 1.3 for share in shares)
        return (
            f"{len(self.cells)} cells. {AUTO} is within 1.3x of the fastest of all others in {good} of {len(shares)} "
            f"entries; at worst {worst:.2g}x."
        )


def auto_share(result: CellResult, accuracy: str) -> float | None:
    """Time of `Auto` over that of the fastest other; None where one of the two is missing."""
    other, mine = result.fastest(accuracy, but=AUTO), result.run(AUTO)
    if other is None or mine is None or not mine.repeats:
        return None
    return total(mine, accuracy) / total(other, accuracy)


def summed(result: CellResult, accuracy: str) -> tuple[str, str, str]:
    """The fastest but Auto; the baseline; Auto, as a multiple of the first."""
    other, base = result.fastest(accuracy, but=AUTO), result.run(BASELINE)
    share = auto_share(result, accuracy)
    first = f"{other.solver} {seconds(total(other, accuracy))}" if other is not None else "nobody"
    second = entry(result, base, accuracy) if base is not None else "-"
    third = "-" if share is None else f"{seconds(result.seconds(AUTO, accuracy))} ({share:.2f}x)"
    return first, second, third if share is None or share < math.inf else "not reached"


def entry(result: CellResult, run: Run, accuracy: str) -> str:
    """Seconds with building, in brackets without it; and how many times faster than the baseline."""
    if run.needs is not None:
        return "would need"
    found = run.reached.get(accuracy)
    if found is None:
        return "-"
    text = seconds(found["total_seconds"])
    if run.side == "ours":
        text += f" ({seconds(found['seconds'])})"
    base = result.seconds(BASELINE, accuracy)
    if run.solver != BASELINE and base < math.inf:
        text += f" {base / found['total_seconds']:>5.2g}x"
    return text


def end(run: Run) -> str:
    """Where a run ended: relative residual and standard errors."""
    if run.relative_residual is None or run.ratio is None:
        return ""
    return f"{run.relative_residual:.1e}, {math.sqrt(run.ratio):.1e} s.e."


def note(run: Run) -> str:
    """What else there is to say of a run, in short."""
    if run.failed:
        return run.failed
    if run.needs is not None:
        return needed(run.needs)
    said = "; ".join(part for part in (run.setting if run.side == "theirs" else "", run.message) if part)
    if run.solver == AUTO:
        said = " | ".join(line.partition("Chosen: ")[2] or line for line in run.message.splitlines())
    elif run.side == "ours":
        said = "" if run.limited or run.message.startswith("Stopped by") else run.message.partition(". ")[0]
    return "; ".join(part for part in ("time limit" if run.limited else "", said) if part)


def needed(needs: dict[str, Any]) -> str:
    """What a direct solve would take, in words."""
    size, unit = needs["bytes"], "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{needs['why']}: {size:.3g} {unit}, {needs['operations']:.2g} operations, {span(needs['seconds'])}"


def seconds(value: float) -> str:
    """A short time, with three digits."""
    if value == math.inf:
        return "-"
    return f"{value:.3g} s" if value >= 1 else f"{1000 * value:.3g} ms"


def span(value: float) -> str:
    """A long time in the unit that suits it."""
    units: Sequence[tuple[str, float]] = (("years", 3.156e7), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0))
    for unit, size in units:
        if value >= 2 * size:
            return f"{value / size:.2g} {unit}"
    return seconds(value)


def _write(path: str | Path, text: str) -> Path:
    path = Path(path)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None
    return path
