"""Sizes of the tiles that kernels work on."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from .sizes import power_of_two

#: Cells of so many points, in so many dimensions, are worth tiles of twice the size.
MANY_POINTS, WIDE = 96, 256

#: Registers of a thread, of which a multiprocessor has 512 for each of 128 threads.
REGISTERS = 128

#: Rows of at most so many features that are read few values at a time: more tiles under way, each of fewer centres
#: and so many registers a thread, wait less for them.
SHORT, SHORT_CENTRES, SHORT_REGISTERS = 64, 64, 96

#: Rows that begin at multiples of so many values are read as fast as can be.
ALIGNED = 16

#: Values of a row that are read at once, where its length and that of all others allow it.
GRAINS = (16, 8, 4, 2, 1)


@dataclass(frozen=True)
class Tiling:
    """Shape of the tiles of a search.

    Attributes
    ----------
    points, centres, features : int
        Of one product; powers of two from 16 on.
    n_warps, n_stages : int
    n_registers : int or None
        A thread takes no more: what does not fit waits in memory, but more tiles are under way at a time.
    """

    points: int
    centres: int
    features: int
    n_warps: int
    n_stages: int
    n_registers: int | None


def tiling(n_features: int, points_per_cell: float, n_centres: int, mode: str) -> Tiling:
    """The tiles of a search, by shapes alone: results must not depend on what else the device does.

    Parameters
    ----------
    n_features : int
    points_per_cell : float
    n_centres : int
        On the longest list.
    mode : str
        What products are computed in.
    """
    points = 128 if points_per_cell >= MANY_POINTS and n_features >= WIDE else 64
    is_short = n_features <= SHORT and n_features % ALIGNED != 0 and mode != "fp32"
    centres = min(SHORT_CENTRES if is_short else 128, max(16, power_of_two(n_centres)))
    # With "fp32" each operand is two: fewer tiles at a time are better than waiting for memory.
    narrow = 32 if mode == "fp32" or (mode == "bf16" and points == 128) else 16
    features = min(narrow, max(16, power_of_two(n_features)))
    # Rows that do not begin at multiples of 16 values are read few at a time: copies ahead of time then cost more
    # than they save.
    n_stages = 3 if n_features % ALIGNED == 0 else 1
    n_registers = None if mode == "fp32" else SHORT_REGISTERS if is_short else REGISTERS
    return Tiling(points, centres, features, 4 if points == 64 else 8, n_stages, n_registers)


def grain_of(n_features: int, stride: int) -> int:
    """How many values of rows of so many features, so far apart, can be read at once."""
    return next(grain for grain in GRAINS if n_features % grain == 0 and stride % grain == 0)


def is_aligned(rows: torch.Tensor) -> bool:
    """Whether rows (n, D) float32 begin as `aligned` has them."""
    return rows.stride(0) % ALIGNED == 0


def aligned(means: torch.Tensor, room: torch.Tensor | None = None) -> torch.Tensor:
    """Means (C, D) in float32, each row beginning at a multiple of `ALIGNED` values, with zeros in between.

    Parameters
    ----------
    means : (C, D) float tensor
    room : tensor, optional
        What this has given for others, that need not be kept.
    """
    n_features = means.shape[1]
    if n_features % ALIGNED == 0:
        return means.float().contiguous()
    if room is None:
        width = -(-n_features // ALIGNED) * ALIGNED
        room = torch.zeros((len(means), width), dtype=torch.float32, device=means.device)[:, :n_features]
    return room.copy_(means)
