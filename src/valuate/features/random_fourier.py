"""Random Fourier features of standardised numbers."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from valuate import _checks
from valuate.errors import InputError, MissingPartError
from valuate.features import _inputs, _terms
from valuate.features._base import FeatureMap

__all__ = ["RandomFourier"]

#: States whose distances the median is taken of.
PAIRED = 1000
#: Entries computed at a time.
BLOCK_ENTRIES = 1 << 20


class RandomFourier(FeatureMap):
    """Features sqrt(2 / n_features) cos(w.z + c) of the standardised state z, w and c from scikit-learn's RBFSampler.

    Their products approximate the kernel exp(-gamma |z - z'|^2), so that a linear function of them is a smooth function
    of the state, however many numbers it has.

    Parameters
    ----------
    n_features : int
    gamma : float or "median"
        The larger, the rougher the functions. "median": 1 / (2 m^2), with m the median distance of two states.
    random_state : int
        Seed of the draws.

    Attributes
    ----------
    mean_, scale_ : (k,) array
        Of each column of the states that `fit` saw; the scale of a constant column is 0, and it counts for nothing.
    gamma_ : float
    weights_ : (k, n_features) array
    offsets_ : (n_features,) array

    References
    ----------
    Rahimi and Recht, "Random features for large-scale kernel machines", NIPS 2007.
    """

    learned = ("mean_", "scale_", "gamma_", "weights_", "offsets_")

    def __init__(self, n_features: int = 300, gamma: float | str = "median", random_state: int = 0) -> None:
        self.n_features = n_features
        self.gamma = gamma
        self.random_state = random_state

    @property
    def n_features_(self) -> int:
        """Number of features."""
        self._require_fitted()
        return len(self.offsets_)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn means, scales and a typical distance of the states ``X``, (m, k) or (m,), and draw the features."""
        count = _checks.whole("n_features", self.n_features, low=1)
        seed = _checks.whole("random_state", self.random_state, low=0)
        if isinstance(self.gamma, str):
            if self.gamma != "median":
                raise InputError(f"gamma must be a number above 0 or 'median', not {self.gamma!r}.")
        else:
            _checks.number("gamma", self.gamma, above=0.0)
        _terms.require_few(count, "Give a smaller n_features.")
        try:
            from sklearn.kernel_approximation import RBFSampler
        except ImportError as error:
            raise MissingPartError("scikit-learn", "sklearn", "RandomFourier") from error
        states = _inputs.numbers(X)
        found = _inputs.columns(states)
        self.mean_, self.scale_ = found.mean, found.scale
        self.gamma_ = self._median(states) if isinstance(self.gamma, str) else float(self.gamma)
        sampler = RBFSampler(gamma=self.gamma_, n_components=count, random_state=seed)
        sampler.fit(np.zeros((1, states.shape[1])))  # it looks at the number of columns only
        self.weights_ = np.asarray(sampler.random_weights_, dtype=np.float64)
        self.weights_[self.scale_ == 0] = 0.0
        self.offsets_ = np.asarray(sampler.random_offset_, dtype=np.float64)
        return self

    def transform(self, X: Any) -> Any:
        """Features of states (m, k): (m, n_features) float64."""
        self._require_fitted()
        states = _inputs.numbers(X, width=len(self.mean_))
        out = np.empty((len(states), len(self.offsets_)))
        for part, block in _inputs.blocks(states, max(64, BLOCK_ENTRIES // len(self.offsets_))):
            angles = out[part]
            np.matmul(self._standard(block), self.weights_, out=angles)
            angles += self.offsets_
            np.cos(angles, out=angles)
            angles *= np.sqrt(2.0 / len(self.offsets_))
        return out

    def _standard(self, states: Any) -> _inputs.Array:
        inverse = np.divide(1.0, self.scale_, out=np.zeros_like(self.scale_), where=self.scale_ > 0)
        return np.asarray((states - self.mean_) * inverse)

    def _median(self, states: Any) -> float:
        """1 / (2 m^2), with m the median distance between states that are evenly spaced over all."""
        from scipy.spatial.distance import pdist

        some = self._standard(states[:: -(-len(states) // PAIRED)])
        distances = pdist(some)
        apart = distances[distances > 0]
        return 1.0 / (2.0 * float(np.median(apart)) ** 2) if len(apart) else 1.0
