"""What follows on the end of an episode: nothing, as it should be; the process itself; or another start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from valuate.inspecting.findings import Finding, Severity, be, plural, share

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.inspecting.look import Look

    Index = NDArray[np.int64]
    Flags = NDArray[np.bool_]

#: Ends of one kind that are needed before anything is said of them.
LEAST = 3
#: Nearly all of them.
NEARLY_ALL = 0.9


def ends_late(look: Look) -> Iterator[Finding]:
    """Flags on the first row of the following episode."""
    if look.same_label is None:
        return
    flagged = np.flatnonzero(look.ended)
    breaks = ~look.same_label
    begins, finishes = np.append(True, breaks), np.append(breaks, True)
    late = flagged[begins[flagged] & ~finishes[flagged]]
    if len(late) >= LEAST and len(late) >= NEARLY_ALL * len(flagged):
        yield Finding(
            Severity.WRONG,
            "ends-late",
            f"{len(late):,} of {plural(len(flagged), 'flag')} terminated or truncated stand on the first row of an "
            "episode, not on the last.",
            look.at(int(late[0])),
            "Move them up by one row. They say of a row that the episode ended with it.",
        )


def goes_on(look: Look) -> Iterator[Finding]:
    """Rows that ended, and whose next state is the state of the following row all the same."""
    if not look.comparable or look.n < 2:
        return
    padded = _padded(look)
    for flags, finding in ((look.log.terminated, _after_termination), (look.log.truncated, _after_truncation)):
        ends = np.flatnonzero(flags[:-1] & ~padded)
        if len(ends) < LEAST:
            continue
        joined = ends[look.next[ends] == look.state[ends + 1]]
        if len(joined) < LEAST or len(joined) / len(ends) < _by_chance(look, ends) + 0.1:
            continue
        found = finding(look, joined, len(ends), _jumps(look, joined))
        if found is not None:
            yield found


def _after_termination(look: Look, joined: Index, count: int, jumps: bool | None) -> Finding | None:
    # A jump is the start of the following episode, which some wrappers write there. Nothing reads it.
    if jumps or (jumps is None and 2 * len(joined) < count):
        return None
    return Finding(
        Severity.WRONG if jumps is False else Severity.WARNING,
        "goes-on",
        f"After {len(joined):,} of {plural(count, 'terminated row')} the process goes on: their next state is the "
        "state of the following row" + (", a usual step away." if jumps is False else "."),
        look.at(int(joined[0])),
        "Either these rows did not terminate, or flags are not aligned with rows. (Harmless where a reset writes the "
        "next start there.) Nothing that comes after a terminated row counts for its value.",
    )


def _after_truncation(look: Look, joined: Index, count: int, jumps: bool | None) -> Finding | None:
    # A usual step is one recording that was cut into pieces, which is right as it is.
    if jumps is False or (jumps is None and 2 * len(joined) < count):
        return None
    return Finding(
        Severity.WRONG if jumps else Severity.WARNING,
        "reset-as-next",
        f"The next state of {len(joined):,} of {plural(count, 'truncated row')} is the state of the following row"
        + (", far away: the first of another episode." if jumps else ". Right only if the recording went on there."),
        look.at(int(joined[0])),
        "A truncated row needs its own last observation, from which its value goes on; environments that reset "
        "themselves keep it apart (final_observation). Where it is lost, drop these rows.",
    )


def _by_chance(look: Look, ends: Index) -> float:
    """The share of ends whose next state would be that of a following row if these were shuffled."""
    starts, counts = np.unique(look.state[ends + 1], return_counts=True)
    places = np.minimum(np.searchsorted(starts, look.next[ends]), len(starts) - 1)
    equal = starts[places] == look.next[ends]
    return float((counts[places] * equal).mean() / len(ends))


def _jumps(look: Look, rows: Index) -> bool | None:
    """Whether these rows go much further than others do; None where steps do not tell."""
    usual, far = look.usual_step, look.steps(look.sample(rows))
    if usual is None or far is None or look.repeating:
        return None
    half = look.sample(np.arange(look.n))
    apart = look.distances(look.numbers(half), look.numbers(np.roll(half, len(half) // 2)))
    if apart is None or np.median(usual) > 0.5 * np.median(apart):
        return None  # any state can follow on any other
    middle = float(np.median(far))
    if middle > np.quantile(usual, 0.99):
        return True
    return False if middle <= np.quantile(usual, 0.95) else None


def after_an_end(look: Look) -> Iterator[Finding]:
    """Rows after an end that still have the label of the episode that ended."""
    if look.same_label is None:
        return
    ends = np.flatnonzero(look.ended[:-1] & look.same_label)
    if not len(ends):
        return
    padded = ends[_padded(look)[ends]]
    if len(padded) >= LEAST and len(padded) >= NEARLY_ALL * len(ends):
        yield Finding(
            Severity.WRONG,
            "padding",
            f"{plural(len(padded), 'episode')} have exactly one row after their end: the padding of a format that "
            "holds T + 1 rows for T steps, not a transition.",
            look.at(int(padded[0]) + 1),
            "Drop the last row of each episode, after its observation has become the next state of the row before.",
        )
        return
    yield Finding(
        Severity.WARNING,
        "row-after-end",
        f"{plural(len(ends), 'row')} that ended {be(len(ends))} followed by a row with the same episode label.",
        look.at(int(ends[0])),
        "Either labels span several episodes (intervals by episode then have fewer than there are), or the flags are "
        "wrong. Give each episode a label of its own.",
    )


def both_flags(look: Look) -> Iterator[Finding]:
    """Rows that are terminated and truncated."""
    given = look.truncated
    if given is None:
        return
    both, cut = np.flatnonzero(given & look.log.terminated), int(given.sum())
    if not len(both):
        return
    if len(both) >= LEAST and len(both) >= NEARLY_ALL * cut:
        yield Finding(
            Severity.WRONG,
            "both-flags",
            f"{share(len(both), cut)} of {plural(cut, 'truncated row')} are terminated too: terminated seems "
            "to say that an episode ended in any way. Termination wins, so no value goes on after a time limit.",
            look.at(int(both[0])),
            "If so, give terminated & ~truncated as terminated.",
        )
        return
    yield Finding(
        Severity.NOTE,
        "both-flags",
        f"{plural(len(both), 'row')} of {cut:,} truncated ones {be(len(both))} terminated too, and "
        "count as terminated.",
        look.at(int(both[0])),
    )


def time_limit(look: Look) -> Iterator[Finding]:
    """Many terminated episodes of one identical length, the largest."""
    if not look.known:
        return
    last, lengths = look.last, look.lengths
    most = int(lengths.max())
    terminated = look.log.terminated[last]
    at_most = terminated & (lengths == most)
    count, total = int(at_most.sum()), int(terminated.sum())
    if most < 5 or count < LEAST or look.log.truncated[last[lengths == most]].any():
        return
    row = int(last[at_most.argmax()])
    advice = (
        "If that is a time limit, mark these rows as truncated instead of terminated: the process did not end, and "
        "its value goes on. If episodes really end there, let the features tell how many steps are left."
    )
    shorter = lengths[(lengths < most) & terminated]
    if not len(shorter):
        if most < 10 or np.count_nonzero(lengths < most) > count:
            return
        human = most >= 50 and most % 50 == 0
        yield Finding(
            Severity.WRONG if human else Severity.WARNING,
            "time-limit",
            f"All {total:,} terminated episodes have the same length, {most:,} rows"
            + (": a time limit, by all appearance." if human else ": a time limit?"),
            look.at(row),
            advice,
        )
        return
    # Without a limit the lengths run out: about as many episodes end a little earlier.
    window = max(3, most // 20)
    near = np.bincount(most - shorter[shorter >= most - window], minlength=window + 1)[1:]
    usual = max(float(near.max()), 1.0)
    if count > 3 * usual and count - usual > 3 * np.sqrt(usual) and count >= 0.01 * total:
        yield Finding(
            Severity.WRONG,
            "time-limit",
            f"{count:,} of {total:,} terminated episodes have exactly the largest length, {most:,} rows, and at most "
            f"{int(near.max()):,} any length just below: a time limit, recorded as termination.",
            look.at(row),
            advice,
        )


def _padded(look: Look) -> Flags:
    """Rows that ended and have exactly one more row, without a flag, in their episode: (n - 1,).

    Formats that hold T + 1 rows for T steps have such a row.
    """
    if look.same_label is None:
        return np.zeros(look.n - 1, bool)
    finishes = np.append(~look.same_label[1:], True) if look.n > 1 else np.zeros(0, bool)
    return np.asarray(look.ended[:-1] & look.same_label & ~look.ended[1:] & finishes)
