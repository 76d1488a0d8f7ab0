"""The policy that a command is told to evaluate, as `LinearValue` takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.transitions import Transitions

#: Largest number of actions for which "uniform" is understood.
MOST = 1000


class Chosen(NamedTuple):
    """A policy, or what `LinearValue.fit` and `policy_value` are told of it beside the log."""

    policy: Callable[[Any], NDArray[Any]] | None
    fit: dict[str, Any]
    initial_actions: NDArray[Any] | None


def chosen(text: str | None, initial: str | None, log: Transitions) -> Chosen:
    """What --policy and --initial-policy say.

    "uniform" takes every action of the log equally often; a file (.npy or .csv) has a row for each row of the log, with
    the probabilities of the actions in its next state or, in one column, the next action. What is done in the first
    states of the episodes is then in another, with a row for each.
    """
    if text is None or text == "uniform":
        if initial is not None:
            raise InputError("--initial-policy goes with a --policy that is a file; without one it is not needed.")
    if text is None:
        return Chosen(None, {}, None)
    if log.actions is None:
        raise InputError(
            "--policy needs the actions of the log, and there are none. Name their column: --column actions=a."
        )
    if text == "uniform":
        return Chosen(Uniform(_count(log)), {}, None)
    table = _from_file("--policy", Path(text), len(log), "rows")
    if initial is None:
        raise InputError(
            f"--policy {text} says what is done in the next states, and the value is that of the episodes' first "
            "states: say what is done there with --initial-policy, a file with a row for each episode, in the order "
            "of the log."
        )
    if log.episodes is None:
        raise InputError("--initial-policy needs the episodes of the log: name their column, --column episodes=e.")
    first = _from_file("--initial-policy", Path(initial), len(set(log.episodes.tolist())), "episodes")
    if first.ndim != table.ndim:
        raise InputError("--policy and --initial-policy must both hold actions, or both probabilities.")
    return Chosen(None, {"next_probabilities" if table.ndim == 2 else "next_actions": table}, first)


class Uniform:
    """Every action equally often."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __call__(self, states: Any) -> NDArray[np.float64]:
        """Probabilities: (m, count)."""
        return np.full((states.shape[0], self.count), 1.0 / self.count)

    def __repr__(self) -> str:
        return f"uniform over {self.count} actions"


def _count(log: Transitions) -> int:
    actions = np.asarray(log.actions)
    if actions.ndim != 1 or actions.dtype.kind not in "iu":
        raise InputError("--policy uniform needs actions that are whole numbers 0, 1, ..., one a row.")
    count = int(actions.max()) + 1
    if count > MOST:
        raise InputError(f"--policy uniform would have {count:,} actions. Number them 0, 1, ... without gaps.")
    return count


def _from_file(option: str, path: Path, count: int, of: str) -> NDArray[Any]:
    """Probabilities (count, n_actions), or actions (count,), one for each row or episode."""
    if not path.is_file():
        raise InputError(f"{option} {path}: there is no such file. Give a .npy or .csv file, or --policy uniform.")
    try:
        if path.suffix == ".npy":
            table = np.load(path, allow_pickle=False)
        else:
            table = np.genfromtxt(path, delimiter=",", skip_header=0, dtype=np.float64)
            if table.ndim and len(table) == count + 1 and np.isnan(np.atleast_2d(table.T).T[0]).all():
                table = table[1:]  # names of columns
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{option} {path} cannot be read as a table of numbers: {error}") from None
    _refuse_separators(option, path, table)
    if table.ndim == 2 and table.shape[1] == 1:
        table = table[:, 0]
    if table.ndim not in (1, 2) or len(table) != count:
        raise InputError(
            f"{option} {path} has shape {table.shape} and the log {count:,} {of}: give the probabilities of all "
            "actions, or the action, for each of them."
        )
    if table.ndim == 2:
        if len(table) > 2 and (np.diff(table[:, 0]) == 1).all():
            raise InputError(
                f"the first column of {option} {path} counts the rows, and would be the probability of an action: "
                "write the file without it (pandas: to_csv(..., index=False))."
            )
        return np.asarray(table, dtype=np.float64)
    if not np.isfinite(table).all() or (table != np.round(table)).any():
        raise InputError(f"{option} {path} has one column, which must hold actions as whole numbers.")
    return np.asarray(table, dtype=np.int64)


def _refuse_separators(option: str, path: Path, table: NDArray[Any]) -> None:
    """A table without a single number, because its columns are separated by something else than commas."""
    if path.suffix == ".npy" or not np.isnan(table).all():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        first = file.readline()
    separator = next((mark for mark in (";", "\t", "|", " ") if mark in first.strip()), None)
    if separator is not None:
        name = {"\t": "tabs", " ": "spaces"}.get(separator, repr(separator))
        raise InputError(
            f"{option} {path} has its columns separated by {name}: write it with commas (pandas: to_csv(..., "
            "index=False)), and numbers with a decimal point."
        )
