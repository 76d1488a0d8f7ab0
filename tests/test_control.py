import re

import numpy as np
import pytest

from valuate import control, features
from valuate.control import greedy, pairs, score
from valuate.environments import Acrobot, CartPole, Garnet, MountainCar, RandomWalk, TabularMDP
from valuate.errors import InputError, InputTypeError
from valuate.features import RBFGrid, StateActionBlocks, Tabular
from valuate.problem import Problem
from valuate.solvers import LSTD
from valuate.transitions import Transitions

TASKS = {
    "car": (MountainCar(limit=60), features.mountain_car, 300),
    "pole": (CartPole(limit=60), features.cart_pole, 162),
    "acrobot": (Acrobot(limit=60), features.acrobot, 243),
}


def refuses(kind, message):
    return pytest.raises(kind, match=re.escape(message))


@pytest.fixture(params=TASKS)
def task(request):
    env, made, dim = TASKS[request.param]
    return env, StateActionBlocks(made(), env.n_actions), dim


class TestGreedy:
    def test_values_are_products_and_the_best_action_wins(self, task):
        env, blocks, dim = task
        theta = np.random.default_rng(0).normal(size=dim)
        seen = env.collect(50, copies=7).states
        policy = greedy(theta, blocks, env.n_actions)
        expected = np.stack([blocks.transform((seen, np.full(50, a))) @ theta for a in range(env.n_actions)], axis=1)
        np.testing.assert_allclose(policy.action_values(seen), expected, rtol=1e-10)
        np.testing.assert_array_equal(policy(seen), expected.argmax(axis=1))

    def test_of_equal_values_the_first(self):
        policy = greedy(np.zeros(6), StateActionBlocks(Tabular(2), 3), 3)
        assert policy([0, 1, 1]).tolist() == [0, 0, 0]
        policy = greedy([0, 0, 1, 0, 1, 2], StateActionBlocks(Tabular(2), 3), 3)
        assert policy([0, 1]).tolist() == [1, 2]

    @pytest.mark.parametrize("cutoff", [1e-12, 1e-3])
    def test_sparse_features(self, task, cutoff):
        env, blocks, dim = task
        made = {MountainCar: features.mountain_car, CartPole: features.cart_pole, Acrobot: features.acrobot}[type(env)]
        sparse = StateActionBlocks(made(sparse_below=cutoff), env.n_actions)
        theta = np.random.default_rng(0).normal(size=dim)
        seen = env.collect(50, copies=7).states
        expected = [sparse.transform((seen, np.full(50, a))) @ theta for a in range(env.n_actions)]
        found = greedy(theta, sparse, env.n_actions).action_values(seen)
        np.testing.assert_allclose(found, np.transpose(expected), rtol=1e-10, atol=1e-14)

    def test_any_feature_map_of_pairs(self):
        def map_(given):
            states, actions = given
            return np.column_stack([states[:, 0] * (actions == 0), states[:, 1] * (actions == 1)])

        seen = np.random.default_rng(0).normal(size=(30, 2))
        policy = greedy([1.0, 1.0], map_, 2)
        np.testing.assert_allclose(policy.action_values(seen), seen)

    def test_collects(self):
        env = CartPole()
        blocks = StateActionBlocks(features.cart_pole(), 2)
        log = env.collect(100, greedy(np.zeros(162), blocks, 2))
        assert not log.actions.any()

    def test_bad_input(self):
        blocks = StateActionBlocks(Tabular(2), 3)
        with refuses(InputError, "The weights have 5 entries and the feature map gives 6"):
            greedy(np.zeros(5), blocks, 3)([0])
        with refuses(InputTypeError, "must have a transform method or be callable"):
            greedy(np.zeros(5), 3, 3)
        with refuses(InputError, "NaN"):
            greedy([np.nan], blocks, 3)
        with refuses(InputError, "the model has 2 actions"):
            greedy(np.zeros(4), blocks, 3, model=CartPole())


class TestLookahead:
    def test_one_step_in_the_dynamics(self, task):
        env, _, _ = task
        grid = {MountainCar: features.mountain_car, CartPole: features.cart_pole, Acrobot: features.acrobot}[
            type(env)
        ]()
        theta = np.random.default_rng(1).normal(size=grid.n_features)
        seen = env.collect(60, copies=7).states
        policy = greedy(theta, grid, env.n_actions, model=env, discount=0.8)
        found = policy.action_values(seen)
        for action in range(env.n_actions):
            following, rewards, ended = env.step(env.states_of(seen), np.full(60, action))
            values = np.where(ended, 0.0, grid.transform(env.observe(following)) @ theta)
            np.testing.assert_allclose(found[:, action], rewards + 0.8 * values)
        np.testing.assert_array_equal(policy(seen), found.argmax(axis=1))

    def test_in_a_tabular_model_iteration_finds_the_best_policy(self):
        env = Garnet(15, 4, 3, 5, discount=0.9, seed=3)
        policy = np.zeros(15, int)
        for _ in range(50):
            policy = greedy(env.values(policy), Tabular(15), 4, model=env, discount=0.9)(np.arange(15))
        best = np.zeros(15)
        for _ in range(2000):
            best = env.lookahead(best).max(axis=1)
        np.testing.assert_allclose(env.values(policy), best)

    def test_the_discount_is_the_models_own(self):
        env, values = Garnet(15, 4, 3, 5, discount=0.5, seed=3), np.arange(15.0)
        found = greedy(values, Tabular(15), 4, model=env)
        assert found.discount == 0.5
        np.testing.assert_allclose(found.action_values(np.arange(15)), env.lookahead(values))
        assert greedy(values, Tabular(15), 4, model=env, discount=0.7).discount == 0.7
        assert greedy(np.zeros(81), features.cart_pole(), 2, model=CartPole()).discount == 0.99

    def test_scores_with_lookahead(self):
        env, rising = RandomWalk(5), np.arange(1.0, 6.0) / 6
        found = score(env, [rising, np.arange(5.0)[::-1]], Tabular(5), limit=9, lookahead=1.0, episodes=4)
        np.testing.assert_array_equal(found.lengths, [[3] * 4, [9] * 4])  # to the end that pays; back and forth
        np.testing.assert_array_equal(found.returns, [[1.0] * 4, [0.0] * 4])
        np.testing.assert_array_equal(found.terminated, [[True] * 4, [False] * 4])


class TestScore:
    @pytest.mark.parametrize("sparse", [False, True])
    def test_beside_one_episode_at_a_time(self, task, sparse):
        env, blocks, dim = task
        if sparse:
            blocks = StateActionBlocks(blocks.features.set_params(sparse_below=1e-9), env.n_actions)
        thetas = np.random.default_rng(2).normal(size=(3, dim))
        found = score(env, thetas, blocks, episodes=4, seed=5, discount=0.9)
        starts = env.reset(12, np.random.default_rng(5)).reshape(3, 4, -1)
        for i, j in np.ndindex(3, 4):
            policy, state, total, ended, t = greedy(thetas[i], blocks, env.n_actions), starts[i, j][None], 0.0, False, 0
            while t < 60 and not ended:
                state, reward, (ended,) = env.step(state, policy(env.observe(state)))
                total, t = total + 0.9**t * reward[0], t + 1
            assert found.lengths[i, j] == t and found.terminated[i, j] == ended
            np.testing.assert_allclose(found.returns[i, j], total)
        blocks.features.set_params(sparse_below=None)

    def test_weights_of_zero_take_the_first_action_for_ever(self):
        lengths = []
        for env, made, dim in ((CartPole(), features.cart_pole, 162), (MountainCar(), features.mountain_car, 300)):
            found = score(env, np.zeros(dim), StateActionBlocks(made(), env.n_actions), episodes=200)
            lengths.append(found.mean_lengths[0])
        assert abs(lengths[0] - 9.35) < 0.2 and lengths[1] == 200
        assert found.mean_returns.shape == (1,) and found.mean_returns[0] == -200 and not found.terminated.any()

    def test_starts(self):
        env, blocks = CartPole(), StateActionBlocks(features.cart_pole(), 2)
        thetas = np.zeros((2, 162))
        same = score(env, thetas, blocks, episodes=50, same_starts=True)
        np.testing.assert_array_equal(same.lengths[0], same.lengths[1])
        own = score(env, thetas, blocks, episodes=50)
        assert (own.lengths[0] != own.lengths[1]).any()
        np.testing.assert_array_equal(own.lengths, score(env, thetas, blocks, episodes=50, seed=0).lengths)

    def test_tabular_environments(self):
        right = np.repeat([0.0, 1.0], 5)
        found = score(RandomWalk(5), [right, -right], StateActionBlocks(Tabular(5), 2), limit=9, episodes=6)
        np.testing.assert_array_equal(found.lengths, 3)
        np.testing.assert_array_equal(found.mean_returns, [1.0, 0.0])

    def test_limit(self):
        env, blocks = MountainCar(), StateActionBlocks(features.mountain_car(), 3)
        assert (score(env, np.zeros(300), blocks, limit=37, episodes=3).lengths == 37).all()

    def test_learned_weights_swing_acrobot_up(self):
        env, blocks = Acrobot(), StateActionBlocks(features.acrobot(), 3)
        log = pairs(env.collect(20_000, next_actions=True, seed=1))
        problem = Problem.from_transitions(log, blocks, discount=0.9, ridge=1e-5)
        found = score(env, LSTD().solve(problem).theta, blocks, episodes=50)
        assert found.mean_lengths[0] < 150 and found.terminated.all()

    def test_text(self):
        found = score(MountainCar(limit=3), np.zeros(300), StateActionBlocks(features.mountain_car(), 3), episodes=2)
        assert repr(found) == "Scores(1 policies, 2 episodes each, mean length 3)"

    def test_bad_input(self):
        env, blocks = CartPole(), StateActionBlocks(features.cart_pole(), 2)
        with refuses(InputError, "thetas has 1 entry that is NaN or infinite, the first at row 1, column 0"):
            score(env, [[0.0, 1.0], [np.inf, 0.0]], blocks)
        with refuses(InputError, "The weights have 2 entries and the feature map gives 162"):
            score(env, [0.0, 1.0], blocks)
        with refuses(InputError, "episodes must be at least 1"):
            score(env, np.zeros(162), blocks, episodes=0)
        with refuses(InputError, "no time limit"):
            score(Garnet(5, 2, 2), np.zeros(10), StateActionBlocks(Tabular(5), 2))
        with refuses(InputTypeError, "must have a transform method or be callable"):
            score(env, np.zeros(162), None)


class TestPairs:
    def test_states_of_numbers_get_the_action_behind_them(self):
        log = CartPole().collect(100, copies=3, next_actions=True)
        found = pairs(log)
        np.testing.assert_array_equal(found.states, np.column_stack([log.states, log.actions]))
        np.testing.assert_array_equal(found.next_states, np.column_stack([log.next_states, log.next_actions]))
        for name in ("rewards", "terminated", "truncated", "episodes"):
            np.testing.assert_array_equal(getattr(found, name), getattr(log, name))

    def test_tabular_pairs_lead_to_action_values(self):
        env = Garnet(5, 2, 3, 4, discount=0.8, seed=1)
        log = pairs(env.collect(400_000, next_actions=True, copies=100), 2)
        problem = Problem.from_transitions(log, StateActionBlocks(Tabular(5), 2), discount=0.8)
        theta = LSTD().solve(problem).theta
        np.testing.assert_allclose(theta.reshape(2, 5).T, env.action_values(), atol=0.02)

    def test_action_values_of_another_policy_than_the_uniform(self):
        """Collected with it, its own come out; with ratios to it on the rows, those of the behaviour would."""
        env = Garnet(5, 2, 3, 4, discount=0.8, seed=1)
        target = np.tile([0.9, 0.1], (5, 1))
        log = pairs(env.collect(400_000, target, next_actions=True, copies=100), 2)
        theta = LSTD().solve(Problem.from_transitions(log, StateActionBlocks(Tabular(5), 2), discount=0.8)).theta
        np.testing.assert_allclose(theta.reshape(2, 5).T, env.action_values(target), atol=0.04)
        assert np.abs(env.action_values(target) - env.action_values()).max() > 0.1

    def test_bad_input(self):
        with refuses(InputError, "next_actions=True"):
            pairs(CartPole().collect(10))
        with refuses(InputError, "pairs need n_actions"):
            pairs(Garnet(5, 2, 2).collect(10, next_actions=True))
        target = np.tile([0.9, 0.1], (5, 1))
        with refuses(InputError, "policy that acted, so that its values would come out. They need next actions, or"):
            pairs(Garnet(5, 2, 2).collect(10, target=target, next_actions=True), 2)
        words = Transitions(["a"], [0.0], ["b"], actions=[0], next_actions=[1])
        with refuses(InputTypeError, "states that are numbers"):
            pairs(words)


def test_public_names():
    assert control.__all__ == sorted(control.__all__)
    assert RBFGrid and TabularMDP
