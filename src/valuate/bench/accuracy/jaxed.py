"""LSTD and TD as a user of JAX would write them, compiled and on device arrays off the clock; where it is there."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from valuate.bench.accuracy.contestants import Bout, Needs, Outcome, Refused
from valuate.bench.accuracy.lstd import plan
from valuate.bench.accuracy.steps import SKIPPED, STEP, largest
from valuate.bench.rivals import jax_in_double_precision

if TYPE_CHECKING:
    from valuate.bench.accuracy.logs import Log
    from valuate.bench.accuracy.recording import Recorder

#: Bytes of rows up to which a copy for JAX is made.
MOST_BYTES = 3e9
#: Rows of a block of a product; parts of the log between two looks at TD.
BLOCK, PARTS = 8192, 20


def lstd(bout: Bout, recorder: Recorder) -> Outcome:
    """One compiled loop over blocks of rows, and the solution of the system."""
    _require(bout.log)
    way = bout.known.setdefault("LSTD", plan(bout.log, bout.direct_limit))
    if isinstance(way, Needs):
        return Outcome(message=way.why, needs=way)
    with jax_in_double_precision():
        import jax

        arguments = _arrays(bout.log)
        compiled = jax.jit(_solved).lower(*arguments).compile()
        recorder.start()
        theta = jax.block_until_ready(compiled(*arguments))
        recorder.look(np.asarray(theta, dtype=np.float64), passes=1.0)
    return Outcome(setting=f"blocks of {BLOCK:,} rows")


def td(bout: Bout, recorder: Recorder) -> Outcome:
    """Steps in the log's order as a compiled scan, averaged; the size of a step is taken off the clock."""
    log = bout.log
    _require(log)
    with jax_in_double_precision():
        import jax

        step = STEP / largest(log)
        table, rewards, scale, decay, _ = _arrays(log)
        each = log.n // PARTS
        run = jax.jit(_scanned, static_argnums=0).lower(each, table, rewards, scale, decay, *_start(log), step)
        compiled = run.compile()
        theta, total = _start(log)[:2]
        recorder.start()
        visits, points = 0, 0
        while not recorder.finished:
            first = visits % (each * PARTS)
            theta, added = jax.block_until_ready(
                compiled(table, rewards, scale, decay, theta, 0 * total, jax.numpy.int64(first), step)
            )
            visits += each
            if visits > SKIPPED * log.n:
                total, points = total + added / each, points + 1
            found = np.asarray(total / points if points else theta, dtype=np.float64)
            if not np.isfinite(found).all():
                return Outcome(setting=f"step {step:.2g}", message="it diverged")
            recorder.look(found, passes=visits / log.n)
    return Outcome(setting=f"step {step:.2g}, averaged")


def _require(log: Log) -> None:
    if find_spec("jax") is None:
        raise Refused("not installed")
    if log.is_sparse or log.states is not None:
        raise Refused("dense rows only")
    if log.table.nbytes > MOST_BYTES or log.n < BLOCK:
        raise Refused(f"from {BLOCK:,} rows to {MOST_BYTES / 1e9:g} GB")


def _arrays(log: Log) -> tuple[Any, ...]:
    import jax.numpy as jnp

    kind = log.table.dtype
    scale = np.ones(log.n) if log.ratios is None else log.ratios
    columns = (log.rewards, scale, scale * log.discounts)
    return jnp.asarray(log.table), *(jnp.asarray(column.astype(kind)) for column in columns), log.ridge


def _start(log: Log) -> tuple[Any, ...]:
    import jax.numpy as jnp

    return jnp.zeros(log.dim, log.table.dtype), jnp.zeros(log.dim, log.table.dtype), jnp.int64(0)


def _solved(table: Any, rewards: Any, scale: Any, decay: Any, ridge: Any) -> Any:
    import jax
    import jax.numpy as jnp

    n, dim = len(rewards), table.shape[1]

    def add(k: Any, sums: Any) -> Any:
        # The last block begins earlier, and rows that an earlier one has had count for nothing.
        first = jnp.minimum(k * BLOCK, n - BLOCK)
        new = first + jnp.arange(BLOCK) >= k * BLOCK
        rows = jax.lax.dynamic_slice(table, (first, 0), (BLOCK + 1, dim))
        r, s, g = (jnp.where(new, jax.lax.dynamic_slice(c, (first,), (BLOCK,)), 0) for c in (rewards, scale, decay))
        phi, following = rows[:-1], rows[1:]
        return (
            sums[0] + phi.T @ (s[:, None] * phi - g[:, None] * following),
            sums[1] + (s * r) @ phi,
        )

    zero = jnp.zeros((dim, dim), jnp.float64), jnp.zeros(dim, jnp.float64)
    a, b = jax.lax.fori_loop(0, -(-n // BLOCK), add, zero)
    return jnp.linalg.solve(a / n + ridge * jnp.eye(dim), b / n)


def _scanned(
    each: int, table: Any, rewards: Any, scale: Any, decay: Any, theta: Any, total: Any, first: Any, step: Any
) -> Any:
    import jax

    def one(state: Any, t: Any) -> Any:
        theta, total = state
        phi = table[t]
        error = scale[t] * rewards[t] + decay[t] * (table[t + 1] @ theta) - scale[t] * (phi @ theta)
        theta = theta + (step * error).astype(theta.dtype) * phi
        return (theta, total + theta), None

    return jax.lax.scan(one, (theta, total), first + jax.numpy.arange(each))[0]
