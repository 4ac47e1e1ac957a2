from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from vcgmm.data.reading import read_ahead


def counting(n: int, made: list[int]) -> Iterator[int]:
    for i in range(n):
        made.append(i)
        yield i


def readers() -> int:
    return sum(thread.name == "vcgmm-reader" for thread in threading.enumerate())


@pytest.mark.parametrize("ahead", [1, 2, 10])
def test_everything_comes_in_order(ahead: int) -> None:
    assert list(read_ahead(counting(50, []), ahead)) == list(range(50))
    assert readers() == 0


def test_nothing_is_read_before_it_is_asked_for() -> None:
    made: list[int] = []
    items = read_ahead(counting(5, made))
    assert made == []
    assert readers() == 0
    items.close()


def test_it_reads_ahead_and_not_too_far() -> None:
    made: list[int] = []
    enough = threading.Event()

    def items() -> Iterator[int]:
        for i in range(100):
            made.append(i)
            if i == 3:
                enough.set()
            yield i

    ahead = read_ahead(items(), 2)
    assert next(ahead) == 0
    assert enough.wait(10)  # one taken, two in the queue, one in hand: made without being asked for
    assert len(made) == 4
    ahead.close()
    assert len(made) == 4
    assert readers() == 0


def test_an_error_comes_in_its_place() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise OSError("the disk is gone")

    ahead = read_ahead(items())
    assert [next(ahead), next(ahead)] == [1, 2]
    with pytest.raises(OSError, match="the disk is gone"):
        next(ahead)
    assert readers() == 0


def test_a_reader_that_is_broken_off_is_closed() -> None:
    closed = threading.Event()

    def items() -> Iterator[int]:
        try:
            while True:
                yield 0
        finally:
            closed.set()

    ahead = read_ahead(items())
    next(ahead)
    ahead.close()
    assert closed.is_set()
    assert readers() == 0
