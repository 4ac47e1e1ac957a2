"""Passes over rows of the host whose sums the device takes, block by block."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing

import numpy as np
import torch

from ...algorithm.coreset.frame import PartMoments
from ...data import Part, Rows
from .lanes import Lanes, parts_of


class DevicePasses:
    """What `algorithm.coreset.frame.moments` and `algorithm.coreset.drawing.draw` ask for of every part of rows.

    Parameters
    ----------
    lanes : Lanes
    """

    def __init__(self, lanes: Lanes) -> None:
        self.lanes = lanes

    def moments(self, rows: Rows, weights: np.ndarray | None) -> Generator[tuple[Part, PartMoments], None, None]:
        """Sums over each part, as `algorithm.coreset.frame.part_moments` takes them over each of its blocks."""

        def work(part: Part, block: torch.Tensor) -> torch.Tensor:
            wide, given = block.double(), part.weights(weights)
            w = wide.new_ones(len(wide)) if given is None else torch.from_numpy(given).to(wide.device)
            mass, sums = w.sum(), w @ wide
            away = wide - sums / torch.where(mass > 0, mass, 1.0)
            scatter = torch.dot(w, torch.linalg.vecdot(away, away))
            return torch.cat([sums, scatter.view(1), mass.view(1)])

        with closing(self.lanes.computed(parts_of(rows), work)) as found:
            for part, facts in found:
                if not np.isfinite(facts[:-2]).all():
                    for bounds in part.bounds():
                        part.refuse_nonfinite(*bounds)
                given = part.weights(weights)
                n_usable = len(part) if given is None else int(np.count_nonzero(given))
                yield part, PartMoments(facts[None, :-2], facts[-1:], facts[-2:-1], n_usable)

    def deviations(self, rows: Rows, mean: np.ndarray) -> Generator[tuple[Part, np.ndarray], None, None]:
        """Squared distances of each part's rows to the mean (D,), (n,) float64."""
        with self.lanes.beside:
            middle = torch.from_numpy(mean).to(self.lanes.device)

        def work(_part: Part, block: torch.Tensor) -> torch.Tensor:
            away = block.double() - middle
            return torch.linalg.vecdot(away, away)

        return self.lanes.computed(parts_of(rows), work)
