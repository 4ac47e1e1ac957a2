"""EM steps over all rows on the device, after those over the coreset."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm import VCGMM  # noqa: E402
from vcgmm.gpu.passes import row_search  # noqa: E402


def rows(n: int = 150) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = 6 * rng.normal(size=(8, 3))
    return (centres[rng.integers(8, size=n)] + rng.normal(size=(n, 3))).astype(np.float32)


def fitted(X: Any, **changes: Any) -> VCGMM:
    options = {"n_components": 8, "random_state": 0, "max_iter": 3, "device": "cuda", "precision": "fp32"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return VCGMM(**{**options, "init": rows()[:8], "coreset_size": 80, "refine": 2, **changes}).fit(X)


@pytest.mark.parametrize("kind", ["isotropic", "diag", "spherical"])
def test_passes_over_rows_of_the_host_are_those_of_the_cpu(gpu: Any, kind: str) -> None:
    X, about = rows(), {"covariance_type": kind, "n_shared": 1}
    expected, found = fitted(X, device="cpu", **about), fitted(X, **about)
    np.testing.assert_allclose(found.refine_bounds_, expected.refine_bounds_, rtol=1e-4)
    np.testing.assert_allclose(found.means_, expected.means_, atol=1e-2)
    np.testing.assert_allclose(found.covariances_, expected.covariances_, rtol=2e-2)
    assert found.n_distance_evaluations_["refine"] > 0
    assert isinstance(found.means_, np.ndarray)


def test_rows_may_come_in_several_chunks(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    X, told = torch.from_numpy(rows()).to(gpu), []
    weights = np.linspace(0.5, 2.0, len(X))
    expected = VCGMM(8, device="cpu", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        options = {"init": rows()[:8], "coreset_size": None, "refine": 2, "max_iter": 1, "tol": 0.0}
        expected.set_params(**options).fit(rows(), sample_weight=weights)
        monkeypatch.setattr(row_search, "CHUNK_VALUES", 90)
        monkeypatch.setattr("vcgmm.gpu.coreset.tensors.BLOCK_VALUES", 90)
        found = VCGMM(8, device="cuda", precision="fp32", random_state=0, callbacks=told.append, **options)
        found.fit(X, sample_weight=weights)
    np.testing.assert_allclose(found.refine_bounds_, expected.refine_bounds_, rtol=1e-5)
    assert [facts.iteration for facts in told] == [1, 2, 3]


def test_very_many_clusters_are_found_by_a_way(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fitted(rows())
    monkeypatch.setattr(row_search, "ALL_COMPARED", 2)
    found = fitted(rows())
    np.testing.assert_allclose(found.refine_bounds_, expected.refine_bounds_, rtol=1e-2)


def test_a_pass_says_what_it_is_asked(gpu: Any) -> None:
    from vcgmm.algorithm.coreset.frame import Frame
    from vcgmm.algorithm.row_searches import About
    from vcgmm.algorithm.snapshot import Problem
    from vcgmm.data import ArrayRows
    from vcgmm.gpu.passes.row_search import DeviceRowSearch
    from vcgmm.parallel import Workers
    from vcgmm.parameters import settings_of

    X = rows(90)
    means, given = X[:8].astype(np.float64), ArrayRows(X)
    settings = settings_of(VCGMM(8, random_state=0), given)
    frame: Any = Frame(np.zeros(3), 1.0, np.dtype(np.float32))
    coreset: Any = None
    about = About(given, None, 90.0, Problem(settings, coreset, 1.0, frame, 1e-12), lambda _: None)
    search = DeviceRowSearch(about, gpu, "fp32", Workers(1))
    with pytest.raises(RuntimeError, match="before the means are known"):
        next(iter(search._searches()))
    squares = ((X[:, None].astype(np.float64) - means) ** 2).sum(2)
    error, _ = search.warm_up(means)
    assert error == pytest.approx(squares.min(1).sum(), rel=1e-5)
    statistics = search.e_step(means, None)
    assert statistics.variance == pytest.approx(error / (3 * 90), rel=1e-5)
    assert search.scatter(statistics, means) == pytest.approx(statistics.scatter, rel=1e-5)
    assert search.neighbors.shape == (8, 5)
