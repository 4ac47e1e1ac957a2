"""Refinement: EM steps over all rows after EM on a coreset."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from digits import digits
from vcgmm import VCGMM, Iteration
from vcgmm.algorithm import reference
from vcgmm.algorithm.cells.extent import Extent
from vcgmm.algorithm.passes import routing, row_search
from vcgmm.algorithm.passes.row_search import RowSearch
from vcgmm.data import ArrayRows
from vcgmm.parallel import Workers
from vcgmm.parameters import settings_of


def blobs(n: int = 4000, n_features: int = 4, n_blobs: int = 60, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=4.0, size=(n_blobs, n_features))
    return centres[rng.integers(n_blobs, size=n)] + rng.normal(size=(n, n_features))


def fit(X: np.ndarray, n_components: int, weights: np.ndarray | None = None, **changes: Any) -> VCGMM:
    options = {"coreset_size": 600, "random_state": 0, **changes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return VCGMM(n_components, **options).fit(X, sample_weight=weights)


def em_step(X: np.ndarray, weights: np.ndarray, model: VCGMM) -> tuple[np.ndarray, float, float, np.ndarray]:
    """One step of exact EM on all rows from a model: means, variance, the bound before it, and masses."""
    everyone = np.tile(np.arange(len(model.means_)), (len(X), 1))
    s = reference.responsibilities(X, model.means_, model.variance_, everyone)
    means, variance = reference.m_step(X, weights, s, model.means_)
    return means, variance, reference.bound(X, weights, model.means_, model.variance_, everyone), weights @ s


# ------------------------------------------------------------------------------------------------- what a pass is


@pytest.mark.parametrize("weighted", [False, True])
def test_a_pass_over_all_clusters_is_a_step_of_exact_em(weighted: bool) -> None:
    X = blobs(n_blobs=8) + 1e3
    weights = np.random.default_rng(1).uniform(0, 5, len(X)) * 1e4 if weighted else None
    before, after = (fit(X, 8, weights, truncation=8, refine=k) for k in (0, 1))
    means, variance, bound, masses = em_step(X, np.ones(len(X)) if weights is None else weights, before)
    np.testing.assert_allclose(after.means_, means, rtol=0, atol=digits(1e-7))
    assert after.variance_ == pytest.approx(variance, rel=digits(1e-7))  # shares below 1e-9 are left out
    assert after.refine_bounds_ == pytest.approx([bound], rel=digits(1e-10))
    np.testing.assert_allclose(after.counts_, masses, rtol=digits(1e-6))


def test_two_passes_are_two_steps() -> None:
    X = blobs(n_blobs=8)
    before, after = (fit(X, 8, truncation=8, refine=k, relaxation=1.0) for k in (0, 2))
    before.means_, before.variance_, first, _ = em_step(X, np.ones(len(X)), before)
    means, variance, second, _ = em_step(X, np.ones(len(X)), before)
    np.testing.assert_allclose(after.means_, means, atol=digits(1e-7))
    assert after.variance_ == pytest.approx(variance, rel=digits(1e-7))  # shares below 1e-9 are left out
    assert after.refine_bounds_ == pytest.approx([first, second], rel=digits(1e-10))


def test_float32_is_close_to_float64() -> None:
    X = blobs().astype(np.float32)
    one, other = (fit(X, 60, refine=2, dtype=dtype, max_iter=1, init=X[:60]) for dtype in ("float32", "float64"))
    np.testing.assert_allclose(one.means_, other.means_, atol=2e-3)
    assert one.variance_ == pytest.approx(other.variance_, rel=1e-3)


def test_rows_of_no_weight_do_not_count() -> None:
    X = blobs()
    weights = np.ones(len(X))
    weights[1::2] = 0.0
    half = fit(X[::2], 20, refine=2, coreset_size=None)
    both = fit(X, 20, weights, refine=2, coreset_size=None)
    np.testing.assert_allclose(both.means_, half.means_, rtol=digits(1e-9), atol=digits(0.0))
    assert both.refine_bounds_ == pytest.approx(half.refine_bounds_)


def test_weight_w_is_w_copies() -> None:
    X = blobs(1500, n_blobs=20)
    copies = np.random.default_rng(3).integers(1, 4, len(X))
    start = {"init": X[:20], "refine": 3, "coreset_size": None, "max_iter": 2}
    weighted = fit(X, 20, copies.astype(float), **start)
    repeated = fit(np.repeat(X, copies, axis=0), 20, **start)
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=digits(1e-8), atol=digits(0.0))
    assert weighted.refine_bounds_ == pytest.approx(repeated.refine_bounds_)


# --------------------------------------------------------------------------------------------------- what it gains


@pytest.mark.parametrize("search", ["blocked", "pointwise"])
def test_the_error_of_a_small_coreset_falls_and_the_bound_rises(search: str) -> None:
    X = blobs(20_000, 8, 150)
    plain, refined = (fit(X, 150, coreset_size=1500, search=search, refine=k) for k in (0, 5))
    everything = fit(X, 150, coreset_size=None, search=search)
    gap, left = (m.quantization_error(X) - everything.quantization_error(X) for m in (plain, refined))
    assert left < 0.5 * gap
    assert refined.score(X) > plain.score(X)
    assert (np.diff(refined.refine_bounds_) > 0).all()
    np.testing.assert_array_equal(refined.lower_bounds_, plain.lower_bounds_)  # those of the coreset
    assert refined.counts_.sum() == pytest.approx(len(X))


def test_wide_rows() -> None:
    X = blobs(1200, 500, 10).astype(np.float32)
    plain, refined = (fit(X, 10, coreset_size=60, refine=k) for k in (0, 2))
    assert refined.quantization_error(X) < plain.quantization_error(X)


def test_zero_passes_change_nothing() -> None:
    model = fit(blobs(), 20)
    assert set(model.timings_) == set(model.n_distance_evaluations_) == {"coreset", "seeding", "em"}
    assert model.refine_bounds_.shape == (0,)


def test_costs_are_told() -> None:
    model = fit(blobs(), 20, refine=2)
    assert list(model.timings_) == list(model.n_distance_evaluations_) == ["coreset", "seeding", "em", "refine"]
    # Up to 20 clusters a search is among all of them: once to begin with, then once a pass; 20 x 20 link them.
    assert 3 * 4000 * 20 <= model.n_distance_evaluations_["refine"] <= 3 * 4000 * 20 + 3 * 400


@pytest.mark.on_cpu  # whose limits are lowered
def test_what_a_row_costs_does_not_grow_with_the_number_of_clusters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "ALL_COMPARED", 16)
    for name in ("MOST_LANDMARKS", "FROM_LANDMARK", "FROM_CLUSTER"):
        monkeypatch.setattr(routing, name, 16)
    X = blobs(60_000, 2)
    start = {"refine": 3, "n_candidates": 12, "max_iter": 1, "truncation": 2}
    few, many = (fit(X, k, init=X[:k], **start) for k in (64, 512))
    per_row = [model.n_distance_evaluations_["refine"] / len(X) for model in (few, many)]
    linking = (3 + 1 + routing.N_LINKS) * 512**2  # clusters among themselves, whatever the number of rows
    assert per_row[1] < per_row[0] + routing.MOST_STEPS * 16 + linking / len(X) < per_row[0] + 400


# ----------------------------------------------------------------------------------- what it does not depend on


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_number_of_threads_does_not_matter(monkeypatch: pytest.MonkeyPatch, dtype: type) -> None:
    monkeypatch.setattr(row_search, "CHUNK_VALUES", 4 * 1000)
    monkeypatch.setattr(routing, "ALL_COMPARED", 20)
    X = blobs(300_000, 4).astype(dtype)  # several blocks, so several chunks
    models = [fit(X, 60, refine=2, n_threads=n) for n in (1, 2, 5)]
    for other in models[1:]:
        assert other.means_.tobytes() == models[0].means_.tobytes()
        assert other.variance_ == models[0].variance_
        assert other.refine_bounds_.tolist() == models[0].refine_bounds_.tolist()
        assert other.counts_.tobytes() == models[0].counts_.tobytes()


@pytest.mark.on_cpu  # which is told to forget
def test_clusters_are_found_anew_where_they_are_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    X = blobs()
    remembered = fit(X, 60, refine=3)
    monkeypatch.setattr(row_search, "REMEMBERED", 0)
    found = fit(X, 60, refine=3)
    np.testing.assert_allclose(found.means_, remembered.means_, rtol=1e-9, atol=1e-9)
    evaluations = [model.n_distance_evaluations_["refine"] for model in (remembered, found)]
    assert evaluations[1] == evaluations[0] + 2 * 60 * len(X)


def test_chunks_make_no_difference_but_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    X = blobs(150_000, 4)
    whole = fit(X, 30, refine=2)
    monkeypatch.setattr(row_search, "CHUNK_VALUES", 4)  # a block at a time
    parts = fit(X, 30, refine=2)
    np.testing.assert_allclose(parts.means_, whole.means_, rtol=1e-10, atol=1e-12)


# ------------------------------------------------------------------------------------------------- its manners


def test_callbacks_hear_of_passes_with_numbers_that_go_on() -> None:
    told: list[Iteration] = []
    model = fit(blobs(), 20, refine=3, callbacks=told.append)
    assert [facts.iteration for facts in told] == list(range(1, model.n_iter_ + 4))
    assert [facts.bound for facts in told[-3:]] == model.refine_bounds_.tolist()
    assert len(model.history_["bound"]) == model.n_iter_
    assert (np.diff([facts.seconds for facts in told]) > 0).all()


def test_a_callback_may_stop_it_between_two_passes() -> None:
    plain = fit(blobs(), 20)
    model = fit(blobs(), 20, refine=5, callbacks=lambda facts: facts.iteration == plain.n_iter_ + 2)
    assert len(model.refine_bounds_) == 2
    assert model.converged_
    assert model.means_.tobytes() == fit(blobs(), 20, refine=2).means_.tobytes()


def test_a_fit_that_was_stopped_is_not_refined() -> None:
    model = fit(blobs(), 20, refine=5, callbacks=lambda _: True)
    assert (model.n_iter_, len(model.refine_bounds_)) == (1, 0)


@pytest.mark.on_cpu  # device="auto" has a line of its own
def test_progress_counts_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    fit(blobs(), 20, refine=2, verbose=1)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["coreset", "seeding", "em", "refine"]
    assert "8,000 rows" in lines[-1]


@pytest.mark.parametrize("refine", [-1, 1.5, "2", True, None])
def test_the_number_of_passes_is_checked(refine: Any) -> None:
    with pytest.raises(ValueError, match=r"refine=.* is not valid: give an integer of at least 0"):
        fit(blobs(), 20, refine=refine)


# ------------------------------------------------------------------------------------------- the search itself


def search_over(X: np.ndarray, n_components: int, workers: Workers) -> tuple[RowSearch, VCGMM]:
    model = fit(X, n_components, coreset_size=None, truncation=n_components)
    absolute = np.abs(X - model._frame.origin).sum(axis=0) * model._frame.scale
    settings = settings_of(model, ArrayRows(X))
    rows, frame = ArrayRows(X), model._frame
    search = RowSearch(rows, None, Extent(len(X), absolute), frame, settings, 1e-12, workers, lambda _: None)
    return search, model


@pytest.mark.on_cpu  # a search of the CPU, from a fit to all digits
def test_the_scatter_about_other_means_is_that_of_the_same_responsibilities(workers: Workers) -> None:
    X = blobs(n_blobs=8)
    search, model = search_over(X, 8, workers)
    frame = model._frame
    statistics = search.e_step(frame.enter(model.means_), model.variance_ * frame.scale**2)
    moved = model.means_ + np.random.default_rng(0).normal(size=model.means_.shape)
    everyone = np.tile(np.arange(8), (len(X), 1))
    s = reference.responsibilities(X, model.means_, model.variance_, everyone)
    expected = (s * ((X[:, None] - moved) ** 2).sum(axis=2)).sum() * frame.scale**2
    assert search.scatter(statistics, frame.enter(moved)) == pytest.approx(expected, rel=1e-9)


def test_without_a_variance_it_comes_from_the_nearest_winners(workers: Workers) -> None:
    X = blobs(n_blobs=8)
    search, model = search_over(X, 8, workers)
    statistics = search.e_step(model._frame.enter(model.means_), None)
    error = model.quantization_error(X) * model._frame.scale**2
    assert search.error == pytest.approx(error)
    assert statistics.variance == pytest.approx(error / X.size)


def test_a_row_far_from_all_others_gets_its_cluster_without_ruining_the_variance() -> None:
    # Not in the coreset's own means: the mean of its cluster moves so far that the scatter is nearly all gone.
    X = blobs(2000, 2, 5)
    X[0] = 1e6
    start = np.vstack([X[1:6], [[5e5, 5e5]]])
    model = fit(X, 6, init=start, coreset_size=None, max_iter=1, refine=1, relaxation=1.0)
    assert np.abs(model.means_ - 1e6).sum(axis=1).min() < 1e6 * digits(1e-9)
    assert model.variance_ < 100
