"""The dynamics beside Gymnasium's own, step by step."""

from math import pi

import numpy as np
import pytest

from valuate.environments import Acrobot, CartPole, MountainCar

gymnasium = pytest.importorskip("gymnasium")

CASES = {
    "MountainCar-v0": (MountainCar, {}, {}, [(-1.3, 0.7), (-0.08, 0.08)]),
    "CartPole-v1": (CartPole, {}, {}, [(-2.45, 2.45), (-3, 3), (-0.22, 0.22), (-3, 3)]),
    "CartPole-v1 failure": (
        CartPole,
        {"reward": "failure"},
        {"sutton_barto_reward": True},
        [(-2.45, 2.45), (-3, 3), (-0.22, 0.22), (-3, 3)],
    ),
    "Acrobot-v1": (Acrobot, {}, {}, [(-pi, pi), (-pi, pi), (-4 * pi, 4 * pi), (-9 * pi, 9 * pi)]),
}


@pytest.fixture(params=CASES)
def case(request):
    kind, ours, theirs, ranges = CASES[request.param]
    made = gymnasium.make(request.param.split()[0], **theirs)
    yield kind(**ours), made, ranges
    made.close()


def place(theirs, state):
    """Put Gymnasium's environment into a state."""
    theirs.unwrapped.state = np.array(state)
    if hasattr(theirs.unwrapped, "steps_beyond_terminated"):
        theirs.unwrapped.steps_beyond_terminated = None


def test_spaces_and_limits(case):
    ours, theirs, _ = case
    assert ours.limit == theirs.spec.max_episode_steps
    assert ours.n_actions == theirs.action_space.n
    np.testing.assert_array_equal(np.float32(ours.low), theirs.observation_space.low)
    np.testing.assert_array_equal(np.float32(ours.high), theirs.observation_space.high)


def test_steps_from_anywhere(case):
    ours, theirs, ranges = case
    rng = np.random.default_rng(0)
    states = np.stack([rng.uniform(low, high, 3000) for low, high in ranges], axis=1)
    actions = rng.integers(ours.n_actions, size=3000)
    following, rewards, terminated = ours.step(states, actions)
    seen = ours.observe(following)
    theirs.reset(seed=0)
    for i, (state, action) in enumerate(zip(states, actions, strict=True)):
        place(theirs, state)
        observed, reward, ended, _, _ = theirs.unwrapped.step(int(action))
        np.testing.assert_allclose(following[i], theirs.unwrapped.state, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(seen[i], observed, rtol=2e-7, atol=1e-7)
        assert (reward, ended) == (rewards[i], terminated[i])
    assert 0 < terminated.sum() < 3000


def test_logs_are_what_gymnasium_goes_through(case):
    ours, theirs, _ = case
    log = ours.collect(3000, seed=3, copies=2)
    begins = True
    for row in range(len(log)):
        if begins:
            theirs.reset(seed=0)
            place(theirs, ours.states_of(log.states[row : row + 1])[0])
        elif isinstance(ours, Acrobot):  # which doubles an error within a few steps
            place(theirs, ours.states_of(log.states[row : row + 1])[0])
        observed, reward, terminated, truncated, _ = theirs.step(int(log.actions[row]))
        np.testing.assert_allclose(log.next_states[row], observed, rtol=1e-6, atol=1e-6)
        assert (reward, terminated) == (log.rewards[row], log.terminated[row])
        begins = log.terminated[row] or log.truncated[row]
        if row not in (1499, 2999):  # where the copies' recordings end
            assert truncated == log.truncated[row]
    assert log.truncated.sum() > 0


def test_starts_have_the_same_range(case):
    ours, theirs, _ = case
    starts = ours.reset(20_000, np.random.default_rng(0))
    others = np.array([np.array((theirs.reset(seed=s), theirs.unwrapped.state)[1], float) for s in range(300)])
    assert (starts.min(axis=0) <= others.min(axis=0)).all() and (starts.max(axis=0) >= others.max(axis=0)).all()
    np.testing.assert_allclose(starts.min(axis=0), others.min(axis=0), atol=0.005)
    np.testing.assert_allclose(starts.max(axis=0), others.max(axis=0), atol=0.005)
    np.testing.assert_allclose(starts.mean(axis=0), others.mean(axis=0), atol=0.02)


def test_acrobot_angles_are_read_from_observations():
    env, rng = Acrobot(), np.random.default_rng(0)
    states = rng.uniform(-1, 1, (500, 4)) * [pi, pi, 4 * pi, 9 * pi]
    np.testing.assert_allclose(env.states_of(env.observe(states)), states, atol=1e-12)


def test_acrobot_angles_come_back_by_whole_turns():
    env = Acrobot()
    states = np.array([[3.1, -3.1, 4 * pi, -9 * pi], [-3.1, 3.1, -4 * pi, 9 * pi]])
    following, _, _ = env.step(states, np.array([0, 2]))
    assert (np.abs(following[:, :2]) <= pi).all()


def test_a_step_leaves_its_states_alone():
    for env in (MountainCar(), CartPole(), Acrobot()):
        states = env.reset(10, np.random.default_rng(0))
        before = states.copy()
        following, _, _ = env.step(states, np.zeros(10, int))
        assert not np.shares_memory(states, following)
        np.testing.assert_array_equal(states, before)


def test_copies_do_not_know_of_each_other():
    for env in (MountainCar(), CartPole(), Acrobot()):
        rng = np.random.default_rng(1)
        states = env.reset(100, rng)
        actions = rng.integers(env.n_actions, size=100)
        together = env.step(states, actions)
        alone = [env.step(states[i : i + 1], actions[i : i + 1]) for i in range(100)]
        for whole, *parts in zip(together, *alone, strict=True):
            np.testing.assert_allclose(whole, np.concatenate(parts), rtol=1e-14)
