"""What points are compared by: squared distances, or costs of clusters with weights and variances of their own."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from ...algorithm.cells.natural import Natural
from ...algorithm.models.families import Family
from ..device.arrays import as_tensor


@dataclass(frozen=True)
class Costs:
    """-log p(c, y) up to a constant: sum_d p_cd (y_d - mu_cd)^2 + q_c.

    Attributes
    ----------
    form : str
        As in `kernels.forms`: "cluster", "feature" or "own".
    precisions : float32 tensor
        (C,), (D,) of square roots, or (C, D), as the form says.
    offsets : (C,) float32 tensor
    variances, rates : (C, V) float32 tensor
        v, and p = 1 / (2 v), whatever the form: neighbours are ranked by them.
    """

    form: str
    precisions: torch.Tensor
    offsets: torch.Tensor
    variances: torch.Tensor
    rates: torch.Tensor

    @classmethod
    def of(cls, natural: Natural, family: Family, device: torch.device) -> Costs:
        """Those of a mixture of a family, whose numbers may be on the host or on the device."""
        variances, rates, offsets = (
            as_tensor(values, device).float().contiguous()
            for values in (natural.variances, natural.precisions, natural.offsets)
        )
        if not family.by_feature:
            return cls("cluster", rates.view(-1), offsets, variances, rates)
        if family.shared:
            return cls("feature", rates[0].sqrt(), offsets, variances, rates)
        return cls("own", rates, offsets, variances, rates)

    @staticmethod
    def parts(costs: Costs | None, unused: torch.Tensor) -> tuple[str, torch.Tensor, torch.Tensor]:
        """Form, precisions and offsets for a kernel; squared distances where there are no costs."""
        return ("distance", unused, unused) if costs is None else (costs.form, costs.precisions, costs.offsets)
