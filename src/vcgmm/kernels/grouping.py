"""Groups of neighbouring clusters, all of nearly one size, by a tree of random cuts.

Every node halves its clusters at the median of their projections onto the line between two of them that lie far
apart.  The cost is O(C D log C), and cuts drawn afresh each time leave no border closed for long.
"""

from __future__ import annotations

import numpy as np

from .distances import squared_distance
from .jit import kernel

#: Members looked at to find one far from a first.
PROBES = 8


@kernel
def halve(
    keys: np.ndarray,
    order: np.ndarray,
    low: int,
    middle: int,
    high: int,
) -> None:
    """Quickselect: reorder [low, high) so that keys before `middle` are no larger than those from it on."""
    high -= 1
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
    means: np.ndarray,
    uniforms: np.ndarray,
    depth: int,
    order: np.ndarray,
) -> None:
    """Reorder the clusters so that leaf k of 2^depth is order[C k / 2^depth : C (k + 1) / 2^depth].

    Parameters
    ----------
    means : (C, D) float, IN
    uniforms : (2^depth,) float64 in [0, 1), IN, one per inner node
    depth : int, IN
    order : (C,) int32, IN/OUT, a permutation of the clusters
    """
    n_clusters, n_features = means.shape
    keys = np.empty(n_clusters, means.dtype)
    for level in range(depth):
        n_nodes = 1 << level
        for node in range(n_nodes):
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
            for i in range(low, high):
                total = means.dtype.type(0)
                for d in range(n_features):
                    total += means[order[i], d] * (means[b, d] - means[a, d])
                keys[i] = total
            halve(keys, order, low, middle, high)
