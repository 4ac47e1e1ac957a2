"""Bad input is refused with an error that names the argument, the value and the remedy."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from vcgmm import VCGMM, quantization_error
from vcgmm.validation import draw_seed

X = np.random.default_rng(0).normal(size=(60, 3))


def complaint(call: Callable[[], object]) -> str:
    """The message of the ValueError that a call must raise."""
    with pytest.raises(ValueError) as error:  # noqa: PT011
        call()
    return str(error.value)


def assert_mentions(message: str, *words: str) -> None:
    for word in words:
        assert word in message


def fit(data: Any = X, sample_weight: Any = None, **parameters: Any) -> VCGMM:
    return VCGMM(**{"n_components": 3, "random_state": 0, **parameters}).fit(data, sample_weight=sample_weight)


@pytest.fixture(scope="module")
def model() -> VCGMM:
    return fit()


METHODS = ["predict", "nearest", "predict_proba", "score_samples", "score", "quantization_error", "bic", "aic"]

# ------------------------------------------------------------------------------------------------------------ X


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("value", "name"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf")])
def test_values_that_are_not_finite(value: float, name: str, dtype: type) -> None:
    data = X.astype(dtype)
    data[41, 2] = value
    assert_mentions(complaint(lambda: fit(data)), "X contains", name, "row 41", "feature 2", "impute")


def test_values_that_are_not_finite_in_a_later_block() -> None:
    data = np.zeros((300_000, 3), np.float32)
    data[299_999, 1] = np.nan
    assert_mentions(complaint(lambda: fit(data)), "row 299999", "feature 1")


def test_values_whose_squares_overflow() -> None:
    data = X * 1e200
    assert_mentions(complaint(lambda: fit(data)), "X holds values so large", "overflow", "divide")


def test_large_values_are_not_taken_for_infinity() -> None:
    data = np.full((60, 3), np.finfo(np.float64).max)
    assert "contains infinity" not in complaint(lambda: fit(data))


def test_one_dimensional_data() -> None:
    assert_mentions(complaint(lambda: fit(X[:, 0])), "X", "1D", "reshape(-1, 1)")


def test_one_dimensional_data_at_predict(model: VCGMM) -> None:
    assert_mentions(complaint(lambda: model.predict(X[0])), "X", "1D", "reshape(1, -1)")


def test_three_dimensional_data() -> None:
    assert_mentions(complaint(lambda: fit(X.reshape(2, 30, 3))), "X", "dim 3")


def test_data_without_rows() -> None:
    assert_mentions(complaint(lambda: fit(X[:0])), "X", "0 sample(s)", "(0, 3)")


def test_data_without_features() -> None:
    assert_mentions(complaint(lambda: fit(X[:, :0])), "X", "0 feature(s)", "(60, 0)")


def test_fewer_rows_than_components() -> None:
    assert_mentions(complaint(lambda: fit(X[:2])), "n_samples=2", "n_components=3", "fewer components")


def test_fewer_distinct_rows_than_components() -> None:
    data = np.repeat(X[:2], 30, axis=0)
    assert_mentions(complaint(lambda: fit(data)), "X", "2 distinct", "n_components=3", "at most 2")


@pytest.mark.parametrize("size", [None, 20])
def test_fewer_distinct_rows_of_positive_weight_than_components(size: int | None) -> None:
    weights = np.zeros(60)
    weights[:2] = 1.0
    message = complaint(lambda: fit(X, weights, coreset_size=size))
    assert_mentions(message, "2 distinct", "positive weight", "n_components=3")


@pytest.mark.parametrize("path", ["vectors.npy", Path("vectors.npy")])
def test_a_path_in_the_place_of_rows(path: Any) -> None:
    assert_mentions(complaint(lambda: fit(path)), "is a path, not an array", "vcgmm.open('vectors.npy')")
    assert_mentions(complaint(lambda: quantization_error(path, X[:2])), "vcgmm.open('vectors.npy')")


@pytest.mark.parametrize("paths", [["a.npy", "b.npy"], (Path("a.npy"), Path("b.npy"))])
def test_paths_or_texts_in_the_place_of_rows(paths: Any) -> None:
    message = complaint(lambda: fit(paths))
    assert_mentions(message, "list of 2 paths or texts", "a.npy", "vcgmm.open(paths)", "embeddings")


@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, sparse.coo_array])
def test_sparse_data(kind: Any) -> None:
    assert_mentions(complaint(lambda: fit(kind(X))), "X is a sparse matrix", "not supported", "toarray()")


@pytest.mark.parametrize("method", METHODS)
def test_sparse_data_after_the_fit(model: VCGMM, method: str) -> None:
    message = complaint(lambda: getattr(model, method)(sparse.csr_array(X)))
    assert_mentions(message, "X is a sparse matrix", "not supported", "toarray()")


def test_complex_data() -> None:
    assert_mentions(complaint(lambda: fit(X + 1j)), "X", "Complex data not supported")


@pytest.mark.parametrize("data", [[["a", "b"]] * 5, X.astype(str)], ids=["words", "digits"])
def test_strings_as_data(data: Any) -> None:
    assert_mentions(complaint(lambda: fit(data)), "X", "strings", "Convert your data")


# ---------------------------------------------------------------------------------------------------- after a fit


@pytest.mark.parametrize("method", METHODS)
def test_another_number_of_features_after_the_fit(model: VCGMM, method: str) -> None:
    message = complaint(lambda: getattr(model, method)(X[:, :2]))
    assert_mentions(message, "X has 2 features", "expecting 3 features")


@pytest.mark.parametrize("method", METHODS)
def test_nan_after_the_fit(model: VCGMM, method: str) -> None:
    data = X.copy()
    data[4, 1] = np.nan
    assert_mentions(complaint(lambda: getattr(model, method)(data)), "X contains NaN", "row 4", "feature 1")


@pytest.mark.parametrize("method", METHODS)
def test_use_before_the_fit(method: str) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(VCGMM(), method)(X)


def test_sample_before_the_fit() -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        VCGMM().sample()


@pytest.mark.parametrize("k", [0, -1, 1.5, "2"])
def test_number_of_nearest(model: VCGMM, k: Any) -> None:
    assert_mentions(complaint(lambda: model.nearest(X, k)), f"k={k!r}", "at least 1")


@pytest.mark.parametrize("n_samples", [0, -1, 1.5])
def test_number_of_samples(model: VCGMM, n_samples: Any) -> None:
    assert_mentions(complaint(lambda: model.sample(n_samples)), f"n_samples={n_samples!r}", "at least 1")


# ------------------------------------------------------------------------------------------------------- weights


def weights_with(value: float) -> np.ndarray:
    weights = np.ones(60)
    weights[7] = value
    return weights


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf])
def test_weights_that_are_negative_or_not_finite(value: float) -> None:
    message = complaint(lambda: fit(X, weights_with(value)))
    assert_mentions(message, f"sample_weight[7]={value}", "Use 0")


def test_weights_that_are_all_zero() -> None:
    assert_mentions(complaint(lambda: fit(X, np.zeros(60))), "sample_weight", "zero", "positive weight")


@pytest.mark.parametrize("shape", [(59,), (60, 1), (60, 2)])
def test_weights_of_another_shape(shape: tuple[int, ...]) -> None:
    message = complaint(lambda: fit(X, np.ones(shape)))
    assert_mentions(message, "sample_weight", str(shape), "60 rows", "one weight per row")


def test_weights_whose_sum_overflows() -> None:
    assert_mentions(complaint(lambda: fit(X, np.full(60, 1e308))), "sample_weight", "infinity", "divide")


@pytest.mark.parametrize("weights", [["a"] * 60, [1j] * 60], ids=["strings", "complex"])
def test_weights_that_are_no_real_numbers(weights: Any) -> None:
    assert_mentions(complaint(lambda: fit(X, weights)), "sample_weight")


@pytest.mark.parametrize("method", ["score", "quantization_error"])
def test_weights_after_the_fit(model: VCGMM, method: str) -> None:
    message = complaint(lambda: getattr(model, method)(X, sample_weight=weights_with(-2.0)))
    assert_mentions(message, "sample_weight[7]=-2.0", "Use 0")


# ---------------------------------------------------------------------------------------------------- parameters


@pytest.mark.parametrize(
    ("name", "low"),
    [
        ("n_components", 1),
        ("truncation", 1),
        ("n_neighbors", 1),
        ("n_explore", 0),
        ("n_candidates", 1),
        ("chain_length", 1),
        ("n_warmup", 0),
        ("max_iter", 1),
        ("n_init", 1),
        ("n_threads", 1),
    ],
)
@pytest.mark.parametrize("kind", ["too small", "float", "bool", "string"])
def test_integers(name: str, low: int, kind: str) -> None:
    value = {"too small": low - 1, "float": 2.0, "bool": True, "string": "2"}[kind]
    assert_mentions(complaint(lambda: fit(**{name: value})), f"{name}={value!r}", f"integer of at least {low}")


@pytest.mark.parametrize("name", ["tol", "reg_covar"])
@pytest.mark.parametrize("value", [-1e-3, np.nan, np.inf, "small", [1.0]])
def test_numbers(name: str, value: Any) -> None:
    assert_mentions(complaint(lambda: fit(**{name: value})), f"{name}={value!r}", "finite number of at least 0")


@pytest.mark.parametrize("value", [0, 2, -1, 0.0, 2.0, np.nan, np.inf, "x", "1", True, None])
def test_relaxation(value: Any) -> None:
    message = complaint(lambda: fit(relaxation=value))
    assert_mentions(message, f"relaxation={value!r}", "above 0 and below 2", "1: plain EM")


@pytest.mark.parametrize("value", [1, 0.5, np.float32(1.9), np.nextafter(2.0, 0.0), 1e-3])
def test_any_relaxation_between_is_taken(value: Any) -> None:
    assert np.isfinite(fit(relaxation=value).means_).all()


@pytest.mark.parametrize("value", [0, -5, 0.0, 1.0, 1.5, np.nan, "all", True])
def test_coreset_size(value: Any) -> None:
    message = complaint(lambda: fit(coreset_size=value))
    assert_mentions(message, f"coreset_size={value!r}", "'auto'", "None", "between 0 and 1")


@pytest.mark.parametrize(
    ("name", "value", "choices"),
    [
        ("init", "kmeans++", ["'two_level'", "'afkmc2'", "'k-means++'", "'random'"]),
        ("search", "fast", ["'blocked'", "'pointwise'"]),
        ("search", None, ["'blocked'", "'pointwise'"]),
        ("covariance_type", "diagonal", ["'isotropic'"]),
        ("covariance_type", None, ["'isotropic'"]),
        ("dtype", "float16", ["None", "'float32'", "'float64'"]),
        ("dtype", "real", ["None", "'float32'", "'float64'"]),
        ("dtype", int, ["None", "'float32'", "'float64'"]),
    ],
)
def test_unknown_options(name: str, value: Any, choices: list[str]) -> None:
    assert_mentions(complaint(lambda: fit(**{name: value})), f"{name}={value!r}", *choices)


@pytest.mark.parametrize("value", ["full", "tied"])
def test_full_covariances_are_found_elsewhere(value: str) -> None:
    message = complaint(lambda: fit(covariance_type=value))
    assert_mentions(message, f"covariance_type={value!r}", "GaussianMixture", "'isotropic'")


def test_init_with_another_number_of_rows() -> None:
    assert_mentions(complaint(lambda: fit(init=X[:2])), "init has 2 rows", "n_components=3", "one row per")


def test_init_with_another_number_of_features() -> None:
    assert_mentions(complaint(lambda: fit(init=X[:3, :2])), "init has 2 features", "3 features")


def test_init_that_is_not_finite() -> None:
    assert_mentions(complaint(lambda: fit(init=np.full((3, 3), np.nan))), "init contains NaN", "row 0")


@pytest.mark.parametrize("init", [None, 3, X[0]], ids=["none", "number", "vector"])
def test_init_that_is_no_matrix(init: Any) -> None:
    assert_mentions(complaint(lambda: fit(init=init)), "init")


def test_sparse_init() -> None:
    assert_mentions(complaint(lambda: fit(init=sparse.csr_array(X[:3]))), "init is a sparse matrix", "toarray()")


@pytest.mark.parametrize("callbacks", [3, "print", [print, 3]])
def test_callbacks_that_cannot_be_called(callbacks: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"callbacks.* is not callable: give None, a function"):
        fit(callbacks=callbacks)


def test_verbose_that_is_no_number() -> None:
    assert_mentions(complaint(lambda: fit(verbose="loud")), "verbose='loud'")


# -------------------------------------------------------------------------------- sizes that only mean "all" of it


@pytest.mark.parametrize("search", ["blocked", "pointwise"])
@pytest.mark.parametrize("name", ["truncation", "n_neighbors", "n_candidates", "n_explore"])
def test_sizes_beyond_the_number_of_components_mean_all(name: str, search: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clipped, exact = (fit(**{name: size, "search": search}) for size in (99, 3))
    np.testing.assert_array_equal(clipped.means_, exact.means_)


@pytest.mark.parametrize("search", ["blocked", "pointwise"])
def test_candidates_are_never_fewer_than_winners(search: str) -> None:
    assert np.isfinite(fit(n_candidates=1, truncation=3, search=search).means_).all()


@pytest.mark.parametrize("random_state", ["a", -1, 2**40])
def test_a_random_state_that_is_none(random_state: Any) -> None:
    with pytest.raises(ValueError, match=r"random_state=.* is not valid: give None, an integer"):
        VCGMM(3, random_state=random_state).fit(np.random.default_rng(0).normal(size=(50, 2)))


@pytest.mark.parametrize("random_state", [0, 7, True, np.int64(3), 2**32 - 1])
def test_a_seed_is_what_a_random_state_of_its_own_would_draw(random_state: Any) -> None:
    expected = np.random.RandomState(random_state).randint(np.iinfo(np.int32).max)
    assert draw_seed(random_state) == draw_seed(random_state) == expected


@pytest.mark.parametrize("name", ["warm_start", "compute_labels"])
def test_switches_are_true_or_false(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name}='yes' is not valid: give True or False"):
        VCGMM(3, **{name: "yes"}).fit(np.random.default_rng(0).normal(size=(50, 2)))
