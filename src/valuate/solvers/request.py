"""What a call of ``solve`` asks for, checked; and what its callback is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks
from valuate.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.problem import Problem
    from valuate.summing import Moments

    Vector = NDArray[np.float64]

#: Passes where no budget is given.
DEFAULT_PASSES = 100.0


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands, for callbacks. ``theta`` and ``omega`` are copies; mspbe is None between recorded points."""

    epoch: int
    row_visits: int
    passes: float
    seconds: float
    theta: NDArray[np.float64]
    omega: NDArray[np.float64]
    mspbe: float | None


Callback = Callable[[Progress], object]


@dataclass(slots=True)
class Request:
    """What the caller of `solve` asked for, checked."""

    passes: Any
    epochs: Any
    tolerance: Any
    record: Any
    seed: Any
    theta: Any
    omega: Any
    callback: Any

    def __post_init__(self) -> None:
        if self.passes is not None and self.epochs is not None:
            raise InputError("give passes or epochs, not both: they are two ways to state one budget.")
        if self.epochs is not None:
            self.epochs = _checks.whole("epochs", self.epochs, low=0)
        else:
            self.passes = _checks.number("passes", DEFAULT_PASSES if self.passes is None else self.passes, low=0.0)
        if self.tolerance is not None:
            self.tolerance = _checks.number("tolerance", self.tolerance, above=0.0)
        if isinstance(self.record, str):
            if self.record != "epoch":
                raise InputError(f'record must be a number of passes or "epoch", not {self.record!r}.')
        elif self.record is not None:
            self.record = _checks.number("record", self.record, above=0.0)
        if self.callback is not None and not callable(self.callback):
            raise InputTypeError(f"callback must be callable, not {type(self.callback).__name__}.")
        if not isinstance(self.seed, np.random.Generator):
            self.seed = np.random.default_rng(_checks.whole("seed", self.seed, low=0))

    def start(self, problem: Problem | Moments) -> tuple[Vector, Vector]:
        """The starting point, copied."""
        theta, omega = (
            np.zeros(problem.dim) if given is None else problem.vector(name, given).copy()
            for name, given in (("theta", self.theta), ("omega", self.omega))
        )
        return theta, omega


def require_problem(problem: Any) -> None:
    """Refuse what is not a problem."""
    if not hasattr(problem, "rows"):  # also the class itself
        if type(problem).__name__ == "Moments":
            raise InputTypeError("problem must be a Problem: of Moments the rows are gone, and LSTD alone solves them.")
        raise InputTypeError(
            f"problem must be a Problem, not {type(problem).__name__}. Build one with Problem.from_transitions, "
            "from_arrays or from_table."
        )
