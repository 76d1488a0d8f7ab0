"""The numbers of docs/theory.md: constants, Lemma 1, the slack of Theorem 1, the error of Corollary 2, Table 1."""

import numpy as np

import valuate as va
from valuate import theory
from valuate.environments import RandomMDP, TabularMDP


def problem_of(process, rows):
    log = process.collect(rows, seed=1)
    return va.Problem.from_transitions(log, process.features, discount=process.discount)


def show_constants(problems):
    rows = {name: theory.constants(problem) for name, problem in problems.items()}
    print(f"{'':22}" + "".join(f"{name:>13}" for name in rows))
    for name in ("n_rows", "dim", "beta", "lambda_min", "lambda_max", "kappa", "L_G_squared", "H"):
        print(f"{name:22}" + "".join(f"{getattr(known, name):13.4g}" for known in rows.values()))
    plans = [theory.theorem_1(known) for known in rows.values()]
    print(f"{'step_theta, Theorem 1':22}" + "".join(f"{plan.step_theta:13.3g}" for plan in plans))
    print(f"{'passes an epoch':22}" + "".join(f"{1 + plan.steps_per_row:13.3g}" for plan in plans))


def show_lemma_1(times=200):
    shares = (1, 0.5, 0.25, 0.125)
    real = dict.fromkeys(shares, 0)
    for seed in range(times):
        rng = np.random.default_rng(seed)
        dim = int(rng.integers(2, 8))
        phi, next_phi = rng.normal(size=(2, 60, dim))
        problem = va.Problem.from_arrays(phi, rng.normal(size=60), next_phi, discount=rng.uniform(0, 1))
        A, _, C = problem.moments()
        beta = theory.constants(problem).beta
        for share in shares:
            values = np.linalg.eigvals(theory.saddle_matrix(A, C, share * beta))
            real[share] += bool((abs(values.imag) < 1e-9 * abs(values)).all() and (values.real > 0).all())
    for share, count in real.items():
        print(f"{share:5g} beta: all eigenvalues of G real and positive in {count} of {times} random problems")


def show_theorem_1(problem, runs):
    known = theory.constants(problem)
    plan = theory.theorem_1(known)
    solver = va.SVRG(step_theta="theory", steps_per_row=plan.steps_per_row)
    left = []
    for seed in range(runs):
        solution = solver.solve(problem, epochs=1, seed=seed)
        left.append(known.potential(solution.theta, solution.omega) / known.potential())
    slow = np.exp(-2 * plan.steps * plan.step_theta * known.lambda_min)
    print(f"one epoch of {plan.steps:,} steps of {plan.step_theta:.3g}, mean of {runs} runs")
    print(f"left of |Q^-1 Delta|^2: {np.mean(left):.3g}; the theorem allows {plan.factor:.3g}: {plan.factor / np.mean(left):.0f} times as much")
    print(f"the slowest direction alone would be left with {slow:.3g}")


def show_corollary_2(problem, runs=10, epochs=80, late=30):
    known = theory.constants(problem)
    plan = theory.theorem_2(known)
    solver = va.SCSG(step_theta="theory", batch_fraction=plan.batch / known.n_rows)
    path = np.zeros(epochs)
    for seed in range(runs):
        solver.solve(
            problem,
            epochs=epochs,
            seed=seed,
            callback=lambda at: path.__setitem__(at.epoch - 1, path[at.epoch - 1] + known.distance(at.theta, at.omega)),
        )
    print(f"B = {plan.batch:,} of {known.n_rows:,} rows, the least that Theorem 2 takes")
    print(f"the two limits of step_theta: {plan.limits[0]:.3g} and {plan.limits[1]:.3g}")
    print(f"1 / (sigma B lambda_min) = {plan.slowness:.1f}; 5.6 lambda_max / lambda_min = {5.6 * known.lambda_max / known.lambda_min:.1f}; the proof says O(1)")
    print(f"left by an epoch: at most {plan.factor:.4f} (theorem)")
    print(f"                  {(path[-1] / path[late]) ** (1 / (epochs - late - 1)):.4f} (measured, {runs} runs)")
    print(f"                  {1 / (1 + 2 / plan.slowness):.4f} (1 / (1 + 2 sigma B lambda_min))")


def show_table_1(problem, accuracy=1e-4):
    known = theory.constants(problem)
    print(f"passes to reach {accuracy:g} of the squared distance of the start")
    print(f"{'':14}{'constants 1':>13}{'corrected':>13}{'guaranteed':>13}")
    for cost in theory.table_1(known, accuracy * known.distance()):
        proved = f"{cost.bound / cost.n_rows:13.3g}" if cost.bound else f"{'-':>13}"
        print(f"{cost.method:14}{cost.passes:13.3g}{cost.corrected_passes:13.3g}{proved}")


if __name__ == "__main__":
    two = TabularMDP([[[0.7, 0.3]], [[0.3, 0.7]]], np.array([0.0, 1.0]).reshape(2, 1, 1), discount=0.2)
    problems = {
        "two states": problem_of(two, 100_000),
        "small": problem_of(RandomMDP(30, 4, 2, 0.5), 5_000),
        "Random MDP": problem_of(RandomMDP(), 5_000),
    }
    show_constants(problems)
    print()
    show_lemma_1()
    for name, runs in (("two states", 20), ("small", 3)):
        print(f"\n{name}:")
        show_theorem_1(problems[name], runs)
    print("\ntwo states:")
    show_corollary_2(problems["two states"])
    for name in ("two states", "small"):
        print(f"\n{name}:")
        show_table_1(problems[name])
