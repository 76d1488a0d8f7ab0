"""Arrays used where they lie, and the one look at all rows: against copies and plain NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from oracle import Oracle
from valuate import SVRG, Problem, storing
from valuate.errors import InputError

N, DIM = 301, 7


def whole(dtype=np.float64, seed=0):
    return np.random.default_rng(seed).normal(size=(N + 1, DIM)).astype(dtype)


def problem_of(features, next_features, **options):
    rng = np.random.default_rng(1)
    return Problem.from_arrays(features, rng.normal(size=len(features)), next_features, discount=0.9, **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("writeable", [True, False])
def test_views_of_one_array_are_not_copied(dtype, writeable):
    x = whole(dtype)
    x.flags.writeable = writeable
    problem = problem_of(x[:-1], x[1:])
    assert np.shares_memory(problem.rows.table, x) and problem.rows.table.shape == (N + 1, DIM)
    apart = problem_of(x[:-1].copy(), x[1:].copy())
    assert not np.shares_memory(apart.rows.table, x)
    for one, other in zip(problem.moments(), apart.moments(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)
    x = x.astype(np.float64)
    oracle = Oracle(x[:-1], x[1:], problem.rows.records["reward"], np.full(N, 0.9))
    np.testing.assert_allclose(problem.b, oracle.b, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(problem.diagonal, np.diagonal(oracle.C), rtol=1e-12)


def test_the_memory_outlives_the_views():
    x = whole()
    kept = x.copy()
    problem = problem_of(x[:-1], x[1:])
    del x
    np.testing.assert_array_equal(problem.rows.table, kept)


def test_a_last_row_that_ended_has_no_next():
    x = whole()
    x[-1] = np.nan
    ended = np.arange(N) % 50 == 0
    problem = problem_of(x[:-1], x[1:], terminated=ended)
    assert problem.rows.n_stored == N and np.shares_memory(problem.rows.table, x)
    oracle = Oracle(x[:-1], np.nan_to_num(x[1:]), problem.rows.records["reward"], np.where(ended, 0.0, 0.9))
    np.testing.assert_allclose(problem.moments().A, oracle.A, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(
    "views",
    [
        lambda x: (x[:-2], x[2:]),
        lambda x: (x[:-1, ::2], x[1:, ::2]),
        lambda x: (x[1:], x[:-1]),
        lambda x: (np.asfortranarray(x)[:-1], np.asfortranarray(x)[1:]),
        lambda x: (x[:-1], x[1:].astype(np.float32)),
        lambda x: (x[:-1][::-1], x[1:][::-1]),
    ],
    ids=["two ahead", "every other column", "backwards", "columns", "two types", "reversed"],
)
def test_other_views_are_copied_as_before(views):
    features, next_features = views(whole())
    problem = problem_of(features, next_features)
    assert not np.shares_memory(problem.rows.table, features)
    given = [np.asarray(part, dtype=np.float64) for part in (features, next_features)]
    oracle = Oracle(*given, problem.rows.records["reward"], np.full(len(features), 0.9))
    np.testing.assert_allclose(problem.moments().A, oracle.A, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize(("row", "name"), [(5, "features has 1 entry"), (N, "next_features has 1 entry")])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_found_in_shared_memory(row, name, value):
    x = whole()
    x[row, 3] = value
    with pytest.raises(InputError, match=f"{name}.*row {min(row, N - 1)}, column 3"):
        problem_of(x[:-1], x[1:])


def test_shared_columns_keep_to_the_range():
    x = whole()
    x[7, 2] = 1e200
    with pytest.raises(InputError, match="column 2 are at most 1e"):
        problem_of(x[:-1], x[1:])
    x[7, 2] = 1.0
    x[:, 4] = 1e-60
    with pytest.raises(InputError, match="column 4 are at most 1e-60"):
        problem_of(x[:-1], x[1:])


def test_steps_take_a_copy_that_they_like():
    x = whole()
    problem = problem_of(x[:-1], x[1:])
    assert problem.rows.for_steps(N - 1) is problem.rows
    stepped = problem.rows.for_steps(N)
    assert stepped is problem.rows.for_steps() and storing.layouts.is_aligned(stepped.table)
    apart = problem_of(x[:-1].copy(), x[1:].copy())
    for passes in (0.5, 3.0):
        found = [SVRG(step_theta=0.01, step_omega=0.01).solve(one, passes=passes).theta for one in (problem, apart)]
        np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(x, whole())


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 4000])
def test_one_look_tells_what_numpy_does(kind, dtype, n):
    rng = np.random.default_rng(n)
    table = (rng.normal(size=(n, 50)) * (rng.random((n, 50)) < 0.3)).astype(dtype)
    states, weights, ratios = rng.integers(0, n, 3 * n), rng.integers(0, 3, 3 * n) + 0.5, rng.random(3 * n)
    rewards = rng.normal(size=3 * n)
    problem = Problem.from_table(kind(table), states, rewards, states, weights=weights, ratios=ratios)
    found, w = problem.rows, weights / weights.mean()
    np.testing.assert_array_equal(found.column_peaks(), np.abs(table).max(axis=0))
    np.testing.assert_allclose(found.column_squares(), w @ np.square(table[states].astype(float)), rtol=1e-12)
    expected = (w * ratios * rewards) @ table[states].astype(float)
    np.testing.assert_allclose(found.reward_sums(), expected, rtol=1e-11, atol=1e-12)
    assert found.is_sparse or found.survey().finite
