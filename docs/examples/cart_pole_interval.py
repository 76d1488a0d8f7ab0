"""The tables of docs/intervals.md: what an interval covers on Cart Pole, and what it does not."""

import numpy as np

import valuate as va
from valuate import inference
from valuate.environments import CartPole
from valuate.features.polynomial import Polynomial

DISCOUNT, LIMIT = 0.99, 200


def policy(states):
    """Push towards where the pole falls, three times in four."""
    falls_right = states[:, 2] + 0.3 * states[:, 3] > 0
    right = np.where(falls_right, 0.75, 0.25)
    return np.stack([1 - right, right], axis=1)


def whole_episodes(count, seed):
    """A log of ``count`` episodes, each until its end or the time limit: the first of each of so many copies."""
    log = CartPole(LIMIT).collect(count * LIMIT, policy, copies=count, seed=seed)
    return log[np.isin(log.episodes, log.episodes[::LIMIT])]


def simulated_truth(count, rng, steps=1500):
    """Discounted returns of ``count`` episodes without a time limit: their mean and its standard error."""
    process = CartPole(limit=None)
    states, worth = process.reset(count, rng), 1.0
    alive, returns = np.arange(count), np.zeros(count)
    for _ in range(steps):
        actions = (rng.random(len(states)) < policy(states)[:, 1]).astype(int)
        states, rewards, ended = process.step(states, actions)
        returns[alive] += worth * rewards
        states, alive, worth = states[~ended], alive[~ended], worth * DISCOUNT
        if not len(alive):
            break
    return returns.mean(), returns.std() / np.sqrt(count)


def valued(log, feature_map):
    """The policy's value at the episodes' first states."""
    problem = va.Problem.from_transitions(log, feature_map, discount=DISCOUNT)
    return inference.policy_value(problem, va.LSTD().solve(problem))


if __name__ == "__main__":
    logs = {100: whole_episodes(100, seed=0), 5000: whole_episodes(5000, seed=1)}
    truth, error = simulated_truth(10_000, np.random.default_rng(2))
    print(f"{logs[100]}\n\nsimulated truth: {truth:.1f}, standard error {error:.1f}\n")
    print("polynomial  episodes  estimate  95% interval  truth  bias of the fixed point")
    for degree in (1, 2):
        states = Polynomial(degree, constant=True).fit(logs[5000].states)
        found = {count: valued(log, states) for count, log in logs.items()}
        bias, unsure = found[5000].value - truth, np.hypot(found[5000].standard_error, error)
        for count, number in found.items():
            low, high = number.interval
            interval = f"{low:.1f} to {high:.1f}"
            print(
                f"degree {degree} {count:11} {number.value:9.1f}  {interval}  {truth:5.1f}  {bias:.1f} +- {unsure:.1f}"
            )
    print(f"\n{inference.logged_return(logs[100], DISCOUNT)}")
