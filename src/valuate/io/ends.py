"""What the columns say of ends: where the process ended, where only the recording did. Nothing is guessed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]

__all__ = ["DONE", "LAST_STEP", "Ends", "find_ends", "split_off"]

#: What a lone ``done`` can mean.
DONE = ("terminated", "ended")
#: What the last step of an episode can be.
LAST_STEP = ("observation", "transition")


@dataclass(slots=True)
class Ends:
    """What is known of the ends of rows in order of time.

    Attributes
    ----------
    terminated, truncated : (n,) flags
    complete : bool
        Whether the flags tell where every episode ends, so that episodes can be told from them.
    notes : list of str
    """

    terminated: Flags
    truncated: Flags
    complete: bool
    notes: list[str] = field(default_factory=list)

    @property
    def ended(self) -> Flags:
        """Rows that an episode ends with, as far as flags tell."""
        return self.terminated | self.truncated


def find_ends(
    flags: Mapping[str, Flags],
    discounts: NDArray[np.float64] | None,
    names: Mapping[str, str],
    n: int,
    *,
    done: str | None,
    layout: str | None,
) -> Ends:
    """Terminated and truncated rows from the columns that there are.

    Parameters
    ----------
    flags : mapping
        Of "terminated", "truncated", "done" and "last", those that there are: (n,) flags each.
    discounts : (n,) array or None
        The discount of each row, without the one of the fit.
    names : mapping
        Our names to theirs, for messages.
    done : {"terminated", "ended"} or None
        What ``done`` means, where nothing else tells.
    """
    ended = flags.get("last")
    finished, cut, over = (flags.get(name) for name in ("terminated", "truncated", "done"))
    notes: list[str] = []
    if done is not None and over is None:
        raise InputError(
            f"done={done!r} says what the column done means, and there is none. Leave it out, or name the column: "
            "columns={'done': ...}."
        )
    if over is not None and finished is None:
        meaning = "ended" if layout == "SCOPE-RL" and done is None else _meaning(over, cut, ended, names, done)
        if meaning == "terminated":
            finished = over
        else:
            ended = over if ended is None else ended | over
            finished = over & ~cut if cut is not None else np.zeros(n, bool)
            said = "terminated where it is not truncated" if cut is not None else "taken for truncated everywhere"
            notes.append(f"{names['done']!r} is the end of an episode of either kind, {said}.")
    elif over is not None:
        ended = over if ended is None else ended | over
    if finished is None and ended is not None and cut is not None:
        finished = ended & ~cut
    if finished is None and ended is not None and ended.any() and discounts is None:
        raise InputError(
            f"{names['last']!r} says where episodes end, and nothing says whether the process ended there or only the "
            f"recording. Name a column with columns={{'terminated': ...}}; where it was always the process, give "
            f"columns={{'done': {names['last']!r}}} and done='terminated'; where it never was, done='ended'."
        )
    known = finished is not None or discounts is not None
    finished = np.zeros(n, bool) if finished is None else finished
    if discounts is not None:
        finished = _with_discounts(finished, discounts, names, notes)
    complete = known and (cut is not None or ended is not None)
    cut = np.zeros(n, bool) if cut is None else cut
    if ended is not None:
        cut = cut | (ended & ~finished)
    if both := int(np.count_nonzero(finished & cut)):
        notes.append(f"{_rows(both)} marked both terminated and truncated: termination wins.")
    if not known:
        notes.append(
            "No column says where the process ended: no row is taken to have. If it did end, name the column: "
            "columns={'terminated': ...}."
        )
    return Ends(finished, cut & ~finished, complete, notes)


def split_off(
    flags: dict[str, Flags],
    starts: Flags,
    last_step: str | None,
    *,
    rewards: NDArray[Any],
    discounts: NDArray[np.float64] | None,
    actions: NDArray[Any] | None,
) -> tuple[Flags, str | None]:
    """Steps that are no transitions, but hold the last observation of an episode, and a note about them.

    RLDS ends every episode with such a step; some files of RLDS's shape end it with a transition instead. Minari's
    Arrow and Parquet files end every episode with a row of padding. ``flags`` are moved to the row before.

    Parameters
    ----------
    last_step : {"observation", "transition"} or None
        None: what the steps that are marked as last show.

    Returns
    -------
    only : (n,) flags
    note : str or None
    """
    n = len(rewards)
    closes = np.append(starts[1:], True)
    only = np.zeros(n, bool)
    if last_step == "observation":
        only = closes
    elif last_step is None and "last" in flags:
        only = closes & flags["last"]
        only &= _are_observations(only, flags.get("terminated"), starts, rewards, discounts, actions)
    if not only.any():
        return only, None
    before = np.flatnonzero(only & ~starts) - 1
    for name in ("terminated", "truncated", "done", "last"):
        if name in flags:
            moved = flags[name].copy()
            moved[before] |= flags[name][before + 1]
            flags[name] = moved
    how = "" if last_step else " (if it is a transition instead, give last_step='transition')"
    return only, (
        f"The last step of {np.count_nonzero(only):,} episodes holds the last observation and nothing else{how}."
    )


def _are_observations(
    last: Flags, terminated: Flags | None, starts: Flags, rewards: Any, discounts: Any, actions: Any
) -> Flags:
    """Which last steps hold an observation only.

    Where episodes terminate, the discount shows it, which is then 0 one step earlier. Otherwise a last step with a
    reward is a transition, and so are last steps whose actions differ; without rewards and actions they are what RLDS
    says that they are. After a truncated episode both readings give the same rows.
    """
    at = np.flatnonzero(last)
    rewarded = np.isfinite(rewards) & (rewards != 0)
    terminal = at if terminated is None else at[terminated[at]]
    before = terminal[~starts[terminal]] - 1
    if discounts is not None and len(before) and (discounts[before] == 0).all():
        transition = False
    else:
        transition = bool(rewarded[terminal].any())
        if not transition and actions is not None and len(terminal):
            chosen = actions[terminal].reshape(len(terminal), -1)
            transition = bool((np.isfinite(chosen) & (chosen != chosen[0])).any())
    empty = np.full(len(last), not transition)
    if not transition and terminated is not None:
        cut = at[~terminated[at]]
        empty[cut] = ~rewarded[cut]
    return empty


def _meaning(over: Flags, cut: Flags | None, ended: Flags | None, names: Mapping[str, str], done: str | None) -> str:
    """What ``done`` means: as told, or as the other columns prove."""
    if done is not None:
        return done
    name = names["done"]
    if not over.any():
        return "terminated"
    if cut is not None and (cut & ~over).any():
        return "terminated"  # truncated rows that are not done: so done does not mean the end of either kind
    if cut is not None and not cut.any():
        return "terminated"  # nothing was truncated: both meanings are the same
    if ended is not None and (ended & ~over).any():
        return "terminated"
    hint = ""
    if cut is not None:
        hint = (
            f" (All {np.count_nonzero(cut)} rows of {names['truncated']!r} are done as well, which points to 'ended'.)"
        )
    raise InputError(
        f"{name!r} does not say whether the process ended or only the recording did, at a time limit say, and the "
        f"value after it depends on that. Give done='terminated' where {name!r} means that the process itself ended, "
        "so that nothing follows; or done='ended' where it means that an episode stopped for whatever reason: then "
        "rows that are truncated, or all where no column says which are, are followed by the value of the next state."
        f"{hint} Or name the right column: columns={{'terminated': ...}}."
    )


def _with_discounts(
    finished: Flags, discounts: NDArray[np.float64], names: Mapping[str, str], notes: list[str]
) -> Flags:
    """A discount of 0 is a termination; other discounts must all be the same."""
    name = names["discounts"]
    zero = discounts == 0
    rest = discounts[~zero]
    if len(rest) and rest.min() != rest.max():
        raise InputError(
            f"{name!r} has discounts from {rest.min():g} to {rest.max():g}, which differ from row to row, and a log "
            "has none of its own. To fit with them give them to Problem.from_transitions(log, ..., discount=...), one "
            "a row; to read the log without them give columns={'discounts': None}."
        )
    if zero.all() and not finished.all():
        raise InputError(f"{name!r} is 0 in every row. To read the log without it give columns={{'discounts': None}}.")
    if len(rest) and rest[0] != 1.0:
        notes.append(f"{name!r} is {rest[0]:g} in every row that goes on: give it as the discount of the fit.")
    if more := int(np.count_nonzero(zero & ~finished)):
        notes.append(f"{_rows(more)} terminated because {name!r} is 0 there.")
    terminated: Flags = finished | zero
    return terminated


def _rows(count: int) -> str:
    return f"{count:,} row is" if count == 1 else f"{count:,} rows are"
