"""What kernels and copies are queued in."""

from __future__ import annotations

from functools import lru_cache

import torch


def current_stream(device: torch.device) -> torch.cuda.Stream | None:
    """What kernels are queued in on a device of a known number; None on the host.

    torch takes longer to make this object than to launch a kernel: those of before are used again.
    """
    if device.type != "cuda":
        return None
    return _made(device.index, torch._C._cuda_getCurrentRawStream(device.index))


@lru_cache(maxsize=64)
def _made(index: int, raw: int) -> torch.cuda.Stream:  # noqa: ARG001
    """The current stream of a device, which is the one with this handle."""
    return torch.cuda.current_stream(index)
