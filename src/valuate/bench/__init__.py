"""Benchmarks that anyone can run: every line is a ratio to a limit, or to another way, measured in the same run.

::

    from valuate import bench

    report = bench.run(quick=True, only=["sparse"])
    report.missed

Each measurement has its own process; limit and kernel take turns there, so that drift of the machine meets both.
`valuate.bench.catalogue` lists them.
"""

from valuate.bench.report import Measurement, Report
from valuate.bench.running import run, run_and_show

__all__ = ["Measurement", "Report", "run", "run_and_show"]
