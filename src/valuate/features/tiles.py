"""Tile coding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import combinations
from math import log10, prod
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from valuate import _checks
from valuate._threads import cut, run_all
from valuate.errors import InputError, InputTypeError
from valuate.features import _inputs
from valuate.features._base import FeatureMap

__all__ = ["TileCoding"]

Groups: TypeAlias = tuple[tuple[int, ...], ...]

#: With ``groups="auto"``, this many columns or fewer are tiled together; of more, one tiling takes so many at most.
TOGETHER = 4
#: The fewest that one tiling takes with ``groups="auto"``, where there are more than `TOGETHER`.
FEWEST = 3
#: Features that a map without hashing may have.
MOST_FEATURES = 1 << 27
#: Steps of the number that is hashed: odd, so that no tile is lost in 64 bits.
MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class TileCoding(FeatureMap):
    """Several grids over the states, shifted against each other; a state's features say in which tile of each it lies.

    Each row has as many ones as there are tilings, and zeros otherwise, in a scipy.sparse.csr_array. A linear function
    of the features is piecewise constant on the pieces that the shifted grids cut.

    Parameters
    ----------
    tilings : int
        In all: the number of ones in a row, and what memory and time grow with.
    tiles : int
        Along each column, in each tiling. A column of two values has two, a constant one is left out.
    hash : int, optional
        The most features. Where the tiles are more, those of the larger tilings are hashed; each tiling keeps to
        features of its own. None: every tile has a feature.
    groups : {"auto", "all", "single", "pairs"} or sequence of sequences of int
        Which columns a tiling looks at: all, one each, two each, or those given. The groups are dealt to the tilings
        in turn, so there must be at least as many tilings. "auto" tiles up to 4 columns together. Of more, each
        tiling takes 3, or 4 where the columns would not be used up otherwise: the first tilings in the order of the
        columns, the others in orders drawn at random, so that all columns are looked at about equally often. A grid
        over many columns would have nearly every state alone in its tile.
    tails : float
        The share of states at each end of a column that the grid leaves out; they count as being on its edge.
    dtype : {"float32", "float64"}
        Of the ones. Exact in either; float32 takes two thirds of the memory.
    random_state : int
        Seed of the orders that ``groups="auto"`` draws.

    Attributes
    ----------
    low_, high_ : (k,) array
        The range of each column that is tiled; states beyond it are in the outermost tile.
    tiles_ : (k,) array of int
        Tiles along each column.
    groups_ : tuple of tuples of int
        The columns of each tiling.

    Notes
    -----
    Of T tilings, tiling t is shifted by (2 i + 1) t mod T parts of T of a tile along the i-th of its columns: unlike
    equal shifts along all, this leaves no diagonal along which the pieces are long (Miller and Glanz, 1996). The tiles
    are so wide that each tiling covers the range with exactly ``tiles`` of them.

    References
    ----------
    Sutton and Barto, "Reinforcement learning", 2nd edition, 9.5.4.
    """

    learned = ("low_", "high_", "tiles_", "groups_")

    def __init__(
        self,
        tilings: int = 8,
        tiles: int = 16,
        hash: int | None = None,
        groups: str | Sequence[Sequence[int]] = "auto",
        tails: float = 0.005,
        dtype: str = "float32",
        random_state: int = 0,
    ) -> None:
        self.tilings = tilings
        self.tiles = tiles
        self.hash = hash
        self.groups = groups
        self.tails = tails
        self.dtype = dtype
        self.random_state = random_state

    @property
    def n_features_(self) -> int:
        """Number of features."""
        self._require_fitted()
        return self._places().size

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the ranges of the states ``X``, (m, k) or (m,)."""
        tilings = _checks.whole("tilings", self.tilings, low=1)
        tiles = _checks.whole("tiles", self.tiles, low=2)
        tails = _inputs.share(self.tails)
        self._dtype()
        states = _inputs.numbers(X)
        found = _inputs.columns(states)
        low, high = _inputs.ranges(states, found, tails)
        along = np.array([1, 2, tiles])[found.values - 1]
        groups = self._groups(along > 1, tilings)
        _Places(along, groups, self._hash())
        self.low_, self.high_, self.tiles_, self.groups_ = low, high, along, groups
        return self

    def transform(self, X: Any) -> Any:
        """Features of states (m, k): a csr_array (m, n_features) with 32-bit indices."""
        from scipy import sparse

        from valuate._kernels import tiles as kernels

        self._require_fitted()
        states = _inputs.numbers(X, width=len(self.low_))
        places = self._places()
        m, tilings = len(states), len(self.groups_)
        out = np.empty((m, tilings), np.int32)
        plan = (*places.along(self.low_, self.high_), *places.arrays())
        visits = len(self.low_) + tilings + sum(map(len, self.groups_))
        run_all([partial(kernels.tile, states, *plan, *block, out) for block in cut(m, visits, 1)])
        starts = np.arange(0, (m + 1) * tilings, tilings, dtype=np.int32 if m * tilings < 2**31 else np.int64)
        ones = np.ones(m * tilings, self._dtype())
        return sparse.csr_array((ones, out.ravel(), starts), shape=(m, places.size))

    def _groups(self, varying: NDArray[np.bool_], tilings: int) -> Groups:
        """The columns of each tiling, those that vary."""
        k, columns = len(varying), np.flatnonzero(varying).tolist()
        if isinstance(self.groups, str):
            if self.groups == "auto":
                return self._dealt(columns, tilings)
            if self.groups not in ("all", "single", "pairs"):
                raise InputError(
                    f"groups must be 'auto', 'all', 'single', 'pairs' or lists of columns, not {self.groups!r}."
                )
            size = {"all": len(columns), "single": 1, "pairs": 2}[self.groups]
            found = list(combinations(columns, min(size, len(columns))))
        else:
            found = [_group(given, k) for given in self.groups]
            if not found:
                raise InputError("groups is empty: name the columns of at least one group, or say 'auto'.")
            found = [tuple(j for j in group if varying[j]) for group in found]
            found = [group for group in found if group] or [()]
        if len(found) > tilings:
            raise InputError(
                f"{len(found)} groups of columns need at least {len(found)} tilings, one each, and there are {tilings}."
                " Give more tilings, or fewer groups."
            )
        return tuple(found[t % len(found)] for t in range(tilings))

    def _dealt(self, columns: list[int], tilings: int) -> Groups:
        if len(columns) <= TOGETHER:
            return (tuple(columns),) * tilings
        size = max(FEWEST, -(-len(columns) // tilings))
        if size > TOGETHER:
            raise InputError(
                f"{len(columns)} columns need at least {-(-len(columns) // TOGETHER)} tilings of {TOGETHER} columns, "
                f"and there are {tilings}. Give more tilings, or the groups of columns that belong together."
            )
        rng = np.random.default_rng(_checks.whole("random_state", self.random_state, low=0))
        deck, groups = list(columns), []
        for _ in range(tilings):
            group: list[int] = []
            while len(group) < size:
                deck = deck or rng.permutation(columns).tolist()
                place = next(i for i, column in enumerate(deck) if column not in group)
                group.append(deck.pop(place))
            groups.append(tuple(sorted(group)))
        return tuple(groups)

    def _places(self) -> _Places:
        return _Places(self.tiles_, self.groups_, self._hash())

    def _hash(self) -> int | None:
        if self.hash is None:
            return None
        most = _checks.whole("hash", self.hash, low=1)
        if most > np.iinfo(np.int32).max:
            raise InputError(f"hash must be at most {np.iinfo(np.int32).max:,}, what 32 bits count, not {most:,}.")
        return most

    def _dtype(self) -> Any:
        if self.dtype not in ("float32", "float64"):
            raise InputError(f"dtype must be 'float32' or 'float64', not {self.dtype!r}.")
        return np.dtype(self.dtype)

    def _check_learned(self) -> None:
        k = len(self.low_)
        shapes = [np.shape(array) for array in (self.low_, self.high_, self.tiles_)]
        whole = isinstance(self.groups_, tuple) and all(isinstance(j, int) for group in self.groups_ for j in group)
        if not (
            shapes == [(k,)] * 3
            and np.isfinite(self.low_).all()
            and np.isfinite(self.high_).all()
            and (self.low_ <= self.high_).all()
            and self.tiles_.dtype.kind in "iu"
            and self.tiles_.min() >= 1
            and whole
            and all(0 <= j < k for group in self.groups_ for j in group)
        ):
            raise InputError("The saved TileCoding is damaged: its ranges, tiles and groups do not fit each other.")


class _Places:
    """Where the features of each tiling are, and what the kernel needs to find them.

    Parameters
    ----------
    along : (k,) array of int
        Tiles along each column.
    groups : the columns of each tiling
    most : the most features there may be, or None
    """

    def __init__(self, along: NDArray[np.int64], groups: Groups, most: int | None) -> None:
        self.tiles = along.astype(np.float64)
        self.groups = groups
        self.cells = [prod(int(along[j]) for j in group) for group in groups]
        if most is None and sum(self.cells) > MOST_FEATURES:
            raise InputError(
                f"The tilings have {_text(sum(self.cells))} tiles in all, and {MOST_FEATURES:,} are the most without "
                "hashing. Say hash=65536, fewer tiles, or groups of fewer columns."
            )
        self.sizes = self.cells if most is None else _shared(self.cells, most)
        self.size = sum(self.sizes)

    def along(self, low: _inputs.Array, high: _inputs.Array) -> tuple[_inputs.Array, _inputs.Array, _inputs.Array]:
        """For each column: where the tiles begin, tiles a unit, and how far from there the last tile of all reaches."""
        # The range takes up as much less than all tiles as the largest shift is.
        span = self.tiles - (len(self.groups) - 1) / len(self.groups)
        factor = np.divide(span, high - low, out=np.zeros_like(span), where=high > low)
        return low, factor, span * (1.0 - 1e-12)

    def arrays(self) -> tuple[NDArray[Any], ...]:
        """The tilings as the kernel takes them, from ``starts`` on."""
        count = len(self.groups)
        columns = [j for group in self.groups for j in group]
        shifts = [(2 * i + 1) * t % count / count for t, group in enumerate(self.groups) for i in range(len(group))]
        hashed = np.array([size < cells for size, cells in zip(self.sizes, self.cells, strict=True)])
        lengths = [len(group) for group in self.groups]
        steps = self.tiles[columns].astype(np.uint64)
        steps[np.repeat(hashed, lengths)] = MULTIPLIER
        return (
            np.cumsum([0, *lengths]),
            np.array(columns, np.int64),
            np.array(shifts, np.float64),
            steps,
            hashed,
            np.cumsum([0, *self.sizes[:-1]]).astype(np.int32),
            np.array(self.sizes, np.uint64),
        )


def _shared(cells: list[int], most: int) -> list[int]:
    """How many of ``most`` features each tiling has: all its cells where these are few, an equal part of the rest."""
    if most < len(cells):
        raise InputError(f"hash must be at least the number of tilings, {len(cells)}, not {most}.")
    sizes = [0] * len(cells)
    left = most
    for place, t in enumerate(sorted(range(len(cells)), key=lambda t: cells[t])):
        sizes[t] = min(cells[t], left // (len(cells) - place))
        left -= sizes[t]
    return sizes


def _group(given: Any, k: int) -> tuple[int, ...]:
    if isinstance(given, str) or not isinstance(given, Sequence | np.ndarray):
        raise InputTypeError(f"groups must be lists of columns, such as [[0, 1], [2]]; there is {given!r} among them.")
    group = tuple(_checks.whole("groups", j, low=0) for j in given)
    if len(set(group)) < len(group):
        raise InputError(f"groups: {list(group)} has a column twice.")
    if group and max(group) >= k:
        raise InputError(f"groups asks for column {max(group)} of states that have {k}, 0 to {k - 1}.")
    return group


def _text(count: int) -> str:
    return f"{count:,}" if count < 10**12 else f"about 10^{log10(count):.0f}"
