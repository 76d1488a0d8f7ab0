"""The paper's convergence analysis as numbers, for one problem.

::

    from valuate import theory

    known = theory.constants(problem)
    known.beta, known.lambda_min, known.kappa, known.L_G_squared, known.H
    theory.theorem_1(known).step_theta
    theory.table_1(known, epsilon=1e-3)

``SVRG(step_theta="theory")`` uses the step sizes. They keep what they promise and are far too small to be of use:
`docs/theory.md` shows by how much.
"""

from valuate.theory.costs import Cost, table_1
from valuate.theory.noise import gradient_variance, mean_square_gradient
from valuate.theory.quantities import PASSES, Constants, constants
from valuate.theory.spectrum import saddle_matrix
from valuate.theory.theorems import Corollary1, Theorem1, Theorem2, corollary_1, theorem_1, theorem_2

__all__ = [
    "PASSES",
    "Constants",
    "Corollary1",
    "Cost",
    "Theorem1",
    "Theorem2",
    "constants",
    "corollary_1",
    "gradient_variance",
    "mean_square_gradient",
    "saddle_matrix",
    "table_1",
    "theorem_1",
    "theorem_2",
]
