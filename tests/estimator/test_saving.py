"""Models in files."""

import json

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures, StandardScaler

import valuate as va
from valuate import features
from valuate.environments import CartPole, Garnet
from valuate.features import StateActionBlocks, Tabular

LOG = CartPole().collect(600, seed=0)


def there_and_back(model, tmp_path):
    path = tmp_path / "model.json"
    model.save(path, force=True)
    return va.load_model(path)


@pytest.mark.parametrize(
    "model",
    [
        va.LinearValue(discount=0.9, ridge=0.1),
        va.LinearValue(features=features.cart_pole(), discount=0.9),
        va.LinearValue(features=features.cart_pole(), ridge=1e-3, solver=va.GCR(inner=va.SVRG(steps_per_row=2.0))),
        va.LinearValue(features=make_pipeline(StandardScaler(), PolynomialFeatures(2)), solver="lstd", tolerance=1e-9),
        va.LinearValue(features=make_pipeline(features.cart_pole(), StandardScaler()), ridge=1e-3),
    ],
    ids=["plain", "ours", "solver", "skops", "ours within skops"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_model_comes_back_whole(model, tmp_path):
    model.fit(LOG)
    found = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(found.predict(LOG.states), model.predict(LOG.states))
    np.testing.assert_array_equal(found.coef_, model.coef_)
    assert found.score(LOG) == model.score(LOG)
    for name in ("discount", "ridge", "solver", "fit_intercept", "random_state", "values", "tolerance", "passes"):
        assert getattr(found, name) == getattr(model, name)
    assert found.intercept_ == model.intercept_ and found.n_features_in_ == 4
    assert found.evaluates_ == model.evaluates_ and found.kind_ == "state"
    for name in ("status", "message", "relative_residual", "row_visits"):
        assert getattr(found.solution_, name) == getattr(model.solution_, name)
    with pytest.raises(va.InputError, match="an interval needs the rows"):
        found.policy_value()
    np.testing.assert_allclose(found.fit(LOG).predict(LOG.states), model.predict(LOG.states), rtol=1e-6)


def test_action_values_come_back_and_ask_for_their_policy(tmp_path):
    log = Garnet(6, 3, branching=2, seed=0).collect(500, seed=1)
    states, actions = np.divmod(np.arange(18), 3)
    for given in (Tabular(6), StateActionBlocks(Tabular(6), 3)):
        model = va.LinearValue(features=given, policy=lambda s: s % 3).fit(log)
        found = there_and_back(model, tmp_path)
        np.testing.assert_array_equal(found.predict(states, actions), model.predict(states, actions))
        with pytest.raises(va.InputError, match="these are action values: give actions="):
            found.predict(states)
        found.set_params(policy=lambda s: s % 3)
        np.testing.assert_array_equal(found.predict(states), model.predict(states))
    numbers = np.random.default_rng(0).normal(size=(40, 2))
    plain = va.LinearValue(policy=lambda s: np.zeros(len(s), int), values="action").fit(
        numbers, np.ones(40), next_states=numbers[::-1], actions=np.arange(40) % 2
    )
    again = there_and_back(plain, tmp_path)
    np.testing.assert_array_equal(again.predict(numbers, np.zeros(40, int)), plain.predict(numbers))


def test_what_was_counted_so_far_comes_back(tmp_path):
    model = va.LinearValue(features=features.cart_pole(), ridge=1e-3).partial_fit(LOG[:300])
    found = there_and_back(model, tmp_path)
    np.testing.assert_array_equal(found.partial_fit(LOG[300:]).coef_, model.partial_fit(LOG[300:]).coef_)
    fitted = there_and_back(va.LinearValue().fit(LOG), tmp_path)
    with pytest.raises(va.InputError, match="from a file without moments"):
        fitted.partial_fit(LOG)


def test_nothing_is_written_over_unless_asked(tmp_path):
    path = tmp_path / "model.json"
    path.write_text("precious")
    model = va.LinearValue().fit(LOG)
    with pytest.raises(va.InputError, match=r"model.json exists already\. Choose another name, or say force=True"):
        model.save(path)
    assert path.read_text() == "precious"
    model.save(path, force=True)
    assert va.load_model(path).intercept_ == model.intercept_
    with pytest.raises(va.InputError, match="cannot be written"):
        model.save(tmp_path / "nowhere" / "model.json")
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.json"]


def test_functions_are_refused(tmp_path):
    model = va.LinearValue(features=lambda s: s).fit(LOG)
    with pytest.raises(
        va.InputTypeError, match="features is a function, and a function cannot be saved without pickle"
    ):
        model.save(tmp_path / "model.json")
    hidden = va.LinearValue(features=FunctionTransformer(lambda s: s)).fit(LOG)
    with pytest.raises(va.InputTypeError, match="features of FunctionTransformer cannot be saved"):
        hidden.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def squares(states):
    return states**2


def test_types_that_nobody_vouched_for_are_not_made(tmp_path):
    model = va.LinearValue(features=FunctionTransformer(squares)).fit(LOG)
    model.save(tmp_path / "model.json")
    with pytest.raises(va.InputError, match="types that nobody vouched for: .*squares.*trusted="):
        va.load_model(tmp_path / "model.json")


def test_without_skops_the_refusal_names_the_extra(tmp_path, monkeypatch):
    model = va.LinearValue(features=StandardScaler()).fit(LOG)
    model.save(tmp_path / "model.json")
    monkeypatch.setitem(__import__("sys").modules, "skops", None)
    with pytest.raises(va.MissingPartError, match=r"Saving StandardScaler needs skops.*valuate\[skops\]"):
        model.save(tmp_path / "other.json")
    with pytest.raises(va.MissingPartError, match="Reading the features of this model needs skops"):
        va.load_model(tmp_path / "model.json")


def test_damaged_and_foreign_files_are_refused(tmp_path):
    path = tmp_path / "model.json"
    va.LinearValue(features=features.cart_pole(), ridge=0.1).fit(LOG).save(path)
    text = path.read_text()
    held = json.loads(text)
    broken = {
        "is no saved model, or is damaged": text[: len(text) // 2],
        "was not written by LinearValue.save": "[1, 2]",
        "has version 99 of the format": json.dumps({**held, "version": 99}),
        "is damaged: KeyError": json.dumps({name: part for name, part in held.items() if name != "coef"}),
        "is damaged": json.dumps({**held, "coef": {**held["coef"], "shape": [7]}}),
        "does not belong here": json.dumps({**held, "coef": {**held["coef"], "dtype": "|O"}}),
        "there is no solver 'system' here": json.dumps({**held, "solver": {"name": "system", "settings": {}}}),
        "There is no feature map": json.dumps(
            {**held, "features": {"form": "states", "map": {"valuate": {"map": "Nothing"}}}}
        ),
    }
    for message, content in broken.items():
        path.write_text(content)
        with pytest.raises(va.InputError, match=message):
            va.load_model(path)
    path.write_bytes(b"\x93NUMPY\xff\xfe")
    with pytest.raises(va.InputError, match="is no saved model"):
        va.load_model(path)
    with pytest.raises(va.InputError, match="cannot be read: No such file"):
        va.load_model(tmp_path / "nothing.json")


def test_names_of_columns_and_texts_come_back(tmp_path):
    table = {
        "ward": ["icu", "home", "icu", "ward"],
        "lab": [0.1, 0.2, 0.3, 0.4],
        "move": ["up", "down", "up", "up"],
        "reward": [1.0, 0.0, 2.0, 0.0],
        "terminated": [False, True, False, True],
        "patient": ["Ann", "Ann", "Bea", "Bea"],
    }
    log = va.read(table, {"states": ["ward", "lab"], "actions": "move", "episodes": "patient"})
    model = va.LinearValue(ridge=0.1).fit(log)
    found = there_and_back(model, tmp_path).reading_
    assert found.columns == {"states": ("ward", "lab"), "actions": "move"}
    assert found.labels == {"ward": ("home", "icu", "ward"), "actions": ("down", "up")}
    assert "Ann" not in (tmp_path / "model.json").read_text()  # what predicting does not need stays where it was
    model.fit(log.states, log.rewards)
    assert not hasattr(there_and_back(model, tmp_path), "reading_")
    held = json.loads((tmp_path / "model.json").read_text())
    del held["reading"]  # as models were written before
    (tmp_path / "model.json").write_text(json.dumps(held))
    np.testing.assert_array_equal(va.load_model(tmp_path / "model.json").coef_, model.coef_)
