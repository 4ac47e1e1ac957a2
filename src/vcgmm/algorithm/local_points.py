"""The coreset's points in local coordinates, in any order, as often as needed.

A search reorders its points now and then.  Written again from the coreset in the new order, they need no second
array of the same size beside them; where the coreset's rows cannot be fetched quickly, they change places.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..data import ArrayRows, Selection
from ..data.rows import exact_float
from ..kernels.moments import change_coordinates
from ..kernels.sorting import permute_rows, take_rows
from ..parallel import Workers
from .coreset import Coreset
from .frame import Frame


class LocalPoints:
    """Points in local coordinates, made when they are first needed.

    Parameters
    ----------
    coreset : Coreset
    frame : Frame
    workers : Workers
    """

    def __init__(self, coreset: Coreset, frame: Frame, workers: Workers) -> None:
        rows = coreset.source
        self.source = ArrayRows(rows.array if isinstance(rows, Selection) else rows)
        self.picks = rows.indices if isinstance(rows, Selection) else None  # which rows of the source
        self._n_points = len(coreset)
        self.frame = frame
        self.workers = workers
        self._array: np.ndarray | None = None

    def __len__(self) -> int:
        """Number of points N'."""
        return self._n_points

    @property
    def n_features(self) -> int:
        """D."""
        return self.source.n_features

    @property
    def array(self) -> np.ndarray:
        """All points (N', D); one array, which searches may reorder."""
        if self._array is None:
            self._array = np.empty((len(self), self.n_features), self.frame.dtype)
            self.fill(self._array)
        return self._array

    def forget(self) -> None:
        """Give the memory of the array back."""
        self._array = None

    def put_back(self) -> None:
        """Put the array, if there is one, in the coreset's order again."""
        if self._array is not None:
            self.fill(self._array)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """These points (n, D), in this order."""
        return self.frame.enter(self.source.take(rows if self.picks is None else self.picks[rows]))

    def reorder(self, points: np.ndarray, order: np.ndarray, rows: np.ndarray) -> None:
        """points[i] = points[order[i]] for all i at once, in place.

        Parameters
        ----------
        points : (N', D) of the frame's dtype
            All points, in any order.
        order : (N',) int64
        rows : (N',) int
            Where the points that are to lie there are in the coreset.
        """
        if self.source.quick:
            self.fill(points, rows)
        else:
            permute_rows(points, order, np.zeros(len(self), np.bool_), np.empty_like(points[0]))

    def fill(self, points: np.ndarray, rows: np.ndarray | None = None) -> None:
        """Write all points in the coreset's order, or in the order of `rows`, block by block.

        Parameters
        ----------
        points : (N', D) of the frame's dtype
            Filled.
        rows : (N',) int, optional
        """

        def use(part: slice, block: np.ndarray) -> None:
            change_coordinates(block, self.frame.origin, self.frame.scale, points[part])

        self._each_block(use, rows)

    def project(self, directions: np.ndarray) -> np.ndarray:
        """All points projected onto directions (D, d), (N', d), without the array of all points."""
        projected = np.empty((len(self), directions.shape[1]), self.frame.dtype)

        def use(part: slice, block: np.ndarray) -> None:
            np.dot(self.frame.enter(block), directions, projected[part])

        self._each_block(use)
        return projected

    def _each_block(self, use: Callable[[slice, np.ndarray], None], rows: np.ndarray | None = None) -> None:
        """Call use(part, block) on all threads, with blocks of a fixed size in data coordinates."""
        source, step = self.source, self.source.rows_per_block
        wide = exact_float(source.dtype)
        direct = source.dtype == wide and source.array.flags.c_contiguous

        def work(_thread: int, first: int, last: int) -> None:
            for part in (slice(i * step, min((i + 1) * step, len(self))) for i in range(first, last)):
                which: slice | np.ndarray = part if rows is None else rows[part]
                which = which if self.picks is None else self.picks[which]
                if direct and isinstance(which, np.ndarray):
                    block = np.empty((len(which), source.n_features), wide)
                    take_rows(0, len(which), source.array, which.astype(np.int64, copy=False), block)
                else:
                    block = np.ascontiguousarray(source.array[which], dtype=wide)
                use(part, block)

        self.workers.run(work, -(-len(self) // step))
