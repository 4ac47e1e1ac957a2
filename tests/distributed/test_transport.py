from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from distributed import Client

from vcgmm.distributed.transport import PIECE_BYTES, Placement, add_up, hand_out, split


def _add(*terms: list[int]) -> list[int]:
    return [value for term in terms for value in term]


def test_large_arrays_go_out_in_pieces_and_dask_does_not_warn(client: Client) -> None:
    array = np.arange(3 * PIECE_BYTES // 8 + 5, dtype=np.float64).reshape(-1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sent = hand_out(client, array)
        assert (sent.result() == array).all()


@pytest.mark.parametrize("array", [np.empty(0), np.empty((0, 3), np.int32), np.arange(3.0)], ids=str)
def test_small_arrays_go_out_as_they_are(client: Client, array: np.ndarray) -> None:
    result = hand_out(client, array).result()
    assert result.dtype == array.dtype
    assert result.shape == array.shape
    assert (result == array).all()


def test_other_things_go_out_too(client: Client) -> None:
    assert hand_out(client, {"a": (1, 2.5)}).result() == {"a": (1, 2.5)}


@pytest.mark.parametrize("n_terms", [1, 2, 4, 5, 17])
def test_sums_have_a_fixed_order(client: Client, n_terms: int) -> None:
    terms = [client.submit(list, [i], pure=False) for i in range(n_terms)]
    assert add_up(client, terms, _add).result() == list(range(n_terms))


def test_halves(client: Client) -> None:
    pair = client.submit(divmod, 17, 5, pure=False)
    assert [half.result() for half in split(client, pair)] == [3, 2]


class _Cluster:
    """As much of a client as says who is there."""

    def __init__(self, *workers: str) -> None:
        self.workers = list(workers)
        self.submitted: list[dict[str, Any]] = []

    def nthreads(self) -> dict[str, int]:
        return dict.fromkeys(self.workers, 1)

    def submit(self, _function: Any, *_arguments: Any, **options: Any) -> None:
        self.submitted.append(options)


def test_blocks_are_spread_and_stay_while_their_worker_lives() -> None:
    cluster = _Cluster("a", "b")
    placement = Placement(cluster, 4)
    placement.update()
    assert placement.places == ["a", "b", "a", "b"]
    cluster.workers = ["a", "c", "d"]
    placement.update()
    assert placement.places == ["a", "c", "a", "d"]
    placement.submit(1, len)
    assert cluster.submitted == [{"pure": False, "workers": ["c"], "allow_other_workers": True}]
    cluster.workers = []
    placement.update()
    assert placement.places == [None] * 4
    placement.submit(1, len)
    assert cluster.submitted[1] == {"pure": False}
