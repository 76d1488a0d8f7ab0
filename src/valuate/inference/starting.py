"""The initial states whose value is asked for: the episodes' first ones, or states that were given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import _checks, _columns
from valuate.errors import InputError
from valuate.inference.clusters import coded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.inference.clusters import Clusters
    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Index = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Initial:
    """Initial feature rows, and what they are a sample of.

    Attributes
    ----------
    rows : (m, dim) array or CSR matrix
    weights : (m,) array
        Shares, which sum to 1.
    kind : {"first states", "given", "sample"}
        "first states": each belongs to a draw of the log, by ``codes``. "given": these states are what is meant.
        "sample": an independent sample of their own.
    codes : (m,) int array or None
    """

    rows: Any
    weights: Vector
    kind: str
    codes: Index | None = None

    @property
    def mean(self) -> Vector:
        """Their mean: (dim,)."""
        return np.asarray(self.rows.T @ self.weights)

    def values(self, theta: Vector) -> Vector:
        """The value of each: (m,)."""
        return np.asarray(self.rows @ theta)

    def influence(self, theta: Vector, clusters: Clusters) -> Vector:
        """Derivative of the mean value by the weight of each draw, through the sample of states: (count,)."""
        if self.codes is None:
            return np.zeros(clusters.count)
        values = self.values(theta)
        terms = self.weights * (values - self.weights @ values)
        return np.asarray(np.bincount(self.codes, terms, clusters.count), dtype=np.float64)


def read(problem: Problem, clusters: Clusters, initial: Any, labels: Any, fixed: bool | None) -> Initial:
    """From what a user gave; see `policy_value`."""
    if initial is None:
        if labels is not None:
            raise InputError("initial_episodes labels rows of initial, and initial is not given.")
        return _first_states(problem, clusters, fixed)
    rows = _feature_rows(initial, problem.dim)
    m = rows.shape[0]
    weights = np.full(m, 1.0 / m)
    if labels is None:
        if fixed is False:
            if m < 2:
                raise InputError("initial has one row: a sample of one says nothing of how initial states vary.")
            return Initial(rows, weights, "sample")
        return Initial(rows, weights, "given")
    if fixed:
        raise InputError("initial_episodes make the states a part of the log's sample: leave fixed_initial out.")
    return Initial(rows, weights, "first states", _codes(labels, m, clusters))


def _first_states(problem: Problem, clusters: Clusters, fixed: bool | None) -> Initial:
    if clusters.method == "rows":
        raise InputError("initial must be given where rows are the draws: first states are those of episodes.")
    if clusters.labels is not None and clusters.starts is None:
        raise InputError(
            "the first states of the episodes are not known: their rows do not lie together. Sort the log by episode "
            "and time, or give initial."
        )
    stored: Any = problem.rows
    if not hasattr(stored, "records"):
        raise InputError("the first states can be looked up in rows that lie in memory only: give initial.")
    first = np.flatnonzero(clusters.chain_starts())
    weights = stored.weights[first] if len(stored.weights) else np.ones(len(first))
    if not weights.sum() > 0:
        raise InputError("every first row of an episode has weight 0: give initial.")
    first, weights = first[weights > 0], weights[weights > 0]
    rows = stored.taken(stored.records["state"][first].astype(np.intp))
    codes = clusters.codes[first]
    # One first state, or fewer, says nothing of how first states vary.
    sampled = not fixed and len(np.unique(codes)) > 1
    return Initial(rows, weights / weights.sum(), "first states" if sampled else "given", codes if sampled else None)


def _feature_rows(initial: Any, dim: int) -> Any:
    if _checks.is_sparse(initial):
        return _checks.sparse_rows("initial", initial, n_columns=dim).astype(np.float64)
    array = _checks.as_array("initial", initial)
    if array.ndim == 1:
        return _checks.vector("initial", array, dim)[None]
    return np.asarray(_checks.matrix("initial", array, n_columns=dim), dtype=np.float64)


def _codes(labels: Any, m: int, clusters: Clusters) -> Index:
    if clusters.labels is None:
        raise InputError(
            f"initial_episodes name episodes of the log, and its draws are {clusters.method}. Leave it out, or leave "
            "blocks out."
        )
    own, codes = coded(_columns.labels(labels, m))
    known = {label: code for code, label in enumerate(clusters.labels.tolist())}
    strange = [label for label in own.tolist() if label not in known]
    if strange:
        raise InputError(
            f"initial_episodes names episode {strange[0]!r}, which the log does not have ({len(strange)} such). Leave "
            "initial_episodes out, and say fixed_initial=False where the initial states are a sample of their own."
        )
    return np.array([known[label] for label in own.tolist()])[codes]
