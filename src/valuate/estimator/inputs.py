"""What `fit`, `partial_fit` and `score` are given, read into one form: columns of a log, checked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from valuate import _checks
from valuate.errors import InputError, InputTypeError
from valuate.estimator import policies
from valuate.estimator.frames import is_frame, plain, take
from valuate.transitions import Transitions

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Arguments that a log has columns for.
_OF_A_LOG = ("y", "next_states", "terminated", "truncated", "sample_weight", "ratios", "groups", "actions")
_NUMBERS = (np.float64, np.float32)


@dataclass(slots=True, eq=False)
class Given:
    """A log, and what comes with it.

    Attributes
    ----------
    log : Transitions
        For data frames its states are row numbers, those of next states after those of states.
    frames : pair of data frames, or None
        States and next states, where they came so.
    actions : as given, (n, ...), or None
    numbers : (n,) array or None
        Actions as whole numbers, where they are.
    next_actions : as given, or None
    chosen : bool
        Whether the next actions were given beside the log, as those of the policy that is evaluated.
    next_probabilities : (n, n_actions) array or None
    logged : (n,) array or None
        Probabilities with which the actions were taken.
    """

    log: Transitions
    frames: tuple[Any, Any] | None = None
    actions: Any = None
    numbers: NDArray[np.int64] | None = None
    next_actions: Any = None
    chosen: bool = False
    next_probabilities: Any = None
    logged: NDArray[np.float64] | None = None
    #: States and next states of a log that gathers them anew whenever it is asked.
    _held: dict[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.log)

    @property
    def ended(self) -> NDArray[np.bool_]:
        """Where nothing follows: (n,) flags."""
        return self.log.terminated

    @property
    def states(self) -> Any:
        """The states of all rows, (n, ...): array, sparse matrix or data frame."""
        return self._column("states")

    @property
    def next_states(self) -> Any:
        """As `states`, of what follows."""
        return self._column("next_states")

    def some_states(self, rows: Any) -> Any:
        """The states of some rows."""
        return self._some("states", rows)

    def some_next_states(self, rows: Any) -> Any:
        """The next states of some rows."""
        return self._some("next_states", rows)

    def _column(self, name: str) -> Any:
        if self.frames is not None:
            return self.frames[name == "next_states"]
        if name not in self._held:
            self._held[name] = getattr(self.log, name)
        return self._held[name]

    def _some(self, name: str, rows: Any) -> Any:
        # Few rows of trajectories that are stored once are not worth a copy of all.
        if self.frames is None and name not in self._held and np.ndim(rows) == 1 and 4 * len(rows) < len(self):
            return getattr(self.log[rows], name)
        return take(self._column(name), rows)

    def actions_for(self, rows: Any) -> Any:
        """The actions of some rows, as numbers where they are; None where there are none."""
        taken = self.actions if self.numbers is None else self.numbers
        return None if taken is None else taken[rows]


def read(model: Any, X: Any, y: Any, extras: dict[str, Any], *, reset: bool) -> Given:
    """The arguments of `LinearValue.fit` as a `Given`; sets what a model knows of its input where ``reset`` is true."""
    if isinstance(X, Transitions):
        return _from_log(model, X, {"y": y, **extras}, reset)
    if hasattr(X, "rows") and hasattr(X, "times_A"):
        raise InputTypeError("fit takes states and rewards, or a Transitions; a Problem goes to a solver's solve().")
    if reset:
        _forget(model)
    extras = {name: plain(value) for name, value in extras.items()}
    states, y = _states_and_rewards(model, plain(X), plain(y), reset)
    n, nexts = _count(states), extras.get("next_states")
    terminated: Any
    if nexts is None:
        for name in ("terminated", "truncated", "next_actions", "next_probabilities"):
            if extras.get(name) is not None:
                raise InputError(f"{name} needs next_states: without them every row ends, and nothing follows.")
        followers, terminated = states, np.ones(n, bool)  # nothing follows
    else:
        followers, terminated = _next_states(model, states, nexts), extras.get("terminated")
    framed = is_frame(states)
    places = np.arange(n)
    weights = extras.get("sample_weight")
    log = Transitions(
        places if framed else states,
        y,
        places + n if framed else followers,
        terminated=terminated,
        truncated=extras.get("truncated"),
        ratios=_column("ratios", extras.get("ratios")),
        weights=_column("sample_weight", weights),
        episodes=extras.get("groups"),
    )
    given = Given(log, (states, followers) if framed else None)
    return _with_actions(given, extras, extras.get("actions"), extras.get("next_actions"), extras.get("probabilities"))


def states(model: Any, X: Any) -> Any:
    """States to predict for: an array, a sparse matrix or a data frame."""
    if isinstance(X, Transitions):
        raise InputTypeError("predict takes states, not a log: predict(log.states).")
    X = plain(X)
    if getattr(model, "_single_numbers", False) and np.ndim(X) == 1:
        return _checks.as_array("states", X) if model.features is not None else check_array(X, ensure_2d=False)
    if model.features is None:
        return validate_data(model, X, accept_sparse="csr", dtype=_NUMBERS, reset=False)
    found = validate_data(model, X, reset=False, skip_check_array=True)
    return found if is_frame(found) or _checks.is_sparse(found) else _checks.as_array("states", found)


def with_ratios(log: Transitions, ratios: NDArray[np.float64]) -> Transitions:
    """The same log with ratios; it stays as it is."""
    out = object.__new__(type(log))
    for name in type(log).__slots__:
        object.__setattr__(out, name, ratios if name == "ratios" else getattr(log, name))
    return out


def _from_log(model: Any, log: Transitions, extras: dict[str, Any], reset: bool) -> Given:
    for name in _OF_A_LOG:
        if extras.get(name) is not None:
            raise InputError(f"{name} is given twice: a log has its own. Make it a part of the Transitions.")
    shape = log[0].states.shape[1:]
    width = int(np.prod(shape, dtype=int))
    if reset:
        _forget(model)
        if len(shape) <= 1:
            model.n_features_in_ = width
        model._single_numbers = not shape
        model.reading_ = log.reading
    elif len(shape) <= 1 and width != getattr(model, "n_features_in_", width):
        raise InputError(f"the log's states have {width} numbers and the model was fitted with {model.n_features_in_}.")
    logged = extras.get("probabilities")
    logged = getattr(log, "probabilities", None) if logged is None else logged
    nexts = extras.get("next_actions")
    nexts = log.next_actions if nexts is None else nexts
    given = Given(log)
    return _with_actions(given, extras, log.actions, nexts, logged)


def _with_actions(given: Given, extras: dict[str, Any], actions: Any, next_actions: Any, logged: Any) -> Given:
    n = len(given)
    for name, value in (("actions", actions), ("next_actions", next_actions)):
        if value is not None and len(np.asarray(value)) != n:
            raise InputError(f"{name} has {len(np.asarray(value))} entries and the log has {n} rows: they must agree.")
    given.actions = None if actions is None else _checks.as_array("actions", actions)
    given.next_actions = None if next_actions is None else _checks.as_array("next_actions", next_actions)
    given.numbers, given.chosen = policies.numbered(given.actions), extras.get("next_actions") is not None
    if extras.get("next_probabilities") is not None:
        if extras.get("next_actions") is not None:
            raise InputError("give next_probabilities or next_actions, not both.")
        given.next_probabilities = policies.probabilities(
            "next_probabilities", extras["next_probabilities"], n_rows=n, used=~given.ended
        )
    if logged is not None:
        given.logged = _checks.column("probabilities", logged, n, low=0.0, high=1.0)
        if not given.logged.min() > 0:
            raise InputError(
                f"probabilities must be above 0; row {int(given.logged.argmin())} has 0: the logging policy cannot "
                "have taken that action."
            )
    return given


def _forget(model: Any) -> None:
    """What an earlier fit knew of its input."""
    for name in ("n_features_in_", "feature_names_in_", "_single_numbers", "reading_"):
        if hasattr(model, name):
            delattr(model, name)


def _states_and_rewards(model: Any, X: Any, y: Any, reset: bool) -> tuple[Any, Any]:
    if model.features is None:
        found: tuple[Any, Any] = validate_data(
            model, X, y, accept_sparse="csr", dtype=_NUMBERS, y_numeric=True, reset=reset
        )
        return found
    states, y = validate_data(model, X, y, reset=reset, skip_check_array=True)
    y = column_or_1d(y, warn=True)
    if is_frame(states) and isinstance(model.features, str):
        states = states.to_numpy()
    if not is_frame(states) and not _checks.is_sparse(states):
        states = _checks.as_array("X", states)
        if states.ndim == 0:
            raise InputTypeError("X must have one state a row and is a single value.")
        if reset:
            model._single_numbers = states.ndim == 1
    return states, y


def _next_states(model: Any, states: Any, nexts: Any) -> Any:
    """The next states, in the columns of the states."""
    _require_width(states, nexts)
    if is_frame(states):
        _checks.same_columns("X", states, "next_states", nexts)
    if hasattr(model, "feature_names_in_") and hasattr(nexts, "columns"):
        names = list(model.feature_names_in_)
        if list(nexts.columns) != names:
            raise InputError(
                f"next_states has the columns {list(nexts.columns)[:6]} and X {names[:6]}: rename those of the next "
                "states to match, in the same order."
            )
    if model.features is None:
        return validate_data(model, nexts, accept_sparse="csr", dtype=states.dtype, reset=False)
    if is_frame(nexts) != is_frame(states):
        if is_frame(states):
            raise InputTypeError("X is a data frame and next_states is not: they must be of one kind.")
        nexts = nexts.to_numpy()
    n = _count(states)
    if is_frame(nexts) and len(nexts) != n:
        raise InputError(f"next_states has {len(nexts)} rows and X has {n}: they must agree.")
    return nexts


def _require_width(states: Any, nexts: Any) -> None:
    shape = getattr(nexts, "shape", None) or np.shape(nexts)
    if len(shape) == 2 and len(states.shape) == 2 and shape[1] != states.shape[1]:
        raise InputError(
            f"next_states has {shape[1]} columns and X has {states.shape[1]}: they must be states of the same kind. "
            "Behind the transformers of a Pipeline X has other columns than the next states of the log: put the "
            "transformers into the model, LinearValue(features=...)."
        )


def _column(name: str, value: Any) -> Any:
    """A column under the name that the user knows it by."""
    if value is None:
        return None
    values = _checks.column(name, value, low=0.0)
    if name == "sample_weight" and not values.any():
        raise InputError("sample_weight is zero in all rows: no row would count. Give at least one a positive weight.")
    return values


def _count(states: Any) -> int:
    return int(states.shape[0])
