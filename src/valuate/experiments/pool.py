"""Worker processes, and which run goes to which: a worker keeps its data set as long as runs need it."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import valuate
from valuate.experiments.plan import Run

#: Seconds that a worker is given to end by itself.
PATIENCE = 5.0


class Pool:
    """Carries out runs in ``jobs`` processes of one thread each, so that results do not depend on their number.

    The processes read runs from a pipe, and end when it closes: with the one that started them, however that ends.
    """

    def __init__(self, jobs: int, root: int) -> None:
        self.jobs, self.root = jobs, root
        self._answers: queue.Queue[tuple[_Worker, str | None]] = queue.Queue()
        self._workers: list[_Worker] = []

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.end()

    def results(self, runs: Sequence[Run]) -> Iterator[tuple[Run, dict[str, Any]]]:
        """Each run and its record as it finishes; the record's kind is "failed" where the worker died of it."""
        schedule = _Schedule(runs)
        idle = list(self._workers)  # left from runs before, with a data set that may be of use again
        for k in range(min(self.jobs, len(runs))):
            self._give(idle[k] if k < len(idle) else self._start(), schedule)
        while any(worker.run is not None for worker in self._workers):
            worker, line = self._answers.get()
            run = worker.run
            if run is None:  # the end of a worker that has been seen to
                continue
            if line is None:
                yield run, _failure(run, worker.last_words())
                worker.end()
                self._workers.remove(worker)
                worker = self._start()
            else:
                yield run, json.loads(line)
            self._give(worker, schedule)

    def _start(self) -> _Worker:
        worker = _Worker(self._answers)
        self._workers.append(worker)
        return worker

    def _give(self, worker: _Worker, schedule: _Schedule) -> None:
        taken = {other.run.data_key for other in self._workers if other.run is not None and other is not worker}
        worker.run = schedule.take(worker.data_key, taken)
        if worker.run is not None:
            worker.data_key = worker.run.data_key
            worker.ask(self.root)


class _Schedule:
    """The runs that are left, by data set and in order."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.left: dict[str, deque[Run]] = {}
        for run in runs:
            self.left.setdefault(run.data_key, deque()).append(run)

    def take(self, held: str | None, taken: set[str]) -> Run | None:
        """The next run: of the data set that is held, else of one that nobody has, else of the one with most left."""
        if not self.left:
            return None
        free = [key for key in self.left if key not in taken]
        if held in self.left:
            key = held
        else:
            key = free[0] if free else max(self.left, key=lambda key: len(self.left[key]))
        run = self.left[key].popleft()
        if not self.left[key]:
            del self.left[key]
        return run


class _Worker:
    """A process and the thread that waits for its answers."""

    def __init__(self, answers: queue.Queue[tuple[_Worker, str | None]]) -> None:
        self.run: Run | None = None
        self.data_key: str | None = None
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "valuate.experiments.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=_environment(),
            encoding="utf-8",
            start_new_session=True,  # Ctrl-C is for the one that started it
        )
        threading.Thread(target=self._listen, args=(answers,), daemon=True).start()

    def ask(self, root: int) -> None:
        """Send the run; a worker that is dead already is reported by its thread."""
        assert self.run is not None and self._process.stdin is not None
        cell = self.run.cell.as_dict()
        asked = {"root": root, "experiment": self.run.experiment, "cell": cell, "run": self.run.index}
        try:
            self._process.stdin.write(json.dumps(asked) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass

    def last_words(self) -> str:
        """Why the process ended, in a line."""
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        if code < 0:
            return f"the process was ended by signal {-code} (9: often for want of memory)"
        return lines[-1].strip() if lines else f"the process ended with code {code}"

    def end(self) -> None:
        """Close the pipe and see to it that the process ends."""
        self.run = None
        self._process.kill()
        self._process.wait(PATIENCE)
        for pipe in (self._process.stdin, self._errors):
            try:
                pipe.close()  # type: ignore[union-attr]
            except BrokenPipeError:
                pass

    def _listen(self, answers: queue.Queue[tuple[_Worker, str | None]]) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                answers.put((self, line if line.endswith("\n") else None))
        answers.put((self, None))


def _failure(run: Run, reason: str) -> dict[str, Any]:
    experiment, cell, index = run.key
    return {"kind": "failed", "experiment": experiment, "cell": cell, "run": index, "reason": reason}


def _environment() -> dict[str, str]:
    """One thread a worker, this very package, and a numerical library that knows the processor it is on."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    threads = ("VALUATE_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    home = str(Path(valuate.__file__).parents[1])
    path = os.pathsep.join(part for part in (home, os.environ.get("PYTHONPATH", "")) if part)
    return inherited | dict.fromkeys(threads, "1") | {"PYTHONPATH": path}
