"""One run of a cell, from its settings to its record."""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import theory
from valuate.control import score
from valuate.errors import InputError
from valuate.experiments.plan import Run, method_as_dict, seed_of
from valuate.experiments.tasks import Loaded, load, settled
from valuate.problem import Problem
from valuate.solvers import LSTD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.solution import Solution
    from valuate.solvers.request import Progress

    Vector = NDArray[np.float64]

#: Accuracies, as shares of the start's squared distance, for which the theory is asked.
ACCURACIES = (0.5, 0.1, 0.01)


class Runner:
    """Carries out runs one after the other and keeps the last data set, which the next run may share."""

    def __init__(self, root: int) -> None:
        self.root = root
        self._held: tuple[str, Loaded] | None = None
        self._versions = versions()

    def run(self, run: Run) -> dict[str, Any]:
        """The record of a run: what went in, what came out, what it took."""
        began, worked = time.perf_counter(), time.process_time()
        loaded = self._data(run)
        ready = time.perf_counter()
        cell = run.cell
        record = {
            "kind": "run",
            "experiment": run.experiment,
            "cell": cell.name,
            "run": run.index,
            "settings": cell.as_dict(),
            "seeds": {"root": self.root, "data": seed_of(self.root, "data", run.data_key), "run": self._seed(run)},
            "versions": self._versions,
            "data": loaded.facts,
        }
        if cell.method is None:
            record |= {"constants": _constants(loaded.problem), "result": None, "trace": {}, "score": None}
            seconds = {"solve": time.perf_counter() - ready, "score": 0.0}
        else:
            found, seconds = self._solve(run, loaded)
            record |= found
        record["seconds"] = {"data": ready - began, "processor": time.process_time() - worked} | seconds
        record["process"], record["peak_megabytes"] = os.getpid(), peak_megabytes()
        record["finished"] = time.time()
        return record

    def _data(self, run: Run) -> Loaded:
        key = run.data_key
        if self._held is None or self._held[0] != key:
            self._held = None  # first, so that two data sets are never in memory at once
            gc.collect()  # a solver's run and its watch know each other
            self._held = key, load(run.cell.data, self.root, run.index)
        return self._held[1]

    def _seed(self, run: Run) -> int:
        return seed_of(self.root, "run", *run.key)

    def _solve(self, run: Run, loaded: Loaded) -> tuple[dict[str, Any], dict[str, float]]:
        cell, problem = run.cell, loaded.problem
        if cell.ridge is not None:
            problem = settled(Problem(problem.rows, ridge=cell.ridge))
        # Runs of the same number start from the same point, whatever the method.
        origin = np.random.default_rng(seed_of(self.root, "start", run.data_key, run.index))
        start: dict[str, Vector | None] = {"theta": None, "omega": None}
        if cell.start is not None:
            start = {name: origin.uniform(*cell.start, size=problem.dim) for name in start}
        distances = _Distances(problem, start["theta"]) if cell.distance else None
        budget: dict[str, Any] = {"passes": cell.passes} if cell.epochs is None else {"epochs": cell.epochs}
        began = time.perf_counter()
        solution = cell.method.solve(
            problem, **budget, record=cell.record, seed=self._seed(run), callback=distances and distances.look, **start
        )
        solved = time.perf_counter()
        scored = None
        if cell.episodes:
            task_seed = seed_of(self.root, "score", run.data_key)
            scores = score(
                loaded.environment,
                solution.theta,
                loaded.feature_map,
                episodes=cell.episodes,
                limit=cell.data.limit,
                seed=task_seed,
            )
            scored = {
                "mean_length": float(scores.mean_lengths[0]),
                "ended": float(scores.terminated.mean()),
                "all_zero": not solution.theta.any(),
            }
        result = _result(solution)
        if not cell.episodes:
            first = np.zeros(problem.dim) if start["theta"] is None else start["theta"]
            result["mspbe"] = {"start": problem.mspbe(first), "end": problem.mspbe(solution.theta)}
        found = {"result": result, "trace": _trace(solution, distances), "score": scored}
        return found, {"solve": solved - began, "score": time.perf_counter() - solved, "clock": solution.seconds}


class _Distances:
    """Squared distances to the solution at the recorded points, as shares of that of the start."""

    def __init__(self, problem: Problem, start: Vector | None) -> None:
        self.solution = LSTD().solve(problem).theta
        theta = np.zeros(problem.dim) if start is None else start
        self.first = float(np.square(theta - self.solution).sum())
        self.shares: dict[int, float] = {0: 1.0}

    def look(self, progress: Progress) -> None:
        """Note one point."""
        if progress.mspbe is not None:
            self.shares[progress.row_visits] = float(np.square(progress.theta - self.solution).sum()) / self.first


def _result(solution: Solution) -> dict[str, Any]:
    residual = solution.relative_residual
    return {
        "status": solution.status.value,
        "message": solution.message,
        "solver": method_as_dict(solution.solver),
        "row_visits": solution.row_visits,
        "setup_visits": solution.setup_visits,
        "passes": solution.passes,
        "epochs": solution.epochs,
        "relative_residual": residual if np.isfinite(residual) else None,
    }


def _trace(solution: Solution, distances: _Distances | None) -> dict[str, list[float]]:
    columns = {name: column.tolist() for name, column in solution.trace.as_dict().items()}
    if distances is not None:
        columns["distance"] = [distances.shares[visits] for visits in columns["row_visits"]]
    return columns


def _constants(problem: Problem) -> dict[str, Any]:
    """The theory's constants and predicted costs, or why there are none."""
    try:
        known = theory.constants(problem)
        start = known.distance()
        costs = {
            str(share): [
                {
                    "method": cost.method,
                    "formula": cost.formula,
                    "passes": cost.passes,
                    "corrected_passes": cost.corrected_passes,
                    "bound_passes": None if cost.bound is None else cost.bound / cost.n_rows,
                }
                for cost in theory.table_1(known, share * start)
            ]
            for share in ACCURACIES
        }
    except InputError as error:
        return {"refused": str(error)}
    return {"numbers": known.as_dict(), "costs": costs}


def versions() -> dict[str, str]:
    """Versions of what the numbers depend on."""
    out = {"python": platform.python_version()}
    for name in ("valuate", "numpy", "scipy", "numba"):
        try:
            out[name] = version(name)
        except PackageNotFoundError:
            out[name] = str(getattr(sys.modules.get(name), "__version__", "unknown"))
    return out


def peak_megabytes() -> float | None:
    """The most memory that this process has used so far, where the system tells."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / (1 << 20) if sys.platform == "darwin" else most / (1 << 10)
