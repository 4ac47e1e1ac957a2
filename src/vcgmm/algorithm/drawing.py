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

from ..data import Part, Rows, Selection
from ..kernels.moments import block_deviations, block_running_sums
from ..parallel import Workers
from .frame import Moments


class Walk:
    """Ascending numbers in [0, 1) against a running sum, block by block.

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

    def meet(self, running: np.ndarray) -> np.ndarray:
        """Rows of the next block that are drawn, ascending, as often as they are.

        Parameters
        ----------
        running : (n,) float64
            Running sum of the probabilities in this block alone.
        """
        end = self.total + float(running[-1])
        last = self._met + int(np.searchsorted(self._numbers[self._met :], end, side="left"))
        places = np.searchsorted(running, self._numbers[self._met : last] - self.total, side="right")
        # Rounding may point just past the last row that has any probability.
        np.minimum(places, np.searchsorted(running, running[-1], side="left"), out=places)
        self._met, self.total = last, end
        return places


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


def sampling_probabilities(
    moments: Moments, deviations: np.ndarray, weights: np.ndarray | None, spread: float
) -> np.ndarray:
    """Q of some rows, from their squared distances to the mean.

    Parameters
    ----------
    moments : Moments
    deviations : (n,) float64
    weights : (n,) float64 or None
    spread : float
        Sum of all rows' weighted deviations; 0 where all rows are equal: then q is proportional to the weights.
    """
    if spread <= 0.0:
        equal = np.ones(len(deviations)) if weights is None else weights
        return equal / moments.total_weight
    probabilities = deviations * (0.5 / spread)
    probabilities += 0.5 / moments.total_weight
    if weights is not None:
        probabilities *= weights
    return probabilities


#: For rows and a mean (D,): every part, in order, with the squared distances (n,) float64 of its rows to the mean.
Deviations = Callable[[Rows, np.ndarray], Generator[tuple[Part, np.ndarray], None, None]]


def part_deviations(part: Part, mean: np.ndarray) -> np.ndarray:
    """Squared distances of a part's rows to the mean (D,), (n,) float64."""
    deviations = np.empty(len(part))
    for first, last in part.runs():
        block_deviations(part.block(first, last), part.owner.rows_per_block, mean, deviations[first:last])
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
        As in `sampling_probabilities`.
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

    def prepare(part: Part, deviations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        running = np.empty(len(part))
        probabilities = sampling_probabilities(moments, deviations, part.weights(weights), spread)
        block_running_sums(probabilities, rows.rows_per_block, running)
        return probabilities, running

    walk = Walk(numbers)
    basket = _Basket(rows, len(numbers))
    last_row, last_probability, last_mass = 0, 1.0, 1.0
    if deviations_of is None:
        prepared = workers.in_order(lambda part: prepare(part, part_deviations(part, moments.mean)), rows.parts())
    else:
        prepared = ((part, prepare(part, found)) for part, found in deviations_of(rows, moments.mean))
    with closing(prepared) as parts:
        for part, (probabilities, running) in parts:
            places = np.concatenate([first + walk.meet(running[first:last]) for first, last in part.bounds()])
            basket.add(part, places, probabilities, part.weights(weights))
            usable = probabilities[-1:] if probabilities[-1] > 0 else probabilities  # mostly the last one is
            if usable.any():
                place, mass = len(part) - 1 - int(np.argmax(usable[::-1] > 0)), part.weights(weights)
                last_row, last_probability = part.first + place, float(probabilities[place])
                last_mass = 1.0 if mass is None else float(mass[place])
            advance(len(part))
    draws = basket.draws()
    if walk.n_left:  # the probabilities add up to a little less than 1
        index = np.array([last_row])
        points = _selected(rows, index) if rows.at_hand else rows.take(index)
        rest = Draws(index, np.array([walk.n_left]), np.array([last_probability]), np.array([last_mass]), points)
        draws = draws.and_also(rest)
    return draws, walk.total


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

    def add(self, part: Part, places: np.ndarray, probabilities: np.ndarray, masses: np.ndarray | None) -> None:
        chosen, counts = np.unique(places, return_counts=True)
        here = slice(self._n, self._n + len(chosen))
        self._indices[here] = part.first + chosen
        self._counts[here] = counts
        self._probabilities[here] = probabilities[chosen]
        if masses is not None:
            self._masses[here] = masses[chosen]
        if self._points is not None:
            self._points[here] = part.rows[chosen]
        self._n += len(chosen)

    def draws(self) -> Draws:
        drawn = slice(self._n)
        indices = self._indices[drawn]
        points = _selected(self._rows, indices) if self._points is None else self._points[drawn]
        return Draws(indices, self._counts[drawn], self._probabilities[drawn], self._masses[drawn], points)


def _selected(rows: Rows, indices: np.ndarray) -> Selection:
    """Rows that are at hand, with these indices."""
    return Selection(rows.all(), indices)
