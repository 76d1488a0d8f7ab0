"""Texts numbered by the labels of another log; states alone, for a model that was fitted to another log."""

import re

import numpy as np
import pytest

import log_shapes as shapes
import valuate as va
from valuate.errors import InputError, InputTypeError
from valuate.io import read_states

N = 4
BASE = {"reward": np.arange(float(N)), "terminated": np.arange(N) == N - 1}
AGE = np.arange(30.0, 30 + N)


def refuses(message, kind=InputError):
    return pytest.raises(kind, match=re.escape(message))


def sources(tmp_path, table):
    """The same columns as a dict, a data frame, a Parquet file and a CSV file."""
    import pandas as pd

    frame = pd.DataFrame(table)
    frame.to_csv(tmp_path / "log.csv", index=False)
    return [table, frame, shapes.write_parquet(tmp_path / "log.parquet", table), tmp_path / "log.csv"]


# ---- labels


def test_texts_have_the_numbers_of_the_labels_given(tmp_path):
    table = {**BASE, "state": ["c", "b", "c", "b"], "next_state": ["b", "c", "b", "b"], "action": ["y", "x", "y", "y"]}
    labels = {"states": ["a", "b", "c", "d"], "actions": ("z", "y", "x"), "episodes": ["p1", "p2"]}
    for source in sources(tmp_path, table):
        log = va.read(source, labels=labels)
        np.testing.assert_array_equal(log.states, [2, 1, 2, 1])
        np.testing.assert_array_equal(log.next_states, [1, 2, 1, 1])
        np.testing.assert_array_equal(log.actions, [1, 2, 1, 1])
        assert log.reading.labels == {"states": ("a", "b", "c", "d"), "actions": ("z", "y", "x")}
    # What reading.labels says gives the numbers that it stands for.
    one = va.read({**BASE, "state": ["a", "b", "c", "d"]})
    assert va.read({**BASE, "state": ["b", "b", "d", "b"]}, labels=one.reading.labels).states.tolist() == [1, 1, 3, 1]


def test_labels_of_one_of_several_columns(tmp_path):
    table = {**BASE, "obs_age": AGE, "obs_sex": ["m", "m", "m", "m"]}
    table |= {"next_obs_age": AGE + 1, "next_obs_sex": ["m", "f", "m", "m"]}
    for source in sources(tmp_path, table):
        log = va.read(source, labels={"obs_sex": ["f", "m"]})
        np.testing.assert_array_equal(log.states, np.stack([AGE, [1, 1, 1, 1]], axis=1))
        np.testing.assert_array_equal(log.next_states, np.stack([AGE + 1, [1, 0, 1, 1]], axis=1))
        assert log.reading.labels == {"obs_sex": ("f", "m")}


def test_texts_that_are_not_among_the_labels_are_named():
    table = {**BASE, "state": ["c", "b", "e", "x"]}
    with refuses("column 'state' holds 'e', 'x', which are not among the labels given. These are 'b', 'c'."):
        va.read(table, labels={"states": ["b", "c"]})
    after = {**BASE, "state": ["b", "b", "b", "b"], "next_state": ["b", "b", "b", "new"]}
    with refuses("column 'next_state' holds 'new', which is not among the labels given. These are 'b', 'c'."):
        va.read(after, labels={"states": ["b", "c"]})
    # A text that is missing is no text that nobody knows.
    gap = {**BASE, "state": ["b", "b", "b", "b"], "next_state": np.array(["b", "b", "b", None], object)}
    assert va.read(gap, labels={"states": ["a", "b"]}).next_states.tolist() == [1, 1, 1, 1]


def test_text_in_the_states_without_labels_is_refused():
    two = {**BASE, "obs_age": AGE, "obs_sex": ["m", "m", "f", "m"]}
    with refuses("column 'obs_sex' holds text, such as 'f', and the labels given have none for it: that log held num"):
        va.read(two, labels={})
    with refuses("column 'obs_sex' holds text, such as 'f', and the labels given have none for it: they are for 'obs_"):
        va.read(two, labels={"obs_age": ["30", "31", "32", "33"]})
    acted = {
        **BASE,
        "obs": AGE,
        "action": ["x", "y", "x", "x"],
    }  # a value of states does not ask what actions are called
    assert va.read(acted, labels={}).reading.labels == {"actions": ("x", "y")}


def test_numbers_where_labels_are_texts():
    """A file in which every text is a number holds numbers, and they are the texts that they would be among others."""
    labels = {"states": ["1", "2", "other"]}
    assert va.read({**BASE, "state": [2, 1, 2, 2]}, labels=labels).states.tolist() == [1, 0, 1, 1]
    assert va.read({**BASE, "state": [2.0, 1.0, 2.0, 2.0]}, labels=labels).states.tolist() == [1, 0, 1, 1]
    flags = [True, False, True, True]
    assert va.read({**BASE, "state": flags}, labels={"states": ["False", "True", "unknown"]}).states.tolist() == [
        1,
        0,
        1,
        1,
    ]
    with refuses("column 'state' holds numbers, and the labels given are texts for it: '1', '2', 'other'."):
        va.read({**BASE, "state": [3, 1, 2, 2]}, labels=labels)


@pytest.mark.parametrize(
    ("labels", "kind", "message"),
    [
        (["a"], InputTypeError, "labels must be a dict from roles or columns to lists of texts"),
        ({"states": "ab"}, InputTypeError, "labels must have a list of texts for 'states', not 'ab'."),
        ({"states": [1, 2]}, InputTypeError, "labels must have a list of texts for 'states', not [1, 2]."),
        ({"states": ["a", "a"]}, InputError, "labels have a text twice for 'states'"),
    ],
)
def test_bad_labels(labels, kind, message):
    with refuses(message, kind):
        va.read({**BASE, "state": ["a", "b", "a", "b"]}, labels=labels)


@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_files_of_ours_are_numbered_anew(tmp_path, ending):
    table = {**BASE, "state": ["c", "b", "c", "b"], "next_state": ["b", "c", "b", "b"], "action": ["y", "x", "y", "y"]}
    path = va.write(va.read(table), tmp_path / f"log.{ending}")
    log = va.read(path, labels={"states": ["a", "b", "c"], "actions": ["z", "y", "x"]})
    assert log.states.tolist() == [2, 1, 2, 1] and log.next_states.tolist() == [1, 2, 1, 1]
    assert log.actions.tolist() == [1, 2, 1, 1] and log.terminated.tolist() == BASE["terminated"].tolist()
    assert log.reading.labels == {"states": ("a", "b", "c"), "actions": ("z", "y", "x")}
    assert read_states(path, labels={"states": ["a", "b", "c"]}).states.tolist() == [2, 1, 2, 1]
    with refuses("states holds 'c', which is not among the labels given."):
        va.read(path, labels={"states": ["a", "b"]})
    several = va.write(va.read({**BASE, "obs_a": AGE, "obs_b": ["u", "v", "u", "u"]}), tmp_path / f"two.{ending}")
    assert va.read(several, labels={"obs_b": ["u", "v"]}).states[:, 1].tolist() == [0, 1, 0, 0]
    with refuses("has other numbers for the texts of 'obs_b' than the labels given."):
        va.read(several, labels={"obs_b": ["v", "u"]})
    numbers = va.write(va.read({**BASE, "state": AGE}), tmp_path / f"numbers.{ending}")
    with refuses("holds numbers for states, and the labels given are texts for them."):
        va.read(numbers, labels={"states": ["v", "u"]})


def test_next_texts_of_a_table_of_texts_are_numbered_whole():
    """Both columns of an array of texts are numbered by the labels of states and next states together."""
    log = va.read({**BASE, "obs": np.array([["b", "c"]] * N), "next_obs": np.array([["a", "b"]] * N)})
    np.testing.assert_array_equal(log.states, [[1, 2]] * N)
    np.testing.assert_array_equal(log.next_states, [[0, 1]] * N)


# ---- states alone


def test_states_of_every_row_in_its_order(tmp_path):
    table = {"episode": [1, 0, 1, 0], "step": [1, 1, 0, 0], "obs_age": AGE, "obs_sex": ["m", "f", "m", "m"]}
    table["action"] = ["x", "y", "y", "y"]
    for source in sources(tmp_path, table):
        found = read_states(source, labels={"obs_sex": ["f", "m"], "actions": ["y", "x"]})
        np.testing.assert_array_equal(found.states, np.stack([AGE, [1, 0, 1, 1]], axis=1))
        assert found.actions.tolist() == [1, 0, 0, 0]
        assert found.reading.columns == {"states": ("obs_age", "obs_sex"), "actions": "action"}
        assert found.reading.rows == N and found.reading.unused == ("episode", "step")
        assert found.reading.labels == {"obs_sex": ("f", "m"), "actions": ("y", "x")}
    del table["action"]
    assert read_states(table).actions is None


def test_columns_that_only_the_fit_needed():
    """What a fit was told of its log may be told again: the rest of it is not needed here."""
    columns = {"states": ["age"], "rewards": "gain", "terminated": "died", "next_states": ["age_after"]}
    found = read_states({"age": AGE, "died": np.zeros(N)}, columns)
    np.testing.assert_array_equal(found.states, AGE[:, None])
    with refuses("columns names 'bp' for states, and there is no such column."):
        read_states({"age": AGE}, {"states": ["bp"]})
    with refuses("No column is known to be the states."):
        read_states({"age": AGE})


def test_states_of_a_whole_log():
    """Nothing that reading a log would leave out, sort or ask about is."""
    log = {"obs": AGE, "done": [0, 1, 0, 1], "action": [1, 2, 3, 4], "discount": [0.9, 0.8, 0.7, 0.0]}
    found = read_states({**log, "reward": np.zeros(N)})
    assert found.states.tolist() == AGE.tolist() and found.actions.tolist() == [1, 2, 3, 4]
    held = np.full((N, 1), 2)
    assert read_states({**log, "action": held}).actions.tolist() == [2] * N


def test_states_of_files_of_ours_and_of_episodes(tmp_path):
    log = shapes.cart_pole()
    for ending in ("parquet", "npz"):
        found = read_states(va.write(log, tmp_path / f"log.{ending}"))
        np.testing.assert_array_equal(found.states, log.states)
        np.testing.assert_array_equal(found.actions, log.actions)
    episodes = [(np.arange(3.0), [0, 1], [1.0, 1.0], True), (np.arange(5.0, 7.0), [1], [1.0], True)]
    found = read_states(episodes)
    assert found.states.tolist() == [0, 1, 5] and found.actions.tolist() == [0, 1, 1]
    rows = [{"obs": 1.0, "action": "b"}, {"obs": 2.0, "action": "a"}]
    found = read_states(rows, labels={"actions": ["b", "a"]})
    assert found.states.tolist() == [1, 2] and found.actions.tolist() == [0, 1]
    assert found.reading.source == "list of rows"
    with refuses("row 1 has the parts ['obs'] and the first has ['action', 'obs']."):
        read_states([rows[0], {"obs": 2.0}])


def test_states_that_are_missing():
    holes = np.array([1.0, np.nan, 3.0, np.nan])
    with refuses(
        "states (column 'obs_1') have 2 rows with a value that is missing, NaN or infinite, the first at row 1."
    ):
        read_states({"obs_0": AGE, "obs_1": holes})
    with refuses("actions (column 'action') have 2 rows with a value that is missing"):
        read_states({"obs": AGE, "action": holes})
    assert read_states({"obs": AGE, "action": holes}, {"actions": None}).actions is None
    with refuses("states (column 'obs') have 4 rows and actions (column 'action') 3: they must agree."):
        read_states({"obs": AGE, "action": [1, 2, 3]})
    with refuses("dict has columns and no rows"):
        read_states({"obs": np.zeros((0, 2))})
