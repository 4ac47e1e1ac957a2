"""Tolerances that hold wherever fits run."""

from __future__ import annotations

from vcgmm import VCGMM

#: What is left of them on a GPU, which computes in float32.
FLOAT32 = 1e-4


def digits(tolerance: float) -> float:
    """A tolerance of float64, or what a GPU leaves of it where tests fit on one (--device)."""
    return tolerance if VCGMM().device == "cpu" else max(tolerance, FLOAT32)
