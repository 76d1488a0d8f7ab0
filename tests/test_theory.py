"""The paper's constants against matrices written out for every row; its lemma and theorems against what runs do."""

import dataclasses
import runpy
from pathlib import Path

import numpy as np
import numpy.linalg as la
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import pages
from battery import LAYOUTS, case
from oracle import Oracle
from valuate import GTD2, LSTD, SAGA, SCSG, SVRG, BatchingSVRG, Problem, theory
from valuate.environments import RandomMDP, TabularMDP
from valuate.errors import InputError, InputTypeError
from valuate.theory import smoothness

DOCS = Path(__file__).parent.parent / "docs"


class Saddle:
    """G_t and g_t of every row, (n, 2d, 2d) and (n, 2d), and all that follows from them by definition."""

    def __init__(self, oracle: Oracle) -> None:
        a, c = oracle.data_A + oracle.ridge_matrix, oracle.data_C + oracle.ridge_matrix
        self.A, self.C, self.b, self.n, self.d = oracle.A, oracle.C, oracle.b, oracle.n, oracle.d
        self.beta = 8 * la.eigvalsh(self.A.T @ la.solve(self.C, self.A))[-1] / la.eigvalsh(self.C)[0]
        root = np.sqrt(self.beta)
        self.rows = np.array(
            [
                np.block([[np.zeros((self.d, self.d)), -root * x.T], [root * x, self.beta * y]])
                for x, y in zip(a, c, strict=True)
            ]
        )
        self.targets = np.hstack([np.zeros((self.n, self.d)), root * oracle.data_b])
        self.G = self.rows.mean(axis=0)
        self.values, vectors = la.eig(self.G)
        self.Q = vectors / la.norm(vectors, axis=0)
        self.solution = np.concatenate([la.solve(self.A, self.b), np.zeros(self.d)])

    def point(self, theta, omega):
        return np.concatenate([theta, omega / np.sqrt(self.beta)])

    def smoothness(self):
        return la.norm(np.mean(self.rows.transpose(0, 2, 1) @ self.rows, axis=0), 2)

    def gradients(self, z):
        return self.rows @ z - self.targets

    def variance(self, z):
        each = self.gradients(z)
        return np.square(each - each.mean(axis=0)).sum() / (self.n - 1)

    def epoch(self, step, steps):
        """The matrix E with E|Q^-1 Delta_K|^2 = Delta_0' E Delta_0 after an SVRG epoch, without any sampling.

        (Delta_j, Delta_0) is multiplied by a matrix of the row that is drawn; a quadratic form of it is therefore
        mapped to a quadratic form, and the mean over rows, a matrix itself, is raised to the power K.
        """
        eye, zero = np.eye(2 * self.d), np.zeros((2 * self.d, 2 * self.d))
        maps = [np.block([[eye - step * g, step * (g - self.G)], [zero, eye]]) for g in self.rows]
        mean = sum(np.kron(m.T, m.T) for m in maps) / self.n
        inverse = la.inv(self.Q.real)
        form = np.block([[inverse.T @ inverse, zero], [zero, zero]])
        end = (la.matrix_power(mean, steps) @ form.ravel()).reshape(form.shape)
        both = np.vstack([eye, eye])
        return both.T @ end @ both


def two_states(rows=100_000, seed=1):
    """A chain of two states told apart by their features: as well conditioned as a problem can be."""
    chain = TabularMDP([[[0.7, 0.3]], [[0.3, 0.7]]], np.array([0.0, 1.0]).reshape(2, 1, 1), discount=0.2)
    return Problem.from_transitions(chain.collect(rows, seed=seed), chain.features, discount=0.2)


def few_rows():
    """Twelve rows of two features, for which the theorems' epochs are short."""
    rng = np.random.default_rng(5)
    phi = np.array([[1.0, 0.2], [-0.1, 1.0]] * 6) + 0.05 * rng.normal(size=(12, 2))
    next_phi, rewards = 0.2 * rng.normal(size=(12, 2)), rng.normal(size=12)
    problem = Problem.from_arrays(phi, rewards, next_phi, discount=0.5)
    return problem, Saddle(Oracle(phi, next_phi, rewards, np.full(12, 0.5)))


# ---- constants


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("full", [False, True], ids=["plain", "ridge, ratios, weights"])
@pytest.mark.parametrize("few_stored", [0, smoothness.FEW_STORED], ids=["blocks", "counts"])
def test_constants_are_those_of_the_matrices_of_every_row(layout, full, few_stored, monkeypatch):
    monkeypatch.setattr(smoothness, "FEW_STORED", few_stored)
    monkeypatch.setattr(smoothness, "GATHERED", 32)
    monkeypatch.setattr(smoothness, "COUNTED", 50)
    settings = {"ridge": 0.02, "ratios": True, "weights": True} if full else {}
    given_case = case(layout, n=151, dim=5, n_states=9, **settings)
    exact, known = Saddle(given_case.oracle), theory.constants(given_case.problem)
    assert (known.n_rows, known.dim) == (151, 5)
    near = {"rel": 1e-8}
    assert known.beta == pytest.approx(exact.beta, **near)
    assert known.lambda_min == pytest.approx(exact.values.real.min(), **near)
    assert known.lambda_max == pytest.approx(exact.values.real.max(), **near)
    assert known.kappa == pytest.approx(la.cond(exact.Q), **near)
    assert known.L_G_squared == pytest.approx(exact.smoothness(), **near)
    assert known.H == pytest.approx(np.square(exact.gradients(exact.solution)).sum(axis=1).mean(), **near)
    ends = exact.variance(np.zeros(10)), exact.variance(exact.solution)
    assert known.Xi_squared == pytest.approx(max(ends), **near)
    np.testing.assert_allclose(known.theta, exact.solution[:5], rtol=1e-8)
    np.testing.assert_allclose(known.G, exact.G, rtol=1e-10, atol=1e-12 * known.lambda_max)
    assert known.difficulty == pytest.approx(known.kappa**2 * known.L_G_squared / known.lambda_min**2)
    rng = np.random.default_rng(1)
    for theta, omega in (*rng.normal(size=(3, 2, 5)), (known.theta, rng.normal(size=5)), rng.normal(size=(2, 5)) * 1e3):
        z = exact.point(theta, omega)
        found = theory.gradient_variance(given_case.problem, theta, omega, beta=exact.beta)
        assert found == pytest.approx(exact.variance(z), **near)
        square = theory.mean_square_gradient(given_case.problem, theta, omega, beta=exact.beta)
        assert square == pytest.approx(np.square(exact.gradients(z)).sum(axis=1).mean(), **near)
        assert known.distance(theta, omega) == pytest.approx(np.square(z - exact.solution).sum(), **near)
        rotated = la.solve(exact.Q.real, z - exact.solution)
        assert known.potential(theta, omega) == pytest.approx(rotated @ rotated, **near)


def test_rows_in_single_precision_are_taken_as_they_are():
    given_case = case("dense", n=60, dim=4, dtype=np.float32)
    assert given_case.problem.rows.dtype == np.float32
    exact, known = Saddle(given_case.oracle), theory.constants(given_case.problem)
    assert known.L_G_squared == pytest.approx(exact.smoothness(), rel=1e-9)
    assert known.H == pytest.approx(np.square(exact.gradients(exact.solution)).sum(axis=1).mean(), rel=1e-9)


@given(st.integers(0, 10_000), st.sampled_from([1e-3, 7.0, 1e4]))
def test_units_change_what_they_should(seed, unit):
    rng = np.random.default_rng(seed)
    phi, next_phi, rewards = rng.normal(size=(40, 3)), rng.normal(size=(40, 3)), rng.normal(size=40)
    known = theory.constants(Problem.from_arrays(phi, rewards, next_phi, discount=0.7))
    paid = theory.constants(Problem.from_arrays(phi, unit * rewards, next_phi, discount=0.7))
    assert paid.H == pytest.approx(unit**2 * known.H) and paid.distance() == pytest.approx(unit**2 * known.distance())
    assert (paid.beta, paid.kappa, paid.difficulty) == (known.beta, known.kappa, known.difficulty)
    long = theory.constants(Problem.from_arrays(unit * phi, rewards, unit * next_phi, discount=0.7))
    assert long.beta == pytest.approx(known.beta, rel=1e-7)
    assert long.difficulty == pytest.approx(known.difficulty, rel=1e-6)
    assert long.lambda_max == pytest.approx(unit**2 * known.lambda_max, rel=1e-7)


def test_the_variance_has_no_bound_but_is_largest_at_an_end_of_a_segment():
    problem = case("dense", n=50, dim=3).problem
    known = theory.constants(problem)

    def variance(share, omega=None):
        return theory.gradient_variance(problem, share * known.theta, omega, beta=known.beta)

    inside = [variance(share) for share in np.linspace(0, 1, 9)]
    assert max(inside) == pytest.approx(known.Xi_squared, rel=1e-12)
    assert variance(1e3) > 1e5 * known.Xi_squared
    one = Problem.from_arrays([[2.0]], [1.0], [[0.5]])
    assert theory.gradient_variance(one, [3.0], [1.0], beta=8.0) == 0
    assert theory.gradient_variance(problem, beta=2.0) == pytest.approx(2 * theory.gradient_variance(problem, beta=1.0))


# ---- Lemma 1


@given(st.integers(0, 10_000), st.integers(1, 7), st.sampled_from([0.0, 1e-5, 0.1]), st.booleans())
def test_lemma_1(seed, dim, ridge, off_policy):
    rng = np.random.default_rng(seed)
    phi, next_phi = rng.normal(size=(2, 50, dim)) * rng.uniform(0.1, 3, dim)
    ratios = rng.exponential(size=50) if off_policy else None
    problem = Problem.from_arrays(
        phi, rng.normal(size=50), next_phi, discount=rng.uniform(0, 1), ratios=ratios, ridge=ridge
    )
    known = theory.constants(problem)
    assert (known.eigenvalues > 0).all() and (np.diff(known.eigenvalues) >= 0).all()
    assert (known.lambda_min, known.lambda_max) == (known.eigenvalues[0], known.eigenvalues[-1])
    np.testing.assert_allclose(known.G @ known.Q, known.Q * known.eigenvalues, atol=1e-9 * known.lambda_max)
    np.testing.assert_allclose(la.norm(known.Q, axis=0), 1)
    general = la.eigvals(known.G)
    assert abs(general.imag).max() <= 1e-7 * known.lambda_max
    np.testing.assert_allclose(known.eigenvalues, np.sort(general.real), rtol=1e-6, atol=1e-10 * known.lambda_max)
    assert known.lambda_max**2 <= la.norm(known.G, 2) ** 2 * (1 + 1e-9) <= known.L_G_squared * (1 + 1e-8)


def test_one_feature_has_a_closed_form_and_half_of_beta_is_its_limit():
    problem = Problem.from_arrays([[1.0], [2.0], [-1.0]], [1.0, 0.0, 2.0], [[0.5], [1.0], [1.5]], discount=0.8)
    a, _, c = (float(part.squeeze()) for part in problem.moments())
    known = theory.constants(problem)
    assert known.beta == pytest.approx(8 * a**2 / c**2)
    root = np.sqrt(1 - 4 * a**2 / (known.beta * c**2))
    np.testing.assert_allclose(known.eigenvalues, known.beta * c / 2 * np.array([1 - root, 1 + root]))
    for share, real in ((0.51, True), (0.49, False)):
        values = la.eigvals(theory.saddle_matrix(*(problem.moments()[k] for k in (0, 2)), share * known.beta))
        assert np.isreal(values).all() == real


def test_eigenvalues_that_coincide_keep_independent_vectors():
    """Where features are missing, A and C are e I there: lambda^2 - beta e lambda + beta e^2 = 0, many times."""
    rng = np.random.default_rng(0)
    phi, next_phi = (rng.normal(size=(60, 3)) @ rng.normal(size=(3, 12)) for _ in range(2))
    next_phi = phi[rng.permutation(60)]
    e = 1e-3
    known = theory.constants(Problem.from_arrays(phi, rng.normal(size=60), next_phi, discount=0.9, ridge=e))
    low, high = np.sort(np.roots([1, -known.beta * e, known.beta * e**2]).real)
    for value in (low, high):
        assert np.isclose(known.eigenvalues, value, rtol=1e-6).sum() == 9
    np.testing.assert_allclose(known.G @ known.Q, known.Q * known.eigenvalues, atol=1e-9 * known.lambda_max)
    assert known.kappa < 3 < la.cond(la.eig(known.G)[1])


def test_extreme_eigenvalues_are_right_where_conditions_are_bad():
    """Sums of all eigenvalues and of their inverses are traces, known without them."""
    rng = np.random.default_rng(3)
    phi = rng.normal(size=(300, 20)) @ np.diag(np.logspace(0, -4.5, 20)) @ la.qr(rng.normal(size=(20, 20)))[0]
    problem = Problem.from_arrays(phi[:-1], rng.normal(size=299), phi[1:], discount=0.99)
    known = theory.constants(problem)
    a, _, c = problem.moments()
    assert la.cond(c) > 1e8 and known.lambda_max / known.lambda_min > 1e16
    assert known.eigenvalues.sum() == pytest.approx(known.beta * np.trace(c), rel=1e-9)
    left = la.inv(a)
    assert (1 / known.eigenvalues).sum() == pytest.approx(np.trace(left @ c @ left.T), rel=1e-3)


# ---- theorems


def test_theorem_1_states_its_numbers():
    known = theory.constants(case("dense", n=80, dim=3).problem)
    plan = theory.theorem_1(known)
    k2 = known.kappa**2 * known.L_G_squared
    assert plan.step_theta == pytest.approx(known.lambda_min / (6 * k2))
    assert plan.step_omega == pytest.approx(known.beta * plan.step_theta)
    assert 0 <= plan.steps - 12 * k2 / known.lambda_min**2 < 1
    assert plan.steps == pytest.approx(2 / (plan.step_theta * known.lambda_min), rel=1e-3)
    assert plan.steps_per_row == plan.steps / 80
    assert plan.factor == 2 / 3 and plan.proved_factor == pytest.approx(np.exp(-2) + 1 / 3)
    assert plan.error_factor == pytest.approx(2 * (1 - plan.step_theta * known.lambda_min) / known.lambda_min**2)
    assert plan.bound(0) == pytest.approx(known.kappa**2 * (known.theta @ known.theta))
    assert plan.bound(3, 2.0) == pytest.approx(known.kappa**2 * 2 * 8 / 27)
    epochs = plan.epochs(1e-3)
    assert plan.bound(epochs) <= 1e-3 < plan.bound(epochs - 1)
    assert plan.row_visits(1e-3) == epochs * (80 + plan.steps)
    assert plan.epochs(1e9) == 0 and plan.epochs(1e-3, 0.0) == 0


def test_theorem_1_holds_from_the_worst_starting_point():
    """The exact mean over all orders of an epoch, not a sample of them."""
    problem, exact = few_rows()
    plan = theory.theorem_1(theory.constants(problem))
    assert plan.steps < 50_000
    form = exact.epoch(plan.step_theta, plan.steps)
    q = exact.Q.real
    worst = la.eigvalsh(q.T @ form @ q)[-1]
    assert worst <= plan.proved_factor < plan.factor
    # The proof gives away the square of 1 - sigma lambda_min and nearly all of the noise's third.
    assert np.exp(-4) <= worst * (1 + 1e-9) and worst < 0.03
    assert la.eigvalsh(q.T @ exact.epoch(100 * plan.step_theta, plan.steps) @ q)[-1] < 2 / 3
    assert la.eigvalsh(q.T @ exact.epoch(1e4 * plan.step_theta, 20) @ q)[-1] > 1


def test_svrg_with_the_theory_does_what_the_exact_mean_says():
    problem, exact = few_rows()
    known = theory.constants(problem)
    plan = theory.theorem_1(known)
    delta = -exact.solution
    expected = delta @ exact.epoch(plan.step_theta, plan.steps) @ delta
    solver = SVRG(step_theta="theory", steps_per_row=plan.steps_per_row)
    runs = [solver.solve(problem, epochs=1, seed=seed) for seed in range(20)]
    assert all(run.row_visits == 12 + plan.steps and run.epochs == 1 for run in runs)
    mean = np.mean([known.potential(run.theta, run.omega) for run in runs])
    assert mean == pytest.approx(expected, rel=0.1)
    assert mean <= plan.factor * known.potential()
    far = solver.solve(problem, epochs=10)
    assert known.distance(far.theta, far.omega) <= plan.bound(10)


def test_theorem_2_states_its_numbers():
    known = theory.constants(case("dense", n=80, dim=3).problem)
    known = dataclasses.replace(known, n_rows=10**12)
    k2 = known.kappa**2 * known.L_G_squared
    plan = theory.theorem_2(known)
    assert plan.batch == plan.required_batch == np.ceil(70 * k2 / known.lambda_min**2) and plan.holds
    assert plan.limits == pytest.approx((known.lambda_min / (20 * k2), 5 / (28 * plan.batch * known.lambda_max)))
    assert plan.step_theta == min(plan.limits) and plan.step_omega == pytest.approx(known.beta * plan.step_theta)
    growth = plan.step_theta * plan.batch
    assert plan.factor == pytest.approx(1 / (1 + 0.8 * growth * known.lambda_min))
    assert plan.floor == pytest.approx(60 * known.kappa**2 * known.H / (plan.batch * known.lambda_min**2))
    lead = (1 + 0.7 * growth * known.lambda_max) * known.kappa**2
    assert plan.bound(7, 3.0) == pytest.approx(lead * 3 * plan.factor**7 + plan.floor)
    assert theory.theorem_2(known, batch=5).holds is False
    noisy = theory.theorem_2(known, epsilon=1e-6)
    assert noisy.batch == np.ceil(120 * known.kappa**2 * known.H / (known.lambda_min**2 * 1e-6)) and noisy.holds
    assert noisy.floor <= 0.5e-6
    epochs = int(noisy.epochs(1e-6))
    assert noisy.bound(epochs) <= 1e-6 < noisy.bound(epochs - 1)
    assert noisy.row_visits(1e-6) == 2 * noisy.batch * epochs
    assert plan.epochs(plan.floor / 2) == np.inf
    full = theory.theorem_2(dataclasses.replace(known, n_rows=300))
    assert full.batch == 300 < full.required_batch and full.floor == 0 and full.holds


def test_theorem_2_holds_and_the_rate_is_no_better_than_that_of_its_slowest_direction():
    problem = two_states()
    known = theory.constants(problem)
    plan = theory.theorem_2(known)
    assert plan.batch == plan.required_batch < 100_000
    solver = SCSG(step_theta="theory", batch_fraction=(plan.batch + 0.5) / known.n_rows)
    runs, epochs = 5, 70
    path = np.full((runs, epochs + 1), known.distance())
    for seed in range(runs):

        def look(at, row=path[seed]):
            row[at.epoch] = known.distance(at.theta, at.omega)

        used = solver.solve(problem, epochs=epochs, seed=seed, callback=look).solver
        assert (used.step_theta, used.step_omega) == (plan.step_theta, plan.step_omega)
    mean = path.mean(axis=0)
    assert all(mean[m] <= plan.bound(m) for m in range(epochs + 1))
    rate = (mean[-1] / mean[25]) ** (1 / (epochs - 25))
    assert rate == pytest.approx(1 / (1 + 2 / plan.slowness), abs=0.01)
    assert rate > 1 - 3 / plan.slowness  # O(1) epochs to shrink by a factor e would be a rate far below


@given(st.integers(0, 10_000), st.integers(1, 6), st.floats(1, 1e4))
def test_the_proof_of_corollary_2_loses_the_ratio_of_eigenvalues(seed, dim, more):
    """With the batch that Theorem 2 requires its second limit on the step is the smaller one, always."""
    rng = np.random.default_rng(seed)
    phi, next_phi = rng.normal(size=(2, 40, dim))
    known = theory.constants(Problem.from_arrays(phi, rng.normal(size=40), next_phi, discount=0.9))
    known = dataclasses.replace(known, n_rows=10**18)
    plan = theory.theorem_2(known, batch=int(more * theory.theorem_2(known).batch))
    assert plan.step_theta == plan.limits[1] < plan.limits[0] / 19
    assert plan.slowness == pytest.approx(5.6 * known.lambda_max / known.lambda_min)


def test_corollary_1():
    problem = case("dense", n=400, dim=3).problem
    known = theory.constants(problem)
    plan = theory.corollary_1(known)
    assert plan.variance == known.Xi_squared and plan.rho == 0.6
    assert plan.extra == pytest.approx(known.potential())
    assert plan.bound(4) == pytest.approx((2 / 3) ** 4 * 2 * known.potential())
    chosen = theory.corollary_1(known, variance=3.0, alpha=0.5, rho=0.4)
    step = theory.theorem_1(known).step_theta
    inverse = la.norm(la.inv(known.Q), 2) ** 2
    extra = 3 * 0.5 * (1 - step * known.lambda_min) * inverse / (known.lambda_min**2 * (1 - 0.6))
    assert chosen.extra == pytest.approx(extra)
    solver = BatchingSVRG(variance=3.0, alpha=0.5, rho=0.4)
    batches = [solver.batch(400, m) for m in range(12)]
    assert [chosen.batch(m) for m in range(12)] == batches and batches[0] < batches[-1]
    assert chosen.mean_batch(12) == pytest.approx(np.mean(batches))
    with pytest.raises(InputError, match="rho must be below 2/3"):
        theory.corollary_1(known, rho=2 / 3)


def test_table_1_is_the_papers_with_constants_1():
    known = theory.constants(case("dense", n=400, dim=3).problem)
    hard, noise = known.difficulty, known.kappa**2 * known.H / (known.lambda_min**2 * 1e-3)
    costs = {cost.method: cost for cost in theory.table_1(known, 1e-3, distance=1.0, mean_batch=50)}
    assert list(costs) == ["GTD2", "SAGA", "SVRG", "BatchingSVRG", "SCSG"]
    log = np.log(1e3)
    expected = [noise, (400 + hard) * log, (400 + hard) * log, (50 + hard) * log, (min(noise, 400) + hard) * log]
    assert [cost.row_visits for cost in costs.values()] == pytest.approx(expected)
    assert all(cost.corrected == cost.row_visits for cost in list(costs.values())[:4])
    svrg, scsg = costs["SVRG"], costs["SCSG"]
    assert (svrg.passes, svrg.operations) == pytest.approx((svrg.row_visits / 400, svrg.row_visits * 3))
    assert svrg.bound == theory.theorem_1(known).row_visits(1e-3, 1.0)
    assert scsg.bound == theory.theorem_2(known, epsilon=1e-3).row_visits(1e-3, 1.0)
    assert [costs[name].bound for name in ("GTD2", "SAGA", "BatchingSVRG")] == [None] * 3
    # 400 rows are fewer than the theorem's batch: B = n, and n lambda_max / lambda_min counts where it is more.
    lost = max(hard, 400 * known.lambda_max / known.lambda_min)
    assert scsg.corrected == pytest.approx((400 + lost) * log)
    assert scsg.corrected_passes == pytest.approx(scsg.corrected / 400)
    many = theory.table_1(dataclasses.replace(known, n_rows=10**15), 1e-3, distance=1.0)[4]
    batch = max(hard, noise)
    assert many.corrected == pytest.approx(batch * (1 + known.lambda_max / known.lambda_min) * log)
    start = known.distance()
    from_zero = theory.table_1(known, 1e-3 * start)
    assert from_zero[2].row_visits == pytest.approx((400 + hard) * log)
    assert hard * log < from_zero[3].row_visits < from_zero[2].row_visits
    for wrong in (start, 2 * start):
        with pytest.raises(InputError, match="below the squared distance"):
            theory.table_1(known, wrong)


# ---- steps of the theory in solvers


def test_solvers_take_their_steps_from_the_theory():
    problem = case("dense", n=200, dim=2, ridge=0.1, ratios=True, weights=True).problem
    known = theory.constants(problem)
    first = theory.theorem_1(known)
    problem.mspbe(np.zeros(2))
    problem.relative_residual(np.zeros(2), exact=False)  # what is measured once has been
    for solver, plan in (
        (SVRG(step_theta="theory", steps_per_row=0.5), first),
        (BatchingSVRG(step_theta="theory"), first),
        (SCSG(step_theta="theory"), theory.theorem_2(known, batch=20)),
        (SCSG(step_theta="theory", batch_fraction=1.0), theory.theorem_2(known, batch=200)),
    ):
        solution = solver.solve(problem, passes=3, seed=2)
        used = solution.solver
        assert (used.step_theta, used.step_omega) == pytest.approx((plan.step_theta, plan.step_omega), rel=1e-12)
        assert dataclasses.replace(used, step_theta="theory", step_omega="auto") == solver
        again = used.solve(problem, passes=3, seed=2)
        np.testing.assert_array_equal(again.theta, solution.theta)
        assert solution.setup_visits == again.setup_visits + theory.PASSES * 200
        assert solution.theta.any() and solution.passes == 3


@pytest.mark.parametrize("method", [GTD2, SAGA])
def test_methods_without_a_theorem_say_who_has_one(method):
    with pytest.raises(InputError, match=rf"{method.__name__} has no theorem.*SVRG and BatchingSVRG.*SCSG"):
        method(step_theta="theory")


def test_the_theory_chooses_both_steps():
    for method in (SVRG, BatchingSVRG, SCSG):
        with pytest.raises(InputError, match='step_omega must be left at "auto" where step_theta is "theory", not 0.1'):
            method(step_theta="theory", step_omega=0.1)
        with pytest.raises(InputError, match='step_omega must be a number above 0 or "auto"'):
            method(step_omega="theory")
        with pytest.raises(InputError, match='step_theta must be a number above 0 or "auto" or "theory", not \'best\''):
            method(step_theta="best")


# ---- bad input


def dependent(ridge=0.0):
    rng = np.random.default_rng(0)
    phi, next_phi = rng.normal(size=(2, 30, 3))
    mix = np.array([[1.0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]])
    return Problem.from_arrays(phi @ mix, rng.normal(size=30), next_phi @ mix, discount=0.9, ridge=ridge)


def test_a_singular_c_breaks_assumption_1_and_a_ridge_mends_it():
    with pytest.raises(InputError, match=r"Assumption 1 of the paper fails: C has rank 3 of 4.*ridge=1e-5") as caught:
        theory.constants(dependent())
    with pytest.raises(InputError) as again:
        SVRG(step_theta="theory").solve(dependent(), passes=1)
    assert str(again.value) == str(caught.value)
    assert theory.constants(dependent(ridge=1e-5)).lambda_min > 0
    never = Problem.from_arrays(np.eye(3)[[0, 1, 0, 1]], [1.0, 2, 3, 4], np.eye(3)[[1, 0, 1, 0]])
    with pytest.raises(InputError, match="C has rank 2 of 3"):
        theory.constants(never)


def test_a_c_that_is_singular_but_for_rounding():
    rng = np.random.default_rng(1)
    phi = np.outer(rng.normal(size=40), np.ones(3)) + 1e-9 * rng.normal(size=(40, 3))
    with pytest.raises(InputError, match="C has rank 1 of 3 in double precision"):
        theory.constants(Problem.from_arrays(phi, rng.normal(size=40), 0 * phi))


def test_a_singular_a_breaks_assumption_1():
    phi = np.array([[1.0, 0], [0, 1], [1, 1]])
    stays = Problem.from_arrays(phi, [1.0, 2, 3], phi, discount=1.0)
    with pytest.raises(InputError, match="Assumption 1 of the paper fails: A has rank 0 of 2"):
        theory.constants(stays)
    half = Problem.from_arrays(phi[:2], [1.0, 2], np.array([[1.0, 0], [0, 0]]), discount=1.0)
    with pytest.raises(InputError, match=r"A has rank 1 of 2, so that theta\* is not unique"):
        theory.constants(half)


def test_what_the_theory_cannot_take_is_refused():
    wide = Problem.from_arrays(sp.eye_array(600, format="csr"), np.ones(600), sp.eye_array(600, format="csr"))
    with pytest.raises(InputError, match="600 features.*up to 512"):
        theory.constants(wide)
    with pytest.raises(InputTypeError, match="Problem, not ndarray"):
        theory.constants(np.eye(2))
    problem = case("dense").problem
    known = theory.constants(problem)
    with pytest.raises(InputTypeError, match=r"Constants, not Problem.*theory\.constants\(problem\)"):
        theory.theorem_1(problem)
    with pytest.raises(InputError, match=r"theta has shape \(2,\) and the problem has 5"):
        known.distance([1.0, 2.0])
    with pytest.raises(InputError, match="omega has 2 entries"):
        theory.gradient_variance(problem, omega=[1.0, 2.0], beta=8.0)
    with pytest.raises(InputError, match="batch is 38 and there are 37 rows"):
        theory.theorem_2(known, batch=38)
    for call in (lambda: theory.theorem_2(known, epsilon=0.0), lambda: theory.theorem_1(known).epochs(-1.0)):
        with pytest.raises(InputError, match="epsilon must be finite and above 0"):
            call()
    with pytest.raises(InputError, match="epochs must be at least 0"):
        theory.theorem_1(known).bound(-1)

    class Elsewhere:
        def __init__(self, rows):
            self._rows = rows

        def __getattr__(self, name):
            if name == "records":
                raise AttributeError(name)
            return getattr(self._rows, name)

    with pytest.raises(InputError, match="rows themselves in memory, and these are Elsewhere"):
        theory.constants(Problem(Elsewhere(problem.rows)))


def test_no_reward_is_no_noise():
    problem = Problem.from_arrays(np.eye(2)[[0, 1, 1]], np.zeros(3), np.eye(2)[[1, 0, 0]], discount=0.5)
    known = theory.constants(problem)
    assert known.H == known.Xi_squared == known.distance() == 0
    with pytest.raises(InputError, match="below the squared distance of the start, 0"):
        theory.table_1(known, 1e-3)
    assert SVRG(step_theta="theory").solve(problem, passes=1).relative_residual == 0


def test_the_size_of_the_papers_random_mdp():
    """Steps of 1e-15: an epoch of Theorem 1 is 1e14 passes or more."""
    process = RandomMDP(seed=0)
    problem = Problem.from_transitions(process.collect(5000, seed=1), process.features, discount=0.95)
    known = theory.constants(problem)
    plan = theory.theorem_1(known)
    assert 1e-16 < plan.step_theta < 1e-14 and 1e13 < plan.steps_per_row < 1e16
    np.testing.assert_allclose(known.theta, LSTD().solve(problem).theta, rtol=1e-6)
    numbers = known.as_dict()
    assert numbers["lambda_max"] == known.lambda_max and all(np.isfinite(list(numbers.values())))
    assert "theta=" not in repr(known) and "kappa=" in repr(known)


def test_epochs_where_the_factor_is_1_to_all_digits():
    process = RandomMDP(seed=0)
    problem = Problem.from_transitions(process.collect(1000, seed=0), process.features, discount=0.95)
    plan = theory.theorem_2(theory.constants(problem))
    assert plan.factor == 1.0 or plan.factor > 1 - 1e-12
    assert 1e10 < plan.epochs(2 * plan.floor if plan.floor else 1.0) < np.inf


# ---- the page


def test_the_page_shows_what_the_script_prints(capsys):
    runpy.run_path(str(DOCS / "examples" / "theory.py"), run_name="__main__")
    pages.check(DOCS / "theory.md", capsys.readouterr().out)
