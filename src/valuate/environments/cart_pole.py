"""Cart Pole."""

from __future__ import annotations

from math import inf, radians
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from valuate.environments.simulated import Actions, Simulated, States
from valuate.errors import InputError

__all__ = ["CartPole"]

GRAVITY, FORCE, INTERVAL = 9.8, 10.0, 0.02
POLE_MASS, MASS, HALF_LENGTH = 0.1, 1.1, 0.5
POLE_MOMENT = POLE_MASS * HALF_LENGTH
FARTHEST, STEEPEST = 2.4, radians(12)


class CartPole(Simulated):
    """A pole to balance on a cart that is pushed left (action 0) or right (action 1); Gymnasium's CartPole-v1.

    States are the cart's position and velocity and the pole's angle and angular velocity, all starting from
    U[-0.05, 0.05]. The episode ends when the cart is more than 2.4 from the middle or the pole more than 12 degrees
    from upright.

    Parameters
    ----------
    limit : int or None
    reward : {"survival", "failure"}
        "survival": 1 for every step, as in Gymnasium. "failure": -1 for the step that ends the episode and 0 for all
        others, as in the paper.

    References
    ----------
    A. G. Barto, R. S. Sutton and C. W. Anderson, "Neuronlike adaptive elements that can solve difficult learning
    control problems", IEEE Transactions on Systems, Man, and Cybernetics 13, 1983.
    """

    n_actions: ClassVar[int] = 2
    low: ClassVar[tuple[float, ...]] = (-2 * FARTHEST, -inf, -2 * STEEPEST, -inf)
    high: ClassVar[tuple[float, ...]] = (2 * FARTHEST, inf, 2 * STEEPEST, inf)

    def __init__(self, limit: int | None = 500, *, reward: str = "survival") -> None:
        super().__init__(limit)
        if reward not in ("survival", "failure"):
            raise InputError(f"reward must be 'survival' or 'failure', not {reward!r}.")
        self.reward = reward

    def __repr__(self) -> str:
        return f"CartPole(limit={self.limit}, reward={self.reward!r})"

    def reset(self, count: int, rng: np.random.Generator) -> States:
        """Start states, (count, 4)."""
        return rng.uniform(-0.05, 0.05, size=(count, 4))

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator | None = None
    ) -> tuple[States, NDArray[np.float64], NDArray[np.bool_]]:
        """Next states (count, 4), rewards and ends (count,)."""
        x, speed, angle, turning = states.T
        cosine, sine = np.cos(angle), np.sin(angle)
        pull = (np.where(actions == 1, FORCE, -FORCE) + POLE_MOMENT * turning**2 * sine) / MASS
        turning_gain = (GRAVITY * sine - cosine * pull) / (HALF_LENGTH * (4 / 3 - POLE_MASS * cosine**2 / MASS))
        speed_gain = pull - POLE_MOMENT * turning_gain * cosine / MASS
        out = np.stack([speed, speed_gain, turning, turning_gain], axis=1)
        out *= INTERVAL
        out += states
        ended = (np.abs(out[:, 0]) > FARTHEST) | (np.abs(out[:, 2]) > STEEPEST)
        rewards = -ended.astype(np.float64) if self.reward == "failure" else np.ones(len(ended))
        return out, rewards, ended
