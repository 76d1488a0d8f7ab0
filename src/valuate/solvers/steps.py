"""Step sizes: read, and chosen where they are "auto" or "theory"."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from valuate import _checks, theory
from valuate.errors import InputError

if TYPE_CHECKING:
    from valuate.problem import Problem


def read_step(name: str, value: Any) -> float | str:
    """A positive number, "auto" or, for the primal step, "theory"."""
    if isinstance(value, str):
        if value == "auto" or (value == "theory" and name == "step_theta"):
            return value
        words = '"auto" or "theory"' if name == "step_theta" else '"auto"'
        raise InputError(f"{name} must be a number above 0 or {words}, not {value!r}.")
    return _checks.number(name, value, above=0.0)


def require_theorem(method: Any) -> None:
    """Refuse "theory" where the paper has no theorem on a method, and a dual step of one's own beside it."""
    if method.theorem == 0:
        raise InputError(
            f'{type(method).__name__} has no theorem that gives step sizes, so step_theta="theory" means nothing. SVRG '
            "and BatchingSVRG have one (Theorem 1 of the paper) and so has SCSG (Theorem 2)."
        )
    if method.direction != "saddle":
        raise InputError('step_theta="theory" needs direction="saddle": the paper\'s theorems are on the saddle point.')
    if method.step_omega != "auto":
        raise InputError(
            f'step_omega must be left at "auto" where step_theta is "theory", not {method.step_omega!r}: the theorems '
            "set it to beta times step_theta."
        )


def theory_steps(method: Any, problem: Problem) -> tuple[float, float]:
    """Steps of the method's theorem, for its own batch; costs `theory.PASSES` measuring visits to each row."""
    known = theory.constants(problem)
    found = (
        theory.theorem_1(known)
        if method.theorem == 1
        else theory.theorem_2(known, batch=method.batch(problem.n_rows, 0))
    )
    return found.step_theta, found.step_omega
