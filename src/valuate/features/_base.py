"""What all feature maps share: the ways of a scikit-learn transformer, without scikit-learn, and saving as JSON."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate.errors import InputError, InputTypeError, MissingPartError

__all__ = ["FeatureMap"]

#: Of the saved form.
VERSION = 1
_PLAIN = (bool, int, float, str, type(None))
_registry: dict[str, type[FeatureMap]] = {}


class FeatureMap:
    """A transformer whose parameters are the arguments of its ``__init__``, kept under their names as they are given.

    It works where scikit-learn's do: in a Pipeline or a ColumnTransformer, with ``clone``, with
    ``set_params(step__name=value)``, with ``set_output(transform="pandas")`` where features are dense. What `fit`
    learns is in attributes that end in an underscore, named in ``learned``; where there are none, the parameters
    settle everything and `transform` may be called at once.
    """

    #: The attributes that `fit` sets, and that with the parameters give the same features again.
    learned: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        _registry[_name(cls)] = cls
        if "transform" in cls.__dict__:
            cls.transform = _as_asked(cls.__dict__["transform"])  # type: ignore[method-assign]

    @classmethod
    def _names(cls) -> list[str]:
        return [name for name in inspect.signature(cls).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters by name; with ``deep``, those of feature maps among them too, as ``name__parameter``."""
        params = {name: getattr(self, name) for name in self._names()}
        if deep:
            for name, value in list(params.items()):
                if hasattr(value, "get_params") and not isinstance(value, type):
                    params |= {f"{name}__{inner}": part for inner, part in value.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, ``name__parameter`` for those of a feature map among them."""
        names = self._names()
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in names:
                raise InputError(f"{type(self).__name__} has no parameter {name!r}. It has: {', '.join(names)}.")
            if inner:
                getattr(self, name).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters against the states ``X``; ``y`` counts for nothing."""
        raise NotImplementedError

    def transform(self, X: Any) -> Any:
        """The features of m states, (m, n_features)."""
        raise NotImplementedError

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """`fit`, then `transform`."""
        return self.fit(X, y).transform(X)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the features, (n_features,): the class in small letters and a number, from 0.

        Those of the columns that come in, ``input_features``, count for nothing.
        """
        name = type(self).__name__.lower()
        return np.array([f"{name}{k}" for k in range(self._width())], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Say what `transform` gives: "pandas" or "polars" data frames, or "default"; None leaves it as it is."""
        if transform not in (None, *_FRAMES, "default"):
            raise InputError(f"transform must be 'default', 'pandas' or 'polars', not {transform!r}.")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}  # the name under which clone looks for it
        return self

    def _width(self) -> int:
        """The number of features."""
        if not hasattr(self, "n_features_"):
            raise InputError(f"How many features this {type(self).__name__} gives is known once it was fitted.")
        return int(self.n_features_)

    def to_dict(self) -> dict[str, Any]:
        """Parameters and what was learned, as plain numbers, texts, lists and dicts: what JSON can hold.

        Returns
        -------
        dict
            `from_dict`, or ``valuate.features.load``, makes a map of it that gives the same features, bit for bit.

        Raises
        ------
        InputTypeError
            A parameter is a function or another package's transformer: that needs pickle, or skops.
        """
        learned = [name for name in self.learned if hasattr(self, name)]
        return {
            "map": _name(type(self)),
            "version": VERSION,
            "parameters": {name: self._plain(name) for name in self._names()},
            "learned": {name: self._plain(name) for name in learned},
        }

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> FeatureMap:
        """The map that `to_dict` wrote; of this class, or of any where this is `FeatureMap` itself."""
        if not isinstance(saved, dict) or not isinstance(saved.get("map"), str):
            raise InputTypeError("A saved feature map is a dict with the key 'map', as to_dict() writes it.")
        name, kind = saved["map"], _registry.get(saved["map"])
        if kind is None or not issubclass(kind, cls):
            known = ", ".join(sorted(key for key, value in _registry.items() if issubclass(value, cls)))
            raise InputError(f"There is no feature map {name!r} here. Known: {known}.")
        if saved.get("version") != VERSION:
            raise InputError(f"The saved {name} has version {saved.get('version')!r}; this valuate reads {VERSION}.")
        out = kind(**_part(saved, "parameters", kind._names()))
        learned = _part(saved, "learned", kind.learned)
        for key, value in learned.items():
            setattr(out, key, value)
        if learned:
            out._check_learned()
        return out

    def _plain(self, name: str) -> Any:
        return _to_plain(getattr(self, name), f"{name} of {type(self).__name__}")

    def _check_learned(self) -> None:
        """Refuse what was read from a file and cannot have been learned; for maps whose compiled code trusts it."""

    def _require_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise InputError(f"This {type(self).__name__} has learned nothing yet: call fit first.")

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.get_params(deep=False).items())
        return f"{type(self).__name__}({given})"

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(self, name) for name in self.learned)

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            requires_fit=bool(self.learned),
        )


def _as_asked(transform: Callable[..., Any]) -> Callable[..., Any]:
    """``transform``, whose rows come in a data frame where `FeatureMap.set_output` asked for one."""

    @wraps(transform)
    def asked(self: FeatureMap, X: Any, *more: Any, **named: Any) -> Any:
        rows = transform(self, X, *more, **named)
        kind = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if kind == "default":
            return rows
        if _checks.is_sparse(rows):
            raise InputError(
                f"{type(self).__name__} gives sparse rows, which no data frame holds: make it dense, as "
                "sparse_output=False or sparse_below=None do, or say set_output(transform='default')."
            )
        return _FRAMES[kind](rows, self.get_feature_names_out(), X)

    return asked


def _pandas(rows: Any, names: NDArray[np.object_], given: Any) -> Any:
    try:
        import pandas
    except ImportError:
        raise MissingPartError("pandas", "test", "set_output(transform='pandas')") from None
    framed = isinstance(given, pandas.DataFrame | pandas.Series)
    return pandas.DataFrame(rows, columns=names, index=given.index if framed else None, copy=False)


def _polars(rows: Any, names: NDArray[np.object_], given: Any) -> Any:
    try:
        import polars
    except ImportError:
        raise MissingPartError("polars", "test", "set_output(transform='polars')") from None
    return polars.DataFrame(rows, schema=names.tolist(), orient="row")


_FRAMES: dict[str, Callable[..., Any]] = {"pandas": _pandas, "polars": _polars}


def _name(kind: type[FeatureMap]) -> str:
    """Ours are saved under their bare names, so that modules may move; those of others with their module."""
    ours = kind.__module__.partition(".")[0] == __name__.partition(".")[0]
    return kind.__name__ if ours else f"{kind.__module__}.{kind.__qualname__}"


def _part(saved: dict[str, Any], what: str, allowed: Sequence[str]) -> dict[str, Any]:
    part = saved.get(what)
    if not isinstance(part, dict) or not set(part) <= set(allowed):
        raise InputError(f"The saved {saved['map']} is damaged: {what} must be a dict with keys among {list(allowed)}.")
    return {key: _from_plain(value) for key, value in part.items()}


def _to_plain(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, _PLAIN):
        if isinstance(value, float) and not np.isfinite(value):
            raise InputError(f"{name} is {value}, which JSON cannot hold.")
        return value
    if isinstance(value, FeatureMap):
        return value.to_dict()
    if isinstance(value, list):
        return [_to_plain(part, name) for part in value]
    if isinstance(value, tuple):
        return {"tuple": [_to_plain(part, name) for part in value]}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufUO":
        entries = [_to_plain(part, name) for part in value.ravel().tolist()]
        return {"array": entries, "dtype": value.dtype.str, "shape": list(value.shape)}
    raise InputTypeError(
        f"{name} is a {type(value).__name__}, which cannot be saved without pickle. Saved are numbers, texts, arrays "
        "and the feature maps of valuate.features; for others use skops, or pickle where you trust the file."
    )


def _from_plain(value: Any) -> Any:
    if isinstance(value, _PLAIN):
        return value
    if isinstance(value, list):
        return [_from_plain(part) for part in value]
    if isinstance(value, dict):
        if "map" in value:
            return FeatureMap.from_dict(value)
        if set(value) == {"tuple"}:
            return tuple(_from_plain(part) for part in value["tuple"])
        if set(value) == {"array", "dtype", "shape"}:
            try:
                return np.array(value["array"], dtype=value["dtype"]).reshape(value["shape"])
            except (TypeError, ValueError) as error:
                raise InputError(f"The saved feature map is damaged: an array cannot be read ({error}).") from None
    raise InputError(f"The saved feature map is damaged: it has a {type(value).__name__} where a value belongs.")
