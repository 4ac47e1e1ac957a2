"""The whole of a fit over partitions: coreset, seeding, variational EM, on the client or on the workers."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask.array as da
import numpy as np

from ..algorithm.attempts import CORESET, Attempts
from ..algorithm.coreset.lightweight import Coreset
from ..algorithm.coreset.local_points import LocalPoints
from ..algorithm.pipeline import Result, in_data_coordinates, refuse_too_few, variance_floor
from ..algorithm.random import generator
from ..algorithm.settings import Settings
from ..algorithm.snapshot import STEPS, Costs, Keep, Problem
from ..parallel import Workers
from ..progress import Callback, Progress
from .attempts import DistributedAttempts
from .coreset import all_rows, lightweight_coreset
from .layout import Blocks
from .moments import spread_of
from .partitions import Partitions, make_partitions
from .pieces import Pieces
from .weights import WeightFacts

#: Random numbers for the points to seed on; other purposes are 0 to 2.
SEEDING_POINTS = 3

#: seeding_size="auto": so many bytes of points at most are brought to the client.
SEEDING_BYTES = 4 << 30


@dataclass(frozen=True)
class Collection:
    """Rows and weights of a fit.

    Attributes
    ----------
    partitions : Partitions
        With weights in units of about 1.
    array : dask array (N, D)
    weight_unit : float
        What the user's weights are multiples of.
    n_usable : int
        Rows of positive weight.
    """

    partitions: Partitions
    array: da.Array
    weight_unit: float
    n_usable: int


def make_collection(
    client: Any, array: da.Array, weights: da.Array | None, facts: WeightFacts | None
) -> Collection:
    """Rows with their weights in units, as in `pipeline.in_units`: their scale must not cost digits."""
    if weights is None or facts is None:
        return Collection(make_partitions(client, array, None), array, 1.0, int(array.shape[0]))
    exponent = math.frexp(facts.largest)[1] - 1  # the largest weight is then in [1, 2)
    in_units = weights.map_blocks(np.ldexp, -exponent, dtype=np.float64)
    partitions = make_partitions(client, array, in_units)
    return Collection(partitions, array, math.ldexp(1.0, exponent), facts.n_positive)


def run(
    collection: Collection,
    settings: Settings,
    distributed: bool,
    seeding_size: int | None,
    n_threads: int | None,
    callbacks: Sequence[Callback],
    progress: Progress,
    workers: Workers,
    keep: Keep | None = None,
) -> Result:
    """Fit.

    Parameters
    ----------
    collection : Collection
    settings : Settings
    distributed : bool
        Whether EM runs on the workers.
    seeding_size : int or None
        With distributed EM: points that are brought to the client to seed on; None: as many as fit.
    n_threads : int or None
        Of a task that has its worker to itself.
    callbacks, progress, workers, keep : as in `pipeline.run`
    """
    begun = time.perf_counter()
    partitions, unit = collection.partitions, collection.weight_unit
    n_samples, n_clusters = partitions.n_samples, settings.n_components
    whole = settings.coreset_size is None or settings.coreset_size >= collection.n_usable
    progress.start("coreset", n_samples if whole else 2 * n_samples)
    spread = spread_of(partitions, progress.advance)
    if settings.coreset_size is None or whole:
        pieces = all_rows(partitions, not distributed, n_clusters)
    else:
        rng = generator(settings.seed, CORESET)
        pieces = lightweight_coreset(partitions, spread, settings.coreset_size, rng, not distributed, n_clusters)
        progress.advance(n_samples)
    n_distinct = pieces.n_distinct() if 1 < n_clusters <= len(pieces) else len(pieces)
    refuse_too_few(n_distinct, "n_components", n_clusters, n_samples)
    frame = spread.moments.frame(settings.dtype)
    points = lazy_points(collection.array, pieces) if distributed else pieces.points()
    coreset = Coreset(pieces.indices, points, pieces.weights)
    problem = Problem(settings, coreset, unit, frame, variance_floor(spread.moments, frame, settings.reg_covar))
    costs = Costs(dict.fromkeys(STEPS, 0.0), {**dict.fromkeys(STEPS, 0), "coreset": n_samples}, 0.0)
    attempts: Attempts
    if distributed:
        blocks = Blocks(pieces, frame)
        seeding = seeding_points(pieces, partitions, settings, seeding_size)
        attempts = DistributedAttempts(problem, blocks, seeding, costs, callbacks, progress, workers, n_threads)
        del seeding  # the attempts let go of it when the last one has its seeds
    else:
        local = LocalPoints(coreset, frame, workers)
        attempts = Attempts(problem, local, costs, callbacks, progress, workers, keep)
    del pieces  # what is needed of them has been taken
    progress.finish()
    costs.elapsed = costs.seconds["coreset"] = time.perf_counter() - begun
    return in_data_coordinates(attempts.run(), problem, costs)


def lazy_points(array: da.Array, pieces: Pieces) -> Any:
    """The points of a coreset as a Dask array that holds no memory of the cluster: computed when asked for."""
    return array if len(pieces) == array.shape[0] else array[pieces.indices]


def seeding_points(pieces: Pieces, partitions: Partitions, settings: Settings, size: int | None) -> Coreset:
    """The points to seed on: all, or a coreset of the coreset; `size` is how many, None: as many as fit."""
    if size is None:
        size = SEEDING_BYTES // (partitions.n_features * partitions.dtype.itemsize)
    size = max(size, settings.n_components)
    if size >= len(pieces):
        return Coreset(pieces.indices, pieces.points(), pieces.weights)
    source = pieces.as_partitions(partitions.n_features, partitions.dtype)
    rng = generator(settings.seed, SEEDING_POINTS)
    drawn = lightweight_coreset(source, spread_of(source, _silent), size, rng, True, settings.n_components)
    return Coreset(pieces.indices[drawn.indices], drawn.points(), drawn.weights)


def _silent(_amount: int) -> None:
    """Points to seed on are drawn without a progress line of their own."""
