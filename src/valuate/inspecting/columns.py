"""Columns of the states: constant ones, equal ones, and numbers that stand for a missing one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks
from valuate.inspecting.findings import Finding, Severity, be, plural
from valuate.inspecting.survey import equal_entries

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.inspecting.look import Look

#: States with more entries are images and the like, where constant and equal entries are nothing special.
MANY = 64
#: Columns named in a sentence, at most.
NAMED = 6
#: Numbers that people and programs write where there is none, and their negatives.
CODES = (99.0, 999.0, 9999.0, 99999.0, 999999.0, 1e10, 1e20, 1e30, 2147483647.0, 2147483648.0)
#: A code lies this many times the spread of all others away from them.
AWAY = 3.0


def constant(look: Look) -> Iterator[Finding]:
    """Entries of a state that are the same in every row."""
    found = None if look.surveys is None else look.surveys[0]
    if found is None or found.low is None or found.high is None:
        return
    columns = np.flatnonzero(found.low == found.high)
    if not len(columns) or look.n == 1:
        return
    if len(columns) == len(found.low):
        yield Finding(
            Severity.WARNING, "constant-columns", "All states are equal: every row has the same value.", "",
            "Check that the columns of the state were taken for the state.",
        )  # fmt: skip
        return
    yield Finding(
        Severity.NOTE if len(found.low) > MANY else Severity.WARNING,
        "constant-columns",
        f"{plural(len(columns), 'column')} of the states never change{'s' * (len(columns) == 1)}: {_named(columns)}.",
        f"column {columns[0]} of states",
        "It tells states apart by nothing; leave it out." if len(columns) == 1 else "Leave them out.",
    )


def duplicates(look: Look) -> Iterator[Finding]:
    """Entries of a state that are equal in every row."""
    found = None if look.surveys is None else look.surveys[0]
    if found is None:
        return
    pairs = equal_entries(look.entries, found)
    if pairs:
        words = ", ".join(f"{i} = {j}" for i, j in pairs[:NAMED]) + (", ..." if len(pairs) > NAMED else "")
        yield Finding(
            Severity.NOTE if found.low is not None and len(found.low) > MANY else Severity.WARNING,
            "duplicate-columns",
            f"{plural(len(pairs), 'column')} of the states {be(len(pairs))} equal to another in every row: {words}.",
            f"column {pairs[0][1]} of states",
            "Leave one of each pair out: features of both depend on each other.",
        )


def missing(look: Look) -> Iterator[Finding]:
    """Numbers such as -999 that stand for a missing one: Transitions refuses NaN, and these pass."""
    found = None if look.surveys is None else look.surveys[0]
    if found is not None and found.low is not None and found.high is not None:
        rows = look.entries.reshape(len(look.entries), -1)
        codes = np.array([*CODES, *(-code for code in CODES)])
        for j in np.flatnonzero(np.isin(found.low, codes) | np.isin(found.high, codes))[:MANY]:
            yield from _missing(rows[:, j], f"column {j} of states", f"Column {j} of the states has")
    yield from _missing(look.log.rewards, "column rewards", "The rewards have")


def _missing(column: NDArray[Any], where: str, begins: str) -> Iterator[Finding]:
    for code in (float(column.min()), float(column.max())):
        if abs(code) not in CODES:
            continue
        rest = column[column != code]
        if len(rest) < 2:
            continue
        low, high = float(rest.min()), float(rest.max())
        # A code is no measurement: it lies apart, and the same number each time.
        if min(abs(code - low), abs(code - high)) > AWAY * (high - low) > 0:
            count = len(column) - len(rest)
            yield Finding(
                Severity.WARNING,
                "missing-code",
                f"{begins} the number {code:g} in {plural(count, 'row')}, far from all "
                f"others ({low:.3g} to {high:.3g}): does it stand for a missing one?",
                f"row {int((column == code).argmax()):,}, {where}",
                "Drop those rows, or fill them and add a column that says so.",
            )


def _named(columns: Sequence[int] | NDArray[np.intp]) -> str:
    words = ", ".join(str(int(j)) for j in columns[:NAMED])
    return words + (", ..." if len(columns) > NAMED else "")


def empty_objects(look: Look) -> Iterator[Finding]:
    """None and NaN in states that are objects, which are not checked when a log is made."""
    for name in ("states", "next_states", "actions"):
        if name == "next_states" and look.log.indexed_states() is not None:
            continue  # they are rows of the table of states
        column = look.entries if name == "states" else getattr(look.log, name)
        if column is None or _checks.is_sparse(column) or column.dtype.kind != "O":
            continue
        values = column.reshape(len(column), -1)
        gone = np.array([any(x is None or x != x for x in row if np.ndim(x) == 0) for row in values.tolist()], bool)
        if gone.any():
            yield Finding(
                Severity.WARNING,
                "missing-code",
                f"{int(gone.sum()):,} {name.replace('_', ' ')} hold None or NaN.",
                f"row {int(gone.argmax()):,}, column {name}",
                "Drop those rows, or give the gap a value of its own.",
            )
