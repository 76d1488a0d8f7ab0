"""The page of all solvers on one log: MSPBE against passes and against seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.experiments.results import Curve
from valuate.report.page import document, figure_html
from valuate.report.parts import Chart, Series

if TYPE_CHECKING:
    from valuate.solution import Trace

__all__ = ["solvers_page"]


def solvers_page(
    path: Path, traces: Mapping[str, Trace], level: float, title: str, rows: Sequence[Mapping[str, Any]]
) -> str:
    """The page as HTML.

    Parameters
    ----------
    path : Path
        Where it will be; for its title.
    traces : Trace by name of the solver
    level : float
        The statistical floor of the MSPBE, drawn as a line.
    title : str
    rows : sequence of mappings
        "solver" and "message" of each.
    """
    charts = [
        _chart(traces, level, "passes", "passes over the rows", title),
        _chart(traces, level, "seconds", "seconds", title),
    ]
    said = "".join(f"<dt>{escape(row['solver'])}</dt><dd>{escape(row['message'])}</dd>" for row in rows)
    figures = "".join(figure_html(chart, len(charts) == 1) for chart in charts)
    body = (
        f'<section id="charts"><h2>{escape(title)}</h2><div class="charts">{figures}</div></section>'
        f'<section id="said"><h2>What each says</h2><dl>{said}</dl></section>'
    )
    lead = "MSPBE of every solver at its defaults. Below the floor an optimiser fits the noise of the log."
    return document(f"Solvers: {path.stem}", lead, [("charts", "Charts"), ("said", "Messages")], body, charts)


def _chart(traces: Mapping[str, Trace], level: float, axis: str, label: str, title: str) -> Chart:
    series, most = [], 0.0
    for name, trace in traces.items():
        x, y = np.asarray(getattr(trace, axis), float), np.asarray(trace.mspbe, float)
        kept = y > 0
        if kept.sum() < 2:
            continue
        most = max(most, float(x[kept][-1]))
        series.append(Series(name.lower(), name, Curve(x[kept], y[kept], y[kept], y[kept])))
    if level > 0 and series:
        flat = np.full(2, level)
        series.append(Series("floor", "statistical floor", Curve(np.array([0.0, most]), flat, flat, flat), dashed=True))
    return Chart(f"solvers-{axis}", title, label, "MSPBE", series)
