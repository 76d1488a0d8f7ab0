"""A log in the making: its columns loaded, checked and put in order of time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks
from valuate.errors import InputError
from valuate.io import ordering
from valuate.io.listing import COMMAS, has_comma
from valuate.io.timing import put_in_order

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from valuate.io.columns import Column, Table
    from valuate.io.resolving import Pick

    Index = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = ["Draft", "load"]

FLAGS = ("terminated", "truncated", "done", "last", "first")
NUMBERS = ("rewards", "discounts", "probabilities", "log_probabilities", "ratios", "weights")
YES_WORDS, NO_WORDS = {"true", "yes", "y", "t", "1"}, {"false", "no", "n", "f", "0"}


@dataclass(slots=True)
class Draft:
    """Everything with one entry a row, n of them, in order of time; states and actions stay in the source's order.

    Attributes
    ----------
    order : (n,) array or None
        The source's row of each row; None where it is the same.
    starts : (n,) flags or None
        Where episodes start, as far as columns other than flags of ends tell.
    """

    table: Table
    picks: dict[str, Pick]
    layout: str | None
    n: int
    order: Index | None = None
    starts: Flags | None = None
    episodes: NDArray[Any] | None = None
    steps: NDArray[Any] | None = None
    flags: dict[str, Flags] = field(default_factory=dict)
    numbers: dict[str, NDArray[np.float64]] = field(default_factory=dict)
    labels: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def has_next(self) -> bool:
        """Whether there are columns for the next states."""
        return "next_states" in self.picks

    def names(self) -> dict[str, str]:
        """Their names, the first one of each role."""
        return {role: pick.names[0] for role, pick in self.picks.items()}

    def row(self, place: Any) -> int:
        """Where a row is in the source."""
        return int(place if self.order is None else self.order[place])

    def rows(self, places: Index) -> Index:
        """Where rows are in the source."""
        return places if self.order is None else self.order[places]

    def successor(self) -> Index | None:
        """For each row of the source the one that comes after it, -1 for none; None: the one below."""
        if self.order is None:
            return None
        after = np.full(self.n, -1)
        after[self.order[:-1]] = self.order[1:]
        return after

    def drop(self, keep: Flags, rows: Flags, why: str) -> None:
        """Leave rows out and count them."""
        if count := int(np.count_nonzero(keep & rows)):
            self.dropped[why] = count
            keep &= ~rows


def load(table: Table, picks: Mapping[str, Pick], layout: str | None, *, observed: bool) -> Draft:
    """The columns that have one number, flag or label a row, in order of time."""
    draft = Draft(table, dict(picks), layout, table.length(picks["rewards"].names[0]))
    if not draft.n:
        raise InputError("The log has columns and no rows: at least one row is needed.")
    if "probabilities" in picks:
        draft.picks.pop("log_probabilities", None)
    for role in NUMBERS:
        if role in draft.picks:
            _load_number(draft, role)
    for role in FLAGS:
        if role in draft.picks:
            draft.flags[role] = _flags(draft, role)
    if "episodes" in draft.picks:
        draft.episodes = _episodes(draft)
    if "steps" in draft.picks:
        draft.steps = _steps(draft)
    if not observed:
        put_in_order(draft)
    draft.starts = _starts(draft)
    return draft


def one_a_row(draft: Draft, role: str) -> Column:
    """A column with one entry a row; (n, 1) becomes (n,)."""
    name = draft.picks[role].names[0]
    column = draft.table.column(name)
    values = column.values
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
        column = type(column)(values, column.labels, None if column.missing is None else column.missing[:, 0])
    if len(values) != draft.n:
        raise InputError(
            f"{role} (column {name!r}) has {len(values)} rows and {draft.picks['rewards'].names[0]!r} has {draft.n}: "
            "they must agree."
        )
    return column


def _flags(draft: Draft, role: str) -> Flags:
    column, name = one_a_row(draft, role), draft.picks[role].names[0]
    if column.missing is not None:
        raise _gap(role, name, column.missing)
    values = column.values
    if column.labels is not None:
        words = [str(label).strip().lower() for label in column.labels]
        if not set(words) <= YES_WORDS | NO_WORDS:
            odd = next(
                label for label, word in zip(column.labels, words, strict=True) if word not in YES_WORDS | NO_WORDS
            )
            raise InputError(f"{role} (column {name!r}) must be true or false in each row, and one is {odd!r}.")
        values = np.array([word in YES_WORDS for word in words])[values]
    return _checks.flags(f"{role} (column {name!r})", values)


def _load_number(draft: Draft, role: str) -> None:
    name, asked = draft.picks[role].names[0], draft.picks[role].asked
    if role in ("probabilities", "log_probabilities") and not asked:
        values = draft.table.column(name).values
        if values.ndim > 1 and values.shape[1:] != (1,):
            draft.notes.append(
                f"{name!r} has {values.shape[1]} numbers a row and was left out: what is needed is the probability of "
                "the action that was taken."
            )
            del draft.picks[role]
            return
    column = one_a_row(draft, role)
    if column.labels is not None:
        shown = next((label for label in column.labels if not _is_number(label)), column.labels[0])
        if has_comma(column.labels):
            raise InputError(f"{role} (column {name!r}) {COMMAS.format(repr(shown))}")
        raise InputError(f"{role} (column {name!r}) must be numbers and has text in it, such as {shown!r}.")
    if column.values.dtype.kind not in "biuf":
        raise InputError(f"{role} (column {name!r}) must be numbers and holds {column.values.dtype}.")
    values = column.values.astype(np.float64, copy=column.missing is not None)
    if column.missing is not None:
        values[column.missing] = np.nan
    draft.numbers[role] = values


def _episodes(draft: Draft) -> NDArray[Any]:
    column, name = one_a_row(draft, "episodes"), draft.picks["episodes"].names[0]
    if column.missing is not None:
        raise _gap("episodes", name, column.missing, " Or read without the column: columns={'episodes': None}.")
    if column.values.dtype.kind == "f":
        _checks.finite(f"episodes (column {name!r})", column.values, "Give those rows an id.")
    if column.labels is None:
        return np.asarray(column.values)
    numbers = ordering.numbered(column.values)
    _, first = np.unique(numbers, return_index=True)
    draft.labels["episodes"] = tuple(column.labels[code] for code in column.values[first].tolist())
    draft.notes.append(f"episodes are numbered as the ids of {name!r} appear.")
    return numbers


def _steps(draft: Draft) -> NDArray[Any] | None:
    column, name = one_a_row(draft, "steps"), draft.picks["steps"].names[0]
    usable = column.labels is None and column.missing is None and column.values.dtype.kind in "iufM"
    if usable and (column.values.dtype.kind != "f" or _checks.all_finite(column.values)):
        values: NDArray[Any] = column.values
        if values.dtype.kind == "f" and (values == np.floor(values)).all():
            values = values.astype(np.int64)
        return values
    if draft.picks["steps"].asked:
        raise InputError(f"steps (column {name!r}) must be a number or a date in each row.")
    draft.notes.append(f"{name!r} was left out: it has no number or date in some row.")
    del draft.picks["steps"]
    return None


def _starts(draft: Draft) -> Flags | None:
    """Where episodes start, by labels, by what marks first and last steps, or by steps that start again."""
    if draft.episodes is not None and ordering.apart(draft.episodes):
        draft.notes.append(
            "Rows of an episode lie apart, and no column says which are earlier: their order is not known."
        )
        return None
    starts = None if draft.episodes is None else ordering.changes(draft.episodes)
    if starts is None and draft.layout == "RLDS" and {"first", "last"} & set(draft.flags):
        starts = np.zeros(draft.n, bool)
    if starts is not None and draft.layout == "RLDS":
        if "first" in draft.flags:
            starts |= draft.flags["first"]
        if "last" in draft.flags:
            starts[1:] |= draft.flags["last"][:-1]
    elif starts is None and "first" in draft.flags:
        starts = draft.flags["first"].copy()
    if starts is None and draft.steps is not None:
        starts = ordering.restarts(draft.steps)
        if starts is not None:
            name = draft.picks["steps"].names[0]
            draft.notes.append(f"No column names the episodes: one starts wherever {name!r} starts again.")
    if starts is not None:
        starts[0] = True
    return starts


def actions_as_numbers(draft: Draft) -> NDArray[Any] | None:
    """The actions in order of time, where they are numbers; None where they are not, or there are none."""
    if "actions" not in draft.picks or draft.picks["actions"].flat:
        return None
    values = draft.table.column(draft.picks["actions"].names[0]).values
    if _checks.is_sparse(values) or values.dtype.kind not in "biuf" or len(values) != draft.n:
        return None
    return np.asarray(values[draft.rows(np.arange(draft.n))])


def _gap(role: str, name: str, missing: Flags, more: str = "") -> InputError:
    return InputError(
        f"{role} (column {name!r}) has {np.count_nonzero(missing):,} rows without a value, the first at row "
        f"{int(missing.argmax())}. Drop those rows or fill the gaps first.{more}"
    )


def _is_number(label: Any) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True
