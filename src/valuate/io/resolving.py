"""Which columns are taken for what: by the names a user gives, else by those that are known."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from valuate.errors import InputError, InputTypeError
from valuate.io.names import ALIASES, FAMILIES, ROLES, SUBJECTS, canonical, family, nearest, plain, suggestion

if TYPE_CHECKING:
    from valuate.io.columns import Table

__all__ = ["Pick", "resolve", "wanted_columns"]

#: Roles that may have a column for each dimension.
_WIDE = ("states", "next_states", "actions", "next_actions")


@dataclass(frozen=True, slots=True)
class Pick:
    """What is taken for one role.

    Attributes
    ----------
    names : tuple of str
    flat : bool
        Whether each name is one dimension; otherwise there is one name, of rows of any shape.
    asked : bool
        Whether the user named it.
    """

    names: tuple[str, ...]
    flat: bool = False
    asked: bool = False

    @property
    def shown(self) -> str | tuple[str, ...]:
        """As `Reading.columns` has it."""
        return self.names if self.flat else self.names[0]


def wanted_columns(columns: Any) -> dict[str, Any]:
    """What a user says of columns, by our names; a None says that there is no such column."""
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise InputTypeError(
            "columns must be a dict from what is meant to the names of columns, such as {'states': ['x', 'y'], "
            f"'rewards': 'r'}}, not {type(columns).__name__}."
        )
    found: dict[str, Any] = {}
    for key, value in columns.items():
        role = canonical(str(key))
        if role is None:
            near = nearest([str(key)], ROLES)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise InputError(f"columns has the key {key!r}, which is none of {', '.join(ROLES)}.{hint}")
        if role in found:
            raise InputError(f"columns says twice which are the {role}: {key!r} means the same as another key.")
        found[role] = value
    return found


def resolve(
    table: Table, columns: Mapping[str, Any], layout: str | None, *, needed: tuple[str, ...] = ("rewards", "states")
) -> dict[str, Pick]:
    """What is taken for each role.

    Parameters
    ----------
    columns : mapping
        Of `wanted_columns`.
    layout : str or None
        SCOPE-RL calls the time limit "terminal", and its "done" is the end of any kind.
    needed : tuple of str
        Roles without which there is nothing to read. Next states follow where rewards do.

    Raises
    ------
    InputError
        Where a named column is not there, or no column is known to be one of those needed.
    """
    there = table.names
    objects: tuple[str, ...] = getattr(table, "objects", ())
    for role in ROLES:
        if (name := _object(role, columns, objects, there)) is not None and (role in columns or role in needed):
            raise InputError(
                f"{name!r} ({role}) holds Python objects or rows of different lengths, which are not read from a file: "
                "that could run code. Save one array of numbers, with rows of one length."
            )
    picks = {role: _asked(role, value, there) for role, value in columns.items() if value is not None}
    _refuse_twice(picks)
    known = dict(ALIASES)
    if layout == "SCOPE-RL" and "terminated" not in picks:
        known |= {"terminated": (), "truncated": ("terminal",)}
    for role in ROLES:
        if role not in columns:
            name = _known(known[role], there, picks)
            if name is not None:
                picks[role] = Pick((name,))
    for role in ("states", "actions"):
        if role not in picks and role not in columns:
            found = _states(there, picks) if role == "states" else _family(role, there, picks)
            if found is not None:
                picks[role] = found
        follower = f"next_{role}"
        if role in picks and follower not in columns and "rewards" in needed:
            _follow(role, follower, there, picks)
    if "episodes" not in columns and "rewards" in needed:
        _refuse_several_subjects(there, picks)
    for role in needed:
        if role not in picks:
            raise _missing(role, table, picks)
    return {role: picks[role] for role in ROLES if role in picks}


def _asked(role: str, value: Any, there: list[str]) -> Pick:
    given = [value] if isinstance(value, str) else list(value) if isinstance(value, list | tuple) else None
    if not given or not all(isinstance(name, str) for name in given):
        raise InputTypeError(f"columns must give a name, or a list of names, for {role}, not {value!r}.")
    names: list[str] = []
    for name in given:
        if name in there:
            names.append(name)
            continue
        matches = [other for other in there if fnmatch.fnmatchcase(other, name)] if set(name) & set("*?[") else []
        if not matches:
            near = suggestion([name, *ALIASES[role][:3]], there)
            raise InputError(f"columns names {name!r} for {role}, and there is no such column.{near}")
        names += matches
    if len(names) > 1 and role not in _WIDE:
        raise InputError(f"columns names {len(names)} columns for {role}, which takes one.")
    flat = not isinstance(value, str) or len(names) > 1
    return Pick(tuple(names), flat, asked=True)


def _object(role: str, columns: Mapping[str, Any], objects: tuple[str, ...], there: list[str]) -> str | None:
    """What cannot be read and is meant for a role, by name or, where there is nothing else, by what it is called."""
    asked = columns.get(role)
    if role in columns:
        given = [asked] if isinstance(asked, str) else asked if isinstance(asked, list | tuple) else []
        return next((name for name in given if name in objects), None)
    if any(canonical(name) == role for name in there):
        return None
    return next((name for name in objects if canonical(name) == role), None)


def _refuse_twice(picks: Mapping[str, Pick]) -> None:
    """Refuse a column that is named for two things; what never changes is a state and its own next one."""
    owner: dict[str, str] = {}
    places = {role: picks[role].names for role in ("states", "next_states") if role in picks}
    before, after = places.get("states", ()), places.get("next_states", ())
    stays = {name for name, other in zip(before, after, strict=False) if name == other} if before != after else set()
    for role, pick in picks.items():
        for name in pick.names:
            both = {role, owner.get(name)}
            if name in owner and both != {"done", "last"} and not (both == {*places} and name in stays):
                raise InputError(f"columns names {name!r} for {owner[name]} and for {role}: a column is one of them.")
            owner[name] = role


def _refuse_several_subjects(there: list[str], picks: Mapping[str, Pick]) -> None:
    """Refuse columns of patients and of sessions, say, where no column is that of the episodes."""
    if "episodes" not in picks or plain(picks["episodes"].names[0]) not in SUBJECTS:
        return
    taken = {name for role, pick in picks.items() if role != "episodes" for name in pick.names}
    several = [name for name in there if name not in taken and plain(name) in SUBJECTS]
    if len(several) > 1:
        raise InputError(
            f"{' and '.join(map(repr, several))} may each say where episodes are. Say which: "
            f"columns={{'episodes': {several[0]!r}}}; or {{'episodes': None}} where none of them does."
        )


def _known(aliases: tuple[str, ...], there: list[str], picks: Mapping[str, Pick]) -> str | None:
    taken = {name for pick in picks.values() for name in pick.names}
    written: dict[str, list[str]] = {}
    for name in there:
        if name not in taken:
            written.setdefault(plain(name), []).append(name)
    for alias in aliases:
        names = written.get(alias)
        if names:
            return alias if alias in names else names[0]
    return None


def _states(there: list[str], picks: Mapping[str, Pick]) -> Pick | None:
    """Columns x, y, ... where next_x, next_y, ... are there as well; else columns obs_0, obs_1, ... and the like."""
    taken = {name for pick in picks.values() for name in pick.names}
    written = {plain(name) for name in there}
    written |= {f"next_{name.removesuffix('_next')}" for name in written if name.endswith("_next")}
    acts = tuple(f"{beginning}_" for beginning in FAMILIES["actions"])
    both = [
        name
        for name in there
        if name not in taken and canonical(name) is None and f"next_{plain(name)}" in written
        if not plain(name).startswith(acts)
    ]
    members = _family("states", there, picks)
    if members is not None and (not both or set(both) & set(members.names)):
        if not set(members.names) < set(both):
            return members  # in order of their numbers; one that nothing follows is told of later
    return Pick(tuple(both), flat=True) if both else None


def _family(role: str, there: list[str], picks: Mapping[str, Pick]) -> Pick | None:
    taken = {name for pick in picks.values() for name in pick.names}
    others = {beginning for other, several in FAMILIES.items() if other != role for beginning in several}
    free = [name for name in there if name not in taken and canonical(name) is None]
    for beginning in FAMILIES[role]:
        members = [
            (ending, name)
            for ending, name in family(free, beginning)
            if not any(plain(name).startswith(f"{other}_") for other in others if len(other) > len(beginning))
        ]
        if members:
            return Pick(tuple(name for _, name in members), flat=True)
    return None


def _follow(role: str, follower: str, there: list[str], picks: dict[str, Pick]) -> None:
    """Find the columns of the next states that belong to the columns of the states."""
    pick = picks[role]
    if not pick.flat:
        # A name of the user's own has its next ones beside it; for one of ours any known name will do.
        beside = _known(tuple(_next_names(pick.names[0])), there, {**picks, follower: Pick(())})
        if beside is not None:
            picks[follower] = Pick((beside,))
        return
    if follower in picks and not picks[follower].asked:
        del picks[follower]  # one column cannot follow several
    free = [name for name in there if name not in pick.names]
    beside_each = [_known(tuple(_next_names(name)), free, {}) for name in pick.names]
    found = [name for name in beside_each if name is not None]
    if not found:
        members = _family(follower, free, {})
        if members is None:
            return
        if len(members.names) != len(pick.names):
            raise _unequal(role, follower, pick.names, members.names)
        picks[follower] = members
        return
    if len(found) < len(pick.names):
        alone = next(name for name, other in zip(pick.names, beside_each, strict=True) if other is None)
        wanted = f"next_{alone}"
        raise InputError(
            f"{found[0]!r} is there to follow {pick.names[beside_each.index(found[0])]!r}, and nothing is there to "
            f"follow {alone!r}, such as {wanted!r}.{suggestion([wanted], free)} Say which columns are the next states "
            f"with columns={{'{follower}': [...]}}, where {alone!r} may stand again if it never changes; or "
            f"{{'{follower}': None}} where they are those of the next row."
        )
    picks[follower] = Pick(tuple(found), flat=True)


def _next_names(name: str) -> list[str]:
    """What the column after ``name`` may be called."""
    written = plain(name)
    forms = [f"next_{written}", f"new_{written}", f"{written}_next", f"{written}_prime"]
    for beginning in sorted(FAMILIES["states"] + FAMILIES["actions"], key=len, reverse=True):
        if written.startswith(f"{beginning}_"):
            ending = written.removeprefix(f"{beginning}_")
            forms += [f"next_{beginning}_{ending}", f"new_{beginning}_{ending}", f"{beginning}_next_{ending}"]
            break
    return forms


def _unequal(role: str, follower: str, names: tuple[str, ...], others: tuple[str, ...]) -> InputError:
    return InputError(
        f"{role} have {len(names)} columns, {names[0]!r} to {names[-1]!r}, and {follower} have {len(others)}, "
        f"{others[0]!r} to {others[-1]!r}: each state needs its next one. Name them with columns={{'{role}': [...], "
        f"'{follower}': [...]}}."
    )


def _missing(role: str, table: Table, picks: Mapping[str, Pick]) -> InputError:
    there = table.names
    taken = {name for pick in picks.values() for name in pick.names}
    left = [name for name in there if name not in taken and canonical(name) is None]
    example: Any = "r"
    if role == "states":
        example = [name for name in left if table.is_number(name)][:8] or ["x", "y"]
    elif left:
        example = (nearest(ALIASES[role], left, 1) or left)[0]
    wanted = ALIASES[role] + (FAMILIES["states"] if role == "states" else ())
    return InputError(
        f"No column is known to be the {role}.{suggestion(wanted, there, left)} Say which: "
        f"columns={{'{role}': {example!r}}}."
    )
