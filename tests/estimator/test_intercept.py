"""An intercept without ridge: against scikit-learn's Ridge and a dense system, for every kind of solver and row."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge

import valuate as va
from dense import weights
from valuate.estimator.coordinates import Coordinates
from valuate.estimator.intercept import unit_for


def regression(n=300, d=4, offset=0.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * [1.0, 3.0, 0.1, 10.0][:d] + offset
    return X, X @ rng.normal(size=d) + 7.0 + rng.normal(size=n), rng.uniform(0.1, 4.0, n)


def chain(n=400, d=3, offset=0.0, seed=1):
    """Rows of an AR(1) process in d dimensions with a reward, terminated now and then, ratios and weights."""
    rng = np.random.default_rng(seed)
    x = np.zeros((n + 1, d))
    for t in range(n):
        x[t + 1] = 0.8 * x[t] + rng.normal(size=d)
    x += offset
    rewards = x[:-1] @ np.arange(1, d + 1) + rng.normal(size=n)
    return {
        "X": x[:-1],
        "y": rewards,
        "next_states": x[1:],
        "terminated": rng.random(n) < 0.05,
        "ratios": rng.uniform(0.5, 1.5, n),
        "sample_weight": rng.uniform(0.5, 3.0, n),
    }


def expected(rows, discount, ridge, **more):
    discounts = np.where(rows["terminated"], 0.0, discount)
    return weights(
        rows["X"], rows["next_states"], rows["y"], discounts, ridge, rows["ratios"], rows["sample_weight"], **more
    )


@pytest.mark.parametrize("ridge", [0.0, 1e-6, 0.01, 1.0, 1000.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_where_every_row_ends_it_is_ridge_regression(ridge, weighted):
    X, y, w = regression(offset=5.0)
    w = w if weighted else None
    model = va.LinearValue(ridge=ridge, solver="lstd").fit(X, y, sample_weight=w)
    other = Ridge(alpha=ridge * (len(y) if w is None else w.sum()), tol=1e-12).fit(X, y, sample_weight=w)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-8)
    assert model.intercept_ == pytest.approx(other.intercept_, rel=1e-8)
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=1e-8)


def test_the_default_solver_does_so_too():
    X, y, _ = regression()
    model, other = va.LinearValue(ridge=0.1).fit(X, y), Ridge(alpha=30.0).fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-8)
    assert model.intercept_ == pytest.approx(other.intercept_, rel=1e-8)


@pytest.mark.parametrize("offset", [0.0, 30.0])
@pytest.mark.parametrize("ridge", [0.0, 0.05, 20.0])
@pytest.mark.parametrize("solver", ["lstd", "gmres", "bicgstab", "gcr", "svrg", "saga"])
def test_the_ridge_leaves_the_intercept_alone_whatever_the_solver(solver, ridge, offset):
    rows = chain(offset=offset)
    model = va.LinearValue(discount=0.9, ridge=ridge, solver=solver, tolerance=1e-10, passes=2000).fit(**rows)
    coef, level = expected(rows, 0.9, ridge)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-6, atol=1e-7)
    states = rows["X"]
    np.testing.assert_allclose(model.predict(states), states @ coef + level, rtol=1e-6)


@pytest.mark.parametrize("solver", ["lstd", "auto"])
@pytest.mark.parametrize("ridge", [1e-10, 0.05, 1e4])
def test_to_rounding_with_a_direct_solver(ridge, solver):
    # Dense rows are centred; sparse ones have a large column.
    rows = chain()
    coef, level = expected(rows, 0.9, ridge)
    for X, nexts in ((rows["X"], rows["next_states"]), (sp.csr_array(rows["X"]), sp.csr_array(rows["next_states"]))):
        model = va.LinearValue(discount=0.9, ridge=ridge, solver=solver).fit(**{**rows, "X": X, "next_states": nexts})
        np.testing.assert_allclose(model.coef_, coef, rtol=1e-10)
        assert model.intercept_ == pytest.approx(level, rel=1e-10)


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_features_far_from_zero_cost_no_digits(ridge):
    near, far = chain(), chain()
    far = {**far, "X": far["X"] + 2.0**24, "next_states": far["next_states"] + 2.0**24}
    rounded = {**near, "X": far["X"] - 2.0**24, "next_states": far["next_states"] - 2.0**24}
    model = va.LinearValue(discount=0.9, ridge=ridge, solver="lstd").fit(**far)
    coef, level = expected(rounded, 0.9, ridge)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-10)
    np.testing.assert_allclose(model.predict(far["X"]), rounded["X"] @ coef + level, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("solver", [va.LSTD(trace_decay=0.7), va.LSTD(ratio_on="next")])
def test_with_traces_the_intercept_has_a_trace_too(solver, ridge):
    rows = {**chain(), "groups": np.arange(400) // 40}
    model = va.LinearValue(discount=0.9, ridge=ridge, solver=solver).fit(**rows)
    whole = np.column_stack([rows["X"], np.ones(400)]), np.column_stack([rows["next_states"], np.ones(400)])
    w, rho, g = rows["sample_weight"], rows["ratios"], np.where(rows["terminated"], 0.0, 0.9)
    traces, keep = whole[0].copy(), solver.trace_decay * g * rho
    for t in range(1, 400):
        if t % 40 and not rows["terminated"][t - 1]:
            traces[t] += keep[t - 1] * traces[t - 1]
    on_next = solver.ratio_on == "next"
    delta = (whole[0] - (g * rho)[:, None] * whole[1]) if on_next else rho[:, None] * (whole[0] - g[:, None] * whole[1])
    a = traces.T @ (w[:, None] * delta) / w.sum() + np.diag([ridge] * 3 + [0.0])
    theta = np.linalg.solve(a, traces.T @ (w * rho * rows["y"]) / w.sum())
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), theta, rtol=1e-8)


def test_float32_rows_are_centred_to_their_own_rounding():
    rows = chain(offset=50.0)
    narrow = {**rows, "X": rows["X"].astype(np.float32), "next_states": rows["next_states"].astype(np.float32)}
    coef, level = expected(narrow, 0.9, 0.05)
    model = va.LinearValue(discount=0.9, ridge=0.05, solver="svrg", passes=2000).fit(**narrow)
    assert model.problem_.rows.dtype == np.float32
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-5)
    assert model.intercept_ == pytest.approx(level, rel=1e-5)


def test_what_is_kept_has_the_same_answer_and_an_equation_for_the_intercept():
    rows = chain(offset=3.0)
    for solver in ("lstd", "svrg"):
        model = va.LinearValue(discount=0.9, ridge=0.3, solver=solver, tolerance=1e-11, passes=2000).fit(**rows)
        theta = model.solution_.theta
        assert model.problem_.dim == len(theta) == 4
        np.testing.assert_allclose(model.feature_rows(rows["X"]) @ theta, model.predict(rows["X"]), rtol=1e-10)
        assert model.problem_.relative_residual(theta) < 1e-9
        coef, level = model._coordinates.weights(theta)
        np.testing.assert_allclose(model._coordinates.theta(coef, level), theta, rtol=1e-12)


def test_sparse_rows_have_no_way_to_keep_the_ridge_off_the_intercept_in_steps():
    rows = chain()
    rows |= {"X": sp.csr_array(rows["X"]), "next_states": sp.csr_array(rows["next_states"])}
    with pytest.raises(
        va.InputError, match="SVRG cannot keep the ridge off the intercept where features are sparse. Use"
    ):
        va.LinearValue(ridge=0.1, solver="svrg").fit(**rows)


def test_without_an_intercept():
    rows = chain(offset=1.0)
    model = va.LinearValue(discount=0.9, ridge=0.1, fit_intercept=False).fit(**rows)
    coef, _ = expected(rows, 0.9, 0.1, intercept=False)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-10)
    assert model.intercept_ == 0.0


def test_features_that_contain_the_constant_get_no_second_one():
    walk = va.Transitions(np.arange(5), np.ones(5), np.arange(5)[::-1], terminated=[1, 0, 0, 0, 1])
    for states in (np.eye(5), np.column_stack([np.ones(5), np.arange(5), np.arange(5) ** 2])):
        model = va.LinearValue(features=lambda s, table=states: table[s], discount=0.9).fit(walk)
        assert model.intercept_ == 0.0 and model.problem_.dim == states.shape[1]
        coef, _ = weights(
            states[walk.states], states[walk.next_states], walk.rewards, 0.9 * ~walk.terminated, intercept=False
        )
        np.testing.assert_allclose(model.predict(np.arange(5)), states @ coef, atol=1e-9)
    with_ridge = va.LinearValue(features=lambda s: np.eye(5)[s], discount=0.9, ridge=0.1).fit(walk)
    assert with_ridge.problem_.dim == 6  # the ridge would shrink the constant that is made of indicators


def test_rows_that_only_seem_to_sum_to_one_get_the_constant_after_all():
    table = np.vstack([np.eye(5), 2 * np.eye(5)[:1]])
    states = np.arange(200) % 5
    states[1] = 5  # not among the rows that are looked at first
    log = va.Transitions(states, np.sin(np.arange(200)), np.roll(states, -1))
    model = va.LinearValue(features=lambda s: table[s], discount=0.5).fit(log)
    assert model.problem_.dim == 6
    coef, level = weights(table[states], table[log.next_states], log.rewards, np.full(200, 0.5))
    np.testing.assert_allclose(model.predict(np.arange(6)), table @ coef + level, rtol=1e-9)


@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_without_an_end_and_without_a_discount_the_intercept_is_not_determined(ridge):
    rows = {**chain(), "terminated": None}
    with pytest.warns(
        ConvergenceWarning, match="singular: Not determined: the intercept is not determined: the discount is 1"
    ):
        model = va.LinearValue(discount=1.0, ridge=ridge).fit(**rows)
    assert model.solution_.status is va.Status.SINGULAR
    with pytest.raises(va.SolverError, match="no row of the log terminated"):
        model.solution_.require()


def test_with_an_end_it_is():
    rows = chain()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = va.LinearValue(discount=1.0, ridge=0.1).fit(**rows)
    coef, level = expected(rows, 1.0, 0.1)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-8)
    assert model.intercept_ == pytest.approx(level, rel=1e-8)


@pytest.mark.parametrize("ridge", [1e-12, 1e-5, 1.0, 1e6])
@pytest.mark.parametrize("ending", [1e-6, 0.01, 1.0])
def test_the_large_column_takes_the_ridge_below_rounding(ridge, ending):
    unit = unit_for(ridge, ending)
    assert np.log2(unit) == round(np.log2(unit))
    assert ridge / unit**2 <= 1.0001e-16 * ending


def test_coordinates_and_moments_know_the_same_features():
    rng = np.random.default_rng(3)
    phi = rng.normal(size=(7, 3))
    for coordinates in (
        Coordinates(3, 8.0, rng.normal(size=3)),
        Coordinates(3, 1.0),
        Coordinates(3),
        Coordinates(3, span=rng.normal(size=3)),
    ):
        z = coordinates.rows(phi)
        back = z @ coordinates.to_features().T
        np.testing.assert_allclose(back[:, :3], phi, atol=1e-12)
        if coordinates.unit:
            np.testing.assert_allclose(back[:, 3], 1.0)
        coef, level = rng.normal(size=3), 0.0 if coordinates.unit == 0 else 2.0
        np.testing.assert_allclose(z @ coordinates.theta(coef, level), phi @ coef + level)
