"""Reading that runs ahead of computing: a thread, and a queue of bounded length."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")

#: What has been read and not yet been asked for.
AHEAD = 2


class _End:
    """The last thing in a queue, with the exception that ended the reading, if any."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


def read_ahead(items: Generator[T, None, None], ahead: int = AHEAD) -> Generator[T, None, None]:
    """What a generator gives, made by a thread that is up to `ahead` items in front of whoever takes them.

    Parameters
    ----------
    items : generator
        Runs in that thread from beginning to end.  Its exceptions are raised here, in their place of the sequence.
    ahead : int

    Notes
    -----
    Closing the iterator ends the thread after the item it is at.
    """
    waiting: queue.Queue[T | _End] = queue.Queue(ahead)
    stopped = threading.Event()

    def put(item: T | _End) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                waiting.put(item, timeout=0.1)
                return

    def read() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                put(item)
                if stopped.is_set():
                    break
        except BaseException as caught:
            error = caught
        finally:
            items.close()
            put(_End(error))

    thread = threading.Thread(target=read, name="vcgmm-reader", daemon=True)
    thread.start()
    try:
        while not isinstance(item := waiting.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        stopped.set()
        thread.join()
