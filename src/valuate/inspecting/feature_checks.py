"""The features of a log: whether they can be computed, and what rank and condition they give C and A."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import spectra
from valuate.certificate import forms_matrices
from valuate.errors import ValuateError
from valuate.inspecting.columns import NAMED
from valuate.inspecting.findings import Finding, Severity, plural
from valuate.inspecting.ratios import effective_share
from valuate.metric import unit_scale
from valuate.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.inspecting.look import Look

    Vector = NDArray[np.float64]

#: Rows that features are looked at on, at most; more where there are many features.
ROWS, ROWS_A_FEATURE, MOST_ROWS = 20_000, 10, 200_000
#: Products that bounds take where no matrix is formed.
PRODUCTS = 20
#: Features are said to nearly depend on each other from this condition of C on, as in messages of solvers; from the
#: second on, direct solvers feel it too.
BAD, WORSE = 1e8, 1e13
#: Two features are multiples where the cosine between them is 1 but for this.
ROUNDING = 1e-14
#: Up to so many features pairs of them are compared.
MOST_PAIRED = 2000
#: Fewer rows a feature than this give a rough answer.
FEW_ROWS = 10
#: Equations hold where some weights leave this share of the MSPBE at zero, as in a certificate.
CONSISTENT = 1e-16
#: Below minus this an eigenvalue is negative, and not by rounding.
NEGATIVE = 1e-10


@dataclass(slots=True)
class Features:
    """What was found about the features: facts for the table, findings."""

    facts: dict[str, Any] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)


def features(look: Look, feature_map: Any, ridge: float, seed: int) -> Features:
    """Build the problem on a sample of the rows, and look at its moments."""
    out = Features()
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem = _problem(look, feature_map, ridge, seed)
            _look(look, problem, out, seed)
    except ValuateError as error:
        out.findings.append(_failed(str(error)))
    except Exception as error:  # noqa: BLE001  # a user's own code, which may raise anything
        out.findings.append(_failed(f"{type(error).__name__}: {error}"))
    return out


def _failed(reason: str) -> Finding:
    return Finding(
        Severity.WRONG,
        "features-fail",
        f"The features cannot be computed. {reason.rstrip('.')}.",
        "",
        "Rows are counted within the sample that was looked at.",
    )


def _problem(look: Look, feature_map: Any, ridge: float, seed: int) -> Problem:
    rng = np.random.default_rng(seed)

    def build(size: int) -> Problem:
        log = look.log
        if size < look.n:
            log = log[np.sort(rng.choice(look.n, size, replace=False))]
        return Problem.from_transitions(log, feature_map, discount=look.discount, ridge=ridge)

    size = min(look.n, ROWS)
    problem = build(size)
    wanted = min(look.n, ROWS_A_FEATURE * problem.dim, MOST_ROWS)
    return problem if wanted <= size else build(wanted)


def _look(look: Look, problem: Problem, out: Features, seed: int) -> None:
    dim, sampled = problem.dim, problem.n_rows < look.n
    words = f"{dim:,}, {problem.layout}"
    out.facts["features"] = words + (f", looked at on {problem.n_rows:,} rows" if sampled else "")
    scale = unit_scale(problem.diagonal - problem.ridge)
    used = int(np.count_nonzero(problem.diagonal > problem.ridge))
    if used < dim:
        out.findings.append(_unused(np.flatnonzero(problem.diagonal <= problem.ridge), dim, problem, sampled))
    exact = forms_matrices(problem)
    if exact:
        if dim <= MOST_PAIRED:
            out.findings += _pairs(problem, scale)
        condition, least = spectra.condition(problem), spectra.least_eigenvalue(problem)
        rank, equations = problem.metric().rank, spectra.equations(problem)
        out.facts["rank of C, of A"] = f"{rank:,}, {equations.rank:,} of {dim:,}"
        out.findings += _ranks(look, problem, rank, used, equations)
    else:
        rng = np.random.default_rng(seed)
        condition = spectra.condition_by_products(problem, PRODUCTS, rng)
        least = spectra.least_by_products(problem, PRODUCTS, rng)
        rank = used
    out.facts["condition of C"] = f"{'' if condition.exact else 'at least '}{condition.value:.3g}"
    out.facts["least eigenvalue of (A + A')/2"] = f"{'' if least.exact else 'at most '}{least.value:.3g}"
    out.findings += _spectrum(condition.value, least.value)
    out.findings += _few_rows(look, used)


def _unused(columns: NDArray[np.intp], dim: int, problem: Problem, sampled: bool) -> Finding:
    rows = f"the {problem.n_rows:,} rows looked at" if sampled else "all rows"
    # Tiles and hashed features have room for states that a log never visits.
    return Finding(
        Severity.NOTE,
        "unused-features",
        f"{len(columns):,} of {plural(dim, 'feature')} {'is' if len(columns) == 1 else 'are'} 0 in {rows}: "
        f"{_named(columns)}.",
        f"feature {columns[0]}",
        "Their weights stay 0, and states that have them only get the value 0.",
    )


def _pairs(problem: Problem, scale: Vector) -> Iterator[Finding]:
    c = problem.second_moment()
    cosine = np.triu(c * scale[:, None] * scale, 1)
    if problem.ridge:
        cosine = cosine[: problem.dim]  # the ridge is on the diagonal, which is left out
    one, other = np.nonzero(np.abs(cosine) >= 1 - ROUNDING)
    count = len(set(other.tolist()))
    if count:
        words = ", ".join(f"{i} and {j}" for i, j in list(zip(one, other, strict=True))[:NAMED])
        yield Finding(
            Severity.WARNING,
            "duplicate-features",
            f"{plural(count, 'feature')} {'is a multiple' if count == 1 else 'are multiples'} of another: {words}"
            + (", ..." if len(one) > NAMED else "."),
            f"feature {other[0]}",
            "Leave one of each pair out, or use a small ridge. (A constant feature and a fitted intercept are a pair.)",
        )


def _ranks(look: Look, problem: Problem, rank: int, used: int, equations: spectra.Equations) -> Iterator[Finding]:
    at_zero = problem.mspbe(np.zeros(problem.dim))
    if rank < used:
        yield Finding(
            Severity.WARNING,
            "rank",
            f"C has rank {rank:,} with {plural(used, 'feature')} in use: they depend on each other, and "
            "weights are not unique.",
            "",
            "Values of logged states are determined all the same. A small ridge, fewer features or more rows make the "
            "weights unique.",
        )
    if equations.rank < rank:
        contradict = equations.least_mspbe > CONSISTENT * max(at_zero, np.finfo(float).tiny)
        yield Finding(
            Severity.WRONG if contradict else Severity.WARNING,
            "singular",
            f"A has rank {equations.rank:,} where C has {rank:,}: "
            + (
                "the equations contradict each other, and no weights solve them."
                if contradict
                else "the equations leave values open that the features could tell."
            ),
            "",
            "Usually a discount of 1 without termination, or ratios that are 0 where a feature is not. A smaller "
            "discount or a small ridge helps."
            if look.discount == 1.0 or look.log.ratios is not None
            else "A small ridge, fewer features or more rows help.",
        )


def _spectrum(condition: float, least: float) -> Iterator[Finding]:
    if condition >= BAD:
        digits = min(16.0, np.log10(condition))
        yield Finding(
            Severity.WARNING if condition >= WORSE else Severity.NOTE,
            "condition",
            f"The features nearly depend on each other: C has condition {condition:.1e}, which costs about "
            f"{digits:.0f} of 16 digits and makes iterative solvers slow.",
            "",
            "A small ridge, fewer features, or features of standardised states.",
        )
    if least < -NEGATIVE:
        yield Finding(
            Severity.NOTE,
            "indefinite",
            f"A's symmetric part has a negative eigenvalue ({least:.2g}): off-policy rows, restarts, or few rows.",
            "",
            "TD may diverge; LSTD, GCR and the saddle-point methods do not depend on it.",
        )


def _few_rows(look: Look, used: int) -> Iterator[Finding]:
    rows = effective_share(look) * look.n
    if used and rows < FEW_ROWS * used:
        effective = "" if look.log.ratios is None else "effective "
        fewer = rows < used
        yield Finding(
            Severity.WARNING,
            "few-rows",
            f"{rows:,.0f} {effective}rows for {plural(used, 'feature')} in use"
            + (": fewer than there are weights to find." if fewer else f", {rows / used:.2g} for each."),
            "",
            "Expect a fit of the noise: use a ridge, fewer features, or more rows.",
        )


def _named(columns: NDArray[np.intp]) -> str:
    return ", ".join(str(int(j)) for j in columns[:NAMED]) + (", ..." if len(columns) > NAMED else "")
