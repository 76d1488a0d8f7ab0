"""The problems of the grid."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from typing import Any, Literal

Kind = Literal["dense", "tiles", "table"]

#: Bytes of stored features beyond which a cell is left out: the user has them, and a problem has them once more.
MOST_BYTES = 9e9
#: From so many features on, long logs are float32.
WIDE = 4000
#: Non-zeros of a sparse row: one for each tiling.
TILINGS = 32
#: States of a table for each feature.
STATES_A_FEATURE = 4


@dataclass(frozen=True, slots=True)
class Cell:
    """A problem, by its settings.

    Attributes
    ----------
    kind : {"dense", "tiles", "table"}
        Trajectories of dense rows; of sparse rows with `TILINGS` ones each; a table of few states.
    n, dim : int
    condition : float
        Of C. The ends of the spectrum of dense rows and tables are chosen for it; tiles, whose own C is singular, get
        the ridge that makes it so.
    off_policy : bool
        Whether there are importance ratios.
    dtype : str
    """

    kind: Kind
    n: int
    dim: int
    condition: float
    off_policy: bool = False
    dtype: str = "float64"

    @property
    def name(self) -> str:
        """As in "dense-2e5-2000-1e5-off"; ends in "-float32" where that is so."""
        parts = [self.kind, _short(self.n), _short(self.dim), _short(self.condition), self.policy]
        return "-".join(parts + (["float32"] if self.dtype == "float32" else []))

    @property
    def policy(self) -> str:
        """Whether it is "on" or "off" the policy."""
        return "off" if self.off_policy else "on"

    @property
    def bytes(self) -> float:
        """Of the features that the user has in memory."""
        size = 4 if self.dtype == "float32" else 8
        if self.kind == "dense":
            return float(self.n * self.dim * size)
        if self.kind == "tiles":
            return float(self.n * TILINGS * (size + 4))
        return float(STATES_A_FEATURE * self.dim * self.dim * size + 16 * self.n)

    @property
    def fits(self) -> bool:
        """Whether it is small enough to be measured at all."""
        return self.bytes <= MOST_BYTES

    def __str__(self) -> str:
        what = {"dense": "dense rows", "tiles": f"{TILINGS} non-zeros a row", "table": "a table of states"}[self.kind]
        ratios = ", off-policy" if self.off_policy else ""
        return f"{what}, n={self.n:,}, d={self.dim:,}, condition {self.condition:.0e}, {self.dtype}{ratios}"

    def as_dict(self) -> dict[str, Any]:
        """The settings by name."""
        return asdict(self)


def _dense(n: int, dim: int, condition: float, off_policy: bool) -> Cell:
    """In float64 where that fits; else, and where rows are many and wide, in float32."""
    wide = dim >= WIDE and n > 20_000
    cell = Cell("dense", n, dim, condition, off_policy, "float32" if wide else "float64")
    return cell if cell.fits else Cell("dense", n, dim, condition, off_policy, "float32")


_ROWS = (20_000, 200_000, 2_000_000)
_CONDITIONS = (1e2, 1e5, 1e10)
_POLICIES = (False, True)

#: Everything, in order of size. What does not fit is in `TOO_LARGE`.
_ALL = (
    *(_dense(*settings) for settings in product(_ROWS, (50, 200, 1000, 2000, 4000), _CONDITIONS, _POLICIES)),
    *(
        Cell("tiles", *settings)
        for settings in product(_ROWS, (1000, 4000, 100_000, 1_000_000), _CONDITIONS, _POLICIES)
    ),
    *(Cell("table", *settings) for settings in product(_ROWS, (50, 200, 1000), _CONDITIONS, _POLICIES)),
)
FULL = tuple(cell for cell in _ALL if cell.fits)
TOO_LARGE = tuple(cell for cell in _ALL if not cell.fits)

#: A minute or two.
SMALL = (
    Cell("dense", 20_000, 50, 1e5),
    Cell("dense", 20_000, 200, 1e2),
    Cell("dense", 20_000, 200, 1e5),
    Cell("dense", 20_000, 200, 1e10),
    Cell("dense", 20_000, 200, 1e5, off_policy=True),
    Cell("dense", 200_000, 200, 1e5),
    Cell("dense", 20_000, 2000, 1e5),
    Cell("tiles", 20_000, 4000, 1e5),
    Cell("tiles", 200_000, 100_000, 1e5),
    Cell("table", 200_000, 200, 1e5),
    Cell("table", 20_000, 1000, 1e5, off_policy=True),
)


def _short(value: float) -> str:
    """2e5 rather than 200000; numbers below 10,000 as they are, but for conditions, which are powers of ten."""
    if isinstance(value, int) and value < 10_000:
        return str(value)
    mantissa, _, power = f"{value:.6e}".partition("e")
    return f"{float(mantissa):g}e{int(power)}"
