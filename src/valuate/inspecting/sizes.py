"""Rows that are written more than once, and what the discount makes of episodes of such lengths."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from valuate import _checks
from valuate.inspecting.findings import Finding, Severity, plural, share
from valuate.inspecting.look import count_distinct
from valuate.inspecting.survey import survey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.inspecting.look import Hashes, Look

#: Copies are named where they are more than this share of the rows.
COPIES = 0.01
#: Periods that are looked for: the log written so many times.
TIMES = range(2, 11)
#: More than this share of a value from beyond every episode is worth a word.
BEYOND = 0.5
#: A reward is gone where less than this share of it is left.
GONE = 1e-3
#: Rewards are at the ends where this share of them is.
AT_ENDS = 0.9


def copies(look: Look) -> Iterator[Finding]:
    """Rows that are equal in state, action, reward and next state."""
    if not look.comparable or look.n < 20:
        return
    rows = _row_hashes(look)
    distinct = count_distinct(np.sort(rows))
    if distinct == look.n:
        return
    for times in TIMES:
        part, rest = divmod(look.n, times)
        # A process in which each state leads to one row goes round by itself.
        varied = distinct >= 1.1 * look.distinct or distinct >= 0.5 * part
        if rest == 0 and part >= 10 and varied and np.array_equal(rows[part:], rows[:-part]):
            yield _copies(look, f"The log is the same {part:,} rows {times} times over.", f"row {part:,}")
            return
    extra = look.n - distinct
    # Where states repeat, so do rows. Where each state goes with one row, and there are many, it is the row that does.
    if extra < COPIES * look.n or look.distinct < 0.9 * distinct or distinct < max(20, 0.02 * look.n):
        return
    again = _written_again(look, rows)
    if len(again) >= COPIES * look.n:
        said = f"{plural(len(again), 'row')} of {look.n:,} are exact copies of earlier ones."
        yield _copies(look, said, look.at(int(again[0])))


def _written_again(look: Look, rows: Hashes) -> NDArray[np.intp]:
    """Rows that are copies of earlier ones, but for those that an episode came to by itself.

    Where nothing is left to chance, episodes that meet go on alike: such copies follow on a row that is none and leads
    to the first of them.
    """
    order = np.argsort(rows, kind="stable")
    copied = np.zeros(look.n, bool)
    copied[order[1:][rows[order[1:]] == rows[order[:-1]]]] = True
    came = np.append(False, look.inner & (look.next[:-1] == look.state[1:]))
    begins = copied & ~np.append(False, copied[:-1] & came[1:])
    run = np.cumsum(begins) - 1
    return np.flatnonzero(copied & ~came[np.flatnonzero(begins)][run])


def _copies(look: Look, said: str, where: str) -> Finding:
    return Finding(
        Severity.WARNING,
        "copies",
        said,
        where,
        "Drop them if the log was written or joined twice: the value hardly changes, but its interval becomes too "
        "narrow. Weights are the way to count a row more than once.",
    )


def _row_hashes(look: Look) -> Hashes:
    log = look.log
    mixed = look.state * np.uint64(0x9E3779B97F4A7C15)
    parts = [look.next, survey(log.rewards), None if log.actions is None else survey(log.actions)]
    for k, part in enumerate(parts):
        if part is not None:
            hashes = part if isinstance(part, np.ndarray) else part.hashes
            mixed ^= (hashes + np.uint64(k)) * np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0x94D049BB133111EB)
    return mixed


def endless(look: Look) -> Iterator[Finding]:
    """A discount of 1 without a row that ends."""
    if look.discount == 1.0 and not look.log.terminated.any():
        yield Finding(
            Severity.WRONG,
            "endless",
            "The discount is 1 and no row is terminated: the sum of the rewards has no end, and values are not "
            "determined.",
            "",
            "Use a discount below 1, or mark the rows where the process ended as terminated.",
        )


def horizon(look: Look) -> Iterator[Finding]:
    """Values that are mostly of what lies beyond every episode."""
    log, discount = look.log, look.discount
    if discount in (0.0, 1.0) or not look.known or 2 * int(log.terminated[look.last].sum()) >= len(look.last):
        return
    longest = int(look.lengths.max())
    beyond = discount**longest
    if beyond > BEYOND:
        yield Finding(
            Severity.NOTE,
            "horizon",
            f"With a discount of {discount:g} {share(beyond, 1.0)} of a value lies beyond the longest episode, "
            f"{plural(longest, 'row')}: it is told by the features, not by what was seen.",
            "",
            f"A discount of {1 - 3 / max(longest, 3):.3g} or less looks as far as the log does.",
        )


def discounted_away(look: Look) -> Iterator[Finding]:
    """Rewards at the ends of episodes so long that the discount leaves nothing of them at the start."""
    rewards = np.abs(look.log.rewards)
    total = float(rewards.sum())
    if not look.known or total == 0.0 or look.discount in (0.0, 1.0):
        return
    median = int(np.median(look.lengths))
    if float(rewards[look.last].sum()) >= AT_ENDS * total and look.discount ** (median - 1) < GONE:
        yield Finding(
            Severity.WARNING,
            "discounted-away",
            f"Nearly all reward comes with the last row of an episode, and after {median:,} rows, the median length, a "
            f"discount of {look.discount:g} leaves {look.discount ** (median - 1):.1g} of it.",
            "",
            f"Values at the start are 0 but for that. A discount of {1 - 1 / median:.4g} would leave a third.",
        )


def describe_rows(look: Look) -> str:
    """The columns that the log has beside states and rewards, in words."""
    log, out = look.log, []
    for name in ("actions", "next_actions"):
        column = getattr(log, name)
        if column is not None:
            words = f"{name.replace('_', ' ')} {column.dtype}"
            if not _checks.is_sparse(column) and column.ndim == 1 and column.dtype.kind in "iub":
                words += f" {int(column.min())} to {int(column.max())}"
            out.append(words)
    out += [name for name in ("ratios", "weights", "probabilities", "episodes") if getattr(log, name, None) is not None]
    return ", ".join(out) or "none"
