"""Models in files: JSON text with arrays in it. Nothing in a file is ever run."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import __version__, features, solvers
from valuate.errors import InputError, InputTypeError, MissingPartError
from valuate.estimator.coordinates import Coordinates
from valuate.estimator.increments import Increments
from valuate.estimator.mapping import Blocks, Pairs, States, apply
from valuate.estimator.reference import Reference
from valuate.features import StateActionBlocks
from valuate.features._base import FeatureMap
from valuate.io import Reading
from valuate.solution import Solution, Status, Trace
from valuate.summing import Moments

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

#: What a file says of itself.
FORMAT, VERSION = "valuate model", 1
_PARAMETERS = ("discount", "ridge", "fit_intercept", "values", "tolerance", "passes")
_INPUT = ("n_features_in_", "_single_numbers", "_bootstraps", "_follows")
_SOLUTION = ("relative_residual", "row_visits", "setup_visits", "passes", "epochs", "seconds", "tolerance", "message")
_READ = ("states", "actions")
_MOMENTS = ("A", "b", "C")
_NUMBERS = ("n_rows", "weight", "square_rewards")


def save(model: Any, path: str | os.PathLike[str], *, force: bool) -> None:
    """See `LinearValue.save`."""
    path = Path(path)
    if path.exists() and not force:
        raise InputError(f"{path} exists already. Choose another name, or say force=True to write over it.")
    text = json.dumps(_written(model), indent=1, allow_nan=False)
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(text + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error


def load(path: str | os.PathLike[str], kind: type, trusted: Iterable[str]) -> Any:
    """See `load_model`; ``kind`` is the class of the model."""
    path = Path(path)
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from error
    except (UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path} is no saved model, or is damaged: {error}.") from error
    if not isinstance(held, dict) or held.get("format") != FORMAT:
        raise InputError(f"{path} was not written by LinearValue.save.")
    if held.get("version") != VERSION:
        raise InputError(f"{path} has version {held.get('version')} of the format and this library reads {VERSION}.")
    try:
        return _read(held, kind, frozenset(trusted))
    except (InputError, InputTypeError):
        raise
    except (KeyError, TypeError, ValueError, AttributeError, binascii.Error) as error:
        raise InputError(f"{path} is damaged: {error!r}.") from error


def _written(model: Any) -> dict[str, Any]:
    solution, seed = model.solution_, model.random_state
    random_state = int(seed) if isinstance(seed, int | np.integer) else None
    return {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"valuate {__version__}",
        "parameters": {name: _plain(getattr(model, name)) for name in _PARAMETERS} | {"random_state": random_state},
        "solver": _solver(model.solver),
        "features": _map(model._map),
        "features_text": model.features if isinstance(model.features, str) else None,
        "policy": None if model.policy is None else "a function, which is not saved",
        "kind": model.kind_,
        "evaluates": model.evaluates_,
        "features_note": model.features_note_,
        "input": {name: getattr(model, name) for name in _INPUT if hasattr(model, name)}
        | {"feature_names_in_": list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None},
        "reading": _reading(getattr(model, "reading_", None)),
        "coef": _array(model.coef_),
        "intercept": float(model.intercept_),
        "coordinates": _fields(model._coordinates),
        "reference": _fields(model.reference_),
        "solution": {name: _plain(getattr(solution, name)) for name in _SOLUTION}
        | {"status": solution.status.value, "solver": repr(solution.solver)}
        | {name: _array(getattr(solution, name)) for name in ("theta", "omega")},
        "increments": _increments(model),
    }


def _read(held: dict[str, Any], kind: type, trusted: frozenset[str]) -> Any:
    map = _map_from(held["features"], trusted)
    solver, text = held["solver"], held["features_text"]
    # As a parameter features are what they were given as: whoever fits again must be able to.
    given = text if text is not None else _user_map(map)
    model = kind(features=given, solver=_solver_from(solver), **held["parameters"])
    for name, value in held["input"].items():
        if value is not None:
            setattr(model, name, np.array(value, dtype=object) if name == "feature_names_in_" else value)
    if held.get("reading") is not None:  # models of older files have none
        model.reading_ = _reading_from(held["reading"])
    model._map, model.features_ = map, _user_map(map)
    model.kind_, model.evaluates_ = held["kind"], held["evaluates"]
    model.features_note_ = held["features_note"]
    model.coef_, model.intercept_ = _array_from(held["coef"]), float(held["intercept"])
    model._coordinates = Coordinates(**_fields_from(held["coordinates"]))
    model.reference_ = Reference(**_fields_from(held["reference"]))
    found = held["solution"]
    model.solution_ = Solution(
        theta=_array_from(found["theta"]),
        omega=_array_from(found["omega"]),
        status=Status(found["status"]),
        solver=found["solver"],
        trace=Trace(),
        **{name: found[name] for name in _SOLUTION},
    )
    model.n_iter_ = max(1, model.solution_.epochs)
    if held["increments"] is not None:
        model._increments = _increments_from(held["increments"])
    if len(model.coef_) != model._coordinates.n_features:
        raise InputError(f"coef has {len(model.coef_)} entries and there are {model._coordinates.n_features} features.")
    return model


def _reading(reading: Reading | None) -> dict[str, Any] | None:
    """What a further file is read by: which columns states and actions are, and what numbers of texts stand for."""
    if reading is None:
        return None
    columns = {role: reading.columns[role] for role in _READ if role in reading.columns}
    return {
        "source": reading.source,
        "format": reading.format,
        "rows": int(reading.rows),
        "columns": {role: names if isinstance(names, str) else list(names) for role, names in columns.items()},
        "labels": {key: list(map(str, texts)) for key, texts in reading.labels.items() if key != "episodes"},
    }


def _reading_from(held: dict[str, Any]) -> Reading:
    return Reading(
        source=str(held["source"]),
        format=str(held["format"]),
        rows=int(held["rows"]),
        columns={role: names if isinstance(names, str) else tuple(names) for role, names in held["columns"].items()},
        labels={key: tuple(texts) for key, texts in held["labels"].items()},
    )


def _user_map(map: Any) -> Any:
    """What a user knows as the features: `features_`."""
    inner = map.map
    if isinstance(map, Blocks) and _is_identity(inner.features):
        return inner
    return inner


def _is_identity(function: Any) -> bool:
    return isinstance(function, partial) and function.func is apply


def _map(map: Any) -> dict[str, Any]:
    if isinstance(map, Blocks):
        blocks = map.map
        return {
            "form": "blocks",
            "n_actions": int(blocks.n_actions),
            "sparse_output": bool(blocks.sparse_output),
            "map": None if _is_identity(blocks.features) else _transformer(blocks.features),
        }
    if isinstance(map, Pairs):
        return {"form": map.form, "n_actions": map.n_actions, "map": _transformer(map.map)}
    return {"form": "states", "map": None if map.map is None else _transformer(map.map)}


def _map_from(held: dict[str, Any], trusted: frozenset[str]) -> Any:
    found = None if held["map"] is None else _transformer_from(held["map"], trusted)
    if held["form"] == "blocks":
        inner = partial(apply, None) if found is None else found
        return Blocks(StateActionBlocks(inner, int(held["n_actions"]), sparse_output=bool(held["sparse_output"])))
    if held["form"] == "states":
        return States(found)
    return Pairs(found, str(held["form"]), held["n_actions"])


def _transformer(map: Any) -> dict[str, Any]:
    if hasattr(map, "to_dict") and hasattr(map, "transform"):
        try:
            return {"valuate": map.to_dict()}
        except InputTypeError:  # it holds another package's
            pass
    if not hasattr(map, "transform"):
        raise InputTypeError(
            "features is a function, and a function cannot be saved without pickle. Use a transformer (those of "
            "valuate.features are saved as text), or keep the code and save coef_ and intercept_."
        )
    io = _skops(f"Saving {type(map).__name__}")
    try:
        data = io.dumps(map)
    except Exception as error:  # whatever stops it: the model is not saved, and this says why
        raise InputTypeError(f"features of {type(map).__name__} cannot be saved: {error}") from error
    unnamed = [name for name in io.get_untrusted_types(data=data) if "<" in name]
    if unnamed:
        raise InputTypeError(
            f"features of {type(map).__name__} cannot be saved: {unnamed[0]} has no name to find it by."
        )
    return {"skops": base64.b64encode(data).decode("ascii")}


def _transformer_from(held: dict[str, Any], trusted: frozenset[str]) -> Any:
    if "valuate" in held:
        return FeatureMap.from_dict(held["valuate"])
    io = _skops("Reading the features of this model")
    data = base64.b64decode(held["skops"], validate=True)
    unknown = set(io.get_untrusted_types(data=data))
    ours = {name for name in unknown if _is_ours(name)}
    refused = sorted(unknown - ours - trusted)
    if refused:
        raise InputError(
            f"the model's features are made of types that nobody vouched for: {', '.join(refused)}. Where the file is "
            "from a source that you trust, name them: load_model(path, trusted=[...])."
        )
    return io.loads(data, trusted=sorted(unknown))


def _is_ours(name: str) -> bool:
    module, _, last = name.rpartition(".")
    found = getattr(features, last, None)
    return isinstance(found, type) and found.__module__ == module and hasattr(found, "to_dict")


def _skops(purpose: str) -> Any:
    try:
        from skops import io
    except ImportError:
        raise MissingPartError("skops", "skops", purpose) from None
    return io


def _solver(solver: Any) -> Any:
    if isinstance(solver, str):
        return solver
    name = type(solver).__name__
    if not is_dataclass(solver) or getattr(solvers, name, None) is not type(solver):
        raise InputTypeError(f"the solver {solver!r} is not one of valuate's and cannot be saved: choose it by name.")
    given = {field.name: getattr(solver, field.name) for field in fields(solver) if field.init}
    return {"name": name, "settings": {key: _solver_setting(value) for key, value in given.items()}}


def _solver_setting(value: Any) -> Any:
    return _solver(value) if hasattr(value, "solve") else _plain(value)


def _solver_from(held: Any) -> Any:
    if isinstance(held, str):
        return held
    kind = getattr(solvers, held["name"]) if held["name"] in solvers.__all__ else None
    if not (isinstance(kind, type) and hasattr(kind, "solve")):
        raise InputError(f"there is no solver {held['name']!r} here.")
    settings = {
        key: _solver_from(value) if isinstance(value, dict) else value for key, value in held["settings"].items()
    }
    return kind(**settings)


def _increments(model: Any) -> dict[str, Any] | None:
    state = getattr(model, "_increments", None)
    if state is None:
        return None
    moments = state.moments
    return {
        "theta": _array(state.theta),
        "last": _array(state.last),
        "n_rows": int(state.n_rows),
        "moments": None
        if moments is None
        else {name: _array(getattr(moments, name)) for name in _MOMENTS}
        | {name: _plain(getattr(moments, name)) for name in _NUMBERS},
    }


def _increments_from(held: dict[str, Any]) -> Increments:
    moments = None
    if held["moments"] is not None:
        moments = Moments()
        for name in _MOMENTS:
            setattr(moments, name, _array_from(held["moments"][name]))
        for name in _NUMBERS:
            setattr(moments, name, held["moments"][name])
    return Increments(moments, _array_from(held["theta"]), _array_from(held["last"]), int(held["n_rows"]))


def _fields(value: Any) -> dict[str, Any]:
    given = {field.name: getattr(value, field.name) for field in fields(value)}
    return {name: _array(part) if isinstance(part, np.ndarray) else _plain(part) for name, part in given.items()}


def _fields_from(held: dict[str, Any]) -> dict[str, Any]:
    return {name: _array_from(part) if isinstance(part, dict) else part for name, part in held.items()}


def _array(array: Any) -> dict[str, Any]:
    array = np.ascontiguousarray(array)
    if array.dtype.kind not in "fiuU":
        raise InputTypeError(f"an array of {array.dtype} cannot be saved.")
    array = array.astype(array.dtype.newbyteorder("<"))
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.str,
        "base64": base64.b64encode(array.tobytes()).decode("ascii"),
    }


def _array_from(held: dict[str, Any]) -> Any:
    dtype = np.dtype(held["dtype"])
    if dtype.kind not in "fiuU":
        raise InputError(f"an array of {dtype} does not belong here.")
    found = np.frombuffer(base64.b64decode(held["base64"], validate=True), dtype).reshape(held["shape"])
    if dtype.kind == "f" and not np.isfinite(found[~np.isinf(found)]).all():
        raise InputError("an array holds NaN.")
    return found.astype(dtype.newbyteorder("="))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InputTypeError(f"{value!r} cannot be saved.")
