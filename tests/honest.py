"""Random problems of many kinds, some of them ill, and their solution by the dense matrices written out in NumPy.

Run as a script, ``python tests/honest.py 1000 "Auto()" [tolerance]``, it tells how runs of a solver ended and names
every answer that is not what its status says.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

import valuate

KINDS = (
    "garnet", "random", "heavy tails", "rank-deficient", "units", "off-policy", "inconsistent", "sparse",
    "trajectory", "one state", "one giant ratio", "undiscounted", "few rows",
)  # fmt: skip


class Given(NamedTuple):
    """A problem as arrays."""

    kind: str
    phi: Any
    next_phi: Any
    rewards: Any
    options: dict[str, Any]

    def problem(self) -> valuate.Problem:
        """The problem as the library holds it."""
        wrap = sp.csr_array if self.kind == "sparse" else np.asarray
        return valuate.Problem.from_arrays(wrap(self.phi), self.rewards, wrap(self.next_phi), **self.options)


def draw(seed: int, most: int = 500) -> Given:
    """The problem of a seed; ``most`` features, and four times as many rows."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(KINDS))
    n = int(rng.choice([50, 300, 1000, 4 * most]))
    dim = int(rng.choice([1, 3, 10, 40, 120, 250] if rng.random() < 0.9 else [500]))
    n, dim = min(n, 4 * most), min(dim, most)
    discount, ridge = float(rng.choice([0, 0.5, 0.9, 0.99, 1.0])), float(rng.choice([0, 0, 0, 1e-5, 1e-2]))
    ended = rng.random(n) < rng.choice([0, 0.02, 0.2])
    ratios = weights = None
    phi = rng.normal(size=(n, dim)) / np.sqrt(dim)
    next_phi = 0.8 * phi + 0.6 * rng.normal(size=(n, dim)) / np.sqrt(dim)
    if kind == "garnet":
        phi, next_phi = _garnet(rng, n, dim)
    elif kind == "heavy tails":
        phi = rng.standard_t(2.2, size=(n, dim))
        next_phi = 0.5 * phi + rng.standard_t(2.2, size=(n, dim))
    elif kind == "rank-deficient":
        half = max(1, dim // 2)
        mix = rng.normal(size=(half, dim))
        phi, next_phi = rng.normal(size=(n, half)) @ mix, rng.normal(size=(n, half)) @ mix
        next_phi = 0.7 * phi + 0.5 * next_phi
    elif kind == "units":
        units = 10.0 ** rng.uniform(-3, 3, dim)
        phi, next_phi = phi * units, next_phi * units
    elif kind == "off-policy":
        next_phi = 1.2 * phi + 0.5 * rng.normal(size=(n, dim)) / np.sqrt(dim)
        ratios = rng.choice([0, 0.1, 1, 3], n)
    elif kind == "inconsistent":
        # The last feature never changes, and nothing is discounted: its equation says 0 = mean reward.
        next_phi = 0.5 * phi
        phi[:, -1] = rng.integers(0, 2, n)
        next_phi[:, -1] = phi[:, -1]
        discount, ridge = 1.0, 0.0
        ended[:] = False
    elif kind == "sparse":
        phi, next_phi = phi * (rng.random((n, dim)) < 0.1), next_phi * (rng.random((n, dim)) < 0.1)
    elif kind == "trajectory":
        phi, next_phi = _trajectory(rng, n, dim)
        ended[:] = False
    elif kind == "one state":
        phi, next_phi = np.ones((n, 1)), np.ones((n, 1))
    elif kind == "one giant ratio":
        ratios = np.ones(n)
        ratios[rng.integers(n)] = 1e6
    elif kind == "undiscounted":
        discount = 1.0
    elif kind == "few rows":
        n = int(rng.choice([1, 2, 5]))
        phi, next_phi, ended = phi[:n], next_phi[:n], ended[:n]
    rewards = rng.normal(size=n) + phi @ rng.normal(size=phi.shape[1])
    if rng.random() < 0.05:
        rewards[:] = 0
    if rng.random() < 0.3 and n > 1:
        weights = rng.choice([0.5, 1, 2.0], n)
    options = {"discount": discount, "terminated": ended, "ratios": ratios, "weights": weights, "ridge": ridge}
    return Given(kind, phi, next_phi, rewards, options)


def _garnet(rng: Any, n: int, dim: int) -> tuple[Any, Any]:
    count = int(rng.choice([5, 30, 100]))
    table = rng.normal(size=(count, min(dim, 2 * count)))
    after, chances = rng.integers(0, count, (count, 3)), rng.dirichlet(np.ones(3), count)
    states = np.zeros(n + 1, int)
    draws = rng.random(n)
    for t in range(n):
        states[t + 1] = after[states[t], min(2, int((chances[states[t]].cumsum() <= draws[t]).sum()))]
    return table[states[:-1]], table[states[1:]]


def _trajectory(rng: Any, n: int, dim: int) -> tuple[Any, Any]:
    """A slow path whose columns mix directions of power-law sizes: badly conditioned."""
    path = rng.normal(size=(n + 1, dim))
    for t in range(n):
        path[t + 1] = 0.98 * path[t] + 0.2 * path[t + 1]
    mix, _ = np.linalg.qr(rng.normal(size=(dim, dim)))
    path = (path * np.arange(1, dim + 1) ** -rng.choice([0.5, 1, 2])) @ mix
    return path[:-1], path[1:]


class Truth(NamedTuple):
    """What a dense solution says of a point."""

    #: Relative residual of the point, and of the best weights there are.
    residual: float
    least: float
    #: The MSPBE of the point above the least, over the statistical floor at the best weights.
    floors: float


def judge(given: Given, theta: Any) -> Truth:
    """By a singular value decomposition of the weighted rows, columns scaled to unit length."""
    phi, n = given.phi, len(given.rewards)
    weights = np.ones(n) if given.options["weights"] is None else given.options["weights"]
    ratios = np.ones(n) if given.options["ratios"] is None else given.options["ratios"]
    weights = weights / weights.mean()
    after = np.where(given.options["terminated"], 0.0, given.options["discount"])[:, None] * given.next_phi
    scale, ridge = weights * ratios, given.options["ridge"]
    eye = np.eye(phi.shape[1])
    a = (phi * scale[:, None]).T @ (phi - after) / n + ridge * eye
    b = phi.T @ (scale * given.rewards) / n
    rows = phi * np.sqrt(weights / n)[:, None]
    if ridge:
        rows = np.vstack([rows, np.sqrt(ridge) * eye])
    units = np.linalg.norm(rows, axis=0)
    units[units == 0] = 1.0
    _, sizes, turned = np.linalg.svd(rows / units, full_matrices=False)
    kept = sizes > 1e-12 * sizes.max(initial=0.0)
    whiten = turned[kept] / sizes[kept, None] / units
    white_a, white_b = whiten @ a, whiten @ b
    whole = float(np.linalg.norm(white_b)) or 1.0
    best = np.linalg.lstsq(white_a / units, white_b, rcond=1e-11)[0] / units
    least, found = (float(np.linalg.norm(white_a @ x - white_b)) for x in (best, theta))
    errors = scale * (given.rewards + after @ best - phi @ best)
    floor = 0.5 * float(np.mean(np.square(errors) * np.square(whiten @ phi.T).sum(axis=0))) / n
    excess = 0.5 * max(0.0, found**2 - least**2)
    return Truth(found / whole, least / whole, excess / floor if floor > 0 else np.inf if excess > 1e-20 else 0.0)


def complaint(solution: Any, truth: Truth, tolerance: float | None) -> str:
    """What is wrong with how a run says that it ended; empty where it is true."""
    status = solution.status.value
    if not np.isfinite(solution.theta).all():
        return "weights that are not finite"
    if status == "converged" and tolerance is not None and truth.residual > 1.05 * tolerance + 1e-10:
        return f"converged, and the relative residual is {truth.residual:.2g}"
    if status == "converged" and tolerance is None and truth.residual > 1e-8 and truth.floors > 0.0121:
        return f"converged, and the MSPBE is {truth.floors:.2g} of its floor"
    if status == "singular" and truth.least < 1e-8:
        return "singular, and there is a solution"
    if status == "diverged" and truth.residual > 1e3:
        return f"diverged, with an answer of relative residual {truth.residual:.2g}"
    return ""


def main(count: int, name: str, tolerance: float | None) -> int:
    """Print how the runs ended, and every complaint; returns how many there were."""
    solver, ends, wrong, began = eval(f"valuate.{name}", {"valuate": valuate}), Counter(), 0, time.perf_counter()
    for seed in range(count):
        given = draw(seed)
        solution = solver.solve(given.problem(), seed=seed, tolerance=tolerance)
        ends[solution.status.value] += 1
        what = complaint(solution, judge(given, solution.theta), tolerance)
        if what:
            wrong += 1
            print(f"seed {seed}, {given.kind}: {what}. {solution.message}")
    print(f"{name}: {dict(ends)}, {wrong} wrong, {time.perf_counter() - began:.0f} s")
    return wrong


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else None) > 0)
