"""The two nearest of each point's first winners: its own cluster, and its rival, where it would go without."""

from __future__ import annotations

import numpy as np

from ..jit import kernel
from ..parts.distances import squared_distance

#: Winners that are looked at.  They are in order for the means that they were found with, and those have moved a
#: little since.
LOOKED_AT = 3


@kernel
def two_nearest(
    first: int,
    last: int,
    points: np.ndarray,
    winners: np.ndarray,
    means: np.ndarray,
    distances: np.ndarray,
) -> None:
    """Leave points first..last-1 with the nearest two of their first LOOKED_AT winners, the nearer one first.

    Parameters
    ----------
    points : (N', D) float, IN
    winners : (N', C') int32, IN/OUT, -1 where there is none, the first one always is
    means : (C, D) float, IN, of the points' type
    distances : (2, N') float, OUT, squared, to both; infinite to no rival
    """
    n_winners = winners.shape[1]
    for n in range(first, last):
        own, rival = winners[n, 0], np.int32(-1)
        near, far = squared_distance(points, n, means, own), points.dtype.type(np.inf)
        for k in range(1, min(n_winners, LOOKED_AT)):
            c = winners[n, k]
            if c < 0:
                continue
            distance = squared_distance(points, n, means, c)
            if distance < near:
                rival, far = own, near
                own, near = c, distance
            elif distance < far:
                rival, far = c, distance
        winners[n, 0] = own
        for k in range(1, n_winners):
            winners[n, k] = rival if k == 1 else -1
        distances[0, n] = near
        distances[1, n] = far
