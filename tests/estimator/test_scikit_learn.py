"""`LinearValue` as a scikit-learn estimator."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import valuate as va
from valuate.environments import CartPole
from valuate.features import cart_pole


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks([va.LinearValue(), va.LinearValue(ridge=0.1, solver="gmres")])
def test_every_check_of_scikit_learn_passes(estimator, check):
    check(estimator)


def test_clones_and_pickles():
    log = CartPole().collect(300, seed=0)
    model = va.LinearValue(features=cart_pole(), discount=0.95, ridge=1e-3, solver=va.GMRES(), policy=None).fit(log)
    again = clone(model)
    assert not hasattr(again, "coef_")
    assert again.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert again.features is not model.features and again.features.get_params() == model.features.get_params()
    np.testing.assert_array_equal(again.fit(log).coef_, model.coef_)
    pickled = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(pickled.predict(log.states), model.predict(log.states))
    assert pickled.policy_value().interval == model.policy_value().interval
    assert clone(model).set_params(features__sigma=0.2, ridge=0.5).features.sigma == 0.2
    assert is_regressor(model)


def test_one_seed_gives_one_answer():
    log = CartPole().collect(300, seed=0)
    draws = []
    for random_state in (3, 3, np.random.RandomState(3), np.random.default_rng(3), None):
        model = va.LinearValue(discount=0.9, solver="svrg", random_state=random_state, tolerance=0.5).fit(log)
        draws.append(model.coef_)
    np.testing.assert_array_equal(draws[0], draws[1])
    assert (draws[0] != draws[2]).any() and (draws[0] != draws[4]).any()
    np.testing.assert_array_equal(draws[0], draws[3])


def test_what_is_not_fitted_says_so():
    for call in (lambda m: m.predict([[0.0]]), lambda m: m.score([[0.0]], [0.0]), lambda m: m.policy_value()):
        with pytest.raises(NotFittedError):
            call(va.LinearValue())
    with pytest.raises(NotFittedError):
        va.LinearValue().save("nowhere.json")
    with pytest.raises(va.InputTypeError, match="a Problem goes to a solver"):
        va.LinearValue().fit(va.Problem.from_arrays(np.eye(2), [1.0, 2.0], np.eye(2)))
