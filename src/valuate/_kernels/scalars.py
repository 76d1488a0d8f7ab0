"""What is known of rows from their records alone."""

import numpy as np
from numba import njit

from valuate._kernels.layouts import FASTMATH


@njit(fastmath=FASTMATH, nogil=True, cache=True)
def scalars(records, weights, first, last):
    """Largest scale and weight; sums of scale, its square, scale * |reward| and its square."""
    weighted = weights.size > 0
    most_scale = scale = scale_squares = reward = reward_squares = 0.0
    most_weight = 0.0 if weighted else 1.0
    for k in range(np.uint64(first), np.uint64(last)):
        factor = records[k].scale
        size = factor * abs(records[k].reward)
        most_scale = max(most_scale, factor)
        if weighted:
            most_weight = max(most_weight, weights[k])
        scale += factor
        scale_squares += factor * factor
        reward += size
        reward_squares += size * size
    return most_scale, most_weight, scale, scale_squares, reward, reward_squares
