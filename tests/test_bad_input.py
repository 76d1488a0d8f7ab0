"""What cannot be used is refused with what, where and what to do; what can be used gives a right answer, never NaN."""

import re

import numpy as np
import pytest
import scipy.sparse as sp

from valuate import GTD2, LSTD, SAGA, SCSG, SVRG, BatchingSVRG, Problem, Status, Transitions, ValuateError
from valuate.errors import InputError, InputTypeError

PHI = np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0], [2.0, 0.0, 1.0], [-1.0, 1.0, 1.0]])
AHEAD = PHI[::-1] * 0.5
ONES = np.ones(4)
CHAIN = [0, 1, 2, 3], [1, 2, 3, 0]
METHODS = [LSTD(), GTD2(), SVRG(), SAGA(), BatchingSVRG(), SCSG()]


def refuses(kind, message):
    """The block raises exactly `kind`, with `message` somewhere in its text."""
    return pytest.raises(kind, match=re.escape(message))


def from_arrays(features=PHI, rewards=ONES, next_features=AHEAD, **scalars):
    return Problem.from_arrays(features, rewards, next_features, **scalars)


def from_table(table=PHI, states=CHAIN[0], rewards=ONES, next_states=CHAIN[1], **scalars):
    return Problem.from_table(table, states, rewards, next_states, **scalars)


def from_sparse(features=PHI, rewards=ONES, next_features=AHEAD, **scalars):
    return Problem.from_arrays(sp.csr_array(features), rewards, sp.csr_array(next_features), **scalars)


def from_log(rewards=ONES, **scalars):
    given = {name: scalars.pop(name) for name in ("terminated", "ratios", "weights") if name in scalars}
    return Problem.from_transitions(Transitions(PHI, rewards, AHEAD, **given), **scalars)


def assert_sound(problem):
    """Every solver ends with numbers and a status."""
    for method in METHODS:
        solution = method.solve(problem, passes=2, tolerance=1e-9, record=0.5)
        assert np.isfinite(solution.theta).all() and np.isfinite(solution.omega).all(), method
        assert np.isfinite(solution.relative_residual), method
        assert not np.isnan(solution.trace.mspbe).any(), method
        if solution.status is Status.CONVERGED:
            assert problem.relative_residual(solution.theta) <= 1e-8, method
    return LSTD().solve(problem)


# ---- matrices

NOT_MATRICES = [
    (None, InputTypeError, "{} is None and an array is needed."),
    ("abc", InputTypeError, "{} must be real numbers (float32 or float64) and has dtype <U3. Turn text into numbers"),
    (7.0, InputError, "{} must have 2 dimensions, (rows, columns), and has shape ()."),
    (ONES, InputError, "{} must have 2 dimensions, (rows, columns), and has shape (4,). Use .reshape(-1, 1)"),
    (np.ones((4, 3, 1)), InputError, "{} must have 2 dimensions, (rows, columns), and has shape (4, 3, 1)."),
    ([[1.0], [1.0, 2.0], [1.0], [1.0]], InputError, "{} cannot be read as one array; all its rows must have the same"),
    (PHI.astype(object), InputTypeError, "{} must be real numbers (float32 or float64) and has dtype object. Convert"),
    ([[None, 1.0, 2.0]] * 4, InputTypeError, "what fails to convert is what to mend (None, text, lists)."),
    ([[2**70, 1, 2]] * 4, InputTypeError, "has dtype object. Convert it with .astype(np.float64)"),
    ({"a": [1.0]}, InputTypeError, "has dtype object."),
    (PHI * 1j, InputTypeError, "has dtype complex128. Values here are real: take .real if the imaginary part is 0."),
    (PHI.astype(np.longdouble), InputTypeError, "Convert it with .astype(np.float64)."),
    (PHI.astype("M8[s]"), InputTypeError, "Subtract a start and divide by np.timedelta64(1, 's') to get numbers."),
    (PHI.astype("m8[s]"), InputTypeError, "Divide it by np.timedelta64(1, 's') to get numbers."),
    (np.zeros(4, [("a", "f8")]), InputTypeError, "must be real numbers"),
    (np.ma.masked_array(PHI, PHI == 3.0), InputError, "{} has 1 masked entries. Drop those rows or fill them"),
    (
        np.where(PHI == 3.0, np.nan, PHI),
        InputError,
        "{} has 1 entry that is NaN or infinite, the first at row 1, column 2",
    ),
    (
        np.where(PHI == 1.0, -np.inf, PHI),
        InputError,
        "{} has 4 entries that are NaN or infinite, the first at row 0, col",
    ),
]


@pytest.mark.parametrize(("value", "kind", "message"), NOT_MATRICES)
def test_what_is_no_matrix_of_features(value, kind, message):
    with refuses(kind, message.format("features")):
        from_arrays(features=value)
    with refuses(kind, message.format("next_features")):
        from_arrays(next_features=value)
    with refuses(kind, message.format("table")):
        from_table(table=value)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: from_arrays(features=np.ones((0, 3))), "features is empty, with shape (0, 3): at least one row"),
        (lambda: from_arrays(features=np.ones((4, 0))), "features has no columns, with shape (4, 0)"),
        (lambda: from_arrays(next_features=PHI[:3]), "next_features has 3 rows and the log has 4: they must agree."),
        (lambda: from_arrays(next_features=PHI[:, :2]), "next_features has 2 columns and 3 are needed."),
        (lambda: from_arrays(rewards=np.ones(5)), "rewards has 5 entries and the log has 4 rows: they must agree."),
        (lambda: from_table(table=np.ones((0, 3))), "table is empty, with shape (0, 3)"),
        (lambda: from_table(states=[]), "states is empty: at least one row is needed."),
        (lambda: from_table(states=[0, 1, 2]), "rewards has 4 entries and the log has 3 rows: they must agree."),
        (lambda: from_table(next_states=[0, 1]), "next_states has 2 entries and the log has 4 rows: they must agree."),
        (lambda: Transitions([], [], []), "rewards is empty"),
    ],
)
def test_wrong_lengths_and_empty_logs(build, message):
    with refuses(InputError, message):
        build()


@pytest.mark.parametrize("side", ["features", "next_features"])
def test_dense_beside_sparse(side):
    with refuses(InputTypeError, "features and next_features must both be dense or both be sparse matrices."):
        from_arrays(**{side: sp.csr_array(PHI)})


# ---- sparse matrices


def broken(**parts):
    matrix = sp.csr_array(PHI + 5.0)
    for name, part in parts.items():
        setattr(matrix, name, part)
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (
            broken(indptr=np.array([0, 3, 6, 9, 13])),
            "is a sparse matrix with broken indices: Last value of index pointer",
        ),
        (broken(indptr=np.array([0, 3, 2, 9, 12])), "indptr must be a non-decreasing sequence. Build it again from"),
        (broken(indptr=np.array([0, 3, 12])), "is a sparse matrix with broken indices"),
        (broken(indptr=np.array([1, 3, 6, 9, 12])), "index pointer should start with 0"),
        (broken(indices=np.array([0, 1, -2] * 4)), "indices must be >= 0"),
        (broken(indices=np.array([0, 1, 3] * 4)), "indices must be < 3"),
        (broken(indices=np.array([0, 1, 2**40] * 4)), "indices must be < 3"),
        (broken(data=np.ones(5)), "is a sparse matrix with broken indices"),
        (broken(data=np.where(np.arange(12) == 7, np.nan, 1.0)), "NaN or infinite, the first at row 2, column 1 (nan)"),
        (sp.coo_array(np.where(PHI == 3.0, np.inf, PHI)), "NaN or infinite, the first at row 1, column 2 (inf)"),
        (sp.csr_array((0, 3)), "is empty, with shape (0, 3)"),
        (sp.csr_array((4, 0)), "has no columns"),
        (sp.coo_array(ONES), "must have 2 dimensions"),
    ],
)
def test_sparse_matrices_that_cannot_be_used(matrix, message):
    with refuses(InputError, message):
        Problem.from_arrays(matrix, ONES, matrix)
    if matrix.shape[0]:
        with pytest.raises(InputError, match=r"^next_features"):
            Problem.from_arrays(sp.csr_array(PHI), ONES, matrix)
    with pytest.raises(InputError, match=r"^table"):
        from_table(table=matrix)


@pytest.mark.parametrize("kind", [np.complex128, np.longdouble])
def test_sparse_matrices_of_other_numbers(kind):
    with refuses(InputTypeError, f"features must be real numbers (float32 or float64) and has dtype {np.dtype(kind)}"):
        from_sparse(PHI.astype(kind))


# ---- indices


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ([0, 1, -1, 2], InputError, "must be in [0, 4), which is where the table has rows; row 2 has -1"),
        ([0, 1, 4, 2], InputError, "row 2 has 4 (1 of 4 rows are outside). Indices count from 0."),
        (np.array([0, 1, 2**64 - 1, 2], np.uint64), InputError, "row 2 has 18446744073709551615 (1 of 4 rows"),
        (np.array([-(2**63), 0, 1, 2]), InputError, "row 0 has -9223372036854775808"),
        (
            [0.0, 1.0, 2.0, 3.0],
            InputTypeError,
            "must be integers and has dtype float64. Convert them with .astype(np.int64)",
        ),
        ([True, False, True, True], InputTypeError, "A mask becomes indices with np.flatnonzero."),
        ([0, 1, 2, 2**70], InputTypeError, "must be integers and has dtype object"),
        (np.array([0, 1, 2, 3], object), InputTypeError, "has dtype object. Convert them with .astype(np.int64)."),
        (
            ["a", "b", "c", "d"],
            InputTypeError,
            "must be integers and has dtype <U1. Names become indices with np.unique(names, return_inverse=True).",
        ),
        (
            [[0], [1], [2], [3]],
            InputError,
            "must have 1 dimension, one entry a row, and has shape (4, 1). Use .ravel().",
        ),
        (3, InputTypeError, "must have one entry a row and is an int."),
        (None, InputTypeError, "is None and an array is needed."),
        ({1, 2, 3, 0}, InputTypeError, "must have one entry a row and is a set."),
        ((k for k in range(4)), InputTypeError, "must have one entry a row and is a generator."),
        (np.array(["2020-01-01"] * 4, "M8[D]"), InputTypeError, "must be integers and has dtype datetime64[D]"),
        (np.ma.masked_array([0, 1, 2, 3], [0, 0, 1, 0]), InputError, "has 1 masked entries."),
    ],
)
@pytest.mark.parametrize("name", ["states", "next_states"])
def test_indices_that_lead_nowhere(name, value, kind, message):
    with pytest.raises(kind, match="^" + name + ".*" + re.escape(message)):
        from_table(**{name: value})
    if kind is InputTypeError and name == "next_states":  # not even where nothing follows
        with pytest.raises(kind, match="^" + name + ".*" + re.escape(message)):
            from_table(**{name: value}, terminated=ONES)


# ---- scalars of rows

NOT_COLUMNS = [
    ("abc", InputTypeError, "must have one entry a row and is a str"),
    (np.ones((4, 1)), InputError, "must have 1 dimension, one entry a row, and has shape (4, 1). Use .ravel()."),
    (np.ones(5), InputError, "has 5 entries and the log has 4 rows: they must agree."),
    ([], InputError, "has 0 entries and the log has 4 rows: they must agree."),
    ([1j] * 4, InputTypeError, "must be real numbers (float32 or float64) and has dtype complex128"),
    (["1"] * 4, InputTypeError, "must be real numbers (float32 or float64) and has dtype <U1"),
    ([1.0, None, 1.0, 1.0], InputTypeError, "must be real numbers (float32 or float64) and has dtype object"),
    ([[1.0], [1.0, 2.0]], InputError, "cannot be read as one array"),
    (np.ones(4, np.longdouble), InputTypeError, "Convert it with .astype(np.float64)."),
    (np.ones(4, "M8[D]"), InputTypeError, "must be real numbers (float32 or float64) and has dtype datetime64[D]"),
    (np.ma.masked_array(ONES, [0, 1, 0, 0]), InputError, "has 1 masked entries. Drop those rows or fill them"),
    (sp.csr_array(np.ones((1, 4))), InputTypeError, "is a sparse matrix and a dense array is needed here."),
    (np.broadcast_to(0.5, (2, 2)), InputError, "must have 1 dimension"),
]
NOT_FINITE = [
    ([1.0, np.nan, 1.0, np.inf], InputError, "has 2 entries that are NaN or infinite, the first at row 1 (nan)"),
    ([1.0, 1.0, -np.inf, 0.0], InputError, "has 1 entry that is NaN or infinite, the first at row 2 (-inf)"),
]


@pytest.mark.parametrize("build", [from_arrays, from_table, from_sparse])
@pytest.mark.parametrize("name", ["rewards", "discount", "terminated", "ratios", "weights"])
def test_what_is_no_column(build, name):
    for value, kind, message in NOT_COLUMNS + (NOT_FINITE if name != "terminated" else []):
        if name == "discount" and isinstance(value, str):
            continue
        with pytest.raises(kind, match="^" + name + ".*" + re.escape(message)):
            build(**{name: value})
    if name == "rewards":
        with refuses(InputTypeError, "rewards is None and an array is needed."):
            build(rewards=None)


@pytest.mark.parametrize("build", [from_arrays, from_table, from_sparse, from_log])
def test_values_out_of_range(build):
    for name in ("ratios", "weights"):
        with refuses(InputError, f"{name} must be finite and at least 0; row 2 has -1 (2 of 4 rows are outside)."):
            build(**{name: [1.0, 2.0, -1.0, -2.0]})
    with refuses(InputError, "weights are all 0: no row would count. Give at least one row a positive weight."):
        build(weights=np.zeros(4))
    with refuses(InputError, "weights add up to more than float64 can hold. Divide them by their largest value."):
        build(weights=np.full(4, 1.7e308))
    for value in (0.5, 2, -1, np.nan):
        with refuses(InputError, f"terminated must be True or False (or 1 and 0) in each row; row 1 has {value}"):
            build(terminated=[0, value, 0, 1])


@pytest.mark.parametrize("build", [from_arrays, from_table, from_sparse, from_log])
def test_discounts(build):
    for value in (-0.1, 1.0000001, 2, np.nan, np.inf, -np.inf, 1 + 1e-15, -5e-324):
        with refuses(InputError, "discount must be in [0, 1], not "):
            build(discount=value)
        if np.isfinite(value):
            with refuses(InputError, "discount must be in [0, 1]; row 3 has "):
                build(discount=[0.5, 0.0, 1.0, value])
    for value in ("0.9", True, 1j, {}, object(), b"1"):
        with refuses(InputTypeError, "discount must be a real number, not "):
            build(discount=value)
    with refuses(InputTypeError, "discount is None and an array is needed."):
        build(discount=None)
    with refuses(InputError, "discount has 1 masked entries"):
        build(discount=np.ma.masked)
    for value in (-0.0, 0, 0.0, np.float32(0), np.array(0.0), -0.0 * ONES):
        np.testing.assert_array_equal(build(discount=value).moments().A, build(terminated=ONES).moments().A)
    for value in (1, 1.0, np.float32(1), np.array(1.0), ONES, [1] * 4, [True] * 4):
        np.testing.assert_array_equal(build(discount=value).rows.records["discount"], 1.0)


@pytest.mark.parametrize("build", [from_arrays, from_table, from_sparse, from_log])
def test_ridges(build):
    for value in (-1, -1e-300, np.nan, np.inf):
        with refuses(InputError, "ridge must be finite and at least 0, not "):
            build(ridge=value)
    for value in (None, "1", 1j, True, ONES, [0.1]):
        with refuses(InputTypeError, "ridge must be a real number, not "):
            build(ridge=value)
    for value in (0, -0.0, 5e-324, 1e-300, 1e-20, np.float32(0.5), np.array(2.0), 1e20, 1e100):
        assert_sound(build(ridge=value))


def test_a_log_and_a_problem_of_the_wrong_kind():
    for thing in (PHI, None, [PHI], {"states": PHI}):
        with refuses(
            InputTypeError, f"log must be a Transitions, not {type(thing).__name__}. Arrays of features go to"
        ):
            Problem.from_transitions(thing)


# ---- sizes that float64 cannot square


@pytest.mark.parametrize("build", [from_arrays, from_table, from_sparse])
@pytest.mark.parametrize(
    ("units", "message"),
    [
        (
            [1.0, 1e200, 1.0],
            "features of column 1 are at most 2e+200 in size, and 1e-50 to 1e+50 is what can be computed",
        ),
        ([1.0, 1.0, 1e-300], "features of column 2 are at most 3e-300 in size"),
        ([1e-320, 1.0, 1.0], "features of column 0 are at most 2e-320 in size"),
        ([1e300] * 3, "in float64. Rescale the column; its weight changes by the inverse."),
    ],
)
def test_features_that_cannot_be_squared(build, units, message):
    """Their moments would overflow to NaN, or vanish and take the column with them."""
    first = "table" if build is from_table else "features"
    with refuses(InputError, message):
        build(**{first: PHI * units})


def test_features_that_cannot_be_squared_in_single_precision():
    for unit, size in ((1e20, "3e+20"), (1e-20, "3e-20")):
        table = (PHI * [1.0, 1.0, unit]).astype(np.float32)
        with refuses(
            InputError, f"column 2 are at most {size} in size, and 1e-15 to 1e+15 is what can be computed with"
        ):
            from_table(table=table)
        with refuses(InputError, "Rescale the column or give the features as float64; its weight changes"):
            from_table(table=table)
        assert_sound(from_table(table=table.astype(np.float64)))


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
def test_small_features_hidden_behind_others(make):
    """What counts is the size of a column in states that have a weight; next states do not hide it."""
    tiny = PHI * [1.0, 1e-200, 1.0]
    with refuses(InputError, "features of column 1 are at most 2e-200 in size"):
        Problem.from_arrays(make(tiny), ONES, make(AHEAD))
    with refuses(InputError, "features of column 1 are at most 2e-200 in size"):
        Problem.from_table(make(np.vstack([tiny, PHI])), CHAIN[0], ONES, np.array(CHAIN[0]) + 4)
    healthy = np.vstack([tiny, PHI[:1]])
    ahead = np.vstack([AHEAD, AHEAD[:1]])
    with refuses(InputError, "features of column 1 are at most 2e-200 in size"):
        Problem.from_arrays(make(healthy), np.ones(5), make(ahead), weights=[1, 1, 1, 1, 0])
    assert_sound(Problem.from_arrays(make(healthy), np.ones(5), make(ahead)))
    # A column that only next states have may be as small as it likes.
    assert_sound(Problem.from_arrays(make(PHI), ONES, make(tiny)))


@pytest.mark.parametrize("build", [from_arrays, from_table, from_sparse, from_log])
def test_rewards_and_ratios_that_cannot_be_squared(build):
    for size in (1e200, 1.7e308, 1e-200, 5e-324):
        with refuses(InputError, "rewards are "):
            build(rewards=np.array([0.0, 0.0, -size, 0.0]))
        with refuses(InputError, "ratios are "):
            build(ratios=np.full(4, size))
    with refuses(
        InputError, "rewards are 1e+200 at most, and 1e-50 to 1e+50 is what can be computed with. Rescale them;"
    ):
        build(rewards=ONES * 1e200)
    with refuses(
        InputError, "ratios are 1e+30 at most, and 1e-50 to 1e+50 is what can be computed with, rewards included."
    ):
        build(rewards=ONES * 1e30, ratios=ONES * 1e30)
    for rewards in ([1e-300, 1.0, 0.0, -1.0], [1e40, 0.0, 1.0, 1e-300], [1e-40] * 4):
        assert_sound(build(rewards=np.array(rewards)))


@pytest.mark.parametrize("unit", [1e-45, 1e-20, 1e20, 1e45])
@pytest.mark.parametrize("build", [from_arrays, from_table, from_sparse])
def test_units_within_the_range(build, unit):
    """Far from 1, but the answers are those of other units."""
    plain = assert_sound(build())
    first = {"table": PHI * unit} if build is from_table else {"features": PHI * unit, "next_features": AHEAD * unit}
    scaled = assert_sound(build(**first))
    np.testing.assert_allclose(scaled.theta * unit, plain.theta, rtol=1e-10)
    np.testing.assert_allclose(assert_sound(build(rewards=ONES * unit)).theta, plain.theta * unit, rtol=1e-10)


# ---- right answers at the edge


@pytest.mark.parametrize("build", [from_arrays, from_table, from_sparse, from_log])
@pytest.mark.parametrize(
    "scalars",
    [
        {"rewards": np.zeros(4)},
        {"rewards": -0.0 * ONES},
        {"ratios": np.zeros(4)},
        {"ratios": [0.0, 0.0, 2.0, 0.0]},
        {"ratios": [1e-300, 1.0, 0.0, 0.5]},
        {"ratios": [1e20, 1.0, 0.0, 0.5]},
        {"weights": [0.0, 0.0, 1.0, 0.0]},
        {"weights": [1e-300, 0.0, 1e-300, 1e-300]},
        {"weights": [5e-324, 5e-324, 0.0, 5e-324]},
        {"weights": [1e300, 1.0, 1.0, 1.0]},
        {"weights": [True, False, True, True]},
        {"terminated": [1, 1, 1, 1]},
        {"discount": [5e-324, 1.0, 0.5, 0.0]},
        {"discount": 1.0},
        {"rewards": np.array([1.0, 0.0, 2.0, 1.0], ">f4"), "discount": np.array([0.5] * 4, ">f8")},
        {"rewards": np.broadcast_to(1.0, 4), "weights": np.broadcast_to(2.0, 4), "ratios": np.arange(8.0)[::2]},
    ],
)
def test_unusual_scalars_are_sound(build, scalars):
    assert_sound(build(**scalars))


@pytest.mark.parametrize("make", [np.array, sp.csr_array])
@pytest.mark.parametrize(
    ("phi", "next_phi", "rewards"),
    [
        ([[1.0]], [[1.0]], [1.0]),
        ([[0.0]], [[1.0]], [1.0]),
        ([[1.0]], [[0.0]], [0.0]),
        ([[1.0, 1.0]], [[1.0, 1.0]], [-3.0]),
        ([[1.0, 0.0], [0.0, 0.0]], [[0.0, 1.0], [0.0, 0.0]], [1.0, 1.0]),
        ([[1.0], [-1.0]], [[1.0], [-1.0]], [1.0, -1.0]),
        (np.ones((5, 7)), np.ones((5, 7)), np.arange(5.0)),
    ],
)
def test_tiny_and_degenerate_problems_are_sound(make, phi, next_phi, rewards):
    for scalars in ({"discount": 1.0}, {"discount": 0.5}, {"terminated": np.ones(len(rewards))}, {"ridge": 0.1}):
        assert_sound(Problem.from_arrays(make(phi), rewards, make(next_phi), **scalars))


# ---- arguments of methods of Problem


@pytest.mark.parametrize("build", [from_arrays, from_table, from_sparse])
def test_vectors(build):
    problem = build()
    calls = {
        "theta": [problem.residual, problem.mspbe, problem.relative_residual, lambda v: problem.gradient(v, ONES[:3])],
        "omega": [lambda v: problem.gradient(ONES[:3], v)],
        "x": [problem.times_A],
        "y": [problem.times_At, problem.times_C],
    }
    for name, functions in calls.items():
        for call in functions:
            with refuses(InputError, f"{name} has 2 entries and the problem has 3 features."):
                call([1.0, 2.0])
            with refuses(InputError, f"{name} has 1 entry that is NaN or infinite, the first at feature 1 (nan)"):
                call([1.0, np.nan, 2.0])
            for bad in (None, "abc", 3.0, [1j, 1j, 1j], [None, 1.0, 2.0]):
                with pytest.raises(InputTypeError, match=f"^{name} "):
                    call(bad)
            with refuses(InputError, f"{name} must have 1 dimension"):
                call(np.ones((3, 1)))
            call([1, 2, 3]), call(np.ones(3, np.float32)), call(np.ones(6)[::2])


# ---- arguments of solve


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"passes": -1}, InputError, "passes must be finite and at least 0, not -1."),
        ({"passes": np.nan}, InputError, "passes must be finite and at least 0, not nan."),
        ({"passes": np.inf}, InputError, "passes must be finite and at least 0, not inf."),
        ({"passes": "2"}, InputTypeError, "passes must be a real number, not a str."),
        ({"passes": True}, InputTypeError, "passes must be a real number, not a bool."),
        ({"passes": 10**400}, InputError, "passes must be a number that float64 can hold"),
        ({"epochs": -1}, InputError, "epochs must be at least 0, not -1."),
        ({"epochs": 2.0}, InputTypeError, "epochs must be a whole number (int), not a float 2.0. Write 2."),
        ({"epochs": 1.5}, InputTypeError, "epochs must be a whole number (int), not a float 1.5."),
        ({"epochs": "3"}, InputTypeError, "epochs must be a whole number (int), not a str."),
        ({"epochs": True}, InputTypeError, "epochs must be a whole number (int), not a bool True."),
        (
            {"passes": 1, "epochs": 1},
            InputError,
            "give passes or epochs, not both: they are two ways to state one budget",
        ),
        ({"tolerance": 0}, InputError, "tolerance must be finite and above 0, not 0."),
        ({"tolerance": -1e-3}, InputError, "tolerance must be finite and above 0, not -0.001."),
        ({"tolerance": np.nan}, InputError, "tolerance must be finite and above 0, not nan."),
        ({"tolerance": "small"}, InputTypeError, "tolerance must be a real number, not a str."),
        ({"record": "foo"}, InputError, "record must be a number of passes or \"epoch\", not 'foo'."),
        ({"record": 0}, InputError, "record must be finite and above 0, not 0."),
        ({"record": -0.5}, InputError, "record must be finite and above 0, not -0.5."),
        ({"record": True}, InputTypeError, "record must be a real number, not a bool."),
        ({"seed": -1}, InputError, "seed must be at least 0, not -1."),
        ({"seed": 1.0}, InputTypeError, "seed must be a whole number (int), not a float 1.0. Write 1."),
        ({"seed": "one"}, InputTypeError, "seed must be a whole number (int), not a str."),
        ({"seed": None}, InputTypeError, "seed must be a whole number (int), not None."),
        ({"theta": np.ones(2)}, InputError, "theta has 2 entries and the problem has 3 features."),
        (
            {"theta": [1.0, np.inf, 0.0]},
            InputError,
            "theta has 1 entry that is NaN or infinite, the first at feature 1 (inf)",
        ),
        ({"omega": np.full(3, np.nan)}, InputError, "omega has 3 entries that are NaN or infinite"),
        ({"omega": np.ones((3, 1))}, InputError, "omega must have 1 dimension"),
        ({"theta": "zero"}, InputTypeError, "theta "),
        ({"callback": 3}, InputTypeError, "callback must be callable, not int."),
    ],
)
def test_arguments_of_solve(method, arguments, kind, message):
    for problem in (from_arrays(), from_table(), from_sparse()):
        with refuses(kind, message):
            method.solve(problem, **arguments)


@pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
def test_what_is_no_problem(method):
    for thing in (None, PHI, Transitions(PHI, ONES, AHEAD), "problem"):
        with refuses(InputTypeError, f"problem must be a Problem, not {type(thing).__name__}."):
            method.solve(thing)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (SVRG, "steps_per_row"),
        (SCSG, "batch_fraction"),
        (BatchingSVRG, "initial_fraction"),
        (BatchingSVRG, "growth"),
        (BatchingSVRG, "variance"),
        (BatchingSVRG, "rho"),
    ],
)
def test_settings_of_methods(make, name):
    for value in (-1, 0, np.nan, np.inf):
        with pytest.raises(InputError, match=f"^{name} must be"):
            make(**{name: value})
    for value in ("1", 1j, True, [1.0]):
        with pytest.raises(InputTypeError, match=f"^{name} must be a real number"):
            make(**{name: value})


def test_every_error_is_of_one_tree():
    """Code that catches ValueError and TypeError keeps working, and all of ours can be caught at once."""
    assert issubclass(InputError, ValueError) and issubclass(InputTypeError, TypeError)
    assert issubclass(InputError, ValuateError) and issubclass(InputTypeError, ValuateError)
