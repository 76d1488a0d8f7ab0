"""Influence, jackknife and standard error against explicit matrices, complex steps and refits."""

import numpy as np
import pytest

from battery import LAYOUTS, case
from valuate import LSTD, Problem
from valuate.environments import Garnet, TabularMDP
from valuate.errors import InputError
from valuate.inference import adjoint, bootstrapping, fixed_point, policy_value

KINDS = [{}, {"ratios": True}, {"weights": True, "ridge": 0.1}, {"ratios": True, "weights": True, "ridge": 0.02}]


class Explicit:
    """The rows of a log as matrices, fitted under any weights, also complex ones: no code shared with the library."""

    def __init__(self, oracle, labels, initial, initial_labels=None):
        self.o, self.labels, self.initial, self.own = oracle, labels, initial, initial_labels
        self.names = list(dict.fromkeys(labels.tolist()))

    def value(self, multipliers=None):
        """phi0 theta where the weight of every label is multiplied."""
        o = self.o
        times = dict.fromkeys(self.names, 1.0) | (multipliers or {})
        w = o.w * np.array([times[label] for label in self.labels.tolist()])
        a = (o.phi.T * (w * o.rho)) @ o.delta / w.sum() + o.ridge * np.eye(o.d)
        theta = np.linalg.solve(a, o.phi.T @ (w * o.rho * o.r) / w.sum())
        if self.own is None:
            return self.initial.mean(axis=0) @ theta
        share = np.array([times[label] for label in self.own.tolist()])
        return share @ self.initial / share.sum() @ theta

    def influence(self):
        """Derivatives by the multipliers, by complex steps: exact."""
        return np.array([self.value({name: 1.0 + 1e-30j}).imag / 1e-30 for name in self.names])

    def deleted(self):
        """What leaving each label out changes."""
        return np.array([self.value() - self.value({name: 0.0}) for name in self.names])


def labelled(n, seed=0):
    """Labels of about five rows each, that do not lie together."""
    return np.random.default_rng(seed).permutation(np.arange(n) // 5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kinds", KINDS)
def test_influence_and_deletion_by_the_definition(layout, kinds):
    given = case(layout, n=120, **kinds)
    labels, initial = labelled(120), np.random.default_rng(1).normal(size=(4, 5))
    explicit = Explicit(given.oracle, labels, initial)
    solution = LSTD().solve(given.problem)
    found = policy_value(given.problem, solution, initial, episodes=labels)
    assert found.value == pytest.approx(explicit.value(), rel=1e-10)
    np.testing.assert_allclose(found.influence, explicit.influence(), rtol=1e-8, atol=1e-12)
    g = len(explicit.names)
    assert (found.episodes, found.degrees, found.method, found.correction) == (g, g - 1, "episodes", "deletion")
    expected = np.sqrt((g - 1) / g * np.sum(explicit.deleted() ** 2))
    assert found.standard_error == pytest.approx(expected, rel=1e-8)
    first = policy_value(given.problem, solution, initial, episodes=labels, deletion=False)
    assert first.standard_error == pytest.approx(np.sqrt(g / (g - 1) * np.sum(found.influence**2)), rel=1e-12)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("sparse", [False, True])
def test_initial_states_that_are_sampled_with_their_episodes(kinds, sparse):
    given = case("sparse" if sparse else "dense", n=120, **kinds)
    labels, rng = labelled(120), np.random.default_rng(2)
    initial, own = rng.normal(size=(9, 5)), rng.choice(24, 9)
    explicit = Explicit(given.oracle, labels, initial, own)
    rows = __import__("scipy.sparse", fromlist=["csr_array"]).csr_array(initial) if sparse else initial
    found = policy_value(given.problem, LSTD().solve(given.problem), rows, episodes=labels, initial_episodes=own)
    assert found.value == pytest.approx(explicit.value(), rel=1e-10)
    np.testing.assert_allclose(found.influence, explicit.influence(), rtol=1e-8, atol=1e-12)
    g = len(explicit.names)
    expected = np.sqrt((g - 1) / g * np.sum(explicit.deleted() ** 2))
    assert found.standard_error == pytest.approx(expected, rel=1e-8)


def slow_log(episodes=40, steps=30, seed=0, **more):
    process = Garnet(20, 3, 3, 5, 0.9, seed=1)
    process.limit = steps
    return process, process.collect(episodes * steps, copies=episodes, seed=seed, **more)


def test_first_states_of_the_episodes_are_the_default():
    process, log = slow_log()
    problem = Problem.from_transitions(log, process.features, discount=0.9)
    solution = LSTD().solve(problem)
    firsts = process.features(log.states[::30])
    found = policy_value(problem, solution)
    given = policy_value(problem, solution, firsts, initial_episodes=np.arange(40))
    assert found.value == pytest.approx(np.mean(firsts @ solution.theta), rel=1e-12)
    assert found.standard_error == pytest.approx(given.standard_error, rel=1e-12)
    # Taken for what is meant, they add nothing of their own; taken for a sample of their own, their variance.
    meant = policy_value(problem, solution, fixed_initial=True, deletion=False)
    own = policy_value(problem, solution, firsts, fixed_initial=False, deletion=False)
    spread = np.var(firsts @ solution.theta, ddof=1) / 40
    assert own.standard_error**2 == pytest.approx(meant.standard_error**2 + spread, rel=1e-10)
    assert 39 < own.degrees < 78


@pytest.mark.parametrize("solver", [LSTD(), LSTD(trace_decay=0.7), LSTD(trace_decay=0.7, ratio_on="next")], ids=repr)
def test_derivative_by_the_weight_of_an_episode(solver):
    """The weight of one episode is moved up and down in the problem, and the solver is run again."""
    process, log = slow_log(target=np.tile([0.5, 0.3, 0.2], (20, 1)))
    features = process.features(log.states), process.features(log.next_states)

    def fitted(weights):
        problem = Problem.from_arrays(
            features[0],
            log.rewards,
            features[1],
            discount=0.9,
            ratios=log.ratios,
            weights=weights,
            episodes=log.episodes,
            ridge=0.01,
        )
        return problem, solver.solve(problem)

    initial = process.table.mean(axis=0)
    found = policy_value(*fitted(np.ones(len(log))), initial)
    for episode in (0, 7, 39):
        step = 1e-4 * (log.episodes == episode)
        up, down = (float(initial @ fitted(1.0 + sign * step)[1].theta) for sign in (1, -1))
        assert found.influence[episode] == pytest.approx((up - down) / 2e-4, rel=1e-6, abs=1e-12)


def test_first_order_and_deletion_meet_as_episodes_become_many():
    gaps = []
    for episodes in (25, 400):
        process, log = slow_log(episodes)
        problem = Problem.from_transitions(log, lambda s: np.eye(20)[s], discount=0.9)
        solution = LSTD().solve(problem)
        exact, first = (policy_value(problem, solution, deletion=on).standard_error for on in (True, False))
        gaps.append(exact / first - 1)
    assert abs(gaps[0]) < 0.03 and abs(gaps[1]) < 0.002


def test_a_bootstrap_agrees(monkeypatch):
    process, log = slow_log(150)
    problem = Problem.from_transitions(log, process.features, discount=0.9)
    solution = LSTD().solve(problem)
    found = policy_value(problem, solution, bootstrap=1000, seed=1)
    assert found.bootstrap_error == pytest.approx(found.standard_error, rel=0.08)
    np.testing.assert_allclose(found.bootstrap_interval, found.interval, atol=0.3 * found.standard_error)
    again = policy_value(problem, solution, bootstrap=1000, seed=1)
    assert again.bootstrap_interval == found.bootstrap_interval
    monkeypatch.setattr(bootstrapping, "WORK", 0)
    linear = policy_value(problem, solution, bootstrap=1000, seed=1)
    assert linear.bootstrap_error == pytest.approx(found.standard_error, rel=0.08)


def test_the_delta_method_in_one_state():
    """V = mean reward / (1 - discount * share of rows that go on): a ratio, whose standard error is in every book."""
    rng = np.random.default_rng(3)
    n, discount = 500, 0.9
    rewards, ended = rng.normal(2.0, 1.0, n), rng.random(n) < 0.2
    one = np.ones((n, 1))
    problem = Problem.from_arrays(one, rewards, one, discount=discount, terminated=ended)
    found = policy_value(problem, LSTD().solve(problem), [1.0], episodes="rows", deletion=False)
    below = 1 - discount * np.mean(~ended)
    value = rewards.mean() / below
    terms = (rewards - rewards.mean() + discount * value * (~ended - np.mean(~ended))) / below
    assert found.value == pytest.approx(value, rel=1e-12)
    assert found.standard_error == pytest.approx(terms.std(ddof=1) / np.sqrt(n), rel=1e-10)
    assert (found.method, found.episodes) == ("rows", n)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ridge", [0.0, 0.1])
def test_products_instead_of_a_matrix(layout, ridge, monkeypatch):
    given = case(layout, n=120, ridge=ridge, ratios=True)
    labels, initial = labelled(120), np.random.default_rng(1).normal(size=(4, 5))
    dense = policy_value(given.problem, LSTD().solve(given.problem), initial, episodes=labels, deletion=False)
    monkeypatch.setattr(adjoint, "forms_matrix", lambda problem: False)
    problem = case(layout, n=120, ridge=ridge, ratios=True).problem
    rough = policy_value(problem, LSTD().solve(given.problem), initial, episodes=labels)
    assert rough.standard_error == pytest.approx(dense.standard_error, rel=0.005)
    monkeypatch.setattr(fixed_point, "SETTLED", 0.0)
    found = policy_value(problem, LSTD().solve(given.problem), initial, episodes=labels)
    assert not problem.knows("A")
    assert found.value == pytest.approx(dense.value, rel=1e-9)
    np.testing.assert_allclose(found.influence, dense.influence, rtol=1e-5, atol=1e-7)
    assert found.correction == "none"
    with pytest.raises(InputError, match="deletion=True needs A as a matrix"):
        policy_value(problem, LSTD().solve(given.problem), initial, episodes=labels, deletion=True)


def test_weights_are_how_often_a_row_counts():
    given = case("dense", n=120)
    labels, initial = labelled(120), np.ones(5)
    theta = LSTD().solve(given.problem)

    def valued(weights):
        o = given.oracle
        problem = Problem.from_arrays(
            o.phi,
            o.r,
            np.where(o.discounts[:, None] > 0, (o.phi - o.delta) / np.maximum(o.discounts, 1e-9)[:, None], 0.0),
            discount=o.discounts,
            weights=weights,
        )
        return policy_value(problem, theta, initial, episodes=labels)

    one, three = valued(None), valued(np.full(120, 3.0))
    assert three.standard_error == pytest.approx(one.standard_error, rel=1e-10)
    # An episode of weight 0 is not there.
    without = valued((labels != 3).astype(float))
    assert without.episodes == one.episodes - 1
    assert without.value == pytest.approx(
        one.value
        - Explicit(given.oracle, labels, initial[None]).deleted()[list(dict.fromkeys(labels.tolist())).index(3)],
        rel=1e-9,
    )


def test_a_process_that_ends_and_restarts():
    """Episodes of random lengths: the standard error agrees with the spread of 300 logs."""
    chain = TabularMDP(
        np.full((3, 1, 2), 0.5),
        np.arange(6.0).reshape(3, 1, 2),
        np.array([[[1, 3]], [[2, 3]], [[0, 3]]]),
        discount=0.9,
        limit=50,
    )
    rng, found = np.random.default_rng(0), []
    from valuate.experiments.coverage import simulate

    for _ in range(300):
        log = simulate(chain, 60, rng)
        problem = Problem.from_table(
            chain.table,
            log.states,
            log.rewards,
            log.next_states,
            discount=0.9,
            terminated=log.terminated,
            episodes=log.episodes,
        )
        found.append(policy_value(problem, LSTD().solve(problem)))
    spread = np.std([number.value for number in found])
    assert np.mean([number.standard_error for number in found]) == pytest.approx(spread, rel=0.1)
    exact = float(chain.start @ chain.values())
    assert np.mean([number.value for number in found]) == pytest.approx(exact, abs=4 * spread / np.sqrt(300))
