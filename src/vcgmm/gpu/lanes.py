"""Ways from the host to the device: rows go up while others are computed with."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from ..algorithm.frame import PartMoments
from ..data import Part
from ..data.rows import exact_float

#: Types that torch has as well; all others go up as floats that hold their values.
SHARED_TYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8")

T = TypeVar("T")


class _Buffers:
    """Two pinned buffers of a thread: one is filled while the other is copied."""

    def __init__(self) -> None:
        self._buffers = [torch.empty(0, dtype=torch.uint8), torch.empty(0, dtype=torch.uint8)]
        self._copied = [torch.cuda.Event(), torch.cuda.Event()]
        self._turn = 0

    def upload(self, rows: np.ndarray, device: torch.device) -> torch.Tensor:
        """A copy on the device, on the current stream."""
        turn = self._turn = 1 - self._turn
        self._copied[turn].synchronize()  # what was in this buffer has been copied
        if self._buffers[turn].numel() < rows.nbytes:
            self._buffers[turn] = torch.empty(rows.nbytes, dtype=torch.uint8, pin_memory=True)
        kind = torch.from_numpy(np.empty(0, rows.dtype)).dtype
        staged = self._buffers[turn][: rows.nbytes].view(kind).view(rows.shape)
        np.copyto(staged.numpy(), rows)
        block = staged.to(device, non_blocking=True)
        self._copied[turn].record()
        return block


class Lanes:
    """A lane for every thread: pinned buffers of its own, and with the others one stream beside the main one.

    What lies on the device when they are made may be written to.

    Parameters
    ----------
    device : torch.device
        Where it is the host, as under the interpreter, nothing is copied.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._own = threading.local()
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)
            self._stream.wait_stream(torch.cuda.default_stream(device))

    def run(self, rows: np.ndarray, work: Callable[[torch.Tensor], T]) -> T:
        """work(rows on the device), on the lanes' stream, while the main one goes on with what it has."""
        if rows.dtype.name not in SHARED_TYPES or not rows.dtype.isnative:
            rows = rows.astype(exact_float(rows.dtype))
        if self.device.type == "cpu":
            return work(torch.from_numpy(np.ascontiguousarray(rows)))
        with torch.cuda.device(self.device), torch.cuda.stream(self._stream):
            if not hasattr(self._own, "buffers"):
                self._own.buffers = _Buffers()
            return work(self._own.buffers.upload(rows, self.device))

    def finish(self) -> None:
        """Let what comes next on the main stream wait for all that the lanes have begun."""
        if self.device.type == "cuda":
            torch.cuda.default_stream(self.device).wait_stream(self._stream)

    def hand_over(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor that a lane has made, for use on the main stream."""
        if self.device.type == "cuda":
            self.finish()
            tensor.record_stream(torch.cuda.default_stream(self.device))
        return tensor

    def part_moments(self, part: Part, weights: np.ndarray | None) -> PartMoments:
        """Sums over a part, as `algorithm.frame.part_moments` takes them over each of its blocks."""
        mass = float(len(part)) if weights is None else float(weights.sum())

        def work(block: torch.Tensor) -> np.ndarray:
            wide = block.double()
            w = wide.new_ones(len(wide)) if weights is None else torch.from_numpy(weights).to(wide.device)
            sums = w @ wide
            away = wide - sums / (mass if mass > 0 else 1.0)
            scatter = torch.dot(w, torch.linalg.vecdot(away, away))
            return torch.cat([sums, scatter.view(1)]).cpu().numpy()

        found = self.run(part.rows, work)
        if not np.isfinite(found[:-1]).all():
            for bounds in part.bounds():
                part.refuse_nonfinite(*bounds)
        n_usable = len(part) if weights is None else int(np.count_nonzero(weights))
        return PartMoments(found[None, :-1], np.array([mass]), found[-1:], n_usable)

    def part_deviations(self, part: Part, mean: np.ndarray) -> np.ndarray:
        """Squared distances of a part's rows to the mean (D,), (n,) float64."""

        def work(block: torch.Tensor) -> np.ndarray:
            away = block.double() - torch.from_numpy(mean).to(block.device)
            return torch.linalg.vecdot(away, away).cpu().numpy()

        return self.run(part.rows, work)
