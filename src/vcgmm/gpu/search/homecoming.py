"""What an E-step that is the last has found, on its way to the host before anybody asks for it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from ..device.arena import letter
from ..device.arrays import DeviceArray, Told
from ..device.sizes import pieces_of, power_of_two
from ..kernels.homecoming import bring_home

#: Clusters, and features of them, of a program.
ROWS, FEATURES = 8, 128

#: Scales within it, and their inverses, are numbers of float32, which kernels are given.
LARGEST_SCALE = 2.0**100

#: Bytes of means that come home so: more pinned memory takes longer to get than a copy.
MOST_BYTES = 1 << 26


class Homecoming:
    """Weighted means of the last E-step, in data coordinates, with masses and neighbours.

    Parameters
    ----------
    means : (C, D) float64 tensor
        What the E-step used.
    moves : (C, D) float64 tensor
        Ways from there to the weighted means.
    masses : (C,) float64 tensor
    neighbors : (C, G) int32 tensor, rows at a stride
    scale : float
        Of local coordinates: a power of two, as of `can_come`.
    """

    def __init__(
        self,
        means: torch.Tensor,
        moves: torch.Tensor,
        masses: torch.Tensor,
        neighbors: torch.Tensor,
        scale: float,
    ) -> None:
        self.scale = scale
        self._means, self._moves = means, moves
        (n_clusters, n_features), n_neighbors, device = means.shape, neighbors.shape[1], means.device
        there = (
            letter((n_clusters, n_features), torch.float64, device),
            letter((n_clusters,), torch.float64, device),
            letter((n_clusters, n_neighbors), torch.int32, device),
        )
        bring_home[(pieces_of(n_clusters, ROWS),)](
            means, moves, masses, neighbors, neighbors.stride(0), n_clusters, n_features, n_neighbors, 1.0 / scale,
            *there, ROWS=ROWS, FEATURES=min(FEATURES, power_of_two(n_features)),
            NEIGHBORS=power_of_two(n_neighbors),
        )  # fmt: skip
        self._told = [Told(one) for one in there]
        # Memory that nobody has touched takes longer to write to: while the device is busy that costs nothing.
        self._room = np.empty((n_clusters, n_features))
        self._room.fill(0.0)
        self._arrived = False

    @cached_property
    def local(self) -> torch.Tensor:
        """The means in local coordinates, (C, D) float64, on the device."""
        return torch.add(self._means, self._moves)

    @cached_property
    def there(self) -> torch.Tensor:
        """The means in data coordinates, likewise."""
        return self.local if self.scale == 1.0 else self.local / self.scale

    def means(self) -> np.ndarray:
        """The means on the host, which waits for them; a copy for everybody."""
        if self._arrived:
            return self._room.copy()
        np.copyto(self._room, self._told[0].array())
        self._arrived = True
        return self._room

    def masses(self) -> np.ndarray:
        """Likewise, (C,) float64."""
        return self._told[1].array().copy()

    def neighbors(self) -> np.ndarray:
        """Likewise, (C, G) int32."""
        return self._told[2].array().copy()


def can_come(means: torch.Tensor, scale: float) -> bool:
    """Whether there is room for these means (C, D), and kernels are given such a scale as it is."""
    n_clusters, n_features = means.shape
    return 8 * n_clusters * n_features <= MOST_BYTES and 1.0 / LARGEST_SCALE <= scale <= LARGEST_SCALE


class Coming(DeviceArray):
    """Means in data coordinates that are on their way.

    Parameters
    ----------
    home : Homecoming
    """

    def __init__(self, home: Homecoming) -> None:
        self._home = home

    @property
    def tensor(self) -> torch.Tensor:
        """The means on the device."""
        return self._home.there

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A copy on the host."""
        if copy is False:
            return super().__array__(dtype, copy)
        return np.asarray(self._home.means(), dtype=dtype)
