"""Many transitions between few states, through the public interface."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import solvers
from valuate.bench import data
from valuate.bench.steps import advancing, draw, moving_point
from valuate.bench.timing import NotHere, Taken, clocked, interleaved
from valuate.problem import Problem
from valuate.solution import Status

if TYPE_CHECKING:
    from valuate.bench.scale import Scale

STATUS, FORGET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
#: Safe for rows of length 1.
STEP = 0.05


def one_pass(scale: Scale, *, method: str) -> Taken:
    """A row visit of a pass of a method, its own clock, held against the step in cache."""
    rng = np.random.default_rng(31)
    problem = Problem.from_table(**_log(scale.table_rows, rng))
    few = data.indexed(data.STATES, data.CACHED_ROWS, data.DIM, "float64", rng)
    solver = getattr(solvers, method)(step_theta=STEP, step_omega=STEP)

    def visit() -> float:
        solution = solver.solve(problem, passes=1, seed=int(rng.integers(1 << 30)))
        if solution.status is Status.DIVERGED:
            raise FloatingPointError(solution.message)
        return float(1e9 * solution.seconds / solution.row_visits)

    steps = scale.cached_steps
    samplers = {
        "row visit": visit,
        "step in cache": clocked(advancing(few, moving_point(few, rng)), lambda: draw(few, steps, rng), steps),
    }
    return Taken(interleaved(samplers, scale.rounds), notes=[f"{scale.table_rows:,} rows"])


def memory(scale: Scale) -> Taken:
    """Memory that building the problem adds to its inputs, at its peak, a row."""
    if not STATUS.exists():
        raise NotHere("needs /proc")
    rng = np.random.default_rng(32)
    Problem.from_table(**_log(1000, rng))  # loads all code
    log = _log(scale.table_rows, rng)
    try:
        FORGET.write_text("5")  # the peak so far; making the inputs is not what is measured
    except OSError as error:
        raise NotHere("needs a /proc/self/clear_refs that can be written") from error
    before = _resident("VmRSS")
    problem = Problem.from_table(**log)
    peak, kept = _resident("VmHWM") - before, _resident("VmRSS") - before
    rows = problem.n_rows
    return Taken(
        {"at the peak": [peak / 1e6], "kept": [kept / 1e6]},
        unit="MB",
        value=peak / rows,
        notes=[f"{rows:,} rows, {len(log['states']) * 24 / 1e6:,.0f} MB of inputs not counted"],
    )


def _log(n: int, rng: np.random.Generator) -> dict[str, Any]:
    states, next_states = (rng.integers(0, data.STATES, n) for _ in range(2))
    table = data.random_table(data.STATES, data.DIM, "float64", rng)[:, : data.DIM]
    return {
        "table": table,
        "states": states,
        "rewards": rng.standard_normal(n),
        "next_states": next_states,
        "discount": data.DISCOUNT,
    }


def _resident(field: str) -> int:
    line = next(line for line in STATUS.read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])
