"""Small problems on every layout with their oracles, a spy on what a solver did, and checks that every solver passes."""

import copy
import dataclasses
import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.sparse as sp

from oracle import Oracle
from valuate import LSTD, SAGA, SCSG, SVRG, BatchingSVRG, Problem, Status
from valuate.errors import InputError, InputTypeError, SolverError

LAYOUTS = ("dense", "trajectory", "indexed", "sparse", "sparse table")


class Case(NamedTuple):
    """A problem and the same rows as matrices."""

    problem: Problem
    oracle: Oracle


def case(
    layout: str,
    n: int = 37,
    dim: int = 5,
    *,
    ridge: float = 0.0,
    ratios: bool = False,
    weights: bool = False,
    dtype: Any = np.float64,
    seed: int = 0,
    n_states: int = 7,
    noise: float = 0.3,
) -> Case:
    """Random rows in the given layout: with self-loops, terminated rows and, where sparse, rows without any entry.

    Rewards are those of a random theta plus ``noise``.
    """
    rng = np.random.default_rng([seed, n, dim])
    scalars: dict[str, Any] = {
        "discount": rng.uniform(0.5, 0.98, n),
        "terminated": rng.random(n) < 0.1,
        "ratios": rng.choice([0.0, 0.4, 1.0, 2.1], n) if ratios else None,
        "weights": rng.choice([0.0, 0.5, 1.0, 3.0], n) if weights else None,
        "ridge": ridge,
    }
    if layout in ("indexed", "sparse table"):
        table = (random_sparse if layout == "sparse table" else random_dense)(rng, n_states, dim).astype(dtype)
        states, followers = rng.integers(0, n_states, n), rng.integers(0, n_states, n)
        followers[1::9] = states[1::9]
        rows = table.toarray() if layout == "sparse table" else table
        phi, next_phi = rows[states], rows[followers]
    elif layout == "trajectory":
        phi = random_dense(rng, n, dim).astype(dtype)
        next_phi = np.vstack([phi[1:], random_dense(rng, 1, dim).astype(dtype)])
        cut = rng.random(n) < 0.15
        next_phi[cut] = random_dense(rng, int(cut.sum()), dim)
    else:
        draw = random_sparse if layout == "sparse" else random_dense
        first, second = draw(rng, n, dim).astype(dtype), draw(rng, n, dim).astype(dtype)
        loops = sp.diags_array((np.arange(n) % 9 == 1).astype(dtype))
        second = loops @ first + (sp.eye_array(n, dtype=dtype) - loops) @ second
        assert second.dtype == dtype
        phi, next_phi = (m.toarray() if layout == "sparse" else m for m in (first, second))
    rewards = phi @ rng.normal(size=dim) + noise * rng.normal(size=n)
    if layout in ("indexed", "sparse table"):
        problem = Problem.from_table(table, states, rewards, followers, **scalars)
    elif layout == "sparse":
        problem = Problem.from_arrays(first, rewards, second, **scalars)
    else:
        problem = Problem.from_arrays(phi, rewards, next_phi, **scalars)
    discounts = np.where(scalars["terminated"], 0.0, scalars["discount"])
    oracle = Oracle(phi, next_phi, rewards, discounts, scalars["ratios"], scalars["weights"], ridge)
    assert problem.layout == {"trajectory": "dense", "sparse table": "sparse"}.get(layout, layout)
    return Case(problem, oracle)


def random_dense(rng: np.random.Generator, n: int, dim: int) -> Any:
    """Rows of length about 1."""
    return rng.normal(size=(n, dim)) / np.sqrt(dim)


def random_sparse(rng: np.random.Generator, n: int, dim: int) -> Any:
    """As `random_dense`, about half of the entries 0, every sixth row all of them."""
    rows = random_dense(rng, n, dim) * (rng.random((n, dim)) < 0.5)
    rows[::6] = 0
    return sp.csr_array(rows)


class Spy:
    """Writes down, in order, every mean and every chunk of steps that a solver takes on ``problem``.

    Attributes
    ----------
    events : list of ("mean", batch) and ("steps", order)
        ``batch`` is None for all rows.
    """

    def __init__(self, problem: Problem) -> None:
        self.n_rows = problem.n_rows
        self.events: list[tuple[str, Any]] = []
        chunk, mean_gradient = problem.rows.chunk, problem.mean_gradient

        def spied_chunk(order: Any) -> Any:
            self.events.append(("steps", order.copy()))
            return chunk(order)

        def spied_mean(theta: Any, omega: Any, order: Any) -> Any:
            self.events.append(("mean", None if order is None else order.copy()))
            return mean_gradient(theta, omega, order)

        problem.rows.chunk = spied_chunk  # type: ignore[method-assign]
        problem.mean_gradient = spied_mean  # type: ignore[method-assign]

    @property
    def row_visits(self) -> int:
        """Visits of all events."""
        return sum(self.n_rows if order is None else len(order) for _, order in self.events)

    @property
    def means(self) -> list[int]:
        """Rows of each mean."""
        return [self.n_rows if order is None else len(order) for kind, order in self.events if kind == "mean"]

    @property
    def steps(self) -> list[int]:
        """Steps after each mean (in all, where there is none)."""
        out: list[int] = []
        for kind, order in self.events:
            if kind == "mean" or not out:
                out.append(0)
            if kind == "steps":
                out[-1] += len(order)
        return out
