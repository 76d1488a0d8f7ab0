import re
import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from valuate import _checks
from valuate.errors import InputError, InputTypeError


class Frame:
    """What a data frame is to NumPy: something with __array__."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


def refuses(kind, message):
    """The block raises exactly `kind`, with `message` somewhere in its text."""
    return pytest.raises(kind, match=re.escape(message))


# ---- matrix


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_matrix_passes_floats_without_a_copy(dtype, order):
    given_rows = np.ones((4, 3), dtype=dtype, order=order)
    assert _checks.matrix("features", given_rows, n_rows=4, n_columns=3) is given_rows


def test_matrix_accepts_what_numpy_reads():
    rows = _checks.matrix("features", Frame([[1.0, 2.0], [3.0, 4.0]]))
    np.testing.assert_array_equal(rows, [[1.0, 2.0], [3.0, 4.0]])
    assert _checks.matrix("features", [[1, 2]]).dtype == np.float64


@pytest.mark.parametrize(
    ("given_dtype", "dtype"),
    [("f2", "f4"), (">f4", "f4"), (">f8", "f8"), ("?", "f8"), ("i1", "f8"), ("u8", "f8")],
)
def test_matrix_converts_numbers(given_dtype, dtype):
    rows = _checks.matrix("features", np.array([[1, 0]], dtype=given_dtype))
    assert rows.dtype == np.dtype(dtype) and rows.dtype.isnative
    np.testing.assert_array_equal(rows, [[1.0, 0.0]])


@pytest.mark.parametrize(
    ("value", "advice"),
    [
        (np.ones((2, 2), dtype=complex), "take .real"),
        (np.array([[1.0, None]], dtype=object), "what fails to convert"),
        (np.array([["a", "b"]]), "Turn text into numbers"),
        (np.array([["2020-01-01"]], dtype="M8[D]"), "np.timedelta64(1, 's')"),
        (np.array([[1]], dtype="m8[s]"), "np.timedelta64(1, 's')"),
        (None, "is None"),
        (sp.csr_array(np.eye(2)), ".toarray()"),
    ],
)
def test_matrix_refuses_other_kinds(value, advice):
    with refuses(InputTypeError, advice) as caught:
        _checks.matrix("features", value)
    assert str(caught.value).startswith("features ")


@pytest.mark.skipif(np.longdouble(0).itemsize == 8, reason="longdouble is float64 on this platform")
def test_matrix_refuses_longdouble():
    with refuses(InputTypeError, "has dtype float128. Convert it with .astype(np.float64)"):
        _checks.matrix("features", np.ones((1, 1), dtype=np.longdouble))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.ones(3), "features must have 2 dimensions, (rows, columns), and has shape (3,). Use .reshape(-1, 1)"),
        (np.ones((2, 2, 2)), "has shape (2, 2, 2)."),
        (np.float64(3.0), "has shape ()."),
        (np.ones((0, 3)), "features is empty, with shape (0, 3)"),
        (np.ones((3, 0)), "features has no columns, with shape (3, 0)"),
        ([[1.0], [1.0, 2.0]], "all its rows must have the same shape"),
        (np.ma.array([[1.0, 2.0]], mask=[[False, True]]), "features has 1 masked entries"),
    ],
)
def test_matrix_refuses_shapes(value, message):
    with refuses(InputError, message):
        _checks.matrix("features", value)


def test_matrix_refuses_other_numbers_of_rows_and_columns():
    with refuses(InputError, "features has 2 rows and the log has 3: they must agree."):
        _checks.matrix("features", np.ones((2, 3)), n_rows=3)
    with refuses(InputError, "features has 3 columns and 4 are needed."):
        _checks.matrix("features", np.ones((2, 3)), n_columns=4)


@pytest.mark.parametrize("order", ["C", "F"])
def test_matrix_names_the_first_gap_and_counts(order, monkeypatch):
    monkeypatch.setattr(_checks, "BLOCK_ENTRIES", 7)  # several blocks, none of them whole rows
    rows = np.ones((20, 3), order=order)
    rows[11, 2], rows[12, 0], rows[19, 1] = np.inf, np.nan, -np.inf
    with refuses(
        InputError, "features has 3 entries that are NaN or infinite, the first at row 11, column 2 (inf). Drop"
    ):
        _checks.matrix("features", rows)
    with refuses(InputError, "features has 1 entry that is NaN or infinite, the first at row 0, column 1 (nan). Drop"):
        _checks.matrix("features", [[0.0, np.nan]])


@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, max_side=6), elements=st.just(1.0)),
    st.data(),
)
def test_finite_finds_the_first_gap_anywhere(values, data):
    assert _checks.all_finite(values)
    places = sorted(data.draw(st.sets(st.tuples(*(st.integers(0, side - 1) for side in values.shape)), min_size=1)))
    for place in places:
        values[place] = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    first = places[0]
    where = ["row {}", "row {}, column {}", "row {}, entry ({}, {})"][values.ndim - 1].format(*first)
    entries = "1 entry that is" if len(places) == 1 else f"{len(places)} entries that are"
    with refuses(InputError, f"x has {entries} NaN or infinite, the first at {where} ("):
        _checks.finite("x", values)


def test_checking_a_large_matrix_allocates_a_block_at_most():
    rows = np.zeros((40_000, 100))
    tracemalloc.start()
    try:
        _checks.matrix("features", rows)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1.2 * _checks.BLOCK_ENTRIES  # one byte an entry of a block; the matrix has four million entries


# ---- sparse rows


def test_sparse_rows_share_buffers():
    given_rows = sp.csr_array(np.array([[0.0, 2.0], [3.0, 0.0]], dtype=np.float32))
    rows = _checks.sparse_rows("features", given_rows, n_rows=2, n_columns=2)
    assert np.shares_memory(rows.data, given_rows.data) and np.shares_memory(rows.indices, given_rows.indices)
    assert rows.dtype == np.float32


@pytest.mark.parametrize("layout", [sp.coo_matrix, sp.csc_array, sp.csr_matrix, sp.lil_array])
def test_sparse_rows_accept_every_layout(layout):
    dense = np.array([[0, 2, 0], [1, 0, 3]])
    rows = _checks.sparse_rows("features", layout(dense))
    assert rows.format == "csr" and rows.dtype == np.float64
    np.testing.assert_array_equal(rows.toarray(), dense)


def test_sparse_rows_become_canonical_and_leave_the_given_alone():
    given_rows = sp.csr_array((np.array([1.0, 2.0, 4.0]), np.array([1, 0, 1]), np.array([0, 3])), shape=(1, 2))
    rows = _checks.sparse_rows("features", given_rows)
    np.testing.assert_array_equal(rows.indices, [0, 1])
    np.testing.assert_array_equal(rows.data, [2.0, 5.0])
    np.testing.assert_array_equal(given_rows.indices, [1, 0, 1])
    np.testing.assert_array_equal(given_rows.data, [1.0, 2.0, 4.0])


def test_sparse_rows_name_the_gap():
    rows = sp.csr_array(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [2.0, 0.0, np.nan]]))
    with refuses(InputError, "features has 1 entry that is NaN or infinite, the first at row 2, column 2 (nan)"):
        _checks.sparse_rows("features", rows)


@pytest.mark.parametrize("broken", [7, -1])
def test_sparse_rows_refuse_broken_indices(broken):
    rows = sp.csr_array(np.eye(3))
    rows.indices[1] = broken
    with refuses(InputError, "features is a sparse matrix with broken indices"):
        _checks.sparse_rows("features", rows)


def test_sparse_rows_refuse_shapes_and_kinds():
    with refuses(InputError, "features is empty, with shape (0, 3)"):
        _checks.sparse_rows("features", sp.csr_array((0, 3)))
    with refuses(InputError, "features has no columns, with shape (3, 0)"):
        _checks.sparse_rows("features", sp.csr_array((3, 0)))
    with refuses(InputTypeError, "has dtype complex128"):
        _checks.sparse_rows("features", sp.csr_array(np.eye(2, dtype=complex)))
    with refuses(InputError, "must have 2 dimensions, (rows, columns), and has shape (3,)"):
        _checks.sparse_rows("features", sp.coo_array(np.ones(3)))


def test_is_sparse():
    assert _checks.is_sparse(sp.csr_array((1, 1))) and _checks.is_sparse(sp.coo_matrix((1, 1)))
    assert not _checks.is_sparse(np.eye(2)) and not _checks.is_sparse([[1.0]])


# ---- columns


def test_column_passes_float64_without_a_copy():
    values = np.arange(3.0)
    assert _checks.column("rewards", values, 3) is values
    assert _checks.column("rewards", values, low=0.0, high=2.0) is values


def test_column_converts_and_straightens():
    strided = np.arange(6.0)[::2]
    column = _checks.column("rewards", strided, 3)
    assert column.flags.c_contiguous
    np.testing.assert_array_equal(column, [0.0, 2.0, 4.0])
    assert _checks.column("rewards", np.array([1, 0], dtype="f4")).dtype == np.float64
    np.testing.assert_array_equal(_checks.column("rewards", [True, False]), [1.0, 0.0])


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (1.0, InputTypeError, "rewards must have one entry a row and is a float. Use np.full"),
        ([[1.0], [2.0], [3.0]], InputError, "has shape (3, 1). Use .ravel()."),
        (np.ones((3, 2)), InputError, "has shape (3, 2)."),
        ([1.0, 2.0], InputError, "rewards has 2 entries and the log has 3 rows: they must agree."),
        ([1.0, np.nan, np.inf], InputError, "rewards has 2 entries that are NaN or infinite, the first at row 1 (nan)"),
        ([1.0, 2.0, -np.inf], InputError, "rewards has 1 entry that is NaN or infinite, the first at row 2 (-inf)"),
        (["1", "2", "3"], InputTypeError, "rewards must be real numbers"),
        ([1j, 0, 0], InputTypeError, "rewards must be real numbers"),
    ],
)
def test_column_refuses(value, kind, message):
    with refuses(kind, message):
        _checks.column("rewards", value, 3)


def test_column_refuses_empty():
    with refuses(InputError, "rewards is empty"):
        _checks.column("rewards", [])


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"low": 0.0, "high": 1.0}, "discount must be in [0, 1]; row 1 has -0.5 (2 of 4 rows are outside)."),
        ({"low": 0.0}, "discount must be finite and at least 0; row 1 has -0.5 (1 of 4 rows are outside)."),
        ({"high": 1.0}, "discount must be finite and at most 1; row 3 has 1.25 (1 of 4 rows are outside)."),
    ],
)
def test_column_names_the_first_row_out_of_range(limits, message):
    with refuses(InputError, message):
        _checks.column("discount", [0.5, -0.5, 1.0, 1.25], 4, **limits)


def test_weights():
    np.testing.assert_array_equal(_checks.weights("weights", [0, 2]), [0.0, 2.0])
    with refuses(InputError, "weights must be finite and at least 0; row 1 has -2"):
        _checks.weights("weights", [0, -2])
    with refuses(InputError, "weights are all 0: no row would count."):
        _checks.weights("weights", [0, 0])
    with refuses(InputError, "weights add up to more than float64 can hold."):
        _checks.weights("weights", [1e308, 1e308])


# ---- flags and indices


def test_flags_accept_exact_zeros_and_ones():
    mask = np.array([True, False])
    assert _checks.flags("terminated", mask, 2) is mask
    for value in ([1, 0], [1.0, 0.0], np.array([1, 0], dtype="u1")):
        answer = _checks.flags("terminated", value, 2)
        assert answer.dtype == bool
        np.testing.assert_array_equal(answer, mask)


@pytest.mark.parametrize(
    ("value", "shown"), [([0, 2, 3], "2"), ([0, -1, 0], "-1"), ([1.0, np.nan, 0.0], "nan"), ([0.0, 0.5, 2.0], "0.5")]
)
def test_flags_refuse_other_numbers(value, shown):
    with refuses(InputError, f"terminated must be True or False (or 1 and 0) in each row; row 1 has {shown}."):
        _checks.flags("terminated", value, 3)


def test_flags_refuse_text_and_scalars():
    with refuses(InputTypeError, "terminated must be real numbers"):
        _checks.flags("terminated", ["True", "False"], 2)
    with refuses(InputTypeError, "terminated must have one entry a row and is a bool."):
        _checks.flags("terminated", True, 2)


@pytest.mark.parametrize("dtype", ["i1", "u2", "i4", "u8", "i8"])
def test_indices_pass_every_width_without_a_copy(dtype):
    rows = np.array([0, 3, 1], dtype=dtype)
    assert _checks.indices("states", rows, 3, 4) is rows


def test_indices_become_native():
    rows = _checks.indices("states", np.array([0, 1], dtype=">i8"), 2, 4)
    assert rows.dtype == np.int64 and rows.dtype.isnative
    np.testing.assert_array_equal(rows, [0, 1])


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ([0, 4, 9], InputError, "states must be in [0, 4), which is where the table has rows; row 1 has 4 (2 of 3"),
        ([0, 1, -1], InputError, "row 2 has -1 (1 of 3 rows are outside). Indices count from 0."),
        ([0.0, 1.0, 2.0], InputTypeError, "has dtype float64. Convert them with .astype(np.int64)."),
        ([True, False, True], InputTypeError, "A mask becomes indices with np.flatnonzero."),
        (["0", "1", "2"], InputTypeError, "states must be integers and has dtype <U1."),
        (2, InputTypeError, "states must have one entry a row and is an int."),
    ],
)
def test_indices_refuse(value, kind, message):
    with refuses(kind, message):
        _checks.indices("states", value, 3, 4)


def test_indices_above_the_largest_signed_integer_are_refused():
    with refuses(InputError, f"row 1 has {2**64 - 1} "):
        _checks.indices("states", np.array([0, 2**64 - 1], dtype=np.uint64), 2, 4)


@given(hnp.arrays(np.int16, st.integers(1, 20)), st.integers(1, 2**15))
def test_indices_accept_exactly_the_range(values, upper):
    outside = np.flatnonzero((values < 0) | (values >= upper))
    if not len(outside):
        assert _checks.indices("states", values, len(values), upper) is values
        return
    with refuses(InputError, f"row {outside[0]} has {values[outside[0]]} ({len(outside)} of {len(values)} rows"):
        _checks.indices("states", values, len(values), upper)


# ---- single values


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int8(2), Fraction(2), np.array(2.0)])
def test_number_accepts_real_numbers(value):
    answer = _checks.number("ridge", value, low=0.0)
    assert type(answer) is float and answer == 2.0


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (True, "a bool"),
        (np.True_, "a bool"),
        ("2", "a str"),
        (None, "None"),
        (2j, "a complex"),
        (Decimal(2), "a Decimal"),
        ([2.0], "a list"),
        (np.ones(1), "a ndarray"),
    ],
)
def test_number_refuses_other_kinds(value, kind):
    with refuses(InputTypeError, f"ridge must be a real number, not {kind}"):
        _checks.number("ridge", value)


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (np.nan, {}, "step must be finite, not nan."),
        (np.inf, {"low": 0.0}, "step must be finite and at least 0, not inf."),
        (-1, {"low": 0.0}, "step must be finite and at least 0, not -1."),
        (0, {"above": 0.0}, "step must be finite and above 0, not 0."),
        (1.5, {"low": 0.0, "high": 1.0}, "step must be in [0, 1], not 1.5."),
        (2, {"above": 0.0, "high": 1.0}, "step must be finite, above 0 and at most 1, not 2."),
        (10**400, {}, "step must be a number that float64 can hold"),
    ],
)
def test_number_refuses_values(value, limits, message):
    with refuses(InputError, message):
        _checks.number("step", value, **limits)


def test_whole():
    assert _checks.whole("epochs", 3, low=1) == 3
    answer = _checks.whole("epochs", np.uint8(3))
    assert type(answer) is int and answer == 3
    with refuses(InputError, "epochs must be at least 1, not 0."):
        _checks.whole("epochs", 0, low=1)
    with refuses(InputTypeError, "epochs must be a whole number (int), not a float 3.0. Write 3."):
        _checks.whole("epochs", 3.0)
    with pytest.raises(InputTypeError, match=r"not a float 1e\+300\.$"):
        _checks.whole("epochs", 1e300)
    with refuses(InputTypeError, "epochs must be a whole number (int), not a float nan."):
        _checks.whole("epochs", float("nan"))
    with refuses(InputTypeError, "epochs must be a whole number (int), not a bool True."):
        _checks.whole("epochs", True)
    with refuses(InputTypeError, "epochs must be a whole number (int), not a str."):
        _checks.whole("epochs", "3")


def test_flag():
    for value in (True, np.True_, 1, 1.0, np.int8(1), np.array(True)):
        assert _checks.flag("terminated", value) is True
    assert _checks.flag("terminated", 0) is False
    for value in (None, "no", 2, float("nan"), [True], np.ones(2)):
        with refuses(InputTypeError, "terminated must be one True or False, not "):
            _checks.flag("terminated", value)
