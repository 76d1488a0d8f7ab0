"""The traces of stages as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from valuate.solution import Trace


def joined(traces: list[Trace], n_rows: int) -> Trace:
    """One trace of several, one after the other."""
    if len(traces) == 1:
        return traces[0]
    parts: dict[str, list[Any]] = {name: [] for name in ("epoch", "row_visits", "seconds", "mspbe")}
    before = dict.fromkeys(parts, 0.0)
    for trace in traces:
        for name, values in parts.items():
            values.append(getattr(trace, name) + (0.0 if name == "mspbe" else before[name]))
        for name in ("epoch", "row_visits", "seconds"):
            if len(trace):
                before[name] = float(parts[name][-1][-1])
    joined = {name: np.concatenate(values) for name, values in parts.items()}
    visits = joined["row_visits"].astype(np.int64)
    return Trace(joined["epoch"].astype(np.int64), visits, visits / n_rows, joined["seconds"], joined["mspbe"])
