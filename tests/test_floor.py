"""The statistical floor of the MSPBE against its definition, against fresh logs, and under what must not change it."""

import numpy as np
import pytest
import scipy.sparse as sp

from battery import LAYOUTS, case
from valuate import LSTD, Problem
from valuate import floor as floors
from valuate.environments import RandomMDP
from valuate.errors import InputError
from valuate.floor import floor


def by_rows(oracle, theta, inverse):
    """1/2 sum x_t' M x_t / n^2 with the contribution x_t of every row to the residual."""
    x = np.einsum("tij,j->ti", oracle.data_A, theta) - oracle.data_b
    return 0.5 * np.einsum("ti,ij,tj->", x, inverse, x) / oracle.n**2


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kinds", [{}, {"ratios": True, "weights": True}, {"ridge": 0.1, "weights": True}])
def test_the_definition_row_by_row(layout, kinds):
    given, theta = case(layout, **kinds), np.linspace(-1, 1, 5)
    found = floor(given.problem, theta)
    assert (found.error, found.sampled, found.norm) == (0.0, False, "C^-1")
    assert found.value == pytest.approx(by_rows(given.oracle, theta, np.linalg.pinv(given.oracle.C)), rel=1e-12)
    rough = floor(given.problem, theta, exact=False)
    assert rough.norm == "diag(C)^-1"
    assert rough.value == pytest.approx(by_rows(given.oracle, theta, np.diag(1 / np.diag(given.oracle.C))), rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_single_precision_rows(dtype):
    given, theta = case("dense", dtype=dtype, ratios=True), np.linspace(-1, 1, 5)
    expected = by_rows(given.oracle, theta, np.linalg.inv(given.oracle.C))
    assert floor(given.problem, theta).value == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("off_policy", [False, True])
def test_fresh_logs_have_it_on_average(off_policy):
    """Independent rows: at the fixed point of an endless log, the mean MSPBE of many logs is the mean of their floors.

    With 1,000 logs: 5.06e-4 measured and 5.00e-4 predicted on-policy, 6.37e-4 and 6.29e-4 off-policy, each with a
    standard error of 1.3%.
    """
    process = RandomMDP(40, 3, 12, 0.9, seed=3)
    policy = process.random_policy(seed=1) if off_policy else process.behaviour
    share, chance = process.stationary_distribution(), process.behaviour
    theta = process.fixed_point(target=policy)
    rng = np.random.default_rng(5)
    n, measured, predicted = 1000, [], []
    for _ in range(300):
        states = rng.choice(40, size=n, p=share)
        actions = rng.integers(0, 3, n)
        after, rewards, _ = process.step(states, actions, rng)
        ratios = policy[states, actions] / chance[states, actions]
        problem = Problem.from_table(process.table, states, rewards, after, discount=0.9, ratios=ratios)
        measured.append(problem.mspbe(theta))
        predicted.append(floor(problem, theta).value)
    error = np.std(measured, ddof=1) / np.sqrt(len(measured))
    assert abs(np.mean(measured) - np.mean(predicted)) < 4 * error
    assert 4 * error < 0.1 * np.mean(predicted) and np.std(predicted) < 0.1 * np.mean(predicted)
    # LSTD fits its log: its errors are smaller than those of theta, by about dim / n.
    assert floor(problem, LSTD().solve(problem).theta).value == pytest.approx(predicted[-1], rel=0.1)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_units_do_not_matter(layout):
    given, theta = case(layout, ratios=True), np.linspace(-1, 1, 5)
    units = np.array([1e-6, 1.0, 30.0, 1e5, 0.2])
    o = given.oracle
    next_phi = np.divide(
        o.phi - o.delta, o.discounts[:, None], where=o.discounts[:, None] > 0, out=np.zeros_like(o.phi)
    )
    scaled = Problem.from_arrays(o.phi * units, o.r, next_phi * units, discount=o.discounts, ratios=o.rho)
    for exact in (True, False):
        first, second = floor(given.problem, theta, exact=exact), floor(scaled, theta / units, exact=exact)
        assert second.value == pytest.approx(first.value, rel=1e-9)


def test_weights_count_rows_as_one_draw_each():
    """Doubling all weights changes nothing; a weight of 2 is one draw that counts twice, not two draws."""
    rng = np.random.default_rng(0)
    phi, r, weights = rng.normal(size=(50, 3)), rng.normal(size=50), rng.integers(1, 4, 50)
    theta = np.ones(3)

    def of(rows, **more):
        return floor(Problem.from_arrays(phi[rows], r[rows], 0 * phi[rows], **more), theta).value

    all_rows = np.arange(50)
    weighted = of(all_rows, weights=weights)
    assert of(all_rows, weights=2 * weights) == pytest.approx(weighted, rel=1e-12)
    assert of(all_rows, weights=np.full(50, 7)) == pytest.approx(of(all_rows), rel=1e-12)
    assert weighted > 1.2 * of(np.repeat(all_rows, weights))
    with_zero = np.where(all_rows < 40, 1.0, 0.0)
    assert of(all_rows, weights=with_zero) == pytest.approx(of(all_rows[:40]), rel=1e-12)


def test_a_sample_is_within_its_error(monkeypatch):
    rng = np.random.default_rng(1)
    n, dim = 6000, 20
    phi = rng.normal(size=(n, dim)) * rng.exponential(size=(n, 1))
    ratios = rng.pareto(1.5, n)  # few rows carry most of the sum
    problem = Problem.from_arrays(phi, rng.normal(size=n), np.roll(phi, 3, axis=0), discount=0.5, ratios=ratios)
    theta = np.zeros(dim)
    whole = floor(problem, theta)
    monkeypatch.setattr(floors, "WORK", 1.0)
    parts = [floor(problem, theta, seed=seed) for seed in range(40)]
    assert all(part.sampled and part.looked_at == floors.LEAST for part in parts)
    z = np.array([(part.value - whole.value) / part.error for part in parts])
    assert 0.2 < np.sqrt((z**2).mean()) < 1.5 and abs(z).max() < 4  # equal pieces do better than plain draws
    assert parts[0] == floor(problem, theta, seed=0)
    assert all(part.error < 0.2 * part.value for part in parts)


def test_extremes():
    phi = np.eye(3)[[0, 1, 2, 0]]
    silent = Problem.from_arrays(phi, np.zeros(4), phi)
    assert floor(silent, np.zeros(3)).value == 0.0 == floor(silent, np.zeros(3), exact=False).value
    one = Problem.from_arrays([[2.0]], [3.0], [[1.0]], discount=0.5)
    assert floor(one, [0.0]).value == pytest.approx(0.5 * 9) and one.mspbe([0.0]) == pytest.approx(0.5 * 9)
    ignored = Problem.from_arrays(phi, np.ones(4), phi, ratios=np.zeros(4))
    assert floor(ignored, np.ones(3)).value == 0.0
    with pytest.raises(InputError, match="theta has 2 entries"):
        floor(one, [0.0, 1.0])


def test_wide_sparse_rows_need_no_matrix():
    rng = np.random.default_rng(2)
    n, dim = 2000, 50_000
    phi = sp.random_array((n, dim), density=1e-3, rng=rng, format="csr")
    problem = Problem.from_arrays(phi, rng.normal(size=n), phi[rng.permutation(n)])
    theta = rng.normal(size=dim)
    error = np.asarray(
        phi @ theta - problem.rows.records["discount"] * problem.rows.times(theta)[problem.rows.records["next"]]
    )
    error -= problem.rows.records["reward"]
    weight = np.asarray(phi.power(2).mean(axis=0)).ravel()
    lengths = phi.power(2) @ np.divide(1.0, weight, out=np.zeros(dim), where=weight > 0)
    expected = 0.5 * float(error**2 @ lengths) / n**2
    assert floor(problem, theta, exact=False).value == pytest.approx(expected, rel=1e-10)
