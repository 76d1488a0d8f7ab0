"""Acrobot."""

from __future__ import annotations

from math import pi
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from valuate.environments.simulated import Actions, Simulated, States

__all__ = ["Acrobot"]

INTERVAL, GRAVITY = 0.2, 9.8
FASTEST = (4 * pi, 9 * pi)


class Acrobot(Simulated):
    """Two links that hang from a point and are to swing up, driven at the joint between them; Gymnasium's Acrobot-v1.

    A state is the angle of the first link, that of the second to it, and their angular velocities; an observation is
    cosine and sine of the first angle, those of the second, and the velocities. The torque is the action less one.
    Every step has reward -1 but the last, 0, which ends with the tip higher than one link's length above the point.
    The four numbers start from U[-0.1, 0.1].

    Parameters
    ----------
    limit : int or None

    References
    ----------
    R. S. Sutton, "Generalization in reinforcement learning: successful examples using sparse coarse coding", NIPS 8,
    1996; the equations of motion are those of R. S. Sutton and A. G. Barto, "Reinforcement learning: an introduction".
    """

    n_actions: ClassVar[int] = 3
    low: ClassVar[tuple[float, ...]] = (-1.0, -1.0, -1.0, -1.0, -FASTEST[0], -FASTEST[1])
    high: ClassVar[tuple[float, ...]] = (1.0, 1.0, 1.0, 1.0, *FASTEST)

    def __init__(self, limit: int | None = 500) -> None:
        super().__init__(limit)

    def reset(self, count: int, rng: np.random.Generator) -> States:
        """Start states, (count, 4): numbers of float32, as Gymnasium's are."""
        return rng.uniform(-0.1, 0.1, size=(count, 4)).astype(np.float32).astype(np.float64)

    def step(
        self, states: States, actions: Actions, rng: np.random.Generator | None = None
    ) -> tuple[States, NDArray[np.float64], NDArray[np.bool_]]:
        """Next states (count, 4), rewards and ends (count,)."""
        y = np.ascontiguousarray(states.T)
        torque = actions - 1.0
        k1 = _slopes(y, torque)
        k2 = _slopes(y + INTERVAL / 2 * k1, torque)
        k3 = _slopes(y + INTERVAL / 2 * k2, torque)
        k4 = _slopes(y + INTERVAL * k3, torque)
        y += INTERVAL / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        _wrap(y[:2])
        for velocity, fastest in zip(y[2:], FASTEST, strict=True):
            np.minimum(np.maximum(velocity, -fastest, out=velocity), fastest, out=velocity)
        ended = -np.cos(y[0]) - np.cos(y[1] + y[0]) > 1.0
        return np.ascontiguousarray(y.T), ended - 1.0, ended

    def observe(self, states: States) -> States:
        """Cosines, sines and velocities, (count, 6)."""
        seen = np.empty((len(states), 6))
        seen[:, 0:4:2], seen[:, 1:4:2], seen[:, 4:] = np.cos(states[:, :2]), np.sin(states[:, :2]), states[:, 2:]
        return seen

    def states_of(self, observations: States) -> States:
        """The angles, in [-pi, pi], and velocities that look like ``observations``, (count, 4)."""
        angles = np.arctan2(observations[:, 1:4:2], observations[:, 0:4:2])
        return np.concatenate([angles, observations[:, 4:]], axis=1)


def _slopes(y: NDArray[np.floating], torque: NDArray[np.floating]) -> NDArray[np.float64]:
    """Time derivatives of the four numbers, (4, count): both links have mass, length and moment of inertia 1."""
    cosine, sine = np.cos(y[1]), np.sin(y[1])
    first, second = y[2], y[3]
    inertia = cosine + 3.5  # of both links about the point
    shared = 0.5 * cosine + 1.25
    weight_2 = 0.5 * GRAVITY * np.sin(y[0] + y[1])
    weight_1 = 1.5 * GRAVITY * np.sin(y[0]) + weight_2 - (0.5 * second + first) * second * sine
    part = shared / inertia
    out = np.empty_like(y)
    out[:2] = y[2:]
    out[3] = (torque + part * weight_1 - 0.5 * first**2 * sine - weight_2) / (1.25 - part * shared)
    out[2] = -(shared * out[3] + weight_1) / inertia
    return out


def _wrap(angles: NDArray[np.float64]) -> None:
    """Bring angles into [-pi, pi], in place, by whole turns."""
    while (far := np.abs(angles) > pi).any():
        angles[far] -= np.copysign(2 * pi, angles[far])
