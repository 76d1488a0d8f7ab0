"""``valuate collect`` and ``valuate convert``: logs to files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from valuate.commands import options
from valuate.commands.wording import as_typed


def collect(
    environment: Annotated[str, typer.Argument(help="acrobot, cart-pole, mountain-car, random-walk, garnet, ...")],
    steps: Annotated[int, typer.Option(help="Transitions.", min=1)] = 10_000,
    out: Annotated[Path, typer.Option(help="Parquet or NPZ file.", dir_okay=False)] = Path("log.parquet"),
    seed: options.Seed = 0,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Write a log of random actions in one of the built-in environments.

    Example: valuate collect cart-pole --steps 20000 --out log.parquet
    """
    from valuate import environments, io

    options.require_free(force, {"--out": out}, {})
    with options.steps(2, quiet=as_json) as tell:
        tell("Collecting")
        log = environments.make(environment).collect(steps, seed=seed)
        tell("Writing")
        io.write(log, out, force=force)
    if as_json:
        counts = {"rows": len(log), "terminated": int(log.terminated.sum()), "truncated": int(log.truncated.sum())}
        options.print_json({"out": str(out), "environment": environment} | counts)
    else:
        typer.echo(f"{out}: {len(log):,} rows, {log.terminated.sum():,} terminated, {log.truncated.sum():,} truncated")


def convert(
    source: Annotated[str, typer.Argument(help="A log of any kind that can be read.")],
    out: Annotated[Path, typer.Argument(help="Parquet or NPZ file.", dir_okay=False)],
    column: options.Columns = None,
    format: options.Format = None,
    done: options.Done = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Read a log of any kind and write it as Parquet or NPZ, with nothing lost and the columns' names clear.

    Example: valuate convert old.csv log.parquet --done terminated
    """
    from valuate import io

    options.require_free(force, {"the output": out}, {"log": source})
    with options.steps(1, quiet=as_json) as tell:
        tell("Converting")
        log = io.convert(source, out, options.read_columns(column), format=format, done=done, force=force)
    if as_json:
        options.print_json({"out": str(out), "reading": None if log.reading is None else log.reading.as_dict()})
    else:
        if log.reading is not None:
            typer.echo(as_typed(str(log.reading)))
        typer.echo(f"Written: {out}")
