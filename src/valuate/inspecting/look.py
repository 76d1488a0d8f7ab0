"""What several checks need of a log, computed once and when it is first asked for."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate import _checks
from valuate.inspecting.survey import Survey, common_dtype, survey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.transitions import Transitions

    Flags = NDArray[np.bool_]
    Hashes = NDArray[np.uint64]
    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]

#: Rows of a sample of states, at most.
SAMPLE = 4000
#: States repeat, so that two of them may be equal by chance, where there are fewer distinct ones than this share.
REPEATING = 0.5


class Matches(NamedTuple):
    """Rows that were compared with another row, and whether they matched."""

    flags: Flags
    rows: Index

    @property
    def equal(self) -> int:
        """Rows that matched."""
        return int(np.count_nonzero(self.flags))

    @property
    def total(self) -> int:
        """Rows that were compared."""
        return len(self.rows)

    @property
    def share(self) -> float:
        """Rows that matched among those that were compared; 0 where none was."""
        return self.equal / self.total if self.total else 0.0


class Look:
    """A log as the checks see it.

    Rows are compared by hashes. An *end* is a row that is terminated or truncated; an *inner* row is followed by a row
    of its own episode, as far as labels and flags tell.
    """

    def __init__(self, log: Transitions, discount: float, truncated: Flags | None = None) -> None:
        self.log, self.discount = log, discount
        #: As recorded, with rows that are terminated too.
        self.truncated = truncated
        self.n = len(log)
        self._table: Any = None
        self._state_rows: Index | None = None
        self._next_rows: Index | None = None
        owned = log.indexed_states()
        if owned is not None:
            self._table, self._state_rows, self._next_rows = owned

    # States.

    @cached_property
    def surveys(self) -> tuple[Survey, Survey] | None:
        """Of the states and the next states; None where rows cannot be compared."""
        log = self.log
        if self._table is not None:
            found = survey(self._table, entries=True)
            if found is None:
                return None
            hashes = found.hashes
            return found._replace(hashes=hashes[self._state_rows]), Survey(hashes[self._next_rows])
        dtype = common_dtype(log.states, log.next_states)
        both = survey(log.states, dtype, entries=True), survey(log.next_states, dtype)
        return None if both[0] is None or both[1] is None else (both[0], both[1])

    @property
    def comparable(self) -> bool:
        """Whether rows of states can be told apart."""
        return self.surveys is not None

    @property
    def state(self) -> Hashes:
        """A number for each state, equal for equal ones: (n,)."""
        assert self.surveys is not None
        return self.surveys[0].hashes

    @property
    def next(self) -> Hashes:
        """The same for the next states."""
        assert self.surveys is not None
        return self.surveys[1].hashes

    @cached_property
    def ordered_states(self) -> Hashes:
        """The numbers of all states, ascending: (n,)."""
        return np.sort(self.state)

    @cached_property
    def distinct(self) -> int:
        """Different states."""
        return count_distinct(self.ordered_states)

    @property
    def repeating(self) -> bool:
        """Whether states repeat so much that two may be equal by chance."""
        return self.distinct < REPEATING * self.n

    @property
    def entries(self) -> Any:
        """The states whose entries were surveyed: those of the log or, where it has one, the table of them."""
        return self.log.states if self._table is None else self._table

    @cached_property
    def kind(self) -> str:
        """Type and shape of a state, for readers."""
        kept = self.entries
        sparse = "sparse " if _checks.is_sparse(kept) else ""
        shape = kept.shape[1:]
        words = (
            "number" if not shape else f"{' x '.join(map(str, shape))} numbers" if kept.dtype.kind in "biufc" else ""
        )
        if kept.dtype.kind in "SUO" and not shape:
            words = "label"
        return f"{words or f'shape {shape}'}, {sparse}{kept.dtype}"

    def numbers(self, rows: Index, *, following: bool = False) -> Vector | None:
        """States, or next states, of some rows as vectors of numbers; None where they are none."""
        if self._table is not None:
            at = self._next_rows if following else self._state_rows
            assert at is not None
            part = self._table[at[rows]]
        else:
            part = (self.log.next_states if following else self.log.states)[rows]
        if _checks.is_sparse(part):
            part = part.toarray()
        return part.reshape(len(rows), -1).astype(np.float64) if part.dtype.kind in "biuf" else None

    # Episodes.

    @cached_property
    def ended(self) -> Flags:
        """Rows with a flag: (n,)."""
        return self.log.terminated | self.log.truncated

    @cached_property
    def same_label(self) -> Flags | None:
        """Whether a row and the following one have the same label: (n - 1,); None without labels."""
        labels = self.log.episodes
        return None if labels is None else np.asarray(labels[1:] == labels[:-1], dtype=bool)

    @cached_property
    def inner(self) -> Flags:
        """Rows followed by one of their own episode: (n - 1,)."""
        going_on = ~self.ended[:-1]
        return going_on if self.same_label is None else going_on & self.same_label

    @property
    def known(self) -> bool:
        """Whether labels or flags say where episodes begin."""
        return self.same_label is not None or bool(self.ended.any())

    @cached_property
    def last(self) -> Index:
        """Rows that are the last of an episode, by label or else by flag; the log's last row is always among them."""
        breaks = ~self.same_label if self.same_label is not None else self.ended[:-1]
        return np.append(np.flatnonzero(breaks), self.n - 1)

    @cached_property
    def lengths(self) -> Index:
        """Rows of each run of one episode, in the order of the log."""
        return np.diff(self.last, prepend=-1)

    def episode(self, row: int) -> str:
        """The episode of a row, for readers; empty without labels."""
        labels = self.log.episodes
        return "" if labels is None else f", episode {labels[row]}"

    def at(self, row: int) -> str:
        """A row and its episode, for readers."""
        return f"row {row:,}{self.episode(row)}"

    def matches(self, lag: int, *, backwards: bool = False, most: int | None = None) -> Matches:
        """Whether the next state of row i is the state of row i + lag, for all rows i of whose episode both are.

        Parameters
        ----------
        lag : int
            May be negative; 0 looks at rows that have a row of their episode before them.
        backwards : bool
            The other way around: whether the state of row i is the next state of row i + lag.
        most : int, optional
            Only so many rows, the first of the log.
        """
        n = self.n if most is None else min(self.n, most)
        here, there = (self.state[:n], self.next[:n]) if backwards else (self.next[:n], self.state[:n])
        span = max(1, abs(lag))
        if span >= n:
            return Matches(np.zeros(0, bool), np.zeros(0, np.int64))
        together = self.inner[: n - span].copy()
        for k in range(1, span):
            together &= self.inner[k : n - span + k]
        if lag > 0:
            flags, first = here[: n - span] == there[span:], 0
        else:
            shift = span if lag < 0 else 0
            flags, first = here[span:] == there[span - shift : n - shift], span
        rows = np.flatnonzero(together)
        return Matches(flags[rows] if len(rows) < len(flags) else flags, rows + first)

    # How far a step goes.

    @cached_property
    def usual_step(self) -> Vector | None:
        """Lengths of the steps of a sample of inner rows, entries in units of their deviation; None where unknown."""
        rows = self.sample(np.flatnonzero(self.inner))
        return self.steps(rows) if len(rows) >= 20 else None

    @cached_property
    def _unit(self) -> Vector | None:
        part = self.numbers(self.sample(np.arange(self.n)))
        if part is None:
            return None
        deviation = part.std(axis=0)
        return np.where(deviation > 0, 1.0 / np.where(deviation > 0, deviation, 1.0), 0.0)

    def steps(self, rows: Index) -> Vector | None:
        """How far each of these rows goes, from its state to its next state."""
        if self._unit is None:
            return None
        return self.distances(self.numbers(rows), self.numbers(rows, following=True))

    def distances(self, one: Vector | None, other: Vector | None) -> Vector | None:
        """Lengths of differences of states, entries in units of their deviation."""
        if one is None or other is None or self._unit is None:
            return None
        with np.errstate(over="ignore"):
            return np.asarray(np.abs((one - other) * self._unit).max(axis=1))

    @staticmethod
    def sample(rows: Index) -> Index:
        """An even choice of these rows."""
        if len(rows) <= SAMPLE:
            return rows
        return rows[np.linspace(0, len(rows) - 1, SAMPLE).astype(np.int64)]


def count_distinct(ordered: Any) -> int:
    """Different entries of an array in ascending order."""
    return 1 + int(np.count_nonzero(ordered[1:] != ordered[:-1]))
