"""The value of a policy from the fitted fixed point, with an interval from its influence function."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate.equations import Equations
from valuate.errors import InputError, InputTypeError, PrecisionWarning
from valuate.inference import adjoint, bootstrapping, clusters, plausible, scores, starting
from valuate.inference import deletion as deleting
from valuate.inference.value import PolicyValue, Source, Standing, read_confidence, student

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    from valuate.inference.clusters import Clusters
    from valuate.inference.scores import Form
    from valuate.inference.starting import Initial
    from valuate.problem import Problem
    from valuate.solution import Solution

    Vector = NDArray[np.float64]

#: An optimisation error, or the effect of what is not determined, up to this many standard errors changes the
#: coverage of a 95% interval by a tenth of a point.
NEGLIGIBLE = 0.1
#: What moves the value by fewer standard errors is not worth a sentence.
VISIBLE = 1e-3
#: A standard error found by products may still move by this share of itself.
SETTLED = 0.005
#: Equations hold where the relative residual is below this, as in LSTD.
CONSISTENT = 1e-8
#: Draws below which an interval is wide and rests on few.
FEW = 10
#: A draw that makes up this share of the variance, and ratios that leave this share of the rows, deserve a remark.
HALF, SHARE = 0.5, 0.1


def policy_value(
    problem: Problem,
    solution: Solution | ArrayLike,
    initial: Any = None,
    *,
    episodes: Any = None,
    initial_episodes: Any = None,
    fixed_initial: bool | None = None,
    blocks: int | bool | str | None = None,
    confidence: float = 0.95,
    deletion: bool | None = None,
    bootstrap: int | None = None,
    seed: int | np.random.Generator = 0,
) -> PolicyValue:
    """The mean value of initial states, with its standard error and interval.

    The interval is that of the fixed point A theta = b which an endless log of the same kind would give. Where the
    features cannot hold the true values this is not the true value; see docs/intervals.md.

    Parameters
    ----------
    problem : Problem
    solution : Solution or (dim,) array
        The weights, or the solution that has them. Its solver says which equations it solved, so that LSTD with
        traces is treated as what it is; of an array the problem's own are assumed.
    initial : (m, dim) array or sparse matrix, or (dim,) array, optional
        Features of the initial states; one row for the mean of a known distribution. None: the first states of the
        episodes, which are then a part of the sample.
    episodes : (n,) labels or "rows", optional
        What is one draw. None: the episodes of the log. "rows": every row was drawn independently of the others.
    initial_episodes : (m,) labels, optional
        Which episode of the log each initial state comes from: they are then sampled together with it.
    fixed_initial : bool, optional
        True: exactly these initial states are meant. False: those given are an independent sample of their own, whose
        variance is added. None: first states are sampled with their episodes, given ones are meant.
    blocks : int, True or "auto", optional
        Cut each episode, or the one long chain, into blocks of so many rows, which are then the draws. True or "auto"
        chooses the length. Where there is one episode only this is done anyway.
    confidence : float
    deletion : bool, optional
        Whether the part of each draw in the standard error is what leaving it out changes, exactly, or to first order.
        The first is right with few episodes too, and costs a system of equations an episode. None: where that takes
        about a second at most.
    bootstrap : int, optional
        Draws of a multiplier bootstrap, to check the interval by; 2000 are enough.
    seed : int or numpy.random.Generator
        Of the bootstrap.

    Returns
    -------
    PolicyValue
        Where the log does not determine the value its ``standing`` says so, and the interval is without bounds.

    Notes
    -----
    With A' z = the mean of the initial features, the value moves by z . m_g when the weight of the draw g moves by
    one, m_g being the sum of w rho tdError phi over its rows, less the ridge's share. One adjoint solve gives z, with
    factors of A or by products with its transpose. The variance is G/(G-1) times the sum of squares over the G draws;
    Student's t has G-1 degrees of freedom. Weights are multiplicities of rows: they say how often a row counts, not
    that it was drawn more often, so that a draw stays one draw and doubling all weights changes nothing.
    """
    if not hasattr(problem, "mean_residual"):
        raise InputTypeError(f"problem must be a Problem, not {type(problem).__name__}.")
    confidence = read_confidence(confidence)
    given = problem.vector("theta", solution.theta if hasattr(solution, "theta") else solution)
    form = scores.Form.of(solution)
    draws = clusters.read(problem, episodes, blocks)
    if not form.plain and (draws.method == "rows" or draws.starts is None):
        raise InputError("traces run along episodes: an interval for LSTD(lambda) needs to know them. Give episodes=.")
    states = starting.read(problem, draws, initial, initial_episodes, fixed_initial)
    fit = _Fit(problem, form, draws, states, given)
    draws, notes = _cut(fit, draws, blocks)
    if draws is not fit.draws:
        states = starting.read(problem, draws, initial, initial_episodes, fixed_initial)
        fit.regroup(draws, states)
    return _Answer(fit, confidence, notes).finish(deletion, bootstrap, seed)


class _Fit:
    """The fixed point near the given weights, the adjoint solution, and what each row contributes."""

    def __init__(self, problem: Problem, form: Form, draws: Clusters, states: Initial, given: Vector) -> None:
        self.problem, self.form, self.draws, self.states, self.given = problem, form, draws, states, given
        self.equations: Problem | Equations = problem
        if not form.plain:
            assert draws.starts is not None
            self.equations = Equations.traced(problem, draws.starts, form.trace_decay, form.ratio_on)
        dense = not form.plain or adjoint.forms_matrix(problem)
        self.system = adjoint.Dense(self.equations) if dense else adjoint.ByProducts(problem)
        self.theta = given
        if isinstance(self.system, adjoint.Dense):
            self.theta = given + self.system.solve(self.equations.residual(given))
        self._look()

    def _look(self) -> None:
        p = self.states.mean
        self.residual = self.equations.residual(self.theta)
        self.errors = scores.errors(self.problem, self.theta, self.form)
        if isinstance(self.system, adjoint.Dense):
            self.z = self.system.adjoint(p)
        else:
            self.z = self.system.adjoint(p, self._settling())
        self.value = float(p @ self.theta) + float(self.z @ self.residual)
        self.moved = self.value - float(p @ self.given)
        self.terms = self._terms(self.z)
        #: Whether A theta = b holds at all.
        self.holds = True
        if isinstance(self.system, adjoint.Dense) and self.system.rank < self.problem.dim:
            self.holds = self.equations.relative_residual(self.theta) <= CONSISTENT

    def _terms(self, z: Vector) -> Vector:
        return self.errors * scores.along(self.problem, z, self.form, self.draws.starts)

    def _settling(self) -> Callable[[Vector], bool]:
        """Tells whether the standard error and the correction of the value have stopped moving."""
        last = [np.inf, np.inf]

        def settled(z: Vector) -> bool:
            terms = self._terms(z)
            sums = terms if self.draws.count == 1 else self.draws.total(terms)
            error, moved = float(np.sqrt(sums @ sums)) / self.problem.n_rows, float(z @ self.residual)
            still = abs(error - last[0]) <= SETTLED * error and abs(moved - last[1]) <= SETTLED * error
            last[:] = error, moved
            return still

        return settled

    def regroup(self, draws: Clusters, states: Initial) -> None:
        """Take other draws; first states may no longer be a sample."""
        self.draws, self.states = draws, states

    def open_reach(self) -> float:
        """How far the value could move with what A leaves open, if no state's value changes by more than the largest.

        Weights may move along the open direction until the value of some state changes by as much as the largest
        value that there is.
        """
        if self.system.open is None:
            return 0.0
        direction, slope = self.system.open
        rows = scores.in_memory(self.problem)
        largest = max(float(np.abs(rows.times(self.theta)).max()), float(np.abs(self.states.values(self.theta)).max()))
        change = max(float(np.abs(rows.times(direction)).max()), float(np.abs(self.states.values(direction)).max()))
        return abs(slope) / change * largest


def _cut(fit: _Fit, draws: Clusters, blocks: Any) -> tuple[Clusters, list[str]]:
    """Blocks, where they were asked for or there is nothing else; and what to say of them."""
    wanted = blocks is not None and blocks is not False
    single = draws.method != "rows" and draws.count == 1
    if not wanted and not single:
        return draws, []
    length = clusters.read_blocks(blocks) if wanted else None
    chosen = length if length is not None else clusters.automatic_length(fit.terms)
    cut = draws.into_blocks(chosen)
    how = "as was asked" if length is not None else "chosen from the correlations of the rows"
    notes = [f"The draws are {cut.count:,} blocks of about {chosen:,} rows, {how}."]
    if single and not wanted:
        notes.insert(0, "The log is one episode.")
    return cut, notes


class _Part(NamedTuple):
    """Terms whose squares add up to a variance, and its degrees of freedom."""

    terms: Vector
    degrees: int


class _Answer:
    """From influence to interval."""

    def __init__(self, fit: _Fit, confidence: float, notes: list[str]) -> None:
        self.fit, self.confidence, self.notes = fit, confidence, notes
        self.share = scores.shares(fit.problem, fit.draws)
        #: Draws whose rows all have weight 0 are not there.
        self.active = np.flatnonzero(self.share > 0)
        self.count = len(self.active)
        through_rows = scores.influence(fit.problem, fit.theta, fit.z, fit.terms, fit.draws, self.share)
        self.influence = through_rows + fit.states.influence(fit.theta, fit.draws)
        self.correction = "none"

    def finish(self, delete: bool | None, bootstrap: int | None, seed: Any) -> PolicyValue:
        """The answer."""
        fit = self.fit
        parts = [self._clustered(delete)] if self.count > 1 else []
        if fit.states.kind == "sample":
            values = fit.states.values(fit.theta)
            m = len(values)
            parts.append(_Part((values - values.mean()) / np.sqrt(m * (m - 1)), m - 1))
        variances = [float(part.terms @ part.terms) for part in parts]
        error = float(np.sqrt(sum(variances)))
        degrees = _degrees(variances, [part.degrees for part in parts])
        standing = self._standing(error)
        if standing is Standing.UNDETERMINED:
            error = np.inf
        self._warn(standing, error)
        boot = None
        if bootstrap is not None and standing is not Standing.UNDETERMINED:
            boot = bootstrapping.run(fit, self.influence[self.active], self.active, self.share, bootstrap, seed)
        return PolicyValue(
            value=fit.value,
            standard_error=error,
            interval=student(fit.value, error, degrees, self.confidence),
            confidence=self.confidence,
            episodes=self.count,
            degrees=degrees,
            method=fit.draws.method,
            estimator="fixed point",
            standing=standing,
            optimisation_error=abs(fit.moved),
            correction=self.correction,
            notes=tuple(self.notes),
            bootstrap_error=None if boot is None else boot.error,
            bootstrap_interval=None if boot is None else boot.interval(fit.value, self.confidence),
            influence=self.influence[self.active],
            deviations=np.concatenate([part.terms for part in parts]) if parts else np.empty(0),
            source=source(fit.problem, fit.draws, fit.states.kind),
        )

    def _clustered(self, delete: bool | None) -> _Part:
        fit, g = self.fit, self.count
        system = fit.system
        possible = isinstance(system, adjoint.Dense) and fit.form.plain and system.rank > 0
        if delete and not possible:
            raise InputError(
                "deletion=True needs A as a matrix and no traces: leave it out, the standard error is then that of "
                "first order."
            )
        if possible and delete is not False:
            assert isinstance(system, adjoint.Dense)
            if delete or deleting.affordable(fit.problem, system, fit.draws):
                found = deleting.deleted(
                    fit.problem, system, fit.draws, fit.states, fit.theta, fit.errors, self.share, self.influence
                )
                self.correction = "deletion"
                self._say_needed(found.needed)
                return _Part(np.sqrt((g - 1) / g) * found.changes[self.active], g - 1)
        return _Part(np.sqrt(g / (g - 1)) * self.influence[self.active], g - 1)

    def _say_needed(self, needed: NDArray[np.intp]) -> None:
        if len(needed):
            self.notes.append(
                f"Without one of {len(needed)} of the {self.count:,} {self.fit.draws.method} the log would not "
                "determine the value: the interval is likely to be too short. More of them, or fewer features, help."
            )

    def _standing(self, error: float) -> Standing:
        fit = self.fit
        if self.count < 2:
            self.notes.append("One draw says nothing of how draws vary: there is no interval. Try blocks=True.")
            return Standing.UNDETERMINED
        if not fit.holds:
            self.notes.append(
                "The equations are singular and contradict each other. Use a small ridge, fewer features or more rows."
            )
            return Standing.UNDETERMINED
        reach = fit.open_reach()
        if reach > NEGLIGIBLE * error:
            self.notes.append(
                "The log does not determine the value: it depends on features on which the rows say nothing (such as "
                "states that are only ever led to), by as much as "
                f"{reach / error if error > 0 else np.inf:.2g} standard errors. Use a small ridge, fewer features or "
                "more rows."
            )
            return Standing.UNDETERMINED
        if reach > VISIBLE * error:
            self.notes.append(
                f"What the rows say nothing of could move the value by {reach / error:.1g} standard errors at most."
            )
        if not fit.system.solved:
            self.notes.append("The adjoint equations could not be solved by products: the standard error is rough.")
            return Standing.UNSOLVED
        if abs(fit.moved) > NEGLIGIBLE * error:
            size = f"{abs(fit.moved) / error:.2g}" if error > 0 else "many"
            exact = isinstance(fit.system, adjoint.Dense)
            self.notes.append(
                f"The weights were {size} standard errors away from the fixed point. The value is that of the fixed "
                "point, after a correction" + ("." if exact else "; the standard error is that of the weights given.")
            )
            if not exact and abs(fit.moved) > error:
                return Standing.UNSOLVED
        self._say_what_decides()
        self.notes += plausible.remarks(fit.problem, fit.draws, error)
        return Standing.DETERMINED

    def _say_what_decides(self) -> None:
        """Where few draws, one of them, or few rows carry the interval."""
        method, n = self.fit.draws.method, self.fit.problem.n_rows
        if self.count < FEW:
            self.notes.append(f"{self.count} {method} are few: the interval rests on how much these differ.")
        squares = self.influence[self.active] ** 2
        largest = int(squares.argmax())
        if self.count >= FEW and squares[largest] > HALF * squares.sum():
            labels = self.fit.draws.labels
            name = self.active[largest] if labels is None else labels[self.active[largest]]
            self.notes.append(
                f"One of the {self.count:,} {method} ({name}) makes more than half of the variance: look at it."
            )
        total, ratio_squares = self.fit.problem.rows.ratio_sums()
        effective = total**2 / ratio_squares if ratio_squares > 0 else 0.0
        if effective < SHARE * n:
            self.notes.append(
                f"The ratios leave {effective:,.3g} effective of {n:,} rows: a few rows decide, and the interval is "
                "likely to be too short."
            )

    def _warn(self, standing: Standing, error: float) -> None:
        if standing is not Standing.DETERMINED:
            warnings.warn(f"policy_value: {standing.value}. {self.notes[-1]}", PrecisionWarning, stacklevel=4)


def source(problem: Problem, draws: Clusters, kind: str) -> Source:
    """What identifies the log, the draws and the question."""
    rows = scores.in_memory(problem)
    log = clusters.digest(rows.records["reward"])
    return Source(log, draws.digest(), float(rows.records["discount"].max()), kind)


def _degrees(variances: list[float], degrees: list[int]) -> float:
    """Degrees of freedom of a sum of variances (Welch and Satterthwaite)."""
    total = sum(variances)
    if len(variances) == 1 or not total > 0:
        return float(min(degrees, default=0))
    return total**2 / sum(v**2 / k for v, k in zip(variances, degrees, strict=True))
