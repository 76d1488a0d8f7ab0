"""The numbers of docs/theory.md: constants, Lemma 1, the slack of Theorem 1, the error of Corollary 2, Table 1."""

import numpy as np

import valuate as va
from valuate import theory
from valuate.environments import RandomMDP, TabularMDP


def problem_of(process, rows):
    log = process.collect(rows, seed=1)
    return va.Problem.from_transitions(log, process.features, discount=process.discount)


def show_constants(problems):
    found = {name: theory.constants(problem) for name, problem in problems.items()}
    plans = [theory.theorem_1(known) for known in found.values()]
    print(f"{'':24}" + "".join(f"{name:>13}" for name in found))
    for name in ("n_rows", "dim", "beta", "lambda_min", "lambda_max", "kappa", "L_G_squared", "H", "Xi_squared"):
        print(f"{name:24}" + "".join(f"{getattr(known, name):13.4g}" for known in found.values()))
    print(f"{'step_theta of Theorem 1':24}" + "".join(f"{plan.step_theta:13.3g}" for plan in plans))
    print(f"{'passes an epoch':24}" + "".join(f"{1 + plan.steps_per_row:13.3g}" for plan in plans))


def show_lemma_1(times=200):
    real = {1.0: 0, 0.5: 0, 0.25: 0, 0.125: 0}
    for seed in range(times):
        rng = np.random.default_rng(seed)
        dim = int(rng.integers(2, 8))
        phi, next_phi = rng.normal(size=(2, 60, dim))
        problem = va.Problem.from_arrays(phi, rng.normal(size=60), next_phi, discount=rng.uniform(0, 1))
        A, _, C = problem.moments()
        beta = theory.constants(problem).beta
        for share in real:
            values = np.linalg.eigvals(theory.saddle_matrix(A, C, share * beta))
            real[share] += bool((abs(values.imag) < 1e-9 * abs(values)).all() and (values.real > 0).all())
    for share, count in real.items():
        print(f"{share:5g} beta: eigenvalues of G real and positive in {count} of {times} random problems")


def show_theorem_1(problem, runs):
    known = theory.constants(problem)
    plan = theory.theorem_1(known)
    solver = va.SVRG(step_theta="theory", steps_per_row=plan.steps_per_row)
    left = 0.0
    for seed in range(runs):
        solution = solver.solve(problem, epochs=1, seed=seed)
        left += known.potential(solution.theta, solution.omega) / known.potential() / runs
    print(f"one epoch of {plan.steps:,} steps, mean of {runs} runs")
    print(f"left of |Q^-1 Delta|^2: {left:.3g}")
    print(f"the theorem allows {plan.factor:.3g}, {plan.factor / left:.0f} times as much")


def show_corollary_2(problem, runs=6, epochs=70, settled=25, accuracy=1e-4):
    known = theory.constants(problem)
    plan = theory.theorem_2(known)
    path = np.zeros(epochs + 1)

    def look(at):
        path[at.epoch] += known.distance(at.theta, at.omega) / runs

    for seed in range(runs):
        solver = va.SCSG(step_theta="theory", batch_fraction=plan.batch / known.n_rows)
        solver.solve(problem, epochs=epochs, seed=seed, callback=look)
    rate = (path[-1] / path[settled]) ** (1 / (epochs - settled))
    print(f"B = {plan.batch:,} of {known.n_rows:,} rows, the least that Theorem 2 takes")
    print(f"limits of step_theta: {plan.limits[0]:.3g} and {plan.limits[1]:.3g}")
    print(f"1 / (sigma B lambda_min) = {plan.slowness:.1f}")
    print(f"5.6 lambda_max / lambda_min = {5.6 * known.lambda_max / known.lambda_min:.1f}")
    print(f"left by an epoch, allowed by the theorem: {plan.factor:.4f}")
    print(f"left by an epoch, predicted: {1 / (1 + 2 / plan.slowness):.4f}")
    print(f"left by an epoch, measured: {rate:.4f}, mean of {runs} runs")
    passes = np.log(accuracy) / np.log(rate) * 2 * plan.batch / known.n_rows
    print(f"passes to {accuracy:g} of the squared distance, at that rate: {passes:.0f}")


def show_table_1(problem, accuracy=1e-4):
    known = theory.constants(problem)
    print(f"{'':14}{'constants 1':>13}{'corrected':>13}{'guaranteed':>13}")
    for cost in theory.table_1(known, accuracy * known.distance()):
        proved = f"{cost.bound / cost.n_rows:13.3g}" if cost.bound else f"{'-':>13}"
        print(f"{cost.method:14}{cost.passes:13.3g}{cost.corrected_passes:13.3g}{proved}")


if __name__ == "__main__":
    chain = TabularMDP([[[0.7, 0.3]], [[0.3, 0.7]]], np.array([0.0, 1.0]).reshape(2, 1, 1), discount=0.2)
    two_states = problem_of(chain, 100_000)
    small = problem_of(RandomMDP(30, 4, 2, 0.5), 5_000)
    show_constants({"two states": two_states, "small": small, "Random MDP": problem_of(RandomMDP(), 5_000)})
    print()
    show_lemma_1()
    for name, problem, runs in (("two states", two_states, 20), ("small", small, 2)):
        print(f"\n{name}:")
        show_theorem_1(problem, runs)
    print("\ntwo states:")
    show_corollary_2(two_states)
    for name, problem in (("two states", two_states), ("small", small)):
        print(f"\n{name}:")
        show_table_1(problem)
