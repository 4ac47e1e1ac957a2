"""What Dask collections may look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy import sparse

from vcgmm import VCGMM
from vcgmm.distributed import DaskVCGMM

NAMES = ["a", "b", "c", "d", "e"]


def fit(client: Client, X: Any, sample_weight: Any = None, **settings: Any) -> DaskVCGMM:
    settings = {"n_components": 8, "random_state": 0, "coreset_size": 1000, **settings}
    return DaskVCGMM(client=client, **settings).fit(X, sample_weight=sample_weight)


def local_means(X: np.ndarray, sample_weight: np.ndarray | None = None) -> np.ndarray:
    return VCGMM(8, random_state=0, coreset_size=1000).fit(X, sample_weight=sample_weight).means_


@pytest.mark.parametrize("em", ["gathered", "distributed"])
def test_a_dataframe_keeps_its_names_and_needs_no_known_lengths(client: Client, X: np.ndarray, em: str) -> None:
    frame = pd.DataFrame(X, columns=NAMES)
    lazy = dd.from_pandas(frame, npartitions=4)
    weights = lazy["a"]  # any positive series of as many rows
    model = fit(client, lazy, weights, em=em)
    assert model.feature_names_in_.tolist() == NAMES
    assert np.abs(model.means_ - local_means(X, X[:, 0])).max() < 1e-8
    labels = model.predict(lazy)
    assert isinstance(labels, da.Array)
    assert labels.dtype == np.int32
    assert labels.numblocks == (4,)
    assert (labels.compute() == model.to_local().predict(frame)).all()
    assert model.score(lazy, sample_weight=weights) == pytest.approx(model.to_local().score(frame, None, X[:, 0]))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(lazy[NAMES[::-1]])


def test_columns_of_several_types(client: Client, X: np.ndarray) -> None:
    frame = pd.DataFrame(X, columns=NAMES)
    frame["a"] = frame["a"].round().astype("Int64")
    frame["b"] = frame["b"].astype(np.float32)
    frame["c"] = frame["c"].round().astype(np.int16)
    model = fit(client, dd.from_pandas(frame, npartitions=3))
    assert np.abs(model.means_ - local_means(frame.to_numpy(np.float64))).max() < 1e-8


def test_an_array_of_unknown_lengths(client: Client, X: np.ndarray) -> None:
    lazy = da.from_array(X, chunks=(1500, 3))
    some = lazy[lazy[:, 0] > 100]
    assert np.isnan(some.shape[0])
    expected = X[X[:, 0] > 100]
    model = fit(client, some)
    assert np.isnan(some.shape[0])  # what was given is left as it is
    assert np.abs(model.means_ - local_means(expected)).max() < 1e-8
    assert (model.predict(some).compute() == model.to_local().predict(expected)).all()
    error = model.to_local().quantization_error(expected)
    assert model.quantization_error(some) == pytest.approx(error, rel=1e-12)


@pytest.mark.parametrize("em", ["gathered", "distributed"])
def test_empty_partitions(client: Client, X: np.ndarray, em: str) -> None:
    lazy = da.from_array(X, chunks=((0, 3000, 0, 0, 2999, 1, 0), 5))
    model = fit(client, lazy, em=em)
    assert np.abs(model.means_ - local_means(X)).max() < 1e-8
    assert (model.predict(lazy).compute() == model.to_local().predict(X)).all()
    assert model.score_samples(lazy).compute() == pytest.approx(model.to_local().score_samples(X))
    assert model.predict_proba(lazy).compute().shape == (6000, 8)
    assert model.nearest(lazy, 3)[0].compute().shape == (6000, 3)


@pytest.mark.parametrize(
    "give",
    [
        lambda weights: da.from_array(weights, chunks=100),
        lambda weights: dd.from_pandas(pd.Series(weights), npartitions=2),
        lambda weights: weights,
        lambda weights: weights.tolist(),
        lambda weights: pd.Series(weights),
    ],
    ids=["array", "dask series", "numpy", "list", "series"],
)
def test_weights_in_any_form(
    client: Client, X: np.ndarray, weights: np.ndarray, give: Callable[[np.ndarray], Any]
) -> None:
    model = fit(client, da.from_array(X, chunks=(2500, 5)), give(weights))
    assert np.abs(model.means_ - local_means(X, weights)).max() < 1e-8


@pytest.mark.parametrize("em", ["gathered", "distributed"])
def test_a_partition_without_weight_gives_nothing(client: Client, X: np.ndarray, em: str) -> None:
    weights = np.ones(6000)
    weights[1000:2000] = 0
    weights[5000:] = 0
    lazy = da.from_array(X, chunks=(1000, 5))
    for size in (1000, None):
        model = fit(client, lazy, weights, em=em, coreset_size=size)
        assert weights[model.coreset_.indices].all()
    error = model.quantization_error(lazy, sample_weight=weights)
    assert error == pytest.approx(model.to_local().quantization_error(X, weights), rel=1e-12)


def test_one_weight_for_all(client: Client, X: np.ndarray) -> None:
    lazy = da.from_array(X, chunks=(2500, 5))
    one, three = fit(client, lazy), fit(client, lazy, 3.0)
    assert three.means_ == pytest.approx(one.means_, rel=1e-9)
    assert three.counts_ == pytest.approx(3 * one.counts_, rel=1e-6)


def broken(X: np.ndarray, row: int, value: float) -> da.Array:
    rows = X.copy()
    rows[row, 2] = value
    return da.from_array(rows, chunks=((0, 2000, 4000), 5))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X: broken(X, 2017, np.nan), r"NaN: the first in row 2017 \(row 17 of partition 2\), feature 2"),
        (lambda X: broken(X, 5, np.inf), r"infinity \(inf\): the first in row 5 \(row 5 of partition 1\)"),
        (lambda X: broken(X, 5, 1e200), "so large that their squares overflow"),
        (lambda X: da.from_array(X[:2000] * 1e-200, chunks=500), "so little that its squares underflow"),
        (lambda X: da.from_array(X[:5], chunks=(3, 5)), "n_samples=5 is fewer than n_components=8"),
        (lambda _: da.zeros((100, 2), chunks=10), "X has 1 distinct point"),
        (lambda _: da.zeros((0, 2), chunks=10), "0 sample"),
        (lambda X: da.from_array(X, chunks=1000)[da.from_array(X, chunks=1000)[:, 0] > 1e9], "has 0 rows in 6"),
        (lambda _: da.zeros(100, chunks=10), "Expected 2D array, got 1D"),
        (lambda _: da.zeros((10, 10, 2), chunks=10), "dim 3"),
        (lambda _: da.zeros((100, 2), chunks=10, dtype=complex), "Complex data not supported"),
        (lambda _: da.zeros((100, 2), chunks=10, dtype="M8[s]"), "dtype is datetime64|DType"),
        (lambda _: da.zeros((100, 9)).map_blocks(sparse.csr_array), "of type csr_array, but NumPy arrays"),
        (lambda _: dd.from_pandas(pd.DataFrame({"x": [1.0], "y": ["z"]})), "its column 'y' is of type str"),
        (lambda X: X, "of type ndarray, but a Dask array or dataframe is needed"),
    ],
)
def test_bad_rows(client: Client, X: np.ndarray, make: Callable[[np.ndarray], Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        fit(client, make(X))


def test_an_unknown_number_of_features(client: Client, X: np.ndarray) -> None:
    lazy = da.from_array(X, chunks=(1000, 5))
    with pytest.raises(ValueError, match="number of its features is not known"):
        fit(client, lazy[:, da.from_array(np.ones(5, bool), chunks=5)])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: np.where(np.arange(6000) == 4321, -1.0, w), r"sample_weight\[4321\]=-1.0 is not valid"),
        (lambda w: np.where(np.arange(6000) == 7, np.nan, w), r"sample_weight\[7\]=nan is not valid"),
        (lambda w: 0 * w, "zero for every row"),
        (lambda _: np.full(6000, 1e308), "sums to infinity"),
        (lambda w: w[:-1], r"shape \(5999,\), but X has 6000 rows"),
        (lambda w: w[:, None], r"shape \(6000, 1\), but X has 6000 rows"),
        (lambda w: w.astype("M8[s]"), "dtype is datetime64"),
    ],
)
def test_bad_weights(client: Client, X: np.ndarray, weights: np.ndarray, change: Any, message: str) -> None:
    lazy = da.from_array(X, chunks=(1000, 5))
    for given in (da.from_array(change(weights), chunks=900), change(weights)):
        with pytest.raises(ValueError, match=message):
            fit(client, lazy, given)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"em": "everywhere"}, "em='everywhere' is not known: choose from 'gathered', 'distributed'"),
        ({"em": "distributed", "search": "pointwise"}, "search='pointwise' is not offered with em='distributed'"),
        ({"em": "distributed", "checkpoint": "x.ckpt"}, "checkpoint='x.ckpt' is not offered"),
        ({"seeding_size": 0}, "seeding_size=0 is not valid"),
        ({"seeding_size": "all"}, "seeding_size='all' is not valid"),
        ({"n_components": 0}, "n_components=0 is not valid"),
    ],
)
def test_bad_parameters(client: Client, X: np.ndarray, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(client, da.from_array(X, chunks=(1000, 5)), **settings)


def test_a_fit_without_a_client(X: np.ndarray) -> None:
    with pytest.raises(ValueError, match=r"no Dask client: make one with distributed.Client\(\)"):
        fit(None, da.from_array(X, chunks=(1000, 5)))


def test_a_fit_that_fails_leaves_no_trace(client: Client, X: np.ndarray) -> None:
    model = fit(client, da.from_array(X, chunks=(1000, 5)))
    before = dict(vars(model))
    with pytest.raises(ValueError, match="NaN"):
        model.fit(broken(X, 5, np.nan))
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())
