"""The kernels of the E-step against plain formulas in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm.algorithm.coreset.frame import Frame  # noqa: E402
from vcgmm.gpu.cells import nearest  # noqa: E402
from vcgmm.gpu.cells.nearest import (  # noqa: E402
    Listed,
    Posterior,
    distances_of,
    lists_between,
    lists_of,
    nearest_listed,
    nearest_of_all,
    prepare_search,
    unlisted_distances,
)
from vcgmm.gpu.cells.pieces import cut, sort_by_group  # noqa: E402
from vcgmm.gpu.cells.sums import entries_of  # noqa: E402
from vcgmm.gpu.coreset.points import DevicePoints  # noqa: E402
from vcgmm.gpu.device.tiling import Tiling  # noqa: E402

#: How far squared distances of unit-scale data may be from the truth, by what products are computed in.
TOLERANCE = {"fp32": 1e-4, "tf32": 3e-2, "bf16": 0.5}


def make_points(X: Any, mode: str = "fp32", weights: Any = None, scale: float = 1.0) -> DevicePoints:
    frame = Frame(np.zeros(X.shape[1]), 1.0, np.dtype(np.float32))
    weights = torch.ones(len(X), device=X.device) if weights is None else weights
    return DevicePoints(X, scale, weights, frame, mode)


def normal(device: Any, *shape: int, seed: int = 0) -> Any:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=shape).astype(np.float32)).to(device)


def squares(X: Any, centres: Any) -> Any:
    return ((X.double()[:, None] - centres.double()[None]) ** 2).sum(2)


@pytest.mark.parametrize("mode", ["fp32", "tf32", "bf16"])
@pytest.mark.parametrize(
    ("n", "n_features", "n_clusters", "n_best"),
    [(70, 3, 9, 1), (33, 19, 40, 3), (20, 70, 150, 5), (5, 1, 4, 4), (130, 16, 16, 2)],
)
def test_the_nearest_of_all_are_the_nearest(
    device: Any, mode: str, n: int, n_features: int, n_clusters: int, n_best: int
) -> None:
    X, centres = normal(device, n, n_features), normal(device, n_clusters, n_features, seed=1)
    ids, near = nearest_of_all(make_points(X), centres, n_best, mode)
    exact = squares(X, centres)
    chosen = exact.gather(1, ids.long())
    tolerance = TOLERANCE[mode] * n_features**0.5
    torch.testing.assert_close(near.double(), chosen, atol=tolerance, rtol=0)
    torch.testing.assert_close(chosen, exact.sort(1).values[:, :n_best], atol=tolerance, rtol=0)
    assert all(len(set(row)) == n_best for row in ids.tolist())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "uint8", "int8"])
def test_rows_are_used_as_they_are_stored(device: Any, dtype: str) -> None:
    X = (normal(device, 40, 5) * 20 + 50).to(getattr(torch, dtype))
    centres = X[:7].float() * 0.125
    ids, near = nearest_of_all(make_points(X, scale=0.125), centres, 2)
    exact = squares(X.double() * 0.125, centres)
    torch.testing.assert_close(near.double(), exact.sort(1).values[:, :2], atol=1e-3, rtol=1e-5)
    assert ids[:7, 0].tolist() == list(range(7))


def test_rows_may_lie_at_a_stride(device: Any) -> None:
    wide = normal(device, 30, 9)
    centres = normal(device, 6, 4, seed=1)
    ids, _ = nearest_of_all(make_points(wide[:, :4]), centres)
    assert ids[:, 0].tolist() == squares(wide[:, :4], centres).argmin(1).tolist()


@pytest.mark.parametrize("mode", ["tf32", "bf16"])
def test_local_coordinates_rank_near_ties_far_from_the_origin(device: Any, mode: str) -> None:
    X = normal(device, 50, 4) + 1000  # about 0 the products of these would have no digits left
    centres = X[:10] + 0.25 * normal(device, 10, 4, seed=1)
    ids, near = nearest_of_all(make_points(X), centres, 1, mode)
    exact = squares(X, centres)
    assert (exact.gather(1, ids.long())[:, 0] - exact.min(1).values).max() < TOLERANCE[mode]
    torch.testing.assert_close(near[:, 0].double(), exact.min(1).values, atol=TOLERANCE[mode], rtol=0)


@pytest.mark.parametrize("mode", ["fp32", "tf32", "bf16"])
def test_a_centre_far_from_all_others_costs_them_no_digits(device: Any, mode: str) -> None:
    X, centres = normal(device, 50, 4), normal(device, 10, 4, seed=1)
    centres[3] = 1e18
    ids, near = nearest_of_all(make_points(X), centres, 2, mode)
    exact = squares(X, centres)
    torch.testing.assert_close(near.double(), exact.gather(1, ids.long()), atol=TOLERANCE[mode], rtol=0)
    torch.testing.assert_close(near.double(), exact.sort(1).values[:, :2], atol=TOLERANCE[mode], rtol=0)


def test_a_point_is_compared_with_the_list_of_its_group_only(device: Any) -> None:
    X, centres = normal(device, 60, 3), normal(device, 12, 3, seed=1)
    start = np.array([0, 5, 5, 12])  # the second group has neither list nor members
    labels = (torch.arange(60, device=device) % 2 * 2).to(torch.int32)
    groups = sort_by_group(labels, 3)
    origins = normal(device, 3, 3, seed=2)
    ids, near = nearest_listed(make_points(X), groups, origins, lists_between(start, device), centres)
    exact = squares(X, centres)
    expected = torch.where(labels == 0, exact[:, :5].argmin(1), 5 + exact[:, 5:].argmin(1))
    assert ids[:, 0].tolist() == expected.tolist()
    placed, near_placed = nearest_listed(
        make_points(X), groups, origins, lists_between(start, device), centres, by_place=True
    )
    assert (placed == ids[groups.order]).all()
    assert (near_placed == near[groups.order]).all()


def test_points_of_no_group_are_left_alone(device: Any) -> None:
    X, centres = normal(device, 10, 2), normal(device, 3, 2, seed=1)
    groups = sort_by_group(torch.zeros(4, dtype=torch.int32, device=device), 1)  # the first four
    lists = lists_of(torch.tensor([[0, 1, 2]], dtype=torch.int32, device=device))
    ids = torch.full((10, 1), -1, dtype=torch.int32, device=device)
    near = torch.full((10, 1), -1.0, device=device)
    pieces = cut(groups.start, 16, 4)
    tiles = Tiling(16, 16, 16, 4, 1, None)
    prepare_search(
        make_points(X), groups.order, pieces, centres[:1], lists, centres, tiles, "fp32", ids, near=near
    )()
    assert (ids[4:] == -1).all()
    assert (near[4:] == -1.0).all()
    assert (ids[:4] >= 0).all()


@pytest.mark.parametrize("mode", ["fp32", "tf32", "bf16"])
def test_an_e_step_is_that_of_the_formulas(device: Any, mode: str) -> None:
    n, n_clusters, n_best, precision = 90, 8, 3, 0.4
    X, means = normal(device, n, 5), normal(device, n_clusters, 5, seed=1)
    weights = torch.linspace(0.5, 2.0, n, device=device)
    points = make_points(X, mode, weights)
    labels = squares(X, means).argmin(1).to(torch.int32)
    groups = sort_by_group(labels, n_clusters)
    lists = lists_of(torch.arange(n_clusters, dtype=torch.int32, device=device).repeat(n_clusters, 1))
    tiles = Tiling(16, 16, 16, 4, 1, None)
    pieces = cut(groups.start, tiles.points, n)
    winners = torch.empty((n, n_best), dtype=torch.int32, device=device)
    posterior = Posterior.empty((n, n_best), n_clusters, device).with_facts(len(pieces))
    prepare_search(
        points, groups.order, pieces, means, lists, means, tiles, mode, winners, precision=precision,
        posterior=posterior,
    )()  # fmt: skip
    exact = squares(X, means)
    near = exact.gather(1, winners.long())
    torch.testing.assert_close(near, exact.sort(1).values[:, :n_best], atol=TOLERANCE[mode], rtol=0)
    logs = -near * precision
    exact_shares = torch.softmax(logs, 1) * weights.double()[:, None]
    tolerance = TOLERANCE[mode]
    torch.testing.assert_close(posterior.shares.double(), exact_shares, atol=tolerance, rtol=0)
    bound, scatter, error, n_unlisted = posterior.facts.sum(0).tolist()
    assert bound == pytest.approx(float((weights * torch.logsumexp(logs, 1)).sum()), rel=tolerance)
    assert scatter == pytest.approx(float((exact_shares * near).sum()), rel=tolerance)
    assert error == pytest.approx(float((weights * near[:, 0]).sum()), rel=tolerance)
    assert n_unlisted == 0  # there were none before
    keys = torch.where(posterior.shares > 0, winners + n_clusters, 2 * n_clusters)
    keys[:, 0] = winners[:, 0]
    assert (posterior.keys == keys).all()

    # What is sorted by them is also points by their nearest winner.
    entries = entries_of(posterior.keys, posterior.shares, n_clusters)
    pieces = cut(entries.start[: n_clusters + 1], tiles.points, n)
    again, order = torch.empty_like(winners), entries.order[:n]
    prepare_search(
        points, order, pieces, means, lists, means, tiles, mode, again, precision=precision,
        posterior=posterior.with_facts(len(pieces)), per_row=n_best,
    )()  # fmt: skip
    assert (order // n_best == sort_by_group(winners[:, 0], n_clusters).order).all()
    assert (again[:, 0] == winners[:, 0]).float().mean() > 0.9  # about other origins
    near = exact.gather(1, again.long())
    torch.testing.assert_close(near, exact.sort(1).values[:, :n_best], atol=TOLERANCE[mode], rtol=0)


def test_without_a_precision_the_nearest_takes_all(device: Any) -> None:
    X, means = normal(device, 20, 2), normal(device, 4, 2, seed=1)
    groups = sort_by_group(torch.zeros(20, dtype=torch.int32, device=device), 1)
    tiles = Tiling(16, 16, 16, 4, 1, None)
    pieces = cut(groups.start, 16, 20)
    winners = torch.empty((20, 3), dtype=torch.int32, device=device)
    posterior = Posterior.empty((20, 3), 4, device).with_facts(len(pieces))
    lists = lists_of(torch.arange(4, dtype=torch.int32, device=device)[None])
    prepare_search(
        make_points(X),
        groups.order,
        pieces,
        means,
        lists,
        means,
        tiles,
        "fp32",
        winners,
        posterior=posterior,
    )()
    assert posterior.shares.tolist() == [[1.0, 0.0, 0.0]] * 20
    assert (posterior.keys[:, 1:] == 8).all()  # nobody
    assert posterior.facts.sum(0)[2].item() == pytest.approx(
        squares(X, means).min(1).values.sum().item(), rel=1e-5
    )


@pytest.mark.parametrize("marked", [False, True])
@pytest.mark.parametrize("n_features", [3, 200])
def test_winners_of_before_stay_though_they_are_on_no_list(device: Any, n_features: int, marked: bool) -> None:
    X, means = normal(device, 40, n_features), normal(device, 9, n_features, seed=1)
    exact = squares(X, means)
    old = exact.argsort(1)[:, :2].to(torch.int32).contiguous()  # the best there are
    table = torch.stack([(torch.arange(3, device=device) + c) % 9 for c in range(9)]).to(torch.int32)
    marks = (1 << table).sum(1, keepdim=True, dtype=torch.int32)
    there = Listed(marks, marked=True) if marked else Listed(table.sort(1).values)
    extra = unlisted_distances(make_points(X), there, means, old)
    listed = (table[old[:, 0].long()][:, :, None] == old[:, None, :]).any(1)
    assert (~listed).sum() > nearest.COMPARED  # not all at once
    assert torch.isinf(extra[listed]).all()
    torch.testing.assert_close(extra[~listed].double(), exact.gather(1, old.long())[~listed], atol=1e-5, rtol=1e-5)

    groups = sort_by_group(old[:, 0].contiguous(), 9)
    tiles = Tiling(16, 16, 16, 4, 1, None)
    winners = old.clone()  # overwritten where they are
    pieces = cut(groups.start, 16, 40)
    posterior = Posterior.empty((40, 2), 9, device).with_facts(len(pieces))
    prepare_search(
        make_points(X), groups.order, pieces, means, lists_of(table), means, tiles, "fp32", winners, old=winners,
        extra=extra, posterior=posterior,
    )()  # fmt: skip
    assert winners.tolist() == old.tolist()
    assert posterior.facts.sum(0)[3].item() == int((~listed).sum())


def test_a_point_without_winners_of_before_has_none_unlisted(device: Any) -> None:
    old = torch.tensor([[0, -1], [1, -1]], dtype=torch.int32, device=device)
    table = torch.tensor([[0, 1], [0, 1]], dtype=torch.int32, device=device)
    extra = unlisted_distances(make_points(normal(device, 2, 2)), Listed(table), normal(device, 2, 2), old)
    assert torch.isinf(extra).all()


def test_distances_of_pairs_are_differences(device: Any) -> None:
    X, centres = normal(device, 30, 200) + 500, normal(device, 4, 200, seed=1) + 500
    rows = torch.tensor([3, 3, 29, 0], device=device)
    ids = torch.tensor([0, 1, 3, 2], dtype=torch.int32, device=device)
    found = distances_of(make_points(X), rows, ids, centres)
    torch.testing.assert_close(found.double(), squares(X, centres)[rows, ids.long()], rtol=1e-5, atol=0)
    assert distances_of(make_points(X), rows[:0], ids[:0], centres).shape == (0,)
