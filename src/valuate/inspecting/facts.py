"""What the log holds, counted: the table above the findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.inspecting.findings import Finding, Severity, plural, share
from valuate.inspecting.ratios import effective_share, weights_share
from valuate.inspecting.sizes import describe_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from valuate.inspecting.look import Look


#: Columns not used that the table names.
MOST_UNUSED = 40


def facts(look: Look) -> dict[str, Any]:
    """Counts and measures by name."""
    log = look.log
    out: dict[str, Any] = {}
    reading = getattr(log, "reading", None)
    if reading is not None:
        out["read from"] = ", ".join(
            str(part) for part in (getattr(reading, "source", None), getattr(reading, "format", None)) if part
        )
        columns = getattr(reading, "columns", None)
        if columns:
            out["columns taken"] = "; ".join(f"{ours} from {_names(theirs)}" for ours, theirs in columns.items())
        unused = getattr(reading, "unused", None) or ()
        if unused:
            more = f" and {len(unused) - MOST_UNUSED} more" if len(unused) > MOST_UNUSED else ""
            out["columns not used"] = ", ".join(unused[:MOST_UNUSED]) + more
        out["rows dropped"] = int(sum(_dropped(reading).values()))
    out["rows"] = look.n
    out["episodes"] = len(look.last) if look.known else None
    if look.known:
        low, middle, high = np.quantile(look.lengths, [0.0, 0.5, 1.0])
        out["rows an episode"] = {"least": int(low), "median": float(middle), "most": int(high)}
        open_ends = len(look.last) - int(look.ended[look.last].sum())
        out["ends"] = {
            "terminated": int(log.terminated.sum()),
            "truncated": int(log.truncated.sum()),
            "without a flag": open_ends,
        }
    out["states"] = look.kind
    if look.comparable:
        out["distinct states"] = look.distinct
        found = look.matches(1)
        if found.total:
            out["next state is the following state"] = f"{share(found.equal, found.total)} of rows in mid-episode"
    out["other columns"] = describe_rows(look)
    rewards = log.rewards
    out["rewards"] = {
        "mean": float(rewards.mean()),
        "deviation": float(rewards.std()),
        "least": float(rewards.min()),
        "most": float(rewards.max()),
    }
    if log.ratios is not None:
        out["effective rows by ratios"] = f"{effective_share(look) * look.n:,.0f} of {look.n:,}"
    if log.weights is not None:
        out["effective rows by weights"] = f"{weights_share(look) * look.n:,.0f} of {look.n:,}"
    horizon = f"{1 / (1 - look.discount):,.4g} rows" if look.discount < 1 else "no end"
    out["discount"] = f"{look.discount:g}, an effective horizon of {horizon}"
    return out


def reading(look: Look) -> Iterator[Finding]:
    """What the reader dropped and remarked."""
    found = getattr(look.log, "reading", None)
    if found is None:
        return
    for reason, count in _dropped(found).items():
        if count:
            yield Finding(
                Severity.NOTE,
                "dropped",
                f"{plural(count, 'row')} {'was' if count == 1 else 'were'} dropped in reading: {reason}.",
            )
    for note in getattr(found, "notes", None) or ():
        yield Finding(Severity.NOTE, "reading", str(note))


def unused(look: Look) -> Iterator[Finding]:
    """Columns that the reader did not use and that look like what the log lacks."""
    resembling = getattr(getattr(look.log, "reading", None), "resembling", None) or {}
    for name, role in resembling.items():
        if role == "episodes":
            yield Finding(
                Severity.WARNING,
                "unused-id",
                f"The log has no ids of episodes, and {name!r}, which was not used, looks like them: it stays the "
                "same for runs of rows, and each run has a value of its own.",
                f"column {name}",
                f"If it tells episodes apart, read the log with columns={{'episodes': {name!r}}}.",
            )
        else:
            yield Finding(
                Severity.WARNING,
                "unused-flag",
                f"No row is marked as one where the process ended, and {name!r}, which was not used, is set in last "
                "rows of episodes and hardly anywhere else.",
                f"column {name}",
                f"If it means that the process ended there, read the log with columns={{'terminated': {name!r}}}: the "
                "value after these rows is then 0.",
            )


def _dropped(found: Any) -> dict[str, int]:
    """Rows dropped in reading by reason, whichever of its forms the reader has."""
    dropped = getattr(found, "dropped", None)
    if not dropped:
        return {}
    if isinstance(dropped, dict):
        return {str(reason): int(count) for reason, count in dropped.items()}
    if isinstance(dropped, int | np.integer):
        return {"see the notes": int(dropped)}
    return {str(reason): int(count) for reason, count in dropped}


def _names(theirs: Any) -> str:
    if isinstance(theirs, list | tuple):
        return ", ".join(map(str, theirs)) if len(theirs) <= 4 else f"{theirs[0]} ... {theirs[-1]} ({len(theirs)})"
    return str(theirs)
