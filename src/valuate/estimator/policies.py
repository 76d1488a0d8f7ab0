"""A policy as a user gives it, read into probabilities or actions, and checked row by row."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate import _checks
from valuate.errors import InputError, InputTypeError, ValuateWarning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]
    Actions = NDArray[np.int64]

#: How far from 1 probabilities may sum: what float32 makes of them. They are divided by their sum.
CLOSE = 1e-5
#: Actions are counted up to this.
MOST_ACTIONS = 100_000
#: Mean probability, on actions that the log never took, up to which importance ratios still mean something.
UNSEEN = 0.01
#: Actions that a message names.
NAMED = 5


class Decisions(NamedTuple):
    """What a policy does in m states: probabilities (m, n_actions), or one action each, (m, ...)."""

    probabilities: Matrix | None
    actions: Any

    def of(self, actions: Actions) -> NDArray[np.float64]:
        """The probability of one action in each state: (m,)."""
        if self.probabilities is None:
            return np.asarray(self.actions == actions, dtype=np.float64)
        return np.asarray(self.probabilities[np.arange(len(actions)), actions])

    def take(self, places: Any) -> Decisions:
        """Those of some states."""
        return Decisions(*(None if part is None else part[places] for part in self))


class Policy:
    """The policy that is evaluated.

    Parameters
    ----------
    given : callable or classifier
        From m states to probabilities (m, n_actions) or actions (m,); or an object with ``predict_proba``.
    discrete : bool
        Whether actions are numbered.
    """

    def __init__(self, given: Any, *, discrete: bool) -> None:
        self.given, self.discrete = given, discrete
        self._ask = getattr(given, "predict_proba", given)
        if not callable(self._ask):
            raise InputTypeError(
                "policy must be callable, from m states to probabilities (m, n_actions) or actions (m,), or have "
                f"predict_proba; not {type(given).__name__}. Arrays for the next states of a log go to fit: "
                "next_probabilities= or next_actions=."
            )
        classes = getattr(given, "classes_", None)
        if classes is not None and not np.array_equal(classes, np.arange(len(classes))):
            raise InputError(
                f"policy is a classifier of {list(classes)[:5]}: its classes must be the actions 0, 1, ... in order."
            )

    def __call__(self, states: Any, rows: Any = None) -> Decisions:
        """Decisions in m states, whose rows in the log are ``rows``."""
        m = states.shape[0] if hasattr(states, "shape") else len(states)
        rows = np.arange(m) if rows is None else rows
        answer = _checks.as_array("the policy's answer", self._ask(states))
        if answer.ndim == 0 or len(answer) != m:
            raise InputError(
                f"the policy gave an array of shape {answer.shape} for {m} states: it must give probabilities "
                f"({m}, n_actions) or actions ({m},)."
            )
        if not self.discrete:
            return Decisions(None, answer)
        if answer.ndim == 2 and not (answer.shape[1] == 1 and answer.dtype.kind in "iu"):
            return Decisions(probabilities("the policy's probabilities", answer, rows=rows), None)
        found = numbered(answer)
        if found is None:
            raise InputError(
                f"the policy gave {answer.dtype} numbers of shape {answer.shape} which are no actions: it must give "
                f"actions, whole numbers from 0, ({m},), or probabilities, ({m}, n_actions)."
            )
        return Decisions(None, found)


class Unseen:
    """What a policy does that the log never did: importance ratios leave it out, and say nothing of that.

    Parameters
    ----------
    numbers : (n,) array
        The logged actions.
    weights : (n,) array or None
        Of the rows.
    """

    def __init__(self, numbers: Actions, weights: NDArray[np.float64] | None) -> None:
        self._weights = np.ones(len(numbers)) if weights is None else weights
        self._logged = np.unique(numbers[self._weights > 0])
        self._mass: dict[int, float] = {}

    def look(self, decisions: Decisions, rows: Any) -> None:
        """Add up what the policy does in the states of these rows."""
        weights = self._weights[rows]
        if decisions.probabilities is None:
            masses = np.bincount(decisions.actions, weights)
        else:
            masses = weights @ decisions.probabilities
        for action in np.flatnonzero(masses).tolist():
            self._mass[action] = self._mass.get(action, 0.0) + float(masses[action])

    def taken(self) -> str:
        """Which actions the log has and which the policy takes, in a sentence."""
        return f"The log has the actions {_some(self._logged.tolist())}, the policy takes {_some(sorted(self._mass))}."

    def tell(self, whole: bool) -> None:
        """Refuse, or warn of, a policy that does what the log never did; never refuse for a part of a log."""
        shares = {action: mass / float(self._weights.sum()) for action, mass in self._mass.items()}
        strange = sorted(set(shares) - set(self._logged.tolist()))
        share = sum(shares[action] for action in strange)
        if not strange or (not whole and share <= UNSEEN):
            return
        word = f"action{'s' * (len(strange) > 1)} {_some(strange)}"
        said = f"the policy takes {word} with probability {share:.2g} on average, and the log never: "
        if share > UNSEEN and whole:
            raise InputError(
                f"{said}no importance ratio can make up for that, and the answer would be the value of something "
                "else. Evaluate a policy that keeps to the logged actions, or use a log that has them."
            )
        warnings.warn(f"{said}what would follow is left out.", ValuateWarning, stacklevel=5)


def _some(actions: list[int]) -> str:
    return ", ".join(map(str, actions[:NAMED])) + ", ..." * (len(actions) > NAMED)


def probabilities(
    name: str,
    value: Any,
    *,
    n_rows: int | None = None,
    rows: Any = None,
    used: Any = None,
    n_actions: int | None = None,
) -> Matrix:
    """Probabilities of actions, (m, n_actions), each row summing to 1; only the rows of ``used`` are looked at."""
    array = _checks.as_array(name, value)
    if array.ndim != 2 or (n_rows is not None and len(array) != n_rows):
        wanted = f"({'m' if n_rows is None else n_rows}, {'n_actions' if n_actions is None else n_actions})"
        raise InputError(f"{name} must have shape {wanted}, a row for each state, and has {array.shape}.")
    if n_actions is not None and array.shape[1] != n_actions:
        raise InputError(f"{name} are of {array.shape[1]} actions and there are {n_actions}.")
    if array.dtype.kind not in "fiub":
        raise InputTypeError(f"{name} must be numbers and have dtype {array.dtype}.")
    array = array.astype(np.float64)
    if used is not None:
        array[~used] = 1.0 / array.shape[1]
    sums = array.sum(axis=1)
    wrong = ~((np.abs(sums - 1.0) <= CLOSE) & (array.min(axis=1) >= 0))
    if wrong.any():
        k = int(wrong.argmax())
        row = k if rows is None else rows[k]
        count = f"{int(wrong.sum())} of {len(array)} rows are wrong"
        least = float(array[k].min())
        if least < 0:
            raise InputError(f"{name} must be at least 0; row {row} has {least:.6g} ({count}).")
        raise InputError(f"{name} must sum to 1 in each row; row {row} sums to {sums[k]:.6g} ({count}).")
    array /= sums[:, None]
    return array


def numbered(actions: Any) -> Actions | None:
    """Actions as whole numbers from 0, (n,); None where they are something else."""
    if actions is None or _checks.is_sparse(actions):
        return None
    array = np.asarray(actions)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "biuf" or not len(array):
        return None
    if not (array.min() >= 0 and array.max() < MOST_ACTIONS):
        return None
    whole = array.astype(np.int64)
    return whole if array.dtype.kind in "biu" or np.array_equal(whole, array) else None


def require_known(name: str, actions: Actions, n_actions: int, rows: Any = None) -> None:
    """Refuse actions that are not among ``n_actions``."""
    outside = actions >= n_actions
    if outside.any():
        k = int(outside.argmax())
        row = k if rows is None else rows[k]
        raise InputError(
            f"{name} must be among the {n_actions} actions, 0 to {n_actions - 1}; row {row} has {actions[k]} "
            f"({int(outside.sum())} of {len(actions)} rows are outside)."
        )


def not_numbered(name: str) -> InputError:
    """What is raised where some actions are whole numbers from 0 and others are not."""
    return InputError(f"{name} must be whole numbers from 0, as the actions are.")
