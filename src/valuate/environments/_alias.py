"""Drawing from many discrete distributions at once, in constant time a draw."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["AliasTables"]


class AliasTables:
    """Alias tables of m distributions over k outcomes each.

    A draw looks at one place of one table: a column is chosen with equal chances, and it gives either its own outcome
    or that of its alias (A. J. Walker, "An efficient method for generating discrete random variables with general
    distributions", ACM TOMS 3, 1977). The tables are filled by a sweep over the outcomes of all rows at a time.

    Parameters
    ----------
    probabilities : (m, k) array
        Rows that sum to 1.
    """

    def __init__(self, probabilities: NDArray[np.float64]) -> None:
        self.n_outcomes = probabilities.shape[1]
        self.uniform = bool((probabilities == 1.0 / self.n_outcomes).all())
        if self.uniform:
            return
        threshold, alias = _sweep(probabilities * self.n_outcomes)
        self._threshold = threshold.ravel()
        self._alias = alias.astype(np.min_scalar_type(self.n_outcomes)).ravel()

    def draw(self, rows: NDArray[np.int64], rng: np.random.Generator) -> NDArray[np.int64]:
        """One outcome from the distribution of each of ``rows``, all shapes (count,)."""
        k = self.n_outcomes
        if k == 1:
            return np.zeros(len(rows), dtype=np.int64)
        if self.uniform:
            return rng.integers(k, size=len(rows))
        place = rng.random(len(rows))
        place *= k
        column = place.astype(np.int64)
        np.minimum(column, k - 1, out=column)  # the product may round up to k
        place -= column
        at = rows * k
        at += column
        return np.where(place < self._threshold[at], column, self._alias[at])


def _sweep(weight: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Thresholds and aliases, both (m, k), from probabilities times k.

    Each turn settles one column of every row: the lightest one left, topped up by the current heavy one, or the heavy
    one itself once no more than its own share is left of it, topped up by the next.
    """
    m, k = weight.shape
    rows = np.arange(m)
    order = np.argsort(weight, axis=1)
    light, heavy = np.zeros(m, np.int64), (weight <= 1.0).sum(axis=1)
    n_light = heavy.copy()
    threshold, alias = np.ones((m, k)), np.tile(np.arange(k), (m, 1))
    current = order[rows, np.minimum(heavy, k - 1)]
    left = weight[rows, current]
    for _ in range(k):
        tops_up = (left > 1.0) & (light < n_light) & (heavy < k)
        passes_on = (left <= 1.0) & (heavy < k - 1)
        some = np.flatnonzero(tops_up)
        column = order[some, light[some]]
        threshold[some, column] = weight[some, column]
        alias[some, column] = current[some]
        left[some] -= 1.0 - weight[some, column]
        light[some] += 1
        some = np.flatnonzero(passes_on)
        heavy[some] += 1
        column, current[some] = current[some], order[some, heavy[some]]
        threshold[some, column] = left[some]
        alias[some, column] = current[some]
        left[some] += weight[some, current[some]] - 1.0
    return threshold, alias
