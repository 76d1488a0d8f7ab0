"""Exact quantities and the checks of what an environment is given."""

import re

import numpy as np
import numpy.linalg as la
import pytest

from valuate.environments import BairdStar, BoyanChain, Garnet, RandomMDP, RandomWalk, TabularMDP
from valuate.errors import InputError, InputTypeError


def small(**options):
    """Three states, two actions, of which one ends the process now and then."""
    probabilities = [[[0.2, 0.8], [0.5, 0.5]], [[1.0, 0.0], [0.3, 0.7]], [[0.6, 0.4], [0.9, 0.1]]]
    successors = [[[0, 1], [2, 3]], [[2, 0], [1, 2]], [[0, 3], [1, 1]]]
    rewards = np.arange(12.0).reshape(3, 2, 2) - 4.0
    return TabularMDP(probabilities, rewards, successors, **{"discount": 0.9} | options)


ENVIRONMENTS = {
    "small": small(),
    "limited": small(limit=3, start=[0.7, 0.2, 0.1]),
    "garnet": Garnet(12, 3, 4, 5, seed=1),
    "random": RandomMDP(9, 3, 4, seed=2),
    "code": RandomMDP(9, 3, 4, seed=2, variant="code"),
    "walk": RandomWalk(7),
    "boyan": BoyanChain(),
    "baird": BairdStar(),
}


def outcomes(env):
    """Every (state, action, probability, reward, next state or None), one after the other."""
    shape = env.probabilities.shape
    rewards, successors = np.broadcast_to(env.rewards, shape), np.broadcast_to(env.successors, shape)
    for place in np.ndindex(shape):
        after = successors[place]
        yield place[0], place[1], env.probabilities[place], rewards[place], None if after == env.n_states else after


def slow_model(env, policy):
    """Transition matrix and mean rewards of a policy, summed outcome by outcome."""
    matrix, rewards = np.zeros((env.n_states, env.n_states)), np.zeros(env.n_states)
    for s, a, p, r, after in outcomes(env):
        rewards[s] += policy[s, a] * p * r
        if after is not None:
            matrix[s, after] += policy[s, a] * p
    return matrix, rewards


def refuses(kind, message):
    return pytest.raises(kind, match=re.escape(message))


@pytest.fixture(params=ENVIRONMENTS)
def env(request):
    return ENVIRONMENTS[request.param]


@pytest.fixture
def policy(env):
    return env.random_policy(seed=5)


class TestExactQuantities:
    def test_transition_matrix(self, env, policy):
        matrix, _ = slow_model(env, policy)
        np.testing.assert_allclose(env.transition_matrix(policy), matrix, atol=1e-14)

    def test_values_are_what_iteration_leads_to(self, env, policy):
        matrix, rewards = slow_model(env, policy)
        values = np.zeros(env.n_states)
        for _ in range(4000):
            values = rewards + env.discount * matrix @ values
        np.testing.assert_allclose(env.values(policy), values, rtol=1e-9, atol=1e-9)

    def test_action_values_look_one_step_ahead(self, env, policy):
        values, expected = env.values(policy), np.zeros((env.n_states, env.n_actions))
        for s, a, p, r, after in outcomes(env):
            expected[s, a] += p * (r + (0.0 if after is None else env.discount * values[after]))
        found = env.action_values(policy)
        np.testing.assert_allclose(found, expected, atol=1e-10)
        np.testing.assert_allclose((policy * found).sum(axis=1), values, atol=1e-10)

    def test_stationary_distribution_is_the_share_of_each_state(self, env, policy):
        matrix, _ = slow_model(env, policy)
        state, total = env.start, np.zeros(env.n_states)
        rounds = 50_000 if env.limit is None else 20 * env.limit
        alive = env.start.copy()
        for t in range(rounds):
            total += state
            state = state @ matrix + (1.0 - matrix.sum(axis=1)) @ state * env.start
            if env.limit is not None:  # all copies have the same clock: what has not ended starts again with the rest
                alive = alive @ matrix
                state = alive
                if (t + 1) % env.limit == 0:
                    state = alive = env.start
        np.testing.assert_allclose(env.stationary_distribution(policy), total / total.sum(), atol=1e-4)

    def test_expectation_on_policy(self, env, policy):
        share, phi, d = env.stationary_distribution(policy), env.table, env.n_features
        a, b, c = np.zeros((d, d)), np.zeros(d), np.zeros((d, d))
        for s, action, p, r, after in outcomes(env):
            chance = share[s] * policy[s, action] * p
            following = 0.0 if after is None else env.discount * phi[after]
            a += chance * np.outer(phi[s], phi[s] - following)
            b += chance * r * phi[s]
            c += chance * np.outer(phi[s], phi[s])
        found = env.expectation(policy, target=policy)
        np.testing.assert_allclose(found.A, a, atol=1e-13)
        np.testing.assert_allclose(found.b, b, atol=1e-13)
        np.testing.assert_allclose(found.C, c, atol=1e-13)

    def test_expectation_off_policy(self, env, policy):
        target = env.random_policy(seed=6)
        share, phi, d = env.stationary_distribution(policy), env.table, env.n_features
        a, b = np.zeros((d, d)), np.zeros(d)
        for s, action, p, r, after in outcomes(env):
            chance = share[s] * policy[s, action] * p * (target[s, action] / policy[s, action])
            following = 0.0 if after is None else env.discount * phi[after]
            a += chance * np.outer(phi[s], phi[s] - following)
            b += chance * r * phi[s]
        found = env.expectation(policy, target)
        np.testing.assert_allclose(found.A, a, atol=1e-13)
        np.testing.assert_allclose(found.b, b, atol=1e-13)
        theta = env.fixed_point(policy, target)
        np.testing.assert_allclose(a @ theta, b, atol=1e-9)


class TestKnownAnswers:
    @pytest.mark.parametrize("n", [1, 2, 5, 19])
    def test_random_walk(self, n):
        env = RandomWalk(n)
        np.testing.assert_allclose(env.values(), np.arange(1, n + 1) / (n + 1))
        np.testing.assert_allclose(env.fixed_point(), env.values())
        distance = np.abs(np.arange(n) - (n - 1) / 2)
        shape = (n + 1) / 2 - distance  # a tent: expected visits from the middle
        np.testing.assert_allclose(env.stationary_distribution(), shape / shape.sum())

    def test_random_walk_features(self):
        half, third = 1 / np.sqrt(2), 1 / np.sqrt(3)
        dependent = [[1, 0, 0], [half, half, 0], [third, third, third], [0, half, half], [0, 0, 1]]
        np.testing.assert_allclose(RandomWalk(5, "dependent").table, dependent)
        np.testing.assert_allclose(RandomWalk(5, "inverted").table, 0.5 - 0.5 * np.eye(5))
        np.testing.assert_allclose(la.norm(RandomWalk(9, "dependent").table, axis=1), 1.0)
        inverted = RandomWalk(5, "inverted")
        np.testing.assert_allclose(inverted.table @ inverted.fixed_point(), inverted.values())

    def test_boyan_chain(self):
        env = BoyanChain()
        np.testing.assert_allclose(env.values(), -2.0 * np.arange(12, 0, -1))
        np.testing.assert_allclose(env.fixed_point(), [-24, -16, -8, 0], atol=1e-10)
        np.testing.assert_allclose(
            env.table[[0, 1, 2, 11]], [[1, 0, 0, 0], [0.75, 0.25, 0, 0], [0.5, 0.5, 0, 0], [0, 0, 0.25, 0.75]]
        )
        np.testing.assert_allclose(BoyanChain(100).values(), -2.0 * np.arange(100, 0, -1))

    def test_baird_star(self):
        env = BairdStar()
        assert not env.values().any()
        np.testing.assert_allclose(env.stationary_distribution(), np.full(7, 1 / 7))
        np.testing.assert_allclose(env.fixed_point(), 0.0, atol=1e-12)
        a, _, c = env.expectation()
        assert la.matrix_rank(c) == 7  # eight features of seven states
        np.testing.assert_allclose(a @ [1, 1, 1, 1, 1, 1, 4, -2], 0.0, atol=1e-12)
        step = np.eye(8) - 0.01 * a
        assert max(abs(la.eigvals(step))) > 1.0  # expected TD moves away

    def test_values_of_an_always_paying_loop(self):
        env = TabularMDP(np.ones((1, 1, 1)), [[[3.0]]], discount=0.75)
        np.testing.assert_allclose(env.values(), [12.0])


class TestRandomProcesses:
    def test_paper_variant(self):
        env = RandomMDP(seed=3)
        assert env.probabilities.shape == (400, 10, 400) and env.table.shape == (400, 201) and env.discount == 0.95
        assert env.limit is None
        np.testing.assert_allclose(env.probabilities.sum(axis=2), 1.0)
        assert env.rewards.min() >= 0 and 0.98 < env.rewards.max() <= 1 and env.rewards.shape == (400, 10, 1)
        assert (env.table[:, -1] == 1).all() and 0 <= env.table.min() and env.table[:, :-1].max() < 1

    def test_code_variant(self):
        env = RandomMDP(seed=3, variant="code")
        assert env.limit == 500
        assert env.rewards.shape == (1, 10, 400) and 9.8 < env.rewards.max() <= 10

    def test_garnet_leads_to_as_many_states_as_its_branching(self):
        env = Garnet(30, 4, 6, 5, seed=0)
        ordered = np.sort(env.successors, axis=2)
        assert (np.diff(ordered, axis=2) > 0).all() and ordered.max() < 30
        np.testing.assert_allclose(env.probabilities.sum(axis=2), 1.0)
        everywhere = np.sort(Garnet(6, 2, 6, 3).successors, axis=2)
        assert (everywhere == np.arange(6)).all()

    def test_garnet_successors_are_equally_likely(self):
        counts = np.bincount(Garnet(10, 1000, 3, 2, seed=4).successors.ravel(), minlength=10)
        expected = 10 * 1000 * 3 / 10
        # Draws without replacement spread less than independent ones, for which this is a chi-square of 9 degrees.
        assert ((counts - expected) ** 2 / expected).sum() < 27.9

    @pytest.mark.parametrize("kind", [RandomMDP, Garnet])
    def test_the_seed_decides(self, kind):
        one, same, other = kind(20, 2, seed=1), kind(20, 2, seed=1), kind(20, 2, seed=2)
        np.testing.assert_array_equal(one.probabilities, same.probabilities)
        np.testing.assert_array_equal(one.table, same.table)
        assert not np.array_equal(one.probabilities, other.probabilities)
        again = kind(20, 2, seed=np.random.default_rng(1))
        np.testing.assert_array_equal(one.rewards, again.rewards)


class TestPolicies:
    def test_one_action_a_state(self):
        env = ENVIRONMENTS["garnet"]
        actions = np.arange(12) % 3
        np.testing.assert_array_equal(env.transition_matrix(actions), env.transition_matrix(np.eye(3)[actions]))

    def test_no_policy_is_the_behaviour_and_values_are_the_targets(self):
        behaviour, target = np.full((3, 2), 0.5), np.array([1, 1, 0])
        env = small(behaviour=behaviour, target=target)
        np.testing.assert_array_equal(env.transition_matrix(), env.transition_matrix(behaviour))
        np.testing.assert_array_equal(env.values(), env.values(target))
        np.testing.assert_array_equal(env.expectation().A, env.expectation(behaviour, target).A)

    def test_features_are_rows_of_the_table(self):
        env = ENVIRONMENTS["garnet"]
        np.testing.assert_array_equal(env.features([3, 0, 3]), env.table[[3, 0, 3]])


class TestBadInput:
    @pytest.mark.parametrize(
        ("options", "kind", "message"),
        [
            ({"probabilities": np.ones((2, 2))}, InputError, "(states, actions, outcomes)"),
            ({"probabilities": np.full((1, 1, 2), 0.4)}, InputError, "must sum to 1 at (0, 0); the sum is 0.8"),
            ({"probabilities": [[[1.5, -0.5]]]}, InputError, "at least 0"),
            ({"probabilities": [[[np.nan, 1.0]]]}, InputError, "NaN"),
            ({"rewards": np.ones((3, 1, 1))}, InputError, "does not broadcast"),
            ({"rewards": [[[np.inf, 0.0]]]}, InputError, "NaN or infinite"),
            ({"successors": [[[0, 3]]]}, InputError, "1 stands for the end"),
            ({"successors": [[[0.0, 1.0]]]}, InputTypeError, "whole numbers"),
            ({"discount": 1.5}, InputError, "in [0, 1]"),
            ({"table": np.ones((2, 2))}, InputError, "table has 2 rows"),
            ({"start": [0.5]}, InputError, "start must sum to 1"),
            ({"limit": 0}, InputError, "at least 1"),
            ({"behaviour": [2]}, InputError, "[0, 1)"),
        ],
    )
    def test_of_a_process(self, options, kind, message):
        given = {"probabilities": [[[0.5, 0.5]]], "rewards": 0.0, "successors": [[[0, 1]]], "discount": 0.9}
        with refuses(kind, message):
            TabularMDP(**given | options)

    def test_of_policies(self):
        env = small()
        with refuses(InputError, "of shape (3, 2), or one action a state"):
            env.values(np.full((2, 3), 1 / 3))
        with refuses(InputError, "policy must sum to 1 at 1; the sum is 0.9"):
            env.values([[0.5, 0.5], [0.5, 0.4], [1.0, 0.0]])
        with refuses(InputError, "In state 0 the target takes action 0, which the behaviour never takes"):
            env.expectation(np.ones(3, int), np.zeros(3, int))

    def test_values_that_are_infinite(self):
        loop = TabularMDP(np.ones((2, 1, 1)), np.ones((1, 1, 1)), [[[0]], [[0]]], discount=1.0)
        with refuses(InputError, "with discount 1 the process must end"):
            loop.values()

    @pytest.mark.parametrize("size", [5, 50, 200])
    def test_values_whose_equations_are_singular_but_for_rounding(self, size):
        endless = RandomMDP(size, 2, 3, discount=1.0)
        for asked in (endless.values, endless.action_values):
            with refuses(InputError, "with discount 1 the process must end from every state"):
                asked()

    def test_values_where_a_part_never_ends_or_hardly_ever(self):
        # State 1 stays for ever; state 0 ends, or not.
        env = TabularMDP(np.full((2, 1, 2), 0.5), 1.0, [[[1, 2]], [[1, 1]]], discount=1.0)
        with refuses(InputError, "must end from every state"):
            env.values()
        chance = 1e-16
        seldom = TabularMDP([[[1 - chance, chance]]], 1.0, [[[0, 1]]], discount=1.0)
        with refuses(InputError, "must end from every state"):
            seldom.values()
        often = TabularMDP([[[0.999, 0.001]]], 1.0, [[[0, 1]]], discount=1.0)
        np.testing.assert_allclose(often.values(), 1000.0)

    def test_several_stationary_distributions(self):
        apart = TabularMDP(np.eye(3)[:, None, :], 0.0, discount=0.9)
        with refuses(InputError, "more than one stationary distribution"):
            apart.stationary_distribution()

    def test_what_the_start_does_not_reach_does_not_count(self):
        apart = TabularMDP(np.eye(3)[:, None, :], [[[1.0]], [[2.0]], [[3.0]]], discount=0.9, start=[1, 0, 0])
        np.testing.assert_array_equal(apart.stationary_distribution(), [1, 0, 0])
        np.testing.assert_allclose(apart.fixed_point(), [10, 0, 0])
        # From the middle of a walk whose ends stay for ever both are met: there are two answers.
        places = np.clip(np.arange(3)[:, None] + [-1, 1], 0, 2)[:, :, None]
        places[[0, 2]] = [[[0]], [[2]]]
        with refuses(InputError, "more than one stationary distribution"):
            TabularMDP(np.ones((3, 2, 1)), 0.0, places, discount=0.9, start=[0, 1, 0]).stationary_distribution()

    def test_of_generators(self):
        with refuses(InputError, "variant must be 'paper' or 'code', not 'text'"):
            RandomMDP(variant="text")
        with refuses(InputError, "branching is 9 and there are 5 states"):
            Garnet(5, 2, 9)
        with refuses(InputTypeError, "seed is None"):
            RandomMDP(5, 2, 3, seed=None)
        with refuses(InputTypeError, "seed must be a whole number"):
            Garnet(5, 2, 2, seed=0.5)
        with refuses(InputError, "multiple of 4"):
            BoyanChain(13)
        with refuses(InputError, "'tabular', 'inverted' or 'dependent'"):
            RandomWalk(5, "tiles")
        with refuses(InputError, "odd number of states"):
            RandomWalk(6, "dependent")
        with refuses(InputError, "at least 2 states"):
            RandomWalk(1, "inverted")
