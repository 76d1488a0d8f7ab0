"""The battery on every solver and layout, and what each solver promises by itself."""

import dataclasses
import time

import numpy as np
import pytest
import scipy.sparse as sp

from battery import CHECKS, LAYOUTS, N, Spy, case, noisy
from valuate import (
    GCR,
    GMRES,
    GTD,
    GTD2,
    LSMR,
    LSTD,
    SAGA,
    SCSG,
    SVRG,
    TD,
    TDC,
    BatchingSVRG,
    BiCGSTAB,
    Problem,
    Status,
)
from valuate.errors import InputError, InputTypeError, SolverError
from valuate.solvers import Stochastic

STEPS = {"step_theta": 0.04, "step_omega": 0.06}
SOLVERS = {
    "gtd2": GTD2(**STEPS),
    "svrg": SVRG(**STEPS, steps_per_row=0.9),
    "saga": SAGA(**STEPS),
    "batching": BatchingSVRG(**STEPS, initial_fraction=0.4, growth=1.5),
    "theory": BatchingSVRG(**STEPS, variance=1.0, rho=0.5, steps_per_row=0.8),
    "scsg": SCSG(**STEPS, batch_fraction=0.3),
    "td": TD(**STEPS),
    "tdc": TDC(**STEPS, decay=0.1),
    "gtd": GTD(**STEPS),
    "td-svrg": SVRG(**STEPS, direction="td"),
    "td-saga": SAGA(**STEPS, direction="td"),
    "td-scsg": SCSG(**STEPS, direction="td", batch_fraction=0.2, growth=1.3, average=True, sampling="log"),
    "lstd": LSTD(),
    "gmres": GMRES(),
    "bicgstab": BiCGSTAB(),
    "lsmr": LSMR(),
    "gcr": GCR(inner=SVRG(**STEPS, direction="td")),
}
STOCHASTIC = {name: solver for name, solver in SOLVERS.items() if isinstance(solver, Stochastic)}
VANISHING = ("svrg", "saga", "batching", "theory", "td-svrg", "td-saga")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("check", CHECKS, ids=[check.__name__.removeprefix("check_") for check in CHECKS])
def test_battery(check, solver, layout):
    check(solver, layout)


# ---- budgets in epochs


@pytest.mark.parametrize("layout", ["dense", "indexed", "sparse"])
@pytest.mark.parametrize("epochs", [0, 1, 4])
@pytest.mark.parametrize("name", STOCHASTIC)
def test_epochs_cost_what_their_plan_says(name, epochs, layout):
    problem = noisy(layout).problem
    spy = Spy(problem)
    solution = STOCHASTIC[name].solve(problem, epochs=epochs)
    floored = [60, 90, 135, 151]  # .4 * 151, then times 1.5
    theory = [1, 2, 4, 8]  # 151 / (1 + 151 * .5^m), rounded up
    grown = [30, 39, 50, 65]  # .2 * 151, then times 1.3
    means = dict.fromkeys(("gtd2", "td", "tdc", "gtd"), []) | {
        "saga": [N] * min(1, epochs),
        "td-saga": [N] * min(1, epochs),
        "td-svrg": [N] * epochs,
        "td-scsg": grown[:epochs],
        "svrg": [N] * epochs,
        "batching": floored[:epochs],
        "theory": theory[:epochs],
        "scsg": [int(0.3 * N)] * epochs,
    }
    assert spy.means == means[name]
    steps = {"svrg": round(0.9 * N), "theory": round(0.8 * N)}.get(name, N) * epochs
    if "scsg" not in name:
        assert sum(spy.steps) == steps
    assert solution.row_visits == sum(spy.means) + sum(spy.steps)
    assert solution.epochs == epochs and solution.status is Status.BUDGET_SPENT


@pytest.mark.parametrize("name", STOCHASTIC)
def test_batches_are_drawn_without_replacement_and_steps_with(name):
    problem = noisy("dense").problem
    spy = Spy(problem)
    STOCHASTIC[name].solve(problem, passes=20)
    seen = np.zeros(N)
    for kind, order in spy.events:
        if kind == "mean":
            assert order is None or (len(np.unique(order)) == len(order) and order.min() >= 0 and order.max() < N)
        else:
            np.add.at(seen, order, 1)
    assert seen.min() >= 0 and seen.max() > np.median(seen)
    mean = seen.sum() / N
    assert ((seen - mean) ** 2 / mean).sum() < 225.0  # the 1 - 1e-4 quantile of chi-square with 150 degrees
    assert ((seen - mean) ** 2 / mean).sum() > 93.0  # the 1e-4 quantile: a shuffled order would be far below


def test_without_a_budget_there_are_100_passes():
    assert GTD2(**STEPS).solve(noisy("dense").problem).row_visits == 100 * N
    assert LSTD().solve(noisy("dense").problem).row_visits == N


@pytest.mark.parametrize("name", STOCHASTIC)
def test_an_epoch_that_was_cut_is_not_a_finished_one(name):
    """``epochs`` and the trace's column count finished epochs."""
    whole = STOCHASTIC[name].solve(noisy("dense").problem, epochs=3)
    cut = STOCHASTIC[name].solve(noisy("dense").problem, passes=(whole.row_visits - 2) / N, record="epoch")
    assert cut.row_visits == whole.row_visits - 2
    assert cut.epochs == 2 and cut.trace.epoch[-1] == 2
    full = STOCHASTIC[name].solve(noisy("dense").problem, passes=whole.row_visits / N)
    assert full.epochs == 3
    np.testing.assert_array_equal(full.theta, whole.theta)


def test_the_clock_stands_still_while_a_point_is_measured_or_shown():
    solver, problem = GTD2(**STEPS), noisy("dense").problem
    solver.solve(problem, epochs=1, record="epoch")
    mspbe = problem.mspbe
    problem.mspbe = lambda theta: time.sleep(0.1) or mspbe(theta)
    recorded = solver.solve(problem, epochs=4, record="epoch")
    shown = solver.solve(problem, epochs=4, callback=lambda progress: time.sleep(0.1))
    assert len(recorded.trace) == 5 and recorded.trace.seconds[-1] <= recorded.seconds < 0.2
    assert shown.seconds < 0.2


# ---- how runs end


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ["gtd2", "scsg"])
def test_noise_that_stays_is_a_stall(name, layout):
    given = noisy(layout)
    seen = []
    solution = STOCHASTIC[name].solve(given.problem, passes=3000, tolerance=1e-12, callback=seen.append)
    assert solution.status is Status.STALLED and solution.row_visits < 3000 * N
    assert "step_theta=0.04" in solution.message and "1e-12" in solution.message
    residuals = [given.oracle.relative_residual(progress.theta) for progress in seen]
    found = given.oracle.relative_residual(solution.theta)
    assert found == pytest.approx(solution.relative_residual, rel=1e-6)
    assert found < 0.5 and found < np.median(residuals)
    with pytest.raises(SolverError, match="Stalled") as caught:
        solution.require()
    assert caught.value.solution is solution


@pytest.mark.parametrize("name", VANISHING)
def test_noise_that_vanishes_is_none(name):
    solution = SOLVERS[name].solve(noisy("dense").problem, passes=3000, tolerance=1e-12)
    assert solution.status is Status.CONVERGED and solution.relative_residual <= 1e-12


@pytest.mark.parametrize("name", STOCHASTIC)
def test_diverging_after_a_good_start_returns_the_best_point_on_the_way(name):
    """Steps just beyond what the rows bear: the residual falls at first, and grows from there."""
    given = case("dense", n=N, dim=2, seed=3)
    phi, delta = given.oracle.phi.copy(), given.oracle.delta.copy()
    phi[:, 1], delta[:, 1] = 0, 0
    # One row in ten thousand steps would be enough to blow up; most rows only pull towards the answer.
    phi[-1], delta[-1] = [0.0, 40.0], [0.0, 40.0]
    rewards = phi @ [1.0, 1.0]
    problem = Problem.from_arrays(phi, rewards, phi - delta, discount=1.0)
    seen = []
    solver = dataclasses.replace(STOCHASTIC[name], step_theta=0.3, step_omega=0.3)
    start = np.array([0.0, 1.0 + 1e-9])
    solution = solver.solve(problem, passes=200, theta=start, record=0.05, callback=seen.append)
    assert solution.status is Status.DIVERGED
    best = int(np.argmin(solution.trace.mspbe))
    points = [progress for progress in seen if progress.mspbe is not None]
    assert best > 0
    np.testing.assert_array_equal(solution.theta, points[best].theta)
    np.testing.assert_array_equal(solution.omega, points[best].omega)


@pytest.mark.parametrize("layout", ["dense", "indexed"])
@pytest.mark.parametrize("name", STOCHASTIC)
def test_single_precision_diverges_as_well(name, layout):
    given = case(layout, n=N, dtype=np.float32)
    wild = dataclasses.replace(STOCHASTIC[name], step_theta=1e3, step_omega=1e3)
    solution = wild.solve(given.problem, passes=40)
    assert solution.status is Status.DIVERGED and np.isfinite(solution.theta).all()


def test_divergence_is_seen_within_a_chunk():
    """An epoch of millions of steps is not taken to its end."""
    rng = np.random.default_rng(0)
    problem = Problem.from_arrays(rng.normal(size=(100, 3)), np.ones(100), np.zeros((100, 3)))
    solution = SVRG(step_theta=1e3, step_omega=1e3, steps_per_row=1e5).solve(problem, epochs=1)
    assert solution.status is Status.DIVERGED and solution.row_visits <= 100 + (1 << 15)


def test_lstd_on_equations_that_do_not_determine_theta():
    """A feature twice: any split of its weight will do, the smallest is taken and the rank is told."""
    given = case("dense", n=N, dim=3)
    phi, delta = (np.column_stack([m, m[:, 0]]) for m in (given.oracle.phi, given.oracle.delta))
    problem = Problem.from_arrays(phi, given.oracle.r, phi - delta, discount=1.0)
    oracle = type(given.oracle)(phi, phi - delta, given.oracle.r, np.ones(N))
    solution = LSTD().solve(problem)
    assert solution.status is Status.CONVERGED and "rank 3 of 4" in solution.message
    np.testing.assert_allclose(solution.theta, oracle.smallest_minimiser(), rtol=1e-8, atol=1e-9)
    assert solution.theta[0] == pytest.approx(solution.theta[3], rel=1e-9)
    assert oracle.relative_residual(solution.theta) < 1e-9


def test_lstd_on_equations_that_contradict_each_other():
    """Two states that lead to each other for ever, without discount, and pay: no value is right."""
    table = np.eye(3)
    states, followers, rewards = [0, 1, 2, 2], [1, 0, 2, 0], [1.0, 2.0, 0.0, 1.0]
    problem = Problem.from_table(table, states, rewards, followers, discount=1.0)
    oracle = type(case("dense").oracle)(table[states], table[followers], rewards, np.ones(4))
    solution = LSTD().solve(problem)
    assert solution.status is Status.SINGULAR and "rank 2 of 3" in solution.message
    np.testing.assert_allclose(solution.theta, oracle.smallest_minimiser(), rtol=1e-8, atol=1e-10)
    with pytest.raises(SolverError, match="rank 2 of 3"):
        solution.require()


def test_lstd_that_misses_a_tolerance_does_not_say_that_it_met_it():
    """A system too close to singular for the digits that are asked for."""
    rng = np.random.default_rng(5)
    left, right = np.linalg.qr(rng.normal(size=(8, 8)))[0], np.linalg.qr(rng.normal(size=(8, 8)))[0]
    table = left @ np.diag(np.logspace(0, -11, 8)) @ right
    problem = Problem.from_table(table, np.arange(8), rng.normal(size=8), np.roll(np.arange(8), 1), discount=0.9)
    for tolerance in (1e-6, 1e-16):
        solution = LSTD().solve(problem, tolerance=tolerance)
        assert (solution.status is Status.CONVERGED) == (solution.relative_residual <= tolerance)


# ---- arguments of the solvers


@pytest.mark.parametrize("name", ["step_theta", "step_omega"])
@pytest.mark.parametrize("kind", [GTD2, SVRG, SAGA, BatchingSVRG, SCSG])
def test_steps_are_positive_numbers_or_automatic(kind, name):
    for bad in (0, 0.0, -1e-3, np.nan, np.inf, "big", "", "0.1"):
        with pytest.raises(InputError, match=name):
            kind(**{name: bad})
    for bad in (None, True, [0.1], 1j, np.ones(2)):
        with pytest.raises(InputTypeError, match=name):
            kind(**{name: bad})
    assert getattr(kind(), name) == "auto"
    assert kind(**{name: 1}) == kind(**{name: 1.0}) == kind(**{name: np.float32(1)}) == kind(**{name: np.array(1.0)})
    assert kind(**{name: 0.1}) != kind(**{name: 0.2}) != kind()


@pytest.mark.parametrize(
    ("kind", "name", "bad"),
    [
        (SVRG, "steps_per_row", (0, -1, np.nan, np.inf)),
        (BatchingSVRG, "steps_per_row", (0, -1)),
        (BatchingSVRG, "initial_fraction", (0, 1.1, -0.1, np.nan)),
        (BatchingSVRG, "growth", (0.99, 0, np.nan, np.inf)),
        (BatchingSVRG, "variance", (0, -1, np.nan)),
        (BatchingSVRG, "alpha", (0, -1)),
        (BatchingSVRG, "rho", (0, 1, 1.5)),
        (SCSG, "batch_fraction", (0, 1.1, -0.1, np.nan)),
    ],
)
def test_numbers_of_a_plan_are_checked(kind, name, bad):
    for value in bad:
        with pytest.raises(InputError, match=name):
            kind(**{name: value})
    with pytest.raises(InputTypeError, match=name):
        kind(**{name: "0.5"})


def test_different_methods_are_never_equal():
    solvers = [kind(**STEPS) for kind in (GTD2, SVRG, SAGA, BatchingSVRG, SCSG)]
    assert len(set(solvers)) == 5
    assert all(isinstance(solver, Stochastic) for solver in solvers)


@pytest.mark.parametrize("n", [1, 2, 9, 10, 11])
@pytest.mark.parametrize("kind", [BatchingSVRG, SCSG])
def test_a_batch_has_at_least_one_row(kind, n):
    given = case("dense", n=n, dim=2)
    spy = Spy(given.problem)
    kind(**STEPS).solve(given.problem, epochs=3)
    assert len(spy.means) == 3 and spy.means[0] == max(1, n // 10) and min(spy.means) >= 1


@pytest.mark.parametrize("name", SOLVERS)
def test_one_row_and_one_feature(name):
    problem = Problem.from_arrays([[2.0]], [3.0], [[1.0]], discount=0.5)
    solution = SOLVERS[name].solve(problem, passes=2000, tolerance=1e-9).require()
    assert solution.theta == pytest.approx([2.0], rel=1e-8)


@pytest.mark.parametrize("name", SOLVERS)
def test_every_row_terminated(name):
    """Then it is regression."""
    rng = np.random.default_rng(0)
    phi, theta = rng.normal(size=(60, 3)) / 2, np.array([1.0, -2.0, 0.5])
    problem = Problem.from_arrays(phi, phi @ theta, np.full((60, 3), np.nan), terminated=np.ones(60, bool))
    solution = SOLVERS[name].solve(problem, passes=2000, tolerance=1e-6).require()
    np.testing.assert_allclose(solution.theta, theta, atol=1e-4)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
@pytest.mark.parametrize("name", SOLVERS)
def test_a_feature_that_is_always_zero(name, layout):
    """Its weight stays where it starts (0), and nothing else notices."""
    given = case("dense", n=N, dim=3, noise=0.0)
    wide = np.insert(given.oracle.phi, 1, 0, axis=1), np.insert(given.oracle.phi - given.oracle.delta, 1, 0, axis=1)
    phi, next_phi = map(sp.csr_array, wide) if layout == "sparse" else wide
    problem = Problem.from_arrays(phi, given.oracle.r, next_phi, discount=1.0)
    solution = SOLVERS[name].solve(problem, passes=400)
    assert solution.theta[1] == 0 and np.isfinite(solution.theta).all()
    if name not in STOCHASTIC or name in VANISHING:
        np.testing.assert_allclose(np.delete(solution.theta, 1), given.oracle.solve(), rtol=1e-3, atol=1e-3)
