"""What a log has beside states: rewards, probabilities, ratios, weights and actions, of the rows that are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks
from valuate.errors import InputError
from valuate.io import filling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.io.draft import Draft
    from valuate.io.filling import Values
    from valuate.io.resolving import Pick

    Flags = NDArray[np.bool_]

__all__ = ["actions", "label", "labelled", "numbers", "squeezed"]

#: A probability may be above 1 by this much, and is then 1: float32 and logarithms round.
ROUNDING = 1e-5
#: Labels that a note shows.
MOST_SHOWN = 5


def numbers(draft: Draft, keep: Flags) -> dict[str, Any]:
    """Rewards, probabilities, ratios and weights of the rows that are kept, checked by their names in the source."""
    found: dict[str, Any] = {}
    for role in ("rewards", "ratios", "weights", "probabilities", "log_probabilities"):
        if role not in draft.numbers:
            continue
        values, name = draft.numbers.pop(role), draft.picks[role].names[0]  # what is not kept is let go of
        values = values if keep.all() else values[keep]
        if not _checks.all_finite(values):
            bad = ~np.isfinite(values)
            raise InputError(
                f"{role} (column {name!r}) have {np.count_nonzero(bad):,} rows with a value that is missing, NaN or "
                f"infinite, the first at row {draft.row(np.flatnonzero(keep)[bad.argmax()])}. Drop those rows or fill "
                "the gaps first."
            )
        if role.endswith("probabilities"):
            chances = _chances(draft, role, np.exp(values) if role == "log_probabilities" else values, keep)
            if chances is not None:
                found["probabilities"] = chances
        else:
            found[role] = values
    return found


def _chances(draft: Draft, role: str, values: Any, keep: Flags) -> Any:
    pick = draft.picks[role]
    name = pick.names[0]
    if values.max() > 1 + ROUNDING:
        said = f"{name!r} goes up to {values.max():.4g}, so these are densities and not probabilities"
        if pick.asked:
            raise InputError(f"{said}. Leave it out: columns={{'{role}': None}}.")
        draft.notes.append(f"{said}: left out.")
        del draft.picks[role]
        return None
    if values.min() <= 0:
        row = draft.row(np.flatnonzero(keep)[(values <= 0).argmax()])
        raise InputError(
            f"{name!r} says that an action that was taken had the probability {values.min():g}, the first at row {row} "
            f"({np.count_nonzero(values <= 0):,} rows are such). Mend it, or leave it out: columns={{'{role}': None}}."
        )
    return np.minimum(values, 1.0)


def actions(draft: Draft, keep: Flags, terminated: Flags) -> dict[str, Any]:
    """Actions and next actions of the rows that are kept."""
    found: dict[str, Any] = {}
    filled = {
        role: filling.fill(draft.table, draft.picks[role])
        for role in ("actions", "next_actions")
        if role in draft.picks
    }
    if len(filled) == 2 and len(filled["actions"].labels) == len(filled["next_actions"].labels):
        filling.same_codes(filled["actions"], filled["next_actions"])
    rows = draft.rows(np.arange(draft.n))
    rows = rows if keep.all() else rows[keep]
    for role, values in filled.items():
        array = values.array
        if array.shape[0] != draft.n:
            raise InputError(
                f"{role} (column {draft.picks[role].names[0]!r}) has {array.shape[0]} rows and "
                f"{draft.picks['rewards'].names[0]!r} has {draft.n}: they must agree."
            )
        array = squeezed(array, draft.picks[role])
        taken = array if len(rows) == draft.n and draft.order is None else array[rows]
        if values.missing is not None:
            gone = values.missing[rows]
            if role == "next_actions" and "actions" in found:
                taken = np.where((gone & terminated).reshape(-1, *[1] * (taken.ndim - 1)), found["actions"], taken)
                gone = gone & ~terminated
            if gone.any():
                raise InputError(
                    f"{role} (column {draft.picks[role].names[0]!r}) have {np.count_nonzero(gone):,} rows with a value "
                    f"that is missing, NaN or infinite, the first at row {rows[gone.argmax()]}. Drop those rows or "
                    "fill the gaps first."
                )
        found[role] = taken
        label(draft, role, values)
    return found


def squeezed(array: Any, pick: Pick) -> Any:
    """Actions as a user means them: one column of whole numbers is (n,)."""
    single = array.ndim == 2 and array.shape[1] == 1 and array.dtype.kind in "iub" and not pick.flat
    return array[:, 0] if single else array


def label(draft: Draft, role: str, values: Values) -> None:
    """Write down what the codes of a role stand for."""
    found, notes = labelled(role, draft.picks[role], values)
    draft.labels |= found
    draft.notes += notes


def labelled(role: str, pick: Pick, values: Values) -> tuple[dict[str, tuple[Any, ...]], list[str]]:
    """What the codes of a role stand for, by role or column, and a note about each."""
    found: dict[str, tuple[Any, ...]] = {}
    notes = [f"{name!r} holds lists as text, which became numbers." for name in values.written]
    for name, own in zip(pick.names, values.labels, strict=True):
        if own is None:
            continue
        found[role if len(pick.names) == 1 else name] = own
        codes = [f"{label} = {code}" for code, label in enumerate(own)]
        shown = codes if len(codes) <= MOST_SHOWN else [*codes[:2], "...", codes[-1]]
        notes.append(f"{name!r} holds text, which became numbers: {', '.join(shown)}.")
    return found, notes
