"""One step towards the nearest centre: from the centre where a point is to the nearest of those around it."""

from __future__ import annotations

import numpy as np

from ..jit import kernel
from ..parts.distances import local_rows, squared_distance
from ..parts.selection import LANES
from ..parts.shorts import steps_per_unit
from .lloyd import assign, lay_rows
from .nearest_tiles import padded

#: Up to so many points are compared with the candidates one by one: making a product ready costs more.
ONE_BY_ONE = 2

#: Points that are compared at a time, while all candidates are in cache.
POINTS = 2 * LANES


@kernel
def step_to_nearest(
    first: int,
    last: int,
    task_cell: np.ndarray,
    task_start: np.ndarray,
    order: np.ndarray,
    points: np.ndarray,
    candidates: np.ndarray,
    centres: np.ndarray,
    in_steps: bool | None,
    labels: np.ndarray,
    near: np.ndarray,
) -> None:
    """Move the points of tasks first..last-1 to the nearest candidate, where it is nearer than what they know.

    Parameters
    ----------
    first, last : int, IN
    task_cell : (n_tasks,) int32, IN, where the points of each task are: a row of `candidates`
    task_start : (n_tasks + 1,) int64, IN, task t holds the rows order[task_start[t]:task_start[t + 1]]
    order : (m,) int64, IN
    points : (n, D) float, IN
    candidates : (k, L) int32, IN; the first is the origin of the products' coordinates
    centres : (C, D) float, IN
    in_steps : True or None, IN, from `shorts.may_be_short`
    labels : (n,) int32, IN/OUT, the nearest centre so far
    near : (n,) float, IN/OUT, squared distance to it
    """
    n_features = centres.shape[1]
    n_candidates = candidates.shape[1]
    n_pairs = 0 if in_steps is None else (n_features + 1) // 2
    around = np.empty((padded(n_candidates), n_features), points.dtype)
    around[:] = 0
    squares = np.empty(around.shape[0], points.dtype)
    short_around = np.empty((around.shape[0], n_pairs), np.float32)
    short_squares = np.empty(around.shape[0], np.int32)
    local = np.empty((POINTS, n_features), points.dtype)
    local_squares = np.empty(POINTS, points.dtype)
    blocks = np.empty((POINTS // LANES, n_features, LANES), points.dtype)
    pairs = np.empty((POINTS, n_pairs), np.float32)
    pair_blocks = np.empty((POINTS // LANES, n_pairs, LANES), np.float32)
    best = np.empty(LANES, points.dtype)
    short_best = np.empty(LANES, np.int32)
    found = np.empty(LANES, np.int32)
    ids = np.empty(POINTS, np.int32)
    distances = np.empty(POINTS, points.dtype)
    ready = -1
    for task in range(first, last):
        cell = task_cell[task]
        begin, end = task_start[task], task_start[task + 1]
        if end - begin <= ONE_BY_ONE:
            for i in range(begin, end):
                point = order[i]
                for k in range(n_candidates):
                    distance = squared_distance(points, point, centres, candidates[cell, k])
                    if distance < near[point]:
                        near[point] = distance
                        labels[point] = candidates[cell, k]
            continue
        origin = centres[candidates[cell, 0]]
        if cell != ready:
            local_rows(centres, candidates[cell], int(np.int64(0)), n_candidates, origin, around, squares)
            ready = cell
        for low in range(begin, end, POINTS):
            n = min(POINTS, end - low)
            local_rows(points, order, low, low + n, origin, local, local_squares)
            steps = 0.0
            if in_steps is not None:
                steps = steps_per_unit(n, local_squares, n_features, n_candidates)
            lay_rows(n, local, in_steps, steps, blocks, pairs, pair_blocks)
            assign(
                n, local, local_squares, in_steps, steps, blocks, pair_blocks, n_candidates, around, squares,
                short_around, short_squares, best, short_best, found, ids, distances, True,
            )  # fmt: skip
            for j in range(n):
                point = order[low + j]
                if distances[j] < near[point]:
                    near[point] = distances[j]
                    labels[point] = candidates[cell, ids[j]]
