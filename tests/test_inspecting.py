"""Every check on a log that has just that illness, and none on logs that have none."""

import io
import json
import re
import runpy
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from scipy import sparse

import valuate as va
from valuate import environments
from valuate.errors import InputError, InputTypeError
from valuate.inspecting import CODES, Finding, Findings, inspect
from valuate.inspecting.survey import common_dtype, equal_entries, survey

LENGTH = 40


def columns(episodes=30, length=LENGTH, seed=0, entries=3):
    """A healthy log: smooth walks from starts far apart, half of them terminated early and at different times."""
    rng = np.random.default_rng(seed)
    lengths = np.where(np.arange(episodes) % 2, length, rng.integers(length // 2, length - 1, episodes))
    walks = [rng.normal(size=entries) + 0.05 * rng.normal(size=(t + 1, entries)).cumsum(axis=0) for t in lengths]
    ends = lengths.cumsum() - 1
    n = int(lengths.sum())
    terminated, truncated = np.zeros((2, n), bool)
    terminated[ends[::2]] = truncated[ends[1::2]] = True
    return {
        "states": np.concatenate([walk[:-1] for walk in walks]),
        "rewards": rng.normal(size=n),
        "next_states": np.concatenate([walk[1:] for walk in walks]),
        "terminated": terminated,
        "truncated": truncated,
        "episodes": np.repeat(np.arange(episodes), lengths),
        "actions": rng.integers(0, 3, n),
    }


def log_of(given):
    return va.Transitions(**given)


def never_ending():
    given = columns()
    return given | {"terminated": None, "truncated": given["terminated"] | given["truncated"]}


def changed(**parts):
    return log_of(columns() | parts)


def codes(log, *, at_least="warning", **options):
    """Codes of what was found, notes left out."""
    found = inspect(log, **options)
    return [one.code for one in found if one.severity == "wrong" or one.severity == at_least]


def only(log, code, severity, message, where=None, **options):
    """That nothing but one thing was found, notes aside, and what it says."""
    found = [one for one in inspect(log, **options) if one.severity != "note" or severity == "note"]
    assert [one.code for one in found if severity != "note" or one.code == code] == [code]
    one = next(one for one in found if one.code == code)
    assert (one.severity, one.code) == (severity, code)
    assert re.search(message, one.message), one.message
    if where is not None:
        assert one.where == where
    assert inspect(log, **options).ok is (severity != "wrong")


def by_episode(change):
    """The columns with `change` applied to the rows of each episode."""
    given = columns()
    out = {name: [] for name in given}
    for k in range(30):
        part = {name: column[given["episodes"] == k] for name, column in given.items()}
        for name, column in change(part).items():
            out[name].append(column)
    return log_of({name: np.concatenate(parts) for name, parts in out.items()})


class TestHealthy:
    def test_nothing_is_found(self):
        found = inspect(log_of(columns()))
        assert found.findings == () and found.ok and found.exit_code == 0
        assert found.facts["rows"] == len(columns()["rewards"]) and found.facts["episodes"] == 30
        assert found.facts["ends"] == {"terminated": 15, "truncated": 15, "without a flag": 0}
        assert found.facts["next state is the following state"] == "100% of rows in mid-episode"
        assert found.facts["states"] == "3 numbers, float64" and found.facts["rows an episode"]["most"] == LENGTH

    @pytest.mark.parametrize("labels", [True, False])
    def test_other_forms_of_the_same(self, labels):
        given = columns()
        if not labels:
            del given["episodes"]
        given["states"], given["next_states"] = (given[name].astype(np.float32) for name in ("states", "next_states"))
        assert codes(log_of(given), at_least="note") == []
        given["next_states"] = given["next_states"].astype(np.float64)  # of another precision
        assert codes(log_of(given), at_least="note") == []
        for name in ("states", "next_states"):
            given[name] = sparse.csr_array(given[name])
        assert codes(log_of(given), at_least="note") == []

    @pytest.mark.parametrize("name", environments.names())
    @pytest.mark.parametrize("rows", [300, 6000])
    def test_no_false_alarm(self, name, rows):
        env = environments.make(name)
        discount = getattr(env, "discount", 0.99)
        for log in (env.collect(rows, seed=1), env.collect(rows, seed=2, copies=7)):
            found = inspect(log, discount=discount)
            assert found.ok, found
            # Baird's star has no rewards; Mountain Car, and Acrobot in few rows, do not arrive.
            silent = np.ptp(log.rewards) == 0.0 and not log.terminated.any()
            assert [one.code for one in found.of("warning")] == ["constant-rewards"] * int(silent), found
            plain = va.Transitions(
                log.states, log.rewards, log.next_states, terminated=log.terminated, truncated=log.truncated
            )
            assert inspect(plain, discount=discount).codes == found.codes

    @pytest.mark.parametrize("name", ["boyan-chain", "garnet", "random-walk"])
    def test_no_false_alarm_with_features(self, name):
        env = environments.make(name)
        found = inspect(env.collect(5000, seed=0), env.features, discount=env.discount)
        assert found.of("warning") == () and found.ok
        assert found.facts["rank of C, of A"] == f"{env.n_features}, {env.n_features} of {env.n_features}"

    def test_a_replay_buffer_is_only_unordered(self):
        log = log_of({k: v for k, v in columns().items() if k != "episodes"})
        found = inspect(log[np.random.default_rng(0).permutation(len(log))])
        assert [(one.severity, one.code) for one in found] == [("note", "unordered")]

    def test_one_row(self):
        assert inspect(va.Transitions([[0.0]], [1.0], [[1.0]])).ok

    def test_it_is_quick(self):
        rng = np.random.default_rng(0)
        path = rng.normal(size=(200_001, 20))
        n = len(path) - 1
        log = va.Transitions(path[:-1].copy(), rng.normal(size=n), path[1:].copy(), truncated=np.arange(n) % 500 == 499)
        began = time.process_time()
        assert inspect(log).ok
        assert time.process_time() - began < 1.0  # .06 s on a quiet core; 5 million rows about 25 times that


class TestAlignment:
    def test_next_equals_state(self):
        log = changed(next_states=columns()["states"])
        only(
            log, "next-equals-state", "wrong", r"is the state of its own row in ([\d,]+) of \1 rows", "row 1, episode 0"
        )

    def test_one_row_early(self):
        log = changed(next_states=np.roll(columns()["next_states"], -1, axis=0))
        only(
            log, "shifted", "wrong", "the next state is the state 2 rows on. They come 1 row early", "row 0, episode 0"
        )

    def test_rows_late(self):
        log = changed(next_states=np.roll(columns()["states"], 1, axis=0))
        only(log, "backwards", "wrong", "or next states come 2 rows late")
        log = changed(next_states=np.roll(columns()["states"], 2, axis=0))
        only(log, "shifted", "wrong", "the next state is the state 2 rows before. They come 3 rows late")

    def test_rolled_once(self):
        log = changed(next_states=np.roll(columns()["next_states"], 1, axis=0))
        only(log, "next-equals-state", "wrong", "every row says that nothing happened")

    def test_without_labels(self):
        given = columns() | {"next_states": np.roll(columns()["next_states"], -1, axis=0)}
        del given["episodes"]
        only(log_of(given), "shifted", "wrong", "They come 1 row early")

    def test_swapped(self):
        given = columns()
        log = changed(states=given["next_states"], next_states=given["states"])
        only(log, "backwards", "wrong", "swapped, rows run backwards")

    def test_side_by_side(self):
        rng = np.random.default_rng(0)
        walks = rng.normal(size=(8, 1, 2)) + 0.05 * rng.normal(size=(8, 101, 2)).cumsum(axis=1)
        states, nexts = (x.transpose(1, 0, 2).reshape(-1, 2) for x in (walks[:, :-1], walks[:, 1:]))
        log = va.Transitions(states, rng.normal(size=800), nexts)
        only(log, "interleaved", "warning", "Rows of 8 recordings alternate", "row 0")

    def test_gaps(self):
        given = columns()
        keep = np.ones(len(given["rewards"]), bool)
        keep[[10, 100, 101]] = False
        log = log_of({name: column[keep] for name, column in given.items()})
        only(log, "misaligned", "warning", r"2 of [\d,]+ rows that do not end an episode", "row 9, episode 0")
        log = log_of({name: column[keep] for name, column in given.items() if name != "episodes"})
        only(log, "unflagged-ends", "note", "lead to another state", "row 9")

    def test_another_scale(self):
        given = columns()
        log = changed(states=(given["states"] - 3.0) / 20.0)
        only(log, "misaligned", "wrong", "of another scale than states: entry 0 has mean")

    def test_nowhere_a_state(self):
        log = log_of(columns())[np.random.default_rng(0).permutation(len(columns()["rewards"]))[:50]]
        given = {name: getattr(log, name) for name in columns() if name != "episodes"}
        only(log_of(given), "misaligned", "warning", "of the next states are nowhere a state")

    def test_out_of_order_within_episodes(self):
        def shuffled(part):
            order = np.random.default_rng(len(part["rewards"])).permutation(len(part["rewards"]))
            ends = {"terminated", "truncated"}
            return {name: column if name in ends else column[order] for name, column in part.items()}

        assert "unordered" in codes(by_episode(shuffled))


class TestEnds:
    def test_flags_one_row_late(self):
        given = columns()
        log = changed(terminated=np.roll(given["terminated"], 1), truncated=np.roll(given["truncated"], 1))
        assert codes(log)[0] == "ends-late"
        assert codes(log) == ["ends-late"]  # and not what follows from it
        found = inspect(log)[0]
        assert (found.severity, found.where) == ("wrong", "row 0, episode 0")
        assert found.message.startswith("30 of 30 flags terminated or truncated stand on the first row")

    def test_the_process_goes_on(self):
        given = columns()
        n = len(given["rewards"])
        log = changed(terminated=np.random.default_rng(0).random(n) < 0.1, truncated=None, episodes=None)
        only(
            log, "goes-on", "wrong", r"the process goes on: their next state is the state of the .*, a usual step away"
        )

    def test_one_observation_too_many_an_episode(self):
        # T + 1 observations an episode, joined without a cut: flags and rewards run ahead of the states.
        rng = np.random.default_rng(0)
        lengths = rng.integers(20, 40, 30)
        walks = [rng.normal(size=3) * 3 + 0.05 * rng.normal(size=(t + 1, 3)).cumsum(axis=0) for t in lengths]
        n = int(lengths.sum())
        seen = np.concatenate(walks)
        ends = np.zeros(n, bool)
        ends[lengths.cumsum() - 1] = True
        log = va.Transitions(
            seen[:n], rng.normal(size=n), seen[1 : n + 1], terminated=ends, episodes=np.repeat(np.arange(30), lengths)
        )
        only(log, "goes-on", "wrong", "After 29 of 29 terminated rows")

    def test_a_reset_after_termination_is_harmless(self):
        given = columns()
        nexts = given["next_states"].copy()
        ends = np.flatnonzero(given["terminated"][:-1])
        nexts[ends] = given["states"][ends + 1]
        assert codes(changed(next_states=nexts), at_least="note") == []

    def test_a_reset_as_the_next_state_of_a_truncated_row(self):
        given = columns()
        nexts = given["next_states"].copy()
        ends = np.flatnonzero(given["truncated"][:-1])
        nexts[ends] = given["states"][ends + 1]
        log = changed(next_states=nexts)
        only(log, "reset-as-next", "wrong", "of 14 truncated rows is the state of the following row, far away")

    def test_a_recording_cut_into_pieces_is_fine(self):
        rng = np.random.default_rng(0)
        path = 0.05 * rng.normal(size=(1001, 3)).cumsum(axis=0)
        cut = np.arange(1000) % 50 == 49
        log = va.Transitions(path[:-1], rng.normal(size=1000), path[1:], truncated=cut, episodes=np.arange(1000) // 50)
        assert inspect(log).codes == ("no-terminated", "horizon")

    def test_where_any_state_follows_on_any_it_is_a_warning(self):
        rng = np.random.default_rng(0)
        path = rng.normal(size=(1001, 3))
        cut = np.arange(1000) % 50 == 49
        log = va.Transitions(path[:-1], rng.normal(size=1000), path[1:], truncated=cut)
        only(log, "reset-as-next", "warning", "Right only if the recording went on")

    def test_padding(self):
        def padded(part):
            return {
                name: np.concatenate([column, part["next_states"][-1:] if "states" in name else column[-1:] * 0])
                for name, column in part.items()
                if name != "episodes"
            } | {"episodes": np.append(part["episodes"], part["episodes"][-1:])}

        log = by_episode(padded)
        assert inspect(log).of("wrong")[0].code == "padding"
        assert "30 episodes have exactly one row after their end" in inspect(log).of("wrong")[0].message

    def test_rows_after_an_end(self):
        log = changed(episodes=columns()["episodes"] // 5)
        only(log, "row-after-end", "warning", "24 rows that ended are followed by a row with the same episode label")

    def test_no_ends(self):
        log = changed(terminated=None, truncated=None)
        only(log, "no-ends", "warning", "The log has 30 episodes, and no row is terminated or truncated")

    def test_no_termination(self):
        log = log_of(never_ending())
        only(log, "no-terminated", "note", "No row is terminated and 30 are truncated")

    def test_ends_without_a_flag(self):
        given = columns()
        only(changed(truncated=None), "unflagged-ends", "note", "14 of 30 episodes end with a row that is neither")
        few = given["terminated"] & (given["episodes"] < 8)
        only(changed(truncated=None, terminated=few), "unflagged-ends", "warning", "25 of 30 episodes")

    def test_both_flags(self):
        given = columns()
        ends = given["terminated"] | given["truncated"]
        log = changed(terminated=ends, truncated=given["truncated"])
        found = inspect(log, truncated=given["truncated"])
        assert {one.code for one in found.of("wrong")} == {"both-flags", "time-limit"}
        assert found.of("wrong")[0].message.startswith("100% of 15 truncated rows are terminated too")
        one = given["truncated"].copy()
        one[given["terminated"].argmax()] = True
        only(log_of(given), "both-flags", "note", "1 row of 16 truncated ones is terminated too", truncated=one)

    def test_a_time_limit_as_termination(self):
        given = columns()
        log = changed(terminated=given["terminated"] | given["truncated"], truncated=None)
        only(log, "time-limit", "wrong", "15 of 30 terminated episodes have exactly the largest length, 40 rows")

    @pytest.mark.parametrize(("limit", "severity"), [(200, "wrong"), (37, "warning")])
    def test_all_of_one_length(self, limit, severity):
        log = environments.MountainCar(limit=limit).collect(limit * 20, seed=0, copies=1)
        log = va.Transitions(
            log.states, log.states[:, 0], log.next_states, terminated=log.truncated, episodes=log.episodes
        )
        only(log, "time-limit", severity, f"All 20 terminated episodes have the same length, {limit} rows")

    @pytest.mark.parametrize("name", ["cart-pole", "acrobot", "random-walk"])
    def test_environments_with_a_limit_as_termination(self, name):
        if name == "cart-pole":
            log = environments.CartPole(limit=30).collect(3000, seed=0, copies=1)
        elif name == "acrobot":
            log = environments.Acrobot(limit=100).collect(10_000, lambda x: (x[:, 4] > 0) * 2, seed=0, copies=4)
        else:
            env = environments.RandomWalk(19)
            env.limit = 20
            log = env.collect(4000, seed=0, copies=1)
        assert inspect(log).ok
        ends = log.terminated | log.truncated
        bad = va.Transitions(log.states, log.rewards, log.next_states, terminated=ends, episodes=log.episodes)
        assert codes(bad) == ["time-limit"]


class TestEpisodes:
    def test_not_contiguous(self):
        log = log_of(columns())
        log = log[np.concatenate([np.arange(5, len(log)), np.arange(5)])]
        assert "not-contiguous" in codes(log)
        found = next(one for one in inspect(log) if one.code == "not-contiguous")
        assert "30 episodes lie in 31 pieces" in found.message and found.where.endswith("episode 0")

    def test_unknown(self):
        path = np.random.default_rng(0).normal(size=(101, 2))
        only(va.Transitions(path[:-1], path[1:, 0], path[1:]), "episodes-unknown", "note", "one endless recording")

    def test_few(self):
        only(log_of(columns(episodes=4)), "few-episodes", "note", "4 episodes")


class TestColumns:
    def test_constant(self):
        given = columns(entries=5)
        for name in ("states", "next_states"):
            given[name][:, [1, 3]] = 7.0
        only(
            log_of(given),
            "constant-columns",
            "warning",
            "2 columns of the states never change: 1, 3",
            "column 1 of states",
        )

    def test_all_constant(self):
        n = len(columns()["rewards"])
        log = changed(states=np.zeros((n, 2)), next_states=np.zeros((n, 2)))
        assert codes(log) == ["constant-columns"] and "All states are equal" in inspect(log)[0].message

    def test_equal(self):
        given = columns(entries=5)
        for name in ("states", "next_states"):
            given[name][:, 4] = given[name][:, 1]
        only(
            log_of(given), "duplicate-columns", "warning", "equal to another in every row: 1 = 4", "column 4 of states"
        )
        given["states"][17, 4] += 1e-9  # nearly, but not
        assert "duplicate-columns" not in codes(log_of(given))

    @pytest.mark.parametrize("code", [-999.0, 9999.0, 1e20])
    def test_missing_codes(self, code):
        given = columns()
        given["states"][[5, 50], 2] = code
        found = inspect(log_of(given))
        assert "missing-code" in [one.code for one in found.of("warning")]
        one = next(one for one in found if one.code == "missing-code")
        assert one.where == "row 5, column 2 of states" and "in 2 rows" in one.message

    def test_a_count_to_999_is_none(self):
        given = columns()
        n = len(given["rewards"])
        counted = np.linspace(0, 999, n).round()
        given["states"][:, 0], given["next_states"][:, 0] = counted, np.append(counted[1:], 999)
        assert "missing-code" not in codes(log_of(given))

    def test_none_in_objects(self):
        states = np.array(["a", "b", None, "c"] * 10, object)
        log = va.Transitions(states, np.arange(40.0), np.roll(states, -1))
        one = next(one for one in inspect(log) if one.code == "missing-code")
        assert one.where == "row 2, column states" and one.message == "10 states hold None or NaN."


class TestRewards:
    def test_constant(self):
        n = len(columns()["rewards"])
        only(changed(rewards=np.zeros(n)), "constant-rewards", "warning", "All rewards are 0")
        log = log_of(never_ending() | {"rewards": np.full(n, -1.0)})
        only(log, "constant-rewards", "warning", "every state has the same value, -100")
        assert codes(changed(rewards=np.ones(n))) == []  # episodes end, at different times

    def test_outliers(self):
        rewards = columns()["rewards"].copy()
        rewards[[40, 90]] = -5000.0, 4000.0
        only(
            changed(rewards=rewards),
            "reward-outliers",
            "warning",
            "2 rewards of size 4e.03 or more",
            "row 40, episode 1",
        )

    def test_what_an_episode_is_won_by_is_none(self):
        given = columns()
        n = len(given["rewards"])
        rewards = 0.01 * given["rewards"]
        rewards[given["terminated"].argmax()] = 100.0
        assert codes(changed(rewards=rewards)) == []
        assert codes(changed(rewards=np.where(np.arange(n) % 100 == 7, 1.0, 0.0))) == []

    def test_missing_code(self):
        rewards = columns()["rewards"].copy()
        rewards[100:200] = -999.0
        only(changed(rewards=rewards), "missing-code", "warning", "The rewards have the number -999 in 100 rows")


class TestRatios:
    def test_healthy_ones(self):
        n = len(columns()["rewards"])
        ratios = np.random.default_rng(0).choice([0.5, 1.5], n)
        assert codes(changed(ratios=ratios, weights=np.arange(1, n + 1)), at_least="note") == []

    def test_few_effective_rows(self):
        n = len(columns()["rewards"])
        ratios = np.where(np.arange(n) % 20 == 0, 20.0, 0.0)
        only(changed(ratios=ratios), "few-effective-rows", "warning", "The importance ratios leave [0-9.]+ of")
        few = np.where(np.arange(n) < 5, n / 5, 0.0)
        found = inspect(changed(ratios=few))
        assert found.of("wrong")[0].message.startswith("The importance ratios leave 5.0 of")
        weights = np.full(n, 1e-3)
        weights[:50] = 1.0
        only(changed(weights=weights), "few-effective-rows", "warning", "The weights leave")

    def test_outlier(self):
        n = len(columns()["rewards"])
        ratios = np.full(n, 0.9)
        ratios[77] = 0.07 * n
        only(changed(ratios=ratios), "ratio-outliers", "warning", "is 7.[0-9]+% of the sum of all", "row 77, episode 2")

    def test_mean(self):
        n = len(columns()["rewards"])
        ratios = np.random.default_rng(0).choice([1.0, 2.0], n)
        only(changed(ratios=ratios), "ratio-mean", "warning", "average 1.5[0-9]+; over rows of the policy")
        only(changed(ratios=np.ones(n)), "ratio-mean", "note", "the log counts as on-policy")

    def test_probabilities(self):
        rng = np.random.default_rng(0)
        given = columns()
        n = len(given["rewards"])
        chances = rng.dirichlet([60, 30, 10], n)
        given["actions"] = (chances.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
        taken = chances[np.arange(n), given["actions"]]
        assert codes(log_of(given | {"probabilities": taken}), at_least="note") == []
        wrong = log_of(given | {"probabilities": chances[:, 2]})
        only(
            wrong, "probabilities", "warning", "do not fit the actions: action 0 was taken [567][0-9.]+ times as often"
        )
        only(log_of(given | {"probabilities": np.ones(n)}), "probabilities", "note", "have probability 1")


class TestCopies:
    def test_a_log_twice(self):
        given = columns()
        twice = {name: np.concatenate([column, column]) for name, column in given.items()}
        twice["episodes"][len(given["rewards"]) :] += 30
        only(log_of(twice), "copies", "warning", r"is the same ([\d,]+) rows 2 times over")

    def test_some_rows(self):
        given = columns()
        rows = np.concatenate([np.arange(len(given["rewards"])), np.arange(200)])
        log = log_of({name: column[rows] for name, column in given.items() if name != "episodes"})
        only(log, "copies", "warning", "200 rows of", f"row {len(given['rewards']):,}")

    def test_episodes_that_meet_go_on_alike(self):
        log = environments.MountainCar().collect(6000, lambda seen: (seen[:, 1] > 0) * 2, seed=0, copies=4)
        assert inspect(log).facts["distinct states"] < 5900  # they meet at the wall, at rest
        assert codes(log) == []
        both = log[np.concatenate([np.arange(6000), np.arange(2000)])]
        found = next(one for one in inspect(both) if one.code == "copies")
        assert found.message.startswith("2,000 rows of 8,000") and found.where == "row 6,000, episode 0"

    def test_few_states_repeat_by_nature(self):
        log = environments.BoyanChain().collect(2000, seed=0)
        assert codes(log, discount=1.0) == []
        states = np.arange(100) % 4
        log = va.Transitions(states, states * 1.0, (states + 1) % 4, terminated=states == 3)  # always the same way
        assert "copies" not in codes(log)


class TestDiscount:
    def test_endless(self):
        log = log_of(never_ending())
        only(log, "endless", "wrong", "The discount is 1 and no row is terminated", discount=1.0)
        assert codes(log_of(columns()), discount=1.0) == []

    def test_horizon(self):
        log = log_of(never_ending())
        only(log, "horizon", "note", "With a discount of 0.999 96.1% of a value lies beyond", discount=0.999)

    def test_discounted_away(self):
        given = columns()
        rewards = np.where(given["terminated"] | given["truncated"], 1.0, 0.0)
        only(changed(rewards=rewards), "discounted-away", "warning", "leaves [0-9e.-]+ of it", discount=0.8)
        assert codes(changed(rewards=rewards)) == []


@dataclass
class Broken:
    error: Exception

    def transform(self, states):
        raise self.error


class TestFeatures:
    def check(self, feature_map, code, severity, message, log=None, **options):
        only(log_of(columns()) if log is None else log, code, severity, message, feature_map=feature_map, **options)

    def test_healthy_ones(self):
        found = inspect(log_of(columns()), lambda x: np.hstack([x, np.ones((len(x), 1))]))
        assert found.findings == ()
        assert found.facts["features"] == "4, dense" and found.facts["rank of C, of A"] == "4, 4 of 4"

    def test_that_fail(self):
        self.check(
            Broken(ValueError("three columns wanted")), "features-fail", "wrong", "ValueError: three columns wanted."
        )
        self.check(lambda x: x / np.zeros(3), "features-fail", "wrong", "NaN or infinity in column 0")

    def test_unused(self):
        self.check(
            lambda x: np.hstack([x, 0 * x]), "unused-features", "note", "3 of 6 features are 0 in all rows: 3, 4, 5"
        )

    def test_multiples(self):
        found = inspect(log_of(columns()), lambda x: np.hstack([x, -2 * x[:, :1]]))
        assert [one.code for one in found] == ["duplicate-features", "rank"]
        assert "1 feature is a multiple of another: 0 and 3" in found[0].message
        assert "C has rank 3 with 4 features in use" in found[1].message
        assert inspect(log_of(columns()), lambda x: np.hstack([x, -2 * x[:, :1]]), ridge=1e-3).ok

    def test_dependent(self):
        self.check(lambda x: np.hstack([x, x.sum(axis=1, keepdims=True)]), "rank", "warning", "C has rank 3 with 4")

    def test_nearly_dependent(self):
        def nearly(x):
            return np.hstack([x, x[:, :1] + 1e-5 * x[:, 1:2] ** 2])

        self.check(nearly, "condition", "note", "C has condition [0-9.]+e.1[01], which costs about 1[01] of 16")
        nearer = lambda x: np.hstack([x, x[:, :1] + 3e-7 * x[:, 1:2] ** 2])  # noqa: E731
        self.check(nearer, "condition", "warning", "C has condition [0-9.]+e.1[34], which costs")

    def test_singular(self):
        log = log_of(never_ending())
        found = inspect(log, lambda x: np.hstack([x, np.ones((len(x), 1))]), discount=1.0)
        assert {one.code for one in found.of("wrong")} == {"endless", "singular"}
        assert "A has rank 3 where C has 4: the equations contradict" in found.of("wrong")[1].message

    def test_indefinite(self):
        star = environments.BairdStar()
        found = inspect(star.collect(2000, seed=0), star.features)
        assert "indefinite" in found.codes and "rank" in found.codes and found.ok

    def test_few_rows(self):
        rng = np.random.default_rng(0)
        waves = rng.normal(size=(3, 300))
        self.check(
            lambda x: np.cos(40 * x @ waves), "few-rows", "warning", "rows for 300 features in use, [0-9.]+ for each"
        )

    def test_many_sparse_features(self):
        def hashed(x):
            places = (np.abs(x[:, 0] * 1e4).astype(np.int64) * 7919) % 6000
            return sparse.csr_array((np.ones(len(x)), places, np.arange(len(x) + 1)), shape=(len(x), 6000))

        found = inspect(log_of(columns()), hashed)
        assert found.facts["features"] == "6,000, sparse" and found.facts["condition of C"].startswith("at least")
        assert "unused-features" in found.codes

    def test_a_sample(self):
        log = environments.CartPole().collect(30_000, seed=0)
        found = inspect(log, lambda x: np.hstack([x, np.ones((len(x), 1))]))
        assert found.facts["features"] == "5, dense, looked at on 20,000 rows"


@dataclass
class Reading:
    columns: dict
    dropped: dict
    notes: tuple
    source: str = "log.csv"
    format: str = "csv"
    truncated: np.ndarray | None = None


class TestReading:
    def test_it_is_shown(self, monkeypatch):
        log = log_of(columns())
        given = columns()
        flags = given["truncated"] | given["terminated"]
        reading = Reading(
            {"states": ("x", "y"), "rewards": "r"}, {"without a next state": 12}, ("A remark.",), truncated=flags
        )
        log._set(**{name: getattr(log, name) for name in log.__slots__} | {"reading": reading})
        found = inspect(log)
        assert found.facts["columns taken"] == "states from x, y; rewards from r"
        assert found.facts["read from"] == "log.csv, csv" and found.facts["rows dropped"] == 12
        assert {"dropped", "reading", "both-flags"} == set(found.codes)
        assert found[0].message == "12 rows were dropped in reading: without a next state."


class TestUnusedColumns:
    def table(self, **more):
        given = columns()
        keys = {"states": "obs", "next_states": "next_obs"}
        table = {keys.get(name, name): value for name, value in given.items() if name not in ("actions", "truncated")}
        rng = np.random.default_rng(3)
        spare = {"room": rng.integers(0, 9, len(table["rewards"])), "note": np.full(len(table["rewards"]), "x")}
        return table | spare | more

    def test_they_are_in_the_table(self):
        found = inspect(va.read(self.table()))
        assert found.facts["columns not used"] == "room, note"
        assert not {"unused-id", "unused-flag"} & set(found.codes)
        many = inspect(va.read(self.table(**{f"c{k}": np.arange(len(columns()["rewards"])) for k in range(50)})))
        assert many.facts["columns not used"].endswith("c36, c37 and 12 more")

    @pytest.mark.parametrize("kind", [int, float, str])
    def test_ids_of_episodes(self, kind):
        table = self.table()
        ids = table.pop("episodes") * 17 % 31
        table["truncated"] = columns()["truncated"]
        table["bed"] = ids.astype(kind)
        found = inspect(va.read(table))
        one = next(one for one in found if one.code == "unused-id")
        assert one.severity == "warning" and one.where == "column bed"
        assert one.message.startswith("The log has no ids of episodes, and 'bed', which was not used, looks like them")
        assert "columns={'episodes': 'bed'}" in one.advice
        assert "unused-id" not in inspect(va.read(table, {"episodes": "bed"})).codes
        assert "unused-id" not in inspect(va.read(table, {"episodes": None})).codes

    def test_no_ids(self):
        n = len(columns()["rewards"])
        for no in (np.arange(n) % 7, np.arange(n) // 3 % 4, np.arange(n), np.arange(n) // 5 / 3, np.zeros(n)):
            table = self.table(bed=no)
            del table["episodes"]
            assert "unused-id" not in inspect(va.read(table)).codes

    @pytest.mark.parametrize("kind", [bool, int, float, str])
    def test_a_flag_of_ends(self, kind, tmp_path):
        import pandas as pd

        table = self.table()
        died = table.pop("terminated")
        died = np.where(died, "yes", "no") if kind is str else died.astype(kind)
        table["died"] = died
        found = inspect(va.read(table))
        one = next(one for one in found if one.code == "unused-flag")
        assert one.severity == "warning" and one.where == "column died"
        assert one.message.startswith("No row is marked as one where the process ended, and 'died', which was not ")
        assert "columns={'terminated': 'died'}" in one.advice
        assert "unused-flag" in inspect(va.read(table | {"terminated": np.zeros(len(died))})).codes
        told = inspect(va.read(table, {"terminated": "died"}))
        assert "unused-flag" not in told.codes and "columns not used" in told.facts
        # Where ids of episodes were not used either, they tell which rows are last ones.
        frame = pd.DataFrame({name: value for name, value in table.items() if np.ndim(value) == 1})
        frame = frame.rename(columns={"episodes": "bed"}).assign(obs_0=columns()["states"][:, 0])
        frame.to_csv(tmp_path / "log.csv", index=False)
        assert {"unused-id", "unused-flag"} <= set(inspect(va.read(tmp_path / "log.csv")).codes)

    def test_no_flag_of_ends(self):
        table = self.table()
        ends = table.pop("terminated")
        for no in (~ends, np.zeros(len(ends)), np.arange(len(ends)) % 2, np.roll(ends, -3), np.where(ends, 2, 0)):
            assert "unused-flag" not in inspect(va.read(table | {"died": no})).codes


class TestFindings:
    def bad(self):
        return inspect(changed(next_states=columns()["states"]), discount=0.9)

    def test_text(self):
        text = str(self.bad())
        assert text.startswith("The log\n  rows ") and "wrong: The next state is the state of its own row" in text
        assert text.endswith("1 thing would make the answer wrong.")

    def test_json(self):
        found = self.bad()
        plain = json.loads(json.dumps(found.as_dict(), allow_nan=False))
        assert plain["ok"] is False and plain["counts"] == {"wrong": 1, "warning": 0, "note": 0}
        assert plain["findings"][0]["code"] == "next-equals-state" and plain["facts"]["episodes"] == 30
        assert found.exit_code == 1

    def test_table(self):
        console = Console(width=100, record=True, file=io.StringIO())
        console.print(self.bad().table())
        text = console.export_text()
        assert "next-equals-state" in text and "1 thing would make the answer wrong." in text

    def test_as_a_list(self):
        one, two = Finding("note", "rank", "One."), Finding("wrong", "shifted", "Two.", "row 3", "Do it.")
        found = Findings((two, one))
        assert list(found) == [two, one] and len(found) == 2 and found[0] is two and found.codes == ("shifted", "rank")
        assert str(two) == "wrong: Two. (row 3) Do it."

    def test_the_function_survives_its_package(self):
        assert va.inspect is inspect and va.Findings is Findings
        assert va.inspect(log_of(columns())).ok

    def test_accepted(self):
        log = changed(terminated=columns()["terminated"] | columns()["truncated"], truncated=None)
        found = inspect(log, accept=["time-limit"])
        assert found.ok and found.codes == ("time-limit",) and found[0].severity == "note"
        with pytest.raises(InputError, match="accept has no code 'limit'. There are: next-equals-state"):
            inspect(log, accept="limit")

    def test_bad_input(self):
        with pytest.raises(InputTypeError, match="log must be a Transitions, not dict"):
            inspect({})
        with pytest.raises(InputError, match="discount must be"):
            inspect(log_of(columns()), discount=1.5)
        with pytest.raises(InputError, match="truncated has 3 entries"):
            inspect(log_of(columns()), truncated=[True, False, True])

    def test_the_page(self, capsys):
        docs = Path(__file__).parent.parent / "docs"
        runpy.run_path(str(docs / "examples" / "inspect_log.py"), run_name="__main__")
        page = (docs / "inspect.md").read_text()
        assert f"```text\n{capsys.readouterr().out}```" in page
        assert re.findall(r"^\| `([a-z-]+)` \| (.+) \|$", page, re.M) == list(CODES.items())

    def test_every_code_is_tested(self):
        text = Path(__file__).read_text()
        assert [code for code in CODES if f'"{code}"' not in text] == []


class TestSurvey:
    @pytest.mark.parametrize(
        "column",
        [
            np.random.default_rng(0).integers(0, 3, (5000, 2)),
            np.random.default_rng(0).integers(0, 3, 5000) == 1,
            np.random.default_rng(0).choice([0.0, 0.5, 1.0, -2.0], (5000, 3)).astype(np.float32),
            np.random.default_rng(0).choice(["left", "right", "up"], 5000),
            np.random.default_rng(0).choice(np.array(["a", 1, None, 2.5], object), (5000, 2)),
            np.random.default_rng(0).integers(0, 2, (500, 6, 5), dtype=np.uint8),
            np.random.default_rng(0).integers(0, 4, 5000).astype("M8[s]"),
            np.random.default_rng(0).integers(0, 2, (5000, 2)) * 1j + 1.0,
        ],
        ids=lambda column: str(column.dtype),
    )
    def test_equal_rows_have_equal_hashes_and_no_others(self, column):
        hashes = survey(column).hashes
        rows = [tuple(np.ravel(row).tolist()) for row in column]
        pairs = set(zip(hashes.tolist(), rows, strict=True))
        assert len(pairs) == len(set(rows)) == len(set(hashes.tolist()))

    def test_sparse_rows_and_minus_zero(self):
        rows = np.random.default_rng(0).choice([0.0, 0.0, 1.0, 2.0], (1000, 4))
        one, other = survey(sparse.csr_array(rows)).hashes, [tuple(row) for row in rows.tolist()]
        assert len(set(zip(one.tolist(), other, strict=True))) == len(set(other))
        assert (survey(np.array([0.0, 1.0])).hashes == survey(np.array([-0.0, 1.0])).hashes).all()

    def test_types(self):
        assert common_dtype(np.zeros(1, np.float32), np.zeros(1)) == np.float32
        assert common_dtype(np.zeros(1, np.uint8), np.zeros(1, bool)) == np.int64
        assert survey(np.array([[1], {}], object)) is None

    def test_entries(self):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(70_003, 4))
        rows[:, 2] = rows[:, 0]
        found = survey(rows, entries=True)
        np.testing.assert_array_equal([found.low, found.high], [rows.min(axis=0), rows.max(axis=0)])
        assert equal_entries(rows, found) == [(0, 2)]
