"""One step down from coarse centres to finer ones: points search only the list of the centre they are at."""

from __future__ import annotations

import numpy as np

from .distances import local_rows, transpose_rows
from .jit import kernel
from .nearest import ROUND, update_nearest

#: Points in one product.
BLOCK = 64


@kernel
def descend(
    first: int,
    last: int,
    task_cell: np.ndarray,
    task_start: np.ndarray,
    points: np.ndarray,
    order: np.ndarray,
    parents: np.ndarray,
    lists: np.ndarray,
    centres: np.ndarray,
    labels: np.ndarray,
) -> None:
    """The nearest centre on its parent's list for every point of tasks first..last-1.

    Parameters
    ----------
    first, last : int, IN
    task_cell : (n_tasks,) int32, IN, the parent whose points a task holds
    task_start : (n_tasks + 1,) int64, IN, task t holds the rows order[task_start[t]:task_start[t + 1]]
    points : (n, D) float, IN
    order : (n,) int64, IN
    parents : (P, D) float, IN, origins of the coordinates in which products are taken
    lists : (P, L) int32, IN, centres to search for the points of each parent
    centres : (C, D) float, IN
    labels : (n,) int32, OUT
    """
    n_listed, n_features = lists.shape[1], points.shape[1]
    near = np.empty((n_listed, n_features), points.dtype)
    near_squares = np.empty(n_listed, points.dtype)
    local = np.empty((BLOCK, n_features), points.dtype)
    local_squares = np.empty(BLOCK, points.dtype)
    flat_columns = np.empty(BLOCK * n_features, points.dtype)
    flat_products = np.empty(BLOCK * n_listed, points.dtype)
    best = np.empty(BLOCK, points.dtype)
    second = np.empty(BLOCK, points.dtype)
    found = np.empty(BLOCK, np.int32)
    cell = -1
    for task in range(first, last):
        if task_cell[task] != cell:
            cell = task_cell[task]
            local_rows(centres, lists[cell], 0, n_listed, parents[cell], near, near_squares)
        end = task_start[task + 1]
        for low in range(task_start[task], end, BLOCK):
            high = min(low + BLOCK, end)
            n = high - low
            width = (n + ROUND - 1) // ROUND * ROUND
            columns = flat_columns[: n_features * width].reshape(n_features, width)
            products = flat_products[: n_listed * width].reshape(n_listed, width)
            local_rows(points, order, low, high, parents[cell], local, local_squares)
            transpose_rows(n, local, columns)
            np.dot(near, columns, products)
            best[:] = np.inf
            second[:] = np.inf
            found[:] = 0
            update_nearest(0, near_squares, products, best, second, found)
            for j in range(n):
                labels[order[low + j]] = lists[cell, found[j]]
