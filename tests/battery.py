"""Small problems on every layout with their oracles, a spy on what a solver did, and checks for every solver."""

import copy
import dataclasses
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from oracle import Oracle
from valuate import GCR, LSTD, Auto, Problem, Status
from valuate.errors import InputError, InputTypeError, SolverError
from valuate.solvers.iterating import Iterative

LAYOUTS = ("dense", "trajectory", "indexed", "sparse", "sparse table")


class Case(NamedTuple):
    """A problem and the same rows as matrices."""

    problem: Problem
    oracle: Oracle


def case(
    layout: str,
    n: int = 37,
    dim: int = 5,
    *,
    ridge: float = 0.0,
    ratios: bool = False,
    weights: bool = False,
    dtype: Any = np.float64,
    seed: int = 0,
    n_states: int = 7,
    noise: float = 0.3,
    discounts: tuple[float, float] = (0.5, 0.98),
) -> Case:
    """Random rows in the given layout: with self-loops, terminated rows and, where sparse, rows without any entry.

    Rewards are those of a random theta plus ``noise``; every row has a discount of its own, between ``discounts``.
    """
    rng = np.random.default_rng([seed, n, dim])
    scalars: dict[str, Any] = {
        "discount": rng.uniform(*discounts, n),
        "terminated": rng.random(n) < 0.1,
        "ratios": rng.choice([0.0, 0.4, 1.0, 2.1], n) if ratios else None,
        "weights": rng.choice([0.0, 0.5, 1.0, 3.0], n) if weights else None,
        "ridge": ridge,
    }
    if layout in ("indexed", "sparse table"):
        table = (random_sparse if layout == "sparse table" else random_dense)(rng, n_states, dim).astype(dtype)
        states, followers = rng.integers(0, n_states, n), rng.integers(0, n_states, n)
        followers[1::9] = states[1::9]
        rows = table.toarray() if layout == "sparse table" else table
        phi, next_phi = rows[states], rows[followers]
    elif layout == "trajectory":
        phi = random_dense(rng, n, dim).astype(dtype)
        next_phi = np.vstack([phi[1:], random_dense(rng, 1, dim).astype(dtype)])
        cut = rng.random(n) < 0.15
        next_phi[cut] = random_dense(rng, int(cut.sum()), dim)
    else:
        draw = random_sparse if layout == "sparse" else random_dense
        first, second = draw(rng, n, dim).astype(dtype), draw(rng, n, dim).astype(dtype)
        loops = sp.diags_array((np.arange(n) % 9 == 1).astype(dtype))
        second = loops @ first + (sp.eye_array(n, dtype=dtype) - loops) @ second
        assert second.dtype == dtype
        phi, next_phi = (m.toarray() if layout == "sparse" else m for m in (first, second))
    rewards = phi @ rng.normal(size=dim) + noise * rng.normal(size=n)
    if layout in ("indexed", "sparse table"):
        problem = Problem.from_table(table, states, rewards, followers, **scalars)
    elif layout == "sparse":
        problem = Problem.from_arrays(first, rewards, second, **scalars)
    else:
        problem = Problem.from_arrays(phi, rewards, next_phi, **scalars)
    discounts = np.where(scalars["terminated"], 0.0, scalars["discount"])
    oracle = Oracle(phi, next_phi, rewards, discounts, scalars["ratios"], scalars["weights"], ridge)
    assert problem.layout == {"trajectory": "dense", "sparse table": "sparse"}.get(layout, layout)
    return Case(problem, oracle)


def random_dense(rng: np.random.Generator, n: int, dim: int) -> Any:
    """Rows of length about 1."""
    return rng.normal(size=(n, dim)) / np.sqrt(dim)


def random_sparse(rng: np.random.Generator, n: int, dim: int) -> Any:
    """As `random_dense`, about half of the entries 0, every sixth row all of them."""
    rows = random_dense(rng, n, dim) * (rng.random((n, dim)) < 0.5)
    rows[5::6] = 0
    return sp.csr_array(rows)


class Spy:
    """Writes down, in order, every mean and every chunk of steps that a solver takes on ``problem``.

    Attributes
    ----------
    events : list of ("mean", batch) and ("steps", order)
        ``batch`` is None for all rows. A product with A or its transpose counts as a mean.
    """

    def __init__(self, problem: Problem) -> None:
        self.n_rows = problem.n_rows
        self.events: list[tuple[str, Any]] = []
        chunk = problem.rows.chunk

        def spied_chunk(order: Any) -> Any:
            self.events.append(("steps", order.copy()))
            return chunk(order)

        def spied_mean(mean: Any) -> Any:
            def taken(*args: Any) -> Any:
                order = args[-1]
                self.events.append(("mean", None if order is None else order.copy()))
                return mean(*args)

            return taken

        problem.rows.chunk = spied_chunk
        problem.mean_gradient = spied_mean(problem.mean_gradient)
        for name in ("times_A", "times_At"):
            setattr(problem, name, self._counted(getattr(problem, name)))
        residual = problem.mean_residual
        problem.mean_residual = spied_mean(residual)
        problem.residual = lambda theta: -residual(np.asarray(theta, float), None)  # only measures

    def _counted(self, product: Any) -> Any:
        def taken(vector: Any) -> Any:
            self.events.append(("mean", None))
            return product(vector)

        return taken

    @property
    def row_visits(self) -> int:
        """Visits of all events."""
        return sum(self.n_rows if order is None else len(order) for _, order in self.events)

    @property
    def means(self) -> list[int]:
        """Rows of each mean."""
        return [self.n_rows if order is None else len(order) for kind, order in self.events if kind == "mean"]

    @property
    def steps(self) -> list[int]:
        """Steps after each mean (in all, where there is none)."""
        out: list[int] = []
        for kind, order in self.events:
            if kind == "mean" or not out:
                out.append(0)
            if kind == "steps":
                out[-1] += len(order)
        return out

    def play(self, oracle: Oracle, solver: Any, start: Any = None) -> Any:
        """Where the oracle ends with the same rows, (2, dim); ``solver`` has numbers for steps."""
        oracle.direction = solver.direction
        methods = dict.fromkeys(("GTD2", "TD", "TDC", "GTD"), oracle.plain) | {"SAGA": oracle.saga}
        method = methods.get(type(solver).__name__, oracle.anchored)
        return method(self.events, (solver.step_theta, solver.step_omega), start)


# ---- checks that every solver passes on every layout

N = 151


def noisy(layout: str) -> Case:
    """The problem of the checks, new at each call: nothing is kept from one run to the next."""
    return case(layout, n=N, dim=5, ridge=0.02, ratios=True, weights=True, n_states=20, discounts=(0.2, 0.6))


def is_direct(solver: Any) -> bool:
    """Whether a solver takes no steps here: its seed, starting point and any budget of a pass make no difference."""
    return isinstance(solver, LSTD | Auto)


def is_iterative(solver: Any) -> bool:
    """Whether a solver takes whole products with A: a budget that they do not fill is not used up."""
    return isinstance(solver, Iterative)


def is_seeded(solver: Any) -> bool:
    """Whether a solver draws rows."""
    return isinstance(solver, GCR) or not (is_direct(solver) or is_iterative(solver))


def has_steps(solver: Any) -> bool:
    """Whether a solver has step sizes of its own."""
    return hasattr(solver, "step_theta")


def assert_same_end(one: Any, other: Any) -> None:
    """Two runs ended at one point, bit for bit, at the same cost."""
    np.testing.assert_array_equal(one.theta, other.theta)
    np.testing.assert_array_equal(one.omega, other.omega)
    assert one.row_visits == other.row_visits and one.epochs == other.epochs


def check_one_seed_is_one_path(solver: Any, layout: str) -> None:
    """A number and the generator made from it give one answer, on a new problem and on one that was used before."""
    problem = noisy(layout).problem
    first = solver.solve(problem, passes=3.3, seed=7)
    assert_same_end(solver.solve(problem, passes=3.3, seed=7), first)
    assert_same_end(solver.solve(noisy(layout).problem, passes=3.3, seed=7), first)
    assert_same_end(solver.solve(problem, passes=3.3, seed=np.random.default_rng(7)), first)
    assert_same_end(solver.solve(problem, passes=3.3, seed=np.int64(7)), first)
    if is_seeded(solver):
        assert (solver.solve(problem, passes=3.3, seed=8).theta != first.theta).any()
    if not is_direct(solver):
        assert_same_end(solver.solve(problem, passes=3.3), solver.solve(problem, passes=3.3, seed=0))


def check_a_generator_moves_on(solver: Any, layout: str) -> None:
    """Two runs with one generator are two different runs."""
    if not is_seeded(solver):
        return
    rng = np.random.default_rng(7)
    one, two = (solver.solve(noisy(layout).problem, passes=2, seed=rng) for _ in range(2))
    assert (one.theta != two.theta).any()


def check_looking_changes_nothing(solver: Any, layout: str) -> None:
    """Trace, callback and checks of a tolerance that is never met leave every bit as it is."""
    passes = 4.4 if is_iterative(solver) else 6.4  # before five weights are exact
    plain = solver.solve(noisy(layout).problem, passes=passes)
    watched: list[dict[str, Any]] = [
        {"record": "epoch"},
        {"record": 0.3},
        {"record": 0.07},
        {"record": 100.0},
        {"callback": lambda progress: None},
        {"record": 1 / 3, "callback": lambda progress: False},
    ]
    if not is_direct(solver):
        watched.append({"tolerance": 1e-300})
    for how in watched:
        assert_same_end(solver.solve(noisy(layout).problem, passes=passes, **how), plain)


def check_threads_change_nothing(solver: Any, layout: str) -> None:
    """However many threads share the blocks of a sum, every bit is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("valuate._threads.ENTRIES_A_BLOCK", 64)
        ends = []
        for threads in ("1", "2", "3", "5"):
            patch.setenv("VALUATE_NUM_THREADS", threads)
            ends.append(solver.solve(noisy(layout).problem, passes=4.3))
    for end in ends[1:]:
        assert_same_end(end, ends[0])


def check_the_start_is_left_alone(solver: Any, layout: str) -> None:
    """Starting points are copied: arrays that cannot be written to will do, and the answer is an array of its own."""
    rng = np.random.default_rng(1)
    theta, omega = rng.normal(size=(2, 5))
    kept = theta.copy(), omega.copy()
    theta.flags.writeable = omega.flags.writeable = False
    first = solver.solve(noisy(layout).problem, passes=2.2, theta=theta, omega=omega)
    again = solver.solve(noisy(layout).problem, passes=2.2, theta=theta.tolist(), omega=omega.tolist())
    assert_same_end(first, again)
    np.testing.assert_array_equal((theta, omega), kept)
    if is_direct(solver):
        return
    still = solver.solve(noisy(layout).problem, passes=0, theta=theta, omega=omega)
    np.testing.assert_array_equal((still.theta, still.omega), kept)
    for part in (still.theta, still.omega):
        assert part.flags.writeable and not np.shares_memory(part, theta) and not np.shares_memory(part, omega)


def check_passes_are_kept_to_the_row(solver: Any, layout: str) -> None:
    """The budget in passes is what the run costs, rounded to a row."""
    for passes in (0, 0.3, 1.0, 1.37, 2.5, 7.91):
        problem = noisy(layout).problem
        if is_direct(solver) and passes < 1:
            with pytest.raises(InputError, match="below one pass"):
                solver.solve(problem, passes=passes)
            continue
        spy = Spy(problem)
        solution = solver.solve(problem, passes=passes)
        if is_iterative(solver):
            over = solution.row_visits - round(passes * N)
            assert over <= 0 and (over > -3 * N or solution.status is Status.CONVERGED)
        else:
            assert solution.row_visits == (N if is_direct(solver) else round(passes * N))
        assert type(solution.row_visits) is int and type(solution.epochs) is int
        assert solution.passes == solution.row_visits / N
        if not is_direct(solver):
            assert spy.row_visits == solution.row_visits


def check_visits_that_measure_are_counted_apart(solver: Any, layout: str) -> None:
    """Beside the visits of the budget, every look at a row is in ``setup_visits``."""
    if is_direct(solver):
        solution = solver.solve(noisy(layout).problem)
        assert (solution.row_visits, solution.setup_visits) == (N, N)
        return
    automatic = (dataclasses.replace(solver, step_theta="auto"),) if has_steps(solver) else ()
    for chosen in (solver, *automatic):
        for tolerance in (None, 1e-9):
            problem = noisy(layout).problem
            looks = _count_looks(problem)
            solution = chosen.solve(problem, passes=5.3, tolerance=tolerance)
            assert solution.setup_visits == looks[0]
            assert is_iterative(solver) or solution.row_visits == round(5.3 * N)


def _count_looks(problem: Problem) -> list[int]:
    """A counter of the looks at rows that are no mean gradient: residuals, norms of rows and columns, rows as such."""
    count = [0]

    def counting(original: Any, size: Any) -> Any:
        def counted(*args: Any) -> Any:
            count[0] += size(*args)
            return original(*args)

        return counted

    of_rows = ("maxima", "state_weights", "column_squares", "reward_sums")
    for holder, name in [(problem, "residual"), *((problem.rows, name) for name in of_rows)]:
        setattr(holder, name, counting(getattr(holder, name), lambda *args: N))
    problem.rows.at = counting(problem.rows.at, len)
    return count


def check_large_steps_end_as_diverged(solver: Any, layout: str) -> None:
    """A run that grows without bound ends with its status, the best recorded point and advice; never with NaN."""
    if not has_steps(solver):
        return
    wild = dataclasses.replace(solver, step_theta=1e3, step_omega=1e3)
    start = np.linspace(-1, 1, 5)
    for how in ({}, {"record": 0.2}, {"record": "epoch"}, {"tolerance": 1e-6}):
        given = noisy(layout)
        seen: list[Any] = []
        solution = wild.solve(given.problem, passes=50, theta=start, callback=seen.append, **how)
        assert solution.status is Status.DIVERGED
        assert np.isfinite(solution.theta).all() and np.isfinite(solution.omega).all()
        assert solution.row_visits < 50 * N
        recorded = [start] + [progress.theta for progress in seen if progress.mspbe is not None]
        values = [given.oracle.mspbe(theta) for theta in recorded if np.isfinite(theta).all()]
        np.testing.assert_array_equal(solution.theta, recorded[int(np.nanargmin(values))])
        assert np.isfinite(solution.trace.mspbe).all()
        assert solution.relative_residual > 0
        assert "Divide the steps by 10" in solution.message and "1e+03" in solution.message
        with pytest.raises(SolverError) as caught:
            solution.require()
        assert caught.value.solution is solution and str(caught.value) == solution.message


def check_a_tolerance_is_met_or_missed(solver: Any, layout: str) -> None:
    """CONVERGED means that the true relative residual is below the tolerance; otherwise `require` says no."""
    given = noisy(layout)
    solution = solver.solve(given.problem, passes=400, tolerance=0.3)
    assert solution.status is Status.CONVERGED and solution.require() is solution
    residual = given.oracle.relative_residual(solution.theta)
    assert residual <= 0.3 * (1 + 1e-9)
    assert solution.relative_residual == pytest.approx(residual, rel=1e-6, abs=1e-12)
    assert solution.row_visits < 400 * N
    assert solver.solve(given.problem, passes=1, tolerance=1.0).status is Status.CONVERGED
    if is_direct(solver):
        return
    missed = solver.solve(given.problem, passes=1.3, tolerance=1e-13)
    assert missed.status is Status.BUDGET_SPENT and "1e-13" in missed.message
    assert given.oracle.relative_residual(missed.theta) > 1e-13
    with pytest.raises(SolverError, match="above the tolerance") as caught:
        missed.require()
    assert caught.value.solution is missed
    spent = solver.solve(given.problem, passes=1.3)
    assert spent.status is Status.BUDGET_SPENT
    if spent.relative_residual <= 1:
        assert spent.require() is spent
    else:
        with pytest.raises(SolverError, match="further off than the value 0 everywhere"):
            spent.require()


def check_it_meets_lstd_or_says_why_not(solver: Any, layout: str) -> None:
    """With passes enough the answer is that of the linear system, or the status says that it is not."""
    given = noisy(layout)
    exact = given.oracle.solve()
    solution = solver.solve(given.problem, passes=2000, tolerance=1e-10)
    if solution.status is Status.CONVERGED:
        np.testing.assert_allclose(solution.theta, exact, rtol=1e-7, atol=1e-7)
        return
    assert solution.status is Status.STALLED
    assert given.oracle.relative_residual(solution.theta) > 1e-10
    assert "above the tolerance" in solution.message and "LSTD" in solution.message
    with pytest.raises(SolverError):
        solution.require()


def check_no_reward_is_no_value(solver: Any, layout: str) -> None:
    """Where b = 0 the answer is 0, from wherever the run starts."""
    rng = np.random.default_rng(3)
    phi, next_phi = rng.normal(size=(2, 30, 3))
    empty = np.vstack([phi[:15], np.zeros((15, 3))])
    rewards = np.repeat([0.0, 1.0], 15)
    wrap = sp.csr_array if "sparse" in layout else np.asarray
    problems = [
        Problem.from_arrays(wrap(phi), np.zeros(30), wrap(next_phi)),
        Problem.from_arrays(wrap(empty), rewards, wrap(next_phi)),
        Problem.from_arrays(wrap(phi), rewards, wrap(next_phi), ratios=1 - rewards),
        Problem.from_arrays(wrap(phi), rewards, wrap(next_phi), weights=1 - rewards, ridge=0.1),
    ]
    for problem in problems:
        for how in ({}, {"tolerance": 1e-6}, {"record": 0.5}, {"tolerance": 1e-6, "record": "epoch"}):
            solution = solver.solve(problem, passes=3, theta=np.ones(3), omega=np.ones(3), **how).require()
            assert solution.status is Status.CONVERGED and solution.relative_residual == 0
            assert not solution.theta.any() and not solution.omega.any()
            assert "b = 0" in solution.message or "reward is 0" in solution.message


def check_a_callback_can_stop(solver: Any, layout: str) -> None:
    """A true answer ends the run there and then, also at the starting point."""
    if is_direct(solver):
        return
    seen: list[Any] = []

    def third(progress: Any) -> bool:
        seen.append(progress)
        return len(seen) == 3

    solution = solver.solve(noisy(layout).problem, passes=50, callback=third)
    assert len(seen) == 3 and solution.status is Status.BUDGET_SPENT and "callback" in solution.message
    assert solution.row_visits == seen[-1].row_visits and solution.epochs == seen[-1].epoch == 3
    np.testing.assert_array_equal(solution.theta, seen[-1].theta)
    np.testing.assert_array_equal(solution.omega, seen[-1].omega)
    assert seen[-1].mspbe is None and seen[-1].passes == seen[-1].row_visits / N
    assert 0 <= seen[0].seconds <= seen[1].seconds <= seen[2].seconds
    for record in ("epoch", 0.5):
        stopped = solver.solve(noisy(layout).problem, passes=5, record=record, callback=lambda progress: True)
        assert stopped.row_visits == 0 and len(stopped.trace) == 1 and stopped.status is Status.BUDGET_SPENT
        assert not stopped.theta.any()


def check_progress_is_a_copy(solver: Any, layout: str) -> None:
    """Whatever a callback does to what it is shown, the run goes on as it would."""
    if is_direct(solver):
        return

    def spoil(progress: Any) -> None:
        progress.theta[:] = np.nan
        progress.omega[:] = np.nan

    plain = solver.solve(noisy(layout).problem, passes=4, record="epoch", callback=lambda progress: None)
    spoilt = solver.solve(noisy(layout).problem, passes=4, record="epoch", callback=spoil)
    assert_same_end(spoilt, plain)


def check_the_trace(solver: Any, layout: str) -> None:
    """Columns of one length that only grow, from the starting point on, with the MSPBE of each point."""
    start = np.linspace(-1, 1, 5)
    for record in ("epoch", 0.25, 1.0):
        given = noisy(layout)
        seen: list[Any] = []
        solution = solver.solve(given.problem, passes=6.3, record=record, theta=start, callback=seen.append)
        trace = solution.trace
        assert len(trace) >= 2 and trace.row_visits[0] == trace.epoch[0] == 0
        assert all(len(column) == len(trace) for column in trace.as_dict().values())
        assert (np.diff(trace.row_visits) > 0).all() and (np.diff(trace.epoch) >= 0).all()
        assert (np.diff(trace.seconds) >= 0).all() and trace.seconds[0] >= 0
        assert trace.seconds[-1] <= solution.seconds
        np.testing.assert_array_equal(trace.passes, trace.row_visits / N)
        assert trace.row_visits[-1] <= solution.row_visits
        if is_direct(solver):
            continue
        points = [progress for progress in seen if progress.mspbe is not None]
        np.testing.assert_array_equal([progress.row_visits for progress in points], trace.row_visits)
        np.testing.assert_array_equal([progress.mspbe for progress in points], trace.mspbe)
        np.testing.assert_array_equal(points[0].theta, start)
        expected = [given.oracle.mspbe(progress.theta) for progress in points]
        np.testing.assert_allclose(trace.mspbe, expected, rtol=1e-8, atol=1e-24)
        if record == "epoch":
            np.testing.assert_array_equal(points[-1].theta, solution.theta)
        elif not is_iterative(solver):  # these are recorded where an iteration ends
            # A mean is one piece, of n rows at most; steps are recorded where they are due, give or take a block.
            assert (np.diff(trace.row_visits) <= record * N + N + 4).all()
            steps_only = np.diff(trace.row_visits)[np.diff(trace.epoch) == 0]
            assert (steps_only >= record * N - N - 4).all() and len(trace) >= 1 + 6.3 / (record + 1)
    assert len(solver.solve(noisy(layout).problem, passes=2).trace) == 0


def check_pickle_and_copy(solver: Any, layout: str) -> None:
    """Solvers, solutions and errors survive being sent elsewhere."""
    solution = solver.solve(noisy(layout).problem, passes=2.3, record="epoch", tolerance=1e-3)
    error = SolverError("why", solution=solution)
    for again in (copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))):
        assert again(solver) == solver and hash(again(solver)) == hash(solver) and repr(again(solver)) == repr(solver)
        twin = again(solution)
        caught = again(error)
        assert type(caught) is SolverError and str(caught) == "why"
        for other in (twin, caught.solution):
            assert_same_end(other, solution)
            assert other.status is solution.status and other.solver == solution.solver
            assert (other.message, other.tolerance) == (solution.message, 1e-3)
            for name, column in solution.trace.as_dict().items():
                np.testing.assert_array_equal(getattr(other.trace, name), column)
            assert repr(other) == repr(solution)


def check_it_is_a_value(solver: Any, layout: str) -> None:
    """Solvers are frozen, equal when their numbers are, and do not change by solving."""
    twin = type(solver)(**{field.name: getattr(solver, field.name) for field in dataclasses.fields(solver)})
    assert twin == solver and twin is not solver and hash(twin) == hash(solver) and len({twin, solver}) == 1
    for field in dataclasses.fields(solver):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(solver, field.name, 0.5)
    with pytest.raises((AttributeError, TypeError)):
        solver.momentum = 0.5
    with pytest.raises(TypeError):
        type(solver)(momentum=0.5)
    with pytest.raises(TypeError):
        type(solver)(0.5)
    solver.solve(noisy(layout).problem, passes=1)
    assert solver == twin


def check_what_makes_no_sense_is_refused(solver: Any, layout: str) -> None:
    """Bad arguments of ``solve`` are errors that name them."""
    problem = noisy(layout).problem
    wrong: list[tuple[str, Any, type[Exception]]] = [
        ("passes", -1, InputError),
        ("passes", np.nan, InputError),
        ("passes", np.inf, InputError),
        ("passes", "many", InputTypeError),
        ("epochs", -1, InputError),
        ("epochs", 1.5, InputTypeError),
        ("tolerance", 0, InputError),
        ("tolerance", -1e-3, InputError),
        ("tolerance", np.nan, InputError),
        ("record", 0, InputError),
        ("record", "pass", InputError),
        ("record", [1.0], InputTypeError),
        ("seed", -1, InputError),
        ("seed", 1.5, InputTypeError),
        ("theta", np.ones(4), InputError),
        ("theta", np.ones((5, 1)), InputError),
        ("theta", [np.nan] * 5, InputError),
        ("omega", np.ones(6), InputError),
        ("callback", 3, InputTypeError),
    ]
    for name, value, error in wrong:
        with pytest.raises(error, match=name):
            solver.solve(problem, **{name: value})
    with pytest.raises(InputError, match="passes or epochs"):
        solver.solve(problem, passes=1, epochs=1)
    with pytest.raises(InputTypeError, match="Problem"):
        solver.solve(np.eye(3), passes=1)
    with pytest.raises(TypeError):
        solver.solve(problem, 3)


def check_the_solver_used_is_returned(solver: Any, layout: str) -> None:
    """``solution.solver`` is the solver with the numbers it chose."""
    assert solver.solve(noisy(layout).problem, passes=1).solver == solver
    if not has_steps(solver):
        return
    for chosen in ({"step_theta": "auto", "step_omega": "auto"}, {"step_theta": "auto"}, {"step_omega": "auto"}):
        automatic = dataclasses.replace(solver, **chosen)
        used = automatic.solve(noisy(layout).problem, passes=1).solver
        assert type(used) is type(solver)
        assert type(used.step_theta) is float and type(used.step_omega) is float
        assert dataclasses.replace(used, **chosen) == automatic
        given = noisy(layout)
        assert_same_end(used.solve(given.problem, passes=3), automatic.solve(given.problem, passes=3))


CHECKS = [value for name, value in sorted(globals().items()) if name.startswith("check_")]
