"""Which rows are one draw: episodes, blocks of one long chain, or single rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from valuate import _checks, _columns
from valuate.episodes import Episodes
from valuate.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.problem import Problem

    Vector = NDArray[np.float64]
    Index = NDArray[np.int64]
    Flags = NDArray[np.bool_]

#: What `episodes` says where every row is a draw of its own.
ROWS = "rows"


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """The draw that each row belongs to.

    Attributes
    ----------
    codes : (n,) int array
    count : int
    method : {"episodes", "blocks", "rows"}
    labels : (count,) array or None
        The episodes' labels, by code.
    starts : (n,) flags or None
        The first row of each episode, where episodes are known and their rows lie one after the other.
    """

    codes: Index
    count: int
    method: str
    labels: NDArray[Any] | None = None
    starts: Flags | None = None

    @classmethod
    def of_rows(cls, n_rows: int) -> Self:
        """Every row a draw."""
        return cls(np.arange(n_rows), n_rows, "rows")

    @classmethod
    def of_episodes(cls, episodes: Episodes) -> Self:
        """Every label a draw. Its rows need not lie together, but then the first states are not known."""
        labels, codes = coded(episodes.labels)
        try:
            starts = episodes.starts()
        except InputError:
            starts = None
        return cls(codes, len(labels), "episodes", labels, starts)

    def into_blocks(self, length: int) -> Clusters:
        """Each episode (or the one chain) cut into pieces of ``length`` rows; a rest of half that or less joins."""
        n = len(self.codes)
        edges = np.append(np.flatnonzero(self.chain_starts()), n)
        sizes = np.diff(edges)
        pieces = np.maximum(1, np.round(sizes / length).astype(np.int64))
        within = np.arange(n) - np.repeat(edges[:-1], sizes)
        # Pieces of one episode differ by a row at most.
        piece = within * np.repeat(pieces, sizes) // np.repeat(sizes, sizes)
        codes = np.repeat(np.cumsum(pieces) - pieces, sizes) + piece
        return Clusters(codes, int(pieces.sum()), "blocks", None, self.starts)

    def chain_starts(self) -> Flags:
        """The rows before which time has a gap: (n,) flags; the first only, where no episodes are known."""
        if self.starts is not None:
            return self.starts
        if self.labels is not None:
            raise InputError(
                "blocks need the rows of an episode one after the other, in time: sort the log by episode, "
                "log[np.argsort(log.episodes, kind='stable')]."
            )
        first = np.zeros(len(self.codes), bool)
        first[0] = True
        return first

    def total(self, values: Vector) -> Vector:
        """Sums of a number a row over the rows of each draw: (count,)."""
        return np.bincount(self.codes, values, self.count).astype(np.float64, copy=False)

    def digest(self) -> bytes:
        """Equal for equal draws."""
        return digest(self.codes)


def read(problem: Problem, episodes: Any, blocks: Any) -> Clusters:
    """The draws from what a user gave, or from what the problem knows.

    Without `blocks` given as a length, one chain is left whole here; its blocks come with their length.
    """
    n = problem.n_rows
    if isinstance(episodes, str):
        if episodes != ROWS:
            raise InputError(f'episodes must be one label a row, or "rows", not {episodes!r}.')
        if blocks is not None and blocks is not False:
            raise InputError('episodes="rows" and blocks contradict each other: rows that are draws have no order.')
        return Clusters.of_rows(n)
    known = problem.episodes if episodes is None else Episodes(_columns.labels(episodes, n), _ended(problem))
    if known is not None:
        return Clusters.of_episodes(known)
    if blocks is not None and blocks is not False:
        return Clusters(np.zeros(n, np.int64), 1, "blocks")
    raise InputError(
        "an interval needs to know which rows belong together, and this problem does not. Give episodes=, one label a "
        "row, here or to the log; blocks=True where all rows are one long chain in the order of time; or "
        'episodes="rows" where every row was drawn independently of the others. Where flags mark the last row of '
        "every episode: episodes = np.cumsum(ends) - ends with ends = terminated | truncated."
    )


def digest(*columns: NDArray[Any]) -> bytes:
    """Equal for equal columns."""
    found = hashlib.blake2b(digest_size=16)
    for column in columns:
        found.update(np.ascontiguousarray(column).view(np.uint8).data)
    return found.digest()


def _ended(problem: Problem) -> Flags | None:
    return None if problem.episodes is None else problem.episodes.ended


def coded(labels: NDArray[Any]) -> tuple[NDArray[Any], Index]:
    """The distinct labels, in order of appearance, and the place of each row's among them.

    Runs of equal labels are looked at once, so that a log in order costs next to nothing.
    """
    first = np.ones(len(labels), bool)
    first[1:] = labels[1:] != labels[:-1]
    runs = labels[first]
    places: dict[Any, int] = {}
    code = np.array([places.setdefault(label, len(places)) for label in runs.tolist()])
    once = np.ones(len(runs), bool)
    seen = np.maximum.accumulate(code)
    once[1:] = code[1:] > seen[:-1]
    return runs[once], code[np.cumsum(first) - 1]


def read_blocks(blocks: Any) -> int | None:
    """The length of a block; None for an automatic one."""
    return None if blocks is True or blocks == "auto" else _checks.whole("blocks", blocks, low=1)


def automatic_length(terms: Vector) -> int:
    """Rows of a block, from the correlations of the terms of consecutive rows.

    For means of blocks of b rows the estimated variance is too small by Gamma / b, with Gamma the sum of |k| times
    the covariance at lag k, and it varies by 2 b S^2 / n, S being the sum of all covariances. The sum of squares is
    least at b = (Gamma^2 n / S^2)^(1/3). Both sums are taken with a flat-topped window that ends at twice the lag from
    which on correlations are noise (Politis and White, "Automatic block-length selection for the dependent bootstrap",
    Econometric Reviews 23, 2004). Coverage suffers more from variance that is missing than from variance that is
    noisy, which Student's t knows of: blocks are twice that long, and at least twice the sum of the correlations.
    """
    n = len(terms)
    covariances = _covariances(terms - terms.mean())
    if not covariances[0] > 0:
        return 1
    rho = covariances / covariances[0]
    noise = 2.0 * np.sqrt(np.log10(max(n, 10)) / n)
    quiet = max(5, int(np.sqrt(np.log10(max(n, 10)))) + 1)
    small = np.abs(rho[1:]) < noise
    runs = np.convolve(small, np.ones(quiet), "valid") == quiet
    last = int(runs.argmax()) if runs.any() else len(rho) - 1
    window = min(len(rho) - 1, max(1, 2 * last))
    lags = np.arange(1, window + 1)
    taper = np.minimum(1.0, 2.0 * (1.0 - lags / (window + 1)))
    spread = 2.0 * float(np.sum(taper * lags * rho[1 : window + 1]))
    total = 1.0 + 2.0 * float(np.sum(taper * rho[1 : window + 1]))
    if total <= 0.05:  # strong negative correlation: any length does, for the variance shrinks with it
        total = 0.05
    best = 2.0 * (spread**2 * n / total**2) ** (1 / 3)
    return int(np.clip(np.ceil(max(best, 2.0 * total)), 1, max(1, n // 8)))


def _covariances(x: Vector) -> Vector:
    """Covariances at lags up to ten times the root of n (at most n / 4)."""
    n = len(x)
    most = max(1, min(n // 4, int(10 * np.sqrt(n))))
    size = 1 << int(np.ceil(np.log2(n + most + 1)))
    spectrum = np.fft.rfft(x, size)
    return np.asarray(np.fft.irfft(spectrum * spectrum.conj(), size)[: most + 1] / n)
