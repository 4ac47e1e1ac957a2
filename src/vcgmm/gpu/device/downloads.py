"""Large results come down to the host through pinned buffers.

A plain copy to memory that the host has not touched yet takes a single thread, at less than 2 GB/s.  Here one
piece comes at the speed of the link while several threads put the piece before it into its place.
"""

from __future__ import annotations

import numpy as np
import torch

from ..spans import as_tensors

#: Bytes of a piece, and from which on a tensor is brought in pieces.
PIECE, LARGE = 1 << 23, 1 << 24


def to_host(tensor: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
    """A tensor on the host: itself where it lies there, else a copy, by as many threads as torch is set to use.

    Parameters
    ----------
    tensor : tensor
        Of any device.
    out : tensor on the host, optional
        Of its shape, of any type, and without gaps: where to put it.
    """
    tensor = as_tensors(tensor)
    if tensor.device.type != "cuda" or tensor.nbytes < LARGE:
        return tensor.cpu() if out is None else out.copy_(tensor)
    if out is None:
        out = torch.empty(tensor.shape, dtype=tensor.dtype)
    with torch.cuda.device(tensor.device):
        _in_pieces(tensor.contiguous().view(-1), out.view(-1))
    return out


def _in_pieces(source: torch.Tensor, target: torch.Tensor) -> None:
    """Copy values (n,) to the host: while one piece comes, the one before is put into its place."""
    step = PIECE // source.itemsize
    buffers = [(torch.empty(step, dtype=source.dtype, pin_memory=True), torch.cuda.Event()) for _ in range(2)]

    def send(number: int) -> None:
        memory, there = buffers[number % 2]
        piece = source[number * step : (number + 1) * step]
        memory[: len(piece)].copy_(piece, non_blocking=True)
        there.record()

    send(0)
    for number in range(-(-len(source) // step)):
        if (number + 1) * step < len(source):
            send(number + 1)
        memory, there = buffers[number % 2]
        there.synchronize()
        place = target[number * step : (number + 1) * step]
        place.copy_(memory[: len(place)])


def put(tensor: torch.Tensor, out: np.ndarray) -> None:
    """Put a copy of a tensor into an array of its shape and type, whose rows follow one another."""
    to_host(tensor, torch.from_numpy(out))
