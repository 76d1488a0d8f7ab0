"""The paper's figures and tables: each one declarative file, one runner and one store for all.

::

    from valuate import experiments, report

    outcome = experiments.reproduce(["table-2", "figure-1"], scale="smoke", out="here")
    report.make_report(outcome.folder)

Every finished run is one line of ``runs.jsonl`` in the folder; an interrupted reproduction goes on where it ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from valuate.experiments.catalogue import NAMES
    from valuate.experiments.plan import SCALES
    from valuate.experiments.session import Outcome, reproduce

__all__ = ["NAMES", "SCALES", "Outcome", "reproduce"]

_HOME = {"NAMES": "catalogue", "SCALES": "plan", "Outcome": "session", "reproduce": "session"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
