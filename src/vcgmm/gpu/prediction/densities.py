"""Log densities over all clusters, exact, in float64."""

from __future__ import annotations

import torch

from ..device.sizes import power_of_two
from ..kernels.densities import log_sums

#: Columns that a program takes at a time, at most.
AT_ONCE = 1024


def log_sum_of_joints(joints: torch.Tensor, sums: torch.Tensor) -> None:
    """Sums of exponentials, log sum_c exp(joint_c), of every row of joints (n, C) float64, into sums (n,)."""
    _launch(joints, joints, joints, sums, by_distance=False)


def log_sum_by_distance(
    rows: torch.Tensor, means: torch.Tensor, squares: torch.Tensor, rate: float, sums: torch.Tensor
) -> None:
    """Log densities but for a constant, log sum_c exp(-rate ||y - mu_c||^2) of every row.

    Parameters
    ----------
    rows : (n, D) float64 tensor
    means : (C, D) float64 tensor
    squares : (C,) float64 tensor
        ||mu_c||^2.
    rate : float
        1 / (2 sigma^2).
    sums : (n,) float64 tensor, overwritten
    """
    scaled = rate * rows  # a number that a kernel is given has 32 bits
    products = (2 * scaled) @ means.T
    _launch(products, rate * squares, (scaled * rows).sum(1), sums, by_distance=True)


def _launch(
    products: torch.Tensor,
    squares: torch.Tensor,
    row_squares: torch.Tensor,
    sums: torch.Tensor,
    *,
    by_distance: bool,
) -> None:
    n_rows, n_columns = products.shape
    columns = min(AT_ONCE, power_of_two(n_columns))
    log_sums[(n_rows,)](
        products, n_columns, squares, row_squares, sums,
        BY_DISTANCE=by_distance, COLUMNS=columns, num_warps=4 if columns > 128 else 1,
    )  # fmt: skip
