import subprocess
import sys

import pytest

import valuate

NAMES = [
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
NOT_LOADED = (
    "numba scipy sklearn pandas polars typer rich threadpoolctl gymnasium pyarrow h5py altair minari ray jax torch"
).split()


def in_a_new_process(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def test_all_is_sorted_and_complete() -> None:
    assert valuate.__all__ == sorted(valuate.__all__)
    assert valuate.__all__ == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_names_resolve_to_what_they_say(name: str) -> None:
    assert getattr(valuate, name).__name__ == name
    assert name in dir(valuate)


def test_names_are_found_once() -> None:
    assert valuate.Transitions is valuate.Transitions
    assert "Transitions" in vars(valuate)


def test_unknown_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="module 'valuate' has no attribute 'Transition'"):
        valuate.Transition  # noqa: B018  # the look-up is what is tested


def test_version() -> None:
    assert valuate.__version__ == "0.1.0"


def test_import_loads_nothing_heavy() -> None:
    code = "import sys, valuate; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = in_a_new_process(code)
    assert "'valuate'" in loaded
    assert [name for name in NOT_LOADED if f"'{name}'" in loaded] == []


def test_a_log_needs_numpy_only() -> None:
    code = (
        "import sys, valuate; valuate.Transitions([[0.0]], [1.0], [[1.0]]);"
        "print(sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = in_a_new_process(code)
    assert "'numpy'" in loaded
    assert [name for name in NOT_LOADED if f"'{name}'" in loaded] == []
