"""Predictions over Dask collections: lazy, partition by partition, and those of the local model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client
from scipy import sparse

from vcgmm import VCGMM
from vcgmm.distributed import DaskVCGMM


@pytest.fixture(scope="module")
def lazy(X: np.ndarray) -> da.Array:
    return da.from_array(X, chunks=(1700, 2))


@pytest.fixture(scope="module")
def model(client: Client, lazy: da.Array) -> DaskVCGMM:
    return DaskVCGMM(12, random_state=0, client=client).fit(lazy)


@pytest.fixture(scope="module")
def local(model: DaskVCGMM) -> VCGMM:
    return model.to_local()


def test_labels(model: DaskVCGMM, local: VCGMM, lazy: da.Array, X: np.ndarray) -> None:
    labels = model.predict(lazy)
    assert isinstance(labels, da.Array)
    assert (labels.shape, labels.dtype, labels.chunks) == ((6000,), np.int32, (lazy.chunks[0],))
    computed = labels.compute()
    assert computed.dtype == np.int32
    assert (computed == local.predict(X)).all()


def test_approximate_labels(model: DaskVCGMM, local: VCGMM, lazy: da.Array, X: np.ndarray) -> None:
    labels = model.predict(lazy, method="approximate")
    assert (labels.compute() == local.predict(X, method="approximate")).all()
    with pytest.raises(ValueError, match="method='quick' is not known"):
        model.predict(lazy, method="quick")


def test_nearest(model: DaskVCGMM, local: VCGMM, lazy: da.Array, X: np.ndarray) -> None:
    distances, ids = model.nearest(lazy, 4)
    assert (distances.shape, distances.dtype) == ((6000, 4), np.float64)
    assert (ids.shape, ids.dtype) == ((6000, 4), np.int32)
    expected_distances, expected_ids = local.nearest(X, 4)
    found = dask.compute(distances, ids)
    assert (found[0] == expected_distances).all()
    assert (found[1] == expected_ids).all()
    assert model.nearest(lazy, 99)[1].shape == (6000, 12)  # more than there are: all


def test_posteriors(model: DaskVCGMM, local: VCGMM, lazy: da.Array, X: np.ndarray) -> None:
    posteriors = model.predict_proba(lazy)
    assert posteriors.shape == (6000, 12)
    computed = posteriors.compute()
    assert sparse.issparse(computed)
    assert (computed != local.predict_proba(X)).nnz == 0


def test_densities(model: DaskVCGMM, local: VCGMM, lazy: da.Array, X: np.ndarray) -> None:
    densities = model.score_samples(lazy)
    assert (densities.shape, densities.dtype) == ((6000,), np.float64)
    assert (densities.compute() == local.score_samples(X)).all()


def test_numbers(model: DaskVCGMM, local: VCGMM, lazy: da.Array, X: np.ndarray, weights: np.ndarray) -> None:
    lazy_weights = da.from_array(weights, chunks=999)
    for found, expected in [
        (model.score(lazy), local.score(X)),
        (model.score(lazy, sample_weight=lazy_weights), local.score(X, None, weights)),
        (model.quantization_error(lazy), local.quantization_error(X)),
        (model.quantization_error(lazy, lazy_weights), local.quantization_error(X, weights)),
        (model.bic(lazy), local.bic(X)),
        (model.aic(lazy), local.aic(X)),
    ]:
        assert isinstance(found, float)
        assert found == pytest.approx(expected, rel=1e-12)


def test_arrays_in_memory_are_predicted_at_once(model: DaskVCGMM, local: VCGMM, X: np.ndarray) -> None:
    assert isinstance(model.predict(X), np.ndarray)
    assert (model.predict(X) == local.predict(X)).all()
    assert (model.nearest(X, 2)[1] == local.nearest(X, 2)[1]).all()
    assert (model.score_samples(X) == local.score_samples(X)).all()
    assert (model.predict_proba(X) != local.predict_proba(X)).nnz == 0
    assert model.score(X) == local.score(X)
    assert model.quantization_error(X) == local.quantization_error(X)
    assert (model.bic(X), model.aic(X)) == (local.bic(X), local.aic(X))


def _unread(block: np.ndarray) -> np.ndarray:
    raise RuntimeError("this partition was read")


def test_nothing_is_read_before_it_is_asked_for(model: DaskVCGMM, lazy: da.Array, X: np.ndarray) -> None:
    unread = lazy.map_blocks(_unread, dtype=X.dtype, meta=X[:0])
    mixed = da.concatenate([lazy[:1700], unread])
    for result in (model.predict, model.score_samples, model.predict_proba, lambda rows: model.nearest(rows)[0]):
        found = result(mixed)
        assert found[:10].compute(scheduler="synchronous").shape[0] == 10  # one partition is enough
        with pytest.raises(RuntimeError, match="this partition was read"):
            found.compute(scheduler="synchronous")


def test_predictions_need_no_cluster(model: DaskVCGMM, local: VCGMM, lazy: da.Array, X: np.ndarray) -> None:
    alone = DaskVCGMM()
    vars(alone).update(vars(model), client=None)
    with dask.config.set(scheduler="threads"):
        assert (alone.predict(lazy).compute() == local.predict(X)).all()
        assert alone.score(lazy) == pytest.approx(local.score(X))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda _: da.zeros((10, 4)), "X has 4 features, but DaskVCGMM is expecting 5 features"),
        (lambda _: da.zeros(10), "Expected 2D array"),
    ],
)
def test_other_features_are_refused_at_once(model: DaskVCGMM, X: np.ndarray, make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model.predict(make(X))


def test_a_number_that_is_none_is_named_with_its_partition(model: DaskVCGMM, X: np.ndarray) -> None:
    rows = X.copy()
    rows[3405, 1] = np.nan
    labels = model.predict(da.from_array(rows, chunks=(1700, 5)))
    with pytest.raises(ValueError, match="Partition 2: Input X contains NaN: the first in row 5, feature 1"):
        labels.compute()


def test_before_a_fit(lazy: da.Array) -> None:
    with pytest.raises(ValueError, match="not fitted"):
        DaskVCGMM().predict(lazy)


def test_dask_writes_what_dask_computes(model: DaskVCGMM, lazy: da.Array, X: np.ndarray, tmp_path: Path) -> None:
    for method in (model.predict, model.score_samples):
        with pytest.raises(ValueError, match="is not offered for Dask collections"):
            method(lazy, output=tmp_path / "out.npy")
        assert method(X, output=tmp_path / "out.npy") is None
        assert (np.load(tmp_path / "out.npy") == method(X)).all()
