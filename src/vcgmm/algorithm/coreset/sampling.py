"""Uniform samples: some of the rows, each as likely as it weighs; others are not looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...data import ArrayRows, Rows
from ...kernels.cells.sorting import take_rows
from ...parallel import MOVING, Workers


class SampledRows(ArrayRows):
    """Rows that were drawn from others.

    Parameters
    ----------
    rows : Rows
        All of them.
    indices : (n,) int64
        Which.
    n_draws : int
        In how many draws: some may have been drawn more than once.
    workers : Workers
    """

    def __init__(self, rows: Rows, indices: np.ndarray, n_draws: int, workers: Workers) -> None:
        super().__init__(taken(rows, indices, workers), rows.name)
        self.n_draws = n_draws
        self._rows, self._indices = rows, indices

    def locate(self, row: int) -> str:
        """A row in words, among all of them."""
        return self._rows.locate(int(self._indices[row]))


@dataclass(frozen=True)
class Sample:
    """Rows that were drawn, each once, and what they stand for.

    Attributes
    ----------
    rows : SampledRows
    weights : (n,) float64
        Their sum is that of all rows.
    """

    rows: SampledRows
    weights: np.ndarray


def taken(rows: Rows, indices: np.ndarray, workers: Workers) -> np.ndarray:
    """Rows with these indices, (n, D) in their own dtype; by all threads where kernels can read them."""
    if not (rows.at_hand and rows.dtype in (np.float32, np.float64)):
        return rows.take(indices)
    array = rows.all()
    if not (array.flags.c_contiguous and array.flags.writeable):  # others would be compiled for anew
        return rows.take(indices)
    out = np.empty((len(indices), rows.n_features), rows.dtype)

    def work(_thread: int, first: int, last: int) -> None:
        take_rows(first, last, array, indices, out)

    workers.run(work, len(indices), MOVING * out.size)
    return out


def uniform_sample(
    rows: Rows, weights: np.ndarray | None, size: int, rng: np.random.Generator, workers: Workers
) -> Sample:
    """Draw rows, one from each of `size` runs that weigh the same: from everywhere, each as likely as it weighs.

    Parameters
    ----------
    rows : Rows
    weights : (N,) float64 or None
        Not all zero.  None: those that the rows come with, if any, for which all of them are read.
    size : int
        Draws; a row that weighs more than a run may be drawn several times, and stands for more then.
    rng : numpy Generator
    workers : Workers
    """
    if weights is None and rows.weighted:
        weights = np.concatenate([part.own_weights for part in rows.parts() if part.own_weights is not None])
    places = (np.arange(size) + rng.random(size)) / size
    if weights is None:
        total = float(rows.n_samples)
        drawn = np.minimum((places * total).astype(np.int64), rows.n_samples - 1)
    else:
        running = np.cumsum(weights)
        total = float(running[-1])
        last = int(np.flatnonzero(weights)[-1])  # rounding must not reach rows that weigh nothing
        drawn = np.minimum(np.searchsorted(running, places * total, side="right"), last)
    indices, counts = np.unique(drawn, return_counts=True)
    return Sample(SampledRows(rows, indices, size, workers), counts * (total / size))
