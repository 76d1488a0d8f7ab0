"""Solves with an upper Hessenberg matrix and many shifts: dim^2 operations each."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def solve_shifted(h, shift, rhs, work):
    """Solve (h + shift I) x = rhs for the columns of ``rhs`` (dim, k), in place, by elimination with exchanges.

    Returns the smallest pivot in size; where that is 0 nothing is solved.
    """
    n, k = np.uint64(rhs.shape[0]), np.uint64(rhs.shape[1])
    one = np.uint64(1)
    work[...] = h
    for i in range(n):
        work[i, i] += shift
    smallest = np.inf
    for i in range(n):
        if i + one < n:
            if abs(work[i + one, i]) > abs(work[i, i]):
                for j in range(i, n):
                    work[i, j], work[i + one, j] = work[i + one, j], work[i, j]
                for j in range(k):
                    rhs[i, j], rhs[i + one, j] = rhs[i + one, j], rhs[i, j]
        pivot = work[i, i]
        smallest = min(smallest, abs(pivot))
        if pivot == 0.0:
            return 0.0
        if i + one < n:
            factor = work[i + one, i] / pivot
            if factor != 0.0:
                for j in range(i, n):
                    work[i + one, j] -= factor * work[i, j]
                for j in range(k):
                    rhs[i + one, j] -= factor * rhs[i, j]
    for back in range(n):
        i = n - one - back
        for c in range(k):
            total = rhs[i, c]
            for j in range(i + one, n):
                total -= work[i, j] * rhs[j, c]
            rhs[i, c] = total / work[i, i]
    return smallest
