"""``valuate inspect``: the doctor."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from valuate.commands import options
from valuate.commands.wording import as_typed

if TYPE_CHECKING:
    from valuate.inspecting import Findings


def inspect(
    log: options.Log,
    discount: options.Discount = 0.99,
    features: Annotated[
        str | None, typer.Option(help='Also look at these features: "auto", linear, polynomial:2, ...')
    ] = None,
    ridge: options.Ridge = 0.0,
    accept: Annotated[list[str] | None, typer.Option(help="A finding that you know to be right, by its code.")] = None,
    column: options.Columns = None,
    format: options.Format = None,
    done: options.Done = None,
    as_json: options.AsJson = False,
) -> None:
    """Look for what in a log would make an answer wrong: shifted next states, missing ends, outliers, ...

    Exit codes: 0; 1 where something would make the answer wrong; 2 where the log cannot be read.

    Example: valuate inspect log.parquet --features auto
    """
    from valuate import inspecting

    with options.steps(3, quiet=as_json) as tell:
        tell("Reading")
        read = options.read_log(log, column, format, done)
        feature_map, note = None, ""
        if features is not None:
            from valuate import features as maps

            tell("Features")
            if features == "auto":
                feature_map, note = maps.choose(read)
            else:
                feature_map = maps.from_text(features, read)
        tell("Looking")
        found = inspecting.inspect(read, feature_map, discount=discount, ridge=ridge, accept=accept or ())
    if as_json:
        reading = None if read.reading is None else read.reading.as_dict()
        options.print_json(found.as_dict() | {"reading": reading, "features": note or features})
    else:
        console = Console()
        if note:
            console.print(as_typed(note), markup=False)
        console.print(_typed(found).table())
    raise typer.Exit(found.exit_code)


def _typed(found: Findings) -> Findings:
    """The same findings, in the words of the command line."""
    return replace(
        found, findings=tuple(replace(one, message=as_typed(one.message), advice=as_typed(one.advice)) for one in found)
    )
