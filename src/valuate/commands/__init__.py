"""The commands for people with a log: each parses, calls the library and prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from valuate.commands import compare, demo, files, fit, inspect, predict

if TYPE_CHECKING:
    import typer

#: In the order in which help lists them.
COMMANDS = (fit.fit, inspect.inspect, predict.predict, compare.compare, files.collect, files.convert, demo.demo)


def add_to(app: typer.Typer) -> None:
    """Make the commands part of the command line."""
    for command in COMMANDS:
        app.command()(command)
