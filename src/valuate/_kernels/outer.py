"""Sums of outer products of sparse rows, added straight into a matrix.

Every call goes through all rows and adds to its own rows of the matrix, each ``parts``-th from ``part`` on. An entry is
added to by one call alone, in the order of the rows, so that the sum does not depend on how many calls there are.
"""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_cross(rows, part, parts, out):
    """Add scale * phi (phi - discount phi')' of all transitions to ``out`` (dim, dim)."""
    indptr, indices, data, records = rows.indptr, rows.indices, rows.data, rows.records
    one = np.uint64(1)
    for t in range(np.uint64(records.size)):
        record = records[t]
        p, q = np.uint64(record.state), np.uint64(record.next)
        scale, ahead = record.scale, record.scale * record.discount
        first, last = np.uint64(indptr[p]), np.uint64(indptr[p + one])
        following, end = np.uint64(indptr[q]), np.uint64(indptr[q + one])
        for k in range(first, last):
            i = np.uint64(indices[k])
            if i % np.uint64(parts) != np.uint64(part):
                continue
            here, there = scale * np.float64(data[k]), ahead * np.float64(data[k])
            for m in range(first, last):
                out[i, np.uint64(indices[m])] += here * np.float64(data[m])
            if there != 0.0:
                for m in range(following, end):
                    out[i, np.uint64(indices[m])] -= there * np.float64(data[m])


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_gram(rows, weights, part, parts, out):
    """Add weight * phi phi' of all stored rows to ``out`` (dim, dim), on and below its diagonal."""
    indptr, indices, data = rows.indptr, rows.indices, rows.data
    for s in range(np.uint64(weights.size)):
        weight = weights[s]
        if weight == 0.0:
            continue
        first, last = np.uint64(indptr[s]), np.uint64(indptr[s + np.uint64(1)])
        for k in range(first, last):
            i = np.uint64(indices[k])
            if i % np.uint64(parts) != np.uint64(part):
                continue
            factor = weight * np.float64(data[k])
            for m in range(first, k + np.uint64(1)):
                out[i, np.uint64(indices[m])] += factor * np.float64(data[m])
