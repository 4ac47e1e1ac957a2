"""A coreset in pieces, as it is drawn: on the workers, or brought to the client."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
from distributed import Client, Future

from ..algorithm.coreset.lightweight import row_hashes
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


class Pieces:
    """All pieces of a coreset, in the order of their rows.

    Parameters
    ----------
    client : Client
    futures : sequence of Future
        Of every `Piece`.
    bring : bool
        Whether the points come to the client; else only what is known of them does.
    size : int
        About how many points there are.
    n_distinct : int
        How many different ones are needed.

    Attributes
    ----------
    indices : (N',) int64
    weights : (N',) float64
    lengths : list of int
    """

    def __init__(self, client: Client, futures: Sequence[Future], bring: bool, size: int, n_distinct: int) -> None:
        self.client = client
        self.futures = futures
        self.n_needed = n_distinct
        self.here: list[Piece] | None = client.gather(list(futures)) if bring else None
        self._step = max(1, size // (4 * n_distinct))  # most data show enough of them in a part of their rows
        facts = self._each(known_of, self._step)
        self.indices = np.concatenate([indices for indices, _, _ in facts])
        self.weights = np.concatenate([weights for _, weights, _ in facts])
        self.lengths = [len(indices) for indices, _, _ in facts]
        self._some_hashes = np.concatenate([hashes for _, _, hashes in facts])

    def __len__(self) -> int:
        """Number of points N'."""
        return len(self.indices)

    def points(self) -> np.ndarray:
        """All points, (N', D)."""
        return np.concatenate(self._each(points_of))

    def n_distinct(self) -> int:
        """Number of different points, or any number from what is needed on once so many have been seen."""
        n_distinct = len(np.unique(self._some_hashes))
        if n_distinct >= self.n_needed or self._step == 1:
            return n_distinct
        return len(np.unique(self.hashes()))

    def hashes(self) -> np.ndarray:
        """Fingerprints of all points, (N',) int64."""
        return np.concatenate(self._each(hashes_of))

    def as_partitions(self, n_features: int, dtype: np.dtype[Any]) -> Partitions:
        """The points with their weights, to draw from again."""
        points, weights = dask.delayed(points_of, pure=False), dask.delayed(weights_of, pure=False)
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

    def _each(self, function: Any, *arguments: Any) -> list[Any]:
        """A function of every piece, where it is."""
        if self.here is not None:
            return [function(piece, *arguments) for piece in self.here]
        futures = self.client.map(
            function, self.futures, *([one] * len(self.futures) for one in arguments), pure=False
        )
        results: list[Any] = self.client.gather(futures)
        return results


def points_of(piece: Piece) -> np.ndarray:
    """Points of a piece, (n, D)."""
    return piece.points


def weights_of(piece: Piece) -> np.ndarray:
    """Weights of a piece, (n,)."""
    return piece.weights


def hashes_of(piece: Piece) -> np.ndarray:
    """Fingerprints of a piece's points, (n,) int64."""
    return row_hashes(piece.points)


def known_of(piece: Piece, step: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What the client knows of a piece: indices, weights, fingerprints of every step-th point."""
    return piece.indices, piece.weights, row_hashes(piece.points[::step])
