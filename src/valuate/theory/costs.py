"""Table 1 of the paper: what each method should cost to reach an accuracy, for one problem."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from valuate import _checks
from valuate.errors import InputError
from valuate.theory.theorems import corollary_1, theorem_1, theorem_2

if TYPE_CHECKING:
    from valuate.theory.quantities import Constants


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """A row of Table 1 as numbers, in row visits.

    Attributes
    ----------
    method : str
        Name of the solver.
    formula : str
        What stands in the O() of the table, without the factor d; D is |Delta_0|^2.
    row_visits : float
        The formula with every constant 1.
    corrected : float
        The same with what the proof of Corollary 2 lost: an epoch of SCSG shrinks the distance by a factor that
        depends on lambda_max / lambda_min. As ``row_visits`` for the other methods.
    bound : float or None
        Row visits that the theorem guarantees to be enough, with all of its constants. None where nothing is: the paper
        has no theorem on GTD2 and SAGA, and that on batches asks for a Xi^2 that does not exist.
    n_rows, dim : int
    """

    method: str
    formula: str
    row_visits: float
    corrected: float
    bound: float | None
    n_rows: int
    dim: int

    @property
    def passes(self) -> float:
        """``row_visits`` in passes."""
        return self.row_visits / self.n_rows

    @property
    def corrected_passes(self) -> float:
        """``corrected`` in passes."""
        return self.corrected / self.n_rows

    @property
    def operations(self) -> float:
        """The table's own unit: ``row_visits`` times d."""
        return self.row_visits * self.dim


def table_1(
    constants: Constants, epsilon: float, *, distance: float | None = None, mean_batch: float | None = None
) -> tuple[Cost, ...]:
    """Predicted costs of GTD2, SAGA, SVRG, batching SVRG and SCSG (paper, Table 1).

    Parameters
    ----------
    constants : Constants
    epsilon : float
        The wanted E|theta - theta*|^2, below ``distance``.
    distance : float, optional
        |Delta_0|^2 of the start; that of zeros where not given. The table's ln(1/epsilon) is ln(distance/epsilon)
        here, as in Corollary 2, so that rewards in other units change nothing; 1 gives the table to the letter.
    mean_batch : float, optional
        n', rows in the mean of an epoch of batching SVRG, of which the paper says only that it is below n. The mean of
        the batches of Corollary 1 where not given.

    Returns
    -------
    tuple of Cost
        In the table's order.
    """
    k, first = constants, theorem_1(constants)
    start = k.distance() if distance is None else _checks.number("distance", distance, above=0.0)
    epsilon = _checks.number("epsilon", epsilon, above=0.0)
    if epsilon >= start:
        raise InputError(f"epsilon must be below the squared distance of the start, {start:.3g}, not {epsilon:.3g}.")
    n, log, hard = k.n_rows, math.log(start / epsilon), k.difficulty
    noise = k.kappa**2 * k.H / (k.lambda_min**2 * epsilon)
    batches = corollary_1(k)
    epochs = max(1, first.epochs(epsilon / 2, start))  # the batches of the default alpha double the bound
    mean = batches.mean_batch(epochs) if mean_batch is None else _checks.number("mean_batch", mean_batch, above=0.0)
    plan = theorem_2(k, epsilon=epsilon)
    batch = min(max(hard, noise), n)
    lost = max(hard, batch * k.lambda_max / k.lambda_min)
    svrg, batching, scsg = (n + hard) * log, (mean + hard) * log, (min(noise, n) + hard) * log
    proved, proved_scsg = first.row_visits(epsilon, start), plan.row_visits(epsilon, start)
    rows = (
        ("GTD2", _NOISE, noise, noise, None),
        ("SAGA", _linear("n"), svrg, svrg, None),
        ("SVRG", _linear("n"), svrg, svrg, proved),
        ("BatchingSVRG", _linear("n'"), batching, batching, None),
        ("SCSG", _linear(f"min({_NOISE}, n)"), scsg, (batch + lost) * log, proved_scsg),
    )
    return tuple(
        Cost(method=name, formula=formula, row_visits=cost, corrected=right, bound=bound, n_rows=n, dim=k.dim)
        for name, formula, cost, right, bound in rows
    )


_NOISE = "kappa^2 H / (lambda_min^2 eps)"


def _linear(mean: str) -> str:
    return f"({mean} + kappa^2 L_G^2 / lambda_min^2) ln(D / eps)"
