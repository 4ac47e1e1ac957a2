"""Fingerprints of rows on the device, to count different ones."""

from __future__ import annotations

from functools import lru_cache

import torch

from ..device.arrays import Told
from ..device.sizes import pieces_of, power_of_two
from ..kernels.surveying import hash_rows

#: Rows, and features of them, that a program looks at.
ROWS, FEATURES = 32, 128

#: Places for each row, of which those are counted that any fingerprint points at.
PLACES = 4


def row_hashes(rows: torch.Tensor) -> torch.Tensor:
    """A fingerprint of every row (N, D), equal for equal rows: (N,) int64."""
    return _looked_at(rows, 1)[0]


def _looked_at(rows: torch.Tensor, n_places: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Fingerprints (N,) int64, and 1 where any points at one of so many places, a power of two: (n,) int8."""
    n_rows, n_features = rows.shape
    hashes = torch.empty(n_rows, dtype=torch.int64, device=rows.device)
    seen = torch.zeros(n_places, dtype=torch.int8, device=rows.device)
    hash_rows[(pieces_of(n_rows, ROWS),)](
        rows, rows.stride(0), n_rows, n_features, _odd_numbers(n_features, rows.device), hashes, seen, n_places,
        ROWS=ROWS, FEATURES=min(FEATURES, power_of_two(n_features)),
    )  # fmt: skip
    return hashes, seen


@lru_cache(maxsize=4)
def _odd_numbers(n_features: int, device: torch.device) -> torch.Tensor:
    """What values of each feature are multiplied by, (D,) int64."""
    draws = torch.Generator().manual_seed(0)
    return (torch.randint(-(1 << 62), 1 << 62, (n_features,), generator=draws) * 2 + 1).to(device)


class Distinct:
    """How many rows differ; a first count is made while the host goes on.

    Parameters
    ----------
    rows : (N, D) tensor, each row one run of values
    enough : int
        More than so many need not be counted.
    """

    def __init__(self, rows: torch.Tensor, enough: int) -> None:
        self.rows = rows
        self.enough = enough
        # Most data show enough of them in a part of their rows.
        few = rows[:: max(1, rows.shape[0] // (4 * enough))]
        _, seen = _looked_at(few, power_of_two(PLACES * few.shape[0]))
        self._first = Told(seen.sum().view(1))

    def count(self) -> int:
        """Number of different rows, or any number from `enough` on once so many have been seen."""
        n_places = int(self._first.array()[0])  # no more than there are different rows
        return n_places if n_places >= self.enough else len(torch.unique(row_hashes(self.rows)))
