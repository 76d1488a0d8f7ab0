"""Episodes: whether they are known, whole, and closed by a flag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from valuate.inspecting.findings import Finding, Severity, plural

if TYPE_CHECKING:
    from valuate.inspecting.look import Look

#: With fewer episodes an interval by episode is wide and its coverage uncertain.
FEW = 20


def known(look: Look) -> Iterator[Finding]:
    """Labels, or at least flags."""
    if look.known:
        return
    yield Finding(
        Severity.NOTE,
        "episodes-unknown",
        "There are no episode labels and no row is terminated or truncated: the log counts as one endless recording.",
        "",
        "Give episodes=, one label a row, or the flags, if there is more than one; the interval rests on episodes.",
    )


def contiguous(look: Look) -> Iterator[Finding]:
    """Labels that come back after rows of another episode."""
    labels = look.log.episodes
    if labels is None:
        return
    runs = labels[look.last].tolist()
    if len(set(runs)) == len(runs):
        return
    seen = set()
    again = 0
    for k, label in enumerate(runs):
        if label in seen:
            again = k
            break
        seen.add(label)
    row = int(look.last[again - 1]) + 1
    yield Finding(
        Severity.WARNING,
        "not-contiguous",
        f"{len(set(runs)):,} episodes lie in {len(runs):,} pieces: rows of others stand in between.",
        look.at(row),
        "Sort the log by episode, log[np.argsort(log.episodes, kind='stable')], or mend labels that are used twice. "
        "Checks of the order of rows look at each piece by itself until then.",
    )


def flagged(look: Look) -> Iterator[Finding]:
    """Ends of episodes without a flag, and logs without a termination."""
    log = look.log
    if look.same_label is not None:
        last = look.last[:-1]  # the log may stop anywhere
        open_ends = last[~look.ended[last]]
        if len(last) and not look.ended.any():
            yield Finding(
                Severity.WARNING,
                "no-ends",
                f"The log has {plural(len(look.last), 'episode')}, and no row is terminated or truncated. All ends "
                "count as cut off: the value goes on from their last next states.",
                look.at(int(last[0])),
                "Mark rows as terminated where the process ended: the value after them is 0, and without the mark it "
                "is made up.",
            )
            return
        if len(open_ends):
            yield Finding(
                Severity.WARNING if 2 * len(open_ends) > len(last) else Severity.NOTE,
                "unflagged-ends",
                f"{len(open_ends):,} of {plural(len(last) + 1, 'episode')} end with a row that is neither terminated "
                "nor truncated. They count as cut off.",
                look.at(int(open_ends[0])),
                "Mark them as terminated if the process ended there.",
            )
    if look.ended.any() and not log.terminated.any():
        yield Finding(
            Severity.NOTE,
            "no-terminated",
            f"No row is terminated and {int(log.truncated.sum()):,} are truncated: the value goes on after every end.",
            look.at(int(log.truncated.argmax())),
            "Right for a process that never ends by itself. If it does, mark those rows as terminated.",
        )


def few(look: Look) -> Iterator[Finding]:
    """Too few episodes for a narrow interval."""
    count = len(look.last)
    if look.known and count < FEW:
        yield Finding(
            Severity.NOTE,
            "few-episodes",
            f"The log has {plural(count, 'episode')}.",
            "",
            "An interval by episode needs two at least, and is wide with few."
            if count > 1
            else "An interval by episode needs two at least; one long recording can be cut into blocks instead.",
        )
