"""Sums by cluster: right, and the same from run to run."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.algorithm.coreset.frame import Frame  # noqa: E402
from vcgmm.gpu.cells.pieces import cut, sort_by_group  # noqa: E402
from vcgmm.gpu.cells.sums import RUN, Entries, entries_of, weighted_sums  # noqa: E402
from vcgmm.gpu.coreset.points import DevicePoints  # noqa: E402
from vcgmm.gpu.device.exact import Urn, sums_by_label  # noqa: E402
from vcgmm.gpu.device.functions import ADDED, totals_of  # noqa: E402


def points_of(X: Any) -> DevicePoints:
    frame = Frame(np.zeros(X.shape[1]), 1.0, np.dtype(np.float32))
    return DevicePoints(X, 1.0, torch.ones(len(X), device=X.device), frame, "fp32")


@pytest.mark.parametrize(("n", "n_features", "n_clusters"), [(50, 3, 7), (2 * RUN + 9, 2, 2), (9, 1030, 4)])
def test_sums_are_those_of_the_winners(device: Any, n: int, n_features: int, n_clusters: int) -> None:
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(n, n_features)).astype(np.float32)).to(device)
    means = torch.from_numpy(rng.normal(size=(n_clusters, n_features)).astype(np.float32)).to(device)
    winners = torch.from_numpy(rng.integers(0, n_clusters - 1, (n, 2)).astype(np.int32)).to(device)  # one is empty
    parts = torch.from_numpy(rng.random((n, 2)).astype(np.float32)).to(device)
    parts[::3, 1] = 0.0
    keys = torch.where(parts > 0, winners + n_clusters, 2 * n_clusters)
    keys[:, 0] = winners[:, 0]
    entries = entries_of(keys, parts, n_clusters)
    found = weighted_sums(points_of(X), entries, means, squares=True)
    shares = torch.zeros((n, n_clusters), dtype=torch.float64, device=device)
    shares.scatter_add_(1, winners.long(), parts.double())
    expected = shares.T @ X.double() - shares.sum(0)[:, None] * means.double()
    torch.testing.assert_close(found.shifts, expected, atol=1e-4, rtol=1e-5)
    torch.testing.assert_close(found.masses, shares.sum(0), atol=1e-4, rtol=1e-6)
    away = X.double()[:, None] - means.double()[None]
    torch.testing.assert_close(found.squares, (shares[:, :, None] * away**2).sum(0), atol=1e-3, rtol=1e-5)
    assert (found.shifts[-1] == 0).all()
    assert found.masses[-1] == 0
    moves = found.shifts / torch.where(found.masses > 0, found.masses, 1.0)[:, None]
    torch.testing.assert_close(found.moves, moves, atol=0, rtol=1e-15)
    gain = (found.masses * (moves**2).sum(1)).sum()
    torch.testing.assert_close(found.told[1:].sum(), gain, atol=0, rtol=1e-12)
    assert (found.told[0] == (found.masses > 0)).all()
    before = torch.from_numpy(rng.normal(size=(n_clusters, n_features))).to(device)
    told = weighted_sums(points_of(X), entries, means, before=before).told[1:].view(3, found.n_parts, -1).sum(1)
    expected = torch.stack([(moves**2).sum(1), (before**2).sum(1), (before * moves).sum(1)])
    torch.testing.assert_close(told, found.masses * expected, atol=1e-12, rtol=1e-12)
    assert int(entries.start[-1]) == int((parts > 0).sum())
    behind = entries.order[int(entries.start[-1]) :]
    assert (parts.view(-1)[behind] == 0).all()
    assert (entries.rows() == entries.order // 2).all()
    there = torch.arange(int(entries.start[-1]), device=device)
    assert (entries.clusters()[there] == winners.view(-1)[entries.order[there]]).all()
    assert (entries.order[:n] % 2 == 0).all()  # those who are nearest come first
    again = weighted_sums(points_of(X), entries_of(keys, parts, n_clusters), means)
    assert (again.shifts == found.shifts).all()


def test_entries_know_their_clusters(device: Any) -> None:
    start = torch.tensor([0, 2, 2, 3], device=device)
    entries = Entries(torch.tensor([4, 5, 6], device=device), torch.ones(3, device=device), start)
    assert entries.clusters().tolist() == [0, 0, 2]
    more = Entries(torch.tensor([4, 5, 6, 7], device=device), torch.ones(4, device=device), start)
    assert more.clusters().tolist() == [0, 0, 2, 2]  # any for the last, which counts for none


def test_members_come_in_the_order_in_which_they_were(device: Any) -> None:
    groups = sort_by_group(torch.tensor([2, 0, 2, 0, 0], dtype=torch.int32, device=device), 4)
    assert groups.order.tolist() == [1, 3, 4, 0, 2]
    assert groups.start.tolist() == [0, 3, 3, 5, 5]
    assert groups.sizes.tolist() == [3, 0, 2, 0]


def test_pieces_cover_every_group_once(device: Any) -> None:
    pieces = cut(torch.tensor([0, 5, 5, 9, 10], device=device), 4, 10)
    found = [tuple(piece) for piece in pieces.table.tolist()]
    assert len(pieces) == len(found) == 10 // 4 + 4  # how many there can be is known, how many there are is not
    assert [piece for piece in found if piece[1] < piece[2]] == [(0, 0, 4), (0, 4, 5), (2, 5, 9), (3, 9, 10)]


@pytest.mark.parametrize("size", [1, 3, 8])
def test_pieces_of_a_group_follow_one_another_from_where_its_size_says(device: Any, size: int) -> None:
    sizes = np.random.default_rng(size).integers(0, 9, 300)
    start = np.concatenate([[0], np.cumsum(sizes)])
    found = cut(torch.from_numpy(start).to(device), size, int(start[-1])).table.cpu().numpy()
    for group, (first, last) in enumerate(itertools.pairwise(start)):
        begin = first // size + group
        for k, piece in enumerate(range(first, last, size)):
            assert found[begin + k].tolist() == [group, piece, min(piece + size, last)]
    assert (found[:, 2] - found[:, 1]).clip(0).sum() == start[-1]


def test_sums_by_label_do_not_depend_on_the_order(device: Any) -> None:
    rng = np.random.default_rng(0)
    values = torch.from_numpy(rng.random(1000) * 10.0 ** rng.integers(-6, 6, 1000)).to(device)
    labels = torch.from_numpy(rng.integers(0, 5, 1000)).to(device)
    sums = sums_by_label(values, labels, 6)
    expected = np.bincount(labels.cpu(), values.cpu(), 6)
    np.testing.assert_allclose(sums.cpu().numpy(), expected, rtol=1e-12)
    turned = torch.randperm(1000, generator=torch.Generator().manual_seed(0)).to(device)
    assert (sums_by_label(values[turned], labels[turned], 6) == sums).all()


def test_an_urn_draws_by_mass_and_nothing_of_mass_zero(device: Any) -> None:
    masses = torch.tensor([0.0, 1.0, 0.0, 3.0, 0.0], device=device)
    drawn = Urn(masses).draw(torch.linspace(0, 1, 4001, dtype=torch.float64, device=device)[:-1])
    assert torch.bincount(drawn, minlength=5).tolist() == [0, 1000, 0, 3000, 0]
    assert Urn(torch.zeros(3, device=device)).is_empty


@pytest.mark.parametrize(("n_facts", "n_columns"), [(5, 3), (2 * ADDED + 7, ADDED + 1)])
def test_totals_are_sums_of_columns_and_of_rows(device: Any, n_facts: int, n_columns: int) -> None:
    rng = np.random.default_rng(0)
    facts = torch.from_numpy(rng.normal(size=(n_facts, 4))).to(device)
    rows = torch.from_numpy(rng.normal(size=(3, n_columns))).to(device)
    found = totals_of(rows, facts)
    torch.testing.assert_close(found, torch.cat([facts.sum(0), rows.sum(1)]), atol=1e-12, rtol=1e-12)
    assert (totals_of(rows) == found[4:]).all()
    wider = torch.cat([rows, torch.zeros((3, ADDED), dtype=torch.float64, device=device)], dim=1)
    assert (totals_of(wider) == found[4:]).all()  # to the last bit
