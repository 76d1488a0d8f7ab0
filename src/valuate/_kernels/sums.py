"""Sums over rows: gradients, products with A, its transpose and C, moments of columns, maxima of row norms.

Each kernel adds the rows of one block into the block's own output; the caller cuts the blocks by the number of rows
alone and adds them in order, so that the result does not depend on how many threads took part.
"""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def dense_sums(rows, order, first, last, x, y, reward, out_phi, out_delta):
    """Add scale*(delta.x - reward*r)*phi + weight*(phi.y)*phi to out_phi, scale*(phi.y)*delta to out_delta.

    Rows ``first`` to ``last`` of ``order``, or of the log where ``order`` is None. A vector or output that is None
    is left out, at compile time.
    """
    table, records = rows.table, rows.records
    width = np.uint64(table.shape[1])
    weighted = rows.weights.size > 0
    for k in range(np.uint64(first), np.uint64(last)):
        row = np.uint64(k) if order is None else np.uint64(order[k])
        record = records[row]
        p, q = table[record.state], table[record.next]
        discount = record.discount
        on_phi = 0.0
        u = 0.0
        if x is not None and y is not None:
            v = 0.0
            for j in range(width):
                v += (p[j] - discount * q[j]) * x[j]
                u += p[j] * y[j]
            on_phi = record.scale * (v - reward * record.reward)
        elif x is not None:
            v = 0.0
            for j in range(width):
                v += (p[j] - discount * q[j]) * x[j]
            on_phi = record.scale * (v - reward * record.reward)
        elif y is not None:
            for j in range(width):
                u += p[j] * y[j]
        else:
            on_phi = -record.scale * reward * record.reward
        if y is not None and out_phi is not None:
            on_phi += (rows.weights[row] if weighted else 1.0) * u
        on_delta = record.scale * u
        if out_phi is not None and out_delta is not None:
            for j in range(width):
                out_phi[j] += on_phi * p[j]
                out_delta[j] += on_delta * (p[j] - discount * q[j])
        elif out_phi is not None:
            for j in range(width):
                out_phi[j] += on_phi * p[j]
        elif out_delta is not None:
            for j in range(width):
                out_delta[j] += on_delta * (p[j] - discount * q[j])


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_sums(rows, order, first, last, x, y, reward, out_phi, out_delta):
    """As `dense_sums`, for sparse rows."""
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    weighted = rows.weights.size > 0
    for k in range(np.uint64(first), np.uint64(last)):
        row = np.uint64(k) if order is None else np.uint64(order[k])
        record = rows.records[row]
        p0, p1 = np.uint64(indptr[record.state]), np.uint64(indptr[record.state + 1])
        q0, q1 = np.uint64(indptr[record.next]), np.uint64(indptr[record.next + 1])
        u = v = 0.0
        for i in range(p0, p1):
            j = np.uint64(indices[i])
            if x is not None:
                v += data[i] * x[j]
            if y is not None:
                u += data[i] * y[j]
        if x is not None and record.discount != 0.0:
            ahead = 0.0
            for i in range(q0, q1):
                ahead += data[i] * x[np.uint64(indices[i])]
            v -= record.discount * ahead
        on_phi = record.scale * (v - reward * record.reward)
        if y is not None and out_phi is not None:
            on_phi += (rows.weights[row] if weighted else 1.0) * u
        on_delta = record.scale * u
        for i in range(p0, p1):
            j = np.uint64(indices[i])
            if out_phi is not None:
                out_phi[j] += on_phi * data[i]
            if out_delta is not None:
                out_delta[j] += on_delta * data[i]
        if out_delta is not None and record.discount != 0.0:
            on_next = -record.discount * on_delta
            for i in range(q0, q1):
                out_delta[np.uint64(indices[i])] += on_next * data[i]


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def state_scalars(records, weights, order, first, last, x, y, reward, on_phi, on_delta):
    """The same sums through the stored rows: ``x`` and ``y`` are the values theta.row and omega.row of each of them.

    Adds to ``on_phi`` and ``on_delta`` (n_stored,) the factor of every stored row in the two sums; the rows
    themselves are then multiplied once each, by two matrix products.
    """
    weighted = weights.size > 0
    for k in range(np.uint64(first), np.uint64(last)):
        row = np.uint64(k) if order is None else np.uint64(order[k])
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
def dense_maxima(rows, first, last):
    """The largest weight*|phi|^2 and scale^2/weight*|delta|^2 of the rows ``first`` to ``last``."""
    table = rows.table
    weighted = rows.weights.size > 0
    most_phi = most_delta = 0.0
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
    return most_phi, most_delta


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_maxima(rows, first, last):
    """As `dense_maxima`, for sparse rows; the column indices of a row are sorted, so the two rows are merged."""
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    weighted = rows.weights.size > 0
    most_phi = most_delta = 0.0
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
    return most_phi, most_delta


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
    """Write the rows whose mark equals ``keep``, in increasing order, to ``out``."""
    at = 0
    for row in range(n_rows):
        bit = bits[np.uint64(row) >> np.uint64(6)] >> (np.uint64(row) & np.uint64(63)) & np.uint64(1)
        if (bit == np.uint64(1)) == keep and at < out.size:
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
