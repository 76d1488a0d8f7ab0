"""One Cart Pole log of 30 episodes, terminated and truncated ones, in the shapes that other packages give logs."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from valuate import LSTD, Problem, Transitions
from valuate.environments import CartPole

EPISODES = 30


@functools.cache
def cart_pole() -> Transitions:
    """30 whole episodes with a time limit of 22 steps, and the behaviour policy's probabilities."""
    log = CartPole(limit=22).collect(2000, seed=5, copies=2)
    log = log[np.flatnonzero(np.asarray(log.episodes) < EPISODES)]
    rng = np.random.default_rng(0)
    given = {"terminated": log.terminated, "truncated": log.truncated, "actions": log.actions.astype(np.int64)}
    given |= {"episodes": np.asarray(log.episodes).astype(np.int64), "probabilities": rng.uniform(0.2, 0.9, len(log))}
    return Transitions(log.states, log.rewards + rng.normal(size=len(log)), log.next_states, **given)


def features(states: Any) -> Any:
    states = np.asarray(states, np.float64)
    return np.hstack([np.ones((len(states), 1)), states, states[:, 2:] ** 2])


def theta(log: Transitions) -> Any:
    return LSTD().solve(Problem.from_transitions(log, features, discount=0.95)).require().theta


def lengths() -> list[slice]:
    """The rows of each episode."""
    ends = np.flatnonzero(cart_pole().terminated | cart_pole().truncated) + 1
    return [slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


def steps() -> Any:
    return np.concatenate([np.arange(rows.stop - rows.start) for rows in lengths()])


def columns(prefix: str, states: Any) -> dict[str, Any]:
    return {f"{prefix}{k}": states[:, k].copy() for k in range(states.shape[1])}


# ---- shapes that hold next observations


def d4rl() -> dict[str, Any]:
    log = cart_pole()
    return {
        "observations": log.states,
        "next_observations": log.next_states,
        "actions": log.actions,
        "rewards": log.rewards,
        "terminals": log.terminated,
        "timeouts": log.truncated,
        "infos": {"qpos": log.states[:, :2]},
        "metadata": {"algorithm": "none"},
    }


def rllib() -> dict[str, Any]:
    log = cart_pole()
    return {
        "obs": log.states,
        "new_obs": log.next_states,
        "actions": log.actions,
        "rewards": log.rewards,
        "terminateds": log.terminated,
        "truncateds": log.truncated,
        "action_prob": log.probabilities,
        "action_logp": np.log(log.probabilities),
        "action_dist_inputs": np.zeros((len(log), 2)),
        "eps_id": log.episodes + 1000,
        "t": steps(),
    }


def mushroom() -> dict[str, Any]:
    log = cart_pole()
    return {
        "state": log.states,
        "action": log.actions[:, None],
        "reward": log.rewards,
        "next_state": log.next_states,
        "absorbing": log.terminated,
        "last": log.terminated | log.truncated,
    }


def mushroom_steps() -> list[tuple[Any, ...]]:
    return list(zip(*mushroom().values(), strict=True))


def flat() -> dict[str, Any]:
    log = cart_pole()
    return {
        **columns("obs_", log.states),
        "action": log.actions,
        "reward": log.rewards,
        **columns("next_obs_", log.next_states),
        "terminated": log.terminated,
        "truncated": log.truncated,
        "episode_id": log.episodes,
        "step": steps(),
    }


def observations(rows: slice) -> Any:
    """T + 1 of them."""
    return np.concatenate([cart_pole().states[rows], cart_pole().next_states[rows][-1:]])


def gymnasium_tuples() -> list[tuple[Any, ...]]:
    log = cart_pole()
    return [
        (observations(rows), log.actions[rows], log.rewards[rows], log.terminated[rows][-1], log.truncated[rows][-1])
        for rows in lengths()
    ]


def gymnasium_dicts() -> list[dict[str, Any]]:
    log = cart_pole()
    return [
        {
            "observations": observations(rows),
            "actions": log.actions[rows],
            "rewards": log.rewards[rows].tolist(),
            "terminated": log.terminated[rows],
            "truncated": log.truncated[rows],
        }
        for rows in lengths()
    ]


@dataclass
class EpisodeData:
    """As Minari has it."""

    id: int
    observations: Any
    actions: Any
    rewards: Any
    terminations: Any
    truncations: Any
    infos: dict[str, Any]


def minari_episodes() -> list[EpisodeData]:
    log = cart_pole()
    return [
        EpisodeData(
            number,
            observations(rows),
            log.actions[rows],
            log.rewards[rows],
            log.terminated[rows],
            log.truncated[rows],
            {"x": np.zeros(rows.stop - rows.start + 1)},
        )
        for number, rows in enumerate(lengths())
    ]


def rlds_episodes(discount: bool = True) -> list[dict[str, Any]]:
    """By the book: the last step has the last observation, and what else it has means nothing."""
    log = cart_pole()
    found = []
    for rows in lengths():
        n = rows.stop - rows.start
        steps = {
            "observation": observations(rows),
            "action": np.append(log.actions[rows], 0),
            "reward": np.append(log.rewards[rows], 0.0),
            "is_first": np.arange(n + 1) == 0,
            "is_last": np.arange(n + 1) == n,
            "is_terminal": np.append(np.zeros(n, bool), log.terminated[rows][-1]),
        }
        if discount:
            steps["discount"] = np.append(1.0 - log.terminated[rows], 0.0).astype(np.float32)
        found.append({"steps": steps})
    return found


def rlds_step_lists() -> list[dict[str, Any]]:
    """The same with a dict for each step, as a TensorFlow data set gives them."""
    found = []
    for episode in rlds_episodes():
        steps = episode["steps"]
        n = len(steps["reward"])
        found.append({"steps": [{name: values[t] for name, values in steps.items()} for t in range(n)]})
    return found


def rlds_flat() -> dict[str, Any]:
    """All steps of all episodes one after the other."""
    parts = [episode["steps"] for episode in rlds_episodes()]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def one_more_observation() -> dict[str, Any]:
    """Arrays of whole episodes joined, with T + 1 observations for T of everything else."""
    log = cart_pole()
    return {
        "observations": np.concatenate([observations(rows) for rows in lengths()]),
        "actions": log.actions,
        "rewards": log.rewards,
        "terminations": log.terminated,
        "truncations": log.truncated,
    }


# ---- shapes whose next state is that of the next row


def d3rlpy() -> dict[str, Any]:
    log = cart_pole()
    return {
        "observations": log.states,
        "actions": log.actions[:, None],
        "rewards": log.rewards[:, None],
        "terminals": log.terminated.astype(np.float32),
        "timeouts": log.truncated.astype(np.float32),
    }


def scope_rl() -> dict[str, Any]:
    log = cart_pole()
    return {
        "size": len(log),
        "n_trajectories": EPISODES,
        "step_per_trajectory": 22,
        "action_type": "discrete",
        "n_actions": 2,
        "action_dim": None,
        "state_keys": ["x", "speed", "angle", "turning"],
        "state": log.states,
        "action": log.actions,
        "reward": log.rewards,
        "done": (log.terminated | log.truncated).astype(float),
        "terminal": log.truncated.astype(float),
        "info": {"clicks": np.zeros(len(log))},
        "pscore": log.probabilities,
        "behavior_policy": "random",
        "dataset_id": 0,
    }


def rlds_transitions() -> dict[str, Any]:
    """Steps as many robot data sets have them: the last one is a transition too."""
    log = cart_pole()
    ends = log.terminated | log.truncated
    return {
        "observation": log.states,
        "action": log.actions,
        "reward": log.rewards,
        "is_first": np.append(True, ends[:-1]),
        "is_last": ends,
        "is_terminal": log.terminated,
        "discount": 1.0 - log.terminated,
    }


def flat_without_next() -> dict[str, Any]:
    return {name: values for name, values in flat().items() if not name.startswith("next_")}


# ---- files


def write_hdf5(path: Any, arrays: dict[str, Any]) -> Any:
    import h5py

    with h5py.File(path, "w") as file:
        for name, value in arrays.items():
            if isinstance(value, dict):
                for inner, part in value.items():
                    file[f"{name}/{inner}"] = part
            else:
                file[name] = value
    return path


def write_parquet(path: Any, arrays: dict[str, Any], **options: Any) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: value if np.ndim(value) == 1 else list(value) for name, value in arrays.items()}
    pq.write_table(pa.table(columns), path, **options)
    return path


def write_minari_hdf5(folder: Any) -> Any:
    import h5py

    data = folder / "data"
    data.mkdir(parents=True)
    with h5py.File(data / "main_data.hdf5", "w") as file:
        for episode in minari_episodes():
            group = file.create_group(f"episode_{episode.id}")
            for name in ("observations", "actions", "rewards", "terminations", "truncations"):
                group[name] = getattr(episode, name)
            group["infos/x"] = episode.infos["x"]
    box = {"type": "Box", "dtype": "float64", "shape": [4], "low": [0] * 4, "high": [0] * 4}
    (data / "metadata.json").write_text(json.dumps({"data_format": "hdf5", "observation_space": json.dumps(box)}))
    return folder
