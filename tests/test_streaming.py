"""partial_fit: a stream block by block."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from vcgmm import VCGMM, Coreset, lightweight_coreset
from vcgmm.algorithm import pipeline


def mixture(n: int, n_clusters: int = 40, n_features: int = 4, seed: int = 0) -> np.ndarray:
    """Clusters that overlap, of unequal size, with heavy tails: what real data are like."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).normal(scale=2.0, size=(n_clusters, n_features))
    shares = np.random.default_rng(98).lognormal(size=n_clusters)
    labels = rng.choice(n_clusters, n, p=shares / shares.sum())
    return (centres[labels] + rng.standard_t(4, size=(n, n_features)) * 0.6).astype(np.float32)


def blocks(X: np.ndarray, size: int) -> Iterator[np.ndarray]:
    return (X[first : first + size] for first in range(0, len(X), size))


def stream(X: np.ndarray, block: int = 500, **parameters: Any) -> VCGMM:
    model = VCGMM(**{"n_components": 40, "random_state": 0, **parameters})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for part in blocks(X, block):
            model.partial_fit(part)
    return model


# ------------------------------------------------------------------------------------------------------ how close


@pytest.mark.parametrize("order", ["as it comes", "sorted"])
@pytest.mark.parametrize("block", [100, 1700, 40_000])
def test_a_stream_ends_within_six_percent_of_a_fit_to_all_of_it(order: str, block: int) -> None:
    X = mixture(40_000)
    if order == "sorted":  # the worst order: every block is unlike the ones before
        X = X[np.argsort(X[:, 0])]
    seeds = range(3)  # when EM ran last is chance, and worth some percents
    everything = [VCGMM(40, random_state=seed).fit(X).quantization_error(X) for seed in seeds]
    # 100 points a cluster, a tenth of the rows
    models = [stream(X, block, coreset_size=4000, random_state=seed) for seed in seeds]
    assert np.median([model.quantization_error(X) for model in models]) < 1.06 * np.median(everything)
    model = models[0]
    assert model.coreset_.n_samples == 40_000
    assert len(model.coreset_) < 20_000
    assert model.counts_.sum() == pytest.approx(40_000, rel=0.05)


def test_rows_that_are_all_kept_come_as_close_as_a_fit_to_them() -> None:
    X = mixture(10_000)
    model = stream(X, 700)
    np.testing.assert_array_equal(model.coreset_.points, X)
    everything = VCGMM(40, random_state=0).fit(X).quantization_error(X)
    assert model.quantization_error(X) < 1.01 * everything


def test_after_every_block_the_means_are_of_what_has_been_seen() -> None:
    X = mixture(8000)
    model = VCGMM(40, random_state=0, coreset_size=500)
    for n, part in enumerate(blocks(X, 400), 1):
        model.partial_fit(part)
        seen = X[: 400 * n]
        spread = ((seen - seen.mean(axis=0)) ** 2).sum()
        assert model.quantization_error(seen) < 0.3 * spread
        assert model.coreset_.n_samples == len(seen)
        assert model.predict(part).max() < 40


def test_a_new_region_gets_clusters_at_once() -> None:
    X = mixture(4000)
    model = stream(X)
    far = mixture(300, seed=5) + 60
    model.partial_fit(far)
    assert model.quantization_error(far) < 0.5 * ((far - far.mean(axis=0)) ** 2).sum()


def test_small_blocks_move_the_means_without_em_on_all_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    X = mixture(6000)
    model = stream(X)
    before, bounds = model.means_, model.lower_bounds_

    def refuse(*_: Any) -> None:
        raise AssertionError("EM ran on everything")

    monkeypatch.setattr("vcgmm.streaming.run", refuse)
    model.partial_fit(mixture(50, seed=3))
    assert 0 < np.abs(model.means_ - before).max() < 1
    assert model.lower_bounds_ is bounds
    assert model.counts_.sum() == pytest.approx(6050)
    assert model.covariances_.tolist() == [model.variance_] * 40


def test_em_runs_a_number_of_times_that_grows_with_the_logarithm(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[int] = []

    def counted(rows: Any, *arguments: Any) -> Any:
        runs.append(rows.n_samples)
        return pipeline.run(rows, *arguments)

    monkeypatch.setattr("vcgmm.streaming.run", counted)
    stream(mixture(20_000), 100, coreset_size=1000)  # 200 blocks
    assert len(runs) < 2 * 20  # twice each time, at a growth by half: log(200) / log(1.5) = 13, and a few at first
    assert max(runs) < 12_000


# ---------------------------------------------------------------------------------------------- what it depends on


def test_the_same_blocks_and_seed_give_the_same_bits_on_any_number_of_threads() -> None:
    X = mixture(6000)
    one, two, other = (
        stream(X, coreset_size=500, n_threads=n, random_state=seed) for n, seed in ((1, 3), (3, 3), (1, 4))
    )
    assert one.means_.tobytes() == two.means_.tobytes()
    assert one.coreset_.weights.tobytes() == two.coreset_.weights.tobytes()
    assert one.means_.tobytes() != other.means_.tobytes()


def test_weight_w_counts_like_w_copies() -> None:
    X = mixture(900)
    model = VCGMM(5, random_state=0, init=X[:5])
    again = clone(model)
    for part in blocks(X, 300):
        model.partial_fit(part, sample_weight=np.full(len(part), 3.0))
        again.partial_fit(np.repeat(part, 3, axis=0))
    np.testing.assert_allclose(model.means_, again.means_, rtol=1e-4, atol=1e-4)
    assert model.counts_.sum() == pytest.approx(2700)


def test_rows_of_no_weight_are_not_kept() -> None:
    X = mixture(1000)
    weights = (np.arange(1000) % 2).astype(float)
    model = VCGMM(10, random_state=0).partial_fit(X, sample_weight=weights)
    np.testing.assert_array_equal(model.coreset_.points, X[1::2])


def test_coresets_of_shards_can_be_blocks() -> None:
    X = mixture(9000)
    model = VCGMM(40, random_state=0)
    for shard in np.array_split(X, 3):
        model.partial_fit(lightweight_coreset(shard, 1500, random_state=0))
    assert model.coreset_.n_samples == 9000
    assert model.quantization_error(X) < 1.1 * VCGMM(40, random_state=0).fit(X).quantization_error(X)
    with pytest.raises(ValueError, match="sample_weight is given"):
        model.partial_fit(Coreset(X), sample_weight=np.ones(9000))


def test_blocks_may_be_of_other_types() -> None:
    X = np.round(mixture(600) * 10)
    model = VCGMM(5, random_state=0).partial_fit(X.astype(np.int16)).partial_fit(X.astype(np.float64) + 0.25)
    assert model.coreset_.points.dtype == np.float64
    assert len(model.coreset_) == 1200
    model.partial_fit(X.astype(np.int16)[::-1])
    assert model._frame.dtype == np.float64


@pytest.mark.parametrize("parameters", [{"search": "pointwise"}, {"dtype": "float64"}, {"init": "afkmc2"}])
def test_other_ways_to_fit_follow_a_stream_too(parameters: dict[str, Any]) -> None:
    X = mixture(3000)
    model = stream(X, 250, **parameters)
    everything = VCGMM(40, random_state=0, **parameters).fit(X).quantization_error(X)
    assert model.quantization_error(X) < 1.1 * everything


def test_without_a_coreset_size_every_row_is_kept() -> None:
    X = mixture(3000)
    np.testing.assert_array_equal(stream(X, coreset_size=None, n_components=5).coreset_.points, X)


# ------------------------------------------------------------------------------------------------------ few rows


def test_before_there_are_enough_rows_there_is_no_model() -> None:
    X = mixture(100)
    model = VCGMM(40, random_state=0)
    for n in range(3):
        model.partial_fit(X[10 * n : 10 * n + 10])
        assert not hasattr(model, "means_")
        message = (
            f"has seen {10 * n + 10} rows, and fewer than n_components=40 different ones: give partial_fit more"
        )
        with pytest.raises(NotFittedError, match=message):
            model.predict(X)
        with pytest.raises(NotFittedError):
            model.save("nowhere.vcgmm")
    model.partial_fit(np.repeat(X[:1], 500, axis=0))  # many rows, but not many different ones
    assert not hasattr(model, "means_")
    model.partial_fit(X[30:40])
    assert model.means_.shape == (40, 4)
    assert model.coreset_.n_samples == 540
    assert len(np.unique(model.means_, axis=0)) == 40


# ------------------------------------------------------------------------------------------------- goes on from it


def test_it_goes_on_from_a_fit() -> None:
    X = mixture(12_000)
    model = VCGMM(40, random_state=0, coreset_size=2000).fit(X[:8000])
    assert len(model.coreset_) < 2001
    for part in blocks(X[8000:], 500):
        model.partial_fit(part)
    assert model.coreset_.n_samples == 12_000
    assert model.coreset_.indices is None
    everything = VCGMM(40, random_state=0).fit(X).quantization_error(X)
    assert model.quantization_error(X) < 1.06 * everything  # 50 points a cluster
    fresh = clone(model).fit(X)
    assert model.fit(X).means_.tobytes() == fresh.means_.tobytes()  # fit begins anew …
    assert model.partial_fit(X[:10]).coreset_.n_samples == 12_010  # … and so does the stream after it


@pytest.mark.parametrize("way", ["file", "pickle"])
def test_a_model_kept_in_the_middle_goes_on_to_the_same_bits(tmp_path: Path, way: str) -> None:
    X = mixture(6000)
    parts = list(blocks(X, 300))
    model = stream(np.concatenate(parts[:11]), 300, coreset_size=400)
    assert len(model._stream.levels) > 1
    if way == "file":
        model.save(tmp_path / "model.vcgmm", coreset=True)
        again = VCGMM.load(tmp_path / "model.vcgmm")
    else:
        again = pickle.loads(pickle.dumps(model))
    for part in parts[11:]:
        model.partial_fit(part)
        again.partial_fit(part)
    assert again.means_.tobytes() == model.means_.tobytes()
    assert again.coreset_.points.tobytes() == model.coreset_.points.tobytes()


def test_a_model_loaded_without_its_coreset_cannot_go_on(tmp_path: Path) -> None:
    X = mixture(1000)
    stream(X).save(tmp_path / "model.vcgmm")
    again = VCGMM.load(tmp_path / "model.vcgmm")
    before = again.means_
    with pytest.raises(ValueError, match="no coreset_, so partial_fit cannot go on from it: save with"):
        again.partial_fit(X)
    assert again.means_ is before


def test_the_number_of_clusters_may_change_on_the_way() -> None:
    X = mixture(3000)
    model = stream(X)
    model.set_params(n_components=7).partial_fit(X[:10])
    assert model.means_.shape == (7, 4)


def test_clones_are_new() -> None:
    assert not hasattr(clone(stream(mixture(500), n_components=3)), "coreset_")


# ------------------------------------------------------------------------------------------------------- bad input


def test_every_block_has_the_same_features() -> None:
    X = mixture(500)
    model = VCGMM(5, random_state=0).partial_fit(X)
    with pytest.raises(ValueError, match="X has 3 features, but VCGMM is expecting 4 features"):
        model.partial_fit(X[:, :3])
    named = VCGMM(5, random_state=0).partial_fit(pd.DataFrame(X, columns=list("abcd")))
    assert named.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        named.partial_fit(pd.DataFrame(X, columns=list("abce")))


def test_a_bad_block_leaves_the_stream_as_it_was() -> None:
    X = mixture(1500)
    model = stream(X[:1000])
    bad = X[1000:].copy()
    bad[17, 2] = np.nan
    before = dict(model.__dict__)
    with pytest.raises(ValueError, match="contains NaN: the first in row 17, feature 2"):
        model.partial_fit(bad)
    assert model.__dict__ == before
    model.partial_fit(X[1000:])
    assert model.means_.tobytes() == stream(X).means_.tobytes()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"coreset_size": 0.5}, "coreset_size=0.5 is a share of all rows"),
        ({"coreset_size": 0}, "coreset_size=0 is not valid"),
        ({"coreset_size": "much"}, "coreset_size='much' is not valid"),
        ({"tol": -1.0}, "tol=-1.0 is not valid"),
        ({"n_components": 0}, "n_components=0 is not valid"),
    ],
)
def test_parameters_are_checked_at_the_first_block(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        VCGMM(**{"n_components": 40, **parameters}).partial_fit(mixture(5))


def test_an_end_for_want_of_iterations_is_told() -> None:
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        VCGMM(5, max_iter=1, tol=0.0, random_state=0).partial_fit(mixture(500))


def test_a_callback_may_stop_it() -> None:
    told: list[int] = []

    def stop(facts: Any) -> bool:
        told.append(facts.iteration)
        return len(told) > 1

    model = VCGMM(20, random_state=0, tol=0.0, callbacks=stop).partial_fit(mixture(1000))
    assert told == [1, 2]
    model.partial_fit(mixture(1000, seed=1))  # twice as many rows: EM, from the present means alone
    assert told == [1, 2, 1]
    assert model.coreset_.n_samples == 2000
