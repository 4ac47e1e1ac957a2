"""Rankings of rows of numbers, the same from run to run: ties are settled by place."""

from __future__ import annotations

import torch

from ..device.arena import empty
from ..device.sizes import pieces_of, power_of_two
from ..kernels.ranking import order_rows, rank_rows

#: Rows up to so long are ranked by one program each; of a warp, so many values.
RANKED, WARP_VALUES = 4096, 1024

#: The places found are compared with so many others at a time.
OTHERS = 32

#: Rows are put in order by comparing all values with one another where those are at most so many comparisons, some
#: values with some others at a time.
COMPARISONS, PART, OTHERS_OF_PART = 1 << 27, 16, 512


def in_order(
    values: torch.Tensor, *, descending: bool = False, out: torch.Tensor | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """The last dimension sorted, and where each value was, (..., n) int64; equals keep their order.

    What `torch.sort` gives, in one launch where rows are few and short.

    Parameters
    ----------
    values : (..., n) int or float64 tensor without gaps
    descending : bool
    out : tensor, optional
        Of the shape and type of the values, where they may be put.
    """
    n_places = values.shape[-1]
    if _is_long(values):
        found = torch.sort(values, stable=True, descending=descending)
        return found.values, found.indices
    ordered = empty(values.shape, values.dtype, values.device) if out is None else out
    order = empty(values.shape, torch.int64, values.device)
    _put_in_order(values, n_places, ordered, order, descending)
    return ordered, order


def first_in_order(
    values: torch.Tensor, count: int, ordered: torch.Tensor, order: torch.Tensor, *, descending: bool = False
) -> None:
    """The first of all values (n,) int or float64, in order, and where each was, put where they are wanted.

    Parameters
    ----------
    values : (n,) tensor without gaps
    count : int
        How many of them, at most n.
    ordered : (count,) tensor of the type of the values
    order : (count,) int64 tensor
    descending : bool
    """
    if _is_long(values):
        found = torch.sort(values, stable=True, descending=descending)
        ordered.copy_(found.values[:count])
        order.copy_(found.indices[:count])
    else:
        _put_in_order(values, count, ordered, order, descending)


def _is_long(values: torch.Tensor) -> bool:
    """Whether to compare all values of each row with one another is more work than to sort them."""
    return values.numel() * values.shape[-1] > COMPARISONS


def _put_in_order(
    values: torch.Tensor, count: int, ordered: torch.Tensor, order: torch.Tensor, descending: bool
) -> None:
    n_places = values.shape[-1]
    others = min(OTHERS_OF_PART, power_of_two(n_places))
    order_rows[(values.numel() // max(1, n_places), pieces_of(n_places, PART))](
        values, n_places, count, ordered, order, PART=PART, AT_ONCE=others, DESCENDING=descending,
        num_warps=max(1, others // 128),
    )  # fmt: skip


def ranked(values: torch.Tensor, count: int, out: torch.Tensor | None = None) -> torch.Tensor:
    """Places of the `count` smallest of the last dimension, ascending; among equals the first places.

    Parameters
    ----------
    values : (..., n) float32 tensor
    count : int
    out : (..., count) int tensor, optional
        Where they are put.

    Returns
    -------
    (..., count) int64 tensor, or `out`
    """
    if out is None:
        out = torch.empty((*values.shape[:-1], count), dtype=torch.int64, device=values.device)
    n_places = values.shape[-1]
    if n_places <= RANKED:
        width = power_of_two(n_places)
        rank_rows[(out.numel() // count,)](
            values.contiguous(), n_places, out, count, PLACES=width, COUNT=power_of_two(count),
            AT_ONCE=min(OTHERS, power_of_two(count)), num_warps=max(1, min(8, width // WARP_VALUES)),
        )  # fmt: skip
        return out
    bits = values.contiguous().view(torch.int32)
    bits = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # orders as the floats do, negative ones too
    places = torch.arange(values.shape[-1], device=values.device)
    keys = (bits.to(torch.int64) << 32) | places
    return out.copy_(torch.topk(keys, count, dim=-1, largest=False, sorted=True).values & 0xFFFFFFFF)


def distinct_in_order(ids: torch.Tensor, count: int, n_ids: int) -> torch.Tensor:
    """The first `count` different ids of every row, in the order in which they come.

    Parameters
    ----------
    ids : (n, m) int32 or int64 tensor
        -1: none.
    count : int
    n_ids : int
        No id is as large.

    Returns
    -------
    (n, count) tensor of the same type, -1 where a row has fewer
    """
    n_places = ids.shape[1]
    bits = n_places.bit_length()
    few = n_ids <= 1 << (31 - bits)
    keys = (ids << bits if few else ids.long() << bits) | torch.arange(n_places, device=ids.device)
    keys = torch.sort(keys.to(torch.int32) if few else keys, dim=1).values
    ordered = keys >> bits
    is_first = ordered >= 0
    is_first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    first = torch.zeros_like(is_first).scatter_(1, (keys & ((1 << bits) - 1)).long(), is_first)
    target = torch.cumsum(first, 1, dtype=torch.int32) - 1
    target = torch.where(first & (target < count), target, count).long()  # all others into a column beyond
    found = ids.new_full((len(ids), count + 1), -1).scatter_(1, target, ids)
    return found[:, :count]
