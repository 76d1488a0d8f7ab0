"""From columns to a log: which column is what, order, ends, next states, rows that must be left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError
from valuate.io import draft as drafting
from valuate.io import ends, extras, filling, nexts, ordering
from valuate.io.coding import with_labels
from valuate.io.layouts import layout_of
from valuate.io.leftovers import resembling
from valuate.io.names import canonical, plain
from valuate.io.report import Reading
from valuate.io.resolving import resolve, wanted_columns
from valuate.transitions import Transitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.io.coding import Labels
    from valuate.io.columns import Table
    from valuate.io.draft import Draft
    from valuate.io.ends import Ends
    from valuate.io.nexts import Stored
    from valuate.io.resolving import Pick

    Flags = NDArray[np.bool_]

__all__ = ["Options", "assemble", "remarks_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What a user asks of reading, beside the source."""

    columns: Any = None
    done: str | None = None
    last_step: str | None = None
    layout: str | None = None
    labels: Labels | None = None


def assemble(table: Table, source: str, options: Options, *, observed: bool = False) -> Transitions:
    """A log from columns.

    Parameters
    ----------
    table : Table
    source : str
        For the report.
    options : Options
    observed : bool
        Whether the states have one row more than there are steps for each episode, its last observation.
    """
    if not table.names:
        raise InputError(f"{source} has no columns.")
    single = getattr(table, "single", {})
    layout = options.layout or layout_of(table.names, single)
    wanted = wanted_columns(options.columns)
    picks = resolve(table, wanted, layout)
    _refuse_opposites(picks, layout)
    remarks = remarks_of(table)
    table = with_labels(table, picks, options.labels)
    draft = drafting.load(table, picks, layout, observed=observed)
    draft.notes += remarks
    observed = observed or _has_last_observations(draft)
    only = _last_steps(draft, options.last_step, observed)
    discounts = draft.numbers.get("discounts")
    found = ends.find_ends(
        draft.flags,
        None if discounts is None else np.where(only, 1.0, discounts),
        draft.names(),
        draft.n,
        done=options.done,
        layout=layout,
    )
    draft.notes += found.notes
    if draft.starts is None and layout == "SCOPE-RL":
        draft.starts = _trajectories(draft, found, single)
    log = _finish(draft, found, only, observed)
    picked = {role: pick.shown for role, pick in draft.picks.items()}
    taken = {name for pick in draft.picks.values() for name in pick.names}
    unused = tuple(name for name in table.names if name not in taken)
    reading = Reading(
        source=source,
        format=table.format,
        layout=layout,
        rows=len(log),
        columns=picked,
        dropped=draft.dropped,
        notes=tuple(draft.notes),
        labels=draft.labels,
        unused=unused,
        resembling=resembling(draft, unused, wanted),
    )
    object.__setattr__(log, "reading", reading)  # a log is frozen for users, and this one is not theirs yet
    return log


def remarks_of(table: Table) -> list[str]:
    """What a source has to say of itself, and what of it means something and cannot be read."""
    objects = [name for name in getattr(table, "objects", ()) if canonical(name) is not None]
    return [
        *getattr(table, "remarks", ()),
        *(f"{name!r} holds Python objects or rows of different lengths, and was left out." for name in objects),
    ]


def _finish(draft: Draft, found: Ends, only: Flags, observed: bool) -> Transitions:
    keep = ~only
    room = draft.has_next and not observed
    states = filling.fill(draft.table, draft.picks["states"], spare=room)
    _require_rows(draft, states, observed)
    if observed:
        stored = nexts.from_observations(draft, states)
    elif draft.has_next:
        stored = nexts.from_columns(draft, states, found, keep)
    else:
        stored = nexts.from_rows(draft, states, found, only, keep)
    starts = _starts(draft, found, stored)
    if not keep.any():
        raise InputError(
            "No row is left: " + "; ".join(f"in {count:,} rows {why}" for why, count in draft.dropped.items()) + "."
        )
    terminated, truncated = found.terminated[keep], found.truncated[keep]
    columns: dict[str, Any] = {}
    if starts is not None:
        labels = np.cumsum(starts, dtype=np.int32)[keep]
        closes = np.append(ordering.changes(labels)[1:], True)
        truncated = truncated | (closes & ~terminated)  # the recording ended here, whatever marks it
        if draft.episodes is None:
            columns["episodes"] = ordering.numbered(labels)
    if draft.episodes is not None:
        columns["episodes"] = draft.episodes if keep.all() else draft.episodes[keep]
    columns |= extras.numbers(draft, keep) | extras.actions(draft, keep, terminated)
    extras.label(draft, "states", stored.states)
    return _log(draft, stored, keep, {"terminated": terminated, "truncated": truncated, **columns})


def _log(draft: Draft, stored: Stored, keep: Flags, columns: dict[str, Any]) -> Transitions:
    """The log of the rows that are kept."""
    rewards = columns.pop("rewards")
    table, following = stored.states.array, stored.next_states
    rows, next_rows = (x if keep.all() else x[keep] for x in (stored.rows, stored.next_rows))
    if stored.states.missing is not None:
        table, rows, next_rows = _without_missing(draft, stored, rows, next_rows, columns["terminated"])
    first, m = int(rows[0]), len(rows)
    in_order = bool((rows == np.arange(first, first + m)).all())
    window: Any = slice(first, first + m) if in_order else rows
    if following is not None:
        return Transitions(table[window], rewards, following.array[window], **columns)
    if in_order and (next_rows == rows + 1).all():
        return Transitions(table[window], rewards, table[first + 1 : first + m + 1], **columns)
    return Transitions.from_table(table, rows, rewards, next_rows, **columns)


def _without_missing(
    draft: Draft, stored: Stored, rows: Any, next_rows: Any, terminated: Flags
) -> tuple[Any, Any, Any]:
    """Refuse states that are missing where they count, and take out those that do not."""
    missing = stored.states.missing
    assert missing is not None
    held = np.zeros(len(stored.states.array), bool)
    held[: len(missing)] = missing
    if stored.next_states is None:
        next_rows = np.where(terminated & held[next_rows], rows, next_rows)
    used = np.zeros(len(held), bool)
    used[rows] = True
    used[next_rows] = True
    bad = np.flatnonzero(held & used)
    if len(bad):
        names = draft.picks["states"].names
        array, row = stored.states.array, int(bad[0])
        if len(names) > 1 and array.dtype.kind == "f":
            names = (names[int(np.argmax(~np.isfinite(array[row])))],)
        raise InputError(
            f"states ({nexts.named(names)}) have {len(bad):,} rows with a value that is missing, NaN or infinite, the "
            f"first at row {row}. Drop those rows or fill the gaps first."
        )
    if stored.next_states is not None:
        return stored.states.array, rows, next_rows
    place = np.cumsum(used) - 1
    return stored.states.array[used], place[rows], place[next_rows]


def _starts(draft: Draft, found: Ends, stored: Stored) -> Flags | None:
    """Where episodes start; None where nothing tells."""
    if draft.starts is not None:
        inside = found.ended[:-1] & ~draft.starts[1:]
        if draft.layout not in ("RLDS", "Minari") and (count := int(np.count_nonzero(inside))):
            draft.notes.append(f"{count:,} rows end in the middle of an episode, as its ids have it.")
        return draft.starts
    if draft.episodes is not None:
        return None
    starts = np.ones(draft.n, bool)
    starts[1:] = found.ended[:-1]
    if found.complete:
        draft.notes.append("No column names the episodes: one ends with every row that terminated or was truncated.")
        return starts
    if not draft.has_next:
        if found.terminated.any():
            draft.notes.append(
                "Nothing says where the recording was cut (no truncated rows, no ids of episodes): every row that did "
                "not terminate is followed by the next one."
            )
            return starts
        return None
    if stored.breaks is None:
        return None
    broken = stored.breaks[:-1] & ~found.ended[:-1]
    if 2 * np.count_nonzero(broken) > draft.n:
        draft.notes.append("No column names the episodes, and the rows are not in order of time: they are not known.")
        return None
    starts[1:] |= broken
    count = int(np.count_nonzero(broken))
    draft.notes.append(
        "No column names the episodes: one ends with every row that terminated"
        + (f", and where a row's next state is not the state of the row after it ({count:,} rows)." if count else ".")
    )
    return starts


def _last_steps(draft: Draft, last_step: str | None, observed: bool) -> Flags:
    """Rows that are no transitions: they hold the last observation of an episode."""
    none = np.zeros(draft.n, bool)
    if observed or draft.has_next:
        if last_step == "observation":
            raise InputError(
                "last_step='observation' is for logs whose next state is that of the next row; this one has columns of "
                "next states."
            )
        return none
    if last_step is None and draft.layout == "Minari" and _is_padded(draft):
        last_step = "observation"
    if draft.starts is None or (last_step is None and draft.layout != "RLDS"):
        if last_step == "observation":
            raise InputError(
                "last_step='observation' needs to know where episodes end, and no column tells: name one, such as "
                "columns={'episodes': ...}."
            )
        return none
    only, note = ends.split_off(
        draft.flags,
        draft.starts,
        last_step,
        rewards=draft.numbers["rewards"],
        discounts=draft.numbers.get("discounts"),
        actions=drafting.actions_as_numbers(draft),
    )
    if note:
        draft.notes.append(note)
    return only


def _is_padded(draft: Draft) -> bool:
    """Whether every episode ends with a row without flags after the one row with a flag, as Minari's files have it."""
    ended = draft.flags.get("terminated", False) | draft.flags.get("truncated", np.zeros(draft.n, bool))
    starts = draft.starts if draft.starts is not None else np.arange(draft.n) == 0
    closes = np.append(starts[1:], True)
    before = np.append(closes[1:], False) & ~closes
    padded = bool((before == ended).all()) and int(before.sum()) == int(closes.sum())
    if padded:
        draft.starts = starts
    return padded


def _has_last_observations(draft: Draft) -> bool:
    """Whether arrays hold one state more than rows for each episode."""
    table, name = draft.table, draft.picks["states"].names[0]
    extra = table.length(name) - draft.n
    if extra <= 0 or draft.has_next:
        return False
    if draft.starts is None:
        over = np.zeros(draft.n, bool)
        for role in ("terminated", "truncated", "done", "last"):
            over |= draft.flags.get(role, False)
        over[-1] = False
        draft.starts = np.append(True, over[:-1])
    if extra != int(draft.starts.sum()):
        raise InputError(
            f"{name!r} has {table.length(name):,} rows and {draft.picks['rewards'].names[0]!r} has {draft.n:,}: they "
            f"must agree, or there must be one state more for each episode, of which the log has "
            f"{int(draft.starts.sum()):,}."
        )
    draft.notes.append(f"{name!r} has one state more than rows for each episode: the one after its last row.")
    return True


def _trajectories(draft: Draft, found: Ends, single: dict[str, Any]) -> Flags | None:
    """Where SCOPE-RL's trajectories start, which all have the same number of steps; None where they have not."""
    said = {plain(name): value for name, value in single.items()}
    try:
        count, steps = int(said["n_trajectories"]), int(said["step_per_trajectory"])
    except (KeyError, TypeError, ValueError):
        return None
    if steps < 1 or count * steps != draft.n:
        return None
    starts: Flags = np.arange(draft.n) % steps == 0
    starts[1:] |= found.ended[:-1]
    return starts


def _require_rows(draft: Draft, states: Any, observed: bool) -> None:
    n = draft.n + (int(draft.starts.sum()) if observed and draft.starts is not None else 0)
    if states.array.shape[0] != n:
        raise InputError(
            f"states (column {draft.picks['states'].names[0]!r}) have {states.array.shape[0]} rows and "
            f"{draft.picks['rewards'].names[0]!r} has {draft.n}: they must agree."
        )


def _refuse_opposites(picks: dict[str, Pick], layout: str | None) -> None:
    """Refuse ``done`` beside ``terminal``, which mean opposite things in different places."""
    both = picks.get("terminated"), picks.get("done")
    if both[0] is None or both[1] is None or both[0].asked or layout is not None:
        return
    if plain(both[0].names[0]) == "terminal":
        raise InputError(
            f"{both[0].names[0]!r} beside {both[1].names[0]!r} can mean the end of the process or, as in SCOPE-RL, the "
            "time limit. Give format='scope-rl' for SCOPE-RL's meaning, or columns={'terminated': 'terminal'} where "
            "the process ended there, or columns={'truncated': 'terminal'} and done= where only the recording did."
        )
