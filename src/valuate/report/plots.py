"""Drawings of a fit as SVG: intervals, histograms, curves, clouds of points, bars and heat maps.

They take their colours from the page's style, which has them for light and for dark. Shapes carry a title, which
browsers show where a pointer rests and screen readers read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from valuate.report.axes import AXIS, FONT, GRID, Scale, plain, points
from valuate.report.parts import number

Vector = NDArray[np.float64]

LEFT, RIGHT, TOP, BOTTOM = 62, 14, 32, 46
#: Width of the labels of intervals, and height of one.
LABELS, ROW = 150, 36
#: Width of the scale of a heat map.
LEGEND = 64
#: Colours of a heat map from low to high, close to those of viridis (N. Smith and S. van der Walt, 2015).
HEAT = np.array([[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]], dtype=float)
#: How much is seen of a cell of a heat map in which the log has no state.
FADED = 0.25


@dataclass(frozen=True, slots=True)
class Frame:
    """The paper of a drawing, with room for its title and the words along its axes."""

    width: int = 520
    height: int = 320
    left: int = LEFT
    right_margin: int = RIGHT

    @property
    def right(self) -> int:
        """Where drawing ends on the right."""
        return self.width - self.right_margin

    @property
    def bottom(self) -> int:
        """Where drawing ends below."""
        return self.height - BOTTOM

    def across(self, low: float, high: float) -> Scale:
        """The scale of the axis below."""
        return Scale(low, high, self.left, self.right)

    def up(self, low: float, high: float) -> Scale:
        """The scale of the axis on the left."""
        return Scale(low, high, self.bottom, TOP)

    def open(self, title: str, alt: str) -> str:
        """The beginning of the drawing; ``alt`` is what it shows, in words."""
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-label="{escape(alt, quote=True)}" font-family="{FONT}" font-size="12" fill="currentColor">'
            f'<text x="2" y="18" font-size="14" font-weight="600">{escape(title)}</text>'
        )

    def axes(self, x: Scale, y: Scale, x_label: str, y_label: str, *, grid: bool = True) -> str:
        """Both axes with their words."""
        return self.on_the_left(y, y_label, grid=grid) + self.below(x, x_label)

    def on_the_left(self, y: Scale, label: str, *, grid: bool = True) -> str:
        """The axis on the left."""
        out = []
        for value in y.ticks():
            at = float(y(value))
            if grid:
                out.append(f'<line x1="{self.left}" x2="{self.right}" y1="{at:.1f}" y2="{at:.1f}" {GRID}/>')
            out.append(f'<text x="{self.left - 7}" y="{at + 4:.1f}" text-anchor="end">{plain(value)}</text>')
        turned = f'transform="translate(13 {(TOP + self.bottom) / 2}) rotate(-90)" text-anchor="middle"'
        return "".join([*out, f"<text {turned}>{escape(label)}</text>"])

    def below(self, x: Scale, label: str, *, grid: bool = False) -> str:
        """The axis below."""
        out = []
        for value in x.ticks(max(3, min(6, (self.right - self.left) // 60))):
            at = float(x(value))
            if grid:
                out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{self.bottom}" {GRID}/>')
            out.append(f'<line x1="{at:.1f}" x2="{at:.1f}" y1="{self.bottom}" y2="{self.bottom + 4}" {AXIS}/>')
            out.append(f'<text x="{at:.1f}" y="{self.bottom + 17}" text-anchor="middle">{plain(value)}</text>')
        out.append(f'<line x1="{self.left}" x2="{self.right}" y1="{self.bottom}" y2="{self.bottom}" {AXIS}/>')
        return "".join([*out, self.words(label)])

    def words(self, label: str) -> str:
        """Words below the axis."""
        place = f'x="{(self.left + self.right) / 2}" y="{self.bottom + 36}"'
        return f'<text {place} text-anchor="middle">{escape(label)}</text>'

    def level(self, y: float) -> str:
        """A line across."""
        return f'<line x1="{self.left}" x2="{self.right}" y1="{y:.1f}" y2="{y:.1f}" {AXIS}/>'

    def upright(self, x: float) -> str:
        """A dashed line from top to bottom."""
        return f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{self.bottom}" {AXIS} stroke-dasharray="3 3"/>'

    def bar(self, left: float, right: float, top: float, words: str, style: str = 'class="mark"') -> str:
        """An upright bar from the axis below."""
        return (
            f'<rect {style} x="{left:.1f}" width="{max(0.5, right - left - 0.7):.1f}" y="{top:.1f}" '
            f'height="{max(0.0, self.bottom - top):.1f}"><title>{escape(words)}</title></rect>'
        )


FRAME = Frame()
SMALL = Frame(380, 270)


@dataclass(frozen=True, slots=True)
class Interval:
    """A row of a drawing of intervals."""

    label: str
    value: float
    low: float
    high: float
    first: bool = False

    def __str__(self) -> str:
        ends = [number(end, 4) if math.isfinite(end) else "no bound" for end in (self.low, self.high)]
        return f"{self.label}: {number(self.value, 4)} ({ends[0]} to {ends[1]})"


def intervals(title: str, rows: Sequence[Interval], *, x_label: str = "value") -> str:
    """Points with their intervals below each other, the first one strong and its range shaded."""
    frame = Frame(height=TOP + ROW * len(rows) + BOTTOM, left=LABELS)
    x = frame.across(*_span(np.array([end for row in rows for end in (row.low, row.value, row.high)]), 0.06))
    out = [frame.open(title, f"{title}: {'; '.join(map(str, rows))}"), frame.below(x, x_label, grid=True)]
    for k, row in enumerate(rows):
        y = TOP + ROW * (k + 0.5)
        kind, size = ("mark", 3) if row.first else ("faint", 2)
        stroke = "line" if row.first else "line faint"
        low, high = float(x(row.low)), float(x(row.high))  # what has no bound goes to the edge
        out.append(f"<g><title>{escape(str(row))}</title>")
        if row.first:
            across = f'x="{low:.1f}" width="{max(0.5, high - low):.1f}"'
            out.append(f'<rect class="area" {across} y="{TOP}" height="{frame.bottom - TOP}"/>')
        weight = ' font-weight="600"' if row.first else ""
        out.append(f'<text x="{LABELS - 14}" y="{y + 4:.1f}" text-anchor="end"{weight}>{escape(row.label)}</text>')
        out.append(
            f'<line class="{stroke}" style="stroke-width:{size}" x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}"/>'
        )
        for place, end in ((low, row.low), (high, row.high)):
            if math.isfinite(end):
                out.append(f'<line class="{stroke}" x1="{place:.1f}" x2="{place:.1f}" y1="{y - 6}" y2="{y + 6}"/>')
        out.append(f'<circle class="{kind}" cx="{float(x(row.value)):.1f}" cy="{y}" r="{size + 2}"/></g>')
    return "".join([*out, "</svg>"])


def histogram(
    title: str, edges: Vector, counts: Vector, x_label: str, *, zero: bool = False, frame: Frame = FRAME
) -> str:
    """Bars over the edges; with ``zero`` a line at 0."""
    x, y = frame.across(float(edges[0]), float(edges[-1])), frame.up(0.0, float(counts.max()) * 1.04 or 1.0)
    total = float(counts.sum()) or 1.0
    alt = f"{title}: {len(counts)} bars from {number(float(edges[0]))} to {number(float(edges[-1]))}"
    out = [frame.open(title, alt), frame.axes(x, y, x_label, "rows")]
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        if count:
            words = f"{number(low)} to {number(high)}: {count:,.0f} rows ({100 * count / total:.2g}%)"
            out.append(frame.bar(float(x(low)), float(x(high)), float(y(count)), words))
    if zero and x.low < 0 < x.high:
        out.append(frame.upright(float(x(0.0))))
    return "".join([*out, "</svg>"])


def band(title: str, x_values: Vector, mean: Vector, low: Vector, high: Vector, x_label: str, y_label: str) -> str:
    """A line with a band around it over linear axes, and a line at 0."""
    x, y = FRAME.across(*_span(x_values, 0.0)), FRAME.up(*_span(np.concatenate([low, high, [0.0]]), 0.06))
    ends = [f"{number(float(mean[k]))} at {plain(float(x_values[k]))}" for k in (0, -1)]
    out = [FRAME.open(title, f"{title}: from {ends[0]} to {ends[1]}"), FRAME.axes(x, y, x_label, y_label)]
    out.append(FRAME.level(float(y(0.0))))
    across = np.concatenate([x(x_values), x(x_values)[::-1]])
    out.append(f'<polygon class="area" points="{points(across, np.concatenate([y(high), y(low)[::-1]]))}"/>')
    out.append(f'<polyline class="line" points="{points(x(x_values), y(mean))}"/>')
    for a, b, c, d in zip(x_values, mean, low, high, strict=True):
        words = f"{x_label} {plain(round(float(a), 1))}: {number(b)} ({number(c)} to {number(d)})"
        place = f'cx="{float(x(a)):.1f}" cy="{float(y(b)):.1f}"'
        out.append(f'<circle class="mark" {place} r="2.6"><title>{escape(words)}</title></circle>')
    return "".join([*out, "</svg>"])


def cloud(
    title: str, x_values: Vector, y_values: Vector, line: tuple[Vector, Vector], x_label: str, y_label: str
) -> str:
    """Points, and a line through their means."""
    x, y = SMALL.across(*_span(x_values, 0.02)), SMALL.up(*_span(y_values, 0.05))
    out = [SMALL.open(title, f"{title}: {len(x_values)} points"), SMALL.axes(x, y, x_label, y_label), "<g>"]
    places = zip(x(x_values), y(y_values), strict=True)
    out += [f'<circle class="dot" cx="{a:.1f}" cy="{b:.1f}" r="2"/>' for a, b in places]
    out.append(f'</g><polyline class="line second" points="{points(x(line[0]), y(line[1]))}"/>')
    return "".join([*out, "</svg>"])


def whiskers(title: str, x_values: Vector, mean: Vector, low: Vector, high: Vector, x_label: str, y_label: str) -> str:
    """Points with upright intervals, and the line on which both axes are equal."""
    ends = _span(np.concatenate([x_values, low, high]), 0.05)
    x, y = FRAME.across(*ends), FRAME.up(*ends)
    out = [FRAME.open(title, f"{title}: {len(x_values)} groups of rows"), FRAME.axes(x, y, x_label, y_label)]
    diagonal = points(x(np.array(ends)), y(np.array(ends)))
    out.append(f'<polyline class="line faint" stroke-dasharray="5 4" points="{diagonal}"/>')
    for a, b, c, d in zip(x_values, mean, low, high, strict=True):
        words = f"{x_label} {number(a)}: {y_label} {number(b)} ({number(c)} to {number(d)})"
        at = float(x(a))
        out.append(f'<g><title>{escape(words)}</title><line class="line" x1="{at:.1f}" x2="{at:.1f}" ')
        out.append(f'y1="{float(y(c)):.1f}" y2="{float(y(d)):.1f}"/>')
        out.append(f'<circle class="mark" cx="{at:.1f}" cy="{float(y(b)):.1f}" r="4"/></g>')
    return "".join([*out, "</svg>"])


def curve(
    title: str, x_values: Vector, y_values: Vector, x_label: str, y_label: str, density: tuple[Vector, Vector]
) -> str:
    """A function of one number, and below it how often the log has each (edges, counts)."""
    x, y = FRAME.across(*_span(x_values, 0.0)), FRAME.up(*_span(y_values, 0.08))
    ends = [f"{number(float(y_values[k]))} at {number(float(x_values[k]))}" for k in (0, -1)]
    out = [FRAME.open(title, f"{title}: from {ends[0]} to {ends[1]}"), FRAME.axes(x, y, x_label, y_label)]
    edges, counts = density
    most = float(counts.max()) or 1.0
    for low, high, count in zip(edges[:-1], edges[1:], counts, strict=True):
        if count:
            words = f"{count:,.0f} rows from {number(low)} to {number(high)}"
            top = FRAME.bottom - 50 * float(count) / most
            out.append(FRAME.bar(float(x(low)), float(x(high)), top, words, 'class="faint" opacity="0.35"'))
    out.append(f'<polyline class="line" points="{points(x(x_values), y(y_values))}"/>')
    return "".join([*out, "</svg>"])


def bars(title: str, labels: Sequence[str], values: Vector, notes: Sequence[str], x_label: str, y_label: str) -> str:
    """A bar for each label, from 0; every note is shown with its bar."""
    y = FRAME.up(*_span(np.append(values, 0.0), 0.05, from_zero=True))
    room = (FRAME.right - FRAME.left) / len(labels)
    every = max(1, math.ceil(len(labels) * max(map(len, labels)) / 56))
    out = [FRAME.open(title, f"{title}: {len(labels)} bars"), FRAME.on_the_left(y, y_label), FRAME.words(x_label)]
    zero = float(y(0.0))
    for k, (label, value, note) in enumerate(zip(labels, values, notes, strict=True)):
        top, left = float(y(value)), FRAME.left + k * room
        place = f'x="{left + 0.1 * room:.1f}" width="{0.8 * room:.1f}" y="{min(top, zero):.1f}"'
        words = escape(f"{label}: {number(value)}, {note}")
        out.append(f'<rect class="mark" {place} height="{max(0.5, abs(zero - top)):.1f}"><title>{words}</title></rect>')
        if k % every == 0:
            at = f'x="{left + room / 2:.1f}" y="{FRAME.bottom + 17}"'
            out.append(f'<text {at} text-anchor="middle">{escape(label)}</text>')
    return "".join([*out, FRAME.level(zero), "</svg>"])


def heat(
    title: str,
    edges: tuple[Vector, Vector],
    grid: Vector,
    labels: tuple[str, str],
    *,
    seen: NDArray[np.bool_] | None = None,
) -> str:
    """Values over two numbers: nan where there is none.

    ``edges`` are those of the cells across and upwards, (k + 1,) and (m + 1,), and ``grid`` is (m, k). Cells that are
    not ``seen`` are faded, and take the colour of the nearest end of the scale.
    """
    frame = Frame(right_margin=RIGHT + LEGEND)
    x, y = frame.across(float(edges[0][0]), float(edges[0][-1])), frame.up(float(edges[1][0]), float(edges[1][-1]))
    finite = np.isfinite(grid)
    known = finite if seen is None or not (finite & seen).any() else finite & seen
    low, high = float(grid[known].min()), float(grid[known].max())
    alt = f"{title}: from {number(low)} to {number(high)}"
    out = [frame.open(title, alt), frame.axes(x, y, *labels, grid=False), '<g shape-rendering="crispEdges">']
    left, below = x(edges[0]), y(edges[1])
    shares = np.clip((grid - low) / ((high - low) or 1.0), 0.0, 1.0)
    centres = [0.5 * (ends[1:] + ends[:-1]) for ends in edges]
    for i, j in np.argwhere(finite):
        faded = "" if seen is None or seen[i, j] else f' opacity="{FADED}"'
        words = f"{labels[0]} {number(centres[0][j])}, {labels[1]} {number(centres[1][i])}: {number(grid[i, j])}"
        place = f'x="{left[j]:.2f}" y="{below[i + 1]:.2f}"'
        size = f'width="{left[j + 1] - left[j]:.2f}" height="{below[i] - below[i + 1]:.2f}"'
        fill = f'fill="{_heat(float(shares[i, j]))}"{faded}'
        out.append(f"<rect {place} {size} {fill}><title>{escape(words)}</title></rect>")
    return "".join([*out, _legend(frame, low, high, "value"), "</g></svg>"])


def _heat(share: float) -> str:
    at = share * (len(HEAT) - 1)
    k = min(int(at), len(HEAT) - 2)
    red, green, blue = HEAT[k] + (at - k) * (HEAT[k + 1] - HEAT[k])
    return f"#{round(red):02x}{round(green):02x}{round(blue):02x}"


def _legend(frame: Frame, low: float, high: float, label: str) -> str:
    left, steps, tall = frame.right + 18, 48, frame.bottom - TOP
    out = []
    for k in range(steps):
        place = f'x="{left}" width="12" y="{frame.bottom - (k + 1) * tall / steps:.2f}" height="{tall / steps:.2f}"'
        out.append(f'<rect {place} fill="{_heat(k / (steps - 1))}"/>')
    for share in (0.0, 0.5, 1.0):
        y = frame.bottom - share * tall
        out.append(f'<text x="{left + 16}" y="{y + 4:.1f}" font-size="11">{number(low + share * (high - low))}</text>')
    out.append(f'<text x="{left - 2}" y="{frame.bottom + 17}" font-size="11">{escape(label)}</text>')
    return "".join(out)


def _span(values: Vector, margin: float, *, from_zero: bool = False) -> tuple[float, float]:
    """From the least to the largest finite value with a margin, and some room where they are equal."""
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = 0.5 * abs(low) or 1.0
        return low - room, high + room
    room = margin * (high - low)
    return (0.0 if from_zero and low == 0 else low - room), (0.0 if from_zero and high == 0 else high + room)
