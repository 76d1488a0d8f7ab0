"""``valuate predict``: the values of a table's states by a saved model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from valuate.commands import options
from valuate.errors import InputError

if TYPE_CHECKING:
    from valuate.estimator import LinearValue
    from valuate.io import States


def predict(
    model: Annotated[Path, typer.Argument(help="What valuate fit wrote with --out.", dir_okay=False)],
    log: Annotated[str, typer.Argument(help="A file with states, as a log has them; nothing else is needed.")],
    out: Annotated[Path | None, typer.Option(help="Write the values here, a line a row (.csv) or .npy.")] = None,
    column: options.Columns = None,
    format: options.Format = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
) -> None:
    """Print a value for every row of a file, in its order: of the states, or of the actions for a model of these.

    The columns and the texts in them are those that the model was fitted to, whatever their order in the file.

    Example: valuate predict model.valuate log.csv --out values.csv
    """
    from valuate.estimator import load_model

    options.require_free(force, {"--out": out}, {"log": log, "model": model})
    with options.steps(3, quiet=as_json) as tell:
        tell("Reading")
        fitted = load_model(model)
        read = _read(fitted, log, options.read_columns(column) or {}, format)
        states = _shaped(fitted, read, log)
        tell("Predicting")
        actions: dict[str, Any] = {}
        if fitted.kind_ == "action":
            if read.actions is None:
                raise InputError(
                    "the model is of action values and the file has no actions. Name them: --column actions=a."
                )
            actions = {"actions": read.actions}
        values = fitted.predict(states, **actions)
        if out is not None:
            _write(out, values)
    if as_json:
        options.print_json({"rows": len(values), "values": values.tolist(), "out": out and str(out)})
    elif out is None:
        typer.echo("\n".join(f"{value:.10g}" for value in values))
    else:
        typer.echo(f"{len(values):,} values, {values.min():.4g} to {values.max():.4g}: {out}")


def _read(fitted: LinearValue, source: str, given: dict[str, Any], format: str | None) -> States:
    """The states of a file, with the columns and texts of the model unless others are given."""
    from valuate import io

    reading = getattr(fitted, "reading_", None)
    roles = ("states", "actions") if fitted.kind_ == "action" else ("states",)
    own = {} if reading is None else {role: reading.columns[role] for role in roles if role in reading.columns}
    columns = own | given | ({} if "actions" in roles else {"actions": None})
    labels = None if reading is None else reading.labels
    renamed = None if labels is None else _renamed(labels, own, columns)
    try:
        return io.read_states(source, columns, format=format, labels=renamed)
    except InputError as error:
        # A file of ours may keep columns in another form than under their names, and texts as numbers.
        found = _plainly(source, format, labels)
        asked = [role for role in roles if role in columns]
        if found is not None and all(_names(found, role) == _several(columns[role]) for role in asked):
            return found
        taken = {role: names for role, names in own.items() if role not in given}
        raise _explained(error, taken, _plainly(source, format, None)) from None


def _plainly(source: str, format: str | None, labels: Any) -> States | None:
    """A file as it is read by itself, where it can be."""
    from valuate import io

    try:
        return io.read_states(source, format=format, labels=labels)
    except InputError:
        return None


def _names(found: States, role: str) -> tuple[str, ...]:
    return _several(found.reading.columns.get(role))


def _explained(error: InputError, own: dict[str, Any], plain: States | None) -> InputError:
    """Of a column that is missing: that its name is the model's and not the user's, and what to type."""
    if not own or "there is no such column" not in str(error):
        return error
    said = str(error).replace("columns names", "the model names")
    order = " and ".join(f"{role} from {', '.join(_several(names))}" for role, names in own.items())
    found = {role: (plain and _names(plain, role)) or ("...",) for role in own}
    typed = " ".join(f"--column {role}={','.join(names)}" for role, names in found.items())
    return InputError(f"{said} The model has {order}: name what these are here, in that order, as {typed}.")


def _renamed(labels: dict[str, Any], own: dict[str, Any], columns: dict[str, Any]) -> dict[str, Any]:
    """Labels of the model's columns, under the names that these columns have in the file."""
    out = dict(labels)
    for role, names in own.items():
        for ours, theirs in zip(_several(names), _several(columns[role]), strict=False):
            if ours in labels:
                out[theirs] = labels[ours]
    return out


def _several(names: Any) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


def _shaped(fitted: LinearValue, read: States, source: str) -> Any:
    """The states in the form that the model knows; a message of ours where they have another width."""
    wanted = getattr(fitted, "n_features_in_", None)
    shape = read.states.shape[1:]
    width = int(np.prod(shape, dtype=int))
    if wanted is not None and width != wanted:
        found = ", ".join(_several(read.reading.columns["states"]))
        raise InputError(
            f"the states of {source} have {width} number{'s' * (width != 1)} ({found}), and those of the model "
            f"{wanted}. Name their columns, in the model's order: --column states=..."
        )
    if wanted == 1:  # a column of its own is (n,) from a table and may have been (n, 1) in Python
        return read.states.reshape((-1,) if getattr(fitted, "_single_numbers", False) else (-1, 1))
    return read.states


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
