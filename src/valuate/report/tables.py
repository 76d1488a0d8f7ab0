"""Tables and charts as files for other programs: CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

from valuate.report.parts import Chart, Compared, Table


def table_csv(table: Table) -> str:
    """One line a row; an entry that is compared takes columns for both numbers and the verdict."""
    wide = [any(isinstance(row[k], Compared) for row in table.rows) for k in range(len(table.columns))]
    head: list[str] = []
    for column, compared in zip(table.columns, wide, strict=True):
        head += [f"{column} {part}" for part in _PARTS] if compared else [column]
    lines: list[Sequence[Any]] = [head]
    for row in table.rows:
        line: list[Any] = []
        for entry, compared in zip(row, wide, strict=True):
            if isinstance(entry, Compared):
                line += _fields(entry)
            else:
                line += [entry, *[None] * (len(_PARTS) - 1)] if compared else [entry]
        lines.append(line)
    return _written(lines)


def chart_csv(chart: Chart) -> str:
    """One line a point, all lines of the chart below each other."""
    return _written([("line", chart.x_label, "mean", "least", "most"), *_chart_rows(chart)])


_PARTS = ("mean", "sd", "runs", "paper mean", "paper sd", "verdict")


def _fields(entry: Compared) -> list[Any]:
    paper = (None, None) if entry.paper is None else (entry.paper.mean, entry.paper.sd)
    return [entry.ours.mean, entry.ours.sd, entry.ours.count, *paper, entry.verdict.value]


def _chart_rows(chart: Chart) -> Iterator[Sequence[Any]]:
    for series in chart.series:
        curve = series.curve
        for point in zip(curve.x, curve.mean, curve.low, curve.high, strict=True):
            yield (series.label, *(float(value) for value in point))


def _written(lines: Sequence[Sequence[Any]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()
