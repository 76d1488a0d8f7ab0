"""The names that logs give their columns, and what we call them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

__all__ = ["ALIASES", "FAMILIES", "ROLES", "SUBJECTS", "canonical", "family", "nearest", "plain", "suggestion"]

#: Whom or what rows are about: an episode each, where no column names the episodes.
SUBJECTS = tuple(
    f"{who}{ending}"
    for who in ("encounter", "admission", "stay", "case", "session", "patient", "subject", "person", "user", "customer")
    for ending in ("", "_id", "_ids", "_no", "_number", "_nr")
    if who + ending != "stay"  # how long, as often as whose
) + ("hadm_id", "icustay_id", "client_id", "member_id", "participant_id", "player_id", "user_name", "username")
#: What a column can be taken for, with the names that mean it, the surest first. Compared as `plain` writes them.
ALIASES: dict[str, tuple[str, ...]] = {
    "states": ("states", "state", "observations", "observation", "obs", "s"),
    "next_states": (
        *("next_states", "next_state", "next_observations", "next_observation", "next_obs", "new_obs"),
        *("new_states", "new_state", "new_observations", "new_observation", "obs_next", "state_next"),
        *("observation_next", "next_s", "s_next", "s_prime", "sp", "s2"),
    ),
    "actions": ("actions", "action", "acts", "act", "a"),
    "next_actions": ("next_actions", "next_action", "new_actions", "new_action", "action_next", "next_act", "next_a"),
    "rewards": ("rewards", "reward", "rew", "rews", "r"),
    "terminated": (
        *("terminated", "terminateds", "terminations", "termination", "terminals", "terminal"),
        *("is_terminal", "is_terminated", "absorbing"),
    ),
    "truncated": (
        *("truncated", "truncateds", "truncations", "truncation", "timeouts", "timeout", "is_truncated"),
        *("time_limit", "time_limit_truncated"),
    ),
    "done": ("dones", "done", "is_done"),
    "last": ("is_last", "last", "episode_terminals", "episode_end", "episode_ends", "end_of_episode"),
    "first": ("is_first", "episode_start", "episode_starts"),
    "episodes": (
        *("episodes", "episode", "episode_id", "episode_ids", "eps_id", "ep_id", "episode_index", "episode_idx"),
        *("episode_number", "trajectories", "trajectory", "trajectory_id", "trajectory_index", "traj", "traj_id"),
        *SUBJECTS,
    ),
    "steps": (
        *("steps", "step", "t", "timestep", "timesteps", "time_step", "time_steps", "step_id", "step_index"),
        *("step_idx", "step_number", "episode_step", "frame_index", "time", "timestamp"),
    ),
    "probabilities": (
        *("probabilities", "probability", "action_probabilities", "action_probability", "action_prob", "action_probs"),
        *("pscore", "pscores", "propensity", "propensities", "propensity_score", "behavior_prob", "behaviour_prob"),
        *("behavior_probability", "behaviour_probability", "logging_probability", "logging_prob"),
    ),
    "log_probabilities": (
        *("log_probabilities", "log_probability", "action_logp", "action_log_prob", "action_log_probs", "log_prob"),
        *("log_probs", "logp", "logprob", "behavior_log_prob", "behaviour_log_prob", "behavior_logp"),
    ),
    "ratios": ("ratios", "ratio", "importance_ratios", "importance_ratio", "rho"),
    "weights": ("weights", "sample_weights", "sample_weight"),
    "discounts": ("discounts", "discount"),
}

ROLES = tuple(ALIASES)

#: Beginnings of the names of columns that are one dimension each: obs_0, obs_1; state_x, state_y; s0, s1.
FAMILIES: dict[str, tuple[str, ...]] = {
    "states": ("states", "state", "observations", "observation", "obs", "s", "x", "features", "feature"),
    "next_states": ALIASES["next_states"],
    "actions": ("actions", "action", "act", "a"),
    "next_actions": ALIASES["next_actions"],
}
#: Beginnings that are taken with numbers behind them only.
_NUMBERED = {"s", "x", "a", "sp", "s2", "features", "feature"}
#: Endings that say that a column is about a state or an action and not part of it.
_ABOUT = {
    *("prob", "probs", "probability", "probabilities", "logp", "log_prob", "log_probs", "logprob", "logits", "mask"),
    *("dist", "dist_inputs", "id", "index", "value", "values", "type", "meaning", "name", "dim", "keys", "next"),
}
_OURS = {alias: role for role, aliases in ALIASES.items() for alias in aliases}


def plain(name: str) -> str:
    """A name in small letters with underscores: "nextState", "Next State" and "next-state" are the same."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.strip())
    return re.sub(r"[^0-9a-z]+", "_", spaced.lower()).strip("_")


def canonical(role: str) -> str | None:
    """Our name for what a user calls a role, or None: "state" and "obs" are "states"."""
    return _OURS.get(plain(role))


def family(names: Iterable[str], beginning: str) -> list[tuple[str, str]]:
    """The columns called beginning + ending, as (ending, name): in order of their numbers, else as they come."""
    found = []
    for name in names:
        written = plain(name)
        ending = written.removeprefix(beginning)
        if ending == written or not ending:
            continue
        apart = ending.startswith("_")
        ending = ending.removeprefix("_")
        about = ending in _ABOUT or ending.endswith("_next")
        if ending.isdigit() or (apart and beginning not in _NUMBERED and not about):
            found.append((ending, name))
    numbered = [(ending, name) for ending, name in found if ending.isdigit()]
    return sorted(numbered, key=lambda pair: int(pair[0])) if numbered else found


def nearest(wanted: Iterable[str], names: Iterable[str], count: int = 3) -> list[str]:
    """The names that look most like one of those wanted."""
    written: dict[str, str] = {}
    for name in names:
        written.setdefault(plain(name), name)
    found: dict[str, float] = {}
    for word in map(plain, wanted):
        for match in difflib.get_close_matches(word, written, n=count, cutoff=0.6):
            closeness = difflib.SequenceMatcher(None, word, match).ratio()
            found[match] = max(closeness, found.get(match, 0.0))
    ranked = sorted(found, key=lambda match: -found[match])
    return [written[match] for match in ranked[:count]]


def suggestion(wanted: Iterable[str], names: Iterable[str], free: Iterable[str] | None = None) -> str:
    """A sentence with the names nearest to those wanted, of ``free`` ones if given, and all that are there."""
    there = list(names)
    near = nearest(wanted, there if free is None else free)
    closest = (
        f" The nearest {'name is' if len(near) == 1 else 'names are'} {', '.join(map(repr, near))}." if near else ""
    )
    shown = ", ".join(map(repr, there[:40])) + (f" and {len(there) - 40} more" if len(there) > 40 else "")
    return f"{closest} The columns are: {shown}." if there else " There are no columns."
