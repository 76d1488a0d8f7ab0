"""Averages, steps that decay or are made smaller, rows in the log's order, columns that are scaled or centred first."""

import numpy as np
import pytest

from battery import LAYOUTS, Spy, case
from oracle import Oracle
from valuate import GTD2, LSTD, SAGA, SCSG, SVRG, TD, BatchingSVRG, Problem, Status
from valuate.environments import MountainCar
from valuate.errors import InputError
from valuate.solvers import driver, scaling
from valuate.solvers.averaging import EARLIEST, GROWTH, LATEST, TailMean
from valuate.solvers.directions import Maxima
from valuate.solvers.sampling import Distances

# ---- means over the later part of a run


@pytest.mark.parametrize("every", [1, 7])
@pytest.mark.parametrize("varied", [False, True])
def test_windows_are_means_of_whole_points_up_to_the_last(varied, every):
    rng = np.random.default_rng(0)
    average, points, weights = TailMean(2, 3), [], []
    for k in range(400):
        weights.append(rng.integers(1, 9) if varied else 1)
        points.append(rng.normal(size=(2, 3)))
        average.add(weights[-1], points[-1], ends=k % every == every - 1)
        shares, means = average.windows()
        assert shares[0] == 0.0 and (np.diff(shares) > 0).all() and shares[-1] <= LATEST
        ends = np.concatenate([[0.0], np.cumsum(weights)])
        for share, mean in zip(shares, means, strict=True):
            first = int(np.abs(ends - share * ends[-1]).argmin())
            assert first % every == 0
            np.testing.assert_allclose(mean, np.average(points[first:], axis=0, weights=weights[first:]), rtol=1e-9)
        if k > 100 * every:  # a beginning is known to within a factor, from the earliest to the latest
            step = GROWTH * (1 + every * 8 / (EARLIEST * ends[-1]))
            assert (shares[2:] <= step * shares[1:-1]).all()
            assert shares[1] <= step**2 * EARLIEST and shares[-1] * step >= LATEST
    assert len(average._cuts) < 32


def ends_of_windows(errors):
    """The error of the mean over each window of runs that are given as (points, dim)."""
    average = TailMean(1, errors.shape[1])
    for point in errors:
        average.add(1.0, point[None])
    return average


@pytest.mark.parametrize("dim", [3, 30])
@pytest.mark.parametrize("size", [0.5, 5.0, 50.0])
@pytest.mark.parametrize("forgets", [1, 30, 150, 500])
def test_the_window_is_nearly_the_best_of_all(forgets, size, dim):
    """On average over runs: noise of one in every coordinate, and a start that is forgotten."""
    found, best, fixed = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        start = size * np.exp(-np.arange(1000) / forgets)[:, None]
        average = ends_of_windows(start + rng.normal(size=(1000, dim)))
        shares, means = average.windows()
        errors = np.square(means[:, 0]).sum(axis=1)
        taken = average.best(lambda thetas: thetas)
        found.append(np.square(taken).sum())
        best.append(errors)
        fixed.append(errors[np.searchsorted(shares, 0.2)])
    best = np.mean(best, axis=0).min()  # of all windows that begin at one share in every run
    assert np.mean(found) < 2.0 * best
    if forgets >= 150 and size > 1:
        assert np.mean(found) < 0.5 * np.mean(fixed)


def test_without_noise_the_window_is_among_the_last():
    average = ends_of_windows(np.exp(-np.arange(1000) / 100)[:, None] * np.ones(4))
    shares, means = average.windows()
    taken = int(np.flatnonzero((means == average.best(lambda thetas: thetas)).all(axis=(1, 2)))[0])
    assert shares[taken] > 0.6
    still = ends_of_windows(np.ones((1000, 4)))
    np.testing.assert_allclose(still.best(lambda thetas: thetas), 1.0, rtol=1e-12)
    grown = ends_of_windows(np.full((100, 4), np.inf))
    with np.errstate(invalid="ignore"):
        assert grown.best(lambda thetas: thetas).shape == (1, 4)


def test_noise_that_an_epoch_shares_is_seen_as_one():
    """Points of a stretch have their noise in common: cut inside, it would be taken for bias."""
    excess = {}
    for whole in (True, False):
        found, best = [], []
        for seed in range(40):
            rng = np.random.default_rng(seed)
            average = TailMean(1, 20)
            for _ in range(8):
                level = rng.normal(size=(1, 20))
                for k in range(125):
                    average.add(1.0, level + 0.01 * rng.normal(size=(1, 20)), ends=not whole or k == 124)
            _, means = average.windows()
            best.append(np.square(means[0]).sum())
            found.append(np.square(average.best(lambda thetas: thetas)).sum())
        excess[whole] = np.mean(found) / np.mean(best)
    assert excess[True] < 1.15 < 1.5 < excess[False]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    "solver", [TD(step_theta=0.05, average=True), GTD2(step_theta=0.05, step_omega=0.1, average=True)]
)
def test_average_of_a_run(solver, layout, monkeypatch):
    """The answer is a mean of where the oracle is after every few steps."""
    monkeypatch.setattr(driver, "SPACING", 6)
    given = case(layout, ridge=0.05, ratios=True, weights=True)
    spy = Spy(given.problem)
    solution = solver.solve(given.problem, passes=3)
    parts = 1 if isinstance(solver, TD) else 2
    expected, seen = TailMean(parts, 5), []
    for kind, order in spy.events:
        seen.append((kind, order))
        expected.add(len(order), spy_end(seen, given.oracle, solution.solver)[:parts])
    assert max(len(order) for _, order in seen) == 6
    mean = expected.best(Distances(given.problem).image)
    np.testing.assert_allclose([solution.theta, solution.omega][:parts], mean, rtol=0, atol=1e-11)
    assert solution.setup_visits == 37 + 37 * 3  # for the window; and b, diag(C) and the closing residual


def spy_end(events, oracle, solver):
    oracle.direction = solver.direction
    return oracle.plain(events, (solver.step_theta, solver.step_omega))


def test_an_epoch_counts_by_its_batch():
    """However many inner steps chance gives it: the mean over epochs is nearer to the solution than their last."""
    given = case("dense", n=4000, dim=6, noise=1.0, discounts=(0.2, 0.5))
    wanted = given.oracle.mspbe(np.zeros(6))
    errors = {
        average: np.mean(
            [
                given.oracle.mspbe(
                    SCSG(direction="td", batch_fraction=0.01, average=average)
                    .solve(given.problem, passes=4, seed=s)
                    .theta
                )
                for s in range(8)
            ]
        )
        for average in (False, True)
    }
    assert errors[True] < 0.3 * errors[False] < 0.1 * wanted


# ---- rows as they lie, and steps that decay


@pytest.mark.parametrize("layout", ["dense", "indexed", "sparse"])
def test_rows_in_the_order_of_the_log(layout):
    problem = case(layout, n=37).problem
    spy = Spy(problem)
    TD(step_theta=0.01, sampling="log").solve(problem, passes=2.5)
    visited = np.concatenate([order for _, order in spy.events])
    np.testing.assert_array_equal(visited, np.arange(round(2.5 * 37)) % 37)
    problem = case(layout, n=37).problem
    spy = Spy(problem)
    SCSG(step_theta=0.01, step_omega=0.01, batch_fraction=0.3, sampling="log").solve(problem, epochs=7)
    means = np.concatenate([order for kind, order in spy.events if kind == "mean"])
    np.testing.assert_array_equal(means, np.arange(len(means)) % 37)
    steps = np.concatenate([order for kind, order in spy.events if kind == "steps"])
    assert (np.diff(steps) != 1).any()


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_steps_that_decay(layout, monkeypatch):
    """Chunk by chunk the oracle takes the step of that moment."""
    given = case(layout, ridge=0.05, ratios=True)
    monkeypatch.setattr(driver, "SPACING", 4)
    spy = Spy(given.problem)
    solver = TD(step_theta=0.08, sampling="log", decay=0.5)
    solution = solver.solve(given.problem, passes=3)
    z, visits, factor, factors = np.zeros((2, 5)), 0, 1.0, set()
    given.oracle.direction = "td"
    for _, order in spy.events:
        for t in order:
            z = z - factor * 0.08 * given.oracle.field(t, *z)
        visits += len(order)
        wanted = (visits / (driver.AT_FULL * 37)) ** -0.5
        factor = wanted if wanted < driver.SHRUNK * factor else factor
        factors.add(factor)
    np.testing.assert_allclose(solution.theta, z[0], rtol=0, atol=1e-11)
    assert len(factors) > 4 and min(factors) < 0.3
    assert solution.solver == solver or solution.solver.step_theta == 0.08


def test_refused_settings():
    for make in (TD, SCSG):
        with pytest.raises(InputError, match='sampling must be "random" or "log", not \'sorted\''):
            make(sampling="sorted")
    for make in (SVRG, SAGA, SCSG, BatchingSVRG):
        with pytest.raises(InputError, match='direction must be "saddle" or "td", not \'tdc\''):
            make(direction="tdc")
    with pytest.raises(InputError, match="decay must be"):
        TD(decay=-0.1)
    with pytest.raises(InputError, match='"theory" needs direction="saddle"'):
        SVRG(direction="td", step_theta="theory")


# ---- steps that were chosen and prove too large


@pytest.mark.parametrize(
    "solver", [TD(), GTD2(), SVRG(), SVRG(direction="td"), SAGA(), SAGA(direction="td"), SCSG(batch_fraction=0.5)]
)
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_a_run_that_grows_goes_back_with_smaller_steps(solver, layout, monkeypatch):
    """Steps that are 50 times what is safe are made smaller until the run holds."""
    look = Maxima.of
    monkeypatch.setattr(Maxima, "of", lambda problem: Maxima(*(0.02 * x for x in vars_of(look(problem)))))
    given = case(layout, n=300, ridge=0.05, discounts=(0.2, 0.5))
    solution = solver.solve(given.problem, passes=200)
    assert solution.status is Status.BUDGET_SPENT and solution.row_visits == 200 * 300
    assert "the run grew, and went back to its best point with smaller steps" in solution.message
    if isinstance(solver, SVRG | SAGA):
        assert solution.relative_residual < 0.01
    primal = solver.direction == "td"
    safe = 0.5 / vars_of(look(given.problem))[2] if primal else 0.3 / vars_of(look(given.problem))[1]
    assert solution.solver.step_theta < 50 * safe / 3


def vars_of(maxima):
    return maxima.phi, maxima.delta, maxima.both


def test_given_steps_are_never_changed():
    given = case("dense", n=300)
    solution = SVRG(step_theta=1e3, step_omega=1e3).solve(given.problem, passes=20)
    assert solution.status is Status.DIVERGED and solution.solver.step_theta == 1e3


def test_td_off_policy_says_that_no_step_will_do():
    """Two states of values theta and 2 theta, visited alike, both of which lead to the second: A is below 0."""
    states = np.arange(1000) % 2
    problem = Problem.from_table(np.array([[1.0], [2.0]]), states, np.ones(1000), np.ones(1000, int), discount=0.99)
    for solver in (SVRG(direction="td"), SAGA(direction="td"), TD()):
        solution = solver.solve(problem, passes=1000)
        assert solution.status is Status.DIVERGED and np.isfinite(solution.theta).all()
        assert "Off-policy TD may diverge whatever its step" in solution.message
    assert SVRG().solve(problem, passes=1000, tolerance=1e-6).status is Status.CONVERGED


# ---- circles


def test_circles_around_the_solution_are_no_stall():
    """The residual falls low by chance on its way around, and rises again for many passes."""
    rng = np.random.default_rng(0)
    sizes = np.logspace(0, -1.5, 10)
    phi, next_phi = rng.normal(size=(2, 3000, 10)) * sizes
    rewards = phi @ (1 / sizes) + 0.1 * rng.normal(size=3000)
    problem = Problem.from_arrays(phi, rewards, next_phi, discount=0.9)
    method = SVRG(scale=False)
    trace = method.solve(problem, passes=300, record=2.0).trace
    lowest = np.minimum.accumulate(trace.mspbe)
    assert np.diff(np.flatnonzero(np.diff(lowest))).max() * 2 > 20  # passes without a new best
    solution = method.solve(problem, passes=1000, tolerance=1e-6)
    assert solution.status is Status.CONVERGED


def test_stalls_are_seen_and_say_why():
    problem = Problem.from_transitions(MountainCar().collect(5000), discount=0.95)
    noisy = GTD2().solve(problem, passes=1000, tolerance=1e-6)
    assert noisy.status is Status.STALLED and noisy.passes < 500
    assert "noise of single rows" in noisy.message
    rng = np.random.default_rng(0)
    states = rng.integers(0, 5, 2000)
    ring = Problem.from_table(np.eye(5), states, 1 + rng.normal(size=2000), (states + 1) % 5, discount=1.0)
    unmet = SVRG().solve(ring, passes=1000, tolerance=1e-6)
    assert unmet.status is Status.STALLED and unmet.passes < 500
    assert "whether the equations can be met" in unmet.message and "small ridge" in unmet.message


# ---- columns scaled alike


@pytest.mark.parametrize("layout", ["dense", "indexed", "sparse"])
@pytest.mark.parametrize(
    "solver", [SVRG(), SAGA(), SVRG(direction="td"), BatchingSVRG(initial_fraction=0.5, growth=2.0)]
)
def test_the_units_of_a_column_change_its_weight_and_nothing_else(solver, layout):
    given = case(layout, n=400, dim=4, n_states=9, discounts=(0.2, 0.5), ratios=True, weights=True)
    plain = solver.solve(given.problem, passes=2000, tolerance=1e-9)
    assert plain.status is Status.CONVERGED
    for unit in (1e6, 1e-6):
        units = np.array([1.0, unit, 1.0, 1.0])
        problem = Problem(given.problem.rows.scaled(units))
        seen = []
        solution = solver.solve(
            problem, passes=2000, tolerance=1e-9, callback=lambda p, seen=seen: seen.append(p.theta)
        )
        assert solution.status is Status.CONVERGED and solution.solver.scale is True
        np.testing.assert_allclose(solution.theta * units, plain.theta, rtol=1e-6)
        np.testing.assert_allclose(seen[-1], solution.theta, rtol=1e-5)
        assert solution.passes < 3 * plain.passes
        assert problem.relative_residual(solution.theta) <= 1e-9 * (1 + 1e-6)
        again = solution.solver.solve(problem, passes=solution.passes)
        np.testing.assert_allclose(again.theta, solution.theta, rtol=1e-12)


def test_scaling_is_a_warm_start_away_from_the_plain_run():
    """Units that are powers of two lose nothing: with steps given, the run on scaled columns is that of the oracle."""
    given = case("dense", n=37, dim=4)
    units = scaling.units(SVRG(scale=True), given.problem)
    assert (np.log2(units) % 1 == 0).all()
    phi, ahead = given.oracle.phi * units, (given.oracle.phi - given.oracle.delta) * units
    oracle = Oracle(phi, ahead, given.oracle.r, np.ones(37))
    start = np.ones((2, 4))
    spied = Problem.from_arrays(phi, given.oracle.r, ahead, discount=1.0)
    spy = Spy(spied)
    method = SVRG(step_theta=0.05, step_omega=0.07)
    method.solve(spied, epochs=3, theta=start[0] / units, omega=start[1] / units)
    expected = spy.play(oracle, method, start / units) * units
    found = SVRG(step_theta=0.05, step_omega=0.07, scale=True).solve(
        given.problem, epochs=3, theta=start[0], omega=start[1]
    )
    np.testing.assert_allclose([found.theta, found.omega], expected, rtol=1e-10)


def test_a_ridge_is_in_the_units_that_were_given():
    given = case("dense", ridge=0.1)
    with pytest.raises(InputError, match="scale=True and a ridge do not go together"):
        SVRG(scale=True).solve(given.problem)
    uneven = Problem(given.problem.rows.scaled(np.array([1.0, 1e4, 1.0, 1.0, 1.0])), ridge=0.1)
    solution = SVRG().solve(uneven, passes=20)
    assert solution.solver.scale is None
    assert "Feature 1 is " in solution.message and "times as large as the smallest" in solution.message
    assert LSTD().solve(uneven).status is Status.CONVERGED
