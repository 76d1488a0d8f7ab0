"""TD as a loop in Python over NumPy rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from valuate.bench.accuracy.contestants import Bout, Outcome

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from valuate.bench.accuracy.logs import Log
    from valuate.bench.accuracy.recording import Recorder

    Vector = NDArray[np.float64]

#: The step is this over the largest ratio * |phi| * |delta|.
STEP = 0.5
#: Points between looks, as a share of the log; and steps between points of the average.
LOOKS, SPACING = 20, 64
#: Share of the first pass that is left out of the average.
SKIPPED = 0.2


def td(bout: Bout, recorder: Recorder) -> Outcome:
    """Steps in the log's order, averaged; the size of a step from the longest rows, which is on the clock."""
    log = bout.log
    recorder.start()
    step = STEP / largest(log)
    steps = [step] * log.n if log.ratios is None else (step * log.ratios).tolist()
    theta, total, points = np.zeros(log.dim), np.zeros(log.dim), 0
    advance = _loop(log, steps, 1 - step * log.ridge)
    each = max(1, log.n // LOOKS)
    visits = 0
    while not recorder.finished:
        first = visits % log.n
        last = min(first + each, log.n)
        for begin in range(first, last, SPACING):
            advance(begin, min(begin + SPACING, last), theta)
            if visits >= SKIPPED * log.n:
                total += theta
                points += 1
        visits += last - first
        if not np.isfinite(theta).all():
            return Outcome(setting=f"step {step:.2g}", message="it diverged")
        recorder.look(total / points if points else theta, passes=visits / log.n)
    return Outcome(setting=f"step {step:.2g}, averaged")


def largest(log: Log) -> float:
    """The largest ratio * |phi| * |delta|; |delta| by its bound |phi| + discount |phi'| where rows are many."""
    if log.is_sparse:
        lengths = np.sqrt(np.asarray(log.table.multiply(log.table).sum(axis=1)).ravel())
    else:
        lengths = np.sqrt(np.einsum("ij,ij->i", log.table, log.table, dtype=np.float64))
    here, there = (
        (lengths[log.states], lengths[log.next_states]) if log.states is not None else (lengths[:-1], lengths[1:])
    )
    bound = here * (here + log.discounts * there)
    return float((bound if log.ratios is None else log.ratios * bound).max()) + log.ridge


def _loop(log: Log, steps: list[float], shrink: float) -> Callable[[int, int, Vector], None]:
    table, rewards, discounts = log.table, log.rewards.tolist(), log.discounts.tolist()
    states = range(log.n) if log.states is None else log.states.tolist()
    next_states = range(1, log.n + 1) if log.states is None else log.next_states.tolist()

    def dense(first: int, last: int, theta: Vector) -> None:
        for t in range(first, last):
            phi = table[states[t]]
            error = rewards[t] + discounts[t] * (table[next_states[t]] @ theta) - phi @ theta
            theta += (steps[t] * error) * phi
            if shrink < 1.0:
                theta *= shrink

    if not log.is_sparse:
        return dense
    starts, columns, values = table.indptr.tolist(), table.indices, table.data

    def sparse(first: int, last: int, theta: Vector) -> None:
        for t in range(first, last):
            a, b, c = starts[t], starts[t + 1], starts[t + 2]
            at = columns[a:b]
            error = rewards[t] + discounts[t] * (values[b:c] @ theta[columns[b:c]]) - values[a:b] @ theta[at]
            theta[at] += (steps[t] * error) * values[a:b]
        if shrink < 1.0:
            theta *= shrink ** (last - first)  # once for these steps: the ridge is tiny, and rows are not dense

    return sparse
