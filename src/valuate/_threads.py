"""Blocks of work on all cores, with results that do not depend on how many there are."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from valuate.errors import InputError

#: A block is worth a thread's attention from this many entries on (about a third of a millisecond).
ENTRIES_A_BLOCK = 1 << 19
MOST_BLOCKS = 64

_pool: tuple[int, int, ThreadPoolExecutor] | None = None


def thread_count() -> int:
    """Cores that this process may use; the environment variable VALUATE_NUM_THREADS asks for fewer or more."""
    asked = os.environ.get("VALUATE_NUM_THREADS", "").strip()
    if asked:
        if not asked.isdigit() or int(asked) == 0:
            raise InputError(f"VALUATE_NUM_THREADS must be a whole number above 0, not {asked!r}. Or unset it.")
        return int(asked)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def cut(n_rows: int, entries_a_row: int, dim: int) -> list[tuple[int, int]]:
    """Cut ``n_rows`` rows into blocks whose number depends on the problem's shape alone.

    Every block needs an output of ``dim`` entries, so blocks are no smaller than a few times that.
    """
    entries = n_rows * entries_a_row
    count = max(1, min(MOST_BLOCKS, entries // ENTRIES_A_BLOCK, entries // (8 * dim)))
    edges = [n_rows * k // count for k in range(count + 1)]
    return list(zip(edges[:-1], edges[1:], strict=True))


def run_all(tasks: Sequence[Callable[[], None]]) -> None:
    """Call every task, on all cores when there are several; an error is raised once all threads are done.

    Threads take one task after the other: handed over one by one, small tasks would wait for the handing over.
    """
    global _pool
    workers = thread_count()
    if len(tasks) == 1 or workers == 1:
        for task in tasks:
            task()
        return
    if _pool is None or _pool[:2] != (os.getpid(), workers):
        _pool = (os.getpid(), workers, ThreadPoolExecutor(workers, thread_name_prefix="valuate"))
    left = iter(tasks)

    def work() -> None:
        for task in left:
            task()

    futures = [_pool[2].submit(work) for _ in range(min(workers, len(tasks)))]
    errors = [future.exception() for future in futures]  # which waits for each
    for error in filter(None, errors):
        raise error
