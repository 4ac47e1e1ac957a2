"""The facts of all iterations of a fit, kept as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
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


class History:
    """A callback that remembers every iteration, try by try."""

    def __init__(self) -> None:
        self._tries: list[list[Iteration]] = []

    def __call__(self, facts: Iteration) -> None:
        """Remember an iteration; the first of a new try is number 1 again."""
        if facts.iteration == 1 or not self._tries:
            self._tries.append([])
        self._tries[-1].append(facts)

    def of(self, bounds: Sequence[float]) -> dict[str, np.ndarray]:
        """Facts of the try that had these bounds.

        Parameters
        ----------
        bounds : sequence of float
            F after each iteration of the try that was kept.

        Returns
        -------
        dict of (n_iter,) arrays
            One array for each field of `Iteration` that the fit told.
        """
        kept = next(
            (one for one in self._tries if np.array_equal([f.bound for f in one], bounds, equal_nan=True)), []
        )
        columns = {field.name: [getattr(facts, field.name) for facts in kept] for field in fields(Iteration)}
        return {name: np.array(told, COLUMNS[name]) for name, told in columns.items() if None not in told}
