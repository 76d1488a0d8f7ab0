import dataclasses
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler

from valuate.errors import InputError, InputTypeError
from valuate.transitions import Transitions

STATES = np.array([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
NEXT_STATES = np.array([[2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
REWARDS = np.array([1.0, -1.0, 0.5])
EPISODES = [
    (np.array([[0.0], [1.0], [2.0]]), [10, 11], [0.5, 1.5], True),
    (np.array([[3.0], [4.0]]), [12], [2.5], False),
    (np.array([[5.0], [6.0], [7.0], [8.0]]), [13, 14, 15], [3.5, 4.5, 5.5], np.False_),
]


def log(**columns):
    return Transitions(columns.pop("states", STATES), REWARDS, columns.pop("next_states", NEXT_STATES), **columns)


def refuses(kind, message):
    """The block raises exactly `kind`, with `message` somewhere in its text."""
    return pytest.raises(kind, match=re.escape(message))


def assert_same(one, other):
    """Both logs have the same columns, however they are stored."""
    for name in "states next_states rewards terminated truncated actions ratios weights episodes probabilities".split():
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None), name
        np.testing.assert_array_equal(left, right, err_msg=name)


# ---- columns


def test_columns_are_kept_as_views():
    table = log(ratios=REWARDS**2, weights=np.ones(3), terminated=np.array([True, False, False]))
    assert table.states is STATES and table.next_states is NEXT_STATES and table.rewards is REWARDS
    assert len(table) == 3


def test_columns_that_were_not_given():
    table = log()
    assert table.terminated.dtype == bool and not table.terminated.any() and not table.truncated.any()
    assert table.actions is table.next_actions is table.ratios is table.weights is table.episodes is None
    assert table.probabilities is table.reading is None


def test_termination_wins_over_truncation():
    table = log(terminated=[1, 0, 1], truncated=[True, True, False])
    np.testing.assert_array_equal(table.terminated, [True, False, True])
    np.testing.assert_array_equal(table.truncated, [False, True, False])


def test_log_is_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        log().rewards = np.zeros(3)


def test_log_pickles():
    for table in (log(terminated=[0, 0, 1], weights=[1, 2, 3]), Transitions.from_episodes(EPISODES)):
        assert_same(pickle.loads(pickle.dumps(table)), table)


@pytest.mark.parametrize(
    "states",
    [
        np.arange(3),
        np.arange(3, dtype=np.float32),
        np.zeros((3, 4, 4, 2), dtype=np.uint8),
        np.array(["left", "middle", "right"]),
        np.array([{"x": 1}, {"x": 2}, None], dtype=object),
        np.array(["2020-01-01"] * 3, dtype="M8[D]"),
    ],
)
def test_states_have_any_shape_and_dtype(states):
    table = log(states=states, next_states=states)
    assert table.states is states and table.states.dtype == states.dtype


def test_sparse_states_become_csr():
    table = log(states=sp.coo_array(STATES), next_states=sp.csc_array(NEXT_STATES))
    assert table.states.format == "csr" and table.next_states.format == "csr"
    np.testing.assert_array_equal(table.states.toarray(), STATES)
    np.testing.assert_array_equal(table[1:].next_states.toarray(), NEXT_STATES[1:])
    assert repr(table) == "Transitions(3 rows, states sparse float64 (2,))"


def test_repr():
    table = log(terminated=[0, 0, 1], truncated=[1, 1, 0], actions=[0, 1, 0], ratios=[1, 1, 1], episodes=list("aab"))
    assert repr(table) == (
        "Transitions(3 rows, states float64 (2,), 1 terminated, 2 truncated, actions, ratios, episodes)"
    )
    assert repr(table[0]) == "Transitions(1 row, states float64 (2,), 1 truncated, actions, ratios, episodes)"


# ---- episode ids


@pytest.mark.parametrize("ids", [["a", "b", "a"], [3, 3, 5], [(0, 1), (0, 2), (0, 1)], ["1", 1, None], [2**70, 1, 0]])
def test_episode_ids_stay_what_they_are(ids):
    table = log(episodes=ids)
    assert table.episodes.shape == (3,) and table.episodes.tolist() == ids


def test_episode_ids_refuse_what_is_no_id():
    with refuses(InputTypeError, "episodes must be hashable ids; row 1 has a list."):
        log(episodes=[(), [], ()])
    with refuses(InputError, "episodes has no id at row 2 (nan). Give those rows an id."):
        log(episodes=["a", "b", float("nan")])
    with refuses(InputError, "episodes has 1 entry that is NaN or infinite, the first at row 0 (nan). Give those rows"):
        log(episodes=np.array([np.nan, 1.0, 2.0]))
    with refuses(InputError, "episodes has 2 entries and the log has 3 rows"):
        log(episodes=[1, 2])


# ---- bad input

NAN = float("nan")


@pytest.mark.parametrize(
    ("columns", "kind", "message"),
    [
        ({"states": STATES[:2]}, InputError, "states has 2 rows and rewards has 3: all columns must agree."),
        ({"states": np.ones((4, 2))}, InputError, "one observation more than rewards, go through Transitions.from_ep"),
        ({"next_states": STATES[:1]}, InputError, "next_states has 1 rows and rewards has 3"),
        (
            {"next_states": NEXT_STATES[:, :1]},
            InputError,
            "states has rows of shape (2,) and next_states of shape (1,)",
        ),
        (
            {"next_states": list("abc"), "states": [1, 2, 3]},
            InputTypeError,
            "states has dtype int64 and next_states <U1",
        ),
        ({"next_states": sp.csr_array(NEXT_STATES)}, InputTypeError, "must be both sparse or both dense"),
        ({"next_states": None}, InputTypeError, "next_states is None and an array is needed."),
        (
            {"states": [[0, NAN], [1, 1], [NAN, 0]]},
            InputError,
            "states has 2 entries that are NaN or infinite, the first",
        ),
        ({"next_states": [[0, 0], [1, np.inf], [0, 0]]}, InputError, "row 1, column 1 (inf). Drop those rows"),
        ({"next_states": [[0, 0], [1, NAN], [0, 0]]}, InputError, "A terminated row needs a next state too"),
        ({"states": [[0, 0], [1], [0, 0]]}, InputError, "states cannot be read as one array"),
        ({"states": 3.0}, InputTypeError, "states must have one entry a row and is one float."),
        ({"states": np.ones((3, 0))}, InputError, "states is empty, with shape (3, 0)"),
        ({"actions": [0, 1]}, InputError, "actions has 2 rows and rewards has 3"),
        (
            {"actions": [0, 1, 2], "next_actions": [[0], [1], [2]]},
            InputError,
            "actions has rows of shape () and next_a",
        ),
        ({"terminated": [0, 1]}, InputError, "terminated has 2 entries and the log has 3 rows"),
        (
            {"truncated": [0, 2, 0]},
            InputError,
            "truncated must be True or False (or 1 and 0) in each row; row 1 has 2.",
        ),
        ({"ratios": [1, -0.5, 1]}, InputError, "ratios must be finite and at least 0; row 1 has -0.5"),
        ({"ratios": [1, NAN, 1]}, InputError, "ratios has 1 entry that is NaN or infinite, the first at row 1"),
        ({"weights": [1, 1, -2]}, InputError, "weights must be finite and at least 0; row 2 has -2"),
        ({"weights": [0, 0, 0]}, InputError, "weights are all 0"),
        (
            {"probabilities": [1, 0, 1]},
            InputError,
            "probabilities must be above 0, for the actions were taken; row 1 has",
        ),
        ({"probabilities": [1, 0.5, 1.5]}, InputError, "probabilities must be in [0, 1]; row 2 has 1.5"),
    ],
)
def test_bad_columns_are_refused(columns, kind, message):
    with refuses(kind, message):
        log(**columns)


def test_bad_rewards_are_refused():
    with refuses(InputError, "rewards has 1 entry that is NaN or infinite, the first at row 2 (nan)"):
        Transitions(STATES, [0, 0, NAN], NEXT_STATES)
    with refuses(InputError, "rewards is empty: at least one row is needed."):
        Transitions(np.ones((0, 2)), [], np.ones((0, 2)))
    with refuses(InputTypeError, "rewards must have one entry a row and is a float."):
        Transitions(STATES, 1.0, NEXT_STATES)


# ---- selection


@pytest.mark.parametrize(
    "rows",
    [
        slice(1, None),
        slice(None, None, -1),
        slice(-1, None),
        0,
        -1,
        np.int8(2),
        [2, 0, 0],
        np.array([-1, 1], dtype=np.int16),
        np.array([1], dtype=np.uint64),
        [True, False, True],
        np.array([False, True, False]),
    ],
)
@pytest.mark.parametrize("shared", [False, True])
def test_selection_takes_the_rows_of_every_column(rows, shared):
    columns = {"terminated": [0, 0, 1], "truncated": [0, 1, 0], "actions": np.arange(3), "episodes": ["a", "a", "b"]}
    chances = np.array([0.5, 0.25, 1.0])
    given = {**columns, "ratios": REWARDS**2, "weights": [1, 2, 3], "probabilities": chances}
    table = Transitions.from_episodes([EPISODES[2]], probabilities=[chances]) if shared else log(**given)
    chosen = table[rows]
    wanted = np.atleast_1d(np.arange(3)[rows])
    assert len(chosen) == len(wanted)
    for name in "states next_states rewards terminated truncated actions ratios weights episodes probabilities".split():
        column = getattr(table, name)
        if column is not None:
            np.testing.assert_array_equal(getattr(chosen, name), column[wanted], err_msg=name)


def test_a_slice_is_a_view():
    assert np.shares_memory(log()[1:].states, STATES)
    assert np.shares_memory(log()[1].states, STATES)


@pytest.mark.parametrize(
    ("rows", "kind", "message"),
    [
        (3, InputError, "There is no row 3: the log has 3 rows, 0 to 2."),
        ([0, -4], InputError, "There is no row -4"),
        (slice(3, None), InputError, "slice(3, None, None) takes none of the 3 rows"),
        ([], InputError, "The selection takes no row"),
        ([False, False, False], InputError, "The selection takes no row"),
        ([True, False], InputError, "The mask has 2 entries and the log 3 rows"),
        ("rewards", InputTypeError, "Rows of a log are chosen by an index, a slice, a mask or a 1-d array of indices."),
        ([0.0, 1.0], InputTypeError, "Rows of a log are chosen by"),
        ([[0, 1]], InputTypeError, "Rows of a log are chosen by"),
        (True, InputTypeError, "Rows of a log are chosen by"),
    ],
)
def test_bad_selections_are_refused(rows, kind, message):
    with refuses(kind, message):
        log()[rows]


def test_a_selection_without_weight_is_refused():
    with refuses(InputError, "weights of the chosen rows are all 0"):
        log(weights=[0, 1, 1])[:1]


def test_iteration_gives_one_row_logs_and_ends():
    rewards = [row.rewards.item() for row in log()]
    assert rewards == [1.0, -1.0, 0.5]


# ---- episodes


def test_from_episodes_aligns_rows_with_observations():
    table = Transitions.from_episodes(iter(EPISODES))
    np.testing.assert_array_equal(table.states[:, 0], [0, 1, 3, 5, 6, 7])
    np.testing.assert_array_equal(table.next_states[:, 0], [1, 2, 4, 6, 7, 8])
    np.testing.assert_array_equal(table.rewards, [0.5, 1.5, 2.5, 3.5, 4.5, 5.5])
    np.testing.assert_array_equal(table.actions, [10, 11, 12, 13, 14, 15])
    np.testing.assert_array_equal(table.terminated, [False, True, False, False, False, False])
    np.testing.assert_array_equal(table.truncated, [False, False, True, False, False, True])
    np.testing.assert_array_equal(table.episodes, [0, 0, 1, 2, 2, 2])
    assert repr(table) == "Transitions(6 rows, states float64 (1,), 1 terminated, 2 truncated, actions, episodes)"


def test_from_episodes_stores_each_trajectory_once():
    observations = np.arange(8.0).reshape(4, 2)
    table, state_rows, next_rows = Transitions.from_episodes([(observations, None, [0, 0, 0], True)]).indexed_states()
    assert table is observations  # a single episode is not even copied
    np.testing.assert_array_equal(state_rows, [0, 1, 2])
    np.testing.assert_array_equal(next_rows, [1, 2, 3])
    table, state_rows, next_rows = Transitions.from_episodes(EPISODES).indexed_states()
    np.testing.assert_array_equal(table[:, 0], np.arange(9))
    np.testing.assert_array_equal(state_rows, [0, 1, 3, 5, 6, 7])
    np.testing.assert_array_equal(next_rows, [1, 2, 4, 6, 7, 8])


def test_from_episodes_takes_sparse_observations_and_no_actions():
    sparse = [(sp.csr_array(observations), None, rewards, ended) for observations, _, rewards, ended in EPISODES]
    table = Transitions.from_episodes(sparse)
    assert table.actions is None and table.states.format == "csr"
    np.testing.assert_array_equal(table.next_states.toarray()[:, 0], [1, 2, 4, 6, 7, 8])


@given(st.lists(st.tuples(st.integers(1, 5), st.booleans()), min_size=1, max_size=6))
def test_from_episodes_equals_the_columns_written_out(shapes):
    rng = np.random.default_rng(len(shapes))
    episodes = [(rng.normal(size=(t + 1, 2)), rng.integers(3, size=t), rng.normal(size=t), end) for t, end in shapes]
    ends = np.concatenate([[False] * (t - 1) + [True] for t, _ in shapes])
    terminated = np.concatenate([[False] * (t - 1) + [end] for t, end in shapes])
    expected = Transitions(
        np.concatenate([observations[:-1] for observations, *_ in episodes]),
        np.concatenate([rewards for _, _, rewards, _ in episodes]),
        np.concatenate([observations[1:] for observations, *_ in episodes]),
        terminated=terminated,
        truncated=ends & ~terminated,
        actions=np.concatenate([actions for _, actions, _, _ in episodes]),
        episodes=np.concatenate([[number] * t for number, (t, _) in enumerate(shapes)]),
    )
    assert_same(Transitions.from_episodes(episodes), expected)


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        ((np.ones((2, 1)), [0, 0], [0, 0], True), InputError, "episode 1 has 2 observations and 2 rewards."),
        ((np.ones((4, 1)), [0, 0], [0, 0], True), InputError, "need 3 observations"),
        ((np.ones((3, 1)), [0, 0, 0], [0, 0], True), InputError, "episode 1 has 3 actions and 2 rewards"),
        ((np.ones((3, 1)), None, [0, 0], True), InputError, "episode 1 has no actions and others have."),
        ((np.ones((3, 2)), [0, 0], [0, 0], True), InputError, "episode 1: observations of shape (2,)"),
        ((np.ones((3, 1)), [[0], [0]], [0, 0], True), InputError, "episode 1: actions of shape (1,)"),
        ((np.ones((1, 1)), [], [], True), InputError, "episode 1: rewards is empty"),
        (([[0], [NAN], [1]], [0, 0], [0, 0], True), InputError, "episode 1: observations has 1 entry that is NaN"),
        ((np.ones((3, 1)), [0, 0], [0, NAN], True), InputError, "episode 1: rewards has 1 entry that is NaN"),
        ((np.ones((3, 1)), [0, 0], [0, 0], [False, True]), InputTypeError, "episode 1: terminated must be one True or"),
        ((np.ones((3, 1)), [0, 0], [0, 0]), InputTypeError, "episode 1 must be a tuple (observations, actions, rew"),
        (sp.csr_array(np.ones((3, 1))), InputTypeError, "episode 1 must be a tuple"),
    ],
)
def test_bad_episodes_are_refused_by_number(bad, kind, message):
    with refuses(kind, message):
        Transitions.from_episodes([EPISODES[0], bad])


def test_no_episodes_are_refused():
    with refuses(InputError, "The list of episodes is empty"):
        Transitions.from_episodes([])


def test_from_episodes_takes_probabilities():
    table = Transitions.from_episodes(EPISODES, probabilities=([0.5, 1.0], np.array([0.25]), [0.125, 1, 1]))
    np.testing.assert_array_equal(table.probabilities, [0.5, 1.0, 0.25, 0.125, 1.0, 1.0])
    assert repr(table).endswith("actions, episodes, probabilities)")


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        ([[1, 1], [1]], InputError, "probabilities has 2 arrays and there are 3 episodes: one each."),
        ([[1, 1], [1, 1], [1, 1, 1]], InputError, "episode 1: probabilities has 2 entries and the log has 1 rows"),
        ([[1, 1], [1], [1, 0, 1]], InputError, "episode 2: probabilities must be above 0, for the actions were taken;"),
        (0.5, InputTypeError, "probabilities must be a list of one array an episode, not float."),
    ],
)
def test_bad_probabilities_of_episodes_are_refused(bad, kind, message):
    with refuses(kind, message):
        Transitions.from_episodes(EPISODES, probabilities=bad)


# ---- trajectories stored once


def test_from_table_stores_each_state_once():
    states = np.arange(8.0).reshape(4, 2)
    columns = {"terminated": [0, 1, 0], "truncated": [0, 1, 1], "actions": [4, 5, 6], "episodes": ["a", "a", "b"]}
    columns |= {"ratios": [1, 2, 3], "weights": [3, 2, 1], "probabilities": [0.5, 0.25, 1.0]}
    table = Transitions.from_table(states, [0, 2, 1], REWARDS, np.array([1, 3, 0], np.uint8), **columns)
    assert_same(table, Transitions(states[[0, 2, 1]], REWARDS, states[[1, 3, 0]], **columns))
    owned, state_rows, next_rows = table.indexed_states()
    assert owned is states and state_rows.dtype == next_rows.dtype == np.int64
    np.testing.assert_array_equal(state_rows, [0, 2, 1])
    np.testing.assert_array_equal(next_rows, [1, 3, 0])


def test_from_table_refuses_places_outside_it():
    with refuses(InputError, "next_states must be in [0, 4), which is where the table has rows; row 1 has 4"):
        Transitions.from_table(np.zeros((4, 2)), [0, 1, 2], REWARDS, [0, 4, 0])
    with refuses(InputTypeError, "states must be integers and has dtype float64."):
        Transitions.from_table(np.zeros((4, 2)), [0.0, 1.0, 2.0], REWARDS, [0, 1, 0])
    with refuses(InputError, "table has 1 entry that is NaN or infinite, the first at row 2, column 1 (nan)."):
        Transitions.from_table([[0, 1], [0, 1], [0, NAN]], [0, 1, 2], REWARDS, [0, 1, 0])


def test_windows_of_one_array_are_found():
    for trajectory in (np.arange(10.0).reshape(5, 2), np.arange(5), np.asfortranarray(np.ones((5, 3)))):
        table, state_rows, next_rows = Transitions(trajectory[:-1], np.zeros(4), trajectory[1:]).indexed_states()
        assert np.shares_memory(table, trajectory) and table.shape == trajectory.shape
        np.testing.assert_array_equal(table, trajectory)
        np.testing.assert_array_equal(state_rows, [0, 1, 2, 3])
        np.testing.assert_array_equal(next_rows, [1, 2, 3, 4])


def test_other_arrays_are_not_taken_for_windows():
    trajectory = np.arange(20.0).reshape(10, 2)
    for states, next_states in [
        (trajectory[:-1].copy(), trajectory[1:]),  # separate memory
        (trajectory[1:], trajectory[:-1]),  # backwards in time
        (trajectory[::-1][:-1], trajectory[::-1][1:]),
        (trajectory[:4], trajectory[6:]),  # nothing shared
        (trajectory[:-1, :1], trajectory[1:, 1:]),  # other columns
        (trajectory[:8:2], trajectory[1:9:2]),  # every other row
        (sp.csr_array(trajectory[:-1]), sp.csr_array(trajectory[1:])),
    ]:
        assert Transitions(states, np.zeros(states.shape[0]), next_states).indexed_states() is None


def test_overlap_of_a_slice_stays_within_the_slice():
    trajectory = np.arange(20.0).reshape(10, 2)
    table, state_rows, next_rows = Transitions(trajectory[:-1], np.zeros(9), trajectory[1:])[2:5].indexed_states()
    np.testing.assert_array_equal(table, trajectory[2:6])
    np.testing.assert_array_equal(table[state_rows], trajectory[2:5])
    np.testing.assert_array_equal(table[next_rows], trajectory[3:6])


def test_a_small_selection_leaves_the_rest_of_the_table():
    table = Transitions.from_episodes([(np.arange(101.0)[:, None], None, np.zeros(100), True)])
    small = table[[40, 41, 7]]
    observations, state_rows, next_rows = small.indexed_states()
    np.testing.assert_array_equal(observations[:, 0], [7, 8, 40, 41, 42])
    np.testing.assert_array_equal(state_rows, [2, 3, 0])
    np.testing.assert_array_equal(next_rows, [3, 4, 1])
    large = table[:90]
    assert large.indexed_states()[0] is table.indexed_states()[0]


def test_a_log_is_no_array():
    log = Transitions([[0.0], [1.0]], [1.0, 0.0], [[1.0], [2.0]])
    with pytest.raises(InputTypeError, match=re.escape("LinearValue(features=make_pipeline(...))")):
        np.asarray(log)
    with pytest.raises(InputTypeError, match="a log is no array"):
        StandardScaler().fit(log)
