"""One feature a state."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.errors import InputError
from valuate.features._base import FeatureMap

__all__ = ["Tabular"]


class Tabular(FeatureMap):
    """An indicator of each state; states are whole numbers from 0.

    Parameters
    ----------
    n_states : int, optional
        None: one more than the largest state that `fit` sees.
    sparse_output : bool
        Whether `transform` gives a scipy.sparse.csr_array or a dense array.

    Attributes
    ----------
    n_states_ : int
        After `fit`.
    """

    learned = ("n_states_",)

    def __init__(self, n_states: int | None = None, sparse_output: bool = True) -> None:
        self.n_states = n_states
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None) -> Self:
        """Look at the states ``X``, (m,) or (m, 1)."""
        states = whole_states(X)
        if self.n_states is None:
            if states.min() < 0:
                raise InputError(f"states must be at least 0; the least is {states.min()}.")
            self.n_states_ = int(states.max()) + 1
        else:
            self.n_states_ = _checks.whole("n_states", self.n_states, low=1)
            _checks.indices("states", states, None, self.n_states_)
        return self

    def transform(self, X: Any) -> Any:
        """Indicators, (m, n_states), of states (m,) or (m, 1)."""
        n = self._size()
        states = _checks.indices("states", whole_states(X), None, n)
        m = len(states)
        if not self.sparse_output:
            out = np.zeros((m, n))
            out[np.arange(m), states] = 1.0
            return out
        from scipy import sparse

        return sparse.csr_array((np.ones(m), states, np.arange(m + 1)), shape=(m, n))

    def __sklearn_is_fitted__(self) -> bool:
        return self.n_states is not None or hasattr(self, "n_states_")

    def _width(self) -> int:
        return self._size()

    def _size(self) -> int:
        if self.n_states is not None:
            return _checks.whole("n_states", self.n_states, low=1)
        if not hasattr(self, "n_states_"):
            raise InputError("The number of states is not known yet: give Tabular n_states or call fit first.")
        return self.n_states_


def whole_states(X: Any) -> NDArray[np.integer[Any]]:
    """States (m,) or (m, 1) as whole numbers (m,); floats pass where they are whole."""
    states = _checks.as_array("states", X)
    if states.ndim == 2 and states.shape[1] == 1:
        states = states[:, 0]
    return whole_numbers("states", states)


def whole_numbers(name: str, value: Any) -> NDArray[np.integer[Any]]:
    """One whole number a row, (m,); floats pass where they are whole."""
    array = _checks.one_a_row(name, value)
    if array.dtype.kind != "f":
        return array
    _checks.finite(name, array)
    rounded = array.astype(np.int64)
    if not np.array_equal(rounded, array):
        row = int((rounded != array).argmax())
        raise InputError(f"{name} must be whole numbers; row {row} has {array[row]:.6g}.")
    return rounded
