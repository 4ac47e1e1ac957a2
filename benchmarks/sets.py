"""The prepared benchmark sets, and how many clusters are looked for in each."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

SETS = {"kdd": 500, "rna": 500, "covtype": 2000, "glove50": 4000, "mnist": 1000}


def load(name: str) -> np.ndarray:
    """$VCGMM_DATA/NAME.npy (default ~/.cache/vcgmm), in its own dtype."""
    folder = Path(os.environ.get("VCGMM_DATA", "~/.cache/vcgmm")).expanduser()
    path = folder / f"{name}.npy"
    if not path.exists():
        raise SystemExit(
            f"{path} is missing: put the set there as an (N, D) array, or point VCGMM_DATA elsewhere."
        )
    return np.load(path)
