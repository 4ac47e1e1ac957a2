"""Same data, seed and settings give the same model as the local fit, to the rounding of sums."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from distributed import Client

from vcgmm import VCGMM
from vcgmm.distributed import DaskVCGMM


def check_same(model: VCGMM, local: VCGMM, rtol: float = 1e-9) -> None:
    assert model.n_iter_ == local.n_iter_
    assert model.converged_ == local.converged_
    assert (model.coreset_.indices == local.coreset_.indices).all()
    assert (np.asarray(model.coreset_.points) == local.coreset_.points).all()
    assert model.coreset_.weights == pytest.approx(local.coreset_.weights, rel=1e-7 if rtol > 1e-8 else 1e-9)
    assert np.abs(model.means_ - local.means_).max() < rtol * np.abs(local.means_).max()
    assert model.variance_ == pytest.approx(local.variance_, rel=rtol)
    assert model.lower_bounds_ == pytest.approx(local.lower_bounds_, rel=rtol)
    assert model.counts_ == pytest.approx(local.counts_, rel=1e-3 if rtol > 1e-8 else 1e-6, abs=1e-3)
    assert (model.neighbors_ == local.neighbors_).all()
    assert model.n_distance_evaluations_ == local.n_distance_evaluations_


@pytest.mark.parametrize("em", ["gathered", "distributed"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [2000, None])
def test_two_processes_and_tcp(
    tcp_client: Client, X: np.ndarray, weights: np.ndarray, em: str, weighted: bool, size: int | None
) -> None:
    given = weights if weighted else None
    lazy = None if given is None else da.from_array(given, chunks=1700)
    local = VCGMM(30, coreset_size=size, random_state=3).fit(X, sample_weight=given)
    model = DaskVCGMM(30, coreset_size=size, random_state=3, em=em, client=tcp_client)
    model.fit(da.from_array(X, chunks=(1300, 2)), sample_weight=lazy)
    check_same(model, local)


@pytest.mark.parametrize("em", ["gathered", "distributed"])
@pytest.mark.parametrize(
    "settings",
    [
        {"init": "afkmc2", "n_init": 3},
        {"n_explore": 2, "n_warmup": 2, "n_neighbors": 3},
        {"relaxation": 1.0, "truncation": 2, "n_candidates": 8},
        {"init": "random", "reg_covar": 0.1, "n_threads": 2},
        {"coreset_size": 0.3, "n_threads": 1},
        {"n_components": 1},
    ],
    ids=str,
)
def test_whatever_the_settings(client: Client, X: np.ndarray, em: str, settings: dict[str, Any]) -> None:
    settings = {"n_components": 25, "random_state": 1, "max_iter": 500, **settings}
    local = VCGMM(**settings).fit(X)
    check_same(DaskVCGMM(em=em, client=client, **settings).fit(da.from_array(X, chunks=(2500, 5))), local)


@pytest.mark.parametrize("em", ["gathered", "distributed"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int16])
def test_in_float32(client: Client, X: np.ndarray, em: str, dtype: Any) -> None:
    rows = X.astype(dtype)
    settings = {"n_components": 20, "random_state": 2, "coreset_size": 3000}
    local = VCGMM(**settings).fit(rows)
    model = DaskVCGMM(em=em, client=client, **settings).fit(da.from_array(rows, chunks=(900, 5)))
    assert model._frame.dtype == np.float32
    check_same(model, local, rtol=1e-5)


def test_from_given_means_and_again_from_the_last(client: Client, X: np.ndarray) -> None:
    settings = {"n_components": 12, "init": X[:12], "warm_start": True, "coreset_size": None}
    local = VCGMM(**settings).fit(X).fit(X)
    lazy = da.from_array(X, chunks=(4000, 5))
    check_same(DaskVCGMM(em="distributed", client=client, **settings).fit(lazy).fit(lazy), local)


def test_pointwise_on_the_gathered_coreset(client: Client, X: np.ndarray) -> None:
    settings = {"n_components": 10, "search": "pointwise", "random_state": 0, "coreset_size": 1500}
    local = VCGMM(**settings).fit(X)
    check_same(DaskVCGMM(client=client, **settings).fit(da.from_array(X, chunks=(2000, 5))), local)


@pytest.mark.parametrize("em", ["gathered", "distributed"])
def test_where_points_repeat_rows_that_no_draw_met_are_added(client: Client, em: str) -> None:
    """Two points have all the weight and are far apart: draws meet hardly any of the others."""
    rng = np.random.default_rng(0)
    rows = np.full((50_000, 2), 3.0)
    rows[::2] = -3.0
    rare = rng.choice(len(rows), 300, replace=False)
    rows[rare] = rng.normal(size=(300, 2))
    weights = np.ones(len(rows))
    weights[rare] = 1e-12
    settings = {"n_components": 200, "coreset_size": 300, "random_state": 0, "tol": 1.0}
    local = VCGMM(**settings).fit(rows, sample_weight=weights)
    assert len(np.unique(local.coreset_.points, axis=0)) == 200
    model = DaskVCGMM(em=em, client=client, **settings)
    model.fit(da.from_array(rows, chunks=(9_000, 2)), sample_weight=weights)
    assert (model.coreset_.indices == local.coreset_.indices).all()
    assert model.coreset_.weights == pytest.approx(local.coreset_.weights, rel=1e-9)
    assert len(np.unique(np.asarray(model.coreset_.points), axis=0)) == 200


def test_means_that_meet_their_points_at_once_need_a_second_pass(client: Client) -> None:
    """Nothing is left of the scatter after the first M-step: what remains must not be rounding."""
    places = np.random.default_rng(1).normal(size=(6, 3))
    rows = np.repeat(places, 50, axis=0)
    settings = {"n_components": 6, "init": places + 0.01, "relaxation": 1.0}
    local = VCGMM(**settings).fit(rows)
    model = DaskVCGMM(em="distributed", client=client, **settings).fit(da.from_array(rows, chunks=(70, 3)))
    assert model.means_ == pytest.approx(local.means_, abs=1e-12)
    assert model.variance_ == pytest.approx(local.variance_, rel=1e-6)


def test_partitions_and_workers_change_no_more_than_rounding(client: Client, X: np.ndarray) -> None:
    settings = {"n_components": 15, "random_state": 0, "em": "distributed", "client": client}
    models = [
        DaskVCGMM(**settings).fit(da.from_array(X, chunks=chunks))
        for chunks in [(6000, 5), (100, 5), ((1, 5000, 0, 999), 1)]
    ]
    for other in models[1:]:
        assert np.abs(other.means_ - models[0].means_).max() < 1e-9


def test_own_variances_gathered_are_those_of_the_local_fit(client: Client, X: np.ndarray) -> None:
    settings = {"n_components": 25, "random_state": 1, "covariance_type": "diag"}
    local = VCGMM(**settings).fit(X)
    model = DaskVCGMM(em="gathered", client=client, **settings).fit(da.from_array(X, chunks=(2500, 5)))
    check_same(model, local, rtol=1e-6)
    np.testing.assert_allclose(model.covariances_, local.covariances_, rtol=1e-6)
    lazy = da.from_array(X, chunks=(2500, 5))
    np.testing.assert_allclose(model.score_samples(lazy).compute(), local.score_samples(X), rtol=1e-6)


def test_own_variances_are_refused_where_em_is_distributed(client: Client, X: np.ndarray) -> None:
    model = DaskVCGMM(5, em="distributed", covariance_type="diag", client=client)
    with pytest.raises(ValueError, match="covariance_type='diag' with mixing='learned' is not offered yet"):
        model.fit(da.from_array(X, chunks=(2500, 5)))


@pytest.mark.parametrize("em", ["gathered", "distributed"])
def test_on_the_sphere(client: Client, X: np.ndarray, em: str) -> None:
    rows = X + 5.0
    lazy = da.from_array(rows, chunks=(1700, X.shape[1]))
    local = VCGMM(8, metric="cosine", random_state=0, compute_labels=True).fit(rows)
    model = DaskVCGMM(8, metric="cosine", random_state=0, client=client, em=em, compute_labels=True).fit(lazy)
    np.testing.assert_allclose(model.means_, local.means_, atol=1e-4)
    np.testing.assert_allclose(np.linalg.norm(model.means_, axis=1), 1.0, rtol=1e-12)
    assert (model.labels_.compute() == local.labels_).mean() > 0.999
    assert model.inertia_ == pytest.approx(local.inertia_, rel=1e-4)
    rows[2345] = 0
    with pytest.raises(ValueError, match="a row of zeros, row 2345"):
        DaskVCGMM(8, metric="cosine", client=client, em=em).fit(da.from_array(rows, chunks=(1700, X.shape[1])))
