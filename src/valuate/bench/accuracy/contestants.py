"""Who takes part, and what a run of theirs is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from valuate.bench.accuracy.recording import Reached, Recorder
from valuate.problem import Problem
from valuate.rows import Rows

if TYPE_CHECKING:
    from valuate.bench.accuracy.logs import Log
    from valuate.bench.accuracy.yardstick import Yardstick

Side = Literal["ours", "theirs"]


class Refused(Exception):
    """A contestant cannot take part here; the message says why."""


@dataclass(frozen=True, slots=True)
class Needs:
    """What a direct solve would take where it is not run."""

    bytes: float
    operations: float
    seconds: float
    why: str


@dataclass(slots=True)
class Outcome:
    """What one run says beside what the recorder saw: its settings, how it ended, in words."""

    setting: str = ""
    message: str = ""
    needs: Needs | None = None


@dataclass(slots=True)
class Bout:
    """A cell in which everyone takes part.

    Attributes
    ----------
    log : Log
        What is in memory.
    problem : Problem
        Built from it once; runs work on `fresh` ones.
    yardstick : Yardstick
    limit : float
        Seconds that a run may take.
    direct_limit : float
        Seconds that a direct solve may take, by what is predicted.
    known : dict
        What is found out off the clock once, such as the best size of a block.
    """

    log: Log
    problem: Problem
    yardstick: Yardstick
    limit: float
    direct_limit: float
    known: dict[str, Any] = field(default_factory=dict)

    def fresh(self) -> Problem:
        """A problem on the same rows that knows nothing yet."""
        rows = self.problem.rows
        assert isinstance(rows, Rows)
        known = rows.table, rows.dim, rows.records, rows.weights, rows.layout, rows.survey(), rows.total_weight
        return Problem(Rows(*known), ridge=self.problem.ridge)


@dataclass(frozen=True, slots=True)
class Contestant:
    """A way to solve the problem.

    Parameters
    ----------
    name : str
    side : {"ours", "theirs"}
        Ours need a problem, whose building is added to their time.
    run : callable
        Given a `Bout` and a `Recorder`, whose clock it starts and which it shows its points.
    small : bool
        Whether it takes part where the grid is the small one.
    """

    name: str
    side: Side
    run: Callable[[Bout, Recorder], Outcome]
    small: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of a contestant in a cell.

    Attributes
    ----------
    solver : str
    side : {"ours", "theirs"}
    reached : dict of dict
        By accuracy: ``seconds``, without building the problem, ``total_seconds``, with it, ``relative_residual``,
        ``ratio`` and ``passes``. Accuracies that were not reached are not there.
    seconds : float
        Until the last point that was measured.
    relative_residual, ratio : float or None
        Of that point.
    limited : bool
        Whether the time limit ended it.
    repeats : int
        Runs of which each time is the shortest.
    setting, message : str
    needs : dict or None
        What it would take where it was not run: ``bytes``, ``operations``, ``seconds``, ``why``.
    failed : str
        Why there is nothing, where there is nothing.
    """

    solver: str
    side: Side
    reached: dict[str, dict[str, Any]] = field(default_factory=dict)
    seconds: float = 0.0
    relative_residual: float | None = None
    ratio: float | None = None
    limited: bool = False
    repeats: int = 0
    setting: str = ""
    message: str = ""
    needs: dict[str, Any] | None = None
    failed: str = ""


def best(first: dict[str, Reached], second: dict[str, Reached]) -> dict[str, Reached]:
    """The shorter time to each accuracy."""
    out = dict(first)
    for name, found in second.items():
        if name not in out or found.seconds < out[name].seconds:
            out[name] = found
    return out
