"""The number: what the model hands to `valuate.inference`, in the coordinates of its own problem."""

import numpy as np
import pytest

import valuate as va
from valuate import inference
from valuate.environments import Garnet, RandomWalk
from valuate.features import Tabular


def log_of(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    x = np.zeros((n + 1, 2))
    for t in range(n):
        x[t + 1] = rng.normal(size=2) if t % 30 == 29 else 0.8 * x[t] + rng.normal(size=2)
    nexts = x[1:].copy()
    ends = np.arange(n) % 30 == 29
    return va.Transitions(
        x[:-1] + 3.0, x[:-1, 0] + rng.normal(size=n), nexts + 3.0, truncated=ends, episodes=np.arange(n) // 30
    )


def reference(log, ridge, discount=0.9):
    """The same by a problem with a constant feature, which a ridge of 0 leaves alone."""
    problem = va.Problem.from_transitions(log, lambda s: np.column_stack([s, np.ones(len(s))]), discount=discount)
    return inference.policy_value(problem, va.LSTD().solve(problem))


def test_the_value_of_first_states_with_its_interval():
    log = log_of()
    model = va.LinearValue(discount=0.9).fit(log)
    found, expected = model.policy_value(), reference(log, 0.0)
    assert found.value == pytest.approx(expected.value, rel=1e-10)
    assert found.interval == pytest.approx(expected.interval, rel=1e-8)
    first = log.states[::30]
    assert found.value == pytest.approx(model.predict(first).mean(), rel=1e-9)
    assert found.episodes == 40


@pytest.mark.parametrize("solver", ["lstd", "gmres", "svrg", "auto"])
def test_the_intercept_without_ridge_is_in_the_interval(solver):
    log = log_of()
    tiny = reference(log, 0.0)
    model = va.LinearValue(discount=0.9, ridge=1e-9, solver=solver, passes=1000).fit(log)
    found = model.policy_value()
    # A ridge of next to nothing changes next to nothing, however its intercept is kept out of it.
    assert found.value == pytest.approx(tiny.value, rel=1e-5)
    assert found.standard_error == pytest.approx(tiny.standard_error, rel=1e-4)
    heavy = va.LinearValue(discount=0.9, ridge=1e6, solver=solver, passes=1000).fit(log)
    # Only the intercept is left: the mean reward over 1 - discount, whose standard error is that of the mean.
    mean = log.rewards.reshape(40, 30).mean(axis=1)
    assert heavy.policy_value(deletion=False).value == pytest.approx(mean.mean() / 0.1, rel=1e-4)
    assert heavy.policy_value(deletion=False).standard_error == pytest.approx(
        mean.std(ddof=1) / np.sqrt(40) / 0.1, rel=1e-3
    )


def test_states_that_are_asked_for():
    log = log_of()
    model = va.LinearValue(discount=0.9, ridge=0.1).fit(log)
    states = np.array([[3.0, 3.0], [4.0, 2.0], [2.0, 2.0]])
    found = model.policy_value(states, confidence=0.9)
    assert found.value == pytest.approx(model.predict(states).mean(), rel=1e-9)
    assert found.confidence == 0.9
    sample = model.policy_value(states, fixed_initial=False)
    assert sample.standard_error > found.standard_error


def test_action_values_under_the_policy_in_first_states():
    env = Garnet(8, 3, branching=3, seed=0, discount=0.9)
    target = np.random.default_rng(0).dirichlet(np.ones(3), 8)
    log = env.collect(4000, seed=1, copies=50)
    model = va.LinearValue(features=Tabular(8), discount=0.9, policy=lambda s: target[s]).fit(log)
    first = log.states[np.r_[True, log.episodes[1:] != log.episodes[:-1]]]
    found = model.policy_value()
    assert found.value == pytest.approx(model.predict(first).mean(), rel=1e-9)
    exact = env.values(target)[first].mean()
    assert abs(found.value - exact) < 4 * found.standard_error
    chosen = model.policy_value([0, 1], [2, 2])
    assert chosen.value == pytest.approx(model.predict(np.array([0, 1]), [2, 2]).mean(), rel=1e-9)
    by_array = va.LinearValue(features=Tabular(8), discount=0.9).fit(log, next_probabilities=target[log.next_states])
    with pytest.raises(va.InputError, match="first states have no action of the policy"):
        by_array.policy_value()
    assert by_array.policy_value([0, 1], [2, 2]).value == pytest.approx(chosen.value, rel=1e-9)
    sampled = env.collect(4000, seed=1, copies=50, next_actions=True)
    followed = va.LinearValue(features=Tabular(8), discount=0.9, values="action").fit(sampled)
    starts = np.flatnonzero(np.r_[True, sampled.episodes[1:] != sampled.episodes[:-1]])
    assert followed.policy_value().value == pytest.approx(
        followed.predict(sampled.states[starts], sampled.actions[starts]).mean(), rel=1e-9
    )


def test_one_long_chain_under_a_policy():
    env = Garnet(8, 3, branching=3, seed=0, discount=0.9)
    log = env.collect(3000, seed=1, copies=1)
    model = va.LinearValue(features=Tabular(8), discount=0.9, policy=lambda s: s % 3).fit(log)
    found = model.policy_value()
    assert found.method == "blocks"
    assert found.value == pytest.approx(model.predict(log.states[:1])[0], rel=1e-9)


def test_two_policies_on_one_log():
    env = Garnet(8, 3, branching=3, seed=0, discount=0.9)
    log = env.collect(4000, seed=1, copies=50)
    models = [
        va.LinearValue(features=Tabular(8), discount=0.9, policy=lambda s, a=a: np.full(len(s), a)).fit(log)
        for a in (0, 1)
    ]
    found = va.compare_policies(*models)
    assert found.value == pytest.approx(models[0].policy_value().value - models[1].policy_value().value)
    assert found.paired and found.confidence == 0.95
    same = va.compare_policies(models[0].policy_value(confidence=0.9), models[1].policy_value(confidence=0.9))
    assert same.standard_error == pytest.approx(found.standard_error)
    assert va.compare_policies(*models, confidence=0.5).confidence == 0.5
    with pytest.raises(va.InputTypeError, match="first must be a fitted LinearValue or a PolicyValue, not int"):
        va.compare_policies(3, models[0])


def test_a_log_that_does_not_know_its_episodes():
    log = RandomWalk().collect(300, seed=0)
    bare = va.Transitions(log.states, log.rewards, log.next_states, terminated=log.terminated)
    model = va.LinearValue(features=Tabular(5), discount=1.0).fit(bare)
    with pytest.raises(va.InputError, match="episodes"):
        model.policy_value()
    assert model.policy_value([2], episodes=log.episodes).episodes == len(np.unique(log.episodes))
