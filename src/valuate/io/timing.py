"""Whether a column says which rows of an episode are earlier, and what is done where none does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError
from valuate.io import ordering
from valuate.io.names import canonical, plain

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.io.draft import Draft

    Index = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = ["counts_steps", "put_in_order"]

#: Names of steps that are times: the next step may be any time later, and a time of day comes again.
_TIMES = {"time", "timestamp"}
#: Words in the names of columns that may say the order of rows.
_WORDS = {
    *("time", "timestamp", "datetime", "date", "day", "hour", "week", "month", "year", "visit", "step", "order"),
    *("seq", "sequence", "index", "number", "no", "nr", "turn", "round", "tick", "frame", "ts"),
}
#: Columns looked at for a suggestion, and shown.
_MOST_SEEN, _MOST_SHOWN = 50, 4


def put_in_order(draft: Draft) -> None:
    """Sort the rows of a draft by episode and step, where there are both and the steps are steps."""
    if draft.episodes is None:
        return
    if draft.steps is not None and (why := _no_steps(draft)) is not None:
        draft.notes.append(why)
        draft.steps = None
        del draft.picks["steps"]
    if draft.steps is None:
        # With next states of their own each row knows its next one, and nothing depends on which row is earlier.
        if not draft.has_next and ordering.apart(draft.episodes):
            _take_runs(draft)
        return
    order = ordering.order_of(draft.episodes, draft.steps)
    if _ids_used_twice(draft, order) or order is None:
        return
    draft.order = order
    draft.episodes = draft.episodes[order]
    draft.steps = draft.steps[order]
    draft.flags = {role: values[order] for role, values in draft.flags.items()}
    draft.numbers = {role: values[order] for role, values in draft.numbers.items()}
    draft.notes.append("The rows were out of order and have been sorted by episode and step.")
    if draft.steps.dtype.kind == "f" and not draft.picks["steps"].asked:
        name = draft.picks["steps"].names[0]
        draft.notes.append(f"{name!r} was taken for the time of a row. If it is none: columns={{'steps': None}}.")


def counts_steps(draft: Draft) -> bool:
    """Whether the column of steps counts them, rather than being a time."""
    return draft.steps is not None and plain(draft.picks["steps"].names[0]) not in _TIMES


def _no_steps(draft: Draft) -> str | None:
    """Why a column that is called like steps is none; None where it may be."""
    episodes, steps, name = draft.episodes, draft.steps, draft.picks["steps"].names[0]
    assert episodes is not None and steps is not None
    if ordering.counts_down(episodes, steps):
        return f"{name!r} was left out: it counts down."
    back = (episodes[1:] == episodes[:-1]) & (steps[1:] <= steps[:-1])
    if draft.picks["steps"].asked or not back.any() or ordering.apart(episodes) or _ends_explain(draft, back):
        return None
    kept = "The rows of each episode lie together and stay in the order that they have."
    order = np.lexsort((steps, ordering.numbered(episodes)))
    again = ordering.doubles(ordering.changes(episodes[order]), steps[order])
    if len(again):
        one, other = order[again[0] - 1], order[again[0]]
        return (
            f"{name!r} was not taken for steps: it is {steps[other]} in rows {one} and {other} of episode "
            f"{_label(draft, other)}. {kept}"
        )
    if steps.dtype.kind == "f":
        row = int(back.argmax()) + 1
        return (
            f"{name!r} was not taken for steps: it is no whole number, and falls in row {row}, in the middle of "
            f"episode {_label(draft, row)}. {kept} If it is the time: columns={{'steps': {name!r}}}."
        )
    return None


def _ends_explain(draft: Draft, back: Flags) -> bool:
    """Whether steps go back only behind rows that end an episode: then its id has been used again."""
    return bool(_over(draft)[:-1][back].all())


def _over(draft: Draft) -> Flags:
    over = np.zeros(draft.n, bool)
    for role in ("terminated", "truncated", "done", "last"):
        over |= draft.flags.get(role, False)
    return over


def _ids_used_twice(draft: Draft, order: Index | None) -> bool:
    """Whether an episode has a step twice, so that its rows cannot be sorted; what is done about it."""
    episodes, steps = draft.episodes, draft.steps
    assert episodes is not None and steps is not None
    rows = np.arange(draft.n) if order is None else order
    again = ordering.doubles(ordering.changes(episodes[rows]), steps[rows])
    if not len(again):
        return False
    said = (
        f"Episode {_label(draft, rows[again[0]])} has step {steps[rows[again[0]]]} more than once, in rows "
        f"{rows[again[0] - 1]} and {rows[again[0]]} ({len(again):,} rows are such)."
    )
    starts = ordering.changes(episodes)
    back = ~starts[1:] & (steps[1:] <= steps[:-1])
    ended = _ends_explain(draft, back)
    # Ids that start again, where logs have been joined. A time of day comes again within an episode; and rows of one id
    # that lie together are one episode, where no row in between ends one.
    if counts_steps(draft) or ended:
        starts[1:] |= back
    if (ordering.apart(episodes) or ended) and (steps[starts] == steps[0]).all():
        draft.episodes = np.cumsum(starts) - 1
        draft.labels.pop("episodes", None)
        draft.notes.append(f"{said} Each run of rows from step {steps[0]} on is taken for an episode of its own.")
        return True
    if not draft.has_next:
        raise InputError(
            f"{said} Where the next state is that of the next step, which one it is cannot be told: give each episode "
            "an id of its own, or read without the column: columns={'steps': None}."
        )
    draft.notes.append(f"{said} The rows are left in the order that they have.")
    return True


def _take_runs(draft: Draft) -> None:
    """Rows of an episode that lie apart without steps: other episodes with its id, or else refused."""
    episodes, name = draft.episodes, draft.picks["episodes"].names[0]
    assert episodes is not None
    starts = ordering.changes(episodes)
    if _over(draft)[:-1][starts[1:]].all():
        draft.episodes = np.cumsum(starts) - 1
        draft.labels.pop("episodes", None)
        draft.notes.append(
            f"Ids of {name!r} are used again, each time behind a row that ends an episode: each run of rows is taken "
            "for an episode of its own."
        )
        return
    order = np.argsort(ordering.numbered(episodes), kind="stable")
    gap = int(np.argmax((np.diff(order) != 1) & (episodes[order[1:]] == episodes[order[:-1]])))
    likely, texts = _candidates(draft)
    which = f"columns={{'steps': {repr(likely[0]) if likely else '...'}}}"
    others = f" (or {', '.join(map(repr, likely[1:_MOST_SHOWN]))})" if len(likely) > 1 else ""
    text = ""
    if texts:
        text = f" {texts[0][0]!r} holds text, such as {texts[0][1]!r}: make numbers of it, or dates like 2024-01-31."
    raise InputError(
        f"Rows of episode {_label(draft, order[gap])} ({name!r}) lie apart, in rows {order[gap]} and {order[gap + 1]}, "
        "and no column says which are earlier. Where the next state is that of the next row, all depends on it. Name "
        f"the column of steps or times: {which}{others}.{text} Or put the rows of each episode together, in order of "
        "time; or name the columns of the next states."
    )


def _candidates(draft: Draft) -> tuple[list[str], list[tuple[str, Any]]]:
    """Columns that may say the order of rows, the likeliest first; and those that would if they were no text."""
    taken = {name for pick in draft.picks.values() for name in pick.names}
    named: list[str] = []
    others: list[str] = []
    texts: list[tuple[str, Any]] = []
    for name in [name for name in draft.table.names if name not in taken][:_MOST_SEEN]:
        told = canonical(name) == "steps" or bool(_WORDS & set(plain(name).split("_")))
        try:
            column = draft.table.column(name)
        except InputError:
            continue
        if column.labels is not None:
            if told and column.labels:
                texts.append((name, column.labels[0]))
        elif getattr(column.values, "ndim", 0) == 1 and column.missing is None and len(column.values) == draft.n:
            if column.values.dtype.kind in "iufM" and _orders(draft, column.values, strict=not told):
                (named if told else others).append(name)
    return named + others, texts


def _orders(draft: Draft, values: NDArray[Any], *, strict: bool) -> bool:
    """Whether values are different for the rows of each episode; strictly: dates, or whole numbers that count them."""
    assert draft.episodes is not None
    order = np.lexsort((values, ordering.numbered(draft.episodes)))
    starts, values = ordering.changes(draft.episodes[order]), values[order]
    if len(ordering.doubles(starts, values)):
        return False
    return not strict or values.dtype.kind == "M" or ordering.gaps(starts, values) is not None


def _label(draft: Draft, row: Any) -> Any:
    """The id of a row's episode, as the source has it."""
    assert draft.episodes is not None
    label = draft.episodes[row]
    return draft.labels["episodes"][label] if "episodes" in draft.labels else label
