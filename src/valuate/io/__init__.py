"""Reading logs as people really have them, and writing them: ``read``, ``read_states``, ``write``, ``convert``."""

from __future__ import annotations

from valuate.io.reading import convert, read, read_states
from valuate.io.report import Reading
from valuate.io.states import States
from valuate.io.writing import write

__all__ = ["Reading", "States", "convert", "read", "read_states", "write"]
