"""What crosses the network: arrays on their way out, sums on their way back, and who works on what.

Everything is a task of a pure function, whose arguments the scheduler keeps.  So whatever is lost with a worker
can be computed again, on any other, to the same bits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from distributed import Client, Future, get_worker

from ..parallel import Workers

#: Arrays go out in pieces of so many bytes: Dask warns of messages above 10 MB.
PIECE_BYTES = 8 << 20

#: Results that one task adds up.
FAN_IN = 4


def hand_out(client: Client, value: Any) -> Future:
    """An array or anything small as a future, for whichever worker needs it.

    Unlike scattered data it is not lost with the workers that hold it.

    Parameters
    ----------
    client : Client
    value : array or object
        Must not be changed from now on: it may be sent later, or, within one process, not be copied at all.
    """
    if not isinstance(value, np.ndarray):
        return client.submit(_itself, value, pure=False)
    array = value
    step = max(1, PIECE_BYTES // max(1, array.nbytes // max(1, len(array))))
    pieces = [
        client.submit(_itself, array[low : low + step], pure=False) for low in range(0, max(1, len(array)), step)
    ]
    return pieces[0] if len(pieces) == 1 else client.submit(np.concatenate, pieces, pure=False)


def add_up(client: Client, terms: Sequence[Future], add: Callable[..., Any]) -> Future:
    """The sum of futures, a few at a time in a fixed order: no worker ever holds all of them."""
    while len(terms) > 1:
        terms = [
            client.submit(add, *terms[low : low + FAN_IN], pure=False) for low in range(0, len(terms), FAN_IN)
        ]
    return terms[0]


def split(client: Client, pair: Future) -> tuple[Future, Future]:
    """The two halves of a task's result, which then live and die apart."""
    return client.submit(_item, pair, 0, pure=False), client.submit(_item, pair, 1, pure=False)


class Placement:
    """Which worker each block of points belongs to.

    Blocks are spread evenly.  A worker that is gone loses its blocks to those with fewest; that is only where
    tasks are wanted, Dask may run them elsewhere.

    Parameters
    ----------
    client : Client
    n_blocks : int
    """

    def __init__(self, client: Client, n_blocks: int) -> None:
        self.client = client
        self.places: list[str | None] = [None] * n_blocks

    def update(self) -> None:
        """Look who is there."""
        workers = sorted(self.client.nthreads())
        self.places = [place if place in workers else None for place in self.places]
        load = Counter(dict.fromkeys(workers, 0))
        load.update(place for place in self.places if place is not None)
        for block, place in enumerate(self.places):
            if place is None and workers:
                self.places[block] = min(workers, key=lambda worker: (load[worker], worker))
                load[str(self.places[block])] += 1

    def submit(self, block: int, function: Callable[..., Any], *arguments: Any) -> Future:
        """A task on a block."""
        place = self.places[block]
        where = {} if place is None else {"workers": [place], "allow_other_workers": True}
        return self.client.submit(function, *arguments, pure=False, **where)


def task_threads(n_threads: int | None) -> Workers:
    """Threads for a task that has its worker to itself: as many as are asked for, or as the worker has."""
    return Workers(get_worker().state.nthreads if n_threads is None else n_threads)


def _itself(value: Any) -> Any:
    return value


def _item(pair: tuple[Any, Any], index: int) -> Any:
    return pair[index]
