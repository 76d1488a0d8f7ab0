"""Sparse matrices made into tables, and sums over sparse rows, against dense arithmetic."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from oracle import Oracle
from valuate import InputError, Problem, sparse_tables, storing
from valuate._kernels import sparse

DISCOUNT = 0.9


def rows(rng, n, dim, *, ones=False):
    """Dense rows with many zeros; some rows are empty, but no column is."""
    out = rng.integers(1, 4, (n, dim)) * (rng.random((n, dim)) < 0.4) * 1.0
    out[rng.random(n) < 0.2] = 0.0
    out[0] = np.where(out.any(axis=0), out[0], 1.0)
    return (out != 0) * 1.0 if ones else out


def view(table, first, last):
    """Rows of a CSR matrix, in the same memory."""
    out = sp.csr_matrix((last - first, table.shape[1]), dtype=table.dtype)
    begin, end = int(table.indptr[first]), int(table.indptr[last])
    out.data, out.indices = table.data[begin:end], table.indices[begin:end]
    out.indptr = table.indptr[first : last + 1] - table.indptr[first]
    return out


def views(table):
    """Features and next features of a trajectory in one memory."""
    n = table.shape[0] - 1
    return view(table, 0, n), view(table, 1, n + 1)


def agree(problem, oracle, rtol=1e-11):
    """Everything that is a sum over rows is what the oracle's matrices give."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, problem.dim))
    close = {"rtol": rtol, "atol": 1e-12}
    np.testing.assert_allclose(problem.b, oracle.b, **close)
    np.testing.assert_allclose(problem.diagonal, np.diag(oracle.C), **close)
    np.testing.assert_allclose(problem.times_A(x), oracle.A @ x, **close)
    np.testing.assert_allclose(problem.times_At(y), oracle.A.T @ y, **close)
    np.testing.assert_allclose(problem.times_C(y), oracle.C @ y, **close)
    np.testing.assert_allclose(problem.residual(x), oracle.b - oracle.A @ x, **close)
    on_theta, on_omega = problem.gradient(x, y)
    np.testing.assert_allclose(on_theta, -oracle.A.T @ y, **close)
    np.testing.assert_allclose(on_omega, oracle.A @ x - oracle.b + oracle.C @ y, **close)
    np.testing.assert_allclose(problem.rows.column_peaks(), abs(problem.rows.table.toarray()).max(axis=0), **close)


def shared(one, other):
    return np.shares_memory(one.data, other.data) and np.shares_memory(one.indices, other.indices)


# ---- one memory


@pytest.mark.parametrize("n", [1, 2, 9])
@pytest.mark.parametrize("last_ends", [True, False])
@pytest.mark.parametrize("starts", [np.int32, np.int64])
@pytest.mark.parametrize("ones", [False, True])
def test_views_of_one_matrix_are_used_where_they_lie(n, last_ends, starts, ones):
    rng = np.random.default_rng(n)
    dense = rows(rng, n + 1, 5, ones=ones)
    table = sp.csr_matrix(dense)
    table.indptr = table.indptr.astype(starts)
    ended = rng.random(n) < 0.3
    ended[-1] = last_ends
    features, nexts = views(table)
    rewards = rng.normal(size=n)
    problem = Problem.from_arrays(features, rewards, nexts, discount=DISCOUNT, terminated=ended)
    assert shared(problem.rows.table, table) and problem.rows.n_stored == n + (not last_ends)
    assert problem.rows.survey() == sparse_tables.survey(table.data) or not ones
    agree(problem, Oracle(dense[:-1], dense[1:], rewards, np.where(ended, 0.0, DISCOUNT)))


def test_views_with_other_row_starts_are_compared():
    """The same memory one row ahead, but cut into other rows."""
    rng = np.random.default_rng(1)
    dense = np.tril(np.ones((6, 6)))[1:]
    features, nexts = views(sp.csr_matrix(dense))
    nexts.indptr = nexts.indptr.copy()
    nexts.indptr[1] -= 1  # the first row loses its last entry to the second, where it comes first
    nexts.indices = nexts.indices.copy()
    assert sparse_tables.in_one(features, nexts) is None
    problem = Problem.from_arrays(features, rng.normal(size=4), nexts, discount=DISCOUNT)
    np.testing.assert_array_equal(problem.rows.at(np.arange(4, dtype=np.int32))[1].toarray(), nexts.toarray())


@pytest.mark.parametrize("change", ["entries elsewhere", "not ahead", "two ahead", "read only", "int64", "float32"])
def test_what_is_not_one_memory_gives_the_same_problem(change):
    rng = np.random.default_rng(2)
    dense = rows(rng, 12, 4)
    table = sp.csr_matrix(dense)
    features, nexts = view(table, 0, 10), view(table, 1, 11)
    if change == "entries elsewhere":
        nexts.data = nexts.data * 2.0
    elif change == "not ahead":
        nexts = view(table, 0, 10)
    elif change == "two ahead":
        nexts = view(table, 2, 12)
    elif change == "read only":
        features.data.flags.writeable = nexts.indices.flags.writeable = False
    elif change == "int64":
        features.indices, nexts.indices = features.indices.astype(np.int64), nexts.indices.astype(np.int64)
    else:
        nexts.data = nexts.data.astype(np.float32)
    rewards = rng.normal(size=10)
    problem = Problem.from_arrays(features, rewards, nexts, discount=DISCOUNT)
    table = problem.rows.table
    assert (table.indptr.dtype, table.indices.dtype) == (np.int64, np.int32)
    assert all(array.flags.carray for array in (table.data, table.indices, table.indptr))
    agree(problem, Oracle(dense[:10], nexts.toarray(), rewards, np.full(10, DISCOUNT)))


def test_views_beyond_the_given_arrays_are_refused():
    """Row starts that lie, though the memory that they point to is there."""
    table = sp.csr_matrix(np.ones((4, 3)))
    features, nexts = views(table)
    features.data, features.indices = features.data[:-1], features.indices[:-1]
    with pytest.raises(InputError, match="features is a sparse matrix with broken indices"):
        Problem.from_arrays(features, np.ones(3), nexts)


def test_errors_name_the_matrix_of_the_two():
    table = sp.csr_matrix(np.ones((4, 3)))
    table.data[10] = np.nan
    features, nexts = views(table)
    with pytest.raises(InputError, match="^next_features has 1 entry that is NaN or infinite, the first at row 2"):
        Problem.from_arrays(features, np.ones(3), nexts)
    problem = Problem.from_arrays(features, np.ones(3), nexts, terminated=[False, False, True])
    agree(problem, Oracle(np.ones((3, 3)), np.ones((3, 3)), np.ones(3), np.array([0.99, 0.99, 0.0])))
    table.data[4] = np.inf
    with pytest.raises(InputError, match="^features has 1 entry that is NaN or infinite, the first at row 1, column 1"):
        Problem.from_arrays(features, np.ones(3), nexts)


# ---- matrices apart


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_matrices_apart_agree_with_dense_rows(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n, dim = data.draw(st.integers(1, 12)), data.draw(st.integers(1, 6))
    ones = data.draw(st.booleans())
    kind = data.draw(st.sampled_from([np.int32, np.int64]))
    phi = rows(rng, n, dim, ones=ones)
    ahead = rows(rng, n, dim, ones=ones)
    chained = rng.random(n) < data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    ahead[:-1][chained[:-1]] = phi[1:][chained[:-1]]
    ended = rng.random(n) < data.draw(st.sampled_from([0.0, 0.3, 1.0]))
    given_ahead = sp.csr_array(ahead)
    if data.draw(st.booleans()):  # what is not looked at
        given_ahead.data[np.repeat(ended, np.diff(given_ahead.indptr))] = rng.choice([np.nan, np.inf, 1e300])
    matrices = [sp.csr_array(phi), given_ahead]
    for k, matrix in enumerate(matrices):
        matrix.indices, matrix.indptr = matrix.indices.astype(kind), matrix.indptr.astype(kind)
        if data.draw(st.booleans()):
            matrices[k] = shuffled(matrix, rng)
    extras = {}
    if data.draw(st.booleans()):
        extras = {"ratios": rng.uniform(0.5, 2, n), "weights": rng.integers(1, 4, n) * 1.0}
    rewards = rng.normal(size=n)
    problem = Problem.from_arrays(matrices[0], rewards, matrices[1], discount=DISCOUNT, terminated=ended, **extras)
    given_scalars = [extras.get(name) for name in ("ratios", "weights")]
    agree(problem, Oracle(phi, ahead, rewards, np.where(ended, 0.0, DISCOUNT), *given_scalars, 0.0))
    own = ~ended
    own[:-1] &= (ahead[:-1] != phi[1:]).any(axis=1)
    assert problem.rows.n_stored == n + own.sum()


def shuffled(matrix, rng):
    """The same rows, columns out of order and every entry twice, in halves."""
    n = matrix.shape[0]
    data, columns, lengths = [], [], []
    for first, last in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        order = rng.permutation(np.tile(np.arange(first, last), 2))
        data.append(matrix.data[order] / 2)
        columns.append(matrix.indices[order])
        lengths.append(len(order))
    out = sp.csr_array(matrix.shape)
    out.data, out.indices = np.concatenate(data), np.concatenate(columns)
    out.indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(matrix.indptr.dtype)
    assert out.shape[0] == n
    return out


@pytest.mark.parametrize("apart", [False, True])
def test_rows_on_several_threads(apart, monkeypatch):
    """Checked, compared and copied alike, however they are cut."""
    monkeypatch.setattr(sparse_tables, "WORTH", 16)
    rng = np.random.default_rng(3)
    phi = rows(rng, 101, 7)
    ahead = phi[1:].copy()
    if apart:
        ahead[rng.random(100) < 0.3] += 1.0
    ended = rng.random(100) < 0.1
    ended[-1] = True
    rewards = rng.normal(size=100)
    tables = []
    for threads in ("1", "2", "5"):
        monkeypatch.setenv("VALUATE_NUM_THREADS", threads)
        given = sp.csr_matrix(phi[:-1]), rewards, sp.csr_matrix(ahead)
        problem = Problem.from_arrays(*given, discount=DISCOUNT, terminated=ended)
        assert shared(problem.rows.table, given[0]) != apart
        agree(problem, Oracle(phi[:-1], ahead, rewards, np.where(ended, 0.0, DISCOUNT)))
        tables.append(problem.rows.table.toarray())
    np.testing.assert_array_equal(tables[0], tables[1])
    np.testing.assert_array_equal(tables[0], tables[2])


def test_longer_arrays_than_rows_need():
    """As SciPy leaves them where entries were taken out."""
    matrix = sp.csr_matrix(np.eye(3) + 1.0)
    matrix.data, matrix.indices = np.append(matrix.data, np.nan), np.append(matrix.indices, -7).astype(np.int32)
    found = sparse_tables.quick(matrix)
    assert found is not None
    np.testing.assert_array_equal(found.table.toarray(), np.eye(3) + 1.0)
    assert found.sizes[:2] == (1.0, 2.0) and np.isnan(found.sizes.constant)


# ---- kernels


@pytest.mark.parametrize(
    ("columns", "starts", "good"),
    [
        ([0, 2, 1], [0, 2, 3], True),
        ([0, 2, 1], [0, 2, 2], True),
        ([0, 2, 1], [0, 0, 0], True),
        ([2, 0, 1], [0, 2, 3], False),
        ([1, 1, 1], [0, 2, 3], False),
        ([0, 3, 1], [0, 2, 3], False),
        ([-1, 2, 1], [0, 2, 3], False),
        ([0, 2, 1], [0, 2, 4], False),
        ([0, 2, 1], [0, 2, 1], False),
        ([0, 2, 1], [0, -2, 1], False),
        ([0, 2, 1], [-1, 2, 3], False),
    ],
)
def test_sound_rows(columns, starts, good):
    for kind in (np.int32, np.int64):
        assert sparse.sound(np.array(starts, np.int64), np.array(columns, kind), 3, 0, 2) == good


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("entries", "least", "most", "constant"),
    [
        ([1.5, -2.5, 0.0, 3.5], 1.5, 3.5, None),
        ([-2.5, -2.5], 2.5, 2.5, -2.5),
        ([0.0, 0.0], np.inf, 0.0, 0.0),
        ([-0.0, 0.0], np.inf, 0.0, None),
        ([1.0, -1.0], 1.0, 1.0, None),
        ([1e-40], 1e-40, 1e-40, 1e-40),
        ([1.0, -np.inf], 1.0, np.inf, None),
        ([], np.inf, 0.0, None),
    ],
)
def test_sizes_of_entries(dtype, entries, least, most, constant):
    found = sparse_tables.survey(np.array(entries, dtype))
    assert found[:2] == tuple(map(float, np.array([least, most], dtype)))
    if constant is None:
        assert np.isnan(found.constant)
    else:
        assert found.constant == dtype(constant)
    assert not np.isfinite(sparse_tables.survey(np.array([*entries, np.nan], dtype)).most)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_following_rows(dtype):
    phi = np.array([[1, 0, 2], [0, 0, 0], [0, 3, 0], [0, 3, 0]], dtype)
    ahead = np.array([[0, 0, 0], [0, 3, 0], [0, 0, 3], [1, 0, 2]], dtype)
    states, nexts = sp.csr_array(phi), sp.csr_array(ahead)
    ended = np.array([False, False, False, False])
    for flags in (ended, np.broadcast_to(np.False_, 4)):
        np.testing.assert_array_equal(storing.follows(states, nexts, flags), [True, True, False, False])
    np.testing.assert_array_equal(storing.follows(states, nexts, np.array([True, False, False, True])), [0, 1, 0, 0])
    nexts.data = nexts.data * dtype(2)
    np.testing.assert_array_equal(storing.follows(states, nexts, ended), [True, False, False, False])


@pytest.mark.parametrize("constant", [1.0, -2.0, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_that_are_one_number_are_not_read(constant, dtype):
    rng = np.random.default_rng(4)
    dense = rows(rng, 31, 6, ones=True) * dtype(constant)
    table = sp.csr_matrix(dense, dtype=dtype)
    rewards, n = rng.normal(size=30), 30
    extras = {"ratios": rng.uniform(0.5, 2, n), "weights": rng.integers(1, 4, n) * 1.0}
    features, nexts = views(table)
    problem = Problem.from_arrays(features, rewards, nexts, discount=DISCOUNT, **extras)
    entries = problem.rows.sparse_entries()
    assert entries.arrays[2] is None and entries.factor == dtype(constant)
    wide = dense.astype(float)
    agree(problem, Oracle(wide[:-1], wide[1:], rewards, np.full(n, DISCOUNT), *extras.values(), 0.0))
    assert problem.rows.part(np.arange(5, dtype=np.int32)).sparse_entries().arrays[2] is None
    assert problem.rows.scaled(np.arange(1.0, 7.0)).sparse_entries().arrays[2] is not None
    order = rng.integers(0, n, 17, dtype=np.int32)
    phi, ahead, scale = dense[:-1][order], dense[1:][order], problem.rows.records["scale"][order]
    x = rng.normal(size=6)
    expected = phi.T @ (scale * (phi @ x - DISCOUNT * (ahead @ x) - rewards[order]))
    np.testing.assert_allclose(
        problem.mean_residual(x, order), expected / 17, rtol=1e-6 if dtype is np.float32 else 1e-11
    )


def test_entries_out_of_range_are_refused_with_their_column():
    dense = np.ones((3, 3))
    dense[1, 2] = 1e60
    features, nexts = views(sp.csr_matrix(dense))
    with pytest.raises(InputError, match="features of column 2 are at most 1e"):
        Problem.from_arrays(features, np.ones(2), nexts)
    tiny = np.ones((3, 3))
    tiny[1, 2] = 1e-60  # beside larger ones of its column it does no harm
    features, nexts = views(sp.csr_matrix(tiny))
    assert Problem.from_arrays(features, np.ones(2), nexts).rows.n_stored == 3
