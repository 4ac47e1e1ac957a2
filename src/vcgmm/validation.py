"""Checks of what users give: every error names the argument, the value and the remedy."""

from __future__ import annotations

import math
import numbers
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, validate_data

from .data import ArrayRows, Rows, Source, StreamedRows

TWO_DIMENSIONS = "Give a 2D array of real numbers, one row per sample and one column per feature."

FLOATS = {"float32": np.float32, "float64": np.float64}


class DeviceError(RuntimeError):
    """There is no such device, or it will not do; the text says why, and what to do."""


def check_integer(name: str, value: object, low: int) -> int:
    """An int of at least `low`."""
    if type(value) is int and value >= low:  # what the abstract classes take longer to say
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < low:
        raise ValueError(f"{name}={value!r} is not valid: give an integer of at least {low}.")
    return int(value)


#: Seeded anew for every integer: to make another one takes a hundred times as long.
_seeded = np.random.RandomState(0)
_seeding = threading.Lock()

#: No seed that is drawn is as large.
MOST_SEED = int(np.iinfo(np.int32).max)


def draw_seed(random_state: Any) -> int:
    """One integer from anything scikit-learn accepts as random_state."""
    try:
        if isinstance(random_state, numbers.Integral):
            with _seeding:
                _seeded.seed(int(random_state))
                return int(_seeded.randint(MOST_SEED))
        return int(check_random_state(random_state).randint(MOST_SEED))
    except ValueError:
        raise ValueError(
            f"random_state={random_state!r} is not valid: give None, an integer from 0 to 2**32 - 1, or a "
            f"numpy.random.RandomState."
        ) from None


def check_number(name: str, value: object, low: float) -> float:
    """A finite real number of at least `low`."""
    if type(value) is float and low <= value < math.inf:
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not low <= float(value) < math.inf:
        raise ValueError(f"{name}={value!r} is not valid: give a finite number of at least {low:g}.")
    return float(value)


def check_relaxation(value: object) -> float:
    """A number between 0 and 2, both excluded: what keeps an M-step from lowering the bound."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real) or not 0 < float(value) < 2:
        raise ValueError(
            f"relaxation={value!r} is not valid: give a number above 0 and below 2 (1: plain EM, as in the paper)."
        )
    return float(value)


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """One of a few strings."""
    if not isinstance(value, str) or value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name}={value!r} is not known: choose from {listed}.")
    return value


def check_flag(name: str, value: object) -> bool:
    """True or False."""
    if value is True or value is False:
        return value
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name}={value!r} is not valid: give True or False.")
    return bool(value)


def check_threads(n_threads: object) -> int | None:
    """None (all available CPUs) or an int of at least 1."""
    return None if n_threads is None else check_integer("n_threads", n_threads, 1)


def check_verbosity(verbose: object) -> int:
    """An int of at least 0; False and True are 0 and 1."""
    return check_integer("verbose", int(verbose) if isinstance(verbose, bool) else verbose, 0)


def check_float_type(dtype: object, given: np.dtype[Any]) -> np.dtype[Any]:
    """Type to compute in: what is asked for, else float64 for float64 data and float32 for all other."""
    if dtype is None:
        return np.dtype(np.float64 if given.kind == "f" and given.itemsize >= 8 else np.float32)
    try:
        name = np.dtype(dtype).name  # type: ignore[call-overload]
    except TypeError:
        name = ""
    if name not in FLOATS:
        raise ValueError(f"dtype={dtype!r} is not valid: choose None, 'float32' or 'float64'.")
    return np.dtype(FLOATS[name])


def check_coreset_size(size: object, n_samples: int, automatic: int) -> int | None:
    """Number of draws: None for all rows, a share of them, or the number itself."""
    if size is None:
        return None
    if isinstance(size, str) and size == "auto":
        return automatic
    if isinstance(size, numbers.Integral) and not isinstance(size, bool) and int(size) >= 1:
        return int(size)
    if isinstance(size, numbers.Real) and not isinstance(size, numbers.Integral) and 0.0 < float(size) < 1.0:
        return max(1, round(float(size) * n_samples))
    raise ValueError(
        f"coreset_size={size!r} is not valid: give 'auto', None (all points), a number of points from 1 on, "
        f"or a share of them between 0 and 1."
    )


@contextmanager
def blame(name: str, remedy: str) -> Iterator[None]:
    """Put the argument's name before what scikit-learn says is wrong with it, and the remedy after."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{name} is not valid: {error} {remedy}") from None
    except TypeError as error:  # objects that are no numbers at all
        raise TypeError(f"{name} is not valid: {error} {remedy}") from None


def check_kind(array: np.ndarray) -> None:
    """Refuse dates and whatever else is no real number."""
    if array.dtype.kind not in "fiub":
        raise ValueError(f"its dtype is {array.dtype}, but real numbers are needed. Convert it to floats first.")


def check_dense(name: str, X: object) -> None:
    """Refuse sparse matrices and paths by name."""
    if isinstance(X, str | os.PathLike):
        raise ValueError(
            f"{name}={X!r} is a path, not an array: open the file first, with vcgmm.open({str(X)!r})."
        )
    if isinstance(X, list | tuple) and X and all(isinstance(one, str | os.PathLike) for one in X):
        raise ValueError(
            f"{name} is a list of {len(X)} paths or texts, {X[0]!r} first, not of rows: open files first, with "
            f"vcgmm.open(paths); texts need numbers in their place, such as embeddings."
        )
    if sparse.issparse(X):
        raise ValueError(
            f"{name} is a sparse matrix, and sparse input is not supported: convert it with "
            f"{name}.toarray(), or reduce it first (for example with sklearn.decomposition.TruncatedSVD)."
        )


def check_rows(estimator: Any, X: object, *, reset: bool) -> Rows:
    """X as rows of real numbers, in its own dtype and without a copy where it is an array already.

    Whether they are finite is checked where they are read: in the first pass of a fit, or block by block.

    Parameters
    ----------
    estimator : estimator
        Learns (reset=True) or compares the number and names of features.
    X : array-like of shape (N, D), or source
    reset : bool
    """
    if isinstance(X, Source):
        check_features(estimator, X, reset=reset)
        return check_source(X)
    check_dense("X", X)
    with blame("X", TWO_DIMENSIONS if reset else "Give the features that the model was fitted on, as a 2D array."):
        array = validate_data(
            estimator, X, reset=reset, dtype="numeric", order=None, copy=False, ensure_all_finite=False
        )
        check_kind(array)
    return ArrayRows(array)


def check_source(source: Source) -> StreamedRows:
    """Rows of a source; at least one."""
    if source.n_samples == 0:
        raise ValueError(f"{source.name} holds no rows. Give at least one.")
    return StreamedRows(source)


def check_features(estimator: Any, source: Source, *, reset: bool) -> None:
    """Learn or compare the number and names of a source's features, as scikit-learn does for arrays and frames."""
    if reset:
        estimator.n_features_in_ = source.n_features
        if source.columns is not None:
            estimator.feature_names_in_ = np.array(source.columns, object)
        elif hasattr(estimator, "feature_names_in_"):
            del estimator.feature_names_in_
        return
    if source.n_features != estimator.n_features_in_:
        raise ValueError(
            f"{source.name} has {source.n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input. Give the features that the model was fitted on."
        )
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None and source.columns is not None and list(names) != list(source.columns):
        place = next(i for i, pair in enumerate(zip(names, source.columns, strict=True)) if pair[0] != pair[1])
        raise ValueError(
            f"{source.name} has {source.columns[place]!r} as feature {place}, but the model was fitted with "
            f"{names[place]!r} there: choose the columns that it was fitted on, in that order, with columns=."
        )


def check_matrix(name: str, X: object) -> Rows:
    """Rows of real numbers that no estimator is bound to; like `check_rows` otherwise."""
    return check_source(X) if isinstance(X, Source) else check_array_rows(name, X)


def check_array_rows(name: str, X: object) -> ArrayRows:
    """A two-dimensional array of real numbers."""
    check_dense(name, X)
    with blame(name, TWO_DIMENSIONS):
        array = check_array(X, dtype="numeric", order=None, copy=False, ensure_all_finite=False, input_name=name)
        check_kind(array)
    return ArrayRows(array, name)


def check_finite(rows: ArrayRows) -> None:
    """Refuse rows that hold a NaN or an infinity, by a look at all of them."""
    for block in range(rows.n_blocks):
        rows.refuse_nonfinite(block)


def check_weights(
    sample_weight: object, n_samples: int, name: str = "sample_weight", rows: str = "X"
) -> np.ndarray | None:
    """Weights as (N,) float64, finite, non-negative and not all zero; None where none are given.

    `name` and `rows` are what messages call the weights, and what they are weights of.
    """
    if sample_weight is None:
        return None
    if isinstance(sample_weight, numbers.Real):
        weights = np.full(n_samples, float(sample_weight))
    else:
        with blame(name, "Give one non-negative number per row."):
            weights = check_array(
                sample_weight,
                ensure_2d=False,
                allow_nd=True,
                dtype="numeric",
                ensure_all_finite=False,
                input_name=name,
            )
            check_kind(weights)
            weights = weights.astype(np.float64)
    if weights.ndim != 1 or len(weights) != n_samples:
        raise ValueError(
            f"{name} has shape {weights.shape}, but {rows} has {n_samples} rows: give one weight per row. "
            f"Sample weights must be 1D array or scalar."
        )
    bad = ~np.isfinite(weights) | (weights < 0)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"{name}[{row}]={weights[row]} is not valid: weights are finite and not negative. "
            f"Use 0 for a row that should not count."
        )
    if not weights.any():
        raise ValueError(f"{name} is zero for every row: give a positive weight to at least one row.")
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not math.isfinite(total):
        raise ValueError(f"{name} sums to infinity: divide the weights by their largest value.")
    return np.ascontiguousarray(weights)


def check_weights_of(rows: Rows, sample_weight: object) -> np.ndarray | None:
    """Weights of rows: (N,) where they are given; None where the rows come with their own, or all count alike."""
    if rows.has_weights:
        if sample_weight is not None:
            raise ValueError(
                f"sample_weight is given, but {rows.name} was opened with weights of its own: leave one out."
            )
        rows.use_weights()
    return check_weights(sample_weight, rows.n_samples)


def check_centers(name: str, centers: object, n_features: int, n_components: int | None = None) -> np.ndarray:
    """Centres as (C, D) float64, finite."""
    rows = check_array_rows(name, np.asarray(centers) if isinstance(centers, Source) else centers)
    check_finite(rows)
    array = rows.array.astype(np.float64)
    if array.shape[1] != n_features:
        raise ValueError(
            f"{name} has {array.shape[1]} features, but X has {n_features} features: they must agree."
        )
    if n_components is not None and len(array) != n_components:
        raise ValueError(
            f"{name} has {len(array)} rows, but n_components={n_components}: give one row per component."
        )
    return array
