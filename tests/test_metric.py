"""The norm of the MSPBE: right for singular and badly conditioned C, in any units, or a warning that it is not."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from valuate import LSTD, Problem, Status, metric
from valuate.errors import PrecisionWarning

LONG = np.longdouble


def graded(rng, n, dim, condition):
    """Rows with C of about the given condition, however the columns are scaled."""
    left, right = (np.linalg.qr(rng.normal(size=(size, dim)))[0] for size in (n, dim))
    return np.sqrt(n) * (left * np.sqrt(condition) ** -np.linspace(0, 1, dim)) @ right.T


def exact_mspbe(phi, next_phi, rewards, discount, theta, *, ratios=None, weights=None, ridge=0.0, columns=None):
    """1/2 of the squared length of root(w) rho (r - delta theta) projected on the rows, by Householder in longdouble.

    ``columns`` are independent ones that span the others.
    """
    phi, next_phi, theta = (np.asarray(a, dtype=LONG) for a in (phi, next_phi, theta))
    n, dim = phi.shape
    weights = np.ones(n, LONG) if weights is None else np.asarray(weights, dtype=LONG)
    root = np.sqrt(weights / weights.sum())
    ratios = np.ones(n) if ratios is None else ratios
    target = root * ratios * (rewards - (phi - LONG(discount) * next_phi) @ theta)
    x = np.vstack([root[:, None] * phi, np.sqrt(LONG(ridge)) * np.eye(dim, dtype=LONG)])
    target = np.concatenate([target, -np.sqrt(LONG(ridge)) * theta])
    x = x[:, range(dim) if columns is None else columns].copy()
    x /= np.sqrt((x**2).sum(axis=0))
    total = LONG(0)
    for j in range(x.shape[1]):
        mirror = x[j:, j].copy()
        mirror[0] += np.copysign(np.sqrt((mirror**2).sum()), mirror[0])
        share = 2 / (mirror**2).sum()
        x[j:, j:] -= np.outer(share * mirror, mirror @ x[j:, j:])
        target[j:] -= share * (mirror @ target[j:]) * mirror
        total += target[j] ** 2
    return float(total / 2)


def drawn(seed, n=300, dim=10, condition=1e2):
    """Rows, scalars and a theta at which nothing is small."""
    rng = np.random.default_rng(seed)
    phi = graded(rng, n, dim, condition)
    scalars = {"ratios": rng.choice([0.2, 1.0, 3.0], n), "weights": rng.choice([0.0, 1.0, 2.5], n)}
    return phi, rng.normal(size=(n, dim)) / np.sqrt(dim), rng.normal(size=n), rng.normal(size=dim), scalars


# ---- from C, or from the rows


@pytest.mark.parametrize("condition", [1e0, 1e4, 1e7, 1e9, 1e12, 1e14])
@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_mspbe_of_badly_conditioned_features(make, condition):
    for seed in range(3):
        phi, next_phi, rewards, theta, scalars = drawn(seed, condition=condition)
        problem = Problem.from_arrays(make(phi), rewards, make(next_phi), discount=0.9, **scalars)
        assert problem.metric().rank == 10
        wanted = exact_mspbe(phi, next_phi, rewards, 0.9, theta, **scalars)
        assert problem.mspbe(theta) == pytest.approx(wanted, rel=1e-8)
        at_zero = exact_mspbe(phi, next_phi, rewards, 0.9, np.zeros(10), **scalars)
        assert problem.relative_residual(theta) == pytest.approx(np.sqrt(wanted / at_zero), rel=1e-8)


def test_cholesky_of_the_matrix_would_not_do():
    """What the rows are there for: with a condition of 1e14 few digits are left of a solve with C."""
    errors = []
    for seed in range(5):
        phi, next_phi, rewards, theta, _ = drawn(seed, condition=1e14)
        problem = Problem.from_arrays(phi, rewards, next_phi, discount=0.9)
        g = problem.residual(theta)
        wanted = exact_mspbe(phi, next_phi, rewards, 0.9, theta)
        errors.append(abs(0.5 * g @ np.linalg.solve(problem.moments().C, g) / wanted - 1))
        assert metric.from_matrix(problem.moments().C) is None
    assert max(errors) > 1e-5


@pytest.mark.parametrize("condition", [1e2, 1e10])
@pytest.mark.parametrize("how", ["twice", "sum", "zero", "one-hot and constant", "fewer rows than features"])
def test_mspbe_of_features_that_depend_on_each_other(how, condition):
    phi, next_phi, rewards, theta, scalars = drawn(4, condition=condition)
    columns = range(10)
    if how == "twice":
        phi, next_phi = (np.hstack([a, 2 * a[:, :4]]) for a in (phi, next_phi))
    elif how == "sum":
        phi = np.round(phi * 2**20) / 2**20  # sums of these are exact
        phi, next_phi = (np.hstack([a, a[:, [0]] + a[:, [1]]]) for a in (phi, next_phi))
    elif how == "zero":
        phi, next_phi = (np.insert(a, 3, values, axis=1) for a, values in ((phi, 0.0), (next_phi, 1.0)))
        columns = [j for j in range(11) if j != 3]
    elif how == "one-hot and constant":
        states = np.random.default_rng(5).integers(0, 9, 300)
        phi = np.hstack([np.eye(10)[states], np.ones((300, 1))])
        next_phi = np.hstack([next_phi, np.ones((300, 1))])
        columns = range(9)  # the tenth state is never met
    else:
        phi, next_phi, rewards = phi[:6], next_phi[:6], rewards[:6]
        scalars = {"ratios": np.linspace(0.5, 2, 6), "weights": np.linspace(1, 3, 6)}
        columns = range(6)
    theta = np.random.default_rng(6).normal(size=phi.shape[1])
    problem = Problem.from_arrays(phi, rewards, next_phi, discount=0.9, **scalars)
    wanted = exact_mspbe(phi, next_phi, rewards, 0.9, theta, columns=columns, **scalars)
    assert problem.metric().rank == len(columns)
    assert problem.mspbe(theta) == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("n", [2, 3, 5, 40, 2000])
@pytest.mark.parametrize("dim", [2, 3, 8, 60])
def test_rank_of_small_and_long_logs(n, dim):
    """Half of the columns are multiples and sums of the others."""
    for seed in range(5):
        rng = np.random.default_rng([seed, n, dim])
        base = rng.integers(-9, 10, (n, (dim + 1) // 2)) / 8
        rank = np.linalg.matrix_rank(base)
        phi = base @ np.hstack([np.eye(base.shape[1]), rng.integers(-2, 3, (base.shape[1], dim // 2))])
        phi *= 10.0 ** rng.integers(-4, 5, dim)
        assert metric.from_rows(iter(np.array_split(phi, 7)), dim).rank == rank


@pytest.mark.parametrize("ridge", [1e-12, 1e-6, 1.0])
@pytest.mark.parametrize("condition", [1e2, 1e14])
def test_mspbe_with_a_ridge(ridge, condition):
    phi, next_phi, rewards, theta, scalars = drawn(7, condition=condition)
    phi[:, 4], next_phi[:, 4] = phi[:, 3], next_phi[:, 3]
    problem = Problem.from_arrays(phi, rewards, next_phi, discount=0.9, ridge=ridge, **scalars)
    wanted = exact_mspbe(phi, next_phi, rewards, 0.9, theta, ridge=ridge, **scalars)
    assert problem.metric().rank == 10
    assert problem.mspbe(theta) == pytest.approx(wanted, rel=1e-7)


def test_rank_of_nothing():
    found = metric.from_matrix(np.zeros((3, 3)))
    assert found.rank == 0 and found.square(np.ones(3)) == 0.0 and found.condition() == 1.0
    assert metric.from_rows(iter([np.zeros((5, 3))]), 3).rank == 0
    assert metric.from_rows(iter([]), 3).rank == 0


def test_condition_is_that_of_the_scaled_rows():
    phi = graded(np.random.default_rng(8), 200, 6, 1e12)
    scaled = phi / np.sqrt((phi**2).sum(axis=0))
    problem = Problem.from_arrays(phi * 10.0 ** np.arange(6), np.ones(200), phi, discount=0.9)
    assert problem.metric().condition() == pytest.approx(np.linalg.cond(scaled), rel=1e-6)


def test_whitening_a_matrix_is_whitening_its_columns():
    phi, next_phi, rewards, _, scalars = drawn(9, condition=1e12)
    problem = Problem.from_arrays(phi, rewards, next_phi, **scalars)
    found, given = problem.metric(), np.random.default_rng(10).normal(size=(10, 4))
    for j in range(4):
        np.testing.assert_allclose(found.whiten(given)[:, j], found.whiten(given[:, j]), rtol=1e-9)


# ---- units

UNITS = {
    "million": np.array([1e6, 1, 1, 1, 1, 1]),
    "millionth": np.array([1, 1, 1e-6, 1, 1, 1]),
    "ten orders apart": np.array([1e5, 1e-5, 1, 1e3, 1e-4, 1e2]),
    "all": np.full(6, 1e-7),
}


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("condition", [1e2, 1e13])
@pytest.mark.parametrize("layout", ["dense", "indexed", "sparse"])
def test_units_of_columns_make_no_difference(layout, condition, units):
    """A column times c has its weight divided by c; the measures, statuses and messages stay."""
    phi, next_phi, rewards, theta, scalars = drawn(11, n=200, dim=6, condition=condition)

    def problem(scale):
        if layout == "indexed":
            rows = np.vstack([phi, next_phi]) * scale
            return Problem.from_table(rows, np.arange(200), rewards, np.arange(200) + 200, **scalars)
        make = sp.csr_array if layout == "sparse" else np.array
        return Problem.from_arrays(make(phi * scale), rewards, make(next_phi * scale), discount=0.95, **scalars)

    one, other = problem(1.0), problem(units)
    assert one.layout == other.layout == layout
    rel = 1e-9 if condition < 1e3 else 1e-6
    assert other.mspbe(theta / units) == pytest.approx(one.mspbe(theta), rel=rel)
    assert other.relative_residual(theta / units) == pytest.approx(one.relative_residual(theta), rel=rel)
    assert other.relative_residual(theta / units, exact=False) == pytest.approx(
        one.relative_residual(theta, exact=False), rel=1e-9
    )
    for tolerance in (None, 1e-6):
        found, scaled = LSTD().solve(one, tolerance=tolerance), LSTD().solve(other, tolerance=tolerance)
        np.testing.assert_allclose(scaled.theta * units, found.theta, rtol=1e-9 if condition < 1e3 else 1e-3)
        assert scaled.status is found.status is Status.CONVERGED
        assert max(scaled.relative_residual, found.relative_residual) < 1e-8
        if condition < 1e3:
            assert scaled.message == found.message


@pytest.mark.parametrize("units", UNITS.values(), ids=UNITS)
@pytest.mark.parametrize("consistent", [True, False])
def test_units_do_not_decide_the_rank(units, consistent):
    """Six states that are seen one after the other for ever, without discount."""
    states, followers = np.arange(6), (np.arange(6) + 1) % 6
    rewards = np.array([1.0, -2.0, 3.0, 0.5, -1.5, -1.0 if consistent else 1.0])
    table = np.eye(6) * units
    solution = LSTD().solve(Problem.from_table(table, states, rewards, followers, discount=1.0))
    assert "A has rank 5 of 6" in solution.message
    assert solution.status is (Status.CONVERGED if consistent else Status.SINGULAR)
    values = table @ solution.theta
    gap = rewards - (values - values[followers])
    np.testing.assert_allclose(gap, 0 if consistent else rewards.mean(), atol=1e-9)


# ---- by products


def by_products(c, g, ridge=0.0, **how):
    return metric.by_products(g, lambda x: c @ x + ridge * x, np.diagonal(c) + ridge, ridge, **how)


def spectrum(rng, eigenvalues):
    q = np.linalg.qr(rng.normal(size=(len(eigenvalues),) * 2))[0]
    return q, (q * eigenvalues) @ q.T


SHAPES = {
    "even": lambda dim, low: low ** np.linspace(0, 1, dim),
    "two clusters": lambda dim, low: np.where(np.arange(dim) % 2, 1.0, low) * np.linspace(1, 1.5, dim),
    "a weak few": lambda dim, low: np.where(np.arange(dim) < 3, low, 1.0) * np.linspace(1, 1.5, dim),
    "a strong few": lambda dim, low: np.where(np.arange(dim) < 3, 1.0, low) * np.linspace(1, 1.5, dim),
    "steps": lambda dim, low: low ** (np.arange(dim) * 5 // dim / 4) * np.linspace(1, 1.1, dim),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("low", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("dim", [40, 120])
@pytest.mark.parametrize("weak", [True, False])
def test_products_are_as_accurate_as_they_say(shape, low, dim, weak):
    """Weak directions count as much as others, and show up last; where they are missed there is a warning."""
    rng = np.random.default_rng([dim, int(-np.log10(low))])
    eigenvalues = SHAPES[shape](dim, low)
    q, c = spectrum(rng, eigenvalues)
    part = rng.normal(size=dim) * (1 if weak else np.sqrt(eigenvalues))
    g, wanted = q @ (np.sqrt(eigenvalues) * part), part @ part
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = by_products(c, g)
    assert np.isfinite(found) and found <= wanted * 1.1
    if caught:
        assert caught[0].category is PrecisionWarning and low < 1e-4
    else:
        assert found == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("ridge", [0.0, 1e-6, 1e-2])
def test_products_know_zero_columns_and_dependent_ones(ridge):
    rng = np.random.default_rng(12)
    x = rng.normal(size=(300, 30))
    x[:, 7] = 0
    x[:, 9] = x[:, 8] - x[:, 10]
    c = x.T @ x / 300
    g = c @ rng.normal(size=30)
    wanted = g @ np.linalg.pinv(c + ridge * np.eye(30), rcond=1e-10) @ g
    assert by_products(c, g, ridge) == pytest.approx(wanted, rel=1e-8)


def test_products_of_nothing():
    assert by_products(np.eye(3), np.zeros(3)) == 0.0
    assert by_products(np.zeros((3, 3)), np.zeros(3)) == 0.0
    assert by_products(np.diag([4.0, 0.0]), np.array([2.0, 0.0])) == pytest.approx(1.0, rel=1e-15)


def test_products_stop_and_say_how_far_they_came():
    rng = np.random.default_rng(13)
    q, c = spectrum(rng, np.logspace(0, -5, 100))
    g = q @ np.sqrt(np.logspace(0, -5, 100))
    with pytest.warns(
        PrecisionWarning, match=r"known to about \d.\de-01 of its value after 20 products, not to 1.0e-08"
    ):
        by_products(c, g, most=20)
    assert by_products(c, g) == pytest.approx(100.0, rel=1e-8)


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
@pytest.mark.parametrize("ridge", [0.0, 0.01])
def test_many_features_are_measured_without_a_matrix(monkeypatch, make, ridge):
    phi, next_phi, rewards, theta, scalars = drawn(14, dim=20, condition=1e4)
    wanted = exact_mspbe(phi, next_phi, rewards, 0.9, theta, ridge=ridge, **scalars)
    monkeypatch.setattr(metric, "MOST_DIM", 19)
    problem = Problem.from_arrays(make(phi), rewards, make(next_phi), discount=0.9, ridge=ridge, **scalars)
    monkeypatch.setattr(problem.rows, "gram", None)
    monkeypatch.setattr(problem.rows, "weighted_rows", None)
    assert problem.mspbe(theta) == pytest.approx(wanted, rel=2e-8)


def test_many_features_that_are_badly_conditioned_are_warned_of(monkeypatch):
    phi, next_phi, rewards, theta, _ = drawn(15, condition=1e14)
    monkeypatch.setattr(metric, "MOST_DIM", 9)
    problem = Problem.from_arrays(phi, rewards, next_phi, discount=0.9)
    with pytest.warns(
        PrecisionWarning, match=re.escape("C is badly conditioned. A ridge, or fewer features")
    ) as caught:
        problem.mspbe(theta)
    assert caught[0].filename == __file__  # the line of the user, not ours


@pytest.mark.parametrize("exact", [True, False, None])
def test_dims_beyond_the_limit_of_the_exact_norm(monkeypatch, exact):
    phi, next_phi, rewards, theta, _ = drawn(16, condition=1e4)
    problem = Problem.from_arrays(phi, rewards, next_phi, discount=0.9)
    wanted = {how: problem.relative_residual(theta, exact=how) for how in (True, False)}
    assert wanted[True] != pytest.approx(wanted[False], rel=1e-3)
    monkeypatch.setattr("valuate.problem.EXACT_DIM", 9)
    assert problem.relative_residual(theta, exact=exact) == wanted[bool(exact)]
    message = LSTD().solve(problem).message
    assert "in the norm of diag(C)^-1" in message


# ---- the ends of float64


def test_norms_beyond_the_range_of_squares():
    phi, next_phi, rewards, _, _ = drawn(17, condition=1e10)
    problem = Problem.from_arrays(phi, rewards, next_phi, discount=0.9)
    found, g = problem.metric(), problem.residual(np.ones(10))
    for unit in (1e-200, 1.0, 1e200):
        assert found.norm(g * unit) == pytest.approx(np.sqrt(2 * problem.mspbe(np.ones(10))) * unit, rel=1e-9)
    assert found.norm(np.zeros(10)) == 0.0
    assert found.square(g * 1e200) == np.inf
    for bad in (np.inf, np.nan):
        assert found.square(g * bad) == found.norm(g * bad) == by_products(np.eye(10), g * bad) == np.inf


def test_the_mspbe_of_weights_out_of_all_proportion(monkeypatch):
    """Infinite, not NaN."""
    phi, next_phi, rewards, _, _ = drawn(18)
    for most in (metric.MOST_DIM, 5):
        monkeypatch.setattr(metric, "MOST_DIM", most)
        problem = Problem.from_arrays(phi, rewards, next_phi, discount=0.9)
        assert problem.mspbe(np.full(10, 1e308)) == np.inf


def test_sparse_rows_too_many_for_a_factor_of_theirs(monkeypatch):
    """What a Cholesky factor of C takes for dependent is looked at in the rows."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 6, size=(4000, 3))
    table = np.concatenate([np.eye(6)[codes[:, k]] for k in range(3)], axis=1)  # three groups, each of sum one
    problem = Problem.from_arrays(sp.csr_array(table), rng.normal(size=4000), sp.csr_array(table[::-1]))
    g = problem.residual(rng.normal(size=18))
    exact = problem.metric()
    monkeypatch.setattr(metric, "COSTLY", 0.0)
    again = Problem.from_arrays(sp.csr_array(table), problem.rows.records["reward"], sp.csr_array(table[::-1]))
    monkeypatch.setattr(metric, "from_rows", None)
    assert again.metric().rank == exact.rank == 16
    assert again.metric().square(g) == pytest.approx(exact.square(g), rel=1e-9)
    # A direction in which features vary by some 1e-7 of their size is left out with a warning.
    table[:, 0] += 2e-7 * rng.normal(size=4000)
    rough = Problem.from_arrays(sp.csr_array(table), problem.rows.records["reward"], sp.csr_array(table[::-1]))
    with pytest.warns(PrecisionWarning, match="features vary by .*e-07 of their size or less"):
        rough.metric()
