"""The constants of the paper's convergence analysis, for one problem."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg as la

from valuate.errors import InputError, InputTypeError
from valuate.theory.noise import gradient_variance, mean_square_gradient
from valuate.theory.smoothness import mean_square
from valuate.theory.spectrum import saddle_matrix, spectrum

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Most features: G has twice as many rows, and the work grows with their cube.
MOST_DIM = 512
#: Passes over the rows that the constants cost: A, b, C, L_G^2 and the noise.
PASSES = 5


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Constants:
    """What the theorems are stated in (paper, section 6). Made by `constants`.

    Attributes
    ----------
    n_rows, dim : int
    beta : float
        8 lambda_max(A' C^-1 A) / lambda_min(C): the theorems' step_omega / step_theta (Lemma 1).
    lambda_min, lambda_max : float
        Least and largest eigenvalue of G.
    kappa : float
        kappa(Q) = |Q| |Q^-1|. The paper does not say how long the eigenvectors are, on which it depends; here they
        have length 1, which is within sqrt(2 dim) of the best. Where eigenvalues coincide their vectors are not
        unique either.
    L_G_squared : float
        |mean G_t' G_t|.
    H : float
        Mean |G_t z* - g_t|^2, the complexity measure.
    Xi_squared : float
        The larger of the sample variances of G_t z - g_t at z = 0 and at z*, and so the largest between them. There
        is no bound for all z; for other points see `gradient_variance`.
    theta : (dim,) array
        The solution theta* = A^-1 b; omega* is 0.
    eigenvalues : (2 dim,) array
        Of G, increasing.
    G, Q : (2 dim, 2 dim) array
    """

    n_rows: int
    dim: int
    beta: float
    lambda_min: float
    lambda_max: float
    kappa: float
    L_G_squared: float
    H: float
    Xi_squared: float
    theta: Vector = field(repr=False)
    eigenvalues: Vector = field(repr=False)
    G: Matrix = field(repr=False)
    Q: Matrix = field(repr=False)

    @property
    def difficulty(self) -> float:
        """kappa(Q)^2 L_G^2 / lambda_min^2, which K and B of the theorems are multiples of."""
        return self.kappa**2 * self.L_G_squared / self.lambda_min**2

    def distance(self, theta: ArrayLike | None = None, omega: ArrayLike | None = None) -> float:
        """|Delta|^2 = |theta - theta*|^2 + |omega|^2 / beta; of zeros where a vector is not given."""
        delta = self._delta(theta, omega)
        return float(delta @ delta)

    def potential(self, theta: ArrayLike | None = None, omega: ArrayLike | None = None) -> float:
        """|Q^-1 Delta|^2, which Theorem 1 says shrinks; of zeros where a vector is not given."""
        rotated = la.solve(self.Q, self._delta(theta, omega))
        return float(rotated @ rotated)

    def as_dict(self) -> dict[str, float]:
        """The numbers by name, without vectors and matrices."""
        names = ("n_rows", "dim", "beta", "lambda_min", "lambda_max", "kappa", "L_G_squared", "H", "Xi_squared")
        return {name: getattr(self, name) for name in names}

    def _delta(self, theta: ArrayLike | None, omega: ArrayLike | None) -> Vector:
        zero = np.zeros(self.dim)
        parts = [zero if x is None else np.asarray(x, dtype=np.float64) for x in (theta, omega)]
        for name, part in zip(("theta", "omega"), parts, strict=True):
            if part.shape != (self.dim,):
                raise InputError(f"{name} has shape {part.shape} and the problem has {self.dim} features.")
        return np.concatenate([parts[0] - self.theta, parts[1] / np.sqrt(self.beta)])


def constants(problem: Problem) -> Constants:
    """Compute the constants of a problem, from matrices of 2 dim x 2 dim.

    Costs `PASSES` passes over the rows. No matrix a row is formed.

    Parameters
    ----------
    problem : Problem
        With at most 512 features, rows in memory, and A and C of full rank.

    Returns
    -------
    Constants

    Raises
    ------
    InputError
        Where Assumption 1 fails (A or C singular), there are more features, or features differ so much in size that
        double precision does not hold the eigenvalues of G.
    """
    if not hasattr(problem, "moments"):
        raise InputTypeError(f"problem must be a Problem, not {type(problem).__name__}.")
    if problem.dim > MOST_DIM:
        raise InputError(
            f"the problem has {problem.dim:,} features, and the theory's constants are computed from dense matrices up "
            f'to {MOST_DIM}. Leave the steps at "auto", or look at a part of the features.'
        )
    found = spectrum(problem)
    beta, a, c = found.beta, problem.moments().A, problem.moments().C
    size = la.svdvals(found.vectors)
    noise = mean_square_gradient(problem, found.theta, beta=beta)
    at_solution = noise * problem.n_rows / max(1, problem.n_rows - 1)
    return Constants(
        n_rows=problem.n_rows,
        dim=problem.dim,
        beta=beta,
        lambda_min=float(found.values[0]),
        lambda_max=float(found.values[-1]),
        kappa=float(size[0] / size[-1]),
        L_G_squared=float(la.eigvalsh(mean_square(problem, beta))[-1]),
        H=noise,
        Xi_squared=max(at_solution, gradient_variance(problem, beta=beta)),
        theta=found.theta,
        eigenvalues=found.values,
        G=saddle_matrix(a, c, beta),
        Q=found.vectors,
    )
