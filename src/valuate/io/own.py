"""Reading what `valuate.write` wrote: nothing is decided, everything is as it was."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError
from valuate.io import filling
from valuate.io.coding import recoded
from valuate.io.report import Reading
from valuate.io.resolving import Pick
from valuate.io.writing import NAMES, VERSION
from valuate.transitions import Transitions

if TYPE_CHECKING:
    from valuate.io.coding import Labels
    from valuate.io.columns import Arrays
    from valuate.io.parquet import ParquetTable

__all__ = ["from_npz", "from_parquet", "relabelled"]

#: What is written down of each of our columns.
_ENTRY = {"names", "shape", "dtype"}
_TABLE = {"table", "state_rows", "next_rows"}
#: What has the codes of labels that are kept by role.
_CODED = {"states": ("states", "next_states"), "actions": ("actions",), "next_actions": ("next_actions",)}
_ACTED = ("actions", "next_actions")


def from_parquet(table: ParquetTable, source: str) -> Transitions | None:
    """The log of a Parquet file of ours; None where it is none, or has been changed."""
    about = table.ours
    if about is None:
        return None
    _require_version(about, source)
    columns: dict[str, Any] = about.get("columns", {})
    there = set(table.names)
    if not {"states", "next_states", "rewards"} <= set(columns) or not set(columns) <= set(NAMES):
        return None
    if not all(_ENTRY <= set(entry) and set(entry["names"]) <= there for entry in columns.values()):
        return None
    picks = {role: Pick(tuple(entry["names"]), len(entry["names"]) > 1) for role, entry in columns.items()}
    found: dict[str, Any] = {}
    states = _values(table, picks["states"], columns["states"], spare=True)
    following = None
    if states.base is not None:
        following = filling.follow(table, picks["next_states"], states, None)
    for role, entry in columns.items():
        if role != "states" and (role != "next_states" or following is None):
            found[role] = _shaped(_values(table, picks[role], entry), entry)
    if following is None:
        log = Transitions(_shaped(states, columns["states"]), found.pop("rewards"), found.pop("next_states"), **found)
    else:
        shape = columns["states"]["shape"]
        rows = np.arange(states.array.shape[0])
        stored = following.table.reshape(len(following.table), *shape)
        log = Transitions.from_table(stored, rows, found.pop("rewards"), following.rows, **found)
    shown = {role: pick.shown for role, pick in picks.items()}
    return _told(log, source, "parquet", shown, about, tuple(name for name in table.names if name not in _all(picks)))


def from_npz(table: Arrays, source: str) -> Transitions | None:
    """The log of an NPZ file of ours; None where it is none."""
    mark = table.single.get("valuate")
    if mark is None:
        return None
    try:
        about = json.loads(str(mark))
    except ValueError:
        return None
    _require_version(about, source)
    found = {role: _taken(table, role) for role in (*NAMES, "table", "state_rows", "next_rows")}
    given = {role: values for role, values in found.items() if values is not None}
    if "rewards" not in given or not ({"states", "next_states"} <= set(given) or _TABLE <= set(given)):
        raise InputError(f"{source} was written by valuate.write, and a part of it is missing.")
    rewards = given.pop("rewards")
    if "table" in given:
        log = Transitions.from_table(
            given.pop("table"), given.pop("state_rows"), rewards, given.pop("next_rows"), **given
        )
    else:
        log = Transitions(given.pop("states"), rewards, given.pop("next_states"), **given)
    shown: dict[str, str | tuple[str, ...]] = {role: role for role in NAMES if getattr(log, role) is not None}
    return _told(log, source, "npz", shown, about, ())


def relabelled(log: Transitions, labels: Labels | None) -> Transitions:
    """The log with its texts numbered by labels that are given, where it has them in a role of one column."""
    reading = log.reading
    if labels is None or reading is None:
        return log
    source, held = reading.source, reading.labels
    if "actions" in labels:
        labels = {"next_actions": labels["actions"], **labels}
    if "states" in labels and "states" not in held:
        raise InputError(f"{source} holds numbers for states, and the labels given are texts for them.")
    changed: dict[str, Any] = {}
    for name, own in held.items():
        if name == "episodes" or labels.get(name) == own or (name not in labels and name in _ACTED):
            continue
        if name not in labels or name not in _CODED:
            # What was written does not say which number of a state a column became.
            raise InputError(
                f"{source} has other numbers for the texts of {name!r} than the labels given. Read the log that it was "
                "made of."
            )
        for role in _CODED[name]:
            if (codes := getattr(log, role)) is not None:
                changed[role] = recoded(f"{source}: {role}", np.asarray(codes), own, labels[name])
    if not changed:
        return log
    columns = {role: getattr(log, role) for role in NAMES} | changed
    again = Transitions(columns.pop("states"), columns.pop("rewards"), columns.pop("next_states"), **columns)
    new = {name: labels[name] if name in _CODED and name in labels else own for name, own in held.items()}
    object.__setattr__(again, "reading", replace(reading, labels=new))
    return again


def _values(table: ParquetTable, pick: Pick, entry: dict[str, Any], *, spare: bool = False) -> filling.Values:
    plain = np.dtype(entry["dtype"]).kind in "biuf"
    return filling.fill(table, pick, spare=spare and plain) if plain or not pick.flat else _texts(table, pick)


def _texts(table: ParquetTable, pick: Pick) -> filling.Values:
    """Several columns of text or dates, side by side."""
    parts = [_labelled(filling.fill(table, Pick((name,)))) for name in pick.names]
    return filling.Values(np.stack(parts, axis=1), None, [None])


def _labelled(values: filling.Values) -> Any:
    labels = values.labels[0]
    return values.array if labels is None else np.array(labels)[values.array]


def _shaped(values: filling.Values, entry: dict[str, Any]) -> Any:
    """An array as it was: text for codes, its type and its shape."""
    array, dtype = values.array, np.dtype(entry["dtype"])
    if len(values.labels) == 1:
        array = _labelled(values)
    if array.dtype != dtype:
        array = array.view(dtype) if dtype.kind in "Mm" and array.dtype == np.int64 else array.astype(dtype)
    return array.reshape(len(array), *entry["shape"])


def _taken(table: Arrays, role: str) -> Any:
    if role in table.names:
        return table.column(role).values if table.is_number(role) else table.array(role)
    if f"{role}.indptr" not in table.names:
        return None
    from scipy import sparse

    data, indices, indptr = (table.array(f"{role}.{part}") for part in ("data", "indices", "indptr"))
    return sparse.csr_array((data, indices, indptr), shape=tuple(table.array(f"{role}.shape").tolist()))


def _require_version(about: Any, source: str) -> None:
    if not isinstance(about, dict) or about.get("version", 0) > VERSION:
        raise InputError(f"{source} was written by a newer valuate. Update this one to read it.")


def _all(picks: dict[str, Pick]) -> set[str]:
    return {name for pick in picks.values() for name in pick.names}


def _told(
    log: Transitions, source: str, format: str, columns: dict[str, Any], about: dict[str, Any], unused: tuple[str, ...]
) -> Transitions:
    reading = Reading(
        source=source,
        format=format,
        layout="valuate",
        rows=len(log),
        columns=columns,
        labels={name: tuple(labels) for name, labels in about.get("labels", {}).items()},
        unused=unused,
    )
    object.__setattr__(log, "reading", reading)
    return log
