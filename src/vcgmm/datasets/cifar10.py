"""CIFAR-10: small colour images, with the paper's noise."""

from __future__ import annotations

import codecs
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from .arguments import random_generator
from .prepared import Folder, check_rows, data_folder, find_file, prepared_or_none

N_TRAIN, N_TEST, N_FEATURES = 50_000, 10_000, 3_072

#: Images in one batch file.
N_BATCH = 10_000

BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")


def load_cifar10(
    folder: Folder = None, *, noise: bool = True, random_state: Any = 0
) -> tuple[np.ndarray, np.ndarray]:
    """CIFAR-10: 50,000 images to train on and 10,000 to test on, of 32 × 32 pixels in three colours.

    Parameters
    ----------
    folder : path-like, optional
        With `cifar10.npy` (60,000 rows, those of the test set last) or the Python batches `data_batch_1` to
        `data_batch_5` and `test_batch`, there or in `cifar-10-batches-py`.  Default: $VCGMM_DATA, or
        ~/.cache/vcgmm.
    noise : bool, default=True
        Add uniform noise in [0, 1) to every value, which makes them continuous, as the paper does.
    random_state : int, RandomState instance or None, default=0
        Of the noise.

    Returns
    -------
    train, test : (50000, 3072) and (10000, 3072), float32 with noise, uint8 without
    """
    images = prepared_or_none("cifar10", folder, N_FEATURES)
    if images is not None:
        check_rows(data_folder(folder) / "cifar10.npy", len(images), N_TRAIN + N_TEST)
    else:
        images = np.concatenate([read_batch(_find(folder, name)) for name in BATCHES])
    if noise:
        rng = random_generator(random_state)
        noisy = rng.random(images.shape, dtype=np.float32)
        noisy += images
        images = noisy
    return images[:N_TRAIN], images[N_TRAIN:]


def _find(folder: Folder, name: str) -> Path:
    title = "the Python version of CIFAR-10 (cifar-10-python.tar.gz)"
    return find_file(
        folder, [name, f"cifar-10-batches-py/{name}"], title, "https://www.cs.toronto.edu/~kriz/cifar.html"
    )


def read_batch(path: Path) -> np.ndarray:
    """The images of a batch, (10000, 3072) uint8."""
    try:
        batch = _ArraysOnly(io.BytesIO(path.read_bytes()), encoding="bytes").load()
        images = batch[b"data"]
    except (pickle.UnpicklingError, EOFError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is no batch of CIFAR-10 ({error!r}): get it again.") from None
    if not isinstance(images, np.ndarray) or images.dtype != np.uint8 or images.shape[1:] != (N_FEATURES,):
        raise ValueError(f"{path} holds no images of {N_FEATURES} bytes under b'data': get it again.")
    check_rows(path, len(images), N_BATCH)
    return images


#: All that a pickled array of any version of NumPy asks for, by its name there.
_ALLOWED = {"_reconstruct": np.empty(0).__reduce__()[0], "ndarray": np.ndarray, "dtype": np.dtype}


class _ArraysOnly(pickle.Unpickler):
    """The authors give out pickles, which may run any code: only what makes an array is let through."""

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "numpy" and name in _ALLOWED:
            return _ALLOWED[name]
        if (module, name) == ("_codecs", "encode"):  # bytes, in pickles that Python 2 can read
            return codecs.encode
        raise pickle.UnpicklingError(f"it asks for {module}.{name}, which is no array")
