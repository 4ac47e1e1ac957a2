"""All that steers a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Settings:
    """All that steers a fit, validated and clipped to the problem; names as in the estimator."""

    n_components: int
    coreset_size: int | None
    truncation: int
    n_neighbors: int
    n_explore: int
    search: str
    n_candidates: int
    init: str | np.ndarray
    chain_length: int
    n_warmup: int
    tol: float
    max_iter: int
    relaxation: float
    n_init: int
    refine: int
    reg_covar: float
    initial_variance: float | None
    seed: int
    dtype: np.dtype[Any]
    covariance_type: str = "isotropic"
    mixing: str = "equal"
    n_shared: int = 0
    reassign: bool = False
    metric: str = "euclidean"

    @property
    def is_shared(self) -> bool:
        """The paper's model: one variance and equal weights."""
        return self.covariance_type == "isotropic" and self.mixing == "equal"
