"""The command line: parse, call, print."""

from __future__ import annotations

import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from valuate import __version__, commands
from valuate.commands.wording import as_typed
from valuate.errors import ValuateError

app = typer.Typer(
    help="Estimate how much reward a policy earns, from a log of transitions.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"valuate {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Options of all commands."""


commands.add_to(app)


bench_app = typer.Typer(rich_markup_mode="rich")
app.add_typer(bench_app, name="bench")


@bench_app.callback(invoke_without_command=True)
def bench(
    context: typer.Context,
    quick: Annotated[bool, typer.Option(help="Smaller sizes: a minute instead of several.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only measurements whose name contains this.")] = None,
    strict: Annotated[bool, typer.Option(help="Exit with 1 where a target is missed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the JSON to this file as well.", dir_okay=False)] = None,
) -> None:
    """Measure the speed of this machine's own limits and of the solvers beside them, as ratios within one run.

    Example: valuate bench --quick --only sparse
    """
    if context.invoked_subcommand is not None:
        return
    from valuate import bench as benchmarks

    report = benchmarks.run_and_show(quick=quick, only=only, quiet=as_json)
    if as_json:
        typer.echo(report.to_json())
    if out is not None:
        out.write_text(report.to_json() + "\n")
    if strict and report.missed:
        raise typer.Exit(1)


@bench_app.command("accuracy")
def bench_accuracy(
    full: Annotated[bool, typer.Option(help="The whole grid and all solvers: hours instead of minutes.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only problems whose name contains this.")] = None,
    solver: Annotated[list[str] | None, typer.Option(help="Only solvers whose name contains this.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    out: Annotated[Path | None, typer.Option(help="Write the JSON to this file as well.", dir_okay=False)] = None,
    page: Annotated[
        Path | None, typer.Option(help="Write tables and charts to this HTML file.", dir_okay=False)
    ] = None,
) -> None:
    """Measure the seconds to an accuracy of every solver, and of what NumPy, SciPy and JAX offer, side by side.

    Example: valuate bench accuracy --only dense-2e4-200 --page accuracy.html
    """
    from valuate.bench import accuracy

    report = accuracy.run_and_show(full=full, only=only, solvers=solver, quiet=as_json, out=out, page=page)
    if as_json:
        typer.echo(report.to_json())


@app.command()
def reproduce(
    names: Annotated[
        list[str] | None, typer.Argument(help="figure-1, figure-2, table-1, table-2, table-3; or all. [default: all]")
    ] = None,
    scale: Annotated[str, typer.Option(help="smoke: a minute, little data; paper: the paper's sizes.")] = "smoke",
    runs: Annotated[int | None, typer.Option(help="Runs or repetitions, in place of the scale's.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="All random numbers follow from it.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(help="Folder of the results. [default: reproduction-SCALE]")] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes. [default: one a core]", min=1)] = None,
    grid: Annotated[bool, typer.Option("--grid", help="Figure 1 also at the best steps of the paper's grid.")] = False,
    right_termination: Annotated[
        bool, typer.Option("--right-termination", help="Table 3 with nothing after the end of an episode.")
    ] = False,
) -> None:
    """Run the paper's experiments and write a report that compares them with its numbers.

    Every finished run is kept: the same command goes on where an earlier one ended.

    Example: valuate reproduce figure-1 table-2 --out here
    """
    from valuate import experiments
    from valuate.report import in_short, make_report

    outcome = experiments.reproduce(
        names or ["all"],
        scale=scale,
        runs=runs,
        seed=seed,
        out=out,
        jobs=jobs,
        grid=grid,
        right_termination=right_termination,
    )
    for note in outcome.notes:
        typer.echo(note, err=True)
    kept = f", {outcome.kept} kept from before" if outcome.kept else ""
    if outcome.interrupted:
        typer.echo(
            f"Stopped. {outcome.done} runs are finished{kept} and lie in {outcome.folder}; the same command goes on "
            "with the rest.",
            err=True,
        )
        raise typer.Exit(130)
    typer.echo(f"{outcome.done} runs in {outcome.seconds:.0f} s{kept}. Report: {make_report(outcome.folder)}")
    typer.echo(in_short(outcome.folder))
    for run, reason in outcome.failed:
        typer.echo(f"Failed: {run}: {reason}", err=True)
    if outcome.failed:
        raise typer.Exit(1)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="Folder that reproduce made.", file_okay=False)],
) -> None:
    """Write the report of a reproduction again, from the runs that it has.

    Example: valuate report reproduction-smoke
    """
    from valuate.report import make_report

    typer.echo(str(make_report(folder)))


def main() -> None:
    """Run the command line; what a user can mend ends with one message and exit code 2."""
    try:
        try:
            app()
        finally:
            # What a full disk or a closed pipe does not take shows here, while something can still be said of it.
            if sys.stdout is not None:
                sys.stdout.flush()
    except ValuateError as error:
        _end(type(error).__name__, as_typed(str(error)))
    except BrokenPipeError:
        _drop_output()
        sys.exit(1)
    except OSError as error:
        _drop_output()
        why = error.strerror or str(error)
        _end("OSError", f"{error.filename}: {why}." if error.filename else f"Not all could be written or read: {why}.")
    except (ValueError, TypeError) as error:
        if not _by_scikit_learn(error):
            raise
        _end(type(error).__name__, as_typed(" ".join(str(error).split())))


def _end(kind: str, message: str) -> NoReturn:
    Console(stderr=True).print(Text.assemble((f"{kind}: ", "red"), message), soft_wrap=True)
    sys.exit(2)


def _drop_output() -> None:
    """What could not be printed is not tried again when Python ends, which would end in a second complaint."""
    with suppress(OSError):  # where output goes to no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _by_scikit_learn(error: BaseException) -> bool:
    """Whether scikit-learn refused what it was given; any other error that is not ours is a defect."""
    modules = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    ours = max(place for place, name in enumerate(modules) if name.partition(".")[0] == "valuate")
    return any(name.partition(".")[0] == "sklearn" for name in modules[ours:])
