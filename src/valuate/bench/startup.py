"""How long a new process takes until the package answers, and whether it has to compile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

import valuate
from valuate.bench.children import fresh, in_child
from valuate.bench.timing import Taken, interleaved

if TYPE_CHECKING:
    from collections.abc import Callable

    from valuate.bench.scale import Scale

TIMED = "import time; began = time.perf_counter(); {}; print(time.perf_counter() - began)"
FIRST_ANSWER = (
    "import valuate as va; import numpy as np; rows = np.eye(8); "
    "va.SVRG().solve(va.Problem.from_arrays(rows, np.ones(8), rows[::-1], discount=0.9), passes=4)"
)


def import_seconds(scale: Scale) -> Taken:
    """Seconds that ``import valuate`` takes; beside it the larger parts and the first answer of a solver."""
    pieces = {"import valuate": "import valuate", "to va.Problem": "import valuate; valuate.Problem"}
    if "LinearValue" in valuate.__all__:
        pieces["to va.LinearValue"] = "import valuate; valuate.LinearValue"
    pieces["to a first answer of SVRG"] = FIRST_ANSWER
    pieces["import numpy alone"] = "import numpy"
    samples = interleaved({name: _timing(code) for name, code in pieces.items()}, scale.rounds)
    return Taken(samples, unit="s", value=min(samples["import valuate"]))


def compiled_again(scale: Scale) -> Taken:
    """Kernels that a second process compiles although a first has used every method on every layout."""
    first, second = (in_child(f"{__name__}:use_everything") for _ in range(2))
    counts = [float(sum(compiled.values())) for compiled in (second, first)]
    return Taken(
        {"second process": [counts[0]], "first process": [counts[1]]},
        unit="kernels",
        value=counts[0],
        notes=[f"compiled again: {', '.join(second)}"] if second else [],
    )


def use_everything() -> dict[str, int]:
    """Solve small problems of every layout and type with every method; returns what had to be compiled."""
    from valuate import solvers
    from valuate._kernels.compiled import compiled_here

    exported = [getattr(solvers, name) for name in solvers.__all__]
    methods = [thing for thing in exported if hasattr(thing, "solve") and thing is not solvers.Stochastic]
    for problem in _problems():
        for method in methods:
            method().solve(problem, **({} if method is solvers.LSTD else {"passes": 2}))
        valuate.ridge_path(problem, [0.1, 1.0])
    return compiled_here()


def _problems() -> list[Any]:
    import scipy.sparse as sp

    rng = np.random.default_rng(41)
    n, dim = 12, 3
    found = []
    for dtype in ("float64", "float32"):
        features, next_features = (rng.standard_normal((n, dim)).astype(dtype) for _ in range(2))
        rewards, weights = rng.standard_normal(n), rng.uniform(0.5, 1.0, n)
        states, next_states = (rng.integers(0, dim, n) for _ in range(2))
        for ridge in (0.0, 0.1):
            rest: dict[str, Any] = {"discount": 0.9, "weights": weights, "ridge": ridge}
            found += [
                valuate.Problem.from_arrays(features, rewards, next_features, **rest),
                valuate.Problem.from_table(features[:dim], states, rewards, next_states, **rest),
                valuate.Problem.from_arrays(sp.csr_matrix(features), rewards, sp.csr_matrix(next_features), **rest),
            ]
    return found


def _timing(code: str) -> Callable[[], float]:
    return lambda: float(fresh(TIMED.format(code)))
