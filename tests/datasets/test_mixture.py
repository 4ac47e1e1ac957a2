from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vcgmm import VCGMM
from vcgmm.datasets import MixtureSource, make_mixture, mixture


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of a few rows, so that small sets have many."""
    monkeypatch.setattr(mixture, "BLOCK_VALUES", 64)


def test_rows_are_drawn_about_the_centres_they_are_said_to_belong_to() -> None:
    X, labels, centers = make_mixture(6000, 4, 5, spread=0.25, random_state=0)
    assert (X.shape, X.dtype) == ((6000, 4), np.float32)
    assert (labels.shape, labels.dtype) == ((6000,), np.int32)
    deviations = X - centers[labels]
    for c in range(5):
        own = deviations[labels == c]
        np.testing.assert_allclose(own.mean(axis=0), 0, atol=0.05)
        np.testing.assert_allclose(own.std(axis=0), 0.25, rtol=0.1)


def test_clusters_come_as_often_as_their_weights_say() -> None:
    source = MixtureSource(40_000, 2, 6, imbalance=1.0, random_state=3)
    shares = np.bincount(source.labels(), minlength=6) / 40_000
    np.testing.assert_allclose(shares, source.weights, atol=0.01)
    assert source.weights.max() > 2 * source.weights.min()
    np.testing.assert_allclose(MixtureSource(10, 2, 4, random_state=0).weights, 0.25)


def test_the_same_rows_come_however_they_are_read() -> None:
    source = MixtureSource(1000, 5, 7, random_state=1)
    X, labels, centers = make_mixture(1000, 5, 7, random_state=1)
    np.testing.assert_array_equal(np.asarray(source), X)
    np.testing.assert_array_equal(source.centers, centers)
    np.testing.assert_array_equal(np.concatenate(list(source.blocks(33))), X)
    some = np.array([999, 0, 17, 18, 500, 17])
    np.testing.assert_array_equal(source.take(some), X[some])
    np.testing.assert_array_equal(source.labels(123, 457), labels[123:457])


def test_more_rows_begin_with_the_same_ones() -> None:
    few, many = (make_mixture(n, 3, 4, random_state=5)[0] for n in (100, 1000))
    np.testing.assert_array_equal(few, many[:100])


def test_seeds_tell_sets_apart() -> None:
    first, again, other = (make_mixture(50, 3, 4, random_state=seed)[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_integers_are_rounded_and_kept_in_range() -> None:
    options: dict[str, Any] = {"separation": 60.0, "spread": 40.0, "location": 127.5, "random_state": 0}
    floats, _, _ = make_mixture(500, 6, 3, **options)
    bytes_, _, _ = make_mixture(500, 6, 3, dtype=np.uint8, **options)
    assert bytes_.dtype == np.uint8
    np.testing.assert_array_equal(bytes_, np.clip(np.rint(floats), 0, 255))
    assert (floats < 0).any()


def test_centres_fill_as_many_directions_as_asked_for() -> None:
    _, _, centers = make_mixture(10, 30, 200, n_latent=3, separation=2.0, location=5.0, random_state=0)
    spectrum = np.linalg.svd(centers.astype(np.float64) - 5.0, compute_uv=False) / np.sqrt(200)
    np.testing.assert_allclose(spectrum[:3], 2.0, rtol=0.2)
    np.testing.assert_allclose(spectrum[3:], 0.0, atol=1e-5)


def test_a_fit_to_the_source_is_the_fit_to_its_rows() -> None:
    source = MixtureSource(3000, 4, 6, spread=0.1, random_state=2)
    streamed = VCGMM(6, coreset_size=500, random_state=0).fit(source)
    held = VCGMM(6, coreset_size=500, random_state=0).fit(np.asarray(source))
    np.testing.assert_array_equal(streamed.means_, held.means_)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("n_samples", 0),
        ("n_features", 2.5),
        ("n_clusters", -3),
        ("n_latent", 0),
        ("separation", -1.0),
        ("spread", np.nan),
        ("imbalance", "much"),
        ("location", np.inf),
        ("dtype", "complex64"),
    ],
)
def test_bad_arguments_are_named(argument: str, value: Any) -> None:
    arguments: dict[str, Any] = {"n_samples": 10, "n_features": 2, "n_clusters": 2, argument: value}
    with pytest.raises(ValueError, match=rf"^{argument}=.*: give "):
        MixtureSource(**arguments)
