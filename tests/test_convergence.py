"""Where the methods go, how fast, and what it costs: LSTD's answer, linear rates, the paper's counts, known chains."""

import numpy as np
import pytest
import scipy.sparse as sp

from battery import Spy
from oracle import Oracle
from valuate import GTD2, LSTD, SAGA, SCSG, SVRG, BatchingSVRG, Problem, Status

# ---- a well-conditioned problem


def well_conditioned(layout="dense", dtype=np.float64, n=2000, dim=8):
    """Features near unit length in all directions, next features close to half of them, and noise in the rewards."""
    rng = np.random.default_rng(21)
    phi = (rng.normal(size=(n, dim)) / np.sqrt(dim)).astype(dtype)
    next_phi = (0.5 * phi + 0.5 * rng.normal(size=(n, dim)) / np.sqrt(dim)).astype(dtype)
    rewards = phi @ rng.normal(size=dim) + 0.5 * rng.normal(size=n)
    ended = rng.random(n) < 0.05
    wrap = sp.csr_array if layout == "sparse" else np.asarray
    problem = Problem.from_arrays(wrap(phi), rewards, wrap(next_phi), discount=0.6, terminated=ended)
    assert problem.rows.dtype == dtype
    return problem, Oracle(phi, next_phi, rewards, np.where(ended, 0.0, 0.6))


#: Steps of about 1/10 of a row's inverse squared length.
STEPS = {"step_theta": 0.08, "step_omega": 0.12}
LINEAR = {
    "svrg": SVRG(**STEPS),
    "saga": SAGA(**STEPS),
    "batching": BatchingSVRG(**STEPS, initial_fraction=0.5, growth=2.0),
    "auto": SVRG(),
}


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", LINEAR)
def test_variance_that_vanishes_reaches_lstd_linearly(name, dtype, layout):
    problem, oracle = well_conditioned(layout, dtype)
    exact = oracle.solve()
    solution = LINEAR[name].solve(problem, passes=1200 if name == "auto" else 120, record=1.0)
    np.testing.assert_allclose(solution.theta, exact, rtol=0, atol=1e-10)
    np.testing.assert_allclose(solution.omega, 0, rtol=0, atol=1e-10)
    passes, mspbe = solution.trace.passes, solution.trace.mspbe
    falling = mspbe > 1e-19 * mspbe[0]
    last = int(np.argmin(falling)) if not falling.all() else len(falling)
    assert last > 15
    x, y = passes[:last], np.log(mspbe[:last])
    slope, intercept = np.polyfit(x, y, 1)
    fit = 1 - ((y - slope * x - intercept) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert slope < -0.02 and fit > 0.97


@pytest.mark.parametrize("name", LINEAR)
def test_a_tolerance_of_ten_digits_is_met(name):
    problem, oracle = well_conditioned()
    solution = LINEAR[name].solve(problem, passes=1200, tolerance=1e-10).require()
    assert oracle.relative_residual(solution.theta) <= 1.001e-10
    np.testing.assert_allclose(solution.theta, LSTD().solve(problem).theta, rtol=0, atol=1e-9)


def test_a_batch_that_still_grows_is_no_stall():
    """Its noise lasts for many passes, and is gone once the batch is full."""
    problem, oracle = well_conditioned()
    solution = BatchingSVRG(**STEPS, initial_fraction=0.02, growth=1.03).solve(problem, passes=1200, tolerance=1e-10)
    assert solution.status is Status.CONVERGED and solution.passes > 100
    assert oracle.relative_residual(solution.theta) <= 1.001e-10


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_lstd_solves_the_rows_as_they_are_stored(dtype, layout):
    problem, oracle = well_conditioned(layout, dtype)
    solution = LSTD().solve(problem).require()
    np.testing.assert_allclose(solution.theta, oracle.solve(), rtol=0, atol=1e-13)
    np.testing.assert_allclose(solution.theta, oracle.smallest_minimiser(), rtol=0, atol=1e-12)


def test_noise_that_stays_keeps_gtd2_away():
    """The same steps and passes that bring SVRG to 1e-10 leave GTD2 at its noise."""
    problem, oracle = well_conditioned()
    distance = np.abs(GTD2(**STEPS).solve(problem, passes=120).theta - oracle.solve()).max()
    smaller = np.abs(GTD2(step_theta=0.008, step_omega=0.012).solve(problem, passes=400).theta - oracle.solve()).max()
    assert 1e-4 < smaller < distance < 1


def test_a_batch_that_stays_small_keeps_its_noise():
    problem, oracle = well_conditioned()
    small = BatchingSVRG(**STEPS, initial_fraction=0.05, growth=1.0).solve(problem, passes=120)
    assert np.abs(small.theta - oracle.solve()).max() > 1e-4


# ---- what runs cost


def counted(n=5000):
    rng = np.random.default_rng(0)
    phi, next_phi = rng.normal(size=(2, n, 2)) / 10
    return Problem.from_arrays(phi, rng.normal(size=n), next_phi)


SMALL = {"step_theta": 1e-3, "step_omega": 1e-3}


def test_fifty_epochs_of_the_papers_schedule():
    problem = counted()
    spy = Spy(problem)
    batching = BatchingSVRG(**SMALL, initial_fraction=0.1, growth=1.05).solve(problem, epochs=50)
    assert batching.row_visits == spy.row_visits == 352_709
    assert batching.passes == pytest.approx(70.54, abs=0.005)
    assert SVRG(**SMALL).solve(counted(), epochs=50).row_visits == 500_000
    assert spy.means[:4] == [500, 525, 551, 578] and max(spy.means) <= 5000
    assert spy.steps == [5000] * 50


def test_twenty_epochs_of_the_papers_second_schedule():
    problem = counted()
    spy = Spy(problem)
    batching = BatchingSVRG(**SMALL, initial_fraction=0.2, growth=1.1).solve(problem, epochs=20)
    assert round(batching.passes, 2) == 31.10
    assert spy.means[:3] == [1000, 1100, 1210] and spy.means[-1] == 5000
    assert SVRG(**SMALL).solve(counted(), epochs=20).passes == 40


def test_default_schedule_is_the_papers():
    assert BatchingSVRG() == BatchingSVRG(initial_fraction=0.1, growth=1.05, steps_per_row=1.0)


@pytest.mark.parametrize(("variance", "alpha", "rho"), [(1.0, 1.0, 0.6), (50.0, 0.3, 0.9), (0.02, 5.0, 0.3)])
def test_the_theorys_schedule(variance, alpha, rho):
    """B_m = n Xi^2 / (Xi^2 + n alpha rho^m): the fewest rows that are at least as many, so all of them in the end."""
    n = 500
    problem = counted(n)
    spy = Spy(problem)
    BatchingSVRG(**SMALL, variance=variance, alpha=alpha, rho=rho).solve(problem, epochs=40)
    for epoch, size in enumerate(spy.means):
        wanted = n * variance / (variance + n * alpha * rho**epoch)
        assert wanted - 1e-9 * n <= size < wanted + 1 and 1 <= size <= n
    assert spy.means == sorted(spy.means)
    assert BatchingSVRG(variance=variance, alpha=alpha, rho=rho).batch(n, 1000) == n


@pytest.mark.parametrize("fraction", [0.02, 0.1, 1.0])
def test_inner_loops_of_scsg_are_as_long_as_a_batch_on_average(fraction):
    """Geometric from 0 with mean B: the mean within 4 standard errors, the spread of a geometric, and zeros too."""
    n, epochs = 100, 3000
    size = int(fraction * n)
    problem = counted(n)
    spy = Spy(problem)
    solution = SCSG(**SMALL, batch_fraction=fraction).solve(problem, epochs=epochs, seed=5)
    steps = np.array(spy.steps)
    assert spy.means == [size] * epochs and len(steps) == epochs
    spread = np.sqrt(size * (size + 1))
    assert abs(steps.mean() - size) < 4 * spread / np.sqrt(epochs)
    assert steps.std() == pytest.approx(spread, rel=0.12)
    share = 1 / (size + 1)
    assert abs((steps == 0).mean() - share) < 4 * np.sqrt(share * (1 - share) / epochs)
    assert solution.row_visits == steps.sum() + epochs * size


def test_the_memory_of_saga_is_two_numbers_a_row():
    """No array of n times dim appears while it runs."""
    import tracemalloc

    n, dim = 20_000, 64
    rng = np.random.default_rng(0)
    table = rng.normal(size=(50, dim)) / dim
    problem = Problem.from_table(table, rng.integers(0, 50, n), rng.normal(size=n), rng.integers(0, 50, n))
    SAGA(**SMALL).solve(problem, passes=1.5)
    tracemalloc.start()
    SAGA(**SMALL).solve(problem, passes=1.5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert 16 * n <= peak < 16 * n + 1_500_000 < 8 * n * dim


# ---- chains whose answers are known, from exact expectations: one row a transition, weighted by its probability


def both(phi, rewards, next_phi, ended, discount=1.0, layout="dense", **columns):
    """The problem and its oracle."""
    phi, next_phi, ended = np.array(phi, float), np.array(next_phi, float), np.array(ended, bool)
    wrap = sp.csr_array if layout == "sparse" else np.asarray
    problem = Problem.from_arrays(wrap(phi), rewards, wrap(next_phi), discount=discount, terminated=ended, **columns)
    oracle = Oracle(phi, next_phi, rewards, np.where(ended, 0.0, discount), **columns)
    return problem, oracle


def boyan(layout):
    """Boyan's chain: from 12 down to 0 by one or two, -3 a step, -2 for the last one; values are -2 times the state."""
    corners = np.eye(4)
    features = {12 - k: (1 - k % 4 / 4) * corners[k // 4] + k % 4 / 4 * corners[min(k // 4 + 1, 3)] for k in range(13)}
    transitions = [(s, s - jump, 0.5, -3.0) for s in range(2, 13) for jump in (1, 2)]
    transitions += [(1, 0, 1.0, -2.0), (0, 0, 1.0, 0.0)]
    visits = {12: 1.0} | {s: 0.0 for s in range(12)}
    for s in range(12, 0, -1):
        for at, to, p, _ in transitions:
            if at == s and s > 0:
                visits[to] += visits[s] * p
    states, followers, p, rewards = (list(column) for column in zip(*transitions, strict=True))
    weights = [visits[s] * q for s, q in zip(states, p, strict=True)]
    phi, next_phi = np.array([features[s] for s in states]), np.array([features[s] for s in followers])
    ended = [s == 0 for s in states]
    return (*both(phi, rewards, next_phi, ended, layout=layout, weights=weights), features)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("solver", [LSTD(), SVRG(), SAGA(), SVRG(step_theta=0.3, step_omega=0.3)])
def test_boyans_chain(solver, layout):
    problem, oracle, features = boyan(layout)
    exact = np.linalg.solve(oracle.A, oracle.b)
    np.testing.assert_allclose(exact, [-24, -16, -8, 0], atol=1e-12)
    solution = solver.solve(problem, passes=20_000, tolerance=1e-9).require()
    np.testing.assert_allclose(solution.theta, exact, atol=2e-6)
    values = [features[s] @ solution.theta for s in range(13)]
    np.testing.assert_allclose(values, [-2 * s for s in range(13)], atol=2e-6)


@pytest.mark.parametrize("solver", [LSTD(), SVRG(), SAGA(), BatchingSVRG(initial_fraction=1.0)])
def test_a_random_walk_of_five_states(solver):
    """Left or right with equal chance, a reward of 1 beyond the right end: values 1/6 to 5/6."""
    states = np.repeat(np.arange(5), 2)
    followers = states + np.tile([-1, 1], 5)
    ended = (followers < 0) | (followers > 4)
    rewards = (followers > 4).astype(float)
    chance = np.array([1, 2, 3, 2, 1])[states] / 18
    problem = Problem.from_table(
        np.eye(5), states, rewards, np.clip(followers, 0, 4), discount=1.0, terminated=ended, weights=chance
    )
    assert problem.layout == "indexed"
    solution = solver.solve(problem, passes=50_000, tolerance=1e-9).require()
    np.testing.assert_allclose(solution.theta, np.arange(1, 6) / 6, atol=1e-7)


def baird(reward, layout="dense", **columns):
    """Baird's star: whichever of seven states one is in, the target policy goes to the last; behaviour rarely does.

    Behaviour goes there with chance 1/7 and else to one of the six others; states are visited equally often.
    """
    features = np.zeros((7, 8))
    features[range(6), range(6)], features[:6, 7] = 2, 1
    features[6, 6], features[6, 7] = 1, 2
    states, followers = (grid.ravel() for grid in np.meshgrid(range(7), range(7), indexing="ij"))
    ratios = np.where(followers == 6, 7.0, 0.0)
    weights = np.full(49, 1 / 49)
    phi, next_phi = features[states], features[followers]
    ended = np.zeros(49, bool)
    rewards = np.full(49, reward)
    problem, oracle = both(
        phi, rewards, next_phi, ended, discount=0.99, layout=layout, ratios=ratios, weights=weights, **columns
    )
    return problem, oracle, features


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_bairds_star_has_the_matrix_that_makes_td_diverge(layout):
    problem, oracle, features = baird(0.0, layout)
    chance = np.zeros((7, 7))
    chance[:, 6] = 1
    expected = features.T @ (np.eye(7) - 0.99 * chance) @ features / 7
    a, b, c = problem.moments()
    np.testing.assert_allclose(a, expected, atol=1e-13)
    np.testing.assert_allclose(c, features.T @ features / 7, atol=1e-13)
    assert not b.any()
    assert np.linalg.matrix_rank(a, tol=1e-10) == 7
    assert np.linalg.eigvals(a).real.min() < -0.1
    start = np.array([1.0, 1, 1, 1, 1, 1, 10, 1])
    assert problem.mspbe(start) == pytest.approx(oracle.mspbe(start), rel=1e-10)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("solver", [LSTD(), GTD2(), SVRG(), SAGA()])
def test_bairds_star_has_no_value(solver, layout):
    solution = solver.solve(baird(0.0, layout)[0], theta=[1, 1, 1, 1, 1, 1, 10, 1]).require()
    assert solution.status is Status.CONVERGED and not solution.theta.any()


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_bairds_star_that_pays_one_a_step(layout):
    """All states are worth 1 / (1 - discount). A is singular, the equations hold, and gradients find the answer."""
    problem, oracle, features = baird(1.0, layout)
    solution = LSTD().solve(problem).require()
    assert solution.status is Status.CONVERGED and "rank 7 of 8" in solution.message
    np.testing.assert_allclose(features @ solution.theta, 100, rtol=1e-8)
    np.testing.assert_allclose(solution.theta, oracle.smallest_minimiser(), rtol=1e-8)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("solver", [kind(step_theta=0.002, step_omega=0.02) for kind in (SVRG, SAGA, GTD2, SCSG)])
def test_gradients_are_safe_on_bairds_star(solver, layout):
    """From the classical start plain TD runs away, even in expectation; the saddle point's methods come down."""
    problem, oracle, features = baird(1.0, layout)
    start = np.array([1.0, 1, 1, 1, 1, 1, 10, 1])
    theta = start
    for _ in range(2000):
        theta = theta - 0.05 * (oracle.A @ theta - oracle.b)
    assert np.abs(features @ theta).max() > 1e4
    solution = solver.solve(problem, passes=400, theta=start).require()
    assert oracle.mspbe(solution.theta) < 0.02 * oracle.mspbe(start)
    assert np.abs(features @ solution.theta).max() < 100


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_bairds_star_with_a_ridge_has_one_answer(layout):
    """Also with a ridge that leaves an eigenvalue of A below zero."""
    problem, oracle, _ = baird(1.0, layout, ridge=0.2)
    assert np.linalg.eigvals(oracle.A).real.min() < -0.03
    solution = LSTD().solve(problem).require()
    np.testing.assert_allclose(solution.theta, np.linalg.solve(oracle.A, oracle.b), rtol=1e-10)
    assert "rank" not in solution.message
