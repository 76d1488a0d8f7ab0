"""Runs on columns scaled alike, so that the size of a step does not depend on the units of a feature.

A step that is safe for the largest column is tiny for the others. Columns are divided by the power of two next to their
largest entry, which loses nothing, and the answer is in the given units again. What is scaled is a copy of the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.errors import InputError
from valuate.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from valuate.solution import Solution
    from valuate.solvers.request import Request

    Vector = NDArray[np.float64]

#: Columns are left as they are when the largest peak is at most this many times the smallest.
ALIKE = 8.0


def units(method: Any, problem: Problem) -> Vector | None:
    """What every column is multiplied by before a run; None where it runs as it is.

    A ridge penalises weights in the units that were given, so a problem with one stays as it is.
    """
    wanted = method.scale
    if wanted and problem.ridge > 0:
        raise InputError("scale=True and a ridge do not go together: the ridge is in the units of the columns.")
    if wanted is None:
        wanted = method.is_automatic and problem.ridge == 0.0
    if not wanted:
        return None
    peaks = problem.rows.column_peaks()
    there = peaks[peaks > 0]
    if not len(there) or (method.scale is None and there.max() <= ALIKE * there.min()):
        return None
    return np.asarray(np.where(peaks > 0, np.exp2(-np.round(np.log2(np.where(peaks > 0, peaks, 1.0)))), 1.0))


def solve(
    method: Any,
    problem: Problem,
    request: Request,
    given: Vector,
    run: Callable[[Any, Problem, Request], Solution],
) -> Solution:
    """Run on a copy whose columns are multiplied by ``given``; the answer is for the problem itself."""
    scaled = Problem(problem.rows.scaled(given))
    theta, omega = request.start(problem)
    callback = request.callback
    if callback is not None:

        def told(progress: Any) -> object:
            return callback(replace(progress, theta=progress.theta * given, omega=progress.omega * given))

        request = replace(request, callback=told)
    request = replace(request, theta=theta / given, omega=omega / given)
    found = run(replace(method, scale=True), scaled, request)
    return replace(found, theta=found.theta * given, omega=found.omega * given)
