from __future__ import annotations

import threading

import numpy as np
import pytest

from vcgmm.algorithm.cells.thread_sums import ThreadSums
from vcgmm.parallel import Workers

SHAPES = ((300, 700), (300,), (300, 2, 5))


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_the_total_is_that_of_all_threads_that_have_added(n_threads: int) -> None:
    terms = np.random.default_rng(0).integers(-1000, 1000, (40, 300)).astype(np.float64)
    with Workers(n_threads) as workers:
        sums = ThreadSums(workers, *SHAPES)

        def work(thread: int, first: int, last: int) -> None:
            for array in sums.of(thread):
                for term in terms[first:last]:
                    array += term.reshape(-1, *[1] * (array.ndim - 1))

        workers.run(work, len(terms))
        totals = sums.total()
    assert [total.shape for total in totals] == list(SHAPES)
    for total in totals:
        expected = np.broadcast_to(terms.sum(axis=0).reshape(-1, *[1] * (total.ndim - 1)), total.shape)
        np.testing.assert_array_equal(total, expected)


@pytest.mark.parametrize(("n_threads", "adding"), [(2, (0, 1)), (4, (0, 1, 2, 3)), (5, (0, 2, 4))])
def test_they_are_added_up_part_by_part(n_threads: int, adding: tuple[int, ...]) -> None:
    terms = np.random.default_rng(1).integers(-1000, 1000, (n_threads, 10, 3)).astype(np.float64)

    def in_parts(work, n_tasks, _effort):  # type: ignore[no-untyped-def]
        for first, last in ((4, n_tasks), (0, 1), (1, 4)):
            work(0, first, last)

    with Workers(n_threads) as workers:
        sums = ThreadSums(workers, (10, 3), (10,))
        for thread in adding:
            matrix, vector = sums.of(thread)
            matrix += terms[thread]
            vector += terms[thread, :, 0]
        workers.run = in_parts  # type: ignore[method-assign]
        matrix, vector = sums.total()
    np.testing.assert_array_equal(matrix, terms[list(adding)].sum(axis=0))
    np.testing.assert_array_equal(vector, terms[list(adding), :, 0].sum(axis=0))


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_what_was_in_memory_before_is_not_added(n_threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with Workers(n_threads) as workers:
        monkeypatch.setattr(np, "empty", lambda shape: np.full(shape, np.nan))
        sums = ThreadSums(workers, (4, 2))
        monkeypatch.undo()
        for thread in range(n_threads):
            sums.of(thread)[0][1] += 1
        (total,) = sums.total()
    assert total.tolist() == [[0, 0], [n_threads, n_threads], [0, 0], [0, 0]]


def test_all_threads_add_up() -> None:
    seen: set[int] = set()
    both = threading.Barrier(2, timeout=30)
    with Workers(2) as workers:
        run = workers.run

        def watched(work, n_tasks, effort):  # type: ignore[no-untyped-def]
            assert (n_tasks, effort) == (300, 8 * 2 * 700 * 300)

            def waiting(thread: int, first: int, last: int) -> None:
                if thread not in seen:
                    seen.add(thread)
                    both.wait()
                work(thread, first, last)

            run(waiting, n_tasks)

        sums = ThreadSums(workers, (300, 700))
        for thread in (0, 1):
            sums.of(thread)[0][:] += thread + 1
        workers.run = watched  # type: ignore[method-assign]
        (total,) = sums.total()
    assert seen == {0, 1}
    assert (total == 3).all()


def test_a_thread_that_adds_nothing_costs_nothing_and_where_none_does_all_is_zero() -> None:
    with Workers(3) as workers:
        sums = ThreadSums(workers, (4, 2), (4,))
        sums.of(1)[0][2] += 7
        shifts, masses = sums.total()
        assert shifts.tolist() == [[0, 0], [0, 0], [7, 7], [0, 0]]
        assert not masses.any()
        nothing = ThreadSums(workers, (4, 2)).total()
        assert nothing[0].shape == (4, 2)
        assert not nothing[0].any()


@pytest.mark.parametrize(("n_threads", "adding"), [(5, (1, 3)), (3, (0, 1, 2)), (2, (1,)), (2, (0, 1))])
def test_only_those_that_have_added_count(n_threads: int, adding: tuple[int, ...]) -> None:
    with Workers(n_threads) as workers:
        sums = ThreadSums(workers, (4, 2), (4,))
        for thread in adding:
            for array in sums.of(thread):
                array[thread % 4] += 10**thread
        for total in sums.total():
            rows = [
                [10**thread if thread in adding and thread % 4 == c else 0 for thread in range(5)]
                for c in range(4)
            ]
            assert total.reshape(4, -1)[:, 0].tolist() == [sum(row) for row in rows]


def test_what_a_thread_has_added_stays_until_the_end() -> None:
    with Workers(1) as workers:
        sums = ThreadSums(workers, (3,))
        for _ in range(2):
            sums.of(0)[0][1] += 1
        assert sums.total()[0].tolist() == [0, 2, 0]
