"""What a problem and its solvers need of the rows, wherever these are: in memory, in a file, on another machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from valuate.traces import Traced

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Order = NDArray[np.int32]


class Scalars(NamedTuple):
    """What is known of rows without a look at a feature; scale is weight * ratio.

    Attributes
    ----------
    n_rows : int
    most_scale, most_weight : float
    scale, reward : (float, float)
        Sums of scale and of scale * |reward|, and of their squares.
    """

    n_rows: int
    most_scale: float
    most_weight: float
    scale: tuple[float, float]
    reward: tuple[float, float]


class SumsOverRows(Protocol):
    """Sums over all rows, without ridge and not divided by their number, so that they add over files and shards."""

    n_rows: int
    dim: int
    layout: str
    #: Sum of the weights as they were given, by which means of several sources merge.
    total_weight: float

    def sums(
        self,
        x: Vector | None = None,
        y: Vector | None = None,
        *,
        reward: float = 0.0,
        phi: bool = False,
        delta: bool = False,
        order: Order | None = None,
    ) -> tuple[Vector, Vector]:
        """The products with A, its transpose and C, the residual and the gradient; see `Rows.sums`."""

    def column_squares(self) -> Vector:
        """The diagonal of n C: (dim,)."""

    def reward_sums(self) -> Vector:
        """n b: (dim,)."""

    def gram(self) -> Matrix:
        """n C: (dim, dim)."""

    def cross(self, order: Order | None = None) -> Matrix:
        """n A, or the same sum over the rows of ``order``: (dim, dim)."""

    def cross_and_gram(self) -> tuple[Matrix, Matrix]:
        """Both at once, which reads the rows once."""

    def traced(self, starts: NDArray[np.bool_], decay: float, ratio_on: str) -> Traced:
        """The sums of LSTD(lambda), over all rows in the log's order."""

    def square_rewards(self) -> float:
        """The sum of w (rho r)^2."""

    def next_squares(self, columns: NDArray[np.intp]) -> Vector:
        """The sum of (w rho g phi'_j)^2 for some columns: (k,)."""

    def square_terms(self) -> Vector:
        """For each row (w rho)^2 (r^2 + the mean of r^2): (n,)."""

    def weighted_rows(self) -> Iterator[Matrix]:
        """Blocks of dense rows X with X'X = n C."""

    def maxima(self) -> tuple[float, float, float]:
        """The largest w |phi|^2, w rho^2 |delta|^2 and w rho |phi| |delta|."""

    def column_peaks(self) -> Vector:
        """The size of the largest entry of each column."""

    def scaled(self, units: Vector) -> Any:
        """The same rows with every column multiplied by its unit."""

    def centred(self, centre: Vector) -> Any:
        """The same dense rows, in float64, with ``centre`` taken from all features of every stored row."""

    def constant_column(self) -> int | None:
        """The first column that holds one number, not 0, in every stored dense row; None where there is none."""

    def ratio_sums(self) -> tuple[float, float]:
        """The sums of weight * ratio and of weight * ratio^2."""

    def scalars(self) -> Scalars:
        """Largest and mean scales, weights and rewards."""

    def never_ends(self) -> bool:
        """Whether the discount of every row is 1."""

    def any_reward(self) -> bool:
        """Whether any reward is not 0."""


class RowsByChunk(Protocol):
    """Rows that can be visited in a given order, a chunk at a time."""

    n_rows: int

    def for_steps(self, visits: float = ...) -> Any:
        """The same rows as single steps like them, where so many visits are worth a copy."""

    def chunk(self, order: Order) -> tuple[Any, Order]:
        """A contiguous view in which the rows of ``order`` can be visited, and their places in that view."""

    def subset(self, size: int, rng: np.random.Generator) -> Order:
        """A uniformly random set of ``size`` rows, in increasing order."""


class RowSource(SumsOverRows, RowsByChunk, Protocol):
    """Both, and what a moving point must know of the memory: its type and its padding."""

    dtype: Any
    width: int
    n_stored: int
    is_sparse: bool
    entries: int

    def pad(self, vector: Vector | None, dtype: Any = ...) -> Any:
        """A copy of ``vector`` (zeros for None) in aligned memory of the kernels' length."""

    def times(self, vector: Vector) -> Vector:
        """The product of each stored row with ``vector``: (n_stored,)."""

    def square_errors(self, theta: Vector) -> Vector:
        """Sum of (weight * ratio * temporal-difference error)^2 over the rows from each stored row: (n_stored,)."""

    def square_lengths(self, scale: Vector) -> Vector:
        """Squared length of each stored row with its entries times ``scale``: (n_stored,)."""

    def stored_at(self, places: NDArray[np.intp]) -> Matrix:
        """The stored rows at these places, dense: (k, dim)."""

    def scaled_cross(self, left: Vector, right: Vector, order: Order | None, kind: Any) -> Any:
        """A of the rows of ``order``, or all, times units from the left and the right: (dim, dim) of this type."""

    def scaled_gram(self, order: Order, shares: Vector, units: Vector, kind: Any) -> Any:
        """The sum of phi phi' over rows, each times its share, and units on both sides: (dim, dim), upper triangle."""

    def row_weights(self, order: Order) -> Vector:
        """The weights of some rows, of mean 1 over all: (k,)."""

    def spans(self, scale: Vector) -> Vector:
        """For each row weight * |phi|^2, with entries times ``scale``: (n,)."""

    def stretches(self, size: int, rng: np.random.Generator) -> Order:
        """About ``size`` rows in stretches of the log."""

    def at(self, order: Order) -> tuple[Any, Any, Any, Vector | None]:
        """Some rows: features and next features, (k, dim), dense or CSR; records; weights, None where all are 1."""

    def part(self, order: Order) -> RowSource:
        """Some of the rows, as a source of their own."""
