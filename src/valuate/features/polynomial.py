"""Monomials of standardised numbers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from valuate import _checks
from valuate.features import _inputs, _terms
from valuate.features._base import FeatureMap

__all__ = ["Polynomial"]


class Polynomial(FeatureMap):
    """All products of powers of the numbers of a state up to a degree, each number standardised first.

    Parameters
    ----------
    degree : int
        1: the standardised numbers themselves.
    interactions : bool
        Whether products of different columns are taken, or powers of one column only.
    constant : bool
        Whether there is a feature that is always 1. `LinearValue` has an intercept of its own.

    Attributes
    ----------
    mean_, scale_ : (k,) array
        Of each column of the states that `fit` saw; the scale of a constant column is 0.
    powers_ : (n_features, k) array of int
        The power of each column in each feature. Degrees go up. A constant column is in none, and one of two values,
        such as a flag, is never squared: that would only say the same again.

    Examples
    --------
    >>> Polynomial(2).fit([[0.0, 1.0], [1.0, 3.0], [2.0, 2.0]]).powers_.tolist()
    [[1, 0], [0, 1], [2, 0], [1, 1], [0, 2]]
    """

    learned = ("mean_", "scale_", "powers_")

    def __init__(self, degree: int = 2, interactions: bool = True, constant: bool = False) -> None:
        self.degree = degree
        self.interactions = interactions
        self.constant = constant

    @property
    def n_features_(self) -> int:
        """Number of features."""
        self._require_fitted()
        return len(self.powers_)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn mean and scale of each column of the states ``X``, (m, k) or (m,)."""
        degree = _checks.whole("degree", self.degree, low=1)
        states = _inputs.numbers(X)
        found = _inputs.columns(states)
        highest = [(0, 1, degree)[count - 1] for count in found.values.tolist()]
        together = degree if self.interactions else 1
        advice = "Lower the degree" + (" or say interactions=False." if self.interactions else ".")
        self.powers_ = _terms.terms(highest, together, degree, self.constant, advice)
        self.mean_, self.scale_ = found.mean, found.scale
        return self

    def transform(self, X: Any) -> Any:
        """Features of states (m, k): (m, n_features) float64."""
        self._require_fitted()
        states = _inputs.numbers(X, width=len(self.mean_))
        inverse = np.divide(1.0, self.scale_, out=np.zeros_like(self.scale_), where=self.scale_ > 0)
        return _terms.combined(
            states, self.powers_, lambda block: (block - self.mean_) * inverse, np.multiply, empty=1.0
        )
