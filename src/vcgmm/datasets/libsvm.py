"""Files in LIBSVM format: a label, then `index:value` of the features that are not zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_svmlight_file


def read_libsvm(path: Path, n_features: int) -> np.ndarray:
    """The features of all rows as a dense array, (N, n_features) float32; labels are left out."""
    try:
        rows, _ = load_svmlight_file(str(path), n_features=n_features, dtype=np.float64, zero_based=False)
    except ValueError as error:
        raise ValueError(
            f"{path} is no file in LIBSVM format with features 1 to {n_features} ({error}): get it again."
        ) from None
    dense: np.ndarray = rows.toarray().astype(np.float32)
    return dense
