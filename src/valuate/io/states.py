"""States alone, and actions where there are any: what a fitted model needs of a table to say values for its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate.errors import InputError
from valuate.io import extras, filling, ordering
from valuate.io.assembling import Options, remarks_of
from valuate.io.coding import with_labels
from valuate.io.nexts import named
from valuate.io.report import Reading
from valuate.io.resolving import resolve, wanted_columns

if TYPE_CHECKING:
    from valuate.io.columns import Table
    from valuate.io.filling import Values
    from valuate.io.resolving import Pick

__all__ = ["States", "states_of"]


class States(NamedTuple):
    """States to say values for, a row for each row of the source, in its order.

    Attributes
    ----------
    states : (n, ...) array or CSR
    actions : (n, ...) array or None
    reading : Reading
        What was taken for what.
    """

    states: Any
    actions: Any
    reading: Reading


def states_of(table: Table, source: str, options: Options, *, observed: bool = False) -> States:
    """States and actions from columns.

    Parameters
    ----------
    observed : bool
        Whether the states have one row more than there are steps for each episode: its last observation, which is left
        out.
    """
    if not table.names:
        raise InputError(f"{source} has no columns.")
    # A model's columns may be given whole: what else they name, this source need not have.
    wanted = {
        role: value
        for role, value in wanted_columns(options.columns).items()
        if role in ("states", "actions") or value is None or _there(value, table.names)
    }
    found = resolve(table, wanted, options.layout, needed=("states",))
    picks: dict[str, Pick] = {role: pick for role, pick in found.items() if role in ("states", "actions")}
    labelled = with_labels(table, picks, options.labels)
    states = filling.fill(labelled, picks["states"])
    if not states.array.shape[0]:
        raise InputError(f"{source} has columns and no rows: at least one row is needed.")
    if observed and "episodes" in found:
        states = _before_steps(states, table.column(found["episodes"].names[0]).values)
    _require_all("states", picks["states"], states, "Drop those rows or fill the gaps first.")
    labels, notes = extras.labelled("states", picks["states"], states)
    actions = None
    if "actions" in picks:
        filled = filling.fill(labelled, picks["actions"])
        _require_all("actions", picks["actions"], filled, "To read without them: columns={'actions': None}.")
        actions = extras.squeezed(filled.array, picks["actions"])
        if actions.shape[0] != states.array.shape[0]:
            raise InputError(
                f"states ({named(picks['states'].names)}) have {states.array.shape[0]} rows and actions "
                f"({named(picks['actions'].names)}) {actions.shape[0]}: they must agree. To read without actions: "
                "columns={'actions': None}."
            )
        more = extras.labelled("actions", picks["actions"], filled)
        labels, notes = labels | more[0], notes + more[1]
    taken = {name for pick in picks.values() for name in pick.names}
    reading = Reading(
        source=source,
        format=table.format,
        layout=options.layout,
        rows=int(states.array.shape[0]),
        columns={role: pick.shown for role, pick in picks.items()},
        notes=(*remarks_of(table), *notes),
        labels=labels,
        unused=tuple(name for name in table.names if name not in taken),
    )
    return States(states.array, actions, reading)


def _there(value: Any, names: list[str]) -> bool:
    given = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else []
    return all(name in names for name in given)


def _before_steps(states: Values, episodes: Any) -> Values:
    """The observations that a step was taken from."""
    rows = np.arange(len(episodes)) + np.cumsum(ordering.changes(episodes)) - 1
    missing = None if states.missing is None else states.missing[rows]
    return filling.Values(states.array[rows], missing, states.labels, written=states.written)


def _require_all(role: str, pick: Pick, values: Values, advice: str) -> None:
    if values.missing is None or not values.missing.any():
        return
    row, names = int(values.missing.argmax()), pick.names
    if len(names) > 1 and values.array.dtype.kind == "f":
        names = (names[int(np.argmax(~np.isfinite(values.array[row])))],)
    raise InputError(
        f"{role} ({named(names)}) have {np.count_nonzero(values.missing):,} rows with a value that is missing, NaN or "
        f"infinite, the first at row {row}. {advice}"
    )
