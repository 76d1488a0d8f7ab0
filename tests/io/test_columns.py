"""Which column is taken for what, and what is said where that cannot be told."""

import re

import numpy as np
import pytest

import log_shapes as shapes
import valuate as va
from valuate.errors import InputError, InputTypeError
from valuate.io import Reading
from valuate.io.names import family, nearest, plain

N = 6
S = np.arange(2.0 * N).reshape(N, 2)
BASE = {"reward": np.arange(float(N)), "terminated": np.arange(N) == N - 1}


def refuses(message, kind=InputError):
    return pytest.raises(kind, match=re.escape(message))


def taken(columns=None, **arrays):
    """What is taken for what."""
    return va.read({**BASE, **arrays}, columns).reading.columns


# ---- names


@pytest.mark.parametrize("name", ["next_state", "nextState", "Next State", "next-state", "NextState", " NEXT_STATE"])
def test_names_are_compared_without_case_and_separators(name):
    assert plain(name) == "next_state"
    assert taken(State=S, **{name: S})["next_states"] == name


def test_families_are_in_order_of_their_numbers():
    names = ["obs_10", "obs_2", "obs_0", "obs_mean", "obs_prob"]
    assert family(names, "obs") == [("0", "obs_0"), ("2", "obs_2"), ("10", "obs_10")]
    assert family(["state_x", "state_y", "state_id", "stately"], "state") == [("x", "state_x"), ("y", "state_y")]
    assert family(["s0", "s1", "speed", "s_a"], "s") == [("0", "s0"), ("1", "s1")]
    assert nearest(["rewards"], ["rewrd", "state", "x"]) == ["rewrd"]


@pytest.mark.parametrize(
    ("states", "next_states"),
    [
        (("obs_0", "obs_1"), ("next_obs_0", "next_obs_1")),
        (("state_x", "state_y"), ("next_state_x", "next_state_y")),
        (("observation.0", "observation.1"), ("next_observation.0", "next_observation.1")),
        (("obs[0]", "obs[1]"), ("next_obs[0]", "next_obs[1]")),
        (("obs_0", "obs_1"), ("new_obs_0", "new_obs_1")),
        (("obs_0", "obs_1"), ("obs_next_0", "obs_next_1")),
        (("s0", "s1"), ("next_s0", "next_s1")),
        (("x0", "x1"), ("next_x0", "next_x1")),
        (("price", "stock"), ("next_price", "next_stock")),
        (("state_x", "state_y"), ("state_x_next", "state_y_next")),
    ],
)
def test_a_column_a_dimension(states, next_states):
    arrays = dict(zip(states + next_states, [*S.T, *(S + 1).T], strict=True))
    log = va.read({**BASE, **arrays})
    assert log.reading.columns["states"] == states and log.reading.columns["next_states"] == next_states
    np.testing.assert_array_equal(log.states, S)
    np.testing.assert_array_equal(log.next_states, S + 1)
    # Whatever order the columns are in.
    again = va.read({**dict(reversed(arrays.items())), **BASE})
    assert sorted(again.reading.columns["states"]) == sorted(states)
    pairs = dict(zip(again.reading.columns["states"], again.reading.columns["next_states"], strict=True))
    assert pairs == dict(zip(states, next_states, strict=True))


def test_actions_and_states_of_several_columns_are_kept_apart():
    arrays = {"state_x": S[:, 0], "state_y": S[:, 1], "action_0": S[:, 0] * 2, "action_1": S[:, 1] * 2}
    arrays |= {"next_state_x": S[:, 0], "next_state_y": S[:, 1], "next_action_0": S[:, 0], "next_action_1": S[:, 1]}
    log = va.read({**BASE, **arrays, "action_prob": np.full(N, 0.5)})
    assert log.reading.columns["states"] == ("state_x", "state_y")
    assert log.reading.columns["actions"] == ("action_0", "action_1")
    assert log.reading.columns["next_actions"] == ("next_action_0", "next_action_1")
    assert log.reading.columns["probabilities"] == "action_prob"
    np.testing.assert_array_equal(log.actions, S * 2)


def test_users_name_what_they_like():
    arrays = {
        "a1": S[:, 0],
        "b1": S[:, 1],
        "a2": S[:, 0] + 1,
        "b2": S[:, 1] + 1,
        "gain": S[:, 0],
        "fin": BASE["terminated"],
    }
    columns = {"states": ["a1", "b1"], "next_states": ("a2", "b2"), "rewards": "gain", "terminated": "fin"}
    log = va.read(arrays, columns)
    np.testing.assert_array_equal(log.next_states, S + 1)
    assert log.reading.columns == {**columns, "states": ("a1", "b1")}
    # Our names in the singular, and patterns, do as well.
    again = va.read(arrays, {"state": "?1", "next_obs": "?2", "reward": "gain", "is_terminal": "fin"})
    assert again.reading.columns == log.reading.columns
    # One name is a column of its own shape, a list of one is a matrix.
    assert va.read(arrays, columns | {"states": "a1", "next_states": "a2"}).states.shape == (N,)
    assert va.read(arrays, columns | {"states": ["a1"], "next_states": ["a2"]}).states.shape == (N, 1)


def test_next_columns_beside_the_users_own():
    arrays = {"x": S[:, 0], "y": S[:, 1], "next_x": S[:, 0] + 1, "next_y": S[:, 1] + 1, "w": S[:, 0]}
    assert taken({"states": ["x", "y"]}, **arrays)["next_states"] == ("next_x", "next_y")
    with refuses("'next_x' is there to follow 'x', and nothing is there to follow 'w', such as 'next_w'."):
        taken({"states": ["x", "w"]}, **arrays)
    log = va.read({**BASE, **arrays}, {"states": ["x", "w"], "next_states": None})
    assert "next_states" not in log.reading.columns
    assert taken({"states": "features"}, features=S, next_features=S)["next_states"] == "next_features"


def test_what_never_changes_is_its_own_next_state():
    arrays = {"bp": S[:, 0], "age": S[:, 1], "next_bp": S[:, 0] + 1}
    with refuses("where 'age' may stand again if it never changes"):
        taken({"states": ["bp", "age"]}, **arrays)
    log = va.read({**BASE, **arrays}, {"states": ["bp", "age"], "next_states": ["next_bp", "age"]})
    np.testing.assert_array_equal(log.next_states, np.stack([S[:, 0] + 1, S[:, 1]], axis=1))
    sexed = {**BASE, **arrays, "age": ["f", "m"] * 3}
    log = va.read(sexed, {"states": ["bp", "age"], "next_states": ["next_bp", "age"]})
    np.testing.assert_array_equal(log.next_states, np.stack([S[:, 0] + 1, [0, 1] * 3], axis=1))
    for states, next_states in ((["bp", "age"], ["age", "next_bp"]), (["bp", "age"], ["bp", "age"]), ("bp", "bp")):
        with refuses("for states and for next_states: a column is one of them."):
            taken({"states": states, "next_states": next_states}, **arrays)


def test_a_missing_dimension_is_found():
    arrays = {f"obs_{k}": S[:, 0] for k in range(4)} | {f"next_obs_{k}": S[:, 0] for k in range(3)}
    with refuses("nothing is there to follow 'obs_3', such as 'next_obs_3'. The nearest names are 'next_obs_"):
        taken(**arrays)
    arrays = {f"obs_{k}": S[:, 0] for k in range(4)} | {f"new_obs_{k}x": S[:, 0] for k in range(3)}
    with refuses("states have 4 columns, 'obs_0' to 'obs_3', and next_states have 3, 'new_obs_0x' to 'new_obs_2x'"):
        taken(**arrays)


def test_unknown_columns_are_told_with_the_nearest_and_all():
    with refuses(
        "columns names 'obz' for states, and there is no such column. The nearest name is 'obs'. The columns are: "
        "'obs', 'reward', 'terminated'."
    ):
        va.read({"obs": S, **BASE}, {"states": "obz"})
    with refuses(
        "No column is known to be the rewards. The nearest name is 'rewrd'. The columns are: 'obs', 'rewrd', "
        "'x', 'terminated'. "
        "Say which: columns={'rewards': 'rewrd'}."
    ):
        va.read({"obs": S, "rewrd": S[:, 0], "x": S[:, 0], "terminated": BASE["terminated"]})
    with refuses(
        "No column is known to be the states. The columns are: 'reward', 'terminated', 'spend', 'visits'. Say which: "
        "columns={'states': ['spend', 'visits']}."
    ):
        taken(spend=S[:, 0], visits=S[:, 1])
    with refuses("columns names 'gain' for rewards, and there is no such column. The nearest name is 'reward'."):
        taken({"rewards": "gain"}, obs=S)
    with refuses("columns names 'nothing_*' for states"):
        taken({"states": "nothing_*"}, obs=S)


@pytest.mark.parametrize(
    ("columns", "kind", "message"),
    [
        (["obs"], InputTypeError, "columns must be a dict from what is meant to the names of columns"),
        ({"sttes": "obs"}, InputError, "columns has the key 'sttes', which is none of states, next_states"),
        ({"sttes": "obs"}, InputError, "Did you mean 'states'?"),
        ({"states": "obs", "state": "obs"}, InputError, "columns says twice which are the states"),
        ({"states": 3}, InputTypeError, "columns must give a name, or a list of names, for states, not 3."),
        ({"states": []}, InputTypeError, "columns must give a name, or a list of names, for states, not []."),
        ({"rewards": ["reward", "obs"]}, InputError, "columns names 2 columns for rewards, which takes one."),
        ({"states": "obs", "actions": "obs"}, InputError, "columns names 'obs' for states and for actions"),
    ],
)
def test_bad_columns(columns, kind, message):
    with refuses(message, kind):
        va.read({"obs": S, **BASE}, columns)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"done": "maybe"}, "done must be 'terminated' or 'ended', not 'maybe'."),
        ({"last_step": "x"}, "last_step must be 'observation' or 'transition', not 'x'."),
        ({"format": "xls"}, "format must be one of 'parquet', 'csv', 'npz', 'hdf5', 'arrow', 'd4rl'"),
        ({"format": "csv"}, "format='csv' is for files, and the source is a dict."),
        ({"done": "ended"}, "done='ended' says what the column done means, and there is none."),
    ],
)
def test_bad_options(options, message):
    with refuses(message):
        va.read({"obs": S, **BASE}, **options)


def test_what_is_not_a_log():
    with refuses("A source of type int cannot be read as a log. Give a path, a data frame, a dict of", InputTypeError):
        va.read(3)
    with refuses("The source is Transitions already", InputTypeError):
        va.read(shapes.cart_pole())
    with refuses("dict has no columns."):
        va.read({})
    with refuses("The list is empty: at least one episode is needed."):
        va.read([])


@pytest.mark.parametrize(
    "name",
    ["patient", "Patient_ID", "subject_id", "userId", "customer", "session_id", "person_id", "case_id", "encounter"],
)
def test_whom_rows_are_about_is_an_episode(name):
    assert taken(obs=S, **{name: [4, 4, 4, 7, 7, 7]})["episodes"] == name
    both = va.read({**BASE, "obs": S, name: [4, 4, 4, 7, 7, 7], "episode": [1, 1, 2, 2, 3, 3]})
    assert both.reading.columns["episodes"] == "episode" and both.reading.unused == (name,)
    # A column that is named for something else is no id.
    assert "episodes" not in taken({"actions": name}, obs=S, **{name: [4, 4, 4, 7, 7, 7]})


def test_ids_with_gaps():
    with refuses(
        "episodes (column 'user') has 2 rows without a value, the first at row 4. Drop those rows or fill the gaps "
        "first. Or read without the column: columns={'episodes': None}."
    ):
        taken(obs=S, user=np.array(["u", "u", "v", "v", None, None], object))


def test_several_subjects_are_asked_about():
    ids = {"patient_id": [4, 4, 4, 7, 7, 7], "stay_id": [1, 1, 2, 3, 4, 4]}
    with refuses(
        "'patient_id' and 'stay_id' may each say where episodes are. Say which: columns={'episodes': 'patient_id'}; or "
        "{'episodes': None} where none of them does."
    ):
        taken(obs=S, **ids)
    assert taken({"episodes": "stay_id"}, obs=S, **ids)["episodes"] == "stay_id"
    assert "episodes" not in taken({"episodes": None}, obs=S, **ids)
    # Episodes that come one by one need no column.
    one = {"observations": S, "rewards": BASE["reward"], "terminated": True, "user": np.full(N, 3)}
    assert va.read([one, one]).episodes.tolist() == [0] * N + [1] * N


# ---- kinds of values


@pytest.mark.parametrize("source", ["dict", "pandas", "parquet"])
def test_types_are_kept(source, tmp_path):
    import pandas as pd

    def read(**arrays):
        if source == "dict":
            return va.read({**BASE, **arrays})
        if source == "pandas":
            return va.read(pd.DataFrame({**BASE, **arrays}))
        return va.read(shapes.write_parquet(tmp_path / "log.parquet", {**BASE, **arrays}))

    narrow, wide, whole = S[:, 0].astype(np.float32), S[:, 1], S[:, 1].astype(np.int16)
    assert read(obs_0=narrow, obs_1=narrow).states.dtype == np.float32
    assert read(obs_0=narrow, obs_1=wide).states.dtype == np.float64
    assert read(obs_0=whole, obs_1=whole).states.dtype == np.int16
    assert read(obs_0=whole, obs_1=narrow).states.dtype == np.float32
    assert read(obs_0=whole > 3, obs_1=whole).states.dtype == np.int16
    after = np.append(narrow[1:], np.float32(7))
    log = read(obs_0=narrow, obs_1=narrow, next_obs_0=after, next_obs_1=after)
    table = log.indexed_states()[0]
    assert table.dtype == np.float32 and table.flags.c_contiguous and table.shape == (N + 1, 2)


def test_one_array_is_not_copied():
    log = va.read(
        {"observations": S, "next_observations": S + 1, "rewards": BASE["reward"], "terminals": BASE["terminated"]}
    )
    assert np.shares_memory(log.states, S)


def test_the_next_row_of_one_trajectory_is_a_view_of_it():
    log = va.read({"obs": S, "reward": BASE["reward"], "terminated": np.zeros(N), "truncated": BASE["terminated"]})
    assert np.shares_memory(log.states, S) and np.shares_memory(log.next_states, S) and len(log) == N - 1
    np.testing.assert_array_equal(log.next_states, S[1:])


def test_next_states_are_stored_only_where_they_are_new():
    log = va.read(shapes.flat())
    table, rows, next_rows = log.indexed_states()
    assert len(table) == len(log) + 30 and table.flags.c_contiguous
    np.testing.assert_array_equal(table[next_rows], shapes.cart_pole().next_states)
    # Rows without order share nothing, and both arrays are kept.
    rng = np.random.default_rng(0)
    far = {f"obs_{k}": rng.normal(size=500) for k in range(2)} | {
        f"next_obs_{k}": rng.normal(size=500) for k in range(2)
    }
    log = va.read({**far, "reward": np.zeros(500), "terminated": np.zeros(500, bool)})
    assert log.indexed_states() is None and log.episodes is None
    np.testing.assert_array_equal(log.next_states[:, 1], far["next_obs_1"])


@pytest.mark.parametrize("source", ["dict", "objects", "pandas", "categories", "polars", "csv", "dictionary"])
def test_text_becomes_codes(source, tmp_path):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    words = ["b", "a", "c", "b", "a", "b"]
    arrays = {**BASE, "state": np.array(words), "next_state": np.array(["c", "b", "d", "a", "a", "b"]), "action": words}
    if source == "objects":
        arrays["state"], arrays["next_state"] = arrays["state"].astype(object), arrays["next_state"].astype(object)
    frame = {
        "dict": lambda: arrays,
        "objects": lambda: arrays,
        "pandas": lambda: pd.DataFrame(arrays),
        "categories": lambda: pd.DataFrame(arrays).astype({"state": "category", "next_state": "category"}),
        "polars": lambda: pl.DataFrame(arrays),
        "dictionary": lambda: pa.table(
            {name: pa.array(v).dictionary_encode() if name == "action" else pa.array(v) for name, v in arrays.items()}
        ),
        "csv": lambda: tmp_path / "log.csv",
    }
    pd.DataFrame(arrays).to_csv(tmp_path / "log.csv", index=False)
    log = va.read(frame[source]())
    assert log.reading.labels == {"states": ("a", "b", "c", "d"), "actions": ("a", "b", "c")}
    np.testing.assert_array_equal(log.states, [1, 0, 2, 1, 0, 1])
    np.testing.assert_array_equal(log.next_states, [2, 1, 3, 0, 0, 1])
    np.testing.assert_array_equal(log.actions, [1, 0, 2, 1, 0, 1])
    assert log.states.dtype == np.int32
    assert any("'state' holds text, which became numbers: a = 0, b = 1, c = 2, d = 3." in n for n in log.reading.notes)


def test_text_beside_numbers():
    arrays = {"state_age": S[:, 0], "state_sex": ["f", "m", "m", "f", "f", "m"]}
    arrays |= {f"next_{name}": values for name, values in arrays.items()}
    log = va.read({**BASE, **arrays})
    np.testing.assert_array_equal(log.states, np.stack([S[:, 0], [0, 1, 1, 0, 0, 1]], axis=1))
    assert log.reading.labels["state_sex"] == ("f", "m")
    arrays["next_state_sex"] = np.arange(N)
    with refuses("column 'state_sex' holds text and column 'next_state_sex' numbers"):
        va.read({**BASE, **arrays})


def test_ids_of_episodes_that_are_text():
    log = va.read({"obs": S, **BASE, "truncated": np.zeros(N), "episode_id": ["z9", "z9", "a1", "a1", "b", "b"]})
    np.testing.assert_array_equal(log.episodes, [0, 1, 1, 2, 2][: len(log)] if len(log) == 5 else [0, 1, 2, 2])
    assert log.reading.labels["episodes"] == ("z9", "a1", "b")
    assert log.reading.dropped == {"the last row of an episode that did not terminate has no next state in the log": 2}


@pytest.mark.parametrize("source", ["dict", "pandas", "parquet", "polars"])
def test_vectors_in_a_column(source, tmp_path):
    import pandas as pd
    import polars as pl

    rows = {**BASE, "observations": [list(row) for row in S], "next_observations": [list(row + 1) for row in S]}
    if source == "parquet":
        log = va.read(shapes.write_parquet(tmp_path / "log.parquet", rows))
    else:
        log = va.read({"dict": dict, "pandas": pd.DataFrame, "polars": pl.DataFrame}[source](rows))
    np.testing.assert_array_equal(log.states, S)
    np.testing.assert_array_equal(log.next_states, S + 1)
    short = [list(row) for row in S[:4]] + [[1.0], [1.0, 2.0]]
    with refuses("column 'observations' has "):
        broken = {**rows, "observations": short}
        va.read(broken if source == "dict" else pd.DataFrame(broken))


@pytest.mark.parametrize("form", ["pandas", "numpy", "tuples"])
def test_lists_as_text_are_lists(form, tmp_path):
    """As a data frame writes them to CSV, with commas, or without where they were arrays."""
    import pandas as pd

    rows = {"pandas": lambda row: row.tolist(), "numpy": lambda row: row, "tuples": lambda row: f"[{row[0]},{row[1]}]"}
    text = {"obs": [rows[form](row) for row in S / 4], "next_obs": [rows[form](row) for row in S / 4 + 1]}
    pd.DataFrame({**BASE, **text, "dose": S[:, 0], "action": [[k, 1] for k in range(N)]}).to_csv(
        tmp_path / "log.csv", index=False
    )
    log = va.read(tmp_path / "log.csv")
    np.testing.assert_array_equal(log.states, S / 4)
    np.testing.assert_array_equal(log.next_states, S / 4 + 1)
    np.testing.assert_array_equal(log.actions, [[k, 1] for k in range(N)])
    assert log.actions.dtype == np.int64 and log.reading.labels == {}
    assert "'obs' holds lists as text, which became numbers." in log.reading.notes
    found = va.io.read_states(tmp_path / "log.csv", labels={})
    np.testing.assert_array_equal(found.states, S / 4)
    beside = va.read(tmp_path / "log.csv", {"states": ["obs", "dose"], "next_states": None})
    np.testing.assert_array_equal(beside.states, np.column_stack([S / 4, S[:, 0]]))


def test_lists_as_text_that_are_no_rows_of_numbers():
    good = ["[1, 2]"] * (N - 1)
    said = "column 'obs' holds lists as text, and "
    with refuses(f"{said}row 5 has '[1, x]', which is not a list of numbers. All rows need a list of as many numbers"):
        taken(obs=[*good, "[1, x]"])
    with refuses(f"{said}row 5 has '[1 2 ... 3 4]', which is not a list of numbers."):
        taken(obs=[*good, "[1 2 ... 3 4]"])
    with refuses(f"{said}row 0 has '[ ]', which is not a list of numbers."):
        taken(obs=["[ ]"] * N)
    with refuses(f"{said}row 0 has 2 numbers and row 5 3."):
        taken(obs=[*good, "[1, 2, 3]"])
    assert va.read({**BASE, "obs": ["[[1, 2], [3, 4]]"] * N}).states.shape == (N, 2, 2)
    # Text that begins otherwise, as that of intervals, is what it was.
    assert va.read({**BASE, "obs": ["(0, 1]", "[2, 3)"] * 3}).reading.labels == {"states": ("(0, 1]", "[2, 3)")}


def test_pictures():
    frames = np.arange(N * 2 * 3, dtype=np.uint8).reshape(N, 2, 3)
    log = va.read({"obs": frames, "next_obs": frames, **BASE})
    assert log.states.shape == (N, 2, 3) and log.states.dtype == np.uint8


def test_observations_of_several_parts():
    nested = {"observation": S, "goal": S[:, :1] * 10}
    log = va.read({"observations": nested, **BASE})
    assert log.reading.columns["states"] == ("observations/observation", "observations/goal")
    np.testing.assert_array_equal(log.states, np.hstack([S, S[:, :1] * 10]))
    log = va.read({"observations": nested, **BASE}, {"states": "observations/observation"})
    np.testing.assert_array_equal(log.states, S)


def test_struct_columns_of_parquet(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    part = pa.StructArray.from_arrays([pa.array(S[:, 0]), pa.array(S[:, 1])], ["x", "y"])
    pq.write_table(
        pa.table({"obs": part, "reward": BASE["reward"], "terminated": BASE["terminated"]}), tmp_path / "l.pq"
    )
    log = va.read(tmp_path / "l.pq")
    assert log.reading.columns["states"] == ("obs.x", "obs.y")
    np.testing.assert_array_equal(log.states, S)


def test_flags_as_numbers_and_words(tmp_path):
    for yes in (1, 1.0, np.uint8(1), "true", "Yes", "T"):
        no = {"true": "false", "Yes": "No", "T": "F"}.get(yes, 0)
        log = va.read(
            {"obs": S, "reward": BASE["reward"], "terminated": [yes if end else no for end in BASE["terminated"]]}
        )
        np.testing.assert_array_equal(log.terminated, BASE["terminated"])
    with refuses("terminated (column 'terminated') must be True or False (or 1 and 0) in each row; row 2 has 2."):
        va.read({"obs": S, "reward": BASE["reward"], "terminated": [0, 0, 2, 0, 0, 1]})
    with refuses("terminated (column 'terminated') must be true or false in each row, and one is 'maybe'."):
        va.read({"obs": S, "reward": BASE["reward"], "terminated": ["no", "maybe", "no", "no", "no", "no"]})


# ---- probabilities, ratios, weights


def test_probabilities():
    p = np.linspace(0.1, 1.0, N)
    for name, values in [("pscore", p), ("action_prob", p), ("action_logp", np.log(p)), ("propensity", p[:, None])]:
        log = va.read({"obs": S, **BASE, name: values})
        np.testing.assert_allclose(log.probabilities, p, rtol=1e-15)
    both = va.read({"obs": S, **BASE, "action_prob": p, "action_logp": np.log(p) - 1})
    np.testing.assert_array_equal(both.probabilities, p)
    assert "log_probabilities" not in both.reading.columns and both.reading.unused == ("action_logp",)
    near = va.read({"obs": S, **BASE, "action_logp": np.full(N, 1e-7, np.float32)})
    np.testing.assert_array_equal(near.probabilities, np.ones(N))


def test_densities_are_no_probabilities():
    log = va.read({"obs": S, **BASE, "action_logp": np.full(N, 1.0)})
    assert log.probabilities is None and "log_probabilities" not in log.reading.columns
    assert (
        "'action_logp' goes up to 2.718, so these are densities and not probabilities: left out." in log.reading.notes
    )
    with refuses("'p' goes up to 3, so these are densities and not probabilities. Leave it out"):
        va.read({"obs": S, **BASE, "p": np.full(N, 3.0)}, {"probabilities": "p"})
    wide = va.read({"obs": S, **BASE, "pscore": np.full((N, 2), 0.5)})
    assert wide.probabilities is None and any(
        "'pscore' has 2 numbers a row and was left out" in n for n in wide.reading.notes
    )


def test_impossible_probabilities():
    with refuses(
        "'pscore' says that an action that was taken had the probability 0, the first at row 2 (1 rows are such)"
    ):
        va.read({"obs": S, **BASE, "pscore": [1, 1, 0, 1, 1, 1]})
    assert va.read({"obs": S, **BASE, "pscore": np.zeros(N)}, {"probabilities": None}).probabilities is None


def test_ratios_and_weights():
    log = va.read({"obs": S, **BASE, "rho": np.arange(N), "sample_weight": np.arange(N) + 1, "weight": np.arange(N)})
    np.testing.assert_array_equal(log.ratios, np.arange(N))
    np.testing.assert_array_equal(log.weights, np.arange(N) + 1)
    assert log.reading.unused == ("weight",)


# ---- the report


def test_reading_as_text_and_dict():
    log = va.read(shapes.scope_rl())
    text = str(log.reading)
    assert text.splitlines()[0] == "dict (arrays, SCOPE-RL): 541 rows"
    assert "  truncated      from terminal" in text and "Not used: state_keys, info/clicks" in text
    found = log.reading.as_dict()
    assert found["columns"]["probabilities"] == "pscore" and found["rows"] == 541
    assert found["dropped"] == log.reading.dropped and found["unused"] == ["state_keys", "info/clicks"]
    assert log[:10].reading is log.reading
    assert isinstance(log.reading, Reading)
    spare = va.read({"obs": S, **BASE, **{f"c{k}": S[:, 0] for k in range(45)}}).reading
    assert str(spare).endswith(f"Not used: {', '.join(f'c{k}' for k in range(40))} and 5 more")
    assert spare.as_dict()["resembling"] == {}
    many = va.read({**BASE, **{f"obs_{k}": S[:, 0] for k in range(20)}}).reading
    assert "from obs_0, obs_1, ..., obs_19 (20 columns)" in str(many)
    assert many.as_dict()["columns"]["states"] == [f"obs_{k}" for k in range(20)]
