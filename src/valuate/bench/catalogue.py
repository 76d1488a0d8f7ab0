"""Every line of the benchmark. To add one, write a function from `Scale` to `Taken` and name it here."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from valuate.bench import against, gradient, startup, steps, tables
from valuate.bench.report import Target
from valuate.bench.scale import Scale
from valuate.bench.timing import NotHere

_GATHER = "SVRG step over a gather of its two rows"

LINES = (
    Target(
        name="dense-201-float64",
        what=f"{_GATHER}: d=201, DRAM",
        target=1.4,
        direction="at most",
        take=partial(steps.dense, dim=201, dtype="float64"),
    ),
    Target(
        name="dense-201-float32",
        what=f"{_GATHER}: d=201, DRAM",
        target=1.4,
        direction="at most",
        take=partial(steps.dense, dim=201, dtype="float32"),
    ),
    Target(
        name="indexed-201-float64",
        what=f"{_GATHER}: a table of states in DRAM",
        target=1.4,
        direction="at most",
        take=partial(steps.indexed, dtype="float64"),
    ),
    Target(
        name="indexed-201-float32",
        what=f"{_GATHER}: a table of states in DRAM",
        target=1.4,
        direction="at most",
        take=partial(steps.indexed, dtype="float32"),
    ),
    Target(
        name="cached-201-float64",
        what=f"{_GATHER}: 400 states in cache",
        target=2.0,
        direction="at most",
        take=partial(steps.cached, dtype="float64"),
    ),
    Target(
        name="cached-201-float32",
        what=f"{_GATHER}: 400 states in cache",
        target=2.5,
        direction="at most",
        take=partial(steps.cached, dtype="float32"),
    ),
    Target(
        name="dense-20",
        what=f"{_GATHER}: d=20, DRAM",
        target=1.8,
        direction="at most",
        take=partial(steps.dense, dim=20, dtype="float64"),
    ),
    Target(
        name="dense-1000",
        what=f"{_GATHER}: d=1000, DRAM",
        target=1.65,
        direction="at most",
        take=partial(steps.dense, dim=1000, dtype="float64"),
    ),
    Target(
        name="dense-5000",
        what=f"{_GATHER}: d=5000, DRAM",
        target=1.65,
        direction="at most",
        take=partial(steps.dense, dim=5000, dtype="float64"),
    ),
    *(
        Target(
            name=f"sparse-{dim}",
            what=f"{_GATHER}: 32 non-zeros of d={dim:,}",
            target=1.6,
            direction="at most",
            take=partial(steps.sparse, dim=dim),
        )
        for dim in (10_000, 100_000, 1_000_000)
    ),
    Target(
        name="sparse-dense-mean",
        what="a mean applied to every coordinate over our sparse step: d=100,000",
        target=15.0,
        direction="at least",
        take=partial(steps.sparse_against_every_coordinate, dim=100_000),
    ),
    *(
        Target(
            name=f"table-{method.lower()}",
            what=f"row visit of a pass of {method} over the step in cache: 400 states",
            target=2.5,
            direction="at most",
            take=partial(tables.one_pass, method=method),
        )
        for method in ("SCSG", "GTD2")
    ),
    Target(
        name="table-memory",
        what="memory that building a problem of 400 states adds (600 MB for 10 million rows)",
        target=60.0,
        direction="at most",
        take=tables.memory,
        unit="B/row",
    ),
    Target(
        name="gradient-read",
        what="full gradient over a sequential read of the rows: d=201, DRAM, one core",
        target=1.5,
        direction="at most",
        take=gradient.against_reading,
    ),
    Target(
        name="gradient-gemv",
        what="BLAS products with phi and next phi over the full gradient: d=201, DRAM, one core",
        target=2.5,
        direction="at least",
        take=gradient.against_products,
    ),
    *(
        Target(
            name=name.lower(),
            what=f"step in {name} over ours: d=201, DRAM",
            target=target,
            direction="at least",
            take=take,
        )
        for name, target, take in (
            ("JAX", 5.0, against.jax),
            ("NumPy", 30.0, against.numpy),
            ("torch", 50.0, against.torch),
        )
    ),
    Target(
        name="authors",
        what="step through d x d matrices over ours: d=201, 400 states",
        target=3000.0,
        direction="at least",
        take=against.authors,
    ),
    Target(
        name="import",
        what="import valuate in a new process",
        target=0.3,
        direction="at most",
        take=startup.import_seconds,
        unit="s",
    ),
    Target(
        name="compiled-again",
        what="kernels that a second process compiles",
        target=0.0,
        direction="at most",
        take=startup.compiled_again,
        unit="kernels",
    ),
)


def take(name: str, scale: dict[str, int]) -> dict[str, Any]:
    """Measure one line, in whatever process this is: what it found, or what it misses here."""
    line = next(line for line in LINES if line.name == name)
    try:
        return {"taken": asdict(line.take(Scale(**scale)))}
    except NotHere as missing:
        return {"missing": str(missing)}
