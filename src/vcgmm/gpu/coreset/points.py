"""Points on the device, in coordinates that are a scale away from how they are stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch

from ...algorithm.coreset.frame import Frame
from ..device.arena import empty, letter
from ..device.arrays import Told, ToldSum
from ..device.sizes import pieces_of
from ..device.tiling import grain_of
from ..kernels.surveying import mean_of_some, multiply_parts

#: Types in which rows may lie on the device as they are.
STORED = (torch.float32, torch.bfloat16, torch.float16, torch.uint8, torch.int8)

#: Rows of so many features and more are multiplied in bf16 where that is asked for.
LEAST_IN_BF16 = 64

#: Points that are looked at to find their middle, or up to twice as many; at a time, and features of them.
MIDDLE_ROWS, ROWS, FEATURES = 512, 128, 16

#: Points of a part whose errors are added up on the device, at least, how many parts there are at most, which the
#: host adds up, and points at a time.
SMALLEST_PART, MOST_PARTS, MULTIPLIED = 8192, 256, 1024

#: Values that are converted to float32 at a time.
BLOCK_VALUES = 1 << 27

GIGABYTE = 1 << 30


@contextmanager
def current(device: torch.device) -> Iterator[None]:
    """Within it kernels run on this device, whichever is the current one outside.

    Where its memory runs out, that is said with what there is and what to do.
    """
    if device.type != "cuda":
        yield
        return
    with torch.cuda.device(device):
        try:
            yield
        except torch.OutOfMemoryError as error:
            free, total = (size / GIGABYTE for size in torch.cuda.mem_get_info(device))
            raise MemoryError(
                f"{device} has run out of memory: {free:.1f} of its {total:.1f} GiB are free. Use a smaller "
                f"coreset_size, fewer rows at a time, precision='bf16', or device='cpu'. ({error})"
            ) from error


def upload(array: np.ndarray, device: torch.device) -> torch.Tensor:
    """An array of the host on the device, without waiting for what the device is told before.

    It may be changed or forgotten at once: the driver has taken it over when this returns.
    """
    return torch.from_numpy(array).to(device, non_blocking=True)


@dataclass
class DevicePoints:
    """Weighted points; coordinates are scale times what is stored.

    Attributes
    ----------
    stored : (N', D) tensor of one of `STORED`
        Rows one after the other or at a stride; never changed.
    scale : float
        A power of two.
    weights : (N',) float32 tensor
    frame : Frame
        Of the coordinates.
    precision : str
        "tf32", "fp32" or "bf16": what products of coordinates are computed in.  Where "bf16" is asked for, those
        of fewer than `LEAST_IN_BF16` features are still computed in "tf32": errors of so few do not average out.
    chores : list of callables
        How the host finds out whether enough of them differ, where it would wait for the device; none where that
        is known.
    """

    stored: torch.Tensor
    scale: float
    weights: torch.Tensor
    frame: Frame
    precision: str
    chores: list[Callable[[], None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Short rows are multiplied with more digits."""
        if self.precision == "bf16" and self.n_features < LEAST_IN_BF16:
            self.precision = "tf32"

    def __len__(self) -> int:
        """Number of points N'."""
        return int(self.stored.shape[0])

    @property
    def n_features(self) -> int:
        """D."""
        return int(self.stored.shape[1])

    @property
    def device(self) -> torch.device:
        """Where they lie."""
        return self.stored.device

    @cached_property
    def grain(self) -> int:
        """How many values of a row can be read at once."""
        return grain_of(self.n_features, self.stored.stride(0))

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights; the host waits for it once, where it was not told."""
        return float(self.weights.double().sum())

    def error_of(self, distances: torch.Tensor) -> Told:
        """Weighted sum of squared distances (N',) float32, on its way to the host."""
        n_points = len(self)
        size = max(SMALLEST_PART, pieces_of(n_points, MOST_PARTS))
        parts = letter((pieces_of(n_points, size),), torch.float64, self.device)
        multiply_parts[(parts.shape[0],)](
            self.weights, distances.contiguous(), n_points, size, parts, AT_ONCE=MULTIPLIED
        )
        return ToldSum(parts)

    def do_chores(self) -> None:
        """Do what there is to do; what is found to do by the way is left to the next time."""
        chores, self.chores = self.chores, []
        for chore in chores:
            chore()

    def end_chores(self) -> None:
        """Do all there is to do."""
        while self.chores:
            self.do_chores()

    def put_back(self) -> None:
        """They are never put in another order."""

    def forget(self) -> None:
        """Nothing is made that could be."""

    def at(self, rows: torch.Tensor | slice) -> torch.Tensor:
        """Coordinates of these points (n, D) float32, on the device."""
        chosen = self.stored[rows].to(torch.float32)
        return chosen if self.scale == 1.0 else chosen * self.scale

    def middle(self) -> torch.Tensor:
        """A place amid the points that coordinates may be taken about: the mean of some, (1, D) float32."""
        (n_points, n_features), step = self.stored.shape, max(1, len(self) // MIDDLE_ROWS)
        middle = empty((1, n_features), torch.float32, self.device)
        mean_of_some[(pieces_of(n_features, FEATURES),)](
            self.stored, self.stored.stride(0), n_features, self.scale, step, pieces_of(n_points, step), middle,
            ROWS=ROWS, FEATURES=FEATURES,
        )  # fmt: skip
        return middle

    def blocks(self) -> Iterator[slice]:
        """All points, a bounded number at a time."""
        step = max(1, BLOCK_VALUES // self.n_features)
        for first in range(0, len(self), step):
            yield slice(first, min(first + step, len(self)))

    def mean(self) -> torch.Tensor:
        """Weighted mean of the coordinates, (D,) float32."""
        total = torch.zeros(self.n_features, dtype=torch.float64, device=self.device)
        for part in self.blocks():
            total += (self.weights[part] @ self.at(part)).double()
        return (total / self.weights.double().sum()).float()

    def feature_sums(self) -> tuple[np.ndarray, np.ndarray]:
        """sum_n gamma y_d and sum_n gamma y_d^2, (D,) float64 each."""
        total = torch.zeros((2, self.n_features), dtype=torch.float64, device=self.device)
        for part in self.blocks():
            rows, mass = self.at(part).double(), self.weights[part].double()
            total[0] += mass @ rows
            total[1] += mass @ rows**2
        sums, squares = total.cpu().numpy()
        return sums, squares

    def project(self, directions: np.ndarray) -> DevicePoints:
        """The points projected onto directions (D, d), about their mean."""
        onto = torch.from_numpy(np.ascontiguousarray(directions, dtype=np.float32)).to(self.device)
        centre = self.mean()
        out = torch.empty((len(self), onto.shape[1]), dtype=torch.float32, device=self.device)
        for part in self.blocks():
            torch.matmul(self.at(part) - centre, onto, out=out[part])
        frame = Frame(np.zeros(onto.shape[1]), 1.0, np.dtype(np.float32))
        precision = "tf32" if self.precision == "bf16" else self.precision
        return DevicePoints(out, 1.0, self.weights, frame, precision)
