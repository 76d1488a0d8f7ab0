"""The adjoint solve A' z = mean of the initial features, with A as a matrix or by products alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.linalg as npl
import scipy.linalg as la

from valuate import metric
from valuate.metric import unit_scale
from valuate.solvers.arnoldi import Arnoldi
from valuate.solvers.iterating import Turn
from valuate.solvers.krylov import GMRES
from valuate.solvers.pseudoinverse import Pseudoinverse
from valuate.solvers.scaled import Scaled

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from valuate.equations import Equations
    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Multiply-adds (stored rows * dim^2) up to which A is formed where it is not there yet.
FORMED = 2e10
#: Smallest reciprocal condition of the scaled A for which its LU factors are used; below, its rank is looked at.
TRUSTED = 1e-12
#: Share of the initial features that may lie in directions that A leaves open, and count as rounding.
ROUNDING = 1e-8
#: Products with A' at most; the relative residual from which on it is asked whether they do, and at which they end.
MOST_PRODUCTS, FIRST, ENOUGH = 1000, 1e-2, 1e-8
#: A relative residual above this means that the adjoint equation was not solved.
UNSOLVED = 1e-3


def forms_matrix(problem: Problem) -> bool:
    """Whether A is looked at as a matrix: where it is small enough, or there already."""
    if problem.dim > metric.MOST_DIM:
        return False
    return problem.knows("A") or min(problem.rows.n_stored, problem.n_rows) * problem.dim**2 <= FORMED


class Open(NamedTuple):
    """A direction of theta on which the rows say nothing, and how much the value moves along it."""

    direction: Vector
    slope: float


class Dense:
    """A as a matrix, in units of its own: core = L A R is square and regular.

    Where A is regular, L and R are diag(C)^-1/2; where it is not, they lead to the directions that A determines, of
    which there are as many as its rank.

    Attributes
    ----------
    core : (k, k) array
    open : Open or None
        After `adjoint`: where A says nothing of the value that was asked for; None where it determines it.
    solved : bool
    """

    solved = True

    def __init__(self, equations: Problem | Equations) -> None:
        a, _, c = equations.moments()
        self.dim = len(a)
        scale = unit_scale(np.diagonal(c))
        self.used = np.flatnonzero(scale > 0)
        self.scale = scale[self.used]
        self.open: Open | None = None
        self._left: Matrix | None = None
        self._right: Matrix | None = None
        self.core = a[np.ix_(self.used, self.used)] * self.scale[:, None] * self.scale
        self._free: tuple[Vector, Matrix] | None = None
        # A feature that only next states have has a column in A and no row.
        lone = len(self.used) < self.dim and bool(np.delete(a, self.used, axis=1).any())
        if lone or not self._factor():
            self._reduce(Pseudoinverse(equations, a, scale, np.flatnonzero((scale > 0) | a.any(axis=0))))

    def _factor(self) -> bool:
        if not len(self.core):
            return False
        factors, pivots, info = la.lapack.dgetrf(self.core)
        if info != 0 or not la.lapack.dgecon(factors, np.abs(self.core).sum(axis=0).max())[0] > TRUSTED:
            return False
        self._factors: Any = factors, pivots
        return True

    def _reduce(self, inverse: Pseudoinverse) -> None:
        whiten = inverse.metric.whiten(np.eye(self.dim))
        self._left = inverse.left.T @ whiten
        self._right = np.zeros((self.dim, inverse.rank))
        self._right[inverse.used] = inverse.unit[:, None] * inverse.right.T
        self._free = inverse.unit, inverse.right_free
        self.used = inverse.used
        self.core = np.diag(inverse.sizes)
        self._factors = la.lu_factor(self.core) if inverse.rank else None

    @property
    def rank(self) -> int:
        """Rank of A."""
        return len(self.core)

    def lefts(self, rows: Matrix) -> Matrix:
        """Rows times L': (m, k)."""
        return rows[:, self.used] * self.scale if self._left is None else rows @ self._left.T

    def rights(self, rows: Matrix) -> Matrix:
        """Rows times R: (m, k)."""
        return rows[:, self.used] * self.scale if self._right is None else rows @ self._right

    def adjoint(self, p: Vector) -> Vector:
        """The z with A' z = p, as far as A has it: (dim,)."""
        self.open = self._find_open(p)
        if not self.rank:
            return np.zeros(self.dim)
        y = la.lu_solve(self._factors, self.rights(p[None])[0], trans=1, check_finite=False)
        if self._left is not None:
            return np.asarray(y @ self._left)
        z = np.zeros(self.dim)
        z[self.used] = self.scale * y
        return z

    def solve(self, g: Vector) -> Vector:
        """The smallest x with A x = g, as far as there is one: (dim,)."""
        if not self.rank:
            return np.zeros(self.dim)
        y = la.lu_solve(self._factors, self.lefts(g[None])[0], check_finite=False)
        if self._right is not None:
            return np.asarray(self._right @ y)
        x = np.zeros(self.dim)
        x[self.used] = self.scale * y
        return x

    def _find_open(self, p: Vector) -> Open | None:
        direction = p.copy()  # a feature that no row has at all
        direction[self.used] = 0.0
        if self._free is not None:  # in units of the features, so that none of these decides
            unit, free = self._free
            asked = unit * p[self.used]
            along = free @ asked
            if npl.norm(along) > ROUNDING * npl.norm(asked):
                direction[self.used] = unit * (along @ free)
        return Open(direction, float(p @ direction)) if direction.any() else None


class ByProducts:
    """A' z = p by GMRES on products with A', in columns scaled by diag(C)^-1/2.

    Features that no state has are left out, for they have no equation of their own: what the value then still depends
    on is ``open``.
    """

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.open: Open | None = None
        self.solved, self.products = False, 0

    def adjoint(self, p: Vector, settled: Callable[[Vector], bool]) -> Vector:
        """See `Dense.adjoint`.

        ``settled`` is asked each time that the residual has become ten times smaller, and may say that z will do.
        """
        system = Transposed(self.problem)
        whole = system.norm(p)
        goal = FIRST * whole
        work = Arnoldi(system, min(MOST_PRODUCTS, self.problem.dim, GMRES().fitting(self.problem.dim)), None)
        z, residual = np.zeros(self.problem.dim), p
        while system.products < MOST_PRODUCTS:
            before = system.norm(residual)
            work.begin(z, residual)
            turn = Turn.GOES_ON
            while turn is Turn.GOES_ON and system.products < MOST_PRODUCTS:
                turn = work.step()
                if work.gap <= goal:
                    z, goal = work.answer(), goal / 10
                    if settled(z) or work.gap <= ENOUGH * whole:
                        break
            z = work.answer()
            residual = p - self.problem.times_At(z)
            done = turn is Turn.GOES_ON or system.norm(residual) <= ENOUGH * whole
            if done or not system.norm(residual) < 0.5 * before:
                break
        self.products = system.products
        self.solved = system.norm(residual) <= UNSOLVED * whole
        direction = np.where(system.left > 0, 0.0, residual)
        self.open = Open(direction, float(direction @ direction)) if direction.any() else None
        return z


class Transposed(Scaled):
    """R A' L in the place of L A R, on the features that some state has."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.right = self.left

    def times(self, x: Vector) -> Vector:
        """The product of the transposed: (dim,)."""
        return self._counted(x, self.left * self.problem.times_At(self.left * x))
