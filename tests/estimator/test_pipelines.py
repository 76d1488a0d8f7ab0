"""States that are transformed on their way to the model, and next states that are not: never a silent wrong number."""

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

import valuate as va


def rows(n=300, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros((n + 1, 2))
    for t in range(n):
        x[t + 1] = 0.8 * x[t] + rng.normal(size=2)
    x = x * [1.0, 4.0] + [0.5, 1.0]
    return x[:-1], x[:-1, 0] + rng.normal(size=n), x[1:]


@pytest.fixture
def routing():
    with config_context(enable_metadata_routing=True):
        yield


OUTER = "a Pipeline has transformed the states before fit, and not the next states. Put the transformers into the model"


def test_inside_the_model_is_the_form():
    X, y, nexts = rows()
    scaler = StandardScaler().fit(X)
    model = va.LinearValue(features=StandardScaler(), discount=0.9).fit(X, y, next_states=nexts)
    by_hand = va.LinearValue(discount=0.9).fit(scaler.transform(X), y, next_states=scaler.transform(nexts))
    np.testing.assert_allclose(model.coef_, by_hand.coef_, rtol=1e-10)


def test_an_outer_pipeline_of_the_same_width_is_an_error():
    X, y, nexts = rows()
    pipeline = make_pipeline(StandardScaler(), va.LinearValue(discount=0.9))
    with pytest.raises(va.InputError, match=OUTER):
        pipeline.fit(X, y, linearvalue__next_states=nexts)
    nested = make_pipeline(StandardScaler(), Pipeline([("model", va.LinearValue(discount=0.9))]))
    with pytest.raises(va.InputError, match=OUTER):
        nested.fit(X, y, pipeline__model__next_states=nexts)
    with pytest.raises(va.InputError, match=OUTER):
        GridSearchCV(pipeline, {"linearvalue__ridge": [0.0, 1.0]}, cv=2, error_score="raise").fit(
            X, y, linearvalue__next_states=nexts
        )
    searched = make_pipeline(
        StandardScaler(), GridSearchCV(va.LinearValue(), {"ridge": [0.0, 1.0]}, cv=2, error_score="raise")
    )
    with pytest.raises(va.InputError, match=OUTER):
        searched.fit(X, y, gridsearchcv__next_states=nexts)


def test_another_width_is_an_error_by_itself():
    X, y, nexts = rows()
    pipeline = make_pipeline(PolynomialFeatures(2), va.LinearValue(discount=0.9))
    with pytest.raises(va.InputError, match=r"next_states has 2 columns and X has 6.*LinearValue\(features=\.\.\.\)"):
        pipeline.fit(X, y, linearvalue__next_states=nexts)


def test_routing_without_transform_input_is_an_error(routing):
    X, y, nexts = rows()
    model = va.LinearValue(discount=0.9).set_fit_request(next_states=True)
    with pytest.raises(va.InputError, match=OUTER):
        make_pipeline(StandardScaler(), model).fit(X, y, next_states=nexts)


def test_transform_input_makes_an_outer_pipeline_right(routing):
    X, y, nexts = rows()
    model = va.LinearValue(discount=0.9).set_fit_request(next_states=True)
    pipeline = make_pipeline(StandardScaler(), model, transform_input=["next_states"]).fit(X, y, next_states=nexts)
    inside = va.LinearValue(features=StandardScaler(), discount=0.9).fit(X, y, next_states=nexts)
    np.testing.assert_allclose(pipeline.predict(X), inside.predict(X), rtol=1e-10)
    with pytest.raises(va.InputError, match="is to be scored without"):
        pipeline.score(X, y)
    model.set_score_request(next_states=True)
    with pytest.raises(va.InputError, match="before score, and not the next states"):
        pipeline.score(X, y, next_states=nexts)


def test_pipelines_that_transform_nothing_or_have_no_next_states_are_let_through():
    X, y, nexts = rows()
    alone = Pipeline([("nothing", "passthrough"), ("model", va.LinearValue(discount=0.9))])
    alone.fit(X, y, model__next_states=nexts)
    plain = va.LinearValue(discount=0.9).fit(X, y, next_states=nexts)
    np.testing.assert_allclose(alone.predict(X), plain.predict(X))
    regression = make_pipeline(StandardScaler(), va.LinearValue()).fit(X, y)
    np.testing.assert_allclose(regression.predict(X), va.LinearValue().fit(X, y).predict(X), rtol=1e-9)
    every_row_ends = make_pipeline(StandardScaler(), va.LinearValue())
    every_row_ends.fit(X, y, linearvalue__next_states=nexts, linearvalue__terminated=np.ones(len(X)))


class Valued(TransformerMixin, BaseEstimator):
    """A transformer that fits a value function of its own, on states of its own."""

    def fit(self, X, y=None):
        states, rewards, nexts = rows()
        self.model_ = va.LinearValue(discount=0.9).fit(states, rewards, next_states=nexts)
        return self

    def transform(self, X):
        return np.column_stack([X, self.model_.predict(X)])


def test_a_model_inside_a_step_is_its_own_affair():
    X, y, _ = rows()
    pipeline = make_pipeline(StandardScaler(), Valued(), va.LinearValue()).fit(X, y)
    assert pipeline[1].model_.coef_.shape == (2,)


def test_shifted_rewards_are_refused():
    X, y, nexts = rows()
    shifted = TransformedTargetRegressor(va.LinearValue(discount=0.9), transformer=StandardScaler())
    with pytest.raises(va.InputError, match="TransformedTargetRegressor shifts rewards"):
        shifted.fit(X, y, next_states=nexts)
    np.testing.assert_allclose(shifted.fit(X, y).predict(X), va.LinearValue().fit(X, y).predict(X), rtol=1e-9)


def test_columns_that_lie_elsewhere_are_worth_a_warning():
    X, y, nexts = rows()
    for moved in (nexts + [30.0, 100.0], nexts * 100.0):
        with pytest.warns(va.ValuateWarning, match="next_states lie elsewhere than X in 2 of 2 columns that vary"):
            va.LinearValue(discount=0.9).fit(X, y, next_states=moved)
    clock = np.arange(300.0)[:, None]
    va.LinearValue(discount=0.9).fit(clock, y, next_states=clock + 1)  # no warning, which would be an error here
