"""The same steps as others would write them.

Each function takes the steps of an order and moves its vectors in place (JAX: returns them). All but the authors' way
know what our kernels know: displacements (x, y) from the anchor, and drifts, which are step sizes times the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


def numpy_steps(
    features: Any, next_features: Any, discount: float, order: list[int], x: Any, y: Any, drifts: Any, sizes: Any
) -> None:
    """A NumPy user's steps: views of the rows, two dot products and two updates."""
    drift_theta, drift_omega = drifts
    step_theta, step_omega = sizes
    for row in order:
        phi = features[row]
        delta = phi - discount * next_features[row]
        u = phi @ y
        v = delta @ x + u
        x += (step_theta * u) * delta
        x -= drift_theta
        y -= (step_omega * v) * phi
        y -= drift_omega


def torch_steps(
    features: Any, next_features: Any, discount: float, order: list[int], x: Any, y: Any, drifts: Any, sizes: Any
) -> None:
    """The same with tensors, gradients off; scalars stay tensors, so that nothing is handed to Python and back."""
    import torch

    drift_theta, drift_omega = drifts
    step_theta, step_omega = sizes
    with torch.no_grad():
        for row in order:
            phi = features[row]
            delta = torch.sub(phi, next_features[row], alpha=discount)
            u = torch.dot(phi, y)
            v = torch.dot(delta, x) + u
            x.addcmul_(delta, u, value=step_theta)
            x.sub_(drift_theta)
            y.addcmul_(phi, v, value=-step_omega)
            y.sub_(drift_omega)


def jax_steps() -> Callable[..., Any]:
    """The same as one compiled scan: (features, next_features, discount, order, x, y, drifts, sizes) -> (x, y)."""
    import jax

    def steps(
        features: Any, next_features: Any, discount: float, order: Any, x: Any, y: Any, drifts: Any, sizes: Any
    ) -> Any:
        def step(point: Any, row: Any) -> Any:
            x, y = point
            phi = features[row]
            delta = phi - discount * next_features[row]
            u = phi @ y
            v = delta @ x + u
            return (x - drifts[0] + sizes[0] * u * delta, y - drifts[1] - sizes[1] * v * phi), None

        return jax.lax.scan(step, (x, y), order)[0]

    return jax.jit(steps)  # type: ignore[no-any-return, unused-ignore]


@contextmanager
def jax_in_double_precision() -> Iterator[None]:
    """Let JAX keep float64, which it does not by itself; put back what was set before."""
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def authors_steps(
    table: Any,
    transitions: list[tuple[int, int, float]],
    discount: float,
    point: tuple[Vector, Vector],
    anchor: tuple[Vector, Vector],
    mean: tuple[Vector, Vector],
    sizes: tuple[float, float],
) -> None:
    """SVRG steps through the matrices A_t and C_t of each transition (state, next state, reward), in full.

    Gradients are taken at the point and at the anchor, and ``mean`` is the full gradient at the anchor.
    """
    theta, omega = point
    for state, follower, reward in transitions:
        phi = table[state]
        a_t = np.outer(phi, phi - discount * table[follower])
        c_t = np.outer(phi, phi)
        b_t = reward * phi
        here = _gradient(a_t, b_t, c_t, theta, omega)
        there = _gradient(a_t, b_t, c_t, *anchor)
        theta -= sizes[0] * (here[0] - there[0] + mean[0])
        omega -= sizes[1] * (here[1] - there[1] + mean[1])


def _gradient(a_t: Any, b_t: Any, c_t: Any, theta: Vector, omega: Vector) -> tuple[Vector, Vector]:
    return -a_t.T @ omega, a_t @ theta - b_t + c_t @ omega
