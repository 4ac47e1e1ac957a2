"""Centres of image-shaped data, as images."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .canvas import take_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Shade of the lines between images.
_LINE = 1.0


def plot_images(
    model: Any, shape: tuple[int, ...], ax: Axes | None = None, *, n_images: int = 144, aspect: float = 1.0
) -> Axes:
    """Draw centres as a sheet of images, from the largest cluster to the smallest.

    Parameters
    ----------
    model : VCGMM
        Fitted on flattened images.
    shape : tuple of int
        Of one image: (height, width), (height, width, channels), or (channels, height, width) where the colours
        come plane by plane, as in CIFAR-10. One, three or four channels.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure with `matplotlib.pyplot`.
    n_images : int, default=144
        The most images; of more clusters these are taken evenly from the large to the small.
    aspect : float, default=1.0
        About how many times as wide as high the sheet should be.

    Returns
    -------
    matplotlib.axes.Axes
    """
    means = model.means_
    _check_shape(shape, means.shape[1])
    if n_images < 1:
        raise ValueError(f"n_images={n_images!r} is not a positive number: give 1 or more.")
    ranked = np.argsort(-model.counts_, kind="stable")
    height, width = shape[1:] if _colours_first(shape) else shape[:2]
    columns = _columns(min(n_images, len(ranked)), aspect * height / width)
    if n_images < len(ranked):
        n_images -= n_images % columns  # a sheet of some of them need not have a gap at its end
    chosen = ranked[np.unique(np.linspace(0, len(ranked) - 1, min(n_images, len(ranked))).round().astype(int))]
    sheet = _sheet(_to_unit(_as_images(means[chosen], shape)), columns)
    ax = take_axes(ax, 8, 8)
    if sheet.shape[2] == 1:
        ax.imshow(sheet[..., 0], cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
    else:
        ax.imshow(sheet, interpolation="nearest")
    ax.set_axis_off()
    shown = "all" if len(chosen) == len(means) else f"{len(chosen):,} of"
    ax.set_title(f"{shown} {len(means):,} centres, largest clusters first", fontsize="medium")
    return ax


def _check_shape(shape: tuple[int, ...], n_features: int) -> None:
    text = "x".join(map(str, shape))
    if len(shape) not in (2, 3) or min(shape) < 1:
        raise ValueError(
            f"An image of shape {text} cannot be drawn: give height x width, with channels or without."
        )
    if math.prod(shape) != n_features:
        raise ValueError(
            f"An image of shape {text} has {math.prod(shape)} values, but the model has {n_features} features."
        )
    if len(shape) == 3 and shape[2] not in (1, 3, 4) and shape[0] not in (1, 3, 4):
        raise ValueError(f"An image of shape {text} has no channels: 1, 3 or 4 must come first or last.")


def _as_images(rows: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Rows (n, D) as (n, height, width, channels)."""
    if len(shape) == 2:
        return rows.reshape(-1, *shape, 1)
    images = rows.reshape(-1, *shape)
    return images.transpose(0, 2, 3, 1) if _colours_first(shape) else images


def _colours_first(shape: tuple[int, ...]) -> bool:
    """Whether an image comes plane by plane."""
    return len(shape) == 3 and shape[2] not in (1, 3, 4)


def _to_unit(images: np.ndarray) -> np.ndarray:
    """Values from 0 to 1: fractions and bytes as they are meant, all others from the smallest to the largest."""
    low, high = float(images.min()), float(images.max())
    if low >= 0.0 and high <= 1.0:
        return images
    if low >= 0.0 and 127.5 < high <= 255.0:  # the brightest of bytes reach half of their range
        return images / 255.0
    return (images - low) / (high - low or 1.0)


def _columns(n: int, aspect: float) -> int:
    """How many of n images stand side by side, for about this aspect in images, and few gaps at the end."""
    ideal = min(float(n), max(1.0, math.sqrt(aspect * n)))

    def cost(columns: int) -> float:
        return -n % columns / n + 0.3 * abs(math.log(columns / ideal))

    return min(range(max(1, int(0.75 * ideal)), min(n, math.ceil(1.34 * ideal)) + 1), key=cost)


def _sheet(images: np.ndarray, columns: int) -> np.ndarray:
    """Images (n, h, w, c) side by side, with lines between them and empty places at the end."""
    n, height, width, channels = images.shape
    rows = -(-n // columns)
    sheet = np.full((rows * (height + 1) - 1, columns * (width + 1) - 1, channels), _LINE)
    for i, image in enumerate(images):
        y, x = divmod(i, columns)
        sheet[y * (height + 1) :, x * (width + 1) :][:height, :width] = image
    return sheet
