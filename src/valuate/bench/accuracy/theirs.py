"""What a user would write instead."""

from __future__ import annotations

from functools import partial

from valuate.bench.accuracy import jaxed, krylov, lstd, steps
from valuate.bench.accuracy.contestants import Contestant

#: The one that others are held against, and whose time their limit is a multiple of.
BASELINE = "NumPy LSTD"

THEIRS = (
    Contestant(BASELINE, "theirs", lstd.solved),
    Contestant(f"{BASELINE}, float64", "theirs", partial(lstd.solved, double=True)),
    Contestant("SciPy GMRES", "theirs", krylov.gmres),
    Contestant("SciPy GMRES, float64", "theirs", partial(krylov.gmres, double=True)),
    Contestant("NumPy TD loop", "theirs", steps.td),
    Contestant("JAX LSTD", "theirs", jaxed.lstd),
    Contestant("JAX TD scan", "theirs", jaxed.td),
)
