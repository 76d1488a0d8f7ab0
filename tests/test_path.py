"""Ridge paths: LSTD at every ridge, from one factorisation where that will do."""

import re

import numpy as np
import pytest

from battery import LAYOUTS, case
from valuate import LSTD, Moments, Problem, Status, ridge_path
from valuate._kernels.hessenberg import solve_shifted
from valuate.errors import InputError, InputTypeError
from valuate.solvers.path import _Common

RIDGES = [0.0, 1e-8, 1e-4, 1e-2, 1.0, 100.0, 1e-4]


def refuses(kind, message):
    return pytest.raises(kind, match=re.escape(message))


def assert_is_lstd(problem, ridges=RIDGES, rtol=1e-9):
    """The answers, statuses and residuals of LSTD at every ridge."""
    for given in (problem, Moments.of(problem)):
        path = ridge_path(given, ridges)
        assert len(path) == len(ridges)
        np.testing.assert_array_equal(path.ridges, ridges)
        for k, ridge in enumerate(ridges):
            wanted = LSTD().solve(given.with_ridge(ridge))
            np.testing.assert_allclose(
                path.thetas[k], wanted.theta, rtol=rtol, atol=rtol * np.abs(wanted.theta).max(initial=0)
            )
            assert path.statuses[k] is wanted.status
            assert path.mspbe[k] == pytest.approx(problem.with_ridge(0.0).mspbe(wanted.theta), rel=1e-6, abs=1e-20)
    return path


@pytest.mark.parametrize("extras", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_ridge_is_that_of_lstd(layout, extras):
    given = case(layout, n=300, dim=6, ratios=extras, weights=extras, ridge=0.7)
    path = assert_is_lstd(given.problem)
    assert (path.relative_residuals < 1e-12).all()
    assert (np.diff(path.mspbe[:6]) > 0).all()  # a larger ridge leaves more of the log's own equations open


def test_many_features():
    rng = np.random.default_rng(1)
    phi = rng.normal(size=(500, 90)) * np.logspace(0, -3, 90)
    problem = Problem.from_arrays(phi[:-1], rng.normal(size=499), phi[1:], discount=0.95)
    assert_is_lstd(problem, np.logspace(-8, 2, 11), rtol=1e-7)


def test_singular_at_one_ridge_only(monkeypatch):
    """A loop without discount is singular without a ridge: that one alone is solved by itself."""
    solved = []
    solve = LSTD.solve
    monkeypatch.setattr(LSTD, "solve", lambda self, problem: (solved.append(problem.ridge), solve(self, problem))[1])
    for rewards, status in ([1.0, -1.0, 0.0], Status.CONVERGED), ([1.0, 0.0, 0.0], Status.SINGULAR):
        problem = Problem.from_table(np.eye(3), [0, 1, 2], rewards, [1, 2, 0], discount=1.0)
        solved.clear()
        path = ridge_path(problem, [0.0, 0.1, 1.0])
        assert solved == [0.0]
        assert path.statuses == (status, Status.CONVERGED, Status.CONVERGED)
    assert_is_lstd(problem, [0.0, 0.1, 1.0])


def test_a_negative_eigenvalue_makes_a_ridge_singular():
    """Off-policy A may have any eigenvalues: here -1 and 2, so that A + 1 I is singular."""
    problem = Problem.from_arrays([[1.0, 0.0], [0.0, 2.0]], [1.0, 1.0], [[3.0, 0.0], [0.0, 1.0]], discount=1.0)
    np.testing.assert_allclose(problem.moments().A, np.diag([-1.0, 1.0]))
    path = assert_is_lstd(problem, [0.0, 0.5, 1.0, 2.0])
    assert path.statuses[2] is Status.SINGULAR and path.statuses[3] is Status.CONVERGED


def test_singular_rows():
    rng = np.random.default_rng(2)
    phi, following = rng.normal(size=(2, 200, 4))
    twice, next_twice = np.hstack([phi, phi[:, :2]]), np.hstack([following, following[:, :2]])
    problem = Problem.from_arrays(twice, rng.normal(size=200), next_twice, discount=0.9)
    path = ridge_path(problem, [0.0, 1e-3, 1.0])
    for k, ridge in enumerate(path.ridges):
        np.testing.assert_allclose(path.thetas[k], LSTD().solve(problem.with_ridge(ridge)).theta, rtol=1e-8)


def test_units_far_apart():
    rng = np.random.default_rng(3)
    phi, following = rng.normal(size=(2, 400, 5)) * np.geomspace(1e-6, 1e6, 5)
    problem = Problem.from_arrays(phi, rng.normal(size=400), following, discount=0.9)
    path = ridge_path(problem, [0.0, 1e-9, 1.0])
    for k, ridge in enumerate(path.ridges):
        wanted = LSTD().solve(problem.with_ridge(ridge)).theta
        np.testing.assert_allclose(path.thetas[k], wanted, rtol=1e-7)


def test_no_rewards_and_one_feature():
    problem = Problem.from_arrays([[1.0], [2.0]], [0.0, 0.0], [[2.0], [1.0]], discount=0.5)
    path = ridge_path(problem, [0.0, 1.0])
    assert not path.thetas.any() and not path.mspbe.any() and path.statuses == (Status.CONVERGED,) * 2
    problem = Problem.from_arrays([[1.0], [2.0]], [1.0, 3.0], [[2.0], [1.0]], discount=0.5)
    np.testing.assert_allclose(ridge_path(problem, [0.0, 1.5]).thetas[:, 0], [3.5 / 1.5, 3.5 / 3.0])


def test_shifted_solves():
    rng = np.random.default_rng(4)
    h = np.triu(rng.normal(size=(30, 30)), -1)
    h[7, 6] = 0.0
    rhs = rng.normal(size=(30, 3))
    for shift in (0.0, 0.5, 30.0):
        x = rhs.copy()
        assert solve_shifted(h, shift, x, np.empty_like(h)) > 0
        np.testing.assert_allclose(x, np.linalg.solve(h + shift * np.eye(30), rhs), rtol=1e-9, atol=1e-11)
    assert solve_shifted(np.zeros((2, 2)), 0.0, np.ones((2, 1)), np.empty((2, 2))) == 0.0


def test_another_ridge_takes_over_what_is_known(monkeypatch):
    given = case("dense", n=100, dim=4)
    a, b, c = given.problem.moments()
    monkeypatch.setattr(type(given.problem.rows), "cross_and_gram", None)
    other = given.problem.with_ridge(0.5)
    np.testing.assert_allclose(other.moments().A, a + 0.5 * np.eye(4), rtol=1e-15)
    np.testing.assert_allclose(other.moments().C, c + 0.5 * np.eye(4), rtol=1e-15)
    assert other.b is b and given.problem.moments().A is a and not other.moments().A.flags.writeable


def test_the_common_form_is_used_once():
    """What is well conditioned is not solved again for each ridge."""
    given = case("dense", n=300, dim=6)
    plain = Moments.of(given.problem).equations()
    common = _Common(plain.A, plain.b, np.diagonal(plain.C))
    for ridge in RIDGES:
        wanted = np.linalg.solve(given.oracle.A + ridge * np.eye(6), given.oracle.b)
        np.testing.assert_allclose(common.solve(ridge), wanted, rtol=1e-10)


def test_arguments():
    problem = case("dense").problem
    for thing in (None, np.eye(3), Problem):
        with refuses(InputTypeError, "problem must be a Problem or Moments, not"):
            ridge_path(thing, [0.1])
    with refuses(InputError, "ridges must be finite and at least 0; row 1 has -1"):
        ridge_path(problem, [0.0, -1.0])
    with refuses(InputError, "ridges must be a list of numbers, one or more."):
        ridge_path(problem, 0.1)
    with refuses(InputError, "ridges is empty"):
        ridge_path(problem, [])
    with refuses(InputError, "the moments are empty"):
        ridge_path(Moments(), [0.1])
