"""Rows in local coordinates on the device, some at a time: from where they lie, or by way of pinned buffers."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

import numpy as np
import torch

from ...algorithm.coreset.frame import Frame
from ...data import Part, Rows
from ...parallel import Workers
from .lanes import Lanes, parts_of
from .points import DevicePoints
from .tensors import blocks_of, rows_on


def local_blocks(
    rows: Rows, frame: Frame, device: torch.device, workers: Workers
) -> Generator[tuple[Part, torch.Tensor], None, None]:
    """All rows in order, each block with the part that it is: (n, D) float32.

    Rows of the host go up while what is made of the last block is still computed.  Of rows on the device the parts
    hold no values: they know their place alone.
    """
    origin = torch.from_numpy(frame.origin).to(device)
    there = rows_on(device, rows)
    if there is not None:
        for place in blocks_of(rows.n_samples, rows.n_features):
            local = ((there.wide(place) - origin) * frame.scale).float()
            yield Part(place.start, np.empty((len(local), 0)), None, rows), local
        return
    lanes = Lanes(device, workers)
    with closing(lanes.blocks(parts_of(rows))) as blocks:
        for part, block in blocks:
            with lanes.beside:
                local = ((block.double() - origin) * frame.scale).float()
            yield part, lanes.hand_over(local)


def points_in(frame: Frame, local: torch.Tensor, weights: torch.Tensor | None, precision: str) -> DevicePoints:
    """Rows (n, D) float32 that are in local coordinates already as points."""
    here = Frame(np.zeros(local.shape[1]), 1.0, frame.dtype)
    masses = torch.ones(len(local), device=local.device) if weights is None else weights
    return DevicePoints(local, 1.0, masses, here, precision)
