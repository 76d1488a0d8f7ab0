"""Radial basis functions on a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from valuate import _checks
from valuate.errors import InputError
from valuate.features._base import FeatureMap

__all__ = ["RBFGrid"]

Array: TypeAlias = NDArray[np.float64]

#: Distances computed at a time: they stay in the cache from the first step of the formula to the last.
BLOCK_ENTRIES = 1 << 16
#: Centres of the largest grid.
MOST_CENTRES = 1_000_000


class RBFGrid(FeatureMap):
    """Features exp(-r / sigma), with r the distance from a state to each centre of a regular grid, or its square.

    Parameters
    ----------
    low, high : (k,) array-like
        The first and the last centre along each dimension.
    per_dimension : int or (k,) ints
        Centres along each dimension, evenly spaced, both ends included; a single centre lies in the middle. The first
        dimension varies slowest.
    sigma : float
    normalize : bool
        Whether the features of a state are divided by their sum. The quotient is exact far from every centre too.
    sparse_below : float, optional
        Features smaller than this become 0 and are not stored; with ``normalize`` the others are then scaled to sum
        to 1 again, and where all of a state are smaller the largest is kept. The output is a scipy.sparse.csr_array.
        None: all are kept, in a dense array.
    scale : bool
        Whether distances are measured after mapping [low, high] to [0, 1] in each dimension, or between the numbers
        as they are.
    columns : (k,) ints, optional
        Which numbers of a state are looked at. None: all.
    distance : {"euclidean", "squared"}
        Whether r is the Euclidean distance or its square. With the square the features are products over the
        dimensions, and much cheaper.

    Notes
    -----
    The paper's features (Peng et al., "SVRG for policy evaluation with fewer gradient evaluations", IJCAI 2020,
    appendix) are `mountain_car`, `cart_pole` and `acrobot`.
    """

    def __init__(
        self,
        low: ArrayLike,
        high: ArrayLike,
        per_dimension: int | Sequence[int] = 3,
        sigma: float = 0.1,
        normalize: bool = True,
        sparse_below: float | None = None,
        scale: bool = True,
        columns: Sequence[int] | None = None,
        distance: str = "euclidean",
    ) -> None:
        self.low = low
        self.high = high
        self.per_dimension = per_dimension
        self.sigma = sigma
        self.normalize = normalize
        self.sparse_below = sparse_below
        self.scale = scale
        self.columns = columns
        self.distance = distance

    @property
    def n_features(self) -> int:
        """Centres in the grid."""
        return int(np.prod([len(axis) for axis in self._grid().axes]))

    def _width(self) -> int:
        return self.n_features

    @property
    def centres(self) -> Array:
        """The centres in the units of the states, (n_features, k)."""
        grid = self._grid()
        scaled = np.stack([part.ravel() for part in np.meshgrid(*grid.axes, indexing="ij")], axis=1)
        return scaled / grid.factor + grid.origin

    def fit(self, X: Any, y: Any = None) -> Self:
        """Check the parameters against the states ``X``; ``y`` counts for nothing."""
        self._chosen(X, len(self._grid().axes))
        self._numbers()
        return self

    def transform(self, X: Any) -> Any:
        """Features of states (m, at least k): (m, n_features), dense or sparse."""
        grid = self._grid()
        states = self._chosen(X, len(grid.axes))
        sigma, cutoff = self._numbers()
        fill = _fill_products if self.distance == "squared" else _fill
        m, d = len(states), int(np.prod([len(axis) for axis in grid.axes]))
        step = max(1, BLOCK_ENTRIES // d)
        out = np.empty((m, d)) if cutoff is None else np.empty((0, d))
        buffer = np.empty((min(m, step), d))
        kept: list[Any] = []
        for at in range(0, m, step):
            block = (states[at : at + step] - grid.origin) * grid.factor
            features = buffer[: len(block)] if cutoff is not None else out[at : at + step]
            fill(features, block, grid.axes, sigma, self.normalize)
            if cutoff is not None:
                kept.append(_large(features, cutoff, self.normalize))
        return out if cutoff is None else _joined(kept, d)

    def _numbers(self) -> tuple[float, float | None]:
        """Sigma and the cutoff, checked, and the distance too."""
        if self.distance not in ("euclidean", "squared"):
            raise InputError(f"distance must be 'euclidean' or 'squared', not {self.distance!r}.")
        sigma, cutoff = _checks.number("sigma", self.sigma, above=0.0), self.sparse_below
        return sigma, None if cutoff is None else _checks.number("sparse_below", cutoff, low=0.0)

    def _grid(self) -> _Grid:
        low, high = _checks.column("low", self.low), _checks.column("high", self.high)
        if len(low) != len(high):
            raise InputError(f"low has {len(low)} entries and high {len(high)}: one of each a dimension is needed.")
        if (low >= high).any():
            k = int((low >= high).argmax())
            raise InputError(f"low must be below high; in dimension {k} they are {low[k]:.6g} and {high[k]:.6g}.")
        per = self.per_dimension
        counts = [per] * len(low) if np.ndim(per) == 0 else list(per)  # type: ignore[arg-type]
        if len(counts) != len(low):
            raise InputError(f"per_dimension has {len(counts)} entries and there are {len(low)} dimensions.")
        counts = [_checks.whole("per_dimension", count, low=1) for count in counts]
        if np.prod(counts, dtype=float) > MOST_CENTRES:
            raise InputError(f"The grid has {np.prod(counts, dtype=float):.3g} centres: at most {MOST_CENTRES:,}.")
        if self.scale:
            origin, factor, ends = low, 1.0 / (high - low), [(0.0, 1.0)] * len(low)
        else:
            origin, factor, ends = np.zeros(len(low)), np.ones(len(low)), list(zip(low, high, strict=True))
        axes = [
            np.linspace(first, last, count) if count > 1 else np.array([(first + last) / 2])
            for (first, last), count in zip(ends, counts, strict=True)
        ]
        return _Grid(origin, factor, axes)

    def _chosen(self, X: Any, k: int) -> Array:
        states = _checks.as_array("states", X)
        if states.ndim == 1 and k == 1:
            states = states[:, None]
        states = _checks.matrix("states", states)
        if self.columns is not None:
            columns = [_checks.whole("columns", column, low=0) for column in self.columns]
            if len(columns) != k:
                raise InputError(f"columns has {len(columns)} entries and the grid {k} dimensions.")
            if max(columns) >= states.shape[1]:
                raise InputError(f"columns asks for number {max(columns)} of states that have {states.shape[1]}.")
            states = states[:, columns]
        if states.shape[1] != k:
            raise InputError(f"states have {states.shape[1]} numbers and the grid {k} dimensions.")
        return states.astype(np.float64, copy=False)


class _Grid:
    """Where a state is mapped, (x - origin) * factor, and the centres' coordinates there."""

    def __init__(self, origin: Array, factor: Array, axes: list[Array]) -> None:
        self.origin, self.factor, self.axes = origin, factor, axes


def _fill(out: Array, states: Array, axes: list[Array], sigma: float, normalize: bool) -> None:
    """Write the features of a block of states into ``out``, (m, d)."""
    _outer(out, [np.square(states[:, k, None] - axis) for k, axis in enumerate(axes)], np.add)
    np.sqrt(out, out=out)
    if normalize:  # a common factor goes out in the quotient, so the nearest centre may count as distance 0
        out -= out.min(axis=1, keepdims=True)
    out /= -sigma
    np.exp(out, out=out)
    if normalize:
        out /= out.sum(axis=1, keepdims=True)


def _fill_products(out: Array, states: Array, axes: list[Array], sigma: float, normalize: bool) -> None:
    """As `_fill` for the squared distance, whose features, and their sum, are products over the dimensions."""
    factors = []
    for k, axis in enumerate(axes):
        factor = np.square(axis[:, None] - states[:, k])  # (centres, m): sums over few centres go along the rows
        if normalize:
            factor -= factor.min(axis=0)
        factor /= -sigma
        np.exp(factor, out=factor)
        if normalize:
            factor /= factor.sum(axis=0)
        factors.append(np.ascontiguousarray(factor.T))
    _outer(out, factors, np.multiply)


def _outer(out: Array, parts: list[Array], combine: np.ufunc) -> None:
    """Write into ``out``, (m, d), each choice of one column of every part, combined; the first part varies slowest.

    The parts are joined by halves, so that the last and largest step has long rows.
    """
    if len(parts) == 1:
        out[:] = parts[0]
        return
    halves = []
    for half in (parts[: len(parts) // 2], parts[len(parts) // 2 :]):
        joined = half[0]
        if len(half) > 1:
            joined = np.empty((len(out), int(np.prod([part.shape[1] for part in half]))))
            _outer(joined, half, combine)
        halves.append(joined)
    left, right = halves
    combine(left[:, :, None], right[:, None, :], out=out.reshape(len(out), left.shape[1], right.shape[1]))


def _large(features: Array, cutoff: float, normalize: bool) -> tuple[Array, NDArray[np.int32], NDArray[np.int64]]:
    """The entries that are at least ``cutoff``, their columns, and how many each row has."""
    keep = features >= cutoff
    keep &= features > 0
    if normalize:
        empty = np.flatnonzero(~keep.any(axis=1))  # the largest stands for them all: there is no row of zeros
        keep[empty, features[empty].argmax(axis=1)] = True
        features *= keep
        features /= features.sum(axis=1, keepdims=True)
    columns = np.broadcast_to(np.arange(features.shape[1], dtype=np.int32), features.shape)
    return features[keep], columns[keep], np.count_nonzero(keep, axis=1)


def _joined(parts: list[tuple[Array, NDArray[np.int32], NDArray[np.int64]]], d: int) -> Any:
    """Blocks of entries, columns and counts as one CSR array."""
    from scipy import sparse

    values, columns, counts = (np.concatenate(part) for part in zip(*parts, strict=True))
    starts = np.concatenate([[0], counts.cumsum()])
    return sparse.csr_array((values, columns, starts), shape=(len(counts), d))
