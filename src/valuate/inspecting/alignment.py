"""Does every row lead to the following one? And where not: what happened to the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from valuate.inspecting.findings import Finding, Severity, share

if TYPE_CHECKING:
    from valuate.inspecting.look import Look, Matches

#: Rows that match in at least this share do so by construction.
NEARLY_ALL = 0.95
#: Recordings side by side that are looked for, at most.
MOST_COPIES = 64
#: Rows that lags are tried on.
TRIED = 200_000
#: Rows that must have been compared before anything is called wrong.
LEAST = 3


def alignment(look: Look) -> Iterator[Finding]:
    """Compare the next state of each row with the state of the following row of its episode."""
    if not look.comparable:
        return
    found = look.matches(1)
    if found.total < LEAST or found.equal == found.total:
        return
    if found.share >= NEARLY_ALL:
        yield _gaps(look, found)
        return
    explained = _same(look) or _backwards(look) or _shifted(look, found) or _interleaved(look, found)
    yield explained or _unexplained(look, found)


def _same(look: Look) -> Finding | None:
    found = look.matches(0)
    if found.total < LEAST or found.share < NEARLY_ALL or look.distinct == 1:
        return None
    return Finding(
        Severity.WRONG,
        "next-equals-state",
        f"The next state is the state of its own row in {_of(found)}: every row says that nothing happened.",
        look.at(int(found.rows[0])),
        "Give the observation after each step as the next state: observations[1:] beside observations[:-1].",
    )


def _backwards(look: Look) -> Finding | None:
    found = look.matches(1, backwards=True)
    if found.total < LEAST or found.share < NEARLY_ALL:
        return None
    return Finding(
        Severity.WRONG,
        "backwards",
        f"The state of a row is the next state of the following row in {_of(found)}: state and next state are "
        "swapped, rows run backwards in time, or next states come 2 rows late.",
        look.at(int(found.rows[0])),
        "Swap the two columns, reverse the rows of each episode, or align them again.",
    )


def _shifted(look: Look, aligned: Matches) -> Finding | None:
    for lag in (2, 3, -2):
        found = look.matches(lag)
        if found.total < LEAST or found.share < NEARLY_ALL or found.share < aligned.share + 0.2:
            continue
        if lag > 0 and look.same_label is None and not _nearer(look, 1, lag):
            continue  # copies side by side
        off = abs(lag - 1)
        rows = f"{off} row{'s' * (off != 1)} {'late' if lag < 1 else 'early'}"
        return Finding(
            Severity.WRONG,
            "shifted",
            f"The next states are shifted: in {_of(found)} the next state is the state {_rows_on(lag)}. They come "
            f"{rows}.",
            look.at(int(found.rows[0])),
            "Align them again, episode by episode: T + 1 observations belong to T rewards.",
        )
    return None


def _interleaved(look: Look, aligned: Matches) -> Finding | None:
    if look.same_label is not None:
        return None
    for copies in range(2, MOST_COPIES + 1):
        found = _across(look, copies)
        if found >= NEARLY_ALL and found > aligned.share + 0.2:
            return Finding(
                Severity.WARNING,
                "interleaved",
                f"Rows of {copies} recordings alternate: the next state is the state {copies} rows on in "
                f"{share(found, 1)} of the rows." + (" (Or next states come one row early.)" if copies == 2 else ""),
                "row 0",
                "The values are right, but episodes are not known. Give episodes=, one label a row, and sort by it.",
            )
    return None


def _across(look: Look, copies: int) -> float:
    """Share of rows without a flag whose next state is the state so many rows on."""
    n = min(look.n, TRIED)
    if copies >= n:
        return 0.0
    going_on = ~look.ended[: n - copies]
    equal = look.next[: n - copies] == look.state[copies:n]
    return float(equal[going_on].mean()) if going_on.any() else 0.0


def _nearer(look: Look, lag: int, other: int) -> bool:
    """Whether rows ``lag`` apart are nearer to each other than rows ``other`` apart; True where unknown."""
    rows = look.sample(np.arange(max(0, look.n - other)))
    here = look.numbers(rows)
    one, two = (look.distances(here, look.numbers(rows + k)) for k in (lag, other))
    return one is None or two is None or not len(rows) or bool(np.median(one) <= np.median(two))


def _gaps(look: Look, found: Matches) -> Finding:
    """A few rows that do not lead to the following one."""
    broken = found.total - found.equal
    first = look.at(int(found.rows[np.argmin(found.flags)]))
    said = (
        f"{broken:,} of {found.total:,} rows that do not end an episode lead to another state than that of the "
        "following row."
    )
    if look.same_label is None:
        return Finding(
            Severity.NOTE,
            "unflagged-ends",
            said,
            first,
            "They count as cut off there, which is right where their next states are. Mark ends as terminated or "
            "truncated, so that episodes are known.",
        )
    return Finding(
        Severity.WARNING,
        "misaligned",
        said,
        first,
        "Rows in between are missing, or moved. Each row is right by itself if its own next state is; look at the "
        "first.",
    )


def _unexplained(look: Look, found: Matches) -> Finding:
    first = look.at(int(found.rows[np.argmin(found.flags)]))
    seldom = f"Only {_of(found)}" if found.equal else f"None of {found.total:,} rows in mid-episode"
    said = f"{seldom} lead{'s' * (not found.equal)} to the state of the following row"
    apart = _apart(look)
    if apart:
        return Finding(
            Severity.WRONG,
            "misaligned",
            f"{said}, and next states are of another scale than states: {apart}.",
            first,
            "Treat both alike: the same scaler, the same units, the same order of entries.",
        )
    rows = look.sample(found.rows[~found.flags])
    places = np.searchsorted(look.ordered_states, look.next[rows])
    known = look.ordered_states[np.minimum(places, look.n - 1)] == look.next[rows]
    if known.mean() < 0.5:
        return Finding(
            Severity.WARNING,
            "misaligned",
            f"{said}, and {share(int((~known).sum()), len(known))} of the next states are nowhere a state.",
            first,
            "Right where rows were drawn from a larger log. If this is all of it, next states were taken or scaled in "
            "another way than states: compare the two columns at this row.",
        )
    if look.same_label is not None:
        return Finding(
            Severity.WARNING,
            "unordered",
            f"{said}, though next states are states elsewhere: rows of an episode are not in order of time.",
            first,
            "Sort them by episode and step. Without, traces and what takes the next row for the next state are wrong.",
        )
    return Finding(
        Severity.NOTE,
        "unordered",
        f"{said}, though next states are states elsewhere: rows are not in order of time, as in a replay buffer.",
        first,
        "The values do not depend on it. Intervals by episode and traces need episodes=, and rows in order.",
    )


def _apart(look: Look) -> str:
    """The first entry whose next states are of another scale than its states, in words; empty where there is none."""
    rows = look.sample(np.flatnonzero(~look.log.terminated))
    here, there = look.numbers(rows), look.numbers(rows, following=True)
    if here is None or there is None or len(rows) < 20:
        return ""
    means, spreads = [part.mean(axis=0) for part in (here, there)], [part.std(axis=0) for part in (here, there)]
    wide, narrow = np.maximum(*spreads), np.minimum(*spreads)
    odd = (np.abs(means[0] - means[1]) > 3 * wide) & (means[0] != means[1]) | (wide > 10 * narrow)
    if not odd.any():
        return ""
    j = int(odd.argmax())
    words = [f"mean {m[j]:.3g} and deviation {s[j]:.3g}" for m, s in zip(means, spreads, strict=True)]
    return f"entry {j} has {words[1]} there and {words[0]} in the states"


def _of(found: Matches) -> str:
    return f"{found.equal:,} of {found.total:,} rows in mid-episode"


def _rows_on(lag: int) -> str:
    return f"{abs(lag)} rows {'before' if lag < 0 else 'on'}"
