"""The stochastic methods of the paper: a reference and a plan each; the driver does the rest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from valuate import _checks
from valuate.errors import InputError
from valuate.solvers import driver
from valuate.solvers.directions import DIRECTIONS, read_direction
from valuate.solvers.driver import Epoch, Reference
from valuate.solvers.request import Callback, Request
from valuate.solvers.steps import read_step, require_theorem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from valuate.problem import Problem
    from valuate.solution import Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class Stochastic:
    """What all stochastic methods share.

    Parameters
    ----------
    step_theta, step_omega : float or "auto"
        Step sizes. "auto" takes them from the largest rows (see `valuate.solvers.directions`): .3 / max w rho^2
        |delta|^2 and .5 / max w |phi|^2 for the saddle, .5 / max w rho |phi| |delta| for TD, each maximum plus the
        ridge. That costs one measuring visit to each row, and the solution's ``solver`` holds the numbers. A budget
        below 10 passes over 100,000 rows or more buys a look at some rows only, 1% of the budget, and their maxima
        are taken times 1.1; at all rows after all where the scalars or largest entries of the log say that these are
        not like the others. A run that grows all the same goes back to its best point with smaller steps, and its
        message says so.
        ``step_theta="theory"`` takes both from the paper's theorem on the method (`valuate.theory`), where it has one;
        they are far smaller than is useful.
    scale : bool, optional
        Whether columns are scaled alike first, in a copy of the features; the answer is in the given units. None: where
        a step is "auto", there is no ridge, and the largest entries of columns differ by more than 8 times. The
        solution's ``solver`` says whether they were: its steps are for scaled columns then.
    center : bool, optional
        Whether the mean of every column is taken from it first, in a copy of the features, and given to a feature that
        is constant; the answer is in the given columns. That makes C far better conditioned where means are large
        beside what rows differ by. None: where a step is "auto", there is no ridge, features are dense and stored once
        for 4 rows or more, one is constant, and the means make half of the squared length of rows or more. Means are
        those of some 4,096 rows.
    average : bool
        Whether the answer is a mean over the later part of the run instead of its last point: the noise of single rows
        averages out. Where that part begins is chosen from the points themselves, anew at every look: as early as they
        do not remember the start, as far as their noise lets that be seen (see `valuate.solvers.averaging`). It takes
        a look at some 1,024 rows.
    """

    step_theta: float | str = "auto"
    step_omega: float | str = "auto"
    average: bool = False
    scale: bool | None = None
    center: bool | None = None
    reference: ClassVar[Reference]
    direction: ClassVar[str]
    #: How rows follow each other: drawn at random, or "log", as they lie.
    sampling: ClassVar[str] = "random"
    #: How fast steps shrink.
    decay: ClassVar[float] = 0.0
    #: Number of the paper's theorem that gives step sizes; 0 where there is none.
    theorem: ClassVar[int] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "step_theta", read_step("step_theta", self.step_theta))
        object.__setattr__(self, "step_omega", read_step("step_omega", self.step_omega))
        object.__setattr__(self, "average", _checks.flag("average", self.average))
        for name in ("scale", "center"):
            setting = getattr(self, name)
            object.__setattr__(self, name, None if setting is None else _checks.flag(name, setting))
        if self.step_theta == "theory":
            require_theorem(self)

    @property
    def is_automatic(self) -> bool:
        """Whether a step that moves anything is left to be chosen."""
        moves = DIRECTIONS[self.direction].moves_omega
        return self.step_theta == "auto" or (moves and self.step_omega == "auto")

    def plan(self, n_rows: int, epoch: int, rng: np.random.Generator) -> Epoch:
        """Rows in the mean and inner steps of epoch ``epoch``, counted from 0."""
        raise NotImplementedError

    def solve(
        self,
        problem: Problem,
        *,
        passes: float | None = None,
        epochs: int | None = None,
        tolerance: float | None = None,
        record: float | str | None = None,
        seed: int | np.random.Generator = 0,
        theta: ArrayLike | None = None,
        omega: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> Solution:
        """Run the method on a problem.

        Parameters
        ----------
        problem : Problem
        passes, epochs : float, int
            The budget: row visits in multiples of the number of rows, kept to the row; or epochs. Give one;
            100 passes when neither is given.
        tolerance : float, optional
            Stop once the relative residual is at most this. Checked about once a pass, at ends of epochs.
        record : float or "epoch", optional
            Record the MSPBE every so many passes (to within 3 rows), or at each epoch's end; in ``solution.trace``.
        seed : int or numpy.random.Generator
            One seed, one path.
        theta, omega : (dim,) array, optional
            Where to start; zeros otherwise. Not changed.
        callback : callable, optional
            Called with a `Progress` at each epoch's end and each recorded point; a true answer stops the run.

        Returns
        -------
        Solution

        Raises
        ------
        InputError, InputTypeError
            For budgets, tolerances or starting points that make no sense.
        """
        return driver.run(
            self,
            problem,
            Request(passes, epochs, tolerance, record, seed, theta, omega, callback),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(Stochastic):
    """What the methods without a reference share: the noise of a row stays in the step.

    Parameters
    ----------
    sampling : {"random", "log"}
        Rows drawn at random, or in the order in which they lie: then one pass sees every row once.
    decay : float
        From a tenth of a pass on, or of a budget of less, steps shrink as the number of steps to the power -``decay``
        (by a fifth at a time).
        In the log's order, where rows depend on each other, averages of constant steps are off by a share of the
        step; .5 takes that away.
    """

    sampling: str = "random"  # type: ignore[misc]
    decay: float = 0.0  # type: ignore[misc]
    reference: ClassVar[Reference] = Reference.NOTHING

    def __post_init__(self) -> None:
        Stochastic.__post_init__(self)
        _check_sampling(self.sampling)
        _set_number(self, "decay", low=0.0, high=1.0)

    def plan(self, n_rows: int, epoch: int, rng: np.random.Generator) -> Epoch:
        """See `Stochastic.plan`."""
        return Epoch(mean_rows=0, steps=n_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class GTD2(Plain):
    """Gradient temporal difference learning (paper, section 4; Sutton et al. 2009)."""

    direction: ClassVar[str] = "saddle"


@dataclass(frozen=True, slots=True, kw_only=True)
class TD(Plain):
    """Temporal difference learning (Sutton 1988): theta - s (A_t theta - b_t); omega stays where it is.

    On-policy it converges, and with ``average`` and ``sampling="log"`` one pass comes close to the solution of all
    rows. Off-policy A may have eigenvalues with a negative real part, and TD diverges whatever its step.
    """

    direction: ClassVar[str] = "td"


@dataclass(frozen=True, slots=True, kw_only=True)
class TDC(Plain):
    """TD with gradient correction (Sutton et al. 2009; with ratios as in Maei 2011)."""

    direction: ClassVar[str] = "tdc"


@dataclass(frozen=True, slots=True, kw_only=True)
class GTD(Plain):
    """The first gradient TD method (Sutton, Szepesvari and Maei 2008): the norm of b - A theta itself is made small.

    What is small depends on the units of the columns, and convergence on the square of A's condition.
    """

    direction: ClassVar[str] = "gtd"


@dataclass(frozen=True, slots=True, kw_only=True)
class SAGA(Stochastic):
    """SAGA for policy evaluation (Du et al. 2017): the last gradient of every row is remembered, as two numbers.

    The first epoch visits every row once more, to fill the memory. The ridge is not remembered but applied exactly.

    Parameters
    ----------
    direction : {"saddle", "td"}
        The paper's saddle point, or theta alone along phi, as TD moves it: faster where it converges.
    """

    direction: str = "saddle"  # type: ignore[misc]
    reference: ClassVar[Reference] = Reference.MEMORY

    def __post_init__(self) -> None:
        Stochastic.__post_init__(self)
        read_direction(self.direction)

    def plan(self, n_rows: int, epoch: int, rng: np.random.Generator) -> Epoch:
        """See `Stochastic.plan`."""
        return Epoch(mean_rows=n_rows if epoch == 0 else 0, steps=n_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class SVRG(Stochastic):
    """Stochastic variance-reduced gradient for policy evaluation (paper, section 4; Du et al. 2017).

    Parameters
    ----------
    steps_per_row : float
        Inner steps of an epoch, as a multiple of the number of rows (K/n in the paper).
    direction : {"saddle", "td"}
        The paper's saddle point, or theta alone along phi, as TD moves it: faster where it converges.
    """

    steps_per_row: float = 1.0
    direction: str = "saddle"  # type: ignore[misc]
    reference: ClassVar[Reference] = Reference.ANCHOR
    theorem: ClassVar[int] = 1

    def __post_init__(self) -> None:
        Stochastic.__post_init__(self)
        read_direction(self.direction)
        _set_number(self, "steps_per_row", above=0.0)

    def plan(self, n_rows: int, epoch: int, rng: np.random.Generator) -> Epoch:
        """See `Stochastic.plan`."""
        return Epoch(mean_rows=n_rows, steps=max(1, round(self.steps_per_row * n_rows)))


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchingSVRG(SVRG):
    """Batching SVRG (paper, Algorithm 1): the mean is taken over a batch that grows from epoch to epoch.

    The batch starts at the floor of ``initial_fraction`` * n and is multiplied by ``growth`` and floored after every
    epoch, up to n: the schedule of the paper's experiments. It grows by one row at least, where the floor would hold
    a small batch for ever. With ``variance`` it follows Corollary 1 instead: B_m = n variance / (variance + n alpha
    rho^m), rounded up, as the corollary needs at least that many.

    Parameters
    ----------
    initial_fraction : float
        In (0, 1]; the first batch has at least one row.
    growth : float
        At least 1.
    variance, alpha, rho : float
        Xi^2, a bound on the sample variance of the gradients; and the constants of the corollary, rho below 1.
    steps_per_row : float
        Inner steps of an epoch, as a multiple of the number of rows.
    direction : {"saddle", "td"}
        As in `SVRG`.
    """

    initial_fraction: float = 0.1
    growth: float = 1.05
    variance: float | None = None
    alpha: float = 1.0
    rho: float = 0.6

    def __post_init__(self) -> None:
        SVRG.__post_init__(self)
        _set_number(self, "initial_fraction", above=0.0, high=1.0)
        _set_number(self, "growth", low=1.0)
        _set_number(self, "alpha", above=0.0)
        _set_number(self, "rho", above=0.0)
        if self.rho >= 1.0:
            raise InputError(f"rho must be below 1, so that the batch grows, not {self.rho:g}.")
        if self.variance is not None:
            _set_number(self, "variance", above=0.0)

    def plan(self, n_rows: int, epoch: int, rng: np.random.Generator) -> Epoch:
        """See `Stochastic.plan`."""
        return Epoch(mean_rows=self.batch(n_rows, epoch), steps=max(1, round(self.steps_per_row * n_rows)))

    def batch(self, n_rows: int, epoch: int) -> int:
        """Rows in the mean of epoch ``epoch``."""
        if self.variance is not None:
            shrink = n_rows * self.alpha * self.rho**epoch
            return min(n_rows, math.ceil(n_rows * self.variance / (self.variance + shrink) * (1 - 1e-12)))
        return _grown(self.initial_fraction, self.growth, n_rows, epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class SCSG(Stochastic):
    """Stochastically controlled stochastic gradient (paper, Algorithm 2).

    The mean is taken over a batch of B rows; the number of inner steps is geometric, in the paper with mean B. What a
    run can know is in its batches: with fewer inner steps more of a small budget goes to these.

    Parameters
    ----------
    batch_fraction : float
        B / n, in (0, 1]; a batch has at least one row.
    growth : float
        At least 1, the paper's: the batch is multiplied by it after every epoch, up to n.
    steps_per_row : float
        Mean number of inner steps, as a multiple of B; 1 is the paper's.
    direction : {"saddle", "td"}
        As in `SVRG`.
    sampling : {"random", "log"}
        Batches of rows drawn at random, the paper's, or as they lie, so that one pass sees each row once. The rows of
        the inner steps are drawn at random.
    """

    batch_fraction: float = 0.1
    growth: float = 1.0
    steps_per_row: float = 1.0
    direction: str = "saddle"  # type: ignore[misc]
    sampling: str = "random"  # type: ignore[misc]
    reference: ClassVar[Reference] = Reference.ANCHOR
    theorem: ClassVar[int] = 2

    def __post_init__(self) -> None:
        Stochastic.__post_init__(self)
        read_direction(self.direction)
        _check_sampling(self.sampling)
        _set_number(self, "batch_fraction", above=0.0, high=1.0)
        _set_number(self, "growth", low=1.0)
        _set_number(self, "steps_per_row", above=0.0)

    def plan(self, n_rows: int, epoch: int, rng: np.random.Generator) -> Epoch:
        """See `Stochastic.plan`. m/(m+1) is the probability of going on, counted from 0 steps, for a mean of m."""
        size = self.batch(n_rows, epoch)
        return Epoch(mean_rows=size, steps=int(rng.geometric(1 / (self.steps_per_row * size + 1))) - 1)

    def batch(self, n_rows: int, epoch: int) -> int:
        """Rows in the mean of epoch ``epoch``: B, the same in all where it does not grow."""
        return _grown(self.batch_fraction, self.growth, n_rows, epoch)


def _grown(fraction: float, growth: float, n_rows: int, epoch: int) -> int:
    """The floor of ``fraction`` * n, multiplied by ``growth`` and floored so many times, up to n."""
    size = max(1, int(fraction * n_rows))
    for _ in range(epoch):
        if size >= n_rows or growth == 1.0:
            break
        size = max(size + 1, int(size * growth))  # at least one more: the floor would catch a small batch
    return min(size, n_rows)


def _check_sampling(sampling: Any) -> None:
    if sampling not in ("random", "log"):
        raise InputError(f'sampling must be "random" or "log", not {sampling!r}.')


def _set_number(method: Any, name: str, **bounds: float) -> None:
    object.__setattr__(method, name, _checks.number(name, getattr(method, name), **bounds))
