"""Eigenvalues and eigenvectors of G: the proof of Lemma 1 carried out in numbers.

G = [[0, -sqrt(beta) A'], [sqrt(beta) A, beta C]] is not symmetric, and with the ridges that the control tasks need many
of its eigenvalues coincide, where a general eigen-solver returns nearly dependent vectors and spurious imaginary parts.
But G = J S with J = diag(I, -I) and S symmetric, so G v = lambda v is the symmetric pencil S v = lambda J v; and with
beta as in Lemma 1 the matrix mu J - S is positive definite at mu = beta lambda_min(C) / 2, which is why the eigenvalues
are real. In the coordinates below, where K C K' = I and K A = U diag(sizes) V', it is

    N = [[I, T], [T, I - W]],   T = diag(sizes) / sqrt(mu) <= 1/2,   W = lambda_min(C) / 2 U' K K' U <= 1/2,

whose Schur complement I - W - T^2 is at least 1/4: well conditioned whatever A and C are. One symmetric eigenproblem
with N then gives real eigenvalues and eigenvectors that are as independent as they can be.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.linalg as la

from valuate.errors import InputError
from valuate.metric import unit_scale

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Relative error of the two traces beyond which the eigenvalues are not believed.
BELIEVED = 1e-4


class Spectrum(NamedTuple):
    """What Lemma 1 is about.

    Attributes
    ----------
    beta : float
        8 lambda_max(A' C^-1 A) / lambda_min(C), the ratio of the steps.
    theta : (dim,) array
        A^-1 b.
    values : (2 dim,) array
        Eigenvalues of G, increasing.
    vectors : (2 dim, 2 dim) array
        Q: eigenvectors as columns of length 1.
    """

    beta: float
    theta: Vector
    values: Vector
    vectors: Matrix


def saddle_matrix(A: Matrix, C: Matrix, beta: float) -> Matrix:
    """G of the paper's section 6: (2 dim, 2 dim)."""
    cross = np.sqrt(beta) * A
    return np.block([[np.zeros_like(A), -cross.T], [cross, beta * C]])


def spectrum(problem: Problem) -> Spectrum:
    """Beta and the eigenvalues and eigenvectors of G; refuses problems that do not satisfy Assumption 1."""
    a, b, c = problem.moments()
    whiten = _whitening(problem)
    left = whiten @ a
    _require_regular(left, float(np.linalg.cond(whiten * np.sqrt(np.diagonal(c)))))
    u, sizes, vt = la.svd(left)
    least = float(la.norm(whiten, 2)) ** -2
    beta = 8 * float(sizes[0]) ** 2 / least
    t = sizes / (2 * sizes[0])
    root_w = np.sqrt(0.5 * least) * (whiten.T @ u)
    x, y = _eigenvectors(t, root_w.T @ root_w)
    values = 4 * float(sizes[0]) ** 2 * _roots(t, root_w, y)
    vectors = np.vstack([vt.T @ x, root_w @ y])
    order = np.argsort(values)
    _believe(values, beta * float(np.trace(c)), float((sizes**-2.0).sum()))
    theta = vt.T @ ((u.T @ (whiten @ b)) / sizes)
    return Spectrum(beta, theta, values[order], (vectors / la.norm(vectors, axis=0))[:, order])


def _whitening(problem: Problem) -> Matrix:
    """K with K C K' = I, or an error where C is singular, or so nearly that its least eigenvalue is rounding."""
    metric, c = problem.metric(), problem.moments().C
    rank, why = metric.rank, ""
    if rank == problem.dim:
        values = la.eigvalsh(c)
        rank = int((values > problem.dim * np.finfo(float).eps * values[-1]).sum())
        why = " in double precision" if rank < problem.dim else ""
    if rank < problem.dim:
        raise InputError(
            f"Assumption 1 of the paper fails: C has rank {rank} of {problem.dim}{why}, so that lambda_min(C) is 0 and "
            f"beta infinite. {_ADVICE}"
        )
    return metric.whiten(np.eye(problem.dim))


def _require_regular(left: Matrix, condition: float) -> None:
    """Refuse a singular A. Columns of unit length first: units decide nothing.

    ``left`` is A in the norm of C^-1; whitening has multiplied its rounding errors by the rows' ``condition``.
    """
    lengths = unit_scale(np.einsum("ij,ij->j", left, left))
    sizes = la.svdvals(left * lengths)
    cutoff = np.finfo(float).eps * max(100.0, 10 * condition)
    rank = int((sizes > cutoff * sizes[0]).sum())
    if rank < len(left):
        raise InputError(
            f"Assumption 1 of the paper fails: A has rank {rank} of {len(left)}, so that theta* is not unique and 0 "
            f"is an eigenvalue of G. {_ADVICE}"
        )


def _eigenvectors(t: Vector, w: Matrix) -> tuple[Matrix, Matrix]:
    """The two halves, (dim, 2 dim) each, of the eigenvectors in the coordinates of the module's formula.

    The pencil is J v = nu N v, J = diag(I, -W), and nu = 1 / (1 - lambda / mu): below 0 for the dim large eigenvalues
    of G, above 1 for the dim small ones.
    """
    d = len(t)
    eye, coupling = np.eye(d), np.diag(t)
    definite = np.block([[eye, coupling], [coupling, eye - w]])
    j = la.block_diag(eye, -w)
    _, v = la.eigh(j, definite, driver="gvd", check_finite=False)
    return v[:d], v[d:]


def _roots(t: Vector, root_w: Matrix, y: Matrix) -> Vector:
    """lambda / mu of each eigenvector from its dual half, without cancellation, with the square of its error.

    Where the primal half is eliminated, (lambda^2 W - lambda I + T^2) y = 0 in units of mu: for each y a quadratic
    equation with two positive roots; the small eigenvalues are stationary values of the smaller, the large ones of the
    larger.
    """
    d = len(t)
    y = y / la.norm(y, axis=0)
    heavy = np.square(root_w @ y).sum(axis=0)  # y'W y, but W itself would lose its smallest eigenvalues
    light = np.square(t[:, None] * y).sum(axis=0)
    root = 1 + np.sqrt(1 - 4 * heavy * light)
    return np.concatenate([root[:d] / (2 * heavy[:d]), 2 * light[d:] / root[d:]])


def _believe(values: Vector, trace: float, inverse_trace: float) -> None:
    """Hold the eigenvalues to the traces of G and of its inverse, which are known without them."""
    errors = abs(float(values.sum()) / trace - 1), abs(float((1 / values).sum()) / inverse_trace - 1)
    if not max(errors) <= BELIEVED:
        raise InputError(
            f"the eigenvalues of G cannot be computed: they lie between {values.min():.1e} and {values.max():.1e} and "
            f"miss its trace or that of its inverse by {max(errors):.0e}. Scale the features to similar sizes, or use "
            "a larger ridge."
        )


_ADVICE = (
    "The theorems say nothing about such a problem. Give it a ridge (the paper's is ridge=1e-5), or leave out features "
    "that others determine; to solve it as it is, LSTD needs neither."
)
