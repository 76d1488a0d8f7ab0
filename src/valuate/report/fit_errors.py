"""Temporal-difference errors of a fit: how large, where in an episode, and whether values are what follows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valuate.errors import ValuateError
from valuate.inference.trajectories import Trajectories
from valuate.report import plots
from valuate.report.parts import Entry, Table, number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.report.fitted import Fitted

    Vector = NDArray[np.float64]

#: Groups of rows along an axis, at most.
GROUPS = 24
#: Rows that are listed.
LISTED = 8
#: What lies beyond these quantiles is counted in the outermost bars.
TAILS = (0.002, 0.998)


def histogram(fit: Fitted) -> tuple[str, str]:
    """The drawing of all errors, and its caption."""
    errors = fit.errors
    mean = float(errors.mean())
    low, high = np.quantile(errors, TAILS)
    if high <= low:
        low, high = float(errors.min()) - 0.5, float(errors.max()) + 0.5
    counts, edges = np.histogram(np.clip(errors, low, high), 50, (low, high))
    drawn = plots.histogram(
        "Temporal-difference errors",
        edges,
        counts.astype(np.float64),
        "reward + discount * next value - value",
        zero=True,
    )
    deviation = float(errors.std())
    mean = mean if abs(mean) > 1e-9 * deviation else 0.0
    ends = f"{number(float(errors.min()))} to {number(float(errors.max()))}"
    return drawn, (
        f"Mean {number(mean)}, deviation {number(deviation)}, from {ends}. The outermost bars hold what lies beyond."
    )


def by_position(fit: Fitted) -> tuple[str, str] | None:
    """Mean errors by the number of a row in its episode."""
    positions = fit.positions
    if positions is None or int(positions.max()) < 2:
        return None
    edges = _groups(positions.astype(np.float64), fit.problem.n_rows)
    place = np.clip(np.searchsorted(edges, positions, side="right") - 1, 0, len(edges) - 2)
    counts, means, errors = _means(place, fit.errors, len(edges) - 1)
    at = _means(place, positions.astype(np.float64), len(edges) - 1)[1]
    kept = counts > 1
    if kept.sum() < 2:
        return None
    at, means, errors = at[kept], means[kept], errors[kept]
    drawn = plots.band(
        "Mean error along an episode", at, means, means - 2 * errors, means + 2 * errors, "row of its episode",
        "mean error",
    )  # fmt: skip
    return drawn, "With two standard errors. Away from 0: the features cannot tell these rows from others."


def calibration(fit: Fitted) -> tuple[str, str] | None:
    """What followed on rows, by the value that they have; None where it is another policy's, or not known."""
    log = fit.log
    if log is None or log.ratios is not None or log.weights is not None or fit.off_policy:
        return None
    try:
        runs = Trajectories.read(log, fit.records["discount"].clip(0, 1), _labels(fit), fit.next_values)
    except ValuateError:
        return None
    returns = runs.backward(runs.discounts, runs.rewards)
    edges = np.unique(np.quantile(fit.values, np.linspace(0, 1, 16)))
    if len(edges) < 3:
        return None
    place = np.clip(np.searchsorted(edges, fit.values, side="right") - 1, 0, len(edges) - 2)
    # Rows of one episode go together: its mean in a group is one draw.
    episode = np.repeat(np.arange(len(runs.first)), runs.last - runs.first + 1)
    groups, low, high = [], [], []
    for k in range(len(edges) - 1):
        rows = np.flatnonzero(place == k)
        if len(rows) < 2:
            continue
        names, codes = np.unique(episode[rows], return_inverse=True)
        mean = float(returns[rows].mean())
        off = np.bincount(codes, returns[rows] - mean)
        error = np.sqrt(off @ off * len(names) / max(1, len(names) - 1)) / len(rows) if len(names) > 1 else np.nan
        if np.isfinite(error):
            groups.append((float(fit.values[rows].mean()), mean))
            low.append(mean - 2 * error)
            high.append(mean + 2 * error)
    if len(groups) < 2:
        return None
    x, y = np.array(groups).T
    drawn = plots.whiskers("What followed, by value", x, y, np.array(low), np.array(high), "value", "discounted return")
    cut = ""
    if runs.cut:
        many = runs.cut > 1
        one, other = (
            ("episodes that were cut short go", "their") if many else ("episode that was cut short goes", "its")
        )
        cut = f" {runs.cut:,} {one} on with the model's value of {other} last state."
    return drawn, f"On the dashed line what followed is what the value says. Two standard errors, by episode.{cut}"


def largest(fit: Fitted) -> Table:
    """The rows with the largest errors."""
    rows = np.argsort(-np.abs(fit.errors), kind="stable")[:LISTED] if fit.problem.n_rows < 100_000 else _top(fit)
    labels = None if fit.log is None else fit.log.episodes
    columns = ["Row", *(["Episode"] if labels is not None else []), *(["Step"] if fit.positions is not None else [])]
    out: list[list[Entry]] = []
    for row in rows.tolist():
        line: list[Entry] = [int(row)]
        line += [] if labels is None else [str(labels[row])]
        line += [] if fit.positions is None else [int(fit.positions[row])]
        record = fit.records[row]
        ended = "ends" if record["discount"] == 0 else float(fit.next_values[row])
        out.append([*line, float(record["reward"]), float(fit.values[row]), ended, float(fit.errors[row])])
    return Table("largest", "The largest errors", (*columns, "Reward", "Value", "Next value", "Error"), out)


def _top(fit: Fitted) -> NDArray[np.intp]:
    sizes = np.abs(fit.errors)
    top = np.argpartition(sizes, -LISTED)[-LISTED:]
    return top[np.argsort(-sizes[top])]


def _labels(fit: Fitted) -> NDArray[np.int64] | None:
    """Episodes by the log's own labels or, without them, by its flags."""
    assert fit.look is not None
    if fit.look.same_label is not None or not fit.look.known:
        return None
    return np.repeat(np.arange(len(fit.look.last)), fit.look.lengths)


def _groups(positions: Vector, n: int) -> Vector:
    """Ends of groups: single rows at the start of an episode, then more of them."""
    most = float(positions.max())
    if most < GROUPS:
        return np.arange(most + 2)
    usual = float(np.quantile(positions, 0.99))
    early = np.unique(np.round(np.geomspace(1, max(usual, 2.0) + 1, GROUPS)))
    return np.unique(np.concatenate([[0.0], early, [most + 1]]))


def _means(place: NDArray[np.intp], values: Vector, count: int) -> tuple[Vector, Vector, Vector]:
    """Number, mean and standard error of the mean in each group."""
    counts = np.bincount(place, minlength=count).astype(np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.bincount(place, values, count) / counts
        squares = np.bincount(place, np.square(values - means[place]), count) / np.maximum(counts - 1, 1)
    return counts, means, np.sqrt(squares / np.maximum(counts, 1))
