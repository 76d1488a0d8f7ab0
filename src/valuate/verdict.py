"""The one sentence of a certificate, by rules in a fixed order: what stands in the way of the answer comes first."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from valuate.problem import EXACT_DIM

if TYPE_CHECKING:
    from valuate.certificate import Certificate
    from valuate.solution import Solution

#: An optimiser's error counts as none when its MSPBE is below this share of the floor: a tenth of a standard error,
#: at which an interval of 95% still covers 94.9%.
ENOUGH = 0.01
#: Ratios that leave a smaller share of the rows effective are what limits the answer.
FEW = 0.1
#: A relative residual below this is rounding, whatever the floor.
ROUNDING = 1e-10
#: Equations hold where some weights have a relative residual below this, as in LSTD.
CONSISTENT = 1e-8
#: Eigenvalues of the scaled matrix above minus this are not negative but for rounding.
NEGATIVE = 1e-10


class Limit(Enum):
    """What limits an answer, in the order in which it is looked for."""

    #: The answer cannot be used.
    UNUSABLE = "unusable"
    #: The equations contradict each other, or leave weights open; more passes change neither.
    SINGULAR = "singular"
    #: The solver has not come as far as the data would take it.
    OPTIMISER = "optimiser"
    #: The importance ratios leave few rows.
    RATIOS = "ratios"
    #: A is not positive definite, as on-policy it would be.
    INDEFINITE = "indefinite"
    #: The number of rows, as it should be.
    DATA = "data"


def judge(solution: Solution, found: Certificate, excess: float) -> tuple[Limit, str]:
    """The limit and the sentence.

    Parameters
    ----------
    solution : Solution
    found : Certificate
        With everything but its verdict.
    excess : float
        How far the MSPBE lies above the least that any theta has.

    Notes
    -----
    In order:

    1. The run diverged, its numbers are not finite, or zero weights would be better: unusable.
    2. A is singular and the equations contradict each other, and the answer is as good as any, or a direct solver has
       said so: singular.
    3. The MSPBE exceeds its least by more than .01 of the floor, and the relative residual 1e-10: the optimiser. A run
       that stalled here is unusable, for going on would not help.
    4. A is singular: weights are not determined.
    5. Every row is fitted exactly: the data.
    6. Ratios leave less than a tenth of the rows effective: the ratios.
    7. A's symmetric part has a negative eigenvalue: indefinite.
    8. Else: the data.
    """
    status = solution.status.value
    if status == "diverged" or not np.isfinite([found.mspbe, found.relative_residual]).all():
        return Limit.UNUSABLE, f"Not usable: the run diverged, and {_residual(found)} is left. {_other_solver(found)}"
    if found.relative_residual > 1 + ROUNDING:
        return Limit.UNUSABLE, f"Not usable: zero weights would do better than {_residual(found)}. Go on, or use LSTD."
    contradicts = status == "singular"  # a direct solver has found that nothing does better
    if contradicts:
        excess = 0.0
    far = excess > ENOUGH * found.floor and found.relative_residual > ROUNDING
    singular = found.rank_A is not None and found.rank_A < found.dim
    consistent = found.mspbe - excess <= CONSISTENT**2 * max(found.mspbe_at_zero, np.finfo(float).tiny)
    if contradicts or (not far and singular and not consistent):
        return Limit.SINGULAR, (
            f"The equations are singular and contradict each other{_rank(found)}, and no weights have an MSPBE "
            f"below {found.mspbe - excess:.2g}. Use a small ridge, fewer features or more rows."
        )
    if far:
        return _optimiser(solution, found, excess)
    if singular:
        return Limit.SINGULAR, (
            f"The equations are singular{_rank(found)}. The weights are not determined, the values of states "
            "may be; a small ridge makes the weights unique."
        )
    if found.relative_residual <= ROUNDING and found.floor <= ROUNDING**2 * found.mspbe_at_zero:
        return Limit.DATA, "Exact: the answer fits every row of this log, and more passes would not change it."
    if found.effective_share < FEW:
        rows = found.effective_share * found.n_rows
        return Limit.RATIOS, (
            f"The ratios make the effective sample so small, {rows:,.0f} of {found.n_rows:,} rows, that a few rows "
            "decide the answer and its floor is itself uncertain. Collect rows closer to the target policy."
        )
    if found.least_eigenvalue < -NEGATIVE:
        return Limit.INDEFINITE, (
            f"Off-policy, restarts or too few rows: A's symmetric part has a negative eigenvalue "
            f"({found.least_eigenvalue:.2g}), so that TD may diverge and the fixed point can be far from the best fit."
        )
    weak = " The norm of diag(C)^-1 hardly sees where C is weak, though." if found.norm != "C^-1" else ""
    ratio = f"{found.ratio:.2g}" if found.ratio >= 1e-6 else "less than 1e-06"
    return Limit.DATA, (
        f"At statistical accuracy: the MSPBE is {ratio} of its floor. More passes would not help, more rows would."
        f"{weak}"
    )


def _optimiser(solution: Solution, found: Certificate, excess: float) -> tuple[Limit, str]:
    errors = f"{np.sqrt(excess / found.floor):.2g} standard errors"
    smaller = float(np.sqrt(ENOUGH * found.floor / excess))
    goal = max(smaller * found.relative_residual, ROUNDING)
    if solution.status.value == "stalled":
        return Limit.UNUSABLE, (
            f"Not usable: the run stalled {errors} from its goal ({_residual(found)}). {_other_solver(found)}"
        )
    # A tolerance is in the norm that dim decides; here it may be the other.
    same = (found.norm == "C^-1") == (found.dim <= EXACT_DIM)
    aim = f"tolerance={goal:.1g}" if same else f"a residual {found.relative_residual / goal:.2g} times smaller"
    passes = ""
    if solution.passes > 0 and 0 < found.relative_residual < 0.9:
        more = solution.passes * np.log(goal / found.relative_residual) / np.log(found.relative_residual)
        passes = f", at the rate so far in about {np.ceil(more):,.0f} more passes"
    return Limit.OPTIMISER, (
        f"Limited by the optimiser, not by the data: the answer is {errors} away. Go on to {aim}{passes}."
    )


def _rank(found: Certificate) -> str:
    return "" if found.rank_A is None else f": A has rank {found.rank_A:,} of {found.dim:,}"


def _residual(found: Certificate) -> str:
    return f"a relative residual of {found.relative_residual:.2g}"


def _other_solver(found: Certificate) -> str:
    if found.least_eigenvalue < -NEGATIVE:
        return 'A\'s symmetric part has a negative eigenvalue: use LSTD, or direction="saddle".'
    return "Use LSTD, or smaller steps."
