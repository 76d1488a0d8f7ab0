"""Action values, and state values of another policy than the one that wrote the log."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import PolynomialFeatures

import valuate as va
from dense import weights
from valuate.environments import Garnet
from valuate.features import StateActionBlocks, Tabular

ENV = Garnet(12, 3, branching=4, seed=1, discount=0.9)
TARGET = np.random.default_rng(0).dirichlet(np.ones(3), 12)
LOG = ENV.collect(4000, seed=3, copies=40)


def of_target(states):
    return TARGET[np.asarray(states, dtype=int).ravel()]


def pair_table(states, actions=None, probabilities=None):
    """Indicators of state and action; or their expectation."""
    probabilities = np.eye(3)[actions] if probabilities is None else probabilities
    return (probabilities[:, :, None] * np.eye(12)[states][:, None, :]).reshape(len(states), -1)


def dense_action_values(log=LOG, target=TARGET, **more):
    phi = pair_table(log.states, log.actions)
    after = pair_table(log.next_states, probabilities=target[log.next_states])
    coef, _ = weights(phi, after, log.rewards, 0.9 * ~log.terminated, intercept=False, **more)
    return coef.reshape(3, 12).T


def test_off_policy_action_values_are_the_targets():
    exact = ENV.action_values(TARGET)
    log = ENV.collect(300_000, seed=5)
    model = va.LinearValue(features=Tabular(12), discount=0.9, policy=of_target).fit(log)
    found = model.coef_.reshape(3, 12).T
    # An entry's error is about the spread of its targets, .1, over the root of its 8,000 rows, over 1 - discount.
    assert np.abs(found - exact).max() < 0.03
    assert np.abs(exact - ENV.action_values(ENV.behaviour)).max() > 0.1
    assert model.evaluates_ == "Action values of the given policy, next features expected over its 3 actions."


@pytest.mark.parametrize("sparse", [True, False])
def test_they_equal_an_explicit_computation(sparse):
    expected = dense_action_values()
    states, actions = np.divmod(np.arange(36), 3)
    forms = {
        "function": ({"policy": of_target}, {}),
        "array": ({}, {"next_probabilities": of_target(LOG.next_states)}),
        "blocks given": ({"policy": of_target, "features": StateActionBlocks(Tabular(12, sparse), 3, sparse)}, {}),
        "pairs": ({"policy": of_target, "features": lambda s, a: pair_table(s, a)}, {}),
    }
    for name, (parameters, more) in forms.items():
        parameters = {"features": Tabular(12, sparse), "discount": 0.9, "fit_intercept": False, **parameters}
        model = va.LinearValue(**parameters).fit(LOG, **more)
        np.testing.assert_allclose(
            model.predict(states, actions), expected.ravel(), rtol=1e-10, atol=1e-10, err_msg=name
        )
        assert model.problem_.rows.n_stored <= 36 + 12  # each pair, and each next state, once
    assert model.problem_.layout == "indexed"


def test_a_ridge_and_an_intercept_beside_them():
    phi = pair_table(LOG.states, LOG.actions)
    after = pair_table(LOG.next_states, probabilities=of_target(LOG.next_states))
    coef, level = weights(phi, after, LOG.rewards, 0.9 * ~LOG.terminated, 0.02)
    model = va.LinearValue(features=Tabular(12), discount=0.9, policy=of_target, ridge=0.02).fit(LOG)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-8)
    assert model.intercept_ == pytest.approx(level, rel=1e-8)


def test_many_states_are_met_in_blocks_and_give_the_same():
    rng = np.random.default_rng(0)
    n = 40_000
    states, nexts = rng.normal(size=(2, n, 2))
    actions, rewards = rng.integers(0, 3, n), rng.normal(size=n)
    log = va.Transitions(states, rewards, nexts, actions=actions, terminated=rng.random(n) < 0.1)

    def policy(s):
        powers = np.exp(s @ np.array([[1.0, 0.0, -1.0], [0.0, 1.0, 0.0]]))
        return powers / powers.sum(axis=1, keepdims=True)

    poly = PolynomialFeatures(2)
    phi = poly.fit_transform(states)
    after = (policy(nexts)[:, :, None] * poly.transform(nexts)[:, None, :]).reshape(n, -1)
    phi = (np.eye(3)[actions][:, :, None] * phi[:, None, :]).reshape(n, -1)
    coef, level = weights(phi, after, rewards, np.where(log.terminated, 0.0, 0.8), 0.01)
    for features in (poly, lambda s, a: (np.eye(3)[a][:, :, None] * poly.transform(s)[:, None, :]).reshape(len(s), -1)):
        model = va.LinearValue(features=features, discount=0.8, policy=policy, ridge=0.01).fit(log)
        np.testing.assert_allclose(model.coef_, coef, rtol=1e-8, atol=1e-10)
    expected = (policy(states[:5])[:, :, None] * poly.transform(states[:5])[:, None, :]).reshape(5, -1) @ coef + level
    np.testing.assert_allclose(model.predict(states[:5]), expected, rtol=1e-8)


def test_expectations_of_sparse_pairs_are_sparse():
    def pairs(states, actions):
        return StateActionBlocks(Tabular(12), 3).transform((states, actions))

    model = va.LinearValue(features=pairs, discount=0.9, policy=of_target, fit_intercept=False).fit(LOG)
    assert model.problem_.layout == "sparse"
    np.testing.assert_allclose(model.coef_.reshape(3, 12).T, dense_action_values(), rtol=1e-10)


def test_the_value_of_states_weights_their_actions():
    model = va.LinearValue(features=Tabular(12), discount=0.9, policy=of_target).fit(LOG)
    values = model.predict(np.repeat(np.arange(12), 3), np.tile(np.arange(3), 12)).reshape(12, 3)
    np.testing.assert_allclose(model.predict(np.arange(12)), (TARGET * values).sum(axis=1), rtol=1e-12)
    fixed = va.LinearValue(features=Tabular(12), discount=0.9, policy=lambda s: s % 3).fit(LOG)
    np.testing.assert_allclose(fixed.predict(np.arange(12)), fixed.predict(np.arange(12), np.arange(12) % 3))
    sampled = va.LinearValue(features=Tabular(12), discount=0.9, values="action").fit(
        ENV.collect(500, next_actions=True)
    )
    with pytest.raises(va.InputError, match="these are action values: give actions="):
        sampled.predict(np.arange(12))


def test_next_actions_are_the_policy_of_the_log():
    log = ENV.collect(4000, seed=2, next_actions=True)
    model = va.LinearValue(features=Tabular(12), discount=0.9, values="action", fit_intercept=False).fit(log)
    after = pair_table(log.next_states, log.next_actions)
    coef, _ = weights(pair_table(log.states, log.actions), after, log.rewards, np.full(4000, 0.9), intercept=False)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-9)
    by_keyword = va.LinearValue(features=Tabular(12), discount=0.9, values="action", fit_intercept=False).fit(
        log.states, log.rewards, next_states=log.next_states, actions=log.actions, next_actions=log.next_actions
    )
    np.testing.assert_allclose(by_keyword.coef_, coef, rtol=1e-9)
    assert model.evaluates_ == "Action values of the policy that took the next actions."


def test_next_states_of_ended_rows_are_not_looked_at():
    ended = np.arange(4000) % 7 == 0
    nexts, chances = LOG.next_states.copy(), of_target(LOG.next_states)
    nexts[ended], chances[ended] = 11, np.nan
    other = {"actions": LOG.actions, "terminated": ended}
    model = va.LinearValue(features=Tabular(12), discount=0.9, fit_intercept=False).fit(
        va.Transitions(LOG.states, LOG.rewards, nexts, **other), next_probabilities=chances
    )
    plain = va.LinearValue(features=Tabular(12), discount=0.9, policy=of_target, fit_intercept=False)
    plain.fit(va.Transitions(LOG.states, LOG.rewards, LOG.next_states, **other))
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-12)


def test_actions_that_are_numbers_stand_behind_those_of_the_state():
    rng = np.random.default_rng(1)
    n = 500
    states, actions, nexts, following = rng.normal(size=(4, n, 2))
    rewards = (states * actions).sum(axis=1)
    log = va.Transitions(states, rewards, nexts, actions=actions)
    poly = PolynomialFeatures(2, include_bias=False)
    phi, after = poly.fit_transform(np.hstack([states, actions])), poly.transform(np.hstack([nexts, 0.5 * nexts]))
    coef, level = weights(phi, after, rewards, np.full(n, 0.7))
    model = va.LinearValue(features=poly, discount=0.7, policy=lambda s: 0.5 * s, values="action").fit(log)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(model.predict(nexts), after @ coef + level, rtol=1e-8)
    np.testing.assert_allclose(model.predict(states, actions), phi @ coef + level, rtol=1e-8)
    by_array = va.LinearValue(features=poly, discount=0.7, values="action").fit(log, next_actions=0.5 * nexts)
    np.testing.assert_allclose(by_array.coef_, coef, rtol=1e-8, atol=1e-9)


def test_data_frames_and_classifiers():
    frame = pd.DataFrame({"s": LOG.states, "size": 1.0})
    after = pd.DataFrame({"s": LOG.next_states, "size": 1.0})
    clone_of_behaviour = RandomForestClassifier(5, random_state=0).fit(frame, LOG.actions)
    chances = clone_of_behaviour.predict_proba(after)

    def indicators(states):
        return np.eye(12)[states["s"].to_numpy()]

    model = va.LinearValue(features=indicators, discount=0.9, policy=clone_of_behaviour, fit_intercept=False)
    model.fit(frame, LOG.rewards, next_states=after, actions=LOG.actions)
    coef, _ = weights(
        pair_table(LOG.states, LOG.actions),
        pair_table(LOG.next_states, probabilities=chances),
        LOG.rewards,
        np.full(4000, 0.9),
        intercept=False,
    )
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-8)


def test_state_values_by_importance_ratios_from_logged_probabilities():
    behaviour = np.random.default_rng(7).dirichlet(5 * np.ones(3), 12)
    log = ENV.collect(60_000, behaviour, seed=4)
    chances = behaviour[log.states, log.actions]
    given = {"actions": log.actions, "next_states": log.next_states, "probabilities": chances}
    model = va.LinearValue(features=Tabular(12), discount=0.9, policy=of_target).fit(log.states, log.rewards, **given)
    ratios = TARGET[log.states, log.actions] / chances
    eye = np.eye(12)
    coef, _ = weights(
        eye[log.states], eye[log.next_states], log.rewards, np.full(60_000, 0.9), ratios=ratios, intercept=False
    )
    np.testing.assert_allclose(model.predict(np.arange(12)), coef, rtol=1e-9)
    assert np.abs(coef - ENV.values(TARGET)).max() < 0.06
    assert model.kind_ == "state"
    effective = ratios.sum() ** 2 / (ratios**2).sum()
    assert model.evaluates_ == (
        "State values of the given policy, by importance ratios from the logged probabilities, each on its row; "
        f"{effective:,.0f} of 60,000 rows are effective."
    )
    assert log.ratios is None
    other = va.LinearValue(features=Tabular(12), discount=0.9, policy=of_target, solver=va.LSTD(ratio_on="next"))
    other.fit(log.states, log.rewards, **given)
    assert "each on the next value" in other.evaluates_
    assert 0 < np.abs(other.predict(np.arange(12)) - coef).max() < 0.5
    certain = va.LinearValue(features=Tabular(12), discount=0.9, policy=lambda s: s % 3)
    certain.fit(log.states, log.rewards, **given)
    certain_ratios = (log.actions == log.states % 3) / chances
    coef, _ = weights(
        eye[log.states], eye[log.next_states], log.rewards, np.full(60_000, 0.9), ratios=certain_ratios, intercept=False
    )
    np.testing.assert_allclose(certain.predict(np.arange(12)), coef, rtol=1e-9)


def test_a_log_with_probabilities_is_asked_for_state_values_and_others_for_action_values():
    log = va.Transitions(
        LOG.states, LOG.rewards, LOG.next_states, actions=LOG.actions, probabilities=np.full(4000, 1 / 3)
    )
    kinds = [
        va.LinearValue(features=Tabular(12), policy=of_target, values=values).fit(given).kind_
        for given, values in ((log, "auto"), (LOG, "auto"), (log, "action"))
    ]
    assert kinds == ["state", "action", "action"]
    assert va.LinearValue(features=Tabular(12)).fit(log).kind_ == "state"


class TestActionsThatTheLogNeverTook:
    """Importance ratios are 0 where the policy does something else, and say nothing of what it does."""

    LOG = va.Transitions(
        LOG.states,
        LOG.rewards,
        LOG.next_states,
        actions=LOG.actions % 2,
        probabilities=np.where(LOG.actions == 1, 1 / 3, 2 / 3),
    )

    def model(self, policy, **more):
        return va.LinearValue(features=Tabular(12), discount=0.9, policy=policy, values="state", **more)

    def test_they_are_refused(self):
        with pytest.raises(
            va.InputError, match=r"the policy takes action 2 with probability 0\.8 on average, and the log"
        ):
            self.model(lambda s: np.tile([0.1, 0.1, 0.8], (len(s), 1))).fit(self.LOG)
        with pytest.raises(va.InputError, match=r"takes actions 2, 5 with probability 0\.\d+ on average"):
            self.model(lambda s: np.array([0, 1, 2, 5])[s % 4]).fit(self.LOG)

    def test_few_are_a_warning(self):
        with pytest.warns(va.ValuateWarning, match=r"takes action 2 with probability 0\.005 on average"):
            model = self.model(lambda s: np.tile([0.5, 0.495, 0.005], (len(s), 1))).fit(self.LOG)
        assert np.isfinite(model.coef_).all()
        self.model(lambda s: np.tile([0.5, 0.5, 0.0], (len(s), 1))).fit(self.LOG)  # columns of 0 are no actions

    def test_a_policy_that_never_does_what_was_logged(self):
        with pytest.raises(va.InputError, match=r"in none of the 4,000 rows.* actions 0, 1, the policy takes 7\. Do"):
            self.model(lambda s: np.full(len(s), 7)).fit(self.LOG)

    def test_a_part_of_a_log_may_lack_an_action(self):
        zeros = self.LOG[self.LOG.actions == 0]
        model = self.model(lambda s: np.tile([0.5, 0.5], (len(s), 1)))
        with pytest.warns(va.ValuateWarning, match="takes action 1 with probability 0.5"):
            model.partial_fit(zeros[:50])
        model.fit(self.LOG)
        with pytest.warns(va.ValuateWarning, match="takes action 1 with probability 0.5"):
            assert model.score(zeros) < 0


def wrong_sum(states):
    chances = of_target(states)
    chances[3] *= 0.9
    return chances


@pytest.mark.parametrize(
    ("parameters", "more", "message"),
    [
        ({"policy": wrong_sum}, {}, r"the policy's probabilities must sum to 1 in each row; row \d+ sums to 0.9 "),
        ({"policy": lambda s: of_target(s) - 0.5}, {}, "the policy's probabilities must be at least 0; row 0 has"),
        ({"policy": lambda s: of_target(s)[:, :2] / 0.1}, {}, "must sum to 1"),
        ({"policy": lambda s: np.ones((len(s), 1))}, {}, "actions must be among the 1 actions, 0 to 0; row"),
        ({"policy": lambda s: of_target(s)[:3]}, {}, r"the policy gave an array of shape \(\d, 3\) for \d+ states"),
        ({"policy": lambda s: np.full(len(s), 0.5)}, {}, "the policy gave float64 numbers of shape .* no actions"),
        ({"policy": lambda s: np.full(len(s), 7), "features": StateActionBlocks(Tabular(12), 3)}, {},
         "the policy's actions must be among the 3 actions, 0 to 2; row 4 has 7"),
        ({"policy": "greedy"}, {}, "policy must be callable"),
        ({}, {"next_probabilities": np.full((4000, 3), 0.3)}, "next_probabilities must sum to 1 in each row; row 0"),
        ({}, {"next_probabilities": np.ones(4000)}, r"next_probabilities must have shape \(4000, n_actions\)"),
        ({}, {"next_probabilities": np.ones((10, 3)) / 3}, r"next_probabilities must have shape \(4000, n_actions\)"),
        ({}, {"next_probabilities": np.full((4000, 2), 0.5)}, "actions must be among the 2 actions, 0 to 1; row"),
        ({"features": StateActionBlocks(Tabular(12), 4)}, {"next_probabilities": of_target(LOG.next_states)},
         "next_probabilities are of 3 actions and there are 4"),
        ({"features": StateActionBlocks(Tabular(12), 4), "policy": of_target}, {},
         "the policy gives probabilities of 3 actions and the model has 4"),
        ({"values": "action"}, {}, "action values need to know what happens in the next states"),
        ({"values": "state"}, {"next_probabilities": of_target(LOG.next_states)}, "next_probabilities are for action"),
        ({"values": "state", "policy": of_target}, {}, "the log has no probabilities. Give actions= and"),
        ({"values": "action"}, {"next_actions": np.full(4000, 5)}, ""),
        ({}, {"next_actions": np.zeros(3), }, "next_actions has 3 entries and the log has 4000 rows"),
        ({}, {"next_actions": np.zeros(4000), "next_probabilities": of_target(LOG.next_states)}, "not both"),
    ],
)  # fmt: skip
def test_policies_that_make_no_sense_are_refused(parameters, more, message):
    model = va.LinearValue(**{"features": Tabular(12), "discount": 0.9, **parameters})
    if not message:  # an action that was never taken has features, and no weight is known for it
        assert model.fit(LOG, **more).problem_.dim == 72
        return
    with pytest.raises((va.InputError, va.InputTypeError), match=message):
        model.fit(LOG, **more)


def test_more_that_is_refused():
    cases = [
        (va.Transitions(LOG.states, LOG.rewards, LOG.next_states), "action values need the actions of the log"),
        (
            va.Transitions(LOG.states, LOG.rewards, LOG.next_states, actions=LOG.actions - 1),
            "must be whole numbers from 0",
        ),
    ]
    for log, message in cases:
        with pytest.raises(va.InputError, match=message):
            va.LinearValue(features=StateActionBlocks(Tabular(12), 3), values="action", policy=of_target).fit(log)
    log = va.Transitions(LOG.states, LOG.rewards, LOG.next_states, actions=LOG.actions, ratios=np.ones(4000))
    with pytest.raises(va.InputError, match="the log has ratios already"):
        va.LinearValue(features=Tabular(12), values="state", policy=of_target).fit(log)
    with pytest.raises(va.InputError, match="probabilities must be above 0; row 2 has 0"):
        va.LinearValue(policy=of_target).fit(
            LOG.states[:, None], LOG.rewards, actions=LOG.actions, probabilities=np.arange(4000) != 2
        )
    model = va.LinearValue(features=Tabular(12), policy=of_target, discount=0.9).fit(LOG)
    with pytest.raises(va.InputError, match="actions must be among the 3 actions"):
        model.predict([0, 1], [0, 3])
    with pytest.raises(va.InputError, match=r"actions has shape \(1,\) and there are 2 states"):
        model.predict([0, 1], [0])


def test_what_is_given_for_the_next_states_comes_before_the_policy():
    fixed = {"features": Tabular(12), "discount": 0.9, "fit_intercept": False}
    model = va.LinearValue(**fixed, policy=of_target).fit(LOG, next_actions=LOG.next_states % 3)
    other = va.LinearValue(**fixed, policy=lambda s: s % 3).fit(LOG)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-12)
    by_array = va.LinearValue(**fixed).fit(LOG, next_actions=LOG.next_states % 3)
    assert by_array.kind_ == "action"
    np.testing.assert_allclose(by_array.coef_, other.coef_, rtol=1e-12)
    log = ENV.collect(500, seed=9, next_actions=True)
    with pytest.raises(
        va.InputError, match="the model was fitted with the next actions of another policy than the log's"
    ):
        by_array.score(log)
    scores = [m.score(log, **more) for m, more in ((by_array, {"next_actions": log.next_states % 3}), (other, {}))]
    assert scores[0] == pytest.approx(scores[1], rel=1e-9)
