"""Differences of two values: paired by episode on one log, added up over two."""

import numpy as np
import pytest

from valuate import LSTD, Problem
from valuate.environments import Garnet
from valuate.errors import InputError, InputTypeError, PrecisionWarning
from valuate.inference import Standing, compare, logged_return, policy_value


def process_and_log(seed=0, **more):
    process = Garnet(20, 3, 3, 5, 0.9, seed=1)
    process.limit = 30
    return process, process.collect(1200, copies=40, seed=seed, **more)


def valued(process, log, ratios=None, initial=None, discount=0.9, **more):
    problem = Problem.from_table(
        np.eye(20),
        log.states,
        log.rewards,
        log.next_states,
        discount=discount,
        ratios=ratios,
        episodes=log.episodes,
    )
    return policy_value(problem, LSTD().solve(problem), initial, **more)


def policies(process, log):
    target = 0.7 * process.behaviour + 0.3 * process.random_policy(seed=4)
    return (target / process.behaviour)[log.states, log.actions]


def test_what_both_share_cancels():
    process, log = process_and_log()
    one, other = valued(process, log, policies(process, log)), valued(process, log)
    found = compare(one, other)
    gap = one.deviations - other.deviations
    assert found.value == one.value - other.value
    assert found.standard_error == pytest.approx(np.sqrt(gap @ gap), rel=1e-12)
    assert found.standard_error < 0.7 * np.hypot(one.standard_error, other.standard_error)
    assert (found.paired, found.episodes, found.degrees, found.method) == (True, 40, 39, "episodes")
    assert "paired by 40 episodes" in str(found)
    same = compare(one, one)
    assert same.value == 0.0 and same.standard_error == 0.0 and same.interval == (0.0, 0.0)
    wider = compare(one, other, confidence=0.99)
    assert wider.interval[1] > found.interval[1] and wider.as_dict()["paired"] is True


def test_a_fitted_value_against_the_logged_return():
    process, log = process_and_log()
    one = valued(process, log)
    found = compare(one, logged_return(log, 0.9))
    assert found.paired and found.standard_error < one.standard_error


def test_the_difference_covers():
    """200 logs: the interval of the difference between two policies covers the exact one in 93 to 97 of a hundred."""
    process, _ = process_and_log()
    target = 0.7 * process.behaviour + 0.3 * process.random_policy(seed=4)
    exact = float(process.start @ (process.values(target) - process.values()))
    hits = 0
    for seed in range(200):
        _, log = process_and_log(seed=seed)
        low, high = compare(valued(process, log, policies(process, log)), valued(process, log)).interval
        hits += low <= exact <= high
    assert 0.90 <= hits / 200 <= 0.99


def test_independent_logs_add_up():
    process, log = process_and_log()
    _, second = process_and_log(seed=1)
    one, other = valued(process, log), valued(process, second)
    with pytest.raises(InputError, match="from different logs"):
        compare(one, other)
    found = compare(one, other, independent=True)
    assert found.standard_error == pytest.approx(np.hypot(one.standard_error, other.standard_error))
    assert not found.paired and found.episodes == 80 and 39 < found.degrees < 78
    with pytest.raises(InputError, match="from the same log"):
        compare(one, one, independent=True)


def test_nonsense_is_refused():
    process, log = process_and_log()
    one = valued(process, log)
    for other, message in (
        (valued(process, log, discount=0.8), "discounts are 0.9 and 0.8"),
        (valued(process, log, initial=np.full(20, 0.05)), "initial states are"),
        (valued(process, log, confidence=0.9), "say which one is wanted"),
        (valued(process, log, blocks=10), "its draws are 40 episodes for one and 120 blocks"),
    ):
        with pytest.raises(InputError, match=message):
            compare(one, other)
    with pytest.raises(InputTypeError, match="second must be a PolicyValue, not float"):
        compare(one, 1.0)
    with pytest.warns(PrecisionWarning):
        unknown = valued(process, log[:30], initial=np.ones(20))
    assert unknown.standing is Standing.UNDETERMINED
    found = compare(unknown, unknown)
    assert found.standing is Standing.UNDETERMINED and found.interval == (-np.inf, np.inf)
