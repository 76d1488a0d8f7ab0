"""Where episodes start: what eligibility traces need to know of a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from valuate import _columns
from valuate.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Episodes:
    """The episode of each row of a log in which the rows of an episode follow each other in time.

    Attributes
    ----------
    labels : (n,) array
        Rows of one episode have the same.
    ended : (n,) flags, optional
        Rows that terminated or were truncated: what follows is another episode, whatever its label.
    """

    labels: NDArray[Any]
    ended: Flags | None = None

    @classmethod
    def read(cls, labels: Any, n_rows: int) -> Self | None:
        """From what a user gave; None for None."""
        return None if labels is None else cls(_columns.labels(labels, n_rows))

    def starts(self) -> Flags:
        """Whether a row is the first of its episode: (n,) flags.

        Raises
        ------
        InputError
            Where the rows of an episode do not lie together: their order in time is then not that of the log.
        """
        first = np.ones(len(self.labels), bool)
        first[1:] = self.labels[1:] != self.labels[:-1]
        runs = self.labels[first].tolist()
        if len(set(runs)) < len(runs):
            earliest = {label: k for k, label in reversed(list(enumerate(runs)))}
            again = next(k for k, label in enumerate(runs) if earliest[label] != k)
            row, label = int(np.flatnonzero(first)[again]), runs[again]
            raise InputError(
                f"episode {label} goes on at row {row} after rows of another one. Traces need the rows of an episode "
                "one after the other, in time: sort the log by episode, log[np.argsort(log.episodes, kind='stable')]."
            )
        if self.ended is not None:
            first[1:] |= self.ended[:-1]
        return first


def starts(episodes: Episodes | None) -> Flags:
    """As `Episodes.starts`, with advice where the episodes are not known."""
    if episodes is None:
        raise InputError(
            "trace_decay above 0 needs to know where episodes start, and this problem does not. Give episodes=, one "
            "label a row, to Transitions, Problem.from_arrays or Problem.from_table. Where flags mark the last row of "
            "every episode: episodes = np.cumsum(ends) - ends with ends = terminated | truncated."
        )
    return episodes.starts()
