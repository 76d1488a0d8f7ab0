"""Feature rows in memory: built once from a log, summed and handed to the solvers' loop in chunks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate import drawing, gathering, moments, sparse_products, sparse_tables, storing, traces
from valuate._kernels import layouts, scalars, sums
from valuate._threads import cut, run_all
from valuate.protocols import Scalars

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]

#: Rows gathered at a time where a matrix product needs them together.
GATHERED = 4096
#: Records read at a time.
COUNTED = 1 << 20
#: Stored rows are few, and sums go through them, when there are at least this many transitions for each.
FEW = 4


class Rows:
    """The transitions of a problem: records that point into a table of stored feature rows.

    Parameters
    ----------
    table : (n_stored, dim) array or CSR matrix
        Stored feature rows. A dense table must come from `store_dense`.
    dim : int
        Number of features; a dense table has padding columns of zeros beyond it.
    records : (n_rows,) array of `layouts.RECORD`
    weights : (n_rows,) or (0,) array
        Normalised to mean 1; empty when all are equal.
    layout : {"dense", "indexed", "sparse"}
    survey : storing.Survey or sparse_tables.Sizes, optional
        What is known of the columns of a dense table, or of the entries of a sparse one.
    total_weight : float, optional
        Sum of the weights as they were given; the number of rows where there were none.
    """

    def __init__(
        self,
        table: Any,
        dim: int,
        records: Any,
        weights: Vector,
        layout: str,
        survey: storing.Survey | sparse_tables.Sizes | None = None,
        total_weight: float | None = None,
    ) -> None:
        self.table, self.dim, self.records, self.weights, self.layout = table, dim, records, weights, layout
        self.n_rows = len(records)
        self.total_weight = float(self.n_rows) if total_weight is None else total_weight
        self.n_stored = int(table.shape[0])
        self.is_sparse = layout == "sparse"
        self.dtype = np.dtype(table.dtype)
        #: Length of the vectors that the kernels take: dim and the padding of a dense table.
        self.width = int(table.shape[1])
        self.view: Any = (
            layouts.SparseRows(table.indptr, table.indices, table.data, records, weights)
            if self.is_sparse
            else layouts.DenseRows(table, records, weights)
        )
        stored = int(table.nnz) // max(1, self.n_stored) if self.is_sparse else dim
        #: Entries that a visit to a row reads, on average.
        self.entries = max(1, 2 * stored)
        self._state_weights: Vector | None = None
        self._survey = survey
        self._peaks: Vector | None = None
        self._sums_of_columns: tuple[Vector, Vector] | None = None
        self._entries: sparse_products.Entries | None = None
        self._stepping: Rows | None = None
        self._ratio_sums: tuple[float, float] | None = None
        self._never_ends: bool | None = None

    def for_steps(self, visits: float = np.inf) -> Rows:
        """The rows as single steps like them: padded and aligned, copied once where so many visits are worth it."""
        if self.is_sparse or visits < self.n_rows or layouts.is_aligned(self.table):
            return self
        if self._stepping is None:
            table = storing.padded_table(self.table)
            self._stepping = Rows(
                table, self.dim, self.records, self.weights, self.layout, self._survey, self.total_weight
            )
        return self._stepping

    def chunk(self, order: NDArray[np.int32]) -> tuple[Any, NDArray[np.int32]]:
        """A view in which the rows of ``order`` can be visited, and the order within that view."""
        return self.view, order

    def pad(self, vector: Vector | None, dtype: Any = np.float64) -> Any:
        """A copy of ``vector`` (zeros for None) in aligned memory of the kernels' length."""
        out = layouts.aligned_zeros((self.width,), dtype)
        if vector is not None:
            out[: self.dim] = vector
        return out

    def sums(
        self,
        x: Vector | None = None,
        y: Vector | None = None,
        *,
        reward: float = 0.0,
        phi: bool = False,
        delta: bool = False,
        order: NDArray[np.int32] | None = None,
    ) -> tuple[Vector, Vector]:
        """Sums over the rows of ``order``, or all: on phi and on delta.

        The first is the sum of scale*(delta.x - reward*r)*phi + weight*(phi.y)*phi, the second of
        scale*(phi.y)*delta. An absent vector counts as zero; a sum that is not asked for comes back as zeros.
        """
        count = self.n_rows if order is None else len(order)
        if FEW * self.n_stored <= count:
            return self._sums_through_states(x, y, reward, phi, delta, order, count)
        if self.is_sparse:
            blocks = cut(count, sparse_products.ENTRY * self.entries, sparse_products.OUTPUT * self.dim)
            given = self.records, self.weights, order, blocks, x, y, reward
            return self.sparse_entries().sums(*given, (phi, delta))
        blocks = cut(count, self.entries, self.width)
        x, y = (None if vector is None else self.pad(vector) for vector in (x, y))
        outs = [[self.pad(None) if wanted else None for wanted in (phi, delta)] for _ in blocks]
        run_all(
            [
                partial(sums.dense_sums, self.view, order, first, last, x, y, reward, *out)
                for (first, last), out in zip(blocks, outs, strict=True)
            ]
        )
        totals = [_total([out[k] for out in outs], self.width)[: self.dim] for k in (0, 1)]
        return totals[0], totals[1]

    def _sums_through_states(
        self, x: Vector | None, y: Vector | None, reward: float, phi: bool, delta: bool, order: Any, count: int
    ) -> tuple[Vector, Vector]:
        values = [np.zeros(self.n_stored) if v is None else self.times(v) for v in (x, y)]
        blocks = cut(count, 16, self.n_stored)
        outs = [(np.zeros(self.n_stored), np.zeros(self.n_stored)) for _ in blocks]
        run_all(
            [
                partial(sums.state_scalars, self.records, self.weights, order, first, last, *values, reward, *out)
                for (first, last), out in zip(blocks, outs, strict=True)
            ]
        )
        on_phi, on_delta = (_total([out[k] for out in outs], self.n_stored) for k in (0, 1))
        zero = np.zeros(self.dim)
        return (
            self.transposed_times(on_phi) if phi else zero,
            self.transposed_times(on_delta) if delta else zero,
        )

    def times(self, vector: Vector) -> Vector:
        """The product of the stored rows with ``vector``: (n_stored,)."""
        if self.is_sparse:
            return self.sparse_entries().times(vector)
        return np.concatenate([self.stored(*block) @ vector for block in self.stored_blocks()])

    def transposed_times(self, factors: Vector) -> Vector:
        """The sum of the stored rows, each times its factor: (dim,)."""
        if self.is_sparse:
            return self.sparse_entries().transposed_times(factors)
        parts = [self.stored(first, last).T @ factors[first:last] for first, last in self.stored_blocks()]
        return np.asarray(_total(parts, self.dim))

    def sparse_entries(self) -> sparse_products.Entries:
        """A sparse table as its products take it; whether all entries are one number is found out once."""
        if self._entries is None:
            found = self.survey()
            assert isinstance(found, sparse_tables.Sizes)
            self._entries = sparse_products.Entries(self.table, found.constant)
        return self._entries

    def stored_blocks(self) -> list[tuple[int, int]]:
        """The table cut into blocks small enough to be copied."""
        return [(at, min(at + GATHERED, self.n_stored)) for at in range(0, self.n_stored, GATHERED)]

    def state_weights(self) -> Vector:
        """Total weight of the transitions that start in each stored row: (n_stored,)."""
        if self._state_weights is None:
            self._state_weights = np.zeros(self.n_stored)
            sums.visits(self.records, self.weights, 0, self.n_rows, self._state_weights)
        return self._state_weights

    def survey(self) -> storing.Survey | sparse_tables.Sizes:
        """What one look at all stored rows tells of the columns, or of the entries of sparse rows; kept."""
        if self._survey is None:
            self._survey = (
                sparse_tables.survey(self.table.data)
                if self.is_sparse
                else storing.surveyed(self.table, self.dim, self.records, self.weights)
            )
        return self._survey

    def column_squares(self) -> Vector:
        """Sum over rows of weight * phi_j^2: (dim,)."""
        return self._column_sums()[0]

    def reward_sums(self) -> Vector:
        """Sum over rows of scale * reward * phi: (dim,)."""
        return self._column_sums()[1]

    def _column_sums(self) -> tuple[Vector, Vector]:
        """Both, which for sparse rows are found together when one is asked for."""
        found = self.survey()
        if isinstance(found, storing.Survey):
            return found.squares, found.rewards
        if self._sums_of_columns is None:
            few = FEW * self.n_stored <= self.n_rows
            self._sums_of_columns = self.sparse_entries().column_sums(self.records, self.weights, few)
        return self._sums_of_columns

    def square_errors(self, theta: Vector) -> Vector:
        """Sum of (scale * temporal-difference error)^2 over the transitions from each stored row: (n_stored,)."""
        out = np.zeros(self.n_stored)
        sums.square_errors(self.records, 0, self.n_rows, self.times(theta), out)
        return out

    def square_lengths(self, scale: Vector) -> Vector:
        """Squared length of each stored row with its entries times ``scale``: (n_stored,)."""
        if self.is_sparse:
            return self.sparse_entries().times(np.square(scale), squared=True)
        out, squares = np.empty(self.n_stored), np.square(scale)
        blocks = cut(self.n_stored, self.dim, 1)
        run_all([partial(sums.square_lengths, self.table, squares, *block, out) for block in blocks])
        return out

    def ratio_sums(self) -> tuple[float, float]:
        """Sums over rows of weight * ratio and of weight * ratio^2. Looks at no feature; computed once and kept."""
        if self._ratio_sums is None:
            self._ratio_sums = sums.ratio_sums(self.records, self.weights, 0, self.n_rows)
        return self._ratio_sums

    def gram(self) -> NDArray[np.float64]:
        """n C without ridge: (dim, dim)."""
        return moments.gram(self)

    def cross(self, order: NDArray[np.int32] | None = None) -> NDArray[np.float64]:
        """n A without ridge, or the same sum over the rows of ``order`` only: (dim, dim)."""
        return moments.cross(self if order is None else self.part(order))

    def cross_and_gram(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both, from one pass over the rows where that saves work."""
        return moments.cross_and_gram(self)

    def scaled_cross(
        self, left: Vector, right: Vector, order: NDArray[np.int32] | None, kind: type[np.floating[Any]]
    ) -> Any:
        """A of the rows of ``order``, or all, times units from the left and the right: (dim, dim) of this type."""
        return moments.scaled_cross(self if order is None else self.part(order), gathering.Units(left, right), kind)

    def scaled_gram(self, order: NDArray[np.int32], shares: Vector, units: Vector, kind: type[np.floating[Any]]) -> Any:
        """The sum of phi phi' over rows, each times its share, and units on both sides; see `moments.scaled_gram`."""
        return moments.scaled_gram(self, order, shares, units, kind)

    def row_weights(self, order: NDArray[np.int32]) -> Vector:
        """The weights of some rows, of mean 1 over all: (k,)."""
        return self.weights[order] if len(self.weights) else np.ones(len(order))

    def spans(self, scale: Vector) -> Vector:
        """For each row weight * |scale * phi|^2: (n,)."""
        weights = self.weights if len(self.weights) else 1.0
        return np.asarray(self.square_lengths(scale)[self.records["state"]] * weights)

    def traced(self, starts: NDArray[np.bool_], decay: float, ratio_on: str) -> traces.Traced:
        """The sums of LSTD(lambda); see `traces.traced`."""
        return traces.traced(self, starts, decay, ratio_on)

    def next_squares(self, columns: NDArray[np.intp]) -> Vector:
        """Sum over rows of (weight * ratio * discount * phi'_j)^2 for some columns: (k,)."""
        factors = np.square(self.records["scale"] * self.records["discount"])
        shares = np.bincount(self.records["next"], factors, self.n_stored).astype(np.float64, copy=False)
        if self.is_sparse:
            return self.sparse_entries().transposed_times(shares, squared=True)[columns]
        return np.asarray(
            sum(np.square(self.stored(a, b)[:, columns]).T @ shares[a:b] for a, b in self.stored_blocks())
        )

    def square_terms(self) -> Vector:
        """For each row weight^2 ratio^2 (reward^2 + its mean square): (n,). Looks at no feature."""
        scale, rewards = np.square(self.records["scale"]), np.square(self.records["reward"])
        return np.asarray(scale * (rewards + rewards.mean()))

    def square_rewards(self) -> float:
        """Sum over rows of weight * (ratio * reward)^2."""
        return moments.square_rewards(self)

    def weighted_rows(self) -> Iterator[NDArray[np.float64]]:
        """Blocks of dense rows X with X'X = n C without ridge."""
        return moments.weighted_rows(self)

    def column_peaks(self) -> Vector:
        """The size of the largest entry of each column in all stored rows: (dim,)."""
        found = self.survey()
        if isinstance(found, storing.Survey):
            return found.peaks
        if self._peaks is None:
            self._peaks = sparse_tables.column_peaks(self.table, self.dim)
        return self._peaks

    def scaled(self, units: Vector) -> Rows:
        """The same transitions, every column of a copy of the table multiplied by its unit: (dim,)."""
        table = storing.scaled_table(self.table, self.dim, units)
        return Rows(table, self.dim, self.records, self.weights, self.layout, None, self.total_weight)

    def centred(self, centre: Vector) -> Rows:
        """The same transitions, ``centre`` (dim,) taken from every row of a float64 copy of the dense table."""
        table = layouts.aligned_zeros((self.n_stored, layouts.padded(self.dim, np.float64)), np.float64)
        np.subtract(self.table[:, : self.dim], centre, out=table[:, : self.dim])
        return Rows(table, self.dim, self.records, self.weights, self.layout, None, self.total_weight)

    def constant_column(self) -> int | None:
        """The first column that holds one number, not 0, in every stored row; None where there is none, or sparse."""
        if self.is_sparse:
            return None
        first = self.table[0, : self.dim]
        alike = first != 0
        for at, end in self.stored_blocks():
            alike &= (self.table[at:end, : self.dim] == first).all(axis=0)
            if not alike.any():
                return None
        return int(alike.argmax())

    def scalars(self) -> Scalars:
        """Largest and mean scales, weights and rewards. Looks at no feature."""
        most_scale, most_weight, *totals = scalars.scalars(self.records, self.weights, 0, self.n_rows)
        return Scalars(self.n_rows, most_scale, most_weight, (totals[0], totals[1]), (totals[2], totals[3]))

    def never_ends(self) -> bool:
        """Whether the discount of every row is 1: nothing ends, and nothing later counts less. Known once and kept."""
        if self._never_ends is None:
            blocks = range(0, self.n_rows, COUNTED)
            self._never_ends = all((self.records["discount"][k : k + COUNTED] == 1.0).all() for k in blocks)
        return self._never_ends

    def any_reward(self) -> bool:
        """Whether any reward is not 0."""
        return bool(self.records["reward"].any())

    def maxima(self) -> tuple[float, float, float]:
        """Largest weight*|phi|^2, weight*ratio^2*|delta|^2 and weight*ratio*|phi|*|delta| over the rows."""
        kernel = sums.sparse_maxima if self.is_sparse else sums.dense_maxima
        blocks = cut(self.n_rows, self.entries, 1)
        found: list[tuple[float, float, float]] = [(0.0, 0.0, 0.0)] * len(blocks)

        def look(k: int) -> None:
            found[k] = kernel(self.view, *blocks[k])

        run_all([partial(look, k) for k in range(len(blocks))])
        phi, delta, both = (max(column) for column in zip(*found, strict=True))
        return phi, delta, both

    def stored(self, first: int, last: int) -> NDArray[np.float64]:
        """Stored rows ``first`` to ``last`` as a dense float64 matrix without padding."""
        part = self.table[first:last]
        if self.is_sparse:
            part = part.toarray()
        return np.asarray(part[:, : self.dim], dtype=np.float64)

    def part(self, order: NDArray[np.int32]) -> Rows:
        """Some of the transitions, on the same table."""
        weights = self.weights[order] if len(self.weights) else self.weights
        known = self._survey if self.is_sparse else None  # of columns it depends on the transitions
        return Rows(self.table, self.dim, self.records[order], weights, self.layout, known)

    def stored_at(self, places: NDArray[np.intp]) -> NDArray[np.float64]:
        """The stored rows at these places as a dense float64 matrix without padding."""
        part = storing.some_rows(self.table, places).toarray() if self.is_sparse else self.table[places]
        return np.asarray(part[:, : self.dim], dtype=np.float64)

    def taken(self, places: Any) -> Any:
        """The stored rows at these places: CSR where rows are sparse, else as `stored_at`."""
        return storing.some_rows(self.table, places) if self.is_sparse else self.stored_at(places)

    def at(self, order: NDArray[np.int32]) -> tuple[Any, Any, Any, Vector | None]:
        """Some rows: features and next features, (k, dim), dense or CSR; records; weights, None where all are 1."""
        records = self.records[order]
        phi, following = (self.taken(records[name]) for name in ("state", "next"))
        return phi, following, records, self.weights[order] if len(self.weights) else None

    def stretches(self, size: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """About ``size`` rows in stretches of the log; see `drawing.stretches`."""
        return drawing.stretches(self.n_rows, size, rng)

    def subset(self, size: int, rng: np.random.Generator) -> NDArray[np.int32]:
        """A uniformly random set of ``size`` rows, in increasing order, without anything of size 8 n."""
        return drawing.subset(self.n_rows, size, rng)


def _total(parts: list[Any], shape: Any) -> Any:
    """The parts added in order; zeros where there are none."""
    out = np.zeros(shape)
    for part in parts:
        if part is not None:
            out += part
    return out
