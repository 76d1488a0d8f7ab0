"""The doctor: all checks of a log, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from valuate import _checks
from valuate.errors import InputError, InputTypeError
from valuate.inspecting import alignment, columns, endings, episodes, ratios, rewards, sizes
from valuate.inspecting.facts import facts, reading, unused
from valuate.inspecting.feature_checks import features
from valuate.inspecting.findings import CODES, Finding, Findings, Severity, ordered
from valuate.inspecting.look import Look

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from valuate.transitions import Transitions

#: Every check of a log, in the order in which their findings stand.
CHECKS: tuple[Callable[[Look], Iterator[Finding]], ...] = (
    reading,
    unused,
    alignment.alignment,
    endings.ends_late,
    endings.goes_on,
    endings.after_an_end,
    endings.both_flags,
    endings.time_limit,
    episodes.contiguous,
    episodes.flagged,
    episodes.known,
    episodes.few,
    columns.constant,
    columns.duplicates,
    columns.missing,
    columns.empty_objects,
    rewards.constant,
    rewards.outliers,
    ratios.effective,
    ratios.outliers,
    ratios.mean,
    ratios.probabilities,
    sizes.copies,
    sizes.endless,
    sizes.horizon,
    sizes.discounted_away,
)

#: Findings that are but the consequence of another.
EXPLAINS = {"ends-late": ("goes-on", "reset-as-next", "row-after-end", "unflagged-ends")}


def inspect(
    log: Transitions,
    feature_map: Any = None,
    *,
    discount: float = 0.99,
    ridge: float = 0.0,
    truncated: ArrayLike | None = None,
    accept: Iterable[str] = (),
    seed: int = 0,
) -> Findings:
    """Look for what would make an answer from this log wrong.

    Counts rows and episodes, and checks whether rows lead to the following one, how episodes end, columns, rewards,
    ratios, copies, the discount and, where there is a feature map, rank and condition under it.

    Parameters
    ----------
    log : Transitions
    feature_map : object with ``transform``, or callable, optional
        As for `Problem.from_transitions`, fitted. None: features are not looked at.
    discount : float
        That the values will have.
    ridge : float
        That the fit will have: it enters A and C.
    truncated : (n,) flags, optional
        As they were recorded. `Transitions` takes rows with both flags for terminated, so that only this shows how
        many there were. None: what the reader of the log has kept, if anything.
    accept : iterable of str
        Codes that you have looked at and found to be right: their findings become notes.
    seed : int
        Draws the rows that features are looked at on, where the log is long.

    Returns
    -------
    Findings
        Prints as text; `Findings.table` for a console, `Findings.as_dict` for programs, `Findings.ok` and
        `Findings.exit_code` for scripts.

    Notes
    -----
    "wrong" is what makes an answer wrong, as far as a log can tell; each finding says what to look at. Rows are
    compared by 64-bit hashes. Features are looked at on up to 20,000 rows, or 10 a feature up to 200,000.

    Examples
    --------
    >>> from valuate.environments import CartPole
    >>> found = inspect(CartPole().collect(1000, seed=0))
    >>> found.ok, found.exit_code
    (True, 0)
    """
    if not hasattr(log, "indexed_states"):
        raise InputTypeError(
            f"log must be a Transitions, not {type(log).__name__}. Files, data frames and dicts become one with "
            "valuate.read."
        )
    discount = _checks.number("discount", discount, low=0.0, high=1.0)
    ridge = _checks.number("ridge", ridge, low=0.0)
    accepted = _accepted(accept)
    raw = _recorded(log) if truncated is None else _checks.flags("truncated", truncated, len(log))
    look = Look(log, discount, raw)
    known = facts(look)
    found = [finding for check in CHECKS for finding in check(look)]
    if feature_map is not None:
        part = features(look, feature_map, ridge, _checks.whole("seed", seed, low=0))
        known |= part.facts
        found += part.findings
    seen = {one.code for one in found}
    known_cause = {code for cause, codes in EXPLAINS.items() if cause in seen for code in codes}
    found = [one for one in found if one.code not in known_cause]
    found = [replace(one, severity=Severity.NOTE) if one.code in accepted else one for one in found]
    return Findings(ordered(iter(found)), known)


def _recorded(log: Transitions) -> Any:
    """The flags of truncation as the reader found them, where it has kept them."""
    kept = getattr(getattr(log, "reading", None), "truncated", None)
    return None if kept is None or len(kept) != len(log) else _checks.flags("truncated", kept, len(log))


def _accepted(accept: Iterable[str]) -> frozenset[str]:
    codes = frozenset([accept] if isinstance(accept, str) else accept)
    unknown = sorted(codes - CODES.keys())
    if unknown:
        raise InputError(f"accept has no code {unknown[0]!r}. There are: {', '.join(CODES)}.")
    return codes
