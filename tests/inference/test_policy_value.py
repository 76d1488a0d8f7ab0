"""What an interval says where the log says little, blocks of one chain, and what is refused."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from valuate import LSTD, TD, Problem, Transitions
from valuate.environments import Garnet
from valuate.episodes import Episodes
from valuate.errors import InputError, InputTypeError, PrecisionWarning
from valuate.features import Fourier
from valuate.inference import PolicyValue, Standing, adjoint, fixed_point, logged_return, policy_value
from valuate.inference.clusters import Clusters, automatic_length, coded


def garnet(episodes=40, steps=30, seed=0, **more):
    process = Garnet(20, 3, 3, 5, 0.9, seed=1)
    process.limit = steps
    return process, process.collect(episodes * steps, copies=episodes, seed=seed, **more)


def fitted(**more):
    process, log = garnet(**more)
    problem = Problem.from_transitions(log, process.features, discount=0.9)
    return process, log, problem, LSTD().solve(problem)


def test_weights_far_from_the_fixed_point_are_corrected():
    _, _, problem, solution = fitted()
    exact = policy_value(problem, solution)
    assert exact.optimisation_error < 1e-9 and exact.notes == ()
    far = policy_value(problem, np.zeros(5))
    assert far.value == pytest.approx(exact.value, rel=1e-9)
    assert far.standard_error == pytest.approx(exact.standard_error, rel=1e-7)
    assert far.optimisation_error == pytest.approx(exact.value, rel=1e-9)
    assert "standard errors away from the fixed point" in far.notes[0]
    rough = policy_value(problem, TD().solve(problem, passes=3))
    assert rough.value == pytest.approx(exact.value, rel=1e-9)


def test_products_correct_the_value_and_say_that_the_error_is_rough(monkeypatch):
    process, log, problem, solution = fitted()
    exact = policy_value(problem, solution, deletion=False)
    monkeypatch.setattr(adjoint, "forms_matrix", lambda problem: False)
    problem = Problem.from_transitions(log, process.features, discount=0.9)
    near = policy_value(problem, solution.theta * 1.002)
    assert near.value == pytest.approx(exact.value, rel=1e-6)
    with pytest.warns(PrecisionWarning, match="not solved"):
        far = policy_value(problem, np.zeros(5))
    assert far.value == pytest.approx(exact.value, rel=1e-6)
    assert far.standing is Standing.UNSOLVED and "after a correction; the standard error" in far.notes[0]
    monkeypatch.setattr(adjoint, "MOST_PRODUCTS", 1)
    with pytest.warns(PrecisionWarning, match="adjoint equations could not be solved"):
        policy_value(problem, solution)


# What the log does not determine.


def test_columns_written_twice_change_nothing():
    process, log, problem, solution = fitted()
    plain = policy_value(problem, solution)
    twice = Problem.from_transitions(log, lambda s: np.hstack([process.features(s), process.features(s)]), discount=0.9)
    found = policy_value(twice, LSTD().solve(twice))
    assert found.standing is Standing.DETERMINED
    assert found.value == pytest.approx(plain.value, rel=1e-8)
    assert found.standard_error == pytest.approx(plain.standard_error, rel=1e-6)
    np.testing.assert_allclose(found.influence, plain.influence, rtol=1e-5, atol=1e-9)
    # A weight of its own for each copy is open; their sum is not.
    with pytest.warns(PrecisionWarning, match="does not determine the value"):
        open_ended = policy_value(twice, LSTD().solve(twice), np.append(process.table[0], np.zeros(5)))
    assert open_ended.standing is Standing.UNDETERMINED


@pytest.mark.parametrize("products", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_states_that_are_only_led_to(products, sparse, monkeypatch):
    """Tabular: two states, and a third where recordings end; its value is anyone's guess."""
    if products:
        monkeypatch.setattr(adjoint, "forms_matrix", lambda problem: False)
    table = sp.csr_array(np.eye(3)) if sparse else np.eye(3)
    rng = np.random.default_rng(0)

    def asked(share):
        n = 400
        states = np.tile([0, 1], n // 2)
        follow = np.tile([1, 0], n // 2)
        follow[rng.choice(n, int(share * n), replace=False)] = 2
        rewards = rng.normal(1.0, 0.3, n)
        problem = Problem.from_table(table, states, rewards, follow, discount=0.8, episodes=np.arange(n) // 10)
        return policy_value(problem, LSTD().solve(problem), [0.5, 0.5, 0.0])

    with pytest.warns(PrecisionWarning, match="states that are only ever led to"):
        found = asked(0.2)
    assert found.standing is Standing.UNDETERMINED
    assert found.interval == (-np.inf, np.inf) and found.standard_error == np.inf
    assert "without bounds: the log does not determine the value" in str(found)
    assert json.loads(json.dumps(found.as_dict()))["interval"] == [None, None]
    assert asked(0.0).standing is Standing.DETERMINED


def test_little_that_is_open_is_a_remark(monkeypatch):
    monkeypatch.setattr(fixed_point, "NEGLIGIBLE", 10.0)
    states, follow = np.tile([0, 1], 200), np.tile([1, 0], 200)
    follow[7] = 2
    rewards = np.random.default_rng(0).normal(1.0, 0.3, 400)
    problem = Problem.from_table(np.eye(3), states, rewards, follow, discount=0.8, episodes=np.arange(400) // 10)
    found = policy_value(problem, LSTD().solve(problem), [0.5, 0.5, 0.0])
    assert found.standing is Standing.DETERMINED and np.isfinite(found.standard_error)
    assert "could move the value by" in found.notes[0]


def test_an_initial_state_with_a_feature_that_no_row_has():
    process, log, problem, solution = fitted()
    wide = Problem.from_transitions(
        log, lambda s: np.hstack([process.features(s), np.zeros((len(s), 1))]), discount=0.9
    )
    with pytest.warns(PrecisionWarning, match="does not determine"):
        policy_value(wide, LSTD().solve(wide), np.ones(6))
    found = policy_value(wide, LSTD().solve(wide))
    assert found.value == pytest.approx(policy_value(problem, solution).value, rel=1e-9)


def test_equations_that_contradict_each_other():
    """A deterministic circle without discount: the values cannot rise by 1 a step for ever."""
    states = np.tile([0, 1], 20)
    problem = Problem.from_table(np.eye(2), states, np.ones(40), 1 - states, discount=1.0, episodes=np.arange(40) // 4)
    with pytest.warns(PrecisionWarning, match="contradict each other"):
        found = policy_value(problem, LSTD().solve(problem))
    assert found.standing is Standing.UNDETERMINED


def test_an_episode_without_which_there_is_no_value():
    states = np.tile([0, 1, 0, 1], 6)
    follow = np.tile([1, 0, 1, 0], 6)
    states[-2:], follow[-3:] = 2, [2, 2, 0]
    rewards = np.random.default_rng(0).normal(1.0, 0.3, 24)
    problem = Problem.from_table(np.eye(3), states, rewards, follow, discount=0.8, episodes=np.arange(24) // 4)
    found = policy_value(problem, LSTD().solve(problem), np.full(3, 1 / 3))
    assert found.notes[0].startswith("Without one of 1 of the 6 episodes")
    assert found.notes[1].startswith("6 episodes are few")


# Draws.


def test_labels_and_their_places():
    labels, codes = coded(np.array(["b", "b", "a", "c", "a"], dtype=object))
    assert labels.tolist() == ["b", "a", "c"] and codes.tolist() == [0, 0, 1, 2, 1]
    labels, codes = coded(np.array([5]))
    assert labels.tolist() == [5] and codes.tolist() == [0]


def test_blocks_are_cut_within_episodes():
    draws = Clusters.of_episodes(Episodes(np.repeat([7, 8, 9], [10, 3, 5])))
    cut = draws.into_blocks(4)
    assert cut.count == 4
    assert np.bincount(cut.codes).tolist() == [5, 5, 3, 5]
    assert draws.into_blocks(1).codes.tolist() == list(range(18))


@pytest.mark.parametrize(("memory", "low", "high"), [(0.0, 1, 30), (0.9, 60, 400), (0.98, 250, 2000)])
def test_blocks_are_as_long_as_the_memory_asks(memory, low, high):
    rng, n = np.random.default_rng(0), 20_000
    shocks, x = rng.normal(size=n), np.empty(n)
    x[0] = shocks[0]
    for t in range(1, n):
        x[t] = memory * x[t - 1] + shocks[t]
    assert low <= automatic_length(x) <= high


def test_one_episode_is_cut_into_blocks():
    process = Garnet(20, 3, 3, 5, 0.9, seed=1)
    log = process.collect(5000, copies=1, seed=0)
    problem = Problem.from_transitions(log, process.features, discount=0.9)
    solution = LSTD().solve(problem)
    found = policy_value(problem, solution, process.table.mean(axis=0))
    assert found.method == "blocks" and found.notes[0] == "The log is one episode."
    assert "blocks of about" in found.notes[1]
    same = policy_value(problem, solution, process.table.mean(axis=0), blocks="auto")
    assert same.standard_error == found.standard_error
    hundred = policy_value(problem, solution, process.table.mean(axis=0), blocks=50)
    assert hundred.episodes == 100 and hundred.standard_error == pytest.approx(found.standard_error, rel=0.3)
    # There is one first state: it is what is meant, and cannot be a sample.
    first = policy_value(problem, solution)
    assert first.source.initial == "given"
    assert first.value == pytest.approx(float(process.features(log.states[:1])[0] @ solution.theta))


def test_blocks_without_labels_are_of_one_chain():
    process, log, _, _ = fitted()
    features = process.features(log.states), process.features(log.next_states)
    problem = Problem.from_arrays(features[0], log.rewards, features[1], discount=0.9)
    solution = LSTD().solve(problem)
    found = policy_value(problem, solution, process.table.mean(axis=0), blocks=30)
    labelled = policy_value(problem, solution, process.table.mean(axis=0), episodes=log.episodes)
    assert found.standard_error == pytest.approx(labelled.standard_error, rel=1e-12)
    assert (found.episodes, found.method) == (40, "blocks")


def test_few_draws_are_a_remark_and_one_no_interval():
    _, _, problem, solution = fitted(episodes=3, steps=200)
    found = policy_value(problem, solution)
    assert found.degrees == 2 and found.notes[-1].startswith("3 episodes are few")
    chain = Problem(problem.rows)
    with pytest.warns(PrecisionWarning, match="One draw says nothing"):
        one = policy_value(chain, solution, np.ones(5), blocks=600)
    assert one.interval == (-np.inf, np.inf)


def test_what_decides_is_said():
    _, log, problem, _ = fitted()
    rewards = log.rewards + 100.0 * (log.episodes == 7)
    heavy = Problem.from_transitions(
        Transitions(log.states, rewards, log.next_states, episodes=log.episodes), lambda s: np.eye(20)[s], discount=0.9
    )
    found = policy_value(heavy, LSTD().solve(heavy))
    assert found.notes == ("One of the 40 episodes (7) makes more than half of the variance: look at it.",)
    ratios = np.where(np.random.default_rng(0).random(len(log)) < 0.03, 30.0, 0.1)
    few = Transitions(log.states, log.rewards, log.next_states, ratios=ratios, episodes=log.episodes)
    uneven = Problem.from_transitions(few, lambda s: np.ones((len(s), 1)), discount=0.9)
    found = policy_value(uneven, LSTD().solve(uneven))
    assert "effective of 1,200 rows: a few rows decide" in found.notes[-1]


def visits(episodes=100, seed=0, ends=0.03):
    """Patients with an age, and a pressure that drifts from visit to visit; few episodes are whole."""
    rng = np.random.default_rng(seed)
    age, start = rng.normal(size=episodes), rng.normal(size=episodes)
    walk = np.cumsum(np.column_stack([start, 0.3 * rng.normal(size=(episodes, 12)) - 0.03]), axis=1)
    states, nexts = (np.stack([np.repeat(age, 12), part.ravel()], 1) for part in (walk[:, :-1], walk[:, 1:]))
    return Transitions(
        states, -np.abs(nexts[:, 1]), nexts, terminated=rng.random(12 * episodes) < ends,
        episodes=np.cumsum(np.append(0, np.arange(1, 12 * episodes) % 12 == 0)),
    )  # fmt: skip


def test_an_interval_wider_than_what_the_log_spans_is_a_remark():
    log = visits(ends=0.1)
    said = {}
    for order in (1, 3, 6, 10):
        problem = Problem.from_transitions(log, Fourier(order, constant=True).fit(log.states), discount=0.99)
        found = policy_value(problem, LSTD().solve(problem))
        largest = np.abs(log.rewards).max() / 0.01
        plain = logged_return(log, 0.99).standard_error
        text = " ".join(found.notes)
        assert ("larger than any discounted return" in text) == (found.standard_error > largest)
        assert ("times that of the returns as logged" in text) == (largest >= found.standard_error > 10 * plain)
        if found.standard_error > 10 * plain:
            assert "The features are too many for these episodes" in text
        said[order] = text
    assert "too many" not in said[1] + said[3] and "as logged" in said[6] and "larger than any" in said[10], said


def test_returns_without_spread_are_no_measure():
    log = visits(ends=0.0)
    log = Transitions(log.states, np.ones(len(log)), log.next_states, episodes=log.episodes)
    problem = Problem.from_transitions(log, Fourier(1, constant=True).fit(log.states), discount=0.99)
    found = policy_value(problem, LSTD().solve(problem))
    assert found.standard_error < 1e-9 and not any("too many" in note for note in found.notes)


# What is refused.


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"episodes": "row"}, "one label a row, or \"rows\", not 'row'"),
        ({"episodes": [1, 2]}, "episodes has 2 entries"),
        ({"episodes": "rows", "initial": np.ones(5), "blocks": 5}, "contradict each other"),
        ({"episodes": "rows"}, "initial must be given"),
        ({"initial": np.ones(4)}, "initial has 4 entries and the problem has 5 features"),
        ({"initial": np.ones((3, 4))}, "initial has 4 columns and 5 are needed"),
        ({"initial": np.ones((2, 5)), "initial_episodes": [0, 99]}, "names episode 99, which the log does not have"),
        ({"initial": np.ones((2, 5)), "initial_episodes": [0, 1], "fixed_initial": True}, "leave fixed_initial out"),
        ({"initial": np.ones((2, 5)), "initial_episodes": [0, 1], "blocks": 10}, "its draws are blocks"),
        ({"initial_episodes": [0, 1]}, "initial is not given"),
        ({"initial": np.ones(5), "fixed_initial": False}, "a sample of one"),
        ({"confidence": 1.0}, "confidence must be below 1"),
        ({"confidence": 95}, "confidence must be finite, at least|confidence must be"),
        ({"blocks": 0}, "blocks must be at least 1"),
        ({"bootstrap": 1}, "bootstrap must be at least 2"),
    ],
)
def test_refusals(given, message):
    _, _, problem, solution = fitted()
    with pytest.raises(InputError, match=message):
        policy_value(problem, solution, **given)


def test_rows_that_nobody_says_how_to_draw():
    process, log, _, _ = fitted()
    problem = Problem.from_arrays(process.features(log.states), log.rewards, process.features(log.next_states))
    with pytest.raises(InputError, match="which rows belong together"):
        policy_value(problem, np.zeros(5))
    with pytest.raises(InputError, match="traces run along episodes"):
        policy_value(problem, LSTD(trace_decay=0.5).solve(with_episodes(problem, log)), np.ones(5), episodes="rows")
    shuffled = np.random.default_rng(0).permutation(log.episodes)
    with pytest.raises(InputError, match="their rows do not lie together"):
        policy_value(problem, np.zeros(5), episodes=shuffled)
    with pytest.raises(InputError, match="one after the other, in time"):
        policy_value(problem, np.zeros(5), np.ones(5), episodes=shuffled, blocks=5)
    with pytest.raises(InputTypeError, match="must be a Problem"):
        policy_value(log, np.zeros(5))


def with_episodes(problem, log):
    return Problem(problem.rows, episodes=Episodes(log.episodes))


def test_the_table_and_the_dict():
    _, _, problem, solution = fitted()
    found = policy_value(problem, solution, confidence=0.9, bootstrap=200)
    text = str(found)
    assert text.splitlines()[0] == "PolicyValue"
    assert "90% interval" in text and "from 40 episodes" in text and "t with 39 degrees" in text
    assert "below 1e-06 standard errors, corrected" in text and "bootstrap" in text
    plain = json.loads(json.dumps(found.as_dict()))
    assert plain["value"] == found.value and plain["interval"] == list(found.interval)
    assert plain["standing"] == "determined" and "influence" not in plain
    assert isinstance(found, PolicyValue)
