"""Blocks of work on all cores, with results that do not depend on how many there are; and the threads of BLAS."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Lock, local
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
        self.libraries = [library for library in found if library.user_api == "blas"]
        self.threads: list[int] = []
        self.lock, self.depth, self.own = Lock(), 0, local()

    @property
    def held(self) -> int:
        """How often the calling thread has asked for one thread and not yet taken that back."""
        return int(getattr(self.own, "depth", 0))

    def hold(self, depth: int) -> None:
        """Let the calling thread hold so many; in an order in which an interrupt leaves what a later call mends."""
        before = self.held
        with self.lock:
            wanted = self.depth + depth - before
            if self.depth == 0 < wanted:
                self.threads = [library.num_threads for library in self.libraries]
            if wanted > 0:
                self.own.depth, self.depth = depth, wanted
            # By what this thread holds: what another has set OpenBLAS may let nobody else take back.
            for library, threads in zip(self.libraries, self.threads, strict=False):
                library.set_num_threads(1 if depth > 0 else threads)
            self.own.depth, self.depth = depth, wanted


@cache
def _blas() -> Any:
    return _Blas()


class _Held:
    """A context in which the calling thread holds what ``change`` makes of what it held; after it, that again.

    Whatever an interrupt has left in between: exits set what was there at the entrance.
    """

    def __init__(self, change: Callable[[int], int]) -> None:
        self.change = change

    def __enter__(self) -> None:
        self.before = _blas().held
        _blas().hold(self.change(self.before))

    def __exit__(self, *_: object) -> None:
        _blas().hold(self.before)


def one_blas_thread() -> _Held:
    """A context in which products of matrices keep to one thread."""
    return _Held(lambda held: held + 1)


def all_blas_threads() -> _Held:
    """A context within `one_blas_thread` with as many threads as there were before it."""
    return _Held(lambda held: 0)


def same_blas_threads() -> _Held:
    """A context that changes nothing, and after an interrupt puts back what others within it did not."""
    return _Held(lambda held: held)


def blas_threads(dim: int) -> _Held:
    """A context for factoring matrices of dim x dim: one thread up to `FACTORED_ALONE`, else as many as there are."""
    return one_blas_thread() if dim <= FACTORED_ALONE else all_blas_threads()
