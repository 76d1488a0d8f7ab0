"""The numbers that the paper prints.

Zilun Peng, Ahmed Touati, Pascal Vincent and Doina Precup, "SVRG for policy evaluation with fewer gradient evaluations",
IJCAI 2020: Tables 2 and 3. Its figures are drawings; there are no numbers to compare with.
"""

from __future__ import annotations

from valuate.experiments.results import Spread

SOURCE = 'Peng, Touati, Vincent and Precup, "SVRG for policy evaluation with fewer gradient evaluations", IJCAI 2020'

#: Table 2: passes of SVRG and batching SVRG, rounded as printed.
PASSES = {
    "random-mdp": {"svrg": 100, "batching-svrg": 71},
    "mountain-car": {"svrg": 40, "batching-svrg": 31},
    "cart-pole": {"svrg": 100, "batching-svrg": 71},
    "acrobot": {"svrg": 100, "batching-svrg": 71},
}

METHODS = ("gtd2", "svrg", "saga", "batching-svrg", "scsg", "lstd")

#: Rows of a data set and repetitions, for the rows of Table 3 with little and with much data.
SMALL, LARGE = (20_000, 50), (1_000_000, 20)

#: Table 3: mean and standard deviation of the steps of an episode, a method each; None where none is printed.
TABLE_3: dict[str, tuple[tuple[float, float | None], ...]] = {
    "mountain-car": ((348, 181), (186, 149), (166, 125), (170, 135), (276, 178), (292, 187)),
    "cart-pole": ((163, 95), (280, 88), (246, 75), (283, 82), (217, 100), (183, 80)),
    "acrobot": ((431, 128), (96, 6), (101, 6), (97, 6), (126, 78), (176, 157)),
    "mountain-car-large": ((197, 12), (200, 0), (200, 0), (200, 0), (199, 7), (116, 6)),
    "cart-pole-large": ((155, 84), (9, None), (9, None), (297, 100), (258, 111), (290, 26)),
    "acrobot-large": ((445, 96), (500, None), (500, None), (113, 26), (97, 6), (91, 4)),
}


def rows_of(name: str) -> int:
    """Rows of the data sets behind a row of Table 3."""
    return (LARGE if name.endswith("-large") else SMALL)[0]


def steps(name: str, method: str) -> Spread:
    """A cell of Table 3."""
    mean, sd = TABLE_3[name][METHODS.index(method)]
    return Spread(mean, sd, (LARGE if name.endswith("-large") else SMALL)[1])


#: Figure 2's data set and runs.
FIGURE_2_ROWS, FIGURE_2_RUNS = 10_000_000, 10
