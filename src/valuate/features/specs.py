"""Short texts for feature maps, as the command line reads them: ``fourier:3``, ``tiles:8x16,hash=65536``."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate import _checks
from valuate.errors import InputError, InputTypeError
from valuate.features import _inputs, _terms
from valuate.features._base import FeatureMap
from valuate.features.by_column import Identity
from valuate.features.choosing import choose, fitting_states
from valuate.features.fourier import Fourier
from valuate.features.one_hot import OneHot
from valuate.features.polynomial import Polynomial
from valuate.features.random_fourier import RandomFourier
from valuate.features.rbf import RBFGrid
from valuate.features.tabular import Tabular
from valuate.features.tiles import TileCoding

if TYPE_CHECKING:
    from valuate.transitions import Transitions

__all__ = ["SPECS", "from_text"]


class Spec(NamedTuple):
    """One kind of spec: how it is written, what it means, and what makes the map."""

    example: str
    meaning: str
    #: The parameter that stands after the colon; empty where there is none.
    first: str
    make: Callable[..., Any]


SPECS = {
    "auto": Spec("auto", "chosen from the data", "", choose),
    "none": Spec("none", "the numbers as they are", "", Identity),
    "linear": Spec("linear", "the numbers, standardised", "", lambda **more: Polynomial(1, **more)),
    "polynomial": Spec("polynomial:2", "products of numbers up to a degree", "degree", Polynomial),
    "fourier": Spec("fourier:3,coupled=2", "cosines up to an order", "order", Fourier),
    "tiles": Spec("tiles:8x16,hash=65536", "8 tilings with 16 tiles a column", "tilings", TileCoding),
    "rbf": Spec("rbf:5", "radial basis functions, 5 along each column", "per_dimension", RBFGrid),
    "random-fourier": Spec("random-fourier:500", "500 random cosines", "n_features", RandomFourier),
    "onehot": Spec("onehot", "one feature a category of each column", "", OneHot),
    "tabular": Spec("tabular", "one feature a state", "", Tabular),
}


def from_text(spec: str, log: Transitions) -> Any:
    """A feature map, fitted on the states of a log, from a short text.

    Parameters
    ----------
    spec : str
        A name, then what matters most after a colon, then parameters by name: ``polynomial:2``, ``fourier:3``,
        ``tiles:8x16,hash=65536``, ``rbf:5``, ``random-fourier:500``, ``onehot``, ``tabular``, ``linear``, ``none``,
        ``auto``. Parameters that stand in no spec keep their defaults.
    log : Transitions

    Returns
    -------
    FeatureMap

    Examples
    --------
    >>> from valuate import Transitions
    >>> log = Transitions([[0.0], [0.5]], [1.0, 1.0], [[0.5], [1.0]])
    >>> from_text("fourier:3", log)
    Fourier(order=3, coupled=True, max_sum=None, constant=False, tails=0.0)
    """
    if not isinstance(spec, str):
        raise InputTypeError(f"A spec of features is a text, such as 'fourier:3', not a {type(spec).__name__}.")
    head, *options = [part.strip() for part in spec.strip().split(",")]
    name, colon, value = (part.strip() for part in head.partition(":"))
    name = name.lower().replace("_", "-")
    kind = SPECS.get({"one-hot": "onehot"}.get(name, name))
    if kind is None:
        near = get_close_matches(name, SPECS, 1, 0.5)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        raise InputError(f"There are no features {spec!r}.{meant}\n{_known()}")
    given = dict(_option(spec, option) for option in options)
    if colon:
        given = _first(spec, kind, value) | given
    if name == "auto":
        _only(spec, given, {"random_state"})
        return choose(log, **given)[0]
    if name == "rbf":
        return _rbf(spec, given, fitting_states(log))
    made = _made(spec, kind, given)
    if name in ("onehot", "tabular"):
        # States that only ever come next have features too.
        return made.fit(_all_states(log))
    return made.fit(fitting_states(log))


def _known() -> str:
    width = max(len(kind.example) for kind in SPECS.values())
    return "Known are:\n" + "\n".join(f"  {kind.example:<{width}}  {kind.meaning}" for kind in SPECS.values())


def _first(spec: str, kind: Spec, value: str) -> dict[str, Any]:
    if not kind.first:
        raise InputError(f"{spec!r}: nothing stands after the colon here; write {kind.example!r}.\n{_known()}")
    if kind.make is TileCoding:
        tilings, times, tiles = value.partition("x")
        return {"tilings": _whole(spec, tilings, kind)} | ({"tiles": _whole(spec, tiles, kind)} if times else {})
    return {kind.first: _whole(spec, value, kind)}


def _whole(spec: str, text: str, kind: Spec) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{spec!r}: {text!r} is not a whole number; write for example {kind.example!r}.") from None


def _option(spec: str, option: str) -> tuple[str, Any]:
    key, equals, text = (part.strip() for part in option.partition("="))
    if not (key and equals and text):
        raise InputError(f"{spec!r}: {option!r} is not name=value; write for example 'tiles:8x16,hash=65536'.")
    key = key.replace("-", "_")
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return key, words[text.lower()]
    for kind in (int, float):
        try:
            return key, kind(text)
        except ValueError:
            continue
    return key, text


def _only(spec: str, given: dict[str, Any], allowed: set[str]) -> None:
    unknown = [key for key in given if key not in allowed]
    if unknown:
        raise InputError(
            f"{spec!r}: there is no {unknown[0]!r} here. Known: {', '.join(sorted(allowed)) or 'nothing'}."
        )


def _made(spec: str, kind: Spec, given: dict[str, Any]) -> FeatureMap:
    made: FeatureMap = kind.make()
    _only(spec, given, set(made.get_params(deep=False)) - ({"degree"} if kind.example == "linear" else set()))
    return made.set_params(**given)


def _rbf(spec: str, given: dict[str, Any], states: Any) -> RBFGrid:
    """A grid over the range of the data, without constant columns, in which neighbours overlap."""
    _only(spec, given, {"per_dimension", "sigma", "normalize", "sparse_below"})
    per = _checks.whole("per_dimension", given.pop("per_dimension", 5), low=2)
    matrix = _inputs.numbers(states)
    found = _inputs.columns(matrix)
    columns = np.flatnonzero(found.values > 1).tolist()
    if not columns:
        raise InputError(f"{spec!r}: no column of the states varies, so there is no range to put a grid over.")
    _terms.require_few(per ** len(columns), "Fewer along each column, or 'fourier:3,coupled=2', would do.")
    low, high = (ends[columns].tolist() for ends in _inputs.ranges(matrix, found, tails=0.005))
    more = {"sigma": (per - 1.0) ** -2} | given
    grid = RBFGrid(low, high, per, columns=columns, distance="squared", **more)
    return grid.fit(matrix)


def _all_states(log: Transitions) -> Any:
    """States, and next states of rows that have one."""
    nexts = log.next_states[~log.terminated]
    return np.concatenate([log.states, nexts]) if len(nexts) else log.states
