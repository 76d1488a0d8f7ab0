"""The commands for people with a log: what they print, write and refuse, and how they exit."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import valuate as va
from valuate import cli, io
from valuate.commands.wording import as_typed
from valuate.environments import CartPole, RandomWalk


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Types a command in an empty folder; returns its exit code, output and complaints."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def type_in(*words):
        monkeypatch.setattr("sys.argv", ["valuate", *map(str, words)])
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
        said = capsys.readouterr()
        return code, said.out, said.err

    return type_in


@pytest.fixture
def walk(tmp_path):
    """A log of the random walk, from the middle to one of the ends."""
    log = RandomWalk().collect(4000, seed=0)
    path = tmp_path / "walk.parquet"
    io.write(log, path)
    return log, path


def test_fit_prints_the_number_of_the_library(run, walk):
    log, path = walk
    code, out, err = run("fit", path, "--discount", 1.0, "--features", "tabular", "--json")
    assert code == 0, err
    found = json.loads(out)
    model = va.LinearValue(features="tabular", discount=1.0).fit(log)
    value = model.policy_value()
    assert found["value"]["value"] == pytest.approx(value.value)
    assert found["value"]["interval"] == pytest.approx(list(value.interval))
    assert found["value"]["interval"][0] < 0.5 < found["value"]["interval"][1]  # the exact value of the middle
    assert found["solution"]["status"] == "converged" and found["findings"]["ok"]
    assert found["beside"]["logged return"]["value"] == pytest.approx(0.5, abs=0.1)
    code, out, _ = run("fit", path, "--discount", 1.0, "--features", "tabular")
    assert code == 0 and f"Value {value.value:.6g}" in out and "95% interval [" in out and "logged return" in out


def test_fit_writes_a_model_and_a_page(run, walk):
    log, path = walk
    code, out, err = run("fit", path, "--discount", 1.0, "--features", "tabular", "--out", "m", "--report", "page.html")
    assert code == 0 and "Model: m" in out and "Report: page.html" in out, err
    model = va.LinearValue(features="tabular", discount=1.0).fit(log)
    code, out, err = run("predict", "m", path)
    assert code == 0, err
    np.testing.assert_allclose(np.array(out.split(), float), model.predict(log.states), rtol=1e-9)
    code, out, err = run("predict", "m", path, "--out", "values.npy")
    assert code == 0 and "4,000 values" in out, err
    np.testing.assert_allclose(np.load("values.npy"), model.predict(log.states))
    code, _, err = run("fit", path, "--features", "tabular", "--out", "m")
    assert code == 2 and "m exists already" in err and "--force" in err
    assert run("fit", path, "--discount", 1.0, "--features", "tabular", "--out", "m", "--force")[0] == 0


def test_another_policy(run, tmp_path):
    log = CartPole().collect(2000, seed=1)
    io.write(log, tmp_path / "log.parquet")
    code, out, err = run("fit", "log.parquet", "--features", "linear", "--policy", "uniform", "--json")
    assert code == 0 and "expected over its 2 actions" in json.loads(out)["evaluates"], err
    np.save("policy.npy", np.full((2000, 2), 0.5))
    code, _, err = run("fit", "log.parquet", "--features", "linear", "--policy", "policy.npy")
    assert code == 2 and "--initial-policy" in err
    episodes = len(np.unique(log.episodes))
    np.savetxt("first.csv", np.full((episodes, 2), 0.5), delimiter=",", header="left,right", comments="")
    files = ("--policy", "policy.npy", "--initial-policy", "first.csv")
    code, same, err = run("fit", "log.parquet", "--features", "linear", *files, "--json")
    assert code == 0, err
    by_file, by_name = (json.loads(text)["value"] for text in (same, out))
    for name in ("value", "standard_error", "interval", "episodes"):
        np.testing.assert_allclose(by_file[name], by_name[name], rtol=1e-6, err_msg=name)
    np.savetxt("fewer.csv", np.full((episodes - 1, 2), 0.5), delimiter=",")
    code, _, err = run("fit", "log.parquet", "--features", "linear", *files[:3], "fewer.csv")
    assert code == 2 and f"{episodes:,} episodes" in err
    np.savetxt("wrong.csv", np.full((2000, 2), 0.4), delimiter=",")
    code, _, err = run("fit", "log.parquet", "--features", "linear", "--policy", "wrong.csv", *files[2:])
    assert code == 2 and "sum" in err and "Traceback" not in err
    np.save("short.npy", np.full((7, 2), 0.5))
    code, _, err = run("fit", "log.parquet", "--features", "linear", "--policy", "short.npy")
    assert code == 2 and "(7, 2)" in err and "2,000 rows" in err
    code, _, err = run("fit", "log.parquet", "--policy", "greedy")
    assert code == 2 and "no such file" in err


def test_inspect_tells_what_is_wrong(run, walk, tmp_path):
    log, path = walk
    code, out, _ = run("inspect", path, "--discount", 1.0)
    assert code == 0 and "4,000" in out and "Nothing that would make the answer wrong" in out
    wrong = va.Transitions(log.states, log.rewards, np.roll(log.next_states, 1), terminated=log.terminated)
    io.write(wrong, tmp_path / "wrong.parquet")
    code, out, _ = run("inspect", "wrong.parquet", "--json")
    found = json.loads(out)
    assert code == 1 and not found["ok"]
    code, _, err = run("fit", "wrong.parquet", "--features", "tabular")
    assert code == 2 and "--column episodes=" in err and "--chain" in err
    code, out, _ = run("fit", "wrong.parquet", "--features", "tabular", "--chain")
    assert code == 1 and "Value " in out  # printed all the same


def test_collect_and_convert(run):
    code, out, err = run("collect", "cart-pole", "--steps", 500, "--out", "log.npz", "--seed", 3)
    assert code == 0 and "500 rows" in out, err
    np.testing.assert_array_equal(va.read("log.npz").states, CartPole().collect(500, seed=3).states)
    code, out, err = run("convert", "log.npz", "log.parquet")
    assert code == 0 and "Written: log.parquet" in out, err
    np.testing.assert_array_equal(va.read("log.parquet").rewards, va.read("log.npz").rewards)
    assert run("convert", "log.npz", "log.parquet")[0] == 2
    code, _, err = run("collect", "chess", "--out", "chess.parquet")
    assert code == 2 and "There is no environment 'chess'" in err
    code, _, err = run("collect", "cart-pole", "--out", "nowhere/log.parquet")
    assert code == 2 and "does not exist" in err


def test_columns_by_name(run, tmp_path):
    rows = "t,where,then,pay,over\n0,0,1,0,0\n1,1,2,1,1\n2,0,1,0,0\n3,1,2,1,1\n"
    (tmp_path / "mine.csv").write_text(rows)
    named = ["--column", "states=where", "--column", "next_states=then", "--column", "rewards=pay"]
    code, out, err = run("fit", "mine.csv", *named, "--column", "terminated=over", "--features", "linear", "--json")
    assert code in (0, 1), err
    assert json.loads(out)["reading"]["columns"]["rewards"] == "pay"
    code, _, err = run("fit", "mine.csv", "--column", "rewards")
    assert code == 2 and "equals sign" in err
    code, _, err = run("fit", "mine.csv", *named, "--column", "terminated=ovr")
    assert code == 2 and "over" in err


def test_compare_measures_every_solver(run, walk):
    _, path = walk
    how = ["--discount", 1.0, "--features", "tabular", "--passes", 5]
    code, out, err = run("compare", path, *how, "--chart", "chart.html", "--json")
    assert code == 0, err
    found = {row["solver"]: row for row in json.loads(out)["solvers"]}
    assert {"Auto", "LSTD", "SVRG", "GTD2", "TD-SVRG"} <= set(found)
    assert found["LSTD"]["relative_residual"] < 1e-9 and found["GTD2"]["passes"] == 5
    page = Path("chart.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 2 and "statistical floor" in page
    code, out, _ = run("compare", path, *how, "--solver", "lstd", "--solver", "GMRES")
    assert code == 0 and "LSTD" in out and "SVRG" not in out
    code, _, err = run("compare", path, "--solver", "sgd")
    assert code == 2 and "There is no solver 'sgd' here" in err


def test_what_cannot_be_read_is_one_message(run, tmp_path):
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and then nothing")
    (tmp_path / "empty.csv").write_text("")
    for path in ("missing.csv", "broken.parquet", "empty.csv", "."):
        for command in ("fit", "inspect", "compare"):
            code, out, err = run(command, path)
            assert code == 2 and not out, (command, path)
            assert len(err.strip().splitlines()) <= 3 and "Traceback" not in err


def test_demo_goes_all_the_way(run, tmp_path):
    code, out, err = run("demo", "--steps", 1500, "--folder", "here")
    assert code == 0, err
    mine = tmp_path / "here" / "model.valuate"
    mine.write_text("mine")
    (tmp_path / "here" / "cart-pole.parquet").unlink()
    code, _, err = run("demo", "--steps", 1500, "--folder", "here")
    assert code == 2 and "model.valuate exists already" in err and mine.read_text() == "mine"
    assert not (tmp_path / "here" / "cart-pole.parquet").exists()
    assert run("demo", "--steps", 1500, "--folder", "here", "--force")[0] == 0 and mine.read_text() != "mine"
    for command in ("$ valuate collect cart-pole", "$ valuate inspect", "$ valuate fit"):
        assert command in out
    assert "95% interval" in out and (tmp_path / "here" / "report.html").stat().st_size > 10_000


def test_messages_name_options_and_not_arguments(run, tmp_path):
    (tmp_path / "mine.csv").write_text("id,level,reward,done\n1,0.5,1,0\n1,0.7,0,1\n2,0.1,1,1\n")
    code, _, err = run("fit", "mine.csv")
    assert code == 2 and "--column states=id,level" in err and "{" not in err
    named = ("--column", "states=level", "--column", "episodes=id")
    code, _, err = run("fit", "mine.csv", *named)
    assert code == 2 and "--done terminated" in err and "--done ended" in err and "--column terminated=..." in err
    assert "done=" not in err
    assert (
        as_typed("columns={'a': [...], 'b': None} or {'c': 'x y'}") == "--column a=... --column b= or --column 'c=x y'"
    )
    code, out, err = run("fit", "mine.csv", *named, "--done", "terminated", "--features", "linear")
    assert code in (0, 1) and "Value " in out, err


def visits(rows, seed=0, kinds=("home", "icu", "ward")):
    """Lines of a table with texts: rows of an episode apart, so that reading sorts them."""
    rng = np.random.default_rng(seed)
    kind, number = rng.integers(len(kinds), size=rows), rng.normal(size=rows)
    reward = np.array([1.0, -3.0, 0.0, 7.0])[kind] + 0.1 * rng.normal(size=rows)
    lines = [f"{k % 40},{k // 40},{kinds[kind[k]]},{number[k]},{reward[k]},{int(k // 40 == 4)}" for k in range(rows)]
    return "visit,step,ward,lab,reward,terminated\n" + "\n".join(lines) + "\n"


NAMED = ("--column", "states=ward,lab", "--column", "episodes=visit")


@pytest.fixture
def fitted(run, tmp_path):
    """A model of visits, and the values of their rows by hand: {(ward, lab): value}."""
    (tmp_path / "visits.csv").write_text(visits(200))
    code, _, err = run("fit", "visits.csv", *NAMED, "--features", "onehot", "--discount", 0.5, "--out", "model.json")
    assert code in (0, 1), err
    log = io.read("visits.csv", {"states": ["ward", "lab"], "episodes": "visit"})
    model = va.LinearValue("onehot", 0.5).fit(log)
    words = log.reading.labels["ward"]
    values = model.predict(log.states)
    return {(words[int(s[0])], s[1]): v for s, v in zip(log.states.tolist(), values.tolist(), strict=True)}


def cells(path):
    return [line.split(",") for line in path.read_text().splitlines()[1:]]


def test_predict_gives_a_value_for_every_row_in_the_order_of_the_file(run, tmp_path, fitted):
    code, out, err = run("predict", "model.json", "visits.csv", "--out", "values.csv")
    assert code == 0, err
    expected = [fitted[row[2], float(row[3])] for row in cells(tmp_path / "visits.csv")]
    np.testing.assert_allclose(np.loadtxt("values.csv", skiprows=1), expected, rtol=1e-9)
    # The last row of an episode that was cut short is dropped by fit, and has a value all the same.
    (tmp_path / "cut.csv").write_text(
        "x,reward,terminated,episode\n" + "".join(f"{k},{k % 7},0,{k // 5}\n" for k in range(50))
    )
    code, out, err = run("fit", "cut.csv", "--column", "states=x", "--features", "linear", "--out", "cut.json")
    assert code in (0, 1) and "10 dropped" in out, err
    code, out, err = run("predict", "cut.json", "cut.csv")
    assert code == 0 and len(out.split()) == 50, err
    assert (np.diff(np.array(out.split(), float)) != 0).all()


def test_predict_needs_states_alone_and_knows_texts_and_columns_again(run, tmp_path, fitted):
    rows = [row for row in cells(tmp_path / "visits.csv") if row[2] != "home"][:7]
    expected = [fitted[row[2], float(row[3])] for row in rows]
    (tmp_path / "some.csv").write_text("lab,other,ward\n" + "".join(f"{r[3]},5,{r[2]}\n" for r in rows))
    code, out, err = run("predict", "model.json", "some.csv")
    assert code == 0, err
    np.testing.assert_allclose(np.array(out.split(), float), expected, rtol=1e-9)
    (tmp_path / "named.csv").write_text("value,unit\n" + "".join(f"{r[3]},{r[2]}\n" for r in rows))
    code, _, err = run("predict", "model.json", "named.csv")
    assert code == 2 and "the model names 'ward' for states, and there is no such column" in err
    assert "'value', 'unit'" in err and "The model has states from ward, lab:" in err
    assert "as --column states=..." in err
    code, out, err = run("predict", "model.json", "named.csv", "--column", "states=unit,value")
    assert code == 0, err
    np.testing.assert_allclose(np.array(out.split(), float), expected, rtol=1e-9)
    (tmp_path / "new.csv").write_text("ward,lab\nattic,0.5\n")
    code, _, err = run("predict", "model.json", "new.csv")
    assert code == 2 and "'attic', which is not among those of the model" in err and "'home', 'icu', 'ward'" in err


def test_predict_reads_a_converted_file_by_its_own_names(run, tmp_path, fitted):
    code, values, err = run("predict", "model.json", "visits.csv")
    assert code == 0, err
    expected = sorted(map(float, values.split()))
    for name, columns in (("same.npz", "states"), ("same.parquet", "state_0,state_1")):
        assert run("convert", "visits.csv", name, *NAMED)[0] == 0
        code, _, err = run("predict", "model.json", name)
        assert code == 2 and f"as --column states={columns}." in err, err
        code, out, err = run("predict", "model.json", name, "--column", f"states={columns}")
        assert code == 0, err
        np.testing.assert_allclose(sorted(map(float, out.split())), expected)
        code, _, err = run("fit", name, "--features", "onehot", "--discount", 0.5, "--out", "own.json", "--force")
        assert code in (0, 1), err
        code, out, err = run("predict", "own.json", name)
        assert code == 0, err
        np.testing.assert_allclose(sorted(map(float, out.split())), expected)


def test_predict_takes_actions_by_the_model_s_names(run, tmp_path):
    rng = np.random.default_rng(0)
    lines = [
        f"{k // 5},{rng.normal()},{rng.choice(['left', 'none', 'right'])},{k % 3},{int(k % 5 == 4)}" for k in range(200)
    ]
    (tmp_path / "log.csv").write_text("id,x,move,reward,terminated\n" + "\n".join(lines) + "\n")
    log = io.read("log.csv", {"states": "x", "actions": "move", "episodes": "id"})
    model = va.LinearValue("linear", 0.5, policy=lambda s: np.full((len(s), 3), 1 / 3)).fit(log)
    model.set_params(policy=None).save("model.json")
    (tmp_path / "few.csv").write_text("move,x\nright,0.5\nleft,-1\n")
    code, out, err = run("predict", "model.json", "few.csv")
    assert code == 0, err
    np.testing.assert_allclose(np.array(out.split(), float), model.predict([0.5, -1.0], [2, 0]), rtol=1e-9)
    (tmp_path / "none.csv").write_text("x\n0.5\n")
    code, _, err = run("predict", "model.json", "none.csv")
    assert code == 2 and "the model names 'move' for actions" in err


def test_predict_with_a_model_without_names_goes_by_position(run, tmp_path):
    x = np.random.default_rng(0).normal(size=(50, 2))
    model = va.LinearValue().fit(x, x[:, 0] + 2 * x[:, 1])
    model.save("model.json")
    (tmp_path / "log.csv").write_text("obs_0,obs_1\n1,2\n3,4\n")
    code, out, err = run("predict", "model.json", "log.csv")
    assert code == 0, err
    np.testing.assert_allclose(np.array(out.split(), float), [5, 11])
    (tmp_path / "narrow.csv").write_text("obs_0\n1\n3\n")
    code, out, err = run("predict", "model.json", "narrow.csv")
    assert code == 2 and not out and "have 1 number (obs_0), and those of the model 2" in err


def test_what_scikit_learn_refuses_is_one_line(run, tmp_path, monkeypatch):
    x = np.random.default_rng(0).normal(size=(50, 2))
    va.LinearValue().fit(x, x[:, 0]).save("model.json")
    (tmp_path / "narrow.csv").write_text("obs_0\n1\n3\n")
    monkeypatch.setattr("valuate.commands.predict._shaped", lambda fitted, read, source: read.states)
    code, out, err = run("predict", "model.json", "narrow.csv", "--column", "states=obs_0")
    assert code == 2 and not out and err.startswith("ValueError: ") and len(err.splitlines()) == 1

    def broken(*given):
        raise ValueError("a defect of ours")

    monkeypatch.setattr("valuate.commands.predict._shaped", broken)
    with pytest.raises(ValueError, match="a defect of ours"):
        run("predict", "model.json", "narrow.csv")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is full")
def test_output_that_is_not_taken_is_one_line_or_none(tmp_path, walk):
    command = [sys.executable, "-m", "valuate", "fit", str(walk[1]), "--features", "tabular", "--discount", "1"]
    for more in ([], ["--json"]):
        with open("/dev/full", "w") as full:
            found = subprocess.run([*command, *more], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
        assert found.returncode == 2 and "No space left on device" in found.stderr, found.stderr
        assert len(found.stderr.splitlines()) == 1
    x = np.random.default_rng(0).normal(size=(50_000, 1))
    va.LinearValue().fit(x, x[:, 0]).save(tmp_path / "model.json")
    np.savetxt(tmp_path / "many.csv", x, header="obs", comments="")
    with subprocess.Popen(
        [sys.executable, "-m", "valuate", "predict", str(tmp_path / "model.json"), str(tmp_path / "many.csv")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as pipe:  # fmt: skip
        pipe.stdout.readline()
        pipe.stdout.close()
        assert pipe.stderr.read() == ""


def test_nothing_is_written_over_what_is_read_or_written(run, walk, tmp_path):
    _, path = walk
    before = path.read_bytes()
    code, _, err = run("fit", path, "--out", "same", "--report", tmp_path / "same")
    assert code == 2 and "--out and --report are both" in err and not (tmp_path / "same").exists()
    (tmp_path / "link.parquet").symlink_to(path)
    np.save("policy.npy", np.zeros(4000, int))
    assert run("fit", path, "--features", "tabular", "--out", "m")[0] in (0, 1)
    for words, option in (
        (("fit", path, "--out", path), "--out"),
        (("fit", path, "--report", "link.parquet"), "--report"),
        (("fit", path, "--policy", "policy.npy", "--out", "policy.npy"), "--out"),
        (("predict", "m", path, "--out", path), "--out"),
        (("predict", "m", path, "--out", "m"), "--out"),
        (("compare", path, "--chart", path), "--chart"),
        (("convert", path, "./walk.parquet"), "the output"),
    ):
        code, out, err = run(*words, "--force")
        assert code == 2 and not out and err.startswith(f"InputError: {option} ") and "would be lost" in err, words
    assert path.read_bytes() == before


def test_fit_says_how_the_log_was_read_and_what_is_beside_the_number(run, tmp_path):
    rows = "".join(f"{k // 5},{np.sin(k)},{k % 2},{k % 3},0\n" for k in range(100))
    (tmp_path / "mine.csv").write_text("id,level,colour,reward,terminated\n" + rows)
    code, out, err = run(
        "fit", "mine.csv", "--column", "states=level", "--column", "episodes=id", "--features", "linear"
    )
    assert code in (0, 1), err
    assert re.search(r"rows +80, 20 dropped", out) and re.search(r"not used +colour", out)
    assert "states from level; rewards from reward; terminated from terminated; episodes from id" in out
    assert "- 20 rows dropped: the last row of an episode that did not terminate" in out
    assert "- logged return: 20 of 20 episodes were cut short" in out
    (tmp_path / "visits.csv").write_text(visits(200))
    code, out, err = run("fit", "visits.csv", *NAMED, "--features", "onehot")
    assert code in (0, 1) and "- 'ward' holds text, which became numbers: home = 0, icu = 1, ward = 2." in out, err
    assert "The rows were out of order and have been sorted" in out


def test_linear_is_what_the_library_calls_linear(run, tmp_path):
    x = np.random.default_rng(0).normal(size=(401, 2)) * [1.0, 100.0]
    log = va.Transitions(x[:-1], x[:-1, 0] + x[:-1, 1], x[1:], episodes=np.arange(400) // 10)
    io.write(log, tmp_path / "log.parquet")
    for text, features in (("linear", "linear"), ("none", None)):
        how = ("--features", text, "--ridge", 0.1, "--discount", 0.5)
        code, out, err = run("fit", "log.parquet", *how, "--json")
        assert code in (0, 1), err
        expected = va.LinearValue(features, 0.5, ridge=0.1).fit(va.read("log.parquet")).policy_value().value
        assert json.loads(out)["value"]["value"] == pytest.approx(expected, rel=1e-9)
        code, out, err = run("compare", "log.parquet", *how, "--solver", "lstd", "--json")
        assert code == 0, err
        found = va.features.from_text("linear", log) if features else None
        problem = va.Problem.from_transitions(log, found, discount=0.5, ridge=0.1)
        assert json.loads(out)["solvers"][0]["mspbe"] == pytest.approx(problem.mspbe(va.LSTD().solve(problem).theta))


def test_a_policy_file_with_an_index_or_other_separators(run, tmp_path):
    io.write(CartPole().collect(300, seed=1), tmp_path / "log.parquet")
    (tmp_path / "first.csv").write_text("0.5,0.5\n")
    given = ("fit", "log.parquet", "--features", "linear", "--initial-policy", "first.csv", "--policy")
    (tmp_path / "index.csv").write_text(",left,right\n" + "".join(f"{k},0.5,0.5\n" for k in range(300)))
    code, _, err = run(*given, "index.csv")
    assert code == 2 and "the first column of --policy index.csv counts the rows" in err and "index=False" in err
    for mark, name in ((";", "';'"), ("\t", "tabs")):
        (tmp_path / "marks.csv").write_text(f"left{mark}right\n" + f"0.5{mark}0.5\n" * 300)
        code, _, err = run(*given, "marks.csv")
        assert code == 2 and f"--policy marks.csv has its columns separated by {name}" in err


def test_help_of_fit_lists_exit_codes_and_examples(run):
    code, out, _ = run("fit", "--help")
    lines = [line.strip() for line in out.splitlines()]
    assert code == 0
    for start in ("0  the number can be used", "1  the log or", "2  something that you can mend"):
        assert any(line.startswith(start) for line in lines)
    assert sum(line.startswith("valuate fit ") for line in lines) == 3


@pytest.mark.parametrize(
    ("python", "typed"),
    [
        ("there is no interval. Try blocks=True.", "there is no interval. Try --chain."),
        ("m exists. Say force=True to write over it.", "m exists. Say --force to write over it."),
        ("Sort the log by episode and time, or give initial.", "Sort the log by episode and time."),
        ("every first row of an episode has weight 0: give initial.", "every first row of an episode has weight 0."),
        ("where episodes are the draws: give initial_states.", "where episodes are the draws."),
        (
            "initial_actions need initial_states, or a log with episodes (groups=) and without weights.",
            "--initial-policy needs a log with episodes and without weights.",
        ),
        ("Give episodes=, one label a row, or the flags", "Give --column episodes=..., one label a row, or the flags"),
        (
            "Sort the log by episode, log[np.argsort(log.episodes, kind='stable')], or mend labels",
            "Sort the log by episode, or mend labels",
        ),
        ("or name it: format='parquet', 'csv'.", "or name it: --format parquet, csv."),
        ("name the column: columns={'terminated': ...}.", "name the column: --column terminated=..."),
        (
            'Use solver="gmres" or "lstd", ridge=0, or fit_intercept=False with a constant',
            "Use --solver gmres or lstd, --ridge 0, or --no-intercept with a constant",
        ),
        (
            "holds nothing else (if it is a transition instead, give last_step='transition').",
            "holds nothing else.",
        ),
    ],
)
def test_words_of_the_library_as_typed(python, typed):
    assert as_typed(python) == typed


def test_notes_and_findings_name_options_too(run, tmp_path):
    (tmp_path / "one.csv").write_text("x,reward,terminated,id\n0.5,1,1,0\n")
    named = ("--column", "states=x", "--column", "episodes=id", "--features", "linear")
    code, out, err = run("fit", "one.csv", *named)
    assert code == 1 and "there is no interval. Try --chain." in out and "blocks=" not in out, err
    assert out.count("One draw says nothing") == 1
    log = RandomWalk().collect(300, seed=0)
    order = np.random.default_rng(0).permutation(300)
    io.write(log[order], "apart.parquet")
    _, out, _ = run("inspect", "apart.parquet")
    assert "Sort the log by episode, or mend labels" in out and "argsort" not in out
