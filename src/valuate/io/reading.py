"""`read`: from a file or an object in memory to a log; `read_states`: to states alone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from valuate.errors import InputError, InputTypeError
from valuate.io import csv, episodes, hdf5, minari, npz, own
from valuate.io.arrow import ArrowTable, PandasTable, pyarrow
from valuate.io.assembling import Options, assemble
from valuate.io.coding import given_labels
from valuate.io.columns import Arrays
from valuate.io.ends import DONE, LAST_STEP
from valuate.io.layouts import LAYOUTS, spoken
from valuate.io.parquet import ParquetTable
from valuate.io.paths import FILE_FORMATS, format_of, piped, readable, require_file, require_piped
from valuate.io.resolving import wanted_columns
from valuate.io.states import States, states_of
from valuate.io.writing import write
from valuate.transitions import Transitions

if TYPE_CHECKING:
    from valuate.io.columns import Table

__all__ = ["convert", "read", "read_states"]


class _Make(Protocol):
    """What is made of columns: `assemble` or `states_of`."""

    def __call__(self, table: Table, source: str, options: Options, *, observed: bool = False) -> Any: ...


def read(
    source: Any,
    columns: Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
    done: str | None = None,
    last_step: str | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
) -> Transitions:
    """A log from a file or an object in memory, whatever its columns are called.

    Columns are recognised by the names that RLlib, D4RL, d3rlpy, SCOPE-RL, MushroomRL, RLDS, Minari and plain tables
    use. What was taken for what, which rows were left out and why is in ``log.reading``: print it. What a column means
    is never guessed where the answer depends on it: then an error says how to tell.

    Parameters
    ----------
    source : path or object
        A Parquet, CSV, NPZ, HDF5 or Arrow file; "-" or a pipe, for CSV; the folder or the name of a Minari data set; a pandas or polars data
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
    labels : dict, optional
        The numbers that texts become, where those of another log are to be kept: for a role, or for a column where
        several are taken for a role, the texts of 0, 1, ..., as ``reading.labels`` of that log has them. None: the order
        of the alphabet.

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
    options = Options(columns=columns, done=done, last_step=last_step, labels=given_labels(labels))
    log: Transitions = _read(source, format, options, assemble)
    return log


def read_states(
    source: Any,
    columns: Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
    labels: Mapping[str, Sequence[str]] | None = None,
) -> States:
    """States, and actions where there are any, of every row of a source: what a fitted model says values for.

    No rewards, ends or next states are needed. No row is left out and none is moved, so that values can be put beside
    the rows of the source.

    Parameters
    ----------
    source
        As for `read`. Of episodes with an observation behind their last step, the states before each step are taken.
    columns : dict, optional
        As for `read`; keys other than ``states`` and ``actions`` may name columns that this source does not have.
    format : str, optional
        As for `read`.
    labels : dict, optional
        As for `read`: those of the log that a model was fitted to, so that texts become the same numbers.

    Returns
    -------
    States
        ``states``, ``actions`` (None where there are none) and ``reading``.

    Raises
    ------
    InputError
        As for `read`; and where a state or an action is missing in some row.

    Examples
    --------
    >>> found = read_states({"obs": [[0.0], [1.0]], "action": ["right", "left"]}, labels={"actions": ["left", "right"]})
    >>> found.states.shape, found.actions.tolist()
    ((2, 1), [1, 0])
    """
    found = _read(source, format, Options(columns=columns, labels=given_labels(labels)), states_of)
    if isinstance(found, Transitions):  # a file of ours, read as it was written
        assert found.reading is not None
        return States(found.states, found.actions, found.reading)
    states: States = found
    return states


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


def _read(source: Any, format: str | None, options: Options, make: _Make) -> Any:
    wanted_columns(options.columns)
    container, layout = _named_format(format)
    options = replace(options, layout=layout)
    if isinstance(source, Transitions):
        raise InputTypeError("The source is Transitions already: there is nothing to read.")
    if isinstance(source, str | os.PathLike):
        return _read_path(Path(source), container, options, make)
    if container in FILE_FORMATS:
        raise InputError(f"format={format!r} is for files, and the source is a {type(source).__name__}.")
    return _read_object(source, options, make)


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


def _read_path(path: Path, container: str | None, options: Options, make: _Make) -> Any:
    if (content := piped(path)) is not None:
        require_piped(path, content, container)
        return make(csv.read_csv(path, content), str(path), options)
    if container in (None, "minari") and (folder := minari.find(path)) is not None:
        found = _guarded(minari.episodes_of(folder), folder, "minari")
        return _joined(found, "minari", str(path), options, make, "Minari")
    require_file(path)
    kind = format_of(path) if container in (None, "minari") else container
    if kind == "hdf5":
        return _read_hdf5(path, options, make)
    log: Transitions | None = None
    table: Table
    plainly = replace(options, labels=None) == Options()
    if kind == "parquet":
        table = ParquetTable(path)
        log = own.from_parquet(table, str(path)) if plainly else None
    elif kind == "npz":
        table = npz.read_npz(path)
        log = own.from_npz(table, str(path)) if plainly else None
    else:
        table = csv.read_csv(path) if kind == "csv" else _arrow_file(path)
    return own.relabelled(log, options.labels) if log is not None else make(table, str(path), options)


def _read_hdf5(path: Path, options: Options, make: _Make) -> Any:
    with hdf5.opened(path) as (kind, content):
        if kind == "columns":
            return make(Arrays(content, "hdf5", path), str(path), options)
        layout = "Minari" if kind == "minari" else "d3rlpy"
        return _joined(_guarded(content, path, "hdf5"), "hdf5", str(path), options, make, layout)


def _guarded(items: Iterable[Any], path: Path, format: str) -> Iterator[Any]:
    with readable(path, format):
        yield from items


def _arrow_file(path: Path) -> ArrowTable:
    pa = pyarrow("Reading Arrow files")
    with readable(path, "arrow"), pa.memory_map(str(path), "r") as source:
        table = pa.ipc.open_file(source).read_all()
        table.validate(full=True)  # it is used where it lies, so that bad offsets would lead anywhere
        return ArrowTable(table, "arrow")


def _read_object(source: Any, options: Options, make: _Make) -> Any:
    home = type(source).__module__.partition(".")[0]
    kind = type(source).__name__
    if home == "pandas" and hasattr(source, "columns"):
        return make(PandasTable(source), "pandas data frame", options)
    if home == "polars" and kind in ("DataFrame", "LazyFrame"):
        pyarrow("Reading data frames")
        frame = source.collect() if kind == "LazyFrame" else source
        return make(ArrowTable(frame.to_arrow(), "polars"), "polars data frame", options)
    if home == "pyarrow" and hasattr(source, "schema"):
        pa = pyarrow("Reading Arrow tables")
        table = source if isinstance(source, pa.Table) else pa.Table.from_batches([source])
        return make(ArrowTable(table, "arrow"), "Arrow table", options)
    if isinstance(source, Mapping):
        return make(Arrays(source, "arrays"), kind, options)
    if isinstance(source, np.ndarray) and source.dtype.names:
        fields = {name: source[name] for name in source.dtype.names}
        return make(Arrays(fields, "arrays"), "structured array", options)
    if all(hasattr(source, name) for name in ("state", "next_state", "absorbing", "last")):
        fields = {name: getattr(source, name) for name in _MUSHROOM}
        return make(Arrays(fields, "arrays"), "MushroomRL data set", options)
    if hasattr(source, "iterate_episodes"):
        return _joined(source.iterate_episodes(), "minari", "Minari data set", options, make, "Minari")
    if hasattr(source, "episodes"):
        return _joined(source.episodes, "episodes", kind, options, make, "d3rlpy")
    if isinstance(source, Iterable) and not isinstance(source, np.ndarray | bytes):
        return _read_list(list(source), options, make)
    raise InputTypeError(
        f"A source of type {kind} cannot be read as a log. Give a path, a data frame, a dict of arrays, or a list of "
        "episodes."
    )


_MUSHROOM = ("state", "action", "reward", "next_state", "absorbing", "last")


def _read_list(items: list[Any], options: Options, make: _Make) -> Any:
    if not items:
        raise InputError("The list is empty: at least one episode is needed.")
    first = items[0]
    if isinstance(first, list | tuple) and len(first) == 6 and np.ndim(first[2]) == 0:
        fields = {name: [row[place] for row in items] for place, name in enumerate(_MUSHROOM)}
        return make(Arrays(fields, "arrays"), "list of steps", options)
    if make is states_of and isinstance(first, Mapping) and _is_record(first, options):
        return make(Arrays(_columns_of(items), "arrays"), "list of rows", options)
    if isinstance(first, Mapping) and "steps" not in first and not _has_rows(first, options):
        joined, _ = episodes.join([items], wanted_columns(options.columns), "arrays", observed=False)
        return make(joined.without(episodes.EPISODE), "list of steps", options)
    layout = None if isinstance(first, Mapping) else "Minari" if hasattr(first, "terminations") else "Gymnasium"
    return _joined(items, "episodes", "list of episodes", options, make, layout)


def _is_record(first: Mapping[str, Any], options: Options) -> bool:
    """Whether a mapping is a row without rewards: an episode has them, for they say how long it is."""
    try:
        episodes.rewards_of(0, first, wanted_columns(options.columns))
    except InputError:
        return "steps" not in first
    return False


def _columns_of(rows: list[Mapping[str, Any]]) -> dict[str, list[Any]]:
    odd = next((k for k, row in enumerate(rows) if set(row) != set(rows[0])), None)
    if odd is not None:
        raise InputError(f"row {odd} has the parts {sorted(rows[odd])} and the first has {sorted(rows[0])}.")
    return {name: [row[name] for row in rows] for name in rows[0]}


def _has_rows(first: Mapping[str, Any], options: Options) -> bool:
    """Whether a mapping is an episode, with many rewards, rather than a step."""
    try:
        rewards = episodes.rewards_of(0, first, wanted_columns(options.columns))
    except InputError:
        return True  # it has none: the error says so when the episode is read
    return np.ndim(rewards) > 0


def _joined(items: Iterable[Any], format: str, source: str, options: Options, make: _Make, layout: str | None) -> Any:
    table, observed = episodes.join(items, wanted_columns(options.columns), format)
    if options.layout is None and layout is not None:
        options = replace(options, layout=layout)
    return make(table, source, options, observed=observed)
