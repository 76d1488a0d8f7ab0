"""Options that several commands have, and how they print."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from valuate.errors import InputError

if TYPE_CHECKING:
    from valuate.transitions import Transitions

Log = Annotated[str, typer.Argument(help="Parquet, CSV, NPZ or HDF5 file, or a Minari data set.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column", help="What is called otherwise: states=x,y or rewards=r. Once for each.", metavar="OURS=THEIRS"
    ),
]
Format = Annotated[
    str | None, typer.Option(help="Where the name does not say it: csv, parquet, ..., or d4rl, rllib, ...")
]
Done = Annotated[str | None, typer.Option(help="What a lone column done means: terminated, or ended for any reason.")]
Discount = Annotated[float, typer.Option(help="In [0, 1].")]
Features = Annotated[
    str, typer.Option(help='"auto" chooses; or linear, polynomial:2, fourier:3, tiles:8x16, rbf:5, onehot, ...')
]
Ridge = Annotated[float, typer.Option(help="On the weights, not on the intercept.", min=0)]
Seed = Annotated[int, typer.Option(help="All random numbers follow from it.", min=0)]
Force = Annotated[bool, typer.Option("--force", help="Write over files that exist.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def read_log(source: str, columns: list[str] | None, format: str | None, done: str | None) -> Transitions:
    """The log that the options of a command mean."""
    from valuate import io

    return io.read(source, read_columns(columns), format=format, done=done)


def read_columns(given: list[str] | None) -> dict[str, Any] | None:
    """``states=x,y`` as ``{"states": ["x", "y"]}``; ``next_states=`` says that there is no such column."""
    if not given:
        return None
    out: dict[str, Any] = {}
    for text in given:
        ours, equals, theirs = text.partition("=")
        if not equals:
            raise InputError(f"--column {text}: write what it is, an equals sign and the column, as in rewards=r.")
        names = [name.strip() for name in theirs.split(",") if name.strip()]
        out[ours.strip()] = None if not names else names[0] if len(names) == 1 else names
    return out


def require_free(force: bool, outputs: dict[str, Path | None], inputs: dict[str, str | Path | None]) -> None:
    """Before any work: nothing is written over that is read, is written already, or exists (unless forced).

    Parameters
    ----------
    force : bool
    outputs, inputs : dict
        Files by what the user calls them: an option such as "--out", or what stands in its place.
    """
    wanted = {option: path for option, path in outputs.items() if path is not None}
    before: dict[str, Path] = {}
    for option, path in wanted.items():
        for what, source in inputs.items():
            if source is not None and _same(path, Path(source)):
                raise InputError(f"{option} {path} is the {what} itself, which would be lost. Give another name.")
        for other, taken in before.items():
            if _same(path, taken):
                raise InputError(f"{other} and {option} are both {path}: one would write over the other.")
        before[option] = path
    for path in wanted.values():
        if path.exists() and not force:
            raise InputError(f"{path} exists already. Give --force to write over it, or another name.")
        if not path.absolute().parent.is_dir():
            raise InputError(f"The folder {path.absolute().parent.name} for {path.name} does not exist. Make it first.")


def _same(one: Path, other: Path) -> bool:
    """Whether two names are one file's, be it there or not, and whatever links lead to it."""
    try:
        return one.samefile(other)
    except OSError:
        return one.resolve() == other.resolve()


def write_text(path: Path, text: str) -> None:
    """Whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None


def print_json(value: dict[str, Any]) -> None:
    """Numbers that JSON does not have become null."""
    typer.echo(json.dumps(_plain(value), indent=2))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not -float("inf") < value < float("inf"):
        return None
    return value if value is None or isinstance(value, str | int | float | bool) else str(value)


class Steps:
    """Says on a terminal what is being done; silent when its output is piped."""

    def __init__(self, progress: Progress, count: int) -> None:
        self._progress, self._task = progress, progress.add_task("", total=count)

    def __call__(self, text: str) -> None:
        """The next step begins."""
        done = self._progress.tasks[0].description != ""
        self._progress.update(self._task, description=text, advance=1 if done else 0)


@contextmanager
def steps(count: int, *, quiet: bool = False) -> Iterator[Steps]:
    """A bar on standard error with so many steps."""
    console = Console(stderr=True)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet or not console.is_terminal) as progress:
        yield Steps(progress, count)


@contextmanager
def warnings_kept() -> Iterator[list[str]]:
    """Warnings as sentences, each once, to be printed with the answer."""
    found: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield found
    for warning in caught:
        text = str(warning.message)
        if text not in found:
            found.append(text)
