"""The page on a fit: what it says, how it is drawn, and how it looks in a browser."""

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

import valuate as va
from browser import check, tips
from valuate import environments, inference
from valuate.commands.evaluating import evaluate
from valuate.errors import InputError, InputTypeError
from valuate.estimator import LinearValue
from valuate.features import RBFGrid, Tabular
from valuate.inference import PolicyValue, Standing
from valuate.report import Fitted, fit_errors, fit_page, fit_sections, fit_values, plots


def quadratic(states):
    scaled = states / np.array([0.2, 0.6, 0.1, 0.9])
    pairs = [scaled[:, i] * scaled[:, j] for i in range(4) for j in range(i, 4)]
    return np.column_stack([scaled, *pairs])


@pytest.fixture(scope="module")
def cart_pole():
    log = environments.CartPole(limit=60).collect(2500, seed=0, copies=1)
    return log, LinearValue(features=quadratic, discount=0.95).fit(log)


@pytest.fixture(scope="module")
def walk():
    """19 places, by an iterative solver."""
    log = environments.RandomWalk(19).collect(4000, seed=0, copies=1)
    return log, LinearValue(features=Tabular(19), discount=1.0, fit_intercept=False, solver="gmres").fit(log)


@pytest.fixture(scope="module")
def car():
    env = environments.MountainCar
    log = env().collect(6000, lambda seen: (seen[:, 1] > 0) * 2, seed=0, copies=4)
    return log, LinearValue(features=RBFGrid(env.low, env.high, [7, 7]), ridge=1e-6).fit(log)


@pytest.fixture
def write(tmp_path):
    def page(made, **options):
        log, model = made
        options = {"log": log, "comparisons": inference.baselines(log, model.discount)} | options
        found = va.inspect(log, discount=model.discount)
        return fit_page(model, found, model.policy_value(), tmp_path / "page.html", **options)

    return page


def drawn(svg):
    root = ET.fromstring(svg)
    assert not re.search(r"\b(nan|inf)\b", svg)
    return root


class TestPage:
    def test_the_number_comes_first(self, cart_pole, write):
        log, model = cart_pole
        text = write(cart_pole).read_text()
        value = model.policy_value()
        assert f'<p class="big">{value.value:.2f}</p>' in text
        assert "95% interval <b>{:.2f} to {:.2f}</b>".format(*value.interval) in text
        assert f"from {value.episodes} episodes" in text
        order = [
            text.index(f'id="{name}"') for name in ("value", "verdict", "convergence", "function", "errors", "log")
        ]
        assert order == sorted(order)
        assert "At statistical accuracy" in text and "State values of the policy that wrote the log." in text
        assert "How far that lies from the true value is another thing" in text
        assert "logged return" in text and "Nothing that would make the answer wrong." in text
        assert "2,500 rows of" in text and "discount 0.95" in text and "scikit-learn" in text

    def test_returns_that_the_features_miss(self, cart_pole, walk, tmp_path):
        log, _ = cart_pole
        poor = LinearValue(discount=0.95).fit(log)  # the four numbers themselves: their best fit is nearly flat
        value = poor.policy_value()
        text = fit_page(poor, None, value, tmp_path / "p.html", log=log).read_text()
        after = np.where(log.terminated, 0.0, poor.predict(log.next_states))
        gap = inference.logged_return(log, 0.95, after=after).value - value.value
        assert gap > 1 and f"{gap:.2f} more than this fit says" in text and "features: miss what followed" in text
        other = LinearValue(discount=0.95, policy=lambda seen: np.zeros(len(seen), int), values="action").fit(log)
        text = fit_page(other, None, other.policy_value(), tmp_path / "q.html", log=log).read_text()
        assert "what followed</a>" not in text  # of another policy
        right = fit_page(walk[1], None, walk[1].policy_value(), tmp_path / "r.html", log=walk[0]).read_text()
        assert "features: agree with what followed" in right and "than this fit says" not in right

    def test_beside_it_everywhere_the_same(self, cart_pole, tmp_path):
        log, _ = cart_pole
        asked = {"features": "polynomial:2", "discount": 0.95, "solver": "auto", "ridge": 0.0, "policy": None}
        asked |= {"initial_policy": None, "chain": False, "confidence": 0.95, "seed": 0, "intercept": True}
        found = evaluate(log, **asked, tell=lambda text: None)
        beside = found.as_dict()["beside"]
        assert list(beside) == ["logged return", "logged return, continued by the model"]
        assert beside["logged return"]["value"] == inference.logged_return(log, 0.95).value
        own = (found.value.standard_error, beside["logged return, continued by the model"]["standard_error"])
        assert 0.8 < own[1] / own[0] < 1.25  # they share the model and its error
        assert any(note.startswith("logged return: ") and "left out" in note for note in found.notes)
        text = fit_page(
            found.model, None, found.value, tmp_path / "p.html", log=log, comparisons=found.beside
        ).read_text()
        rows = {row[0]: row[1:] for row in (re.findall("<td.*?>(.*?)</td>", r) for r in text.split("<tr>")) if row}
        for name, number in beside.items():
            found = [float(entry.replace("\u2212", "-")) for entry in rows[name][:4]]
            assert found == pytest.approx([number["value"], number["standard_error"], *number["interval"]], rel=0.01)
        assert "+: continued by the model. Not drawn, because episodes were cut short: logged return." in text
        labels = [label.text for label in drawn(re.search(r"<svg.*?</svg>", text, re.DOTALL)[0]).findall(".//{*}text")]
        assert "logged return +" in labels and "logged return" not in labels

    def test_it_needs_nothing_else(self, cart_pole, write):
        text = write(cart_pole).read_text()
        for outside in ("src=", "<link", "@import", "url(", "http://", "https://"):
            assert outside not in text.replace('xmlns="http://www.w3.org/2000/svg"', "")
        assert len(text) < 600_000

    def test_drawings_are_sound(self, cart_pole, walk, car, write):
        for made in (cart_pole, walk, car):
            for svg in re.findall(r"<svg.*?</svg>", write(made, force=True).read_text(), re.DOTALL):
                root = drawn(svg)
                assert root.get("role") == "img" and root.get("aria-label")

    def test_a_path_is_drawn_beside_the_floor(self, walk, write):
        text = write(walk).read_text()
        assert "statistical floor" in text and 'id="data-convergence"' in text
        assert "Below the floor only the noise" in text

    def test_a_direct_solution_has_no_path(self, cart_pole, write):
        text = write(cart_pole).read_text()
        assert "solved directly" in text and 'id="data-convergence"' not in text

    def test_words_of_others_are_text(self, cart_pole, write):
        text = write(cart_pole, title="A <b>", names=["<x>", "v", "angle", "w"], settings={"file": "<f>"}).read_text()
        assert "A &lt;b&gt;" in text and "&lt;x&gt;" in text and "&lt;f&gt;" in text
        assert "<x>" not in text and "<f>" not in text

    def test_what_the_doctor_found(self, cart_pole, tmp_path):
        log, model = cart_pole
        wrong = va.Transitions(log.states, log.rewards, log.states, terminated=log.terminated, episodes=log.episodes)
        found = va.inspect(wrong)
        text = fit_page(model, found, model.policy_value(), tmp_path / "p.html", log=log).read_text()
        assert "log: 1 thing would make it wrong" in text and "next-equals-state" in text
        assert "Give the observation after each step as the next state" in text

    def test_without_what_is_optional(self, cart_pole, tmp_path):
        _, model = cart_pole
        text = fit_page(model, None, None, tmp_path / "p.html").read_text()
        assert "The log was not looked at" in text and 'class="big"' not in text
        assert "Without the log only the values of its rows are known." in text

    def test_from_parts(self, tmp_path):
        env = environments.BoyanChain()
        log = env.collect(3000, seed=0)
        problem = va.Problem.from_transitions(log, env.features, discount=1.0)
        solution = va.SVRG().solve(problem, passes=40, record=1)
        fit = Fitted(problem, solution, predict=lambda states: env.features(states) @ solution.theta)
        value = inference.policy_value(problem, solution)
        text = fit_page(fit, va.inspect(log, discount=1.0), value, tmp_path / "p.html", log=log).read_text()
        assert "Value of each state" in text and "MSPBE along the run" in text

    def test_values_that_are_not_determined(self, cart_pole, tmp_path):
        _, model = cart_pole
        value = PolicyValue(
            value=1.0, standard_error=np.inf, interval=(-np.inf, np.inf), confidence=0.95, episodes=3, degrees=2.0,
            method="episodes", estimator="fixed point", standing=Standing.UNDETERMINED,
        )  # fmt: skip
        text = fit_page(model, None, value, tmp_path / "p.html").read_text()
        assert '<p class="big">not determined</p>' in text and "nan" not in text

    def test_files_are_kept(self, cart_pole, tmp_path):
        _, model = cart_pole
        target = tmp_path / "p.html"
        target.write_text("mine")
        with pytest.raises(InputError, match=r"p\.html exists. Choose another name, or give force=True"):
            fit_page(model, None, None, target)
        assert target.read_text() == "mine"
        fit_page(model, None, None, target, force=True)
        assert target.read_text().startswith("<!doctype html>") and list(tmp_path.iterdir()) == [target]
        with pytest.raises(InputError, match="cannot be written"):
            fit_page(model, None, None, tmp_path / "no" / "p.html")

    def test_what_does_not_belong_together(self, cart_pole, tmp_path):
        log, model = cart_pole
        with pytest.raises(InputError, match="the log has 10 rows and the fit 2500"):
            fit_page(model, None, None, tmp_path / "p.html", log=log[:10])
        with pytest.raises(InputError, match="not fitted"):
            fit_page(LinearValue(), None, None, tmp_path / "p.html")
        with pytest.raises(InputTypeError, match="must be a fitted LinearValue"):
            fit_page({}, None, None, tmp_path / "p.html")
        rows = LinearValue().partial_fit(log)
        with pytest.raises(InputError, match="not kept by partial_fit"):
            fit_page(rows, None, None, tmp_path / "p.html")


class TestNumbers:
    def test_values_and_errors_are_those_of_the_rows(self, cart_pole):
        log, model = cart_pole
        fit = Fitted.of(model, log)
        np.testing.assert_allclose(fit.values, model.predict(log.states), rtol=1e-9)
        after = np.where(log.terminated, 0.0, model.predict(log.next_states))
        np.testing.assert_allclose(fit.next_values, after, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(fit.errors, log.rewards + 0.95 * after - fit.values, rtol=1e-8, atol=1e-8)
        first = np.flatnonzero(np.append(True, log.episodes[1:] != log.episodes[:-1]))
        assert (np.flatnonzero(fit.positions == 0) == first).all()

    @pytest.mark.parametrize(
        ("value", "error", "text"),
        [
            (12.3988, 0.228, "12.40"),
            (-1234.5, 31.0, "\u22121,234"),
            (14.3588, 159.0, "14"),
            (-20.0, 4.5e-16, "\u221220"),
            (0.5, 0.0, "0.5"),
            (1e-12, 1e-13, "1e\u221212"),
        ],
    )
    def test_as_many_digits_as_the_error_leaves(self, value, error, text):
        given = {"interval": (0.0, 1.0), "confidence": 0.9, "episodes": 9, "degrees": 8.0, "method": "episodes"}
        found = PolicyValue(value=value, standard_error=error, estimator="fixed point", **given)
        assert fit_sections._rounded(value, found) == text

    def test_calibration_is_that_of_the_logged_returns(self, walk):
        log, model = walk
        fit = Fitted.of(model, log)
        svg, caption = fit_errors.calibration(fit)
        returns, after = np.empty(len(log)), 0.0
        for row in reversed(range(len(log))):
            ends = log.terminated[row] or log.truncated[row]
            after = log.rewards[row] + (fit.next_values[row] if ends else after)
            returns[row] = after
        low = fit.values < np.quantile(fit.values, 1 / 15)
        groups = [title.text for title in drawn(svg).findall("{*}g/{*}title")]
        found = re.match(r"value (\S+): discounted return (\S+) \(", groups[0])
        assert [float(x) for x in found.groups()] == pytest.approx(
            [fit.values[low].mean(), returns[low].mean()], rel=0.01
        )
        assert len(groups) >= 10 and "by episode" in caption
        assert fit_errors.calibration(Fitted(fit.problem, fit.solution, log, off_policy=True)) is None
        shuffled = log[np.random.default_rng(0).permutation(len(log))]
        assert fit_errors.calibration(Fitted(fit.problem, fit.solution, shuffled)) is None

    def test_errors_along_an_episode(self, cart_pole):
        log, model = cart_pole
        fit = Fitted.of(model, log)
        svg, _ = fit_errors.by_position(fit)
        title = drawn(svg).find("{*}circle/{*}title").text  # of the first rows
        mean = fit.errors[fit.positions == 0].mean()
        assert title.startswith(f"row of its episode 0: {mean:.3f}")
        assert fit_errors.by_position(Fitted(fit.problem, fit.solution)) is None

    def test_the_largest_errors(self, cart_pole):
        log, model = cart_pole
        fit = Fitted.of(model, log)
        table = fit_errors.largest(fit)
        assert table.columns == ("Row", "Episode", "Step", "Reward", "Value", "Next value", "Error")
        assert table.rows[0][0] == np.abs(fit.errors).argmax() and len(table.rows) == 8
        assert abs(table.rows[0][-1]) == np.abs(fit.errors).max()


class TestValueFunction:
    def titles(self, made, names=None):
        drawings, said = fit_values.drawings(Fitted.of(made[1], made[0]), names)
        return [drawn(svg).find("{*}text").text for svg, _ in drawings], said, drawings

    def test_of_places(self, walk):
        titles, said, drawings = self.titles(walk)
        assert titles == ["Value of each state", "Values of the logged states"]
        heights = [float(bar.get("height")) for bar in drawn(drawings[0][0]).findall("{*}rect")]
        assert len(heights) == 19 and heights == sorted(heights)  # the value grows from left to right

    def test_over_two_numbers(self, car):
        titles, said, drawings = self.titles(car, ["position", "velocity"])
        assert titles == ["Value by position and velocity", "Values of the logged states"]
        cells = [r for r in drawn(drawings[0][0]).findall("{*}g/{*}rect") if r.find("{*}title") is not None]
        assert len(cells) == 32 * 32 and 0 < sum(cell.get("opacity") is not None for cell in cells) < 900

    def test_over_many_numbers(self, cart_pole):
        titles, said, _ = self.titles(cart_pole)
        assert titles[:2] == ["Mean value by state 2 and state 3", "Value by state 2 and state 3: a slice"]
        assert len(titles) == 7 and said.startswith("The value depends on 4 numbers.")

    def test_over_one_number(self, tmp_path):
        rng = np.random.default_rng(0)
        x = rng.uniform(-1, 1, (500, 1))
        model = LinearValue(features=lambda s: np.hstack([s, s**2]), discount=0.5)
        log = va.Transitions(x, x[:, 0] ** 2, np.roll(x, -1, axis=0))
        titles, said, drawings = self.titles((log, model.fit(log)))
        assert titles == ["Value by state", "Values of the logged states"]
        line = np.array([p.split(",") for p in drawn(drawings[0][0]).find("{*}polyline").get("points").split()], float)
        assert len(line) == 200 and line[:, 1].argmax() in range(90, 110)  # least in the middle

    def test_of_labels_and_of_images(self):
        rng = np.random.default_rng(0)
        places = np.array(["left", "middle", "right"])[rng.integers(0, 3, 300)]

        def indicators(labels):
            return (np.asarray(labels)[:, None] == np.array(["left", "middle", "right"])).astype(float)

        log = va.Transitions(places, rng.normal(size=300), np.roll(places, -1))
        problem = va.Problem.from_transitions(log, indicators)
        fit = Fitted(problem, va.LSTD().solve(problem), log)
        drawings, said = fit_values.drawings(fit)
        assert len(drawings) == 2 and said == "States are labels."
        images = rng.integers(0, 255, (60, 9, 9), dtype=np.uint8)
        log = va.Transitions(images, rng.normal(size=60), np.roll(images, -1, axis=0))
        problem = va.Problem.from_transitions(log, lambda x: x.reshape(len(x), -1)[:, :3] / 255)
        drawings, said = fit_values.drawings(Fitted(problem, va.LSTD().solve(problem), log))
        assert len(drawings) == 1 and said == "States have 81 numbers: too many to be drawn."


class TestPlots:
    @pytest.mark.parametrize("ends", [(1.0, 2.0), (-np.inf, np.inf), (1.5, 1.5), (-1e300, 1e300), (1e-300, 2e-300)])
    def test_intervals(self, ends):
        rows = [
            plots.Interval("this <fit>", float(np.clip(1.5, *ends)), *ends, first=True),
            plots.Interval("b", 2.0, 1.0, 3.0),
        ]
        root = drawn(plots.intervals("95% intervals", rows))
        places = [float(line.get(end)) for line in root.iter("{*}line") for end in ("x1", "x2")]
        assert all(0 <= place <= 520 for place in places)
        assert "this <fit>" in "".join(root.itertext())

    def test_intervals_lie_where_they_should(self):
        rows = [plots.Interval("a", 2.0, 1.0, 3.0, first=True), plots.Interval("b", 4.0, 3.0, 5.0)]
        groups = drawn(plots.intervals("t", rows)).findall("{*}g")
        one, other = ([float(g.findall("{*}line")[0].get(end)) for end in ("x1", "x2")] for g in groups)
        assert one[1] == other[0] and one[1] - one[0] == pytest.approx(other[1] - other[0], abs=0.2)
        assert float(groups[0].find("{*}circle").get("cx")) == pytest.approx(sum(one) / 2, abs=0.1)

    @pytest.mark.parametrize("values", [np.zeros(3), np.array([1e-12, 2e-12, 3e-12]), np.array([-1e9, 0.0, 1e9])])
    def test_extremes(self, values):
        edges = np.linspace(values.min() - 1, values.max() + 1, 4)
        ones = np.ones(3)
        drawn(plots.histogram("t", edges, np.array([0.0, 1.0, 1e7]), "x", zero=True))
        drawn(plots.band("t", np.arange(3.0), values, values - 1, values + 1, "x", "y"))
        drawn(plots.cloud("t", values, values, (values, values), "x", "y"))
        drawn(plots.whiskers("t", values, values, values - 1, values + 1, "x", "y"))
        drawn(plots.curve("t", np.arange(3.0), values, "x", "y", (edges, ones)))
        drawn(plots.bars("t", ["a", "b", "c"], values, ["", "", ""], "x", "y"))
        drawn(plots.heat("t", (np.arange(4.0), np.arange(2.0)), np.array([[np.nan, *values[:2]]]), ("x", "y")))


class TestBrowser:
    def test_of_many_numbers(self, browser, cart_pole, write):
        text = check(browser, write(cart_pole, names=["position", "velocity", "angle", "turn"]), drawings=10)
        assert "Value by angle and turn: a slice" in text
        assert "The number" in text and "The largest errors" in text

    def test_of_two_numbers(self, browser, car, write):
        check(browser, write(car), drawings=6)

    def test_of_places_with_a_path(self, browser, walk, write):
        path = write(walk)
        check(browser, path, drawings=7)
        assert [tip.splitlines()[0].startswith("passes ") for tip in tips(browser, path)] == [True]
        assert "statistical floor: " in tips(browser, path)[0]
