"""Rows side by side for matrix products: gathered, scaled and made float64 in one pass; eligibility traces in place."""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def pair_rows(table, records, first, begin, end, on_left, on_state, on_next, left_units, right_units, left, right):
    """Fill rows ``begin`` to ``end`` of two matrices for the records from ``first`` on.

    ``left`` takes on_left * phi and ``right`` takes on_state * phi - on_next * phi', with a factor a row, and, where
    these are not None, a unit a column. A ``left`` that is None is not filled.
    """
    width = np.uint64(right.shape[1])
    for k in range(np.uint64(begin), np.uint64(end)):
        record = records[np.uint64(first) + k]
        p, q = np.uint64(record.state), np.uint64(record.next)
        a, f, g = on_left[k], on_state[k], on_next[k]
        for j in range(width):
            phi = np.float64(table[p, j])
            across = f * phi - g * np.float64(table[q, j])
            if left is not None:
                left[k, j] = a * phi * left_units[j] if left_units is not None else a * phi
            right[k, j] = across * right_units[j] if right_units is not None else across


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def scaled_rows(table, places, first, begin, end, factors, units, out):
    """Fill rows ``begin`` to ``end`` of ``out`` with rows of the table, each times its factor, a column its unit.

    The rows from ``first`` on of ``places``, or of the table itself where that is None; ``units`` may be None.
    """
    width = np.uint64(out.shape[1])
    for k in range(np.uint64(begin), np.uint64(end)):
        place = np.uint64(first) + k
        if places is not None:
            place = np.uint64(places[place])
        factor = factors[k]
        for j in range(width):
            entry = factor * np.float64(table[place, j])
            out[k, j] = entry * units[j] if units is not None else entry


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def combined_rows(indptr, indices, data, table, first, last, out):
    """Fill ``out`` with rows ``first`` to ``last`` of a CSR matrix times the table."""
    width = np.uint64(out.shape[1])
    for k in range(np.uint64(first), np.uint64(last)):
        at = k - np.uint64(first)
        for j in range(width):
            out[at, j] = 0.0
        for i in range(np.uint64(indptr[k]), np.uint64(indptr[k + np.uint64(1)])):
            row, factor = np.uint64(indices[i]), data[i]
            for j in range(width):
                out[at, j] += factor * np.float64(table[row, j])


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
