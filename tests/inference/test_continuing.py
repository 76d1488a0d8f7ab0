"""Episodes that go on with a model's values: the model's own error is a part of the interval."""

import numpy as np
import pytest

from valuate import LSTD, Problem, Transitions
from valuate.environments import Garnet
from valuate.experiments.coverage import aimed, garnet, simulate
from valuate.inference import Standing, continued_return, doubly_robust, logged_return, with_model_error

PROCESS = garnet(6, 5)


def indicators(states):
    return np.eye(6)[states]


def log_of(process=PROCESS, episodes=40, seed=0, factors=None):
    """Episodes of five steps, all cut short; each row of an episode counts as often as its factor."""
    raw = simulate(process, episodes, np.random.default_rng(seed))
    return Transitions(
        raw.states, raw.rewards, raw.next_states, terminated=raw.terminated, ratios=raw.ratios, episodes=raw.episodes,
        weights=None if factors is None else factors[raw.episodes],
    )  # fmt: skip


def fitted(log):
    problem = Problem.from_transitions(log, indicators, discount=0.9)
    return problem, LSTD().solve(problem)


def robust(log, exact):
    problem, solution = fitted(log)
    v = solution.theta
    found = doubly_robust(log, v[log.states], v[log.next_states], 0.9)
    return with_model_error(found, log, problem, solution, 0.9, log.ratios) if exact else found


def test_the_influence_is_the_derivative_by_the_weight_of_an_episode():

    def number(factors):
        log = log_of(factors=factors)
        return continued_return(log, *fitted(log), 0.9)

    found = number(np.ones(40))
    assert found.estimator == "logged return, continued by the model" and found.complete
    for k in (0, 7, 39):
        ends = []
        for change in (1e-5, -1e-5):
            factors = np.ones(40)
            factors[k] += change
            ends.append(number(factors).value)
        assert found.influence[k] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)


def test_the_doubly_robust_estimator_has_the_models_error_too():
    log = log_of(aimed(PROCESS, 0.5), episodes=2000)
    exact, plain = (robust(log, kind) for kind in (True, False))
    assert exact.value == pytest.approx(plain.value, rel=1e-12)
    assert exact.standard_error > 1.05 * plain.standard_error
    assert exact.complete and not plain.complete and exact.notes != plain.notes


@pytest.mark.parametrize("off_policy", [False, True])
def test_the_intervals_cover_and_those_that_take_the_model_as_exact_do_not(off_policy):
    process = aimed(PROCESS, 0.5) if off_policy else PROCESS
    truth, hits = float(process.start @ process.values()), np.zeros(2)
    for seed in range(200):
        log = log_of(process, seed=seed, episodes=100)
        problem, solution = fitted(log)
        if off_policy:
            both = [robust(log, exact) for exact in (True, False)]
        else:
            v = solution.theta
            both = [
                continued_return(log, problem, solution, 0.9),
                logged_return(log, 0.9, after=v[log.next_states]),
            ]
        hits += [number.interval[0] <= truth <= number.interval[1] for number in both]
    assert 0.90 <= hits[0] / 200 <= 0.99 and hits[1] / 200 < 0.88, hits / 200


def test_nothing_cut_short_is_the_logged_return():
    process = garnet(6, 200, ends=0.3)
    log = log_of(process)
    found = continued_return(log, *fitted(log), 0.9)
    assert found.estimator == "logged return" and found.as_dict() == logged_return(log, 0.9).as_dict()


def test_a_model_that_is_not_determined_has_no_interval():
    env = Garnet(6, 2, branching=2, seed=1, discount=0.9)
    log = env.collect(200, seed=0, copies=10)
    half = log[np.isin(log.states, np.unique(log.states)[:3])]  # half of the states are only ever led to
    half = Transitions(half.states, half.rewards, half.next_states, episodes=np.arange(len(half)) // 5)
    found = continued_return(half, *fitted(half), 0.9)
    assert found.standing is Standing.UNDETERMINED and found.interval == (-np.inf, np.inf)
    assert "there is no interval" in found.notes[0]
