"""Files that are damaged, missing or of another kind; and writing, which gives back exactly what went in."""

import gzip
import json
import re

import numpy as np
import pytest
import scipy.sparse as sp

import log_shapes as shapes
import valuate as va
from valuate.errors import InputError, InputTypeError
from valuate.io import convert

NAMES = (
    *("states", "next_states", "actions", "next_actions", "rewards", "terminated", "truncated", "ratios", "weights"),
    *("episodes", "probabilities"),
)


def refuses(message, kind=InputError):
    return pytest.raises(kind, match=re.escape(message))


def assert_same(log, expected):
    """Bit for bit: values, types and shapes."""
    for name in NAMES:
        one, other = getattr(log, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        if one is not None and not sp.issparse(one):
            assert one.dtype == other.dtype and one.shape == other.shape, name
            assert one.tobytes() == np.asarray(other).tobytes(), name


# ---- damaged files


@pytest.fixture
def files(tmp_path):
    """The same log in one file of each format."""
    import pandas as pd
    import pyarrow as pa

    flat = shapes.flat()
    np.savez(tmp_path / "log.npz", **flat)
    shapes.write_parquet(tmp_path / "log.parquet", flat)
    shapes.write_hdf5(tmp_path / "log.hdf5", shapes.d4rl())
    pd.DataFrame(flat).to_csv(tmp_path / "log.csv", index=False)
    (tmp_path / "log.csv.gz").write_bytes(gzip.compress((tmp_path / "log.csv").read_bytes()))
    table = pa.table(flat)
    with pa.ipc.new_file(tmp_path / "log.arrow", table.schema) as file:
        file.write_table(table)
    va.write(shapes.cart_pole(), tmp_path / "own.parquet")
    va.write(shapes.cart_pole(), tmp_path / "own.npz")
    return tmp_path


ALL = ["log.npz", "log.parquet", "log.hdf5", "log.csv", "log.csv.gz", "log.arrow", "own.parquet", "own.npz"]


@pytest.mark.parametrize("name", ALL)
def test_files_cut_short(files, name):
    path = files / name
    whole = path.read_bytes()
    for part in (0.0, 0.002, 0.3, 0.7, 0.999):
        path.write_bytes(whole[: int(part * len(whole)) - (part == 0.7 and name == "log.csv")])
        with pytest.raises(InputError) as found:
            va.read(path)
        message = str(found.value)
        assert str(path) in message and "\n" not in message and len(message) < 600
    path.write_bytes(b"")
    with refuses(f"{path} is empty: it has 0 bytes."):
        va.read(path)


@pytest.mark.parametrize("name", ALL)
def test_files_with_other_bytes_in_them(files, name):
    """Whatever a damaged file makes a library raise, the message is ours; many damages go unseen, as in any file."""
    path, rng = files / name, np.random.default_rng(3)
    whole = np.frombuffer(path.read_bytes(), np.uint8)
    refused = 0
    for _ in range(15):
        damaged = whole.copy()
        at = rng.integers(0, len(whole) - 40)
        damaged[at : at + 40] = rng.integers(0, 256, 40, np.uint8)
        path.write_bytes(damaged.tobytes())
        try:
            va.read(path)
        except InputError:
            refused += 1
    assert refused >= {"log.npz": 13, "own.npz": 13, "log.csv": 13, "log.csv.gz": 15}.get(name, 0)


@pytest.mark.parametrize("ending", ["npz", "parquet", "hdf5", "csv", "csv.gz", "arrow"])
def test_files_that_are_something_else(tmp_path, ending):
    path = tmp_path / f"log.{ending}"
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 4)
    with refuses(str(path)):
        va.read(path)


def test_damaged_minari_data_sets(tmp_path):
    folder = shapes.write_minari_hdf5(tmp_path / "set")
    main = folder / "data" / "main_data.hdf5"
    main.write_bytes(main.read_bytes()[:3000])
    with refuses("cannot be read as Minari: it is damaged, cut short, or of another format."):
        va.read(folder)
    main.unlink()
    with refuses("has no episodes: there is no main_data.hdf5 and no folder 0, 1, ... in it."):
        va.read(folder)
    (folder / "data" / "metadata.json").write_text("{")
    with refuses("cannot be read as Minari"):
        va.read(folder)
    picture = {"type": "Box", "dtype": "uint8", "shape": [84, 84, 3]}
    (folder / "data" / "metadata.json").write_text(json.dumps({"observation_space": json.dumps(picture)}))
    with refuses("holds pictures as JPEG, which only Minari itself unpacks"):
        va.read(folder)


def test_paths_that_lead_nowhere(tmp_path):
    (tmp_path / "log.parquet").touch()
    with refuses(f"There is no file {tmp_path}/log.parqet. In its folder there is log.parquet."):
        va.read(tmp_path / "log.parqet")
    with refuses(f"There is no folder {tmp_path}/logs either."):
        va.read(str(tmp_path / "logs" / "log.csv"))
    with refuses(f"{tmp_path} is a directory and no Minari data set"):
        va.read(tmp_path)
    with refuses("log.parquet is empty: it has 0 bytes."):
        va.read(tmp_path / "log.parquet")


def test_formats_by_name_by_content_and_as_told(files):
    (files / "log.parquet").rename(files / "log")
    (files / "log.csv").rename(files / "log.dat")
    assert va.read(files / "log").reading.format == "parquet"
    assert va.read(files / "log.dat", format="csv").reading.format == "csv"
    with refuses("log.dat has a name that does not say its format. Known endings are .parquet, .pq, .csv, .tsv"):
        va.read(files / "log.dat")
    with refuses("cannot be read as Parquet"):
        va.read(files / "log.dat", format="parquet")


def test_csv_that_is_none(tmp_path):
    path = tmp_path / "log.csv"

    def write(text):
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    with refuses("begins with numbers, '1,2,3': the first line must have the names of the columns."):
        va.read(write("1,2,3\n4,5,6\n"))
    with refuses("has the names of columns and no rows."):
        va.read(write("obs,reward,terminated\n"))
    with refuses("has more than one column called 'obs'."):
        va.read(write("obs,obs,reward\n1,2,3\n"))
    with refuses("is not text in UTF-8"):
        va.read(write("obs,r\xe9ward\n".encode("latin-1")))
    with refuses("cannot be read as CSV"):
        va.read(write("obs,reward,terminated\n1,2,true\n1,2\n"))
    with refuses("rewards (column 'reward') must be numbers and has text in it, such as 'oops'."):
        va.read(write("obs,reward,terminated\n1,2,true\n1,oops,false\n"))
    with refuses("terminated (column 'terminated') has 1 rows without a value, the first at row 1."):
        va.read(write("obs,reward,terminated\n1,2,true\n1,3,\n"))
    log = va.read(write("\ufeffobs;reward;terminated\r\n1;2;False\r\n\r\n3;4;True\r\n"))  # as spreadsheets write it
    np.testing.assert_array_equal(log.states, [1, 3])
    np.testing.assert_array_equal(log.terminated, [False, True])
    log = va.read(write('obs|reward|terminated|action\n1|2|0|"a|b"\n3|4|1|c\n'))
    assert log.reading.labels == {"actions": ("a|b", "c")}


def test_csv_without_names(tmp_path):
    path = tmp_path / "log.csv"
    for line in ("0,0,2.5,-1.5,False", "0,1,2.5,True", "ann,0.25,1.5,False"):
        path.write_text(f"{line}\n{line}\n")
        with refuses(f"begins with values, {line!r}: the first line must have the names of the columns."):
            va.read(path)
    path.write_text("0,1,reward\n1,2,3\n4,5,6\n")  # as a data frame calls columns without names
    np.testing.assert_array_equal(va.read(path, {"states": ["0", "1"]}).states, [[1, 2]])


def test_decimal_commas(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text('obs_0;obs_1;reward;terminated;action\n0,5;1;-0,0148;0;"a,b"\n3;2;1,5e-1;1;c\n')
    log = va.read(path)
    np.testing.assert_array_equal(log.states, [[0.5, 1], [3, 2]])
    np.testing.assert_array_equal(log.rewards, [-0.0148, 0.15])
    assert log.reading.labels == {"actions": ("a,b", "c")}
    assert "The comma in numbers of 'obs_0' and 1 more column is a decimal comma." in log.reading.notes
    np.testing.assert_array_equal(va.io.read_states(path).states, log.states)
    said = "holds numbers with a comma in them as text, such as '0,5'. Write a point for a decimal comma"
    path.write_text('obs,reward,terminated\n"0,5",1,0\n"1,5",1,1\n')
    with refuses(f"column 'obs' {said}"):
        va.read(path)
    path.write_text('obs,reward,terminated\n1,"0,5",0\n1,"1,5",1\n')
    with refuses(f"rewards (column 'reward') {said}"):
        va.read(path)
    path.write_text("obs;reward;terminated\n0,5;1.5;0\n1,5;1;1\n")  # points and commas
    with refuses(f"column 'obs' {said}"):
        va.read(path)


def test_csv_from_a_pipe(files, monkeypatch):
    import io
    import os
    import sys
    import threading

    expected = va.read(files / "log.csv")
    whole = (files / "log.csv").read_bytes()

    def pipe(content):
        end, start = os.pipe()

        def feed():
            with os.fdopen(start, "wb") as file:
                file.write(content)

        threading.Thread(target=feed).start()
        return end, f"/dev/fd/{end}"

    for content in (whole, gzip.compress(whole)):
        for options in ({}, {"format": "csv"}):
            end, path = pipe(content)
            log = va.read(path, **options)
            os.close(end)
            assert_same(log, expected)
            assert log.reading.source == path
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(whole)))
    assert_same(va.read("-", format="csv"), expected)
    for content, message in ((b"", "is empty: it has 0 bytes."), (b"PAR1", "is a pipe, from which only CSV is read.")):
        end, path = pipe(content)
        with refuses(f"{path} {message}"):
            va.read(path)
        os.close(end)


def test_arrays_that_would_run_code(tmp_path):
    ragged = np.array([np.zeros(2), np.zeros(3)], dtype=object)
    np.savez(tmp_path / "log.npz", observations=ragged, reward=np.zeros(2), x=np.zeros(2), action=ragged, odd=ragged)
    said = "holds Python objects or rows of different lengths, which are not read from a file: that could run code."
    for columns, what in ((None, "'observations' (states)"), ({"states": ["x", "odd"]}, "'odd' (states)")):
        with refuses(f"{what} {said} Save one array of numbers, with rows of one length."):
            va.read(tmp_path / "log.npz", columns)
        with refuses(f"{what} {said}"):
            va.io.read_states(tmp_path / "log.npz", columns)
    log = va.read(
        tmp_path / "log.npz", {"states": "x"}
    )  # what nobody asked for is told of where its name means something
    said = "holds Python objects or rows of different lengths, and was left out."
    assert [note for note in log.reading.notes if said in note] == [f"'observations' {said}", f"'action' {said}"]
    np.savez(tmp_path / "log.npz", obs=np.array([{}, {}], dtype=object))
    with refuses("holds pickled Python objects only."):
        va.read(tmp_path / "log.npz")
    np.save(tmp_path / "log.npy", np.zeros(3))
    (tmp_path / "log.npy").rename(tmp_path / "log.npz")
    with refuses("holds one array without a name"):
        va.read(tmp_path / "log.npz")


def test_parquet_with_one_name_twice(tmp_path):
    import pandas as pd
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table([pa.array([1.0])] * 3, names=["obs", "obs", "reward"]), tmp_path / "log.parquet")
    with refuses("has more than one column called 'obs'."):
        va.read(tmp_path / "log.parquet")
    with refuses("the data frame has more than one column called 'obs'."):
        va.read(pd.DataFrame([[1, 2, 3]], columns=["obs", "obs", "reward"]))


def test_absent_parts_name_their_extra(monkeypatch, tmp_path):
    import sys

    log = va.write(shapes.cart_pole(), tmp_path / "log.parquet")
    (tmp_path / "log.csv").write_text("obs,reward\n1,2\n")
    shapes.write_hdf5(tmp_path / "log.h5", shapes.d4rl())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "h5py", None)
    for path, part in [(log, "pyarrow"), (tmp_path / "log.csv", "pyarrow"), (tmp_path / "log.h5", "h5py")]:
        with pytest.raises(va.MissingPartError, match=rf"needs {part}, which is not installed. .*valuate\[io\]"):
            va.read(path)
    with pytest.raises(va.MissingPartError, match="Writing Parquet files needs pyarrow"):
        va.write(shapes.cart_pole(), tmp_path / "new.parquet")
    assert (
        not (tmp_path / "new.parquet").exists()
        and len(va.read(va.write(shapes.cart_pole(), tmp_path / "a.npz"))) == 550
    )


# ---- writing


def logs():
    rng = np.random.default_rng(0)
    n = 40
    base = {"terminated": np.arange(n) % 7 == 6, "truncated": np.arange(n) % 11 == 10}
    scalars = {
        "ratios": rng.uniform(size=n) * 3,
        "weights": rng.uniform(size=n),
        "probabilities": rng.uniform(0.1, 1, n),
    }
    states = rng.normal(size=(n + 1, 3))
    frames = rng.integers(0, 255, size=(n, 4, 3, 2), dtype=np.uint8)
    wide = rng.normal(size=(n, 1100)).astype(np.float32)
    episodes = np.repeat(["first", "second"], 20)
    r = rng.normal(size=n)
    table = [(rng.normal(size=(4, 2)), np.arange(3), rng.normal(size=3), end) for end in (True, False)]
    return {
        "everything": va.Transitions(
            states[:-1],
            r,
            states[1:] + 1,
            actions=rng.integers(0, 3, n),
            next_actions=rng.integers(0, 3, n),
            episodes=episodes,
            **base,
            **scalars,
        ),
        "least": va.Transitions(np.arange(5), np.arange(5) / 3, np.arange(5) + 1),
        "chain": va.Transitions(states[:-1], r, states[1:], **base),
        "pictures": va.Transitions(frames, r, frames[::-1], actions=rng.normal(size=(n, 2)).astype(np.float32), **base),
        "many numbers": va.Transitions(wide, r, wide * 2, **base),
        "text": va.Transitions(episodes, r, episodes[::-1], actions=np.array(["left", "right"] * 20), **base),
        "dates": va.Transitions(np.arange(n).astype("M8[D]"), r, np.arange(n).astype("M8[D]"), **base),
        "flags": va.Transitions(states[:-1] > 0, r, states[1:] > 0, **base),
        "halves": va.Transitions(states[:-1].astype(np.float16), r, states[1:].astype(np.float16)),
        "episodes": va.Transitions.from_episodes(table, probabilities=[[0.5, 0.1, 1.0]] * 2),
        "some rows": va.Transitions.from_episodes(table)[[5, 0, 3]],
        "big ids": va.Transitions(states[:-1], r, states[1:], episodes=np.arange(n) + 2**60),
        "rounding": va.Transitions([[np.pi, 5e-324, -0.0]], [0.1 + 0.2], [[1e308, np.nextafter(1, 2), 1 / 3]]),
        "one column": va.Transitions(states[:-1, :1], r, states[1:, :1], actions=np.zeros((n, 1))),
    }


@pytest.mark.parametrize("ending", ["parquet", "npz"])
@pytest.mark.parametrize("name", logs())
def test_what_is_written_is_read(name, ending, tmp_path):
    log = logs()[name]
    path = tmp_path / f"log.{ending}"
    assert va.write(log, path) == path
    again = va.read(path)
    assert_same(again, log)
    assert again.reading.layout == "valuate" and again.reading.dropped == {} and again.reading.rows == len(log)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_sparse_logs_go_to_npz(tmp_path):
    states = sp.random_array((9, 5), density=0.4, rng=np.random.default_rng(0), format="csr")
    log = va.Transitions(states[:-1], np.arange(8.0), states[1:], terminated=np.arange(8) == 7)
    again = va.read(va.write(log, tmp_path / "log.npz"))
    assert_same(again, log)
    assert (again.states != log.states).nnz == 0 and (again.next_states != log.next_states).nnz == 0
    with refuses("states are a sparse matrix, which Parquet cannot hold. Write to .npz instead."):
        va.write(log, tmp_path / "log.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["log.npz"]


def test_trajectories_are_written_and_read_once(tmp_path):
    log = logs()["episodes"]
    for path in (va.write(log, tmp_path / "a.npz"), va.write(log, tmp_path / "a.parquet")):
        assert len(va.read(path).indexed_states()[0]) == 8


def test_labels_of_text_are_kept(tmp_path):
    log = va.read({"obs": np.arange(2.0), "reward": [0, 1], "action": ["up", "down"], "terminated": [0, 1]})
    for ending in ("parquet", "npz"):
        again = va.read(va.write(log, tmp_path / f"log.{ending}"))
        assert again.reading.labels == {"actions": ("down", "up")}
        np.testing.assert_array_equal(again.actions, [1, 0])


def test_nothing_is_overwritten(tmp_path):
    log = logs()["least"]
    for ending in ("parquet", "npz"):
        path = tmp_path / f"log.{ending}"
        path.write_text("precious")
        with refuses(f"{path} exists already. Give force=True to overwrite it, or another name."):
            va.write(log, path)
        with refuses("exists already"):
            convert(tmp_path / "missing.csv", path)
        assert path.read_text() == "precious"
        va.write(log, path, force=True)
        assert_same(va.read(path), log)


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    import pyarrow.parquet as pq

    path = tmp_path / "log.parquet"
    path.write_text("precious")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    with refuses(f"{path} cannot be written: No space left on device. Nothing was changed."):
        va.write(logs()["least"], path, force=True)
    assert path.read_text() == "precious" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("log.csv", "log.csv must end in .parquet or .npz, which says the format to write."),
        ("log", "log must end in .parquet or .npz"),
        ("nowhere/log.npz", "cannot be written: there is no folder"),
    ],
)
def test_paths_that_cannot_be_written(path, message, tmp_path):
    with refuses(message):
        va.write(logs()["least"], tmp_path / path)
    assert list(tmp_path.iterdir()) == []


def test_writing_refuses_what_it_cannot_keep(tmp_path):
    (tmp_path / "folder.npz").mkdir()
    with refuses("folder.npz is a directory. Give the name of a file in it."):
        va.write(logs()["least"], tmp_path / "folder.npz", force=True)
    with refuses("log must be Transitions, not dict.", InputTypeError):
        va.write({}, tmp_path / "log.npz")
    with refuses("path must be the path of a file, not int.", InputTypeError):
        va.write(logs()["least"], 3)
    mixed = va.Transitions([0.0, 1.0], [0, 1], [1.0, 2.0], episodes=["1", 1])
    with refuses("episodes are Python objects, which a file cannot hold exactly."):
        va.write(mixed, tmp_path / "log.npz")
    complex_states = va.Transitions(np.ones((2, 2)) * 1j, [0, 1], np.ones((2, 2)) * 1j)
    with refuses("states are complex128, which Parquet cannot hold. Write to .npz instead."):
        va.write(complex_states, tmp_path / "log.parquet")
    assert_same(va.read(va.write(complex_states, tmp_path / "log.npz")), complex_states)


def test_files_of_a_newer_version_are_refused(tmp_path, monkeypatch):
    from valuate.io import own, writing

    monkeypatch.setattr(writing, "VERSION", 99)
    paths = [va.write(logs()["least"], tmp_path / f"log.{ending}") for ending in ("parquet", "npz")]
    monkeypatch.undo()
    assert own.VERSION == 1
    for path in paths:
        with refuses(f"{path} was written by a newer valuate. Update this one to read it."):
            va.read(path)


def test_own_files_that_others_changed(tmp_path):
    import pyarrow.parquet as pq

    log = shapes.cart_pole()
    path = va.write(log, tmp_path / "log.parquet")
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 100), path)  # fewer rows
    assert_same(va.read(path), log[:100])
    pq.write_table(table.drop_columns(["next_state_0", "next_state_1", "next_state_2", "next_state_3"]), path)
    again = va.read(path)  # fewer columns: read like any other table
    assert again.reading.layout is None and again.reading.n_dropped == 9
    np.savez(tmp_path / "part.npz", valuate='{"version": 1}', rewards=np.zeros(2))
    with refuses("part.npz was written by valuate.write, and a part of it is missing."):
        va.read(tmp_path / "part.npz")


def test_convert(tmp_path):
    import pandas as pd

    pd.DataFrame(shapes.flat_without_next()).to_csv(tmp_path / "log.csv", index=False)
    log = convert(tmp_path / "log.csv", tmp_path / "log.parquet")
    assert log.reading.n_dropped == 9
    assert_same(va.read(tmp_path / "log.parquet"), log)
    frame = pd.read_csv(tmp_path / "log.csv").rename(columns={"reward": "gain", "terminated": "done"})
    frame.drop(columns="truncated").to_csv(tmp_path / "odd.csv", index=False)
    log = convert(tmp_path / "odd.csv", tmp_path / "odd.npz", {"rewards": "gain"}, done="terminated")
    assert log.terminated.sum() == 21
    convert(tmp_path / "log.csv", str(tmp_path / "odd.npz"), force=True)
    assert_same(va.read(tmp_path / "odd.npz"), va.read(tmp_path / "log.parquet"))
