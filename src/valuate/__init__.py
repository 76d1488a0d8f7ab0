"""Policy evaluation from logs of transitions, with linear value functions.

Names load when they are first used, so that importing the package stays quick::

    import valuate as va

    log = va.Transitions(states, rewards, next_states, terminated=terminated)
    problem = va.Problem.from_transitions(log, feature_map, discount=0.99)
    solution = va.SVRG().solve(problem, passes=50, tolerance=1e-8).require()
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from valuate.certificate import Certificate
    from valuate.errors import (
        InputError,
        InputTypeError,
        MissingPartError,
        PrecisionWarning,
        SolverError,
        ValuateError,
        ValuateWarning,
    )
    from valuate.estimator import LinearValue, compare_policies, cross_score, episode_folds, load_model
    from valuate.inspecting import Findings, inspect
    from valuate.io import read, write
    from valuate.problem import Problem
    from valuate.solution import Solution, Status, Trace
    from valuate.solvers import (
        GCR,
        GMRES,
        GTD,
        GTD2,
        LSMR,
        LSTD,
        SAGA,
        SCSG,
        SVRG,
        TD,
        TDC,
        Auto,
        BatchingSVRG,
        BiCGSTAB,
        RidgePath,
        ridge_path,
    )
    from valuate.summing import Moments
    from valuate.transitions import Transitions

__version__ = "0.1.0"

__all__ = [
    "Auto",
    "BatchingSVRG",
    "BiCGSTAB",
    "Certificate",
    "Findings",
    "GCR",
    "GMRES",
    "GTD",
    "GTD2",
    "InputError",
    "InputTypeError",
    "LSMR",
    "LSTD",
    "LinearValue",
    "MissingPartError",
    "Moments",
    "PrecisionWarning",
    "Problem",
    "RidgePath",
    "SAGA",
    "SCSG",
    "SVRG",
    "Solution",
    "SolverError",
    "Status",
    "TD",
    "TDC",
    "Trace",
    "Transitions",
    "ValuateError",
    "ValuateWarning",
    "compare_policies",
    "cross_score",
    "episode_folds",
    "inspect",
    "load_model",
    "read",
    "ridge_path",
    "write",
]

_MODULES = {
    "valuate.certificate": ("Certificate",),
    "valuate.errors": (
        "InputError",
        "InputTypeError",
        "MissingPartError",
        "PrecisionWarning",
        "SolverError",
        "ValuateError",
        "ValuateWarning",
    ),
    "valuate.estimator": ("LinearValue", "compare_policies", "cross_score", "episode_folds", "load_model"),
    "valuate.inspecting": ("Findings", "inspect"),
    "valuate.io": ("read", "write"),
    "valuate.problem": ("Problem",),
    "valuate.solution": ("Solution", "Status", "Trace"),
    "valuate.solvers": (
        "Auto",
        "BatchingSVRG",
        "BiCGSTAB",
        "GCR",
        "GMRES",
        "GTD",
        "GTD2",
        "LSMR",
        "LSTD",
        "RidgePath",
        "SAGA",
        "SCSG",
        "SVRG",
        "TD",
        "TDC",
        "ridge_path",
    ),
    "valuate.summing": ("Moments",),
    "valuate.transitions": ("Transitions",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'valuate' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
