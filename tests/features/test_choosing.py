"""What is chosen from a log: as much as its rows and its episodes carry."""

import re

import numpy as np
import pytest

import valuate as va
from valuate.features import ByColumn, Fourier, OneHot, Polynomial, RandomFourier, choose


def patients(seed, count=200):
    """Age and blood pressure, visit by visit; some die, all others are cut short."""
    rng = np.random.default_rng(seed)
    columns = [[] for _ in range(6)]
    for patient in range(count):
        age, pressure, visits = rng.normal(60, 10), rng.normal(140, 15), rng.integers(5, 25)
        for visit in range(visits):
            after = pressure + rng.normal(1 - 3 * (rng.random() < 0.5), 4)
            died = rng.random() < 0.03
            cut = visit == visits - 1 and not died
            row = ((age, pressure), -abs(after - 120) / 10, (age, after), died, cut, patient)
            for column, entry in zip(columns, row, strict=True):
                column.append(entry)
            pressure = after
            if died:
                break
    states, rewards, nexts, died, cut, labels = map(np.array, columns)
    return va.Transitions(states, rewards, nexts, terminated=died, truncated=cut, episodes=labels)


def drawn(rows, width, episodes=None, seed=0, still=0):
    """Random numbers, the first columns the same all through an episode."""
    states = np.random.default_rng(seed).normal(size=(rows, width))
    if still:
        states[:, :still] = states[episodes, :still]
    return va.Transitions(states, states[:, 0], states, episodes=episodes)


class TestEpisodes:
    def test_values_are_no_less_certain_than_with_squares(self):
        logs, found = [patients(seed) for seed in range(25)], {}
        for features in ("auto", "polynomial:2"):
            numbers = [va.LinearValue(features=features).fit(log).policy_value() for log in logs]
            found[features] = np.array([(number.value, number.standard_error) for number in numbers])
        auto, squares = found["auto"], found["polynomial:2"]
        assert np.median(auto[:, 1]) < 1.5 * np.median(squares[:, 1])
        assert auto[:, 0].std() < 1.5 * squares[:, 0].std() and auto[:, 1].max() < 100

    def test_what_stays_the_same_has_one_feature(self):
        map, sentence = choose(patients(0))
        assert re.fullmatch(
            r"Fourier basis of order 9, 9 features: 2,\d+ rows of 200 episodes, 1 number each\. The standardised "
            r"numbers, 1 feature: 1 number that stays the same all through an episode\.",
            sentence,
        )
        (_, moving), (_, still) = map.parts
        assert (moving, still) == ([1], [0]) and [type(part) for part in map.parts_] == [Fourier, Polynomial]

    def test_order_and_labels_of_the_rows_make_no_difference(self):
        log = patients(0)
        names = np.array([f"patient {k}" for k in log.episodes], object)
        named = va.Transitions(log.states, log.rewards, log.next_states, episodes=names)
        mixed = log[np.random.default_rng(0).permutation(len(log))]
        assert choose(named)[1] == choose(mixed)[1] == choose(log)[1]

    @pytest.mark.parametrize(
        ("rows", "episodes", "features"),
        [
            (5_000, None, 99),  # by the rows alone
            (5_000, 5_000, 99),
            (5_000, 250, 48),
            (5_000, 50, 8),  # of 100 rows
            (20_000, 50, 35),  # of 400 rows
            (5_000, 1, 99),  # one chain: nothing is known of episodes
            (5_000, 6, 8),
            (300, 6, 2),  # the numbers themselves, however few
        ],
    )
    def test_features_grow_with_rows_and_episodes(self, rows, episodes, features):
        labels = None if episodes is None else np.arange(rows) * episodes // rows
        map, sentence = choose(drawn(rows, 2, labels))
        assert map.n_features_ == features, sentence
        assert ("episode" in sentence) == (episodes not in (None, 1))

    def test_more_numbers_that_stay_than_episodes_carry(self):
        labels = np.arange(2_000) // 40
        map, sentence = choose(drawn(2_000, 40, labels, still=30))
        assert (
            isinstance(map.parts_[1], RandomFourier) and "Random Fourier features, 2 features: 30 numbers" in sentence
        )
        only = choose(drawn(2_000, 3, labels, still=3))  # nothing moves: there are no others
        assert "stay" not in only[1]


CSV = "id,dose,site,reward\n" + "\n".join(
    f"{k // 10},{(k * 37 % 101) / 7:.3f},{('north', 'south', 'west')[k * k % 7 % 3]},{k % 5}" for k in range(600)
)


class TestTexts:
    @pytest.fixture
    def log(self, tmp_path):
        path = tmp_path / "log.csv"
        path.write_text(CSV)
        return va.read(path, columns={"states": ["dose", "site"], "episodes": "id"})

    def test_numbered_texts_are_categories(self, log):
        assert log.reading.labels["site"] == ("north", "south", "west") and log.states.dtype.kind == "f"
        map, sentence = choose(log)
        assert isinstance(map, ByColumn) and "One feature a category, 3 features: 1 column of texts." in sentence
        (of_numbers, _), (of_texts, columns) = zip(map.parts_, [chosen for _, chosen in map.parts], strict=True)
        assert isinstance(of_numbers, Fourier) and isinstance(of_texts, OneHot) and columns == [1]
        rows = map.transform(np.array([[3.0, 0.0], [3.0, 1.0], [3.0, 2.0]])).toarray()
        np.testing.assert_array_equal(rows[:, -3:], np.eye(3))
        model = va.LinearValue(features="auto", discount=0.9).fit(log)
        assert model.features_note_ == sentence

    def test_one_column_of_texts(self, tmp_path):
        path = tmp_path / "log.csv"
        path.write_text("id,site,reward\n" + "\n".join(f"{k // 10},s{k * 7 % 190},{k % 5}" for k in range(600)))
        log = va.read(path, columns={"states": "site", "episodes": "id"})
        map, sentence = choose(log)
        assert sentence.startswith("One feature a state: 540 rows visit 171 distinct")
