"""Charts as SVG, drawn by hand: a line with a band for each method, over a linear axis and a logarithmic one."""

from __future__ import annotations

import json
from html import escape

import numpy as np
from numpy.typing import NDArray

from valuate.report.axes import AXIS, FONT, GRID, INK, Scale, points, power
from valuate.report.parts import Chart, Series

Vector = NDArray[np.float64]

#: Colours that are told apart without red and green (M. Okabe and K. Ito, 2008).
COLOURS = {
    "gtd2": "#cc79a7",
    "gtd2-best": "#8c3f6b",
    "svrg": "#0072b2",
    "saga": "#009e73",
    "batching-svrg": "#d55e00",
    "scsg": "#e69f00",
    "lstd": "#808080",
    "auto": "#000000",
    "gmres": "#56b4e9",
    "bicgstab": "#332288",
    "lsmr": "#117733",
    "gcr": "#aa4499",
    "batchingsvrg": "#d55e00",
    "td": "#882255",
    "td-svrg": "#44aa99",
    "tdc": "#999933",
    "fit": "#0a7fc2",
    "floor": "#d55e00",
}
WIDTH, HEIGHT = 520, 330
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 30, 44
#: Points drawn of a line, at most.
MOST_POINTS = 240
#: Decades shown, at most: what falls below is cut off.
MOST_DECADES = 12


def svg(chart: Chart, *, standalone: bool) -> str:
    """The chart as an SVG element; ``standalone`` for a file of its own, on white."""
    x_scale, y_scale = _scales(chart)
    parts = [_head(chart, standalone), _axes(chart, x_scale, y_scale)]
    for series in chart.series:
        parts.append(_line(series, x_scale, y_scale))
    parts.append('<g class="hover"></g></svg>')
    return "\n".join(parts)


def data(chart: Chart) -> str:
    """The points of the chart and where they were drawn, for the page's script."""
    x_scale, y_scale = _scales(chart)
    lines = []
    for series in chart.series:
        keep = _thinned(len(series.curve.x))
        x, mean, low, high = (getattr(series.curve, name)[keep] for name in ("x", "mean", "low", "high"))
        lines.append(
            {
                "label": series.label,
                "colour": COLOURS[series.method],
                "x": _short(x, 6),
                "mean": _short(mean, 4),
                "low": _short(low, 4),
                "high": _short(high, 4),
                "px": _short(x_scale(x), 5),
                "py": _short(y_scale(mean), 5),
            }
        )
    return json.dumps({"x": chart.x_label, "lines": lines}, separators=(",", ":"))


def _scales(chart: Chart) -> tuple[Scale, Scale]:
    values = np.concatenate([np.concatenate([s.curve.low, s.curve.high]) for s in chart.series])
    values = values[np.isfinite(values) & (values > 0)]
    # A line that runs away does not squeeze the others: the axis ends well above where they began.
    high = min(float(values.max()), 30.0 * max(float(s.curve.mean[0]) for s in chart.series))
    low = max(float(values.min()), high * 10.0**-MOST_DECADES)
    margin = (high / low) ** 0.04 if high > 1.05 * low else 1.3
    most = max(float(s.curve.x[-1]) for s in chart.series)
    return (
        Scale(0.0, most, LEFT, WIDTH - RIGHT, log=False),
        Scale(low / margin, high * margin, HEIGHT - BOTTOM, TOP, log=True),
    )


def _head(chart: Chart, standalone: bool) -> str:
    label = escape(f"{chart.title}: {chart.y_label} against {chart.x_label}", quote=True)
    paper = f'<rect width="{WIDTH}" height="{HEIGHT + 26}" fill="#fff"/>' if standalone else ""
    ink = f'color="{INK}" ' if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 26}" role="img" aria-label="{label}" '
        f'font-family="{FONT}" font-size="12" {ink}fill="currentColor">{paper}'
        f'<text x="{LEFT}" y="18" font-size="14" font-weight="600">{escape(chart.title)}</text>{_legend(chart)}'
    )


def _legend(chart: Chart) -> str:
    """Names below the axis, in one line."""
    out, at = [], float(LEFT)
    size = 12.0 if sum(34 + 7.0 * len(s.label) for s in chart.series) < WIDTH - LEFT else 10.5
    for series in chart.series:
        y = HEIGHT + 14
        dash = ' stroke-dasharray="5 3"' if series.dashed else ""
        out.append(
            f'<line x1="{at:.0f}" x2="{at + 18:.0f}" y1="{y - 4}" y2="{y - 4}" stroke="{COLOURS[series.method]}" '
            f'stroke-width="2.5"{dash}/>'
            f'<text x="{at + 22:.0f}" y="{y}" font-size="{size}">{escape(series.label)}</text>'
        )
        at += 34 + size * 0.57 * len(series.label)
    return "".join(out)


def _axes(chart: Chart, x_scale: Scale, y_scale: Scale) -> str:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    out = []
    for value in y_scale.ticks():
        y = float(y_scale(value))
        out.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" {GRID}/>')
        out.append(f'<text x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{power(value)}</text>')
    for value in x_scale.ticks():
        x = float(x_scale(value))
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" {AXIS}/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{value:g}</text>')
    out.append(f'<line x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}" {AXIS}/>')
    out.append(f'<text x="{(LEFT + right) / 2}" y="{bottom + 34}" text-anchor="middle">{escape(chart.x_label)}</text>')
    out.append(
        f'<text transform="translate(13 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(chart.y_label)}</text>"
    )
    return "".join(out)


def _line(series: Series, x_scale: Scale, y_scale: Scale) -> str:
    keep = _thinned(len(series.curve.x))
    x = x_scale(series.curve.x[keep])
    mean, low, high = (y_scale(getattr(series.curve, name)[keep]) for name in ("mean", "low", "high"))
    colour = COLOURS[series.method]
    band = points(np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]]))
    dash = ' stroke-dasharray="6 3"' if series.dashed else ""
    return (
        f'<polygon points="{band}" fill="{colour}" opacity="0.18"/>'
        f'<polyline points="{points(x, mean)}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>'
    )


def _thinned(count: int) -> NDArray[np.int64]:
    """Places of the points that are drawn: all of them, or an even choice with both ends."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).round().astype(np.int64))


def _short(values: Vector, digits: int) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values]
