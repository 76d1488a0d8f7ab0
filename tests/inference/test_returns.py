"""Returns and importance sampling against loops over episodes, and on average against exact values."""

import numpy as np
import pytest

from valuate import Transitions
from valuate.environments import Garnet
from valuate.errors import InputError, InputTypeError
from valuate.experiments.coverage import aimed, garnet, simulate
from valuate.inference import Standing, baselines, doubly_robust, logged_return, pdis, weighted_is


def random_log(seed=0, episodes=12, weighted=False, terminated=0.6):
    """Episodes of 1 to 8 rows with random rewards, ratios (some 0) and ends; and per-row values of a model."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 9, episodes)
    n, last = int(lengths.sum()), np.cumsum(lengths) - 1
    ended = np.zeros(n, bool)
    ended[last] = rng.random(episodes) < terminated
    cut = np.zeros(n, bool)
    cut[last] = ~ended[last]
    log = Transitions(
        rng.normal(size=(n, 2)),
        rng.normal(size=n),
        rng.normal(size=(n, 2)),
        terminated=ended,
        truncated=cut,
        ratios=rng.choice([0.0, 0.5, 1.0, 2.5], n, p=[0.05, 0.3, 0.35, 0.3]),
        weights=np.repeat(rng.choice([0.5, 1.0, 2.0], episodes), lengths) if weighted else None,
        episodes=np.repeat(np.arange(episodes) + 100, lengths),
    )
    return log, rng.normal(size=n), rng.normal(size=n), rng.normal(size=n)


def by_loops(log, discount, after=None):
    """Of each episode: ratios, rewards (with what follows a cut end), the weight; as lists."""
    out = []
    for label in dict.fromkeys(log.episodes.tolist()):
        rows = np.flatnonzero(log.episodes == label)
        rewards = log.rewards[rows].copy()
        if after is not None and not log.terminated[rows[-1]]:
            rewards[-1] += discount * after[rows[-1]]
        out.append((log.ratios[rows], rewards, 1.0 if log.weights is None else log.weights[rows[0]]))
    return out


def weighted_mean(values, weights):
    values, weights = np.array(values), np.array(weights)
    mean, g = weights @ values / weights.sum(), len(values)
    terms = weights * (values - mean) / weights.sum()
    return mean, np.sqrt(g / (g - 1) * np.sum(terms**2))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bootstrapped", [False, True])
def test_returns_and_pdis_by_loops(weighted, bootstrapped):
    log, _, ahead, _ = random_log(weighted=weighted)
    after = ahead if bootstrapped else None
    plain, decided, weights = [], [], []
    for rho, rewards, weight in by_loops(log, 0.9, after):
        worth = 0.9 ** np.arange(len(rewards))
        plain.append(worth @ rewards)
        decided.append((worth * np.cumprod(rho)) @ rewards)
        weights.append(weight)
    for found, values in ((logged_return(log, 0.9, after=after), plain), (pdis(log, 0.9, after=after), decided)):
        mean, error = weighted_mean(values, weights)
        assert found.value == pytest.approx(mean, rel=1e-12)
        assert found.standard_error == pytest.approx(error, rel=1e-12)
        assert (found.episodes, found.degrees) == (12, 11)


def weighted_per_decision(log, discount, after=None, multipliers=None):
    """The weighted mean at every step, ended episodes kept with their last weight; in plain loops."""
    episodes = by_loops(log, discount, after)
    times = np.ones(len(episodes)) if multipliers is None else multipliers
    total = 0.0
    for t in range(max(len(rewards) for _, rewards, _ in episodes)):
        over = under = 0.0
        for factor, (rho, rewards, weight) in zip(times, episodes, strict=True):
            product = factor * weight * np.prod(rho[: t + 1])
            under += product
            if t < len(rewards):
                over += product * rewards[t]
        total += discount**t * over / under
    return total


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("bootstrapped", [False, True])
def test_weighted_per_decision_by_loops(weighted, bootstrapped):
    log, _, ahead, _ = random_log(weighted=weighted)
    after = ahead if bootstrapped else None
    found = weighted_is(log, 0.9, after=after)
    assert found.value == pytest.approx(weighted_per_decision(log, 0.9, after), rel=1e-12)
    for k in range(12):  # the influence is the derivative by the episode's weight, by complex steps
        moved = np.ones(12, complex)
        moved[k] += 1e-30j
        assert found.influence[k] == pytest.approx(
            weighted_per_decision(log, 0.9, after, moved).imag / 1e-30, rel=1e-9, abs=1e-13
        )
    assert found.standard_error == pytest.approx(np.sqrt(12 / 11 * np.sum(found.influence**2)), rel=1e-12)


def test_weighted_whole_returns():
    log, *_ = random_log()
    values, products = [], []
    for rho, rewards, _ in by_loops(log, 0.9):
        values.append(0.9 ** np.arange(len(rewards)) @ rewards)
        products.append(np.prod(rho))
    mean, error = weighted_mean(values, products)
    found = weighted_is(log, 0.9, per_decision=False)
    assert found.value == pytest.approx(mean, rel=1e-12) and found.standard_error == pytest.approx(error, rel=1e-12)


@pytest.mark.parametrize("actions", [False, True])
def test_doubly_robust_by_loops(actions):
    log, values, ahead, own = random_log()
    expected = []
    for label in dict.fromkeys(log.episodes.tolist()):
        rows = np.flatnonzero(log.episodes == label)
        following = 0.0 if log.terminated[rows[-1]] else ahead[rows[-1]]
        for row in rows[::-1]:
            q = own[row] if actions else values[row]
            following = values[row] + log.ratios[row] * (log.rewards[row] + 0.9 * following - q)
        expected.append(following)
    found = doubly_robust(log, values, ahead, 0.9, action_values=own if actions else None)
    mean, error = weighted_mean(expected, np.ones(12))
    assert found.value == pytest.approx(mean, rel=1e-12) and found.standard_error == pytest.approx(error, rel=1e-12)


def test_discounts_of_their_own_and_episodes_of_one_label():
    log, *_ = random_log()
    rng = np.random.default_rng(1)
    discounts, pairs = rng.random(len(log)), (log.episodes - 100) // 2
    values = []
    for label in range(6):
        total = 0.0
        for part in (100 + 2 * label, 101 + 2 * label):
            rows = np.flatnonzero(log.episodes == part)
            total += np.append(1.0, np.cumprod(discounts[rows[:-1]])) @ log.rewards[rows]
        values.append(total)
    found = logged_return(log, discounts, episodes=pairs)
    assert found.value == pytest.approx(sum(values) / 12, rel=1e-12) and found.episodes == 6


def test_unbiased_for_another_policy():
    """20,000 episodes of a process that ends: all agree with the exact value, and the model takes variance away."""
    process = aimed(garnet(8, 200, ends=0.3), 0.5)
    raw = simulate(process, 20_000, np.random.default_rng(0))
    log = Transitions(
        raw.states,
        raw.rewards,
        raw.next_states,
        terminated=raw.terminated,
        ratios=raw.ratios,
        episodes=raw.episodes,
    )
    v = process.values()
    exact = float(process.start @ v)
    found = baselines(log, 0.9, values=v[log.states], next_values=v[log.next_states])
    assert list(found) == ["logged return", "PDIS", "weighted PDIS", "doubly robust"]
    assert all(number.estimator == name and number.complete for name, number in found.items())
    for name in ("PDIS", "weighted PDIS", "doubly robust"):
        assert abs(found[name].value - exact) < 4 * found[name].standard_error, name
    assert found["doubly robust"].standard_error < 0.95 * found["PDIS"].standard_error
    assert abs(found["logged return"].value - process.start @ process.values(process.behaviour)) < 0.02
    assert not any(number.notes for number in found.values())


def test_the_intervals_cover():
    """200 logs of 50 episodes: PDIS, weighted PDIS and doubly robust cover the exact value about 95 times in 100."""
    process = aimed(garnet(8, 200, ends=0.3), 0.5)
    v, rng, hits = process.values(), np.random.default_rng(0), dict.fromkeys(["PDIS", "weighted PDIS"], 0)
    exact = float(process.start @ v)
    for _ in range(200):
        raw = simulate(process, 50, rng)
        log = Transitions(
            raw.states,
            raw.rewards,
            raw.next_states,
            terminated=raw.terminated,
            ratios=raw.ratios,
            episodes=raw.episodes,
        )
        found = baselines(log, 0.9)
        for name in hits:
            low, high = found[name].interval
            hits[name] += low <= exact <= high
    assert all(0.89 <= count / 200 <= 0.99 for count in hits.values()), hits


def test_what_was_cut_short_is_said():
    log, _, ahead, _ = random_log(terminated=0.0)
    positive = Transitions(
        log.states, np.abs(log.rewards), log.next_states, truncated=log.truncated, episodes=log.episodes
    )
    assert logged_return(positive, 0.9).notes == (
        "12 of 12 episodes were cut short, and what would have followed is left out: a lower bound, for no reward is "
        "negative.",
    )
    assert logged_return(log, 0.9).notes[0].endswith("is left out.")
    assert logged_return(log, 0.9, after=ahead).notes[0].endswith("takes as exact: it is too short where it is not.")
    whole, *_ = random_log(terminated=1.0)
    assert logged_return(whole, 0.9).notes == ()


def test_baselines_are_as_logged():
    log, values, ahead, _ = random_log()
    given = {"values": values, "next_values": ahead}
    found = baselines(log, 0.9, **given)
    assert [number.estimator for number in found.values()] == [
        "logged return", "PDIS", "weighted PDIS", "doubly robust, continued by the model",
    ]  # fmt: skip
    assert [number.value for number in found.values()] == [
        logged_return(log, 0.9).value,
        pdis(log, 0.9).value,
        weighted_is(log, 0.9).value,
        doubly_robust(log, values, ahead, 0.9).value,
    ]
    assert not any(number.complete for number in found.values())
    assert all("is left out" in found[name].notes[0] for name in ("logged return", "PDIS", "weighted PDIS"))
    log = Transitions(log.states, log.rewards, log.next_states, truncated=log.truncated, episodes=log.episodes)
    assert list(baselines(log, 0.9, **given)) == ["logged return"]
    assert logged_return(log, 0.9, after=ahead).estimator == "logged return, continued by the model"
    assert not logged_return(log, 0.9, after=ahead).as_dict()["complete"]


def test_few_effective_episodes_are_a_remark():
    log, *_ = random_log(episodes=30)
    ratios = np.where(log.episodes == 103, 50.0, 0.5)
    for found in (pdis(log, 0.9, ratios=ratios), weighted_is(log, 0.9, ratios=ratios)):
        assert "effective of 30 episodes: a few episodes decide" in found.notes[-1]


def test_refusals():
    log, values, ahead, _ = random_log()
    bare = Transitions(log.states, log.rewards, log.next_states)
    with pytest.raises(InputError, match="which rows are an episode"):
        logged_return(bare)
    with pytest.raises(InputError, match="importance sampling needs ratios"):
        pdis(bare, episodes=log.episodes)
    with pytest.raises(InputTypeError, match="log must be a Transitions, not ndarray"):
        logged_return(log.rewards)
    with pytest.raises(InputError, match="goes on at row"):
        logged_return(log, episodes=np.arange(len(log)) % 2)
    with pytest.raises(InputError, match="every episode has an importance weight of 0"):
        weighted_is(log, ratios=np.zeros(len(log)))
    with pytest.raises(InputError, match="values has 3 entries"):
        doubly_robust(log, [1, 2, 3], ahead)
    with pytest.raises(InputError, match="grow beyond float64"):
        pdis(log, ratios=np.full(len(log), 1e200))
    with pytest.raises(InputError, match="one episode and have different weights"):
        logged_return(
            Transitions(log.states, log.rewards, log.next_states, weights=1 + np.arange(len(log))),
            episodes=log.episodes,
        )
    one = logged_return(log[log.episodes == log.episodes[0]])
    assert one.standing is Standing.UNDETERMINED and one.interval == (-np.inf, np.inf)


def test_a_million_rows_take_no_time():
    import time

    process = Garnet(20, 3, 3, 5, 0.9, seed=1)
    log = process.collect(1_000_000, copies=1000, target=0.9 * process.behaviour + 0.1 * process.random_policy(1))
    start = time.perf_counter()
    baselines(log, 0.9)
    assert time.perf_counter() - start < 5
