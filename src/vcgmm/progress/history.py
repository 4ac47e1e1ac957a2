"""The facts of all iterations of a fit, kept as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from .callbacks import Iteration

#: The columns of a history, and their types.
COLUMNS: dict[str, type[Any]] = {
    "iteration": np.int64,
    "bound": np.float64,
    "change": np.float64,
    "variance": np.float64,
    "seconds": np.float64,
    "active": np.int64,
}

_facts = attrgetter(*COLUMNS)


def as_columns(told: Sequence[Iteration]) -> dict[str, np.ndarray]:
    """Iterations as arrays, one for each field of `Iteration` that is known of all of them."""
    columns = zip(*map(_facts, told), strict=True) if told else [()] * len(COLUMNS)
    named = zip(COLUMNS, columns, strict=True)
    return {name: np.array(column, COLUMNS[name]) for name, column in named if None not in column}


def from_columns(columns: Mapping[str, np.ndarray]) -> list[Iteration]:
    """What `as_columns` made arrays of."""
    rows = zip(*(columns[name].tolist() for name in columns), strict=True)
    return [Iteration(**dict(zip(columns, row, strict=True))) for row in rows]


class History:
    """A callback that remembers every iteration, try by try."""

    def __init__(self) -> None:
        self._tries: list[list[Iteration]] = []

    def __call__(self, facts: Iteration) -> None:
        """Remember an iteration; the first of a new try is number 1 again."""
        if facts.iteration == 1 or not self._tries:
            self._tries.append([])
        self._tries[-1].append(facts)

    def told(self) -> list[Iteration]:
        """All iterations of all tries, in the order in which they came."""
        return [facts for one in self._tries for facts in one]

    def of(self, bounds: Sequence[float]) -> dict[str, np.ndarray]:
        """Facts of the try that had these bounds.

        Parameters
        ----------
        bounds : sequence of float
            F after each iteration of the try that was kept; what was told after those (refinement) is left out.

        Returns
        -------
        dict of (n_iter,) arrays
            One array for each field of `Iteration` that the fit told.
        """
        tries = (one[: len(bounds)] for one in self._tries)
        return as_columns(next((one for one in tries if _are([f.bound for f in one], bounds)), []))


def _are(told: list[float], bounds: Sequence[float]) -> bool:
    """Whether these are the same, or both are no number, one by one."""
    return told == list(bounds) or np.array_equal(told, bounds, equal_nan=True)  # which takes longer
