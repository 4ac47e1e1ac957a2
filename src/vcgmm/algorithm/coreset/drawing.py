"""Independent draws of rows by their probabilities, in one pass over them.

As many uniform numbers as there are draws, in ascending order, are walked along the running sum of the
probabilities: a number that falls into a row's share of [0, 1) draws that row.  So counts are exactly multinomial,
and no array over all rows is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np

from ...data import Part, Rows, Selection
from ...data.rows import FEW_PARTS
from ...kernels.coreset.drawing import add_up
from ...kernels.coreset.moments import block_deviations
from ...kernels.coreset.quick_moments import LEAST_SQUARE, MOST_SQUARE, quick_block_deviations
from ...parallel import READING, Workers
from .frame import Moments
from .walk import Catch, Stretch, Walk

#: What running sums over all rows may take beside the rows that are drawn: then all are taken at once.
LITTLE = 1 / 8

#: Effort for a draw, to find the row that it meets.
MEETING = 512


@dataclass(frozen=True)
class Draws:
    """Rows that were drawn.

    Attributes
    ----------
    indices : (k,) int64, ascending, none twice
    counts : (k,) int64
    probabilities, masses : (k,) float64
        q and the weight w of each.
    points : (k, D) array in the data's own dtype, or Selection
    """

    indices: np.ndarray
    counts: np.ndarray
    probabilities: np.ndarray
    masses: np.ndarray
    points: np.ndarray | Selection

    @property
    def size(self) -> int:
        """Number of draws."""
        return int(self.counts.sum())

    def and_also(self, others: Draws) -> Draws:
        """These draws and further ones."""
        indices, firsts, places = np.unique(
            np.concatenate([self.indices, others.indices]), return_index=True, return_inverse=True
        )
        counts = np.bincount(places, np.concatenate([self.counts, others.counts])).astype(np.int64)
        return Draws(
            indices,
            counts,
            np.concatenate([self.probabilities, others.probabilities])[firsts],
            np.concatenate([self.masses, others.masses])[firsts],
            self._points_and(others, indices, firsts),
        )

    def _points_and(self, others: Draws, indices: np.ndarray, firsts: np.ndarray) -> np.ndarray | Selection:
        if isinstance(self.points, Selection):
            return replace(self.points, indices=indices)
        return np.concatenate([self.points, others.points[:]])[firsts]


@dataclass(frozen=True)
class Probabilities:
    """Q of a row: (slope d^2 + level) w, d its distance to the mean.

    Attributes
    ----------
    slope, level : float
    """

    slope: float
    level: float

    @classmethod
    def of(cls, moments: Moments, spread: float) -> Probabilities:
        """Half by weight, half by deviation.

        Parameters
        ----------
        moments : Moments
        spread : float
            Sum of all rows' weighted deviations; 0 where all rows are equal: then q goes by the weights alone.
        """
        if spread <= 0.0:
            return cls(0.0, 1.0 / moments.total_weight)
        return cls(0.5 / spread, 0.5 / moments.total_weight)

    def __call__(self, deviations: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Of some rows, with squared distances (n,) and weights (n,) or None, for all ones."""
        result: np.ndarray = self.slope * deviations + self.level
        return result if weights is None else result * weights

    def running(self, deviations: np.ndarray, weights: np.ndarray | None, step: int) -> np.ndarray:
        """Running sum of them within each block of `step` rows, in place of the deviations."""
        add_up(deviations, np.empty(0) if weights is None else weights, self.slope, self.level, step)
        return deviations


#: For rows and a mean (D,): every part, in order, with the squared distances (n,) float64 of its rows to the mean.
Deviations = Callable[[Rows, np.ndarray], Generator[tuple[Part, np.ndarray], None, None]]


def part_deviations(part: Part, moments: Moments) -> np.ndarray:
    """Squared distances of a part's rows to the mean of all, (n,) float64; as precise as the rows are."""
    mean, step = moments.mean, part.owner.rows_per_block
    deviations = np.empty(len(part))
    high = mean.astype(np.float32)
    low = (mean - high).astype(np.float32)
    for first, last in part.runs():
        rows = part.block(first, last)
        if rows.dtype == np.float32 and LEAST_SQUARE * len(mean) < moments.total_variance < MOST_SQUARE:
            quick_block_deviations(rows, step, high, low, mean, deviations[first:last])
        else:
            block_deviations(rows, step, mean, deviations[first:last])
    return deviations


def draw(
    rows: Rows,
    moments: Moments,
    weights: np.ndarray | None,
    numbers: np.ndarray,
    spread: float,
    workers: Workers,
    advance: Callable[[int], None],
    deviations_of: Deviations | None = None,
) -> tuple[Draws, float]:
    """Draw rows in one pass.

    Parameters
    ----------
    rows : Rows
    moments : Moments
    weights : (N,) float64 or None
        None: those that the rows come with, if any.
    numbers : (size,) float64
        In [0, 1), ascending: one for each draw.
    spread : float
        As in `Probabilities.of`.
    workers : Workers
    advance : callable
        Told how many rows have been read since the last call.
    deviations_of : callable, optional
        Where that is not done here.

    Returns
    -------
    draws : Draws
    total : float
        Sum of all probabilities.  Where it is not 1, they were not those of a multinomial draw.
    """
    probabilities, step = Probabilities.of(moments, spread), rows.rows_per_block
    batch = _parts_at_once(rows, len(numbers), workers)

    def prepare(part: Part, deviations: np.ndarray) -> np.ndarray:
        return probabilities.running(deviations, part.weights(weights), step)

    if deviations_of is None:
        prepared = workers.in_order(
            lambda part: prepare(part, part_deviations(part, moments)),
            rows.parts(),
            batch=batch,
            effort=READING * rows.n_samples * rows.n_features,
        )
    else:
        prepared = ((part, prepare(part, found)) for part, found in deviations_of(rows, moments.mean))
    walk = Walk(numbers)

    def tasks() -> Generator[tuple[Part, np.ndarray, Stretch], None, None]:
        """Only the numbers are shared out one part after the other: what they meet is looked up by all threads."""
        with closing(prepared) as parts:
            for part, running in parts:
                ends = np.array([last for _, last in part.bounds()])
                yield part, running, walk.on(running[ends - 1])

    basket = _Basket(rows, len(numbers))
    end: tuple[Part, np.ndarray] | None = None  # the last part that has any probability
    met = workers.in_order(
        lambda task: task[2].meet(task[1], step), tasks(), batch=batch, effort=MEETING * len(numbers)
    )
    with closing(met) as found:
        for (part, running, _), catch in found:
            basket.add(part, catch, part.weights(weights))
            if running[-1] > 0 or running.any():
                end = part, running
            advance(len(part))
    draws = basket.draws()
    if walk.n_left and end is not None:  # the probabilities add up to a little less than 1
        draws = draws.and_also(_rest(*end, weights, walk.n_left))
    return draws, walk.total


def _parts_at_once(rows: Rows, size: int, workers: Workers) -> int | None:
    """Parts whose running sums are in memory together; None: they come one by one."""
    if not rows.in_few_parts:
        return None
    drawn = size * rows.n_features * rows.dtype.itemsize
    return FEW_PARTS if rows.n_samples * np.dtype(np.float64).itemsize <= LITTLE * drawn else workers.in_hand


def _rest(part: Part, running: np.ndarray, weights: np.ndarray | None, n_draws: int) -> Draws:
    """The last row of a part that has any probability, drawn so often; `running` as in `Stretch.meet`."""
    rows = part.owner
    probabilities = np.diff(running, prepend=0.0)
    probabilities[:: rows.rows_per_block] = running[:: rows.rows_per_block]
    place = np.flatnonzero(probabilities > 0)[-1:]
    mass, index = part.weights(weights), part.first + place
    points = _selected(rows, index) if rows.at_hand else part.rows[place]
    masses = np.ones(1) if mass is None else mass[place]
    return Draws(index, np.array([n_draws]), probabilities[place], masses, points)


class _Basket:
    """Rows as they are drawn; room for all of them is made at once, and memory comes as it is filled.

    Rows that are at hand are not copied.
    """

    def __init__(self, rows: Rows, size: int) -> None:
        self._n = 0
        self._indices = np.empty(size, np.int64)
        self._counts = np.empty(size, np.int64)
        self._probabilities = np.empty(size)
        self._masses = np.ones(size)
        self._rows = rows
        self._points = None if rows.at_hand else np.empty((size, rows.n_features), rows.dtype)

    def add(self, part: Part, catch: Catch, masses: np.ndarray | None) -> None:
        here = slice(self._n, self._n + len(catch.rows))
        self._indices[here] = part.first + catch.rows
        self._counts[here] = catch.counts
        self._probabilities[here] = catch.probabilities
        if masses is not None:
            self._masses[here] = masses[catch.rows]
        if self._points is not None:
            self._points[here] = part.rows[catch.rows]
        self._n += len(catch.rows)

    def draws(self) -> Draws:
        drawn = slice(self._n)
        indices = self._indices[drawn]
        points = _selected(self._rows, indices) if self._points is None else self._points[drawn]
        return Draws(indices, self._counts[drawn], self._probabilities[drawn], self._masses[drawn], points)


def _selected(rows: Rows, indices: np.ndarray) -> Selection:
    """Rows that are at hand, with these indices."""
    return Selection(rows.all(), indices)
