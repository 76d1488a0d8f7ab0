"""The same 30 episodes in every shape: the same theta where next observations are held."""

import json
import warnings

import numpy as np
import pytest

import log_shapes as shapes
import valuate as va

HOLD_NEXT = {
    "d4rl": shapes.d4rl,
    "rllib": shapes.rllib,
    "mushroom": shapes.mushroom,
    "mushroom steps": shapes.mushroom_steps,
    "flat": shapes.flat,
    "gymnasium tuples": shapes.gymnasium_tuples,
    "gymnasium dicts": shapes.gymnasium_dicts,
    "minari episodes": shapes.minari_episodes,
    "rlds episodes": shapes.rlds_episodes,
    "rlds without discount": lambda: shapes.rlds_episodes(discount=False),
    "rlds step lists": shapes.rlds_step_lists,
    "rlds flat": shapes.rlds_flat,
    "one more observation": shapes.one_more_observation,
}
NEXT_ROW = {
    "d3rlpy": shapes.d3rlpy,
    "scope-rl": shapes.scope_rl,
    "rlds transitions": shapes.rlds_transitions,
    "flat without next": shapes.flat_without_next,
}
NO_NEXT = "the last row of an episode that did not terminate has no next state in the log"


def same_rows(log, expected):
    """Every column of a log, bit for bit; ids of episodes up to their names."""
    np.testing.assert_array_equal(log.states, expected.states)
    np.testing.assert_array_equal(np.ravel(log.actions), expected.actions)
    np.testing.assert_array_equal(log.rewards, expected.rewards)
    np.testing.assert_array_equal(log.terminated, expected.terminated)
    np.testing.assert_array_equal(log.next_states[~log.terminated], expected.next_states[~log.terminated])
    codes = [np.unique(np.asarray(one.episodes), return_inverse=True)[1] for one in (log, expected)]
    np.testing.assert_array_equal(codes[0], codes[1])


def check_held(log):
    expected = shapes.cart_pole()
    same_rows(log, expected)
    np.testing.assert_array_equal(log.next_states, expected.next_states)
    np.testing.assert_array_equal(log.truncated, expected.truncated)
    np.testing.assert_allclose(shapes.theta(log), shapes.theta(expected), rtol=1e-12, atol=1e-12)
    assert log.reading.dropped == {} and log.reading.rows == len(expected)


def check_next_row(log):
    whole = shapes.cart_pole()
    expected = whole[~whole.truncated]
    same_rows(log, expected)
    np.testing.assert_allclose(shapes.theta(log), shapes.theta(expected), rtol=1e-12, atol=1e-12)
    count = int(whole.truncated.sum())
    assert count == 9 and log.reading.dropped == {NO_NEXT: count} and log.reading.n_dropped == count
    assert f"Dropped {count} rows: {NO_NEXT}." in str(log.reading)
    # What is now the last row of such an episode is where the recording ends.
    lasts = np.append(np.asarray(log.episodes)[1:] != np.asarray(log.episodes)[:-1], True)
    np.testing.assert_array_equal(log.truncated, lasts & ~log.terminated)


def test_the_log_has_ends_of_both_kinds():
    log = shapes.cart_pole()
    assert len(np.unique(log.episodes)) == 30 and log.terminated.sum() == 21 and log.truncated.sum() == 9


@pytest.mark.parametrize("shape", HOLD_NEXT)
def test_objects_with_next_observations(shape):
    check_held(va.read(HOLD_NEXT[shape]()))


@pytest.mark.parametrize("shape", NEXT_ROW)
def test_objects_whose_next_state_is_the_next_row(shape):
    check_next_row(va.read(NEXT_ROW[shape]()))


@pytest.mark.parametrize("shape", ["d4rl", "rllib", "flat"])
@pytest.mark.parametrize("format", ["parquet", "npz", "hdf5", "arrow"])
def test_files_with_next_observations(shape, format, tmp_path):
    check_held(va.read(written(HOLD_NEXT[shape](), format, tmp_path)))


@pytest.mark.parametrize("shape", NEXT_ROW)
@pytest.mark.parametrize("format", ["parquet", "npz", "hdf5"])
def test_files_whose_next_state_is_the_next_row(shape, format, tmp_path):
    check_next_row(va.read(written(NEXT_ROW[shape](), format, tmp_path)))


def written(arrays, format, folder):
    """Arrays in a file of that format, single values left out."""
    arrays = {name: value for name, value in arrays.items() if isinstance(value, np.ndarray)}
    path = folder / f"log.{format}"
    if format == "npz":
        np.savez(path, **arrays)
        return path
    if format == "hdf5":
        return shapes.write_hdf5(path, arrays)
    if format == "parquet":
        return shapes.write_parquet(path, arrays, row_group_size=100)
    import pyarrow as pa

    table = pa.table({name: value if value.ndim == 1 else list(value) for name, value in arrays.items()})
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=100)
    return path


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv"])
def test_csv(ending, tmp_path):
    import pandas as pd

    path = tmp_path / f"log{ending}"
    for shape, check in ((shapes.flat, check_held), (shapes.flat_without_next, check_next_row)):
        pd.DataFrame(shape()).to_csv(path, index=False, sep="\t" if ending == ".tsv" else ",")
        log = va.read(path)
        check(log)
        assert log.reading.format == "csv" and log.reading.columns["states"] == ("obs_0", "obs_1", "obs_2", "obs_3")


def test_data_frames():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    flat = shapes.flat()
    frames = [pd.DataFrame(flat), pl.DataFrame(flat), pl.LazyFrame(flat), pa.table(flat), pa.record_batch(flat)]
    for frame, format in zip(frames, ["pandas", "polars", "polars", "arrow", "arrow"], strict=True):
        log = va.read(frame)
        check_held(log)
        assert log.reading.format == format


def test_structured_arrays_and_open_files(tmp_path):
    import h5py

    flat = shapes.flat()
    table = np.zeros(len(flat["reward"]), [(name, values.dtype) for name, values in flat.items()])
    for name, values in flat.items():
        table[name] = values
    check_held(va.read(table))
    np.savez(tmp_path / "log.npz", **{name: value for name, value in shapes.rllib().items()})
    with np.load(tmp_path / "log.npz") as file:
        check_held(va.read(file))
    with h5py.File(shapes.write_hdf5(tmp_path / "log.h5", shapes.d4rl()), "r") as file:
        check_held(va.read(file))


def test_minari_on_disk_as_hdf5(tmp_path, monkeypatch):
    folder = shapes.write_minari_hdf5(tmp_path / "cart-pole" / "test-v0")
    for path in (folder, folder / "data", folder / "data" / "main_data.hdf5"):
        log = va.read(path)
        check_held(log)
        assert log.reading.layout == "Minari"
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    check_held(va.read("cart-pole/test-v0", format="minari"))


@pytest.mark.parametrize("format", ["parquet", "arrow"])
def test_minari_on_disk_pads_all_but_observations(format, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    data = tmp_path / "data"
    for episode in shapes.minari_episodes():
        (data / str(episode.id)).mkdir(parents=True)
        padded = {
            "observations": pa.FixedSizeListArray.from_arrays(pa.array(episode.observations.ravel()), 4),
            "actions": np.append(episode.actions, 0),
            "rewards": np.append(episode.rewards, 0.0),
            "terminations": np.append(episode.terminations, False),
            "truncations": np.append(episode.truncations, False),
        }
        table = pa.table({"episode_id": np.full(table_rows(padded), episode.id), **padded})
        if format == "parquet":
            pq.write_table(table, data / str(episode.id) / "part-0.parquet")
        else:
            with pa.ipc.new_file(data / str(episode.id) / "part-0.arrow", table.schema) as file:
                file.write_table(table)
    (data / "metadata.json").write_text(json.dumps({"data_format": format}))
    check_held(va.read(tmp_path))
    # The same files read one by one, or joined to one table, are padded as well.
    if format == "parquet":
        tables = [pq.ParquetFile(data / str(k) / "part-0.parquet").read() for k in range(30)]
        log = va.read(pa.concat_tables(tables))
        check_held(log)
        assert any("holds the last observation and nothing else" in note for note in log.reading.notes)
        one = va.read(data / "0" / "part-0.parquet")
        assert len(one) == table_rows(shapes.lengths()[0]) and one.reading.dropped == {}


def table_rows(rows):
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows["rewards"])


def test_minari_itself():
    minari = pytest.importorskip("minari")
    from minari.dataset.episode_data import EpisodeData

    given = [EpisodeData(**vars(episode)) for episode in shapes.minari_episodes()]
    check_held(va.read(given))

    class DataSet:  # what is used of minari.MinariDataset
        def iterate_episodes(self):
            return iter(given)

    log = va.read(DataSet())
    check_held(log)
    assert minari and log.reading.source == "Minari data set"


@pytest.mark.parametrize("format", ["hdf5", "arrow", "parquet"])
def test_data_sets_that_minari_wrote(format, tmp_path, monkeypatch):
    minari = pytest.importorskip("minari")
    from gymnasium import spaces
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    buffers = []
    for episode in shapes.minari_episodes():
        parts = {name: getattr(episode, name) for name in ("id", "observations", "actions")}
        lists = {name: getattr(episode, name).tolist() for name in ("rewards", "terminations", "truncations")}
        buffers.append(EpisodeBuffer(**parts, **lists, infos=None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data_set = minari.create_dataset_from_buffers(
            dataset_id="cart-pole/test-v0",
            buffer=buffers,
            observation_space=spaces.Box(-np.inf, np.inf, (4,), np.float64),
            action_space=spaces.Discrete(2),
            data_format=format,
        )
        check_held(va.read(data_set))
    check_held(va.read(tmp_path / "cart-pole" / "test-v0"))
    check_held(va.read("cart-pole/test-v0", format="minari"))


def test_own_files(tmp_path):
    for ending in ("parquet", "npz"):
        path = va.write(shapes.cart_pole(), tmp_path / f"log.{ending}")
        check_held(va.read(path))
    # Files that others have written anew have our names, and nothing else of ours.
    import pandas as pd

    frame = pd.read_parquet(tmp_path / "log.parquet")
    check_held(va.read(pd.DataFrame(frame)))


def test_d3rlpy_objects_and_dumps(tmp_path):
    log, rows = shapes.cart_pole(), shapes.lengths()

    class Episode:
        def __init__(self, part):
            self.observations, self.actions = log.states[part], log.actions[part][:, None]
            self.rewards, self.terminated = log.rewards[part][:, None], bool(log.terminated[part][-1])

    class ReplayBuffer:
        episodes = [Episode(part) for part in rows]

    read = va.read(ReplayBuffer())
    check_next_row(read)
    assert read.reading.layout == "d3rlpy"

    arrays = {"columns": ["observations", "actions", "rewards", "terminated"], "num_episodes": 30, "version": "2.1"}
    for number, episode in enumerate(ReplayBuffer.episodes):
        arrays |= {f"{name}_{number}": getattr(episode, name) for name in arrays["columns"]}
    check_next_row(va.read(shapes.write_hdf5(tmp_path / "buffer.h5", arrays)))

    old = {name: value for name, value in shapes.d3rlpy().items() if name != "timeouts"}
    old |= {"episode_terminals": log.terminated | log.truncated, "discrete_action": True}
    check_next_row(va.read(shapes.write_hdf5(tmp_path / "old.h5", old)))


def test_rlds_as_tensorflow_has_d4rl(tmp_path):
    """Terminated episodes end with a step of zeros; truncated ones with their last transition."""
    log = shapes.cart_pole()
    episodes = []
    for rows, held in zip(shapes.lengths(), shapes.rlds_episodes(), strict=True):
        steps = held["steps"]
        if log.truncated[rows][-1]:
            steps = {name: values[:-1] for name, values in steps.items()}
            steps["is_last"] = np.append(steps["is_last"][:-1], True)
        episodes.append({"steps": steps})
    check_next_row(va.read(episodes))
