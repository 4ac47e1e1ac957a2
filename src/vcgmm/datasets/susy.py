"""SUSY: collisions of particles."""

from __future__ import annotations

import numpy as np

from .prepared import Folder, check_rows, find_file, prepared_or_none
from .tables import read_table

N_SAMPLES, N_FEATURES = 5_000_000, 18


def load_susy(folder: Folder = None) -> np.ndarray:
    """SUSY, high-energy physics: 5,000,000 rows of 18 features, as in the paper.

    Parameters
    ----------
    folder : path-like, optional
        With `susy.npy` (the features), `SUSY.csv` or `SUSY.csv.gz`.  Default: $VCGMM_DATA, or ~/.cache/vcgmm.

    Returns
    -------
    X : (N, 18) float32
    """
    prepared = prepared_or_none("susy", folder, N_FEATURES)
    if prepared is not None:
        return prepared
    path = find_file(folder, ["SUSY.csv", "SUSY.csv.gz"], "SUSY", "https://archive.ics.uci.edu/dataset/279/susy")
    X = read_table(path, 1 + N_FEATURES, ",", 1)  # the class comes first
    check_rows(path, len(X), N_SAMPLES)
    return X
