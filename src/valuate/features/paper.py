"""The features of the paper's control tasks.

The paper calls its features exp(-r / sigma) and does not say what r is. Its numbers come about with the square of the
distance, and do not with the distance itself, so the square is what these maps take.

References
----------
Peng et al., "SVRG for policy evaluation with fewer gradient evaluations", IJCAI 2020, appendix.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import pi

from valuate.errors import InputError
from valuate.features.rbf import RBFGrid

__all__ = ["acrobot", "cart_pole", "mountain_car"]


def mountain_car(*, sparse_below: float | None = None, distance: str = "squared") -> RBFGrid:
    """10 x 10 centres over position and velocity scaled to [0, 1], sigma 0.01: 100 features."""
    return RBFGrid((-1.2, -0.07), (0.6, 0.07), 10, 0.01, sparse_below=sparse_below, distance=distance)


def cart_pole(*, sparse_below: float | None = None, distance: str = "squared") -> RBFGrid:
    """Centres at -0.1, 0, 0.1 for position and angle and at -1, 0, 1 for the velocities, sigma 0.5: 81 features."""
    high = (0.1, 1.0, 0.1, 1.0)
    low = tuple(-x for x in high)
    return RBFGrid(low, high, 3, 0.5, sparse_below=sparse_below, scale=False, distance=distance)


def acrobot(
    columns: Sequence[int] = (0, 2, 4, 5), *, sparse_below: float | None = None, distance: str = "squared"
) -> RBFGrid:
    """3 centres a dimension over four numbers of an observation scaled to [0, 1], sigma 0.1: 81 features.

    Parameters
    ----------
    columns : ints
        Which numbers. The paper's text says cosines and sines, (0, 1, 2, 3). The numbers by default, cosines and
        velocities, are what was run for its control task: with the others no policy swings up.
    """
    ranges = (1.0, 1.0, 1.0, 1.0, 4 * pi, 9 * pi)
    if not set(columns) <= set(range(len(ranges))):
        raise InputError(f"columns must be among 0 to {len(ranges) - 1}, the numbers of an observation, not {columns}.")
    high = tuple(ranges[column] for column in columns)
    low = tuple(-x for x in high)
    return RBFGrid(low, high, 3, 0.1, sparse_below=sparse_below, columns=tuple(columns), distance=distance)
