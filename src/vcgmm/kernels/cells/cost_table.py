"""Costs of every cluster of a pool for each of some members, tile by tile in registers, a member's in a row.

OpenBLAS has half of its speed or less for so few members, and gives its products the other way round than a list
is chosen from.  As in `survey`, sums of a tile stay in registers while the features go by; here a vector is of
clusters of the pool, and every number of a tile's members meets it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
from llvmlite import ir
from numba import config
from numba.core import types
from numba.extending import intrinsic

from ..jit import part
from ..parts.transpose import transpose
from ..parts.vectors import HEIGHT, VECTOR_BYTES, VECTORS, Vectors, lanes


def _emit(vectors: int, context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """A loop over tiles of members, for some vectors of clusters."""
    v = Vectors(context, builder, signature.args[0].dtype)
    members, columns, norms, constants, table = (
        v.array(kind, value) for kind, value in zip(signature.args[:5], arguments[:5], strict=True)
    )
    here = [v.index(k * v.width) for k in range(vectors)]
    places = [v.beyond(arguments[5], k * v.width) for k in range(vectors)]
    single = ir.VectorType(ir.FloatType(), v.width)
    zero, minus_two = v.constant(0.0), v.constant(-2.0)
    own = [v.load(constants, None, place) for place in places]

    def costs_of_tile(first: Any, _: list[Any]) -> list[Any]:
        rows = [v.beyond(first, r) for r in range(HEIGHT)]
        sums = v.tile(members, rows, columns, here)
        for r, row in enumerate(rows):
            norm = v.loaded_spread(norms, None, row)
            for k, place in enumerate(places):
                cost = v.greatest(v.multiply_add(sums[r][k], minus_two, builder.fadd(own[k], norm)), zero)
                v.store(cost if v.kind == single else builder.fptrunc(cost, single), table, row, place)
        return []

    v.loop(builder.extract_value(members.shape, 0), HEIGHT, [], costs_of_tile)
    return context.get_dummy_value()


def _compiled(vectors: int) -> Any:
    """A table of so many vectors' columns, as numba wants an intrinsic."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _emit(vectors, context, builder, signature, arguments)

    def typed(
        _typing: Any, members: Any, columns: Any, norms: Any, constants: Any, table: Any, _place: Any
    ) -> Any:
        return types.void(members, columns, norms, constants, table, types.int64), emit

    return intrinsic(typed)


def _plain(vectors: int) -> Callable[..., None]:
    """The same in plain Python."""

    def fill_tiles(
        members: np.ndarray, columns: np.ndarray, norms: np.ndarray, constants: np.ndarray, table: np.ndarray,
        place: int,
    ) -> None:  # fmt: skip
        here = slice(place, place + vectors * lanes(members.itemsize))
        with np.errstate(all="ignore"):  # whatever lies beyond the last
            table[: len(members), here] = np.maximum(constants[here] + norms[:, None] - 2 * (members @ columns), 0)

    return fill_tiles


#: fill_tiles(members, columns, norms, constants, table, place): for the clusters place.., one vector of them or
#: VECTORS.  Nobody checks that arrays are large enough.
_one_vector, _some_vectors = (
    (_plain if cast("Any", config).DISABLE_JIT else _compiled)(vectors) for vectors in (1, VECTORS)
)


@part
def cost_table(
    n: int,
    rows: np.ndarray,
    constants: np.ndarray,
    members: np.ndarray,
    norms: np.ndarray,
    scratch: np.ndarray,
    table: np.ndarray,
) -> None:
    """table[j, i] = max(constants[i] + norms[j] - 2 <rows[i], members[j]>, 0) for i < n, and anything beyond.

    Parameters
    ----------
    n : int, IN, clusters
    rows : (>= n, K) float, IN, whatever lies beyond, up to a multiple of `vectors.lanes`
    constants : (>= n,) float, IN, likewise
    members : (m, K) float, IN, m a multiple of `vectors.ROWS`
    norms : (m,) float, IN
    scratch : (>= VECTORS lanes K,) float
    table : (m, >= n) float32, OUT, with room for a multiple of `vectors.lanes`
    """
    width, n_statistics = VECTOR_BYTES // rows.itemsize, rows.shape[1]
    for i in range(0, n, VECTORS * width):
        n_columns = VECTORS * width if n - i > width else width
        columns = scratch[: n_statistics * n_columns].reshape(n_statistics, n_columns)
        transpose(n_columns, rows[i:], int(np.int64(0)), columns)
        if n_columns > width:
            _some_vectors(members, columns, norms, constants, table, i)
        else:
            _one_vector(members, columns, norms, constants, table, i)
