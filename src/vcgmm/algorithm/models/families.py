"""Which variances a mixture may have, and the M-step's variances for each kind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Family:
    """A kind of mixture.

    Attributes
    ----------
    name : str
        As in `covariance_type`.
    by_feature : bool
        A variance for each feature, or one for all.
    shared : bool
        All clusters have the same.
    """

    name: str
    by_feature: bool
    shared: bool

    def n_squares(self, n_features: int) -> int:
        """V, how many variances a cluster has."""
        return n_features if self.by_feature else 1

    def variances(self, scatters: np.ndarray, masses: np.ndarray, n_features: int) -> np.ndarray:
        """The best variances for given sums of squares.

        Parameters
        ----------
        scatters : (C, V) float64
            sum_n gamma s_c (y - mu_c)^2; those of clusters without weight do not count.
        masses : (C,) float64
        n_features : int

        Returns
        -------
        (C, V) float64; 0 for clusters without weight, unless variances are shared
        """
        per = 1 if self.by_feature else n_features
        if self.shared:
            return np.tile(scatters.sum(axis=0) / (per * masses.sum()), (len(scatters), 1))
        return scatters / (per * np.where(masses > 0.0, masses, np.inf))[:, None]

    def covariances(self, variances: np.ndarray) -> np.ndarray:
        """Variances (C, V) in the shape in which users have them: (C,), (C, D), or (D,) if shared by feature."""
        if not self.by_feature:
            return variances[:, 0]
        return variances[0] if self.shared else variances

    def from_covariances(self, covariances: np.ndarray, n_clusters: int) -> np.ndarray:
        """The way back: (C, V)."""
        if not self.by_feature:
            return covariances[:, None]
        return np.tile(covariances, (n_clusters, 1)) if self.shared else covariances

    def n_parameters(self, n_clusters: int, n_features: int) -> int:
        """Free parameters among the variances."""
        return (1 if self.shared else n_clusters) * self.n_squares(n_features)


FAMILIES = {
    family.name: family
    for family in (
        Family("isotropic", by_feature=False, shared=True),
        Family("spherical", by_feature=False, shared=False),
        Family("diag", by_feature=True, shared=False),
        Family("tied_diag", by_feature=True, shared=True),
    )
}
