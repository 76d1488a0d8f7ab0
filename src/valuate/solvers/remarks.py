"""What a solver can say of a problem at no extra pass, behind the sentence on how its run ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from valuate.problem import Problem

#: Ratios are worth a word when they leave less than this share of the rows effective.
FEW = 0.1
#: So is C when its condition number is at least this.
BAD = 1e8


def remarks(problem: Problem, *, says_rank: bool = False) -> str:
    """One remark to add to a message, with a space before; empty where there is nothing to say.

    The first of: ratios whose effective sample size (sum w rho)^2 / sum w rho^2 is small, which takes scalars of the
    rows and no feature; rows none of which ends, with discount 1; a C of deficient rank; a C that is badly conditioned.
    C is spoken of where its factor is there already, by a lower bound from its diagonal.

    Parameters
    ----------
    problem : Problem
    says_rank : bool
        Whether the message speaks of ranks itself.
    """
    total, squares = problem.rows.ratio_sums()
    share = total**2 / (squares * problem.n_rows) if squares > 0 else 1.0
    if share < FEW:
        return f" The ratios leave {share * problem.n_rows:,.0f} of {problem.n_rows:,} rows effective."
    if problem.rows.never_ends():
        return (
            " The discount is 1 and no row terminated: such values are known up to a constant only, if they are finite."
        )
    if not problem.knows("metric"):
        return ""
    metric = problem.metric()
    if metric.rank < problem.dim:
        lacks = (
            f" C has rank {metric.rank:,} of {problem.dim:,}: the weights are not unique, a small ridge makes them so."
        )
        return "" if says_rank else lacks
    least = metric.least_condition()
    return f" C is badly conditioned, {least:.0e} or more." if least >= BAD else ""
