"""One cell, in whatever process this is: everyone in turn."""

from __future__ import annotations

import time
import warnings
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from valuate.bench import machine
from valuate.bench.accuracy import logs
from valuate.bench.accuracy.cells import Cell
from valuate.bench.accuracy.contestants import Bout, Contestant, Outcome, Refused, Run, best
from valuate.bench.accuracy.ours import OURS
from valuate.bench.accuracy.recording import Reached, Recorder
from valuate.bench.accuracy.theirs import BASELINE, THEIRS
from valuate.bench.accuracy.yardstick import Yardstick
from valuate.errors import ValuateError

#: Runs of which the shortest time counts, while they take so many seconds together.
REPEATS, TOGETHER = 5, 0.5
#: Rows of the log on which everyone runs once, so that all code is there when the clock runs.
WARM = 2000
#: What a run may end with; whatever else comes ends the cell.
FAILURES = (ValuateError, ArithmeticError, LookupError, MemoryError, RuntimeError, TypeError, ValueError)


EVERYONE = (*THEIRS, *OURS)


@dataclass(frozen=True, slots=True)
class Limits:
    """How long a run may take.

    Parameters
    ----------
    times : float
        In multiples of the time of `BASELINE` ...
    least, most : float
        ... but no less and no more seconds than these.
    direct : float
        Seconds that a direct solve may take, by what is predicted.
    """

    times: float
    least: float
    most: float
    direct: float


SMALL = Limits(times=3.0, least=0.4, most=3.0, direct=30.0)
FULL = Limits(times=3.0, least=1.0, most=60.0, direct=600.0)


def take(settings: dict[str, Any], limits: dict[str, float], small: bool, only: list[str] | None) -> dict[str, Any]:
    """Measure a cell; see `report.CellResult` for what comes of it."""
    return taken(Cell(**settings), Limits(**limits), chosen(small, only))


def chosen(small: bool, only: list[str] | None) -> list[Contestant]:
    """Those of the small grid or all, or whose name contains one of ``only``, and the baseline in any case."""
    found = []
    for contestant in EVERYONE:
        named = any(part.lower() in contestant.name.lower() for part in only or [])
        if contestant.name == BASELINE or named or (only is None and (contestant.small or not small)):
            found.append(contestant)
    return found


def taken(cell: Cell, limits: Limits, contestants: list[Contestant], seed: int = 0) -> dict[str, Any]:
    """Everyone in one cell."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        bout, built = _prepared(cell, limits, seed)
        warm = _warmed(cell, limits)
        runs = []
        # The baseline first: its time limits the others.
        for contestant in sorted(contestants, key=lambda one: one.name != BASELINE):
            _trial(contestant, warm)
            run = _run(contestant, bout, built)
            if contestant.name == BASELINE and run.repeats:
                bout.limit = float(np.clip(limits.times * run.seconds, limits.least, limits.most))
            if run.failed != _NOT_HERE:
                runs.append(run)
        yardstick = bout.yardstick
        return {
            "cell": {**cell.as_dict(), "name": cell.name, "bytes": cell.bytes, "ridge": bout.log.ridge},
            "build_seconds": built,
            "limit_seconds": bout.limit,
            "floor": yardstick.floor,
            "floor_error": yardstick.floor_error,
            "norm": yardstick.norm,
            "reference": yardstick.reference,
            "at_zero": asdict(yardstick.at_zero),
            "condition": yardstick.condition and list(yardstick.condition),
            "blas": machine.blas(),
            "notes": yardstick.notes(),
            "runs": [asdict(run) for run in runs],
        }


_NOT_HERE = "not here"


def _prepared(cell: Cell, limits: Limits, seed: int) -> tuple[Bout, float]:
    """The bout, and the seconds that building the problem took."""
    _warm_log(cell).problem()  # loads all code
    log = logs.make(cell, seed)
    began = time.perf_counter()
    problem = log.problem()
    built = time.perf_counter() - began
    bout = Bout(log, problem, Yardstick(problem), limits.most, limits.direct)
    bout.problem = bout.fresh()
    return bout, built


def _warm_log(cell: Cell) -> logs.Log:
    return logs.make(replace(cell, n=min(cell.n, WARM), dim=min(cell.dim, 64), condition=1e2))


def _warmed(cell: Cell, limits: Limits) -> Bout:
    log = _warm_log(cell)
    problem = log.problem()
    return Bout(log, problem, Yardstick(problem), 0.0, limits.direct)


def _trial(contestant: Contestant, warm: Bout) -> None:
    """A run that is forgotten."""
    try:
        contestant.run(warm, Recorder(warm.yardstick, 0.0))
    except (Refused, *FAILURES):
        pass


def _run(contestant: Contestant, bout: Bout, built: float) -> Run:
    """The shortest times of a few runs."""
    reached: dict[str, Reached] = {}
    repeats, spent = 0, 0.0
    while repeats == 0 or (repeats < REPEATS and spent < TOGETHER):
        began = time.perf_counter()
        recorder = Recorder(bout.yardstick, bout.limit)
        try:
            outcome = contestant.run(bout, recorder)
        except Refused as refused:
            return Run(solver=contestant.name, side=contestant.side, failed=_NOT_HERE, message=str(refused))
        except FAILURES as error:
            return Run(solver=contestant.name, side=contestant.side, failed=f"{type(error).__name__}: {error}")
        if outcome.needs is not None:
            needs = asdict(outcome.needs)
            return Run(solver=contestant.name, side=contestant.side, needs=needs, message=outcome.message)
        reached = best(reached, recorder.reached)
        repeats, spent = repeats + 1, spent + time.perf_counter() - began
    return _summed(contestant, outcome, recorder, reached, repeats, built)


def _summed(
    contestant: Contestant,
    outcome: Outcome,
    recorder: Recorder,
    reached: dict[str, Reached],
    repeats: int,
    built: float,
) -> Run:
    building = built if contestant.side == "ours" else 0.0
    return Run(
        solver=contestant.name,
        side=contestant.side,
        reached={
            name: {**found.as_dict(), "total_seconds": found.seconds + building} for name, found in reached.items()
        },
        seconds=recorder.seconds,
        relative_residual=recorder.last.relative_residual,
        ratio=recorder.last.ratio,
        limited=recorder.seconds > recorder.limit,
        repeats=repeats,
        setting=outcome.setting,
        message=outcome.message,
    )
