"""One step towards the nearest centre: from the centre where a point is to the nearest of those around it."""

from __future__ import annotations

import numpy as np

from .distances import local_rows, squared_distance
from .jit import kernel
from .nearest import POINTS, ROUND, update_nearest
from .transpose import transpose_rows

#: Up to so many points are compared with the candidates one by one: making a product ready costs more.
ONE_BY_ONE = 2


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
    labels : (n,) int32, IN/OUT, the nearest centre so far
    near : (n,) float, IN/OUT, squared distance to it
    """
    n_features = centres.shape[1]
    n_candidates = candidates.shape[1]
    around = np.empty((n_candidates, n_features), points.dtype)
    squares = np.empty(n_candidates, points.dtype)
    local = np.empty((POINTS, n_features), points.dtype)
    local_squares = np.empty(POINTS, points.dtype)
    flat_columns = np.empty(n_features * POINTS, points.dtype)
    flat_products = np.empty(n_candidates * POINTS, points.dtype)
    best = np.empty(POINTS, points.dtype)
    second = np.empty(POINTS, points.dtype)
    found = np.empty(POINTS, np.int32)
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
            high = min(low + POINTS, end)
            n = high - low
            width = (n + ROUND - 1) // ROUND * ROUND
            columns = flat_columns[: n_features * width].reshape(n_features, width)
            products = flat_products[: n_candidates * width].reshape(n_candidates, width)
            local_rows(points, order, low, high, origin, local, local_squares)
            transpose_rows(n, local, columns)
            np.dot(around, columns, products)
            best[:] = np.inf
            found[:] = 0
            update_nearest(0, squares, products, best, second, found)
            for j in range(n):
                point = order[low + j]
                distance = max(best[j] + local_squares[j], points.dtype.type(0))
                if distance < near[point]:
                    near[point] = distance
                    labels[point] = candidates[cell, found[j]]
