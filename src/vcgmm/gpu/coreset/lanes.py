"""Rows of the host go up to the device through pinned buffers while others are computed with."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch

from ...data import ArrayRows, Part, Rows
from ...data.rows import exact_float
from ...parallel import Workers

#: Types that torch has as well; all others go up as floats that hold their values.
SHARED_TYPES = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8")

#: Values of a part of an array.
PART_VALUES = 1 << 22

#: Bytes of an array that go up at a time, buffers that they do it by, and threads that fill them.
UPLOADED_BYTES, UPLOADING, UPLOADING_THREADS = 1 << 23, 3, 8

#: Results that are under way before the host waits for the first of them.
UNDER_WAY = 2

Tag = TypeVar("Tag")
Made = TypeVar("Made")

#: Something to know rows by, and the rows, read where they are asked for.
Task = tuple[Tag, Callable[[], np.ndarray]]


@dataclass
class _Buffer:
    """A pinned buffer, and when it has been copied."""

    memory: torch.Tensor
    copied: torch.cuda.Event


class Lanes:
    """A stream beside the main one, on which rows go up.

    Threads read rows and fill buffers; this thread alone speaks to the device.  What lies there when the lanes are
    made may be written to.

    Parameters
    ----------
    device : torch.device
        Where it is the host, as under the interpreter, nothing is copied.
    workers : Workers
    """

    def __init__(self, device: torch.device, workers: Workers) -> None:
        self.device = device
        self.workers = workers
        self._free: deque[_Buffer] = deque()
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)
            self._main = torch.cuda.current_stream(device)  # that of the caller, who may have one of its own
            self._stream.wait_stream(self._main)

    @property
    def beside(self) -> AbstractContextManager[Any]:
        """Within it work goes to this stream."""
        return torch.cuda.stream(self._stream) if self.device.type == "cuda" else nullcontext()

    def blocks(self, tasks: Iterator[Task[Tag]]) -> Generator[tuple[Tag, torch.Tensor], None, None]:
        """Rows on the device, in order, on this stream; further ones are read and copied meanwhile."""

        def fill(task: tuple[Tag, Callable[[], np.ndarray], _Buffer | None]) -> torch.Tensor:
            _, read, buffer = task
            rows = read()
            if rows.dtype.name not in SHARED_TYPES or not rows.dtype.isnative:
                rows = rows.astype(exact_float(rows.dtype))
            if buffer is None:
                return torch.from_numpy(np.ascontiguousarray(rows))
            return self._staged(buffer, rows)

        with closing(self.workers.in_order(fill, self._with_buffers(tasks))) as done:
            for (tag, _, buffer), staged in done:
                with self.beside:
                    block = staged.to(self.device, non_blocking=True)
                if buffer is not None:
                    buffer.copied.record(self._stream)
                    self._free.append(buffer)
                yield tag, block

    def computed(
        self, tasks: Iterator[Task[Tag]], work: Callable[[Tag, torch.Tensor], torch.Tensor]
    ) -> Generator[tuple[Tag, np.ndarray], None, None]:
        """What is made of rows on the device, on the host, in order; the host waits as late as it can."""
        under_way: deque[tuple[Tag, torch.Tensor]] = deque()
        with closing(self.blocks(tasks)) as blocks:
            for tag, block in blocks:
                with self.beside:
                    under_way.append((tag, work(tag, block)))
                if len(under_way) > UNDER_WAY:
                    yield self._taken(under_way)
            while under_way:
                yield self._taken(under_way)

    def upload(self, array: np.ndarray, out: torch.Tensor) -> None:
        """Copy an array on the host as it is, all of it, to a tensor of its type and shape.

        A few of torch's own threads fill the buffers: Python's take longer to start than to copy a small array.
        """
        if self.device.type != "cuda":
            out.copy_(torch.from_numpy(array))
            return
        step = max(1, UPLOADED_BYTES // max(1, array[:1].nbytes))
        with _torch_threads(min(UPLOADING_THREADS, self.workers.n_threads)):
            for number, first in enumerate(range(0, len(array), step)):
                rows = torch.from_numpy(array[first : first + step])
                if number < UPLOADING:
                    memory = torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True)
                    buffer = _Buffer(memory, torch.cuda.Event())
                else:
                    buffer = self._free.popleft()
                    buffer.copied.synchronize()
                staged = buffer.memory[: len(rows)]
                staged.copy_(rows)
                with self.beside:
                    out[first : first + step].copy_(staged, non_blocking=True)
                buffer.copied.record(self._stream)
                self._free.append(buffer)
        self._free.clear()  # they are shaped as the rows are
        self.finish()

    def hand_over(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor that was made on this stream, for use on the main one."""
        if self.device.type == "cuda":
            self.finish()
            tensor.record_stream(self._main)
        return tensor

    def finish(self) -> None:
        """Let what comes next on the main stream wait for all that has been begun here."""
        if self.device.type == "cuda":
            self._main.wait_stream(self._stream)

    def _taken(self, under_way: deque[tuple[Tag, torch.Tensor]]) -> tuple[Tag, np.ndarray]:
        tag, result = under_way.popleft()
        with self.beside:
            return tag, result.cpu().numpy()

    def _with_buffers(
        self, tasks: Iterator[Task[Tag]]
    ) -> Generator[tuple[Tag, Callable[[], np.ndarray], _Buffer | None], None, None]:
        """Each task with a buffer that nothing is copied from any more."""
        for tag, read in tasks:
            buffer = None
            if self.device.type == "cuda":
                buffer = self._free.popleft() if self._free else _Buffer(torch.empty(0), torch.cuda.Event())
                buffer.copied.synchronize()
            yield tag, read, buffer

    @staticmethod
    def _staged(buffer: _Buffer, rows: np.ndarray) -> torch.Tensor:
        """Rows in a pinned buffer."""
        if buffer.memory.nbytes < rows.nbytes:
            buffer.memory = torch.empty(rows.nbytes, dtype=torch.uint8, pin_memory=True)
        kind = torch.from_numpy(np.empty(0, rows.dtype)).dtype
        staged = buffer.memory[: rows.nbytes].view(kind).view(rows.shape)
        np.copyto(staged.numpy(), rows)
        return staged


@contextmanager
def _torch_threads(n_threads: int) -> Iterator[None]:
    """Within it torch uses no more threads on the host."""
    before = torch.get_num_threads()
    torch.set_num_threads(min(before, n_threads))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def parts_of(rows: Rows) -> Iterator[Task[Part]]:
    """Every part of rows, to be copied; those of an array are larger than on the host, which has a cache."""
    if isinstance(rows, ArrayRows):
        step = rows.rows_per_block * max(1, PART_VALUES // (rows.rows_per_block * rows.n_features))
        for first in range(0, rows.n_samples, step):
            part = Part(first, rows.array[first : first + step], None, rows)
            yield part, lambda part=part: part.rows  # type: ignore[misc]
        return
    with closing(rows.parts()) as parts:
        for part in parts:
            yield part, lambda part=part: part.rows  # type: ignore[misc]
