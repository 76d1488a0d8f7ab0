"""The hot pairs, dense rows and a fixed mean in the saddle or primal direction, taken two or four rows at a time.

A block computes the dot products of its rows with the point where the block began, and of its rows with each other;
from these the scalars of every step in it follow exactly, so that one pass over the rows does all dot products and
one pass all updates. Nothing is approximated: the steps are those of `loop.advance`, in the same order.
With a ridge the point moves by a linear map between steps, which needs two more products a pair of rows and many
more for four; hence pairs there.
"""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH, prefetch, prefetch_part

#: Pairs ask for whole rows one block ahead, up to this many bytes; the hardware follows longer rows better alone.
PREFETCH_BYTES = 1024
#: Tables up to this many bytes stay in a core's own cache, where asking ahead only costs instructions.
CACHED_BYTES = 1 << 20
#: Records are asked for this many steps ahead of their rows.
RECORDS_AHEAD = 32


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def _ahead(table, records, order, first, count, row_bytes):
    """Ask for the rows of steps ``first`` to ``first + count`` and for the records of later ones."""
    n = np.uint64(order.size)
    for k in range(first, min(first + count, n)):
        if row_bytes > np.uint64(0):
            record = records[order[k]]
            prefetch(table, np.uint64(record.state), row_bytes)
            prefetch(table, np.uint64(record.next), row_bytes)
        if k + np.uint64(RECORDS_AHEAD) < n:
            prefetch(records, np.uint64(order[k + np.uint64(RECORDS_AHEAD)]), np.uint64(32))


@njit(fastmath=FASTMATH, nogil=True, forceinline=True)
def _four_steps(
    s_theta, s_omega, reward, r0, r1, r2, r3, w0, w1, w2, w3,
    u0, u1, u2, u3, v0, v1, v2, v3, pm1, pm2, pm3, dm1, dm2, dm3,
    pp10, pp20, pp21, pp30, pp31, pp32, dd10, dd20, dd21, dd30, dd31, dd32,
):  # fmt: skip
    """The factors f (on delta) and h (on phi) of four steps in a row, from products at the point before them.

    u = phi.y, v = delta.x, pm = phi.drift_omega, dm = delta.drift_theta; pp and dd are products of two rows' phi and
    of two rows' delta. Scalars only: an array given to a function would be counted, at a cost of nanoseconds.
    """
    real = type(s_theta)
    two, three = real(2), real(3)
    c0, c1, c2, c3 = real(r0.scale), real(r1.scale), real(r2.scale), real(r3.scale)
    f0 = s_theta * c0 * u0
    h0 = -s_omega * (c0 * (v0 - reward * real(r0.reward)) + w0 * u0)
    u1 += h0 * pp10 - pm1
    v1 += f0 * dd10 - dm1
    f1 = s_theta * c1 * u1
    h1 = -s_omega * (c1 * (v1 - reward * real(r1.reward)) + w1 * u1)
    u2 += h0 * pp20 + h1 * pp21 - two * pm2
    v2 += f0 * dd20 + f1 * dd21 - two * dm2
    f2 = s_theta * c2 * u2
    h2 = -s_omega * (c2 * (v2 - reward * real(r2.reward)) + w2 * u2)
    u3 += h0 * pp30 + h1 * pp31 + h2 * pp32 - three * pm3
    v3 += f0 * dd30 + f1 * dd31 + f2 * dd32 - three * dm3
    f3 = s_theta * c3 * u3
    h3 = -s_omega * (c3 * (v3 - reward * real(r3.reward)) + w3 * u3)
    return f0, f1, f2, f3, h0, h1, h2, h3


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def advance_fours(rows, order, state, step_theta, step_omega, reward):
    """As many steps of four as fit in ``order``, without ridge; returns the size of all pulls.

    ``reward`` is 1 where the reward stays in the step (no reference), else 0.
    """
    table, records = rows.table, rows.records
    x, y, drift_theta, drift_omega = state
    real = x.dtype.type
    zero, four = real(0), real(4)
    width = np.uint64(table.shape[1])
    weighted = rows.weights.size > 0
    s_theta, s_omega = real(step_theta), real(step_omega)
    one_row = np.uint64(1)
    block = np.uint64(4)
    n_blocks = np.uint64(order.size) // block
    pulled = 0.0
    for b in range(n_blocks):
        k = b * block
        _ahead(table, records, order, k + block, block, np.uint64(0))
        t0, t1 = order[k], order[k + one_row]
        t2, t3 = order[k + np.uint64(2)], order[k + np.uint64(3)]
        r0, r1, r2, r3 = records[t0], records[t1], records[t2], records[t3]
        p0, p1, p2, p3 = table[r0.state], table[r1.state], table[r2.state], table[r3.state]
        q0, q1, q2, q3 = table[r0.next], table[r1.next], table[r2.next], table[r3.next]
        g0, g1, g2, g3 = real(r0.discount), real(r1.discount), real(r2.discount), real(r3.discount)
        u0 = u1 = u2 = u3 = zero
        v0 = v1 = v2 = v3 = zero
        pm1 = pm2 = pm3 = zero
        dm1 = dm2 = dm3 = zero
        pp10 = pp20 = pp21 = pp30 = pp31 = pp32 = zero
        dd10 = dd20 = dd21 = dd30 = dd31 = dd32 = zero
        for j in range(width):
            xj, yj, mt, mo = x[j], y[j], drift_theta[j], drift_omega[j]
            a0, a1, a2, a3 = p0[j], p1[j], p2[j], p3[j]
            d0, d1, d2, d3 = a0 - g0 * q0[j], a1 - g1 * q1[j], a2 - g2 * q2[j], a3 - g3 * q3[j]
            u0 += a0 * yj
            u1 += a1 * yj
            u2 += a2 * yj
            u3 += a3 * yj
            v0 += d0 * xj
            v1 += d1 * xj
            v2 += d2 * xj
            v3 += d3 * xj
            pm1 += a1 * mo
            pm2 += a2 * mo
            pm3 += a3 * mo
            dm1 += d1 * mt
            dm2 += d2 * mt
            dm3 += d3 * mt
            pp10 += a1 * a0
            pp20 += a2 * a0
            pp21 += a2 * a1
            pp30 += a3 * a0
            pp31 += a3 * a1
            pp32 += a3 * a2
            dd10 += d1 * d0
            dd20 += d2 * d0
            dd21 += d2 * d1
            dd30 += d3 * d0
            dd31 += d3 * d1
            dd32 += d3 * d2
        w0 = w1 = w2 = w3 = real(1)
        if weighted:
            w0, w1 = real(rows.weights[t0]), real(rows.weights[t1])
            w2, w3 = real(rows.weights[t2]), real(rows.weights[t3])
        f0, f1, f2, f3, h0, h1, h2, h3 = _four_steps(
            s_theta, s_omega, real(reward), r0, r1, r2, r3, w0, w1, w2, w3,
            u0, u1, u2, u3, v0, v1, v2, v3, pm1, pm2, pm3, dm1, dm2, dm3,
            pp10, pp20, pp21, pp30, pp31, pp32, dd10, dd20, dd21, dd30, dd31, dd32,
        )  # fmt: skip
        pulled += abs(f0) + abs(f1) + abs(f2) + abs(f3) + abs(h0) + abs(h1) + abs(h2) + abs(h3)
        for j in range(width):
            a0, a1, a2, a3 = p0[j], p1[j], p2[j], p3[j]
            d0, d1, d2, d3 = a0 - g0 * q0[j], a1 - g1 * q1[j], a2 - g2 * q2[j], a3 - g3 * q3[j]
            x[j] += f0 * d0 + f1 * d1 + f2 * d2 + f3 * d3 - four * drift_theta[j]
            y[j] += h0 * a0 + h1 * a1 + h2 * a2 + h3 * a3 - four * drift_omega[j]
    return pulled


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def advance_far_fours(rows, order, state, step_theta, step_omega, reward, pieces, ahead):
    """As `advance_fours`, for tables that lie far away, in memory or the last cache.

    Both loops go through the rows in pieces of so many entries, ``pieces`` for the first and the second, and before
    each piece the same piece of the rows ``ahead`` blocks on is asked for: their states in the first loop, their next
    states in the second. So memory is seldom idle.
    Rows are indexed rather than held as arrays: these would be counted for every block.
    """
    table, records = rows.table, rows.records
    x, y, drift_theta, drift_omega = state
    real = x.dtype.type
    zero, four = real(0), real(4)
    width = np.uint64(table.shape[1])
    weighted = rows.weights.size > 0
    s_theta, s_omega = real(step_theta), real(step_omega)
    one_row = np.uint64(1)
    block = np.uint64(4)
    n_blocks = np.uint64(order.size) // block
    pulled = 0.0
    for b in range(n_blocks):
        k = b * block
        _ahead(table, records, order, k + block, block, np.uint64(0))
        t0, t1 = order[k], order[k + one_row]
        t2, t3 = order[k + np.uint64(2)], order[k + np.uint64(3)]
        r0, r1, r2, r3 = records[t0], records[t1], records[t2], records[t3]
        p0, p1, p2, p3 = np.uint64(r0.state), np.uint64(r1.state), np.uint64(r2.state), np.uint64(r3.state)
        q0, q1, q2, q3 = np.uint64(r0.next), np.uint64(r1.next), np.uint64(r2.next), np.uint64(r3.next)
        m = min(k + ahead * block, (n_blocks - one_row) * block)
        n0, n1 = records[order[m]], records[order[m + one_row]]
        n2, n3 = records[order[m + np.uint64(2)]], records[order[m + np.uint64(3)]]
        g0, g1, g2, g3 = real(r0.discount), real(r1.discount), real(r2.discount), real(r3.discount)
        u0 = u1 = u2 = u3 = zero
        v0 = v1 = v2 = v3 = zero
        pm1 = pm2 = pm3 = zero
        dm1 = dm2 = dm3 = zero
        pp10 = pp20 = pp21 = pp30 = pp31 = pp32 = zero
        dd10 = dd20 = dd21 = dd30 = dd31 = dd32 = zero
        for begin in range(np.uint64(0), width, pieces[0]):
            count = min(pieces[0], width - begin)
            n_bytes = count * np.uint64(table.itemsize)
            prefetch_part(table, np.uint64(n0.state), begin, n_bytes)
            prefetch_part(table, np.uint64(n1.state), begin, n_bytes)
            prefetch_part(table, np.uint64(n2.state), begin, n_bytes)
            prefetch_part(table, np.uint64(n3.state), begin, n_bytes)
            for i in range(count):
                j = begin + i
                xj, yj, mt, mo = x[j], y[j], drift_theta[j], drift_omega[j]
                a0, a1, a2, a3 = table[p0, j], table[p1, j], table[p2, j], table[p3, j]
                d0, d1, d2, d3 = (
                    a0 - g0 * table[q0, j],
                    a1 - g1 * table[q1, j],
                    a2 - g2 * table[q2, j],
                    a3 - g3 * table[q3, j],
                )
                u0 += a0 * yj
                u1 += a1 * yj
                u2 += a2 * yj
                u3 += a3 * yj
                v0 += d0 * xj
                v1 += d1 * xj
                v2 += d2 * xj
                v3 += d3 * xj
                pm1 += a1 * mo
                pm2 += a2 * mo
                pm3 += a3 * mo
                dm1 += d1 * mt
                dm2 += d2 * mt
                dm3 += d3 * mt
                pp10 += a1 * a0
                pp20 += a2 * a0
                pp21 += a2 * a1
                pp30 += a3 * a0
                pp31 += a3 * a1
                pp32 += a3 * a2
                dd10 += d1 * d0
                dd20 += d2 * d0
                dd21 += d2 * d1
                dd30 += d3 * d0
                dd31 += d3 * d1
                dd32 += d3 * d2
        w0 = w1 = w2 = w3 = real(1)
        if weighted:
            w0, w1 = real(rows.weights[t0]), real(rows.weights[t1])
            w2, w3 = real(rows.weights[t2]), real(rows.weights[t3])
        f0, f1, f2, f3, h0, h1, h2, h3 = _four_steps(
            s_theta, s_omega, real(reward), r0, r1, r2, r3, w0, w1, w2, w3,
            u0, u1, u2, u3, v0, v1, v2, v3, pm1, pm2, pm3, dm1, dm2, dm3,
            pp10, pp20, pp21, pp30, pp31, pp32, dd10, dd20, dd21, dd30, dd31, dd32,
        )  # fmt: skip
        pulled += abs(f0) + abs(f1) + abs(f2) + abs(f3) + abs(h0) + abs(h1) + abs(h2) + abs(h3)
        for begin in range(np.uint64(0), width, pieces[1]):
            count = min(pieces[1], width - begin)
            n_bytes = count * np.uint64(table.itemsize)
            prefetch_part(table, np.uint64(n0.next), begin, n_bytes)
            prefetch_part(table, np.uint64(n1.next), begin, n_bytes)
            prefetch_part(table, np.uint64(n2.next), begin, n_bytes)
            prefetch_part(table, np.uint64(n3.next), begin, n_bytes)
            for i in range(count):
                j = begin + i
                a0, a1, a2, a3 = table[p0, j], table[p1, j], table[p2, j], table[p3, j]
                d0, d1, d2, d3 = (
                    a0 - g0 * table[q0, j],
                    a1 - g1 * table[q1, j],
                    a2 - g2 * table[q2, j],
                    a3 - g3 * table[q3, j],
                )
                x[j] += f0 * d0 + f1 * d1 + f2 * d2 + f3 * d3 - four * drift_theta[j]
                y[j] += h0 * a0 + h1 * a1 + h2 * a2 + h3 * a3 - four * drift_omega[j]
    return pulled


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def advance_pairs(rows, order, state, step_theta, step_omega, ridge_theta, ridge_omega, reward, ask):
    """As `advance_fours`, two rows at a time and with a ridge, given times the steps.

    ``ask`` is the bytes of a row to ask for ahead, or 0.
    """
    table, records = rows.table, rows.records
    x, y, drift_theta, drift_omega = state
    real = x.dtype.type
    zero = real(0)
    width = np.uint64(table.shape[1])
    weighted = rows.weights.size > 0
    s_theta, s_omega = real(step_theta), real(step_omega)
    e_theta, e_omega = real(ridge_theta), real(ridge_omega)
    block = np.uint64(2)
    n_blocks = np.uint64(order.size) // block
    pulled = 0.0
    for b in range(n_blocks):
        k = b * block
        _ahead(table, records, order, k + block, block, ask)
        t0, t1 = order[k], order[k + np.uint64(1)]
        r0, r1 = records[t0], records[t1]
        p0, p1 = table[r0.state], table[r1.state]
        q0, q1 = table[r0.next], table[r1.next]
        g0, g1 = real(r0.discount), real(r1.discount)
        u0 = u1 = v0 = v1 = zero
        pm1 = dm1 = pp10 = dd10 = px1 = dy1 = zero
        for j in range(width):
            xj, yj = x[j], y[j]
            a0, a1 = p0[j], p1[j]
            d0, d1 = a0 - g0 * q0[j], a1 - g1 * q1[j]
            u0 += a0 * yj
            u1 += a1 * yj
            v0 += d0 * xj
            v1 += d1 * xj
            px1 += a1 * xj
            dy1 += d1 * yj
            pm1 += a1 * drift_omega[j]
            dm1 += d1 * drift_theta[j]
            pp10 += a1 * a0
            dd10 += d1 * d0
        w0 = w1 = real(1)
        if weighted:
            w0, w1 = real(rows.weights[t0]), real(rows.weights[t1])
        c0, c1 = real(r0.scale), real(r1.scale)
        f0 = s_theta * c0 * u0
        h0 = -s_omega * (c0 * (v0 - real(reward * r0.reward)) + w0 * u0)
        before = u1
        u1 += h0 * pp10 - pm1 - e_omega * (px1 + before)
        v1 += f0 * dd10 - dm1 + e_theta * dy1
        f1 = s_theta * c1 * u1
        h1 = -s_omega * (c1 * (v1 - real(reward * r1.reward)) + w1 * u1)
        pulled += abs(f0) + abs(f1) + abs(h0) + abs(h1)
        for j in range(width):
            a0, a1 = p0[j], p1[j]
            mt, mo = drift_theta[j], drift_omega[j]
            xj, yj = x[j], y[j]
            x1 = xj - mt + f0 * (a0 - g0 * q0[j]) + e_theta * yj
            y1 = yj - mo + h0 * a0 - e_omega * (xj + yj)
            x[j] = x1 - mt + f1 * (a1 - g1 * q1[j]) + e_theta * y1
            y[j] = y1 - mo + h1 * a1 - e_omega * (x1 + y1)
    return pulled


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def advance_primal_fours(rows, order, state, step, decay, reward, pieces, ahead):
    """As `advance_fours` in the primal direction, where the point shrinks by ``decay``, 1 less the ridge's pull.

    With ``ahead`` above 0 the rows so many blocks on are asked for, as in `advance_far_fours`.
    """
    table, records = rows.table, rows.records
    x, drift = state.x, state.drift_theta
    real = x.dtype.type
    zero, one = real(0), real(1)
    width = np.uint64(table.shape[1])
    s, m, kept = real(step), real(decay), real(reward)
    m2 = m * m
    m3, m4 = m2 * m, m2 * m2
    sum2 = one + m
    sum3 = sum2 + m2
    sum4 = sum3 + m3
    far = ahead > np.uint64(0)
    one_row = np.uint64(1)
    block = np.uint64(4)
    n_blocks = np.uint64(order.size) // block
    pulled = 0.0
    for b in range(n_blocks):
        k = b * block
        _ahead(table, records, order, k + block, block, np.uint64(0))
        t0, t1 = order[k], order[k + one_row]
        t2, t3 = order[k + np.uint64(2)], order[k + np.uint64(3)]
        r0, r1, r2, r3 = records[t0], records[t1], records[t2], records[t3]
        p0, p1, p2, p3 = np.uint64(r0.state), np.uint64(r1.state), np.uint64(r2.state), np.uint64(r3.state)
        q0, q1, q2, q3 = np.uint64(r0.next), np.uint64(r1.next), np.uint64(r2.next), np.uint64(r3.next)
        later = min(k + ahead * block, (n_blocks - one_row) * block)
        n0, n1 = records[order[later]], records[order[later + one_row]]
        n2, n3 = records[order[later + np.uint64(2)]], records[order[later + np.uint64(3)]]
        g0, g1, g2, g3 = real(r0.discount), real(r1.discount), real(r2.discount), real(r3.discount)
        v0 = v1 = v2 = v3 = zero
        dm1 = dm2 = dm3 = zero
        dp10 = dp20 = dp21 = dp30 = dp31 = dp32 = zero
        for begin in range(np.uint64(0), width, pieces[0]):
            count = min(pieces[0], width - begin)
            if far:
                n_bytes = count * np.uint64(table.itemsize)
                prefetch_part(table, np.uint64(n0.state), begin, n_bytes)
                prefetch_part(table, np.uint64(n1.state), begin, n_bytes)
                prefetch_part(table, np.uint64(n2.state), begin, n_bytes)
                prefetch_part(table, np.uint64(n3.state), begin, n_bytes)
                prefetch_part(table, np.uint64(n0.next), begin, n_bytes)
                prefetch_part(table, np.uint64(n1.next), begin, n_bytes)
                prefetch_part(table, np.uint64(n2.next), begin, n_bytes)
                prefetch_part(table, np.uint64(n3.next), begin, n_bytes)
            for i in range(count):
                j = begin + i
                xj, mt = x[j], drift[j]
                a0, a1, a2, a3 = table[p0, j], table[p1, j], table[p2, j], table[p3, j]
                d1, d2, d3 = a1 - g1 * table[q1, j], a2 - g2 * table[q2, j], a3 - g3 * table[q3, j]
                v0 += (a0 - g0 * table[q0, j]) * xj
                v1 += d1 * xj
                v2 += d2 * xj
                v3 += d3 * xj
                dm1 += d1 * mt
                dm2 += d2 * mt
                dm3 += d3 * mt
                dp10 += d1 * a0
                dp20 += d2 * a0
                dp21 += d2 * a1
                dp30 += d3 * a0
                dp31 += d3 * a1
                dp32 += d3 * a2
        f0 = -s * real(r0.scale) * (v0 - kept * real(r0.reward))
        v1 = m * v1 - dm1 + f0 * dp10
        f1 = -s * real(r1.scale) * (v1 - kept * real(r1.reward))
        v2 = m2 * v2 - sum2 * dm2 + m * f0 * dp20 + f1 * dp21
        f2 = -s * real(r2.scale) * (v2 - kept * real(r2.reward))
        v3 = m3 * v3 - sum3 * dm3 + m2 * f0 * dp30 + m * f1 * dp31 + f2 * dp32
        f3 = -s * real(r3.scale) * (v3 - kept * real(r3.reward))
        pulled += abs(f0) + abs(f1) + abs(f2) + abs(f3)
        f0, f1, f2 = m3 * f0, m2 * f1, m * f2
        for j in range(width):
            x[j] = (
                m4 * x[j]
                - sum4 * drift[j]
                + f0 * table[p0, j]
                + f1 * table[p1, j]
                + f2 * table[p2, j]
                + f3 * table[p3, j]
            )
    return pulled
