"""Types, memory layouts, sizes and extremes of the data."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from digits import digits
from vcgmm import VCGMM, lightweight_coreset, quantization_error

BLOCKED: dict[str, Any] = {"search": "blocked", "init": "two_level"}
POINTWISE: dict[str, Any] = {"search": "pointwise", "init": "afkmc2"}
both_searches = pytest.mark.parametrize("search", [BLOCKED, POINTWISE], ids=["blocked", "pointwise"])


def make_counts(n_samples: int = 400, n_features: int = 6) -> np.ndarray:
    """Five clusters of whole numbers between 0 and 127, which every type but bool holds exactly."""
    rng = np.random.default_rng(6)
    centers = rng.integers(20, 108, size=(5, n_features))
    noise = rng.integers(-8, 9, size=(n_samples, n_features))
    return (centers[np.arange(n_samples) % 5] + noise).astype(np.float64)


def fit(data: np.ndarray, search: dict[str, Any] = BLOCKED, n_components: int = 5, **parameters: Any) -> VCGMM:
    return VCGMM(n_components=n_components, random_state=0, **search, **parameters).fit(data)


# --------------------------------------------------------------------------------------------------------- types


@both_searches
@pytest.mark.parametrize(
    "dtype",
    [np.float16, np.float32, np.longdouble, np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint64, ">f8"],
)
def test_every_type_fits_as_float64_does(dtype: Any, search: dict[str, Any]) -> None:
    wide = make_counts()
    expected, model = fit(wide, search), fit(wide.astype(dtype), search)
    np.testing.assert_allclose(model.means_, expected.means_, rtol=1e-4)
    assert model.variance_ == pytest.approx(expected.variance_, rel=1e-4)
    assert model.lower_bound_ == pytest.approx(expected.lower_bound_, rel=1e-5)
    np.testing.assert_array_equal(model.predict(wide.astype(dtype)), expected.predict(wide))
    assert model.score(wide.astype(dtype)) == pytest.approx(expected.score(wide), rel=1e-4)


@both_searches
def test_booleans_fit_as_float64_do(search: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    prototypes = rng.random((3, 40)) < 0.5
    bits = prototypes[np.arange(300) % 3] ^ (rng.random((300, 40)) < 0.03)
    expected, model = fit(bits.astype(np.float64), search, 3), fit(bits, search, 3)
    np.testing.assert_allclose(model.means_, expected.means_, atol=1e-4)
    np.testing.assert_array_equal(model.predict(bits), expected.predict(bits.astype(np.float64)))


@pytest.mark.on_cpu  # a GPU computes in float32
@pytest.mark.parametrize(
    ("given", "asked", "used"),
    [
        (np.uint8, None, np.float32),
        (np.float16, None, np.float32),
        (np.float32, None, np.float32),
        (np.float64, None, np.float64),
        (np.uint8, "float64", np.float64),
        (np.float64, "float32", np.float32),
        (np.float64, np.float32, np.float32),
    ],
)
def test_dtype_says_what_to_compute_in(given: Any, asked: Any, used: Any) -> None:
    data = make_counts()
    model = fit(data.astype(given), dtype=asked)
    exact = fit(data, dtype=used)
    # The origin of the coordinates is the mean, taken in float32 where the rows are, and it is good to its digits.
    np.testing.assert_allclose(model.means_, exact.means_, rtol=0 if np.dtype(given) == np.float64 else 1e-8)


def test_results_are_float64_and_ids_narrow_but_rows_wide() -> None:
    data = make_counts().astype(np.float32)
    model = fit(data, coreset_size=100, compute_labels=True)
    assert model.means_.dtype == model.counts_.dtype == model.lower_bounds_.dtype == np.float64
    assert model.labels_.dtype == model.neighbors_.dtype == model.nearest(data, 2)[1].dtype == np.int32
    assert model.coreset_.indices.dtype == np.int64
    assert model.coreset_.points.dtype == np.float32
    assert model.score_samples(data).dtype == model.nearest(data, 2)[0].dtype == np.float64


def test_lists_are_data_too() -> None:
    data = make_counts()
    np.testing.assert_array_equal(fit(data.tolist()).means_, fit(data).means_)


# ------------------------------------------------------------------------------------------------------- layouts


def as_fortran(data: np.ndarray, path: Path) -> np.ndarray:
    return np.asfortranarray(data)


def as_every_second(data: np.ndarray, path: Path) -> np.ndarray:
    spaced = np.full((2 * data.shape[0], 3 * data.shape[1]), 200, data.dtype)
    spaced[::2, ::3] = data
    return spaced[::2, ::3]


def as_reversed(data: np.ndarray, path: Path) -> np.ndarray:
    return np.ascontiguousarray(data[::-1, ::-1])[::-1, ::-1]


def as_read_only(data: np.ndarray, path: Path) -> np.ndarray:
    data = data.copy()
    data.flags.writeable = False
    return data


def as_memory_map(data: np.ndarray, path: Path) -> np.ndarray:
    np.save(path / "data.npy", data)
    return np.load(path / "data.npy", mmap_mode="r")


@both_searches
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("layout", [as_fortran, as_every_second, as_reversed, as_read_only, as_memory_map])
def test_the_layout_of_the_data_changes_nothing(
    layout: Any, dtype: Any, search: dict[str, Any], tmp_path: Path
) -> None:
    plain = make_counts().astype(dtype)
    data = layout(plain, tmp_path)
    expected, model = fit(plain, search, coreset_size=100), fit(data, search, coreset_size=100)
    np.testing.assert_array_equal(model.means_, expected.means_)
    np.testing.assert_array_equal(model.predict(data), expected.predict(plain))
    np.testing.assert_array_equal(model.score_samples(data), expected.score_samples(plain))


@both_searches
def test_read_only_weights_and_init(search: dict[str, Any]) -> None:
    data, weights = make_counts(), np.linspace(1, 2, 400)
    start = data[:5].copy()
    weights.flags.writeable = start.flags.writeable = False
    model = VCGMM(n_components=5, **{**search, "init": start}).fit(data, sample_weight=weights)
    assert np.isfinite(model.quantization_error(data, weights))


def test_the_data_is_left_as_it_was() -> None:
    data = make_counts().astype(np.float32)
    before = data.copy()
    fit(data, coreset_size=None)
    np.testing.assert_array_equal(data, before)


# -------------------------------------------------------------------------------------------------------- memory


def peak_megabytes(call: Any) -> float:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()


@pytest.fixture(scope="module")
def large() -> np.ndarray:
    """40 MB, which would be 160 MB in float32."""
    return np.random.default_rng(0).integers(0, 256, size=(40_000, 1000), dtype=np.uint8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@both_searches
def test_a_fit_makes_no_wide_copy_of_the_data(large: np.ndarray, search: dict[str, Any]) -> None:
    assert peak_megabytes(lambda: fit(large, search, coreset_size=1000, max_iter=3, n_threads=2)) < 30


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("method", ["predict", "quantization_error", "score_samples", "predict_proba"])
def test_using_a_model_makes_no_wide_copy_of_the_data(large: np.ndarray, method: str) -> None:
    model = fit(large, coreset_size=1000, max_iter=3, n_threads=2)
    assert peak_megabytes(lambda: getattr(model, method)(large)) < 30


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_more_than_two_to_the_31_values() -> None:
    # Overlapping windows of one short buffer: 2.2e9 values in a megabyte.
    buffer = np.random.default_rng(0).integers(0, 256, size=230_000, dtype=np.uint8)
    windows = np.lib.stride_tricks.sliding_window_view(buffer, 10_000)
    assert windows.size > 2**31
    coreset = lightweight_coreset(windows, 50, random_state=0)
    beyond = coreset.indices * windows.shape[1] > 2**31
    assert beyond.any()
    np.testing.assert_array_equal(coreset.points[beyond], windows[coreset.indices[beyond]])
    assert coreset.weights.sum() == pytest.approx(len(windows), rel=0.2)


# ---------------------------------------------------------------------------------------- offsets and extremes


@both_searches
def test_an_offset_costs_float32_nothing(search: dict[str, Any]) -> None:
    rng = np.random.default_rng(0)
    centers = rng.uniform(-1, 1, size=(20, 4))
    shifted = (1e6 + centers[rng.integers(20, size=2000)] + 0.1 * rng.normal(size=(2000, 4))).astype(np.float32)
    recentred = shifted.astype(np.float64) - 1e6
    error = fit(shifted, search, 20).quantization_error(shifted)
    expected = fit(recentred, search, 20).quantization_error(recentred)
    assert error == pytest.approx(expected, rel=1e-3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "error::RuntimeWarning")
@both_searches
@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e37, 1e-38])
def test_extremes_of_single_precision(scale: float, search: dict[str, Any]) -> None:
    data = make_counts() - 64
    scaled = (data * (scale / 64)).astype(np.float32)
    # |dF / F| changes with the scale: both end after the same number of iterations.
    expected, model = (fit(rows, search, tol=0.0, max_iter=20) for rows in (data, scaled))
    np.testing.assert_allclose(model.means_ * (64 / scale), expected.means_, rtol=1e-4, atol=1e-3)
    np.testing.assert_array_equal(model.predict(scaled), expected.predict(data))
    assert np.isfinite([model.variance_, model.lower_bound_, model.score(scaled)]).all()
    assert 0 < model.quantization_error(scaled) < np.inf


@both_searches
def test_huge_and_tiny_values_together(search: dict[str, Any]) -> None:
    data = np.concatenate([make_counts() * 1e-30, make_counts() * 1e30]).astype(np.float32)
    model = fit(data, search, 4)
    assert np.isfinite(model.means_).all()
    assert np.isfinite(model.score_samples(data)).all()


@pytest.mark.on_cpu  # a GPU refuses rows that are so far away
@both_searches
def test_rows_far_from_the_fit(search: dict[str, Any]) -> None:
    data = make_counts().astype(np.float32)
    model = fit(data, search)
    far = np.full((2, 6), 1e30, np.float32)
    assert np.isfinite(model.nearest(far, 5)[0]).all()
    np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("far_mean", "far_row"), [(1e3, 1e200), (1e25, 1.0)], ids=["row too far to square", "mean too far for float32"]
)
def test_the_nearest_means_are_valid_where_squares_overflow(far_mean: float, far_row: float) -> None:
    # In a process of its own: a kernel that follows an index it never wrote may end the process.
    code = f"""
import numpy as np
from vcgmm import VCGMM
X = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
model = VCGMM(4, init=np.vstack([X[:3], np.full((1, 3), {far_mean})])).fit(X)
try:
    ids = model.nearest(np.full((50, 3), {far_row}), 4)[1]
except ValueError as error:
    raise SystemExit("X" not in str(error))
raise SystemExit(not (np.sort(ids, axis=1) == np.arange(4)).all())
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=False).returncode == 0


@both_searches
def test_a_far_mean_without_points_costs_the_others_nothing(search: dict[str, Any]) -> None:
    data = make_counts()
    expected = VCGMM(n_components=5, **{**search, "init": data[:5]}).fit(data)
    start = np.concatenate([data[:5], np.full((1, 6), 1e18)])
    model = VCGMM(n_components=6, **{**search, "init": start}).fit(data)
    assert model.counts_[5] == 0.0
    np.testing.assert_allclose(model.means_[:5], expected.means_, rtol=1e-3)


# ----------------------------------------------------------------------------------------- degenerate problems


def assert_sane(model: VCGMM, data: np.ndarray) -> None:
    assert np.isfinite(model.means_).all()
    assert model.variance_ > 0
    assert np.isfinite(model.lower_bounds_).all()
    assert np.isfinite(model.score_samples(data)).all()
    np.testing.assert_allclose(model.predict_proba(data).sum(axis=1), 1.0, rtol=1e-9)
    assert model.counts_.sum() == pytest.approx(len(data), rel=1e-6)


@both_searches
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_constant_features(dtype: Any, search: dict[str, Any]) -> None:
    data = np.column_stack([make_counts(), np.full(400, 7.0), np.full(400, -1e9)]).astype(dtype)
    model = fit(data, search)
    assert_sane(model, data)
    np.testing.assert_array_equal(model.means_[:, 6:], np.tile(data[:1, 6:].astype(np.float64), (5, 1)))


@both_searches
def test_duplicated_points(search: dict[str, Any]) -> None:
    data = np.repeat(make_counts(20), 30, axis=0)
    assert_sane(fit(data, search), data)


@both_searches
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_as_many_distinct_points_as_clusters(dtype: Any, search: dict[str, Any]) -> None:
    data = np.repeat(make_counts(5), 30, axis=0).astype(dtype)
    model = fit(data, search)
    assert_sane(model, data)
    assert model.quantization_error(data) == pytest.approx(0.0, abs=1e-6)


@both_searches
def test_equal_points_in_one_cluster(search: dict[str, Any]) -> None:
    data = np.full((30, 2), 0.1)
    model = fit(data, search, 1)
    np.testing.assert_array_equal(model.means_, [[0.1, 0.1]])
    assert np.isfinite(model.lower_bound_)


@both_searches
def test_one_feature(search: dict[str, Any]) -> None:
    data = make_counts()[:, :1]
    assert_sane(fit(data, search), data)


@both_searches
def test_one_cluster_is_the_mean(search: dict[str, Any]) -> None:
    data = make_counts()
    model = fit(data, search, 1)
    np.testing.assert_allclose(model.means_[0], data.mean(axis=0), rtol=digits(1e-12))
    assert model.variance_ == pytest.approx(data.var(axis=0).mean(), rel=digits(1e-9))


@both_searches
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_as_many_clusters_as_points(dtype: Any, search: dict[str, Any]) -> None:
    data = make_counts(40).astype(dtype)
    model = fit(data, search, 40)
    assert_sane(model, data)
    if search is BLOCKED:
        assert model.quantization_error(data) < 1e-9  # the means are rounded, the error is not


@both_searches
def test_a_single_row(search: dict[str, Any]) -> None:
    model = fit(np.array([[1.0, 2.0]]), search, 1)
    np.testing.assert_array_equal(model.means_, [[1.0, 2.0]])


# ------------------------------------------------------------------------------------------- sizes of coresets


@both_searches
@pytest.mark.parametrize(
    ("size", "least", "most"),
    [(None, 400, 400), (0.25, 50, 100), (60, 30, 60), (np.int64(60), 30, 60), (400, 400, 400), (10**9, 400, 400)],
)
def test_sizes_of_coresets(size: Any, least: int, most: int, search: dict[str, Any]) -> None:
    assert least <= len(fit(make_counts(), search, coreset_size=size).coreset_.indices) <= most


def test_automatic_coreset_is_smaller_than_large_data() -> None:
    data = make_counts(300_000, 2)
    coreset = fit(data, coreset_size="auto").coreset_
    assert len(coreset.indices) < 100_000
    assert coreset.weights.sum() == pytest.approx(300_000, rel=0.02)


def test_automatic_coreset_is_all_of_data_not_much_larger() -> None:
    assert len(fit(make_counts(4 * 65_536, 2), coreset_size="auto").coreset_) == 4 * 65_536


@both_searches
def test_a_coreset_too_small_grows_to_the_number_of_clusters(search: dict[str, Any]) -> None:
    model = fit(make_counts(), search, 30, coreset_size=2)
    assert len(np.unique(model.coreset_.points, axis=0)) >= 30


def test_all_rows_of_positive_weight_are_kept() -> None:
    weights = np.arange(400) % 2
    model = VCGMM(n_components=5, coreset_size=300, random_state=0).fit(make_counts(), sample_weight=weights)
    np.testing.assert_array_equal(model.coreset_.indices, np.flatnonzero(weights))


def test_max_iter_is_kept_by_every_size() -> None:
    for size in (None, 100):
        with pytest.warns(ConvergenceWarning):
            assert fit(make_counts(), coreset_size=size, tol=0.0, max_iter=4).n_iter_ == 4


def test_a_coreset_clusters_nearly_as_well_as_all_points() -> None:
    data = make_counts(5000)
    few, every = (fit(data, coreset_size=size, n_init=3) for size in (500, None))
    assert quantization_error(data, few.means_) < 1.05 * quantization_error(data, every.means_)


def test_very_wide_rows_need_no_wide_copy() -> None:
    X = np.random.default_rng(0).integers(0, 255, (400, 50_000), dtype=np.uint8)
    VCGMM(2, coreset_size=40, random_state=0).fit(X[:, :8])  # compiled before the memory is watched
    tracemalloc.start()
    VCGMM(2, coreset_size=40, random_state=0).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * X.nbytes  # a float32 copy alone would be four times
