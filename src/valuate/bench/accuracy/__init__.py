"""Seconds to an accuracy: every solver of ours, and what a user would write instead, over a fixed grid of problems.

::

    from valuate.bench import accuracy

    report = accuracy.run(only=["dense-2e4-200"])
    report.save_page("accuracy.html")

Each cell of the grid has a process of its own, in which all take part, so that ratios are within one run. What is
measured is described in `docs/accuracy.md`; `valuate.bench.accuracy.cells` has the grid.
"""

from valuate.bench.accuracy.report import AccuracyReport
from valuate.bench.accuracy.running import run, run_and_show

__all__ = ["AccuracyReport", "run", "run_and_show"]
