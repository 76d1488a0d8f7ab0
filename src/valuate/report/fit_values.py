"""The value function of a fit, drawn over the states that the log has seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import ValuateError
from valuate.report import plots
from valuate.report.parts import listed, number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.report.fitted import Fitted

    Vector = NDArray[np.float64]

#: Rows that drawings are made from, at most.
ROWS = 20_000
#: States that are drawn as bars, at most.
BARS = 60
#: States with more entries are images and the like.
MANY = 64
#: Cells of a heat map along each axis, points of a curve, points of a cloud.
CELLS, POINTS, DOTS = 32, 200, 500
#: Values that differ by no more than this share of themselves are equal.
ROUNDING = 1e-9
#: Entries that have a cloud of their own, at most.
CLOUDS = 6


def drawings(fit: Fitted, names: list[str] | None = None) -> tuple[list[tuple[str, str]], str]:
    """Pairs of (SVG, caption), and a sentence on what they show."""
    log = fit.log
    rows = np.unique(np.linspace(0, fit.problem.n_rows - 1, ROWS).astype(np.int64))
    values = fit.values[rows]
    spread = _spread(fit, values)
    if np.ptp(values) <= ROUNDING * np.abs(values).max():
        return [spread], f"All logged states have the same value, {number(float(values.mean()))}."
    if log is None or fit.look is None:
        return [spread], "Without the log only the values of its rows are known."
    states = fit.look.numbers(rows)
    if states is None:
        labels = np.asarray(log.states[rows]).astype(str) if getattr(log.states, "ndim", 2) == 1 else None
        return _labelled(labels, values, spread), "States are labels."
    kinds = _constants_out(states)
    if states.shape[1] > MANY or not len(kinds):
        return [spread], f"States have {states.shape[1]:,} numbers: too many to be drawn."
    names = _names(states.shape[1], names)
    if states.shape[1] == 1 or len(kinds) == 1:
        return _one(fit, states, int(kinds[0]), values, names, spread)
    if states.shape[1] == 2:
        return _two(fit, states, values, names, spread)
    return _many(fit, states, kinds, values, names)


def _spread(fit: Fitted, values: Vector, frame: plots.Frame = plots.FRAME) -> tuple[str, str]:
    edges, counts = _histogram(values)
    counts *= fit.problem.n_rows / len(values)  # of a choice of rows
    drawn = plots.histogram("Values of the logged states", edges, counts, "value", frame=frame)
    return drawn, f"From {number(float(fit.values.min()))} to {number(float(fit.values.max()))}."


def _labelled(labels: Any, values: Vector, spread: tuple[str, str]) -> list[tuple[str, str]]:
    if labels is None or len(found := np.unique(labels)) > BARS:
        return [spread]
    return [_bars(found.tolist(), [labels == label for label in found], values), spread]


def _bars(labels: list[str], groups: list[NDArray[np.bool_]], values: Vector) -> tuple[str, str]:
    means = np.array([values[group].mean() for group in groups])
    notes = [f"{int(group.sum()):,} of the rows looked at" for group in groups]
    return plots.bars("Value of each state", labels, means, notes, "state", "value"), "States that the log has."


def _one(
    fit: Fitted, states: Vector, j: int, values: Vector, names: list[str], spread: tuple[str, str]
) -> tuple[list[tuple[str, str]], str]:
    column = states[:, j]
    found = np.unique(column)
    if len(found) <= BARS and (found == np.round(found)).all():
        labels = [f"{x:g}" for x in found]
        return [_bars(labels, [column == x for x in found], values), spread], "The value of every state of the log."
    edges, counts = _histogram(column)
    x = np.linspace(column.min(), column.max(), POINTS)
    y = _predicted(fit, states, {j: x})
    said = "Below: how often the log has been there."
    if y is None:
        centres, y = _binned(column, values)[:2]
        x, said = centres, "Means over the logged states."
    drawn = plots.curve(f"Value by {names[j]}", x, y, names[j], "value", (edges, counts))
    return [(drawn, said), spread], "The value function over all states that the log has seen."


def _two(
    fit: Fitted, states: Vector, values: Vector, names: list[str], spread: tuple[str, str]
) -> tuple[list[tuple[str, str]], str]:
    shown = [_slice(fit, states, 0, 1, names) or _surface(states, values, 0, 1, names), spread]
    return shown, "The value function over all states that the log has seen; faded where it has been nowhere near."


def _many(
    fit: Fitted, states: Vector, kinds: NDArray[np.intp], values: Vector, names: list[str]
) -> tuple[list[tuple[str, str]], str]:
    explained = np.zeros(states.shape[1])
    for j in kinds:
        explained[j] = _explained(states[:, j], values)
    order = [int(j) for j in np.argsort(-explained, kind="stable") if j in set(kinds.tolist())]
    one, other = order[:2]
    shown = [_surface(states, values, one, other, names)]
    sliced = _slice(fit, states, one, other, names)
    shown += [sliced] if sliced is not None else []
    shown += [_cloud(states[:, j], values, names[j], float(explained[j])) for j in order[:CLOUDS]]
    words = listed([f"{names[j]} {explained[j]:.0%}" for j in order[:3]])
    left = f" The {len(order) - CLOUDS} that tell least are left out." if len(order) > CLOUDS else ""
    said = (
        f"The value depends on {len(order)} numbers. The share of its variance over the logged states that each tells "
        f"by itself: {words}.{left}"
    )
    return [*shown, _spread(fit, values, plots.SMALL)], said


def _surface(states: Vector, values: Vector, i: int, j: int, names: list[str]) -> tuple[str, str]:
    """Mean value of the logged states in each cell of two entries."""
    edges = _edges(states[:, i], CELLS - 8), _edges(states[:, j], CELLS - 8)
    counts, _, _ = np.histogram2d(states[:, j], states[:, i], (edges[1], edges[0]))
    sums, _, _ = np.histogram2d(states[:, j], states[:, i], (edges[1], edges[0]), weights=values)
    with np.errstate(invalid="ignore", divide="ignore"):
        grid = sums / counts
    drawn = plots.heat(f"Mean value by {names[i]} and {names[j]}", edges, grid, (names[i], names[j]))
    return drawn, "Means over the logged states in each cell; empty where the log has none."


def _slice(fit: Fitted, states: Vector, i: int, j: int, names: list[str]) -> tuple[str, str] | None:
    """The value function over two entries, the others at their medians; faded where no logged state is near."""
    edges = _edges(states[:, i], CELLS), _edges(states[:, j], CELLS)
    across, up = np.meshgrid(*(0.5 * (ends[1:] + ends[:-1]) for ends in edges))
    found = _predicted(fit, states, {i: across.ravel(), j: up.ravel()})
    if found is None:
        return None
    counts, _, _ = np.histogram2d(states[:, j], states[:, i], (edges[1], edges[0]))
    title = f"Value by {names[i]} and {names[j]}"
    rest = [] if states.shape[1] == 2 else ["All other numbers at their medians."]
    drawn = plots.heat(
        title if not rest else f"{title}: a slice",
        edges,
        found.reshape(across.shape),
        (names[i], names[j]),
        seen=_spread_out(counts > 0),
    )
    return drawn, " ".join([*rest, "Faded where the log has no state near: what is there is extrapolated."])


def _cloud(column: Vector, values: Vector, name: str, explained: float) -> tuple[str, str]:
    some = np.unique(np.linspace(0, len(values) - 1, DOTS).astype(np.int64))
    centres, means, _ = _binned(column, values)
    drawn = plots.cloud(f"Value by {name}", column[some], values[some], (centres, means), name, "value")
    return drawn, f"Logged states, and means along them: {explained:.0%} of the variance."


def _predicted(fit: Fitted, states: Vector, at: dict[int, Vector]) -> Vector | None:
    """Values where entries have these numbers and the others their medians; None where they cannot be had."""
    if fit.predict is None or fit.log is None:
        return None
    kept = fit.log[:1].states
    if getattr(kept, "dtype", np.dtype(object)).kind not in "fiub" or hasattr(kept, "tocsr"):
        return None
    count = len(next(iter(at.values())))
    given = np.tile(np.median(states, axis=0), (count, 1))
    for j, column in at.items():
        given[:, j] = column
    if kept.dtype.kind != "f":
        given = np.round(given)
    try:
        found = np.asarray(fit.predict(given.reshape(count, *kept.shape[1:]).astype(kept.dtype)), dtype=np.float64)
    except (ValuateError, ValueError, TypeError, IndexError):
        return None  # a map that knows no states but those of the log
    return found if np.isfinite(found).all() else None


def _explained(column: Vector, values: Vector) -> float:
    """Share of the variance of the values between bins of one entry."""
    total = float(values.var())
    if total == 0.0:
        return 0.0
    _, means, counts = _binned(column, values)
    mean = float(means @ counts / counts.sum())
    return float(counts @ np.square(means - mean) / counts.sum() / total)


def _binned(column: Vector, values: Vector, most: int = 20) -> tuple[Vector, Vector, Vector]:
    """Mean of the entry, mean value and number of rows in bins of about equally many rows."""
    edges = np.unique(np.quantile(column, np.linspace(0, 1, most + 1)))
    if len(edges) < 3:
        edges = np.array([column.min(), column.max() + 1e-9])
    place = np.clip(np.searchsorted(edges, column, side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(place, minlength=len(edges) - 1).astype(np.float64)
    kept = counts > 0
    sums = [np.bincount(place, part, minlength=len(edges) - 1)[kept] / counts[kept] for part in (column, values)]
    return sums[0], sums[1], counts[kept]


def _histogram(values: Vector, bins: int = 40) -> tuple[Vector, Vector]:
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-12 * max(1.0, abs(low), abs(high)):
        low, high = low - 0.5, high + 0.5
    counts, edges = np.histogram(values, bins, (low, high))
    return edges, counts.astype(np.float64)


def _edges(column: Vector, cells: int) -> Vector:
    """Ends of cells between the outermost thousandths: a few far states do not squeeze the others."""
    low, high = np.quantile(column, [0.001, 0.999])
    if high <= low:
        low, high = column.min(), column.max()
    return np.linspace(low, high, cells + 1)


def _spread_out(seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Cells that have a state, and their neighbours."""
    wide = np.pad(seen, 1)
    parts = [wide[a : a + seen.shape[0], b : b + seen.shape[1]] for a in range(3) for b in range(3)]
    return np.asarray(np.logical_or.reduce(parts))


def _constants_out(states: Vector) -> NDArray[np.intp]:
    return np.flatnonzero(states.min(axis=0) < states.max(axis=0))


def _names(count: int, names: list[str] | None) -> list[str]:
    if names is not None and len(names) == count:
        return names
    return ["state"] if count == 1 else [f"state {j}" for j in range(count)]
