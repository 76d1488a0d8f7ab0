"""Texts numbered by labels that are given, as those of another log: a table whose columns hold the same codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError, InputTypeError
from valuate.io.columns import Block, Column, Table
from valuate.io.listing import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.io.resolving import Pick

__all__ = ["Labels", "given_labels", "recoded", "with_labels"]

#: What the codes 0, 1, ... stand for, by role or column, as `Reading.labels` has it.
Labels = Mapping[str, tuple[str, ...]]

#: Texts that a message shows.
MOST_SHOWN = 5
#: Whose labels a role shares: a state and its next one have the same codes.
_SHARES = {"states": "states", "next_states": "states", "actions": "actions", "next_actions": "actions"}


def given_labels(labels: Any) -> Labels | None:
    """What a user gives as labels, checked."""
    if labels is None:
        return None
    if not isinstance(labels, Mapping):
        raise InputTypeError(
            f"labels must be a dict from roles or columns to lists of texts, such as {{'actions': ['left', 'right']}}, "
            f"not {type(labels).__name__}."
        )
    found: dict[str, tuple[str, ...]] = {}
    for key, texts in labels.items():
        if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(x, str) for x in texts):
            raise InputTypeError(f"labels must have a list of texts for {key!r}, not {texts!r}.")
        if len(set(texts)) < len(texts):
            raise InputError(f"labels have a text twice for {key!r}: each one stands for one number.")
        found[str(key)] = tuple(texts)
    return found


def with_labels(table: Table, picks: Mapping[str, Pick], labels: Labels | None) -> Table:
    """The table, with the texts of states and actions numbered by the labels given.

    Parameters
    ----------
    labels : mapping or None
        By role where one column is taken for it, else by column. Text in the states without labels is refused; text in
        the actions is then numbered by itself.
    """
    if labels is None:
        return table
    known: dict[str, tuple[str, ...]] = {}
    others: set[str] = set()
    for role, shared in _SHARES.items():
        if role not in picks:
            continue
        names = picks[role].names
        first = picks.get(shared, picks[role]).names
        first = first if len(first) == len(names) else names
        for name, beside in zip(names, first, strict=True):
            texts = labels.get(shared if len(names) == 1 else beside, labels.get(beside))
            if texts is not None:
                known[name] = texts
            elif shared == "states":
                others.add(name)
    return _Labelled(table, known, others)


def recoded(what: str, codes: NDArray[Any], own: Sequence[Any], texts: Sequence[str]) -> NDArray[np.int32]:
    """Codes for the same texts by other labels."""
    place = {text: code for code, text in enumerate(texts)}
    unknown = [str(text) for text in own if str(text) not in place]
    if unknown:
        raise InputError(
            f"{what} holds {_shown(unknown)}, which {'is' if len(unknown) == 1 else 'are'} not among the labels given. "
            f"These are {_shown(texts)}. Leave those rows out, or mend them."
        )
    new = np.array([place[str(text)] for text in own], np.int32)
    return new[codes] if len(new) else np.zeros(np.shape(codes), np.int32)


class _Labelled:
    """A table whose texts have the codes of labels that are given."""

    def __init__(self, table: Table, known: Labels, others: set[str]) -> None:
        self.format = table.format
        self._table, self._known, self._others = table, known, others

    @property
    def names(self) -> list[str]:
        return self._table.names

    def is_number(self, name: str) -> bool:
        return name not in self._known and self._table.is_number(name)

    def dtype(self, name: str) -> np.dtype[Any]:
        return self._table.dtype(name)

    def length(self, name: str) -> int:
        return self._table.length(name)

    def column(self, name: str) -> Column:
        column = self._table.column(name)
        texts = self._known.get(name)
        if texts is None:
            column = listed(name, column)
            if column.labels and name in self._others:
                there = f"they are for {_shown(list(self._known))}" if self._known else "that log held numbers only"
                raise InputError(
                    f"column {name!r} holds text, such as {column.labels[0]!r}, and the labels given have none for it: "
                    f"{there}."
                )
            return column
        what = f"column {name!r}"
        if column.labels is None:
            column = _as_texts(what, column, texts)
        assert column.labels is not None
        return Column(recoded(what, column.values, column.labels, texts), texts, column.missing)

    def blocks(self, names: list[str]) -> Iterator[Block]:
        return self._table.blocks(names)


def _as_texts(what: str, column: Column, texts: Sequence[str]) -> Column:
    """Numbers as the texts that they would be among others: a file whose texts are all numbers has none."""
    values, missing = column.values, column.missing
    if getattr(values, "ndim", 0) == 1 and values.dtype.kind in "biuf":
        absent = np.zeros(len(values), bool) if missing is None else missing
        if values.dtype.kind == "f":
            absent = absent | ~np.isfinite(values)
        found, places = np.unique(values[~absent], return_inverse=True)
        words = {_plain(text): text for text in texts}
        if all(_plain(value) in words for value in found.tolist()):
            codes = np.zeros(len(values), np.int32)
            codes[~absent] = places
            return Column(
                codes, tuple(words[_plain(value)] for value in found.tolist()), absent if absent.any() else None
            )
    raise InputError(f"{what} holds numbers, and the labels given are texts for it: {_shown(texts)}.")


def _plain(value: Any) -> str:
    """A number, flag or text as files write it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).lower() if isinstance(value, bool) or str(value).lower() in ("true", "false") else str(value)


def _shown(texts: Sequence[str]) -> str:
    more = f" and {len(texts) - MOST_SHOWN} more" if len(texts) > MOST_SHOWN else ""
    return ", ".join(map(repr, texts[:MOST_SHOWN])) + more
