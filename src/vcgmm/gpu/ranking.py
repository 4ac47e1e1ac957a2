"""Rankings of rows of numbers, the same from run to run: ties are settled by place."""

from __future__ import annotations

import torch


def ranked(values: torch.Tensor, count: int) -> torch.Tensor:
    """Places of the `count` smallest of the last dimension, ascending; among equals the first places.

    Parameters
    ----------
    values : (..., n) float32 tensor

    Returns
    -------
    (..., count) int64 tensor
    """
    bits = values.contiguous().view(torch.int32)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # orders as the floats do, negative ones too
    places = torch.arange(values.shape[-1], device=values.device)
    keys = (bits.to(torch.int64) << 32) | places
    return torch.topk(keys, count, dim=-1, largest=False, sorted=True).values & 0xFFFFFFFF


def distinct_in_order(ids: torch.Tensor, count: int) -> torch.Tensor:
    """The first `count` different ids of every row, in the order in which they come.

    Parameters
    ----------
    ids : (n, m) int64 tensor
        -1: none.
    count : int

    Returns
    -------
    (n, count) int64 tensor, -1 where a row has fewer
    """
    n_places = ids.shape[1]
    places = torch.arange(n_places, device=ids.device)
    keys, _ = torch.sort((ids << 32) | places, dim=1)
    ordered = keys >> 32
    first = ordered >= 0
    first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    place = torch.where(first, keys & 0xFFFFFFFF, n_places)
    count_here = min(count, n_places)
    chosen = torch.topk(place, count_here, dim=1, largest=False, sorted=True).values
    padded = torch.cat([ids, ids.new_full((len(ids), 1), -1)], dim=1)
    found = padded.gather(1, chosen)
    if count_here < count:
        found = torch.cat([found, found.new_full((len(ids), count - count_here), -1)], dim=1)
    return found
