"""Snapshots of a fit on the device, as those on the host, and back."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch

from ..algorithm.em import Fit
from ..algorithm.models.mixture import Mixture
from ..algorithm.snapshot import Snapshot
from .device.arrays import DeviceArray, on_host


def fit_on_host(fit: Fit) -> Fit:
    """A fit with all its arrays on the host."""
    return replace(
        fit,
        means=on_host(fit.means),
        masses=on_host(fit.masses),
        moves=None if fit.moves is None else on_host(fit.moves),
        mixture=fit.mixture and mixture_on_host(fit.mixture),
    )


def snapshot_on_host(snapshot: Snapshot) -> Snapshot:
    """A snapshot with all its arrays on the host; a search tells its state from there anyway."""
    best = snapshot.best
    return replace(
        snapshot,
        best=best and replace(best, fit=fit_on_host(best.fit)),
        fit=fit_on_host(snapshot.fit),
        means=on_host(snapshot.means),
        mixture=snapshot.mixture and mixture_on_host(snapshot.mixture),
    )


def on_device(snapshot: Snapshot, device: torch.device) -> Snapshot:
    """A snapshot of the host with the arrays that EM works on where the points are."""

    def put(array: np.ndarray) -> Any:
        return DeviceArray(torch.from_numpy(array).to(device))

    def put_mixture(mixture: Mixture | None) -> Mixture | None:
        return mixture and Mixture(put(mixture.means), put(mixture.variances), put(mixture.weights))

    fit = snapshot.fit
    there = replace(
        fit,
        means=put(fit.means),
        masses=put(fit.masses),
        moves=None if fit.moves is None else put(fit.moves),
        mixture=put_mixture(fit.mixture),
    )
    return replace(snapshot, fit=there, means=put(snapshot.means), mixture=put_mixture(snapshot.mixture))


def mixture_on_host(mixture: Mixture) -> Mixture:
    """A mixture with all its arrays on the host."""
    return Mixture(on_host(mixture.means), on_host(mixture.variances), on_host(mixture.weights))
