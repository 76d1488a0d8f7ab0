"""How rows lie in memory: two layouts behind one record a transition.

Every transition is a record of 32 bytes: which stored feature row is its state, which is its next state, and its
scalars. The feature rows themselves lie in a table, dense (padded and aligned) or compressed sparse. A log in which
the next row is the following state, a table of few distinct states and a plain pair of matrices are all the same
thing here; only the indices differ. Weights are kept apart because most logs have none.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

#: Additions may be reordered and fused; NaN and infinity must stay detectable, so never ``fastmath=True``.
FASTMATH = {"reassoc", "contract", "nsz"}

#: One transition: rows of the table, reward, discount (0 after termination), scale = normalised weight times ratio.
RECORD = np.dtype([("state", "i4"), ("next", "i4"), ("reward", "f8"), ("discount", "f8"), ("scale", "f8")])

#: Bytes that travel together between memory and cache.
LINE = 64


class DenseRows(NamedTuple):
    """Rows of a padded table, (n_stored, padded) float64 or float32; weights has length 0 when all are 1."""

    table: Any
    records: Any
    weights: Any


class SparseRows(NamedTuple):
    """Rows of a CSR matrix with sorted, unique column indices."""

    indptr: Any
    indices: Any
    data: Any
    records: Any
    weights: Any


def _ask(context, builder, array_type, array, places, n_bytes):
    """Emit prefetches of ``n_bytes`` bytes from an entry on, given by its place along each dimension."""
    import llvmlite.ir as ir

    word, flag, pointer = ir.IntType(64), ir.IntType(32), ir.IntType(8).as_pointer()
    source = context.make_array(array_type)(context, builder, array)
    address = builder.ptrtoint(source.data, word)
    for place, stride in zip(places, cgutils.unpack_tuple(builder, source.strides), strict=False):
        address = builder.add(address, builder.mul(place, stride))
    declared = ir.FunctionType(ir.VoidType(), [pointer, flag, flag, flag])
    call = cgutils.get_or_insert_function(builder.module, declared, "llvm.prefetch.p0")
    line = ir.Constant(word, LINE)
    with cgutils.for_range_slice(builder, ir.Constant(word, 0), n_bytes, line, word) as (offset, _):
        builder.call(call, [builder.inttoptr(builder.add(address, offset), pointer), flag(0), flag(3), flag(1)])
    return context.get_dummy_value()


@intrinsic
def prefetch(typingctx, array, index, n_bytes):
    """Ask for ``n_bytes`` bytes from ``array[index]`` on, without waiting for them."""

    def codegen(context, builder, signature, args):
        return _ask(context, builder, signature.args[0], args[0], args[1:2], args[2])

    return types.void(array, types.uint64, types.uint64), codegen


@intrinsic
def prefetch_part(typingctx, array, row, column, n_bytes):
    """Ask for ``n_bytes`` bytes from ``array[row, column]`` on, without waiting for them."""

    def codegen(context, builder, signature, args):
        return _ask(context, builder, signature.args[0], args[0], args[1:3], args[3])

    return types.void(array, types.uint64, types.uint64, types.uint64), codegen


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An uninitialised C-contiguous array whose first byte lies on a cache line."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return _aligned(np.empty(n_bytes + LINE, np.uint8), n_bytes, shape, dtype)


def aligned_zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """As `aligned_empty`, of zeros: where it is large the system gives them without writing any."""
    n_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    return _aligned(np.zeros(n_bytes + LINE, np.uint8), n_bytes, shape, dtype)


def _aligned(raw: np.ndarray, n_bytes: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    start = -raw.ctypes.data % LINE
    return raw[start : start + n_bytes].view(dtype).reshape(shape)


def is_aligned(table: np.ndarray) -> bool:
    """Whether every row of a C-contiguous table begins on a cache line."""
    return table.ctypes.data % LINE == 0 and table.strides[0] % LINE == 0


def padded(width: int, dtype: Any) -> int:
    """The smallest row length, in entries, that holds ``width`` entries and fills whole cache lines."""
    entries = LINE // np.dtype(dtype).itemsize
    return -(-width // entries) * entries
