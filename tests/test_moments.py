"""Moments: parts that add up to the whole, files, and LSTD from them."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from battery import LAYOUTS, case
from valuate import LSTD, SVRG, Moments, Problem, Status, gathering
from valuate.errors import InputError, InputTypeError

N, DIM = 120, 4


def refuses(kind, message):
    return pytest.raises(kind, match=re.escape(message))


def log(seed=0, n=N, dim=DIM, dtype=np.float64):
    """Columns of a log with ratios and weights."""
    rng = np.random.default_rng(seed)
    phi, following = (rng.normal(size=(n, dim)).astype(dtype) for _ in range(2))
    return {
        "features": phi,
        "rewards": rng.normal(size=n),
        "next_features": following,
        "discount": rng.uniform(0.3, 0.99, n),
        "terminated": rng.random(n) < 0.1,
        "ratios": rng.choice([0.0, 0.5, 2.0], n),
        "weights": rng.choice([0.25, 1.0, 3.0], n),
    }


def part(columns, rows, ridge=0.0):
    return Problem.from_arrays(**{name: column[rows] for name, column in columns.items()}, ridge=ridge)


# ---- the matrices themselves: blocks, threads, one pass for both


@pytest.mark.parametrize("threads", ["1", "2", "3"])
@pytest.mark.parametrize("extras", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", ["dense", "trajectory"])
def test_blocks_and_threads_make_the_same_matrices(layout, dtype, extras, threads, monkeypatch):
    given = case(layout, n=700, dim=33, ratios=extras, weights=extras, dtype=dtype)
    monkeypatch.setattr(gathering, "FEWEST", 64)
    monkeypatch.setattr(gathering, "ENTRIES", 64 * 33)
    monkeypatch.setattr(gathering, "WORTH", 256)
    monkeypatch.setattr(gathering, "NARROW", 1)
    monkeypatch.setenv("VALUATE_NUM_THREADS", threads)
    a, b, c = given.problem.moments()
    np.testing.assert_allclose(a, given.oracle.A, rtol=0, atol=1e-13)
    np.testing.assert_allclose(b, given.oracle.b, rtol=0, atol=1e-13)
    np.testing.assert_allclose(c, given.oracle.C, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(c, c.T)
    rows = given.problem.rows
    np.testing.assert_allclose(rows.cross(), given.problem.n_rows * a, rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(rows.gram(), given.problem.n_rows * c, rtol=1e-12, atol=1e-11)


def test_a_matrix_is_mirrored_piece_by_piece():
    upper = np.triu(np.random.default_rng(0).normal(size=(1100, 1100)))
    np.testing.assert_array_equal(gathering.mirrored(np.asfortranarray(upper)), upper + np.triu(upper, 1).T)


# ---- accumulating


@pytest.mark.parametrize("layout", LAYOUTS)
def test_moments_are_those_of_the_problem_without_its_ridge(layout):
    given = case(layout, n=200, ratios=True, weights=True, ridge=0.1)
    found = Moments.of(given.problem)
    a, b, c = given.problem.moments()
    np.testing.assert_allclose(found.A + 0.1 * np.eye(5), a, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(found.C + 0.1 * np.eye(5), c, rtol=1e-13, atol=1e-14)
    np.testing.assert_array_equal(found.b, b)
    assert (found.n_rows, found.dim, found.ridge) == (200, 5, 0.1)
    rewards = given.oracle.w * (given.oracle.rho * given.oracle.r) ** 2
    assert found.square_rewards == pytest.approx(rewards.mean(), rel=1e-13)
    assert repr(found) == "Moments(200 rows, 5 features, ridge 0.1)"


@settings(max_examples=25, deadline=None)
@given(cuts=st.lists(st.integers(1, N - 1), max_size=4, unique=True), seed=st.integers(0, 99), ridge=st.booleans())
def test_parts_merge_to_the_whole(cuts, seed, ridge):
    columns, ridge = log(seed), 0.3 * ridge
    whole = part(columns, slice(None), ridge)
    edges = [0, *sorted(cuts), N]
    parts = [part(columns, slice(*edge), ridge) for edge in zip(edges[:-1], edges[1:], strict=True)]
    in_place = Moments()
    for piece in parts:
        assert in_place.add(piece) is in_place
    merged = sum(Moments.of(piece) for piece in reversed(parts))
    wanted = LSTD().solve(whole)
    for found in (in_place, merged):
        assert found.n_rows == N and found.weight == pytest.approx(columns["weights"].sum(), rel=1e-14)
        solution = LSTD().solve(found)
        np.testing.assert_allclose(solution.theta, wanted.theta, rtol=1e-10, atol=1e-10)
        assert solution.status is Status.CONVERGED and solution.relative_residual < 1e-12
        assert (solution.row_visits, solution.setup_visits, solution.passes) == (0, 0, 0.0)


def test_weights_all_equal_count_as_much_as_they_say():
    columns = log()
    columns["weights"] = np.repeat([3.0, 0.5], N // 2)  # all equal within each part
    merged = Moments.of(part(columns, slice(N // 2))) + Moments.of(part(columns, slice(N // 2, N)))
    np.testing.assert_allclose(merged.A, part(columns, slice(None)).moments().A, rtol=1e-12)


def test_a_part_of_adding_leaves_the_others_alone():
    one, two = (Moments.of(part(log(seed), slice(None))) for seed in (0, 1))
    kept = one.A.copy()
    total = one + two
    total.add(two)
    np.testing.assert_array_equal(one.A, kept)
    assert (one.n_rows, two.n_rows, total.n_rows) == (N, N, 3 * N)
    other = one.with_ridge(0.5)
    other.add(two.with_ridge(0.5))
    np.testing.assert_array_equal(one.A, kept)
    assert one.ridge == 0.0 and other.ridge == 0.5


def test_the_ridge_is_added_when_they_are_solved():
    problem = part(log(), slice(None))
    found = Moments.of(problem)
    for ridge in (0.0, 1e-3, 2.0):
        found.ridge = ridge
        wanted = LSTD().solve(problem.with_ridge(ridge)).theta
        np.testing.assert_allclose(LSTD().solve(found).theta, wanted, rtol=1e-11)
    with refuses(InputError, "the moments have ridge 2 and what is added has 0"):
        found.add(problem)
    with refuses(InputError, "ridge must be finite and at least 0, not -1"):
        found.ridge = -1


def test_singular_moments_are_found_singular():
    rng = np.random.default_rng(3)
    phi, following = rng.normal(size=(2, 300, 4))
    twice, next_twice = np.hstack([phi, phi[:, :2]]), np.hstack([following, following[:, :2]])
    problem = Problem.from_arrays(twice, rng.normal(size=300), next_twice, discount=0.9)
    wanted, found = LSTD().solve(problem), LSTD().solve(Moments.of(problem))
    assert found.status is Status.CONVERGED and "A has rank 4 of 6" in found.message
    np.testing.assert_allclose(found.theta, wanted.theta, rtol=1e-8)
    # Equations that contradict each other: a closed loop whose rewards do not add up to 0.
    loop = Problem.from_table(np.eye(3), [0, 1, 2], [1.0, 0.0, 0.0], [1, 2, 0], discount=1.0)
    wanted, found = LSTD().solve(loop), LSTD().solve(Moments.of(loop))
    assert found.status is Status.SINGULAR and wanted.message.startswith(found.message)
    np.testing.assert_allclose(found.theta, wanted.theta, atol=1e-12)


def test_rewards_that_cancel_are_zero():
    ones = np.full((3, 1), 0.3)
    solution = LSTD().solve(Moments.of(Problem.from_arrays(ones, [0.1, 0.2, -0.3], ones, discount=1.0)))
    assert solution.status is Status.CONVERGED and solution.theta == [0.0]
    assert solution.message == "Converged at zero: b = 0 up to rounding, so the value is 0 everywhere."


def test_record_and_tolerance():
    found = Moments.of(part(log(), slice(None)))
    solution = LSTD().solve(found, record="epoch", tolerance=1e-8)
    assert (
        solution.trace.mspbe[1]
        < 1e-20
        < solution.trace.mspbe[0]
        == pytest.approx(part(log(), slice(None)).mspbe(np.zeros(DIM)), rel=1e-10)
    )
    assert LSTD().solve(found, tolerance=1e-40).status is Status.STALLED


def test_what_cannot_be_added():
    found = Moments.of(part(log(), slice(None)))
    with refuses(InputError, "moments of 4 features cannot take in those of 7"):
        found.add(part(log(dim=7), slice(None)))
    for thing in (None, 3, "x", Problem):
        with refuses(InputTypeError, "problem must be a Problem, not"):
            found.add(thing)
        with pytest.raises(TypeError):
            found + thing
    with refuses(InputError, "the moments are empty: add a problem first."):
        LSTD().solve(Moments())
    with refuses(InputError, "LSTD(trace_decay=0.5) needs the rows in their order"):
        LSTD(trace_decay=0.5).solve(found)
    with refuses(InputTypeError, "problem must be a Problem: of Moments the rows are gone, and LSTD alone solves"):
        SVRG().solve(found)
    with refuses(InputError, "theta has 3 entries"):
        LSTD().solve(found, theta=np.zeros(3))
    giant = log()
    giant["weights"] = np.full(N, 1e306)
    with refuses(InputError, "the weights add up to more than float64 can hold"):
        Moments.of(part(giant, slice(None))).add(part(giant, slice(None)))


def test_an_empty_part_changes_nothing():
    found = Moments.of(part(log(), slice(None), ridge=0.2))
    kept = found.A
    assert found.add(Moments()).A is kept
    both = Moments() + found
    np.testing.assert_array_equal(both.A, kept)
    assert both.ridge == 0.2


# ---- files


def test_a_file_holds_every_bit(tmp_path):
    found = Moments.of(part(log(), slice(None), ridge=0.1))
    for name in ("moments.npz", "moments"):
        found.save(tmp_path / name)
        again = Moments.load(str(tmp_path / name))
        for field in "AbC":
            np.testing.assert_array_equal(getattr(again, field), getattr(found, field))
        for field in ("n_rows", "weight", "square_rewards", "ridge", "dim"):
            assert getattr(again, field) == getattr(found, field)
        again.add(found)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["moments", "moments.npz"]


def test_files_that_are_damaged_or_foreign(tmp_path):
    path = tmp_path / "moments.npz"
    found = Moments.of(part(log(), slice(None)))
    found.save(path)
    whole = path.read_bytes()
    for damaged in (b"", b"nonsense", whole[: len(whole) // 2], whole[:-1]):
        path.write_bytes(damaged)
        with refuses(InputError, "cannot be read as moments"):
            Moments.load(path)
    for at in range(0, len(whole), 97):  # one byte turned over: an error, or a byte that holds nothing
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        try:
            again = Moments.load(path)
        except InputError:
            continue
        np.testing.assert_array_equal(again.A, found.A)
    np.save(tmp_path / "array.npy", np.eye(3))
    with refuses(InputError, "cannot be read as moments"):
        Moments.load(tmp_path / "array.npy")
    with pytest.raises(FileNotFoundError):
        Moments.load(tmp_path / "none.npz")


def test_fields_of_a_file_are_checked(tmp_path):
    path = tmp_path / "moments.npz"
    Moments.of(part(log(), slice(None))).save(path)
    with np.load(path) as held:
        fields = dict(held)

    def load(**changes):
        with path.open("wb") as file:
            np.savez(file, **{name: value for name, value in (fields | changes).items() if value is not None})
        return Moments.load(path)

    assert load().dim == DIM
    with refuses(InputError, "was not written by Moments.save"):
        load(format="other")
    with refuses(InputError, "was not written by Moments.save"):
        load(format=None)
    with refuses(InputError, "has version 2 of the format and this library reads 1"):
        load(version=2)
    with refuses(InputError, "is damaged: it lacks C, weight."):
        load(C=None, weight=None)
    with refuses(InputError, "is damaged: A has shape (3, 3), and b has 4 features."):
        load(A=np.eye(3))
    with refuses(InputError, "is damaged: C has entries that are no finite numbers."):
        load(C=np.full((4, 4), np.nan))
    with refuses(InputError, "cannot be read as moments"):
        load(A=np.array([{}], dtype=object))


@pytest.mark.parametrize("threads", ["1", "2", "3"])
def test_sparse_rows_add_up_alike_on_any_number_of_threads(threads, monkeypatch):
    rng = np.random.default_rng(0)
    phi, following = (sp.random_array((500, 40), density=0.1, random_state=rng, format="csr") for _ in range(2))
    ratios, weights = rng.uniform(0, 3, 500), rng.integers(0, 3, 500)
    problem = Problem.from_arrays(phi, rng.normal(size=500), following, ratios=ratios, weights=weights, ridge=0.1)
    a, b, c = problem.moments()
    monkeypatch.setenv("VALUATE_NUM_THREADS", threads)
    again = Problem(problem.rows, ridge=0.1)
    for found, wanted in zip(again.moments(), (a, b, c), strict=True):
        np.testing.assert_array_equal(found, wanted)
    rows, ahead, w = phi.toarray(), following.toarray(), weights / weights.sum()
    np.testing.assert_allclose(a, (rows.T * (w * ratios)) @ (rows - 0.99 * ahead) + 0.1 * np.eye(40), atol=1e-13)
    np.testing.assert_allclose(c, (rows.T * w) @ rows + 0.1 * np.eye(40), atol=1e-13)
