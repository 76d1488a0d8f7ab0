"""Problem: three ways to build one, all layouts, and every sum over rows against plain NumPy."""

import re
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, PolynomialFeatures

from battery import LAYOUTS, case
from oracle import Oracle
from valuate import LSTD, Problem, Status, Transitions, moments, storing
from valuate.errors import InputError, InputTypeError

RNG = np.random.default_rng(20)
N, STATES, DIM = 24, 5, 3
TABLE = RNG.normal(size=(STATES, DIM))
VISITED = RNG.integers(0, STATES, N + 1)
REWARDS = RNG.normal(size=N)


class Frame:
    """What a data frame is to NumPy: something with __array__."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


class Map:
    """A feature map that writes down the states it is given."""

    def __init__(self, function):
        self.function, self.seen = function, []

    def __call__(self, states):
        self.seen.append(np.array(states))
        return self.function(states)


def single(problem):
    return problem.rows.dtype == np.float32


def refuses(kind, message):
    """The block raises exactly `kind`, with `message` somewhere in its text."""
    return pytest.raises(kind, match=re.escape(message))


def look_up(states):
    return TABLE[np.asarray(states).ravel().astype(int)]


def rows_of(problem):
    """The features of every row's state and next state, as they are stored."""
    rows = problem.rows
    stored = rows.stored(0, rows.n_stored)
    return stored[rows.records["state"]], stored[rows.records["next"]]


def assert_holds(problem, phi, next_phi, followed=None):
    """The stored rows are those of two matrices, bit for bit; next rows only where one is ``followed``."""
    followed = np.ones(problem.n_rows, bool) if followed is None else followed
    found, found_next = rows_of(problem)
    np.testing.assert_array_equal(found, phi)
    np.testing.assert_array_equal(found_next[followed], next_phi[followed])
    np.testing.assert_array_equal(problem.rows.records["discount"] > 0, followed)


def assert_agrees(problem, oracle, rtol=1e-11):
    """Every sum over rows is that of the oracle."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(2, problem.dim))

    def close(found, wanted):
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * max(1.0, np.abs(wanted).max()))

    found = problem.moments()
    for name in "AbC":
        close(getattr(found, name), getattr(oracle, name))
    close(problem.b, oracle.b)
    close(problem.times_A(x), oracle.A @ x)
    close(problem.times_At(y), oracle.A.T @ y)
    close(problem.times_C(y), oracle.C @ y)
    close(problem.residual(x), oracle.b - oracle.A @ x)
    close(problem.gradient(x, y), [-oracle.A.T @ y, oracle.A @ x - oracle.b + oracle.C @ y])
    order = rng.integers(0, problem.n_rows, 11).astype(np.int32)
    close(problem.mean_gradient(x, y, order), oracle.mean_field(x, y, order))
    sizes = (oracle.phi**2).sum(axis=1), (oracle.delta**2).sum(axis=1)
    both = oracle.w * oracle.rho * np.sqrt(sizes[0] * sizes[1])
    wanted = [oracle.w * sizes[0], oracle.w * oracle.rho**2 * sizes[1], both]
    # Squares that only scale are taken in the type of the rows.
    rough = 1e-6 if single(problem) else rtol
    np.testing.assert_allclose(problem.rows.maxima(), np.max(wanted, axis=1), rtol=rough)
    np.testing.assert_allclose(problem.diagonal, np.diagonal(oracle.C), rtol=rough)
    assert problem.mspbe(x) == pytest.approx(oracle.mspbe(x), rel=1e-8)
    ratio = np.sqrt(oracle.mspbe(x) / oracle.mspbe(np.zeros(problem.dim)))
    assert problem.relative_residual(x) == pytest.approx(ratio, rel=1e-8)
    weak = np.diagonal(oracle.C) ** -0.5
    near = np.linalg.norm((oracle.b - oracle.A @ x) * weak) / np.linalg.norm(oracle.b * weak)
    assert problem.relative_residual(x, exact=False) == pytest.approx(near, rel=max(rough, 1e-9))


# ---- sums over rows, all layouts


@pytest.mark.parametrize("extras", ["plain", "ridge", "ratios", "weights", "all"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_sums_are_those_of_numpy(layout, dtype, extras):
    chosen = {name: extras in (name, "all") for name in ("ratios", "weights")}
    given = case(layout, n=61, dim=6, dtype=dtype, ridge=0.07 if extras in ("ridge", "all") else 0.0, **chosen)
    assert given.problem.rows.dtype == dtype
    assert_agrees(given.problem, given.oracle)


@pytest.mark.parametrize("layout", ["indexed", "sparse table"])
def test_sums_through_few_states(layout):
    """Many rows a state, where sums go through the states, and counts are kept in either kind of matrix."""
    given = case(layout, n=400, dim=6, ridge=0.01, ratios=True, weights=True)
    assert given.problem.n_rows > 4 * given.problem.rows.n_stored
    assert_agrees(given.problem, given.oracle)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_count_in_a_sparse_matrix_where_states_are_many(monkeypatch, dtype):
    given = case("indexed", n=400, dim=6, ratios=True, weights=True, n_states=30, dtype=dtype)
    monkeypatch.setattr(moments, "DENSE_COUNTS", 10)
    monkeypatch.setattr(moments, "COUNTED", 100)
    monkeypatch.setattr("valuate.rows.GATHERED", 8)
    assert_agrees(given.problem, given.oracle)


@pytest.mark.parametrize("layout", ["trajectory", "sparse"])
def test_sums_over_several_blocks_do_not_depend_on_threads(monkeypatch, layout):
    given = case(layout, n=30_000, dim=60, ratios=True, weights=True, ridge=0.1)
    x, y = np.random.default_rng(2).normal(size=(2, 60))
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("VALUATE_NUM_THREADS", threads)
        found.append((*given.problem.gradient(x, y), given.problem.residual(x), *given.problem.rows.maxima()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    delta, phi, n = given.oracle.delta, given.oracle.phi, given.problem.n_rows
    pull = given.oracle.w * given.oracle.rho * (delta @ x - given.oracle.r) + given.oracle.w * (phi @ y)
    np.testing.assert_allclose(found[0][1], phi.T @ pull / n + 0.1 * (x + y), rtol=1e-10)


def test_moments_are_kept_and_cannot_be_written_to():
    problem = case("dense").problem
    assert problem.moments().A is problem.moments().A and problem.b is problem.b
    for array in problem.moments():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_moments_that_do_not_fit_are_refused_before_they_are_tried():
    """The products still work: nothing of size dim x dim is needed for them."""
    dim = 2_000_000
    phi = sp.csr_array(([1.0, 2.0], ([0, 1], [0, dim - 1])), shape=(2, dim))
    problem = Problem.from_arrays(phi, [1.0, 1.0], phi, discount=0.5)
    with refuses(InputError, "2 matrices of 2,000,000 x 2,000,000 features need 64,000 GB"):
        problem.moments()
    np.testing.assert_allclose(problem.residual(np.zeros(dim))[[0, 1, -1]], [0.5, 0.0, 1.0])
    assert problem.relative_residual(np.zeros(dim)) == 1.0


def test_repr_and_shape():
    problem = Problem.from_table(TABLE, VISITED[:-1], REWARDS, VISITED[1:], ridge=0.5)
    assert (problem.n_rows, problem.dim, problem.layout, problem.ridge) == (N, DIM, "indexed", 0.5)
    assert repr(problem) == "Problem(24 rows, 3 features, indexed float64, ridge 0.5)"


# ---- the ways to build one agree


def built(how, **scalars):
    """The same rows by another way."""
    states, followers = VISITED[:-1], VISITED[1:]
    column = scalars.pop("discount")
    ridge = scalars.pop("ridge", 0.0)
    if how.startswith("table"):
        table = sp.csr_array(TABLE) if how == "table, sparse" else TABLE
        return Problem.from_table(table, states, REWARDS, followers, discount=column, ridge=ridge, **scalars)
    if how.startswith("arrays"):
        make = {"arrays": np.array, "arrays, sparse": sp.csr_array}[how]
        features = make(TABLE[states]), make(TABLE[followers])
        return Problem.from_arrays(features[0], REWARDS, features[1], discount=column, ridge=ridge, **scalars)
    feature_map = {
        "log, sparse map": lambda s: sp.csr_array(look_up(s)),
        "log, transformer": FunctionTransformer(look_up),
        "log, vectors": None,
    }.get(how, look_up)
    if how == "log, windows":
        states, followers = VISITED[:-1], VISITED[1:]
    elif how == "log, column":
        states, followers = VISITED[:-1, None].copy(), VISITED[1:, None].copy()
    elif how == "log, labels":
        states, followers = (np.array([f"state {s}" for s in part]) for part in (states, followers))
        return Problem.from_transitions(
            Transitions(states, REWARDS, followers, **scalars),
            lambda labels: TABLE[[int(label[-1]) for label in labels]],
            discount=column,
            ridge=ridge,
        )
    elif how == "log, vectors":
        states, followers = TABLE[states], TABLE[followers]
    else:
        states, followers = states.copy(), followers.copy()
    log = Transitions(states, REWARDS, followers, **scalars)
    return Problem.from_transitions(log, feature_map, discount=column, ridge=ridge)


WAYS = {
    "table": "indexed",
    "table, sparse": "sparse",
    "arrays": "dense",
    "arrays, sparse": "sparse",
    "log": "indexed",
    "log, windows": "indexed",
    "log, column": "indexed",
    "log, labels": "indexed",
    "log, transformer": "indexed",
    "log, sparse map": "sparse",
    "log, vectors": "dense",
}


@pytest.mark.parametrize("extras", [False, True])
@pytest.mark.parametrize("how", WAYS)
def test_ways_to_build_a_problem_agree(how, extras):
    rng = np.random.default_rng(3)
    scalars = {"terminated": rng.random(N) < 0.2, "discount": 0.9}
    if extras:
        scalars |= {"ratios": rng.choice([0.0, 0.5, 2.0], N), "weights": rng.choice([0.0, 1.0, 3.0], N)}
        scalars |= {"discount": rng.choice([0.0, 0.4, 1.0], N), "ridge": 0.03}
    problem = built(how, **scalars)
    assert problem.layout == WAYS[how]
    discounts = np.where(scalars["terminated"], 0.0, scalars["discount"])
    phi, next_phi = TABLE[VISITED[:-1]], TABLE[VISITED[1:]]
    assert_holds(problem, phi, next_phi, discounts > 0)
    given = [scalars.get(name) for name in ("ratios", "weights")]
    assert_agrees(problem, Oracle(phi, next_phi, REWARDS, discounts, *given, scalars.get("ridge", 0.0)))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("apart", ["nowhere", "here and there", "everywhere"])
def test_rows_of_many_blocks_are_stored_as_they_are(apart, sparse):
    """More rows than are compared, copied or transformed at a time."""
    rng = np.random.default_rng(4)
    n = 2 * max(storing.BLOCK, 16384) + 37
    phi = rng.integers(1, 100, (n + 1, 2)).astype(float)
    next_phi = phi[1:].copy()
    broken = {"nowhere": np.zeros(n, bool), "everywhere": np.ones(n, bool)}.get(apart, rng.random(n) < 0.3)
    next_phi[broken] += 0.5
    terminated = rng.random(n) < 0.05
    own = (broken | (np.arange(n) == n - 1)) & ~terminated
    make = sp.csr_array if sparse else np.array
    log = Transitions(make(phi[:-1]), np.ones(n), make(next_phi), terminated=terminated)
    for problem in (
        Problem.from_arrays(make(phi[:-1]), np.ones(n), make(next_phi), terminated=terminated),
        Problem.from_transitions(log),
        Problem.from_transitions(log, lambda states: states * 1.0),
    ):
        assert problem.layout == ("sparse" if sparse else "dense")
        assert_holds(problem, phi[:-1], next_phi, ~terminated)
        assert problem.rows.n_stored == n + own.sum()


# ---- what a trajectory costs


@pytest.mark.parametrize("sparse", [False, True])
def test_a_log_in_order_is_stored_once(sparse):
    """n rows and one more for each break; a terminated row has no next state to store."""
    rng = np.random.default_rng(5)
    make = sp.csr_array if sparse else np.array
    episodes = [rng.normal(size=(length, DIM)) for length in (7, 2, 9, 5)]
    ends = [True, False, True, False]
    phi = np.concatenate([x[:-1] for x in episodes])
    next_phi = np.concatenate([x[1:] for x in episodes])
    n = len(phi)
    terminated = np.zeros(n, bool)
    terminated[np.cumsum([len(x) - 1 for x in episodes]) - 1] = ends
    rewards = rng.normal(size=n)
    given = [(make(x), None, np.ones(len(x) - 1), end) for x, end in zip(episodes, ends, strict=True)]
    problems = [
        Problem.from_arrays(make(phi), rewards, make(next_phi), terminated=terminated),
        Problem.from_transitions(Transitions(make(phi), rewards, make(next_phi), terminated=terminated)),
        Problem.from_transitions(Transitions.from_episodes(given)),
        Problem.from_transitions(Transitions.from_episodes(given), lambda states: states),
    ]
    for problem in problems:
        assert problem.rows.n_stored == n + 2  # two episodes were cut short
        assert_holds(problem, phi, next_phi, ~terminated)
    assert problem.rows.table.dtype == np.float64


def test_windows_of_one_array_are_stored_once():
    observations = np.random.default_rng(6).normal(size=(31, DIM))
    log = Transitions(observations[:-1], np.ones(30), observations[1:])
    for problem in (
        Problem.from_transitions(log),
        Problem.from_arrays(observations[:-1], np.ones(30), observations[1:]),
    ):
        assert problem.rows.n_stored == 31
        assert_holds(problem, observations[:-1], observations[1:])
    chosen = log[5:20:3]
    problem = Problem.from_transitions(chosen)
    assert_holds(problem, observations[5:20:3], observations[6:21:3])


def test_only_what_a_selection_uses_is_transformed():
    observations = np.random.default_rng(6).normal(size=(31, DIM))
    log = Transitions.from_episodes([(observations, None, np.ones(30), True)])
    seen = Map(lambda states: states)
    problem = Problem.from_transitions(log[[3, 4, 29]], seen)
    assert_holds(problem, observations[[3, 4, 29]], observations[[4, 5, 30]], np.array([True, True, False]))
    assert problem.rows.n_stored == 4 and sum(map(len, seen.seen)) == 4  # 3, 4, 5 and 29; the end counts for nothing


def test_a_table_of_many_rows_costs_its_records():
    n = 400_000
    rng = np.random.default_rng(7)
    states, rewards, ended = rng.integers(0, 400, n + 1).astype(np.int32), rng.normal(size=n), rng.random(n) < 0.01
    table = rng.normal(size=(400, 20))
    ways = {
        "table": lambda: Problem.from_table(table, states[:-1], rewards, states[1:], terminated=ended),
        "log": lambda: Problem.from_transitions(log, lambda s: table[s]),
    }
    log = Transitions(states[:-1].copy(), rewards, states[1:].copy(), terminated=ended)
    for name, build in ways.items():
        tracemalloc.start()
        problem = build()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 60 * n, name
        assert problem.rows.records.nbytes == 32 * n and problem.layout == "indexed"


# ---- few distinct states


@pytest.mark.parametrize(
    ("dtype", "shift"),
    [
        ("i1", -3),
        ("u1", 0),
        ("i4", 1000),
        ("i8", -(2**60)),
        ("u8", 2**60),
        ("?", 0),
        ("f8", 0.5),
        ("f4", -1),
        (">i4", 7),
    ],
)
@pytest.mark.parametrize("given", ["apart", "windows", "episodes", "column"])
def test_few_numbers_are_transformed_once_each(dtype, shift, given):
    states = (VISITED % 2 == 0) if dtype == "?" else VISITED.astype(dtype) + np.array(shift).astype(dtype)
    distinct = np.unique(states)
    if given == "column":
        states = states[:, None].copy()
    log = {
        "apart": lambda: Transitions(states[:-1].copy(), REWARDS, states[1:].copy()),
        "column": lambda: Transitions(states[:-1].copy(), REWARDS, states[1:].copy()),
        "windows": lambda: Transitions(states[:-1], REWARDS, states[1:]),
        "episodes": lambda: Transitions.from_episodes([(states, None, REWARDS, False)]),
    }[given]()
    seen = Map(lambda s: TABLE[np.searchsorted(distinct, s.ravel())])
    problem = Problem.from_transitions(log, seen, discount=0.9)
    assert (problem.layout, problem.rows.n_stored, len(seen.seen)) == ("indexed", len(distinct), 1)
    np.testing.assert_array_equal(np.sort(seen.seen[0].ravel()), distinct)
    assert seen.seen[0].shape[1:] == states.shape[1:]
    phi = TABLE[np.searchsorted(distinct, states.ravel())]
    assert_holds(problem, phi[:-1], phi[1:])


def test_few_pairs_of_numbers_are_transformed_once_each():
    """Cells of a grid, given as two coordinates."""
    rng = np.random.default_rng(8)
    cells = rng.integers(-2, 2, (101, 2)).astype(np.int16)
    cells[:, 1] *= 3
    log = Transitions(cells[:-1], np.ones(100), cells[1:])
    seen = Map(lambda s: s * [1.0, 10.0])
    problem = Problem.from_transitions(log, seen)
    assert problem.layout == "indexed" and problem.rows.n_stored == len(np.unique(cells, axis=0)) == len(seen.seen[0])
    assert_holds(problem, cells[:-1] * [1.0, 10.0], cells[1:] * [1.0, 10.0])


@pytest.mark.parametrize("as_objects", [False, True])
def test_few_labels_are_transformed_once_each(as_objects):
    names = np.array(["left", "a much longer name", "right", "", "up"], dtype=object if as_objects else None)
    labels = names[VISITED]
    log = Transitions(labels[:-1].copy(), REWARDS, labels[1:].copy())
    seen = Map(lambda s: TABLE[[list(names).index(label) for label in s]])
    problem = Problem.from_transitions(log, seen)
    assert (problem.layout, problem.rows.n_stored) == ("indexed", STATES)
    assert sorted(seen.seen[0]) == sorted(names)
    assert_holds(problem, TABLE[VISITED[:-1]], TABLE[VISITED[1:]])


def test_labels_of_different_lengths_are_not_cut():
    log = Transitions(["a", "a", "b", "b"], np.ones(4), ["b", "b", "a", "longer"][:3] + ["a"])
    seen = Map(lambda s: np.array([[len(label), ord(label[0])] for label in s], float))
    assert Problem.from_transitions(log, seen).rows.n_stored == 2
    log = Transitions(["a"] * 4, np.ones(4), ["a", "a", "a", "longer"])
    problem = Problem.from_transitions(log, seen)
    np.testing.assert_array_equal(rows_of(problem)[1][3], [6, ord("l")])


def test_objects_that_are_equal_but_of_different_types_stay_apart():
    states = np.array([1, True, 1, True, 1, True], dtype=object)
    log = Transitions(states, np.ones(6), states)
    problem = Problem.from_transitions(log, lambda s: np.array([[2.0 if x is True else 1.0] for x in s]))
    np.testing.assert_array_equal(rows_of(problem)[0].ravel(), [1, 2, 1, 2, 1, 2])


def test_labels_beside_objects():
    """A data frame may hold one column as text and the other as objects."""
    log = Transitions(np.array(["a", "b"] * 4), np.ones(8), np.array(["b", "a"] * 4, dtype=object))
    problem = Problem.from_transitions(log, lambda s: np.array([[float(ord(x))] for x in s]))
    assert (problem.layout, problem.rows.n_stored) == ("indexed", 2)
    assert_holds(problem, np.array([[97.0], [98.0]] * 4), np.array([[98.0], [97.0]] * 4))


def test_states_that_cannot_be_hashed_or_compared_are_transformed_one_by_one():
    states = np.empty(6, dtype=object)
    states[:] = [np.array([k, 1.0]) for k in range(6)]
    log = Transitions(states[:-1].copy(), np.ones(5), states[1:].copy())
    problem = Problem.from_transitions(log, lambda s: np.stack(list(s)))
    assert_holds(problem, np.stack(list(states[:-1])), np.stack(list(states[1:])))


def test_whole_numbers_keep_all_their_digits():
    """NumPy would turn uint64 beside int64 into float64, where these are one number."""
    big = 2**62
    states = np.array([big, big + 1] * 4, dtype=np.int64)
    log = Transitions(states, np.ones(8), states[::-1].astype(np.uint64))
    problem = Problem.from_transitions(log, lambda s: np.array([[float(int(x) - big), 1.0] for x in s]))
    np.testing.assert_array_equal(rows_of(problem)[0][:, 0], [0, 1] * 4)
    np.testing.assert_array_equal(rows_of(problem)[1][:, 0], [1, 0] * 4)
    beyond = np.array([2**64 - 1, 2**64 - 2] * 4, dtype=np.uint64)
    problem = Problem.from_transitions(
        Transitions(beyond, np.ones(8), beyond), lambda s: np.array([[float(2**64 - int(x))] for x in s])
    )
    np.testing.assert_array_equal(rows_of(problem)[0].ravel(), [1, 2] * 4)


@pytest.mark.parametrize(
    "numbers",
    [
        np.array([-(2**62), 0, 2**62 - 1, 17, 5]),
        np.array([-(2**63), 0, 2**63 - 1, 17, 5]),
        np.array([0, 2**64 - 1, 2**64 - 2, 17, 5], dtype=np.uint64),
    ],
)
def test_numbers_far_apart_are_sorted_instead_of_looked_up(numbers):
    states = numbers[VISITED]
    log = Transitions(states[:-1], REWARDS, states[1:])
    problem = Problem.from_transitions(log, lambda s: TABLE[[list(numbers).index(x) for x in s]])
    assert (problem.layout, problem.rows.n_stored) == ("indexed", STATES)
    assert_holds(problem, TABLE[VISITED[:-1]], TABLE[VISITED[1:]])


@pytest.mark.parametrize("way", ["apart", "episodes"])
def test_the_next_state_of_a_terminated_row_is_not_transformed(way):
    """It may be a marker that the feature map does not know."""
    states = np.array([0, 1, 2, 0, 1, 2, 0, 1])
    terminated = np.arange(8) % 3 == 2
    if way == "apart":
        followers = np.where(terminated, -1, (states + 1) % 3)
        log = Transitions(states, np.ones(8), followers, terminated=terminated)
    else:
        log = Transitions.from_episodes(
            [
                ([0, 1, 2, -1], None, np.ones(3), True),
                ([0, 1, 2, -1], None, np.ones(3), True),
                ([0, 1, 2], None, [1, 1], 0),
            ]
        )
        states = log.states
    seen = Map(lambda s: np.eye(3)[s])
    problem = Problem.from_transitions(log, seen)
    assert problem.layout == "indexed" and np.concatenate(seen.seen).min() == 0
    assert_holds(problem, np.eye(3)[states], np.eye(3)[(states + 1) % 3], ~log.terminated)


def test_states_that_seldom_repeat_are_not_indexed():
    states = np.arange(9)
    problem = Problem.from_transitions(Transitions(states[:-1], np.ones(8), states[1:]), lambda s: s[:, None] + 0.5)
    assert (problem.layout, problem.rows.n_stored) == ("dense", 9)
    assert_holds(problem, states[:-1, None] + 0.5, states[1:, None] + 0.5)


def test_continuous_states_are_not_sorted(monkeypatch):
    """One look at a sample is enough."""
    x = np.random.default_rng(9).normal(size=20_001)
    log = Transitions(x[:-1].copy(), np.ones(20_000), x[1:].copy())
    sizes = []
    unique = np.unique
    monkeypatch.setattr(np, "unique", lambda a, *rest, **named: sizes.append(len(a)) or unique(a, *rest, **named))
    problem = Problem.from_transitions(log)
    assert problem.layout == "dense" and problem.rows.n_stored == 20_001 and max(sizes) < 10_000


# ---- feature maps


@pytest.mark.parametrize("given", ["encoder", "csr", "csc", "coo", "csr of few blocks"])
def test_a_sparse_map_gives_a_sparse_problem(given):
    states = VISITED[:, None].copy()
    log = Transitions(states[:-1].copy(), REWARDS, states[1:].copy())
    table, dtype = np.eye(STATES), np.float64
    feature_map = {
        "encoder": OneHotEncoder().fit(np.arange(STATES)[:, None]),
        "csr": lambda s: sp.csr_array(np.eye(STATES, dtype=np.float32)[s.ravel()]),
        "csc": lambda s: sp.csc_matrix(table[s.ravel()]),
        "coo": lambda s: sp.coo_array(table[s.ravel()].astype(int)),
        "csr of few blocks": lambda s: sp.csr_matrix(table[s.ravel()]),
    }[given]
    if given == "csr":
        dtype = np.float32
    problem = Problem.from_transitions(log, feature_map, discount=0.9)
    assert (problem.layout, problem.dim, problem.rows.n_stored, problem.rows.dtype) == ("sparse", 5, 5, dtype)
    assert (problem.rows.table.indices.dtype, problem.rows.table.indptr.dtype) == (np.int32, np.int64)
    assert_holds(problem, table[VISITED[:-1]], table[VISITED[1:]])


def test_a_pipeline_of_scikit_learn():
    x = np.random.default_rng(10).normal(size=(41, 2))
    log = Transitions(x[:-1], np.ones(40), x[1:])
    pipeline = make_pipeline(PolynomialFeatures(2), FunctionTransformer(np.tanh)).fit(x)
    problem = Problem.from_transitions(log, pipeline, discount=0.5)
    assert (problem.layout, problem.dim, problem.rows.n_stored) == ("dense", 6, 41)
    assert_holds(problem, pipeline.transform(x[:-1]), pipeline.transform(x[1:]))


def test_a_map_may_return_other_types_from_block_to_block(monkeypatch):
    """The wider type holds all of them, whichever came first."""
    monkeypatch.setattr("valuate.transforming.BLOCK", 4)
    x = np.linspace(0, 1, 21)[:, None] / 3
    for order in ([np.float64, np.float32], [np.float32, np.float64], [np.float16, np.int64]):
        kinds = iter(order * 3)

        def feature_map(states, kinds=kinds):
            return (states * 7).astype(next(kinds))

        problem = Problem.from_transitions(Transitions(x[:-1], np.ones(20), x[1:]), feature_map)
        assert problem.rows.dtype == np.float64
        wanted = np.concatenate([(x[at : at + 4] * 7).astype(order[at // 4 % 2]) for at in range(0, 21, 4)])
        assert_holds(problem, wanted[:-1].astype(float), wanted[1:].astype(float))


def test_a_map_that_writes_to_its_input_does_not_change_the_log(monkeypatch):
    monkeypatch.setattr("valuate.transforming.BLOCK", 8)
    x = np.random.default_rng(11).normal(size=(21, 2))
    kept = x.copy()

    def centre(states):
        states -= 1.0
        return states

    for log in (Transitions(x[:-1], np.ones(20), x[1:]), Transitions(x[:-1].copy(), np.ones(20), x[1:].copy())):
        problem = Problem.from_transitions(log, centre)
        assert_holds(problem, kept[:-1] - 1, kept[1:] - 1)
        np.testing.assert_array_equal(log.states, kept[:-1])


def test_a_map_that_reuses_its_output(monkeypatch):
    monkeypatch.setattr("valuate.transforming.BLOCK", 7)
    x = np.random.default_rng(11).normal(size=(21, 2))
    buffer = np.empty((7, 2))

    def double(states):
        np.multiply(states, 2.0, out=buffer[: len(states)])
        return buffer[: len(states)]

    assert_holds(Problem.from_transitions(Transitions(x[:-1], np.ones(20), x[1:]), double), 2 * x[:-1], 2 * x[1:])


SHORT = Transitions(np.arange(6.0), np.ones(6), np.arange(6.0) + 0.5)


@pytest.mark.parametrize(
    ("feature_map", "kind", "message"),
    [
        (lambda s: np.ones((len(s) + 1, 2)), InputError, "gave an array of shape (7, 2) for 6 states"),
        (lambda s: np.ones((1, 2)), InputError, "It must give one row of features a state, shape (6, dim)"),
        (lambda s: np.ones(len(s)), InputError, "shape (6,) for 6 states"),
        (lambda s: np.ones(len(s)), InputError, "Use .reshape(-1, 1) for one feature a state."),
        (lambda s: np.ones((len(s), 2, 2)), InputError, "shape (6, 2, 2) for 6 states"),
        (lambda s: sp.csr_array(np.ones((2, 3))), InputError, "shape (2, 3) for 6 states"),
        (lambda s: np.ones((len(s), 0)), InputError, "the output of the feature map has no columns"),
        (lambda s: 1.0, InputError, "shape () for 6 states"),
        (lambda s: None, InputTypeError, "the output of the feature map is None"),
        (lambda s: [[1.0]] * 5 + [[1.0, 2.0]], InputError, "the output of the feature map cannot be read as one array"),
        (lambda s: np.full((len(s), 1), "x"), InputTypeError, "the output of the feature map must be real numbers"),
        (lambda s: np.ones((len(s), 1)) * 1j, InputTypeError, "the output of the feature map must be real numbers"),
        (lambda s: np.log(np.abs(s - 3.0))[:, None], InputError, "in column 0 for row 3 of states (3.0)"),
        (lambda s: np.c_[s, np.log(np.abs(s - 2.5))], InputError, "in column 1 for row 2 of next_states (2.5)"),
        (lambda s: sp.csr_array(np.c_[s, 1 / (s - 1.0)]), InputError, "in column 1 for row 1 of states (1.0)"),
        ("polynomial", InputTypeError, "feature_map must have a transform method or be callable, and str does neither"),
        (7, InputTypeError, "and int does neither"),
        (PolynomialFeatures, InputTypeError, "feature_map is the class PolynomialFeatures itself"),
    ],
)
def test_maps_that_do_not_map(feature_map, kind, message):
    with np.errstate(divide="ignore"), refuses(kind, message):
        Problem.from_transitions(SHORT, feature_map)


@pytest.mark.parametrize("first", [True, False])
def test_maps_that_change_their_mind(monkeypatch, first):
    monkeypatch.setattr("valuate.transforming.BLOCK", 4)
    with refuses(InputError, "gave 1 dense features and, for earlier states, 4 dense features"):
        Problem.from_transitions(SHORT, lambda s: np.ones((len(s), 4 if s[0] == 0 else 1)))
    with refuses(InputError, "gave 1 sparse features and, for earlier states, 1 dense features"):
        Problem.from_transitions(SHORT, lambda s: s[:, None] if s[0] == 0 else sp.csr_array(s[:, None]))


def test_where_a_distinct_state_has_no_feature():
    """The message names a row of the log, though the map saw each state once."""
    log = Transitions(VISITED[:-1], REWARDS, VISITED[1:])
    bad = VISITED[4]
    first = int(np.flatnonzero(VISITED[:-1] == bad)[0])
    with refuses(InputError, f"NaN or infinity in column 0 for row {first} of states ({bad})"):
        Problem.from_transitions(log, lambda s: np.where(s == bad, np.nan, s)[:, None])


def test_states_without_a_map_are_their_own_features():
    for states in (np.arange(8), np.arange(8.0), np.arange(8, dtype=np.float32), np.arange(8) > 3):
        problem = Problem.from_transitions(Transitions(states[:-1], np.ones(7), states[1:]))
        assert problem.dim == 1
        assert_holds(problem, states[:-1, None].astype(float), states[1:, None].astype(float))
    with refuses(InputTypeError, "states must be real numbers"):
        Problem.from_transitions(Transitions(["a", "b"], np.ones(2), ["b", "a"]))
    with refuses(InputError, "states must have 2 dimensions"):
        Problem.from_transitions(Transitions(np.ones((3, 2, 2)), np.ones(3), np.ones((3, 2, 2))))


# ---- arrays of every kind

PLAIN = np.arange(1.0, 13.0).reshape(4, 3)
AHEAD = PLAIN[::-1] * 2


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("lists", lambda a: a.tolist()),
        ("frame", Frame),
        ("matrix", lambda a: a.view(np.matrix)),
        ("Fortran", np.asfortranarray),
        ("strided", lambda a: np.repeat(np.repeat(a, 2, axis=0), 3, axis=1)[::2, ::3]),
        ("backwards", lambda a: a[::-1].copy()[::-1]),
        ("half", lambda a: a.astype(np.float16)),
        ("single", lambda a: a.astype(np.float32)),
        ("whole", lambda a: a.astype(np.uint8)),
        ("other byte order", lambda a: a.astype(">f8")),
        ("unaligned", lambda a: np.frombuffer(b"x" + a.tobytes(), dtype=np.float64, offset=1).reshape(a.shape)),
        ("masked nowhere", np.ma.masked_array),
    ],
)
def test_arrays_of_every_kind(name, make, wide):
    """The kernels get ordinary memory: writable, aligned, C-contiguous, of a plain type."""
    plain, ahead = (np.tile(a, (1, 8)) if wide else a for a in (PLAIN, AHEAD))
    problem = Problem.from_arrays(make(plain), np.ones(4), make(ahead), discount=0.5)
    assert_holds(problem, plain, ahead)
    table = problem.rows.table
    assert type(table) is np.ndarray and table.flags.carray and table.ctypes.data % 64 == 0
    assert table.dtype == (np.float32 if name in ("half", "single") else np.float64)
    assert table.shape[1] * table.itemsize % 64 == 0 and not table[:, problem.dim :].any()
    problem = Problem.from_table(make(plain), [0, 1, 2, 3], np.ones(4), [3, 3, 0, 0], discount=0.5)
    assert_holds(problem, plain, plain[[3, 3, 0, 0]])
    table = problem.rows.table
    assert type(table) is np.ndarray and table.flags.carray and table.ctypes.data % 64 == 0


@pytest.mark.parametrize("writeable", [True, False])
def test_what_the_caller_writes_later_changes_nothing(writeable):
    """Even where the features lie in memory just as the kernels like it."""
    table = storing.layouts.aligned_zeros((8, 8), np.float64)
    table += np.random.default_rng(18).normal(size=(8, 8))
    before = table.copy()
    table.flags.writeable = writeable
    problem = Problem.from_table(table, np.arange(8), np.ones(8), np.arange(8))
    table.flags.writeable = True
    table[:] = 7.0
    assert problem.rows.table.flags.writeable
    assert_agrees(problem, Oracle(before, before, np.ones(8), np.full(8, 0.95)))


def test_single_and_double_together_are_double():
    problem = Problem.from_arrays((PLAIN / 3).astype(np.float32), np.ones(4), AHEAD / 3)
    assert problem.rows.dtype == np.float64
    assert_holds(problem, (PLAIN / 3).astype(np.float32), AHEAD / 3)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u4", "i8", "u8", ">i4", "<u8"])
def test_indices_of_every_kind(dtype):
    states, followers = VISITED[:-1].astype(dtype), VISITED[1:].astype(dtype)
    problem = Problem.from_table(TABLE, states, REWARDS, followers[:], terminated=np.arange(N) == 3)
    assert_holds(problem, TABLE[VISITED[:-1]], TABLE[VISITED[1:]], np.arange(N) != 3)


@pytest.mark.parametrize("marker", [-1, 99, 2**31, 2**63 - 1])
def test_next_states_of_terminated_rows_are_not_looked_at(marker):
    ended = np.arange(N) % 5 == 0
    for dtype in (np.int64, np.uint64) if marker > 0 else (np.int64,):
        followers = np.where(ended, marker, VISITED[1:]).astype(dtype)
        kept = followers.copy()
        problem = Problem.from_table(TABLE, VISITED[:-1], REWARDS, followers, terminated=ended)
        assert_holds(problem, TABLE[VISITED[:-1]], TABLE[VISITED[1:]], ~ended)
        np.testing.assert_array_equal(followers, kept)
    with refuses(InputError, f"next_states must be in [0, 5), which is where the table has rows; row 0 has {marker}"):
        Problem.from_table(TABLE, VISITED[:-1], REWARDS, followers)


@pytest.mark.parametrize("make", [np.array, Frame, lambda a: a.astype(np.float32), np.asfortranarray, sp.csr_array])
@pytest.mark.parametrize("why", ["terminated", "discount 0", "discount 0 everywhere"])
def test_next_features_of_ended_rows_are_not_looked_at(make, why):
    ended = np.ones(4, bool) if "every" in why else np.array([False, True, True, False])
    ahead = AHEAD.copy()
    ahead[1], ahead[2, 1] = np.nan, np.inf
    kept = ahead.copy()
    how = {
        "terminated": {"terminated": ended, "discount": 0.5},
        "discount 0": {"discount": np.where(ended, -0.0, 0.5)},
        "discount 0 everywhere": {"discount": 0},
    }[why]
    features, next_features = (make(a) for a in (PLAIN, ahead))
    problem = Problem.from_arrays(features, np.ones(4), next_features, **how)
    assert_holds(problem, PLAIN, AHEAD, ~ended)
    assert_agrees(problem, Oracle(PLAIN, AHEAD, np.ones(4), np.where(ended, 0, 0.5)), rtol=1e-6)
    np.testing.assert_array_equal(ahead, kept)
    if "every" not in why:
        with refuses(InputError, "next_features has 4 entries that are NaN or infinite, the first at row 1, column 0"):
            Problem.from_arrays(features, np.ones(4), next_features, discount=0.5)
        ahead[3, 2] = np.nan
        with refuses(InputError, "next_features has 1 entry that is NaN or infinite, the first at row 3, column 2"):
            Problem.from_arrays(features, np.ones(4), make(ahead), **how)


@pytest.mark.parametrize(
    "make",
    [
        sp.csr_array,
        sp.csr_matrix,
        sp.csc_array,
        sp.coo_matrix,
        sp.bsr_array,
        sp.lil_array,
        lambda a: sp.csr_array(a.astype(np.float32)),
        lambda a: sp.csr_array(a.astype(np.int8)),
        lambda a: _unsorted(a, np.int32),
        lambda a: _unsorted(a, np.int64),
    ],
)
def test_sparse_matrices_of_every_kind(make):
    """Also with duplicates, explicit zeros and columns out of order."""
    rng = np.random.default_rng(12)
    phi, ahead = (rng.integers(0, 4, (9, 6)) * (rng.random((9, 6)) < 0.5) * 1.0 for _ in range(2))
    phi[4], ahead[2:5] = 0, phi[3:6]
    rewards = rng.normal(size=9)
    given = make(phi)
    problem = Problem.from_arrays(given, rewards, make(ahead), discount=0.9)
    assert problem.layout == "sparse" and problem.rows.n_stored < 16
    assert_holds(problem, phi, ahead)
    assert (abs(sp.csr_array(given) - sp.csr_array(phi)).sum()) == 0
    oracle = Oracle(phi, ahead, rewards, np.full(9, 0.9))
    used = phi.any(axis=0)
    assert used.all()
    assert_agrees(problem, oracle, rtol=1e-6 if single(problem) else 1e-11)
    table = problem.rows.table
    assert table.data.flags.carray and table.has_canonical_format
    assert Problem.from_table(make(phi), [0, 1], [1.0, 1.0], [8, 0]).layout == "sparse"


def _unsorted(dense, dtype):
    """A CSR matrix in which every entry is stored twice, in halves, backwards, and zeros are stored too."""
    n, dim = dense.shape
    columns = np.concatenate([np.arange(dim)[::-1], np.arange(dim)]).astype(dtype)
    data = np.hstack([dense[:, ::-1], dense]) / 2
    made = sp.csr_array((n, dim))
    made.data, made.indices = data.ravel(), np.tile(columns, n)
    made.indptr = (np.arange(n + 1) * 2 * dim).astype(dtype)
    return made


# ---- small and degenerate


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_one_row_of_one_feature(make):
    problem = Problem.from_arrays(make([[2.0]]), [3.0], make([[1.0]]), discount=0.5)
    assert_agrees(problem, Oracle([[2.0]], [[1.0]], [3.0], [0.5]))
    assert LSTD().solve(problem).theta == pytest.approx([2.0])  # 2 (2 - .5) theta = 6
    assert Problem.from_table(make([[2.0]]), [0], [3.0], [0], discount=0.5).mspbe([3.0]) == pytest.approx(0.0)
    assert Problem.from_transitions(Transitions([[2.0]], [3.0], [[1.0]]), discount=0.5).mspbe([0.0]) == 4.5


def test_every_row_terminated_is_a_regression():
    ahead = np.full((4, 3), np.nan)
    phi = np.random.default_rng(13).normal(size=(9, 3))
    rewards = phi @ [1.0, -2.0, 3.0]
    problem = Problem.from_arrays(phi, rewards, np.full((9, 3), np.nan), terminated=np.ones(9), discount=0.99)
    assert problem.rows.n_stored == 9 and not np.isfinite(ahead).any()
    assert_agrees(problem, Oracle(phi, phi, rewards, np.zeros(9)))
    assert LSTD().solve(problem).theta == pytest.approx([1.0, -2.0, 3.0])
    with_table = Problem.from_table(phi, np.arange(9), rewards, np.full(9, -7), terminated=np.ones(9))
    np.testing.assert_allclose(with_table.moments().A, problem.moments().A, rtol=1e-14)


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_a_feature_that_is_always_zero(make):
    phi = np.random.default_rng(14).normal(size=(20, 3))
    wide = np.insert(phi, 1, 0.0, axis=1)
    rewards = np.random.default_rng(15).normal(size=20)
    problem = Problem.from_arrays(make(wide[:-1]), rewards[:-1], make(wide[1:]), discount=0.9)
    without = Problem.from_arrays(make(phi[:-1]), rewards[:-1], make(phi[1:]), discount=0.9)
    theta = np.array([0.3, -0.4, 0.5])
    for weight in (0.0, 1e6):
        assert problem.mspbe(np.insert(theta, 1, weight)) == pytest.approx(without.mspbe(theta), rel=1e-12)
        assert problem.relative_residual(np.insert(theta, 1, weight), exact=False) == pytest.approx(
            without.relative_residual(theta, exact=False), rel=1e-12
        )


def test_rewards_of_zero():
    phi = np.random.default_rng(16).normal(size=(20, 3))
    problem = Problem.from_arrays(phi[:-1], np.zeros(19), phi[1:])
    assert problem.mspbe(np.zeros(3)) == problem.relative_residual(np.zeros(3)) == 0.0
    assert problem.relative_residual(np.ones(3)) > 0
    solution = LSTD().solve(problem)
    assert solution.status is Status.CONVERGED and not solution.theta.any() and solution.relative_residual == 0.0


def test_features_of_zero():
    problem = Problem.from_arrays(np.zeros((4, 2)), np.ones(4), np.zeros((4, 2)))
    assert not any(part.any() for part in problem.moments())
    assert problem.mspbe([1.0, 1.0]) == 0.0 and problem.relative_residual([1.0, 1.0], exact=False) == 0.0


def test_weights_may_be_as_small_as_they_like():
    phi = np.random.default_rng(17).normal(size=(7, 2))
    weights = np.array([0.0, 1.0, 2.0, 0.0, 3.0, 1.0, 1.0])
    wanted = Oracle(phi, phi[::-1], np.ones(7), np.full(7, 0.9), None, weights)
    for unit in (1.0, 1e-300, 1e300, 5e-324):
        problem = Problem.from_arrays(phi, np.ones(7), phi[::-1], discount=0.9, weights=weights * unit)
        assert_agrees(problem, wanted)
    assert Problem.from_arrays(phi, np.ones(7), phi, weights=np.full(7, 3.0)).rows.weights.size == 0
