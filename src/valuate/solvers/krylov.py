"""Krylov methods for A theta = b: no matrix, no steps to choose, and the same answer in any units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from valuate import _checks
from valuate.errors import InputError
from valuate.solvers.arnoldi import Arnoldi
from valuate.solvers.iterating import Iteration, Iterative, Process
from valuate.solvers.preconditioning import ROWS_A_FEATURE, from_subsample
from valuate.solvers.shortterm import Bidiagonal, Stabilised

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

PRECONDITIONERS = ("diagonal", "subsample")


@dataclass(frozen=True, slots=True, kw_only=True)
class GMRES(Iterative):
    """GMRES (Saad and Schultz 1986): the smallest residual in the norm of diag(C)^-1 that products with A can reach.

    One pass an iteration. It keeps a vector of dim numbers for each, and starts anew where they are too many.

    Parameters
    ----------
    restart : int, optional
        Iterations after which it starts anew, from the residual of the rows (one pass more). None: never, while
        memory allows.
    memory : float
        Megabytes for the vectors that are kept; `restart` is lowered where they would not fit.
    preconditioner : {"diagonal", "subsample"}
        diag(C)^-1/2 on both sides; or, within it, also the inverse of A from some of the rows, which are drawn by the
        seed in stretches of the log, count as setup visits and cost a dim x dim matrix. It is held in float32 where A
        is far enough from singular. With more than 4096 features, or where A of these rows is singular, it is left out
        and the message says so.
    rows_a_feature : float
        Rows for each feature that the preconditioner is made from; all rows where there are no more. The more of them
        the fewer products follow: 10 are a good start, below 4 it does harm.
    after : int
        Iterations without the preconditioner before; what they have found is kept.
    """

    restart: int | None = None
    memory: float = 1024.0
    preconditioner: str = "diagonal"
    rows_a_feature: float = ROWS_A_FEATURE
    after: int = 0
    advice: ClassVar[str] = "Use LSMR, which needs no regular A, LSTD, or a small ridge."

    def __post_init__(self) -> None:
        if self.restart is not None:
            object.__setattr__(self, "restart", _checks.whole("restart", self.restart, low=1))
        object.__setattr__(self, "memory", _checks.number("memory", self.memory, above=0.0))
        rows = _checks.number("rows_a_feature", self.rows_a_feature, above=0.0)
        object.__setattr__(self, "rows_a_feature", rows)
        object.__setattr__(self, "after", _checks.whole("after", self.after, low=0))
        if self.preconditioner not in PRECONDITIONERS:
            words = " or ".join(f'"{word}"' for word in PRECONDITIONERS)
            raise InputError(f"preconditioner must be {words}, not {self.preconditioner!r}.")

    def process(self, run: Iteration) -> Process:
        """See `Iterative`."""
        assert run.system is not None
        system = run.system

        def prepare() -> Callable[[Vector], Vector] | None:
            invert, visits, note = from_subsample(run.problem, system, run.rng, self.rows_a_feature)
            run.setup_visits += visits
            if note:
                run.notes.append(note)
            return invert

        wanted = prepare if self.preconditioner == "subsample" else None
        # With a preconditioner two vectors are kept an iteration.
        fitting = self.fitting(run.problem.dim * (1 if wanted is None else 2))
        most = min(run.problem.dim, fitting if self.restart is None else min(self.restart, fitting))
        if most == fitting < min(run.problem.dim, self.restart or run.problem.dim):
            run.notes.append(f"It started anew every {most} iterations, to stay within {self.memory:g} megabytes.")
        return Arnoldi(system, most, wanted, self.after)

    def fitting(self, dim: int) -> int:
        """Iterations m whose vectors fit in memory, m * dim numbers and two squares of m; at least 1."""
        numbers = self.memory * 2**20 / 8
        return max(1, int((math.sqrt(dim * dim + 8 * numbers) - dim) / 4))


@dataclass(frozen=True, slots=True, kw_only=True)
class BiCGSTAB(Iterative):
    """BiCGSTAB (van der Vorst 1992): two passes an iteration, and the memory of ten vectors however long it runs.

    Its residual goes up and down; the answer is the best point. The recurrence can break down, and then begins anew
    from the best point, while that helps.
    """

    advice: ClassVar[str] = "Use GMRES or LSMR, which do not break down, LSTD, or a small ridge."

    def process(self, run: Iteration) -> Process:
        """See `Iterative`."""
        assert run.system is not None
        return Stabilised(run, run.system)


@dataclass(frozen=True, slots=True, kw_only=True)
class LSMR(Iterative):
    """LSMR (Fong and Saunders 2011): least squares on the scaled system, for A that is singular too.

    Two passes an iteration, a product with A and one with its transpose. It converges to a minimiser of
    (A theta - b)' diag(C)^-1 (A theta - b): the one nearest to the start, in scaled units. Where A theta = b has a
    solution, that is one, and minimises the MSPBE as well. Where it has none, it is *not* the minimiser of the MSPBE,
    whose norm is that of C^-1: LSTD gives that. The number of passes grows with the condition of A, that of GMRES
    often far less.
    """

    advice: ClassVar[str] = "Use GMRES, LSTD, or a small ridge."

    def process(self, run: Iteration) -> Process:
        """See `Iterative`."""
        assert run.system is not None
        return Bidiagonal(run.system)
