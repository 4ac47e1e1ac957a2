"""Sets of other shapes, made of the prepared ones.

    python benchmarks/derived.py FOLDER                            # all of them
    python benchmarks/derived.py FOLDER --sets descriptors pairs   # some
    python benchmarks/peers.py --sets FOLDER/descriptors.npy:4000 --seeds 2 --budget 12 --patience 3

A made-up mixture has clusters that real rows do not have.  These are real rows, in numbers, widths and shapes that
the six sets do not cover: small samples, low-dimensional patches in great number, histograms of gradients as in
SIFT, features of images and of words as neural networks make them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from rich.console import Console
from rich.progress import track
from sets import CIFAR10_TRAIN, load, read

#: Images that are looked at together.
BATCH = 500

Rng = np.random.Generator


def sample(name: str, n_rows: int, rng: Rng) -> np.ndarray:
    """Rows of a set, drawn without replacement, in float32."""
    X = load(name)
    return np.asarray(X[rng.choice(len(X), n_rows, replace=False)], dtype=np.float32)


def words() -> np.ndarray:
    """All of glove50, (400,000, 50), row by row."""
    return np.ascontiguousarray(load("glove50"), dtype=np.float32)


def of_length_one(X: np.ndarray) -> np.ndarray:
    """Rows divided by their norms; rows of zeros stay."""
    norms = np.linalg.norm(X, axis=1, keepdims=True)
    return X / np.where(norms > 0, norms, 1)


def images() -> np.ndarray:
    """CIFAR-10's training images without the paper's noise, (50,000, 3, 32, 32), float32."""
    return read("cifar10")[:CIFAR10_TRAIN].astype(np.float32).reshape(CIFAR10_TRAIN, 3, 32, 32)


def batches(X: np.ndarray) -> Iterator[np.ndarray]:
    """BATCH rows after BATCH rows."""
    for first in range(0, len(X), BATCH):
        yield X[first : first + BATCH]


def corners(n_images: int, each: int, extent: int, rng: Rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Image, row and column of `each` windows an image, indices of shape (n_images, each) to be broadcast."""
    rows, columns = rng.integers(extent, size=(2, n_images, each))
    return np.arange(n_images)[:, None], rows, columns


# ---------------------------------------------------------------------------------------------------------
# Small samples
# ---------------------------------------------------------------------------------------------------------


def unit_words(rng: Rng) -> np.ndarray:
    """30,000 word vectors of length one."""
    return of_length_one(sample("glove50", 30_000, rng))


def digits_in_directions(rng: Rng) -> np.ndarray:
    """The digits of mnist in their 50 principal directions, found in 10,000 rows, as before many a clustering."""
    X = np.asarray(load("mnist"), dtype=np.float32)
    X -= X.mean(axis=0)
    some = X[rng.choice(len(X), 10_000, replace=False)]
    _, directions = np.linalg.eigh(some.T @ some)
    return X @ directions[:, :-51:-1]


def pixels(rng: Rng) -> np.ndarray:  # noqa: ARG001 - all sets are made alike
    """CIFAR-10's images averaged to 8 × 8 × 3."""
    return images().reshape(-1, 3, 8, 4, 8, 4).mean(axis=(3, 5)).reshape(CIFAR10_TRAIN, 192)


# ---------------------------------------------------------------------------------------------------------
# Many rows
# ---------------------------------------------------------------------------------------------------------


def patches(channels: int, side: int, each: int, rng: Rng) -> np.ndarray:
    """Windows of the first so many channels of CIFAR-10's images, `each` of them an image, in no order."""
    X = images()[:, :channels]
    found = []
    for batch in track(list(batches(X)), "patches", transient=True):
        windows = sliding_window_view(batch, (side, side), axis=(2, 3))
        image, row, column = corners(len(batch), each, 33 - side, rng)
        found.append(windows[image, :, row, column].reshape(-1, channels * side * side))
    return rng.permutation(np.concatenate(found))


def descriptors(rng: Rng) -> np.ndarray:
    """1,000,000 × 128 histograms of gradients, 4 × 4 cells of 8 directions as in SIFT, whole numbers to 255."""
    found = []
    for batch in track(list(batches(images().mean(axis=1))), "descriptors", transient=True):
        down, right = np.gradient(batch, axis=(1, 2))
        angle = np.arctan2(down, right) % (2 * np.pi) * (8 / (2 * np.pi))
        # A gradient counts for the two directions it lies between, more for the nearer one.
        away = np.abs((angle - np.arange(8)[:, None, None, None] + 4) % 8 - 4)
        strength = np.hypot(down, right) * np.maximum(1 - away, 0)
        cells = sliding_window_view(strength, (4, 4), axis=(2, 3)).sum(axis=(4, 5))
        image, row, column = corners(len(batch), 20, 17, rng)
        around = [cells[:, image, row + i, column + j] for i in range(0, 16, 4) for j in range(0, 16, 4)]
        rows = of_length_one(np.moveaxis(np.stack(around), (0, 1), (2, 3)).reshape(-1, 128))
        found.append(np.minimum(np.floor(512 * of_length_one(np.minimum(rows, 0.2))), 255))
    return rng.permutation(np.concatenate(found).astype(np.float32))


# ---------------------------------------------------------------------------------------------------------
# Features as networks make them
# ---------------------------------------------------------------------------------------------------------


def pairs(rng: Rng) -> np.ndarray:  # noqa: ARG001 - all sets are made alike
    """Word vectors side by side, 200,000 × 100: a hundred features without much structure."""
    X = words()
    return np.hstack([X[:200_000], X[200_000:]])


def lifted_words(rng: Rng) -> np.ndarray:
    """Word vectors behind one random layer of 256 rectified units, of length one."""
    X = words()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weights = rng.standard_normal((50, 256), dtype=np.float32) / 7
    return of_length_one(np.maximum(X @ weights + 0.2 * rng.standard_normal(256, dtype=np.float32), 0))


def contrast_normalised(X: np.ndarray) -> np.ndarray:
    """Rows less their mean, over their deviation."""
    X = X - X.mean(axis=1, keepdims=True)
    return X / np.sqrt(X.var(axis=1, keepdims=True) + 10)


def pooled_filters(rng: Rng) -> np.ndarray:
    """Images behind 192 random whitened 6 × 6 filters, averaged by quarters, of length one, 50,000 × 768."""
    some = contrast_normalised(patches(3, 6, 1, rng)[:20_000])
    centre = some.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov((some - centre).T))
    whiten = (vectors / np.sqrt(values + 0.1)) @ vectors.T
    filters = whiten @ of_length_one((some - centre)[rng.choice(len(some), 192, replace=False)] @ whiten).T
    found = []
    for batch in track(list(batches(images())), "pooled_filters", transient=True):
        windows = sliding_window_view(batch, (6, 6), axis=(2, 3))[:, :, ::2, ::2]
        rows = contrast_normalised(np.moveaxis(windows, 1, 3).reshape(-1, 108)) - centre
        answers = np.maximum((rows @ filters).astype(np.float32) - 0.5, 0).reshape(-1, 2, 7, 2, 7, 192)
        found.append(answers.mean(axis=(2, 4)).reshape(len(batch), 768))
    return of_length_one(np.concatenate(found))


#: What every set is made by.
DERIVED: dict[str, Callable[[Rng], np.ndarray]] = {
    "kdd20k": lambda rng: sample("kdd", 20_000, rng),
    "covtype50k": lambda rng: sample("covtype", 50_000, rng),
    "rna50k": lambda rng: sample("rna", 50_000, rng),
    "mnist10k": lambda rng: sample("mnist", 10_000, rng),
    "mnist50": digits_in_directions,
    "unit": unit_words,
    "pixels192": pixels,
    "patches18": lambda rng: patches(2, 3, 100, rng),
    "patches75": lambda rng: patches(3, 5, 12, rng),
    "descriptors": descriptors,
    "pairs": pairs,
    "lifted": lifted_words,
    "pooled": pooled_filters,
}


def main() -> None:
    """Make the sets that are not in the folder yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where NAME.npy is written")
    parser.add_argument("--sets", nargs="+", choices=list(DERIVED), default=list(DERIVED))
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    console = Console()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for name in arguments.sets:
        path = arguments.folder / f"{name}.npy"
        if path.exists():
            console.print(f"{name}: is there")
            continue
        X = np.ascontiguousarray(DERIVED[name](np.random.default_rng(arguments.seed)), dtype=np.float32)
        unfinished = path.with_suffix(".part.npy")
        np.save(unfinished, X)
        unfinished.rename(path)
        console.print(f"{name}: {len(X):,} × {X.shape[1]}")


if __name__ == "__main__":
    main()
