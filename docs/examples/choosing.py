"""The output of docs/choosing.md: what Auto chooses for four problems, and why."""

import numpy as np
import scipy.sparse as sp

import valuate as va
from valuate.environments import RandomMDP


def show(name, solution):
    print(f"{name}\n  {solution.message}\n")


if __name__ == "__main__":
    process = RandomMDP(seed=0)
    table = va.Problem.from_transitions(process.collect(50_000, seed=1), process.features, discount=0.95)
    show("A table of 400 states:", va.Auto().solve(table))

    rng = np.random.default_rng(0)
    path = rng.normal(size=(40_001, 400))
    for t in range(40_000):
        path[t + 1] = 0.95 * path[t] + 0.3 * path[t + 1]
    rewards = path[:-1] @ rng.normal(size=400) + 3 * rng.normal(size=40_000)
    dense = va.Problem.from_arrays(path[:-1], rewards, path[1:], discount=0.95)
    show("40,000 dense rows of 400 features:", va.Auto().solve(dense))
    show("A fifth of a pass over dense rows:", va.Auto().solve(dense, passes=0.2))

    tiles = sp.random_array((20_000, 100_000), density=1e-4, rng=rng, format="csr")
    wide = va.Problem.from_arrays(tiles, rng.normal(size=20_000), tiles[rng.permutation(20_000)], ridge=1e-3)
    words = va.Auto().solve(wide, tolerance=1e-6).message
    print("100,000 sparse features:\n ", words.split(" Chosen:")[0])
    print("  ... and LSTD does not fit" if "does not fit" in words else "  ... and LSTD fits")
