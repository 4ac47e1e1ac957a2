"""Points of a Gaussian mixture with known truth, of any number, width and number of clusters.

Rows come in blocks of a fixed length, each from random numbers of its own.  So any row can be made at any time,
all rows need never be held at once, and the array and the source of the same arguments have the same rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..data.source import AddressedSource
from .arguments import check_length, check_size, random_words

#: Values in a block that is made at once.
BLOCK_VALUES = 1 << 20


class MixtureSource(AddressedSource):
    """Rows of a Gaussian mixture that are made when they are read: a source that is as long as you like.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
    separation : float, default=1.0
        Standard deviation of the centres, in each of the directions that they fill.
    spread : float, default=0.5
        Standard deviation of a cluster, in every feature.
    imbalance : float, default=0.0
        Clusters are drawn with probabilities proportional to exp(imbalance z), z normal; 0: all alike.
    n_latent : int or None, default=None
        Centres fill so many random directions, as real data fill few; None: all features.
    location : float, default=0.0
        Mean of every feature.
    dtype : dtype, default=float32
        Of the rows; those of integers are rounded and clipped to its range.
    random_state : int, RandomState or None, default=None
        Seed; the same seed gives the same rows.

    Attributes
    ----------
    centers : (n_clusters, n_features) float32
        The truth.
    weights : (n_clusters,) float64
        Probability of each cluster.

    Examples
    --------
    >>> from vcgmm import VCGMM
    >>> from vcgmm.datasets import MixtureSource
    >>> rows = MixtureSource(100_000, 8, 20, spread=0.1, random_state=0)
    >>> model = VCGMM(20, random_state=0).fit(rows)  # no more than its coreset is in memory
    >>> rows.shape, rows.labels(0, 5).shape
    ((100000, 8), (5,))
    """

    def __init__(
        self,
        n_samples: int,
        n_features: int,
        n_clusters: int,
        *,
        separation: float = 1.0,
        spread: float = 0.5,
        imbalance: float = 0.0,
        n_latent: int | None = None,
        location: float = 0.0,
        dtype: Any = np.float32,
        random_state: Any = None,
    ) -> None:
        for name, size in (("n_samples", n_samples), ("n_features", n_features), ("n_clusters", n_clusters)):
            check_size(name, size)
        for name, length in (("separation", separation), ("spread", spread), ("imbalance", imbalance)):
            check_length(name, length)
        if n_latent is not None:
            check_size("n_latent", n_latent)
        if not math.isfinite(location):
            raise ValueError(f"location={location!r} is not finite: give a number.")
        kind = np.dtype(dtype)
        if kind.kind not in "fiu":
            raise ValueError(f"dtype={dtype!r} is not valid: give a type of floats or integers.")
        super().__init__("a Gaussian mixture", n_samples, n_features, kind)
        self.spread = float(spread)
        self._words = random_words(random_state)
        self._step = max(1, BLOCK_VALUES // n_features)
        rng = self._generator(0)
        places = rng.standard_normal((n_clusters, min(n_latent or n_features, n_features)), dtype=np.float32)
        if places.shape[1] < n_features:
            directions = np.linalg.qr(rng.standard_normal((n_features, places.shape[1])))[0]
            places = places @ directions.T.astype(np.float32)
        self.centers = np.float32(location) + np.float32(separation) * places
        weights = np.exp(imbalance * rng.standard_normal(n_clusters))
        self.weights: np.ndarray = weights / weights.sum()
        self._running = np.cumsum(self.weights)

    def labels(self, first: int = 0, last: int | None = None) -> np.ndarray:
        """The clusters that rows first..last-1 were drawn from, (n,) int32; by default of all rows."""
        last = self.n_samples if last is None else last
        out = np.empty(last - first, np.int32)
        for block, low, high in self._blocks(first, last):
            begin = block * self._step
            out[low - first : high - first] = self._labels_of(self._generator(1, block))[
                low - begin : high - begin
            ]
        return out

    @contextmanager
    def opened(self) -> Iterator[Callable[[int, np.ndarray], None]]:
        """A function read(first, out) that fills `out` (n, D) with the rows from `first` on."""
        yield self._read

    def _read(self, first: int, out: np.ndarray) -> None:
        for block, low, high in self._blocks(first, first + len(out)):
            begin = block * self._step
            out[low - first : high - first] = self._make(block, high - begin)[low - begin :]

    def _make(self, block: int, n: int) -> np.ndarray:
        """The first n rows of a block."""
        rng = self._generator(1, block)
        labels = self._labels_of(rng)[:n]
        rows = rng.standard_normal((n, self.n_features), dtype=np.float32)
        rows *= np.float32(self.spread)
        rows += self.centers[labels]
        if self.dtype.kind in "iu":
            limits = np.iinfo(self.dtype)
            np.clip(np.rint(rows, out=rows), limits.min, limits.max, out=rows)
        return rows

    def _labels_of(self, rng: np.random.Generator) -> np.ndarray:
        """Labels of a whole block, the first numbers that its generator gives."""
        uniform = rng.random(self._step) * self._running[-1]
        found: np.ndarray = np.searchsorted(self._running, uniform, side="right")
        labels: np.ndarray = np.minimum(found, len(self._running) - 1).astype(np.int32)
        return labels

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, int, int]]:
        """Blocks that rows first..last-1 lie in, each with those of its rows."""
        for block in range(first // self._step, -(-last // self._step)):
            begin = block * self._step
            yield block, max(first, begin), min(last, begin + self._step)

    def _generator(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self._words.tolist(), spawn_key=purpose))


def make_mixture(
    n_samples: int, n_features: int, n_clusters: int, **options: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make points of a Gaussian mixture with round clusters, in memory.

    Parameters
    ----------
    n_samples, n_features, n_clusters : int
    **options
        As for `MixtureSource`, whose rows these are.

    Returns
    -------
    X : (n_samples, n_features) of `dtype`
    labels : (n_samples,) int32
        The cluster each row was drawn from.
    centers : (n_clusters, n_features) float32

    Examples
    --------
    >>> from vcgmm.datasets import make_mixture
    >>> X, labels, centers = make_mixture(1000, 3, 5, random_state=0)
    >>> X.shape, labels.shape, centers.shape
    ((1000, 3), (1000,), (5, 3))
    """
    source = MixtureSource(n_samples, n_features, n_clusters, **options)
    return np.asarray(source), source.labels(), source.centers
