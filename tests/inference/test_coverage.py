"""Simulated logs whose exact answer is known: intervals cover it as often as they say."""

import runpy

import numpy as np
import pytest

import pages
from valuate.experiments import coverage
from valuate.experiments.coverage import aimed, altered, coarse, garnet, measure, settings, simulate, weathered

#: 250 logs: 95% is 237, with a standard deviation of 3.4. Four of these to either side: once in 16,000 seeds.
LOGS, BAND = 250, (0.895, 1.0)


def setting(name, episodes):
    return next(given for given in settings() if given.name.startswith(name) and given.episodes == episodes)


@pytest.mark.parametrize(
    ("name", "episodes"),
    [
        ("on-policy", 20),
        ("off-policy", 50),
        ("first states, random lengths, off-policy", 20),
        ("slow", 20),
        ("5 features: the fixed point", 20),
        ("5 features, slow", 50),
    ],
)
def test_intervals_cover(name, episodes):
    found = measure(setting(name, episodes), LOGS)
    assert BAND[0] <= found.coverage <= BAND[1]
    assert found.refused == 0
    # As wide as the estimates scatter, Student's t included.
    assert found.reach / (1.96 * found.spread) == pytest.approx(1.0, abs=0.2)


def test_one_chain_is_covered_by_blocks_and_not_by_rows():
    blocks = measure(setting("one chain of", 1), 60)
    rows = measure(setting("one chain, rows", 1), 60)
    assert blocks.coverage >= 0.85 and rows.coverage < 0.6


def test_rows_taken_for_independent_fail_where_episodes_mix_slowly():
    assert measure(setting("slow, rows", 20), 100).coverage < 0.6


def test_misspecified_features_cover_their_fixed_point_and_not_the_true_value():
    given = setting("5 features: the true value", 200)
    fixed = coverage.Setting("", given.process, 200, "fixed point", given.options)
    assert abs(fixed.truth() - given.truth()) > 0.05
    assert measure(given, 60).coverage < 0.8 < 0.85 < measure(fixed, 60).coverage


def test_the_hidden_weather_leaves_the_values_within_reach():
    for process in (weathered(garnet(20, 40)), weathered(aimed(garnet(20, 40), 0.6))):
        fitted = process.table @ process.fixed_point()
        # The mean of both weathers, and exactly what the visible process is worth.
        mean = process.values().reshape(20, 2).mean(axis=1)
        np.testing.assert_allclose(fitted.reshape(20, 2), np.stack([mean, mean], axis=1), rtol=1e-9)
    target = aimed(garnet(20, 40), 0.6)
    np.testing.assert_allclose(mean, target.values(), rtol=1e-9)
    assert coarse(target).table.shape == (20, 5) and altered(target, limit=7).limit == 7


def test_simulated_episodes_are_whole():
    process = garnet(20, 200, ends=0.03)
    log = simulate(process, 500, np.random.default_rng(0))
    first = np.r_[True, log.episodes[1:] != log.episodes[:-1]]
    last = np.r_[first[1:], True]
    assert first.sum() == 500 and (log.terminated[last] | (np.bincount(log.episodes) == 200)).all()
    assert not log.terminated[~last].any()
    inside = np.flatnonzero(~last)
    assert (log.next_states[inside] == log.states[inside + 1]).all()
    # Lengths are geometric: on average 1 / .03 steps, less what the limit cuts.
    assert np.bincount(log.episodes).mean() == pytest.approx((1 - 0.97**200) / 0.03, rel=0.1)


def test_the_table(capsys):
    coverage.main(["--logs", "4", "--only", "one chain"])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| setting | 1 episode | half width / 1.96 sd |"
    assert lines[2].startswith("| one chain of 4,000 steps, slow, blocks | ")
    assert lines[-1].startswith("4 logs an entry, seed 0, ")
    with pytest.raises(SystemExit):
        coverage.main(["--only", "nothing like it"])
    assert "no setting has 'nothing like it' in its name" in capsys.readouterr().err


def test_the_page_shows_what_the_script_prints(capsys):
    runpy.run_path(str(pages.DOCS / "examples" / "cart_pole_interval.py"), run_name="__main__")
    pages.check(pages.DOCS / "intervals.md", capsys.readouterr().out)
