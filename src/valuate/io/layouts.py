"""Whose way of naming things a log follows, where that changes what the names mean."""

from __future__ import annotations

from collections.abc import Collection

from valuate.io.names import plain

__all__ = ["LAYOUTS", "layout_of", "spoken"]

#: What a user writes for `format`, and how it is spelt.
LAYOUTS = {
    "d4rl": "D4RL",
    "d3rlpy": "d3rlpy",
    "scope-rl": "SCOPE-RL",
    "rllib": "RLlib",
    "rlds": "RLDS",
    "mushroomrl": "MushroomRL",
    "minari": "Minari",
    "gymnasium": "Gymnasium",
}


def spoken(format: str) -> str | None:
    """The layout that a user means, or None."""
    words = {key.replace("-", ""): layout for key, layout in LAYOUTS.items()}
    return words.get(format.lower().replace("-", "").replace("_", "").replace(" ", ""))


def layout_of(names: Collection[str], single: Collection[str] = ()) -> str | None:
    """The layout that columns and single values of these names have; None where they tell nothing."""
    found = {plain(name) for name in names}
    alone = {plain(name) for name in single}
    if {"done", "terminal"} <= found and ("pscore" in found or {"n_trajectories", "step_per_trajectory"} & alone):
        return "SCOPE-RL"
    if "is_last" in found and {"is_first", "is_terminal"} & found:
        return "RLDS"
    if {"absorbing", "last"} <= found:
        return "MushroomRL"
    if {"terminations", "truncations"} <= found:
        return "Minari"
    if "obs" in found and {"eps_id", "new_obs"} & found and {"terminateds", "truncateds", "dones"} & found:
        return "RLlib"
    if {"observations", "terminals"} <= found:
        return "D4RL" if "next_observations" in found else "d3rlpy"
    return None
