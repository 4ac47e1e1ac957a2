"""Local coordinates in files."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..algorithm.coreset.frame import Frame


def frame_parts(frame: Frame) -> tuple[dict[str, Any], np.ndarray]:
    """What of a frame stands in the header, and the array "frame.origin", (D,) float64."""
    return {"scale": frame.scale, "dtype": frame.dtype.name}, frame.origin


def frame_from(values: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> Frame:
    """A frame from its parts; raises KeyError, TypeError or ValueError where they are not what was written."""
    scale, dtype = float(values["scale"]), np.dtype(values["dtype"])
    if not 0.0 < scale < math.inf or dtype.name not in ("float32", "float64"):
        raise ValueError(f"scale={scale}, dtype={dtype}")
    return Frame(tensors["frame.origin"], scale, dtype)
