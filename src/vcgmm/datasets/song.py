"""SONG: features of songs, from the Million Song Dataset."""

from __future__ import annotations

import numpy as np

from .prepared import Folder, check_rows, find_file, prepared_or_none
from .tables import read_table

N_SAMPLES, N_FEATURES = 515_345, 90


def load_song(folder: Folder = None) -> np.ndarray:
    """SONG (YearPredictionMSD): 515,345 rows of 90 features, as in the paper.

    Parameters
    ----------
    folder : path-like, optional
        With `song.npy` (the features) or `YearPredictionMSD.txt`.  Default: $VCGMM_DATA, or ~/.cache/vcgmm.

    Returns
    -------
    X : (N, 90) float32
    """
    prepared = prepared_or_none("song", folder, N_FEATURES)
    if prepared is not None:
        return prepared
    path = find_file(
        folder, ["YearPredictionMSD.txt"], "YearPredictionMSD",
        "https://archive.ics.uci.edu/dataset/203/yearpredictionmsd",
    )  # fmt: skip
    X = read_table(path, 1 + N_FEATURES, ",", 1)  # the year comes first
    check_rows(path, len(X), N_SAMPLES)
    return X
