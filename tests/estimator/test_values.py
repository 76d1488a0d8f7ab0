"""State values: exact ones on chains, features in every form, and how input is taken."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

import valuate as va
from dense import weights
from valuate import features
from valuate.environments import BoyanChain, CartPole, RandomWalk
from valuate.features import Tabular


def every_outcome(env, policy=None):
    """A log with each state's outcomes as rows, weighted with their chances: its fixed point is exact."""
    policy = np.full((env.n_states, env.n_actions), 1 / env.n_actions) if policy is None else policy
    shape = env.probabilities.shape
    s, a, k = np.indices(shape).reshape(3, -1)
    chance = (policy[:, :, None] * env.probabilities).ravel()
    after = np.broadcast_to(env.successors, shape).ravel()
    reward = np.broadcast_to(env.rewards, shape).ravel()
    kept = chance > 0
    ends = after == env.n_states
    return va.Transitions(
        s[kept], reward[kept], np.where(ends, s, after)[kept], terminated=ends[kept], weights=chance[kept]
    )


@pytest.mark.parametrize("env", [RandomWalk(7), RandomWalk(5, "inverted"), BoyanChain(12)])
def test_exact_values_where_the_log_has_every_outcome(env):
    model = va.LinearValue(features=env.features, discount=1.0).fit(every_outcome(env))
    np.testing.assert_allclose(model.predict(np.arange(env.n_states)), env.values(), rtol=1e-9)
    assert model.solution_.status is va.Status.CONVERGED
    assert model.evaluates_ == "State values of the policy that wrote the log."


def test_the_walk_of_the_readme():
    log = RandomWalk().collect(20_000, seed=0)
    model = va.LinearValue(features=Tabular(5), discount=1.0).fit(log)
    np.testing.assert_allclose(model.predict(np.arange(5)), np.arange(1, 6) / 6, atol=0.02)
    assert model.coef_.shape == (5,) and model.intercept_ == 0.0


def log_of(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = np.cumsum(rng.normal(size=(n + 1, 2)), axis=0) * 0.1
    return va.Transitions(
        x[:-1], x[:-1, 0] + rng.normal(size=n), x[1:], terminated=rng.random(n) < 0.05, episodes=np.arange(n) // 50
    )


def test_a_log_and_its_columns_give_the_same():
    log = log_of()
    model = va.LinearValue(discount=0.9, ridge=0.01).fit(log)
    other = clone(model).fit(
        log.states, log.rewards, next_states=log.next_states, terminated=log.terminated, groups=log.episodes
    )
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-12)
    assert model.n_features_in_ == other.n_features_in_ == 2
    coef, level = weights(log.states, log.next_states, log.rewards, 0.9 * ~log.terminated, 0.01)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-9)
    assert model.intercept_ == pytest.approx(level, rel=1e-9)
    assert model.n_iter_ == 1


def test_features_in_every_form_are_the_same_features(monkeypatch):
    log = log_of()
    poly = make_pipeline(StandardScaler(), PolynomialFeatures(2, include_bias=False))
    fitted = clone(poly).fit(log.states)
    phi, after = fitted.transform(log.states), fitted.transform(log.next_states)
    coef, level = weights(phi, after, log.rewards, 0.9 * ~log.terminated)
    # What belongs to the features is stood in for here: what counts is that it is asked with the log.
    seen = []
    monkeypatch.setattr(features, "choose", lambda given: (seen.append(given), (poly, "Squares."))[1], raising=False)
    monkeypatch.setattr(features, "from_text", lambda text, given: (seen.append(text), poly)[1], raising=False)
    forms = {"transformer": poly, "callable": fitted.transform, "auto": "auto", "text": "squares:2"}
    for name, form in forms.items():
        model = va.LinearValue(features=form, discount=0.9).fit(log)
        np.testing.assert_allclose(model.coef_, coef, rtol=1e-8, err_msg=name)
        assert model.features_note_ == ("Squares." if name == "auto" else "")
    assert seen == [log, "squares:2"]
    assert not hasattr(poly[0], "mean_")  # what was given is left alone
    np.testing.assert_allclose(model.predict(log.states), phi @ coef + level, rtol=1e-8)
    np.testing.assert_allclose(model.features_[0].mean_, log.states.mean(axis=0))


def test_features_are_fitted_on_states_and_not_on_next_states():
    log = va.Transitions([[0.0], [2.0]], [1.0, 1.0], [[100.0], [200.0]])
    model = va.LinearValue(features=StandardScaler(), discount=0.5).fit(log)
    assert model.features_.mean_[0] == 1.0


def test_sparse_features_and_sparse_states():
    log = RandomWalk(9).collect(3000, seed=2)
    dense = va.LinearValue(features=lambda s: np.eye(9)[s], discount=1.0, ridge=0.01).fit(log)
    sparse = va.LinearValue(features=Tabular(9), discount=1.0, ridge=0.01).fit(log)
    assert sparse.problem_.layout == "sparse" and dense.problem_.layout == "indexed"
    np.testing.assert_allclose(sparse.predict(np.arange(9)), dense.predict(np.arange(9)), rtol=1e-9)
    X, nexts = sp.csr_array(np.eye(9)[log.states]), sp.csr_array(np.eye(9)[log.next_states])
    direct = va.LinearValue(discount=1.0, ridge=0.01).fit(X, log.rewards, next_states=nexts, terminated=log.terminated)
    np.testing.assert_allclose(direct.predict(sp.csr_array(np.eye(9))), dense.predict(np.arange(9)), rtol=1e-9)


def test_one_number_a_state():
    rng = np.random.default_rng(0)
    x = rng.normal(size=101)
    log = va.Transitions(x[:-1], x[:-1], x[1:])
    model = va.LinearValue(discount=0.5).fit(log)
    coef, level = weights(x[:-1, None], x[1:, None], x[:-1], np.full(100, 0.5))
    np.testing.assert_allclose(model.predict([0.0, 1.0]), [level, level + coef[0]], rtol=1e-9)
    np.testing.assert_allclose(model.predict([[0.0], [1.0]]), [level, level + coef[0]], rtol=1e-9)


def test_data_frames_keep_names_and_kinds():
    rng = np.random.default_rng(0)
    n = 200
    X = pd.DataFrame({"place": rng.normal(size=n), "weather": rng.choice(["sun", "rain"], n)})
    after = X.iloc[rng.permutation(n)].reset_index(drop=True)
    rewards = X["place"] + (X["weather"] == "sun")
    from sklearn.compose import make_column_transformer

    for output in ("default", "pandas"):
        columns = make_column_transformer(
            (StandardScaler(), ["place"]), (OneHotEncoder(sparse_output=False), ["weather"])
        )
        columns.set_output(transform=output)
        model = va.LinearValue(features=columns, discount=0.8).fit(X, rewards, next_states=after)
        fitted = clone(columns).fit(X)
        phi, nexts = (np.asarray(fitted.transform(part)) for part in (X, after))
        coef, _ = weights(phi[:, :2], nexts[:, :2], rewards, np.full(n, 0.8))
        one = np.column_stack([phi[:, :2], np.ones(n)])
        np.testing.assert_allclose(model.predict(X), one @ np.append(coef, _), rtol=1e-8)
        assert model.feature_names_in_.tolist() == ["place", "weather"]
    numbers = X[["place"]].assign(size=rng.normal(size=n))
    nexts = numbers.sample(frac=1, random_state=0)
    plain = va.LinearValue(discount=0.8).fit(numbers, rewards, next_states=nexts)
    bare = va.LinearValue(discount=0.8).fit(numbers.to_numpy(), rewards, next_states=nexts.to_numpy())
    np.testing.assert_allclose(plain.coef_, bare.coef_)
    assert plain.feature_names_in_.tolist() == ["place", "size"]


def test_data_frames_with_other_columns_are_refused():
    X = pd.DataFrame({"a": [0.0, 1.0], "b": [1.0, 0.0]})
    for features_ in (None, StandardScaler()):
        with pytest.raises(va.InputError, match="columns"):
            va.LinearValue(features=features_).fit(X, [1.0, 2.0], next_states=X.rename(columns={"b": "next_b"}))


def test_what_is_refused():
    log, X, y = log_of(), np.zeros((4, 2)), np.ones(4)
    cases = [
        (lambda: va.LinearValue().fit(log, log.rewards), "y is given twice: a log has its own"),
        (lambda: va.LinearValue().fit(log, sample_weight=np.ones(300)), "sample_weight is given twice"),
        (lambda: va.LinearValue().fit(X, y, terminated=np.ones(4)), "terminated needs next_states"),
        (lambda: va.LinearValue().fit(X, y, next_states=np.zeros((4, 3))), "next_states has 3 columns and X has 2"),
        (lambda: va.LinearValue(discount=1.5).fit(X, y), "discount must be"),
        (lambda: va.LinearValue(solver="newton").fit(X, y), "solver must be one of auto, batchingsvrg"),
        (lambda: va.LinearValue(solver=va.SVRG).fit(X, y), r"Make one: SVRG\(\)"),
        (lambda: va.LinearValue(features=StandardScaler).fit(X, y), r"features is the class StandardScaler itself"),
        (lambda: va.LinearValue(features=3).fit(X, y), "features must be None, a text"),
        (lambda: va.LinearValue(values="both").fit(X, y), "values must be"),
        (lambda: va.LinearValue(tolerance="low").fit(X, y), "tolerance must be"),
        (lambda: va.LinearValue().fit(log).predict(log), r"predict takes states, not a log: predict\(log.states\)"),
        (lambda: va.LinearValue().fit(log).predict(X, actions=[0] * 4), "these are state values"),
        (lambda: va.LinearValue().fit(log).fit(X, y, ratios=[-1.0] * 4), "ratios must be"),
        (lambda: va.LinearValue(features=lambda s: s[:3]).fit(X, y), "the feature map gave an array of shape"),
    ]
    for call, message in cases:
        with pytest.raises((va.InputError, va.InputTypeError), match=message):
            call()


def test_a_solver_that_does_not_converge_warns_and_one_that_diverges_raises():
    log = RandomWalk(19).collect(5000, seed=1)
    with pytest.warns(ConvergenceWarning, match="budget spent: Spent its budget of 1 passes") as caught:
        model = va.LinearValue(features=Tabular(19), discount=1.0, solver="svrg", passes=1).fit(log)
    assert model.solution_.status is va.Status.BUDGET_SPENT
    assert caught[0].filename == __file__
    solver = va.SVRG(step_theta=1e6, step_omega=1e6)
    with pytest.raises(va.SolverError, match="[Dd]iverge"):
        va.LinearValue(features=Tabular(19), discount=1.0, solver=solver).fit(log)


def test_cart_pole_log_from_whole_episodes():
    log = CartPole().collect(2000, seed=0)
    model = va.LinearValue(features=features.cart_pole(), discount=0.95, ridge=1e-5).fit(log)
    assert model.n_features_in_ == 4 and len(model.coef_) == 81
    phi, after = (features.cart_pole().transform(part) for part in (log.states, log.next_states))
    coef, level = weights(phi, after, log.rewards, 0.95 * ~log.terminated, 1e-5)
    np.testing.assert_allclose(model.predict(log.states), phi @ coef + level, rtol=1e-8)


NULLABLE = {
    "none": None,
    "text": "polynomial:2",
    "map": features.Polynomial(2),
    "scikit-learn": PolynomialFeatures(2, include_bias=False),
    "callable": lambda states: np.asarray(states) ** 2,
}


@pytest.mark.parametrize("name", NULLABLE)
def test_frames_of_nullable_numbers(name):
    log = log_of()
    flags = log.states[:, :1] > 0, log.next_states[:, :1] > 0
    frames = [
        pd.DataFrame({"x": part[:, 0], "flag": flag[:, 0], "count": np.round(part[:, 1]).astype(int)})
        for part, flag in zip((log.states, log.next_states), flags, strict=True)
    ]
    if name == "callable":  # NumPy makes objects of flags beside numbers, nullable or not
        frames = [frame.drop(columns="flag") for frame in frames]
    nullable = [frame.convert_dtypes() for frame in frames]
    assert {"Float64", "Int64"} <= {str(dtype) for dtype in nullable[0].dtypes} <= {"Float64", "boolean", "Int64"}
    given = {"terminated": log.terminated, "groups": log.episodes}
    model = va.LinearValue(NULLABLE[name], ridge=0.01)
    plain, found = (
        clone(model).fit(here, log.rewards, next_states=there, **given) for here, there in (frames, nullable)
    )
    np.testing.assert_array_equal(found.coef_, plain.coef_)
    np.testing.assert_array_equal(found.predict(nullable[0]), plain.predict(frames[0]))
    rewards = pd.Series(log.rewards).convert_dtypes()
    again = clone(model).fit(nullable[0], rewards, next_states=nullable[1], **given)
    np.testing.assert_array_equal(again.coef_, plain.coef_)
    assert found.score(nullable[0], rewards, next_states=nullable[1], terminated=log.terminated) < 0


def test_gaps_are_left_to_a_transformer():
    log = log_of()
    frame = pd.DataFrame(log.states, columns=["x", "y"]).convert_dtypes()
    frame.loc[3, "x"] = pd.NA
    filled = va.LinearValue(make_pipeline(SimpleImputer(missing_values=np.nan), StandardScaler()), ridge=0.1)
    assert np.isfinite(filled.fit(frame, log.rewards).coef_).all()
    with pytest.raises((va.InputError, va.InputTypeError), match="X|feature map|states"):
        va.LinearValue(features.Polynomial(2)).fit(frame, log.rewards)
