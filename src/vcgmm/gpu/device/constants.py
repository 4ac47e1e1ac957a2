"""Numbers on the device that follow from sizes alone: made once, since to make them takes as long as to launch.

Nobody may change them.
"""

from __future__ import annotations

from functools import lru_cache

import torch


@lru_cache(maxsize=64)
def one_group(n: int, device: torch.device) -> torch.Tensor:
    """Where a single group of n members begins and ends: (2,) int64."""
    return torch.tensor([0, n], device=device)


@lru_cache(maxsize=64)
def one_float(value: float, device: torch.device) -> torch.Tensor:
    """A number, (1,) float64."""
    return torch.tensor([value], dtype=torch.float64, device=device)


@lru_cache(maxsize=4)
def first_ids(n: int, device: torch.device) -> torch.Tensor:
    """0..n - 1, int32."""
    return torch.arange(n, dtype=torch.int32, device=device)


@lru_cache(maxsize=2)
def first_rows(n: int, device: torch.device) -> torch.Tensor:
    """0..n - 1, int64, of not many."""
    return torch.arange(n, device=device)


@lru_cache(maxsize=2)
def equal_weights(n: int, device: torch.device) -> torch.Tensor:
    """N times 1, float32, likewise."""
    return torch.ones(n, device=device)


@lru_cache(maxsize=4)
def equal_starts(n_lists: int, length: int, device: torch.device) -> torch.Tensor:
    """Where lists of one length begin, and where the last ends: (n_lists + 1,) int64."""
    return torch.arange(0, (n_lists + 1) * length, length, device=device)
