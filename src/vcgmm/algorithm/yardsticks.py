"""What the paper compares itself with: k-means++, k-means on a lightweight coreset, AFK-MC^2 seeding alone.

The same coreset, seeding and products as in a fit of ours, counted in the same way; with the same seed also the
same coreset, and with AFK-MC^2 the same seeds.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data import Rows
from ..parallel import Workers
from .attempts import CORESET, SEEDING
from .coreset.frame import Frame, moments
from .coreset.lightweight import Coreset, all_rows, lightweight_coreset
from .lloyd import lloyd
from .pipeline import check_distinct, to_local, variance_floor
from .random import generator
from .seeding.afkmc2 import Seeds, afkmc2, kmeans_plus_plus


@dataclass(frozen=True)
class Yardstick:
    """What came out, in data coordinates.

    Attributes
    ----------
    means : (C, D) float64
    bounds : list of float
        F after each iteration; empty for seeds alone.
    converged : bool
    n_points : int
        Points that the iterations went over, N'.
    timings, n_evaluations : dict
        Seconds and distances of "coreset", "seeding" and "em", as those of a fit of ours.
    """

    means: np.ndarray
    bounds: list[float]
    converged: bool
    n_points: int
    timings: dict[str, float]
    n_evaluations: dict[str, int]


def k_means(
    rows: Rows,
    n_clusters: int,
    *,
    init: str,
    seed: int,
    dtype: np.dtype[Any],
    workers: Workers,
    chain_length: int = 10,
    coreset_size: int | None = None,
    tol: float = 1e-4,
    max_iter: int = 200,
    reg_covar: float = 1e-14,
) -> Yardstick:
    """Seeds, then Lloyd's algorithm, on all rows or on a lightweight coreset.

    Parameters
    ----------
    rows : Rows
    n_clusters : int
    init : {"k-means++", "afkmc2"}
    seed : int
    dtype : float32 or float64
    workers : Workers
    chain_length : int
        m of AFK-MC^2.
    coreset_size : int or None
        None: all rows.
    tol : float
    max_iter : int
        0: seeds alone.
    reg_covar : float
        Smallest variance in the bound, relative to that of the data.
    """
    begun = time.perf_counter()
    facts = moments(rows, None, workers, _silent)
    frame = facts.frame(dtype)
    drawn = coreset_size is not None and coreset_size < facts.n_usable
    if coreset_size is not None and drawn:
        rng = generator(seed, CORESET)
        used = lightweight_coreset(rows, facts, None, coreset_size, rng, n_clusters, workers, _silent)
    else:
        used = all_rows(rows, None)
    check_distinct(used, "n_clusters", n_clusters, rows.n_samples)
    points = to_local(used, frame, workers)
    timings = {"coreset": time.perf_counter() - begun}

    begun = time.perf_counter()
    seeds = choose(points, used, n_clusters, init, chain_length, seed, workers)
    timings["seeding"] = time.perf_counter() - begun
    means = points[seeds.indices].astype(np.float64)
    n_evaluations = {"coreset": rows.n_samples if drawn else 0, "seeding": seeds.n_evaluations, "em": 0}
    if max_iter == 0:
        return _result(means, frame, [], True, used, {**timings, "em": 0.0}, n_evaluations)

    floor = variance_floor(facts, frame, reg_covar)
    ended = lloyd(
        points, used.weights, means,
        tol=tol, max_iter=max_iter, variance_floor=floor, log_scale=frame.log_scale, workers=workers,
    )  # fmt: skip
    timings["em"], n_evaluations["em"] = ended.seconds, ended.n_evaluations
    return _result(ended.means, frame, ended.bounds, ended.converged, used, timings, n_evaluations)


def choose(
    points: np.ndarray, used: Coreset, n_clusters: int, init: str, chain_length: int, seed: int, workers: Workers
) -> Seeds:
    """Seeds among points (N', D) in local coordinates, by the stream of random numbers that a fit of ours uses."""
    rng = generator(seed, SEEDING, 0)
    if init == "afkmc2":
        return afkmc2(points, used.weights, n_clusters, chain_length, rng, workers, _silent)
    if init == "k-means++":
        return kmeans_plus_plus(points, used.weights, n_clusters, rng, workers, _silent)
    raise ValueError(f"init={init!r} is not valid: choose 'k-means++' or 'afkmc2'.")


def _result(
    means: np.ndarray,
    frame: Frame,
    bounds: list[float],
    converged: bool,
    used: Coreset,
    timings: dict[str, float],
    n_evaluations: dict[str, int],
) -> Yardstick:
    return Yardstick(frame.leave(means), bounds, converged, len(used), timings, n_evaluations)


def _silent(amount: int) -> None:
    """A yardstick tells no progress."""
