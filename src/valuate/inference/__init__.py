"""Values of policies with standard errors and intervals, from a fitted problem or from a log alone.

::

    from valuate import inference

    number = inference.policy_value(problem, solution)                  # of the episodes' first states
    print(number.value, number.interval)
    print(inference.compare(number, inference.policy_value(other_problem, other_solution)))

What an interval covers, and what not: docs/intervals.md.
"""

from valuate.inference.comparing import compare
from valuate.inference.continuing import continued_return, with_model_error
from valuate.inference.fixed_point import policy_value
from valuate.inference.returns import baselines, doubly_robust, logged_return, pdis, weighted_is
from valuate.inference.value import Difference, PolicyValue, Standing

__all__ = [
    "Difference",
    "PolicyValue",
    "Standing",
    "baselines",
    "compare",
    "continued_return",
    "doubly_robust",
    "logged_return",
    "pdis",
    "policy_value",
    "weighted_is",
    "with_model_error",
]
