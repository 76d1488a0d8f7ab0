"""A multiplier bootstrap: every draw gets a random weight, and the value is computed anew."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks
from valuate.inference import adjoint, deletion

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

#: Entries of the matrices of all draws, and multiply-adds of all solves, up to which values are computed anew.
ENTRIES, WORK = 1 << 24, 2e10


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Values under random weights, less the value itself: (k,)."""

    changes: Vector
    #: Whether the equations were solved anew for each, or followed to first order.
    refitted: bool

    @property
    def error(self) -> float:
        """Their standard deviation."""
        return float(self.changes.std())

    def interval(self, value: float, confidence: float) -> tuple[float, float]:
        """The basic interval, turned round the value as errors are."""
        low, high = np.quantile(self.changes, [0.5 - confidence / 2, 0.5 + confidence / 2])
        return value - float(high), value - float(low)


def run(fit: Any, influence: Vector, active: NDArray[np.intp], share: Vector, draws: int, seed: Any) -> Bootstrap:
    """Weights are exponential with mean 1 (Rubin, "The Bayesian bootstrap", Annals of Statistics 9, 1981).

    Where the matrices of all draws fit, A theta = b is solved anew under each set of weights: what the interval says
    to first order is checked against all orders. Else the influence is followed, which checks the interval only.
    """
    rng = np.random.default_rng(seed)
    draws, count = _checks.whole("bootstrap", draws, low=2), len(active)
    system = fit.system
    fits = isinstance(system, adjoint.Dense) and fit.form.plain and count * system.rank**2 <= ENTRIES
    if not fits or draws * (system.rank**3 + count * system.rank**2) > WORK:
        weights = rng.standard_exponential((draws, count))
        weights /= weights.mean(axis=1, keepdims=True)
        return Bootstrap((weights - 1.0) @ influence * np.sqrt(count / max(1, count - 1)), False)
    pieces = deletion.Pieces(fit.problem, system, fit.draws, fit.theta, fit.errors, share)
    states = deletion.States(system, fit.draws, fit.states, fit.theta)
    found = [pieces.of(first, last) for first, last in pieces.chunks()]
    flat = np.concatenate([cores for cores, _ in found])[active].reshape(count, -1)
    pulls = np.concatenate([pulls for _, pulls in found])[active]
    changes = np.empty(draws)
    for k in range(draws):
        weights = rng.standard_exponential(count)
        weights /= weights.mean()
        everyone = np.ones(fit.draws.count)
        everyone[active] = weights
        mean, shift = states.under(everyone)
        step = np.linalg.solve((weights @ flat).reshape(system.core.shape), weights @ pulls)
        changes[k] = shift + float(mean @ step)
    return Bootstrap(changes * np.sqrt(count / max(1, count - 1)), True)
