"""One look at all stored rows: what checks, scales and the first gradient need of every column."""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def dense_survey(table, on_square, on_reward, first, last, peaks, squares, rewards):
    """Look at rows ``first`` to ``last`` of a table; whether all of their entries are finite.

    Raises ``peaks`` to the largest entry of each column, in size; adds on_square * entry^2 to ``squares`` and
    on_reward * entry to ``rewards``, with a factor a row. Four rows at a time, so that the outputs pass through the
    registers once for four; at the end the last row fills up the four, with factors of 0.
    """
    width = np.uint64(squares.size)
    end = np.uint64(last)
    largest = end - np.uint64(1)
    fine = True
    for k in range(np.uint64(first), end, np.uint64(4)):
        k1, k2, k3 = min(k + np.uint64(1), largest), min(k + np.uint64(2), largest), min(k + np.uint64(3), largest)
        c1 = 1.0 if k + np.uint64(1) < end else 0.0
        c2 = 1.0 if k + np.uint64(2) < end else 0.0
        c3 = 1.0 if k + np.uint64(3) < end else 0.0
        s0, s1, s2, s3 = on_square[k], c1 * on_square[k1], c2 * on_square[k2], c3 * on_square[k3]
        f0, f1, f2, f3 = on_reward[k], c1 * on_reward[k1], c2 * on_reward[k2], c3 * on_reward[k3]
        total = 0.0
        for j in range(width):
            a0, a1, a2, a3 = table[k, j], table[k1, j], table[k2, j], table[k3, j]
            peaks[j] = max(peaks[j], max(max(abs(a0), abs(a1)), max(abs(a2), abs(a3))))
            b0, b1, b2, b3 = np.float64(a0), np.float64(a1), np.float64(a2), np.float64(a3)
            squares[j] += s0 * b0 * b0 + s1 * b1 * b1 + s2 * b2 * b2 + s3 * b3 * b3
            rewards[j] += f0 * b0 + f1 * b1 + f2 * b2 + f3 * b3
            total += abs(b0) + abs(b1) + abs(b2) + abs(b3)
        fine &= total < np.inf
    return fine


@njit(nogil=True, cache=True)
def from_states(records, weights, first, last, on_square, on_reward):
    """Add the weight and scale * reward of every transition to the stored row that is its state."""
    weighted = weights.size > 0
    for k in range(np.uint64(first), np.uint64(last)):
        record = records[k]
        i = np.uint64(record.state)
        on_square[i] += weights[k] if weighted else 1.0
        on_reward[i] += record.scale * record.reward
