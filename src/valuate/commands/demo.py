"""``valuate demo``: from nothing to a number, by the commands that a user would type."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from valuate.commands import files, fit, inspect, options


def demo(
    folder: Annotated[
        Path, typer.Option(help="Where log, model and page go; made where missing.", file_okay=False)
    ] = Path("valuate-demo"),
    steps: Annotated[int, typer.Option(help="Transitions in the log.", min=500)] = 20_000,
    seed: options.Seed = 0,
    force: options.Force = False,
) -> None:
    """Collect a Cart Pole log, look at it, fit it, print the value with its interval, and write the page.

    Example: valuate demo --folder somewhere
    """
    folder.mkdir(parents=True, exist_ok=True)
    log, model, page = (folder / name for name in ("cart-pole.parquet", "model.valuate", "report.html"))
    options.require_free(force, {"log": log, "model": model, "page": page}, {})
    _say(f"valuate collect cart-pole --steps {steps} --seed {seed} --out {log}")
    files.collect("cart-pole", steps, log, seed, force=True)
    _say(f"valuate inspect {log}")
    ended = 0
    try:
        inspect.inspect(str(log))
    except typer.Exit as end:
        ended = end.exit_code
    _say(f"valuate fit {log} --out {model} --report {page}")
    fit.fit(str(log), out=model, report=page, force=True)
    typer.echo(f"\nThe number is the mean discounted return of random actions. Open {page.absolute().as_uri()}")
    raise typer.Exit(ended)


def _say(command: str) -> None:
    typer.secho(f"\n$ {command}", bold=True)
