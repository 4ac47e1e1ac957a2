from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from vcgmm.algorithm.cells.extent import Extent
from vcgmm.algorithm.cells.natural import Natural
from vcgmm.algorithm.cells.neighbourhoods import Neighbourhoods, sort_by_cluster
from vcgmm.algorithm.cells.sums import Sums, Totals
from vcgmm.algorithm.coreset.frame import Frame
from vcgmm.distributed.blocks import Block, add_all, first_winners, make_block, put_in_order
from vcgmm.distributed.coreset import take_all
from vcgmm.distributed.pieces import Piece
from vcgmm.parallel import Workers


@pytest.mark.parametrize("cuts", [[0, 700], [0, 1, 350, 699, 700]])
def test_sums_over_parts_of_the_points_add_up_to_those_over_all(cuts: list[int], workers: Workers) -> None:
    """To the rounding of a cell's local sums when they are handed over."""
    rng = np.random.default_rng(0)
    points, weights = rng.normal(size=(700, 3)), rng.gamma(1.0, size=700)
    means = rng.normal(size=(20, 3))
    labels = rng.integers(20, size=700).astype(np.int32)
    neighbourhoods = Neighbourhoods(20, 3, 8, 0, 0, workers)
    natural = Natural.shared(means)
    neighbourhoods.update(natural)

    def search(low: int, high: int) -> tuple[Totals, np.ndarray]:
        winners = first_winners(labels[low:high], 4)
        order, start = sort_by_cluster(winners[:, 0], 20)
        sums = Sums(natural, extent.rounding(natural), workers)
        candidates = neighbourhoods.candidates
        sums.search(points[low:high], weights[low:high], winners, order, start, candidates, 0.7)
        return sums.totals(), winners

    extent = add_all(*(Extent.of(points[low:high], weights[low:high], workers) for low, high in pairwise(cuts)))
    assert extent.total_weight == pytest.approx(weights.sum())
    assert extent.absolute == pytest.approx(weights @ np.abs(points))
    whole, winners = search(0, 700)
    parts = [search(low, high) for low, high in pairwise(cuts)]
    before = parts[0][0].shifts.copy()
    total = add_all(*(sums for sums, _ in parts))
    assert (parts[0][0].shifts == before).all()  # what was added up is left as it was
    assert total.facts == pytest.approx(whole.facts)
    assert total.shifts == pytest.approx(whole.shifts, abs=1e-9)
    assert total.masses == pytest.approx(whole.masses, abs=1e-9)
    assert (np.concatenate([one for _, one in parts]) == winners).all()


def test_a_block_from_parts_of_pieces() -> None:
    rows = np.arange(40, dtype=np.int32).reshape(20, 2)
    pieces = [take_all(rows[:9], np.arange(9.0), 0), take_all(rows[9:], None, 9)]
    assert pieces[0].indices.tolist() == list(range(1, 9))  # one has no weight
    assert pieces[1].indices.tolist() == list(range(9, 20))
    frame = Frame(np.array([1.0, 2.0]), 0.5, np.dtype(np.float32))
    block = make_block(frame, [(5, 8), (0, 4)], *pieces)
    assert block.points.dtype == np.float32
    assert (block.points == (rows[6:13] - [1, 2]) / 2).all()
    assert block.weights.tolist() == [6, 7, 8, 1, 1, 1, 1]


def test_points_in_order_of_their_cluster() -> None:
    winners = np.array([[2, 0], [0, 1], [2, 1], [1, 0]], np.int32)
    block = Block(np.arange(8.0).reshape(4, 2), np.arange(4.0))
    ordered, sorted_winners = put_in_order(block, winners, 3)
    assert sorted_winners[:, 0].tolist() == [0, 1, 2, 2]
    assert ordered.weights.tolist() == [1, 3, 0, 2]
    assert (ordered.points == block.points[[1, 3, 0, 2]]).all()
    assert winners[0, 0] == 2


def test_a_piece_of_rows_without_any_weight_is_empty() -> None:
    piece = take_all(np.ones((3, 2)), np.zeros(3), 5)
    assert isinstance(piece, Piece)
    assert piece.points.shape == (0, 2)
