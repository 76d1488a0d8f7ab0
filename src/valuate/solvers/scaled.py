"""The linear system of a problem in units of its own: L A R x = L b, with products that are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.linalg as la

from valuate.metric import unit_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]


class Scaled:
    """A with rows and columns scaled by diag(C)^-1/2, so that the units of features make no difference.

    The length of L g is the norm of a residual g in diag(C)^-1. Where a column of C is zero L is 0 and R is that of a
    middling column: the equation says 0 = 0, and the weight matters to rows that only lead to such a feature.

    Attributes
    ----------
    left, right : (dim,) array
    whole : float
        Length of L b.
    products : int
        Products with A and its transpose so far.
    largest : float
        How much longer a product has made a vector, at most: the size of the scaled A, from below.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.left = unit_scale(problem.diagonal)
        known = self.left[self.left > 0]
        self.right = np.where(self.left > 0, self.left, np.median(known) if len(known) else 1.0)
        self.whole = self.norm(problem.b)
        self.products, self.largest = 0, 0.0

    def norm(self, g: Vector) -> float:
        """The norm of a residual in diag(C)^-1."""
        return float(la.norm(self.left * g))

    def times(self, x: Vector) -> Vector:
        """L A R x: (dim,)."""
        return self._counted(x, self.left * self.problem.times_A(self.right * x))

    def image(self, move: Vector) -> Vector:
        """L A z for a displacement z in the units of theta: (dim,)."""
        return self._counted(move / self.right, self.left * self.problem.times_A(move))

    def times_transposed(self, y: Vector) -> Vector:
        """R A' L y: (dim,)."""
        return self._counted(y, self.right * self.problem.times_At(self.left * y))

    def _counted(self, given: Vector, image: Vector) -> Vector:
        self.products += 1
        size = float(la.norm(given))
        if size > 0:
            self.largest = max(self.largest, float(la.norm(image)) / size)
        return image
