"""Features of pairs of state and action."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.errors import InputError
from valuate.features._base import FeatureMap
from valuate.features.tabular import whole_numbers

__all__ = ["StateActionBlocks"]


class StateActionBlocks(FeatureMap):
    """One block of features for each action: the state's in the block of the action taken, 0 in the others.

    Pairs are given as a tuple ``(states, actions)``; as an array with the action in the last column; or, where states
    are whole numbers, as whole numbers ``state * n_actions + action``, (m,).

    Parameters
    ----------
    features : feature map
        Of states: an object with ``transform``, or a callable. `fit` puts a fitted copy in its place and leaves what
        was given alone; a `sklearn.frozen.FrozenEstimator` stays as it is.
    n_actions : int
    sparse_output : bool
        Whether `transform` gives a scipy.sparse.csr_array, which has the state's features only, or a dense array.

    Attributes
    ----------
    n_features_ : int
        Of the pairs; known from `fit` alone, not from a file.
    """

    def __init__(self, features: Any, n_actions: int, sparse_output: bool = True) -> None:
        self.features = features
        self.n_actions = n_actions
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit a copy of the features of states on the states of the pairs ``X``."""
        from sklearn.base import clone
        from sklearn.frozen import FrozenEstimator

        states, _ = self.split(X)
        # A callable has nothing to fit, and a frozen one is fitted for good: its fit asks for a y.
        if hasattr(self.features, "fit") and not isinstance(self.features, FrozenEstimator):
            self.features = clone(self.features, safe=False).fit(states)
        self.n_features_: int = self._count() * self.state_features(states[:1]).shape[1]
        return self

    def transform(self, X: Any) -> Any:
        """Features of m pairs, (m, n_actions * d) where the state's are (m, d)."""
        states, actions = self.split(X)
        rows = self.state_features(states)
        m, d = rows.shape
        actions = _checks.indices("actions", actions, m, self._count())
        if self.sparse_output or _checks.is_sparse(rows):
            return _blocks(rows, actions, self._count())
        out = np.zeros((m, self._count(), d), rows.dtype)
        out[np.arange(m), actions] = rows
        return out.reshape(m, -1)

    def state_features(self, states: Any) -> Any:
        """The features of states, (m, d)."""
        rows = self.features.transform(states) if hasattr(self.features, "transform") else self.features(states)
        return rows if _checks.is_sparse(rows) else _checks.matrix("features", rows)

    def split(self, X: Any) -> tuple[Any, NDArray[np.integer[Any]]]:
        """States and actions, (m, ...) and (m,), of pairs in any of the three forms."""
        if isinstance(X, tuple):
            if len(X) != 2:
                raise InputError(f"A tuple of pairs must be (states, actions) and has {len(X)} parts.")
            states, actions = X[0], whole_numbers("actions", X[1])
            count = states.shape[0] if hasattr(states, "shape") else len(states)
            if count != len(actions):
                raise InputError(f"There are {count} states and {len(actions)} actions: they must agree.")
            return states, actions
        array = _checks.as_array("pairs", X)
        if array.ndim == 1:
            states, actions = np.divmod(whole_numbers("pairs", array), self._count())
            return states, actions
        if array.ndim != 2 or array.shape[1] < 2:
            raise InputError(
                f"pairs must have states in all columns but the last, which has the action; the shape is {array.shape}."
            )
        return array[:, :-1], whole_numbers("actions", array[:, -1])

    def __sklearn_is_fitted__(self) -> bool:
        fitted = getattr(self.features, "__sklearn_is_fitted__", None)
        return True if fitted is None else bool(fitted())

    def _width(self) -> int:
        if not hasattr(self, "n_features_") and isinstance(self.features, FeatureMap):
            return self._count() * self.features._width()
        return super()._width()

    def _count(self) -> int:
        return _checks.whole("n_actions", self.n_actions, low=1)


def _blocks(rows: Any, actions: NDArray[np.integer[Any]], n_actions: int) -> Any:
    """The rows as CSR, each shifted to the block of its action."""
    from scipy import sparse

    m, d = rows.shape
    if _checks.is_sparse(rows):
        rows = sparse.csr_array(rows)
        data, starts, columns = rows.data, rows.indptr, rows.indices.astype(np.int64)
        columns += np.repeat(actions * np.int64(d), np.diff(starts))
    else:
        data, starts = rows.ravel(), np.arange(m + 1, dtype=np.int64) * d
        columns = (actions.astype(np.int64)[:, None] * d + np.arange(d)).ravel()
    if max(n_actions * d, len(data)) < np.iinfo(np.int32).max:
        columns, starts = columns.astype(np.int32), starts.astype(np.int32)
    return sparse.csr_array((data, columns, starts), shape=(m, n_actions * d))
