"""LSTD: the solution where there is one, the smallest minimiser where there is not, and a status that says which."""

import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge

import rational
from battery import LAYOUTS, case
from oracle import Oracle
from valuate import LSTD, SVRG, Problem, Status
from valuate.errors import InputError, InputTypeError, SolverError


def refuses(kind, message):
    """The block raises exactly `kind`, with `message` somewhere in its text."""
    return pytest.raises(kind, match=re.escape(message))


def closed_loop(features, rewards, discount=1.0, **scalars):
    """States that follow each other for ever."""
    n = len(features)
    return Problem.from_table(
        features, np.arange(n), rewards, (np.arange(n) + 1) % n, discount=discount, **scalars
    ), Oracle(features, np.roll(features, -1, axis=0), rewards, np.full(n, discount), **scalars)


def assert_smallest(solution, oracle, rank):
    """The minimiser of the MSPBE with the smallest norm, found by the pseudo-inverse of explicit matrices."""
    values, vectors = np.linalg.eigh(oracle.C)
    kept = values > 1e-12 * values[-1]
    root = (vectors[:, kept] / np.sqrt(values[kept])).T  # root' root is the pseudo-inverse of C
    wanted = np.linalg.pinv(root @ oracle.A, rcond=1e-10) @ (root @ oracle.b)
    np.testing.assert_allclose(solution.theta, wanted, rtol=1e-8, atol=1e-9 * np.abs(wanted).max())
    assert f"A has rank {rank} of {oracle.d}" in solution.message


# ---- one solution


@pytest.mark.parametrize("extras", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_solution_is_that_of_numpy(layout, extras):
    given = case(layout, n=200, dim=6, ratios=extras, weights=extras, ridge=0.02 * extras)
    solution = LSTD().solve(given.problem)
    np.testing.assert_allclose(solution.theta, given.oracle.solve(), rtol=1e-9)
    assert solution.status is Status.CONVERGED and solution.require() is solution
    assert solution.message == "Solved directly: relative residual below 1e-12 in the norm of C^-1."
    assert solution.relative_residual < 1e-12 and not solution.omega.any()
    assert (solution.row_visits, solution.setup_visits, solution.passes, solution.epochs) == (200, 200, 1.0, 1)
    assert solution.tolerance is None and len(solution.trace) == 0 and solution.seconds > 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_single_precision_rows_are_solved_in_double(layout):
    given = case(layout, n=200, dim=6, dtype=np.float32)
    np.testing.assert_allclose(LSTD().solve(given.problem).theta, given.oracle.solve(), rtol=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 1e-3, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_without_discount_it_is_ridge_regression(ridge, weighted):
    rng = np.random.default_rng(1)
    phi, rewards = rng.normal(size=(80, 5)), rng.normal(size=80)
    weights = rng.choice([1.0, 2.0, 5.0], 80) if weighted else np.ones(80)
    problem = Problem.from_arrays(phi, rewards, phi[::-1], discount=0.0, ridge=ridge, weights=weights)
    model = Ridge(alpha=weights.sum() * ridge, fit_intercept=False) if ridge else LinearRegression(fit_intercept=False)
    np.testing.assert_allclose(LSTD().solve(problem).theta, model.fit(phi, rewards, weights).coef_, rtol=1e-9)


def test_random_walk_has_its_known_values():
    """Five states between a bad and a good end: the chance of the good one."""
    states = np.repeat(np.arange(5), 2)
    steps = np.tile([-1, 1], 5)
    followers = states + steps
    ended = (followers < 0) | (followers > 4)
    rewards = (followers > 4).astype(float)
    problem = Problem.from_table(np.eye(5), states, rewards, followers, discount=1.0, terminated=ended)
    np.testing.assert_allclose(LSTD().solve(problem).theta, np.arange(1, 6) / 6, rtol=1e-13)


def test_boyan_chain_has_its_known_weights():
    """Thirteen states, four hat features, which the values fit exactly: -24, -16, -8, 0 (Boyan 2002)."""
    table = np.maximum(0, 1 - np.abs(np.arange(12, -1, -1)[:, None] / 4 - np.arange(3, -1, -1)))
    states, rewards, followers, weights = [], [], [], []
    for state in range(12, 1, -1):  # numbered by the steps that are left; table row 12 - state
        for jump in (1, 2):
            states.append(12 - state), followers.append(12 - state + jump), rewards.append(-3.0), weights.append(1.0)
    states.append(11), followers.append(12), rewards.append(-2.0), weights.append(2.0)
    states.append(12), followers.append(12), rewards.append(0.0), weights.append(1.0)
    ended = np.array(states) == 12
    problem = Problem.from_table(table, states, rewards, followers, discount=1.0, terminated=ended, weights=weights)
    np.testing.assert_allclose(LSTD().solve(problem).theta, [-24.0, -16.0, -8.0, 0.0], atol=1e-11)


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_many_features_off_policy(make):
    rng = np.random.default_rng(2)
    n, dim = 3000, 300
    phi, next_phi = rng.normal(size=(2, n, dim)) / np.sqrt(dim)
    if make is sp.csr_array:
        phi, next_phi = (a * (rng.random((n, dim)) < 0.1) for a in (phi, next_phi))
    ratios, rewards = rng.choice([0.0, 0.5, 1.0, 6.0], n), rng.normal(size=n)
    problem = Problem.from_arrays(make(phi), rewards, make(next_phi), discount=0.97, ratios=ratios)
    delta = phi - 0.97 * next_phi
    a, b = (ratios[:, None] * phi).T @ delta / n, phi.T @ (ratios * rewards) / n
    solution = LSTD().solve(problem)
    np.testing.assert_allclose(solution.theta, np.linalg.solve(a, b), rtol=1e-7)
    assert solution.status is Status.CONVERGED and solution.relative_residual < 1e-11


@pytest.mark.parametrize("n", [1, 2, 5])
@pytest.mark.parametrize("dim", [1, 5, 9])
def test_few_rows(n, dim):
    """More features than rows leave many solutions; the smallest is taken."""
    rng = np.random.default_rng([n, dim])
    phi, next_phi, rewards = rng.normal(size=(n, dim)), rng.normal(size=(n, dim)), rng.normal(size=n)
    oracle = Oracle(phi, next_phi, rewards, np.full(n, 0.9))
    solution = LSTD().solve(Problem.from_arrays(phi, rewards, next_phi, discount=0.9))
    assert solution.status is Status.CONVERGED
    if n < dim:
        assert_smallest(solution, oracle, n)
        # Every row is met by itself.
        np.testing.assert_allclose(oracle.delta @ solution.theta, rewards, rtol=1e-9)
    else:
        np.testing.assert_allclose(solution.theta, oracle.solve(), rtol=1e-9)


# ---- against exact arithmetic


@st.composite
def small_problems(draw):
    """Few rows of small whole numbers: many of these are singular, in every way there is."""
    n, dim = draw(st.integers(1, 7)), draw(st.integers(1, 4))
    numbers = st.integers(-2, 2)

    def rows(elements, count, width):
        return np.array(
            draw(st.lists(st.lists(elements, min_size=width, max_size=width), min_size=count, max_size=count))
        )

    phi = rows(numbers, n, dim).astype(float)
    follows = draw(st.booleans())
    next_phi = np.roll(phi, -1, axis=0) if follows else rows(numbers, n, dim).astype(float)
    column = st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=n, max_size=n)
    return {
        "phi": phi * 2.0 ** np.array(draw(st.lists(st.integers(-12, 12), min_size=dim, max_size=dim)))
        if draw(st.booleans())
        else phi,
        "next_phi": next_phi,
        "rewards": np.array(draw(st.lists(st.integers(-3, 3), min_size=n, max_size=n)), dtype=float),
        "discount": draw(st.sampled_from([0.0, 0.5, 0.75, 1.0])),
        "ratios": np.array(draw(column)) * draw(st.sampled_from([0.0, 1.0])) if draw(st.booleans()) else None,
        "weights": np.array(draw(column)) if draw(st.booleans()) else None,
        "ridge": draw(st.sampled_from([0.0, 0.0, 0.125])),
    }


@settings(max_examples=300)
@given(small_problems())
def test_small_problems_are_solved_as_in_exact_arithmetic(rows):
    """Status, rank and weights. In particular nothing is said to be solved that has no solution."""
    phi, next_phi, rewards, discount = (rows.pop(name) for name in ("phi", "next_phi", "rewards", "discount"))
    exact = rational.solve(phi, next_phi, rewards, discount, **rows)
    solution = LSTD().solve(Problem.from_arrays(phi, rewards, next_phi, discount=discount, **rows))
    counts = rows["ratios"] is None or rows["ratios"].any()
    assert solution.status is (Status.CONVERGED if exact.consistent and counts else Status.SINGULAR)
    assert solution.relative_residual == pytest.approx(exact.relative_residual, rel=1e-7, abs=1e-9)
    np.testing.assert_allclose(solution.theta, exact.theta, rtol=1e-6, atol=1e-8 * np.abs(exact.theta).max() + 1e-10)
    if exact.rank < phi.shape[1] and "b = 0" not in solution.message and counts:
        free = (phi != 0).any(axis=0) | (next_phi != 0).any(axis=0)
        assert f"A has rank {exact.rank} of {phi.shape[1]}" in solution.message, free


# ---- singular, but the equations hold


def test_a_feature_twice():
    given = case("dense", n=100, dim=3)
    phi, delta = (np.column_stack([m, 2 * m[:, 0]]) for m in (given.oracle.phi, given.oracle.delta))
    oracle = Oracle(phi, phi - delta, given.oracle.r, np.ones(100))
    solution = LSTD().solve(Problem.from_arrays(phi, given.oracle.r, phi - delta, discount=1.0))
    assert solution.status is Status.CONVERGED and solution.require() is solution
    assert solution.message == (
        "Solved directly: relative residual below 1e-12 in the norm of C^-1. A has rank 3 of 4: the equations hold, "
        "the weights are the smallest that meet them, and others meet them too. A small ridge makes them unique. "
        "The discount is 1 and no row terminated: such values are known up to a constant only, if they are finite."
    )
    assert_smallest(solution, oracle, 3)
    assert solution.theta[3] == pytest.approx(2 * solution.theta[0])
    np.testing.assert_allclose(phi @ solution.theta, given.oracle.phi @ given.oracle.solve(), rtol=1e-9)


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_states_that_are_never_met(make):
    """Their values are not determined and are 0; those of the others are what they are without them."""
    rng = np.random.default_rng(3)
    states, followers = rng.choice([0, 2, 3, 6], (2, 300))
    rewards = rng.normal(size=300)
    solution = LSTD().solve(Problem.from_table(make(np.eye(8)), states, rewards, followers, discount=0.9))
    assert solution.status is Status.CONVERGED and "A has rank 4 of 8" in solution.message
    within = LSTD().solve(
        Problem.from_table(np.eye(4), np.searchsorted([0, 2, 3, 6], states), rewards,
                           np.searchsorted([0, 2, 3, 6], followers), discount=0.9)
    )  # fmt: skip
    np.testing.assert_allclose(solution.theta[[0, 2, 3, 6]], within.theta, rtol=1e-10)
    assert not solution.theta[[1, 4, 5, 7]].any()
    # Such columns are no reason for the slow way.
    assert solution.setup_visits == 300


def test_a_state_that_is_only_ever_reached():
    """0 -> 1 -> 2 and nothing is seen from 2: its value is free, and takes its share of the smallest norm."""
    problem = Problem.from_table(np.eye(3), [0, 1, 1], [1.0, 2.0, 4.0], [1, 2, 2], discount=0.5)
    solution = LSTD().solve(problem)
    assert solution.status is Status.CONVERGED and "A has rank 2 of 3" in solution.message
    exact = rational.solve(np.eye(3)[[0, 1, 1]], np.eye(3)[[1, 2, 2]], [1.0, 2.0, 4.0], 0.5)
    np.testing.assert_allclose(solution.theta, exact.theta, rtol=1e-12)
    assert solution.theta[1] - 0.5 * solution.theta[2] == pytest.approx(3.0)
    assert solution.theta[2] != 0.0


def test_a_constant_beside_one_state_each():
    given = case("indexed", n=300, dim=4, n_states=4)
    states = given.problem.rows.records["state"], given.problem.rows.records["next"]
    table = np.column_stack([np.eye(4), np.ones(4)])
    phi, next_phi = table[states[0]], table[states[1]]
    discounts = np.array(given.problem.rows.records["discount"])
    oracle = Oracle(phi, next_phi, given.oracle.r, discounts)
    solution = LSTD().solve(Problem.from_table(table, *(states[0], given.oracle.r, states[1]), discount=discounts))
    assert solution.status is Status.CONVERGED
    assert_smallest(solution, oracle, 4)


def test_average_reward_of_zero_leaves_a_constant_free():
    rng = np.random.default_rng(4)
    rewards = rng.integers(-8, 9, 12) / 4.0
    rewards[-1] -= rewards.sum()
    problem, oracle = closed_loop(np.eye(12), rewards)
    solution = LSTD().solve(problem)
    assert solution.status is Status.CONVERGED
    assert_smallest(solution, oracle, 11)
    assert solution.theta.sum() == pytest.approx(0.0, abs=1e-12)  # the constant is what is free
    np.testing.assert_allclose(solution.theta - np.roll(solution.theta, -1), rewards, atol=1e-12)


# ---- singular, and the equations contradict each other


@pytest.mark.parametrize("layout", ["indexed", "dense", "sparse"])
def test_a_state_that_leads_to_itself_without_discount_and_pays(layout):
    """A = 0 and b = 1: no value is right."""
    make = sp.csr_array if layout == "sparse" else np.array
    problem = (
        Problem.from_table(np.ones((1, 1)), [0], [1.0], [0], discount=1.0)
        if layout == "indexed"
        else Problem.from_arrays(make([[1.0]]), [1.0], make([[1.0]]), discount=1.0)
    )
    solution = LSTD().solve(problem)
    assert solution.status is Status.SINGULAR
    assert solution.theta == [0.0] and solution.relative_residual == 1.0
    assert solution.message == (
        "Not determined: relative residual 1 in the norm of C^-1. A has rank 0 of 1 and A theta = b has no solution: "
        "the weights are the smallest minimiser of the MSPBE. Use a small ridge, fewer features or more rows. "
        "The discount is 1 and no row terminated: such values are known up to a constant only, if they are finite."
    )
    with pytest.raises(SolverError, match="rank 0 of 1") as caught:
        solution.require()
    assert caught.value.solution is solution


@pytest.mark.parametrize("features", ["states", "few", "many", "hardly independent"])
def test_a_closed_loop_that_pays_without_discount(features):
    rng = np.random.default_rng(5)
    table = {
        "states": np.eye(8),
        "few": np.column_stack([np.ones(8), rng.normal(size=(8, 3))]),
        "many": rng.normal(size=(8, 8)),
        "hardly independent": np.eye(8) + 1e-5 * rng.normal(size=(8, 8)) @ np.diag(np.logspace(0, -3, 8)),
    }[features]
    rewards = rng.normal(size=8) + 2.0
    problem, oracle = closed_loop(table, rewards)
    solution = LSTD().solve(problem)
    assert solution.status is Status.SINGULAR
    assert_smallest(solution, oracle, table.shape[1] - 1)
    assert solution.relative_residual == pytest.approx(oracle.relative_residual(solution.theta), rel=1e-9)
    with pytest.raises(SolverError, match="has no solution"):
        solution.require()


@pytest.mark.parametrize("condition", [1e4, 1e8, 1e11, 1e14])
def test_contradictions_are_found_behind_bad_conditioning(condition):
    """Whitening makes rounding errors large; they must not pass for a solution, nor for rank."""
    rng = np.random.default_rng(6)
    left, right = np.linalg.qr(rng.normal(size=(40, 8)))[0], np.linalg.qr(rng.normal(size=(8, 8)))[0]
    left[:, 0] = 1 / np.sqrt(40)
    table = (left * np.sqrt(condition) ** -np.linspace(0, 1, 8)) @ right
    problem, oracle = closed_loop(table, rng.normal(size=40) + 3)
    solution = LSTD().solve(problem)
    assert solution.status is Status.SINGULAR and "A has rank 7 of 8" in solution.message
    assert solution.relative_residual > 0.1
    # No theta does better than the one that was found.
    least = oracle.mspbe(oracle.smallest_minimiser())
    assert oracle.mspbe(solution.theta) <= least * (1 + 1e-6)


def test_two_states_off_policy():
    """Only the step from a state of feature 1 to one of feature 2 is seen: A = 1 - 2 discount."""
    for discount, status, theta in (
        (0.25, Status.CONVERGED, 2.0),
        (0.5, Status.SINGULAR, 0.0),
        (0.75, Status.CONVERGED, -2.0),
    ):
        solution = LSTD().solve(Problem.from_arrays([[1.0]], [1.0], [[2.0]], discount=discount))
        assert solution.status is status and solution.theta == pytest.approx([theta])


def test_ratios_that_contradict():
    """Off-policy weighting can make A singular where every row is harmless."""
    phi, next_phi = np.array([[1.0], [1.0]]), np.array([[3.0], [0.0]])
    kwargs = {"discount": 0.5, "ratios": [2.0, 1.0]}  # 2 (1 - 1.5) + 1 = 0
    solution = LSTD().solve(Problem.from_arrays(phi, [1.0, 0.0], next_phi, **kwargs))
    assert solution.status is Status.SINGULAR and solution.theta == [0.0]
    kwargs["ratios"] = [2.0, 1.25]
    assert LSTD().solve(Problem.from_arrays(phi, [1.0, 0.0], next_phi, **kwargs)).theta == pytest.approx([8.0])


def test_a_ridge_makes_it_regular():
    rng = np.random.default_rng(7)
    rewards = rng.normal(size=8) + 2.0
    problem, oracle = closed_loop(np.eye(8), rewards, ridge=1e-4)
    solution = LSTD().solve(problem)
    assert solution.status is Status.CONVERGED and "rank" not in solution.message
    np.testing.assert_allclose(solution.theta, oracle.solve(), rtol=1e-9)


# ---- nearly singular


@pytest.mark.parametrize("power", [1, 3, 6, 9, 10, 11, 12])
def test_discounts_close_to_one(power):
    """The values grow like 1 / (1 - discount), which is the condition of A; the equations still hold."""
    discount = 1 - 2.0 ** -round(power * np.log2(10))
    rewards = np.array([1.0, 2.0, 0.5, 4.0, -1.0])
    problem, _ = closed_loop(np.eye(5), rewards, discount)
    exact = rational.solve(np.eye(5), np.roll(np.eye(5), -1, axis=0), rewards, discount)
    solution = LSTD().solve(problem)
    assert exact.consistent
    np.testing.assert_allclose(solution.theta, exact.theta, rtol=10.0 ** (power - 15))
    if power < 7:
        assert solution.status is Status.CONVERGED
    else:  # weights so large do not meet b to 1e-8 in float64; either answer is honest
        assert (solution.status is Status.CONVERGED) == (solution.relative_residual <= 1e-8)


@pytest.mark.parametrize("condition", [1e6, 1e10, 1e12, 1e14])
@pytest.mark.parametrize("discount", [0.0, 0.9, 0.999])
@pytest.mark.parametrize("dim", [4, 40])
def test_badly_conditioned_features_are_solved(dim, discount, condition):
    for seed in range(3):
        rng = np.random.default_rng([seed, dim])
        left, right = np.linalg.qr(rng.normal(size=(20 * dim, dim)))[0], np.linalg.qr(rng.normal(size=(dim, dim)))[0]
        phi = (left * np.sqrt(condition) ** -np.linspace(0, 1, dim)) @ right
        problem = Problem.from_arrays(phi[:-1], rng.normal(size=len(phi) - 1), phi[1:], discount=discount)
        solution = LSTD().solve(problem)
        assert solution.status is Status.CONVERGED and "rank" not in solution.message
        assert solution.relative_residual < 1e-8
        assert problem.relative_residual(solution.theta) == solution.relative_residual


def test_conditioning_beyond_float64_is_not_said_to_be_solved():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        left, right = np.linalg.qr(rng.normal(size=(60, 6)))[0], np.linalg.qr(rng.normal(size=(6, 6)))[0]
        phi = (left * np.logspace(0, -10, 6)) @ right
        problem = Problem.from_arrays(phi[:-1], rng.normal(size=59), phi[1:], discount=0.9)
        solution = LSTD().solve(problem)
        assert np.isfinite(solution.theta).all()
        assert (solution.status is Status.CONVERGED) == (solution.relative_residual <= 1e-8)


@pytest.mark.parametrize("spread", [1e3, 1e6, 1e10])
def test_units_far_apart(spread):
    """Weights change by the inverse of the units, where they are determined; the equations hold either way."""
    given = case("dense", n=200, dim=6)
    units = np.geomspace(1 / spread, spread, 6)
    phi, next_phi = given.oracle.phi, (given.oracle.phi - given.oracle.delta)
    scaled = Problem.from_arrays(phi * units, given.oracle.r, next_phi * units, discount=1.0)
    solution = LSTD().solve(scaled)
    np.testing.assert_allclose(solution.theta * units, given.oracle.solve(), rtol=1e-9)
    twice = np.hstack([phi, phi[:, :2]]) * np.append(units, [7.0, 1 / spread])
    next_twice = np.hstack([next_phi, next_phi[:, :2]]) * np.append(units, [7.0, 1 / spread])
    solution = LSTD().solve(Problem.from_arrays(twice, given.oracle.r, next_twice, discount=1.0))
    assert solution.status is Status.CONVERGED and "A has rank 6 of 8" in solution.message
    assert solution.relative_residual < 1e-10
    np.testing.assert_allclose(twice @ solution.theta, phi @ given.oracle.solve(), rtol=1e-7, atol=1e-9)
    # Of two columns that say the same, the longer takes nearly all of the weight.
    assert solution.theta[6] * units[0] == pytest.approx(
        solution.theta[0] * 7.0, rel=1e-5, abs=1e-14 * np.abs(solution.theta).max()
    )


# ---- rewards of zero


@pytest.mark.parametrize("rewards", [np.zeros(3), [1.0, 1.0, -2.0]])
def test_rewards_that_cancel(rewards):
    problem = Problem.from_arrays(np.ones((3, 1)), rewards, np.ones((3, 1)), discount=0.9)
    solution = LSTD().solve(problem)
    assert solution.status is Status.CONVERGED and solution.theta == [0.0] and solution.relative_residual == 0.0
    assert solution.message == "Converged at zero: b = 0, so the value is 0 everywhere."


def test_rewards_that_cancel_up_to_rounding():
    """In floating point .1 + .2 - .3 is not 0, and b / |b| is noise."""
    rng = np.random.default_rng(8)
    said = 0
    for _ in range(100):
        tenths = rng.integers(-9, 10, rng.integers(2, 30))
        rewards = np.append(tenths, -tenths.sum()) * 0.1
        ones = np.full((len(rewards), 1), 0.3)
        solution = LSTD().solve(Problem.from_arrays(ones, rewards, ones, discount=0.9))
        assert solution.status is Status.CONVERGED and abs(solution.theta[0]) < 1e-13
        said += solution.message == "Converged at zero: b = 0 up to rounding, so the value is 0 everywhere."
    assert said > 20


def test_small_rewards_are_not_zero():
    given = case("dense", n=100, dim=3)
    for unit in (1e-30, 1e-48, 1e48):
        problem = Problem.from_arrays(
            given.oracle.phi, given.oracle.r * unit, given.oracle.phi - given.oracle.delta, discount=1.0
        )
        solution = LSTD().solve(problem)
        np.testing.assert_allclose(solution.theta / unit, given.oracle.solve(), rtol=1e-9)
        assert solution.status is Status.CONVERGED and solution.relative_residual < 1e-12


# ---- arguments


def test_budgets_below_one_pass_are_refused():
    problem = case("dense").problem
    for budget in ({"passes": 0}, {"passes": 0.99}, {"epochs": 0}):
        with refuses(InputError, "LSTD reads every row once: a budget below one pass is not enough. Use GTD2 or SCSG."):
            LSTD().solve(problem, **budget)
    for budget in ({"passes": 1}, {"passes": 7.5}, {"epochs": 1}, {}):
        assert LSTD().solve(problem, **budget).passes == 1.0


def test_tolerances():
    given = case("dense", n=100, dim=4)
    problem = given.problem
    assert LSTD().solve(problem, tolerance=1e-10).require().tolerance == 1e-10
    strict = LSTD().solve(problem, tolerance=1e-30)
    assert strict.status is Status.STALLED and "above the tolerance 1e-30" in strict.message
    with pytest.raises(SolverError, match="as far as float64 goes"):
        strict.require()
    # A tolerance that the smallest minimiser meets is met, and the message still tells that nothing solves it.
    problem, _ = closed_loop(np.eye(3), np.array([100.0, -100.0, 1.0]))
    loose = LSTD().solve(problem, tolerance=0.5)
    assert loose.status is Status.CONVERGED and "A has rank 2 of 3 and A theta = b has no solution" in loose.message
    assert LSTD().solve(problem, tolerance=1e-3).status is Status.SINGULAR
    assert LSTD().solve(problem).status is Status.SINGULAR


def test_record_gives_the_start_and_the_end():
    given = case("dense", n=100, dim=4)
    trace = LSTD().solve(given.problem, record="epoch").trace
    assert list(trace.epoch) == [0, 1] and list(trace.row_visits) == [0, 100]
    assert trace.mspbe[0] == pytest.approx(given.oracle.mspbe(np.zeros(4)))
    assert trace.mspbe[1] < 1e-20


def test_start_and_seed_make_no_difference():
    problem = case("dense").problem
    start = np.full(5, 7.0)
    one, other = LSTD().solve(problem), LSTD().solve(problem, seed=9, theta=start, omega=start)
    np.testing.assert_array_equal(one.theta, other.theta)
    assert (start == 7.0).all()


def test_it_is_a_value():
    assert LSTD() == LSTD() and pickle.loads(pickle.dumps(LSTD())) == LSTD() and repr(LSTD()) == "LSTD()"
    assert hash(LSTD()) == hash(LSTD())
    with pytest.raises(TypeError):
        LSTD(1e-3)


def test_what_is_no_problem():
    for thing in (None, "problem", np.eye(3), object()):
        with refuses(InputTypeError, f"problem must be a Problem, not {type(thing).__name__}"):
            LSTD().solve(thing)
        with refuses(InputTypeError, f"problem must be a Problem, not {type(thing).__name__}"):
            SVRG().solve(thing)


# ---- close to singular


def test_a_feature_of_next_states_alone_whose_column_cancels():
    """What is left of it in A is rounding, and no direction."""
    phi = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    for layout in (np.array, sp.csr_array):
        problem = Problem.from_arrays(
            layout(phi), [1.0, 2.0, 3.0], layout([[0, 0.1], [0, 0.2], [0, -0.3]]), discount=0.99
        )
        solution = LSTD().solve(problem)
        assert solution.status is Status.CONVERGED and "rank 1 of 2" in solution.message
        np.testing.assert_allclose(solution.theta, [2.0, 0.0], atol=1e-12)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2))
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    y, rewards = 0.5 * x + 0.3 * rng.normal(size=(500, 2)), x @ [1.0, 2.0] + rng.normal(size=500)
    plain = LSTD().solve(Problem.from_arrays(x, rewards, y, discount=0.9)).theta
    wide = Problem.from_arrays(np.c_[x, np.zeros(500)], rewards, np.c_[y, np.ones(500)], discount=0.9)
    np.testing.assert_allclose(LSTD().solve(wide).theta, [*plain, 0.0], atol=1e-10)


@pytest.mark.parametrize("apart", [1e-5, 1e-6, 1e-7])
def test_nearly_the_same_features_have_a_solution(apart):
    """In the coordinates of the difference the problem is well conditioned."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 2000, 1))
    next_x, next_y = 0.6 * x + 0.8 * rng.normal(size=(2000, 1)), 0.6 * y + 0.8 * rng.normal(size=(2000, 1))
    rewards = y[:, 0] + rng.normal(size=2000)
    phi, next_phi = np.hstack([x, x + apart * y]), np.hstack([next_x, next_x + apart * next_y])
    problem = Problem.from_arrays(phi, rewards, next_phi, discount=0.95)
    solution = LSTD().solve(problem)
    assert solution.status is Status.CONVERGED
    assert problem.relative_residual(solution.theta) <= 1e-8
    clear = LSTD().solve(Problem.from_arrays(np.hstack([x, y]), rewards, np.hstack([next_x, next_y]), discount=0.95))
    np.testing.assert_allclose(phi @ solution.theta, np.hstack([x, y]) @ clear.theta, atol=1e-6 / apart * 1e-6)
