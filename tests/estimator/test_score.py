"""The score: a held-out MSPBE in a space that is the same for all models; and folds of whole episodes."""

import numpy as np
import pytest
import sklearn
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score
from sklearn.preprocessing import PolynomialFeatures

import pages
import valuate as va
from valuate.environments import Garnet, RandomWalk
from valuate.estimator.reference import Reference
from valuate.features import Tabular


def ones(states):
    return np.ones((len(states), 1))


def own_mspbe(model, log):
    """The naive score: the held-out MSPBE in the model's own features, constant included."""
    problem = va.Problem.from_transitions(log, lambda s: model.feature_rows(s), discount=model.discount)
    return -problem.mspbe(model.solution_.theta)


def test_exact_features_rank_above_a_constant_which_the_naive_score_does_not_see():
    log = RandomWalk(9).collect(4000, seed=1)
    train, test = va.episode_folds(log, 2, seed=3)[0]
    exact = va.LinearValue(features=Tabular(9), discount=1.0).fit(log[train])
    constant = va.LinearValue(features=ones, discount=1.0).fit(log[train])
    assert str(exact.reference_) == str(constant.reference_) == "indicators of 9 states"
    scores = exact.score(log[test]), constant.score(log[test])
    assert -1e-3 < scores[0] <= 0
    assert scores[1] < 50 * scores[0]
    naive = own_mspbe(exact, log[test]), own_mspbe(constant, log[test])
    assert naive[1] > naive[0]


def test_many_states_are_told_apart_by_waves():
    rng = np.random.default_rng(0)
    n = 4000
    x = np.zeros((n + 1, 2))
    for t in range(n):
        x[t + 1] = 0.9 * x[t] + rng.normal(size=2)
    rewards = 0.3 * x[:-1, 0] ** 2 + x[:-1, 1]
    log = va.Transitions(x[:-1], rewards, x[1:], episodes=np.arange(n) // 100)
    models = {
        "squares": va.LinearValue(features=PolynomialFeatures(2, include_bias=False), discount=0.8),
        "lines": va.LinearValue(discount=0.8),
        "constant": va.LinearValue(features=ones, discount=0.8),
    }
    scores = {name: va.cross_score(model, log, 4).mean() for name, model in models.items()}
    assert scores["constant"] < scores["lines"] < scores["squares"] <= 0
    model = models["lines"].fit(log)
    assert str(model.reference_) == "a constant and 100 random waves over 2 standardised numbers"
    assert not hasattr(models["squares"], "coef_")  # clones were fitted


def test_the_score_is_what_it_says():
    log = RandomWalk(5).collect(600, seed=0)
    model = va.LinearValue(features=Tabular(5), discount=0.9, ridge=0.3).fit(log[:300])
    test = log[300:]
    weights = np.random.default_rng(0).integers(1, 4, 300)
    test = va.Transitions(
        test.states, test.rewards, test.next_states, terminated=test.terminated, ratios=1 / weights, weights=weights
    )
    values = model.predict(np.arange(5))
    errors = test.rewards + 0.9 * ~test.terminated * values[test.next_states] - values[test.states]
    psi = np.eye(5)[test.states]
    g = (weights * (1 / weights) * errors) @ psi / weights.sum()
    c = psi.T @ (weights[:, None] * psi) / weights.sum()
    assert model.score(test) == pytest.approx(-0.5 * g @ np.linalg.pinv(c) @ g, rel=1e-9)
    unknown = va.Transitions([7, 8], [1.0, 1.0], [8, 7])
    with pytest.raises(va.InputError):
        model.score(unknown)


def test_the_space_depends_on_the_rows_and_on_nothing_of_the_model():
    log = Garnet(30, 2, branching=3, seed=0).collect(500, seed=0)
    states = np.random.default_rng(0).normal(size=(500, 3))
    rows = va.Transitions(states, log.rewards, states[::-1].copy())
    spaces = [
        model.fit(rows).reference_
        for model in (va.LinearValue(), va.LinearValue(ridge=1.0, random_state=5, features=ones, fit_intercept=False))
    ]
    for name in Reference.__slots__:
        np.testing.assert_array_equal(getattr(spaces[0], name), getattr(spaces[1], name))


def test_action_values_are_scored_in_a_block_for_each_action():
    env = Garnet(8, 2, branching=3, seed=4, discount=0.9)
    target = np.random.default_rng(1).dirichlet(np.ones(2), 8)
    log = env.collect(8000, seed=0, copies=40)
    exact = va.LinearValue(features=Tabular(8), discount=0.9, policy=lambda s: target[s])
    scores = {}
    for name, model in {"exact": exact, "constant": clone(exact).set_params(features=ones)}.items():
        scores[name] = va.cross_score(model, log, 4)
    assert (scores["exact"] > scores["constant"]).all()
    assert str(exact.fit(log).reference_) == "indicators of 8 states, for each of 2 actions"
    flat = clone(exact).fit(log)
    flat.coef_ = np.zeros_like(flat.coef_)
    psi = (np.eye(2)[log.actions][:, :, None] * np.eye(8)[log.states][:, None, :]).reshape(8000, -1)
    errors = log.rewards + 0.9 * flat.intercept_ - flat.intercept_
    g = errors @ psi / 8000
    assert flat.score(log) == pytest.approx(-0.5 * g @ np.linalg.pinv(psi.T @ psi / 8000) @ g, rel=1e-9)


def test_scikit_learns_tools_with_folds_of_episodes():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(401, 2))
    log = va.Transitions(x[:-1], x[:-1, 0], x[1:], terminated=rng.random(400) < 0.1, episodes=np.arange(400) // 20)
    given = {"next_states": log.next_states, "terminated": log.terminated}
    with config_context(enable_metadata_routing=True):
        requests = {"next_states": True, "terminated": True}
        model = va.LinearValue(discount=0.5).set_fit_request(**requests, groups=True).set_score_request(**requests)
        cv = GroupKFold(4)
        found = cross_val_score(
            model, log.states, log.rewards, cv=cv, params={**given, "groups": log.episodes}, error_score="raise"
        )
        folds = [clone(model).fit(log[train]).score(log[test]) for train, test in cv.split(x[:-1], groups=log.episodes)]
        np.testing.assert_allclose(found, folds, rtol=1e-10)
        search = GridSearchCV(model, {"ridge": [0.0, 1e3]}, cv=va.episode_folds(log, 4), error_score="raise")
        search.fit(log.states, log.rewards, **given)
        assert search.best_params_ == {"ridge": 0.0}
    assert (found <= 0).all() and (found > -0.5).all()


def test_the_search_of_the_page():
    """docs/estimator.md: the block on scikit-learn's tools runs as it stands, and groups must be asked for."""
    (block,) = (found for found in pages.blocks(pages.DOCS / "estimator.md", "python") if "GridSearchCV" in found)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(401, 2))
    log = va.Transitions(x[:-1], x[:-1, 0], x[1:], terminated=rng.random(400) < 0.1, episodes=np.arange(400) // 20)
    names = {"sklearn": sklearn, "va": va, "GridSearchCV": GridSearchCV, "GroupKFold": GroupKFold, "log": log}
    with config_context(enable_metadata_routing=True):
        exec(block, names)
        assert names["search"].best_estimator_.policy_value().episodes == 20
        with pytest.raises(UnsetMetadataPassedError, match="groups"):
            exec(block.replace(", groups=True)", ")"), dict(names))


def test_a_score_without_the_next_states_of_the_fit_is_refused():
    log = RandomWalk(5).collect(400, seed=0)
    states = log.states[:, None]
    model = va.LinearValue(features=Tabular(5))
    model.fit(states, log.rewards, next_states=log.next_states[:, None], terminated=log.terminated)
    with pytest.raises(va.InputError, match="the model was fitted with next states and is to be scored without"):
        model.score(states, log.rewards)
    plain = va.LinearValue(features=Tabular(5)).fit(states, log.rewards)
    assert plain.score(states, log.rewards) == pytest.approx(0.0, abs=1e-12)
    given = {"next_states": log.next_states[:, None], "terminated": log.terminated}
    with pytest.raises(va.InputError, match="is to be scored without"):  # without routing, fit alone is given them
        cross_val_score(model, states, log.rewards, params=given, error_score="raise", cv=2)


def test_folds_hold_whole_episodes():
    labels = np.repeat(["a", "b", "c", "d", "e"], [50, 1, 20, 20, 9])
    folds = va.episode_folds(labels, 3, seed=1)
    assert sorted(np.concatenate([test for _, test in folds]).tolist()) == list(range(100))
    for train, test in folds:
        assert set(labels[train]).isdisjoint(labels[test])
        assert len(train) + len(test) == 100
    assert max(len(test) for _, test in folds) == 50
    assert sorted(len(test) for _, test in folds)[0] >= 20
    log = va.Transitions(np.zeros((100, 1)), np.zeros(100), np.zeros((100, 1)), episodes=labels.tolist())
    for one, other in zip(folds, va.episode_folds(log, 3, seed=1), strict=True):
        np.testing.assert_array_equal(one[1], other[1])
    with pytest.raises(va.InputError, match="there are 5 episodes, too few for 6 folds"):
        va.episode_folds(log, 6)
    with pytest.raises(va.InputError, match="does not say which episode"):
        va.episode_folds(va.Transitions([[0.0]], [1.0], [[0.0]]))


def test_states_that_are_no_numbers_are_scored_where_they_are_few():
    states = np.array(["low", "high"] * 50)
    log = va.Transitions(states, (states == "low") * 1.0, states[::-1].copy())
    model = va.LinearValue(features=lambda s: (s == "low")[:, None] * 1.0, discount=0.5).fit(log)
    assert str(model.reference_) == "indicators of 2 states"
    assert model.score(log) == pytest.approx(0.0, abs=1e-20)
    many = np.array([f"place {k}" for k in range(300)])
    log = va.Transitions(many, np.ones(300), many[::-1].copy())
    model = va.LinearValue(features=lambda s: np.array([[len(text)] for text in s]), discount=0.5).fit(log)
    with pytest.raises(va.InputError, match="there is no score for these states"):
        model.score(log)


def test_wide_states_are_looked_at_through_twenty_directions():
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = sp.random_array((500, 3000), density=0.01, rng=rng, format="csr")
    y = X @ rng.normal(size=3000)
    model = va.LinearValue(ridge=0.01, solver="gmres").fit(X, y)
    assert str(model.reference_) == "a constant and 100 random waves over 20 standardised numbers"
    assert -np.mean(y**2) / 2 < model.score(X, y) <= 0
