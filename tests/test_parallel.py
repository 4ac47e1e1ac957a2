from __future__ import annotations

import itertools
import math
import sys
import threading
import time
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from vcgmm import parallel
from vcgmm.parallel import IN_HAND, Workers, available_threads


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 7, 100])
def test_every_task_is_done_once(n_threads: int, n_tasks: int) -> None:
    done: list[int] = []
    with Workers(n_threads) as workers:
        workers.run(lambda _thread, first, last: done.extend(range(first, last)), n_tasks)
    assert sorted(done) == list(range(n_tasks))


@pytest.mark.parametrize(("n_tasks", "n_chunks"), [(2, 2), (24, 24), (100, 24), (576, 24), (100_000, 16)])
def test_chunks_become_smaller_where_there_are_many_tasks(n_tasks: int, n_chunks: int) -> None:
    cuts = parallel._cuts(n_tasks, n_chunks)
    sizes = [b - a for a, b in itertools.pairwise(cuts)]
    assert (cuts[0], cuts[-1], len(sizes)) == (0, n_tasks, n_chunks)
    assert min(sizes) >= 1
    if n_tasks >= n_chunks**2:
        assert max(abs(a - b - 2 * n_tasks / n_chunks**2) for a, b in itertools.pairwise(sizes)) <= 2
    else:
        assert max(sizes) - min(sizes) <= 1


def test_little_work_is_done_by_the_caller_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "WORTH_WAKING", 1000)
    calls: list[tuple[int, int, int]] = []
    with Workers(3) as workers:
        n_before = threading.active_count()
        workers.run(lambda *call: calls.append(call), 100, effort=999)
        results = list(workers.in_order(lambda task: -task, numbers(5), batch=5, effort=999))
        assert threading.active_count() == n_before
    assert calls == [(0, 0, 100)]
    assert results == [(i, -i) for i in range(5)]


@pytest.mark.parametrize("effort", [1000, math.inf])
@pytest.mark.parametrize("in_order", [False, True])
def test_much_work_is_shared(effort: float, in_order: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "WORTH_WAKING", 1000)
    both = threading.Barrier(2)  # nobody gets past it alone

    with Workers(2) as workers:
        if in_order:
            list(workers.in_order(lambda _task: both.wait(10), numbers(2), batch=2, effort=effort))
        else:
            workers.run(lambda *_call: both.wait(10), 2, effort)


@pytest.mark.parametrize(("effort", "n_woken"), [(1000, 1), (2999, 2), (7000, 7), (1e9, 7), (math.inf, 7)])
def test_as_many_are_woken_as_there_is_work_for(
    effort: float, n_woken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel, "WORTH_WAKING", 1000)
    all_of_them = threading.Barrier(1 + n_woken)
    with Workers(8) as workers:
        n_before = threading.active_count()
        workers.run(lambda *_call: all_of_them.wait(10), 1 + n_woken, effort)
        assert threading.active_count() == n_before + n_woken


@pytest.mark.parametrize(("effort", "n_chunks"), [(1000, 8), (1500, 12), (2000, 16), (1e9, 16), (math.inf, 16)])
def test_chunks_are_worth_taking(effort: float, n_chunks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "WORTH_WAKING", 1000)
    begins: list[int] = []
    with Workers(2) as workers:
        workers.run(lambda _thread, first, _last: begins.append(first), 100, effort)
    assert len(begins) == n_chunks


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
    failing = threading.Event()

    def work(thread: int, first: int, _last: int) -> None:
        begun.append(first)
        if thread == unlucky:
            failing.set()
            raise KeyError(first)
        failing.wait(10)
        time.sleep(0.05)  # time enough for the error to be noticed

    with Workers(2) as workers, pytest.raises(KeyError):
        workers.run(work, 1000)
    assert len(begun) <= 3


def test_the_caller_does_not_wait_for_threads_that_have_not_begun() -> None:
    busy = threading.Event()
    rows = np.zeros(7)
    alive = weakref.ref(rows)

    def work(thread: int, first: int, last: int, rows: np.ndarray = rows) -> None:
        rows[first:last] += 1 + thread

    with Workers(2) as workers:
        assert workers._pool is not None
        try:
            for _ in range(2):  # nobody is free
                workers._pool.submit(busy.wait)
            workers.run(work, 7)
            np.testing.assert_array_equal(rows, np.ones(7))
            del work, rows
            assert alive() is None  # and what was not begun keeps nothing
        finally:
            busy.set()


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


def numbers(n: int, given: list[int] | None = None) -> Iterator[int]:
    for i in range(n):
        if given is not None:
            given.append(i)
        yield i


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_tasks", [0, 1, 2, 50])
def test_results_come_in_the_order_of_their_tasks(n_threads: int, n_tasks: int) -> None:
    def work(task: int) -> int:
        time.sleep(0.002 * (task % 3 == 0))
        return task**2

    with Workers(n_threads) as workers:
        assert list(workers.in_order(work, numbers(n_tasks))) == [(i, i**2) for i in range(n_tasks)]


def test_few_tasks_are_in_hand_at_a_time() -> None:
    given: list[int] = []
    with Workers(2) as workers:
        for taken, _ in enumerate(workers.in_order(lambda task: task, numbers(50, given))):
            assert len(given) <= taken + 2 + IN_HAND
    assert len(given) == 50


@pytest.mark.parametrize("n_threads", [1, 3])
def test_an_error_in_a_task_ends_the_sequence(n_threads: int) -> None:
    given: list[int] = []

    def work(task: int) -> int:
        if task == 5:
            raise ZeroDivisionError("task 5")
        return task

    with Workers(n_threads) as workers:
        results = workers.in_order(work, numbers(1000, given))
        assert [next(results)[0] for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(ZeroDivisionError, match="task 5"):
            next(results)
        assert list(workers.in_order(lambda task: -task, numbers(3))) == [(0, 0), (1, -1), (2, -2)]
    assert len(given) < 15


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("n_tasks", [0, 1, 40])
@pytest.mark.parametrize("batch", [1, 7, 40, 100])
def test_tasks_worked_on_by_the_batch_come_in_order_too(n_threads: int, n_tasks: int, batch: int) -> None:
    with Workers(n_threads) as workers:
        results = workers.in_order(lambda task: task**2, numbers(n_tasks), batch=batch)
        assert list(results) == [(i, i**2) for i in range(n_tasks)]


def test_no_more_than_a_batch_of_tasks_is_taken_before_their_results_are() -> None:
    given: list[int] = []
    with Workers(2) as workers:
        results = workers.in_order(lambda task: task, numbers(20, given), batch=6)
        for n_taken in range(1, 21):
            next(results)
            assert len(given) == min(20, -(-n_taken // 6) * 6)


@pytest.mark.parametrize("n_threads", [1, 3])
def test_of_several_errors_in_a_batch_the_first_is_raised_when_it_is_its_turn(n_threads: int) -> None:
    def work(task: int) -> int:
        if task >= 5:
            raise ZeroDivisionError(f"task {task}.")
        return task

    with Workers(n_threads) as workers:
        results = workers.in_order(work, numbers(30), batch=30)
        assert [next(results)[0] for _ in range(5)] == [0, 1, 2, 3, 4]
        with pytest.raises(ZeroDivisionError, match="task 5\\."):
            next(results)


def test_what_gives_the_tasks_is_closed_with_the_sequence() -> None:
    closed = []

    def tasks() -> Iterator[int]:
        try:
            yield from range(100)
        finally:
            closed.append(True)

    with Workers(2) as workers:
        results = workers.in_order(lambda task: task, tasks())
        next(results)
        results.close()
        assert closed == [True]


def test_blas_is_looked_for_again_only_after_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []

    class Counting(parallel.ThreadpoolController):
        def __init__(self) -> None:
            looked.append(1)
            super().__init__()

    monkeypatch.setattr(parallel, "ThreadpoolController", Counting)
    monkeypatch.setattr(parallel, "_blas_known", None)
    for _ in range(3):
        with Workers(1):
            assert set(blas_threads()) <= {1}
    assert len(looked) == 1
    monkeypatch.setitem(sys.modules, "a_module_that_was_not_there", sys)
    with Workers(1):
        pass
    assert len(looked) == 2
