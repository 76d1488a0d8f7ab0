"""Compiled code against plain code: tuned blocks against the one loop, sums against NumPy."""

import numpy as np
import pytest
import scipy.sparse as sp

from battery import LAYOUTS, case
from valuate import Problem, _threads, drawing
from valuate._kernels import loop
from valuate.errors import InputError
from valuate.solvers.directions import SADDLE, TD
from valuate.solvers.points import DensePoint, point_for

# ---- the tuned blocks


def assert_blocks_are_the_loop(problem, order, **options):
    """One chunk by the tuned blocks and by the plain loop, in each direction; returns the saddle's point."""
    assert_block_is_the_loop(problem, order, TD, **options)
    return assert_block_is_the_loop(problem, order, SADDLE, **options)


def assert_block_is_the_loop(problem, order, way, *, ridge=0.0, reward=0.0, ask=None, dtype=np.float64, rtol=1e-12):
    """From a point and with drifts that are not zero."""
    rng = np.random.default_rng(0)
    direction = way.for_kernels(0.05, 0.08, ridge)
    start, drift = rng.normal(size=(2, problem.dim)), 0.1 * rng.normal(size=(2, problem.dim))
    fast, plain = (DensePoint(problem.rows, direction, np.dtype(dtype)) for _ in range(2))
    if ask is not None:
        fast.far, fast.ask = ask > 0, np.uint64(ask)
        fast.asking = (np.uint64(max(1, ask // 24)), np.uint64(max(1, ask // 16))), np.uint64(1 + ask % 3)
    for point in (fast, plain):
        point.place(*start)
        point.drift(*drift)
    reference = loop.Fixed(reward)
    pulled = fast.advance(problem.rows.view, reference, order, order)
    expected = loop.advance(problem.rows.view, reference, direction, order, order, plain.state, 0.0)
    for one, other, began, moves in zip(fast.read(), plain.read(), start, (True, way.moves_omega), strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * max(1, np.abs(other).max()))
        assert (one != began.astype(dtype)).any() == (moves and len(order) > 0)
    assert pulled == pytest.approx(expected, rel=rtol)
    return fast


@pytest.mark.parametrize("reward", [0.0, 1.0])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("dim", [1, 7, 8, 9])
def test_orders_of_any_length(dim, ridge, weights, reward):
    problem, _ = case("dense", n=23, dim=dim, weights=weights, ratios=True)
    for length in [*range(14), 101]:
        order = np.random.default_rng(length).integers(0, 23, length, dtype=np.int32)
        for ask in (0, 64):
            assert_blocks_are_the_loop(problem, order, ridge=ridge, reward=reward, ask=ask)


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("layout", ["dense", "trajectory", "indexed"])
def test_rows_that_repeat_within_a_block(layout, ridge):
    problem, _ = case(layout, n=11, dim=5, weights=True, ratios=True)
    for order in ([3, 3, 3, 3], [1, 2, 1, 2, 2], [4, 3, 4, 4, 3, 3, 4], [5] * 9):
        for ask in (0, 64):
            assert_blocks_are_the_loop(problem, np.array(order, np.int32), ridge=ridge, reward=1.0, ask=ask)


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_asking_ahead_changes_nothing(dtype, ridge):
    problem, _ = case("dense", n=200, dim=20, dtype=dtype)
    order = np.random.default_rng(2).integers(0, 200, 150, dtype=np.int32)
    order[-20:] = 199
    rtol = 1e-12 if dtype == np.float64 else 1e-4
    points = [
        assert_blocks_are_the_loop(problem, order, ridge=ridge, ask=ask, dtype=dtype, rtol=rtol)
        for ask in (0, 64, problem.rows.width * problem.rows.dtype.itemsize)
    ]
    for point in points[1:]:
        np.testing.assert_allclose(point.state.x, points[0].state.x, rtol=rtol, atol=rtol)
        np.testing.assert_allclose(point.state.y, points[0].state.y, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("ridge", [0.0, 0.05])
def test_single_precision_blocks(ridge):
    problem, _ = case("dense", n=40, dim=9, dtype=np.float32, weights=True, ratios=True)
    order = np.random.default_rng(3).integers(0, 40, 63, dtype=np.int32)
    point = assert_blocks_are_the_loop(problem, order, ridge=ridge, dtype=np.float32, rtol=1e-4)
    assert point.state.x.dtype == np.float32


def test_rows_too_many_for_the_cache_are_asked_for_ahead():
    rng = np.random.default_rng(0)
    small, large = (Problem.from_arrays(rng.normal(size=(n, 20)), np.ones(n), np.zeros((n, 20))) for n in (50, 9000))
    direction = SADDLE.for_kernels(0.1, 0.1, 0.0)
    asked = [int(DensePoint(problem.rows, direction, np.dtype(float)).ask) for problem in (small, large)]
    assert asked == [0, 192]
    assert_blocks_are_the_loop(large, rng.integers(0, 9000, 1001, dtype=np.int32))


def test_padding_stays_zero():
    problem, _ = case("dense", n=30, dim=5)
    order = np.random.default_rng(1).integers(0, 30, 30, dtype=np.int32)
    for ridge in (0.0, 0.05):
        point = assert_blocks_are_the_loop(problem, order, ridge=ridge)
        for vector in point.state:
            assert len(vector) == 8 and not vector[5:].any()


@pytest.mark.parametrize("ridge", [0.0, 0.05])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_pulls_show_what_is_not_finite(layout, ridge):
    problem, _ = case(layout, n=30, dim=5)
    point = point_for(problem.rows, SADDLE.for_kernels(1e60, 1e60, ridge), single=True)
    point.drift(np.ones(5), np.ones(5))
    order = np.random.default_rng(1).integers(0, 30, 60, dtype=np.int32)
    assert not point.advance(problem.rows.view, loop.Fixed(0.0), order, order) < 1e300


# ---- sums over rows

#: The vectors that are given, and whether the sums on phi and on delta are asked for: what the library asks for.
ASKED = [("x", "y", True, True), ("x", None, True, False), (None, "y", True, False), (None, "y", False, True)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scalars", [{}, {"ratios": True, "weights": True}])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums(layout, scalars, dtype):
    rng = np.random.default_rng(0)
    for dim in (1, 9):
        problem, oracle = case(layout, dim=dim, dtype=dtype, **scalars)
        phi, delta, w, scale = oracle.phi, oracle.delta, oracle.w, oracle.w * oracle.rho
        given = {"x": rng.normal(size=dim), "y": rng.normal(size=dim)}
        orders = [None, *(rng.integers(0, 37, size, dtype=np.int32) for size in (1, 2, 3, 4, 5, 26, 27, 28, 100))]
        for order in orders:
            at = slice(None) if order is None else order
            for has_x, has_y, on_phi, on_delta in ASKED:
                for reward in (0.0, 1.0):
                    x, y = given.get(has_x), given.get(has_y)
                    u = np.zeros(len(phi[at])) if y is None else phi[at] @ y
                    v = (0 if x is None else delta[at] @ x) - reward * oracle.r[at]
                    expected = np.zeros((2, dim))
                    if on_phi:
                        expected[0] = phi[at].T @ (scale[at] * v + w[at] * u)
                    if on_delta:
                        expected[1] = delta[at].T @ (scale[at] * u)
                    found = problem.rows.sums(x, y, reward=reward, phi=on_phi, delta=on_delta, order=order)
                    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * max(1, np.abs(expected).max()))


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_gradient_and_moments(layout, ridge):
    problem, oracle = case(layout, dim=6, ridge=ridge, ratios=True, weights=True)
    theta, omega = np.random.default_rng(0).normal(size=(2, 6))
    a, b, c = oracle.A, oracle.b, oracle.C
    close = {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(problem.times_A(theta), a @ theta, **close)
    np.testing.assert_allclose(problem.times_At(omega), a.T @ omega, **close)
    np.testing.assert_allclose(problem.times_C(omega), c @ omega, **close)
    np.testing.assert_allclose(problem.residual(theta), b - a @ theta, **close)
    np.testing.assert_allclose(problem.b, b, **close)
    np.testing.assert_allclose(problem.diagonal, np.diagonal(c), **close)
    np.testing.assert_allclose(problem.gradient(theta, omega), oracle.mean_field(theta, omega), **close)
    batch = np.array([3, 8, 8, 30, 36], np.int32)
    found = problem.mean_gradient(theta, omega, batch)
    np.testing.assert_allclose(found, oracle.mean_field(theta, omega, batch), **close)
    for found, expected in zip(problem.moments(), (a, b, c), strict=True):
        np.testing.assert_allclose(found, expected, **close)
    assert problem.mspbe(theta) == pytest.approx(oracle.mspbe(theta), rel=1e-10)
    assert problem.relative_residual(theta) == pytest.approx(oracle.relative_residual(theta), rel=1e-10)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_maxima(layout):
    for dim in (1, 6):
        problem, oracle = case(layout, dim=dim, ratios=True, weights=True)
        phi = (oracle.w * (oracle.phi**2).sum(axis=1)).max()
        delta = (oracle.w * oracle.rho**2 * (oracle.delta**2).sum(axis=1)).max()
        lengths = np.sqrt((oracle.phi**2).sum(axis=1) * (oracle.delta**2).sum(axis=1))
        both = (oracle.w * oracle.rho * lengths).max()
        assert problem.rows.maxima() == pytest.approx((phi, delta, both), rel=1e-12)


# ---- blocks and threads


def large(layout):
    """A problem whose sums are cut into several blocks, and its rows."""
    rng = np.random.default_rng(7)
    n, dim = {"dense": (36_001, 64), "sparse": (60_001, 300), "indexed": (200_001, 20)}[layout]
    rewards, discount = rng.normal(size=n), rng.uniform(0.5, 1, n)
    scalars = {"discount": discount, "ratios": rng.uniform(0, 2, n), "weights": rng.uniform(0, 2, n), "ridge": 0.1}
    if layout == "indexed":
        table, states, followers = rng.normal(size=(40, dim)), rng.integers(0, 40, n), rng.integers(0, 40, n)
        problem = Problem.from_table(table, states, rewards, followers, **scalars)
        return problem, table[states], table[followers], scalars
    if layout == "dense":
        phi, next_phi = rng.normal(size=(2, n, dim))
        return Problem.from_arrays(phi, rewards, next_phi, **scalars), phi, next_phi, scalars
    entries = 20
    phi, next_phi = (
        sp.csr_array(
            (rng.normal(size=n * entries), rng.integers(0, dim, n * entries), np.arange(0, n * entries + 1, entries)),
            shape=(n, dim),
        )
        for _ in range(2)
    )
    return Problem.from_arrays(phi, rewards, next_phi, **scalars), phi, next_phi, scalars


@pytest.mark.parametrize("layout", ["dense", "sparse", "indexed"])
def test_results_do_not_depend_on_threads(layout, monkeypatch):
    problem, phi, next_phi, scalars = large(layout)
    rng = np.random.default_rng(1)
    theta, omega = rng.normal(size=(2, problem.dim))
    order = np.sort(rng.integers(0, problem.n_rows, problem.n_rows // 2, dtype=np.int32))
    cuts = []

    def cut(*shape):
        blocks = _threads.cut(*shape)
        cuts.append(len(blocks))
        return blocks

    monkeypatch.setattr("valuate.rows.cut", cut)
    monkeypatch.setattr(_threads, "ENTRIES_A_BLOCK", 1 << 19)

    def everything():
        return [
            *problem.gradient(theta, omega),
            *problem.mean_gradient(theta, omega, order),
            problem.times_A(theta),
            problem.times_At(omega),
            problem.times_C(omega),
            problem.residual(theta),
            np.array(problem.rows.maxima()),
        ]

    results = {}
    for threads in (1, 2, 3, 5):
        monkeypatch.setenv("VALUATE_NUM_THREADS", str(threads))
        assert _threads.thread_count() == threads
        results[threads] = everything()
    assert min(cuts) > 1
    for threads in (2, 3, 5):
        for one, other in zip(results[1], results[threads], strict=True):
            np.testing.assert_array_equal(one, other)
    w = scalars["weights"] * (problem.n_rows / scalars["weights"].sum())
    scale = w * scalars["ratios"] / problem.n_rows
    u, ahead = phi @ omega, scale * scalars["discount"]
    expected = phi.T @ (scale * (phi @ theta)) - phi.T @ (ahead * (next_phi @ theta))
    np.testing.assert_allclose(results[1][4], expected + 0.1 * theta, rtol=1e-10, atol=1e-12)
    expected = next_phi.T @ (ahead * u) - phi.T @ (scale * u) - 0.1 * omega
    np.testing.assert_allclose(results[1][0], expected, rtol=1e-10, atol=1e-12)
    on_phi = results[1][4] - problem.b + phi.T @ (w * u) / problem.n_rows + 0.1 * omega
    np.testing.assert_allclose(results[1][1], on_phi, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("n_rows", [1, 5, 1000, 10**6])
@pytest.mark.parametrize("entries", [1, 10, 100_000])
def test_blocks_cover_all_rows_once(n_rows, entries):
    blocks = _threads.cut(n_rows, entries, 7)
    assert blocks[0][0] == 0 and blocks[-1][1] == n_rows
    assert all(before[1] == after[0] for before, after in zip(blocks, blocks[1:], strict=False))
    assert all(first < last for first, last in blocks)


def test_an_error_in_a_block_is_raised(monkeypatch):
    monkeypatch.setenv("VALUATE_NUM_THREADS", "2")

    def fails():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _threads.run_all([fails, lambda: None, lambda: None])


@pytest.mark.parametrize("asked", ["0", "-1", "1.5", "many"])
def test_thread_counts_that_make_no_sense_are_refused(asked, monkeypatch):
    monkeypatch.setenv("VALUATE_NUM_THREADS", asked)
    with pytest.raises(InputError, match=f"VALUATE_NUM_THREADS must be a whole number above 0, not '{asked}'"):
        _threads.thread_count()
    monkeypatch.setenv("VALUATE_NUM_THREADS", "")
    assert _threads.thread_count() >= 1


# ---- subsets


@pytest.mark.parametrize("n", [1, 2, 5, 63, 64, 65, 127, 128, 1000])
def test_subsets_are_sorted_distinct_and_of_their_size(n):
    rng = np.random.default_rng(n)
    for size in {1, n // 2, n // 2 + 1, n - 1, n} - {0}:
        drawn = drawing.subset(n, min(size, n), rng)
        assert drawn.dtype == np.int32 and len(drawn) == min(size, n)
        assert (np.diff(drawn) > 0).all() and drawn[0] >= 0 and drawn[-1] < n


@pytest.mark.parametrize("size", [1, 20, 33, 34, 50, 66])
def test_subsets_are_uniform(size):
    """Chi-square of how often each row is drawn, at a level of one in ten thousand on either side."""
    n, draws = 67, 4000
    rng = np.random.default_rng(11)
    counts = np.zeros(n)
    for _ in range(draws):
        counts[drawing.subset(n, size, rng)] += 1
    share = size / n
    statistic = ((counts - draws * share) ** 2).sum() / (draws * share * (1 - share)) * (n - 1) / n
    assert 31.5 < statistic < 117.5  # quantiles of chi-square with 66 degrees of freedom


@pytest.mark.parametrize("size", [1, 5_000, 5_001, 9_999, 10_000])
def test_subsets_need_few_draws(size):
    """Where nearly all rows are wanted the others are drawn: waiting for the last ones would take n log n draws."""
    rng, drawn = np.random.default_rng(3), [0]

    class Counting:
        def integers(self, low, high, size, dtype):
            drawn[0] += size
            return rng.integers(low, high, size=size, dtype=dtype)

    assert len(drawing.subset(10_000, size, Counting())) == size
    assert drawn[0] <= 1.5 * min(size, 10_000 - size)


def test_pairs_of_a_subset_are_uniform():
    """Every pair of rows is as likely as any other."""
    rng = np.random.default_rng(12)
    counts = np.zeros((6, 6))
    for _ in range(6000):
        i, j = drawing.subset(6, 2, rng)
        counts[i, j] += 1
    pairs = counts[np.triu_indices(6, 1)]
    assert ((pairs - 400) ** 2 / 400).sum() < 42.6  # the 1 - 1e-4 quantile with 14 degrees of freedom


@pytest.mark.parametrize(
    ("n", "size"), [(1, 1), (5, 3), (100, 40), (1000, 999), (10_000, 300), (10_000, 5000), (7, 100)]
)
def test_stretches_are_rows_side_by_side_from_all_parts_of_the_log(n, size):
    rng = np.random.default_rng(0)
    for _ in range(20):
        found = drawing.stretches(n, size, rng)
        assert (np.diff(found) > 0).all() and found[0] >= 0 and found[-1] < n
        assert 0.7 * min(size, n) - 1 <= len(found) <= 1.3 * size + 1
        if n >= 10_000:
            starts = found[np.flatnonzero(np.diff(found, prepend=-2) != 1)]
            assert len(starts) >= 10 and found[0] < 0.2 * n and found[-1] > 0.8 * n


def test_every_row_is_as_likely_to_lie_in_a_stretch():
    rng, counts = np.random.default_rng(1), np.zeros(400)
    for _ in range(4000):
        counts[drawing.stretches(400, 100, rng)] += 1
    middle = counts.reshape(16, 25)[:, 10:15]  # the ends of a part lie in fewer
    assert abs(middle.mean() / counts.mean() - 1) < 0.3 and counts.min() > 0


def test_heavy_rows_come_first_and_sums_are_right_on_average():
    rng = np.random.default_rng(0)
    sizes = rng.exponential(size=5000) ** 2
    sizes[[10, 400, 4999]] = 1e4
    values = sizes * rng.uniform(0.5, 1.5, 5000)
    found = []
    for _ in range(300):
        order, counts = drawing.heavy_first(sizes, 500, rng)
        assert {10, 400, 4999} <= set(order.tolist()) and len(order) >= 500
        assert (counts[np.isin(order, [10, 400, 4999])] == 1.0).all()
        found.append(counts @ values[order])
    assert np.mean(found) == pytest.approx(values.sum(), rel=2e-3)
    assert drawing.heavy_first(np.repeat([1.0, 1e-9], [400, 5000]), 500, rng) is None
    order, counts = drawing.heavy_first(np.zeros(100), 10, rng)
    assert len(order) == 10 and counts.sum() == pytest.approx(100)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_spans_are_the_weighted_lengths_of_rows(layout):
    given = case(layout, n=200, dim=9, weights=True)
    scale = np.linspace(0.5, 2, 9)
    phi = np.array([given.problem.rows.stored_at(given.problem.rows.records["state"][[k]])[0] for k in range(200)])
    expected = given.problem.rows.weights * np.square(phi * scale).sum(axis=1)
    np.testing.assert_allclose(given.problem.rows.spans(scale), expected, rtol=1e-12)
