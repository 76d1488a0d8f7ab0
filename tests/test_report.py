import csv
import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from browser import check, tips
from valuate.experiments import published
from valuate.experiments.figure_2 import EXPERIMENT as FIGURE_2
from valuate.experiments.results import Curve, Results, Spread
from valuate.experiments.store import Store
from valuate.experiments.table_2 import EXPERIMENT as TABLE_2
from valuate.experiments.table_3 import EXPERIMENT as TABLE_3
from valuate.report import axes, charts, control, costs, figures, in_short, make_report, page, tables
from valuate.report.about import wall_seconds
from valuate.report.parts import (
    Chart,
    Compared,
    Section,
    Sentence,
    Series,
    Table,
    Verdict,
    compare,
    listed,
    number,
    span,
)


def run(experiment, cell, index, **parts):
    """A record as a worker makes it, with what is given."""
    made = {
        "kind": "run",
        "experiment": experiment,
        "cell": cell,
        "run": index,
        "settings": {"method": {"name": "SVRG", "step_theta": 0.1, "step_omega": 0.1}, "ridge": None},
        "data": {"rows": 20_000, "dim": 3, "terminated": 0, "truncated": 1},
        "result": {"status": "budget spent", "passes": 1.0, "row_visits": 1000, "mspbe": {"start": 1.0, "end": 0.5}},
        "trace": {"passes": [0.0, 1.0], "epoch": [0, 1], "mspbe": [1.0, 0.5]},
        "score": None,
        "seconds": {"data": 0.1, "solve": 0.2, "clock": 0.1, "score": 0.0},
        "versions": {"numpy": "2"},
        "peak_megabytes": 100.0,
        "finished": 3.0,
    }
    return made | parts


def scored(cell, lengths, *, terminated=5, zero=False, status="budget spent", rows=20_000, ridge=None, step=0.1):
    return [
        run(
            "table-3", cell, k,
            score={"mean_length": float(length), "ended": 1.0, "all_zero": zero},
            data={"rows": rows, "dim": 3, "terminated": terminated, "truncated": 1},
            result={"status": status, "passes": 0.25, "row_visits": 10},
            settings={"ridge": ridge, "method": {"name": "SAGA", "step_theta": step}},
        )
        for k, length in enumerate(lengths)
    ]  # fmt: skip


def said(section):
    return "\n".join(f"{sentence.verdict} {sentence.text}" for sentence in section.sentences)


class TestVerdicts:
    @pytest.mark.parametrize(
        ("ours", "paper", "verdict"),
        [
            (Spread(100, 6, 50), Spread(96, 6, 50), Verdict.OVERLAPS),  # 3.5 apart, two standard errors are 2.4
            (Spread(98, 6, 50), Spread(96, 6, 50), Verdict.AGREES),
            (Spread(200, 150, 8), Spread(186, 149, 50), Verdict.AGREES),
            (Spread(328, 75, 50), Spread(246, 75, 50), Verdict.DIFFERS),
            (Spread(300, 75, 50), Spread(246, 75, 50), Verdict.OVERLAPS),
            (Spread(9.4, 0.05, 20), Spread(9, None, 20), Verdict.AGREES),  # rounded away
            (Spread(9.6, 0.0, 20), Spread(9, None, 20), Verdict.DIFFERS),
            (Spread(500, 0.0, 20), Spread(500, None, 20), Verdict.AGREES),
            (Spread(96, None, 1), Spread(96, 6, 50), Verdict.OPEN),
        ],
    )
    def test_the_rule(self, ours, paper, verdict):
        assert compare(ours, paper) is verdict

    def test_equal_things_agree_about_19_times_in_20(self):
        rng = np.random.default_rng(0)
        found = []
        for _ in range(2000):
            a, b = rng.normal(100, 20, 50), rng.normal(100, 20, 50)
            one, other = (Spread(float(x.mean()), float(x.std(ddof=1)), 50) for x in (a, b))
            found.append(compare(one, other, rounding=0.0) is Verdict.AGREES)
        assert 0.935 < np.mean(found) < 0.97

    @pytest.mark.parametrize(("count", "fails"), [(2, 1 / 8), (3, 1 / 13), (8, 1 / 20)])
    def test_with_few_repetitions_as_often_as_the_rule_says(self, count, fails):
        rng = np.random.default_rng(1)
        found = []
        for _ in range(4000):
            a, b = rng.normal(100, 20, count), rng.normal(100, 20, 50)
            one, other = (Spread(float(x.mean()), float(x.std(ddof=1)), len(x)) for x in (a, b))
            found.append(compare(one, other, rounding=0.0) is Verdict.AGREES)
        # Two standard errors in place of the quantile fail one time in 4 with two repetitions, in 6 with three.
        assert abs(1 - np.mean(found) - fails) < 0.012


class TestTable3:
    def test_cells_are_judged_by_their_numbers(self):
        records = scored("acrobot/svrg", [95, 96, 97]) + scored("acrobot/scsg", [300, 301, 302])
        section = control.table_3(Results(records), "table-3")
        entries = {row[0]: row for row in section.tables[0].rows}["Acrobot"]
        by_name = dict(zip(section.tables[0].columns, entries, strict=True))
        assert by_name["SVRG"].verdict is Verdict.AGREES and by_name["SCSG"].verdict is Verdict.DIFFERS
        assert by_name["SVRG"].paper == Spread(96, 6, 50) and by_name["LSTD"] is None
        assert "Verdict.AGREES 1 cell agrees with the paper" in said(section)
        assert "SCSG 301&nbsp;|&nbsp;126" in said(section)

    def test_another_size_is_not_compared(self):
        section = control.table_3(Results(scored("acrobot-large/scsg", [97, 97, 98], rows=50_000)), "table-3")
        assert section.tables[0].rows[0][6].verdict is Verdict.OPEN
        assert "Acrobot, large data 50,000 rows instead of 1,000,000" in said(section)

    def test_sentences_come_from_the_records(self):
        silent = control.table_3(Results(scored("mountain-car/svrg", [100, 200, 500], terminated=0)), "table-3")
        assert "there is no signal" in said(silent) and "none of the 60,000 rows" in said(silent)
        spoke = control.table_3(Results(scored("mountain-car/svrg", [100, 200, 500], terminated=1)), "table-3")
        assert "there is no signal" not in said(spoke)
        still = control.table_3(Results(scored("cart-pole/svrg", [9, 9, 9], zero=True)), "table-3")
        assert "SVRG on Cart Pole (9.0 steps)" in said(still)
        moved = control.table_3(Results(scored("cart-pole/svrg", [9, 9, 9])), "table-3")
        assert "No step was taken" not in said(moved)
        lost = control.table_3(
            Results(scored("acrobot/gtd2", [500, 500, 500], status="diverged", zero=True)), "table-3"
        )
        assert "overflowed in 3 of 3 repetitions, after 0.25 passes" in said(lost)
        assert "No step was taken" not in said(lost)

    @pytest.mark.parametrize(("lengths", "off"), [([330, 331, 332], True), ([246, 247, 248], False)])
    def test_saga_is_explained_only_where_it_is_off(self, lengths, off):
        section = control.table_3(Results(scored("cart-pole/saga", lengths)), "table-3")
        assert ("SAGA is off" in said(section)) is off

    def test_the_step_is_no_cause_where_it_is_1(self):
        records = scored("cart-pole/saga", [330, 331, 332], step=1.0) + scored("acrobot/saga", [330, 331, 332])
        text = said(control.table_3(Results(records), "table-3"))
        assert "SAGA is off on Acrobot (331&nbsp;|&nbsp;101): in the authors' code its update carries" in text
        assert "SAGA is off on Cart Pole (331&nbsp;|&nbsp;246), at a step of 1, where it makes no difference" in text

    @pytest.mark.parametrize(
        ("ridges", "scores", "words"),
        [
            ((1e-7, 1e-3), ([490, 495], [100, 101], [95, 105]), "is the ridge's more than the method's: 492"),
            ((1e-7, 1e-3), ([130, 131], [100, 101], [95, 105]), "The ridge matters little: 130"),
            ((1e-7, 1e-3), ([250, 650], [205, 206], [495, 105]), "by the ridge: 450 &plusmn; 283 at 1e-07, 206"),
            ((1e-6, 1e-3), ([490, 495], [100, 101], [95, 105]), "by the ridge: 492 &plusmn; 4 at 1e-06, 100"),
            ((1e-7, 1e-4), ([490, 495], [100, 101], [95, 105]), "by the ridge: 492 &plusmn; 4 at 1e-07, 100"),
            ((1e-7, 1e-3), ([490], [100], [95]), "by the ridge: 490 at 1e-07, 100 at 1e-05 and 95 at 0.001."),
        ],
    )
    def test_the_ridge(self, ridges, scores, words):
        low, own, high = scores
        records = scored("acrobot/lstd", own)
        for ridge, lengths in zip(ridges, (low, high), strict=True):
            records += scored(f"acrobot/lstd-{ridge:g}", lengths, ridge=ridge)
        text = said(control.table_3(Results(records), "table-3"))
        assert words in text
        assert ("more than the method's" in text or "matters little" in text) == ("by the ridge" not in words)


class TestFigures:
    def test_flat_lines_and_the_gap(self):
        def pass_of(name, mspbe, step=1e-3):
            method = {"name": "x", "step_theta": step, "step_omega": step}
            trace = {"passes": [0.0, 0.5, 1.0], "epoch": [0, 1, 2], "mspbe": mspbe}
            result = {"mspbe": {"start": mspbe[0], "end": mspbe[-1]}, "status": "budget spent", "passes": 1.0}
            return run("figure-2", name, 0, trace=trace, result=result, settings={"method": method})

        lines = {
            "svrg": [1.0, 1.0, 1.0],
            "saga": [1.0, 0.9, 0.8],
            "gtd2": [1.0, 0.5, 0.3],
            "gtd2-best": [1.0, 0.001, 0.004],
            "scsg": [1.0, 0.002, 0.003],
            "batching-svrg": [1.0, 0.5, 0.4],
        }
        section = figures.figure_2(Results([pass_of(name, line) for name, line in lines.items()]))
        text = said(section)
        assert "Verdict.AGREES SVRG does not move" in text and "Verdict.DIFFERS SAGA moves" in text
        assert "Verdict.AGREES SCSG ends at 0.00300" in text and "Verdict.DIFFERS Batching SVRG ends" in text
        assert "All runs are on one data set of one process: bands show" in section.note
        assert "one of GTD2's step size" in text and "ahead of SCSG up to 1 of the pass" in text

    @pytest.mark.parametrize(("end", "verdict"), [(0.5, "AGREES"), (0.52, "DIFFERS")])
    def test_level_after_as_many_epochs(self, end, verdict):
        def done(name, passes, mspbe):
            result = {"status": "budget spent", "passes": passes, "mspbe": {"start": 1.0, "end": mspbe}}
            return run("figure-1", f"acrobot/{name}", 0, result=result)

        section = figures.figure_1(Results([done("svrg", 100.0, 0.5), done("batching-svrg", 70.5, end)]))
        assert f"Verdict.{verdict} Batching SVRG" in said(section) and "Acrobot 50%" in said(section)
        assert [chart.title for chart in section.charts] == ["Acrobot, along epochs", "Acrobot, along passes"]
        assert "All runs of a task are on one data set: bands show the methods' own chance" in section.note
        assert "All runs of a task are on one data set: &plusmn; is the methods' own chance" in section.tables[0].note
        assert "--seed" in section.note and "--seed" in section.tables[0].note

    def test_settings_beyond_which_the_grid_does_not_go_are_not_judged(self):
        def tried(cell, theta, end, status="budget spent"):
            settings = {"method": {"name": "GTD2", "step_theta": theta, "step_omega": 10.0}}
            result = {"status": status, "passes": 1.0, "mspbe": {"start": 1.0, "end": end}}
            return run("figure-1-grid", cell, 0, settings=settings, result=result)

        inner, corner = "validation/acrobot/gtd2/1/10/0n", "validation/acrobot/gtd2/10/10/0n"
        best = tried("best/acrobot/gtd2", 1.0, 0.1)
        beyond = [tried(inner, 1.0, 0.1), tried(corner, 10.0, 0.5, "diverged")]
        assert "1 of the 1 chosen settings that the grid goes beyond" in said(figures.grid(Results([*beyond, best])))
        best = tried("best/acrobot/gtd2", 10.0, 0.1)
        assert "edge of stability" not in said(figures.grid(Results([tried(corner, 10.0, 0.1), best])))

    def test_passes(self):
        def counted(cell, passes):
            return run("table-2", cell, 0, result={"passes": passes})

        right = [counted(f"{task}/{name}", n) for task, row in published.PASSES.items() for name, n in row.items()]
        section = costs.table_2(Results(right))
        assert said(section) == "Verdict.AGREES Every number of passes is the paper's."
        assert "in the runs of Figure 1" not in section.lead
        few = said(costs.table_2(Results(right[:3])))
        assert few == "None 3 of the 8 numbers of passes are there; of these, 3 are the paper's."
        assert "None 1 of the 8 numbers of passes is there" in said(costs.table_2(Results(right[:1])))
        wrong = said(costs.table_2(Results([*right[:-1], counted("acrobot/batching-svrg", 71.6)])))
        assert wrong == "Verdict.DIFFERS Passes differ for Batching SVRG on Acrobot (71.60, not 71)."

    def test_cost_where_the_theory_refuses(self):
        records = [
            run("table-1", "acrobot/theory", 0, constants={"refused": "A is singular."}, result=None),
            run("table-1", "acrobot/svrg", 0, trace={"passes": [0, 5], "mspbe": [1, 0.2], "distance": [1.0, 0.9]}),
        ]
        section = costs.table_1(Results(records))
        assert "A is singular." in said(section)
        row = dict(zip(section.tables[0].columns, section.tables[0].rows[0], strict=True))
        assert row["Measured, MSPBE to 0.5"] == 5.0 and row["Measured, MSPBE to 0.1"] == "not in 5"


def wave(count=300):
    x = np.linspace(0, 10, count)
    y = 1e-3 * np.exp(-x)
    return Chart("c", "A & B", "passes", "MSPBE", [Series("svrg", "SVRG <1>", Curve(x, y, 0.9 * y, 1.2 * y))])


class TestCharts:
    def test_the_drawing_is_sound(self):
        root = ET.fromstring(charts.svg(wave(), standalone=True))
        line = root.find("{*}polyline").get("points").split()
        assert 200 < len(line) <= charts.MOST_POINTS
        points = np.array([point.split(",") for point in line], float)
        assert (np.diff(points[:, 0]) > 0).all() and (np.diff(points[:, 1]) > 0).all()  # down is a larger y
        fit = np.polyval(np.polyfit(*points.T, 1), points[:, 0])
        np.testing.assert_allclose(points[:, 1], fit, atol=0.2)  # an exponential is straight
        assert "A & B" in "".join(root.itertext()) and "SVRG <1>" in "".join(root.itertext())

    def test_its_points_for_the_page(self):
        found = json.loads(charts.data(wave(50)))
        assert found["x"] == "passes" and len(found["lines"][0]["x"]) == 50
        assert found["lines"][0]["mean"][0] == 1e-3

    @pytest.mark.parametrize("mean", [[1.0, 1.0], [1.0, 1e-30], [1.0, 1e300], [2.0, 0.0], [0.5, 0.45]])
    def test_extremes(self, mean):
        line = Curve(np.array([0.0, 1.0]), *(np.array(mean),) * 3)
        drawn = charts.svg(Chart("c", "t", "x", "y", [Series("svrg", "a", line)]), standalone=False)
        ET.fromstring(drawn)
        assert "nan" not in drawn and "inf" not in drawn
        values = re.findall(r'(?:x|y|x1|x2|y1|y2)="(-?[\d.]+)"', drawn)
        assert all(-50 <= float(value) <= charts.WIDTH + 50 for value in values)

    def test_ticks(self):
        for low, high in ((1e-8, 1.0), (0.3, 0.5), (0.03, 0.2), (1e-3, 1.0)):
            ticks = axes.Scale(low, high, 0, 1, log=True).ticks()
            assert 2 <= len(ticks) <= 9 and all(low * 0.999 <= tick <= high * 1.001 for tick in ticks)
        assert axes.Scale(0, 50, 0, 1, log=False).ticks() == [0, 10, 20, 30, 40, 50]


TABLE = Table(
    "t", "T", ("Task", "SVRG", "n"),
    [["A <b>", Compared(Spread(9.4, 0.1, 20), Spread(9, None, 20), Verdict.AGREES), 7], ["C", None, 1e-9]],
)  # fmt: skip


class TestFiles:
    def test_tables_as_csv(self):
        rows = list(csv.DictReader(tables.table_csv(TABLE).splitlines()))
        assert rows[0] == {
            "Task": "A <b>", "SVRG mean": "9.4", "SVRG sd": "0.1", "SVRG runs": "20", "SVRG paper mean": "9",
            "SVRG paper sd": "", "SVRG verdict": "agrees", "n": "7",
        }  # fmt: skip
        assert rows[1]["SVRG mean"] == "" and rows[1]["n"] == "1e-09"

    def test_charts_as_csv(self):
        rows = list(csv.reader(tables.chart_csv(wave()).splitlines()))
        assert rows[0] == ["line", "passes", "mean", "least", "most"] and len(rows) == 301

    def test_the_page_and_the_summary(self):
        parts = [
            Section("one", "One: more", "lead", [Sentence("it is so", Verdict.AGREES)], [wave()], [TABLE]),
            Section("two", "Two", sentences=[Sentence("it is not", Verdict.DIFFERS), Sentence("because")]),
            Section("three", "Three", charts=[wave()], note="under it"),
        ]
        found = page.html("Title", "lead", ["careful"], parts)
        for words in (
            "What reproduces",
            "What does not",
            "Why, and what else",
            "A &lt;b&gt;",
            "careful",
            "&#10003; agrees",
            '<p class="note">under it</p>',
        ):
            assert words in found
        assert "1</b><span>numbers agree" in found
        for outside in ("src=", "<link", "@import", "url("):
            assert outside not in found
        assert json.loads(re.search(r'id="data-c">(.*?)</script>', found)[1])["lines"]
        text = page.markdown("Title", "lead", ["careful"], parts)
        assert "- **agrees**: it is so" in text and "| A <b> | 9 ± 0; paper 9; ✓ agrees | 7 |" in text
        assert "(charts/c.svg)\n\nunder it" in text

    @pytest.mark.parametrize(
        ("value", "text"), [(0.03141, "0.0314"), (2.94e-5, "2.94e-5"), (0, "0"), (123456.7, "123,457"), (5, "5.00")]
    )
    def test_numbers(self, value, text):
        assert number(value) == text

    def test_words(self):
        assert (listed([]), listed(["a"]), listed(["a", "b", "c"])) == ("none", "a", "a, b and c")
        assert (span(5.04), span(600), span(1e9)) == ("5.0 seconds", "10 minutes", "32 years")


@pytest.fixture
def folder(tmp_path):
    """A reproduction that is not complete, with a run that failed and a record that was cut short."""
    experiments = {made.name: made.cells("smoke", 2) for made in (TABLE_2, TABLE_3, FIGURE_2)}
    machine = {"cpu": "a cpu", "cores": 2, "memory_gigabytes": 8, "system": "a system", "python": "3"}
    with Store.write(tmp_path / "f", "smoke", 7, experiments) as store:
        store.append({"kind": "session", "began": 1.0, "jobs": 2, "machine": machine})
        for index in range(2):
            store.append(run("table-2", "acrobot/svrg", index))
        store.append({"kind": "failed", "experiment": "figure-2", "cell": "scsg", "run": 1, "reason": "lightning"})
        store.append({"kind": "timing", "authors_way": {"3": 0.5}})
        store.append({"kind": "session", "began": 103.0, "jobs": 1, "machine": machine})
        for record in scored("acrobot/svrg", [95, 97]):
            store.append(record | {"finished": 105.0})
    with (tmp_path / "f" / "runs.jsonl").open("ab") as file:
        file.write(b'{"kind"')
    return tmp_path / "f"


class TestBrowser:
    def test_the_page(self, browser, folder):
        experiments = {made.name: made.cells("smoke", 2) for made in (TABLE_2, TABLE_3, FIGURE_2)}
        with Store.write(folder, "smoke", 7, experiments) as store:
            for name in ("gtd2", "scsg"):
                result = {"status": "budget spent", "mspbe": {"start": 1.0, "end": 0.5}, "passes": 1.0, "row_visits": 9}
                passes = np.linspace(0, 1, 30)
                trace = {"passes": passes.tolist(), "epoch": [0] * 30, "mspbe": np.exp(-passes).tolist()}
                store.append(run("figure-2", name, 0, result=result, trace=trace))
        page = make_report(folder)
        assert "Figure 2" in check(browser, page, drawings=1)
        assert tips(browser, page)[0].startswith("passes ")


class TestReport:
    def test_what_there_is_and_what_is_missing(self, folder):
        written = make_report(folder)
        text = written.read_text()
        assert "figure-2 scsg 1 failed: lightning" in text and "cut short" in text
        assert "table-3: 2 of" in text and "root seed 7" in text and "a cpu, 2 cores" in text
        assert "smoke scale" in text and "numpy 2" in text
        assert "1 of 8 runs are finished. What follows is said of these" in text
        assert "Every number of passes" not in text and 'class="agrees"' not in text
        assert (folder / "tables" / "table-3.csv").is_file() and (folder / "summary.md").is_file()

    def test_the_time_of_the_authors_way(self, folder):
        make_report(folder)
        rows = {
            row["Experiment"]: row for row in csv.DictReader((folder / "tables" / "time.csv").read_text().splitlines())
        }
        assert rows["table-2"]["Row visits"] == "2000"
        assert rows["table-2"]["Solving, the authors' way"] == span(2000 * 0.5)

    def test_times_are_called_what_they_are(self, folder):
        summary = make_report(folder).with_name("summary.md").read_text()
        assert "Times are those on the clock, added up over processes that ran at the same time" in summary
        assert "of one core each" not in summary
        assert in_short(folder).startswith("Solving took 0.40 seconds on the clock, added up over processes")

    def test_runs_that_compute_constants_only_are_told_apart(self, folder):
        with Store.write(folder, "smoke", 7, {}) as store:
            store.append(run("table-1", "acrobot/theory", 0, result=None, constants={"refused": "so"}))
        summary = make_report(folder).with_name("summary.md").read_text()
        assert "Scale smoke, 5 runs" in summary and "| all | 4 |" in summary
        assert "Runs that solve; left out: 1 that compute the theory's constants." in summary

    def test_sessions_that_were_killed_count_to_their_last_record(self, folder):
        assert wall_seconds(Store.read(folder)) == 2.0 + 2.0

    def test_made_again_it_is_the_same_but_for_the_hour(self, folder):
        first, again = (make_report(folder).read_text() for _ in range(2))
        assert re.sub(r"written [^<]*", "", first) == re.sub(r"written [^<]*", "", again)
