"""Seeding on the device: AFK-MC^2, D^2 sampling (k-means++) and random points."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ...algorithm.seeding.afkmc2 import Start
from ..cells.nearest import distances_of, nearest_of_all
from ..coreset.hashing import row_hashes
from ..coreset.points import DevicePoints
from ..device.arrays import DeviceArray
from ..device.exact import Urn
from ..kernels.chains import walk_chains
from .greedy import table_of

#: Markov chains run together, and their proposals, at most: distances to all earlier centres are one search, those
#: among themselves one product.
CHAINS, PROPOSALS = 256, 8192

#: Proposals of later chains that are compared with a new centre at a time.
COMPARED = 1024


def assign(points: DevicePoints, means: torch.Tensor) -> Start:
    """Start from given means (C, D): every point goes to its nearest, found by comparing with all."""
    centres = means.float()
    ids, near = nearest_of_all(points, centres, mode=points.precision)
    error = float(points.error_of(near[:, 0]))
    labels = ids[:, 0].contiguous()
    return Start(DeviceArray(means.double()), labels, error, len(points) * len(means))  # type: ignore[arg-type]


def seeded(
    points: DevicePoints,
    init: str,
    n_clusters: int,
    chain_length: int,
    rng: np.random.Generator,
    advance: Callable[[int], None],
) -> Start:
    """Start from points of the data, chosen as `init` says."""
    if init == "afkmc2":
        rows, n_evaluations = afkmc2(points, n_clusters, chain_length, rng, advance)
    elif init == "k-means++":
        rows, n_evaluations = kmeans_plus_plus(points, n_clusters, rng, advance)
    else:
        rows, n_evaluations = random_points(points, n_clusters, rng), 0
        advance(n_clusters)
    start = assign(points, points.at(rows).double())
    start.n_evaluations += n_evaluations
    return start


def distances_to_row(points: DevicePoints, row: torch.Tensor) -> torch.Tensor:
    """Squared distances of all points to one of them, (N',) float32; exactly 0 for itself and its equals."""
    every = torch.arange(len(points), device=points.device)
    same = torch.zeros(len(points), dtype=torch.int32, device=points.device)
    return distances_of(points, every, same, points.at(row.view(1)))


def nearest_squares(points: DevicePoints, rows: torch.Tensor | None, centres: torch.Tensor) -> torch.Tensor:
    """Squared distances of some points (n,) int64, or all, to the nearest of those that are centres (k,): float32.

    Who is nearest is found by products, how near by differences.  Where centres are very far from each other, the
    products may leave too few digits: centres and their equals are known by themselves, and exactly 0 away.
    """
    there = points.at(centres)
    ids, _ = nearest_of_all(points, there, rows=rows)
    every = torch.arange(len(points), device=points.device) if rows is None else rows
    near = distances_of(points, every, ids[:, 0], there)
    looked_at = points.stored if rows is None else points.stored[rows]
    are_centres = torch.isin(row_hashes(looked_at), row_hashes(points.stored[centres]))
    return near.masked_fill_(are_centres, 0.0)


def afkmc2(
    points: DevicePoints,
    n_clusters: int,
    chain_length: int,
    rng: np.random.Generator,
    advance: Callable[[int], None],
) -> tuple[torch.Tensor, int]:
    """AFK-MC^2 (Bachem et al. 2016), as in `algorithm.seeding.afkmc2.afkmc2`.

    Returns
    -------
    rows : (C,) int64 tensor
    n_evaluations : int
    """
    device = points.device
    weights = points.weights.double()
    rows = torch.empty(n_clusters, dtype=torch.int64, device=device)
    rows[:1] = Urn(weights).draw(_uniforms(rng, (1,), device))
    advance(1)
    masses = weights * distances_to_row(points, rows[0]).double()
    spread, total = masses.sum(), weights.sum()
    proposal = 0.5 * masses / spread + 0.5 * weights / total if float(spread) > 0 else weights / total
    shape = (n_clusters - 1, chain_length)
    drawn = Urn(proposal).draw(_uniforms(rng, shape, device).view(-1)).view(shape)
    uniforms = _uniforms(rng, shape, device)
    potential = weights / proposal.clamp(min=torch.finfo(torch.float64).tiny)
    n_evaluations = len(points)
    is_new = torch.ones(n_clusters, dtype=torch.bool, device=device)
    n_lost = 0
    at_once = max(1, min(CHAINS, PROPOSALS // chain_length))
    for begin in range(0, n_clusters - 1, at_once):
        batch = drawn[begin : begin + at_once]
        proposed = batch.reshape(-1)
        known = rows[: begin + 1][is_new[: begin + 1]] if n_lost else rows[: begin + 1]
        near = nearest_squares(points, proposed, known).double().view(batch.shape)
        chosen = run_chains(points, batch, potential[batch], near, uniforms[begin : begin + at_once])
        new = slice(begin + 1, begin + 1 + len(batch))
        is_new[new] = chosen >= 0
        # All that such a chain has met are centres: its first proposal, which is one, stands in for a new one.
        firsts = torch.arange(0, len(proposed), chain_length, device=device)
        rows[new] = proposed[torch.where(chosen >= 0, chosen, firsts)]
        n_lost += int((chosen < 0).sum())
        n_evaluations += len(proposed) * len(known) + len(proposed) * (len(proposed) - 1) // 2
        advance(len(batch))
    if n_lost:
        near = nearest_squares(points, None, rows[is_new])
        rows[~is_new] = _by_distance(points, near, n_lost, rng, lambda _: None)
        n_evaluations += len(points) * n_clusters
    return rows, n_evaluations


def run_chains(
    points: DevicePoints,
    proposals: torch.Tensor,
    potential: torch.Tensor,
    distances: torch.Tensor,
    uniforms: torch.Tensor,
) -> torch.Tensor:
    """A batch of Markov chains, one new centre each, as `kernels.seeding.chains.run_chains`.

    Parameters
    ----------
    points : DevicePoints
    proposals : (b, m) int64 tensor
        Points proposed.
    potential : (b, m) float64 tensor
        gamma_n / q_n of them.
    distances : (b, m) float64 tensor
        Squared distance to the nearest centre of earlier batches; in the end also to those of the chains before.
    uniforms : (b, m) float64 tensor

    Returns
    -------
    chosen : (b,) int64 tensor
        Proposals that became centres, chain * m + step; -1 where every state of the chain was a centre already.
    """
    n_chains, length = proposals.shape
    chosen = torch.empty(n_chains, dtype=torch.int64, device=points.device)
    # One chain alone is compared with no other.
    table, pitch = table_of(points, proposals.reshape(-1)) if n_chains > 1 else (distances, 0)
    walk_chains[(1,)](
        table, pitch, potential.contiguous(), distances, uniforms.contiguous(), n_chains, length, chosen,
        PROPOSALS=COMPARED,
    )  # fmt: skip
    return chosen


def kmeans_plus_plus(
    points: DevicePoints, n_clusters: int, rng: np.random.Generator, advance: Callable[[int], None]
) -> tuple[torch.Tensor, int]:
    """Plain D^2 sampling: each centre is drawn by gamma d^2, d the distance to the nearest so far."""
    return _by_distance(points, None, n_clusters, rng, advance), n_clusters * len(points)


def random_points(points: DevicePoints, n_clusters: int, rng: np.random.Generator) -> torch.Tensor:
    """Different points, drawn without replacement with probability proportional to their weights: (C,) int64."""
    races = torch.from_numpy(rng.standard_exponential(len(points))).to(points.device) / points.weights.double()
    order = torch.argsort(races, stable=True)
    hashes, by_hash = torch.sort(row_hashes(points.stored)[order], stable=True)
    is_first = torch.ones_like(hashes, dtype=torch.bool)
    is_first[1:] = hashes[1:] != hashes[:-1]
    firsts = torch.sort(by_hash[is_first]).values
    repeated = torch.sort(by_hash[~is_first]).values
    return order[torch.cat([firsts, repeated])[:n_clusters]]


def _by_distance(
    points: DevicePoints,
    near: torch.Tensor | None,
    n_more: int,
    rng: np.random.Generator,
    advance: Callable[[int], None],
) -> torch.Tensor:
    """Points (n_more,) int64 one by one, by gamma d^2, d the distance to the nearest centre by then.

    Parameters
    ----------
    points : DevicePoints
    near : (N',) float32 tensor or None
        Squared distances to the nearest centre that there is already, if there is one.
    n_more : int
    rng : numpy Generator
    advance : callable
    """
    rows = torch.empty(n_more, dtype=torch.int64, device=points.device)
    for place in range(n_more):
        urn = Urn(points.weights if near is None else points.weights * near)
        urn = Urn(points.weights) if urn.is_empty else urn
        rows[place : place + 1] = urn.draw(_uniforms(rng, (1,), points.device))
        found = distances_to_row(points, rows[place])
        near = found if near is None else torch.minimum(near, found)
        advance(1)
    return rows


def _uniforms(rng: np.random.Generator, shape: tuple[int, ...], device: torch.device) -> torch.Tensor:
    return torch.from_numpy(rng.random(shape)).to(device)
