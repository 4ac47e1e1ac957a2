"""Work that is done again and again on the device is recorded once, and from then on begun with one call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import torch

#: Times that work is done as it is before it is recorded: kernels are loaded then, and many a fit ends.
AS_IT_IS = 4

Result = TypeVar("Result")


class Recorded(Generic[Result]):
    """Work that takes the host longer to begin than the device to do, unless it is recorded (a CUDA graph).

    Parameters
    ----------
    device : torch.device
    worthwhile : bool
        False: never record it.
    """

    def __init__(self, device: torch.device, *, worthwhile: bool) -> None:
        self._device = device
        self._left = AS_IT_IS
        self._worthwhile = worthwhile and device.type == "cuda"
        self._graph: torch.cuda.CUDAGraph | None = None
        self._result: Result | None = None

    def __call__(self, work: Callable[[], Result]) -> Result:
        """Do it, whether as it is or as it was recorded.

        Parameters
        ----------
        work : callable
            Begins the work, always with the same shapes, on tensors that stay where they are.  It may not wait for
            the device.  What it gives is overwritten when it is done again.
        """
        if self._result is None or self._graph is None:
            if self._left > 0 or not self._worthwhile:
                self._left -= 1
                return work()
            self._graph, self._result = self._record(work)
        self._graph.replay()
        return self._result

    def _record(self, work: Callable[[], Result]) -> tuple[torch.cuda.CUDAGraph, Result]:
        """Note what the work begins; nothing of it is done yet."""
        graph, beside = torch.cuda.CUDAGraph(), torch.cuda.Stream(self._device)
        beside.wait_stream(torch.cuda.current_stream(self._device))
        with torch.cuda.stream(beside):
            graph.capture_begin(capture_error_mode="thread_local")  # other threads may go on as they like
            try:
                result = work()
            finally:
                graph.capture_end()
        torch.cuda.current_stream(self._device).wait_stream(beside)
        return graph, result
