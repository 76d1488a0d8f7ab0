"""From values to places on a drawing, and the marks along an axis: what all charts share."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]

FONT = "system-ui, -apple-system, 'Segoe UI', sans-serif"
#: Strokes of the lines behind a drawing and of its axes.
GRID = 'stroke="currentColor" stroke-opacity="0.14"'
AXIS = 'stroke="currentColor" stroke-opacity="0.5"'
#: Colour of the ink where a drawing stands alone, on white; on a page it is that of the text around.
INK = "#333"


class Scale:
    """From values to places on an axis."""

    def __init__(self, low: float, high: float, start: float, end: float, log: bool = False) -> None:
        self.log = log
        self.low, self.high = (math.log10(low), math.log10(high)) if log else (low, high)
        self.start, self.end = start, end

    def __call__(self, values: Vector | float) -> Any:
        """Places of values; what lies beyond the axis is put at its end."""
        values = np.asarray(values, dtype=np.float64)
        inner = np.log10(np.maximum(values, 1e-300)) if self.log else values
        share = np.clip((inner - self.low) / (self.high - self.low), 0.0, 1.0)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Round values along the axis; at most so many where the axis is linear."""
        if not self.log:
            size = 10.0 ** math.floor(math.log10((self.high - self.low) / 4))
            steps = (size * k for k in (1, 2, 5, 10, 20, 50))
            step = next(step for step in steps if (self.high - self.low) / step <= most)
            ticks = np.arange(math.ceil(self.low / step) * step, self.high + step * 1e-6, step)
            return [0.0 if abs(x) < step * 1e-6 else float(x) for x in ticks]
        decades = range(math.floor(self.low), math.ceil(self.high) + 1)
        stride = max(1, math.ceil((self.high - self.low) / 7))
        found: list[float] = []
        for marks in ((1,), (1, 3), (1, 2, 5), range(1, 10), [k / 10 for k in range(10, 100)]):
            places = [m * 10.0**d for d in decades if d % stride == 0 for m in marks]
            found = [x for x in places if self.low - 1e-9 <= math.log10(x) <= self.high + 1e-9]
            if len(found) >= 3:
                break
        return found[:: max(1, math.ceil(len(found) / 8))]


def power(value: float) -> str:
    """A number for a logarithmic axis: a power of ten as such where it would be long."""
    if 1e-3 <= value < 1e4:
        return f"{value:g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    front = f"{value / 10.0**exponent:.2g}"
    times = "" if front == "1" else f"{front}&#183;"
    return f'{times}10<tspan dy="-5" font-size="9">{exponent}</tspan>'


def plain(value: float) -> str:
    """A number for a linear axis."""
    return f"{value:,.10g}" if value == 0 or 1e-4 <= abs(value) < 1e7 else f"{value:.3g}"


def points(x: Vector, y: Vector) -> str:
    """Places as a polyline takes them."""
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
