"""Mountain Car."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from valuate.environments.simulated import Actions, Simulated, States

__all__ = ["MountainCar"]

FORCE, GRAVITY = 0.001, 0.0025
LEAST, MOST, GOAL, FASTEST = -1.2, 0.6, 0.5, 0.07


class MountainCar(Simulated):
    """A car too weak to drive straight out of a valley; Gymnasium's MountainCar-v0.

    States are position and velocity. Action 0 pushes left, 1 not at all, 2 right. Every step has reward -1, and the
    episode ends at the goal. It starts at rest, at a position drawn from U[-0.6, -0.4].

    Parameters
    ----------
    limit : int or None

    References
    ----------
    A. W. Moore, "Efficient memory-based learning for robot control", PhD thesis, University of Cambridge, 1990.
    """

    n_actions: ClassVar[int] = 3
    low: ClassVar[tuple[float, ...]] = (LEAST, -FASTEST)
    high: ClassVar[tuple[float, ...]] = (MOST, FASTEST)

    def __init__(self, limit: int | None = 200) -> None:
        super().__init__(limit)

    def reset(self, count: int, rng: np.random.Generator) -> States:
        """Start states, (count, 2)."""
        states = np.zeros((count, 2))
        states[:, 0] = rng.uniform(-0.6, -0.4, size=count)
        return states

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator | None = None
    ) -> tuple[States, NDArray[np.float64], NDArray[np.bool_]]:
        """Next states (count, 2), rewards and ends (count,)."""
        position, velocity = states[:, 0], states[:, 1]
        velocity = velocity + ((actions - 1) * FORCE + np.cos(3 * position) * -GRAVITY)
        velocity = np.minimum(np.maximum(velocity, -FASTEST), FASTEST)
        position = np.minimum(np.maximum(position + velocity, LEAST), MOST)
        velocity[(position == LEAST) & (velocity < 0)] = 0.0
        ended = (position >= GOAL) & (velocity >= 0.0)
        return np.stack([position, velocity], axis=1), np.full(len(states), -1.0), ended
