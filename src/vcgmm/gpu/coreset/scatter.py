"""How some points scatter about their mean, found while the host has other things to do."""

from __future__ import annotations

import numpy as np
import torch

from ...algorithm.coreset.frame import LEAST
from ...algorithm.starts.directions import draw_sample
from ..device.arena import empty
from ..device.sizes import pieces_of, power_of_two
from ..device.together import Part, alone
from ..kernels.surveying import add_blocks, scatter_rows
from .points import upload

#: Up to so many features, directions are found from their scatter as a whole.
FEW_FEATURES = 256

#: Rows, and features of them, that a program multiplies at a time.
ROWS, FEATURES = 64, 64

#: Products of two features that a program adds up over all blocks of rows.
ADDED = 64


class Scatter:
    """Scatter of some points about their mean, which the device computes while the host goes on.

    Parameters
    ----------
    stored : (N', D) tensor
    scale : float
        Coordinates are scale times what is stored.
    weights : (N',) float32 tensor
    rows : (n,) int64 tensor
        Which points.
    home : Part, optional
        Room for `n_told` numbers, by which the host is told.
    """

    def __init__(
        self,
        stored: torch.Tensor,
        scale: float,
        weights: torch.Tensor,
        rows: torch.Tensor,
        home: Part | None = None,
    ) -> None:
        self.rows = rows
        (_, n_features), n_rows = stored.shape, rows.shape[0]
        self._width, n_blocks = n_features + 1, pieces_of(n_rows, ROWS)
        products = empty((n_blocks, self._width, self._width), torch.float32, stored.device)
        features = max(16, min(FEATURES, power_of_two(self._width)))
        n_parts = pieces_of(self._width, features)
        scatter_rows[(n_blocks, n_parts, n_parts)](
            stored, stored.stride(0), n_features, scale, weights, rows, n_rows, products, ROWS=ROWS,
            FEATURES=features,
        )  # fmt: skip
        self._total = home or alone(n_told(n_features), stored.device)
        n_values = self._width * self._width
        add_blocks[(pieces_of(n_values, ADDED),)](
            products, n_blocks, n_values, self._total.tensor, BLOCKS=power_of_two(n_blocks), VALUES=ADDED
        )

    def array(self) -> np.ndarray:
        """Over the weight of the points, (D, D) float64; the host waits for it."""
        total = self._total.array().reshape(self._width, self._width)
        with np.errstate(over="ignore", invalid="ignore"):  # `keeps_digits` tells
            products = total / total[-1, -1]
            means = products[-1, :-1]
            return products[:-1, :-1] - means[:, None] * means


def n_told(n_features: int) -> int:
    """Numbers by which the host is told how points of so many features scatter."""
    return (n_features + 1) ** 2


def begin_scatter(
    stored: torch.Tensor,
    scale: float,
    weights: torch.Tensor,
    rng: np.random.Generator,
    home: Part | None = None,
) -> Scatter | None:
    """That of a sample in which directions are looked for; None where there are too few points for it.

    Parameters
    ----------
    stored, scale, weights, home : as for `Scatter`
    rng : numpy Generator
    """
    rows = draw_sample(stored.shape[0], stored.shape[1], rng)
    return None if rows is None else Scatter(stored, scale, weights, upload(rows, stored.device), home)


def keeps_digits(scatter: np.ndarray) -> bool:
    """Whether squares of values that scatter so (D, D) neither overflow in float32 nor vanish."""
    return bool(LEAST**2 < np.trace(scatter) / len(scatter) < LEAST**-2)
