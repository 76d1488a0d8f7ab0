"""How often intervals cover: many simulated logs of whole episodes, whose exact answer is known.

::

    python -m valuate.experiments.coverage            # the table of docs/intervals.md, some minutes
    python -m valuate.experiments.coverage --logs 200 --only off-policy

Every log is a new draw of the same process. The interval of each comes from the functions that users call.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from valuate import inference
from valuate.environments import Garnet
from valuate.environments._alias import AliasTables
from valuate.environments.tabular import TabularMDP
from valuate.errors import PrecisionWarning
from valuate.problem import Problem
from valuate.solvers import LSTD

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

#: Logs simulated together.
TOGETHER = 50


class Log(NamedTuple):
    """Columns of whole episodes, in order."""

    states: NDArray[np.int64]
    rewards: Vector
    next_states: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    ratios: Vector | None
    episodes: NDArray[np.int64]

    def part(self, first: int, last: int) -> Log:
        """The rows from ``first`` to ``last``."""
        columns: list[Any] = [None if column is None else column[first:last] for column in self]
        return Log(*columns)


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the table.

    Attributes
    ----------
    name : str
    process : TabularMDP
        With its `limit`, its `behaviour` and its `target`.
    episodes : int
        In a log.
    covered : {"true value", "fixed point"}
        What counts as covered. Both are the same where the features can hold the true values.
    options : dict
        Passed to `policy_value`.
    """

    name: str
    process: TabularMDP
    episodes: int
    covered: str = "true value"
    options: tuple[tuple[str, Any], ...] = ()

    def truth(self) -> float:
        """The exact answer: of the mean start state."""
        process = self.process
        if self.covered == "true value":
            return float(process.start @ process.values())
        return float(process.start @ process.table @ process.fixed_point())


class Outcome(NamedTuple):
    """What came out for one setting."""

    setting: Setting
    logs: int
    covered: int
    #: Intervals without bounds: the log did not determine the value.
    refused: int
    #: Mean half width, and the standard deviation of the estimates.
    reach: float
    spread: float
    bias: float
    seconds: float

    @property
    def coverage(self) -> float:
        """The share of the logs, whose value was determined, that was covered."""
        return self.covered / max(1, self.logs - self.refused)


def simulate(process: TabularMDP, count: int, rng: np.random.Generator) -> Log:
    """``count`` whole episodes, each until its end or the time limit."""
    assert process.limit is not None
    acting = AliasTables(process.behaviour)
    target = process.behaviour if process.target is None else process.target
    ratio = np.divide(target, process.behaviour, out=np.zeros_like(target), where=process.behaviour > 0)
    alive, states = np.arange(count), process.reset(count, rng)
    columns: list[tuple[Any, ...]] = []
    for _ in range(process.limit):
        actions = acting.draw(states, rng)
        after, rewards, ended = process.step(states, actions, rng)
        columns.append((states, rewards, after, ended, ratio[states, actions], alive))
        alive, states = alive[~ended], after[~ended]
        if not len(alive):
            break
    merged = [np.concatenate(column) for column in zip(*columns, strict=True)]
    order = np.argsort(merged[5], kind="stable")
    state, reward, after, ended, ratios, episode = (column[order] for column in merged)
    return Log(state, reward, after, ended, None if process.target is None else ratios, episode)


def logs(setting: Setting, count: int, rng: np.random.Generator) -> Iterator[Log]:
    """``count`` independent logs of the setting."""
    for first in range(0, count, TOGETHER):
        some = min(TOGETHER, count - first)
        found = simulate(setting.process, some * setting.episodes, rng)
        edges = np.searchsorted(found.episodes, np.arange(some + 1) * setting.episodes)
        for a, b in zip(edges[:-1], edges[1:], strict=True):
            yield found.part(a, b)


def measure(setting: Setting, count: int, seed: int = 0) -> Outcome:
    """Simulate ``count`` logs and count the intervals that cover."""
    start, truth, process = time.perf_counter(), setting.truth(), setting.process
    values, reaches, covered, refused = [], [], 0, 0
    for log in logs(setting, count, np.random.default_rng(seed)):
        problem = Problem.from_table(
            process.table,
            log.states,
            log.rewards,
            log.next_states,
            discount=process.discount,
            terminated=log.terminated,
            ratios=log.ratios,
            episodes=log.episodes,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrecisionWarning)
            found = inference.policy_value(problem, LSTD().solve(problem), **dict(_asked(setting, log)))
        if not np.isfinite(found.standard_error):
            refused += 1
            continue
        low, high = found.interval
        covered += low <= truth <= high
        values.append(found.value)
        reaches.append((high - low) / 2)
    spread = float(np.std(values)) if values else np.nan
    bias = float(np.mean(values)) - truth if values else np.nan
    reach = float(np.mean(reaches)) if values else np.nan
    return Outcome(setting, count, covered, refused, reach, spread, bias, time.perf_counter() - start)


def _asked(setting: Setting, log: Log) -> Iterator[tuple[str, Any]]:
    for name, value in setting.options:
        if name == "initial" and value == "start":
            yield "initial", setting.process.start @ setting.process.table
        else:
            yield name, value


# What is simulated.


def garnet(states: int, steps: int, *, discount: float = 0.9, seed: int = 1, ends: float = 0.0) -> TabularMDP:
    """A Garnet problem with indicator features, a random behaviour and a time limit.

    With ``ends`` every step ends the process with that chance.
    """
    base = Garnet(states, 3, 3, 5, discount, seed=seed)
    p, after = base.probabilities, np.broadcast_to(base.successors, base.probabilities.shape)
    if ends:
        p = np.concatenate([(1 - ends) * p, np.full((*p.shape[:2], 1), ends)], axis=2)
        after = np.concatenate([after, np.full((*after.shape[:2], 1), states)], axis=2)
    return TabularMDP(
        p, base.rewards, after, discount=discount, limit=steps, behaviour=0.5 * base.random_policy(seed=3) + 0.5 / 3
    )


def aimed(process: TabularMDP, share: float) -> TabularMDP:
    """The same with a target: the behaviour mixed with ``share`` of another random policy."""
    return altered(process, target=(1 - share) * process.behaviour + share * process.random_policy(seed=9))


def coarse(process: TabularMDP, seed: int = 5) -> TabularMDP:
    """The same with 4 random features and a constant, which cannot hold the true values."""
    rng = np.random.default_rng(seed)
    table = rng.random((process.n_states, 5))
    table[:, -1] = 1.0
    return altered(process, table=table)


def weathered(process: TabularMDP, stays: float = 0.97, size: float = 1.0) -> TabularMDP:
    """The same under a weather that no feature sees: rewards are ``size`` more or less, and it seldom changes.

    Its mean is 0 in every state, so that features of the visible states still hold their exact values; but the errors
    of an episode's rows are correlated over some 2 / (1 - stays) steps.
    """
    n, p = process.n_states, process.probabilities
    after = np.broadcast_to(process.successors, p.shape)
    chances = np.array([[stays, 1 - stays], [1 - stays, stays]])
    # State (s, h) is 2 s + h; the end stays the end.
    wide = np.concatenate([np.kron(p, chances[:, None, [h]]) for h in (0, 1)], axis=2)
    led = np.concatenate([np.repeat(np.where(after == n, 2 * n, 2 * after + h), 2, axis=0) for h in (0, 1)], axis=2)
    rewards = np.repeat(np.broadcast_to(process.rewards, p.shape), 2, axis=0)
    rewards = np.concatenate([rewards, rewards], axis=2) + np.tile([size, -size], n)[:, None, None]
    doubled = {
        name: None if policy is None else np.repeat(policy, 2, axis=0)
        for name, policy in (("behaviour", process.behaviour), ("target", process.target))
    }
    return TabularMDP(
        wide,
        rewards,
        led,
        discount=process.discount,
        table=np.repeat(process.table, 2, axis=0),
        start=np.repeat(process.start / 2, 2),
        limit=process.limit,
        **doubled,
    )


def altered(process: TabularMDP, **changes: Any) -> TabularMDP:
    """A copy with other settings."""
    names = ("probabilities", "rewards", "successors", "discount", "table", "start", "limit", "behaviour", "target")
    kept = {name: getattr(process, name) for name in names}
    given = kept | changes
    return TabularMDP(given.pop("probabilities"), given.pop("rewards"), given.pop("successors"), **given)


def settings() -> list[Setting]:
    """The lines of the table, each with the numbers of episodes of its columns."""
    on, ending = garnet(20, 40), garnet(20, 200, ends=0.03)
    off, slow = aimed(on, 0.6), weathered(on)
    target = on.random_policy(seed=9) ** 8
    heavy = altered(on, target=target / target.sum(axis=1, keepdims=True))
    long = altered(slow, limit=4000)
    out: list[Setting] = []

    def add(name: str, process: TabularMDP, sizes: tuple[int, ...] = (20, 50, 200), **more: Any) -> None:
        covered = more.pop("covered", "true value")
        out.extend(Setting(name, process, size, covered, tuple(more.items())) for size in sizes)

    add("on-policy", on, initial="start")
    add(f"off-policy, ratios up to {_most(off):.1f}", off, initial="start")
    add("first states, random lengths", ending)
    add("first states, random lengths, off-policy", aimed(ending, 0.6))
    add("50 states", aimed(garnet(50, 40), 0.6), initial="start")
    add("slow", slow, initial="start")
    add("slow, off-policy", weathered(off), initial="start")
    add("slow, rows taken for independent", slow, initial="start", episodes="rows", deletion=False)
    add("5 features: the fixed point", coarse(off), covered="fixed point", initial="start")
    add("5 features: the true value", coarse(off), initial="start")
    add("5 features, slow: the fixed point", coarse(slow), covered="fixed point", initial="start")
    add(f"ratios up to {_most(heavy):.0f}", heavy, initial="start")
    add(f"ratios up to {_most(heavy):.0f}, first order", heavy, initial="start", deletion=False)
    add("one chain of 4,000 steps, slow, blocks", long, (1,), initial="start")
    add("one chain, rows taken for independent", long, (1,), initial="start", episodes="rows", deletion=False)
    return out


def _most(process: TabularMDP) -> float:
    assert process.target is not None
    return float((process.target / process.behaviour).max())


# The table.


def table(outcomes: list[Outcome]) -> str:
    """As markdown: a line a setting, coverage by the number of episodes."""
    sizes = sorted({outcome.setting.episodes for outcome in outcomes})
    words = ["1 episode" if size == 1 else f"{size:,}" for size in sizes]
    lines = [
        "| setting | " + " | ".join(words) + " | half width / 1.96 sd |",
        "| --- |" + " ---: |" * (len(sizes) + 1),
    ]
    for name in dict.fromkeys(outcome.setting.name for outcome in outcomes):
        own = {outcome.setting.episodes: outcome for outcome in outcomes if outcome.setting.name == name}
        cells = [_cell(own[size]) if size in own else "" for size in sizes]
        most = own[max(own)]
        lines.append(f"| {name} | {' | '.join(cells)} | {most.reach / (1.96 * most.spread):.2f} |")
    return "\n".join(lines)


def _cell(outcome: Outcome) -> str:
    refused = f" ({outcome.refused} without bounds)" if outcome.refused else ""
    return f"{100 * outcome.coverage:.1f}%{refused}"


def main(arguments: list[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m valuate.experiments.coverage", description=__doc__)
    parser.add_argument("--logs", type=int, default=1000, help="simulated logs for each entry")
    parser.add_argument("--only", default="", help="settings whose name contains this")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    chosen = [setting for setting in settings() if asked.only in setting.name]
    if not chosen:
        names = ", ".join(dict.fromkeys(f'"{setting.name}"' for setting in settings()))
        parser.error(f"no setting has {asked.only!r} in its name. There are {names}.")
    start = time.perf_counter()
    given = chosen, repeat(asked.logs), repeat(asked.seed)
    if asked.workers == 1:
        outcomes = list(map(_measured, *given))
    else:
        with ProcessPoolExecutor(asked.workers, mp_context=get_context("spawn")) as pool:
            outcomes = list(pool.map(_measured, *given))
    seconds = time.perf_counter() - start
    sys.stdout.write(f"{table(outcomes)}\n\n{asked.logs:,} logs an entry, seed {asked.seed}, {seconds:.0f} s\n")


def _measured(setting: Setting, logs: int, seed: int) -> Outcome:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # the matrices are small
        return measure(setting, logs, seed)


if __name__ == "__main__":
    main()
