"""What an experiment is made of: cells, each one method on one kind of data, run a number of times."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import numpy as np

from valuate import solvers

if TYPE_CHECKING:
    from valuate.experiments.results import Results

Solver: TypeAlias = Any

#: "smoke" takes a minute for everything and keeps what is cheap at its full size; "paper" is the paper's size.
SCALES = ("smoke", "paper")


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """A data set: rows of a task under a policy of random actions.

    Parameters
    ----------
    task : str
        See `valuate.experiments.tasks`.
    rows : int
    role : str
        Data sets of different roles are different draws.
    pairs : bool
        Whether action values are estimated, from one block of features an action, or values of states.
    limit : int, optional
        Most steps of an episode, in the data and where policies are scored; None is the task's own.
    right_ends : bool
        Whether nothing follows where the process ended. False is the paper's reading, which goes on from the last
        observation whatever ended the episode.
    fresh : bool
        Whether every run has a data set of its own, or all runs share one.
    """

    task: str
    rows: int
    role: str = "training"
    pairs: bool = False
    limit: int | None = None
    right_ends: bool = False
    fresh: bool = False

    def key(self, run: int) -> str:
        """Names the data set of a run: equal names, equal data."""
        parts: list[Any] = [getattr(self, field.name) for field in fields(self) if field.name != "fresh"]
        return "/".join(str(part) for part in [*parts, run if self.fresh else "shared"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One method on one kind of data.

    Parameters
    ----------
    name : str
        Unique in its experiment, "task/method" as a rule; seeds depend on it.
    data : Data
    method : solver, or None
        None: the constants of the theory are computed and nothing is run.
    runs : int
    passes, epochs : float, int
        The budget; one of them.
    record : float or "epoch", optional
        When points of the trace are recorded.
    start : (low, high), optional
        The entries of theta and omega start as draws from U[low, high]; None is zeros.
    episodes : int
        Episodes in which the greedy policy is scored; 0 for none.
    ridge : float, optional
        In place of the task's.
    distance : bool
        Whether the trace has the squared distance to the solution as well.
    """

    name: str
    data: Data
    method: Solver
    runs: int
    passes: float | None = None
    epochs: int | None = None
    record: float | str | None = None
    start: tuple[float, float] | None = None
    episodes: int = 0
    ridge: float | None = None
    distance: bool = False

    def as_dict(self) -> dict[str, Any]:
        """The settings as plain data, for a record; `from_dict` reads them."""
        out = {field.name: getattr(self, field.name) for field in fields(self)}
        out["data"] = {field.name: getattr(self.data, field.name) for field in fields(self.data)}
        out["method"] = None if self.method is None else method_as_dict(self.method)
        out["start"] = None if self.start is None else list(self.start)
        return out

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Self:
        """A cell from what `as_dict` gave."""
        method, start = given["method"], given["start"]
        read = {
            "data": Data(**given["data"]),
            "method": None if method is None else method_from_dict(method),
            "start": None if start is None else tuple(start),
        }
        return cls(**given | read)

    @property
    def task(self) -> str:
        """The task's name."""
        return self.data.task


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a cell."""

    experiment: str
    cell: Cell
    index: int

    @property
    def key(self) -> tuple[str, str, int]:
        """What a record of it is found by."""
        return self.experiment, self.cell.name, self.index

    @property
    def data_key(self) -> str:
        """Runs of equal keys share a data set."""
        return self.cell.data.key(self.index)

    def __str__(self) -> str:
        return f"{self.experiment} {self.cell.name} run {self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A figure or table of the paper, or a part of one.

    Parameters
    ----------
    name, title : str
    cells : callable
        From a scale's name, and a number of runs in place of its own or None, to the cells.
    then : callable, optional
        From the finished runs of those cells to more cells: for what depends on results.
    """

    name: str
    title: str
    cells: Callable[[str, int | None], list[Cell]]
    then: Callable[[list[Cell], Results], list[Cell]] | None = None


def runs_of(experiment: str, cells: Sequence[Cell]) -> list[Run]:
    """Every run of the cells; those that share a data set are next to each other."""
    runs = [Run(experiment, cell, index) for cell in cells for index in range(cell.runs)]
    places: dict[str, int] = {}
    for run in runs:
        places.setdefault(run.data_key, len(places))
    return sorted(runs, key=lambda run: places[run.data_key])


def method_as_dict(method: Solver) -> dict[str, Any]:
    """A solver's name and settings as plain data."""
    return {"name": type(method).__name__} | {field.name: getattr(method, field.name) for field in fields(method)}


def method_from_dict(given: dict[str, Any]) -> Solver:
    """A solver from what `method_as_dict` gave."""
    settings = {name: value for name, value in given.items() if name != "name"}
    return getattr(solvers, given["name"])(**settings)


def seed_of(root: int, *parts: str | int) -> int:
    """A seed that depends on the root seed and on what it is for, and on nothing else; it has 53 bits."""
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    sequence = np.random.SeedSequence([root, *np.frombuffer(digest, "<u4").tolist()])
    return int(sequence.generate_state(1, np.uint64)[0] >> np.uint64(11))
