import copy
import pickle

import pytest

from valuate import errors

TREE = {
    errors.ValuateError: (Exception,),
    errors.InputError: (errors.ValuateError, ValueError),
    errors.InputTypeError: (errors.ValuateError, TypeError),
    errors.SolverError: (errors.ValuateError, RuntimeError),
    errors.MissingPartError: (errors.ValuateError, ImportError),
    errors.ValuateWarning: (UserWarning,),
    errors.PrecisionWarning: (errors.ValuateWarning,),
}


@pytest.mark.parametrize("error", TREE)
def test_tree_is_as_drawn(error: type[Exception]) -> None:
    assert error.__bases__ == TREE[error]
    assert error.__name__ in (errors.__doc__ or "")
    assert error.__module__ == "valuate.errors"


def test_every_class_is_exported() -> None:
    assert sorted(errors.__all__) == sorted(error.__name__ for error in TREE)


def test_solver_error_keeps_its_solution() -> None:
    error = errors.SolverError("the run diverged", {"theta": [1.0]})
    assert str(error) == "the run diverged"
    assert error.solution == {"theta": [1.0]}
    assert errors.SolverError("no answer").solution is None


@pytest.mark.parametrize("clone", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy])
def test_errors_survive_pickle_and_copy(clone) -> None:
    solver = clone(errors.SolverError("the run diverged", {"theta": [1.0]}))
    assert (type(solver), str(solver), solver.solution) == (
        errors.SolverError,
        "the run diverged",
        {"theta": [1.0]},
    )
    missing = clone(errors.MissingPartError("pyarrow", "parquet", "Reading Parquet files"))
    assert (missing.part, missing.extra, missing.purpose, missing.name) == (
        "pyarrow",
        "parquet",
        "Reading Parquet files",
        "pyarrow",
    )


def test_missing_part_names_the_extra() -> None:
    error = errors.MissingPartError("pyarrow", "parquet", "Reading Parquet files")
    assert str(error) == (
        "Reading Parquet files needs pyarrow, which is not installed. Install it with: pip install 'valuate[parquet]'"
    )
    assert str(errors.MissingPartError("ray", "ray")).startswith("This needs ray, which")
