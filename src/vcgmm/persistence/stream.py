"""Where a stream is, in a model file: how its points are divided, beside the points themselves in `coreset_`."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from ..algorithm.streams.stream import Stream
from .parameters import decode_number, encode_scalar

_INTEGERS = ("seed", "n_rows", "n_reductions")


def encode_stream(stream: Stream) -> dict[str, Any]:
    """A stream as JSON."""
    return {
        **{name: getattr(stream, name) for name in _INTEGERS},
        "levels": list(stream.levels),
        "lengths": list(stream.lengths),
        "scatter": encode_scalar("scatter", stream.scatter),
    }


def decode_stream(values: Mapping[str, Any], n_points: int) -> Stream:
    """A stream of which `n_points` are kept; raises anything where it is not what was written."""
    numbers = {name: int(decode_number(values[name], int)) for name in _INTEGERS}
    levels, lengths = (
        tuple(int(decode_number(value, int)) for value in values[name]) for name in ("levels", "lengths")
    )
    falling = all(a > b for a, b in pairwise(levels))
    if len(levels) != len(lengths) or sum(lengths) != n_points or not falling:
        raise ValueError(f"levels {levels} of lengths {lengths} are no stream of {n_points} points")
    if min((0, *levels, *numbers.values())) < 0 or min(lengths) < 1:
        raise ValueError("a number of the stream is negative")
    return Stream(**numbers, levels=levels, lengths=lengths, scatter=decode_number(values["scatter"], float))
