"""The nearest of many, selected in registers."""

from __future__ import annotations

import triton
import triton.language as tl

#: Greater than every place on a list.
NOWHERE = tl.constexpr(0x7FFFFFFF)


@triton.jit
def select_nearest(distances, column, first, N_BEST: tl.constexpr, CENTRES: tl.constexpr, COLUMNS: tl.constexpr):
    """The N_BEST nearest of distances (P, CENTRES), nearest first: (P, COLUMNS) each of distances and of slots.

    What a distance is more than the least, less its last bits, and the place that it stands at are one number, and
    no two are equal: after those that were found, the next is the smallest one that is left.  So one subtraction
    and one comparison a value find each, all in registers.  The nearest is exact, and among equals the first; of
    the others, how much farther they are is known to a part in 2^16 at least with 128 places, which is also what
    they are ranked by.

    Parameters
    ----------
    distances : (P, CENTRES) float32, infinite for those that do not count
    column : (1, COLUMNS) int32
    first : int, the slot of the first
    """
    PLACES: tl.constexpr = CENTRES - 1
    least = tl.min(distances, axis=1)
    place = tl.arange(0, CENTRES).to(tl.uint32)
    more = (distances - least[:, None]).to(tl.uint32, bitcast=True)
    keys = (more & (0xFFFFFFFF - PLACES)) | place[None, :]
    taken = tl.zeros_like(least).to(tl.uint32)
    found = tl.full((distances.shape[0], COLUMNS), 0xFFFFFFFF, tl.uint32)
    for k in range(N_BEST):
        # Those below `taken` wrap round, and come last.
        taken += tl.min(keys - taken[:, None], axis=1)
        found = tl.where(column == k, taken[:, None], found)
        taken += 1
    rest = ((found & (0xFFFFFFFF - PLACES)) | (CENTRES // 2)).to(tl.float32, bitcast=True)
    far = found >= 0x7F800000
    nearest = tl.where(far, float("inf"), least[:, None] + rest)
    return nearest, tl.where(far, NOWHERE, first + (found & PLACES).to(tl.int32))


@triton.jit
def merge_nearest(distances, slots, best, places, column, N_BEST: tl.constexpr):
    """The N_BEST nearest of distances (P, K) in slots (P, K) and of best (P, K) in places (P, K), nearest first.

    Among equals the smallest slot comes first, so no order of evaluation shows.  One after the other the nearest
    is found and struck out.
    """
    found = tl.full(best.shape, float("inf"), tl.float32)
    found_places = tl.full(best.shape, NOWHERE, tl.int32)
    for k in range(N_BEST):
        least = tl.min(tl.minimum(distances, best), axis=1)[:, None]
        here = tl.where(distances == least, slots, NOWHERE)
        there = tl.where(best == least, places, NOWHERE)
        place = tl.min(tl.minimum(here, there), axis=1)[:, None]
        found = tl.where(column == k, least, found)
        found_places = tl.where(column == k, place, found_places)
        distances = tl.where(slots == place, float("inf"), distances)
        best = tl.where(places == place, float("inf"), best)
    return found, found_places
