"""Threads of the matrix library: one for a while, and then what there was before."""

import threading

import numpy as np
import pytest

from valuate import LSTD, Auto, Problem, _threads
from valuate.solvers.auto import costs, method


def counts():
    return [library.num_threads for library in _threads._blas().libraries]


@pytest.fixture
def several():
    """A matrix library of two threads, whatever the test process keeps to."""
    libraries = _threads._blas().libraries
    before = counts()
    for library in libraries:
        library.set_num_threads(2)
    yield
    for library, threads in zip(libraries, before, strict=True):
        library.set_num_threads(threads)


def test_one_thread_within_and_all_of_them_after(several):
    assert counts() and set(counts()) == {2}
    with _threads.one_blas_thread():
        assert set(counts()) == {1}
        with _threads.one_blas_thread():
            with _threads.all_blas_threads():
                assert set(counts()) == {2}
            assert set(counts()) == {1}
        assert set(counts()) == {1}
    assert set(counts()) == {2}
    with _threads.all_blas_threads():
        assert set(counts()) == {2}
    assert set(counts()) == {2}


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt])
def test_they_come_back_after_an_error(several, monkeypatch, kind):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3001, 60))

    def interrupts(_):
        raise kind("stop")

    problem = Problem.from_arrays(x[:-1], rng.normal(size=3000), x[1:], discount=0.9)
    monkeypatch.setattr(method, "SMALL", 0.0)
    monkeypatch.setattr(costs, "direct", lambda problem, a_pass: costs.Direct(1e9, 1.0, True, 1e18))
    with pytest.raises(kind, match="stop"):
        Auto().solve(problem, tolerance=1e-9, callback=interrupts)
    assert set(counts()) == {2}


def test_threads_of_the_caller_do_not_leave_one_behind(several):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4001, 40))
    problem = Problem.from_arrays(x[:-1], rng.normal(size=4000), x[1:], discount=0.9)
    expected = LSTD().solve(problem).theta
    found = []

    def work():
        for _ in range(3):
            found.append(LSTD().solve(Problem(problem.rows)).theta)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 12 and set(counts()) == {2}
    for theta in found:
        np.testing.assert_allclose(theta, expected, rtol=1e-9)


def test_what_an_interrupt_leaves_is_mended_further_out(several):
    """A context that was entered and never left, as when an interrupt comes between the two."""
    with _threads.same_blas_threads():
        _threads.one_blas_thread().__enter__()
        assert set(counts()) == {1}
    assert set(counts()) == {2} and _threads._blas().depth == 0


def test_whoever_leaves_last_leaves_none_behind(several):
    entered, leave = threading.Event(), threading.Event()

    def work():
        with _threads.one_blas_thread():
            entered.set()
            leave.wait()

    worker = threading.Thread(target=work)
    worker.start()
    entered.wait()
    with _threads.one_blas_thread():
        assert set(counts()) == {1}
        with _threads.all_blas_threads():
            assert set(counts()) == {2}
    leave.set()
    worker.join()
    assert set(counts()) == {2} and _threads._blas().depth == 0
