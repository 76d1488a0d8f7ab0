"""`read`: from a file or an object in memory to a log."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError, InputTypeError
from valuate.io import csv, episodes, hdf5, minari, npz, own
from valuate.io.arrow import ArrowTable, PandasTable, pyarrow
from valuate.io.assembling import Options, assemble
from valuate.io.columns import Arrays
from valuate.io.ends import DONE, LAST_STEP
from valuate.io.layouts import LAYOUTS, spoken
from valuate.io.parquet import ParquetTable
from valuate.io.paths import FILE_FORMATS, format_of, readable, require_file
from valuate.io.resolving import wanted_columns
from valuate.io.writing import write
from valuate.transitions import Transitions

if TYPE_CHECKING:
    from valuate.io.columns import Table

__all__ = ["convert", "read"]


def read(
    source: Any,
    columns: Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
    done: str | None = None,
    last_step: str | None = None,
) -> Transitions:
    """A log from a file or an object in memory, whatever its columns are called.

    Columns are recognised by the names that RLlib, D4RL, d3rlpy, SCOPE-RL, MushroomRL, RLDS, Minari and plain tables
    use. What was taken for what, which rows were left out and why is in ``log.reading``: print it. What a column means
    is never guessed where the answer depends on it: then an error says how to tell.

    Parameters
    ----------
    source : path or object
        A Parquet, CSV, NPZ, HDF5 or Arrow file; the folder or the name of a Minari data set; a pandas or polars data
        frame or an Arrow table; a dict of arrays; a list of episodes or of steps; a Minari data set, a d3rlpy replay
        buffer or a MushroomRL data set.
    columns : dict, optional
        Which columns are what, for those that are called otherwise: ``{"states": ["x", "y"], "rewards": "r"}``. The
        keys are ``states``, ``next_states``, ``actions``, ``next_actions``, ``rewards``, ``terminated``, ``truncated``,
        ``done``, ``last``, ``first``, ``episodes``, ``steps``, ``probabilities``, ``log_probabilities``, ``ratios``,
        ``weights`` and ``discounts``. Names may have ``*`` in them. None says that there is no such column:
        ``{"next_states": None}`` takes those of the next row.
    format : str, optional
        For files whose name does not say it: "parquet", "csv", "npz", "hdf5", "arrow" or "minari". Or whose way of
        naming columns is meant: "d4rl", "d3rlpy", "scope-rl", "rllib", "rlds", "mushroomrl", "minari".
    done : {"terminated", "ended"}, optional
        What a column ``done`` means where nothing else tells: that the process itself ended, so that nothing follows;
        or that an episode stopped for whatever reason.
    last_step : {"observation", "transition"}, optional
        Whether the last step of an episode holds nothing but the last observation, as in RLDS, or is a transition. None:
        an observation in RLDS steps, unless their rewards or discounts show otherwise.

    Returns
    -------
    Transitions
        With ``reading``. States in columns of their own become one C-contiguous array (n, k) of their common type.
        Where next states are those of other rows, each state is stored once. Text becomes codes, see
        ``reading.labels``.

    Raises
    ------
    InputError
        A file that is missing, damaged or empty, a column that is missing or ambiguous, a value that is out of place:
        with the name and the row, and what to do.
    MissingPartError
        Parquet, CSV and data frames need pyarrow, HDF5 needs h5py: ``pip install 'valuate[io]'``.

    Examples
    --------
    >>> log = read({"obs": [[0.0], [1.0], [2.0]], "reward": [0, 0, 1], "terminated": [False, False, True]})
    >>> print(log.reading)
    dict (arrays): 3 rows
      states      from obs
      rewards     from reward
      terminated  from terminated
    Note: Nothing says where the recording was cut (no truncated rows, no ids of episodes): every row that did not terminate is followed by the next one.
    """  # noqa: E501  # as it is printed
    _require_one_of("done", done, DONE)
    _require_one_of("last_step", last_step, LAST_STEP)
    wanted_columns(columns)
    container, layout = _named_format(format)
    options = Options(columns=columns, done=done, last_step=last_step, layout=layout)
    if isinstance(source, Transitions):
        raise InputTypeError("The source is Transitions already: there is nothing to read.")
    if isinstance(source, str | os.PathLike):
        return _read_path(Path(source), container, options)
    if container in FILE_FORMATS:
        raise InputError(f"format={format!r} is for files, and the source is a {type(source).__name__}.")
    return _read_object(source, options)


def convert(
    source: Any,
    target: Any,
    columns: Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
    done: str | None = None,
    last_step: str | None = None,
    force: bool = False,
) -> Transitions:
    """Read a log and write it to a Parquet or NPZ file.

    Parameters
    ----------
    source, columns, format, done, last_step
        As for `read`.
    target, force
        As for `write`.

    Returns
    -------
    Transitions
        The log that was read; its ``reading`` says what was done.
    """
    if Path(target).exists() and not force:
        raise InputError(f"{target} exists already. Give force=True to overwrite it, or another name.")
    log = read(source, columns, format=format, done=done, last_step=last_step)
    write(log, target, force=force)
    return log


def _named_format(format: str | None) -> tuple[str | None, str | None]:
    """The file format and the layout that a user means."""
    if format is None:
        return None, None
    if isinstance(format, str):
        if format.lower() == "minari":
            return "minari", "Minari"
        if format.lower() in FILE_FORMATS:
            return format.lower(), None
        if (layout := spoken(format)) is not None:
            return None, layout
    raise InputError(f"format must be one of {', '.join(map(repr, [*FILE_FORMATS, *LAYOUTS]))}, not {format!r}.")


def _require_one_of(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value is not None and value not in known:
        raise InputError(f"{name} must be {' or '.join(map(repr, known))}, not {value!r}.")


def _read_path(path: Path, container: str | None, options: Options) -> Transitions:
    if container in (None, "minari") and (folder := minari.find(path)) is not None:
        found = _guarded(minari.episodes_of(folder), folder, "minari")
        return _joined(found, "minari", str(path), options, "Minari")
    require_file(path)
    kind = format_of(path) if container in (None, "minari") else container
    if kind == "hdf5":
        return _read_hdf5(path, options)
    log: Transitions | None = None
    table: Table
    if kind == "parquet":
        table = ParquetTable(path)
        log = own.from_parquet(table, str(path)) if options == Options() else None
    elif kind == "npz":
        table = npz.read_npz(path)
        log = own.from_npz(table, str(path)) if options == Options() else None
    else:
        table = csv.read_csv(path) if kind == "csv" else _arrow_file(path)
    return log if log is not None else assemble(table, str(path), options)


def _read_hdf5(path: Path, options: Options) -> Transitions:
    with hdf5.opened(path) as (kind, content):
        if kind == "columns":
            return assemble(Arrays(content, "hdf5", path), str(path), options)
        layout = "Minari" if kind == "minari" else "d3rlpy"
        return _joined(_guarded(content, path, "hdf5"), "hdf5", str(path), options, layout)


def _guarded(items: Iterable[Any], path: Path, format: str) -> Iterator[Any]:
    with readable(path, format):
        yield from items


def _arrow_file(path: Path) -> ArrowTable:
    pa = pyarrow("Reading Arrow files")
    with readable(path, "arrow"), pa.memory_map(str(path), "r") as source:
        table = pa.ipc.open_file(source).read_all()
        table.validate(full=True)  # it is used where it lies, so that bad offsets would lead anywhere
        return ArrowTable(table, "arrow")


def _read_object(source: Any, options: Options) -> Transitions:
    home = type(source).__module__.partition(".")[0]
    kind = type(source).__name__
    if home == "pandas" and hasattr(source, "columns"):
        return assemble(PandasTable(source), "pandas data frame", options)
    if home == "polars" and kind in ("DataFrame", "LazyFrame"):
        pyarrow("Reading data frames")
        frame = source.collect() if kind == "LazyFrame" else source
        return assemble(ArrowTable(frame.to_arrow(), "polars"), "polars data frame", options)
    if home == "pyarrow" and hasattr(source, "schema"):
        pa = pyarrow("Reading Arrow tables")
        table = source if isinstance(source, pa.Table) else pa.Table.from_batches([source])
        return assemble(ArrowTable(table, "arrow"), "Arrow table", options)
    if isinstance(source, Mapping):
        return assemble(Arrays(source, "arrays"), kind, options)
    if isinstance(source, np.ndarray) and source.dtype.names:
        fields = {name: source[name] for name in source.dtype.names}
        return assemble(Arrays(fields, "arrays"), "structured array", options)
    if all(hasattr(source, name) for name in ("state", "next_state", "absorbing", "last")):
        fields = {name: getattr(source, name) for name in _MUSHROOM}
        return assemble(Arrays(fields, "arrays"), "MushroomRL data set", options)
    if hasattr(source, "iterate_episodes"):
        return _joined(source.iterate_episodes(), "minari", "Minari data set", options, "Minari")
    if hasattr(source, "episodes"):
        return _joined(source.episodes, "episodes", kind, options, "d3rlpy")
    if isinstance(source, Iterable) and not isinstance(source, np.ndarray | bytes):
        return _read_list(list(source), options)
    raise InputTypeError(
        f"A source of type {kind} cannot be read as a log. Give a path, a data frame, a dict of arrays, or a list of "
        "episodes."
    )


_MUSHROOM = ("state", "action", "reward", "next_state", "absorbing", "last")


def _read_list(items: list[Any], options: Options) -> Transitions:
    if not items:
        raise InputError("The list is empty: at least one episode is needed.")
    first = items[0]
    if isinstance(first, list | tuple) and len(first) == 6 and np.ndim(first[2]) == 0:
        fields = {name: [row[place] for row in items] for place, name in enumerate(_MUSHROOM)}
        return assemble(Arrays(fields, "arrays"), "list of steps", options)
    if isinstance(first, Mapping) and "steps" not in first and not _has_rows(first, options):
        joined, _ = episodes.join([items], wanted_columns(options.columns), "arrays", observed=False)
        return assemble(joined.without(episodes.EPISODE), "list of steps", options)
    layout = None if isinstance(first, Mapping) else "Minari" if hasattr(first, "terminations") else "Gymnasium"
    return _joined(items, "episodes", "list of episodes", options, layout)


def _has_rows(first: Mapping[str, Any], options: Options) -> bool:
    """Whether a mapping is an episode, with many rewards, rather than a step."""
    try:
        rewards = episodes.rewards_of(0, first, wanted_columns(options.columns))
    except InputError:
        return True  # it has none: the error says so when the episode is read
    return np.ndim(rewards) > 0


def _joined(items: Iterable[Any], format: str, source: str, options: Options, layout: str | None) -> Transitions:
    table, observed = episodes.join(items, wanted_columns(options.columns), format)
    if options.layout is None and layout is not None:
        options = Options(columns=options.columns, done=options.done, last_step=options.last_step, layout=layout)
    return assemble(table, source, options, observed=observed)
