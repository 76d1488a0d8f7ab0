"""Carrying out experiments: what is missing from a folder is run, in several processes, and kept as it finishes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from valuate import _checks
from valuate._threads import thread_count
from valuate.errors import InputError
from valuate.experiments import machine
from valuate.experiments.catalogue import EXPERIMENTS, chosen
from valuate.experiments.plan import SCALES, Cell, Run, runs_of
from valuate.experiments.pool import Pool
from valuate.experiments.results import Results
from valuate.experiments.store import Store
from valuate.experiments.tasks import effort


@dataclass(slots=True)
class Outcome:
    """What a call of `reproduce` did.

    Attributes
    ----------
    folder : Path
    done, kept : int
        Runs that were carried out, and runs that the folder had before.
    failed : list of (str, str)
        Runs that failed, and why.
    interrupted : bool
        Whether Ctrl-C ended it.
    notes : list of str
        What was wrong with the folder's records.
    seconds : float
    """

    folder: Path
    done: int = 0
    kept: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0


def reproduce(
    names: Sequence[str] = ("all",),
    *,
    scale: str = "smoke",
    runs: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    jobs: int | None = None,
    grid: bool = False,
    right_termination: bool = False,
    console: Console | None = None,
) -> Outcome:
    """Run the paper's experiments and keep every run in a folder.

    Parameters
    ----------
    names : sequence of str
        Of "figure-1", "figure-2", "table-1", "table-2", "table-3"; or "all".
    scale : {"smoke", "paper"}
    runs : int, optional
        In place of the scale's number of runs or repetitions.
    seed : int
        All random numbers follow from it.
    out : path, optional
        The folder; "reproduction-<scale>" where not given. Finished runs in it are not repeated.
    jobs : int, optional
        Processes; one a core where not given. Results do not depend on it.
    grid : bool
        Whether Figure 1 is also made at the best steps of the paper's grid.
    right_termination : bool
        Whether Table 3 is made with nothing after the end of an episode, in place of the paper's reading.
    console : rich.console.Console, optional
        Where progress is shown; nowhere when it is no terminal.

    Returns
    -------
    Outcome
    """
    if scale not in SCALES:
        raise InputError(f"There is no scale {scale!r}. There are: {', '.join(SCALES)}.")
    wanted = chosen(names, grid=grid, right_termination=right_termination)
    runs = None if runs is None else _checks.whole("runs", runs, low=1)
    seed = _checks.whole("seed", seed, low=0)
    jobs = thread_count() if jobs is None else _checks.whole("jobs", jobs, low=1)
    began = time.perf_counter()
    cells = {name: EXPERIMENTS[name].cells(scale, runs) for name in wanted}
    with Store.write(f"reproduction-{scale}" if out is None else out, scale, seed, cells) as store:
        outcome = Outcome(store.folder, notes=store.notes)
        store.append({"kind": "session", "began": time.time(), "jobs": jobs, "machine": machine.describe()})
        try:
            _carry_out(store, cells, seed, jobs, outcome, console or Console(stderr=True))
        except KeyboardInterrupt:
            outcome.interrupted = True
        outcome.seconds = time.perf_counter() - began
        if not outcome.interrupted:
            store.append({"kind": "timing", "authors_way": machine.authors_way(_untimed(store.records))})
        store.append({"kind": "end", "ended": time.time(), "seconds": outcome.seconds, "done": outcome.done})
    return outcome


def _carry_out(
    store: Store, cells: dict[str, list[Cell]], seed: int, jobs: int, outcome: Outcome, console: Console
) -> None:
    """Run what is missing; then what depends on it."""
    results = Results(store.records)
    with Pool(jobs, seed) as pool, _Bar(console) as bar:
        for stage in ("first", "then"):
            runs = [run for name in cells for run in runs_of(name, _stage(stage, name, cells[name], results))]
            missing = [run for run in runs if run.key not in results]
            outcome.kept += len(runs) - len(missing)
            bar.expect(runs, missing)
            for run, record in pool.results(missing):
                store.append(record)
                results.add(record)
                bar.advance(run)
                if record["kind"] == "failed":
                    outcome.failed.append((str(run), record["reason"]))
                else:
                    outcome.done += 1


def _stage(stage: str, name: str, cells: list[Cell], results: Results) -> list[Cell]:
    if stage == "first":
        return cells
    then = EXPERIMENTS[name].then
    return [] if then is None else then(cells, results)


def _untimed(records: list[dict[str, Any]]) -> list[int]:
    """Numbers of features that runs had and for which the authors' way has not been timed."""
    timed = {int(dim) for record in records if record["kind"] == "timing" for dim in record["authors_way"]}
    return sorted({record["data"]["dim"] for record in records if record["kind"] == "run"} - timed)


class _Bar:
    """A progress bar with the time left, on a terminal only."""

    def __init__(self, console: Console) -> None:
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            transient=True,
        )
        self.task = self.progress.add_task("starting", total=0.0)
        self.total = 0.0

    def __enter__(self) -> _Bar:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def expect(self, runs: Sequence[Run], missing: Sequence[Run]) -> None:
        """There is more to do."""
        self.total += sum(effort(run) for run in missing)
        self.progress.update(self.task, total=self.total)

    def advance(self, run: Run) -> None:
        """A run has finished."""
        self.progress.update(self.task, advance=effort(run), description=run.experiment)
