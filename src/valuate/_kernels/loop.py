"""The one step and the one loop of every stochastic method.

With u = phi.y and v = delta.x taken at the displacement (x, y) from the reference point, a step is

    x <- x - drift_theta + f * delta + g * phi - (xx * x + xy * y)
    y <- y - drift_omega + h * phi             - (yx * x + yy * y)

where drift is step times mean gradient. Four axes meet in it and know nothing of each other. Layouts say how to form
u and v (`residuals`) and how to move (`settle`); references say what to subtract from u and v (`recall`); directions
say which multiples f, g and h of them go where (`pulls`), and the pull (xx, xy, yx, yy) that every step exerts whatever
its row: the ridge's, and omega's own where C is replaced by the identity. `settle` on sparse rows moves only the
coordinates that a row touches and brings each of them up to date first, by the closed form of the steps that it slept
through.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.extending import overload

from valuate._kernels.layouts import FASTMATH, DenseRows, prefetch

INLINE = {"forceinline": True, "fastmath": FASTMATH}

#: Steps of one entry of the coarse table of powers; the fine table holds the powers below.
COARSE = 256


class Pull(NamedTuple):
    """What every step takes away from (x, y), whatever its row: a linear map of it."""

    xx: Any
    xy: Any
    yx: Any
    yy: Any


class Saddle(NamedTuple):
    """The direction of the paper: theta moves along delta, omega along phi."""

    step_theta: Any
    step_omega: Any
    pull: Any


class Primal(NamedTuple):
    """Temporal difference learning: theta moves along phi by the residual alone, and omega stays."""

    step_theta: Any
    step_omega: Any
    pull: Any


class Corrected(NamedTuple):
    """TDC: the primal direction, corrected by omega."""

    step_theta: Any
    step_omega: Any
    pull: Any


class Unscaled(NamedTuple):
    """GTD: the saddle with the identity in place of C, which the pull holds."""

    step_theta: Any
    step_omega: Any
    pull: Any


class Fixed(NamedTuple):
    """A reference that stays for an epoch: an anchor (reward 0), or nothing at all (reward 1)."""

    reward: Any


class Memory(NamedTuple):
    """SAGA's reference: the last two scalars of every row, (n, 2), and the share 1/n of a row in the mean."""

    scalars: Any
    share: Any


class DenseState(NamedTuple):
    """Displacements and drifts, each (padded,)."""

    x: Any
    y: Any
    drift_theta: Any
    drift_omega: Any


class SparseState(NamedTuple):
    """One cache line a coordinate, (d, 8): x, y, drift_theta, drift_omega, clock. Without ridge."""

    cells: Any


class RidgedState(NamedTuple):
    """As `SparseState`, with the powers of the ridge's map: 0 to 255, and every 256th."""

    cells: Any
    fine: Any
    coarse: Any


def ask_ahead(rows, state, order, k):
    """Ask for the memory of later steps (stub; see the overload)."""


def residuals(rows, state, direction, record, now):
    """The two scalars u = phi.y and v = delta.x (stub; see the overloads)."""


def pulls(direction, scale, weight, u, v):
    """The factors f on delta and g on phi of theta, and h on phi of omega (stub; see the overload)."""


def settle(rows, state, direction, reference, record, now, f, g, h):
    """Move the point (stub; see the overloads)."""


def recall(reference, row, u, v):
    """What is left of the scalars after the reference's own, which it forgets (stub; see the overloads)."""


def kept_reward(reference):
    """The factor of the reward in a step (stub; see the overload)."""


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def advance(rows, reference, direction, local, order, state, clock):
    """Take one step for each row of ``order``, found at ``local`` in ``rows``.

    ``clock`` counts the steps since the state was last made current. Returns the sum of the sizes of all pulls: it
    is not finite as soon as one of them is not.
    """
    weighted = rows.weights.size > 0
    pulled = 0.0
    for k in range(np.uint64(order.size)):
        row = local[k]
        record = rows.records[row]
        ask_ahead(rows, state, local, k)
        now = clock + np.float64(k)
        u, v = residuals(rows, state, direction, record, now)
        weight = rows.weights[row] if weighted else 1.0
        u, v = recall(reference, order[k], u, v - kept_reward(reference) * record.reward)
        f, g, h = pulls(direction, record.scale, weight, u, v)
        settle(rows, state, direction, reference, record, now, f, g, h)
        pulled += abs(f) + abs(g) + abs(h)
    return pulled


@overload(kept_reward, jit_options=INLINE)
def _kept_reward(reference):
    if reference.instance_class is Fixed:
        return lambda reference: reference.reward
    return lambda reference: 0.0


@overload(recall, jit_options=INLINE)
def _recall(reference, row, u, v):
    if reference.instance_class is Fixed:
        return lambda reference, row, u, v: (u, v)

    def from_memory(reference, row, u, v):
        old_u, old_v = reference.scalars[row, 0], reference.scalars[row, 1]
        reference.scalars[row, 0] = u
        reference.scalars[row, 1] = v
        return u - old_u, v - old_v

    return from_memory


@overload(pulls, jit_options=INLINE)
def _pulls(direction, scale, weight, u, v):
    kind = direction.instance_class
    if kind is Saddle:

        def saddle(direction, scale, weight, u, v):
            return direction.step_theta * (scale * u), 0.0, -direction.step_omega * (scale * v + weight * u)

        return saddle

    if kind is Primal:
        return lambda direction, scale, weight, u, v: (0.0, -direction.step_theta * (scale * v), 0.0)

    if kind is Corrected:

        def corrected(direction, scale, weight, u, v):
            on_delta = direction.step_theta * (scale * u)
            on_phi = -direction.step_theta * (scale * (v + u))
            return on_delta, on_phi, -direction.step_omega * (scale * v + weight * u)

        return corrected

    def unscaled(direction, scale, weight, u, v):
        return direction.step_theta * (scale * u), 0.0, -direction.step_omega * (scale * v)

    return unscaled


@overload(ask_ahead, jit_options=INLINE)
def _ask_ahead(rows, state, order, k):
    if rows.instance_class is DenseRows:

        def dense(rows, state, order, k):
            far = k + np.uint64(16)
            if far < np.uint64(order.size):
                prefetch(rows.records, np.uint64(order[far]), np.uint64(32))

        return dense

    def sparse(rows, state, order, k):
        n = np.uint64(order.size)
        records, indptr, indices, data, cells = rows.records, rows.indptr, rows.indices, rows.data, state.cells
        if k + np.uint64(16) < n:
            prefetch(records, np.uint64(order[k + np.uint64(16)]), np.uint64(32))
        if k + np.uint64(10) < n:
            record = records[order[k + np.uint64(10)]]
            prefetch(indptr, np.uint64(record.state), np.uint64(16))
            prefetch(indptr, np.uint64(record.next), np.uint64(16))
        if k + np.uint64(5) < n:
            record = records[order[k + np.uint64(5)]]
            for part in range(2):
                stored = np.uint64(record.state if part == 0 else record.next)
                first, last = np.uint64(indptr[stored]), np.uint64(indptr[stored + np.uint64(1)])
                # One line more than the bytes need, as rows do not begin at one.
                prefetch(indices, first, (last - first) * np.uint64(indices.itemsize) + np.uint64(63))
                prefetch(data, first, (last - first) * np.uint64(data.itemsize) + np.uint64(63))
        if k + np.uint64(1) < n:
            record = records[order[k + np.uint64(1)]]
            for part in range(2):
                stored = np.uint64(record.state if part == 0 else record.next)
                for i in range(np.uint64(indptr[stored]), np.uint64(indptr[stored + np.uint64(1)])):
                    prefetch(cells, np.uint64(indices[i]), np.uint64(40))

    return sparse


@njit(fastmath=FASTMATH, nogil=True, forceinline=True)
def compose(a, b, p, q, a2, b2, p2, q2, trace, det):
    """The powers k + k2 from those of k and k2; see `powers`. Scalars only: arrays would be counted at each call."""
    return (
        a * a2 - det * b * b2,
        a * b2 + b * a2 + trace * b * b2,
        p + a * p2 - det * b * q2,
        q + a * q2 + b * p2 + trace * b * q2,
    )


@njit(fastmath=FASTMATH, nogil=True, forceinline=True)
def slept(x, y, mt, mo, a, b, p, q, xx, xy, yx, yy):
    """(x, y) after the steps whose map is aI + bN and whose drifts sum to pI + qN times (mt, mo); N is the pull."""
    return (
        a * x + b * (xx * x + xy * y) - p * mt - q * (xx * mt + xy * mo),
        a * y + b * (yx * x + yy * y) - p * mo - q * (yx * mt + yy * mo),
    )


@overload(residuals, jit_options=INLINE)
def _residuals(rows, state, direction, record, now):
    dual = direction.instance_class is not Primal
    if rows.instance_class is DenseRows:

        def dense(rows, state, direction, record, now):
            p, q = rows.table[record.state], rows.table[record.next]
            x, y = state.x, state.y
            discount = x.dtype.type(record.discount)
            u = v = x.dtype.type(0)
            for j in range(np.uint64(rows.table.shape[1])):
                if dual:
                    u += p[j] * y[j]
                v += (p[j] - discount * q[j]) * x[j]
            return u, v

        return dense

    if state.instance_class is SparseState:

        def sparse(rows, state, direction, record, now):
            indptr, indices, data, cells = rows.indptr, rows.indices, rows.data, state.cells
            u = v = 0.0
            for part in range(2):
                stored = np.uint64(record.state if part == 0 else record.next)
                on_u, on_v = (1.0, 1.0) if part == 0 else (0.0, -record.discount)
                for i in range(np.uint64(indptr[stored]), np.uint64(indptr[stored + np.uint64(1)])):
                    j = np.uint64(indices[i])
                    lag = now - cells[j, 4]
                    x, y = cells[j, 0] - lag * cells[j, 2], cells[j, 1] - lag * cells[j, 3]
                    cells[j, 0], cells[j, 1], cells[j, 4] = x, y, now
                    u += on_u * data[i] * y
                    v += on_v * data[i] * x
            return u, v

        return sparse

    def ridged(rows, state, direction, record, now):
        indptr, indices, data, cells = rows.indptr, rows.indices, rows.data, state.cells
        fine, coarse = state.fine, state.coarse
        xx, xy, yx, yy = direction.pull
        trace, det = xx + yy, xx * yy - xy * yx
        u = v = 0.0
        for part in range(2):
            stored = np.uint64(record.state if part == 0 else record.next)
            on_u, on_v = (1.0, 1.0) if part == 0 else (0.0, -record.discount)
            for i in range(np.uint64(indptr[stored]), np.uint64(indptr[stored + np.uint64(1)])):
                j = np.uint64(indices[i])
                steps = np.uint64(now - cells[j, 4])
                near, far = steps % np.uint64(COARSE), steps // np.uint64(COARSE)
                a, b, p, q = fine[near, 0], fine[near, 1], fine[near, 2], fine[near, 3]
                if far > np.uint64(0):
                    a, b, p, q = compose(
                        a, b, p, q, coarse[far, 0], coarse[far, 1], coarse[far, 2], coarse[far, 3], trace, det
                    )  # fmt: skip
                x, y = cells[j, 0], cells[j, 1]
                x, y = slept(x, y, cells[j, 2], cells[j, 3], a, b, p, q, xx, xy, yx, yy)
                cells[j, 0], cells[j, 1], cells[j, 4] = x, y, now
                u += on_u * data[i] * y
                v += on_v * data[i] * x
        return u, v

    return ridged


@overload(settle, jit_options=INLINE)
def _settle(rows, state, direction, reference, record, now, f, g, h):
    learns = reference.instance_class is Memory
    dual = direction.instance_class is not Primal
    if rows.instance_class is DenseRows:

        def dense(rows, state, direction, reference, record, now, f, g, h):
            p, q = rows.table[record.state], rows.table[record.next]
            x, y, drift_theta, drift_omega = state.x, state.y, state.drift_theta, state.drift_omega
            real = x.dtype.type
            discount = real(record.discount)
            f, g, h = real(f), real(g), real(h)
            pull = direction.pull
            xx, xy, yx, yy = real(pull.xx), real(pull.xy), real(pull.yx), real(pull.yy)
            for j in range(np.uint64(rows.table.shape[1])):
                xj, yj = x[j], y[j]
                if dual:
                    pull_theta = f * (p[j] - discount * q[j]) + g * p[j]
                    pull_omega = h * p[j]
                    x[j] = xj - drift_theta[j] + pull_theta - (xx * xj + xy * yj)
                    y[j] = yj - drift_omega[j] + pull_omega - (yx * xj + yy * yj)
                else:
                    pull_theta, pull_omega = g * p[j], real(0)
                    x[j] = xj - drift_theta[j] + pull_theta - xx * xj
                if learns:
                    drift_theta[j] -= reference.share * pull_theta
                    drift_omega[j] -= reference.share * pull_omega

        return dense

    def sparse(rows, state, direction, reference, record, now, f, g, h):
        indptr, indices, data, cells = rows.indptr, rows.indices, rows.data, state.cells
        xx, xy, yx, yy = direction.pull
        # The primal direction does not move the next state's coordinates: they sleep on.
        for part in range(2 if dual else 1):
            stored = np.uint64(record.state if part == 0 else record.next)
            on_x, on_y = (f + g, h) if part == 0 else (-f * record.discount, 0.0)
            for i in range(np.uint64(indptr[stored]), np.uint64(indptr[stored + np.uint64(1)])):
                j = np.uint64(indices[i])
                # 1, or 0 where the state's row has brought a coordinate of the next state along already.
                lag = now + 1.0 - cells[j, 4]
                x, y = cells[j, 0], cells[j, 1]
                cells[j, 0] = x + on_x * data[i] - lag * (cells[j, 2] + xx * x + xy * y)
                cells[j, 1] = y + on_y * data[i] - lag * (cells[j, 3] + yx * x + yy * y)
                cells[j, 4] = now + 1.0
                if learns:
                    cells[j, 2] -= reference.share * on_x * data[i]
                    cells[j, 3] -= reference.share * on_y * data[i]

    return sparse


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def awake(cells, fine, coarse, pull, now, out_x, out_y):
    """Write what every sparse coordinate is now; the cells stay as they are, so that looking changes nothing."""
    xx, xy, yx, yy = pull
    trace, det = xx + yy, xx * yy - xy * yx
    for j in range(np.uint64(cells.shape[0])):
        steps = np.uint64(now - cells[j, 4])
        near, far = steps % np.uint64(COARSE), steps // np.uint64(COARSE)
        a, b, p, q = compose(
            fine[near, 0], fine[near, 1], fine[near, 2], fine[near, 3],
            coarse[far, 0], coarse[far, 1], coarse[far, 2], coarse[far, 3],
            trace, det,
        )  # fmt: skip
        x, y = cells[j, 0], cells[j, 1]
        out_x[j], out_y[j] = slept(x, y, cells[j, 2], cells[j, 3], a, b, p, q, xx, xy, yx, yy)


@njit(nogil=True, cache=True)
def powers(pull, base, count):
    """Powers 0 to ``count`` - 1 of a polynomial aI + bN in the pull N, and their sums.

    ``base`` is the entry (a, b, p, q) of the first power: M = aI + bN and S = pI + qN. A step's own map is M = I - N
    with S = I. Row k holds M^k and the sum S + M S + ... + M^(k-1) S.
    """
    trace, det = pull.xx + pull.yy, pull.xx * pull.yy - pull.xy * pull.yx
    table = np.empty((count, 4))
    a, b, p, q = 1.0, 0.0, 0.0, 0.0
    for k in range(count):
        table[k, 0], table[k, 1], table[k, 2], table[k, 3] = a, b, p, q
        p, q = (
            p + a * base[2] - det * b * base[3],
            q + a * base[3] + b * base[2] + trace * b * base[3],
        )
        a, b = a * base[0] - det * b * base[1], a * base[1] + b * base[0] + trace * b * base[1]
    return table
