"""The commands for people with a log: what they print, write and refuse, and how they exit."""

import json
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
