"""Where next states come from: columns of their own, the next row, or a last observation behind each episode."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from valuate import _checks
from valuate.errors import InputError
from valuate.io import filling, ordering
from valuate.io.timing import counts_steps

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.io.draft import Draft
    from valuate.io.ends import Ends
    from valuate.io.filling import Values

    Index = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = ["Stored", "from_columns", "from_observations", "from_rows", "named"]

NO_NEXT = "the last row of an episode that did not terminate has no next state in the log"
NO_VALUE = "a truncated row has no value for its next state"
GAP = "the next step is missing from the log"


@dataclass(slots=True)
class Stored:
    """The states and next states of n rows, in order of time.

    Attributes
    ----------
    states : Values
        Of the source: a table that `rows` and `next_rows` are places in, or the states themselves.
    next_states : Values or None
        None where both are in one table.
    rows, next_rows : (n,) places in the table
        Of the states and the next states; where these are arrays of their own, ``rows`` serves both.
    breaks : (n,) flags or None
        Rows whose next state is not the state of the row after them; None where nobody looked.
    """

    states: Values
    next_states: Values | None
    rows: Index
    next_rows: Index
    breaks: Flags | None = None


def from_rows(draft: Draft, states: Values, found: Ends, only: Flags, keep: Flags) -> Stored:
    """The next state is the state of the next row; the last row of an episode that did not terminate is left out."""
    n = draft.n
    closes = np.ones(n, bool)
    if draft.starts is not None:
        closes[:-1] = draft.starts[1:]
    else:
        closes[:-1] = False
    observed = np.append(only[1:], False)  # the row after holds the last observation
    alone = closes | (found.ended & ~observed)
    draft.drop(keep, alone & ~found.terminated, NO_NEXT)
    if draft.steps is not None and draft.starts is not None and counts_steps(draft):
        missing = ordering.gaps(draft.starts, draft.steps)
        if missing is not None:
            draft.drop(keep, missing & ~alone & ~found.terminated, GAP)
            alone |= missing
    rows = draft.rows(np.arange(n))
    following = np.append(rows[1:], rows[-1])
    # What follows a terminated row counts for nothing; its own state stands there where no other is known.
    following[alone] = rows[alone]
    return Stored(states, None, rows, following)


def from_observations(draft: Draft, states: Values) -> Stored:
    """Episodes of one observation more than rows, one after the other."""
    starts = draft.starts if draft.starts is not None else np.arange(draft.n) == 0
    rows = np.arange(draft.n) + np.cumsum(starts) - 1
    return Stored(states, None, rows, rows + 1)


def from_columns(draft: Draft, states: Values, found: Ends, keep: Flags) -> Stored:
    """Next states have columns of their own."""
    pick, table = draft.picks["next_states"], draft.table
    successor = draft.successor()
    rows = draft.rows(np.arange(draft.n))
    if states.base is not None and all(table.is_number(name) for name in pick.names):
        followers = filling.follow(table, pick, states, successor)
        if followers is not None:
            stored = Stored(
                filling.Values(followers.table, states.missing, states.labels, written=states.written),
                None,
                rows,
                followers.rows[rows],
                ~followers.follows[rows],
            )
            _mend(draft, stored, followers.missing, found, keep)
            return stored
    following = filling.fill(table, pick)
    _require_alike(draft, states, following)
    filling.same_codes(states, following)
    stored = Stored(states, following, rows, rows)
    if draft.starts is None and draft.episodes is None and not found.complete and not _checks.is_sparse(states.array):
        stored.breaks = ~filling.matches(states.array, following.array, successor)[rows]
    _mend(draft, stored, following.missing, found, keep)
    return stored


def _mend(draft: Draft, stored: Stored, missing: Flags | None, found: Ends, keep: Flags) -> None:
    """Next states that are missing: of no use after termination, dropped after truncation, refused elsewhere."""
    if missing is None:
        return
    gone = missing[stored.rows]
    closes = found.truncated.copy()
    closes[:-1] |= False if draft.starts is None else draft.starts[1:]
    closes[-1] = True
    draft.drop(keep, gone & closes & ~found.terminated, NO_VALUE)
    bad = gone & keep & ~found.terminated
    if bad.any():
        names = draft.picks["next_states"].names
        raise InputError(
            f"next_states ({named(names)}) have {np.count_nonzero(bad):,} rows with a value that is missing, NaN or "
            f"infinite, the first at row {draft.row(bad.argmax())}, which neither terminated nor was truncated. Drop "
            "those rows or fill the gaps first."
        )
    ended = gone & found.terminated & keep
    if not ended.any():
        return
    draft.notes.append(
        f"{np.count_nonzero(ended):,} terminated rows have no next state, which counts for nothing: their own state "
        "stands there."
    )
    if stored.next_states is None:
        stored.next_rows = np.where(ended, stored.rows, stored.next_rows)
    else:
        array = stored.next_states.array.copy()
        array[stored.rows[ended]] = stored.states.array[stored.rows[ended]]
        stored.next_states.array = array


def _require_alike(draft: Draft, states: Values, following: Values) -> None:
    names = draft.picks["states"].names, draft.picks["next_states"].names
    if states.array.shape != following.array.shape:
        raise InputError(
            f"states ({named(names[0])}) have the shape {states.array.shape} and next_states "
            f"({named(names[1])}) {following.array.shape}: they must agree."
        )
    for place, (labels, others) in enumerate(zip(states.labels, following.labels, strict=True)):
        if (labels is None) != (others is None):
            words, numbers = (names[0], names[1]) if labels is not None else (names[1], names[0])
            raise InputError(
                f"column {words[min(place, len(words) - 1)]!r} holds text and column "
                f"{numbers[min(place, len(numbers) - 1)]!r} numbers: a state and its next one must be of one kind."
            )


def named(names: tuple[str, ...]) -> str:
    """Columns in a message."""
    return f"column {names[0]!r}" if len(names) == 1 else f"columns {names[0]!r} to {names[-1]!r}"
