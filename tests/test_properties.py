"""What holds for every log: layouts agree, order does not matter, weights are multiplicities, units are units."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from valuate import LSTD, SAGA, SVRG, Problem, Status, Transitions

SEEDS = st.integers(0, 2**32 - 1)
RIDGES = st.sampled_from([0.0, 1e-3, 0.5])
EXTRAS = st.sampled_from([(), ("ratios",), ("weights",), ("ratios", "weights")])


class Log:
    """A random walk over the rows of a table, with a discount a row, some rows terminated."""

    def __init__(self, seed, extras=(), n_states=4, dim=3):
        rng = self.rng = np.random.default_rng(seed)
        self.n = n = int(rng.integers(1, 40))
        self.table = rng.normal(size=(n_states, dim)) * (rng.random((n_states, dim)) < 0.8)
        walk = rng.integers(0, n_states, n + 1)
        self.states, self.followers = walk[:-1], walk[1:].copy()
        jumps = rng.random(n) < 0.2
        self.followers[jumps] = rng.integers(0, n_states, int(jumps.sum()))
        self.rewards = rng.normal(size=n)
        self.scalars = {"discount": rng.choice([0.0, 0.5, 0.9, 1.0], n), "terminated": rng.random(n) < 0.2}
        if "ratios" in extras:
            self.scalars["ratios"] = rng.choice([0.0, 0.5, 1.0, 4.0], n)
        if "weights" in extras:
            self.scalars["weights"] = np.append(rng.integers(0, 4, n - 1), 2).astype(float)

    @property
    def phi(self):
        return self.table[self.states]

    @property
    def next_phi(self):
        return self.table[self.followers]

    def rows(self, chosen):
        """The scalars of some rows."""
        return {name: column[chosen] for name, column in self.scalars.items()}

    def problem(self, ridge=0.0, **changed):
        """The rows as dense arrays, with other arguments where some are given."""
        arguments = {"features": self.phi, "rewards": self.rewards, "next_features": self.next_phi}
        return Problem.from_arrays(**arguments | self.scalars | changed, ridge=ridge)

    def layouts(self, ridge):
        """The same problem in every layout."""
        scalars = self.scalars | {"ridge": ridge}
        discount = scalars.pop("discount")
        log = Transitions(self.phi, self.rewards, self.next_phi, **{k: v for k, v in scalars.items() if k != "ridge"})
        apart = self.next_phi + 0.0
        apart[self.scalars["terminated"]] = np.nan
        yield self.problem(ridge, next_features=apart)
        yield Problem.from_transitions(log, discount=discount, ridge=ridge)
        yield Problem.from_arrays(
            sp.csr_array(self.phi), self.rewards, sp.csr_array(self.next_phi), discount=discount, **scalars
        )
        for make in (np.array, sp.csr_array):
            yield Problem.from_table(
                make(self.table), self.states, self.rewards, self.followers, discount=discount, **scalars
            )


def assert_same_moments(one, other, rtol=1e-12, **factors):
    """A, b and C are the same, up to a factor where one is given."""
    for name, found, wanted in zip("AbC", one.moments(), other.moments(), strict=True):
        np.testing.assert_allclose(found, wanted * factors.get(name, 1.0), rtol=rtol, atol=rtol, err_msg=name)


@given(SEEDS, EXTRAS, RIDGES)
def test_layouts_agree(seed, extras, ridge):
    log = Log(seed, extras)
    theta, omega = log.rng.normal(size=(2, 3))
    first, *others = log.layouts(ridge)
    assert [problem.layout for problem in (first, *others)] == ["dense", "dense", "sparse", "indexed", "sparse"]
    for other in others:
        assert_same_moments(other, first)
        np.testing.assert_allclose(other.gradient(theta, omega), first.gradient(theta, omega), rtol=1e-11, atol=1e-12)
        np.testing.assert_allclose(other.residual(theta), first.residual(theta), rtol=1e-11, atol=1e-12)
        assert other.mspbe(theta) == pytest.approx(first.mspbe(theta), rel=1e-7, abs=1e-13)


@settings(max_examples=20)
@pytest.mark.parametrize("method", [SVRG(step_theta=0.05, step_omega=0.1), SAGA(step_theta=0.05, step_omega=0.1)])
@given(seed=SEEDS, extras=EXTRAS, ridge=RIDGES)
def test_layouts_take_the_same_path(method, seed, extras, ridge):
    log = Log(seed, extras)
    first, *others = (method.solve(problem, epochs=3, seed=seed) for problem in log.layouts(ridge))
    for other in others:
        np.testing.assert_allclose(other.theta, first.theta, rtol=1e-8, atol=1e-11)
        np.testing.assert_allclose(other.omega, first.omega, rtol=1e-8, atol=1e-11)
        assert (other.status, other.row_visits) == (first.status, first.row_visits)


@given(SEEDS, EXTRAS)
def test_the_order_of_rows_does_not_matter(seed, extras):
    log = Log(seed, extras)
    order = log.rng.permutation(log.n)
    shuffled = log.problem(
        features=log.phi[order], rewards=log.rewards[order], next_features=log.next_phi[order], **log.rows(order)
    )
    assert_same_moments(shuffled, log.problem())


@given(SEEDS, EXTRAS, st.floats(-1e6, 1e6))
def test_next_rows_do_not_count_without_discount(seed, extras, garbage):
    log = Log(seed, extras)
    other = log.next_phi * garbage
    other[log.rng.random(log.n) < 0.5] = np.nan
    for scalars in ({"discount": 0.0}, {"discount": np.zeros(log.n)}, {"terminated": np.ones(log.n, bool)}):
        one, two = log.problem(**scalars), log.problem(**scalars, next_features=other)
        assert_same_moments(two, one, rtol=0)
        np.testing.assert_array_equal(one.residual(np.ones(3)), two.residual(np.ones(3)))
    sum_w = np.sum(log.scalars.get("weights", np.ones(log.n)))
    both = log.scalars.get("weights", 1.0) * log.scalars.get("ratios", np.ones(log.n))
    np.testing.assert_allclose(one.moments().A, (log.phi.T * both) @ log.phi / sum_w, rtol=1e-12, atol=1e-14)


@given(SEEDS, st.sampled_from([(), ("ratios",)]), RIDGES)
def test_whole_weights_are_repeated_rows(seed, extras, ridge):
    log = Log(seed, ("weights", *extras))
    times = log.scalars["weights"].astype(int)
    repeated = np.repeat(np.arange(log.n), times)
    scalars = log.rows(repeated)
    del scalars["weights"]
    scalars |= {"features": log.phi[repeated], "rewards": log.rewards[repeated]}
    weighted = log.problem(ridge)
    again = log.problem(ridge, weights=None, next_features=log.next_phi[repeated], **scalars)
    assert again.n_rows == times.sum()
    assert_same_moments(weighted, again)
    theta, omega = log.rng.normal(size=(2, 3))
    np.testing.assert_allclose(weighted.gradient(theta, omega), again.gradient(theta, omega), rtol=1e-11, atol=1e-12)
    assert weighted.mspbe(theta) == pytest.approx(again.mspbe(theta), rel=1e-7, abs=1e-13)
    one, other = LSTD().solve(weighted), LSTD().solve(again)
    assert one.status is other.status
    np.testing.assert_allclose(one.theta, other.theta, rtol=1e-6, atol=1e-8 * (1 + np.abs(other.theta).max()))


@given(SEEDS, EXTRAS, st.floats(1e-12, 1e12))
def test_weights_are_shares(seed, extras, unit):
    log = Log(seed, ("weights", *extras))
    assert_same_moments(log.problem(weights=log.scalars["weights"] * unit), log.problem())


@given(SEEDS, EXTRAS, st.floats(0.01, 100))
def test_a_constant_ratio_scales_a_and_b_only(seed, extras, ratio):
    log = Log(seed, extras)
    ratios = log.scalars.get("ratios", np.ones(log.n))
    one, other = log.problem(ratios=ratios), log.problem(ratios=ratios * ratio)
    assert_same_moments(other, one, A=ratio, b=ratio)
    found, scaled = LSTD().solve(one), LSTD().solve(other)
    assert found.status is scaled.status
    np.testing.assert_allclose(scaled.theta, found.theta, rtol=1e-6, atol=1e-8 * (1 + np.abs(found.theta).max()))


@given(SEEDS, EXTRAS, RIDGES)
def test_a_ridge_adds_to_the_diagonals(seed, extras, ridge):
    log = Log(seed, extras)
    plain, ridged = log.problem().moments(), log.problem(ridge).moments()
    for name in "AC":
        np.testing.assert_allclose(getattr(ridged, name), getattr(plain, name) + ridge * np.eye(3), rtol=1e-13)
    np.testing.assert_array_equal(ridged.b, plain.b)


@given(SEEDS, EXTRAS, st.integers(0, 2), st.floats(-7, 7))
def test_units_of_a_column_scale_its_weight_and_nothing_else(seed, extras, column, power):
    log = Log(seed, extras, dim=3)
    unit = np.where(np.arange(3) == column, 10.0**power, 1.0)
    one, other = log.problem(), log.problem(features=log.phi * unit, next_features=log.next_phi * unit)
    theta = log.rng.normal(size=3)
    assert other.mspbe(theta / unit) == pytest.approx(one.mspbe(theta), rel=1e-6, abs=1e-13)
    for exact in (True, False):
        assert other.relative_residual(theta / unit, exact=exact) == pytest.approx(
            one.relative_residual(theta, exact=exact), rel=1e-6
        )
    found, scaled = LSTD().solve(one), LSTD().solve(other)
    assert (scaled.status, scaled.message) == (found.status, found.message)
    assert scaled.relative_residual == pytest.approx(found.relative_residual, rel=1e-6, abs=1e-12)
    if found.theta.any() and found.status is Status.CONVERGED and "rank" not in found.message:
        scale = np.abs(found.theta).max() * np.linalg.cond(one.moments().A)
        np.testing.assert_allclose(scaled.theta * unit, found.theta, rtol=1e-9, atol=1e-13 * scale)


@given(SEEDS, EXTRAS)
def test_values_do_not_depend_on_the_basis(seed, extras):
    """Any invertible change of features has the same values, MSPBE and residual, only other weights."""
    log = Log(seed, extras)
    mixed = log.rng.normal(size=(3, 3)) + 3 * np.eye(3)
    one, other = log.problem(), log.problem(features=log.phi @ mixed, next_features=log.next_phi @ mixed)
    theta = log.rng.normal(size=3)
    assert other.mspbe(np.linalg.solve(mixed, theta)) == pytest.approx(one.mspbe(theta), rel=1e-6, abs=1e-13)
    found, again = LSTD().solve(one), LSTD().solve(other)
    assert found.status is again.status
    if found.theta.any() and found.status is Status.CONVERGED and "rank" not in found.message:
        condition = np.linalg.cond(one.moments().A)
        np.testing.assert_allclose(
            log.phi @ mixed @ again.theta,
            log.phi @ found.theta,
            rtol=1e-9,
            atol=1e-13 * condition * (1 + np.abs(found.theta).max()),
        )
