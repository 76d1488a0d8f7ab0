"""Logs for the grid, made quickly: in blocks of trajectories, on all cores, the same whatever their number."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate._threads import thread_count
from valuate.bench.accuracy.cells import STATES_A_FEATURE, TILINGS, Cell
from valuate.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

DISCOUNT = 0.99
#: Steps of a trajectory, which ends there.
STEPS = 500
#: Bytes of the trajectories that are made together.
BLOCK = 1 << 26
#: What a coordinate keeps of itself from step to step: so much for the largest, less for others by this power.
MEMORY, FADING = 0.98, 0.25
#: What is left of that under the second of two actions, which the logging policy takes half of the time.
SECOND = 0.6
#: How often the policy to be evaluated takes the first action, off-policy.
FIRST_ACTION = 0.9
#: Tiles: actions go in four directions; the policy to be evaluated prefers the first.
PREFERRED, DRIFT, NOISE = 0.7, 0.02, 0.03


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What a user has in memory.

    Attributes
    ----------
    table : (stored, dim) array or CSR matrix
        Of trajectories row t is phi of transition t, and row t + 1 its next features. Else the features of each state.
    states, next_states : (n,) int array, or None for trajectories
    rewards : (n,) array
    ended : (n,) flags
        Where nothing follows.
    ratios : (n,) array or None
    ridge : float
    """

    table: Any
    rewards: Vector
    ended: NDArray[np.bool_]
    ratios: Vector | None = None
    states: Any = None
    next_states: Any = None
    ridge: float = 0.0

    @property
    def n(self) -> int:
        """Transitions."""
        return len(self.rewards)

    @property
    def dim(self) -> int:
        """Features."""
        return int(self.table.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether rows are CSR."""
        return not isinstance(self.table, np.ndarray)

    @property
    def features(self) -> Any:
        """Of the state of each transition of trajectories, without a copy."""
        return _part(self.table, 0, self.n)

    @property
    def next_features(self) -> Any:
        """As `features`, of the next states."""
        return _part(self.table, 1, self.n + 1)

    @property
    def discounts(self) -> Vector:
        """0 where nothing follows."""
        return np.where(self.ended, 0.0, DISCOUNT)

    def head(self, n: int) -> Log:
        """The first rows."""
        part: dict[str, Any] = {name: getattr(self, name)[:n] for name in ("rewards", "ended")}
        if self.ratios is not None:
            part["ratios"] = self.ratios[:n]
        if self.states is not None:
            return replace(self, **part, states=self.states[:n], next_states=self.next_states[:n])
        return replace(self, **part, table=_part(self.table, 0, n + 1))

    def problem(self) -> Problem:
        """The problem as a user of valuate builds it."""
        rest: dict[str, Any] = {
            "discount": DISCOUNT,
            "terminated": self.ended,
            "ratios": self.ratios,
            "ridge": self.ridge,
        }
        if self.states is not None:
            return Problem.from_table(self.table, self.states, self.rewards, self.next_states, **rest)
        return Problem.from_arrays(self.features, self.rewards, self.next_features, **rest)


def make(cell: Cell, seed: int = 0) -> Log:
    """The log of a cell; one seed, one log."""
    made = {"dense": _trajectories, "tiles": _tiles, "table": _table}[cell.kind](cell, seed)
    return replace(made, ridge=_ridge(made, cell.condition)) if cell.kind == "tiles" else made


def spectrum(dim: int, condition: float, rows: int) -> Vector:
    """Eigenvalues k^-p of which C of so many independent rows has about this condition: (dim,).

    Even white rows have a C whose condition is ((1 + s) / (1 - s))^2, s^2 = dim / rows (Marchenko and Pastur 1967).
    """
    s = min(0.9, np.sqrt(dim / rows))
    white = ((1 + s) / (1 - s)) ** 2
    power = np.log(max(condition / white, 1.0)) / np.log(max(dim, 2))
    return np.asarray(np.arange(1, dim + 1) ** -power)


def _trajectories(cell: Cell, seed: int) -> Log:
    """Coordinates with power-law variances remember themselves, the largest longest; a cosine transform mixes them.

    It takes dim log dim operations a row and is orthogonal: the spectrum stays, and no feature is larger than others.
    """
    from scipy.fft import idct

    rng = np.random.default_rng([seed, 1])
    deviations = np.sqrt(spectrum(cell.dim, cell.condition, cell.n)) * rng.choice([-1.0, 1.0], cell.dim)
    weights = rng.standard_normal(cell.dim)
    weights /= np.linalg.norm(deviations * idct(weights, norm="ortho"))  # what is earned has variance 1, and noise 1
    dtype = np.dtype(cell.dtype)
    table = np.zeros((cell.n + 1, cell.dim), dtype)
    rewards, ratios = np.empty(cell.n), np.empty(cell.n)
    length = min(STEPS, cell.n)
    together = length * max(1, BLOCK // (length * cell.dim * dtype.itemsize))

    def fill(k: int) -> None:
        part = slice(k * together, min((k + 1) * together, cell.n))
        rows = table[: cell.n][part]
        ratios[part], rewards[part] = _block(rows, deviations, weights, length, np.random.default_rng([seed, 2, k]))

    with ThreadPoolExecutor(thread_count()) as pool:
        list(pool.map(fill, range(-(-cell.n // together))))
    return Log(table=table, rewards=rewards, ended=_ends(cell.n, length), ratios=ratios if cell.off_policy else None)


def _block(
    rows: NDArray[Any], deviations: Vector, weights: Vector, length: int, rng: np.random.Generator
) -> tuple[Vector, Vector]:
    """Some trajectories, written to ``rows``; their ratios and rewards."""
    from scipy.fft import dct

    n, dim = rows.shape
    count = -(-n // length)
    dtype = rows.dtype.type
    keep = (MEMORY * np.arange(1, dim + 1) ** -FADING).astype(rows.dtype)
    fresh = np.sqrt(1 - keep**2 * (1 + SECOND**2) / 2).astype(rows.dtype)
    first = rng.random((count, length)) < 0.5
    z = rng.standard_normal((length, count, dim), dtype=rows.dtype)
    for t in range(1, length):
        z[t] *= fresh
        z[t] += np.where(first[:, t - 1], dtype(1), dtype(SECOND))[:, None] * keep * z[t - 1]
    z *= deviations.astype(rows.dtype)
    mixed = dct(z.transpose(1, 0, 2).reshape(-1, dim)[:n], norm="ortho", axis=1)
    rows[...] = mixed
    ratios = np.where(first, 2 * FIRST_ACTION, 2 * (1 - FIRST_ACTION)).reshape(-1)[:n]
    return ratios, rows @ weights.astype(rows.dtype) + rng.standard_normal(n)


def _tiles(cell: Cell, seed: int) -> Log:
    """Walks in the unit square, seen through `TILINGS` grids with offsets of their own; each row has a one for each."""
    import scipy.sparse as sp

    rng = np.random.default_rng([seed, 3])
    length = min(STEPS, cell.n)
    count = -(-cell.n // length)
    places = np.empty((length, count, 2))
    places[0] = rng.random((count, 2))
    actions = rng.integers(0, 4, (length, count))
    drifts = DRIFT * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    for t in range(1, length):
        moved = places[t - 1] + drifts[actions[t - 1]] + NOISE * rng.standard_normal((count, 2))
        places[t] = 1 - np.abs(1 - np.abs(moved))  # off the walls, which are at 0 and 1
    np.clip(places, 0.0, 1.0, out=places)
    where = places.transpose(1, 0, 2).reshape(-1, 2)[: cell.n]
    side = max(1, int(np.sqrt(cell.dim // TILINGS)))
    columns = np.zeros((cell.n + 1, TILINGS), np.int32)
    for k, offset in enumerate(rng.random((TILINGS, 2))):
        x, y = (((where + offset) % 1.0) * side).astype(np.int32).T
        columns[:-1, k] = (k * side + x) * side + y
    columns[-1] = columns[-2]  # what follows the last transition is not looked at
    table = sp.csr_matrix((cell.n + 1, cell.dim), dtype=cell.dtype)
    # Assigned, as the constructor would look at everything.
    table.data, table.indices = np.ones(columns.size, cell.dtype), columns.reshape(-1)
    table.indptr = TILINGS * np.arange(cell.n + 2, dtype=np.int32 if columns.size < 2**31 else np.int64)
    rewards = np.sin(2 * np.pi * where).sum(axis=1) + rng.standard_normal(cell.n)
    ratios = np.where(actions == 0, 4 * PREFERRED, 4 * (1 - PREFERRED) / 3).T.reshape(-1)[: cell.n]
    return Log(table=table, rewards=rewards, ended=_ends(cell.n, length), ratios=ratios if cell.off_policy else None)


def _table(cell: Cell, seed: int) -> Log:
    """A Garnet with random features of power-law variances, mixed as those of `_trajectories`."""
    from scipy.fft import dct

    from valuate.environments import Garnet

    rng = np.random.default_rng([seed, 4])
    states = STATES_A_FEATURE * cell.dim
    process = Garnet(states, n_features=1, discount=DISCOUNT, seed=np.random.default_rng([seed, 5]))
    behaviour = process.random_policy(np.random.default_rng([seed, 6]))
    target = process.random_policy(np.random.default_rng([seed, 7])) if cell.off_policy else behaviour
    found = process.collect(cell.n, behaviour, target=target, seed=np.random.default_rng([seed, 8]))
    deviations = np.sqrt(spectrum(cell.dim, cell.condition, states))
    table = dct(rng.standard_normal((states, cell.dim)) * deviations, norm="ortho", axis=1).astype(cell.dtype)
    return Log(
        table=table,
        states=np.asarray(found.states),
        next_states=np.asarray(found.next_states),
        rewards=np.asarray(found.rewards),
        ended=np.asarray(found.terminated),
        ratios=None if found.ratios is None else np.asarray(found.ratios),
    )


def _ridge(log: Log, condition: float) -> float:
    """What makes the condition of a singular C this: its largest eigenvalue, by power iterations, over that."""
    problem = replace(log, ridge=0.0).problem()
    x = np.ones(problem.dim)
    for _ in range(20):
        x = problem.times_C(x / np.linalg.norm(x))
    return float(np.linalg.norm(x)) / condition


def _ends(n: int, length: int) -> NDArray[np.bool_]:
    ended = np.zeros(n, bool)
    ended[length - 1 :: length] = True
    ended[-1] = True
    return ended


def _part(table: Any, first: int, last: int) -> Any:
    """Rows of a table; of CSR as a view, which slicing is not."""
    if isinstance(table, np.ndarray):
        return table[first:last]
    import scipy.sparse as sp

    out = sp.csr_matrix((last - first, table.shape[1]), dtype=table.dtype)
    begin, end = int(table.indptr[first]), int(table.indptr[last])
    out.data, out.indices = table.data[begin:end], table.indices[begin:end]
    out.indptr = table.indptr[first : last + 1] - table.indptr[first]
    return out
