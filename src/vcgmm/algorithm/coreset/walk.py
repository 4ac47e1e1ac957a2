"""Ascending numbers walked along a running sum: which rows they fall on.

The running sum is cut into stretches of blocks.  Where each begins is known from what all blocks before it add up
to, so numbers are shared out one stretch after the other, and what they meet can be looked up by any thread.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernels.coreset.drawing import meet


@dataclass(frozen=True)
class Catch:
    """Rows of a stretch that are drawn.

    Attributes
    ----------
    rows : (k,) int64, ascending, none twice
    counts : (k,) int64
    probabilities : (k,) float64
    """

    rows: np.ndarray
    counts: np.ndarray
    probabilities: np.ndarray


@dataclass(frozen=True)
class Stretch:
    """A part of the way, and the numbers that fall into it.

    Attributes
    ----------
    numbers : (k,) float64, ascending
    begins : (n_blocks,) float64
        Running sum of all before each block.
    start : (n_blocks + 1,) int64
        The numbers that fall into each block.
    """

    numbers: np.ndarray
    begins: np.ndarray
    start: np.ndarray

    def meet(self, running: np.ndarray, step: int) -> Catch:
        """Rows that are drawn.

        Parameters
        ----------
        running : (n,) float64
            Running sum of the probabilities within each block of `step` rows.
        step : int
        """
        rows, counts = np.empty((2, len(self.numbers)), np.int64)
        probabilities = np.empty(len(self.numbers))
        n = meet(running, step, self.numbers, self.begins, self.start, rows, counts, probabilities)
        return Catch(rows[:n], counts[:n], probabilities[:n])


class Walk:
    """Ascending numbers in [0, 1) against a running sum, stretch by stretch.

    Parameters
    ----------
    numbers : (size,) float64, ascending
    """

    def __init__(self, numbers: np.ndarray) -> None:
        self._numbers = numbers
        self._met = 0
        self.total = 0.0

    @property
    def n_left(self) -> int:
        """Numbers that no row has met so far."""
        return len(self._numbers) - self._met

    def on(self, masses: np.ndarray) -> Stretch:
        """The next stretch, of blocks with so much probability each, (n_blocks,)."""
        along = np.cumsum(np.concatenate([[self.total], masses]))  # one after the other, however it is cut
        numbers = self._numbers[self._met :]
        start = np.searchsorted(numbers, along, side="left")
        start[0] = 0
        self._met += int(start[-1])
        self.total = float(along[-1])
        return Stretch(numbers[: start[-1]], along[:-1], start)
