"""The coreset's points in local coordinates, in any order, as often as needed.

A search reorders its points now and then.  Written again from the coreset in the new order, they need no second
array of the same size beside them; where the coreset's rows cannot be fetched quickly, they change places.
"""

from __future__ import annotations

import math

import numpy as np

from ...data import ArrayRows, Selection
from ...data.rows import exact_float
from ...kernels.cells.sorting import permute_rows, take_rows
from ...kernels.coreset.coordinates import change_coordinates, rows_in_coordinates
from ...parallel import MOVING, Workers
from .frame import Frame
from .lightweight import Coreset, rows_at_once


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
        self._step = rows_at_once(self.n_features * exact_float(self.source.dtype).itemsize)
        self.frame = frame
        self.workers = workers
        self._array: np.ndarray | None = None
        self._filled = False  # it holds all points
        self._rows: np.ndarray | None = None  # in whose order it will be filled, if not in the coreset's

    def __len__(self) -> int:
        """Number of points N'."""
        return self._n_points

    @property
    def n_features(self) -> int:
        """D."""
        return self.source.n_features

    @property
    def array(self) -> np.ndarray:
        """All points (N', D), in the coreset's order or another; one array, which searches may reorder."""
        array = self._room()
        if not self._filled:
            self.fill(array, self._rows)
            self._filled, self._rows = True, None
        return array

    def as_given(self) -> np.ndarray | None:
        """The rows (N', D) in the data's coordinates, where they are all points and kernels can read them.

        None where they are not.  To numba an array that must not be written to is of another type: all kernels
        would be compiled for it anew, which takes longer than a copy.
        """
        array = self.source.array
        plain = array.dtype == self.frame.dtype and array.flags.c_contiguous and array.flags.writeable
        return array if plain and self.picks is None else None

    def as_they_lie(self) -> np.ndarray | None:
        """Those rows, where they are in local coordinates already and need not be copied; else None."""
        return self.as_given() if self.frame.changes_nothing else None

    def arrange(self, rows: np.ndarray) -> bool:
        """Let the array be in the order of these rows when it is next asked for; False where that is slow."""
        if self.source.quick:
            self._filled, self._rows = False, rows
        return self.source.quick

    def forget(self) -> None:
        """Give the memory of the array back."""
        self.put_back()
        self._array = None

    def put_back(self) -> None:
        """Let the array be in the coreset's order again when it is next asked for."""
        self._filled, self._rows = False, None

    def _room(self) -> np.ndarray:
        """The array, whatever it holds."""
        if self._array is None:
            self._array = np.empty((len(self), self.n_features), self.frame.dtype)
        return self._array

    def take(self, rows: np.ndarray) -> np.ndarray:
        """These points (n, D), in this order."""
        points = np.empty((len(rows), self.n_features), self.frame.dtype)
        self._enter(0, len(rows), rows, points)
        return points

    def take_together(self, rows: np.ndarray) -> np.ndarray:
        """As `take`, by all threads."""
        points = np.empty((len(rows), self.n_features), self.frame.dtype)

        def work(_thread: int, first: int, last: int) -> None:
            self._enter(first, last, rows, points[first:last])

        self.workers.run(work, len(rows), MOVING * points.size)
        return points

    def reorder(self, points: np.ndarray, winners: np.ndarray, order: np.ndarray, rows: np.ndarray) -> None:
        """points[i] = points[order[i]] for all i at once, in place, and winners likewise.

        Parameters
        ----------
        points : (N', D) of the frame's dtype
            All points, in any order.
        winners : (N', C') int32
        order : (N',) int
        rows : (N',) int
            Where the points are in the coreset, in the order in which they lie until now.
        """
        if self.source.quick:
            self._permute(winners, order, points)  # which are written anew, and room until then
            self.fill(points, rows, order)
        else:
            for array in (points, winners):
                self._permute_in_place(array, order)

    def _permute(self, array: np.ndarray, order: np.ndarray, room: np.ndarray) -> None:
        """array[i] = array[order[i]] for all i at once, by way of a room, or one by one where it is too small."""
        free = room.reshape(-1).view(array.dtype)
        if len(free) < array.size:
            self._permute_in_place(array, order)
            return
        taken = free[: array.size].reshape(array.shape)

        def work(_thread: int, first: int, last: int) -> None:
            rows = order[first:last].astype(np.int64, copy=False)  # as everywhere, or it is compiled for anew
            take_rows(0, len(rows), array, rows, taken[first:last])

        self.workers.run(work, len(order), MOVING * array.size)
        array[:] = taken

    def _permute_in_place(self, array: np.ndarray, order: np.ndarray) -> None:
        """array[i] = array[order[i]] for all i at once; every thread has some of the columns."""
        n_columns = array.shape[1]
        n_parts = min(self.workers.n_threads, n_columns)

        def work(_thread: int, first: int, last: int) -> None:
            for part in range(first, last):
                columns = n_columns * part // n_parts, n_columns * (part + 1) // n_parts
                permute_rows(*columns, array, order, np.zeros(len(self), np.bool_), np.empty_like(array[0]))

        self.workers.run(work, n_parts)

    def fill(self, points: np.ndarray, rows: np.ndarray | None = None, order: np.ndarray | None = None) -> None:
        """Write all points in the coreset's order, or in that of `rows`, or of rows[order], block by block.

        Parameters
        ----------
        points : (N', D) of the frame's dtype
            Filled.
        rows, order : (N',) int, optional
        """
        step = self._step

        def work(_thread: int, first: int, last: int) -> None:
            low, high = first * step, min(last * step, len(self))
            if rows is None or order is None:
                self._enter(low, high, rows, points[low:high])
            else:
                self._enter(0, high - low, rows[order[low:high]], points[low:high])

        self.workers.run(work, -(-len(self) // step))

    def project(self, directions: np.ndarray) -> np.ndarray:
        """All points projected onto d <= D directions (D, d), (N', d).

        They lie where the array of all points will, and are gone when that is asked for.
        """
        shape = (len(self), directions.shape[1])
        projected = self._room().reshape(-1)[: math.prod(shape)].reshape(shape)
        self.put_back()
        # Fixed blocks: the same products for any number of threads.
        step = min(self.source.rows_per_block, len(self))
        there = self.as_they_lie()
        n_blocks = self.workers.n_threads if there is None else 0
        blocks = [np.empty((step, self.n_features), self.frame.dtype) for _ in range(n_blocks)]

        def work(thread: int, first: int, last: int) -> None:
            for low in range(first * step, min(last * step, len(self)), step):
                high = min(low + step, len(self))
                if there is None:
                    block = blocks[thread][: high - low]
                    self._enter(low, high, None, block)
                else:
                    block = there[low:high]
                np.dot(block, directions, projected[low:high])

        self.workers.run(work, -(-len(self) // step))
        return projected

    def _enter(self, first: int, last: int, rows: np.ndarray | None, out: np.ndarray) -> None:
        """Write points first..last-1, of the coreset or of `rows`, to out (last - first, D), a few at a time."""
        source, wide = self.source, exact_float(self.source.dtype)
        origin, scale = self.frame.origin, self.frame.scale
        for low in range(first, last, self._step):
            high = min(low + self._step, last)
            part = out[low - first : high - first]
            which: slice | np.ndarray = slice(low, high) if rows is None else rows[low:high]
            which = which if self.picks is None else self.picks[which]
            if isinstance(which, slice) or source.dtype != wide or not source.array.flags.c_contiguous:
                change_coordinates(np.ascontiguousarray(source.array[which], dtype=wide), origin, scale, part)
            else:
                rows_in_coordinates(source.array, which.astype(np.int64, copy=False), origin, scale, part)
