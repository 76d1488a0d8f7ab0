"""The order of the rows in time, and where episodes start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Index = NDArray[np.int64]
    Flags = NDArray[np.bool_]

__all__ = ["apart", "changes", "counts_down", "doubles", "gaps", "numbered", "order_of", "restarts"]


def numbered(labels: NDArray[Any]) -> NDArray[np.int64]:
    """Labels as numbers in order of their first appearance."""
    starts = changes(labels)
    runs = labels[starts]
    _, first, places = np.unique(runs, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    lengths = np.diff(np.append(np.flatnonzero(starts), len(labels)))
    return np.repeat(rank[places], lengths)


def changes(labels: NDArray[Any]) -> Flags:
    """Whether a row's label differs from that of the row before; (n,) flags, the first one set."""
    first = np.ones(len(labels), bool)
    first[1:] = labels[1:] != labels[:-1]
    return first


def apart(labels: NDArray[Any]) -> bool:
    """Whether rows with the same label do not all lie together."""
    runs = labels[changes(labels)]
    return len(np.unique(runs)) < len(runs)


def order_of(episodes: NDArray[Any], steps: NDArray[Any] | None) -> Index | None:
    """The rows by episode, in order of first appearance, and by step within; None where they lie so already."""
    numbers = numbered(episodes)
    mixed = bool((numbers[1:] < numbers[:-1]).any())
    if steps is None:
        return np.argsort(numbers, kind="stable") if mixed else None
    same = numbers[1:] == numbers[:-1]
    if not mixed and not (same & (steps[1:] < steps[:-1])).any():
        return None
    return np.lexsort((steps, numbers))


def counts_down(episodes: NDArray[Any], steps: NDArray[Any]) -> bool:
    """Whether steps say how much is left: they only fall within an episode whose rows lie together."""
    within = episodes[1:] == episodes[:-1]
    falls = steps[1:] < steps[:-1]
    return bool(2 * np.count_nonzero(within) > len(within) and falls[within].all())


def doubles(starts: Flags, steps: NDArray[Any]) -> Index:
    """Rows that have the step of the row before, in the same episode."""
    again = np.zeros(len(steps), bool)
    again[1:] = (steps[1:] == steps[:-1]) & ~starts[1:]
    return np.flatnonzero(again)


def gaps(starts: Flags, steps: NDArray[Any]) -> Flags | None:
    """Whether steps are missing after a row, before the next one of its episode.

    None where the steps do not count: they are no whole numbers, or mostly further apart than 1.
    """
    if steps.dtype.kind not in "iu" or len(steps) < 2:
        return None
    within = ~starts[1:]
    apart = np.diff(steps.astype(np.int64))
    if not within.any() or 2 * np.count_nonzero(within & (apart == 1)) < np.count_nonzero(within):
        return None
    missing = np.zeros(len(steps), bool)
    missing[:-1] = within & (apart > 1)
    return missing


def restarts(steps: NDArray[Any]) -> Flags | None:
    """Where steps go back to where they started, which an episode does; None where they go back to elsewhere."""
    starts = np.ones(len(steps), bool)
    starts[1:] = steps[1:] <= steps[:-1]
    return starts if (steps[starts] == steps[0]).all() and not starts[1:].all() else None
