"""cod-rna: detection of non-coding RNA."""

from __future__ import annotations

import numpy as np

from .libsvm import read_libsvm
from .prepared import Folder, check_rows, find_file, prepared_or_none

N_FEATURES = 8

#: The three files that make the set, and their rows: 488,565 in all.
FILES = {"cod-rna": 59_535, "cod-rna.t": 271_617, "cod-rna.r": 157_413}


def load_rna(folder: Folder = None) -> np.ndarray:
    """cod-rna, input sequence pairs: 488,565 rows of 8 features, as in the paper.

    Parameters
    ----------
    folder : path-like, optional
        With `rna.npy` (the features, of any number of rows) or `cod-rna`, `cod-rna.t` and `cod-rna.r`.  Default:
        $VCGMM_DATA, or ~/.cache/vcgmm.

    Returns
    -------
    X : (N, 8) float32
        The rows of the three files, one after the other.
    """
    prepared = prepared_or_none("rna", folder, N_FEATURES)
    if prepared is not None:
        return prepared
    pieces = []
    for name, n_samples in FILES.items():
        path = find_file(
            folder, [name], f"{name} in LIBSVM format",
            "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html",
        )  # fmt: skip
        pieces.append(read_libsvm(path, N_FEATURES))
        check_rows(path, len(pieces[-1]), n_samples)
    return np.concatenate(pieces)
