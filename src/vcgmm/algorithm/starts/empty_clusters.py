"""Clusters without points are put on points that lie far from their means."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

#: Points that are put in order at first; four times as many each time that they are not enough.
AT_FIRST = 256


def put_on_farthest(
    empty: np.ndarray,
    costs: np.ndarray,
    labels: np.ndarray,
    sizes: np.ndarray,
    row_of: Callable[[int], np.ndarray],
    means: np.ndarray,
) -> list[int]:
    """Put every empty cluster on the costliest point that is left.

    None is put on a point that equals another's, nor on the last one of another cluster.

    Parameters
    ----------
    empty : (k,) int
        Clusters.
    costs : (N',) float
        Weighted squared distance of every point to the mean of its cluster.
    labels : (N',) int32
        Changed where a cluster is put.
    sizes : (C,) int64
        Points of each cluster; changed likewise.
    row_of : callable
        A point (D,) by its place.
    means : (C, D) float64
        Those of the empty are written, as long as there are points for them.

    Returns
    -------
    list of int, the points' places
    """
    places: list[int] = []
    taken: set[bytes] = set()
    farthest = largest_first(costs)
    for cluster in empty:
        for place in farthest:
            if sizes[labels[place]] < 2:
                continue
            row = row_of(place)
            if row.tobytes() not in taken:
                break
        else:
            break  # no other point is left to stand on
        taken.add(row.tobytes())
        sizes[labels[place]] -= 1
        means[cluster], labels[place] = row, cluster
        places.append(place)
    return places


def largest_first(costs: np.ndarray) -> Iterator[int]:
    """Places of all costs (n,), largest first, equal ones as they lie; sorted only as far as is asked for."""
    keys = -costs  # NaN is the last of these as of costs, and no comparison finds it
    seen, n = np.zeros(len(keys), np.bool_), AT_FIRST
    while not seen.all():
        n = min(n, len(keys))
        most = np.partition(keys, n - 1)[n - 1]
        within = (keys <= most) | np.isnan(most)
        some = np.flatnonzero(within & ~seen)
        yield from some[np.argsort(keys[some], kind="stable")].tolist()
        seen, n = within, 4 * n
