"""The output of docs/certificate.md: four answers and what their certificates say."""

import numpy as np

import valuate as va
from valuate.environments import RandomMDP


def problem_of(process, rows, **more):
    log = process.collect(rows, seed=1, **more)
    return va.Problem.from_transitions(log, process.features, discount=process.discount)


if __name__ == "__main__":
    process = RandomMDP(50, 3, 10, 0.9, seed=0)
    problem = problem_of(process, 20_000)
    print(va.SVRG().solve(problem, passes=5).certificate(problem))
    print()
    print(va.LSTD().solve(problem).certificate(problem))

    print("\nevery feature twice:")
    records = problem.rows.records
    twice = va.Problem.from_table(
        np.hstack([process.table, process.table]),
        records["state"],
        records["reward"],
        records["next"],
        discount=0.9,
    )
    print(va.LSTD().solve(twice).certificate(twice).verdict)

    print("\na policy that the log hardly ever followed:")
    rare = np.array([0.998, 0.001, 0.001])
    off = problem_of(process, 20_000, policy=np.tile(rare, (50, 1)), target=np.tile(rare[::-1], (50, 1)))
    print(va.LSTD().solve(off).certificate(off).verdict)
