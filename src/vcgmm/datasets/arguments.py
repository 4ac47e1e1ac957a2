"""What generators are given, checked."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def check_size(name: str, value: object) -> None:
    """Refuse what is not a positive integer."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name}={value!r} is not a positive integer: give 1 or more.")


def check_length(name: str, value: object) -> None:
    """Refuse what is not a finite number of at least 0."""
    if not isinstance(value, Real) or isinstance(value, bool) or not 0 <= float(value) < np.inf:
        raise ValueError(f"{name}={value!r} is not a finite length: give 0 or more.")


def random_words(random_state: Any) -> np.ndarray:
    """A seed for NumPy's generators, (4,) uint32, from anything scikit-learn accepts as random_state.

    The RandomState of its conventions draws float64 only: it seeds a generator of float32.
    """
    words: np.ndarray = check_random_state(random_state).randint(0, 2**32, size=4, dtype=np.uint32)
    return words


def random_generator(random_state: Any) -> np.random.Generator:
    """A generator of random numbers in any type."""
    return np.random.default_rng(random_words(random_state))
