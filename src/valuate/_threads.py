"""Blocks of work on all cores, with results that do not depend on how many there are; and the threads of BLAS."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

from valuate.errors import InputError

#: Up to this dim factors of matrices are quicker on one thread than what the library's threads cost afterwards.
FACTORED_ALONE = 2048
#: A block is worth a thread's attention from this many entries on (a few tenths of a millisecond).
ENTRIES_A_BLOCK = 1 << 20
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
    """Call every task, on all cores when there are several; an error is raised once all have ended.

    Whoever calls takes part, so that little work is not held up by waking threads.
    """
    global _pool
    workers = min(thread_count(), len(tasks))
    if workers <= 1:
        for task in tasks:
            task()
        return
    if _pool is None or _pool[:2] != (os.getpid(), thread_count()):
        _pool = (os.getpid(), thread_count(), ThreadPoolExecutor(thread_count(), thread_name_prefix="valuate"))
    left = iter(tasks)

    def work() -> None:
        for task in left:
            task()

    helpers = [_pool[2].submit(work) for _ in range(workers - 1)]
    try:
        work()
    finally:
        for helper in helpers:
            helper.result()


class _Blas:
    """How many threads matrix libraries use: one while several of ours work in turn with small products of theirs.

    A library's threads go on asking for work for a tenth of a second after each product, and hold up ours on all cores
    but one. Measured at 2,000 features: 16 ms for a product with A that takes 9.
    """

    def __init__(self) -> None:
        from threadpoolctl import ThreadpoolController

        found = ThreadpoolController().lib_controllers
        self.libraries = [(library, library.num_threads) for library in found if library.user_api == "blas"]
        self.lock, self.depth = Lock(), 0

    def change(self, depth: int) -> None:
        """One thread from the first that enters to the last that leaves."""
        with self.lock:
            if self.depth == 0 < depth:
                self.libraries = [(library, library.num_threads) for library, _ in self.libraries]
            before, self.depth = self.depth, self.depth + depth
            if (before > 0) != (self.depth > 0):
                for library, threads in self.libraries:
                    library.set_num_threads(1 if self.depth > 0 else threads)


@cache
def _blas() -> _Blas:
    return _Blas()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Within, products of matrices keep to one thread."""
    blas: Any = _blas()
    blas.change(1)
    try:
        yield
    finally:
        blas.change(-1)


@contextmanager
def all_blas_threads() -> Iterator[None]:
    """Within `one_blas_thread`, as many threads as there were before it."""
    blas: Any = _blas()
    depth = blas.depth
    blas.change(-depth)
    try:
        yield
    finally:
        blas.change(depth)


def blas_threads(dim: int) -> Any:
    """A context for factoring matrices of dim x dim: one thread up to `FACTORED_ALONE`, else as many as there are."""
    return one_blas_thread() if dim <= FACTORED_ALONE else all_blas_threads()
