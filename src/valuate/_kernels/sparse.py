"""Sparse tables as they are read: checked, compared and copied row by row; nothing here knows of transitions.

Row starts are int64. Kernels that come after `sound` trust what it has looked at.
"""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def sound(indptr, indices, dim, first, last):
    """Whether rows ``first`` to ``last`` lie within the arrays, with columns in [0, dim), sorted and unique.

    No entry is read through a start that has not been looked at.
    """
    size = indices.size
    for k in range(np.uint64(first), np.uint64(last)):
        begin, end = indptr[k], indptr[k + np.uint64(1)]
        if begin < 0 or end < begin or end > size:
            return False
        if begin == end:
            continue
        if indices[begin] < 0 or indices[end - 1] >= dim:
            return False
        falls = 0
        for i in range(np.uint64(begin), np.uint64(end - 1)):
            falls += indices[i + np.uint64(1)] <= indices[i]
        if falls:
            return False
    return True


@njit(nogil=True, cache=True)
def survey(bits, mask, first, last):
    """Of floats given as unsigned integers: the largest size, the smallest size but 0, and whether any differ.

    Sizes are compared as integers without the sign, which ``mask`` takes away: their order is the same, infinity and
    NaN are larger than all numbers, and 0 less 1 is the largest integer. The smallest comes back less 1.
    """
    most = bits.dtype.type(0)
    least = bits.dtype.type(most - bits.dtype.type(1))
    differ = most ^ most
    for i in range(np.uint64(first), np.uint64(last)):
        entry = bits[i]
        size = bits.dtype.type(entry & mask)
        most = max(most, size)
        least = min(least, bits.dtype.type(size - bits.dtype.type(1)))
        differ |= entry ^ bits[0]
    return most, least, differ != 0


@njit(nogil=True, cache=True)
def following(indptr, indices, data, next_indptr, next_indices, next_data, ended, first, last, out):
    """Note for rows ``first`` to ``last`` of the second matrix whether each is the following row of the first.

    Not for rows that ``ended``. Data are None, at compile time, where all entries of both are the same number.
    """
    one = np.uint64(1)
    for t in range(np.uint64(first), np.uint64(last)):
        out[t] = False
        if ended[t]:
            continue
        begin, end = np.uint64(indptr[t + one]), np.uint64(indptr[t + one + one])
        there = np.uint64(next_indptr[t])
        if end - begin != np.uint64(next_indptr[t + one]) - there:
            continue
        differ = 0
        for i in range(end - begin):
            differ += indices[begin + i] != next_indices[there + i]
        if differ:
            continue
        if data is not None:
            for i in range(end - begin):
                differ += data[begin + i] != next_data[there + i]
        out[t] = differ == 0


@njit(nogil=True, cache=True)
def interleave(indptr, indices, data, next_indptr, next_indices, next_data, state, own, starts, first, last, to, into):
    """Copy rows ``first`` to ``last`` to where ``state`` says, and the next rows flagged ``own`` behind them.

    ``starts`` are those of the new rows, ``to`` and ``into`` their columns and entries.
    """
    one = np.uint64(1)
    for t in range(np.uint64(first), np.uint64(last)):
        place = np.uint64(state[t])
        begin, at = np.uint64(indptr[t]), np.uint64(starts[place])
        for i in range(np.uint64(indptr[t + one]) - begin):
            to[at + i] = indices[begin + i]
            into[at + i] = data[begin + i]
        if own[t]:
            begin, at = np.uint64(next_indptr[t]), np.uint64(starts[place + one])
            for i in range(np.uint64(next_indptr[t + one]) - begin):
                to[at + i] = next_indices[begin + i]
                into[at + i] = next_data[begin + i]
