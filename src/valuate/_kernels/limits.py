"""What the benchmark holds the step against: reading the same memory and doing nothing else, and one slower way.

The solvers use nothing of this. Two kinds of limit each: plain, and with the memory asked for ahead, as the step does.
"""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH, prefetch

#: Rows of the next so many steps are asked for together.
BLOCK = 4


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def read(table):
    """The sum of all entries of a table, in the order in which they lie."""
    total = table.dtype.type(0)
    width = np.uint64(table.shape[1])
    for i in range(np.uint64(table.shape[0])):
        row = table[i]
        for j in range(width):
            total += row[j]
    return total


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def gather(table, first, second):
    """The sum of the entries of pairs of rows, whose places are known beforehand."""
    total = table.dtype.type(0)
    width = np.uint64(table.shape[1])
    for k in range(np.uint64(first.size)):
        p, q = table[first[k]], table[second[k]]
        for j in range(width):
            total += p[j] + q[j]
    return total


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def gather_asking(table, first, second):
    """As `gather`, asking for the rows of one block while the block before it is summed."""
    total = table.dtype.type(0)
    n, width = np.uint64(first.size), np.uint64(table.shape[1])
    row_bytes = width * np.uint64(table.itemsize)
    block = np.uint64(BLOCK)
    for at in range(n // block):
        begin = at * block
        for k in range(begin + block, min(begin + block + block, n)):
            prefetch(table, np.uint64(first[k]), row_bytes)
            prefetch(table, np.uint64(second[k]), row_bytes)
        for k in range(begin, begin + block):
            p, q = table[first[k]], table[second[k]]
            for j in range(width):
                total += p[j] + q[j]
    return total


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_gather(indptr, indices, data, cells, first, second):
    """The sum over pairs of sparse rows of each non-zero times the first number of its coordinate's cache line."""
    total = 0.0
    for k in range(np.uint64(first.size)):
        for part in range(2):
            stored = np.uint64(first[k] if part == 0 else second[k])
            for i in range(np.uint64(indptr[stored]), np.uint64(indptr[stored + np.uint64(1)])):
                total += data[i] * cells[np.uint64(indices[i]), 0]
    return total


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_gather_asking(indptr, indices, data, cells, first, second):
    """As `sparse_gather`; row starts are asked for 10 steps ahead, rows 5 steps, coordinates one step ahead."""
    total = 0.0
    n = np.uint64(first.size)
    for k in range(n):
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
