"""The doctor: what a log holds, and what in it would make an answer wrong.

::

    import valuate as va

    found = va.inspect(log, feature_map, discount=0.99)
    print(found)
    found.ok, found.exit_code, found.as_dict()

The package is not called ``inspect``: a module of that name would take the place of the function `valuate.inspect` as
soon as it is imported.
"""

from valuate.inspecting.doctor import inspect
from valuate.inspecting.findings import CODES, Finding, Findings, Severity

__all__ = ["CODES", "Finding", "Findings", "Severity", "inspect"]
