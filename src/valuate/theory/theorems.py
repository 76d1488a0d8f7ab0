"""The paper's theorems and corollaries as numbers: step sizes, epochs' lengths, factors and bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg as la

from valuate import _checks
from valuate.errors import InputError, InputTypeError
from valuate.theory.quantities import Constants

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: What an epoch of Theorem 1 leaves of |Q^-1 Delta|^2, beside the error of a batch.
TWO_THIRDS = 2 / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem1:
    """One epoch of SVRG or batching SVRG (paper, Theorem 1).

    E|Q^-1 Delta_(m+1)|^2 <= ``factor`` E|Q^-1 Delta_m|^2 + ``error_factor`` E|Q^-1 e_m|^2, with e_m the error of the
    mean gradient that a batch makes; 0 for SVRG.

    Attributes
    ----------
    step_theta, step_omega : float
        lambda_min / (6 kappa^2 L_G^2), and beta times that.
    steps : int
        K = 12 kappa^2 L_G^2 / lambda_min^2, rounded up.
    factor : float
        2/3.
    proved_factor : float
        exp(-2) + 1/3, to which the proof comes before it rounds.
    error_factor : float
        2 (1 - step_theta lambda_min) / lambda_min^2.
    """

    constants: Constants = field(repr=False)
    step_theta: float
    step_omega: float
    steps: int
    factor: float = TWO_THIRDS
    proved_factor: float = math.exp(-2) + 1 / 3
    error_factor: float

    @property
    def steps_per_row(self) -> float:
        """K / n, as `SVRG` takes it."""
        return self.steps / self.constants.n_rows

    def bound(self, epochs: int, distance: float | None = None) -> float:
        """SVRG's bound on E|theta - theta*|^2 after ``epochs``: kappa^2 (2/3)^epochs |Delta_0|^2.

        ``distance`` is |Delta_0|^2, that of zeros where it is not given.
        """
        start = _distance(self.constants, distance)
        return self.constants.kappa**2 * self.factor ** _checks.whole("epochs", epochs, low=0) * start

    def epochs(self, epsilon: float, distance: float | None = None) -> int:
        """The number of epochs after which `bound` is at most ``epsilon``."""
        ratio = self.constants.kappa**2 * _distance(self.constants, distance) / _epsilon(epsilon)
        return max(0, math.ceil(math.log(ratio) / -math.log(self.factor))) if ratio > 0 else 0

    def row_visits(self, epsilon: float, distance: float | None = None) -> float:
        """What SVRG visits in those epochs: n + K in each."""
        return float(self.epochs(epsilon, distance) * (self.constants.n_rows + self.steps))


def theorem_1(constants: Constants) -> Theorem1:
    """Theorem 1 for a problem: the steps of `SVRG` and `BatchingSVRG` with ``step_theta="theory"``."""
    k = _known(constants)
    step = k.lambda_min / (6 * k.kappa**2 * k.L_G_squared)
    return Theorem1(
        constants=k,
        step_theta=step,
        step_omega=k.beta * step,
        steps=math.ceil(12 * k.difficulty),
        error_factor=2 * (1 - step * k.lambda_min) / k.lambda_min**2,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Corollary1:
    """Batching SVRG with growing batches (paper, Corollary 1).

    Attributes
    ----------
    variance, alpha, rho : float
        B_m = n variance / (variance + n alpha rho^m), rounded up as `BatchingSVRG` does.
    extra : float
        3 alpha (1 - sigma lambda_min) |Q^-1|^2 / (lambda_min^2 (1 - 3 rho / 2)): what the batches add to
        |Q^-1 Delta_0|^2 in the bound.
    """

    theorem: Theorem1 = field(repr=False)
    variance: float
    alpha: float
    rho: float
    extra: float

    def batch(self, epoch: int) -> int:
        """Rows in the mean of epoch ``epoch``, counted from 0."""
        n = self.theorem.constants.n_rows
        shrink = n * self.alpha * self.rho**epoch
        return min(n, max(1, math.ceil(n * self.variance / (self.variance + shrink) * (1 - 1e-12))))

    def bound(self, epochs: int, theta: ArrayLike | None = None, omega: ArrayLike | None = None) -> float:
        """Bound on E|Q^-1 Delta|^2 after ``epochs`` from a starting point, zeros where none is given."""
        start = self.theorem.constants.potential(theta, omega)
        return self.theorem.factor ** _checks.whole("epochs", epochs, low=0) * (start + self.extra)

    def mean_batch(self, epochs: int) -> float:
        """Mean of the batches of the first ``epochs`` epochs: n' of Table 1."""
        count = _checks.whole("epochs", epochs, low=1)
        return sum(self.batch(m) for m in range(count)) / count


def corollary_1(
    constants: Constants, *, variance: float | None = None, alpha: float | None = None, rho: float = 0.6
) -> Corollary1:
    """Corollary 1 for a problem.

    Parameters
    ----------
    constants : Constants
    variance : float, optional
        Xi^2. The corollary wants a bound for all z, which does not exist; `Constants.Xi_squared` where not given.
    alpha : float, optional
        The paper leaves it open. Where not given, ``extra`` equals |Q^-1 Delta_0|^2 at a start from zeros, so that the
        batches double the bound.
    rho : float
        Below 2/3.
    """
    first = theorem_1(constants)
    rho = _checks.number("rho", rho, above=0.0)
    if rho >= TWO_THIRDS:
        raise InputError(f"rho must be below 2/3, or the errors of the batches fade too slowly, not {rho:g}.")
    k = constants
    inverse = float(la.svdvals(k.Q)[-1]) ** -2
    per_alpha = 1.5 * first.error_factor * inverse / (1 - 1.5 * rho)
    if alpha is None:
        alpha = max(k.potential() / per_alpha, np.finfo(float).tiny)
    alpha = _checks.number("alpha", alpha, above=0.0)
    variance = k.Xi_squared if variance is None else _checks.number("variance", variance, low=0.0)
    return Corollary1(theorem=first, variance=variance, alpha=alpha, rho=rho, extra=per_alpha * alpha)


@dataclass(frozen=True, slots=True, kw_only=True)
class Theorem2:
    """SCSG with a batch of B rows (paper, Theorem 2).

    Attributes
    ----------
    batch : int
        B.
    required_batch : int
        70 kappa^2 L_G^2 / lambda_min^2, rounded up: the theorem holds for batches of at least this many rows, and
        for B = n, where the batch makes no error.
    step_theta, step_omega : float
        min(lambda_min / (20 kappa^2 L_G^2), 5 / (28 B lambda_max)), and beta times that.
    limits : (float, float)
        The two terms of the minimum.
    factor : float
        1 / (1 + 0.8 step_theta B lambda_min): what an epoch leaves.
    floor : float
        60 kappa^2 H / (B lambda_min^2), below which the bound does not fall; 0 for B = n.
    """

    constants: Constants = field(repr=False)
    batch: int
    required_batch: int
    step_theta: float
    step_omega: float
    limits: tuple[float, float]
    factor: float
    floor: float

    @property
    def holds(self) -> bool:
        """Whether the batch is as large as the theorem requires."""
        return self.batch >= min(self.required_batch, self.constants.n_rows)

    @property
    def slowness(self) -> float:
        """1 / (step_theta B lambda_min): epochs, but for a constant, that shrink the distance by a factor e.

        The proof of Corollary 2 takes it for O(1) where the second limit is the smaller one. But that limit makes it
        5.6 lambda_max / lambda_min; and a batch as large as required makes that limit the smaller one, always.
        """
        return 1 / (self.step_theta * self.batch * self.constants.lambda_min)

    def bound(self, epochs: int, distance: float | None = None) -> float:
        """The theorem's bound on E|theta - theta*|^2 after ``epochs``; ``distance`` is |Delta_0|^2."""
        k, start = self.constants, _distance(self.constants, distance)
        lead = (1 + 0.7 * self.step_theta * self.batch * k.lambda_max) * k.kappa**2
        return lead * start * self.factor ** _checks.whole("epochs", epochs, low=0) + self.floor

    def epochs(self, epsilon: float, distance: float | None = None) -> float:
        """Epochs after which `bound` is at most ``epsilon``; infinite where the floor is not below it."""
        left = _epsilon(epsilon) - self.floor
        if left <= 0:
            return math.inf
        ratio = (self.bound(0, distance) - self.floor) / left
        # -log(factor), also where the factor is 1 to all digits.
        rate = math.log1p(0.8 * self.step_theta * self.batch * self.constants.lambda_min)
        return float(max(0, math.ceil(math.log(ratio) / rate))) if ratio > 0 else 0.0

    def row_visits(self, epsilon: float, distance: float | None = None) -> float:
        """Row visits of those epochs on average: B for the mean and B for the steps."""
        return 2 * self.batch * self.epochs(epsilon, distance)


def theorem_2(constants: Constants, *, batch: int | None = None, epsilon: float | None = None) -> Theorem2:
    """Theorem 2 for a problem: the steps of `SCSG` with ``step_theta="theory"``.

    Parameters
    ----------
    constants : Constants
    batch : int, optional
        B. Where not given, that of Corollary 2: the larger of 70 kappa^2 L_G^2 / lambda_min^2 and, with ``epsilon``,
        120 kappa^2 H / (lambda_min^2 epsilon); but at most n.
    epsilon : float, optional
        The wanted E|theta - theta*|^2.
    """
    k = _known(constants)
    required = math.ceil(70 * k.difficulty)
    if batch is None:
        noisy = 0 if epsilon is None else math.ceil(120 * k.kappa**2 * k.H / (k.lambda_min**2 * _epsilon(epsilon)))
        batch = min(max(required, noisy), k.n_rows)
    batch = _checks.whole("batch", batch, low=1)
    if batch > k.n_rows:
        raise InputError(f"batch is {batch:,} and there are {k.n_rows:,} rows to draw it from.")
    limits = (k.lambda_min / (20 * k.kappa**2 * k.L_G_squared), 5 / (28 * batch * k.lambda_max))
    step = min(limits)
    return Theorem2(
        constants=k,
        batch=batch,
        required_batch=required,
        step_theta=step,
        step_omega=k.beta * step,
        limits=limits,
        factor=1 / (1 + 0.8 * step * batch * k.lambda_min),
        floor=60 * k.kappa**2 * k.H / (batch * k.lambda_min**2) if batch < k.n_rows else 0.0,
    )


def _known(constants: object) -> Constants:
    if not isinstance(constants, Constants):
        raise InputTypeError(
            f"constants must be Constants, not {type(constants).__name__}. Make them with theory.constants(problem)."
        )
    return constants


def _distance(constants: Constants, distance: float | None) -> float:
    return constants.distance() if distance is None else _checks.number("distance", distance, low=0.0)


def _epsilon(epsilon: float) -> float:
    return _checks.number("epsilon", epsilon, above=0.0)
