"""Reading logs as people really have them, and writing them: ``read``, ``write``, ``convert``, ``Reading``."""

from __future__ import annotations

from valuate.io.reading import convert, read
from valuate.io.report import Reading
from valuate.io.writing import write

__all__ = ["Reading", "convert", "read", "write"]
