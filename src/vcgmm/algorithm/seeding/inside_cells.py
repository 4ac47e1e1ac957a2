"""Seeds and a small k-means inside each of many cells, by threads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...kernels.nearest.lloyd import cluster_cells
from ...kernels.parts.shorts import may_be_short
from ...kernels.seeding.greedy import seed_cells
from ...parallel import Workers

#: Rows that D^2 sampling looks at for each seed.
SEED_SAMPLE = 16

#: Draws of which the best becomes a seed.
TRIALS = 3

#: Effort for a product of distances to them.
SEEDING = 2


@dataclass(frozen=True)
class Care:
    """What is looked at for a seed.

    Attributes
    ----------
    rows : int
        Rows of the cell, for each seed.
    trials : int
        Draws of which the best becomes one.
    """

    rows: int
    trials: int


#: What is enough where cells are many.
CARE = Care(SEED_SAMPLE, TRIALS)


def seed_inside(
    points: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    start: np.ndarray,
    wanted: np.ndarray,
    rng: np.random.Generator,
    workers: Workers,
    care: Care = CARE,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Greedy D^2 seeds of every cell.

    Parameters
    ----------
    points : (N', D) float
    weights : (N',) float64
    order, start
        Cell i holds the rows order[start[i]:start[i + 1]].
    wanted : (n_cells,) int64
        How many seeds of each.
    rng : numpy Generator
    workers : Workers
    care : Care

    Returns
    -------
    seeds : (n_seeds,) int64
        Rows, cell by cell; -1 where a cell has run out of different ones.
    potentials : (n_seeds,) float64
        Error of the cell once so many of its seeds are there.
    seed_start : (n_cells + 1,) int64
    n_evaluations : int
    """
    seed_start = np.concatenate([[0], np.cumsum(wanted)])
    uniforms = rng.random((seed_start[-1], care.trials))
    seeds = np.full(seed_start[-1], -1, np.int64)
    potentials = np.zeros(seed_start[-1])
    looked_at = np.minimum(np.diff(start), care.rows * wanted)
    cells = dearest_first(looked_at * wanted)

    def work(_thread: int, first: int, last: int) -> None:
        seed_cells(
            first, last, cells, points, weights, order, start, seed_start, care.rows, uniforms, seeds,
            potentials,
        )  # fmt: skip

    draws = np.maximum(care.trials * (wanted - 1) + 1, 0)
    n_evaluations = int((looked_at * draws).sum())
    workers.run(work, len(cells), SEEDING * n_evaluations * points.shape[1])
    return seeds, potentials, seed_start, n_evaluations


def cluster_inside(
    points: np.ndarray,
    weights: np.ndarray,
    order: np.ndarray,
    start: np.ndarray,
    seeds: np.ndarray,
    centre_start: np.ndarray,
    sample: int,
    steps: int,
    labels: np.ndarray,
    distances: np.ndarray,
    workers: Workers,
    *,
    label: bool,
) -> tuple[np.ndarray, int]:
    """Lloyd steps inside every cell that has seeds.

    Parameters
    ----------
    points, weights, order, start, workers : as in `seed_inside`
    seeds : (n,) int64
        Rows.
    centre_start : (n_cells + 1,) int64
        Those of cell i are centre_start[i]..centre_start[i + 1] - 1; none, and the cell is left alone.
    sample : int
        Rows that Lloyd steps look at for each centre.
    steps : int
    labels : (N',) int32, distances : (N',) float
        Nearest centre of every row of those cells and the squared distance to it, written where asked for.
    label : bool
        Whether that is.

    Returns
    -------
    centres : (n, D) float64
    n_evaluations : int
    """
    centres = np.empty((len(seeds), points.shape[1]))
    k, sizes = np.diff(centre_start), np.diff(start)
    evaluations = np.minimum(sizes, sample * k) * k * steps + (sizes * k if label else 0)
    cells = dearest_first(evaluations)[: np.count_nonzero(evaluations)]
    in_steps = may_be_short(points.shape[1])

    def work(_thread: int, first: int, last: int) -> None:
        cluster_cells(
            first, last, cells, points, weights, order, start, seeds, centre_start, sample, steps, label,
            in_steps, centres, labels, distances,
        )  # fmt: skip

    n_evaluations = int(evaluations.sum())
    workers.run(work, len(cells), n_evaluations * points.shape[1])
    return centres, n_evaluations


def dearest_first(costs: np.ndarray) -> np.ndarray:
    """The order in which to work on cells, (n_cells,) int64: a large one at the end would have one thread busy."""
    return np.argsort(-costs, kind="stable")
