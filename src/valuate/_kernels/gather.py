"""Rows side by side for matrix products: gathered, scaled and made float64 in one pass; eligibility traces in place."""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def pair_rows(table, records, first, begin, end, on_left, on_state, on_next, left, right):
    """Fill rows ``begin`` to ``end`` of two matrices for the records from ``first`` on.

    ``left`` takes on_left * phi and ``right`` takes on_state * phi - on_next * phi', with a factor a row.
    """
    width = np.uint64(left.shape[1])
    for k in range(np.uint64(begin), np.uint64(end)):
        record = records[np.uint64(first) + k]
        p, q = np.uint64(record.state), np.uint64(record.next)
        a, f, g = on_left[k], on_state[k], on_next[k]
        for j in range(width):
            phi = np.float64(table[p, j])
            left[k, j] = a * phi
            right[k, j] = f * phi - g * np.float64(table[q, j])


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def scaled_rows(table, first, begin, end, factors, out):
    """Fill rows ``begin`` to ``end`` of ``out`` with the table's rows from ``first`` on, each times its factor."""
    width = np.uint64(out.shape[1])
    for k in range(np.uint64(begin), np.uint64(end)):
        factor = factors[k]
        for j in range(width):
            out[k, j] = factor * np.float64(table[np.uint64(first) + k, j])


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def add_traces(rows, keep, carry, begin, end):
    """Turn columns ``begin`` to ``end`` of ``rows`` into traces: to every row add ``keep`` times the one before.

    ``carry`` is the trace before the first row, and after the call that of the last.
    """
    last = np.uint64(rows.shape[0]) - np.uint64(1)
    for j in range(np.uint64(begin), np.uint64(end)):
        rows[0, j] += keep[0] * carry[j]
    for k in range(np.uint64(1), np.uint64(rows.shape[0])):
        factor = keep[k]
        if factor != 0.0:
            for j in range(np.uint64(begin), np.uint64(end)):
                rows[k, j] += factor * rows[k - np.uint64(1), j]
    for j in range(np.uint64(begin), np.uint64(end)):
        carry[j] = rows[last, j]
