"""`Auto`: the method by what each would cost, the end by what the log can tell, and another method where one stalls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks
from valuate._threads import one_blas_thread
from valuate.problem import Problem
from valuate.solution import Solution, Status
from valuate.solvers.auto import costs
from valuate.solvers.auto.gauge import Gauge
from valuate.solvers.auto.joining import joined
from valuate.solvers.auto.race import Race
from valuate.solvers.clock import Clock
from valuate.solvers.direct import LSTD
from valuate.solvers.gcr import GCR
from valuate.solvers.iterating import Iteration
from valuate.solvers.krylov import GMRES, LSMR
from valuate.solvers.methods import GTD2, TD
from valuate.solvers.preconditioning import MOST_DIM
from valuate.solvers.request import Callback, Request, require_problem

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Vector = NDArray[np.float64]

#: Passes where no budget is given: what is given up on before that has stalled.
PASSES = 1000.0
#: Where there is no preconditioner, a direct solve that takes as long as this many passes is not worth avoiding.
AT_ONCE = 5.0
#: More iterations than there will be.
NEVER = 10**9
#: Operations of a direct solve that is taken at once, some milliseconds: no matter how fast the machine is.
SMALL = 5e8
#: With a budget of fewer passes than this, products are too few to be of use.
FEW = 8.0
#: Rows for each feature that a part of the log must have to be solved directly in place of the whole.
PART = 5
#: Seconds of a direct solve that are acceptable where a budget leaves no other way to an answer as good.
ACCEPTED = 60.0
#: Multiply-adds (stored rows * dim^2) up to which a direct solution is measured in the norm of C^-1 as well.
CHEAP = 1e7
#: Beyond, one whose residual in diag(C)^-1 is this share of the tolerance needs no other look.
CERTAIN = 1e-6
#: Share of the free memory for the vectors that GMRES keeps.
KEPT = 0.25


#: Steps for a small budget, and the share of it in which they have to prove that they converge.
_STEPS = TD(average=True, sampling="log", decay=0.5)
TRIAL = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Auto:
    """Chooses the method by itself, and ends where the log can tell no more.

    With a ``tolerance`` it goes on until the relative residual is that. Without, it stops at statistical accuracy:
    where the MSPBE is at most the square of ``standard_errors`` times the floor that the noise of finitely many rows
    leaves (`valuate.floor`), estimated from the rows. The closing message says in a line what was chosen and why, and
    ``solution.solver`` is the solver that gave the answer.

    Parameters
    ----------
    standard_errors : float
        How far the answer may stay from that of the log, in standard errors of the latter. At .1 an interval of 95%
        still covers 94.9%.

    Notes
    -----
    In order:

    1. A budget below one pass: LSTD on as many rows, drawn at random, where that is at least 5 a feature and quick;
       else TD over them, averaged.
    2. LSTD, where that is a matter of milliseconds, or quicker than what follows: tables, few features.
    3. A budget of a few passes: LSTD within a minute, else TD, averaged, if a tenth of the budget
       makes the residual smaller; if not, GTD2.
    4. GMRES with the inverse of A from some of the rows as preconditioner: from as many as make the whole quickest, by
       what an iteration leaves of the residual with so many rows. Up to 4096 features.
    5. Before that, GMRES without, where some passes are cheap beside the preconditioner; and in its place, where there
       are more features.
    6. The residual of GMRES tells when it would be there; as soon as another way would be there first, that takes over.
    7. Where GMRES stalls: LSTD if it fits in memory, else GCR around stochastic epochs, else LSMR.

    What these cost is counted and calibrated by a few products of matrices, some milliseconds, once. So beyond
    problems of a few milliseconds the choice depends on the machine, and on what else it does; two runs then agree to
    the accuracy that was asked for, and bit for bit with the solver of the first, ``solution.solver``.
    """

    standard_errors: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "standard_errors", _checks.number("standard_errors", self.standard_errors, above=0.0))

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
        """Solve A theta = b as well as the log can tell, or to a tolerance.

        Takes the arguments of every solver; 1000 passes when no budget is given. ``theta`` is where iterations begin,
        ``omega`` makes no difference.

        Returns
        -------
        Solution
            CONVERGED at statistical accuracy, or where the tolerance is met.
        """
        require_problem(problem)
        if passes is None and epochs is None:
            passes = PASSES
        request = Request(passes, epochs, tolerance, record, seed, theta, omega, callback)
        quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore")
        with quiet, one_blas_thread():
            return _Choice(self, problem, request).solve()


class _Choice:
    """One call of `Auto.solve`: stages, each a solver at work, and what they cost together."""

    def __init__(self, method: Auto, problem: Problem, request: Request) -> None:
        self.method, self.problem, self.request = method, problem, request
        self.rng: np.random.Generator = request.seed
        self.theta, self.omega = request.start(problem)
        self.stages: list[Solution] = []
        #: Why the solver of each stage was chosen.
        self.reasons: list[str] = []
        self.setup_visits = 0
        self.clock = Clock()

    def solve(self) -> Solution:
        """Choose, run, and choose again where that was not it."""
        problem, budget = self.problem, self.budget
        if budget == 0.0 or not problem.rows.any_reward():
            return self._run(GMRES(), "nothing has to be solved" if budget else "the budget is empty")
        if budget < 1.0:
            return self._within_a_pass(budget)
        self.setup_visits += problem.preparing_visits()
        if not problem.b.any():
            return self._run(GMRES(), "nothing has to be solved")
        rival = costs.direct(problem, 0.0)
        if rival.fits and rival.operations <= SMALL:
            return self._directly("that is a matter of milliseconds")
        a_pass, looked_at = costs.a_pass(problem)
        self.setup_visits += looked_at
        rival = costs.direct(problem, a_pass)
        if budget < FEW:
            if rival.fits and rival.seconds <= ACCEPTED:
                return self._directly(f"a budget of {budget:g} passes is too little for products")
            return self._by_steps(f"a budget of {budget:g} passes is too little for products")
        gauge = self._gauge()
        sampled = None
        if rival.fits and problem.dim <= MOST_DIM:
            sampled = costs.sampled(problem, gauge.goal(), a_pass)
        # Products have to be measured too, in a norm of its own cost.
        if rival.fits and rival.seconds <= gauge.seconds() + (sampled.seconds if sampled else AT_ONCE * a_pass):
            return self._directly(f"it takes {_ms(rival.seconds)}, a pass over the rows {_ms(a_pass)}")
        return self._by_products(rival, sampled, a_pass, gauge)

    @property
    def budget(self) -> float:
        """Passes that are left; infinite where the budget is in epochs."""
        if self.request.epochs is not None:
            return np.inf if self.request.epochs > 0 else 0.0
        return float(self.request.passes) - sum(stage.passes for stage in self.stages)

    def _gauge(self) -> Gauge:
        return Gauge(self.problem, self.request.tolerance, self.method.standard_errors, self.rng)

    def _by_products(self, rival: costs.Direct, sampled: costs.Sampled | None, a_pass: float, gauge: Gauge) -> Solution:
        """GMRES, without and with a preconditioner, in a race with what else there is."""
        plain = GMRES(memory=max(64.0, KEPT * costs.free_memory() / 2**20))
        direct = rival.seconds if rival.fits else np.inf
        #: A pass is kept back for LSTD where the budget may end before the products are there.
        last = rival.fits and rival.seconds <= ACCEPTED
        why = f"a pass takes {_ms(a_pass)} and LSTD {_direct(rival)}"
        method, race = plain, Race(gauge, direct)
        if sampled is not None:
            rows = min(self.problem.n_rows, round(sampled.rows_a_feature * self.problem.dim))
            method = replace(plain, preconditioner="subsample", rows_a_feature=sampled.rows_a_feature)
            if sampled.alone <= min(direct, sampled.seconds):
                method = replace(method, after=NEVER)
                race = Race(gauge, direct, help=sampled.seconds)
            else:
                why += f", with A of {rows:,} rows to precondition it"
        found = self._iterate(method, why, race, gauge, kept=float(last))
        if method.after and race.helped is None:
            found = self.stages[-1] = replace(found, solver=plain)
        elif race.helped is not None:
            count, left = race.helped
            alone = f"would have taken {_ms(left)} more" if np.isfinite(left) else "got nowhere"
            self.reasons[-1] += (
                f"; after {count} products, which {alone} alone, with A of {rows:,} rows to precondition it"
            )
        if last and found.status is Status.BUDGET_SPENT and not race.given_up and self.budget >= 1:
            return self._directly(f"the last pass of the budget is enough for it, {_ms(rival.seconds)}")
        if race.given_up:
            left = race.remaining()
            ahead = f"GMRES would take {_ms(left)} more" if np.isfinite(left) else "the residual no longer falls"
            return self._directly(
                f"after {found.epochs} products {ahead}, badly conditioned as A is, and LSTD {_direct(rival)}"
            )
        if found.status in (Status.STALLED, Status.SINGULAR) and rival.fits:
            return self._directly(f"GMRES stalled at a relative residual of {found.relative_residual:.1g}")
        return self._after_a_stall(found, gauge) if found.status is Status.STALLED else self._finished()

    def _after_a_stall(self, found: Solution, gauge: Gauge) -> Solution:
        """Without the room for matrices."""
        best = found
        for method in (GCR(), LSMR()):
            if self.budget < 3:
                break
            why = f"{type(best.solver).__name__} stalled at a relative residual of {best.relative_residual:.1g}"
            self.theta = best.theta
            found = self._iterate(method, why, Race(gauge, np.inf), gauge)
            if found.status in (Status.CONVERGED, Status.SINGULAR):
                return self._finished()
            if found.relative_residual < best.relative_residual:
                best = found
        return self._finished(best)

    def _iterate(self, method: Any, why: str, race: Race, gauge: Gauge, *, kept: float = 0.0) -> Solution:
        """A stage of a method that follows the residual, watched, in the budget less the passes that are kept."""
        request = replace(self.request, theta=self.theta, omega=self.omega, seed=self.rng)
        if request.epochs is None:
            request.passes = self.budget - kept
        # What is asked for is looked at by the race.
        aimless = replace(request, tolerance=None)
        run = Iteration(method, self.problem, aimless, race)
        run.ending.exact = gauge.exact and self.problem.knows("metric")
        run.ending.asked = self.request.tolerance
        found = run.go()
        self._keep(found, why)
        if found.status is Status.CONVERGED and race.distance <= 1:
            self.stages[-1] = replace(found, message=self._reached(found, gauge))
        elif found.status is Status.CONVERGED:  # by its own measure of what is left to do
            self.stages[-1] = self._held_to(found)
        self.setup_visits += gauge.visits
        gauge.visits = 0
        return self.stages[-1]

    def _reached(self, found: Solution, gauge: Gauge) -> str:
        passes = f"after {found.passes:.4g} passes"
        residual = f"relative residual {found.relative_residual:.2g} in the norm of {gauge.norm}"
        if self.request.tolerance is not None:
            return f"Converged: {residual} {passes}."
        size = 0.5 * (found.relative_residual * gauge.whole()) ** 2
        return (
            f"Converged at statistical accuracy: the MSPBE is {size / gauge.floor:.2g} of its floor, {residual}, "
            f"{passes}."
        )

    def _directly(self, why: str) -> Solution:
        request = self.request
        found = LSTD().solve(
            self.problem,
            passes=None if request.epochs is not None else max(1.0, self.budget),
            epochs=None if request.epochs is None else max(1, request.epochs),
            record=request.record,
            tolerance=request.tolerance if self._measures_cheaply() else None,
            seed=self.rng,
            callback=request.callback,
        )
        self._keep(found if self._measures_cheaply() else self._held_to(found), why)
        return self._finished()

    def _measures_cheaply(self) -> bool:
        return self.problem.rows.n_stored * self.problem.dim**2 <= CHEAP

    def _held_to(self, found: Solution) -> Solution:
        """A solution that was not asked for the tolerance, held to it: in its own norm unless far below."""
        tolerance = self.request.tolerance
        if tolerance is None or found.status is not Status.CONVERGED:
            return found
        if not found.relative_residual <= CERTAIN * tolerance:
            self.setup_visits += self.problem.measuring_visits(exact=self.problem.measures_exactly)
            found = replace(found, relative_residual=self.problem.relative_residual(found.theta))
        if found.relative_residual <= tolerance:
            return found
        norm = "C^-1" if self.problem.measures_exactly else "diag(C)^-1"
        message = (
            f"Solved as far as float64 goes: relative residual {found.relative_residual:.1g} in the norm of "
            f"{norm}, above the tolerance {tolerance:.2g}. Ask for less, or make A better conditioned by a small ridge "
            "or fewer features."
        )
        return replace(found, status=Status.STALLED, message=message)

    def _within_a_pass(self, budget: float) -> Solution:
        """Less than a pass: the direct solution of some rows, or steps over them."""
        problem = self.problem
        size = round(budget * problem.n_rows)
        if size == 0:
            return self._run(GMRES(), "the budget is empty")
        part = Problem(problem.rows.part(problem.rows.subset(size, self.rng)), ridge=problem.ridge)
        rival = costs.direct(part, 0.0)
        if not (size >= PART * problem.dim and rival.fits and rival.seconds <= ACCEPTED):
            return self._by_steps(f"a budget of {budget:g} passes is too little for products")
        found = LSTD().solve(part)
        self.setup_visits += problem.measuring_visits(exact=problem.measures_exactly)
        relative = problem.relative_residual(found.theta)
        tolerance = self.request.tolerance
        met = tolerance is not None and relative <= tolerance
        status = Status.CONVERGED if met else Status.BUDGET_SPENT
        message = (
            f"{'Converged' if met else f'Spent its budget of {budget:g} passes'}: solved directly on {size:,} rows "
            f"drawn at random, relative residual {relative:.2g} on all of them"
            f"{'' if met or tolerance is None else f', above the tolerance {tolerance:.2g}'}."
        )
        if found.status is Status.SINGULAR:
            message += " These rows do not determine all weights; more may."
        if relative > 1:
            message += " That is further off than the value 0 everywhere: give more passes."
        found = replace(
            found, status=status, message=message, relative_residual=relative, row_visits=size,
            passes=size / problem.n_rows, epochs=0, setup_visits=0, tolerance=self.request.tolerance,
        )  # fmt: skip
        self._keep(found, f"so few rows are solved in {_ms(rival.seconds)}")
        return self._finished()

    def _by_steps(self, why: str) -> Solution:
        """Single steps, averaged: TD while that makes the residual smaller, else GTD2."""
        whole = self.budget
        trial = self._run(_STEPS, why, finish=False, passes=TRIAL * whole)
        if not _helped(trial):
            lacked = "diverged" if trial.status is Status.DIVERGED else f"did not help in {TRIAL * whole:.2g} passes"
            other = self._run(GTD2(average=True), f"TD {lacked}", finish=False)
            return self._finished(trial if trial.relative_residual < other.relative_residual else other)
        self.theta = trial.theta
        found = self._run(_STEPS, "the rest of the budget, as it converges", finish=False)
        return self._finished(found if _helped(found) else trial)

    def _run(self, solver: Any, why: str, *, finish: bool = True, passes: float | None = None) -> Solution:
        """A stage of a solver that needs no watching."""
        request = self.request
        left = max(0.0, self.budget) if passes is None else passes
        found = solver.solve(
            self.problem,
            passes=None if request.epochs is not None else left,
            epochs=request.epochs,
            tolerance=request.tolerance,
            record=request.record,
            seed=self.rng,
            theta=self.theta,
            omega=self.omega,
            callback=request.callback,
        )
        self._keep(found, why)
        return self._finished() if finish else found

    def _keep(self, found: Solution, why: str) -> None:
        self.stages.append(found)
        self.reasons.append(f"{type(found.solver).__name__}, for {why}")

    def _finished(self, answer: Solution | None = None) -> Solution:
        """The last stage's answer, with the cost of all and the reasons."""
        answer = self.stages[-1] if answer is None else answer
        visits = sum(stage.row_visits for stage in self.stages)
        reasons = "; then ".join(self.reasons)
        return replace(
            answer,
            message=f"{answer.message} Chosen: {reasons}.",
            row_visits=visits,
            setup_visits=self.setup_visits + sum(stage.setup_visits for stage in self.stages),
            passes=visits / self.problem.n_rows,
            epochs=sum(stage.epochs for stage in self.stages),
            seconds=self.clock.seconds,
            trace=joined([stage.trace for stage in self.stages], self.problem.n_rows),
            tolerance=self.request.tolerance,
        )


def _helped(found: Solution) -> bool:
    """Whether a run ended nearer than the value 0 everywhere."""
    return found.status is not Status.DIVERGED and found.relative_residual < 1


def _ms(seconds: float) -> str:
    return costs.seconds(seconds)


def _direct(rival: costs.Direct) -> str:
    if rival.fits:
        return f"about {costs.seconds(rival.seconds)}"
    return f"does not fit: {rival}"
