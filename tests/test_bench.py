import dataclasses
import json
from functools import partial
from importlib.util import find_spec
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from valuate import bench
from valuate._kernels import limits
from valuate.bench import against, catalogue, children, data, gradient, machine, report, rivals, running, timing
from valuate.bench.report import Measurement, Report, Target, judged, unmeasured
from valuate.bench.scale import FULL, QUICK, Scale
from valuate.bench.steps import advancing, draw, places_of, small_vectors
from valuate.bench.timing import NotHere, Taken
from valuate.errors import InputError
from valuate.problem import Problem
from valuate.solvers.directions import SADDLE
from valuate.solvers.points import point_for

TINY = Scale(
    dram_bytes=1 << 19,
    sparse_rows=64,
    table_rows=3000,
    sample_bytes=1 << 17,
    cached_steps=32,
    sparse_steps=32,
    slow_steps=64,
    rounds=2,
)
SIZES = (0.05, 0.02)
LINE = Target(name="line", what="what it is", target=2.0, direction="at most", take=lambda scale: Taken({}))
AT_LEAST = dataclasses.replace(LINE, name="rival", direction="at least")


def taken(ours: list[float], other: list[float]) -> Taken:
    return Taken({"ours": ours, "other": other, "beside": other})


# Every line measures what it says, at a size that takes no time.


@pytest.mark.parametrize("line", catalogue.LINES, ids=lambda line: line.name)
def test_each_line_measures(line: Target) -> None:
    if line.name in ("jax", "torch") and find_spec(line.name) is None:
        with pytest.raises(NotHere, match="^not installed$"):
            line.take(TINY)
        return
    found = line.take(TINY)
    once = line.name in ("table-memory", "compiled-again")
    assert len(found.samples) >= 2
    for samples in found.samples.values():
        assert len(samples) == (1 if once else TINY.rounds)
        assert all(np.isfinite(samples))
        assert once or min(samples) > 0
    measured = judged(line, found)
    assert (line.unit == "x") == (found.value is None)
    assert measured.verdict == ("met" if measured in Report({}, {}, [measured]).met else "missed")


def test_nothing_is_compiled_again() -> None:
    line = next(line for line in catalogue.LINES if line.name == "compiled-again")
    assert line.take(TINY).value == 0


def test_names_are_unique_and_scales_differ() -> None:
    names = [line.name for line in catalogue.LINES]
    assert len(set(names)) == len(names)
    assert QUICK.dram_bytes < FULL.dram_bytes
    assert FULL.table_rows == 10_000_000


# The other ways take the very same steps as ours: that makes them fair.


def ours_after(rows, order, x, y, mean, steps=SIZES):
    point = point_for(rows, SADDLE.for_kernels(*steps, 0.0), single=True)
    point.place(x, y)
    point.drift(*mean)
    advancing(rows, point)(np.asarray(order, np.int32))
    return point.read()


@pytest.fixture
def dense():
    rng = np.random.default_rng(5)
    rows = data.dense_pairs(30_000, 13, "float64", rng)
    order = draw(rows, 203, rng)
    x, y = rng.standard_normal((2, 13))
    mean = rng.standard_normal((2, 13))
    return rows, order, x, y, mean, [size * part for size, part in zip(SIZES, mean, strict=True)]


def test_numpy_takes_our_steps(dense) -> None:
    rows, order, x, y, mean, drifts = dense
    expected = ours_after(rows, order, x, y, mean)
    rivals.numpy_steps(*against.matrices(rows), data.DISCOUNT, order.tolist(), x, y, drifts, SIZES)
    np.testing.assert_allclose((x, y), expected, rtol=0, atol=1e-10)


def test_torch_takes_our_steps(dense) -> None:
    torch = pytest.importorskip("torch")
    rows, order, x, y, mean, drifts = dense
    expected = ours_after(rows, order, x, y, mean)
    features, next_features = (torch.from_numpy(matrix) for matrix in against.matrices(rows))
    tensors = [torch.from_numpy(vector) for vector in (x, y, *drifts)]
    rivals.torch_steps(
        features, next_features, data.DISCOUNT, order.tolist(), *tensors[:2], tensors[2:], SIZES
    )  # fmt: skip
    np.testing.assert_allclose((x, y), expected, rtol=0, atol=1e-10)


def test_jax_takes_our_steps(dense) -> None:
    jax = pytest.importorskip("jax")
    rows, order, x, y, mean, drifts = dense
    expected = ours_after(rows, order, x, y, mean)
    with rivals.jax_in_double_precision():
        features, next_features, x, y, *drifts = map(jax.numpy.asarray, (*against.matrices(rows), x, y, *drifts))
        found = rivals.jax_steps()(features, next_features, data.DISCOUNT, order, x, y, drifts, SIZES)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_the_authors_take_our_steps() -> None:
    rng = np.random.default_rng(6)
    rows = data.indexed(17, 60, 9, "float64", rng)
    problem = Problem(rows)
    anchor, point = small_vectors(9, rng), small_vectors(9, rng)
    mean = problem.gradient(*anchor)
    order = draw(rows, 150, rng)
    moved = ours_after(rows, order, *(here - there for here, there in zip(point, anchor, strict=True)), mean)
    expected = [there + part for there, part in zip(anchor, moved, strict=True)]
    transitions = [
        (int(record["state"]), int(record["next"]), float(record["reward"])) for record in rows.records[order]
    ]
    rivals.authors_steps(rows.table[:, :9], transitions, data.DISCOUNT, point, anchor, mean, SIZES)
    np.testing.assert_allclose(point, expected, rtol=0, atol=1e-10)
    assert np.abs(np.subtract(point, anchor)).max() > 0.1


def test_steps_on_every_coordinate_are_our_sparse_steps() -> None:
    rng = np.random.default_rng(7)
    rows = data.sparse_pairs(40, 64, rng)
    steps = (0.01, 0.005)
    (x, y), mean = rng.standard_normal((2, 64)), rng.standard_normal((2, 64))
    order = draw(rows, 101, rng)
    expected = ours_after(rows, order, x, y, mean, steps)
    drifts = [size * part for size, part in zip(steps, mean, strict=True)]
    table = rows.table
    limits.every_coordinate(table.indptr, table.indices, table.data, rows.records, order, x, y, *drifts, *steps)
    np.testing.assert_allclose((x, y), expected, rtol=0, atol=1e-10)


def test_products_give_the_gradient(dense) -> None:
    rows, _, theta, omega, *_ = dense
    phi, following = against.matrices(rows)
    rewards, gamma = rows.records["reward"], data.DISCOUNT
    expected = Problem(rows).gradient(theta, omega)
    for found in (
        gradient.by_products(phi, following, rewards, gamma, theta, omega),
        gradient.by_delta(phi, phi - gamma * following, rewards, theta, omega),
        gradient.by_blocks(phi, following, rewards, gamma, theta, omega),
    ):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_blocks_of_rows_may_be_incomplete(dense, monkeypatch) -> None:
    rows, _, theta, omega, *_ = dense
    monkeypatch.setattr(gradient, "BLOCK", 10)
    assert rows.n_rows % 10
    found = gradient.by_blocks(*against.matrices(rows), rows.records["reward"], data.DISCOUNT, theta, omega)
    np.testing.assert_allclose(found, Problem(rows).gradient(theta, omega), rtol=0, atol=1e-12)


# The limits read what the step reads.


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_gather_reads_the_rows_of_the_step(dtype) -> None:
    rng = np.random.default_rng(8)
    rows = data.dense_pairs(40_000, 13, dtype, rng)
    order = draw(rows, 40, rng)
    expected = sum(rows.table[place].sum(dtype=float) for places in places_of(rows, order) for place in places)
    for ask in (0, rows.table.strides[0]):
        found = limits.gather(rows.table, *places_of(rows, order), np.uint64(ask))
        assert found == pytest.approx(expected, abs=1e-3 if dtype == "float32" else 1e-10)
    assert limits.read(rows.table.reshape(-1)) == pytest.approx(rows.table.sum(dtype=float), abs=1e-2)


def test_the_sparse_gather_reads_the_coordinates_of_the_step() -> None:
    rng = np.random.default_rng(9)
    rows = data.sparse_pairs(60, 96, rng)
    assert (np.diff(rows.table.indices.reshape(60, -1), axis=1) > 0).all()
    order = draw(rows, 50, rng)
    cells = rng.standard_normal((96, 8))
    first, second = places_of(rows, order)
    expected = float((rows.table[first] @ cells[:, 0]).sum() + (rows.table[second] @ cells[:, 0]).sum())
    table = rows.table
    for ask in (False, True):
        found = limits.sparse_gather(table.indptr, table.indices, table.data, cells, first, second, ask)
        assert found == pytest.approx(expected, abs=1e-10)


def test_rows_fill_the_memory_that_is_asked_for() -> None:
    rng = np.random.default_rng(10)
    rows = data.dense_pairs(5_000_000, 201, "float32", rng)
    assert 4_990_000 < rows.table.nbytes <= 5_000_000
    assert rows.n_stored > data.DISTINCT
    assert np.linalg.norm(rows.table, axis=1).min() > 0.3
    assert not rows.table[:, 201:].any()


# Turns, clock and verdicts.


def test_samplers_take_turns_and_the_first_turn_is_forgotten() -> None:
    calls: list[str] = []

    def sampler(name: str) -> float:
        calls.append(name)
        return float(len(calls))

    samples = timing.interleaved({name: partial(sampler, name) for name in "ab"}, 3)
    assert "".join(calls) == "abababab"
    assert samples == {"a": [3.0, 5.0, 7.0], "b": [4.0, 6.0, 8.0]}


def test_preparing_is_off_the_clock(monkeypatch) -> None:
    now = [0]
    monkeypatch.setattr(timing.time, "perf_counter_ns", lambda: now[0])

    def prepare() -> int:
        now[0] += 1_000_000
        return 500

    def run(nanoseconds: int) -> None:
        now[0] += nanoseconds

    assert timing.clocked(run, prepare, 10)() == 50.0


def test_at_most_divides_ours_by_the_limit() -> None:
    met = judged(LINE, taken([5.0, 3.0, 4.0], [2.0, 3.0, 2.5]))
    assert (met.value, met.value_of_medians, met.verdict) == (1.5, 1.6, "met")
    assert (met.sampled["ours"].best, met.sampled["ours"].median) == (3.0, 4.0)
    assert met.shown == "ours 3 ns; other 2 ns; beside 2 ns (1.5x)"
    assert judged(LINE, taken([5.0], [2.0])).verdict == "missed"
    assert judged(LINE, taken([4.0], [2.0])).verdict == "met"


def test_at_least_divides_the_other_by_ours() -> None:
    met = judged(AT_LEAST, taken([2.0, 3.0], [5.0, 6.0]))
    assert (met.value, met.value_of_medians, met.verdict) == (2.5, 2.2, "met")
    assert met.shown.endswith("beside 5 ns (2.5x)")
    assert met.wanted == ">= 2x"
    assert judged(AT_LEAST, taken([3.0], [5.0])).verdict == "missed"


def test_a_value_of_its_own_is_judged_as_it_is() -> None:
    line = dataclasses.replace(LINE, unit="kernels", target=0.0)
    assert judged(line, Taken({"second": [0.0]}, unit="kernels", value=0.0)).verdict == "met"
    missed = judged(line, Taken({"second": [3.0]}, unit="kernels", value=3.0, notes=["blocks.x"]))
    assert (missed.verdict, missed.measured, missed.wanted) == ("missed", "3 kernels", "<= 0 kernels")
    assert missed.shown == "second 3 kernels; blocks.x"


@pytest.fixture
def mixed() -> Report:
    lines = [
        judged(LINE, taken([3.0], [2.0])),
        judged(AT_LEAST, taken([3.0], [2.0])),
        unmeasured(dataclasses.replace(LINE, name="torch"), "skipped", "not installed"),
        unmeasured(dataclasses.replace(LINE, name="broken"), "failed", "MemoryError: out of it"),
    ]
    return Report({"cpu": "a cpu"}, dataclasses.asdict(TINY), lines)


def test_what_is_not_installed_is_neither_met_nor_missed(mixed) -> None:
    assert [line.name for line in mixed.met] == ["line"]
    assert [line.name for line in mixed.missed] == ["rival", "broken"]
    assert mixed.summary() == "1 of 3 targets met; missed: rival, broken."
    assert Report({}, {}, mixed.measurements[:1]).summary() == "1 of 1 targets met."


def test_json_has_everything(mixed) -> None:
    text = mixed.to_json()
    assert Report.from_json(text) == mixed
    line = json.loads(text)["measurements"][0]
    assert line["sampled"]["ours"] == {"best": 3.0, "median": 3.0, "samples": [3.0], "unit": "ns"}
    assert (line["target"], line["verdict"]) == (2.0, "met")


def test_the_table_shows_values_and_reasons(mixed) -> None:
    out = StringIO()
    Console(file=out, width=200).print(mixed.table())
    text = out.getvalue()
    for wanted in ("1.5x", "<= 2x", "met", "0.667x", ">= 2x", "missed", "not installed", "MemoryError: out of it"):
        assert wanted in text


def test_names_are_chosen_by_what_they_contain() -> None:
    assert [line.name for line in running.chosen(["numpy", "gradient"])] == ["gradient-read", "gradient-gemv", "numpy"]
    assert len(running.chosen(None)) == len(catalogue.LINES)
    with pytest.raises(InputError, match=r"no measurement has 'nothing' in its name. There are: dense-201-float64, "):
        bench.run(only=["nothing"])


# Processes of their own.


@pytest.fixture
def tiny(monkeypatch) -> None:
    monkeypatch.setattr(running.scale, "QUICK", TINY)
    monkeypatch.setattr(machine, "largest_cache", lambda: 0)


def test_run_measures_in_other_processes_and_reports(tiny) -> None:
    told: list[Measurement] = []
    found = bench.run(quick=True, only=["authors"], report=told.append)
    assert told == found.measurements
    assert [line.name for line in told] == ["authors"]
    assert told[0].verdict in ("met", "missed")
    assert len(told[0].sampled["step"].samples) == TINY.rounds
    assert found.scale == dataclasses.asdict(TINY)
    assert found.machine["versions"]["numpy"] == np.__version__
    assert any("numba" in line for line in found.header())
    assert any(library["user_api"] == "blas" for library in found.machine["blas"])
    assert Report.from_json(found.to_json()) == found


def test_showing_prints_the_machine_the_table_and_the_sum(tiny, monkeypatch, capsys) -> None:
    monkeypatch.setattr(running, "measure", lambda line, size: judged(line, taken([1.0], [1.0])))
    monkeypatch.setattr(machine, "describe", partial(dict, Report.from_json(_EMPTY).machine))
    running.run_and_show(quick=True, only=["dense-20"])
    printed = capsys.readouterr()
    assert "a cpu, 2 cores, L1 48K" in printed.out
    assert "dense-201-float64: 1x, met (<= 1.4x)" in printed.err
    assert "3 of 3 targets met." in printed.out
    running.run_and_show(quick=True, only=["dense-20"], quiet=True)
    assert capsys.readouterr() == ("", "")


_EMPTY = json.dumps(
    {
        "machine": {
            "cpu": "a cpu",
            "cores": 2,
            "caches": {"L1": "48K"},
            "huge_pages": "",
            "python": "3.11",
            "versions": {},
            "blas": [],
            "unset": {"OPENBLAS_CORETYPE": "Haswell"},
        },
        "scale": {},
        "measurements": [],
    }
)


def test_the_header_names_what_was_not_passed_on() -> None:
    assert report.machine.lines(json.loads(_EMPTY)["machine"])[-1] == (
        "Not passed on to what is measured: OPENBLAS_CORETYPE=Haswell"
    )


def test_a_process_that_ends_badly_is_a_line_that_failed() -> None:
    failed = running.measure(LINE, TINY)  # not in the catalogue
    assert failed.verdict == "failed"
    assert failed.value is None
    assert failed.notes == ["StopIteration"]


def test_what_is_missing_is_a_line_that_is_skipped(monkeypatch) -> None:
    monkeypatch.setattr(running, "in_child", lambda *_: {"missing": "not installed"})
    skipped = running.measure(LINE, TINY)
    assert (skipped.verdict, skipped.measured) == ("skipped", "not installed")


def test_variables_of_openblas_are_not_passed_on(monkeypatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    code = "import os; print([name for name in os.environ if name.startswith('OPENBLAS')])"
    assert children.fresh(code).strip() == "[]"
    assert children.held_back()["OPENBLAS_CORETYPE"] == "Haswell"


def test_compiled_kernels_are_counted_once_and_then_come_from_the_cache(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    code = (
        "import numpy as np; from valuate._kernels import limits; from valuate._kernels.compiled import compiled_here;"
        "limits.read(np.ones(3)); limits.read(np.ones(3)); print(compiled_here())"
    )
    assert children.fresh(code).strip() == "{'valuate._kernels.limits.read': 1}"
    assert children.fresh(code).strip() == "{}"


def test_rows_are_made_larger_than_any_cache(monkeypatch) -> None:
    monkeypatch.setattr(machine, "caches", lambda: {"L2": "1024K", "L3": "512M", "L4": "?"})
    assert machine.largest_cache() == 512 << 20
    larger = running.sized(QUICK)
    assert larger.dram_bytes == 2 << 30
    assert larger.sparse_rows * 384 > (2 << 30) - 384
    monkeypatch.setattr(machine, "caches", dict)
    assert running.sized(QUICK) == QUICK


def test_threads_are_put_back(monkeypatch) -> None:
    for before in ("3", None):
        if before is None:
            monkeypatch.delenv("VALUATE_NUM_THREADS")
        else:
            monkeypatch.setenv("VALUATE_NUM_THREADS", before)
        with gradient.threads(1):
            assert gradient.os.environ["VALUATE_NUM_THREADS"] == "1"
        assert gradient.os.environ.get("VALUATE_NUM_THREADS") == before
