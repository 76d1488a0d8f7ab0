"""Where the process ended and where only the recording did; the order of rows; next states that are missing."""

import re

import numpy as np
import pytest

import log_shapes as shapes
import valuate as va
from valuate.errors import InputError

NAN = float("nan")
NO_NEXT = "the last row of an episode that did not terminate has no next state in the log"
X = np.arange(6.0)


def refuses(message):
    return pytest.raises(InputError, match=re.escape(message))


def read(columns=None, **arrays):
    options = {name: arrays.pop(name) for name in ("done_means", "format", "last_step") if name in arrays}
    if "done_means" in options:
        options["done"] = options.pop("done_means")
    return va.read({"reward": np.ones(len(arrays.get("obs", X))), "obs": X, **arrays}, columns, **options)


def flags(*rows):
    return np.isin(np.arange(6), rows)


# ---- done


@pytest.mark.parametrize("name", ["done", "dones", "is_done"])
def test_a_lone_done_is_never_guessed(name):
    with refuses(
        f"{name!r} does not say whether the process ended or only the recording did, at a time limit say, and the "
        f"value after it depends on that. Give done='terminated' where {name!r} means that the process itself ended, "
        "so that nothing follows; or done='ended' where it means that an episode stopped for whatever reason"
    ):
        read(**{name: flags(2, 5)}, next_obs=X + 1)


def test_done_as_told():
    log = read(done=flags(2, 5), next_obs=X + 1, done_means="terminated")
    np.testing.assert_array_equal(log.terminated, flags(2, 5))
    assert not log.truncated.any() and log.reading.columns["done"] == "done"
    log = read(done=flags(2, 5), next_obs=X + 1, done_means="ended")
    np.testing.assert_array_equal(log.truncated, flags(2, 5))
    assert not log.terminated.any()
    assert "'done' is the end of an episode of either kind, taken for truncated everywhere." in log.reading.notes
    log = read(done=flags(2, 5), truncated=flags(5), next_obs=X + 1, done_means="ended")
    np.testing.assert_array_equal(log.terminated, flags(2))
    np.testing.assert_array_equal(log.truncated, flags(5))


def test_old_rllib_dones_are_asked_about():
    batch = shapes.rllib()
    batch["dones"] = batch.pop("terminateds") | batch.pop("truncateds")
    with refuses("'dones' does not say whether the process ended or only the recording did"):
        va.read(batch)


def test_done_beside_truncated():
    # A truncated row that is not done: done is the end of the process.
    log = read(done=flags(2), truncated=flags(5), next_obs=X + 1)
    np.testing.assert_array_equal(log.terminated, flags(2))
    np.testing.assert_array_equal(log.truncated, flags(5))
    # All truncated rows are done: both meanings are possible, and one of them more likely.
    with refuses("(All 1 rows of 'truncated' are done as well, which points to 'ended'.)"):
        read(done=flags(2, 5), truncated=flags(5), next_obs=X + 1)
    both = read(done=flags(2, 5), truncated=flags(5), next_obs=X + 1, done_means="terminated")
    np.testing.assert_array_equal(both.terminated, flags(2, 5))
    assert not both.truncated.any()
    # Nothing was truncated, or nothing is done: there is nothing to ask.
    np.testing.assert_array_equal(read(done=flags(2), truncated=flags(), next_obs=X).terminated, flags(2))
    assert not read(done=flags(), next_obs=X).terminated.any()


def test_done_beside_terminated():
    log = read(done=flags(2, 5), terminated=flags(2), next_obs=X + 1)
    np.testing.assert_array_equal(log.terminated, flags(2))
    np.testing.assert_array_equal(log.truncated, flags(5))


def test_terminal_beside_done_is_the_time_limit_of_scope_rl_only():
    arrays = {"done": flags(2, 5), "terminal": flags(5)}
    with refuses("'terminal' beside 'done' can mean the end of the process or, as in SCOPE-RL, the time limit."):
        read(**arrays)
    log = read(**arrays, format="scope-rl")
    assert log.terminated.sum() == 1 and log.terminated[2] and log.reading.dropped == {NO_NEXT: 1}
    log = read({"terminated": "terminal"}, **arrays, next_obs=X)
    np.testing.assert_array_equal(log.terminated, flags(5))
    np.testing.assert_array_equal(log.truncated, flags(2))
    np.testing.assert_array_equal(read(terminal=flags(5), next_obs=X).terminated, flags(5))


def test_scope_rl_trajectories_without_marks():
    arrays = {"n_trajectories": 2, "step_per_trajectory": 3, "done": flags(), "terminal": flags()}
    log = read(**arrays)
    np.testing.assert_array_equal(log.states, [0, 1, 3, 4])
    np.testing.assert_array_equal(log.episodes, [0, 0, 1, 1])
    assert log.reading.dropped == {NO_NEXT: 2}


# ---- flags


def test_termination_wins_where_both_flags_are_set():
    log = read(terminated=flags(2, 5), truncated=flags(2, 3), next_obs=X + 1)
    np.testing.assert_array_equal(log.terminated, flags(2, 5))
    np.testing.assert_array_equal(log.truncated, flags(3))
    assert "1 row is marked both terminated and truncated: termination wins." in log.reading.notes
    d3rlpy = va.read({"observations": X, "rewards": X, "terminals": flags(2, 5), "timeouts": flags(2)})
    np.testing.assert_array_equal(d3rlpy.terminated, flags(2, 5))
    assert d3rlpy.reading.dropped == {}


def test_an_end_without_a_kind_is_refused():
    with refuses("'last' says where episodes end, and nothing says whether the process ended there"):
        read(last=flags(2, 5), next_obs=X)
    log = read({"done": "last"}, last=flags(2, 5), next_obs=X, done_means="terminated")
    np.testing.assert_array_equal(log.terminated, flags(2, 5))
    with refuses("Name a column with columns={'terminated': ...}"):
        read(last=flags(2, 5), next_obs=X)
    cut = read(last=flags(2, 5), truncated=flags(5), next_obs=X)
    np.testing.assert_array_equal(cut.terminated, flags(2))


def test_no_ends_at_all():
    log = read(next_obs=X + 1)
    assert not log.terminated.any() and log.truncated.tolist() == [False] * 5 + [True]
    assert any("No column says where the process ended: no row is taken to have." in note for note in log.reading.notes)


def test_the_end_of_an_episode_is_truncated_whatever_marks_it():
    log = read(terminated=flags(5), episode=[0, 0, 0, 1, 1, 1], next_obs=X + 1)
    np.testing.assert_array_equal(log.truncated, flags(2))
    np.testing.assert_array_equal(log.episodes, [0, 0, 0, 1, 1, 1])


def test_ends_within_an_episode_are_told():
    log = read(terminated=flags(1, 5), episode=[0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(log.states, [0, 1, 3, 4, 5])
    assert "1 rows end in the middle of an episode, as its ids have it." in log.reading.notes
    assert log.reading.dropped == {NO_NEXT: 1}


def test_a_terminated_row_has_its_own_state_for_a_next_one():
    log = read(terminated=flags(2, 5), truncated=flags())
    np.testing.assert_array_equal(log.next_states, [1, 2, 2, 4, 5, 5])
    table, rows, next_rows = log.indexed_states()
    assert table is not log.states and np.shares_memory(table, X)
    np.testing.assert_array_equal(rows, np.arange(6))


def test_unrecorded_ends_show_where_next_states_do_not_match():
    following = np.array([1.0, 2, 9, 4, 5, 6])
    log = read(terminated=flags(4), next_obs=following)
    np.testing.assert_array_equal(log.episodes, [0, 0, 0, 1, 1, 2])
    np.testing.assert_array_equal(log.truncated, flags(2, 5))
    assert any("where a row's next state is not the state of the row after it (1 rows)" in n for n in log.reading.notes)
    log = read(terminated=flags(4), next_obs=np.full(6, 7.0))
    assert log.episodes is None
    assert any("the rows are not in order of time" in note for note in log.reading.notes)


def test_a_log_of_one_row():
    log = va.read({"obs_0": [1.0], "next_obs_0": [2.0], "reward": [1], "terminated": [False]})
    np.testing.assert_array_equal(log.next_states, [[2.0]])
    assert log.truncated.all() and len(va.read({"obs": [1.0], "reward": [1], "terminated": [True]})) == 1


def test_ends_that_nothing_records_are_warned_of():
    log = read(terminated=flags(2, 5))
    assert log.reading.dropped == {} and len(log) == 6
    assert any("Nothing says where the recording was cut" in note for note in log.reading.notes)


# ---- order


def test_rows_are_sorted_by_episode_and_step():
    flat = shapes.flat()
    order = np.random.default_rng(1).permutation(len(flat["reward"]))
    for arrays in (flat, shapes.flat_without_next()):
        wanted = va.read(arrays)
        log = va.read({name: values[order] for name, values in arrays.items()})
        place = {episode: k for k, episode in enumerate(dict.fromkeys(flat["episode_id"][order].tolist()))}
        rank = np.argsort([place[episode] for episode in np.asarray(wanted.episodes).tolist()], kind="stable")
        for name in ("states", "next_states", "rewards", "actions", "terminated", "truncated", "episodes"):
            np.testing.assert_array_equal(getattr(log, name), np.asarray(getattr(wanted, name))[rank], err_msg=name)
        assert "The rows were out of order and have been sorted by episode and step." in log.reading.notes
        assert log.reading.dropped == wanted.reading.dropped
        table = log.indexed_states()[0]
        assert len(table) <= len(flat["reward"]) + 30


def test_rows_that_lie_apart_without_steps_are_refused():
    """Where the next state is that of the next row, an order that no column says would be a guess."""
    arrays = {"terminated": flags(4, 5), "episode": [7, 3, 7, 3, 7, 3]}
    with refuses(
        "Rows of episode 7 ('episode') lie apart, in rows 0 and 2, and no column says which are earlier. Where the "
        "next state is that of the next row, all depends on it. Name the column of steps or times: columns={'steps': "
        "...}. Or put the rows of each episode together, in order of time; or name the columns of the next states."
    ):
        read(**arrays)
    with refuses("Rows of episode b ('episode') lie apart"):
        read(**arrays | {"episode": list("bababa")})
    # Columns that may say it are named: by what they are called, dates, and numbers that count the rows.
    days = np.array(["2024-01-03", "2024-01-03", "2024-01-01", "2024-01-02", "2024-01-02", "2024-01-01"], "M8[D]")
    more = {"dose": [5, 1, 5, 2, 7, 5], "k": [2, 2, 0, 1, 1, 0], "admitted": days, "visit": [30, 20, 1, 10, 2, 1]}
    with refuses("Name the column of steps or times: columns={'steps': 'visit'} (or 'k', 'admitted')."):
        read(**arrays, **more)
    log = read({"steps": "visit"}, **arrays, **more)
    np.testing.assert_array_equal(log.states[:4], [2, 4, 5, 3])
    with refuses("'date' holds text, such as '1/2/24': make numbers of it, or dates like 2024-01-31."):
        read(**arrays, date=["7/2/24", "1/2/24", "8/2/24", "2/2/24", "9/2/24", "3/2/24"])
    # With next states of their own rows stay where they are: nothing says which is earlier.
    log = read(terminated=flags(4, 5), episode=[7, 3, 7, 3, 7, 3], next_obs=X + 1)
    np.testing.assert_array_equal(log.states, X)
    np.testing.assert_array_equal(log.episodes, [7, 3, 7, 3, 7, 3])
    assert not log.truncated.any()


def test_missing_steps_have_no_next_state():
    log = read(terminated=flags(5), episode=[0] * 6, step=[0, 1, 2, 5, 6, 7])
    np.testing.assert_array_equal(log.states, [0, 1, 3, 4, 5])
    assert log.reading.dropped == {"the next step is missing from the log": 1}
    assert log.reading.columns["steps"] == "step"
    for steps in ([0, 10, 20, 30, 40, 50], [0.5, 1.5, 9.0, 9.5, 11.0, 12.0]):  # these do not count steps
        assert len(read(terminated=flags(5), episode=[0] * 6, step=steps)) == 6
    assert len(read(terminated=flags(5), episode=[0] * 6, timestamp=[0, 1, 2, 5, 6, 7])) == 6


def test_ids_that_are_used_again():
    """Two logs joined, both with episodes 0 and 1."""
    arrays = {"terminated": flags(1, 5), "episode": [0, 0, 1, 0, 0, 1], "step": [0, 1, 0, 0, 1, 0]}
    for more in ({}, {"next_obs": X + 1}):
        log = read(**arrays, **more)
        np.testing.assert_array_equal(log.states, X if more else [0, 1, 3, 5])
        np.testing.assert_array_equal(log.episodes, [0, 0, 1, 2, 2, 3] if more else [0, 0, 2, 3])
        assert any(
            "Each run of rows from step 0 on is taken for an episode of its own." in n for n in log.reading.notes
        )

    # Without steps, each id comes again behind a row that ended an episode.
    log = read(terminated=flags(1, 2, 4, 5), episode=list("aabaab"))
    np.testing.assert_array_equal(log.next_states, [1, 1, 2, 4, 4, 5])
    np.testing.assert_array_equal(log.episodes, [0, 0, 1, 2, 2, 3])
    assert any("Ids of 'episode' are used again, each time behind a row that ends" in n for n in log.reading.notes)
    # The one id of files of an episode each.
    log = read(terminated=flags(2, 5), episode=[0] * 6, step=[0, 1, 2, 0, 1, 2])
    np.testing.assert_array_equal(log.episodes, [0, 0, 0, 1, 1, 1])


HOURS = {"episode": [0, 0, 0, 0, 1, 1], "time": [0, 8, 16, 0, 0, 8]}


def test_an_hour_of_the_day_is_no_step():
    """Ids whose rows lie together say where episodes are, whatever a column of times does."""
    for more in ({}, {"next_obs": X + 1}):
        log = read(terminated=flags(3, 5), **HOURS, **more)
        np.testing.assert_array_equal(log.episodes, HOURS["episode"])
        np.testing.assert_array_equal(log.states, X)
        assert "steps" not in log.reading.columns and log.reading.unused == ("time",)
        assert (
            "'time' was not taken for steps: it is 0 in rows 0 and 3 of episode 0. The rows of each episode lie "
            "together and stay in the order that they have." in log.reading.notes
        )
    log = read(terminated=flags(3, 5), episode=[0] * 4 + [1] * 2, date=[1] * 6, t=[4, 4, 5, 5, 7, 7])
    np.testing.assert_array_equal(log.episodes, HOURS["episode"])
    # Joined files: ids that start again are told apart, and a time of day does not add to them.
    log = read(terminated=flags(1), episode=[0, 0, 1, 0, 0, 1], time=[0, 8, 0, 0, 0, 0])
    np.testing.assert_array_equal(log.episodes, [0, 0, 2])


def test_a_measurement_is_no_step():
    """Numbers that are not whole and contradict rows that lie together sort nothing."""
    warm = [37.1, 36.9, 37.4, 38.0, 37.5, 37.7]
    log = read(terminated=flags(2, 5), episode=[0, 0, 0, 1, 1, 1], t=warm)
    np.testing.assert_array_equal(log.states, X)
    assert (
        "'t' was not taken for steps: it is no whole number, and falls in row 1, in the middle of episode 0. The rows "
        "of each episode lie together and stay in the order that they have. If it is the time: columns={'steps': 't'}."
        in log.reading.notes
    )
    # As told, or where rows lie apart and nothing else can order them, or whole: sorted.
    log = read({"steps": "t"}, terminated=flags(1, 5), episode=[0, 0, 0, 1, 1, 1], t=warm)
    np.testing.assert_array_equal(log.states, [1, 0, 4, 5])
    log = read(terminated=flags(4, 5), episode=[0, 1, 0, 1, 0, 1], t=[0.5, 0.2, 0.1, 0.4, 0.9, 0.9])
    np.testing.assert_array_equal(log.states, [2, 0, 4, 1, 3, 5])
    assert "'t' was taken for the time of a row. If it is none: columns={'steps': None}." in log.reading.notes
    log = read(terminated=flags(0, 5), episode=[0, 0, 0, 1, 1, 1], t=[2.0, 0.0, 1.0, 0.0, 1.0, 2.0])
    np.testing.assert_array_equal(log.states, [1, 2, 0, 3, 4, 5])


def test_a_step_twice():
    arrays = {"terminated": flags(2, 5), "episode": [0] * 6, "step": [0, 1, 2, 1, 0, 2]}
    said = "Episode 0 has step 0 more than once, in rows 0 and 4 (3 rows are such). Where the next state is"
    with refuses(said):
        read({"steps": "step"}, **arrays)
    with refuses("Episode 0 has step 1 more than once, in rows 1 and 4 (1 rows are such). Where the next state is"):
        read(terminated=flags(2, 5), episode=[0, 0, 0, 1, 0, 1], step=[0, 1, 2, 0, 1, 1])
    np.testing.assert_array_equal(read(**arrays).states, X)
    log = read({"steps": "step"}, **arrays, next_obs=X + 1)
    np.testing.assert_array_equal(log.states, X)
    assert any("The rows are left in the order that they have." in note for note in log.reading.notes)
    assert read({"steps": None}, **arrays).reading.dropped == {}


def test_steps_that_count_down():
    log = read(terminated=flags(2, 5), episode=[0, 0, 0, 1, 1, 1], time=[2, 1, 0, 5, 4, 3])
    np.testing.assert_array_equal(log.states, X)
    assert "'time' was left out: it counts down." in log.reading.notes and "steps" not in log.reading.columns


def test_episodes_that_only_steps_tell():
    log = read(terminated=flags(5), t=[0, 1, 2, 0, 1, 2])
    np.testing.assert_array_equal(log.states, [0, 1, 3, 4, 5])
    np.testing.assert_array_equal(log.episodes, [0, 0, 1, 1, 1])
    assert "No column names the episodes: one starts wherever 't' starts again." in log.reading.notes


def test_dates_as_steps():
    dates = np.array(["2024-01-03", "2024-01-01", "2024-01-02", "2024-02-01", "2024-02-03", "2024-02-02"], "M8[D]")
    log = read(terminated=flags(0, 4), episode=list("aaabbb"), time=dates)
    np.testing.assert_array_equal(log.states, [1, 2, 0, 3, 5, 4])
    assert log.reading.dropped == {}


# ---- discounts


def test_a_discount_of_0_is_a_termination():
    log = read(discount=np.where(flags(2, 5), 0.0, 1.0), next_obs=X + 1)
    np.testing.assert_array_equal(log.terminated, flags(2, 5))
    assert "2 rows are terminated because 'discount' is 0 there." in log.reading.notes
    log = read(discount=np.where(flags(2), 0.0, 0.9), terminated=flags(2, 5), next_obs=X + 1)
    np.testing.assert_array_equal(log.terminated, flags(2, 5))
    assert "'discount' is 0.9 in every row that goes on: give it as the discount of the fit." in log.reading.notes


def test_discounts_that_vary_are_refused():
    discount = np.linspace(0.5, 1.0, 6)
    with refuses(
        "'discount' has discounts from 0.5 to 1, which differ from row to row, and a log has none of its own."
    ):
        read(discount=discount, next_obs=X + 1)
    assert "discount" in read({"discounts": None}, discount=discount, next_obs=X + 1).reading.unused
    with refuses("'discount' is 0 in every row."):
        read(discount=np.zeros(6), next_obs=X + 1)


# ---- last steps


def test_rlds_last_steps_as_told():
    steps = {"is_first": flags(0, 3), "is_last": flags(2, 5), "is_terminal": flags(2), "reward": [1, 1, 0, 1, 1, 0]}
    book = read(**steps)  # as in RLDS: nothing shows otherwise
    np.testing.assert_array_equal(book.states, [0, 1, 3, 4])
    np.testing.assert_array_equal(book.next_states, [1, 2, 4, 5])
    np.testing.assert_array_equal(book.terminated, [False, True, False, False])
    np.testing.assert_array_equal(book.truncated, [False, False, False, True])
    assert any("if it is a transition instead, give last_step='transition'" in note for note in book.reading.notes)
    told = read(**steps, last_step="transition")
    np.testing.assert_array_equal(told.states, [0, 1, 2, 3, 4])
    assert told.reading.dropped == {NO_NEXT: 1}
    np.testing.assert_array_equal(told.terminated, [False, False, True, False, False])
    shown = read(**{**steps, "reward": [0, 0, 1, 0, 0, 1]})  # a reward where there would be none
    np.testing.assert_array_equal(shown.states, told.states)
    np.testing.assert_array_equal(shown.terminated, told.terminated)
    # A discount of 0 one step before the last shows that it is an observation, whatever reward is written there.
    odd = read(**{**steps, "reward": [1, 1, 9, 1, 1, 0]}, discount=[1, 0, 0, 1, 1, 0])
    np.testing.assert_array_equal(odd.states, book.states)
    np.testing.assert_array_equal(odd.rewards, np.ones(4))


def test_rlds_last_steps_with_actions_of_their_own():
    steps = {"is_first": flags(0, 3), "is_last": flags(2, 5), "is_terminal": flags(2, 5), "reward": [1, 1, 0, 1, 1, 0]}
    np.testing.assert_array_equal(read(**steps, action=[1, 2, 7, 3, 4, 7]).states, [0, 1, 3, 4])
    np.testing.assert_array_equal(read(**steps, action=[1, 2, 7, 3, 4, 8]).states, X)
    # A discount that is only written as 1 - is_terminal shows nothing.
    log = read(**steps, action=[1, 2, 0, 3, 4, 0], discount=1.0 - flags(2, 5))
    np.testing.assert_array_equal(log.states, [0, 1, 3, 4])
    np.testing.assert_array_equal(log.terminated, [False, True, False, True])


def test_last_steps_may_hold_nothing():
    rewards = np.array([1, 1, NAN, 1, 1, NAN])
    actions = np.array([1, 2, NAN, 3, 4, NAN])
    steps = {"is_first": flags(0, 3), "is_last": flags(2, 5), "is_terminal": flags(2)}
    log = read(**steps, reward=rewards, action=actions)
    np.testing.assert_array_equal(log.actions, [1, 2, 3, 4])
    np.testing.assert_array_equal(log.rewards, np.ones(4))


def test_an_rlds_episode_of_one_step_has_no_row():
    steps = {"is_first": flags(0, 3, 4), "is_last": flags(2, 3, 5), "is_terminal": flags(), "reward": np.zeros(6)}
    np.testing.assert_array_equal(read(**steps).states, [0, 1, 4])


def test_last_observations_in_tables():
    arrays = {"episode": [0, 0, 0, 1, 1, 1], "terminated": flags(1), "truncated": flags(4)}
    log = read(**arrays, last_step="observation")
    np.testing.assert_array_equal(log.states, [0, 1, 3, 4])
    np.testing.assert_array_equal(log.next_states, [1, 2, 4, 5])
    np.testing.assert_array_equal(log.terminated, [False, True, False, False])
    np.testing.assert_array_equal(log.truncated, [False, False, False, True])
    with refuses("last_step='observation' is for logs whose next state is that of the next row"):
        read(**arrays, next_obs=X, last_step="observation")
    with refuses("last_step='observation' needs to know where episodes end"):
        read(terminated=flags(), last_step="observation")


def test_one_state_more_for_each_episode():
    log = va.read({"obs": np.arange(8.0), "rewards": X, "terminations": flags(2), "truncations": flags(5)})
    np.testing.assert_array_equal(log.states, [0, 1, 2, 4, 5, 6])
    np.testing.assert_array_equal(log.next_states, [1, 2, 3, 5, 6, 7])
    assert any("'obs' has one state more than rows for each episode" in note for note in log.reading.notes)
    with refuses("'obs' has 9 rows and 'rewards' has 6: they must agree, or there must be one state more for each"):
        va.read({"obs": np.arange(9.0), "rewards": X, "terminations": flags(2), "truncations": flags(5)})


# ---- what is missing


@pytest.mark.parametrize("source", ["dict", "columns", "pandas", "ints"])
def test_a_next_state_that_is_missing(source):
    import pandas as pd

    gone = np.array([1, 2, NAN, 4, 5, NAN])
    names = {"terminated": flags(2), "truncated": flags(5)}
    if source == "dict":
        log = read(next_obs=gone, **names)
    elif source == "columns":
        log = va.read({"obs_0": X, "obs_1": X, "next_obs_0": gone, "next_obs_1": gone, "reward": X, **names})
    elif source == "pandas":
        log = va.read(pd.DataFrame({"obs": X, "next_obs": gone, "reward": X, **names}))
    else:
        following = pd.array([1, 2, None, 4, 5, None], dtype="Int64")
        log = va.read(pd.DataFrame({"obs": X.astype(int), "next_obs": following, "reward": X, **names}))
        assert log.states.dtype == np.int64
    first = log.next_states if log.next_states.ndim == 1 else log.next_states[:, 1]
    np.testing.assert_array_equal(first, [1, 2, 2, 4, 5])
    assert log.reading.dropped == {"a truncated row has no value for its next state": 1}
    assert any("1 terminated rows have no next state, which counts for nothing" in note for note in log.reading.notes)
    np.testing.assert_array_equal(log.truncated, [False] * 4 + [True])


def test_a_next_state_that_is_missing_elsewhere():
    gone = np.array([1, NAN, 3, 4, 5, 6])
    with refuses(
        "next_states (column 'next_obs') have 1 rows with a value that is missing, NaN or infinite, the first"
    ):
        read(next_obs=gone, terminated=flags(2), truncated=flags(5))
    wide = {"obs_0": X, "obs_1": X, "next_obs_0": X + 1, "next_obs_1": gone}
    with refuses(f"next_states (columns 'next_obs_0' to 'next_obs_1') {GONE} 1, which neither"):
        va.read({**wide, "reward": X, "terminated": flags(2)})


GONE = "have 1 rows with a value that is missing, NaN or infinite, the first at row"
AGREE = "and 'reward' has 6: they must agree."


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"obs": np.array([0, 1, NAN, 3, 4, 5])}, f"states (column 'obs') {GONE} 2."),
        ({"reward": [0, 0, 0, NAN, 0, 0]}, f"rewards (column 'reward') {GONE} 3."),
        ({"action": np.array([0, NAN, 0, 0, 0, 0])}, f"actions (column 'action') {GONE} 1."),
        ({"pscore": [1, 1, NAN, 1, 1, 1]}, f"probabilities (column 'pscore') {GONE} 2."),
        (
            {"reward": ["1", "2", "x", "4"]},
            "rewards (column 'reward') must be numbers and has text in it, such as 'x'.",
        ),
        ({"reward": ["1", "2"]}, "rewards (column 'reward') must be numbers and has text in it, such as '1'."),
        ({"reward": [1, 2, "x"]}, "column 'reward' mixes kinds of values: most are numbers, and row 2"),
        (
            {"obs": [[0, 1]] * 2 + [[1]] * 4},
            "column 'obs' has rows of different shapes: (2,) at row 0 and (1,) at",
        ),
        ({"action": np.zeros(5)}, f"actions (column 'action') has 5 rows {AGREE}"),
        ({"truncated": np.zeros(5)}, f"truncated (column 'truncated') has 5 rows {AGREE}"),
        ({"obs": np.zeros(5), "reward": X}, f"states (column 'obs') have 5 rows {AGREE}"),
        (
            {"next_obs": np.zeros((6, 2))},
            "states (column 'obs') have the shape (6,) and next_states (column 'next_obs')",
        ),
        (
            {"episode": np.array([0, 0, NAN, 0, 1, 1])},
            "episodes (column 'episode') has 1 entry that is NaN or infinite,",
        ),
        ({"episode": ["a", None, "a", "b", "b", "b"]}, "episodes (column 'episode') has 1 rows without a value, the"),
        ({"reward": []}, "The log has columns and no rows: at least one row is needed."),
    ],
)
def test_bad_values(arrays, message):
    with refuses(message):
        read(**{"terminated": flags(5), **arrays})


def test_a_log_of_which_nothing_is_left():
    with refuses(f"No row is left: in 6 rows {NO_NEXT}."):
        read(terminated=flags(), truncated=np.ones(6, bool))


def test_bad_values_of_a_table_are_told_by_column():
    import pandas as pd

    frame = {"obs_0": X, "obs_1": np.where(flags(3), NAN, X), "reward": X, "terminated": flags(5)}
    with refuses(f"states (column 'obs_1') {GONE} 3."):
        va.read(pd.DataFrame(frame))
    with refuses("terminated (column 'terminated') has 1 rows without a value, the first at row 2."):
        flag = pd.array([False, False, None, False, False, True], dtype="boolean")
        va.read(pd.DataFrame({"obs": X, "reward": X, "terminated": flag}))


# ---- episodes


def test_episodes_in_pieces():
    episode = {"observations": X[:4], "actions": X[:3], "rewards": X[:3], "terminated": True}
    with refuses("episode 1 has 3 observations and 3 rewards. That many rewards need 4 observations: the state before"):
        va.read([episode, {**episode, "observations": X[:3]}])
    with refuses("episode 1 has 2 actions and 3 rewards: they must agree."):
        va.read([episode, {**episode, "actions": X[:2]}])
    with refuses("episode 1 has no rewards: it is empty. Leave it out."):
        va.read([episode, {**episode, "rewards": [], "observations": X[:1], "actions": []}])
    with refuses("episode 1: observations has rows of shape (2,) and the first episode of ()"):
        va.read([episode, {**episode, "observations": np.zeros((4, 2))}])
    with refuses("episode 1 has the parts ['observations', 'rewards', 'terminated'] and the first one has"):
        va.read([episode, {name: value for name, value in episode.items() if name != "actions"}])
    with refuses("episode 0 has 6 observations and 3 rewards. That many rewards need 4 observations, or 3 where"):
        va.read([{**episode, "observations": X}])
    with refuses("episode 0 has no rewards."):
        va.read([{"observations": X}])
    with pytest.raises(va.InputTypeError, match="episode 0 must be a tuple"):
        va.read([(X, X)])
    with pytest.raises(va.InputTypeError, match="episode 0 is a float, which has no observations and rewards"):
        va.read([1.0])
    with refuses("'dones' does not say whether the process ended"):
        va.read([{"observations": X[:4], "rewards": X[:3], "dones": [False, False, True]}])


def test_steps_as_dicts():
    steps = [{"obs": float(k), "reward": 1.0, "terminated": k in (2, 5), "truncated": False} for k in range(6)]
    log = va.read(steps)
    np.testing.assert_array_equal(log.states, X)
    np.testing.assert_array_equal(log.terminated, flags(2, 5))
    assert log.reading.source == "list of steps" and "episodes" not in log.reading.columns
    with refuses("step 5 has the parts ['obs'] and the first has"):
        va.read([*steps[:5], {"obs": 1.0}])


def test_episodes_may_have_one_flag_each():
    episodes = [{"obs": X[:3], "reward": X[:2], "terminated": 1}, {"obs": X[:3], "reward": X[:2], "terminated": 0}]
    log = va.read(episodes)
    np.testing.assert_array_equal(log.terminated, [False, True, False, False])
    np.testing.assert_array_equal(log.truncated, [False, False, False, True])
    np.testing.assert_array_equal(log.next_states, [1, 2, 1, 2])
    np.testing.assert_array_equal(log.episodes, [0, 0, 1, 1])
