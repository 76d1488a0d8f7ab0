"""Moments that accumulate, merge and save: all of LSTD that has to be kept of a log."""

from __future__ import annotations

import os
import zipfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from valuate import _checks, moments
from valuate.equations import Equations, rounding
from valuate.errors import InputError, InputTypeError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from valuate.problem import Problem

    Matrix = NDArray[np.float64]
    Vector = NDArray[np.float64]

#: What a saved file says of itself.
FORMAT, VERSION = "valuate moments", 1
_ARRAYS = ("A", "b", "C")
_NUMBERS = ("n_rows", "weight", "square_rewards", "ridge")


class Moments:
    """A, b and C of rows that need not be in memory together.

    Made of parts of a log, one after the other or apart, they equal those of one problem of all rows: a weight counts
    what it counted in its own part. `LSTD` solves them. The ridge is no part of the sums: it is added when they are
    solved, and may be changed at any time.

    Parameters
    ----------
    ridge : float, optional
        Where nothing is said it is that of the first problem.

    Attributes
    ----------
    A : (dim, dim) array
        Weighted mean of rho phi delta', without the ridge.
    b : (dim,) array
        Weighted mean of rho r phi.
    C : (dim, dim) array
        Weighted mean of phi phi', without the ridge.
    dim, n_rows : int
        0 as long as nothing was added.
    weight : float
        Sum of all weights, a row without one counting 1.
    square_rewards : float
        Weighted mean of (rho r)^2.

    Examples
    --------
    >>> total = Moments(ridge=1e-5)
    >>> for log in logs:  # doctest: +SKIP
    ...     total.add(Problem.from_transitions(log, features, discount=0.99, ridge=1e-5))
    >>> LSTD().solve(total).require().theta  # doctest: +SKIP
    """

    def __init__(self, *, ridge: float | None = None) -> None:
        self._ridge = None if ridge is None else _checks.number("ridge", ridge, low=0.0)
        self.A: Matrix = np.zeros((0, 0))
        self.b: Vector = np.zeros(0)
        self.C: Matrix = np.zeros((0, 0))
        self.n_rows, self.weight, self.square_rewards = 0, 0.0, 0.0

    @classmethod
    def of(cls, problem: Problem) -> Self:
        """The moments of one problem, and its ridge."""
        if not hasattr(problem, "rows") or isinstance(problem, type):
            raise InputTypeError(f"problem must be a Problem, not {type(problem).__name__}.")
        moments.require_room(problem.dim, 2)
        rows = problem.rows
        out = cls(ridge=problem.ridge)
        out.A, out.C = rows.cross_and_gram()
        out.A /= rows.n_rows
        out.C /= rows.n_rows
        out.b = problem.b.copy()
        out.n_rows, out.weight = rows.n_rows, rows.total_weight
        out.square_rewards = rows.square_rewards() / rows.n_rows
        return out

    @property
    def dim(self) -> int:
        """Number of features."""
        return len(self.b)

    @property
    def ridge(self) -> float:
        """What is added to the diagonals of A and C when the moments are solved."""
        return self._ridge or 0.0

    @ridge.setter
    def ridge(self, value: float) -> None:
        self._ridge = _checks.number("ridge", value, low=0.0)

    def with_ridge(self, ridge: float) -> Self:
        """The same sums with another ridge; the matrices are shared until something is added."""
        out = type(self)(ridge=ridge)
        out.A, out.b, out.C = self.A, self.b, self.C
        out.n_rows, out.weight, out.square_rewards = self.n_rows, self.weight, self.square_rewards
        return out

    def add(self, part: Problem | Moments) -> Self:
        """Add the rows of a problem, or what other moments hold, in place; returns the moments themselves."""
        other = part if isinstance(part, Moments) else Moments.of(part)
        self._require_like(other)
        if not other.n_rows:
            return self
        total = self.weight + other.weight
        if not np.isfinite(total):
            raise InputError("the weights add up to more than float64 can hold: divide those of all parts by a number.")
        if self._ridge is None:
            self._ridge = other._ridge
        kept, new = self.weight / total, other.weight / total
        for name in _ARRAYS:
            added = new * getattr(other, name)
            if self.n_rows:
                added += kept * getattr(self, name)
            setattr(self, name, added)
        self.square_rewards = kept * self.square_rewards + new * other.square_rewards
        self.n_rows, self.weight = self.n_rows + other.n_rows, total
        return self

    def __add__(self, other: Moments) -> Self:
        if not isinstance(other, Moments):
            return NotImplemented
        return type(self)(ridge=self._ridge).add(self).add(other)

    def __radd__(self, other: object) -> Self:  # so that sum(parts) begins with 0
        return self + Moments() if isinstance(other, int) and other == 0 else NotImplemented

    def equations(self) -> Equations:
        """A theta = b with the ridge, as `LSTD` solves it."""
        if not self.n_rows:
            raise InputError("the moments are empty: add a problem first.")
        a, c = self.A.copy(), self.C.copy()
        a[np.diag_indices(self.dim)] += self.ridge
        c[np.diag_indices(self.dim)] += self.ridge
        # By Cauchy and Schwarz, no smaller than the mean size of the terms of b.
        sizes = np.sqrt(self.square_rewards) * np.sqrt(np.diagonal(self.C))
        return Equations(moments.Matrices(a, self.b, c), rounding(self.n_rows, sizes), ridge=self.ridge)

    def vector(self, name: str, value: ArrayLike) -> Vector:
        """``value`` as a finite vector with one entry a feature, or an error that names it."""
        return self.equations().vector(name, value)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an npz file, whole or not at all; the name is taken as it is."""
        path = Path(path)
        part = path.with_name(path.name + ".part")
        with part.open("wb") as file:
            values = {name: getattr(self, name) for name in (*_ARRAYS, *_NUMBERS)}
            np.savez(file, format=FORMAT, version=VERSION, **values)
        part.replace(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        InputError
            Where the file is another's, newer or damaged. Nothing in it is ever run.
        """
        found = _read(Path(path))
        out = cls(ridge=float(found["ridge"]))
        out.A, out.b, out.C = (found[name] for name in _ARRAYS)
        out.n_rows, out.weight = int(found["n_rows"]), float(found["weight"])
        out.square_rewards = float(found["square_rewards"])
        return out

    def __repr__(self) -> str:
        return f"Moments({self.n_rows:,} rows, {self.dim:,} features, ridge {self.ridge:g})"

    def _require_like(self, other: Moments) -> None:
        if self.n_rows and other.n_rows and self.dim != other.dim:
            raise InputError(
                f"moments of {self.dim} features cannot take in those of {other.dim}: all parts need one feature map."
            )
        if self._ridge is not None and other._ridge is not None and self._ridge != other._ridge:
            raise InputError(
                f"the moments have ridge {self._ridge:g} and what is added has {other._ridge:g}. The sums do not "
                "depend on it: set the ridge of one to that of the other."
            )


def _read(path: Path) -> dict[str, Any]:
    """The arrays of a file that `Moments.save` wrote, checked."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as found:
            held = {name: found[name] for name in found.files}
    except (ValueError, EOFError, KeyError, TypeError, AttributeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path} cannot be read as moments: it is damaged, or of another kind. ({error})") from error
    if str(held.get("format")) != FORMAT:
        raise InputError(f"{path} was not written by Moments.save.")
    version = held.get("version")
    if version is None or int(version) != VERSION:
        raise InputError(f"{path} has version {version} of the format and this library reads {VERSION}: update it.")
    missing = [name for name in (*_ARRAYS, *_NUMBERS) if name not in held]
    if missing:
        raise InputError(f"{path} is damaged: it lacks {', '.join(missing)}.")
    dim = held["b"].size
    for name in (*_ARRAYS, *_NUMBERS):
        shape = {"A": (dim, dim), "b": (dim,), "C": (dim, dim)}.get(name, ())
        value = held[name]
        if value.shape != shape:
            raise InputError(f"{path} is damaged: {name} has shape {value.shape}, and b has {dim} features.")
        if value.dtype.kind not in "fi" or not np.isfinite(value).all():
            raise InputError(f"{path} is damaged: {name} has entries that are no finite numbers.")
    return held
