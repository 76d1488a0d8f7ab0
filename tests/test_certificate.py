"""Every number of a certificate against its definition, and every branch of its verdict on a problem of its own."""

import dataclasses
import pickle
import runpy

import numpy as np
import pytest
import scipy.sparse as sp

import pages
from battery import LAYOUTS, case
from valuate import GTD2, LSTD, SVRG, Certificate, Problem, Status, certificate, spectra
from valuate.environments import BairdStar, BoyanChain, CartPole, RandomMDP, TabularMDP
from valuate.errors import InputError, InputTypeError
from valuate.features.paper import cart_pole
from valuate.verdict import Limit


def noisy(n=4000, dim=6, *, seed=0, next_scale=0.5, **more):
    """Features of unit size, next features that are partly them, and noise in the rewards."""
    rng = np.random.default_rng(seed)
    phi = rng.normal(size=(n, dim))
    next_phi = next_scale * phi + 0.5 * rng.normal(size=(n, dim))
    return Problem.from_arrays(phi, phi @ np.ones(dim) + rng.normal(size=n), next_phi, discount=0.8, **more)


# ---- the numbers


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kinds", [{}, {"ratios": True, "weights": True}, {"ridge": 0.1}])
def test_the_numbers_by_their_definitions(layout, kinds):
    given = case(layout, **kinds)
    o = given.oracle
    solution = SVRG().solve(given.problem, passes=9)
    found = solution.certificate(given.problem)
    unit = 1 / np.sqrt(np.diag(o.C))
    symmetric = 0.5 * (o.A + o.A.T) * unit * unit[:, None]
    assert found.mspbe == pytest.approx(o.mspbe(solution.theta), rel=1e-9)
    assert found.mspbe_at_zero == pytest.approx(o.mspbe(np.zeros(5)), rel=1e-9)
    assert found.relative_residual == pytest.approx(o.relative_residual(solution.theta), rel=1e-9)
    assert found.least_eigenvalue == pytest.approx(np.linalg.eigvalsh(symmetric)[0], abs=1e-12)
    assert found.condition == pytest.approx(np.linalg.cond(o.C * unit * unit[:, None]), rel=1e-8)
    assert found.effective_share == pytest.approx((o.w * o.rho).sum() ** 2 / (o.w * o.rho**2).sum() / o.n, rel=1e-12)
    assert (found.rank, found.rank_A, found.n_rows, found.dim) == (5, 5, 37, 5)
    assert found.eigenvalue_exact and found.condition_exact and found.norm == "C^-1" and found.floor_error == 0
    assert found.ratio == found.mspbe / found.floor


def test_units_do_not_matter():
    rng = np.random.default_rng(4)
    phi, next_phi = rng.normal(size=(2, 500, 4))
    units = np.array([1e-5, 1.0, 1e4, 3.0])
    numbers = []
    for unit in (np.ones(4), units):
        problem = Problem.from_arrays(phi * unit, phi.sum(axis=1), next_phi * unit, discount=0.7)
        solution = SVRG().solve(problem, epochs=0, theta=0.8 / unit)
        found = solution.certificate(problem).as_dict()
        numbers.append([value for value in found.values() if isinstance(value, float)])
    np.testing.assert_allclose(numbers[0], numbers[1], rtol=1e-6, atol=1e-12)


def test_passes_are_counted_and_kept():
    problem = noisy()
    solution = SVRG().solve(problem, passes=4)  # has measured b and diag(C), and nothing else
    assert solution.certificate(problem).passes == 5  # residual, C, errors, lengths, A
    assert solution.certificate(problem).passes == 3
    assert SVRG().solve(noisy(), epochs=0).certificate(noisy()).passes == 6
    with pytest.raises(InputError, match="passes is 5, and a certificate needs at least 6"):
        solution.certificate(problem, passes=5)


def counted(problem):
    """Count the sums over rows that are taken from now on."""
    calls = []
    sums = problem.rows.sums

    def spied(*args, **kwargs):
        calls.append(1)
        return sums(*args, **kwargs)

    problem.rows.sums = spied
    return calls


@pytest.mark.parametrize("passes", [6, 10, 40, 100])
def test_products_bound_what_is_too_large_to_be_formed(monkeypatch, passes):
    problem = noisy(dim=40)
    exact = SVRG().solve(problem, passes=4).certificate(problem)
    monkeypatch.setattr(certificate, "FORMED", 0.0)
    problem = noisy(dim=40)
    solution = SVRG().solve(problem, passes=4)
    calls = counted(problem)
    found = solution.certificate(problem, passes=passes)
    assert found.norm == "diag(C)^-1" and (found.rank, found.rank_A) == (None, None)
    assert found.passes <= passes and len(calls) == found.passes - 2  # errors and lengths are not sums of vectors
    assert not problem.knows("C") and not problem.knows("A")
    assert found.least_eigenvalue >= exact.least_eigenvalue - 1e-12
    assert found.condition <= exact.condition * (1 + 1e-12)
    if passes == 100:
        assert found.least_eigenvalue == pytest.approx(exact.least_eigenvalue, rel=1e-3)
        assert found.condition == pytest.approx(exact.condition, rel=1e-3)
    assert "at most" in repr(found) and "at least" in repr(found) and "unknown, unknown of 40" in repr(found)
    # Features here are nearly uncorrelated: the two norms agree.
    assert found.ratio == pytest.approx(exact.ratio, rel=0.1)


def test_lanczos_beside_the_dense_solvers(monkeypatch):
    problem = noisy(dim=40)
    exact = spectra.least_eigenvalue(problem), spectra.condition(problem)
    monkeypatch.setattr(spectra, "DENSE", 0)
    bound = spectra.least_eigenvalue(problem), spectra.condition(problem)
    for whole, part in zip(exact, bound, strict=True):
        assert whole.exact and not part.exact
        assert part.value == pytest.approx(whole.value, rel=1e-8)


def test_lanczos_on_spectra_that_end_early():
    matrix = np.diag([3.0, 3.0, 1.0, 1.0, -2.0])
    assert spectra.lanczos(lambda x: matrix @ x, np.ones(5), 60) == pytest.approx((-2.0, 3.0))
    assert spectra.lanczos(lambda x: 0 * x, np.ones(5), 3) == (0.0, 0.0)
    one = spectra.lanczos(lambda x: matrix @ x, np.ones(5), 1)
    assert one == pytest.approx((1.2, 1.2))


# ---- the verdict


def test_unusable_when_it_diverged():
    problem = noisy()
    solution = GTD2(step_theta=1e3, step_omega=1e3).solve(problem, passes=3)
    assert solution.status is Status.DIVERGED
    found = solution.certificate(problem)
    assert found.limit is Limit.UNUSABLE and found.verdict.startswith("Not usable: the run diverged")


def test_unusable_when_zero_weights_are_better():
    problem = noisy()
    found = SVRG().solve(problem, epochs=0, theta=np.full(6, 99.0)).certificate(problem)
    assert found.limit is Limit.UNUSABLE and "zero weights would do better" in found.verdict


def test_unusable_when_it_stalled_far_away():
    problem = noisy(n=500)
    solution = GTD2(step_theta=0.05, step_omega=0.05).solve(problem, passes=400, tolerance=1e-9)
    assert solution.status is Status.STALLED
    found = solution.certificate(problem)
    assert found.limit is Limit.UNUSABLE and "the run stalled" in found.verdict and "LSTD" in found.verdict


def test_singular_when_the_equations_contradict_each_other():
    """The second feature is a constant that never changes, and its rewards do not add up to 0."""
    rng = np.random.default_rng(0)
    phi = np.column_stack([rng.normal(size=800), np.ones(800)])
    next_phi = np.column_stack([rng.normal(size=800), np.ones(800)])
    problem = Problem.from_arrays(phi, 1 + phi[:, 0], next_phi, discount=1.0)
    solution = LSTD().solve(problem)
    assert solution.status is Status.SINGULAR
    found = solution.certificate(problem)
    assert found.limit is Limit.SINGULAR and found.rank_A == 1 and found.rank == 2
    assert "contradict each other: A has rank 1 of 2" in found.verdict
    # Before it is as good as any, the optimiser has something to do.
    early = SVRG().solve(problem, epochs=0).certificate(problem)
    assert early.limit is Limit.OPTIMISER


def test_the_optimiser_and_how_far_it_has_to_go():
    problem = noisy()
    solution = SVRG().solve(problem, passes=6)
    found = solution.certificate(problem)
    assert found.limit is Limit.OPTIMISER and found.ratio > 0.01
    assert "standard errors away" in found.verdict and "more passes" in found.verdict
    goal = float(found.verdict.split("tolerance=")[1].split(",")[0])
    assert goal == pytest.approx(found.relative_residual * np.sqrt(0.01 / found.ratio), rel=0.3)
    there = SVRG().solve(problem, passes=2000, tolerance=goal).require().certificate(problem)
    assert there.limit is Limit.DATA or there.ratio < 0.02  # the tolerance is given with one digit


def test_singular_when_weights_are_left_open():
    problem = noisy(n=500)
    rows = problem.rows
    twice = np.hstack([rows.stored(0, rows.n_stored)[:, :6]] * 2)
    records = rows.records
    problem = Problem.from_table(twice, records["state"], records["reward"], records["next"], discount=0.8)
    solution = LSTD().solve(problem)
    assert solution.status is Status.CONVERGED
    found = solution.certificate(problem)
    assert found.limit is Limit.SINGULAR and (found.rank, found.rank_A) == (6, 6)
    assert "A has rank 6 of 12. The weights are not determined, the values of states may be" in found.verdict


def test_singular_on_bairds_star():
    process = BairdStar()
    problem = Problem.from_transitions(process.collect(2000, seed=1), process.features)
    found = LSTD().solve(problem).certificate(problem)
    assert found.limit is Limit.SINGULAR and found.rank_A == 7
    assert found.effective_share == pytest.approx(1 / 7, abs=0.03) and found.least_eigenvalue < 0


def test_ratios_that_leave_few_rows():
    ratios = np.random.default_rng(3).pareto(1.05, 4000) + 1e-3
    problem = noisy(ratios=ratios)
    found = LSTD().solve(problem).certificate(problem)
    assert found.limit is Limit.RATIOS and found.effective_share < 0.1
    rows = ratios.sum() ** 2 / (ratios**2).sum()
    assert f"so small, {rows:,.0f} of 4,000 rows" in found.verdict


def test_a_negative_eigenvalue():
    """The smallest case (Tsitsiklis and Van Roy 1996): the next state has twice the feature."""
    rng = np.random.default_rng(0)
    phi = np.ones((1000, 1))
    problem = Problem.from_arrays(phi, rng.normal(1.0, 1.0, 1000), 2 * phi, discount=0.9)
    found = LSTD().solve(problem).certificate(problem)
    assert found.limit is Limit.INDEFINITE and found.least_eigenvalue == pytest.approx(1 - 1.8)
    assert "A's symmetric part has a negative eigenvalue (-0.8)" in found.verdict
    diverged = SVRG(direction="td", step_theta=5.0).solve(problem, passes=50)
    assert diverged.status is Status.DIVERGED
    assert 'direction="saddle"' in diverged.certificate(problem).verdict


@pytest.mark.parametrize("process", [BoyanChain(), RandomMDP(50, 3, 10, 0.9)])
def test_the_data_and_nothing_else(process):
    problem = Problem.from_transitions(process.collect(5000, seed=1), process.features, discount=process.discount)
    found = LSTD().solve(problem).certificate(problem)
    assert found.limit is Limit.DATA and found.effective_share == 1.0
    assert found.verdict == (
        "At statistical accuracy: the MSPBE is less than 1e-06 of its floor. More passes would not help, more rows "
        "would."
    )


def test_an_exact_fit():
    """Also where three rows are too few for A's symmetric part to be positive."""
    process = TabularMDP(np.array([[[0.0, 1.0]], [[1.0, 0.0]]]), np.array([1.0, 3.0]).reshape(2, 1, 1), discount=0.5)
    problem = Problem.from_transitions(process.collect(100, seed=0), process.features, discount=0.5)
    found = LSTD().solve(problem).certificate(problem)
    assert found.limit is Limit.DATA and found.verdict.startswith("Exact: the answer fits every row of this log")
    silent = Problem.from_arrays(np.eye(2)[[0, 1, 0]], np.zeros(3), np.eye(2)[[1, 0, 1]])
    again = LSTD().solve(silent).certificate(silent)
    assert again.verdict == found.verdict and again.ratio == 0.0


def test_a_direct_solver_that_finds_no_solution_is_believed():
    """A ring without an end, whose rewards do not add up to 0."""
    rng = np.random.default_rng(0)
    states = rng.integers(0, 5, 2000)
    ring = Problem.from_table(np.eye(5), states, 1 + rng.normal(size=2000), (states + 1) % 5, discount=1.0)
    solution = LSTD().solve(ring)
    assert solution.status is Status.SINGULAR
    found = solution.certificate(ring)
    assert found.limit is Limit.SINGULAR and "contradict each other" in found.verdict
    assert found.rank_A == 4 and "A has rank 4 of 5" in solution.message


def test_a_solution_that_rounding_hides_from_the_rank_is_found():
    """Cart Pole without a ridge: C has condition 1e15, and what counts as rank would decide."""
    process, features = CartPole(), cart_pole()
    log = process.collect(5000, seed=0)
    problem = Problem.from_transitions(log, features.fit(log.states), discount=0.95)
    solution = LSTD().solve(problem)
    assert solution.status is Status.CONVERGED
    assert problem.relative_residual(solution.theta, exact=True) < 1e-8
    found = solution.certificate(problem)
    assert found.limit is Limit.SINGULAR and "The weights are not determined" in found.verdict


def test_the_data_in_the_rough_norm(monkeypatch):
    problem = noisy()
    solution = SVRG(direction="td").solve(problem, passes=40)
    assert solution.certificate(problem).limit is Limit.DATA
    monkeypatch.setattr(certificate, "forms_matrices", lambda problem: False)
    found = solution.certificate(problem)
    assert found.limit is Limit.DATA and found.verdict.endswith(
        "The norm of diag(C)^-1 hardly sees where C is weak, though."
    )
    early = SVRG().solve(problem, passes=6).certificate(problem)  # whose tolerance would be in the other norm
    assert (
        early.limit is Limit.OPTIMISER and "Go on to a residual" in early.verdict and "times smaller" in early.verdict
    )


# ---- the value


def test_it_prints_as_a_table():
    problem = noisy()
    found = LSTD().solve(problem).certificate(problem)
    lines = str(found).splitlines()
    assert str(found) == repr(found) and lines[0] == "Certificate" and len(lines) == 11
    assert all(line.startswith("  ") and len(line) <= 120 for line in lines[1:])
    assert lines[1].split("  ")[-1].strip() == "below 1e-12 in the norm of C^-1"
    assert lines[8].split("  ")[-1].strip() == "4,000 of 4,000 (100.0%)"
    assert lines[-1].strip() == found.verdict


def test_it_is_a_value():
    problem = noisy()
    found = SVRG().solve(problem, passes=3).certificate(problem)
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.mspbe = 0.0
    assert pickle.loads(pickle.dumps(found)) == found and isinstance(found, Certificate)
    flat = found.as_dict()
    assert flat["limit"] == "optimiser" and flat["mspbe"] == found.mspbe and set(flat) == set(found.__slots__)


def test_what_makes_no_sense_is_refused():
    problem = noisy()
    solution = LSTD().solve(problem)
    with pytest.raises(InputTypeError, match="Problem, not ndarray"):
        solution.certificate(np.eye(2))
    with pytest.raises(InputError, match="6 weights and the problem 7 features"):
        solution.certificate(noisy(dim=7))
    with pytest.raises(InputError, match="passes must be finite"):
        solution.certificate(problem, passes=np.nan)


def test_rows_that_say_nothing():
    """All features 0, all ratios 0: finite numbers and a verdict."""
    nothing = Problem.from_arrays(np.zeros((5, 2)), np.ones(5), np.zeros((5, 2)))
    ignored = Problem.from_arrays(np.eye(2)[[0, 1]], [1.0, 2.0], np.eye(2), ratios=[0.0, 0.0])
    for problem in (nothing, ignored):
        found = LSTD().solve(problem).certificate(problem)
        assert found.limit is Limit.SINGULAR and found.rank_A == 0 and found.mspbe == found.ratio == 0.0


def test_wide_sparse_rows():
    rng = np.random.default_rng(2)
    phi = sp.random_array((3000, 20_000), density=1e-3, rng=rng, format="csr")
    problem = Problem.from_arrays(phi, rng.normal(size=3000), phi[rng.permutation(3000)], ridge=1e-3)
    found = SVRG().solve(problem, passes=2).certificate(problem)
    assert found.norm == "diag(C)^-1" and found.rank is None and found.passes <= 10
    assert np.isfinite([found.mspbe, found.floor, found.least_eigenvalue, found.condition]).all()


# ---- what messages say at no extra pass


def test_messages_name_ratios_that_leave_few_rows():
    problem = noisy(ratios=np.random.default_rng(3).pareto(1.05, 4000) + 1e-3)
    rows = LSTD().solve(problem).certificate(problem).effective_share * 4000
    for solver in (LSTD(), SVRG(), GTD2(step_theta=1e3, step_omega=1e3)):
        assert solver.solve(problem, passes=3).message.endswith(
            f" The ratios leave {rows:,.0f} of 4,000 rows effective."
        )
    plain = noisy(ratios=np.random.default_rng(3).uniform(0.5, 2.0, 4000))
    assert "ratios" not in LSTD().solve(plain).message + SVRG().solve(plain, passes=3).message


def test_messages_name_a_c_that_is_known_to_be_bad():
    rng = np.random.default_rng(0)
    phi = rng.normal(size=(300, 3))
    phi = np.column_stack([phi, phi[:, 0] + 1e-5 * rng.normal(size=300)])
    near = Problem.from_arrays(phi, rng.normal(size=300), 0 * phi)
    assert SVRG().solve(near, passes=2).message.endswith("diag(C)^-1.")  # C is not known yet
    for solution in (LSTD().solve(near), SVRG().solve(near, passes=2)):
        assert solution.message.endswith(" C is badly conditioned, 1e+10 or more.")
    true = LSTD().solve(near).certificate(near).condition
    assert 1e10 < true < 1e11
    phi[:, 3] = phi[:, 0]
    twice = Problem.from_arrays(phi, rng.normal(size=300), 0 * phi)
    assert (
        SVRG()
        .solve(twice, passes=2, tolerance=1e-9)
        .message.endswith(" C has rank 3 of 4: the weights are not unique, a small ridge makes them so.")
    )
    assert LSTD().solve(twice).message.count("rank") == 1


# ---- the page


def test_the_page_shows_what_the_script_prints(capsys):
    runpy.run_path(str(pages.DOCS / "examples" / "certificate.py"), run_name="__main__")
    pages.check(pages.DOCS / "certificate.md", capsys.readouterr().out)
