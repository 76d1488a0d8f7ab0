"""Logs: what they hold, in which order, and how often."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from valuate.control import greedy
from valuate.environments import (
    Acrobot,
    BairdStar,
    CartPole,
    Garnet,
    MountainCar,
    RandomMDP,
    RandomWalk,
    TabularMDP,
    make,
    names,
)
from valuate.errors import InputError, InputTypeError
from valuate.features import Tabular
from valuate.problem import Problem

GARNET = Garnet(6, 2, 3, 4, seed=0)
LIMITED = RandomMDP(9, 3, 4, seed=2, variant="code")
LIMITED.limit = 7
ALL = [GARNET, LIMITED, RandomWalk(3), BairdStar(), MountainCar(limit=40), CartPole(limit=25), Acrobot(limit=30)]


def refuses(kind, message):
    return pytest.raises(kind, match=re.escape(message))


def chi_square(counts, chances):
    """Over the rows' sum, in standard deviations: about N(0, 1) for many degrees of freedom."""
    expected = counts.sum(axis=-1, keepdims=True) * chances
    likely = expected > 0
    assert not counts[~likely].any()
    freedom = likely.sum() - np.prod(counts.shape[:-1])
    return (((counts - expected)[likely] ** 2 / expected[likely]).sum() - freedom) / np.sqrt(2 * freedom)


def same_logs(one, other):
    columns = ("states", "next_states", "rewards", "terminated", "truncated", "actions", "next_actions", "episodes")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in columns)


@given(
    env=st.sampled_from(ALL),
    n=st.integers(1, 200),
    copies=st.integers(1, 60),
    seed=st.integers(0, 5),
)
def test_rows_hang_together(env, n, copies, seed):
    log = env.collect(n, seed=seed, copies=copies, next_actions=True)
    assert len(log) == n
    ends = log.terminated | log.truncated
    assert not (log.terminated & log.truncated).any()
    # An episode's rows are next to each other, numbered from 0, and only its last has a flag.
    np.testing.assert_array_equal(log.episodes, np.concatenate([[0], np.cumsum(ends)[:-1]]))
    assert ends[-1]
    inside = np.flatnonzero(~ends)
    np.testing.assert_array_equal(log.next_states[inside], log.states[inside + 1])
    np.testing.assert_array_equal(log.next_actions[inside], log.actions[inside + 1])
    assert log.actions.min() >= 0 and log.actions.max() < env.n_actions and log.next_actions.max() < env.n_actions
    lengths = np.bincount(log.episodes)
    if env.limit is not None:
        assert lengths.max() <= env.limit
    # Copies differ by a row at most; where each one's recording ends, an episode ends.
    copies = min(copies, n)
    borders = np.cumsum([n // copies + (c < n % copies) for c in range(copies)])
    assert ends[borders - 1].all()
    if env.limit is not None:  # elsewhere only a full episode is truncated
        cut = np.flatnonzero(log.truncated)
        full = lengths[log.episodes[cut]] == env.limit
        assert full[~np.isin(cut, borders - 1)].all()
    elif isinstance(env, TabularMDP):
        assert np.isin(np.flatnonzero(log.truncated), borders - 1).all()


@given(env=st.sampled_from(ALL), seed=st.integers(0, 3))
def test_one_seed_one_log(env, seed):
    one = env.collect(150, seed=seed, copies=4, next_actions=True)
    assert same_logs(one, env.collect(150, seed=np.random.default_rng(seed), copies=4, next_actions=True))
    assert not same_logs(one, env.collect(150, seed=seed + 1, copies=4, next_actions=True))
    kept_less = env.collect(150, seed=seed, copies=4)
    assert kept_less.next_actions is None
    np.testing.assert_array_equal(one.actions, kept_less.actions)


@pytest.mark.parametrize("env", [LIMITED, CartPole(), Acrobot()], ids=str)
def test_each_state_is_stored_once(env):
    log = env.collect(300, copies=7)
    table, states, next_states = log.indexed_states()
    np.testing.assert_array_equal(table[states], log.states)
    np.testing.assert_array_equal(table[next_states], log.next_states)
    assert len(table) == (9 if env is LIMITED else 300 + log.episodes[-1] + 1)


def test_the_number_of_copies_by_default():
    assert GARNET.collect(5000).truncated.sum() == 1  # one trajectory
    assert GARNET.collect(10_001).truncated.sum() == 3
    assert MountainCar().collect(4001).episodes[-1] == 20  # 3 copies: 7, 7 and 7 episodes, the last ones cut short


class TestTabular:
    def test_a_policy_may_be_a_callable(self):
        chances, actions = GARNET.random_policy(seed=1), np.arange(6) % 2
        asked = []

        def says(answer):
            return lambda states: asked.append(states.tolist()) or answer[states]

        for answer in (chances, actions):
            assert same_logs(GARNET.collect(300, says(answer), seed=2), GARNET.collect(300, answer, seed=2))
            np.testing.assert_array_equal(GARNET.values(says(answer)), GARNET.values(answer))
        assert asked == [list(range(6))] * 4
        ratios = GARNET.collect(300, chances, target=says(actions)).ratios
        np.testing.assert_array_equal(ratios, GARNET.collect(300, chances, target=actions).ratios)
        greedy_policy = greedy(np.arange(6.0), Tabular(6), 2, model=GARNET)
        best = GARNET.lookahead(np.arange(6.0)).argmax(axis=1)
        log = GARNET.collect(300, greedy_policy)
        np.testing.assert_array_equal(log.actions, best[log.states])
        with refuses(InputError, "policy must be probabilities of shape (6, 2), or one action a state"):
            GARNET.collect(10, lambda states: np.zeros((6, 3)))

    def test_frequencies_are_the_probabilities(self):
        policy = GARNET.random_policy(seed=1)
        log = GARNET.collect(200_000, policy, seed=2, copies=50)
        acted = np.zeros((6, 2))
        np.add.at(acted, (log.states, log.actions), 1)
        assert abs(chi_square(acted, policy)) < 3.5
        led = np.zeros((6, 2, 6))
        np.add.at(led, (log.states, log.actions, log.next_states), 1)
        chances = np.zeros((6, 2, 6))
        for s, a, k in np.ndindex(6, 2, 3):
            chances[s, a, GARNET.successors[s, a, k]] += GARNET.probabilities[s, a, k]
        assert abs(chi_square(led, chances)) < 3.5

    def test_next_actions_at_the_end_of_an_episode_are_drawn_from_the_policy(self):
        policy = np.tile([0.8, 0.2], (3, 1))
        log = RandomWalk(3).collect(60_000, policy, seed=3, copies=10, next_actions=True)
        share = log.next_actions[log.terminated].mean()
        assert abs(share - 0.2) < 4 * np.sqrt(0.16 / log.terminated.sum())

    def test_large_random_mdp(self):
        env = RandomMDP(seed=1)
        log = env.collect(400_000, seed=1)
        counts = np.zeros((400, 400))
        np.add.at(counts, (log.states, log.next_states), 1)
        assert abs(chi_square(counts, env.transition_matrix())) < 3.5
        np.testing.assert_array_equal(log.rewards, env.rewards[log.states, log.actions, 0])

    def test_rewards_of_action_and_next_state(self):
        log = LIMITED.collect(2000, seed=1)
        np.testing.assert_array_equal(log.rewards, LIMITED.rewards[0, log.actions, log.next_states])

    def test_starts(self):
        env = TabularMDP(np.full((4, 1, 4), 0.25), 0.0, discount=0.9, start=[0.1, 0.0, 0.6, 0.3], limit=2)
        log = env.collect(40_000, seed=5, copies=100)
        first = log.states[np.unique(log.episodes, return_index=True)[1]]
        assert abs(chi_square(np.bincount(first, minlength=4)[None], env.start[None])) < 3.5

    def test_stationary_starts(self):
        policy = RandomWalk(5).behaviour
        env = RandomWalk(5)
        log = env.collect(20_000, start="stationary", seed=4, copies=20_000)
        share = env.stationary_distribution(policy)
        assert abs(chi_square(np.bincount(log.states, minlength=5)[None], share[None])) < 3.5
        late = env.collect(60_000, start="stationary", seed=4, copies=20_000)[2::3]  # and two steps later
        assert abs(chi_square(np.bincount(late.states, minlength=5)[None], share[None])) < 3.5

    @pytest.mark.parametrize("env", [GARNET, LIMITED, RandomWalk(5, "dependent"), BairdStar()], ids=repr)
    def test_moments_of_a_long_log_are_the_expectation(self, env):
        log = env.collect(400_000, seed=7, copies=100)
        found = Problem.from_transitions(log, env.features, discount=env.discount).moments()
        for part, expected in zip(found, env.expectation(), strict=True):
            np.testing.assert_allclose(part, expected, atol=0.02 * max(1.0, np.abs(expected).max()))

    def test_ratios(self):
        env = BairdStar()
        log = env.collect(5000)
        np.testing.assert_allclose(log.ratios, np.where(log.actions == 1, 7.0, 0.0))
        assert (log.next_states[log.actions == 1] == 6).all() and (log.next_states[log.actions == 0] < 6).all()
        assert env.collect(10, env.target).ratios is None
        target = GARNET.random_policy(3)
        log = GARNET.collect(100, target=target)
        np.testing.assert_allclose(log.ratios, target[log.states, log.actions] / 0.5)

    def test_where_the_process_ends_the_own_state_stands_for_the_next(self):
        log = RandomWalk(3).collect(200)
        ends = log.terminated
        np.testing.assert_array_equal(log.next_states[ends], log.states[ends])
        np.testing.assert_array_equal(log.rewards, ends & (log.states == 2) & (log.actions == 1))

    def test_problems_are_indexed(self):
        problem = Problem.from_transitions(GARNET.collect(1000), GARNET.features)
        assert problem.layout == "indexed"

    def test_bad_input(self):
        with refuses(InputError, "n must be at least 1"):
            GARNET.collect(0)
        with refuses(InputError, "copies must be at least 1"):
            GARNET.collect(5, copies=0)
        with refuses(InputError, "'start' or 'stationary'"):
            GARNET.collect(5, start="middle")
        with refuses(InputError, "which the behaviour never takes"):
            GARNET.collect(5, np.zeros(6, int), target=np.ones(6, int))
        with refuses(InputError, "policy must be in [0, 2)"):
            GARNET.collect(5, lambda states: states)


class TestSimulated:
    def test_a_policy_is_asked(self):
        env = MountainCar()
        log = env.collect(2000, lambda seen: np.where(seen[:, 1] < 0, 0, 2), copies=5)
        np.testing.assert_array_equal(log.actions, np.where(log.states[:, 1] < 0, 0, 2))
        assert log.terminated.sum() > 10  # which swings up

    def test_probabilities_of_a_policy(self):
        chances = np.array([0.1, 0.6, 0.3])
        log = MountainCar().collect(30_000, lambda seen: np.tile(chances, (len(seen), 1)), seed=8, copies=100)
        assert abs(chi_square(np.bincount(log.actions, minlength=3)[None], chances[None])) < 3.5

    def test_random_actions_are_equally_likely(self):
        log = Acrobot().collect(30_000, seed=8, copies=100)
        assert abs(chi_square(np.bincount(log.actions, minlength=3)[None], np.full((1, 3), 1 / 3))) < 3.5

    def test_bad_input(self):
        env = CartPole()
        with refuses(InputTypeError, "policy must be callable"):
            env.collect(5, [0, 1])
        with refuses(InputError, "actions have shape (1,), probabilities (1, 2)"):
            env.collect(5, lambda seen: np.zeros((len(seen), 3)))
        with refuses(InputError, "[0, 2)"):
            env.collect(5, lambda seen: np.full(len(seen), 2))
        with refuses(InputError, "sum to 1"):
            env.collect(5, lambda seen: np.ones((len(seen), 2)))
        with refuses(InputTypeError, "whole number"):
            env.collect(5.0)
        with refuses(InputError, "'survival' or 'failure'"):
            CartPole(reward="none")
        with refuses(InputError, "limit must be at least 1"):
            Acrobot(limit=0)


def test_registry():
    for name in names():
        assert len(make(name).collect(10)) == 10
    assert make("mountain-car", limit=400).limit == 400
    with refuses(InputError, "no environment 'pendulum'. There are: acrobot, baird-star, boyan-chain, cart-pole"):
        make("pendulum")
