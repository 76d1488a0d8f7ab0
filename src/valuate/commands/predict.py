"""``valuate predict``: the values of a log's states by a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from valuate.commands import options
from valuate.errors import InputError


def predict(
    model: Annotated[Path, typer.Argument(help="What valuate fit wrote with --out.", dir_okay=False)],
    log: options.Log,
    out: Annotated[Path | None, typer.Option(help="Write the values here, a line a row (.csv) or .npy.")] = None,
    column: options.Columns = None,
    format: options.Format = None,
    done: options.Done = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Print the values of the states of a log (or of its actions, for a model of these), in its order.

    Example: valuate predict model.valuate log.csv --out values.csv
    """
    from valuate.estimator import load_model

    options.refuse_existing(force, out)
    with options.steps(3, quiet=as_json) as tell:
        tell("Reading")
        fitted = load_model(model)
        read = options.read_log(log, column, format, done)
        tell("Predicting")
        actions: dict[str, Any] = {}
        if fitted.kind_ == "action":
            if read.actions is None:
                raise InputError(
                    "the model is of action values and the log has no actions. Name them: --column actions=a."
                )
            actions = {"actions": read.actions}
        values = fitted.predict(read.states, **actions)
        if out is not None:
            _write(out, values)
    if as_json:
        options.print_json({"rows": len(values), "values": values.tolist(), "out": out and str(out)})
    elif out is None:
        typer.echo("\n".join(f"{value:.10g}" for value in values))
    else:
        typer.echo(f"{len(values):,} values, {values.min():.4g} to {values.max():.4g}: {out}")


def _write(path: Path, values: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    if path.suffix != ".npy":
        options.write_text(path, "value\n" + "\n".join(f"{value:.17g}" for value in values) + "\n")
        return
    part = path.with_name(path.name + ".part")
    try:
        with part.open("wb") as file:
            np.save(file, values)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from None
