"""``valuate compare``: all solvers on one log."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from valuate.commands import options
from valuate.errors import InputError

if TYPE_CHECKING:
    from valuate.problem import Problem
    from valuate.solution import Solution

#: Solvers in the order of the table: all at their defaults but the direction.
SOLVERS: dict[str, tuple[str, dict[str, Any]]] = {
    "Auto": ("Auto", {}),
    "LSTD": ("LSTD", {}),
    "GMRES": ("GMRES", {}),
    "BiCGSTAB": ("BiCGSTAB", {}),
    "LSMR": ("LSMR", {}),
    "GCR": ("GCR", {}),
    "TD-SVRG": ("SVRG", {"direction": "td"}),
    "TD": ("TD", {"average": True, "sampling": "log", "decay": 0.5}),
    "SVRG": ("SVRG", {}),
    "BatchingSVRG": ("BatchingSVRG", {}),
    "SCSG": ("SCSG", {}),
    "SAGA": ("SAGA", {}),
    "TDC": ("TDC", {}),
    "GTD2": ("GTD2", {}),
}


def compare(
    log: options.Log,
    discount: options.Discount = 0.99,
    features: options.Features = "auto",
    ridge: options.Ridge = 1e-5,
    passes: Annotated[float, typer.Option(help="Budget of each solver, in passes over the rows.", min=1)] = 30,
    solvers: Annotated[list[str] | None, typer.Option("--solver", help="Only these; once for each.")] = None,
    chart: Annotated[Path | None, typer.Option(help="Write the chart (HTML) here.", dir_okay=False)] = None,
    column: options.Columns = None,
    format: options.Format = None,
    done: options.Done = None,
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Solve one log with every solver: how near each comes, in how many passes and seconds.

    Example: valuate compare log.parquet --passes 50 --chart solvers.html
    """
    from valuate import Problem, floor

    options.require_free(force, {"--chart": chart}, {"log": log})
    names = _chosen(solvers)
    with options.steps(len(names) + 2, quiet=as_json) as tell:
        tell("Reading")
        read = options.read_log(log, column, format, done)
        problem = Problem.from_transitions(read, _features(features, read), discount=discount, ridge=ridge)
        found = {}
        for name in names:
            tell(name)
            found[name] = _solve(name, problem, passes, seed)
        tell("Measuring")
        rows = [_row(name, problem, solution) for name, solution in found.items()]
        best = min(found.values(), key=lambda solution: problem.mspbe(solution.theta))
        level = floor.floor(problem, best.theta, seed=seed).value
    if chart is not None:
        _write_chart(chart, found, level, str(problem), rows)
    if as_json:
        options.print_json({"problem": str(problem), "floor": level, "solvers": rows, "chart": chart and str(chart)})
        return
    Console().print(_table(rows, level, str(problem)))
    if chart is not None:
        typer.echo(f"Chart: {chart}")


def _chosen(given: list[str] | None) -> list[str]:
    known = {name.lower(): name for name in SOLVERS}
    if not given:
        return list(SOLVERS)
    missing = [name for name in given if name.lower() not in known]
    if missing:
        raise InputError(f"There is no solver {missing[0]!r} here. There are: {', '.join(SOLVERS)}.")
    return [known[name.lower()] for name in given]


def _features(text: str, log: Any) -> Any:
    from valuate import features

    if text == "none":
        return None
    return features.choose(log)[0] if text == "auto" else features.from_text(text, log)


def _solve(name: str, problem: Problem, passes: float, seed: int) -> Solution:
    from valuate import Problem, solvers

    # A problem of its own: what one solver has computed is not there for the next.
    fresh = Problem(problem.rows, ridge=problem.ridge, episodes=problem.episodes)
    kind, settings = SOLVERS[name]
    solution: Solution = getattr(solvers, kind)(**settings).solve(
        fresh, passes=passes, record=max(passes / 60, 0.1), seed=seed
    )
    return solution


def _row(name: str, problem: Problem, solution: Solution) -> dict[str, Any]:
    return {
        "solver": name,
        "used": repr(solution.solver),
        "mspbe": problem.mspbe(solution.theta),
        "relative_residual": problem.relative_residual(solution.theta),
        "passes": solution.passes,
        "setup_passes": solution.setup_visits / problem.n_rows,
        "seconds": solution.seconds,
        "status": solution.status.value,
        "message": solution.message,
    }


def _table(rows: list[dict[str, Any]], level: float, title: str) -> Table:
    table = Table(
        title=f"{title}. Statistical floor of the MSPBE: {level:.2g}", title_justify="left", box=box.SIMPLE_HEAD
    )
    for name in ("solver", "MSPBE", "/ floor", "passes", "+ setup", "seconds", "status"):
        table.add_column(name, justify="left" if name in ("solver", "status") else "right", no_wrap=True)
    for row in rows:
        share = row["mspbe"] / level if level > 0 else float("nan")
        table.add_row(
            row["solver"], f"{row['mspbe']:.2g}", f"{share:.2g}", f"{row['passes']:.4g}",
            f"{row['setup_passes']:.3g}", f"{row['seconds']:.2g}", row["status"],
        )  # fmt: skip
    return table


def _write_chart(path: Path, found: dict[str, Solution], level: float, title: str, rows: list[dict[str, Any]]) -> None:
    from valuate.report.solvers import solvers_page

    traces = {name: solution.trace for name, solution in found.items()}
    options.write_text(path, solvers_page(path, traces, level, title, rows))
