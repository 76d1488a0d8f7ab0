"""The output of docs/logs.md: one small log in several shapes, and what is said of each."""

import gzip
import os
import tempfile
from pathlib import Path

import numpy as np

import valuate as va
from valuate.environments import CartPole
from valuate.io import convert


def as_table(log: va.Transitions) -> dict[str, np.ndarray]:
    """The log as somebody's own table, without next states."""
    columns = {f"state_{name}": log.states[:, k] for k, name in enumerate(["x", "speed", "angle", "turning"])}
    lengths = np.diff(np.flatnonzero(np.append(True, np.diff(log.episodes) != 0)), append=len(log))
    return {
        "episode": np.asarray(log.episodes),
        "step": np.concatenate([np.arange(n) for n in lengths]),
        **columns,
        "action": np.where(log.actions == 1, "right", "left"),
        "reward": log.rewards,
        "terminated": log.terminated,
        "truncated": log.truncated,
    }


def save(table: dict[str, np.ndarray], path: str) -> None:
    lines = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    Path(path).write_bytes(gzip.compress("\n".join(lines).encode()))


def refused(*args, **options) -> None:
    try:
        va.read(*args, **options)
    except va.InputError as error:
        print(f"InputError: {error}\n")


def main() -> None:
    log = CartPole(limit=22).collect(2000, seed=5, copies=2)
    log = log[np.flatnonzero(np.asarray(log.episodes) < 30)]
    table = as_table(log)

    save(table, "log.csv.gz")
    print(va.read("log.csv.gz").reading)
    print()

    scope = {"n_trajectories": 30, "step_per_trajectory": 22, "state": log.states, "action": log.actions}
    scope |= {"reward": log.rewards, "done": log.terminated | log.truncated, "terminal": log.truncated}
    print(va.read(scope | {"pscore": np.full(len(log), 0.5)}).reading)
    print()

    batch = {"obs": log.states, "new_obs": log.next_states, "actions": log.actions, "rewards": log.rewards}
    refused(batch | {"dones": log.terminated})
    print(va.read(batch | {"dones": log.terminated}, done="terminated"))
    print()
    refused({"obs": log.states, "rewrd": log.rewards, "terminated": log.terminated})
    refused("log.csv")

    written = convert("log.csv.gz", "log.parquet")
    again = va.read("log.parquet")
    print(again)
    print((again.states == written.states).all(), (again.next_states == written.next_states).all())
    refused("log.csv.gz", {"states": "state_*", "rewards": "gain"})


if __name__ == "__main__":
    here = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        main()
        os.chdir(here)
