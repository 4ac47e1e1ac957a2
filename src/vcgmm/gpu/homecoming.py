"""Means that are on their way to the host before anybody asks for them: those of an E-step that is the last."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from .arrays import DeviceArray, Told


class Homecoming:
    """Weighted means of the last E-step, in data coordinates, on their way to the host.

    Parameters
    ----------
    means : (C, D) float64 tensor
        What the E-step used.
    moves : (C, D) float64 tensor
        Ways from there to the weighted means.
    scale : float
        Of local coordinates.
    """

    def __init__(self, means: torch.Tensor, moves: torch.Tensor, scale: float) -> None:
        self.scale = scale
        self.local = torch.add(means, moves)
        self.there = self.local if scale == 1.0 else self.local / scale
        self._told = Told(self.there)
        # Memory that nobody has touched takes longer to write to: while the device is busy that costs nothing.
        self._room = np.empty(self.there.shape)
        self._room.fill(0.0)
        self._arrived = False

    def array(self) -> np.ndarray:
        """The means on the host, which waits for them; a copy for everybody."""
        if self._arrived:
            return self._room.copy()
        np.copyto(self._room, self._told.array())
        self._arrived = True
        return self._room


class Coming(DeviceArray):
    """Means in data coordinates that are on their way.

    Parameters
    ----------
    home : Homecoming
    """

    def __init__(self, home: Homecoming) -> None:
        super().__init__(home.there)
        self._home = home

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """A copy on the host."""
        if copy is False:
            return super().__array__(dtype, copy)
        return np.asarray(self._home.array(), dtype=dtype)
