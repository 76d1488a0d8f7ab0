"""From the grid to a report: a process for each cell."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from valuate.bench import machine
from valuate.bench.accuracy import cells, taking
from valuate.bench.accuracy.cells import Cell
from valuate.bench.accuracy.report import AccuracyReport, CellResult
from valuate.bench.children import ChildFailed, in_child
from valuate.errors import InputError

#: Columns of text that goes to a file.
WIDTH = 180
TOO_LARGE = f"its features alone are more than {cells.MOST_BYTES / 1e9:g} GB, and a problem has them once more"


def run(
    *,
    full: bool = False,
    only: list[str] | None = None,
    solvers: list[str] | None = None,
    report: Callable[[CellResult, AccuracyReport], None] | None = None,
) -> AccuracyReport:
    """Measure, one cell after the other.

    Parameters
    ----------
    full : bool
        The whole grid, which takes hours, with more solvers and more patience.
    only : list of str, optional
        Measure only cells whose name contains one of these; cells of the whole grid where no cell of the small one
        does. "dense-2e5-2000-1e5-on" is one.
    solvers : list of str, optional
        Only solvers whose name contains one of these, and NumPy's LSTD, which sets the limits.
    report : callable, optional
        Told each cell as soon as it is there, and all so far.

    Returns
    -------
    AccuracyReport

    Raises
    ------
    InputError
        When a part of a name in ``only`` or ``solvers`` is in none.
    """
    grid = chosen(full, only)
    _require_solvers(solvers)
    limits = taking.FULL if full else taking.SMALL
    left_out = {cell.name: TOO_LARGE for cell in cells.TOO_LARGE} if full and not only else {}
    found = AccuracyReport(machine.describe(), "full" if full else "small", asdict(limits), [], left_out)
    for cell in grid:
        found.cells.append(measure(cell, limits, full, solvers))
        if report is not None:
            report(found.cells[-1], found)
    return found


def run_and_show(
    *,
    full: bool = False,
    only: list[str] | None = None,
    solvers: list[str] | None = None,
    quiet: bool = False,
    out: Path | None = None,
    page: Path | None = None,
) -> AccuracyReport:
    """As `run`; shows each cell as it comes, unless ``quiet``. Files are written anew after every cell.

    A run of hours that is stopped leaves what it has measured.
    """
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else WIDTH)

    def show(cell: CellResult, so_far: AccuracyReport) -> None:
        if out is not None:
            so_far.save_json(out)
        if page is not None:
            so_far.save_page(page)
        if quiet:
            return
        if cell.failed:
            console.print(f"{cell.name}: {cell.failed}", style="red", highlight=False, markup=False)
        else:
            console.print(so_far.cell_table(cell), highlight=False)
            for text in cell.notes:
                console.print(text, highlight=False, markup=False, soft_wrap=True)
        console.print()

    found = run(full=full, only=only, solvers=solvers, report=show)
    if not quiet:
        console.print(found.summary_table(), highlight=False)
        console.print()
        for text in [*found.header(), found.summary()]:
            console.print(text, highlight=False, markup=False, soft_wrap=True)
    return found


def chosen(full: bool, only: list[str] | None) -> list[Cell]:
    """The cells whose name contains one of ``only``; where no small one does, those of the whole grid."""
    grid = cells.FULL if full else cells.SMALL
    if not only:
        return list(grid)
    found = []
    for part in only:
        there = [cell for cell in grid if part in cell.name] or [cell for cell in cells.FULL if part in cell.name]
        if not there:
            why = TOO_LARGE if any(part in cell.name for cell in cells.TOO_LARGE) else "there is none"
            names = ", ".join(cell.name for cell in cells.SMALL)
            raise InputError(f"no cell has {part!r} in its name: {why}. There are {names}, and others with --full.")
        found += [cell for cell in there if cell not in found]
    return found


def measure(cell: Cell, limits: taking.Limits, full: bool, solvers: list[str] | None) -> CellResult:
    """Measure a cell in a new process. One that ends with an error is a cell that failed."""
    try:
        answer = in_child("valuate.bench.accuracy.taking:take", cell.as_dict(), asdict(limits), not full, solvers)
    except ChildFailed as error:
        return CellResult(cell={**cell.as_dict(), "name": cell.name, "bytes": cell.bytes}, failed=str(error))
    return CellResult.from_dict(answer)


def _require_solvers(parts: list[str] | None) -> None:
    names = [one.name for one in taking.EVERYONE]
    for part in parts or []:
        if not any(part.lower() in name.lower() for name in names):
            raise InputError(f"no solver has {part!r} in its name. There are: {', '.join(names)}.")
