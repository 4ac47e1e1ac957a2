"""KDD Cup 2004, protein homology."""

from __future__ import annotations

import numpy as np

from .prepared import Folder, check_rows, find_file, prepared_or_none
from .tables import read_table

N_SAMPLES, N_FEATURES = 145_751, 74

#: Before the features: block, example, and whether the protein is homologous.
N_SKIPPED = 3


def load_kdd(folder: Folder = None) -> np.ndarray:
    """KDD Cup 2004, protein homology: 145,751 rows of 74 features, as in the paper.

    Parameters
    ----------
    folder : path-like, optional
        With `kdd.npy` (the features) or `bio_train.dat`.  Default: $VCGMM_DATA, or ~/.cache/vcgmm.

    Returns
    -------
    X : (N, 74) float32
    """
    prepared = prepared_or_none("kdd", folder, N_FEATURES)
    if prepared is not None:
        return prepared
    path = find_file(
        folder, ["bio_train.dat"], "the protein homology data of KDD Cup 2004 (data_kddcup04.tar.gz)",
        "https://osmot.cs.cornell.edu/kddcup/datasets.html",
    )  # fmt: skip
    X = read_table(path, N_SKIPPED + N_FEATURES, None, N_SKIPPED)
    check_rows(path, len(X), N_SAMPLES)
    return X
