"""The steps on their own: coreset, seeding and quantization error as functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .algorithm.coreset.frame import moments
from .algorithm.coreset.lightweight import all_rows, count_distinct, in_memory
from .algorithm.coreset.lightweight import lightweight_coreset as draw_coreset
from .algorithm.coreset.local_points import LocalPoints
from .algorithm.coreset.sampling import SampledRows, uniform_sample
from .algorithm.pipeline import check_distinct, in_units, to_local
from .algorithm.random import generator
from .algorithm.seeding import afkmc2 as seeding
from .algorithm.starts.start_alone import Wishes, start_alone
from .coreset import Coreset
from .data.rows import exact_float
from .evaluation import Evaluator
from .parallel import Workers
from .progress import make_progress
from .validation import (
    check_centers,
    check_choice,
    check_flag,
    check_float_type,
    check_integer,
    check_matrix,
    check_threads,
    check_weights_of,
    draw_seed,
)

#: How `two_level` may draw the rows that it looks at.
SAMPLINGS = ("lightweight", "uniform")


def lightweight_coreset(
    X: Any,
    size: int,
    *,
    sample_weight: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
    verbose: int = 0,
) -> Coreset:
    """Draw a lightweight coreset: a weighted sample that stands for all of X.

    A row is drawn with probability q = (w / sum w + w d^2 / sum w d^2) / 2, d its distance to the weighted mean,
    and gets the weight w / (size q).  Rows drawn more than once appear once, with their weights added.

    Parameters
    ----------
    X : array-like of shape (N, D), or source
    size : int
        Number of draws, N'.
    sample_weight : array-like of shape (N,), optional
    random_state : int, RandomState or None
    n_threads : int or None
    verbose : int, default=0
        Above 0: a progress line on stderr.

    Returns
    -------
    Coreset
        With `points` (N', D), `weights` (N',) and `indices` (N',); the weights sum to the total weight of X in
        expectation.

    Examples
    --------
    >>> import numpy as np
    >>> from vcgmm import lightweight_coreset
    >>> X = np.random.default_rng(0).normal(size=(10_000, 3))
    >>> coreset = lightweight_coreset(X, 500, random_state=0)
    >>> coreset.points.shape[1], bool(abs(coreset.weights.sum() - 10_000) < 1_000)
    (3, True)
    """
    rows = check_matrix("X", X)
    size = check_integer("size", size, 1)
    weights = check_weights_of(rows, sample_weight)
    with Workers(check_threads(n_threads)) as workers, make_progress(verbose) as progress:
        progress.start("coreset", 2 * rows.n_samples)
        facts = moments(rows, weights, workers, progress.advance)
        rng = generator(draw_seed(random_state))
        coreset = in_memory(draw_coreset(rows, facts, weights, size, rng, 1, workers, progress.advance), workers)
        progress.finish()
    return Coreset.of(coreset.points, coreset.weights * rows.weight_unit, coreset.indices, rows.n_samples)


def afkmc2(
    X: Any,
    n_clusters: int,
    *,
    chain_length: int = 10,
    sample_weight: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Seed centres by AFK-MC^2: D^2 sampling approximated by short Markov chains.

    Parameters
    ----------
    X : array-like of shape (N, D)
    n_clusters : int
    chain_length : int, default=10
        Draws per chain, m.  Longer chains come closer to D^2 sampling.
    sample_weight : array-like of shape (N,), optional
    random_state : int, RandomState or None
    n_threads : int or None

    Returns
    -------
    centers : (n_clusters, D) array of X's dtype
    indices : (n_clusters,) int64
        Rows of X; no two are equal points.
    """
    chain_length = check_integer("chain_length", chain_length, 1)

    def choose(points: np.ndarray, weights: np.ndarray, n: int, seed: int, workers: Workers) -> np.ndarray:
        rng = generator(seed)
        return seeding.afkmc2(points, weights, n, chain_length, rng, workers, _silent).indices

    return _seed(X, n_clusters, sample_weight, random_state, n_threads, choose)


def kmeans_plus_plus(
    X: Any,
    n_clusters: int,
    *,
    sample_weight: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Seed centres by plain D^2 sampling: each with probability proportional to w d^2 to the nearest so far.

    Parameters
    ----------
    X : array-like of shape (N, D)
    n_clusters : int
    sample_weight : array-like of shape (N,), optional
    random_state : int, RandomState or None
    n_threads : int or None

    Returns
    -------
    centers : (n_clusters, D) array of X's dtype
    indices : (n_clusters,) int64
        Rows of X; no two are equal points.
    """

    def choose(points: np.ndarray, weights: np.ndarray, n: int, seed: int, workers: Workers) -> np.ndarray:
        return seeding.kmeans_plus_plus(points, weights, n, generator(seed), workers, _silent).indices

    return _seed(X, n_clusters, sample_weight, random_state, n_threads, choose)


def two_level(
    X: Any,
    n_clusters: int,
    *,
    coreset_size: int | None = None,
    sampling: str = "lightweight",
    max_iter: int | None = None,
    lloyd_steps: int | None = None,
    hard: bool = False,
    levels: int | None = None,
    n_init: int = 1,
    sample_weight: Any = None,
    random_state: Any = None,
    n_threads: int | None = None,
) -> np.ndarray:
    """Centres by the default start of `VCGMM` alone: the fastest way to clusters that are good, not yet best.

    Coarse cells first, then clusters inside each, as many as give all about the same error, and a few Lloyd steps.
    Where rows are wide, all that and five EM iterations happen in their leading principal directions, up to 64 of
    them; fewer where clusters are few, rows up to 1,024 for each, and these keep half of the variance.  Rows of 64
    to 191 features that are not wide in this sense are looked at in half as many directions or fewer where these
    keep four fifths of the variance, and what they leave out is not sparse; without iterations unless they are
    asked for.  The cost is O(N' sqrt(C) D), and the error mostly some percent
    above that of a fit, which would go on from here: `VCGMM(n_clusters, init=centers)`.

    Parameters
    ----------
    X : array-like of shape (N, D), or source
    n_clusters : int
    coreset_size : int or None, default=None
        Number of draws of a coreset to look at; None: all rows.
    sampling : {"lightweight", "uniform"}, default="lightweight"
        How it is drawn.  "lightweight": as `lightweight_coreset` does it, in two passes over all rows; rows far
        from the mean are drawn more often and weigh less.  "uniform": every row as likely as it weighs; others
        are not looked at, not even for NaN, nor read, unless a source can only be read in order or comes with
        weights.  Quicker where few clusters are looked for among many rows, worse where few of these matter much.
    max_iter : int or None, default=None
        EM iterations at most, with few candidates; where rows are wide, in their leading principal directions.
        One is a step of Lloyd's algorithm, in which clusters of all cells meet; if more follow, clusters are moved
        to where more are needed after the first.  None: 5 where rows are wide or iterations `hard`, else 0.  With
        0 wide rows take half the time or less, for an error that is mostly 1 or 2 percent larger.
    lloyd_steps : int or None, default=None
        Lloyd steps inside each cell, over at most 16 rows a cluster for each step (64 in all where two EM
        iterations or more follow, unless they are `hard`; no fewer than 128 where clusters are up to 32).  They
        are quick, since cells are small: 8 for 4 took 0.7 to 2 percent off the error of four sets, for up to nine
        tenths of the time more.  None: 4, or 8 where iterations follow.
    hard : bool, default=False
        All iterations are steps of Lloyd's algorithm, as in k-means, and no clusters are moved but those that lost
        all their rows: the quickest way to a good error where clusters are few.  Up to 384 clusters are all
        compared with every row, of more some about its last one.
    levels : int or None, default=None
        Levels of cells inside cells, at least 2; the last one is clusters.  None: 2 up to 65,536 clusters, then 3
        (1 up to 32, if nobody asks for more).  One more is quicker where there are thousands of clusters, for an
        error that is 2 to 5 percent larger.  No more are made than divide cells by four each time.
    n_init : int, default=1
        How often all this is done, on the same rows; what has the least error there is taken, of rows with the
        clusters that they were last put into, and where rows are wide of their projections.  Of few clusters some
        attempts end lower than others.
    sample_weight : array-like of shape (N,), optional
    random_state : int, RandomState or None
    n_threads : int or None

    Returns
    -------
    (n_clusters, D) float64 array
        Weighted means of points that were looked at, each of those of one cluster.  (Without iterations, of those
        that Lloyd steps looked at, unless in few directions; then a few centres may be no row's nearest.)

    Examples
    --------
    >>> import numpy as np
    >>> from vcgmm import quantization_error, two_level
    >>> X = np.repeat([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]], 100, axis=0)
    >>> centers = two_level(X, 3, random_state=0)
    >>> quantization_error(X, centers)
    0.0
    """
    rows = check_matrix("X", X)
    n_clusters = check_integer("n_clusters", n_clusters, 1)
    size = None if coreset_size is None else check_integer("coreset_size", coreset_size, 1)
    n_iter = None if max_iter is None else check_integer("max_iter", max_iter, 0)
    n_steps = None if lloyd_steps is None else check_integer("lloyd_steps", lloyd_steps, 1)
    hard = check_flag("hard", hard)
    n_levels = None if levels is None else check_integer("levels", levels, 2)
    n_attempts = check_integer("n_init", n_init, 1)
    is_uniform = check_choice("sampling", sampling, SAMPLINGS) == "uniform"
    weights = check_weights_of(rows, sample_weight)
    seed = draw_seed(random_state)
    if weights is not None:
        weights, _ = in_units(weights)
    with Workers(check_threads(n_threads)) as workers:
        if is_uniform and size is not None and size < rows.n_samples:
            sample = uniform_sample(rows, weights, size, generator(seed, 1), workers)
            rows, weights = sample.rows, sample.weights
        facts = moments(rows, weights, workers, _silent)
        if is_uniform or size is None or size >= facts.n_usable:
            used = all_rows(rows, weights)
        else:
            used = draw_coreset(rows, facts, weights, size, generator(seed, 1), n_clusters, workers, _silent)
        if isinstance(rows, SampledRows):
            _check_sample(rows, n_clusters)
        else:
            check_distinct(used, "n_clusters", n_clusters, rows.n_samples)
        frame = facts.light_frame(check_float_type(None, rows.dtype))
        points = LocalPoints(used, frame, workers)
        wishes = Wishes(n_iter, n_steps, hard, n_levels, n_attempts)
        return frame.leave(
            start_alone(points, used.weights, n_clusters, wishes, generator(seed), workers, _silent)
        )


def quantization_error(X: Any, centers: Any, sample_weight: Any = None, n_threads: int | None = None) -> float:
    """Weighted sum of squared distances to the nearest centre, in float64.

    Parameters
    ----------
    X : array-like of shape (N, D), or source
    centers : array-like of shape (C, D)
    sample_weight : array-like of shape (N,), optional
    n_threads : int or None

    Returns
    -------
    float
    """
    rows = check_matrix("X", X)
    means = check_centers("centers", centers, rows.n_features)
    weights = check_weights_of(rows, sample_weight)
    with Workers(check_threads(n_threads)) as workers:
        frame = moments(rows, weights, workers, _silent).frame(check_float_type(None, rows.dtype))
        return Evaluator(means, frame, workers, _silent).error(rows, weights)


def _check_sample(rows: SampledRows, n_clusters: int) -> None:
    """Refuse a uniform sample that has too few different points."""
    n_distinct = count_distinct(rows.array, n_clusters)
    if n_distinct < n_clusters:
        raise ValueError(
            f"A uniform sample of {rows.name} has {n_distinct} distinct point(s) of positive weight "
            f"(coreset_size={rows.n_draws}), fewer than n_clusters={n_clusters}. Ask for at most {n_distinct}; "
            f"or, if there are more among all rows, for a larger coreset_size, or for sampling='lightweight', "
            f"which looks for them."
        )


def _silent(amount: int) -> None:
    """Seeding as a function tells no progress."""


def _seed(
    X: Any, n_clusters: int, sample_weight: Any, random_state: Any, n_threads: int | None, choose: Any
) -> tuple[np.ndarray, np.ndarray]:
    rows = check_matrix("X", X)
    n_clusters = check_integer("n_clusters", n_clusters, 1)
    weights = check_weights_of(rows, sample_weight)
    used = all_rows(rows, weights)
    check_distinct(used, "n_clusters", n_clusters, rows.n_samples)
    with Workers(check_threads(n_threads)) as workers:
        frame = moments(rows, weights, workers, _silent).frame(exact_float(rows.dtype))
        points = to_local(used, frame, workers)
        chosen = choose(points, used.weights, n_clusters, draw_seed(random_state), workers)
    indices = used.indices[chosen]
    return rows.take(indices), indices
