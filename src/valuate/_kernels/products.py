"""Products of a sparse table with vectors, in float64 whatever the type of its entries, and without a copy of them.

Where ``data`` is None, at compile time, all entries are 1 and are not read: columns alone are a third of the memory.
Outputs (dim,) are filled rather than added to, so that whoever calls need not write zeros first.
"""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_times(indptr, indices, data, first, last, vector, squared, out):
    """Fill ``out`` from row ``first`` to ``last`` with products of these rows, or of their squares, and ``vector``."""
    for k in range(np.uint64(first), np.uint64(last)):
        total = 0.0
        for i in range(np.uint64(indptr[k]), np.uint64(indptr[k + np.uint64(1)])):
            if data is None:
                total += vector[np.uint64(indices[i])]
            else:
                entry = np.float64(data[i])
                if squared:
                    entry *= entry
                total += entry * vector[np.uint64(indices[i])]
        out[k] = total


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_transposed(indptr, indices, data, first, last, factors, squared, out):
    """Fill ``out`` (dim,) with the sum of rows ``first`` to ``last``, or of their squares, each times its factor."""
    out[:] = 0.0
    for k in range(np.uint64(first), np.uint64(last)):
        factor = factors[k]
        if factor == 0.0:
            continue
        for i in range(np.uint64(indptr[k]), np.uint64(indptr[k + np.uint64(1)])):
            if data is None:
                out[np.uint64(indices[i])] += factor
            else:
                entry = np.float64(data[i])
                if squared:
                    entry *= entry
                out[np.uint64(indices[i])] += factor * entry


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_column_sums(indptr, indices, data, records, weights, first, last, out):
    """Fill ``out`` with sums over the transitions ``first`` to ``last``: weight * phi_j^2, then scale * reward * phi_j.

    The two of a column lie side by side, (2 dim,), so that both are where one is.
    """
    out[:] = 0.0
    weighted = weights.size > 0
    for t in range(np.uint64(first), np.uint64(last)):
        record = records[t]
        weight = weights[t] if weighted else 1.0
        reward = record.scale * record.reward
        for i in range(np.uint64(indptr[record.state]), np.uint64(indptr[record.state + 1])):
            j = np.uint64(2) * np.uint64(indices[i])
            if data is None:
                out[j] += weight
                out[j + np.uint64(1)] += reward
            else:
                entry = np.float64(data[i])
                out[j] += weight * entry * entry
                out[j + np.uint64(1)] += reward * entry


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_sums(indptr, indices, data, records, weights, order, first, last, x, y, reward, out_phi, out_delta):
    """Fill the outputs as `sums.dense_sums` adds to them, for sparse rows.

    Where the state of a transition is the next state of the one before, what was found for it there is used again:
    its product with ``x``, and its factor in ``out_delta``, which waits until its own is known. A trajectory that is
    stored once is so read once.
    """
    weighted = weights.size > 0
    if out_phi is not None:
        out_phi[:] = 0.0
    if out_delta is not None:
        out_delta[:] = 0.0
    before, ahead, owed = np.int64(-1), 0.0, 0.0
    for k in range(np.uint64(first), np.uint64(last)):
        row = np.uint64(k) if order is None else np.uint64(order[k])
        record = records[row]
        p0, p1 = np.uint64(indptr[record.state]), np.uint64(indptr[record.state + 1])
        again = np.int64(record.state) == before
        u = v = 0.0
        if x is not None:
            if again:
                v = ahead
            else:
                for i in range(p0, p1):
                    if data is None:
                        v += x[np.uint64(indices[i])]
                    else:
                        v += data[i] * x[np.uint64(indices[i])]
        if y is not None:
            for i in range(p0, p1):
                if data is None:
                    u += y[np.uint64(indices[i])]
                else:
                    u += data[i] * y[np.uint64(indices[i])]
        if x is not None and record.discount != 0.0:
            ahead = 0.0
            for i in range(np.uint64(indptr[record.next]), np.uint64(indptr[record.next + 1])):
                if data is None:
                    ahead += x[np.uint64(indices[i])]
                else:
                    ahead += data[i] * x[np.uint64(indices[i])]
            v -= record.discount * ahead
        on_phi = record.scale * (v - reward * record.reward)
        if y is not None and out_phi is not None:
            on_phi += (weights[row] if weighted else 1.0) * u
        if out_phi is not None:
            for i in range(p0, p1):
                if data is None:
                    out_phi[np.uint64(indices[i])] += on_phi
                else:
                    out_phi[np.uint64(indices[i])] += on_phi * data[i]
        if out_delta is not None:
            on_delta = record.scale * u
            here = on_delta
            if again:
                here += owed
            elif owed != 0.0:
                for i in range(np.uint64(indptr[before]), np.uint64(indptr[before + 1])):
                    if data is None:
                        out_delta[np.uint64(indices[i])] += owed
                    else:
                        out_delta[np.uint64(indices[i])] += owed * data[i]
            for i in range(p0, p1):
                if data is None:
                    out_delta[np.uint64(indices[i])] += here
                else:
                    out_delta[np.uint64(indices[i])] += here * data[i]
            owed = -record.discount * on_delta
        # With discount 0 nothing is known of a next row, nor owed to it.
        before = np.int64(record.next) if record.discount != 0.0 else np.int64(-1)
    if out_delta is not None and owed != 0.0:
        for i in range(np.uint64(indptr[before]), np.uint64(indptr[before + 1])):
            if data is None:
                out_delta[np.uint64(indices[i])] += owed
            else:
                out_delta[np.uint64(indices[i])] += owed * data[i]


@njit(nogil=True, cache=True)
def add_up(parts, first, last, out):
    """Fill ``out`` from column ``first`` to ``last`` with the sum of the rows of ``parts``, added in order."""
    for j in range(np.uint64(first), np.uint64(last)):
        out[j] = parts[0, j]
    for k in range(np.uint64(1), np.uint64(parts.shape[0])):
        for j in range(np.uint64(first), np.uint64(last)):
            out[j] += parts[k, j]
