"""Importance ratios, weights and probabilities: how many rows they leave, and whether they can be right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.inspecting.findings import Finding, Severity, share
from valuate.verdict import FEW

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.inspecting.look import Look

    Vector = NDArray[np.float64]

#: With fewer effective rows than this no number means anything.
HARDLY_ANY = 10
#: A ratio is an outlier with more than this share of the sum of all.
LARGE = 0.05
#: Standard errors, and share, by which a mean must be off before it is named.
ERRORS, OFF = 6.0, 0.1
#: Discrete actions that are told apart, at most.
MOST_ACTIONS = 1000
#: Rows that means of probabilities need.
LEAST = 100


def effective_share(look: Look) -> float:
    """(sum w rho)^2 / (sum w rho^2 sum w) with ratios rho and weights w, as in a certificate; 1 without ratios."""
    log = look.log
    if log.ratios is None:
        return 1.0
    weights = np.ones(1) if log.weights is None else log.weights
    total = float(look.n) if log.weights is None else float(log.weights.sum())
    scaled = log.ratios / (log.ratios.max() or 1.0)
    squares = float((weights * scaled * scaled).sum())
    return float((weights * scaled).sum() ** 2 / (squares * total)) if squares > 0 else 0.0


def weights_share(look: Look) -> float:
    """(sum w)^2 / (n sum w^2): the share of rows that as many equal weights would be; 1 without weights."""
    weights = look.log.weights
    if weights is None:
        return 1.0
    scaled = weights / weights.max()
    return float(scaled.sum() ** 2 / (look.n * (scaled @ scaled)))


def effective(look: Look) -> Iterator[Finding]:
    """The effective sample size."""
    for found, name in ((effective_share(look), "importance ratios"), (weights_share(look), "weights")):
        rows = found * look.n
        if found >= FEW or look.n < HARDLY_ANY:
            continue
        hardly = rows < HARDLY_ANY
        yield Finding(
            Severity.WRONG if hardly else Severity.WARNING,
            "few-effective-rows",
            f"The {name} leave {rows:,.1f} of {look.n:,} rows effective ({share(found, 1.0)})"
            + (": the answer is that of a handful of rows." if hardly else "."),
            "",
            "Collect rows nearer to the policy that is evaluated, or clip the ratios and say so."
            if name != "weights"
            else "A few rows outweigh all others: check the column that was taken for weights.",
        )


def outliers(look: Look) -> Iterator[Finding]:
    """Single ratios that outweigh the others."""
    ratios = look.log.ratios
    if ratios is None or look.n < LEAST or not ratios.any():
        return
    total = float(ratios.sum())
    large = np.flatnonzero(ratios > LARGE * total)
    if len(large):
        row = int(ratios.argmax())
        yield Finding(
            Severity.WARNING,
            "ratio-outliers",
            f"The largest importance ratio, {ratios[row]:.4g}, is {share(float(ratios[row]), total)} of the sum of all "
            f"{look.n:,}" + (f"; {len(large)} are over {LARGE:.0%}." if len(large) > 1 else "."),
            look.at(row),
            "Check the logged probability of this row. Products of ratios along an episode do not belong here: a row "
            "takes the ratio of its own action.",
        )


def mean(look: Look) -> Iterator[Finding]:
    """Ratios average 1 over rows of the policy that they are ratios to."""
    ratios = look.log.ratios
    if ratios is None or look.n < LEAST:
        return
    average, error = float(ratios.mean()), float(ratios.std() / np.sqrt(look.n))
    if ratios.max() == ratios.min() == 1.0:
        yield Finding(Severity.NOTE, "ratio-mean", "All importance ratios are 1: the log counts as on-policy.")
    elif abs(average - 1.0) > max(ERRORS * error, OFF):
        yield Finding(
            Severity.WARNING,
            "ratio-mean",
            f"The importance ratios average {average:.4g}; over rows of the policy that logged them it would be 1.",
            f"largest at row {int(ratios.argmax()):,}",
            "They are ratios to another policy than the one that logged, or clipped, or products along an episode, or "
            "upside down.",
        )


def probabilities(look: Look) -> Iterator[Finding]:
    """1 / probability, counted where an action was taken, averages 1 at most over all rows: the importance of it."""
    chances: Vector | None = getattr(look.log, "probabilities", None)
    actions: Any = look.log.actions
    if chances is None or look.n < LEAST:
        return
    if chances.min() == chances.max() == 1.0:
        yield Finding(
            Severity.NOTE, "probabilities",
            "All logged actions have probability 1: the log says nothing of other actions in the same states.",
        )  # fmt: skip
        return
    if actions is None or getattr(actions, "ndim", 0) != 1 or actions.dtype.kind not in "iubUS":
        return
    names, places = np.unique(actions, return_inverse=True)
    if len(names) > MOST_ACTIONS:
        return
    inverse = 1.0 / chances
    means = np.bincount(places, inverse) / look.n
    errors = np.sqrt(np.maximum(np.bincount(places, inverse**2) / look.n - means**2, 0.0) / look.n)
    excess = means - 1.0 - np.maximum(ERRORS * errors, OFF)
    if (excess > 0).any():
        k = int(excess.argmax())
        yield Finding(
            Severity.WARNING,
            "probabilities",
            f"The logged probabilities do not fit the actions: action {names[k]} was taken {means[k]:.3g} times as "
            "often as its probabilities say at most.",
            f"first at row {int((places == k).argmax()):,}",
            "Check that the column holds the probability of the action that was taken, not of another one, and no "
            "logarithm or density of continuous actions.",
        )
