"""Fitting a batch at a time."""

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import StandardScaler

import valuate as va
from valuate.environments import Garnet, RandomWalk
from valuate.estimator import increments
from valuate.features import Tabular


def log_of(n=600, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros((n + 1, 3))
    for t in range(n):
        x[t + 1] = 0.8 * x[t] + rng.normal(size=3)
    x += 2.0
    return va.Transitions(
        x[:-1], x[:-1, 0] + rng.normal(size=n), x[1:], terminated=rng.random(n) < 0.05,
        weights=rng.uniform(0.5, 2.0, n), ratios=rng.uniform(0.5, 1.5, n), episodes=np.arange(n) // 60,
    )  # fmt: skip


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("intercept", [True, False])
def test_batches_add_up_to_one_fit(ridge, intercept):
    log = log_of()
    whole = va.LinearValue(discount=0.9, ridge=ridge, fit_intercept=intercept, solver="lstd").fit(log)
    model = va.LinearValue(discount=0.9, ridge=ridge, fit_intercept=intercept)
    for rows in np.split(np.arange(600), [100, 101, 450]):
        assert model.partial_fit(log[rows]) is model
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
    assert model.intercept_ == pytest.approx(whole.intercept_, rel=1e-9)
    np.testing.assert_allclose(model.feature_rows(log.states) @ model.solution_.theta, model.predict(log.states))
    assert not hasattr(model, "problem_")
    with pytest.raises(va.InputError, match="an interval needs the rows"):
        model.policy_value()


@pytest.mark.parametrize("ridge", [0.0, 0.2])
@pytest.mark.parametrize("solver", ["lstd", "svrg"])
def test_a_fit_goes_on_with_batches(solver, ridge):
    log = log_of()
    features = StandardScaler().fit(log[:300].states)
    whole = va.LinearValue(features=FrozenEstimator(features), discount=0.9, ridge=ridge, solver="lstd").fit(log)
    model = va.LinearValue(features=StandardScaler(), discount=0.9, ridge=ridge, solver=solver, passes=500)
    model.fit(log[:300]).partial_fit(log[300:])
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-8)
    assert model.intercept_ == pytest.approx(whole.intercept_, rel=1e-8)


def test_indicators_go_on_too():
    log = RandomWalk(5).collect(2000, seed=0)
    whole = va.LinearValue(features=Tabular(5), discount=1.0).fit(log)
    model = va.LinearValue(features=Tabular(5), discount=1.0).fit(log[:1000])
    assert model.problem_.dim == 5
    model.partial_fit(log[1000:])
    np.testing.assert_allclose(model.predict(np.arange(5)), whole.predict(np.arange(5)), rtol=1e-8)


def test_action_values_too():
    env = Garnet(6, 3, branching=2, seed=0, discount=0.9)
    log = env.collect(900, seed=1)
    whole = va.LinearValue(features=Tabular(6), discount=0.9, policy=lambda s: s % 3).fit(log)
    model = va.LinearValue(features=Tabular(6), discount=0.9, policy=lambda s: s % 3)
    for part in (log[:400], log[400:]):
        model.partial_fit(part)
    states, actions = np.divmod(np.arange(18), 3)
    np.testing.assert_allclose(model.predict(states, actions), whole.predict(states, actions), rtol=1e-8)


def test_features_that_need_fitting_are_refused():
    log = log_of()
    model = va.LinearValue(features=StandardScaler(), discount=0.9)
    with pytest.raises(va.InputError, match=r"partial_fit cannot fit the features StandardScaler\(\): what they learn"):
        model.partial_fit(log[:100])
    with pytest.raises(va.InputError, match="partial_fit cannot choose features='auto'"):
        va.LinearValue(features="auto").partial_fit(log[:100])
    scaler = StandardScaler().fit(log.states)
    model = va.LinearValue(features=scaler, discount=0.9).partial_fit(log[:100]).partial_fit(log[100:])
    assert model.features_ is scaler
    whole = va.LinearValue(features=FrozenEstimator(scaler), discount=0.9).fit(log)
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-9)
    with pytest.raises(va.InputError, match="the model was fitted with 3"):
        model.partial_fit(va.Transitions(np.ones((4, 2)), np.ones(4), np.ones((4, 2))))


def test_beyond_the_moments_every_batch_gets_a_pass_of_averaged_td(monkeypatch):
    monkeypatch.setattr(increments, "MOST_DIM", 4)
    log = RandomWalk(9).collect(60_000, seed=0)
    model = va.LinearValue(features=Tabular(9), discount=0.9)
    for first in range(0, 60_000, 10_000):
        model.partial_fit(log[first : first + 10_000])
    assert model.solution_.status is va.Status.BUDGET_SPENT  # and no warning, which would be an error here
    exact = va.LinearValue(features=Tabular(9), discount=0.9).fit(log)
    assert np.abs(model.predict(np.arange(9)) - exact.predict(np.arange(9))).max() < 0.02
    first = va.LinearValue(features=Tabular(9), discount=0.9).partial_fit(log[:10_000])
    problem = va.Problem.from_transitions(
        log[:10_000], lambda s: np.column_stack([np.eye(9)[s], np.ones(len(s))]), discount=0.9
    )
    td = va.TD(average=True, sampling="log", decay=0.5).solve(problem, passes=1, seed=0)
    np.testing.assert_allclose(np.append(first.coef_, first.intercept_), td.theta, rtol=1e-9)
    with pytest.raises(va.InputError, match="which cannot keep a ridge off the intercept"):
        va.LinearValue(features=Tabular(9), ridge=0.1).partial_fit(log[:100])
    going_on = va.LinearValue(features=Tabular(9), discount=0.9).fit(log[:30_000]).partial_fit(log[30_000:])
    assert np.abs(going_on.predict(np.arange(9)) - exact.predict(np.arange(9))).max() < 0.02
