"""From the list of lines to a report."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from valuate.bench import catalogue, machine, scale
from valuate.bench.children import ChildFailed, in_child
from valuate.bench.report import Measurement, Report, Target, judged, unmeasured
from valuate.bench.timing import Taken
from valuate.errors import InputError

#: 32 non-zeros of 12 bytes.
SPARSE_ROW_BYTES = 384
#: Columns of text that goes to a file.
WIDTH = 150


def run(
    *,
    quick: bool = False,
    only: list[str] | None = None,
    report: Callable[[Measurement], None] | None = None,
) -> Report:
    """Measure, one line after the other, each in a process of its own.

    Parameters
    ----------
    quick : bool
        Smaller data, still beyond the caches, and fewer samples.
    only : list of str, optional
        Measure only lines whose name contains one of these.
    report : callable, optional
        Told each measurement as soon as it is there.

    Returns
    -------
    Report

    Raises
    ------
    InputError
        When a part of a name in ``only`` is in none.
    """
    lines = chosen(only)
    size = sized(scale.QUICK if quick else scale.FULL)
    measurements = []
    for line in lines:
        measurements.append(measure(line, size))
        if report is not None:
            report(measurements[-1])
    return Report(machine.describe(), asdict(size), measurements)


def run_and_show(*, quick: bool = False, only: list[str] | None = None, quiet: bool = False) -> Report:
    """As `run`; shows each line as it comes, and the table at the end, unless ``quiet``."""
    from rich.console import Console

    if quiet:
        return run(quick=quick, only=only)
    # Where nobody says how wide the output is, as in a file, lines should not be broken more than they must.
    progress, out = Console(stderr=True), Console(width=None if sys.stdout.isatty() else WIDTH)

    def show(line: Measurement) -> None:
        text = f"{line.name}: {line.measured}, {line.verdict} ({line.wanted})"
        progress.print(text, style="dim", highlight=False, markup=False, soft_wrap=True)

    found = run(quick=quick, only=only, report=show)
    for text in found.header():
        out.print(text, highlight=False, markup=False, soft_wrap=True)
    out.print()
    out.print(found.table(), highlight=False)
    out.print()
    out.print(found.summary(), highlight=False, soft_wrap=True)
    return found


def chosen(only: list[str] | None) -> list[Target]:
    """The lines whose name contains one of ``only``."""
    names = [line.name for line in catalogue.LINES]
    for part in only or []:
        if not any(part in name for name in names):
            raise InputError(f"no measurement has {part!r} in its name. There are: {', '.join(names)}.")
    return [line for line in catalogue.LINES if not only or any(part in line.name for part in only)]


def sized(size: scale.Scale) -> scale.Scale:
    """Enough rows to be four times as large as the largest cache of this machine."""
    beyond = 4 * machine.largest_cache()
    return replace(
        size, dram_bytes=max(size.dram_bytes, beyond), sparse_rows=max(size.sparse_rows, beyond // SPARSE_ROW_BYTES)
    )


def measure(line: Target, size: scale.Scale) -> Measurement:
    """Measure one line in a new process. One that ends with an error is a line that failed."""
    try:
        answer: dict[str, Any] = in_child("valuate.bench.catalogue:take", line.name, asdict(size))
    except ChildFailed as error:
        return unmeasured(line, "failed", str(error))
    if "missing" in answer:
        return unmeasured(line, "skipped", answer["missing"])
    return judged(line, Taken(**answer["taken"]))
