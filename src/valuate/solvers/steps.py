"""Step sizes: read, and chosen where they are "auto"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from valuate import _checks
from valuate.errors import InputError

if TYPE_CHECKING:
    from valuate.problem import Problem


def read_step(name: str, value: Any) -> float | str:
    """A positive number, or "auto"."""
    if isinstance(value, str):
        if value == "auto":
            return value
        raise InputError(f'{name} must be a number above 0 or "auto", not {value!r}.')
    return _checks.number(name, value, above=0.0)


def saddle_steps(problem: Problem) -> tuple[float, float]:
    """Steps that are safe for every row: .3 / (max w rho^2 |delta|^2 + e) and .5 / (max w |phi|^2 + e).

    C carries no ratio, so the dual step has none; A_t is the product of sqrt(w) phi and sqrt(w) rho delta.
    """
    most_phi, most_delta = problem.rows.maxima()
    return (
        0.3 / max(most_delta + problem.ridge, _TINY),
        0.5 / max(most_phi + problem.ridge, _TINY),
    )


#: Where every row is zero nothing moves, whatever the step; this keeps it finite.
_TINY = 1e-290
