"""The Fourier cosine basis."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from valuate import _checks
from valuate.features import _inputs, _terms
from valuate.features._base import FeatureMap

__all__ = ["Fourier"]

_ADVICE = (
    "Lower the order, let a feature look into fewer columns (coupled=2, or False for one), or bound the sum of its "
    "coefficients (max_sum=3)."
)


class Fourier(FeatureMap):
    """Features cos(pi c.s), with s the state mapped to the unit box of the data and c whole numbers up to the order.

    Parameters
    ----------
    order : int
        The largest entry of a c. All of them are (order + 1)^k features of k columns.
    coupled : int or bool
        Into how many columns one feature may look: all (True), only one (False), or so many.
    max_sum : int, optional
        The largest sum of the entries of a c.
    constant : bool
        Whether there is a feature that is always 1. `LinearValue` has an intercept of its own.
    tails : float
        The share of states at each end of a column that the box leaves out; they count as being on its edge. 0: the
        box of the data. A little above 0 helps where a few states lie far out.

    Attributes
    ----------
    low_, high_ : (k,) array
        The box. States beyond it count as being on its edge.
    coefficients_ : (n_features, k) array of int
        The vectors c, sums going up. Columns that are constant are in none; those of two values have c at most 1.

    References
    ----------
    Konidaris, Osentoski and Thomas, "Value function approximation in reinforcement learning using the Fourier basis",
    AAAI 2011.
    """

    learned = ("low_", "high_", "coefficients_")

    def __init__(
        self,
        order: int = 3,
        coupled: int | bool = True,
        max_sum: int | None = None,
        constant: bool = False,
        tails: float = 0.0,
    ) -> None:
        self.order = order
        self.coupled = coupled
        self.max_sum = max_sum
        self.constant = constant
        self.tails = tails

    @property
    def n_features_(self) -> int:
        """Number of features."""
        self._require_fitted()
        return len(self.coefficients_)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the box of the states ``X``, (m, k) or (m,)."""
        order = _checks.whole("order", self.order, low=1)
        most = None if self.max_sum is None else _checks.whole("max_sum", self.max_sum, low=1)
        tails = _inputs.share(self.tails)
        states = _inputs.numbers(X)
        found = _inputs.columns(states)
        highest = [(0, 1, order)[count - 1] for count in found.values.tolist()]
        self.coefficients_ = _terms.terms(highest, self._together(len(highest)), most, self.constant, _ADVICE)
        self.low_, self.high_ = _inputs.ranges(states, found, tails)
        return self

    def transform(self, X: Any) -> Any:
        """Features of states (m, k): (m, n_features) float64, between -1 and 1."""
        self._require_fitted()
        states = _inputs.numbers(X, width=len(self.low_))
        wide = self.high_ > self.low_
        factor = np.divide(np.pi, self.high_ - self.low_, out=np.zeros_like(self.low_), where=wide)

        def angles(block: _inputs.Array) -> _inputs.Array:
            inside = np.clip(block, self.low_, self.high_)
            return np.asarray((inside - self.low_) * factor)

        return _terms.combined(states, self.coefficients_, angles, np.add, empty=0.0, finish=np.cos)

    def _together(self, k: int) -> int:
        if isinstance(self.coupled, bool | np.bool_):
            return k if self.coupled else 1
        return _checks.whole("coupled", self.coupled, low=1)
