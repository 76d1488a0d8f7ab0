"""Features: what the user gave, fitted; and how states, or pairs of state and action, become rows of numbers."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from valuate import _checks, features
from valuate.errors import InputError, InputTypeError
from valuate.estimator import policies
from valuate.estimator.frames import take
from valuate.features import StateActionBlocks
from valuate.transitions import Transitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from valuate.estimator.inputs import Given
    from valuate.estimator.policies import Decisions

    Matrix = NDArray[np.float64]

#: Blocks of states are dense up to this many features; their pairs with an action are mostly zeros.
DENSE = 1000


class States:
    """Features of states.

    Parameters
    ----------
    map : feature map, callable or None
        Fitted.
    """

    n_actions: int | None = None

    def __init__(self, map: Any) -> None:
        self.map = map

    def rows(self, states: Any, actions: Any = None) -> Any:
        """(m, d), dense or sparse; actions count for nothing."""
        return apply(self.map, states)

    def expected(self, states: Any, probabilities: Matrix) -> Any:
        """The features of the states, whatever is done in them: (m, d)."""
        return self.rows(states)


class Pairs:
    """Features of pairs of state and action by a map that takes both.

    Parameters
    ----------
    map : feature map or callable
    form : {"tuple", "arguments", "columns"}
        Whether the map takes one tuple, two arguments, or the action's numbers behind those of the state.
    n_actions : int or None
        None where actions are not numbered.
    """

    def __init__(self, map: Any, form: str, n_actions: int | None) -> None:
        self.map, self.form, self.n_actions = map, form, n_actions

    def rows(self, states: Any, actions: Any = None) -> Any:
        """(m, d), dense or sparse."""
        if self.form == "arguments":
            return _tidy(self.map(states, actions))
        return apply(self.map, (states, actions) if self.form == "tuple" else joined(states, actions))

    def expected(self, states: Any, probabilities: Matrix) -> Any:
        """Features of each state's actions, summed with their probabilities: (m, d)."""
        out: Any = None
        parts, places, shares = [], [], []
        for action in range(probabilities.shape[1]):
            share = probabilities[:, action]
            chosen = np.flatnonzero(share)
            if not len(chosen):
                continue
            found = self.rows(take(states, chosen), np.full(len(chosen), action))
            if _checks.is_sparse(found):
                parts.append(found)
                places.append(chosen)
                shares.append(share[chosen])
                continue
            if out is None:
                out = np.zeros((len(probabilities), found.shape[1]), np.result_type(found, np.float32))
            out[chosen] += share[chosen, None] * found
        return _summed(parts, places, shares, len(probabilities)) if parts else out


class Blocks:
    """Features of pairs of state and action in blocks, one an action: the state is transformed once for all actions.

    Parameters
    ----------
    map : StateActionBlocks
    """

    def __init__(self, map: StateActionBlocks) -> None:
        self.map, self.n_actions = map, int(map.n_actions)

    def rows(self, states: Any, actions: Any = None) -> Any:
        """(m, n_actions * d), dense or sparse."""
        return self.map.transform((states, actions))

    def expected(self, states: Any, probabilities: Matrix) -> Any:
        """Features of each state's actions, summed with their probabilities: (m, n_actions * d)."""
        phi = self.map.state_features(states)
        if not _checks.is_sparse(phi):
            out = (probabilities.astype(phi.dtype)[:, :, None] * phi[:, None, :]).reshape(len(phi), -1)
            if not self.map.sparse_output:
                return out
        from scipy import sparse

        if not _checks.is_sparse(phi):
            return sparse.csr_array(out)
        return sparse.hstack([sparse.diags_array(share) @ phi for share in probabilities.T], format="csr")


def apply(map: Any, states: Any) -> Any:
    """The output of a map as an array or a sparse matrix."""
    if map is None:
        rows = _tidy(states)
        return rows.reshape(-1, 1) if rows.ndim == 1 else rows
    return _tidy(map.transform(states) if hasattr(map, "transform") else map(states))


def joined(states: Any, actions: Any) -> Any:
    """Numbers of the states with those of the actions behind them."""
    if _checks.is_sparse(states):
        raise InputTypeError("states are sparse: features of pairs then need a map that takes (states, actions).")
    parts = [part.reshape(len(part), -1) for part in (np.asarray(states), np.asarray(actions))]
    return np.column_stack(parts)


def of_states(given: Given, wanted: Any, *, fit: bool) -> tuple[States, str]:
    """The features of states, fitted on the log's where ``fit`` is true, and a sentence on a choice that was made."""
    map, note = _made(wanted, given.log, lambda: given.states, fit)
    return States(map), note


def of_pairs(given: Given, wanted: Any, n_actions: int | None, *, fit: bool) -> tuple[Pairs | Blocks, str]:
    """As `of_states`, for pairs; states' features are put into one block for each action where actions are numbered."""
    if isinstance(wanted, StateActionBlocks):
        return Blocks(_fitted(wanted, lambda: (given.states, given.actions), fit)), ""
    form = form_of(wanted)
    if form == "arguments":
        return Pairs(wanted, form, n_actions), ""
    if form == "tuple":
        return Pairs(_fitted(wanted, lambda: (given.states, given.actions), fit), form, n_actions), ""
    if n_actions is None:
        both = joined(given.states, given.actions)
        map, note = _made(wanted, Transitions(both, given.log.rewards, both), lambda: both, fit)
        return Pairs(map, "columns", None), note
    map, note = _made(wanted, given.log, lambda: given.states, fit)
    of_state = States(map)
    sample = of_state.rows(given.some_states(np.arange(1)))
    sparse = _checks.is_sparse(sample) or sample.shape[1] * n_actions > DENSE
    inner = partial(apply, None) if map is None else map
    return Blocks(StateActionBlocks(inner, n_actions, sparse_output=sparse)), note


def decided(map: Any, states: Any, decisions: Decisions, rows: Any = None) -> Any:
    """Features of pairs of m states with what a policy does in them, summed over actions: (m, d)."""
    if decisions.probabilities is None:
        if map.n_actions is not None:
            policies.require_known("the policy's actions", decisions.actions, map.n_actions, rows)
        return map.rows(states, decisions.actions)
    count = decisions.probabilities.shape[1]
    if map.n_actions is not None and count != map.n_actions:
        raise InputError(f"the policy gives probabilities of {count} actions and the model has {map.n_actions}.")
    return map.expected(states, decisions.probabilities)


def form_of(wanted: Any) -> str:
    """How a map takes pairs of state and action; "" for one of states."""
    if isinstance(wanted, StateActionBlocks) or getattr(wanted, "takes_pairs", False):
        return "tuple"
    if callable(wanted) and not hasattr(wanted, "transform") and _arguments(wanted) == 2:
        return "arguments"
    return ""


def checked(rows: Any, count: int, n_features: int) -> Any:
    """Rows of finite features, as many as there are states and as wide as the model's."""
    if rows.ndim != 2 or rows.shape[0] != count:
        raise InputError(f"the feature map gave an array of shape {rows.shape} for {count} states.")
    read: Callable[..., Any] = _checks.sparse_rows if _checks.is_sparse(rows) else _checks.matrix
    name = "the output of the feature map"
    if rows.shape[1] != n_features:
        raise InputError(f"{name} has {rows.shape[1]} columns and the model was fitted with {n_features}.")
    return read(name, rows)


def _made(wanted: Any, log: Transitions, states: Callable[[], Any], fit: bool) -> tuple[Any, str]:
    """A fitted map from what a user gave, and a sentence on what was chosen."""
    if isinstance(wanted, str):
        if not fit:
            raise InputError(
                f"partial_fit cannot choose features={wanted!r}: the first batch alone would settle them. Make them "
                "before, from a log with states of all kinds: valuate.features.choose(log) or from_text(text, log)."
            )
        maps: Any = features
        map, note = maps.choose(log) if wanted == "auto" else (maps.from_text(wanted, log), "")
        return (map if _is_fitted(map) else _fitted(map, states, fit)), note
    if inspect.isclass(wanted):
        raise InputTypeError(f"features is the class {wanted.__name__} itself; give an object: {wanted.__name__}().")
    if wanted is None or hasattr(wanted, "transform") or callable(wanted):
        return _fitted(wanted, states, fit), ""
    raise InputTypeError(
        "features must be None, a text such as 'auto', an object with a transform method, or callable; "
        f"{type(wanted).__name__} is none of these."
    )


def _fitted(map: Any, states: Callable[[], Any], fit: bool) -> Any:
    """A fitted copy of a transformer; the map itself where there is nothing to fit, or fitting is not allowed."""
    if not hasattr(map, "transform"):
        return map
    if fit:
        copy = clone(map, safe=False)
        # A frozen one is fitted for good, and its fit asks for a y.
        return copy.fit(states()) if hasattr(copy, "fit") and not isinstance(copy, FrozenEstimator) else copy
    if not _is_fitted(map):
        raise InputError(
            f"partial_fit cannot fit the features {map!r}: what they learn would depend on the first batch alone, and "
            "earlier batches would have other features than later ones. Fit them first, on states of all kinds "
            "(features.fit(states)), or use fit for the first batch."
        )
    return map


def _is_fitted(map: Any) -> bool:
    try:
        check_is_fitted(map)
    except NotFittedError:
        return False
    except TypeError:  # no estimator: it has no fit
        return True
    return True


def _arguments(function: Any) -> int:
    """Arguments that a callable needs; 1 where that cannot be told."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return 1
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(part.default is part.empty and part.kind in kinds for part in parameters)


def _summed(parts: list[Any], places: list[Any], shares: list[Any], count: int) -> Any:
    """Sparse rows added up at their places, each times its share."""
    from scipy import sparse

    place, share = np.concatenate(places), np.concatenate(shares)
    chooser = sparse.csr_array((share, (place, np.arange(len(place)))), shape=(count, len(place)))
    return chooser @ sparse.vstack(parts, format="csr")


def _tidy(rows: Any) -> Any:
    return rows if _checks.is_sparse(rows) else _checks.as_array("the output of the feature map", rows)
