"""Colour quantisation: a photograph in a few colours.

Every pixel is a point in the cube of red, green and blue; the palette is the means of a mixture fitted to them,
and a pixel takes the colour of its nearest mean.

    python examples/colour_quantisation.py --colours 16 64 --output china.png

needs matplotlib and Pillow. The photograph is one that comes with scikit-learn.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_sample_image

from vcgmm import VCGMM


def quantise(image: np.ndarray, n_colours: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Find a palette for an image and the place of every pixel in it.

    Parameters
    ----------
    image : (height, width, 3) uint8
    n_colours : int
    seed : int

    Returns
    -------
    palette : (n_colours, 3) uint8
    places : (height, width) int32
    """
    pixels = image.reshape(-1, 3)
    model = VCGMM(n_components=n_colours, random_state=seed).fit(pixels)
    return model.means_.round().astype(np.uint8), model.predict(pixels).reshape(image.shape[:2])


def psnr(image: np.ndarray, other: np.ndarray) -> float:
    """Peak signal-to-noise ratio in decibels; higher is closer."""
    error = np.mean((image.astype(float) - other) ** 2)
    return float(10 * np.log10(255**2 / error))


def main(arguments: list[str] | None = None) -> None:
    """Quantise the photograph with each number of colours, print what it cost, and draw the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--colours", type=int, nargs="+", default=[16, 64], help="sizes of palettes")
    parser.add_argument("--shrink", type=int, default=1, help="take every so many-th pixel")
    parser.add_argument("--output", type=Path, default=Path("colours.png"))
    options = parser.parse_args(arguments)

    image = load_sample_image("china.jpg")[:: options.shrink, :: options.shrink]
    n_before = len(np.unique(image.reshape(-1, 3), axis=0))
    print(f"{image.shape[1]} × {image.shape[0]} pixels in {n_before:,} colours")

    pictures = {f"{n_before:,} colours": image}
    for n_colours in options.colours:
        begun = time.perf_counter()
        palette, places = quantise(image, n_colours)
        seconds = time.perf_counter() - begun
        pictures[f"{n_colours} colours"] = palette[places]
        print(f"{n_colours:4} colours: {psnr(image, palette[places]):.1f} dB in {seconds:.2f} s")

    figure = Figure(figsize=(4.2 * len(pictures), 3.1), layout="constrained")
    for place, (title, picture) in enumerate(pictures.items(), 1):
        ax = figure.add_subplot(1, len(pictures), place)
        ax.imshow(picture)
        ax.set_title(title)
        ax.set_axis_off()
    figure.savefig(options.output, dpi=90)
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
