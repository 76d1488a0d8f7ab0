"""A space of features that is the same for all models, in which a held-out MSPBE compares them.

In its own features a model is judged by equations that it was free to choose: one constant feature meets its single
equation nearly always. So a score asks other questions of the temporal-difference errors, the same of every model: are
they 0 on average in each state where there are few, and along each of 100 random waves over the states where there are
many? The space depends on the training states and actions and on a fixed seed, and on nothing of the model.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks
from valuate.errors import InputError
from valuate.estimator.frames import is_frame, take
from valuate.problem import Problem
from valuate.summing import Moments

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.estimator.inputs import Given

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]

#: Training rows that the space is made from, spread over the log.
SAMPLE = 20_000
#: States are few up to this many.
FEW = 200
#: Waves over states, and over states and actions together.
WAVES = 100
MOST = 400
#: Held-out rows whose features are made at a time.
BLOCK = 1 << 16
#: Of the directions and phases of the waves. The same for all models: what differs in it cannot be compared.
SEED = 20
#: Standard deviations at which numbers are cut off, so that a far state does not make noise of all waves.
CUT = 5.0
#: Columns beyond which states are looked at through so many random directions.
WIDE, NARROWED = 500, 20
#: Entries of the states that are made dense at a time.
ENTRIES = 1 << 23
#: Widths of the waves, in units of the root of the number of columns.
WIDTHS = (0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """Indicators of few states, or random waves over many; for action values in a block for each action.

    Attributes
    ----------
    kind : {"states", "waves", "none"}
        "none" where states are no numbers and not few: there is no score then.
    table : (k, p) array
        The few states; or the directions of the waves, (p, k).
    phases : (k,) array
    centre, scale : (p,) array
        Of the states' numbers.
    n_actions : int
        Blocks; 0 for state values, and for actions whose numbers stand behind those of the state.
    acts : bool
        Whether it is a space over states and actions.
    """

    kind: str
    table: Any
    phases: Vector = field(default_factory=lambda: np.empty(0))
    centre: Vector = field(default_factory=lambda: np.empty(0))
    scale: Vector = field(default_factory=lambda: np.empty(0))
    n_actions: int = 0
    acts: bool = False

    @classmethod
    def of(cls, given: Given, kind: str, n_actions: int | None) -> Reference:
        """From the rows of a training log."""
        n = len(given)
        most = max(2 * FEW, min(SAMPLE, ENTRIES // _width(given.some_states(np.arange(1)))))
        rows = np.unique(np.linspace(0, n - 1, most).astype(np.int64)) if n > most else np.arange(n)
        blocks = n_actions or 0
        states = given.some_states(rows)
        acts = kind == "action"
        numbers = _numbers(states, given.actions[rows] if acts and not blocks else None)
        labels = _labels(states) if numbers is None else numbers
        few = _few(labels)
        if few is not None:
            return cls("states", few, n_actions=blocks, acts=acts)
        if numbers is None:
            return cls("none", np.empty((0, 0)), n_actions=blocks, acts=acts)
        return cls._waves(numbers, blocks, acts)

    @classmethod
    def _waves(cls, numbers: Matrix, blocks: int, acts: bool) -> Reference:
        centre, scale = numbers.mean(axis=0), numbers.std(axis=0)
        scale = np.where(scale > 0, scale, np.inf)
        p = max(1, int(np.isfinite(scale).sum()))
        count = max(1, min(WAVES, MOST // max(1, blocks)))
        rng = np.random.default_rng(SEED)
        widths = np.resize(WIDTHS, count) * np.sqrt(p)
        directions = rng.standard_normal((numbers.shape[1], count)) / widths
        return cls("waves", directions, rng.uniform(0, 2 * np.pi, count), centre, scale, blocks, acts)

    def rows(self, states: Any, actions: Any = None) -> Any:
        """The space's features of states, with actions for action values: (m, k), dense or sparse."""
        numbers = _numbers(states, actions if self.acts and not self.n_actions else None)
        blocks = np.zeros(states.shape[0], np.int64) if not self.n_actions else actions
        if self.kind == "states":
            return self._indicators(_labels(states) if numbers is None else numbers, blocks)
        if numbers is None or numbers.shape[1] != len(self.centre):
            raise InputError("the states are not of the kind that the model was fitted to: the score needs such.")
        z = np.clip((numbers - self.centre) / self.scale, -CUT, CUT)
        waves = np.column_stack([np.ones(len(z)), np.sqrt(2.0) * np.cos(z @ self.table + self.phases)])
        if not self.n_actions:
            return waves
        out = np.zeros((len(waves), self.n_actions, waves.shape[1]))
        out[np.arange(len(waves)), blocks] = waves
        return out.reshape(len(waves), -1)

    def _indicators(self, labels: NDArray[Any], blocks: Any) -> Any:
        from scipy import sparse

        places, k = _places(labels, self.table), len(self.table)
        at = np.flatnonzero(places >= 0)
        columns = blocks[at] * k + places[at]
        return sparse.csr_array((np.ones(len(at)), (at, columns)), shape=(len(labels), max(1, self.n_actions) * k))

    def mspbe(self, given: Given, errors: Vector) -> float:
        """1/2 |mean w rho tdError psi|^2 in the norm of (mean w psi psi')^-1, without a ridge."""
        largest = float(np.abs(errors).max())
        if largest == 0.0:
            return 0.0
        log, total = given.log, Moments(ridge=0.0)
        step = max(1024, min(BLOCK, ENTRIES // _width(given.some_states(np.arange(1)))))
        for first in range(0, len(given), step):
            part = slice(first, first + step)
            ratios, weights = (None if column is None else column[part] for column in (log.ratios, log.weights))
            if weights is not None and not weights.any():
                continue
            rows = self.rows(take(given.states, part), given.actions_for(part))
            # With rewards that end at once b is the mean of w rho r psi, which is the residual at theta = 0.
            total.add(
                Problem.from_arrays(rows, errors[part] / largest, rows, discount=0.0, ratios=ratios, weights=weights)
            )
        return largest**2 * total.equations().mspbe(np.zeros(total.dim))

    def require(self) -> None:
        """Refuse where there is no such space."""
        if self.kind == "none":
            raise InputError(
                "there is no score for these states: a reference space is made of states that are numbers, or few "
                f"(up to {FEW} different ones). Turn categories into numbers first."
            )

    def __str__(self) -> str:
        over = f", for each of {self.n_actions} actions" if self.n_actions else ""
        if self.kind == "states":
            return f"indicators of {len(self.table)} states{over}"
        if self.kind == "waves":
            return (
                f"a constant and {self.table.shape[1]} random waves over {len(self.centre)} standardised numbers{over}"
            )
        return "none: the states are no numbers, and many"


def _numbers(states: Any, actions: Any) -> Matrix | None:
    """The numbers of each state, and of each action, as a matrix; None where there are others than numbers."""
    if is_frame(states):
        states = states.to_numpy()
    if _width(states) > WIDE:
        states = _narrowed(states)
    elif _checks.is_sparse(states):
        states = states.toarray()
    parts = [np.asarray(part) for part in (states, actions) if part is not None]
    try:
        found = np.column_stack([part.reshape(len(part), -1).astype(np.float64) for part in parts])
    except (TypeError, ValueError):
        return None
    return found if np.isfinite(found).all() else None


def _width(states: Any) -> int:
    return max(1, int(np.prod(states.shape[1:], dtype=np.int64)))


def _narrowed(states: Any) -> Any:
    """Wide states by their products with a few random directions; states that are no numbers as they are."""
    flat = states if _checks.is_sparse(states) else states.reshape(len(states), -1)
    if flat.dtype.kind not in "biuf":
        return states
    return flat @ np.random.default_rng(SEED).standard_normal((flat.shape[1], NARROWED))


def _labels(states: Any) -> NDArray[Any]:
    """One text for each state that is no numbers."""
    array = np.asarray(states.to_numpy() if is_frame(states) else states)
    rows = array.reshape(len(array), -1)
    return np.array(["\x1f".join(map(str, row)) for row in rows.tolist()])


def _few(labels: NDArray[Any]) -> NDArray[Any] | None:
    """The distinct rows, where they are few and repeat."""
    if len(labels) > 4 * FEW and len(np.unique(labels[: 4 * FEW], axis=0)) > FEW:
        return None
    found = np.unique(labels, axis=0)
    return found if len(found) <= FEW and 2 * len(found) <= len(labels) else None


def _places(labels: NDArray[Any], table: NDArray[Any]) -> NDArray[np.int64]:
    """Where each row is in a table of few; -1 where it is not."""
    if labels.dtype.kind != table.dtype.kind or labels.shape[1:] != table.shape[1:]:
        return np.full(len(labels), -1)
    both, codes = np.unique(np.concatenate([table, labels]), axis=0, return_inverse=True)
    codes = codes.reshape(-1)
    place = np.full(len(both), -1)
    place[codes[: len(table)]] = np.arange(len(table))
    return np.asarray(place[codes[len(table) :]], dtype=np.int64)
