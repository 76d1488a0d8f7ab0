"""Which tile of each tiling a state lies in."""

import numpy as np
from numba import njit, types

#: States taken together: their places along every column stay in the cache, and the inner loops run over states.
TOGETHER = 128

_FLOATS, _LONGS = types.float64[::1], types.uint64[::1]
#: Named, so that one version serves states in any memory order, whether they may be written to or not.
_SIGNATURES = [
    types.void(
        *(types.Array(kind, 2, "A", readonly=True), _FLOATS, _FLOATS, _FLOATS),
        *(types.int64[::1], types.int64[::1], _FLOATS, _LONGS),
        *(types.boolean[::1], types.int32[::1], _LONGS, types.int64, types.int64, types.int32[:, ::1]),
    )
    for kind in (types.float32, types.float64)
]


@njit(_SIGNATURES, nogil=True, cache=True)
def tile(states, low, factor, most, starts, columns, shifts, multipliers, hashed, bases, sizes, first, last, out):
    """Write the features of rows ``first`` to ``last`` of ``states`` to ``out``, (n, tilings).

    A state lies at (x - low) * factor along a column, kept within 0 and ``most``. Tiling t looks at the entries
    ``starts[t]`` to ``starts[t + 1]`` of ``columns`` and ``shifts``, and makes one number of the tiles along them, each
    step by its multiplier. The number is the tile or, where ``hashed[t]``, is mixed (the finaliser of SplitMix64) and
    mapped to ``sizes[t]`` places. The places of a tiling begin at ``bases[t]``.
    """
    k = np.uint64(low.shape[0])
    at = np.empty((low.shape[0], TOGETHER), np.float64)
    code = np.empty(TOGETHER, np.uint64)
    for begin in range(np.uint64(first), np.uint64(last), np.uint64(TOGETHER)):
        count = min(np.uint64(TOGETHER), np.uint64(last) - begin)
        for i in range(count):
            for j in range(k):
                at[j, i] = min(max((states[begin + i, j] - low[j]) * factor[j], 0.0), most[j])
        for t in range(np.uint64(bases.shape[0])):
            base = bases[t]
            for i in range(count):
                code[i] = np.uint64(0)
            for e in range(np.uint64(starts[t]), np.uint64(starts[t + np.uint64(1)])):
                j, shift, multiplier = np.uint64(columns[e]), shifts[e], multipliers[e]
                for i in range(count):
                    code[i] = code[i] * multiplier + np.uint64(np.int64(at[j, i] + shift))
            if hashed[t]:
                size = sizes[t]
                for i in range(count):
                    c = code[i]
                    c ^= c >> np.uint64(30)
                    c *= np.uint64(0xBF58476D1CE4E5B9)
                    c ^= c >> np.uint64(27)
                    c *= np.uint64(0x94D049BB133111EB)
                    c ^= c >> np.uint64(31)
                    code[i] = ((c >> np.uint64(32)) * size) >> np.uint64(32)
            for i in range(count):
                out[begin + i, t] = base + np.int32(code[i])
