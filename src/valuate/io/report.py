"""What was done to a source to make a log of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Reading"]

#: Names that a text shows before it writes "...".
MOST_SHOWN = 4
#: Columns not used that a text names: one of them may be missed.
MOST_UNUSED = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a log was read. As text: a short account for people.

    Attributes
    ----------
    source : str
        The path, or what kind of object it was.
    format : str
        "parquet", "csv", "npz", "hdf5", "minari", "arrow", "pandas", "polars", "arrays" or "episodes".
    layout : str or None
        Whose way of naming things was recognised: "D4RL", "d3rlpy", "SCOPE-RL", "RLlib", "RLDS", "MushroomRL",
        "Minari", "Gymnasium" or "valuate".
    rows : int
        Rows of the log.
    columns : dict of str to (str or tuple of str)
        What was taken for what: our name to theirs, a tuple where each dimension has a column.
    dropped : dict of str to int
        Rows left out: reason to number. Empty where none were.
    notes : tuple of str
        Sentences about everything else that was decided or noticed.
    labels : dict of str to tuple
        What the codes 0, 1, ... of a column stand for, where it held text.
    unused : tuple of str
        Columns that were not taken.
    resembling : dict of str to str
        Those of them that look like "episodes" or "terminated", where nothing was taken for these.
    """

    source: str
    format: str
    rows: int
    layout: str | None = None
    columns: dict[str, str | tuple[str, ...]] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    labels: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    unused: tuple[str, ...] = ()
    resembling: dict[str, str] = field(default_factory=dict)

    @property
    def n_dropped(self) -> int:
        """Rows left out, for whatever reason."""
        return sum(self.dropped.values())

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain values, for JSON."""
        return {
            "source": self.source,
            "format": self.format,
            "layout": self.layout,
            "rows": self.rows,
            "columns": {ours: list(theirs) if isinstance(theirs, tuple) else theirs for ours, theirs in self._pairs()},
            "dropped": dict(self.dropped),
            "notes": list(self.notes),
            "labels": {name: [str(label) for label in labels] for name, labels in self.labels.items()},
            "unused": list(self.unused),
            "resembling": dict(self.resembling),
        }

    def __str__(self) -> str:
        what = self.format if self.layout is None else f"{self.format}, {self.layout}"
        lines = [f"{self.source} ({what}): {self.rows:,} rows"]
        width = max((len(ours) for ours in self.columns), default=0)
        lines += [f"  {ours:<{width}}  from {several(theirs)}" for ours, theirs in self._pairs()]
        lines += [f"Dropped {count:,} row{'s' * (count != 1)}: {why}." for why, count in self.dropped.items()]
        lines += [f"Note: {note}" for note in self.notes]
        if self.unused:
            more = f" and {len(self.unused) - MOST_UNUSED} more" if len(self.unused) > MOST_UNUSED else ""
            lines.append(f"Not used: {', '.join(self.unused[:MOST_UNUSED])}{more}")
        return "\n".join(lines)

    def _pairs(self) -> list[tuple[str, str | tuple[str, ...]]]:
        return list(self.columns.items())


def several(names: str | tuple[str, ...]) -> str:
    """Names in a line, the middle ones left out where there are many."""
    if isinstance(names, str):
        return names
    if len(names) <= MOST_SHOWN:
        return ", ".join(names)
    return f"{names[0]}, {names[1]}, ..., {names[-1]} ({len(names)} columns)"
