"""Groups of neighbouring clusters, all of nearly one size, by a tree of random cuts.

Every node halves its clusters at the median of their projections onto the line between two of them that lie far
apart.  The cost is O(C D log C), and cuts drawn afresh each time leave no border closed for long.
"""

from __future__ import annotations

import numpy as np

from ..jit import kernel, part
from ..parts.distances import squared_distance

#: Members looked at to find one far from a first.
PROBES = 8


@part
def halve(keys: np.ndarray, order: np.ndarray, middle: int) -> None:
    """Quickselect: reorder both so that keys before `middle` are no larger than those from it on.

    There are as many keys as `order` is long; what follows in `keys` is left alone.
    """
    low, high = int(np.int64(0)), order.shape[0] - 1
    while low < high:
        pivot = keys[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                order[i], order[j] = order[j], order[i]
                i += 1
                j -= 1
        if middle <= j:
            high = j
        elif middle >= i:
            low = i
        else:
            return


@kernel
def random_cuts(
    first: int,
    last: int,
    level: int,
    means: np.ndarray,
    uniforms: np.ndarray,
    order: np.ndarray,
) -> None:
    """Halve nodes first..last-1 of the 2^level on a level: node k is order[C k / 2^level : C (k + 1) / 2^level].

    Parameters
    ----------
    first, last, level : int, IN
    means : (C, D) float, IN
    uniforms : (>= 2^(level + 1) - 1,) float64 in [0, 1), IN, one per node, level by level
    order : (C,) int32, IN/OUT, a permutation of the clusters
    """
    n_clusters, n_features = means.shape
    keys = np.empty(n_clusters // (1 << level) + 1, means.dtype)
    n_nodes = 1 << level
    for node in range(first, last):
        low = n_clusters * node // n_nodes
        high = n_clusters * (node + 1) // n_nodes
        middle = n_clusters * (2 * node + 1) // (2 * n_nodes)
        size = high - low
        pick = np.int64(uniforms[n_nodes + node - 1] * size)
        a = order[low + pick]
        b = a
        farthest = means.dtype.type(-1)
        for probe in range(PROBES):
            other = order[low + (pick + 1 + probe * size // PROBES) % size]
            distance = squared_distance(means, a, means, other)
            if distance > farthest:
                farthest = distance
                b = other
        for i in range(size):
            total = means.dtype.type(0)
            for d in range(n_features):
                total += means[order[low + i], d] * (means[b, d] - means[a, d])
            keys[i] = total
        halve(keys, order[low:high], middle - low)
