"""GMRES, BiCGSTAB, LSMR and GCR: the right answer in any units, and the true reason where there is none."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from battery import LAYOUTS, Spy, case
from valuate import GCR, GMRES, GTD2, LSMR, LSTD, SAGA, SVRG, BiCGSTAB, Problem, Status
from valuate.environments import BairdStar
from valuate.errors import InputError, InputTypeError, SolverError
from valuate.solvers.preconditioning import from_subsample
from valuate.solvers.scaled import Scaled

KRYLOV = {"gmres": GMRES(), "bicgstab": BiCGSTAB(), "lsmr": LSMR()}
SOLVERS = {**KRYLOV, "gcr": GCR(), "restarted": GMRES(restart=3), "saddle": GCR(inner=SVRG())}

each = pytest.mark.parametrize("name", SOLVERS)
each_krylov = pytest.mark.parametrize("name", KRYLOV)


def regular(n=400, dim=12, seed=0, scale=None, **how):
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n, dim)) / np.sqrt(dim) + 0.3
    next_phi = 0.6 * phi + 0.5 * rng.normal(size=(n, dim)) / np.sqrt(dim)
    rewards = rng.normal(size=n) + 1
    scale = np.ones(dim) if scale is None else scale
    return Problem.from_arrays(phi * scale, rewards, next_phi * scale, discount=0.9, **how)


def off_policy(n=4000, dim=200, seed=0):
    """Next features longer than the features themselves: all eigenvalues of A have a negative real part."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n, dim)) / np.sqrt(dim)
    next_phi = 1.2 * phi + 0.5 * rng.normal(size=(n, dim)) / np.sqrt(dim)
    ratios = rng.choice([0.1, 1.0, 3.0], n)
    return Problem.from_arrays(phi, rng.normal(size=n), next_phi, discount=0.99, ratios=ratios, ridge=1e-5)


def singular(consistent, n=300, dim=8, seed=3):
    """Twice the same two features. Equations that contradict each other need a next feature that undoes the own."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n, dim))
    if consistent:
        phi[:, -2:] = phi[:, :2]
        next_phi = phi[rng.permutation(n)]
    else:
        next_phi = phi[rng.permutation(n)]
        phi[:, -1] = rng.integers(0, 2, n)
        next_phi[:, -1] = phi[:, -1]
        next_phi[:, :-1] = phi[:, :-1] * 0.5
    return Problem.from_arrays(phi, rng.normal(size=n) + phi[:, -1], next_phi, discount=0.9 if consistent else 1.0)


# ---- the answer


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("how", [{}, {"ratios": True}, {"ratios": True, "weights": True}])
@each
def test_the_answer_is_that_of_lstd(name, how, layout):
    given = case(layout, n=200, dim=9, ridge=0.01, n_states=30, **how)
    solution = SOLVERS[name].solve(given.problem, passes=3000, tolerance=1e-11).require()
    direct = LSTD().solve(given.problem).theta
    np.testing.assert_allclose(solution.theta, direct, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(solution.theta, given.oracle.solve(), rtol=1e-8, atol=1e-8)
    assert given.oracle.relative_residual(solution.theta) <= 1e-10
    assert not solution.omega.any()


@pytest.mark.parametrize("name", KRYLOV)
def test_float32_rows_lose_nothing(name):
    given = case("dense", n=200, dim=9, ridge=0.01, dtype=np.float32)
    solution = KRYLOV[name].solve(given.problem).require()
    np.testing.assert_allclose(solution.theta, given.oracle.solve(), rtol=1e-8, atol=1e-8)


@each
def test_without_a_tolerance_a_run_goes_on_to_rounding(name):
    solution = SOLVERS[name].solve(regular(), passes=4000)
    assert solution.status is Status.CONVERGED and solution.relative_residual <= 1e-12
    assert solution.message.startswith("Converged: relative residual")
    assert "diag(C)^-1" in solution.message and solution.passes < 4000


@each_krylov
def test_units_change_nothing_but_weights(name):
    scale = np.ones(12)
    scale[::3], scale[1::3] = 1e6, 1e-6
    plain = KRYLOV[name].solve(regular(), tolerance=1e-10)
    other = KRYLOV[name].solve(regular(scale=scale), tolerance=1e-10)
    assert other.status is Status.CONVERGED and other.row_visits == plain.row_visits
    np.testing.assert_allclose(other.theta * scale, plain.theta, rtol=1e-7)


def test_gcr_meets_other_units_with_more_passes():
    scale = np.ones(12)
    scale[::3] = 1e6
    plain = GCR().solve(regular(), tolerance=1e-9).require()
    other = GCR().solve(regular(scale=scale), tolerance=1e-9, passes=1000).require()
    np.testing.assert_allclose(other.theta * scale, plain.theta, rtol=1e-6)


@each
def test_baird_star(name):
    """The log leaves two weights free: the values are what is determined, 0 from any start."""
    star = BairdStar()
    log = star.collect(2000, seed=0)
    problem = Problem.from_transitions(log, star.features, discount=0.99)
    start = np.array([1.0, 1, 1, 1, 1, 1, 10, 1])
    solution = SOLVERS[name].solve(problem, theta=start)
    assert solution.status is Status.CONVERGED and not solution.theta.any()
    log.rewards[:] = 1.0
    rewarded = Problem.from_transitions(log, star.features, discount=0.99, ridge=1e-3)
    solution = SOLVERS[name].solve(rewarded, theta=start, passes=4000, tolerance=1e-9).require()
    np.testing.assert_allclose(solution.theta, LSTD().solve(rewarded).theta, rtol=1e-5)


@pytest.mark.parametrize("name", ["gmres", "bicgstab", "lsmr", "gcr"])
def test_off_policy_where_td_diverges(name):
    """GCR with 30 directions of 200."""
    problem = off_policy()
    assert np.linalg.eigvals(problem.moments().A).real.max() < 0
    td = SVRG(direction="td").solve(problem, passes=50)
    assert td.relative_residual > 1
    solution = SOLVERS[name].solve(problem, passes=500, tolerance=1e-8).require()
    np.testing.assert_allclose(solution.theta, LSTD().solve(problem).theta, atol=1e-5)


def test_gcr_on_policy_with_few_directions_of_many():
    problem = regular(n=3000, dim=240)
    solution = GCR(directions=30).solve(problem, passes=100, tolerance=1e-8).require()
    np.testing.assert_allclose(solution.theta, LSTD().solve(problem).theta, atol=1e-5)


def test_gcr_never_lets_the_residual_grow():
    problem = off_policy(n=800, dim=40)
    system, sizes = Scaled(problem), []

    def look(progress):
        sizes.append(system.norm(problem.residual(progress.theta)))

    wild = GCR(inner=SVRG(step_theta=100.0, direction="td"), directions=5)
    solution = wild.solve(problem, passes=60, callback=look)
    assert "steps were divided by 4" in solution.message and solution.solver.inner.step_theta < 100
    assert len(sizes) > 20 and np.isfinite(sizes).all()
    assert (np.diff(sizes) <= 1e-12 * sizes[0]).all() and sizes[-1] < 0.9 * sizes[0]


# ---- no answer


@each
def test_singular_with_a_solution(name):
    problem = singular(consistent=True)
    solution = SOLVERS[name].solve(problem, passes=3000, tolerance=1e-9)
    assert solution.status is Status.CONVERGED
    assert problem.relative_residual(solution.theta) <= 1e-9
    if name == "lsmr":  # the smallest of all solutions, in scaled units
        scaled = np.sqrt(problem.diagonal) * solution.theta
        np.testing.assert_allclose(scaled[-2:], scaled[:2], rtol=1e-6)


@each
def test_singular_without_a_solution(name):
    problem = singular(consistent=False)
    assert LSTD().solve(problem).status is Status.SINGULAR
    solution = SOLVERS[name].solve(problem, passes=2000, tolerance=1e-6)
    assert solution.status in (Status.SINGULAR, Status.STALLED)
    assert np.isfinite(solution.theta).all() and solution.relative_residual < 1
    with pytest.raises(SolverError):
        solution.require()
    if name != "lsmr":
        return
    assert solution.status is Status.SINGULAR
    assert (
        solution.message.startswith("Not determined: A theta = b has no solution, or only one")
        and "LSTD" in solution.message
    )
    scale = 1 / np.sqrt(problem.diagonal)
    a, b, _ = problem.moments()
    least = scale * np.linalg.lstsq(scale[:, None] * a * scale, scale * b, rcond=1e-10)[0]
    np.testing.assert_allclose(solution.theta, least, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("name", ["gmres", "bicgstab"])
def test_a_breakdown_is_said(name):
    """A turns the plane by a right angle: the first product is across the residual."""
    phi, next_phi = np.eye(2), np.array([[1.0, -1.0], [1.0, 1.0]])
    problem = Problem.from_arrays(phi, [1.0, 0.0], next_phi, discount=1.0)
    np.testing.assert_allclose(problem.moments().A, [[0.0, 0.5], [-0.5, 0.0]])
    solution = KRYLOV[name].solve(problem, tolerance=1e-9)
    if name == "gmres":
        np.testing.assert_allclose(solution.require().theta, [0.0, 1.0], atol=1e-12)
        return
    assert solution.status is Status.STALLED and solution.passes < 5
    assert "BiCGSTAB no longer falls" in solution.message and "Use GMRES" in solution.message


@each
def test_b_is_zero(name):
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(20, 3))
    problem = Problem.from_arrays(phi, np.zeros(20), phi[::-1])
    solution = SOLVERS[name].solve(problem, theta=np.ones(3))
    assert solution.status is Status.CONVERGED and not solution.theta.any() and solution.row_visits == 0


@each
def test_one_row_of_three_features(name):
    """One equation for three weights: any answer that meets it will do."""
    problem = Problem.from_arrays([[1.0, 2.0, 0.0]], [3.0], [[0.5, 0.0, 1.0]], discount=0.5)
    solution = SOLVERS[name].solve(problem, passes=500, tolerance=1e-9).require()
    assert problem.relative_residual(solution.theta) <= 1e-9


@each
def test_one_feature(name):
    problem = regular(n=50, dim=1)
    solution = SOLVERS[name].solve(problem, passes=500).require()
    np.testing.assert_allclose(solution.theta, LSTD().solve(problem).theta, rtol=1e-9)


@each
def test_a_feature_that_only_next_states_have(name):
    rng = np.random.default_rng(0)
    phi, next_phi = rng.normal(size=(2, 60, 4))
    phi[:, 2] = 0
    problem = Problem.from_arrays(phi, rng.normal(size=60), next_phi, discount=0.5)
    solution = SOLVERS[name].solve(problem, passes=1000, tolerance=1e-9).require()
    assert problem.relative_residual(solution.theta) <= 1e-9


# ---- budgets and starts


@pytest.mark.parametrize("passes", [0, 0.5, 1, 1.99, 2, 3, 4.7, 7])
@each
def test_the_budget_is_never_passed_and_every_visit_counted(name, passes):
    for start in (None, np.full(12, 0.1)):
        problem = regular()
        spy = Spy(problem)
        solution = SOLVERS[name].solve(problem, passes=passes, theta=start)
        assert solution.row_visits == spy.row_visits <= round(passes * problem.n_rows)
        assert solution.status is Status.BUDGET_SPENT
        if passes == 0:
            np.testing.assert_array_equal(solution.theta, 0 if start is None else start)


@pytest.mark.parametrize(("name", "cost"), [("gmres", 4), ("bicgstab", 8), ("lsmr", 9), ("gcr", 8)])
def test_epochs_are_iterations(name, cost):
    solution = SOLVERS[name].solve(regular(), epochs=4)
    assert (solution.epochs, solution.passes, solution.status) == (4, cost, Status.BUDGET_SPENT)


@each
def test_a_good_start_is_kept_and_a_warm_one_helps(name):
    problem = regular()
    exact = LSTD().solve(problem).theta
    same = SOLVERS[name].solve(problem, theta=exact, omega=np.ones(12), tolerance=1e-9)
    assert same.status is Status.CONVERGED and same.row_visits == problem.n_rows
    np.testing.assert_array_equal(same.theta, exact)
    np.testing.assert_array_equal(same.omega, 1)
    near = SOLVERS[name].solve(problem, theta=exact * (1 + 1e-6), tolerance=1e-8, passes=2000).require()
    far = SOLVERS[name].solve(problem, tolerance=1e-8, passes=2000).require()
    assert near.row_visits < far.row_visits


@each
def test_a_start_beyond_the_range_of_numbers(name):
    problem = regular()
    solution = SOLVERS[name].solve(problem, theta=np.full(12, 1e308), passes=3000)
    assert solution.status is Status.CONVERGED and "began at zero" in solution.message


@each
def test_rounding_ends_a_run_that_asks_too_much(name):
    solution = SOLVERS[name].solve(regular(), tolerance=1e-300, passes=10000)
    assert solution.status is Status.STALLED and solution.passes < 2000 and solution.relative_residual < 1e-13
    assert "no longer falls" in solution.message and "1e-300" in solution.message


def test_each_restart_costs_a_pass():
    problem = regular(dim=12)
    full, parts = GMRES().solve(problem, epochs=9), GMRES(restart=4).solve(problem, epochs=9)
    assert full.passes == 9 and parts.passes == 9 + 2
    assert full.relative_residual < parts.relative_residual


def test_memory_picks_a_restart():
    problem = regular(n=300, dim=60)
    small = GMRES(memory=0.005)
    assert small.fitting(60) == 8
    solution = small.solve(problem, passes=500, tolerance=1e-8).require()
    assert "anew every 8 iterations" in solution.message
    assert "anew" not in GMRES().solve(problem, tolerance=1e-8).message
    assert GMRES(restart=5, memory=1000.0).fitting(10**9) == 1


def test_gmres_with_rows_as_preconditioner():
    rng = np.random.default_rng(0)
    mix = rng.normal(size=(60, 60)) * np.logspace(0, -2, 60)
    phi = rng.normal(size=(40_000, 60)) @ mix
    next_phi = 0.9 * phi + 0.2 * rng.normal(size=phi.shape) @ mix
    problem = Problem.from_arrays(phi, phi.sum(axis=1) + rng.normal(size=40_000), next_phi, discount=0.99)
    plain = GMRES().solve(problem, tolerance=1e-9).require()
    helped = GMRES(preconditioner="subsample").solve(problem, tolerance=1e-9).require()
    assert helped.passes < 0.7 * plain.passes
    assert helped.setup_visits >= 600 + 40_000
    more = GMRES(preconditioner="subsample", rows_a_feature=100).solve(problem, tolerance=1e-9).require()
    assert more.passes < 0.6 * helped.passes
    np.testing.assert_allclose(helped.theta, plain.theta, rtol=1e-4, atol=1e-5)
    other = GMRES(preconditioner="subsample").solve(problem, tolerance=1e-9, seed=1)
    assert (other.theta != helped.theta).any()


def test_all_rows_as_preconditioner_are_a_direct_solve():
    few = GMRES(preconditioner="subsample").solve(regular(n=100), tolerance=1e-8).require()
    assert few.passes <= 3 and "preconditioner" not in few.message


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["dense", "sparse", "indexed"])
def test_the_preconditioner_is_the_inverse_of_the_rows_it_is_made_from(layout, dtype):
    """In units of any size, with weights, ratios and a ridge; as float32 where that is good enough."""
    rng = np.random.default_rng(3)
    units = np.array([1.0, 1e-20, 1e20, 1.0, 1.0]) if dtype == np.float64 else np.array([1.0, 1e-4, 1e4, 1.0, 1.0])
    table = (rng.normal(size=(30, 5)) * units).astype(dtype)
    table[:, 4] = 0.0
    states, following = rng.integers(0, 30, (2, 900))
    options = {"weights": rng.uniform(0.5, 2, 900), "ratios": rng.uniform(0.5, 2, 900), "discount": 0.9}
    made = {
        "indexed": lambda: Problem.from_table(table, states, rng.normal(size=900), following, **options),
        "dense": lambda: Problem.from_arrays(table[states], rng.normal(size=900), table[following], **options),
        "sparse": lambda: Problem.from_arrays(
            sp.csr_array(table[states]), rng.normal(size=900), sp.csr_array(table[following]), **options
        ),
    }
    problem = made[layout]()
    system = Scaled(problem)
    invert, visits, note = from_subsample(problem, system, rng, 1e9)
    assert visits == 900 and not note
    x = rng.normal(size=5) * (system.left > 0)
    np.testing.assert_allclose(system.times(invert(x)), x, atol=3e-5)


def test_a_preconditioner_that_float32_cannot_hold_is_float64():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(2000, 6))
    phi[:, 5] = phi[:, 4] + 1e-4 * phi[:, 5]
    problem = Problem.from_arrays(phi, rng.normal(size=2000), rng.normal(size=(2000, 6)), discount=0.0)
    system = Scaled(problem)
    invert, visits, note = from_subsample(problem, system, rng, 1e9)
    assert visits == 4000 and not note
    x = rng.normal(size=6)
    np.testing.assert_allclose(system.times(invert(x)), x, atol=1e-6)


def test_a_preconditioner_that_would_not_pay_is_left_out():
    rng = np.random.default_rng(0)
    phi = np.repeat(rng.normal(size=(300, 1)), 3, axis=1)
    singular = GMRES(preconditioner="subsample").solve(Problem.from_arrays(phi, phi[:, 0], 0 * phi), epochs=2)
    assert "No subsample preconditioner: A of 30 rows is singular or close to it." in singular.message
    wide = Problem.from_arrays(sp.eye_array(4100, format="csr"), np.ones(4100), sp.csr_array((4100, 4100)))
    assert "4,100 features are more" in GMRES(preconditioner="subsample").solve(wide, epochs=2).message


@each
def test_the_trace_only_falls(name):
    problem = regular(dim=8)
    solution = SOLVERS[name].solve(problem, passes=60, record="epoch")
    assert len(solution.trace) > 2 and solution.trace.mspbe[-1] < 1e-6 * solution.trace.mspbe[0]
    stopped = SOLVERS[name].solve(problem, callback=lambda progress: progress.epoch == 2)
    assert stopped.epochs == 2 and "callback" in stopped.message


# ---- settings


def test_settings_are_checked():
    for kind, name, bad in (
        (GMRES, "restart", 0),
        (GMRES, "memory", 0.0),
        (GMRES, "preconditioner", "ilu"),
        (GCR, "directions", 0),
    ):
        with pytest.raises(InputError, match=name):
            kind(**{name: bad})
    with pytest.raises(InputTypeError, match="inner must be a method"):
        GCR(inner=LSTD())
    for inner in (GTD2(), SAGA()):
        with pytest.raises(InputError, match="with an anchor"):
            GCR(inner=inner)
    with pytest.raises(InputError, match="numbers for steps"):
        GCR(inner=SVRG(step_theta="theory"))
    assert GCR() == GCR(inner=SVRG(direction="td"), directions=30) and hash(GCR()) == hash(GCR())
    assert dataclasses.replace(GMRES(), restart=5) == GMRES(restart=5) != GMRES()
