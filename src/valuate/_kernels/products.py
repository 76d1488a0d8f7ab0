"""Products of a sparse table with vectors, in float64 whatever the type of its entries, and without a copy of them."""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_times(indptr, indices, data, first, last, vector, squared, out):
    """Fill ``out`` from row ``first`` to ``last`` with products of these rows, or of their squares, and ``vector``."""
    for k in range(np.uint64(first), np.uint64(last)):
        total = 0.0
        for i in range(np.uint64(indptr[k]), np.uint64(indptr[k + np.uint64(1)])):
            entry = np.float64(data[i])
            if squared:
                entry *= entry
            total += entry * vector[np.uint64(indices[i])]
        out[k] = total


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def sparse_transposed(indptr, indices, data, first, last, factors, squared, out):
    """Add the rows ``first`` to ``last``, or the squares of their entries, each times its factor, to ``out`` (dim,)."""
    for k in range(np.uint64(first), np.uint64(last)):
        factor = factors[k]
        if factor == 0.0:
            continue
        for i in range(np.uint64(indptr[k]), np.uint64(indptr[k + np.uint64(1)])):
            entry = np.float64(data[i])
            if squared:
                entry *= entry
            out[np.uint64(indices[i])] += factor * entry
