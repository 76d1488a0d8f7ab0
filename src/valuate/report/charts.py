"""Charts as SVG, drawn by hand: a line with a band for each method, over a linear axis and a logarithmic one."""

from __future__ import annotations

import json
import math
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    "lstd": "#555555",
}
WIDTH, HEIGHT = 520, 330
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 30, 44
#: Points drawn of a line, at most.
MOST_POINTS = 240
#: Decades shown, at most: what falls below is cut off.
MOST_DECADES = 12
FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"


class _Scale:
    """From values to places on an axis."""

    def __init__(self, low: float, high: float, start: float, end: float, log: bool) -> None:
        self.log = log
        self.low, self.high = (math.log10(low), math.log10(high)) if log else (low, high)
        self.start, self.end = start, end

    def __call__(self, values: Vector | float) -> Any:
        values = np.asarray(values, dtype=np.float64)
        inner = np.log10(np.maximum(values, 1e-300)) if self.log else values
        share = np.clip((inner - self.low) / (self.high - self.low), 0.0, 1.0)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values along the axis."""
        if not self.log:
            size = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
            step = next(size * k for k in (1, 2, 5, 10) if (self.high - self.low) / (size * k) <= 6)
            return [float(x) for x in np.arange(math.ceil(self.low / step) * step, self.high + step * 1e-6, step)]
        decades = range(math.floor(self.low), math.ceil(self.high) + 1)
        stride = max(1, math.ceil((self.high - self.low) / 7))
        found: list[float] = []
        for marks in ((1,), (1, 3), (1, 2, 5), range(1, 10), [k / 10 for k in range(10, 100)]):
            places = [m * 10.0**d for d in decades if d % stride == 0 for m in marks]
            found = [x for x in places if self.low - 1e-9 <= math.log10(x) <= self.high + 1e-9]
            if len(found) >= 3:
                break
        return found[:: max(1, math.ceil(len(found) / 8))]


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


def _scales(chart: Chart) -> tuple[_Scale, _Scale]:
    values = np.concatenate([np.concatenate([s.curve.low, s.curve.high]) for s in chart.series])
    values = values[np.isfinite(values) & (values > 0)]
    # A line that runs away does not squeeze the others: the axis ends well above where they began.
    high = min(float(values.max()), 30.0 * max(float(s.curve.mean[0]) for s in chart.series))
    low = max(float(values.min()), high * 10.0**-MOST_DECADES)
    margin = (high / low) ** 0.04 if high > 1.05 * low else 1.3
    most = max(float(s.curve.x[-1]) for s in chart.series)
    return (
        _Scale(0.0, most, LEFT, WIDTH - RIGHT, log=False),
        _Scale(low / margin, high * margin, HEIGHT - BOTTOM, TOP, log=True),
    )


def _head(chart: Chart, standalone: bool) -> str:
    label = escape(f"{chart.title}: {chart.y_label} against {chart.x_label}", quote=True)
    paper = f'<rect width="{WIDTH}" height="{HEIGHT + 26}" fill="#fff"/>' if standalone else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT + 26}" role="img" aria-label="{label}" '
        f'font-family="{FONT}" font-size="12" fill="#333">{paper}'
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


def _axes(chart: Chart, x_scale: _Scale, y_scale: _Scale) -> str:
    bottom, right = HEIGHT - BOTTOM, WIDTH - RIGHT
    out = []
    for value in y_scale.ticks():
        y = float(y_scale(value))
        out.append(f'<line x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e6e6e6"/>')
        out.append(f'<text x="{LEFT - 7}" y="{y + 4:.1f}" text-anchor="end">{_tick(value)}</text>')
    for value in x_scale.ticks():
        x = float(x_scale(value))
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{bottom}" y2="{bottom + 4}" stroke="#888"/>')
        out.append(f'<text x="{x:.1f}" y="{bottom + 17}" text-anchor="middle">{value:g}</text>')
    out.append(f'<line x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}" stroke="#888"/>')
    out.append(f'<text x="{(LEFT + right) / 2}" y="{bottom + 34}" text-anchor="middle">{escape(chart.x_label)}</text>')
    out.append(
        f'<text transform="translate(13 {(TOP + bottom) / 2}) rotate(-90)" text-anchor="middle">'
        f"{escape(chart.y_label)}</text>"
    )
    return "".join(out)


def _tick(value: float) -> str:
    """A power of ten as such where the number would be long."""
    if 1e-3 <= value < 1e4:
        return f"{value:g}"
    power = math.floor(math.log10(value) + 1e-9)
    front = f"{value / 10.0**power:.2g}"
    times = "" if front == "1" else f"{front}&#183;"
    return f'{times}10<tspan dy="-5" font-size="9">{power}</tspan>'


def _line(series: Series, x_scale: _Scale, y_scale: _Scale) -> str:
    keep = _thinned(len(series.curve.x))
    x = x_scale(series.curve.x[keep])
    mean, low, high = (y_scale(getattr(series.curve, name)[keep]) for name in ("mean", "low", "high"))
    colour = COLOURS[series.method]
    band = _points(np.concatenate([x, x[::-1]]), np.concatenate([high, low[::-1]]))
    dash = ' stroke-dasharray="6 3"' if series.dashed else ""
    return (
        f'<polygon points="{band}" fill="{colour}" opacity="0.18"/>'
        f'<polyline points="{_points(x, mean)}" fill="none" stroke="{colour}" stroke-width="1.8"{dash}/>'
    )


def _points(x: Vector, y: Vector) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _thinned(count: int) -> NDArray[np.int64]:
    """Places of the points that are drawn: all of them, or an even choice with both ends."""
    return np.unique(np.linspace(0, count - 1, min(count, MOST_POINTS)).round().astype(np.int64))


def _short(values: Vector, digits: int) -> list[float]:
    return [float(f"{value:.{digits}g}") for value in values]
