"""Every method on every layout moves as the explicit matrices do, step for step."""

import numpy as np
import pytest
import scipy.sparse as sp

from battery import LAYOUTS, Case, Spy, case
from oracle import Oracle
from valuate import GTD, GTD2, SAGA, SCSG, SVRG, TD, TDC, BatchingSVRG, Problem
from valuate.solvers import points
from valuate.solvers.directions import SADDLE

STEPS = {"step_theta": 0.06, "step_omega": 0.11}
METHODS = {
    "gtd2": GTD2(**STEPS),
    "svrg": SVRG(**STEPS, steps_per_row=1.1),
    "saga": SAGA(**STEPS),
    "batching": BatchingSVRG(**STEPS, initial_fraction=0.3, growth=1.7),
    "theory": BatchingSVRG(**STEPS, variance=2.0, alpha=0.7, rho=0.4, steps_per_row=0.8),
    "scsg": SCSG(**STEPS, batch_fraction=0.4),
    "td": TD(step_theta=0.06, sampling="log"),
    "tdc": TDC(**STEPS),
    "gtd": GTD(**STEPS),
    "td-svrg": SVRG(step_theta=0.06, direction="td", steps_per_row=1.1),
    "td-saga": SAGA(step_theta=0.06, direction="td"),
    "td-scsg": SCSG(step_theta=0.06, direction="td", batch_fraction=0.2, growth=1.5),
}
PLAIN = ("gtd2", "td", "tdc", "gtd")
EPOCHS = dict.fromkeys(PLAIN, 5) | {"batching": 4, "theory": 4, "scsg": 9, "td-scsg": 9, "saga": 4, "td-saga": 4}
SCALARS = {"plain": {}, "ratios": {"ratios": True}, "weights": {"weights": True}}
SCALARS["both"] = SCALARS["ratios"] | SCALARS["weights"]
TOLERANCE = {np.float64: 1e-10, np.float32: 1e-4}


def assert_follows(solver, given: Case, start=None, tolerance=1e-10, **budget):
    """The run ends where the oracle ends that replays its rows; returns both, for more questions."""
    spy = Spy(given.problem)
    theta, omega = (None, None) if start is None else start
    solution = solver.solve(given.problem, theta=theta, omega=omega, **budget)
    expected = spy.play(given.oracle, solution.solver, start)
    atol = tolerance * max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(solution.theta, expected[0], rtol=0, atol=atol)
    np.testing.assert_allclose(solution.omega, expected[1], rtol=0, atol=atol)
    assert solution.row_visits == spy.row_visits
    return solution, spy


@pytest.mark.parametrize("scalars", SCALARS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", METHODS)
def test_epochs(method, layout, ridge, dtype, scalars):
    for dim in (1, 5, 9):
        given = case(layout, dim=dim, ridge=ridge, dtype=dtype, **SCALARS[scalars])
        solution, _ = assert_follows(METHODS[method], given, tolerance=TOLERANCE[dtype], epochs=EPOCHS.get(method, 3))
        assert np.abs(solution.theta).max() > 1e-3
        assert method.startswith("td") and method != "tdc" or np.abs(solution.omega).max() > 1e-4


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", METHODS)
def test_warm_starts(method, layout, ridge):
    rng = np.random.default_rng(1)
    for given_theta, given_omega in [(1, 1), (1, 0), (0, 1)]:
        given = case(layout, ridge=ridge, ratios=True, weights=True)
        start = np.array([given_theta * rng.normal(size=5), given_omega * rng.normal(size=5)])
        assert_follows(METHODS[method], given, start, epochs=2)


@pytest.mark.parametrize("passes", [0.0, 0.3, 1.0, 1.37, 2.5, 4.71])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", METHODS)
def test_budgets_that_cut_an_epoch(method, layout, passes):
    given = case(layout, ridge=0.02, weights=True, seed=2)
    solution, _ = assert_follows(METHODS[method], given, start=np.full((2, 5), 0.3), passes=passes)
    assert solution.row_visits == round(passes * 37)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("method", METHODS)
def test_few_rows(method, n, layout):
    given = case(layout, n=n, dim=3, ridge=0.05, seed=3)
    assert_follows(METHODS[method], given, start=np.full((2, 3), 0.3), epochs=3)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_automatic_steps(layout):
    given = case(layout, ratios=True, weights=True, ridge=0.05)
    oracle = given.oracle
    solution, _ = assert_follows(SVRG(), given, epochs=3)
    most_phi = max(w * phi @ phi for w, phi in zip(oracle.w, oracle.phi, strict=True))
    rows = zip(oracle.w, oracle.rho, oracle.delta, strict=True)
    most_delta = max(w * rho**2 * delta @ delta for w, rho, delta in rows)
    assert solution.solver.step_theta == pytest.approx(0.3 / (most_delta + 0.05), rel=1e-12)
    assert solution.solver.step_omega == pytest.approx(0.5 / (most_phi + 0.05), rel=1e-12)


@pytest.mark.parametrize("recorded", [{"record": "epoch"}, {"record": 0.07}, {"tolerance": 1e-14}])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", METHODS)
def test_runs_that_are_looked_at(method, layout, recorded):
    given = case(layout, ridge=0.02, ratios=True, seed=5)
    assert_follows(METHODS[method], given, passes=3.7, **recorded)


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", METHODS)
def test_rows_may_come_in_gathered_blocks(method, layout, ridge):
    """A chunk is free to be a copy of its rows with an order of its own; the path stays the same bit for bit."""

    def run(gathered):
        problem = case(layout, ridge=ridge, ratios=True, weights=True).problem

        def gather(order):
            rows, local = np.unique(order, return_inverse=True)
            view = problem.rows.view
            view = view._replace(records=view.records[rows], weights=view.weights[rows])
            return view, local.astype(np.int32)

        if gathered:
            problem.rows.chunk = gather
        return METHODS[method].solve(problem, epochs=3)

    plain, gathered = run(False), run(True)
    np.testing.assert_array_equal(gathered.theta, plain.theta)
    np.testing.assert_array_equal(gathered.omega, plain.omega)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("method", METHODS)
def test_small_chunks(method, layout, monkeypatch):
    """Epochs that are cut into many chunks, and a state that is woken often, are the same run."""
    monkeypatch.setattr("valuate.solvers.driver.CHUNK", 5)
    monkeypatch.setattr(points, "LONGEST_SLEEP", 512)
    given = case(layout, ridge=0.02, ratios=True, weights=True)
    _, spy = assert_follows(METHODS[method], given, start=np.full((2, 5), 0.3), epochs=20 if method in PLAIN else 3)
    assert max(len(order) for kind, order in spy.events if kind == "steps") <= 5


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("steps_per_row", [150.0, 10_001.0])
def test_coordinates_that_sleep_through_an_epoch(steps_per_row, ridge):
    """Two coordinates that no row touches sleep from beginning to end; one is touched by the last row alone."""
    given = case("sparse", n=7, dim=6, seed=8)
    phi, delta = given.oracle.phi.copy(), given.oracle.delta
    phi[:, [1, 4]], delta[:, [1, 4]] = 0, 0
    phi[:-1, 2], delta[:-1, 2] = 0, 0
    given = sparse_case(phi, phi - delta, given.oracle.r, ridge)
    start = np.random.default_rng(0).normal(size=(2, 6))
    solver = SVRG(step_theta=3e-3, step_omega=2e-3, steps_per_row=steps_per_row)
    solution, _ = assert_follows(solver, given, start, epochs=1)
    moved = np.abs(solution.theta - start[0])[[1, 4]]
    assert (moved > 1e-2).all() if ridge else (moved == 0).all()


def sparse_case(phi, next_phi, rewards, ridge):
    """Rows of matrices as a sparse problem with discount 1."""
    problem = Problem.from_arrays(sp.csr_array(phi), rewards, sp.csr_array(next_phi), discount=1.0, ridge=ridge)
    return Case(problem, Oracle(phi, next_phi, rewards, np.ones(len(phi)), ridge=ridge))


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("sleep", [1, 255, 256, 257, 5_000, 65_535, 65_536, 65_537, 131_079])
def test_sleep_of_a_sparse_coordinate(sleep, ridge):
    """A coordinate that wakes after ``sleep`` steps is where the plain formula, step by step, puts it."""
    rng = np.random.default_rng(4)
    phi = np.array([[0.7, 0.0, 0.0], [0.0, 0.4, 0.9]])
    next_phi = np.array([[0.2, 0.0, 0.0], [0.0, 0.0, 0.5]])
    problem, _ = sparse_case(phi, next_phi, np.ones(2), ridge)
    s_theta, s_omega = 4e-3, 7e-3
    direction = SADDLE.for_kernels(s_theta, s_omega, ridge)
    point = points.point_for(problem.rows, direction, single=True)
    start, drift = rng.normal(size=(2, 3)), 1e-4 * rng.normal(size=(2, 3))
    point.place(*start)
    point.drift(*drift)
    order = np.zeros(sleep + 1, np.int32)
    order[-1] = 1
    reference = points.loop.Fixed(0.0)
    for part in np.array_split(order, 3):
        point.advance(problem.rows.view, reference, part, part)
    x, y = point.read()

    (x1, x2), (y1, y2) = start[:, 1:]
    (m1, m2), (k1, k2) = s_theta * drift[0, 1:], s_omega * drift[1, 1:]
    a, c = s_theta * ridge, s_omega * ridge
    for _ in range(sleep):
        x1, y1 = x1 - m1 + a * y1, y1 - k1 - c * (x1 + y1)
        x2, y2 = x2 - m2 + a * y2, y2 - k2 - c * (x2 + y2)
    u, v = 0.4 * y1 + 0.9 * y2, 0.4 * x1 + 0.4 * x2
    x1, y1 = x1 - m1 + a * y1 + s_theta * u * 0.4, y1 - k1 - c * (x1 + y1) - s_omega * (u + v) * 0.4
    x2, y2 = x2 - m2 + a * y2 + s_theta * u * 0.4, y2 - k2 - c * (x2 + y2) - s_omega * (u + v) * 0.9
    np.testing.assert_allclose(x[1:], [x1, x2], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(y[1:], [y1, y2], rtol=1e-10, atol=1e-12)


def test_a_coordinate_that_sleeps_longer_than_the_tables_reach():
    """The state is made current before a sleep outgrows the powers; nothing is lost on the way."""
    phi = np.array([[0.7, 0.0], [0.0, 0.4]])
    problem, _ = sparse_case(phi, 0 * phi, np.ones(2), 1e-4)
    s_theta, s_omega, ridge = 4e-3, 7e-3, 1e-4
    point = points.point_for(problem.rows, SADDLE.for_kernels(s_theta, s_omega, ridge), single=True)
    point.place(np.array([0.0, 1.5]), np.array([0.0, -0.5]))
    point.drift(np.array([0.0, 1e-6]), np.array([0.0, 2e-6]))
    order, total = np.zeros(1 << 20, np.int32), 6 << 20
    for _ in range(6):
        point.advance(problem.rows.view, points.loop.Fixed(0.0), order, order)
    x, y = point.read()
    step = np.array(
        [
            [1, s_theta * ridge, -s_theta * 1e-6],
            [-s_omega * ridge, 1 - s_omega * ridge, -s_omega * 2e-6],
            [0, 0, 1],
        ]
    )
    expected = np.linalg.matrix_power(step, total) @ [1.5, -0.5, 1]
    np.testing.assert_allclose([x[1], y[1]], expected[:2], rtol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_layouts_take_one_path(method):
    """The same rows and the same seed, stored in four ways: the same end, up to rounding."""
    rng = np.random.default_rng(6)
    table = np.where(rng.random((8, 5)) < 0.6, rng.normal(size=(8, 5)) / 2, 0.0)
    states, followers, rewards = rng.integers(0, 8, 61), rng.integers(0, 8, 61), rng.normal(size=61)
    scalars = {"ratios": rng.uniform(0, 2, 61), "weights": rng.uniform(0, 2, 61), "ridge": 0.01, "discount": 0.9}
    phi, next_phi = table[states], table[followers]
    problems = [
        Problem.from_arrays(phi, rewards, next_phi, **scalars),
        Problem.from_table(table, states, rewards, followers, **scalars),
        Problem.from_arrays(sp.csr_array(phi), rewards, sp.csr_array(next_phi), **scalars),
        Problem.from_table(sp.csr_array(table), states, rewards, followers, **scalars),
    ]
    first, *others = (METHODS[method].solve(problem, epochs=4, seed=9) for problem in problems)
    for other in others:
        np.testing.assert_allclose(other.theta, first.theta, rtol=0, atol=1e-11)
        np.testing.assert_allclose(other.omega, first.omega, rtol=0, atol=1e-11)
        assert other.row_visits == first.row_visits
