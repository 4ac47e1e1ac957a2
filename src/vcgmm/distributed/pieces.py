"""A coreset in pieces, whose points stay where they were drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from distributed import Client, Future

from ..algorithm.coreset import row_hashes
from .partitions import Partitions


@dataclass(frozen=True)
class Piece:
    """What a partition gives to a coreset.

    Attributes
    ----------
    indices : (n,) int64
        Rows of the whole collection, ascending.
    points : (n, D) array
        In the data's own dtype.
    weights : (n,) float64
    """

    indices: np.ndarray
    points: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Pieces:
    """A coreset whose points stay on the workers.

    Attributes
    ----------
    client : Client
    futures : list of Future
        Of every `Piece`, in the order of their rows.
    indices : (N',) int64
    weights : (N',) float64
    lengths : list of int
    """

    client: Client
    futures: Sequence[Future]
    indices: np.ndarray
    weights: np.ndarray
    lengths: Sequence[int]

    def __len__(self) -> int:
        """Number of points N'."""
        return len(self.indices)

    def points(self) -> np.ndarray:
        """All points, gathered, (N', D)."""
        take = [self.client.submit(_points, piece, pure=False) for piece in self.futures]
        return np.concatenate(self.client.gather(take))

    def count_distinct(self, enough: int) -> int:
        """Number of different points, or any number from `enough` on once so many have been seen."""
        few = max(1, len(self) // (4 * enough))  # most data show enough of them in a part of their rows
        n_distinct = len(np.unique(np.concatenate(self.hashes(few))))
        if n_distinct >= enough or few == 1:
            return n_distinct
        return len(np.unique(np.concatenate(self.hashes())))

    def hashes(self, step: int = 1) -> list[np.ndarray]:
        """Fingerprints of every step-th point of each piece."""
        hashes: list[np.ndarray] = self.client.gather(
            [self.client.submit(_hashes, piece, step, pure=False) for piece in self.futures]
        )
        return hashes

    def as_partitions(self, n_features: int, dtype: np.dtype[Any]) -> Partitions:
        """The points with their weights, to draw from again."""
        points, weights = dask.delayed(_points, pure=False), dask.delayed(_weights, pure=False)
        starts = np.concatenate([[0], np.cumsum(self.lengths, dtype=np.int64)])
        return Partitions(
            self.client,
            [points(piece) for piece in self.futures],
            [weights(piece) for piece in self.futures],
            starts,
            range(len(self.futures)),
            n_features,
            dtype,
        )


def collect(client: Client, futures: Sequence[Future]) -> Pieces:
    """Pieces, with all of them known but their points."""
    facts = client.gather([client.submit(_facts, piece, pure=False) for piece in futures])
    return Pieces(
        client,
        futures,
        np.concatenate([indices for indices, _ in facts]),
        np.concatenate([weights for _, weights in facts]),
        [len(indices) for indices, _ in facts],
    )


def _points(piece: Piece) -> np.ndarray:
    return piece.points


def _weights(piece: Piece) -> np.ndarray:
    return piece.weights


def _facts(piece: Piece) -> tuple[np.ndarray, np.ndarray]:
    return piece.indices, piece.weights


def _hashes(piece: Piece, step: int) -> np.ndarray:
    return row_hashes(piece.points[::step])
