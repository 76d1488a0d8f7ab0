"""The sums of LSTD(lambda): eligibility traces a block of rows at a time, and matrix products with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from valuate import gathering
from valuate.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from valuate.rows import Rows

    Vector = NDArray[np.float64]
    Matrix = NDArray[np.float64]
    Flags = NDArray[np.bool_]


class Traced(NamedTuple):
    """Sums over rows: A (dim, dim), b (dim,) and, for what rounding does to b, that of the sizes of its terms."""

    A: Matrix
    b: Vector
    sizes: Vector


def traced(rows: Rows, starts: Flags, decay: float, ratio_on: str) -> Traced:
    """n A and n b of LSTD(lambda), without ridge.

    The trace is e_t = discount_{t-1} decay rho_{t-1} e_{t-1} + phi_t, with e_t = phi_t at the start of an episode.
    Then A = sum w rho e (phi - discount phi')' with ``ratio_on`` "row", A = sum w e (phi - discount rho phi')' with
    "next", and b = sum w rho r e with both. A row's weight counts its own term and is no part of the trace, so that
    whole weights of whole episodes equal repeated episodes.

    Parameters
    ----------
    rows : Rows
        In the log's order.
    starts : (n,) flags
        Whether a row is the first of its episode.
    decay : float
        lambda.
    ratio_on : {"row", "next"}
    """
    _require_ratios(rows, starts)
    a, b, sizes, carry = np.zeros((rows.dim, rows.dim)), *np.zeros((3, rows.dim))
    for first, last, left, right in _blocks(rows, ratio_on):
        with np.errstate(over="ignore", invalid="ignore"):
            gathering.add_traces(left, kept(rows, starts, decay, first, last), carry)
            terms = rows.records["scale"][first:last] * rows.records["reward"][first:last]
            b += left.T @ terms
            sizes += np.abs(left).T @ np.abs(terms)
            if sp.issparse(right):
                a += (right.T @ left).T
            else:
                a = gathering.add_product(a, left, right)
        if not np.isfinite(carry).all():
            break
    if not (np.isfinite(carry).all() and np.isfinite(a).all() and np.isfinite(sizes).all()):
        raise InputError(
            f"the traces grow beyond float64: discount * ratio * trace_decay {decay:g} is above 1 for too many rows of "
            "an episode. Use a smaller trace_decay, or clip the ratios."
        )
    return Traced(a, b, sizes)


def _blocks(rows: Rows, ratio_on: str) -> Iterator[tuple[int, int, Matrix, Any]]:
    """For each block phi, and what the traces are multiplied with; that is sparse where the rows are."""

    def factors(first: int, last: int) -> gathering.Factors:
        part = rows.records[first:last]
        scale, ones = part["scale"], np.ones(last - first)
        plain = rows.weights[first:last] if len(rows.weights) else ones
        return gathering.Factors(ones, plain if ratio_on == "next" else scale, scale * part["discount"])

    if not rows.is_sparse:
        yield from gathering.pairs(rows.table, rows.dim, rows.records, factors)
        return
    for first, last in gathering.blocks(rows.n_rows, rows.dim):
        part, (_, on_state, on_next) = rows.records[first:last], factors(first, last)
        phi, ahead = (rows.table[part[name]].astype(np.float64) for name in ("state", "next"))
        yield first, last, phi.toarray(), sp.diags_array(on_state) @ phi - sp.diags_array(on_next) @ ahead


def kept(rows: Rows, starts: Flags, decay: float, first: int, last: int) -> Vector:
    """What each row keeps of the trace before it: discount * decay * ratio of the row before, 0 at a start."""
    keep = np.zeros(last - first)
    before = rows.records[max(first, 1) - 1 : last - 1]
    factor = decay * before["discount"] * before["scale"]
    if len(rows.weights):
        weights = rows.weights[max(first, 1) - 1 : last - 1]
        factor = factor / np.where(weights > 0, weights, 1.0)
    keep[last - first - len(before) :] = factor
    keep[starts[first:last]] = 0.0
    return keep


def _require_ratios(rows: Rows, starts: Flags) -> None:
    """Refuse rows of weight 0 inside an episode: only weight times ratio is stored, so their ratio is lost."""
    if not len(rows.weights):
        return
    lost = (rows.weights[:-1] == 0) & (rows.weights[1:] > 0) & ~starts[1:]
    if lost.any():
        raise InputError(
            f"row {int(lost.argmax())} has weight 0 and its episode goes on with weights above 0: traces cannot pass "
            f"through it ({int(lost.sum())} such rows). Weight whole episodes, or leave such rows out by starting a "
            "new episode after them."
        )
