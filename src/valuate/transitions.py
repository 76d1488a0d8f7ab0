"""A log of transitions: columns of equal length, checked once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from valuate import _checks, _columns
from valuate.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from valuate.io import Reading

__all__ = ["Transitions"]

Rows: TypeAlias = SupportsIndex | slice | ArrayLike


@dataclass(frozen=True, slots=True, init=False, repr=False, eq=False)
class Transitions:
    """A log of n transitions.

    The log keeps views of the arrays it is given and never writes to them; do not change them while it is in use.

    Parameters
    ----------
    states : array-like, data frame or scipy.sparse matrix, (n, ...)
        The state of each row, of any shape and dtype that the feature map takes. Data frames become NumPy arrays,
        sparse matrices CSR.
    rewards : array-like, (n,)
    next_states : like `states`, (n, ...)
        Where each row went. A truncated row needs its true last observation; a terminated row any finite one.
    terminated : array-like of bool, (n,), optional
        Whether the process ended with the row: the value after it is 0. None: no row ended.
    truncated : array-like of bool, (n,), optional
        Whether the recording ended with the row, but not the process: the value after it is that of the next state.
        A row with both flags counts as terminated.
    actions, next_actions : like `states`, (n, ...), optional
        For feature maps of state-action pairs.
    ratios : array-like, (n,), optional
        Importance ratios, at least 0.
    weights : array-like, (n,), optional
        Multiplicities, at least 0 and not all 0.
    episodes : array-like of hashable, (n,), optional
        Which episode each row belongs to.
    probabilities : array-like, (n,), optional
        The probability with which the logging policy took the logged action, above 0 and at most 1.

    Attributes
    ----------
    states, next_states, actions, next_actions
        As given, or None for actions that were not.
    rewards : float64, (n,)
    terminated, truncated : bool, (n,)
    ratios, weights, probabilities : float64, (n,), or None
    episodes : (n,), or None
    reading : valuate.io.Reading, or None
        How the log was read, where it was (`valuate.read`). Logs of some of its rows have the same.

    Raises
    ------
    InputError, InputTypeError
        Columns of different lengths, NaN or infinity, a value out of range, an empty log: with the row and the column.

    Examples
    --------
    >>> log = Transitions([[0.0], [1.0]], [0.5, 1.0], [[1.0], [1.0]], terminated=[False, True])
    >>> log
    Transitions(2 rows, states float64 (1,), 1 terminated)
    >>> log[1].rewards
    array([1.])
    """

    # Either the states and the next states, or one table and where each row's two states are in it.
    _states: Any
    _next_states: Any
    _table: Any
    _state_rows: NDArray[np.int64] | None
    _next_rows: NDArray[np.int64] | None
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    actions: Any
    next_actions: Any
    ratios: NDArray[np.float64] | None
    weights: NDArray[np.float64] | None
    episodes: NDArray[Any] | None
    probabilities: NDArray[np.float64] | None
    reading: Reading | None

    def __init__(
        self,
        states: Any,
        rewards: ArrayLike,
        next_states: Any,
        *,
        terminated: ArrayLike | None = None,
        truncated: ArrayLike | None = None,
        actions: Any = None,
        next_actions: Any = None,
        ratios: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        episodes: ArrayLike | Sequence[Hashable] | None = None,
        probabilities: ArrayLike | None = None,
    ) -> None:
        rewards = _checks.column("rewards", rewards)
        n = len(rewards)
        _checks.same_columns("states", states, "next_states", next_states)
        states = _columns.states("states", states, n)
        next_states = _columns.states("next_states", next_states, n)
        _columns.require_alike("states", states, "next_states", next_states)
        self._set(
            _states=states,
            _next_states=next_states,
            rewards=rewards,
            **_actions(actions, next_actions, n),
            **_endings(terminated, truncated, n),
            **_scalars(n, ratios, weights, episodes, probabilities),
        )

    @classmethod
    def from_table(
        cls,
        table: Any,
        states: ArrayLike,
        rewards: ArrayLike,
        next_states: ArrayLike,
        *,
        terminated: ArrayLike | None = None,
        truncated: ArrayLike | None = None,
        actions: Any = None,
        next_actions: Any = None,
        ratios: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        episodes: ArrayLike | Sequence[Hashable] | None = None,
        probabilities: ArrayLike | None = None,
    ) -> Self:
        """A log whose states are rows of one table, so that each is stored once.

        Parameters
        ----------
        table : array-like or scipy.sparse matrix, (m, ...)
            States, in any order.
        states, next_states : array-like of int, (n,)
            The row of the table that each state and next state is. That of a terminated row counts for nothing, but
            must be in the table.
        rewards, terminated, truncated, actions, next_actions, ratios, weights, episodes, probabilities
            As for `Transitions`.

        Returns
        -------
        Transitions
            `states` and `next_states` are gathered when they are asked for.
        """
        rewards = _checks.column("rewards", rewards)
        n = len(rewards)
        table = _columns.states("table", table)
        log = object.__new__(cls)
        log._set(
            _table=table,
            _state_rows=_checks.indices("states", states, n, table.shape[0]).astype(np.int64, copy=False),
            _next_rows=_checks.indices("next_states", next_states, n, table.shape[0]).astype(np.int64, copy=False),
            rewards=rewards,
            **_actions(actions, next_actions, n),
            **_endings(terminated, truncated, n),
            **_scalars(n, ratios, weights, episodes, probabilities),
        )
        return log

    @classmethod
    def from_episodes(
        cls, episodes: Iterable[tuple[Any, Any, ArrayLike, bool]], *, probabilities: Iterable[ArrayLike] | None = None
    ) -> Self:
        """A log from whole episodes, each trajectory stored once.

        Parameters
        ----------
        episodes : iterable of (observations, actions, rewards, terminated)
            `observations` (T + 1, ...) has one row more than `rewards` (T,); `actions` (T, ...) may be None, for all
            episodes or for none; `terminated` says whether the process ended with the last row. Where it did not, that
            row is marked truncated and its next state is the last observation.
        probabilities : iterable of array-like, (T,) each, optional
            For each episode, the probabilities with which the logging policy took the logged actions.

        Returns
        -------
        Transitions
            With `episodes` numbered from 0. `states` and `next_states` are gathered when they are asked for.
        """
        if not isinstance(episodes, Iterable):
            raise InputTypeError(
                "episodes must be a list of (observations, actions, rewards, terminated), not "
                f"{type(episodes).__name__}."
            )
        parts = [_Episode.read(number, given) for number, given in enumerate(episodes)]
        if not parts:
            raise InputError("The list of episodes is empty: at least one is needed.")
        first = parts[0]
        for part in parts[1:]:
            _columns.require_alike(
                "episode 0: observations", first.observations, f"{part.name}: observations", part.observations
            )
            if (part.actions is None) != (first.actions is None):
                without = part if part.actions is None else first
                raise InputError(
                    f"{without.name} has no actions and others have. Give them for all episodes or for none."
                )
            if first.actions is not None:
                _columns.require_alike("episode 0: actions", first.actions, f"{part.name}: actions", part.actions)
        lengths = np.array([len(part.rewards) for part in parts])
        episode_of_row = np.repeat(np.arange(len(parts)), lengths)
        # Each episode has one observation more than rows, so its rows lie one place further on for each one before it.
        state_rows = np.arange(lengths.sum()) + episode_of_row
        ends = lengths.cumsum() - 1
        terminated, truncated = np.zeros((2, len(state_rows)), dtype=bool)
        terminated[ends] = [part.terminated for part in parts]
        truncated[ends] = ~terminated[ends]
        chances = None
        if probabilities is not None:
            chances = _join_chances(probabilities, [part.name for part in parts], lengths.tolist())
        log = object.__new__(cls)
        log._set(
            _table=_columns.stack([part.observations for part in parts]),
            _state_rows=state_rows,
            _next_rows=state_rows + 1,
            rewards=np.concatenate([part.rewards for part in parts]),
            terminated=terminated,
            truncated=truncated,
            actions=None if first.actions is None else _columns.stack([part.actions for part in parts]),
            episodes=episode_of_row,
            probabilities=chances,
        )
        return log

    @property
    def states(self) -> Any:
        """The state of each row, (n, ...). Gathered anew at each call where trajectories are stored once."""
        return self._states if self._table is None else self._table[self._state_rows]

    @property
    def next_states(self) -> Any:
        """The next state of each row, (n, ...). Gathered anew at each call where trajectories are stored once."""
        return self._next_states if self._table is None else self._table[self._next_rows]

    def indexed_states(self) -> _columns.Indexed | None:
        """One table of states and where each row's state and next state are in it, or None.

        There is one where trajectories are stored once: for `from_episodes`, and where `states` and `next_states` are
        views of one array, such as `x[:-1]` and `x[1:]`. A feature map then needs to see each observation once only.

        Returns
        -------
        table : like `states`, (m, ...)
        state_rows, next_rows : int64, (n,)
            `table[state_rows]` are the states and `table[next_rows]` the next states.
        """
        if self._table is None:
            return _columns.overlap(self._states, self._next_states)
        assert self._state_rows is not None and self._next_rows is not None
        return self._table, self._state_rows, self._next_rows

    def __array__(self, dtype: Any = None, copy: Any = None) -> NDArray[Any]:
        """Refused: what takes arrays, a transformer before a model say, is told what to do."""
        raise InputTypeError(
            "a log is no array. Transformers in front of a model cannot take one: put them into the model, "
            "LinearValue(features=make_pipeline(...)); or give log.states."
        )

    def __len__(self) -> int:
        return len(self.rewards)

    def __iter__(self) -> Iterator[Transitions]:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, rows: Rows) -> Transitions:
        """The log of some rows: an index, a slice, a mask or an array of indices (negative ones count from the end)."""
        rows = _columns.selection(rows, len(self))
        given = {name: getattr(self, name) for name in self.__slots__ if name not in ("_table", "reading")}
        taken = {name: None if column is None else column[rows] for name, column in given.items()}
        if self._table is not None:
            taken |= _columns.compact(self._table, taken["_state_rows"], taken["_next_rows"])
        if taken["weights"] is not None:
            _checks.weights("weights of the chosen rows", taken["weights"])
        log = object.__new__(type(self))
        log._set(**taken, reading=self.reading)
        return log

    def __repr__(self) -> str:
        kept = self._states if self._table is None else self._table
        sparse = "sparse " if _checks.is_sparse(kept) else ""
        parts = [f"{len(self)} row{'s' * (len(self) != 1)}", f"states {sparse}{kept.dtype} {kept.shape[1:]}"]
        parts += [
            f"{count} {name}" for name in ("terminated", "truncated") if (count := int(getattr(self, name).sum()))
        ]
        columns = ("actions", "next_actions", "ratios", "weights", "episodes", "probabilities")
        parts += [name for name in columns if getattr(self, name) is not None]
        return f"Transitions({', '.join(parts)})"

    def _set(self, **columns: Any) -> None:
        for name in self.__slots__:
            object.__setattr__(self, name, columns.get(name))


@dataclass(frozen=True, slots=True)
class _Episode:
    """One checked episode of T rows."""

    name: str
    observations: Any  # (T + 1, ...)
    actions: Any  # (T, ...) or None
    rewards: NDArray[np.float64]  # (T,)
    terminated: bool

    @classmethod
    def read(cls, number: int, given: Any) -> Self:
        name = f"episode {number}"
        if not isinstance(given, tuple | list) or len(given) != 4:
            raise InputTypeError(f"{name} must be a tuple (observations, actions, rewards, terminated).")
        observations, actions, rewards, terminated = given
        rewards = _checks.column(f"{name}: rewards", rewards)
        observations = _columns.states(f"{name}: observations", observations)
        if observations.shape[0] != len(rewards) + 1:
            raise InputError(
                f"{name} has {observations.shape[0]} observations and {len(rewards)} rewards. That many rewards "
                f"need {len(rewards) + 1} observations: the state before each step and the one after the last. "
                "(Some formats pad rewards to the length of the observations: drop the padding.)"
            )
        if actions is not None:
            actions = _columns.states(f"{name}: actions", actions)
            if actions.shape[0] != len(rewards):
                raise InputError(
                    f"{name} has {actions.shape[0]} actions and {len(rewards)} rewards: they must agree. "
                    "(Some formats pad actions to the length of the observations: drop the padding.)"
                )
        ended = _checks.flag(f"{name}: terminated", terminated)
        return cls(name, observations, actions, rewards, ended)


def _actions(actions: Any, next_actions: Any, n: int) -> dict[str, Any]:
    if actions is not None:
        actions = _columns.states("actions", actions, n)
    if next_actions is not None:
        next_actions = _columns.states("next_actions", next_actions, n)
        if actions is not None:
            _columns.require_alike("actions", actions, "next_actions", next_actions)
    return {"actions": actions, "next_actions": next_actions}


def _scalars(n: int, ratios: Any, weights: Any, episodes: Any, probabilities: Any) -> dict[str, Any]:
    return {
        "ratios": None if ratios is None else _checks.column("ratios", ratios, n, low=0.0),
        "weights": None if weights is None else _checks.weights("weights", weights, n),
        "episodes": None if episodes is None else _columns.labels(episodes, n),
        "probabilities": None if probabilities is None else _chances("probabilities", probabilities, n),
    }


def _chances(name: str, value: Any, n: int) -> NDArray[np.float64]:
    """Probabilities of actions that were taken: (n,) float64 in (0, 1]."""
    chances = _checks.column(name, value, n, low=0.0, high=1.0)
    if not chances.all():
        never = np.flatnonzero(chances == 0.0)
        raise InputError(
            f"{name} must be above 0, for the actions were taken; row {never[0]} has 0 ({len(never)} of {n} rows do)."
        )
    return chances


def _join_chances(value: Iterable[ArrayLike], names: list[str], lengths: list[int]) -> NDArray[np.float64]:
    if not isinstance(value, Iterable):
        raise InputTypeError(f"probabilities must be a list of one array an episode, not {type(value).__name__}.")
    parts = list(value)
    if len(parts) != len(names):
        raise InputError(f"probabilities has {len(parts)} arrays and there are {len(names)} episodes: one each.")
    return np.concatenate(
        [_chances(f"{name}: probabilities", part, n) for name, part, n in zip(names, parts, lengths, strict=True)]
    )


def _endings(terminated: ArrayLike | None, truncated: ArrayLike | None, n: int) -> dict[str, NDArray[np.bool_]]:
    ended = np.zeros(n, dtype=bool) if terminated is None else _checks.flags("terminated", terminated, n)
    cut = np.zeros(n, dtype=bool) if truncated is None else _checks.flags("truncated", truncated, n)
    if truncated is not None and terminated is not None:
        cut = cut & ~ended  # a time limit may set both, and then the process did end
    return {"terminated": ended, "truncated": cut}
