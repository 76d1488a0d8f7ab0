"""Rewards: whether they say anything, and whether a few of them drown all others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from valuate.inspecting.findings import Finding, Severity, be, have, plural, share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.inspecting.look import Look

    Vector = NDArray[np.float64]

#: Rewards are outliers where they are this many times as large as all others, and few.
TIMES = 20.0
#: One row in so many may be an outlier, and at least three in all.
RARE = 10_000
#: Rewards a log needs before anything is said of outliers.
LEAST = 50


def constant(look: Look) -> Iterator[Finding]:
    """Rewards that are all equal, in a log where no episode ends: then so are the values."""
    rewards = look.log.rewards
    if look.n == 1 or rewards.min() != rewards.max():
        return
    value = float(rewards[0])
    if value == 0.0:
        yield Finding(
            Severity.WARNING, "constant-rewards", "All rewards are 0, and so is every value.", "",
            "Check that the column of the reward was taken for the reward, or collect until something happens.",
        )  # fmt: skip
    elif not look.log.terminated.any():
        total = f", {value / (1 - look.discount):.4g}" if look.discount < 1 else ""
        yield Finding(
            Severity.WARNING, "constant-rewards",
            f"All rewards are {value:g} and no row is terminated: every state has the same value{total}.", "",
            "The log holds no signal. It takes rows in which something else happens, such as the end of an episode.",
        )  # fmt: skip


def outliers(look: Look) -> Iterator[Finding]:
    """A few rewards, not at the ends of episodes, that are many times as large as all others."""
    sizes = np.abs(look.log.rewards)
    most = max(3, look.n // RARE)
    if look.n < LEAST:
        return
    top = np.argpartition(sizes, -most - 1)[-most - 1 :]
    top = top[np.argsort(sizes[top])[::-1]]
    largest = sizes[top]
    gaps = np.flatnonzero((largest[1:] > 0) & (largest[:-1] >= TIMES * largest[1:]))
    if not len(gaps):
        return
    rows = np.sort(top[: gaps[-1] + 1])
    last = np.zeros(look.n, bool)
    last[look.last] = True
    if (last | look.ended)[rows].all():
        return  # what an episode is won or lost by
    least = float(sizes[rows].min())
    squares = float(np.square(sizes[rows] / largest[0]).sum() / np.square(sizes / largest[0]).sum())
    yield Finding(
        Severity.WARNING,
        "reward-outliers",
        f"{plural(len(rows), 'reward')} of size {least:.3g} or more {be(len(rows))} over {TIMES:.0f} "
        f"times as large as all others, and {have(len(rows))} {share(squares, 1.0)} of the sum of squares.",
        look.at(int(rows[0])),
        "Look at these rows. If they are errors, mend or drop them; if not, the value rests on them.",
    )
