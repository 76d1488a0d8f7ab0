"""The experiments by name, and which of them a command asks for."""

from __future__ import annotations

from collections.abc import Sequence

from valuate.errors import InputError
from valuate.experiments import figure_1, figure_2, table_1, table_2, table_3
from valuate.experiments.plan import Experiment

#: Every experiment, parts and variants included, in the report's order.
EXPERIMENTS: dict[str, Experiment] = {
    made.name: made
    for made in (
        figure_1.EXPERIMENT,
        figure_1.GRID,
        figure_2.EXPERIMENT,
        table_1.EXPERIMENT,
        table_2.EXPERIMENT,
        table_3.EXPERIMENT,
        table_3.RIGHT_TERMINATION,
    )
}

#: What can be asked for by name.
NAMES = ("figure-1", "figure-2", "table-1", "table-2", "table-3")


def chosen(names: Sequence[str], *, grid: bool, right_termination: bool) -> list[str]:
    """The experiments behind names and options."""
    unknown = [name for name in names if name not in (*NAMES, "all")]
    if unknown or not names:
        what = f"There is no experiment {unknown[0]!r}." if unknown else "No experiment is named."
        raise InputError(f"{what} There are: {', '.join(NAMES)}; or all.")
    wanted = NAMES if "all" in names else [name for name in NAMES if name in names]
    out = []
    for name in wanted:
        out.append(table_3.RIGHT_TERMINATION.name if name == "table-3" and right_termination else name)
        if name == "figure-1" and grid:
            out.append(figure_1.GRID.name)
    if grid and "figure-1" not in wanted:
        raise InputError("The grid is a part of figure-1: name it as well.")
    if right_termination and "table-3" not in wanted:
        raise InputError("The right termination is a variant of table-3: name it as well.")
    return out
