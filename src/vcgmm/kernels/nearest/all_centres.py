"""Exact nearest centres by matrix products.

A product finds the nearest up to rounding; whenever two centres are closer to a tie than rounding can tell, the
point is compared with every centre directly.  So the answer is that of direct distances.  Products of short
integers come first where they may tell (`two_nearest`), and those of floats for what they leave in doubt.
"""

from __future__ import annotations

import math

import numpy as np

from ..jit import kernel, part
from ..parts.distances import squared_distance
from ..parts.selection import LANES
from ..parts.transpose import transpose_rows
from .two_nearest import look

#: Points and centres in one product: of this size OpenBLAS multiplies up to 80 features without packing them.
POINTS = 128
CENTRES = 96

#: Blocks of points are filled up with zeros to a multiple of this: OpenBLAS is half as fast at sizes in between.
ROUND = 32

#: Points that are looked at in short integers at a time, and the share of those before that has to be certain.
LOOKED_AT = 4 * LANES
WORTH_LOOKING = 0.6

#: Centres compared in one go over the points, so that the nearest so far is read and written once for all of them.
AT_ONCE = 4


def product_slack(dtype: np.dtype, n_features: int) -> float:
    """Share of ||y||^2 + ||mu||^2 by which a distance from a product may be off."""
    return float(np.finfo(dtype).eps) * (8 + 2 * math.sqrt(n_features))


@kernel
def squared_norms(
    rows: np.ndarray,
    out: np.ndarray,
) -> None:
    """out[i] = ||rows[i]||^2."""
    for i in range(rows.shape[0]):
        total = out.dtype.type(0)
        for d in range(rows.shape[1]):
            total += rows[i, d] * rows[i, d]
        out[i] = total


@part
def update_nearest(
    low: int,
    centre_squares: np.ndarray,
    products: np.ndarray,
    best: np.ndarray,
    second: np.ndarray,
    ids: np.ndarray,
) -> None:
    """A tile of centres from centre `low` on: the smallest ||mu||^2 - 2 y mu, its centre, the runner-up."""
    n_centres, n_points = products.shape
    whole = n_centres - n_centres % AT_ONCE
    for i in range(0, whole, AT_ONCE):
        square0, square1 = centre_squares[low + i], centre_squares[low + i + 1]
        square2, square3 = centre_squares[low + i + 2], centre_squares[low + i + 3]
        centre0, centre1 = np.int32(low + i), np.int32(low + i + 1)
        centre2, centre3 = np.int32(low + i + 2), np.int32(low + i + 3)
        for j in range(n_points):
            nearest = best[j]
            runner_up = second[j]
            centre = ids[j]
            value = square0 - (products[i, j] + products[i, j])
            runner_up = min(runner_up, max(value, nearest))
            centre = centre0 if value < nearest else centre
            nearest = min(value, nearest)
            value = square1 - (products[i + 1, j] + products[i + 1, j])
            runner_up = min(runner_up, max(value, nearest))
            centre = centre1 if value < nearest else centre
            nearest = min(value, nearest)
            value = square2 - (products[i + 2, j] + products[i + 2, j])
            runner_up = min(runner_up, max(value, nearest))
            centre = centre2 if value < nearest else centre
            nearest = min(value, nearest)
            value = square3 - (products[i + 3, j] + products[i + 3, j])
            runner_up = min(runner_up, max(value, nearest))
            centre = centre3 if value < nearest else centre
            nearest = min(value, nearest)
            best[j] = nearest
            second[j] = runner_up
            ids[j] = centre
    for i in range(whole, n_centres):
        square = centre_squares[low + i]
        centre = np.int32(low + i)
        for j in range(n_points):
            value = square - (products[i, j] + products[i, j])
            nearest = best[j]
            second[j] = min(second[j], max(value, nearest))
            ids[j] = centre if value < nearest else ids[j]
            best[j] = min(value, nearest)


@part
def settle(
    n: int,
    which: np.ndarray,
    points: np.ndarray,
    centres: np.ndarray,
    centre_squares: np.ndarray,
    slack: float,
    rows: np.ndarray,
    flat_columns: np.ndarray,
    flat: np.ndarray,
    best: np.ndarray,
    second: np.ndarray,
    found: np.ndarray,
    ids: np.ndarray,
    distances: np.ndarray,
) -> None:
    """The nearest centres of n <= POINTS points, by products of floats; arguments as in `nearest_centre`.

    Parameters
    ----------
    which : (>= n,) int64, IN, the points
    rows : (POINTS, D) float, scratch
    flat_columns : (D POINTS,) float, scratch
    flat : (CENTRES POINTS,) float, scratch
    best, second, found : (POINTS,) float, float and int32, scratch
    """
    n_centres, n_features = centres.shape
    width = (n + ROUND - 1) // ROUND * ROUND
    columns = flat_columns[: n_features * width].reshape(n_features, width)
    for j in range(n):
        for d in range(n_features):
            rows[j, d] = points[which[j], d]
    transpose_rows(n, rows, columns)
    best[:] = np.inf
    second[:] = np.inf
    found[:] = 0
    for low in range(0, n_centres, CENTRES):
        m = min(CENTRES, n_centres - low)
        products = flat[: m * width].reshape(m, width)
        np.dot(centres[low : low + m], columns, products)
        update_nearest(low, centre_squares, products, best, second, found)
    for j in range(n):
        point = which[j]
        centre = found[j]
        square = 0.0
        for d in range(n_features):
            square += points[point, d] * points[point, d]
        distance = squared_distance(points, point, centres, centre)
        if second[j] - best[j] <= 4 * slack * (square + max(centre_squares[centre], distance)):
            for c in range(n_centres):
                direct = squared_distance(points, point, centres, c)
                if direct < distance or (direct == distance and c < centre):
                    distance = direct
                    centre = np.int32(c)
        ids[point] = centre
        distances[point] = distance


@kernel
def nearest_centre(
    first: int,
    last: int,
    points: np.ndarray,
    centres: np.ndarray,
    centre_squares: np.ndarray,
    slack: float,
    steps: float,
    short_centres: np.ndarray,
    short_squares: np.ndarray,
    way_of_centres: float,
    ids: np.ndarray,
    distances: np.ndarray,
) -> None:
    """The nearest centre of points first..last-1 and its squared distance, computed directly.

    Parameters
    ----------
    points : (n, D) float, IN
    centres : (C, D) float, IN
    centre_squares : (C,) float, IN
    slack : float, IN, from `product_slack`
    steps : float64, IN, a unit's in short integers; 0 where there are none
    short_centres, short_squares, way_of_centres : IN, from `two_nearest.round_centres`
    ids : (n,) int32, OUT, the lowest index among equally near centres
    distances : (n,) float, OUT
    """
    n_features = centres.shape[1]
    flat = np.empty(CENTRES * POINTS, points.dtype)
    flat_columns = np.empty(n_features * POINTS, points.dtype)
    rows = np.empty((POINTS, n_features), points.dtype)
    best = np.empty(POINTS, points.dtype)
    second = np.empty(POINTS, points.dtype)
    found = np.empty(POINTS, np.int32)
    which = np.empty(POINTS, np.int64)
    n_pairs = short_centres.shape[1]
    squares = np.empty(LOOKED_AT, points.dtype)
    pairs = np.empty((LOOKED_AT, n_pairs), np.float32)
    columns = np.empty((LOOKED_AT // LANES, n_pairs, LANES), np.float32)
    near = np.empty((2, LOOKED_AT), np.int32)
    guesses = np.empty(LOOKED_AT, np.int32)
    certain = np.empty(LOOKED_AT, np.bool_)
    n_waiting, n_seen, n_certain = int(np.int64(0)), 0, 0
    for begin in range(first, last, LOOKED_AT):
        n = min(LOOKED_AT, last - begin)
        looks = steps > 0.0 and n_certain >= WORTH_LOOKING * n_seen
        if looks:
            here = points[begin : begin + n]
            squared_norms(here, squares)
            n_seen += n
            n_certain += look(
                n, here, squares, steps, short_centres, short_squares, way_of_centres, pairs, columns, near[0],
                near[1], guesses, certain,
            )  # fmt: skip
        for j in range(n):
            point = begin + j
            if looks and certain[j]:
                ids[point] = guesses[j]
                distances[point] = squared_distance(points, point, centres, guesses[j])
                continue
            which[n_waiting] = point
            n_waiting += 1
            if n_waiting == POINTS:
                settle(
                    n_waiting, which, points, centres, centre_squares, slack, rows, flat_columns, flat, best,
                    second, found, ids, distances,
                )  # fmt: skip
                n_waiting = int(np.int64(0))
    settle(
        n_waiting, which, points, centres, centre_squares, slack, rows, flat_columns, flat, best, second, found,
        ids, distances,
    )  # fmt: skip


@part
def insert_smaller(
    value: float,
    index: int,
    values: np.ndarray,
    indices: np.ndarray,
) -> None:
    """Put (value, index) into an ascending list if it is smaller than its last."""
    place = values.shape[0] - 1
    if value >= values[place]:
        return
    while place > 0 and values[place - 1] > value:
        values[place] = values[place - 1]
        indices[place] = indices[place - 1]
        place -= 1
    values[place] = value
    indices[place] = index


@kernel
def nearest_centres(
    first: int,
    last: int,
    points: np.ndarray,
    centres: np.ndarray,
    centre_squares: np.ndarray,
    slack: float,
    ids: np.ndarray,
    distances: np.ndarray,
) -> None:
    """The k nearest centres of points first..last-1, nearest first, with direct squared distances.

    Parameters as in `nearest_centre`, with `ids` and `distances` of shape (n, k).
    """
    n_centres = centres.shape[0]
    k = ids.shape[1]
    spare = min(k + 1, n_centres)
    flat = np.empty(CENTRES * POINTS, points.dtype)
    values = np.empty((POINTS, spare), points.dtype)
    found = np.empty((POINTS, spare), np.int32)
    direct_values = np.empty(k, points.dtype)
    direct_ids = np.empty(k, np.int32)
    for begin in range(first, last, POINTS):
        n = min(POINTS, last - begin)
        values[:] = np.inf
        found[:] = 0
        for low in range(0, n_centres, CENTRES):
            m = min(CENTRES, n_centres - low)
            products = flat[: n * m].reshape(n, m)
            np.dot(points[begin : begin + n], centres[low : low + m].T, products)
            for j in range(n):
                for i in range(m):
                    value = centre_squares[low + i] - (products[j, i] + products[j, i])
                    if value < values[j, spare - 1]:
                        insert_smaller(value, low + i, values[j], found[j])
        for j in range(n):
            point = begin + j
            square = 0.0
            for d in range(points.shape[1]):
                square += points[point, d] * points[point, d]
            reach = max(centre_squares[found[j, k - 1]], values[j, k - 1] + square)
            certain = spare == k or values[j, k] - values[j, k - 1] > 4 * slack * (square + reach)
            direct_values[:] = np.inf
            direct_ids[:] = 0
            for i in range(k if certain else n_centres):
                centre = found[j, i] if certain else i
                insert_smaller(squared_distance(points, point, centres, centre), centre, direct_values, direct_ids)
            for i in range(k):
                ids[point, i] = direct_ids[i]
                distances[point, i] = direct_values[i]


@kernel
def log_sum_joint(
    first: int,
    last: int,
    points: np.ndarray,
    centres: np.ndarray,
    centre_squares: np.ndarray,
    precision: float,
    out: np.ndarray,
) -> None:
    """out[n] = log sum_c exp(-||y_n - mu_c||^2 precision) over all centres, for points first..last-1.

    In float64 and with the coordinates' origin in the middle of the data.
    """
    n_centres = centres.shape[0]
    step = POINTS  # halved, so that blocks lie the same whatever range is asked for
    while step > 1 and step * n_centres > 1 << 19:
        step //= 2
    flat = np.empty(n_centres * step, points.dtype)
    for begin in range(first, last, step):
        n = min(step, last - begin)
        products = flat[: n * n_centres].reshape(n, n_centres)
        np.dot(points[begin : begin + n], centres.T, products)
        for j in range(n):
            point = begin + j
            square = 0.0
            for d in range(points.shape[1]):
                square += points[point, d] * points[point, d]
            nearest = np.inf
            for c in range(n_centres):
                value = centre_squares[c] - 2 * products[j, c]
                products[j, c] = value
                nearest = min(nearest, value)
            total = 0.0
            for c in range(n_centres):
                exponent = (nearest - products[j, c]) * precision
                if exponent > -45.0:
                    total += math.exp(exponent)
            out[point] = math.log(total) - max(nearest + square, 0.0) * precision
