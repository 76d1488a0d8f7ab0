"""What the library raises and warns with.

::

    Exception
    └── ValuateError                        everything the library raises on purpose
        ├── InputError      (ValueError)    an argument has a value that cannot be used
        ├── InputTypeError  (TypeError)     an argument is of a kind that cannot be used
        ├── SolverError     (RuntimeError)  a solver ended without the answer that was asked for
        └── MissingPartError (ImportError)  an optional part is not installed

    UserWarning
    └── ValuateWarning                      everything the library warns with
        └── PrecisionWarning                the answer has fewer correct digits than usual

Each error is also the built-in error in brackets, so that code written for the built-in ones keeps working.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from valuate.solution import Solution

__all__ = [
    "InputError",
    "InputTypeError",
    "MissingPartError",
    "PrecisionWarning",
    "SolverError",
    "ValuateError",
    "ValuateWarning",
]


class ValuateError(Exception):
    """Base of every error that the library raises on purpose."""


class InputError(ValuateError, ValueError):
    """An argument has a value that cannot be used; the message says which, where and what to do."""


class InputTypeError(ValuateError, TypeError):
    """An argument is of a kind that cannot be used; the message says which and what to give instead."""


class SolverError(ValuateError, RuntimeError):
    """A solver ended without the answer that was asked for.

    Parameters
    ----------
    message : str
        What happened and what to try.
    solution : Solution, optional
        What the solver had when it ended. It stays readable here: its trace usually shows what went wrong.
    """

    def __init__(self, message: str, solution: Solution | None = None) -> None:
        super().__init__(message)
        self.solution = solution


class MissingPartError(ValuateError, ImportError):
    """An optional part is not installed.

    Parameters
    ----------
    part : str
        The package that is missing, under the name it is imported by.
    extra : str
        The extra of this package that brings it.
    purpose : str, optional
        What needed it, as the beginning of a sentence ("Reading Parquet files").
    """

    def __init__(self, part: str, extra: str, purpose: str = "This") -> None:
        super().__init__(
            f"{purpose} needs {part}, which is not installed. Install it with: pip install 'valuate[{extra}]'",
            name=part,
        )
        self.part = part
        self.extra = extra
        self.purpose = purpose

    def __reduce__(self) -> tuple[Any, ...]:
        # An exception is pickled through its message; ours is built from three words.
        return type(self), (self.part, self.extra, self.purpose)


class ValuateWarning(UserWarning):
    """Base of every warning of the library."""


class PrecisionWarning(ValuateWarning):
    """The answer has fewer correct digits than usual; the message says how many and why."""
