"""Clusters that have collapsed: dropped from the search, and sown again where the bound is worst."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .families import Family
from .mixture import Mixture
from .mstep import JointStatistics

#: A cluster that holds less than this share of an average point's weight is dropped …
LEAST_MASS = 1e-3

#: … and one with the smallest variances allowed in all features that holds less than so many points' weight: it
#: sits on a single one.
SPIKE_MASS = 1.5

#: Share of all clusters that may be dropped at once for that: their points make others wider.
MOST_SPIKES = 0.5

#: Only clusters with so many points' weight are split.
SPLIT_MASS = 4.0


def drop_collapsed(
    mixture: Mixture,
    masses: np.ndarray,
    family: Family,
    learned: bool,
    floor: np.ndarray,
    point_weight: float,
) -> Mixture:
    """A mixture without the clusters whose weight or variance has collapsed; they keep their means, with weight 0.

    Of those that sit on single points at most half of all clusters are dropped at once, the lightest first.

    Parameters
    ----------
    mixture : Mixture
        From an M-step.
    masses : (C,) float64
        R_c of the E-step before it.
    family : Family
    learned : bool
        Whether weights are learned.
    floor : (V,) float64
        Smallest variances.
    point_weight : float
        Mean weight of a point.
    """
    active = mixture.active
    lost = masses < LEAST_MASS * point_weight
    if not family.shared:
        spikes = active & (masses < SPIKE_MASS * point_weight) & (mixture.variances <= floor).all(axis=1)
        lightest = np.argsort(np.where(spikes, masses, np.inf), kind="stable")
        most = max(1, int(MOST_SPIKES * np.count_nonzero(active)))
        lost[lightest[: min(np.count_nonzero(spikes), most)]] = True
    lost[np.argmax(np.where(active, masses, -1.0))] = False  # one is always left
    stay = active & ~lost
    if (stay == active).all():
        return mixture
    weights = np.where(stay, masses if learned else 1.0, 0.0)
    return replace(mixture, weights=weights / weights.sum())


def sow_again(
    mixture: Mixture,
    statistics: JointStatistics,
    places: np.ndarray,
    learned: bool,
    point_weight: float,
    rng: np.random.Generator,
) -> tuple[Mixture, np.ndarray]:
    """Give dropped clusters a new start, each as a part of one of the clusters whose points have the worst bound.

    Parameters
    ----------
    mixture : Mixture
    statistics : JointStatistics
        Of the last E-step.
    places : (k,) int64
        Dropped clusters.
    learned : bool
        Whether weights are learned; else all are equal.
    point_weight : float
        Mean weight of a point.
    rng : numpy Generator

    Returns
    -------
    mixture : Mixture
        In which each of them, as far as there are clusters to split, has half of one's weight, its variance, and a
        mean drawn from it.
    places : (<= k,) int64
        Those that were given a start.
    """
    splittable = mixture.active & (statistics.cell_masses >= SPLIT_MASS * point_weight)
    per_weight = np.where(splittable, statistics.cell_bounds / np.maximum(statistics.cell_masses, 1e-300), np.inf)
    worst = np.argsort(per_weight, kind="stable")[: min(len(places), np.count_nonzero(splittable))]
    places = places[: len(worst)]
    means, variances, weights = mixture.means.copy(), mixture.variances.copy(), mixture.weights.copy()
    noise = rng.standard_normal((len(worst), means.shape[1]))
    means[places] = means[worst] + np.sqrt(variances[worst]) * noise
    variances[places] = variances[worst]
    weights[worst] /= 2
    weights[places] = weights[worst]
    if not learned:
        weights = np.where(weights > 0.0, 1.0, 0.0)
        weights = weights / weights.sum()
    return Mixture(means, variances, weights), places
