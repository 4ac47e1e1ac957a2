"""The coreset's points in local coordinates, in any order, as often as needed.

A search reorders its points now and then.  Written again from the coreset in the new order, they need no second
array of the same size beside them.
"""

from __future__ import annotations

import numpy as np

from ..data import ArrayRows
from ..data.rows import exact_float
from ..kernels.moments import change_coordinates
from ..kernels.sorting import take_rows
from ..parallel import Workers
from .coreset import Coreset
from .frame import Frame


class LocalPoints:
    """Where points in local coordinates come from.

    Parameters
    ----------
    coreset : Coreset
    frame : Frame
    workers : Workers
    """

    def __init__(self, coreset: Coreset, frame: Frame, workers: Workers) -> None:
        self.source = ArrayRows(coreset.points)
        self.frame = frame
        self.workers = workers

    def all(self) -> np.ndarray:
        """All points (N', D), in the coreset's order."""
        points = np.empty((self.source.n_samples, self.source.n_features), self.frame.dtype)
        self.fill(points)
        return points

    def fill(self, points: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Write the coreset's points, or these rows of it in this order, block by block.

        Parameters
        ----------
        points : (n, D) of the frame's dtype
            Filled.
        rows : (n,) int, optional
        """
        source, frame = self.source, self.frame
        wide = exact_float(source.dtype)

        def convert(_thread: int, first: int, last: int) -> None:
            for i in range(first, last):
                a, b = source.bounds(i)
                if rows is None:
                    block = source.block(i)
                elif source.array.dtype == wide and source.array.flags.c_contiguous:
                    block = np.empty((b - a, source.n_features), wide)
                    take_rows(0, b - a, source.array, rows[a:b].astype(np.int64), block)
                else:
                    block = np.ascontiguousarray(source.array[rows[a:b]], dtype=wide)
                change_coordinates(block, frame.origin, frame.scale, points[a:b])

        self.workers.run(convert, source.n_blocks)
