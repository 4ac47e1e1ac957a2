"""The prepared benchmark sets, and how many clusters are looked for in each."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

SETS = {"kdd": 500, "rna": 500, "cifar10": 500, "covtype": 2000, "glove50": 4000, "mnist": 1000}

#: CIFAR-10's training images come first.
CIFAR10_TRAIN = 50_000


def load(name: str) -> np.ndarray:
    """A set as it is fitted: of cifar10 the training images, with uniform noise in [0, 1) as the paper has it."""
    X = read(name)
    if name == "cifar10":
        noise = np.random.default_rng(0).random((CIFAR10_TRAIN, X.shape[1]), dtype=np.float32)
        return X[:CIFAR10_TRAIN] + noise
    return X


def read(name: str) -> np.ndarray:
    """$VCGMM_DATA/NAME.npy (default ~/.cache/vcgmm) in its own dtype, or the .npy file of that path."""
    if name.endswith(".npy"):
        path = Path(name)
    else:
        folder = Path(os.environ.get("VCGMM_DATA", "~/.cache/vcgmm")).expanduser()
        path = folder / f"{name}.npy"
    if not path.exists():
        raise SystemExit(
            f"{path} is missing: put the set there as an (N, D) array, or point VCGMM_DATA elsewhere."
        )
    X: np.ndarray = np.load(path)
    return X
