"""Auto: what it chooses and why, where it ends, and that what it says is so."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import battery
import honest
from battery import LAYOUTS, case
from valuate import GMRES, LSTD, Auto, Problem, Status
from valuate.environments import BairdStar, RandomMDP
from valuate.errors import InputError
from valuate.floor import floor
from valuate.solvers.auto import costs, method
from valuate.solvers.auto.gauge import Gauge


def trajectory(n=6000, dim=60, seed=0, power=0.5, **options):
    """A slow path whose columns mix directions of power-law sizes."""
    rng = np.random.default_rng(seed)
    path = rng.normal(size=(n + 1, dim))
    for t in range(n):
        path[t + 1] = 0.9 * path[t] + 0.4 * path[t + 1]
    mix, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    path = (path * np.arange(1, dim + 1) ** -power) @ mix
    rewards = path[:-1] @ rng.normal(size=dim) + rng.normal(size=n)
    return Problem.from_arrays(path[:-1], rewards, path[1:], **{"discount": 0.9, **options})


@pytest.fixture
def slow_direct(monkeypatch):
    """A machine on which solving directly takes a given number of seconds, or does not fit."""

    def set_to(seconds, *, fits=True):
        monkeypatch.setattr(method, "SMALL", 0.0)
        monkeypatch.setattr(costs, "direct", lambda problem, a_pass: costs.Direct(seconds, 8e15, fits, operations=1e18))

    return set_to


@pytest.fixture
def sampled(monkeypatch):
    """A machine on which GMRES is said to take so long with a preconditioner, and without."""

    def set_to(seconds, *, rows=10.0, alone=np.inf):
        monkeypatch.setattr(costs, "sampled", lambda problem, goal, a_pass: costs.Sampled(seconds, rows, alone))

    return set_to


# ---- the checks of every solver that make sense for one that takes other solvers


CHECKS = [
    battery.check_one_seed_is_one_path,
    battery.check_no_reward_is_no_value,
    battery.check_what_makes_no_sense_is_refused,
    battery.check_it_is_a_value,
    battery.check_pickle_and_copy,
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("check", CHECKS, ids=[check.__name__.removeprefix("check_") for check in CHECKS])
def test_battery(check, layout):
    check(Auto(), layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("tolerance", [None, 1e-9])
def test_the_answer_is_that_of_the_matrices(layout, tolerance):
    given = case(layout, n=300, dim=9, ridge=0.01, ratios=True, weights=True)
    solution = Auto().solve(given.problem, tolerance=tolerance).require()
    np.testing.assert_allclose(solution.theta, given.oracle.solve(), rtol=1e-8, atol=1e-8)
    assert solution.solver == LSTD() and "Chosen: LSTD, for that is a matter of milliseconds." in solution.message


# ---- where it ends


@pytest.mark.parametrize("power", [0.0, 1.0])
@pytest.mark.parametrize("standard_errors", [0.1, 1.0])
def test_statistical_accuracy_is_what_it_says(slow_direct, sampled, power, standard_errors):
    slow_direct(1e9)
    sampled(1e8, alone=0.0)
    problem = trajectory(power=power)
    solution = Auto(standard_errors=standard_errors).solve(problem).require()
    assert type(solution.solver) is GMRES and "at statistical accuracy" in solution.message
    true = floor(problem, LSTD().solve(problem).theta).value
    ratio = problem.mspbe(solution.theta) / true
    assert 1e-4 * standard_errors**2 < ratio <= 1.1 * standard_errors**2
    said = float(solution.message.split("the MSPBE is ")[1].split(" of its floor")[0])
    assert said == pytest.approx(ratio, rel=0.2)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-5, 1e-9])
def test_a_tolerance_is_met(slow_direct, tolerance):
    slow_direct(1e9)
    problem = trajectory(power=1.0)
    solution = Auto().solve(problem, tolerance=tolerance).require()
    true = problem.relative_residual(solution.theta, exact=True)
    assert true <= tolerance and (tolerance < 1e-8 or true > 0.01 * tolerance)
    assert solution.relative_residual == pytest.approx(true, rel=0.1) and solution.tolerance == tolerance


@pytest.mark.parametrize("weights", [False, True])
def test_few_rows_measure_as_well_as_all(monkeypatch, weights):
    """The gauge's norm of some rows against the exact one, at points that are not special."""
    monkeypatch.setattr("valuate.solvers.auto.gauge.CHEAP", 0.0)
    rng = np.random.default_rng(5)
    problem = trajectory(n=20_000, dim=100, power=1.0, weights=rng.uniform(0.5, 2.0, 20_000) if weights else None)
    gauge = Gauge(Problem(problem.rows), None, 1.0, rng)  # one that knows no matrix
    theta = LSTD().solve(problem).theta
    for size in (1.0, 0.01):
        point = theta + size * rng.normal(size=100)
        residual = problem.residual(point)
        distance = gauge.fine(residual, point)
        assert 3000 <= gauge.sampled < 3100
        exact = np.sqrt(problem.mspbe(point) / floor(problem, point).value) / 0.9
        assert distance == pytest.approx(exact, rel=0.15)
        assert gauge.relative(residual) == pytest.approx(problem.relative_residual(point, exact=True), rel=0.05)


def test_a_singular_norm_is_measured_by_all_rows(monkeypatch):
    monkeypatch.setattr("valuate.solvers.auto.gauge.CHEAP", 0.0)
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(9000, 20))
    phi[:, 7] = phi[:, 3]
    phi[:, 9] = 0.0
    phi[4321, 9] = 1.0  # one row that random ones miss
    problem = Problem.from_arrays(phi, rng.normal(size=9000), np.roll(phi, -1, 0), discount=0.5)
    gauge = Gauge(problem, 1e-6, 0.1, rng)
    residual = problem.residual(rng.normal(size=20))
    assert gauge.relative(residual) == pytest.approx(problem.relative_size(residual, exact=True))
    assert gauge.sampled == 0 and gauge.norm == "C^-1"


def test_many_features_are_measured_in_the_diagonal(slow_direct):
    slow_direct(1e9, fits=False)
    rng = np.random.default_rng(0)
    phi = sp.random_array((8000, 5000), density=0.002, rng=rng, format="csr")
    problem = Problem.from_arrays(phi, rng.normal(size=8000), phi[rng.permutation(8000)], discount=0.9, ridge=1e-3)
    solution = Auto().solve(problem, tolerance=1e-7).require()
    assert "in the norm of diag(C)^-1" in solution.message and "8,000,000 GB" not in solution.message
    assert "LSTD does not fit: 8e+03 TB of matrices" in solution.message or "LSTD does not fit" in solution.message
    assert problem.relative_residual(solution.theta) <= 1e-7


# ---- what it chooses, in words


def test_tables_are_solved_directly():
    env = RandomMDP(seed=0)
    problem = Problem.from_transitions(env.collect(50_000, seed=1), env.features, discount=0.95)
    solution = Auto().solve(problem).require()
    assert solution.solver == LSTD() and solution.row_visits == 50_000 and "Chosen: LSTD" in solution.message


def test_a_direct_solve_of_a_few_passes_is_taken(slow_direct):
    slow_direct(0.0)
    solution = Auto().solve(trajectory()).require()
    assert solution.solver == LSTD() and "a pass over the rows" in solution.message


def test_a_norm_that_takes_as_long_to_form_is_a_reason_too(slow_direct, sampled, monkeypatch):
    slow_direct(1.0)
    sampled(0.1)
    monkeypatch.setattr(Gauge, "seconds", lambda self: 2.0)
    assert Auto().solve(trajectory()).require().solver == LSTD()
    monkeypatch.setattr(Gauge, "seconds", lambda self: 0.0)
    assert Auto().solve(trajectory()).require().solver != LSTD()


@pytest.mark.parametrize("preconditioned", [False, True])
def test_a_slow_race_is_won_by_the_direct_solve(slow_direct, sampled, monkeypatch, preconditioned):
    slow_direct(1e-4)
    sampled(0.0 if preconditioned else 9e-5, rows=4.0, alone=np.inf if preconditioned else 0.0)
    monkeypatch.setattr(Gauge, "seconds", lambda self: 0.0)
    problem = trajectory(power=2.0, discount=0.999)
    solution = Auto().solve(problem, tolerance=1e-10).require()
    assert solution.solver == LSTD() and solution.relative_residual <= 1e-10
    assert "then LSTD, for after" in solution.message and "badly conditioned" in solution.message
    assert solution.row_visits > problem.n_rows and solution.epochs > 1


def test_a_preconditioner_from_some_of_the_rows(slow_direct, sampled):
    slow_direct(1e9)
    sampled(1.0, rows=20.0)
    solution = Auto().solve(trajectory(n=20_000), tolerance=1e-8).require()
    assert solution.solver == GMRES(preconditioner="subsample", rows_a_feature=20.0, memory=solution.solver.memory)
    assert solution.row_visits <= 25 * 20_000 and "with A of 1,200 rows to precondition it" in solution.message


def test_what_is_slow_without_a_preconditioner_gets_one(slow_direct, sampled):
    """From where it stands; the solver that is handed back goes the same way."""
    slow_direct(1e9)
    sampled(1e-9, alone=0.0)
    problem = trajectory(n=20_000, power=2.0, discount=0.999)
    solution = Auto().solve(problem, tolerance=1e-8).require()
    solver = solution.solver
    assert solver.preconditioner == "subsample" and 0 < solver.after < 10
    said = f"after {solver.after} products, which would have taken"
    assert said in solution.message and "alone, with A of 600 rows to precondition it" in solution.message
    again = solver.solve(problem, epochs=solution.epochs)
    np.testing.assert_allclose(again.theta, solution.theta, rtol=1e-6, atol=1e-9)


def test_what_is_fast_without_a_preconditioner_has_none(slow_direct, sampled):
    slow_direct(1e9)
    sampled(1e8, alone=0.0)
    solution = Auto().solve(trajectory(n=20_000), tolerance=1e-3).require()
    assert solution.solver == GMRES(memory=solution.solver.memory) and "precondition" not in solution.message


@pytest.fixture
def fast_machine(monkeypatch):
    """One that multiplies at the same speed whatever else it does."""
    monkeypatch.setattr(costs, "_speed", lambda dim, kind=np.float64: 2e11)


def test_the_rows_of_a_preconditioner_are_chosen_by_what_they_cost(fast_machine):
    """Few rows where products are cheap, more where they are dear, all where the goal is far and rows are few."""
    problem = power_law(n=60_000, dim=200)
    few, more = (costs.sampled(problem, 1e-6, seconds) for seconds in (1e-5, 10.0))
    assert 4 <= few.rows_a_feature < more.rows_a_feature and few.seconds < more.seconds
    loose, tight = (costs.sampled(problem, goal, 0.01) for goal in (0.3, 1e-9))
    assert loose.rows_a_feature < tight.rows_a_feature and loose.seconds < tight.seconds
    assert costs.sampled(power_law(n=1000, dim=200), 1e-9, 1.0).rows_a_feature == 5.0


def test_heavy_ratios_ask_for_more_rows(fast_machine):
    plain = power_law(n=60_000, dim=200)
    ratios = np.random.default_rng(1).choice([0.1, 4.0], 60_000, p=[0.8, 0.2])
    heavy = power_law(n=60_000, dim=200, ratios=ratios)
    assert costs.sampled(heavy, 1e-3, 0.01).rows_a_feature > costs.sampled(plain, 1e-3, 0.01).rows_a_feature


def test_without_room_an_inconsistent_system_is_called_singular(slow_direct):
    slow_direct(1e9, fits=False)
    seeds = [seed for seed in range(200) if honest.draw(seed, 40).kind == "inconsistent"][:4]
    for seed in seeds:
        given = honest.draw(seed, 40)
        truth = honest.judge(given, np.zeros(given.phi.shape[1]))
        if truth.least < 1e-6:
            continue
        solution = Auto().solve(given.problem(), tolerance=1e-8)
        assert solution.status in (Status.SINGULAR, Status.STALLED)
        assert "Chosen: GMRES" in solution.message and "no solution" in solution.message + solution.message
        assert solution.status is Status.SINGULAR


def test_an_inconsistent_system_is_called_singular():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(400, 6))
    phi[:, -1] = 1.0
    solution = Auto().solve(Problem.from_arrays(phi, rng.normal(size=400) + 1, 1.0 * phi, discount=1.0))
    assert solution.status is Status.SINGULAR and "no solution" in solution.message


@pytest.mark.parametrize("passes", [0.2, 0.7])
def test_less_than_a_pass_solves_a_part(passes):
    problem = trajectory(dim=12)
    solution = Auto().solve(problem, passes=passes)
    assert solution.row_visits == round(passes * problem.n_rows) and solution.status is Status.BUDGET_SPENT
    assert "rows drawn at random" in solution.message and "Chosen: LSTD, for so few rows" in solution.message
    assert solution.relative_residual == pytest.approx(problem.relative_residual(solution.theta))
    assert solution.relative_residual < 0.5
    assert_seeded = [Auto().solve(problem, passes=passes, seed=seed).theta for seed in (0, 0, 1)]
    np.testing.assert_array_equal(assert_seeded[0], assert_seeded[1])
    assert (assert_seeded[0] != assert_seeded[2]).any()


def test_a_small_budget_without_room_takes_averaged_steps(slow_direct):
    slow_direct(1e9, fits=False)
    problem = trajectory(dim=12)
    for passes in (0.5, 3.0):
        solution = Auto().solve(problem, passes=passes)
        assert type(solution.solver).__name__ == "TD" and solution.solver.average
        assert f"a budget of {passes:g} passes is too little for products" in solution.message
        assert solution.row_visits == passes * problem.n_rows and solution.relative_residual < 0.5


def test_where_steps_diverge_the_saddle_takes_over(slow_direct):
    slow_direct(1e9, fits=False)
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(3000, 8))
    problem = Problem.from_arrays(phi, rng.normal(size=3000) + phi[:, 0], 3.0 * phi, discount=0.9)
    solution = Auto().solve(problem, passes=6)
    assert type(solution.solver).__name__ == "GTD2" and "then GTD2, for TD diverged" in solution.message
    assert problem.relative_residual(solution.theta) < 0.2 and solution.row_visits == 6 * 3000


@pytest.mark.parametrize("ridge", [0.0, 1e-5])
def test_baird_star(ridge):
    star = BairdStar()
    problem = Problem.from_transitions(star.collect(2000, seed=0), star.features, discount=0.99, ridge=ridge)
    solution = Auto().solve(problem, theta=[1.0, 1, 1, 1, 1, 1, 10, 1])
    assert solution.status is Status.CONVERGED and not solution.theta.any() and "reward is 0" in solution.message


def test_a_callback_stops_it(slow_direct):
    slow_direct(1e9)
    seen = []
    solution = Auto().solve(trajectory(), callback=lambda progress: seen.append(progress) or len(seen) == 3)
    assert len(seen) == 3 and solution.epochs == 3 and "Stopped by the callback" in solution.message


def test_a_budget_is_kept(slow_direct, sampled):
    slow_direct(1e9)
    sampled(1e8, alone=0.0)
    problem = trajectory(power=2.0, discount=0.999)
    solution = Auto().solve(problem, passes=9, tolerance=1e-12, record="epoch")
    assert solution.status is Status.BUDGET_SPENT and solution.row_visits <= 9 * problem.n_rows
    assert len(solution.trace) == solution.epochs + 1 and (np.diff(solution.trace.row_visits) > 0).all()
    assert not dataclasses.replace(solution).trace.mspbe[-1] > solution.trace.mspbe[0]


def test_settings_are_checked():
    assert Auto().standard_errors == 0.1
    for wrong in (0.0, -1.0, np.nan):
        with pytest.raises(InputError, match="standard_errors"):
            Auto(standard_errors=wrong)


# ---- it never lies


@pytest.mark.parametrize("tolerance", [None, 1e-6])
@pytest.mark.parametrize("way", ["free", "race", "preconditioned", "no room"])
def test_what_it_says_is_so(monkeypatch, sampled, way, tolerance):
    """Problems of all kinds against dense matrices; and again where direct solves lose, or do not fit."""
    if way != "free":
        monkeypatch.setattr(method, "SMALL", 0.0)
        monkeypatch.setattr(method, "AT_ONCE", 0.0)
    if way == "race":
        monkeypatch.setattr(costs, "PLAIN", 0)
    if way in ("no room", "preconditioned"):
        real, changed = costs.direct, {"fits": False} if way == "no room" else {"seconds": 1e3}
        monkeypatch.setattr(
            costs, "direct", lambda problem, a_pass: dataclasses.replace(real(problem, a_pass), **changed)
        )
    if way == "preconditioned":
        sampled(1.0, rows=6.0)
    for seed in range(0, 78):
        given = honest.draw(seed, 120)
        solution = Auto().solve(given.problem(), seed=seed, tolerance=tolerance)
        truth = honest.judge(given, solution.theta)
        assert not honest.complaint(solution, truth, tolerance), (seed, given.kind, solution.message, truth)
        if way != "no room":
            assert solution.status in (Status.CONVERGED, Status.SINGULAR), (seed, given.kind, solution.message)


# ---- what a budget, a tolerance and odd rewards ask for


def power_law(n=20_000, dim=300, **options):
    rng = np.random.default_rng(0)
    turn, sizes = np.linalg.qr(rng.normal(size=(dim, dim)))[0], np.logspace(0, -2, dim)
    phi = (rng.normal(size=(n, dim)) * sizes) @ turn
    following = 0.9 * phi + 0.4 * (rng.normal(size=(n, dim)) * sizes) @ turn
    rewards = phi @ rng.normal(size=dim) + rng.normal(size=n)
    return Problem.from_arrays(phi, rewards, following, discount=0.95, **options)


def test_the_last_pass_of_a_budget_is_kept_for_a_direct_solve(slow_direct, sampled):
    """More passes give no worse answer."""
    slow_direct(50.0)
    sampled(100.0, alone=0.0)
    for passes in (8, 10, 14):
        solution = Auto().solve(power_law(), passes=passes, tolerance=1e-9)
        assert solution.status is Status.CONVERGED and solution.passes <= passes
        assert isinstance(solution.solver, LSTD)


def test_a_direct_solution_is_held_to_the_tolerance(monkeypatch):
    """In its own norm, where the cheap one leaves a doubt."""
    monkeypatch.setattr(method, "CHEAP", 0.0)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3000, 4)) @ np.diag([1.0, 1.0, 1.0, 1e-6]) @ rng.normal(size=(4, 4))
    problem = Problem.from_arrays(x, rng.normal(size=3000), 0.5 * x + 0.5 * y, discount=0.9)
    solution = Auto().solve(problem, tolerance=1e-15)
    assert solution.status is not Status.CONVERGED and "above the tolerance 1e-15" in solution.message
    solution = Auto().solve(problem, tolerance=1e-5)
    assert solution.status is Status.CONVERGED and problem.relative_residual(solution.theta) <= 1e-5


def test_few_rewards_are_seen():
    """The floor is estimated from rows among which those that matter are not missed."""
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(30_000, 50))
    following = 0.6 * phi + 0.8 * rng.normal(size=(30_000, 50))
    for seed in range(5):
        rewards = np.zeros(30_000)
        rewards[np.random.default_rng(seed).choice(30_000, 10, replace=False)] = 1.0
        problem = Problem.from_arrays(phi, rewards, following, discount=0.95)
        gauge = Gauge(problem, None, 0.1, np.random.default_rng(seed))
        theta = LSTD().solve(problem).theta
        gauge.fine(problem.residual(theta), theta)
        exact = floor(problem, theta)
        assert gauge.floor == pytest.approx(exact.value, rel=0.5)


def test_a_part_of_the_rows_says_nothing_of_the_whole():
    rng = np.random.default_rng(0)
    phi = np.zeros((5000, 20))
    phi[:, :19], phi[7, 19], phi[:, 18] = rng.normal(size=(5000, 19)), 1.0, 1.0
    ends = np.arange(5000) == 11
    problem = Problem.from_arrays(phi, rng.normal(size=5000), np.roll(phi, -1, 0), discount=1.0, terminated=ends)
    for seed in range(4):
        assert Auto().solve(problem, passes=0.3, seed=seed).status is Status.BUDGET_SPENT


# ---- rows that few random ones do not stand for


@pytest.mark.parametrize("kind", ["weights", "long rows", "long rows of correlated columns"])
@pytest.mark.parametrize("tolerance", [1e-2, None])
def test_rows_that_make_much_of_c_are_in_the_norm(slow_direct, sampled, kind, tolerance):
    """A few rows among many; the answer is held to what all rows say, in a problem that knows nothing yet."""
    slow_direct(1e9)
    sampled(1.0, rows=6.0)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        n, dim = 12_000, 300
        x, weights, heavy = rng.normal(size=(n + 1, dim)), np.ones(n), rng.choice(n, 6, replace=False)
        if kind == "weights":
            weights[heavy] = n / 3
        elif kind == "long rows":
            x[heavy] *= 300.0
        else:
            x = x * np.logspace(0, -2, dim) @ np.linalg.qr(rng.normal(size=(dim, dim)))[0]
            x[heavy] += 30 * rng.normal(size=(6, dim))
        rewards = rng.normal(size=n)
        rewards[heavy] += 100.0
        made = [Problem.from_arrays(x[:-1], rewards, x[1:], discount=0.9, weights=weights) for _ in range(2)]
        solution = Auto().solve(made[0], tolerance=tolerance, seed=seed).require()
        if tolerance is not None:
            assert made[1].relative_residual(solution.theta, exact=True) <= tolerance
        else:
            assert made[1].mspbe(solution.theta) <= 0.012 * floor(made[1], solution.theta).value


def test_a_log_of_few_heavy_rows_is_measured_by_all(monkeypatch):
    monkeypatch.setattr("valuate.solvers.auto.gauge.CHEAP", 0.0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(9001, 20)) * np.exp(3 * rng.normal(size=(9001, 1)))
    problem = Problem.from_arrays(x[:-1], rng.normal(size=9000), x[1:], discount=0.5)
    gauge = Gauge(problem, 1e-6, 0.1, rng)
    residual = problem.residual(rng.normal(size=20))
    assert gauge.relative(residual) == pytest.approx(problem.relative_size(residual, exact=True), rel=0.1)


def test_a_tolerance_at_the_edge_of_float64_is_in_its_own_norm(slow_direct, sampled):
    slow_direct(1e9)
    sampled(1.0, rows=6.0)
    rng = np.random.default_rng(0)
    turn = np.linalg.qr(rng.normal(size=(120, 120)))[0]
    x = (rng.normal(size=(6001, 120)) * np.logspace(0, -4, 120)) @ turn
    for tolerance in (1e-11, 1e-12):
        problem = Problem.from_arrays(x[:-1], x[:-1] @ turn[0], x[1:], discount=0.9)
        solution = Auto().solve(problem, tolerance=tolerance)
        met = problem.relative_residual(solution.theta) <= tolerance
        assert met == (solution.status is Status.CONVERGED)
        assert solution.relative_residual == pytest.approx(
            problem.relative_residual(solution.theta), rel=1.0, abs=1e-13
        )


@pytest.mark.parametrize(("big", "tolerance"), [(1e10, 1e-10), (1e12, 1e-7)])
def test_a_next_row_of_another_size_does_not_hide_rounding(slow_direct, sampled, big, tolerance):
    slow_direct(1e3)
    sampled(1.0, rows=6.0)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3001, 100))
    following = 0.5 * x[1:]
    following[7] *= big
    problem = Problem.from_arrays(x[:-1], rng.normal(size=3000), following, discount=0.9)
    solution = Auto().solve(problem, tolerance=tolerance)
    if solution.status is Status.CONVERGED:
        assert problem.relative_residual(solution.theta) <= 2 * tolerance


def test_a_floor_that_is_not_seen_is_no_crash(slow_direct, sampled):
    """Nearly all rewards fall where there are no features, and the rows that are looked at show no noise."""
    slow_direct(1e9)
    sampled(1.0, rows=6.0)
    rng = np.random.default_rng(0)
    x, rewards = rng.normal(size=(20_001, 60)), np.zeros(20_000)
    x[:2000], rewards[:2000] = 0.0, 100.0
    rewards[15_000] = 1e-3
    solution = Auto().solve(Problem.from_arrays(x[:-1], rewards, x[1:], discount=0.9))
    assert solution.status is Status.CONVERGED and solution.relative_residual < 0.1
