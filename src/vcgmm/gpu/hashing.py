"""Fingerprints of rows on the device, to count different ones."""

from __future__ import annotations

from functools import lru_cache

import torch

#: Values that are hashed at a time.
BLOCK_VALUES = 1 << 26

_PATTERNS = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.uint8}


def row_hashes(rows: torch.Tensor) -> torch.Tensor:
    """A fingerprint of every row (N, D), equal for equal rows: (N,) int64."""
    odd = _odd_numbers(rows.shape[1], rows.device)
    out = torch.empty(len(rows), dtype=torch.int64, device=rows.device)
    step = max(1, BLOCK_VALUES // rows.shape[1])
    for first in range(0, len(rows), step):
        block = rows[first : first + step]
        if block.is_floating_point():
            block = (block + 0).contiguous()  # -0.0 equals 0.0
        block = block.contiguous().view(_PATTERNS[block.element_size()]).long()
        mixed = block * odd
        out[first : first + step] = ((mixed ^ (mixed >> 29)) * odd).sum(1)
    return out


@lru_cache(maxsize=4)
def _odd_numbers(n_features: int, device: torch.device) -> torch.Tensor:
    """What values of each feature are multiplied by, (D,) int64."""
    draws = torch.Generator().manual_seed(0)
    return (torch.randint(-(1 << 62), 1 << 62, (n_features,), generator=draws) * 2 + 1).to(device)


def count_distinct(rows: torch.Tensor, enough: int) -> int:
    """Number of different rows, or any number from `enough` on once so many have been seen."""
    step = max(1, len(rows) // (4 * enough))  # most data show enough of them in a part of their rows
    n_distinct = len(torch.unique(row_hashes(rows[::step])))
    if n_distinct >= enough or step == 1:
        return n_distinct
    return len(torch.unique(row_hashes(rows)))
