"""Where a coreset's points lie while EM runs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from distributed import Future

from ..algorithm.coreset.frame import Frame
from .blocks import make_block
from .pieces import Pieces
from .transport import Placement


class Blocks:
    """A coreset's points in local coordinates, in one block of equal size for each worker.

    Parameters
    ----------
    pieces : Pieces
    frame : Frame
    """

    def __init__(self, pieces: Pieces, frame: Frame) -> None:
        n_blocks = max(1, min(len(pieces), len(pieces.client.nthreads())))
        self.starts = len(pieces) * np.arange(n_blocks + 1) // n_blocks
        self.placement = Placement(pieces.client, n_blocks)
        self.placement.update()
        ends = np.cumsum(pieces.lengths)
        self.futures: list[Future] = []
        for block, (low, high) in enumerate(pairwise(self.starts)):
            parts = range(int(np.searchsorted(ends, low, "right")), int(np.searchsorted(ends, high, "left")) + 1)
            begins = [int(ends[i]) - pieces.lengths[i] for i in parts]
            bounds = [
                (max(int(low) - begin, 0), min(int(high) - begin, pieces.lengths[i]))
                for i, begin in zip(parts, begins, strict=True)
            ]
            self.futures.append(
                self.placement.submit(block, make_block, frame, bounds, *(pieces.futures[i] for i in parts))
            )

    def __len__(self) -> int:
        """Number of points N'."""
        return int(self.starts[-1])
