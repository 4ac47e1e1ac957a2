from __future__ import annotations

import threading
import time

import pytest
from threadpoolctl import threadpool_info

from vcgmm.parallel import Workers, available_threads


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 7, 100])
def test_every_task_is_done_once(n_threads: int, n_tasks: int) -> None:
    done: list[int] = []
    with Workers(n_threads) as workers:
        workers.run(lambda _thread, first, last: done.extend(range(first, last)), n_tasks)
    assert sorted(done) == list(range(n_tasks))


def test_a_thread_number_is_never_in_use_twice() -> None:
    busy: set[int] = set()
    lock = threading.Lock()

    def work(thread: int, _first: int, _last: int) -> None:
        with lock:
            assert thread not in busy
            assert thread < 3
            busy.add(thread)
        time.sleep(0.001)
        with lock:
            busy.remove(thread)

    with Workers(3) as workers:
        workers.run(work, 50)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_in_a_task_comes_out(n_threads: int) -> None:
    def work(_thread: int, first: int, last: int) -> None:
        if first <= 5 < last:
            raise ZeroDivisionError("task 5")

    with Workers(n_threads) as workers:
        with pytest.raises(ZeroDivisionError, match="task 5"):
            workers.run(work, 40)
        done: list[int] = []
        workers.run(lambda _thread, first, last: done.extend(range(first, last)), 40)  # and they still work
    assert sorted(done) == list(range(40))


@pytest.mark.parametrize("unlucky", [0, 1])
def test_after_an_error_nobody_begins_another_chunk(unlucky: int) -> None:
    begun: list[int] = []

    def work(thread: int, first: int, _last: int) -> None:
        begun.append(first)
        time.sleep(0.01)
        if thread == unlucky:
            raise KeyError(first)

    with Workers(2) as workers, pytest.raises(KeyError):
        workers.run(work, 1000)
    assert len(begun) <= 6


def test_blas_is_held_to_one_thread_while_anyone_works() -> None:
    before = blas_threads()
    one, other = Workers(2), Workers(1)
    with one:
        assert set(blas_threads()) <= {1}
        other.__enter__()
    assert set(blas_threads()) <= {1}  # the other is still at work
    other.__exit__(None, None, None)
    assert blas_threads() == before


def test_blas_is_given_back_after_an_error() -> None:
    before = blas_threads()
    with pytest.raises(RuntimeError, match="inside"), Workers(2):
        raise RuntimeError("inside")
    assert blas_threads() == before


def test_by_default_there_is_a_thread_for_every_cpu() -> None:
    assert Workers().n_threads == available_threads() >= 1
    assert Workers(5).n_threads == 5
