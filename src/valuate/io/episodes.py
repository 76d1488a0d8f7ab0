"""Whole episodes, from Gymnasium, Minari, d3rlpy or RLDS, joined to columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from valuate import _checks
from valuate.errors import InputError, InputTypeError
from valuate.io.columns import Arrays, flattened
from valuate.io.names import ALIASES, SUBJECTS, canonical, plain, suggestion

__all__ = ["EPISODE", "as_mapping", "join", "rewards_of"]

#: The name of the column with the number of each row's episode.
EPISODE = "episode"
_PLACES = ("observations", "actions", "rewards", "terminated", "truncated")
_FLAGS = ("terminated", "truncated", "done", "last")
_ATTRIBUTES = (
    *("observations", "actions", "rewards", "terminations", "truncations", "terminated", "truncated"),
    *("infos", "id"),
)


def as_mapping(number: int, given: Any) -> Mapping[str, Any]:
    """An episode of any kind as parts by name."""
    if isinstance(given, Mapping):
        steps = given.get("steps")
        if steps is None:
            return given
        return steps if isinstance(steps, Mapping) else _from_steps(number, steps)
    if isinstance(given, list | tuple):
        if given and isinstance(given[0], Mapping):
            return _from_steps(number, given)
        if len(given) not in (4, 5, 6):  # the sixth part would be infos
            raise InputTypeError(
                f"episode {number} must be a tuple (observations, actions, rewards, terminated) or (..., terminated, "
                f"truncated), a dict, or an object with such attributes, and has {len(given)} parts."
            )
        return {name: value for name, value in zip(_PLACES, given, strict=False) if value is not None}
    found = {name: getattr(given, name) for name in _ATTRIBUTES if getattr(given, name, None) is not None}
    if not {"observations", "rewards"} <= set(found):
        raise InputTypeError(
            f"episode {number} is a {type(given).__name__}, which has no observations and rewards. Give tuples "
            "(observations, actions, rewards, terminated), dicts, or objects with such attributes."
        )
    return found


def join(
    episodes: Iterable[Any], columns: Mapping[str, Any], format: str, *, observed: bool | None = None
) -> tuple[Arrays, bool]:
    """All episodes as columns, with one that numbers them, and whether states have one row more an episode.

    Parameters
    ----------
    episodes : iterable
        Of what `as_mapping` takes.
    columns : mapping
        Of `wanted_columns`: which part is the rewards and which the states.
    observed : bool or None
        Whether an observation more than rewards is needed. None: where the first episode has it.
    """
    parts: dict[str, list[Any]] = {}
    lengths: list[int] = []
    ids: list[Any] = []
    extra: int | None = None if observed is None else int(observed)
    for number, given in enumerate(episodes):
        found = dict(flattened(as_mapping(number, given)))
        rewards = rewards_of(number, found, columns)
        n, tall = len(rewards), _tall(found, columns)
        if not n:
            raise InputError(f"episode {number} has no rewards: it is empty. Leave it out.")
        row = {name: _part(number, name, value, n) for name, value in found.items() if _keeps(name, value)}
        for name in tall & set(row):
            if extra is None:
                extra = len(row[name]) - n
            _check_observations(number, name, len(row[name]), n, extra)
        if lengths and set(row) != set(parts):
            raise InputError(f"episode {number} has the parts {sorted(row)} and the first one has {sorted(parts)}.")
        for name, value in row.items():
            if name not in tall and len(value) != n:
                raise InputError(
                    f"episode {number} has {len(value)} {name} and {n} rewards: they must agree. (Some formats pad "
                    "them to the length of the observations: drop the padding.)"
                )
            _check_shape(number, name, value, parts.get(name))
            parts.setdefault(name, []).append(value)
        lengths.append(n)
        ids.append(_id(found.get("id"), number))
    if not lengths:
        raise InputError("There are no episodes: at least one is needed.")
    joined: dict[str, Any] = {name: np.concatenate(values) for name, values in parts.items()}
    labels = ids if len(set(ids)) == len(ids) else range(len(ids))
    if not any(canonical(name) == "episodes" and plain(name) not in SUBJECTS for name in joined):
        joined[EPISODE] = np.repeat(np.array(list(labels)), lengths)
    return Arrays(joined, format), extra == 1


def _from_steps(number: int, steps: Any) -> dict[str, Any]:
    """RLDS steps, one mapping each, as arrays."""
    rows = [dict(flattened(step)) for step in steps]
    if not rows:
        raise InputError(f"episode {number} has no steps: it is empty. Leave it out.")
    odd = next((k for k, row in enumerate(rows) if set(row) != set(rows[0])), None)
    if odd is not None:
        raise InputError(
            f"episode {number}: step {odd} has the parts {sorted(rows[odd])} and the first has {sorted(rows[0])}."
        )
    return {name: np.array([np.asarray(row[name]) for row in rows]) for name in rows[0]}


def rewards_of(number: int, found: Mapping[str, Any], columns: Mapping[str, Any]) -> Any:
    """The part of an episode that is its rewards."""
    asked = columns.get("rewards")
    name = asked if asked is not None else next((name for name in found if canonical(name) == "rewards"), None)
    if name is None or name not in found:
        raise InputError(f"episode {number} has no rewards.{suggestion(ALIASES['rewards'], found)}")
    value = found[name]
    return value if hasattr(value, "__len__") else np.asarray(value)


def _tall(found: Mapping[str, Any], columns: Mapping[str, Any]) -> set[str]:
    """The parts that may have one row more than there are rewards: observations."""
    asked = columns.get("states")
    if asked is not None:
        return {asked} if isinstance(asked, str) else set(asked)
    heads = [name for name in found if canonical(name.split("/")[0]) == "states"]
    return set(heads)


def _keeps(name: str, value: Any) -> bool:
    if plain(name) in ("id", "seed", "options", "total_steps") or name.split("/")[0] in ("infos", "info"):
        return False
    return value is not None and (hasattr(value, "__len__") or canonical(name) in _FLAGS)


def _part(number: int, name: str, value: Any, n: int) -> Any:
    """An array with a row each; one flag for a whole episode is that of its last row."""
    role = canonical(name)
    array = _checks.as_array(f"episode {number}: {name}", value)
    if role in _FLAGS and array.ndim == 0:
        flags = np.zeros(n, bool)
        flags[-1] = _checks.flag(f"episode {number}: {name}", array[()])
        return flags
    if array.ndim == 0:
        raise InputError(f"episode {number}: {name} is one value and must have one a row.")
    return array


def _check_observations(number: int, name: str, count: int, n: int, extra: int) -> None:
    if count - n == extra and extra in (0, 1):
        return
    needed = f"{n + 1} observations: the state before each step and the one after the last" if extra else f"{n}"
    before = " as the episodes before" if number else ""
    if extra not in (0, 1):
        needed = f"{n + 1} observations, or {n} where the last one was not kept"
    raise InputError(f"episode {number} has {count} {name} and {n} rewards. That many rewards need {needed}{before}.")


def _check_shape(number: int, name: str, value: Any, before: list[Any] | None) -> None:
    if before and value.shape[1:] != before[0].shape[1:]:
        raise InputError(
            f"episode {number}: {name} has rows of shape {value.shape[1:]} and the first episode of "
            f"{before[0].shape[1:]}: they must agree."
        )


def _id(value: Any, number: int) -> Any:
    return int(value) if isinstance(value, int | np.integer) else number
