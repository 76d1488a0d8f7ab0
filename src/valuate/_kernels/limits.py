"""What the benchmark holds the step against: reading the same memory and doing nothing else, and one slower way.

The solvers use nothing of this.
"""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH, prefetch

#: Pairs of rows that are summed, and asked for, together.
BLOCK = 4


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def read(entries):
    """The sum of all entries of a (n,) array, in the order in which they lie."""
    total = entries.dtype.type(0)
    for i in range(np.uint64(entries.size)):
        total += entries[i]
    return total


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def gather(table, first, second, ask):
    """The sum of the entries of pairs of rows, whose places are known beforehand; a rest of up to 3 pairs is left out.

    Four pairs are summed together, as the step does: one after the other takes up to 1.4x as long. ``ask`` is the
    number of bytes of each row to ask for while the block before it is summed, or 0.
    """
    total = table.dtype.type(0)
    n, width = np.uint64(first.size), np.uint64(table.shape[1])
    block = np.uint64(BLOCK)
    for b in range(n // block):
        k = b * block
        if ask > np.uint64(0):
            for later in range(k + block, min(k + block + block, n)):
                prefetch(table, np.uint64(first[later]), ask)
                prefetch(table, np.uint64(second[later]), ask)
        k1, k2, k3 = k + np.uint64(1), k + np.uint64(2), k + np.uint64(3)
        p0, p1, p2, p3 = table[first[k]], table[first[k1]], table[first[k2]], table[first[k3]]
        q0, q1, q2, q3 = table[second[k]], table[second[k1]], table[second[k2]], table[second[k3]]
        for j in range(width):
            total += p0[j] + p1[j] + p2[j] + p3[j] + q0[j] + q1[j] + q2[j] + q3[j]
    return total


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_gather(indptr, indices, data, cells, first, second, ask):
    """The sum over pairs of sparse rows of each non-zero times the first number of its coordinate's cache line.

    With ``ask``, row starts are asked for 10 pairs ahead, rows 5 pairs and coordinates one pair, as the step does.
    """
    total = 0.0
    n = np.uint64(first.size)
    for k in range(n):
        if ask:
            for part in range(2):
                place = first if part == 0 else second
                if k + np.uint64(10) < n:
                    prefetch(indptr, np.uint64(place[k + np.uint64(10)]), np.uint64(16))
                if k + np.uint64(5) < n:
                    stored = np.uint64(place[k + np.uint64(5)])
                    begin, end = np.uint64(indptr[stored]), np.uint64(indptr[stored + np.uint64(1)])
                    prefetch(indices, begin, (end - begin) * np.uint64(indices.itemsize) + np.uint64(63))
                    prefetch(data, begin, (end - begin) * np.uint64(data.itemsize) + np.uint64(63))
                if k + np.uint64(1) < n:
                    stored = np.uint64(place[k + np.uint64(1)])
                    for i in range(np.uint64(indptr[stored]), np.uint64(indptr[stored + np.uint64(1)])):
                        prefetch(cells, np.uint64(indices[i]), np.uint64(8))
        for part in range(2):
            stored = np.uint64(first[k] if part == 0 else second[k])
            for i in range(np.uint64(indptr[stored]), np.uint64(indptr[stored + np.uint64(1)])):
                total += data[i] * cells[np.uint64(indices[i]), 0]
    return total


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def every_coordinate(indptr, indices, data, records, order, x, y, drift_theta, drift_omega, step_theta, step_omega):
    """Sparse steps that apply the mean gradient to every coordinate at once, as they would without sleeping.

    The same steps as `loop.advance` on sparse rows, from an anchor and without ridge or weights.
    """
    for k in range(np.uint64(order.size)):
        record = records[order[k]]
        p, q = np.uint64(record.state), np.uint64(record.next)
        u = v = 0.0
        for i in range(np.uint64(indptr[p]), np.uint64(indptr[p + np.uint64(1)])):
            u += data[i] * y[np.uint64(indices[i])]
            v += data[i] * x[np.uint64(indices[i])]
        for i in range(np.uint64(indptr[q]), np.uint64(indptr[q + np.uint64(1)])):
            v -= record.discount * data[i] * x[np.uint64(indices[i])]
        on_delta = step_theta * record.scale * u
        on_phi = -step_omega * (record.scale * v + u)
        for j in range(np.uint64(x.size)):
            x[j] -= drift_theta[j]
            y[j] -= drift_omega[j]
        for i in range(np.uint64(indptr[p]), np.uint64(indptr[p + np.uint64(1)])):
            x[np.uint64(indices[i])] += on_delta * data[i]
            y[np.uint64(indices[i])] += on_phi * data[i]
        for i in range(np.uint64(indptr[q]), np.uint64(indptr[q + np.uint64(1)])):
            x[np.uint64(indices[i])] -= on_delta * record.discount * data[i]
