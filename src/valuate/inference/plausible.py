"""Whether an interval is wider than what the log itself spans: a sign of more features than its episodes carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valuate import gathering
from valuate.inference.scores import in_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.inference.clusters import Clusters
    from valuate.problem import Problem

    Vector = NDArray[np.float64]

#: A standard error so many times that of the logged returns deserves a remark. Discounts that look far beyond the end
#: of a recording make it a few times larger by themselves.
TIMES = 10.0
#: Returns that differ by less than this share of the largest reward do not differ at all.
SAME = 1e-9
#: Below this share of effective rows the ratios are what makes an interval wide, and the remark is another one.
EVEN = 0.9

_ADVICE = "The features are too many for these episodes: take fewer of them, or a ridge"


def remarks(problem: Problem, draws: Clusters, error: float) -> list[str]:
    """A sentence where a standard error is larger than discounted returns can be, or than theirs by far; else none."""
    records = in_memory(problem).records
    rewards, discounts = (np.asarray(records[name], dtype=np.float64) for name in ("reward", "discount"))
    starts = draws.chain_starts() if draws.starts is not None else None
    largest = float(np.abs(rewards).max()) * _horizon(discounts, starts)
    if error > largest > 0:
        return [
            f"The standard error is larger than any discounted return of the rewards seen can be, {largest:.3g}. "
            f"{_ADVICE}."
        ]
    total, squares = problem.rows.ratio_sums()
    if draws.method != "episodes" or starts is None or total**2 < EVEN * problem.n_rows * squares:
        return []
    own = _error_of_returns(rewards, discounts, starts, draws)
    if error <= TIMES * own or own <= SAME * float(np.abs(rewards).max()):
        return []
    return [
        f"The standard error is {error / own:,.0f} times that of the returns as logged, {own:.3g}. {_ADVICE}; or these "
        "are much shorter than what the discount looks ahead."
    ]


def _horizon(discounts: Vector, starts: NDArray[np.bool_] | None) -> float:
    """How many rewards of the largest size a discounted return can have."""
    most = float(discounts.max())
    horizon = 1.0 / (1.0 - most) if most < 1.0 else np.inf
    if starts is None:
        return horizon
    first = np.flatnonzero(starts)
    last = np.append(first[1:], len(starts)) - 1
    if discounts[last].any():  # some go on beyond the log
        return horizon
    return min(horizon, float((last - first).max() + 1))


def _error_of_returns(rewards: Vector, discounts: Vector, starts: NDArray[np.bool_], draws: Clusters) -> float:
    """The standard error of the mean discounted return, what follows the log being left out."""
    first = np.flatnonzero(starts)
    keep = discounts.copy()
    keep[np.append(first[1:], len(starts)) - 1] = 0.0
    column, factors = rewards[::-1].copy()[:, None], keep[::-1].copy()
    gathering.add_traces(column, factors, np.zeros(1))
    returns = column[::-1, 0][first]
    labels = draws.codes[first]
    counts = np.bincount(labels, minlength=draws.count)
    terms = np.bincount(labels, returns - returns.mean(), draws.count) / counts.sum()
    return float(np.sqrt(terms @ terms))
