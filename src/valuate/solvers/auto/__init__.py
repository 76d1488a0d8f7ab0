"""The solver that chooses: the method by what each would cost, the end by what the log can tell."""

from valuate.solvers.auto.method import Auto

__all__ = ["Auto"]
