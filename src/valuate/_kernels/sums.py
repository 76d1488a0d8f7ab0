"""Sums over rows: gradients, products with A, its transpose and C, moments of columns, maxima of row norms.

Each kernel adds the rows of one block into the block's own output; the caller cuts the blocks by the number of rows
alone and adds them in order, so that the result does not depend on how many threads took part.
"""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH, prefetch, prefetch_part

#: Records of rows that are not in sequence are asked for this many rows ahead.
AHEAD = np.uint64(16)
#: Bytes of the next four rows that are asked for together while four rows are added.
PIECE = 512


@njit(fastmath=FASTMATH, nogil=True, forceinline=True)
def _at(order, k, last):
    """Row number ``k`` of the order, or the last one beyond its end."""
    at = min(np.uint64(k), np.uint64(last) - np.uint64(1))
    return at if order is None else np.uint64(order[at])


@njit(fastmath=FASTMATH, nogil=True, forceinline=True)
def _factors(record, weight, counts, u, v, reward, has_y):
    """Factors of a row on phi and on delta; a row beyond the end counts 0."""
    on_phi = record.scale * (v - reward * record.reward)
    if has_y:
        on_phi += weight * u
    return counts * on_phi, counts * record.scale * u


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def dense_sums(rows, order, first, last, x, y, reward, out_phi, out_delta):
    """Add scale*(delta.x - reward*r)*phi + weight*(phi.y)*phi to out_phi, scale*(phi.y)*delta to out_delta.

    Rows ``first`` to ``last`` of ``order``, or of the log where ``order`` is None. A vector or output that is None
    is left out, at compile time. Rows are taken four at a time, so that the vectors pass through the registers once
    for four; at the end the last row fills up the four, with factor 0. Rows are indexed rather than held as arrays,
    which would be counted.
    """
    table, records, weights = rows.table, rows.records, rows.weights
    width = np.uint64(table.shape[1])
    weighted = weights.size > 0
    has_x, has_y = x is not None, y is not None
    end = np.uint64(last)
    piece = np.uint64(PIECE // table.itemsize)
    for k in range(np.uint64(first), end, np.uint64(4)):
        t0, t1 = _at(order, k, last), _at(order, k + np.uint64(1), last)
        t2, t3 = _at(order, k + np.uint64(2), last), _at(order, k + np.uint64(3), last)
        r0, r1, r2, r3 = records[t0], records[t1], records[t2], records[t3]
        p0, p1, p2, p3 = np.uint64(r0.state), np.uint64(r1.state), np.uint64(r2.state), np.uint64(r3.state)
        q0, q1, q2, q3 = np.uint64(r0.next), np.uint64(r1.next), np.uint64(r2.next), np.uint64(r3.next)
        g0, g1, g2, g3 = r0.discount, r1.discount, r2.discount, r3.discount
        u0 = u1 = u2 = u3 = v0 = v1 = v2 = v3 = 0.0
        n0, n1 = records[_at(order, k + np.uint64(4), last)], records[_at(order, k + np.uint64(5), last)]
        n2, n3 = records[_at(order, k + np.uint64(6), last)], records[_at(order, k + np.uint64(7), last)]
        if has_x or has_y:
            for begin in range(np.uint64(0), width, piece):
                count = min(piece, width - begin)
                n_bytes = count * np.uint64(table.itemsize)
                prefetch_part(table, np.uint64(n0.state), begin, n_bytes)
                prefetch_part(table, np.uint64(n1.state), begin, n_bytes)
                prefetch_part(table, np.uint64(n2.state), begin, n_bytes)
                prefetch_part(table, np.uint64(n3.state), begin, n_bytes)
                for i in range(count):
                    j = begin + i
                    a0, a1, a2, a3 = table[p0, j], table[p1, j], table[p2, j], table[p3, j]
                    if x is not None:
                        xj = x[j]
                        v0 += (a0 - g0 * table[q0, j]) * xj
                        v1 += (a1 - g1 * table[q1, j]) * xj
                        v2 += (a2 - g2 * table[q2, j]) * xj
                        v3 += (a3 - g3 * table[q3, j]) * xj
                    if y is not None:
                        yj = y[j]
                        u0 += a0 * yj
                        u1 += a1 * yj
                        u2 += a2 * yj
                        u3 += a3 * yj
        w0 = w1 = w2 = w3 = 1.0
        if weighted:
            w0, w1, w2, w3 = weights[t0], weights[t1], weights[t2], weights[t3]
        c1 = 1.0 if k + np.uint64(1) < end else 0.0
        c2 = 1.0 if k + np.uint64(2) < end else 0.0
        c3 = 1.0 if k + np.uint64(3) < end else 0.0
        f0, d0 = _factors(r0, w0, 1.0, u0, v0, reward, has_y)
        f1, d1 = _factors(r1, w1, c1, u1, v1, reward, has_y)
        f2, d2 = _factors(r2, w2, c2, u2, v2, reward, has_y)
        f3, d3 = _factors(r3, w3, c3, u3, v3, reward, has_y)
        for begin in range(np.uint64(0), width, piece):
            count = min(piece, width - begin)
            n_bytes = count * np.uint64(table.itemsize)
            prefetch_part(table, np.uint64(n0.next), begin, n_bytes)
            prefetch_part(table, np.uint64(n1.next), begin, n_bytes)
            prefetch_part(table, np.uint64(n2.next), begin, n_bytes)
            prefetch_part(table, np.uint64(n3.next), begin, n_bytes)
            for i in range(count):
                j = begin + i
                a0, a1, a2, a3 = table[p0, j], table[p1, j], table[p2, j], table[p3, j]
                if out_phi is not None:
                    out_phi[j] += f0 * a0 + f1 * a1 + f2 * a2 + f3 * a3
                if out_delta is not None:
                    out_delta[j] += (
                        d0 * (a0 - g0 * table[q0, j])
                        + d1 * (a1 - g1 * table[q1, j])
                        + d2 * (a2 - g2 * table[q2, j])
                        + d3 * (a3 - g3 * table[q3, j])
                    )


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def state_scalars(records, weights, order, first, last, x, y, reward, on_phi, on_delta):
    """The same sums through the stored rows: ``x`` and ``y`` are the values theta.row and omega.row of each of them.

    Adds to ``on_phi`` and ``on_delta`` (n_stored,) the factor of every stored row in the two sums; the rows
    themselves are then multiplied once each, by two matrix products.
    """
    weighted = weights.size > 0
    for k in range(np.uint64(first), np.uint64(last)):
        row = np.uint64(k)
        if order is not None:
            row = np.uint64(order[k])
            if k + AHEAD < np.uint64(last):
                prefetch(records, np.uint64(order[k + AHEAD]), np.uint64(32))
        record = records[row]
        i, j = np.uint64(record.state), np.uint64(record.next)
        u = y[i]
        v = x[i] - record.discount * x[j] - reward * record.reward
        on_phi[i] += record.scale * v + (weights[row] if weighted else 1.0) * u
        on_delta[i] += record.scale * u
        on_delta[j] -= record.discount * record.scale * u


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def visits(records, weights, first, last, out):
    """Add the weight of every row to the stored row that is its state."""
    weighted = weights.size > 0
    for k in range(np.uint64(first), np.uint64(last)):
        out[np.uint64(records[k].state)] += weights[k] if weighted else 1.0


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def square_lengths(table, squares, first, last, out):
    """Fill ``out`` from row ``first`` to ``last`` with the sums of entry^2 * squares of the table's rows."""
    width = np.uint64(squares.size)
    for k in range(np.uint64(first), np.uint64(last)):
        total = 0.0
        for j in range(width):
            entry = np.float64(table[k, j])
            total += entry * entry * squares[j]
        out[k] = total


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def square_errors(records, first, last, values, out):
    """Add (scale * temporal-difference error)^2 of every row to the stored row that is its state.

    ``values`` (n_stored,) are those of the stored rows.
    """
    for k in range(np.uint64(first), np.uint64(last)):
        record = records[k]
        i, j = np.uint64(record.state), np.uint64(record.next)
        error = record.scale * (record.reward + record.discount * values[j] - values[i])
        out[i] += error * error


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def ratio_sums(records, weights, first, last):
    """The sums of weight * ratio and of weight * ratio^2; scale holds weight * ratio."""
    weighted = weights.size > 0
    total = squares = 0.0
    for k in range(np.uint64(first), np.uint64(last)):
        scale = records[k].scale
        weight = weights[k] if weighted else 1.0
        total += scale
        if weight > 0.0:
            squares += scale * scale / weight
    return total, squares


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def dense_maxima(rows, first, last):
    """The largest weight*|phi|^2, scale^2/weight*|delta|^2 and scale*|phi|*|delta| of rows ``first`` to ``last``."""
    table = rows.table
    weighted = rows.weights.size > 0
    most_phi = most_delta = most_both = 0.0
    for k in range(np.uint64(first), np.uint64(last)):
        record = rows.records[k]
        p, q = table[record.state], table[record.next]
        discount = record.discount
        phi = delta = 0.0
        for j in range(np.uint64(table.shape[1])):
            step = p[j] - discount * q[j]
            phi += p[j] * p[j]
            delta += step * step
        weight = rows.weights[k] if weighted else 1.0
        most_phi = max(most_phi, weight * phi)
        if weight > 0.0:
            most_delta = max(most_delta, record.scale * record.scale / weight * delta)
        most_both = max(most_both, record.scale * np.sqrt(phi) * np.sqrt(delta))
    return most_phi, most_delta, most_both


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_maxima(rows, first, last):
    """As `dense_maxima`, for sparse rows; the column indices of a row are sorted, so the two rows are merged."""
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    weighted = rows.weights.size > 0
    most_phi = most_delta = most_both = 0.0
    for k in range(np.uint64(first), np.uint64(last)):
        record = rows.records[k]
        i, p_end = np.uint64(indptr[record.state]), np.uint64(indptr[record.state + 1])
        j, q_end = np.uint64(indptr[record.next]), np.uint64(indptr[record.next + 1])
        phi = delta = 0.0
        while i < p_end or j < q_end:
            step = 0.0
            column = indices[i] if i < p_end else indices[j]
            if j < q_end and indices[j] < column:
                column = indices[j]
            if i < p_end and indices[i] == column:
                phi += data[i] * data[i]
                step += data[i]
                i += np.uint64(1)
            if j < q_end and indices[j] == column:
                step -= record.discount * data[j]
                j += np.uint64(1)
            delta += step * step
        weight = rows.weights[k] if weighted else 1.0
        most_phi = max(most_phi, weight * phi)
        if weight > 0.0:
            most_delta = max(most_delta, record.scale * record.scale / weight * delta)
        most_both = max(most_both, record.scale * np.sqrt(phi) * np.sqrt(delta))
    return most_phi, most_delta, most_both


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def dense_column_peaks(table, used, first, last, out):
    """As `column_peaks`, of rows that are dense; ``out`` has as many entries as are looked at."""
    width = np.uint64(out.size)
    for k in range(np.uint64(first), np.uint64(last)):
        if used is not None:
            if not used[k]:
                continue
        for j in range(width):
            out[j] = max(out[j], abs(table[k, j]))


@njit(nogil=True, cache=True)
def column_peaks(indptr, indices, data, used, first, last, out):
    """Raise ``out`` (dim,) to the size of the largest entry of each column in rows ``first`` to ``last`` of a table.

    Only of the rows that are ``used``, or of all where that is None.
    """
    for k in range(np.uint64(first), np.uint64(last)):
        if used is not None:
            if not used[k]:
                continue
        for i in range(np.uint64(indptr[k]), np.uint64(indptr[k + np.uint64(1)])):
            j = np.uint64(indices[i])
            out[j] = max(out[j], np.float64(abs(data[i])))


@njit(nogil=True, cache=True)
def mark(bits, draws, wanted):
    """Mark the rows of ``draws`` not yet marked until ``wanted`` are new; returns how many are still missing."""
    for k in range(draws.size):
        if wanted == 0:
            break
        row = np.uint64(draws[k])
        place, bit = row >> np.uint64(6), np.uint64(1) << (row & np.uint64(63))
        if not bits[place] & bit:
            bits[place] |= bit
            wanted -= 1
    return wanted


@njit(nogil=True, cache=True)
def marked(bits, n_rows, keep, out):
    """Write the rows whose mark equals ``keep``, in increasing order, to ``out``; words without any are skipped."""
    at = 0
    for place in range(np.uint64(bits.size)):
        word = bits[place] if keep else ~bits[place]
        if word == np.uint64(0):
            continue
        first = place << np.uint64(6)
        for bit in range(np.uint64(64)):
            row = first + bit
            if word >> bit & np.uint64(1) and row < np.uint64(n_rows):
                out[at] = row
                at += 1
    return at


@njit(nogil=True, cache=True)
def count(records, first, last, out):
    """Add scale * (e_state - discount * e_next) to row ``state`` of ``out`` (n_stored, n_stored) for every row."""
    for k in range(np.uint64(first), np.uint64(last)):
        record = records[k]
        i, j = np.uint64(record.state), np.uint64(record.next)
        out[i, i] += record.scale
        out[i, j] -= record.scale * record.discount
