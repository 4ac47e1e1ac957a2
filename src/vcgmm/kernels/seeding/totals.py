"""Sums over the points of each cluster."""

from __future__ import annotations

import numpy as np

from ..jit import kernel


@kernel
def add_by_label(
    labels: np.ndarray, weights: np.ndarray, values: np.ndarray, sums: np.ndarray, masses: np.ndarray
) -> None:
    """Add weights, and weights times values, to those of each point's label.

    Parameters
    ----------
    labels : (n, k) int32, IN, of which the first one counts; nobody's below 0
    weights : (n,) float64, IN
    values : (n,) float, IN
    sums, masses : (n_labels,) float64, IN/OUT
    """
    for i in range(labels.shape[0]):
        label = labels[i, 0]
        if label >= 0:
            sums[label] += weights[i] * values[i]
            masses[label] += weights[i]
