"""How good an answer is: measured against what the optimiser could do and what the log could tell."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks, metric, spectra, verdict
from valuate.errors import InputError, InputTypeError
from valuate.floor import floor
from valuate.verdict import Limit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.problem import Problem
    from valuate.solution import Solution

    Vector = NDArray[np.float64]

#: Multiply-adds (stored rows * dim^2) up to which matrices are formed where they are not there yet.
FORMED = 2e10
#: Passes that a certificate needs: b, the residual, C or its diagonal, the errors of the rows, their lengths, and A.
NEEDED = 6


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class Certificate:
    """What `Solution.certificate` found; prints as a table.

    Attributes
    ----------
    n_rows, dim : int
    relative_residual : float
        sqrt(MSPBE(theta) / MSPBE(0)), in the norm of ``norm``.
    norm : {"C^-1", "diag(C)^-1"}
        That of everything here: the second where C is too large to be formed.
    mspbe, mspbe_at_zero : float
    floor : float
        The MSPBE that the noise of so many rows would leave at the right answer; see `valuate.floor`.
    floor_error : float
        Its standard error where rows were sampled, else 0.
    ratio : float
        mspbe / floor; 0 where both are 0.
    least_eigenvalue : float
        Of (A + A')/2 with columns scaled to unit diagonal of C; an upper bound unless ``eigenvalue_exact``, and nan
        where the budget left no pass for it.
    eigenvalue_exact : bool
    condition : float
        Of C, scaled alike, on the columns that its rank rests on; a lower bound unless ``condition_exact``.
    condition_exact : bool
    rank, rank_A : int or None
        Of C and of A; None where they were not formed.
    effective_share : float
        (sum w rho)^2 / (sum w rho^2 sum w): the effective share of the rows, 1 without ratios.
    passes : int
        Over the rows, used for this certificate.
    limit : Limit
        What limits the answer, for programs.
    verdict : str
        The same in a sentence.
    """

    n_rows: int
    dim: int
    relative_residual: float
    norm: str
    mspbe: float
    mspbe_at_zero: float
    floor: float
    floor_error: float
    ratio: float
    least_eigenvalue: float
    eigenvalue_exact: bool
    condition: float
    condition_exact: bool
    rank: int | None
    rank_A: int | None
    effective_share: float
    passes: int
    limit: Limit = Limit.DATA
    verdict: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The numbers and words by name; the limit as its word."""
        out = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**out, "limit": self.limit.value}

    def __repr__(self) -> str:
        sampled = f" +- {self.floor_error:.1g}, rows sampled" if self.floor_error else ""
        upper = "" if self.eigenvalue_exact else "at most "
        least = "not looked at" if np.isnan(self.least_eigenvalue) else f"{upper}{self.least_eigenvalue:.3g}"
        lower = "" if self.condition_exact else "at least "
        condition = "not looked at" if np.isnan(self.condition) else f"{lower}{self.condition:.3g}"
        ranks = ["unknown" if rank is None else f"{rank:,}" for rank in (self.rank, self.rank_A)]
        # Below these the figures are rounding, and would not be the same on another machine.
        rounds = self.relative_residual < 1e-12
        mspbe = "below 1e-24 of that at zero" if rounds else f"{self.mspbe:.3g}"
        ratio = f"{self.ratio:.3g}" if self.ratio >= 1e-6 else "below 1e-06"
        residual = "below 1e-12" if rounds else f"{self.relative_residual:.3g}"
        rows = self.effective_share * self.n_rows
        lines = [
            ("relative residual", f"{residual} in the norm of {self.norm}"),
            ("MSPBE", mspbe),
            ("its statistical floor", f"{self.floor:.3g}{sampled}"),
            ("MSPBE / floor", ratio),
            ("least eigenvalue of (A + A')/2", least),
            ("condition of C", condition),
            ("rank of C, of A", f"{', '.join(ranks)} of {self.dim:,}"),
            ("effective rows", f"{rows:,.0f} of {self.n_rows:,} ({self.effective_share:.1%})"),
            ("passes used", f"{self.passes}"),
        ]
        width = max(len(name) for name, _ in lines)
        return "\n".join(["Certificate", *(f"  {name:{width}}  {value}" for name, value in lines), f"  {self.verdict}"])

    __str__ = __repr__


def certify(solution: Solution, problem: Problem, *, passes: float, seed: int | np.random.Generator) -> Certificate:
    """See `Solution.certificate`."""
    if not hasattr(problem, "mean_residual"):
        raise InputTypeError(f"problem must be a Problem, not {type(problem).__name__}.")
    if len(solution.theta) != problem.dim:
        raise InputError(
            f"the solution has {len(solution.theta)} weights and the problem {problem.dim} features: it is not that "
            "problem's."
        )
    budget = _checks.number("passes", passes, low=0.0)
    if budget < NEEDED:
        raise InputError(f"passes is {budget:g}, and a certificate needs at least {NEEDED}.")
    rng = np.random.default_rng(seed)
    dim, exact = problem.dim, forms_matrices(problem)
    # The floor measures the rows' lengths by another pass, and A comes by one where it is not there.
    used = problem.measuring_visits(exact=exact) // problem.n_rows + 2 + (exact and not problem.knows("A"))
    with np.errstate(over="ignore", invalid="ignore"):
        mspbe, at_zero = (_mspbe(problem, g, exact) for g in (problem.residual(solution.theta), problem.b))
        noise = floor(problem, solution.theta, exact=exact, seed=rng)
    rank: int | None = None
    rank_a: int | None = None
    least = cond = spectra.Bound(np.nan, False)
    excess = mspbe
    if exact:
        least, cond, rank = spectra.least_eigenvalue(problem), spectra.condition(problem), problem.metric().rank
        rank_a, unmet = spectra.equations(problem)
        excess = max(0.0, mspbe - unmet)
    else:
        products = int(budget - used) // 3
        if products:
            least = spectra.least_by_products(problem, products, rng)
            cond = spectra.condition_by_products(problem, products, rng)
            used += 3 * products
    total, squares = problem.rows.ratio_sums()
    relative = mspbe / at_zero if at_zero > 0 else 2 * mspbe
    found = Certificate(
        n_rows=problem.n_rows,
        dim=dim,
        relative_residual=float(np.sqrt(relative)),
        norm=noise.norm,
        mspbe=mspbe,
        mspbe_at_zero=at_zero,
        floor=noise.value,
        floor_error=noise.error,
        ratio=mspbe / noise.value if noise.value > 0 else (np.inf if mspbe > 0 else 0.0),
        least_eigenvalue=least.value,
        eigenvalue_exact=least.exact,
        condition=cond.value,
        condition_exact=cond.exact,
        rank=rank,
        rank_A=rank_a,
        effective_share=total**2 / (squares * problem.n_rows) if squares > 0 else 0.0,
        passes=int(used),
    )
    limit, sentence = verdict.judge(solution, found, excess)
    return replace(found, limit=limit, verdict=sentence)


def forms_matrices(problem: Problem) -> bool:
    """Whether A and C are looked at as matrices: where they are small enough, or C is there already."""
    if problem.dim > metric.MOST_DIM:
        return False
    return problem.knows("metric") or problem.rows.n_stored * problem.dim**2 <= FORMED


def _mspbe(problem: Problem, g: Vector, exact: bool) -> float:
    if exact:
        return 0.5 * problem.metric().square(g)
    scaled = g * metric.unit_scale(problem.diagonal)
    return 0.5 * float(scaled @ scaled)
