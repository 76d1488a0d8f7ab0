"""The policy that a command is told to evaluate, as `LinearValue` takes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.transitions import Transitions

#: Largest number of actions for which "uniform" is understood.
MOST = 1000


def chosen(text: str | None, log: Transitions) -> tuple[Callable[[Any], NDArray[Any]] | None, dict[str, Any]]:
    """A policy and what `LinearValue.fit` is told beside the log.

    "uniform" takes every action of the log equally often; a file (.npy or .csv) has a row for each row of the log, with
    the probabilities of the actions in its next state or, in one column, the next action.
    """
    if text is None:
        return None, {}
    if log.actions is None:
        raise InputError(
            "--policy needs the actions of the log, and there are none. Name their column: --column actions=a."
        )
    if text == "uniform":
        return Uniform(_count(log)), {}
    return None, _from_file(Path(text), len(log))


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


def _from_file(path: Path, n_rows: int) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f'--policy {path}: there is no such file. Give a .npy or .csv file, or "uniform".')
    try:
        if path.suffix == ".npy":
            table = np.load(path, allow_pickle=False)
        else:
            table = np.genfromtxt(path, delimiter=",", skip_header=0, dtype=np.float64)
            if table.ndim and len(table) == n_rows + 1 and np.isnan(np.atleast_2d(table.T).T[0]).all():
                table = table[1:]  # names of columns
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"--policy {path} cannot be read as a table of numbers: {error}") from None
    if table.ndim == 2 and table.shape[1] == 1:
        table = table[:, 0]
    if table.ndim not in (1, 2) or len(table) != n_rows:
        raise InputError(
            f"--policy {path} has shape {table.shape} and the log {n_rows:,} rows: give the probabilities of all "
            "actions, or the next action, for each of them."
        )
    if table.ndim == 2:
        return {"next_probabilities": np.asarray(table, dtype=np.float64)}
    if not np.isfinite(table).all() or (table != np.round(table)).any():
        raise InputError(f"--policy {path} has one column, which must hold next actions as whole numbers.")
    return {"next_actions": table.astype(np.int64)}
