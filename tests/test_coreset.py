"""Coresets as objects: made, merged, reduced, kept and fitted to."""

from __future__ import annotations

import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM, Coreset, lightweight_coreset, load_coreset, save_coreset

rng = np.random.default_rng(0)
X = rng.normal(size=(3000, 3)) * [1.0, 5.0, 0.2] + [0.0, 100.0, 0.0]


def same(a: Coreset, b: Coreset) -> bool:
    indices = (a.indices is None) == (b.indices is None) and (
        a.indices is None or np.array_equal(a.indices, b.indices)
    )
    arrays = np.array_equal(a.points, b.points) and np.array_equal(a.weights, b.weights)
    return bool(indices and arrays and a.points.dtype == b.points.dtype and a.n_samples == b.n_samples)


def cost(coreset: Coreset, centre: np.ndarray) -> float:
    return float(coreset.weights @ ((coreset.points - centre) ** 2).sum(axis=1))


# --------------------------------------------------------------------------------------------------------- by hand


def test_points_and_weights_of_ones_own() -> None:
    coreset = Coreset([[1, 2], [3, 4], [5, 6]], [1, 0, 2.5], indices=[7, 8, 9], n_samples=10)
    assert (len(coreset), coreset.n_features, coreset.total_weight, coreset.n_samples) == (3, 2, 3.5, 10)
    assert coreset.weights.dtype == np.float64
    assert (coreset.indices.dtype, coreset.indices.tolist()) == (np.int64, [7, 8, 9])  # type: ignore[union-attr]
    assert repr(coreset) == "<Coreset: 3 points of 2 features, int64, of weight 3.5 for 10 rows>"


def test_arrays_that_tell_of_all_rows_alike_are_made_when_they_are_used() -> None:
    def every() -> Coreset:
        return Coreset.of(X, np.broadcast_to(1.0, len(X)), range(len(X)), len(X))

    coreset = every()
    assert not {"weights", "indices"} & set(vars(coreset))
    assert same(coreset, Coreset(X, indices=np.arange(len(X)), n_samples=len(X)))
    assert coreset.weights is coreset.weights
    assert coreset.weights.flags.writeable
    assert same(pickle.loads(pickle.dumps(every())), coreset)
    with pytest.raises(AttributeError, match="no attribute 'weight'"):
        _ = coreset.weight  # type: ignore[attr-defined]


def test_an_array_is_kept_as_it_is_and_weighs_one_each() -> None:
    coreset = Coreset(X)
    assert coreset.points is X
    assert coreset.weights.tolist() == [1.0] * len(X)
    assert coreset.indices is coreset.n_samples is None
    assert repr(coreset) == "<Coreset: 3,000 points of 3 features, float64, of weight 3000>"
    assert Coreset(pd.DataFrame(X)).points.shape == X.shape


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"points": [1.0, 2.0]}, "points is not valid: Expected 2D array"),
        ({"points": [[1.0, np.nan]]}, "Input points contains NaN: the first in row 0, feature 1"),
        ({"points": [["a"]]}, "points is not valid"),
        ({"points": np.ones((2, 2)), "weights": [1.0]}, r"weights has shape \(1,\), but points has 2 rows"),
        ({"points": np.ones((2, 2)), "weights": [1.0, -2.0]}, r"weights\[1\]=-2.0 is not valid"),
        ({"points": np.ones((2, 2)), "weights": [0, 0]}, "weights is zero for every row"),
        ({"points": np.ones((2, 2)), "indices": [1]}, r"indices of shape \(1,\).* one row number .* the 2 points"),
        ({"points": np.ones((2, 2)), "indices": [0, -1]}, "indices .* are not valid"),
        ({"points": np.ones((2, 2)), "indices": [0.0, 1.0]}, "indices .* dtype float64 are not valid"),
        ({"points": np.ones((2, 2)), "n_samples": 0}, "n_samples=0 is not valid"),
    ],
)
def test_what_cannot_be_a_coreset_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Coreset(**arguments)


def test_it_cannot_be_changed_by_mistake() -> None:
    with pytest.raises(AttributeError):
        Coreset(X).points = X[:5]  # type: ignore[misc]


def test_what_is_drawn_knows_its_rows() -> None:
    coreset = lightweight_coreset(X, 200, random_state=0)
    assert isinstance(coreset, Coreset)
    assert coreset.n_samples == 3000
    np.testing.assert_array_equal(coreset.points, X[coreset.indices])


# -------------------------------------------------------------------------------------------------------- merging


def test_a_merged_coreset_is_all_of_both() -> None:
    a, b = (lightweight_coreset(part, 100, random_state=0) for part in (X[:1000], X[1000:]))
    both = a.merge(b)
    np.testing.assert_array_equal(both.points, np.vstack([a.points, b.points]))
    np.testing.assert_array_equal(both.weights, np.concatenate([a.weights, b.weights]))
    assert (both.indices, both.n_samples) == (None, 3000)
    for centre in (np.zeros(3), X[0]):
        assert cost(both, centre) == pytest.approx(cost(a, centre) + cost(b, centre))


def test_any_number_can_be_merged() -> None:
    parts = [Coreset(X[i::4], n_samples=5) for i in range(4)]
    assert same(parts[0].merge(*parts[1:]), parts[0].merge(parts[1]).merge(parts[2]).merge(parts[3]))
    assert parts[0].merge(*parts[1:]).n_samples == 20
    assert parts[0].merge(Coreset(X[:2])).n_samples is None
    assert len(parts[0].merge()) == 750


def test_types_are_widened_not_rounded() -> None:
    small = Coreset(np.array([[250, 1]], np.uint8))
    assert small.merge(Coreset(np.array([[0.5, 1.0]], np.float32))).points.dtype == np.float32
    assert small.merge(Coreset(np.array([[250, 1]], np.uint8))).points.dtype == np.uint8


def test_only_coresets_of_the_same_features_merge() -> None:
    with pytest.raises(ValueError, match="coresets of 3 and of 2 features cannot be merged"):
        Coreset(X).merge(Coreset(X[:, :2]))
    with pytest.raises(TypeError, match="merge was given a ndarray: give coresets"):
        Coreset(X).merge(X)  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------------------- reducing


def test_what_a_reduced_coreset_says_is_unbiased() -> None:
    weighted = Coreset(X, rng.uniform(0, 1e9, len(X)), indices=np.arange(3000) + 5, n_samples=99)
    reduced = [weighted.reduce(50, random_state=seed) for seed in range(300)]
    for centre in (X.mean(axis=0), X[0] + 20):
        costs = np.array([cost(one, centre) for one in reduced]) / cost(weighted, centre)
        assert abs(costs.mean() - 1) < 4 * costs.std() / np.sqrt(300)
    totals = np.array([one.total_weight for one in reduced]) / weighted.total_weight
    assert abs(totals.mean() - 1) < 4 * totals.std() / np.sqrt(300)
    assert max(map(len, reduced)) <= 50
    one = reduced[0]
    assert one.n_samples == 99
    np.testing.assert_array_equal(one.points, X[np.asarray(one.indices) - 5])


def test_reducing_is_repeatable_and_does_not_depend_on_threads() -> None:
    core = Coreset(X)
    assert same(core.reduce(500, random_state=3, n_threads=1), core.reduce(500, random_state=3, n_threads=4))
    assert not same(core.reduce(500, random_state=3), core.reduce(500, random_state=4))


def test_nothing_is_drawn_from_a_coreset_that_is_small_enough() -> None:
    core = Coreset(X)
    assert core.reduce(3000) is core
    with pytest.raises(ValueError, match="size=0 is not valid"):
        core.reduce(0)


def test_a_merged_coreset_is_reduced_without_indices() -> None:
    assert Coreset(X[:9]).merge(Coreset(X[9:20])).reduce(5, random_state=0).indices is None


# --------------------------------------------------------------------------------------------------------- keeping


@pytest.mark.parametrize("merged", [False, True])
def test_files_and_pickles(tmp_path: Path, merged: bool) -> None:
    coreset = lightweight_coreset(X.astype(np.float32), 100, random_state=0)
    if merged:
        coreset = coreset.merge(Coreset(X[:10]))
    coreset.save(tmp_path / "core.vcgmm")
    assert same(Coreset.load(tmp_path / "core.vcgmm"), coreset)
    save_coreset(coreset, tmp_path / "other.vcgmm")
    assert same(load_coreset(tmp_path / "other.vcgmm"), coreset)
    assert same(pickle.loads(pickle.dumps(coreset)), coreset)


# ---------------------------------------------------------------------------------------------- fitting to it


def test_a_fit_to_a_coreset_is_one_to_its_weighted_points() -> None:
    coreset = lightweight_coreset(X, 600, random_state=1)
    model = VCGMM(8, random_state=0).fit(coreset)
    expected = VCGMM(8, random_state=0, coreset_size=None).fit(coreset.points, sample_weight=coreset.weights)
    assert model.means_.tobytes() == expected.means_.tobytes()
    assert model.lower_bounds_.tolist() == expected.lower_bounds_.tolist()
    assert same(model.coreset_, coreset)
    assert isinstance(expected.coreset_, Coreset)


def test_one_coreset_many_fits() -> None:
    coreset = lightweight_coreset(X, 600, random_state=1)
    sizes = [len(VCGMM(k, random_state=0).fit(coreset).means_) for k in (2, 5, 9)]
    assert sizes == [2, 5, 9]


def test_large_coresets_are_taken_whole_by_default() -> None:
    large = Coreset(rng.normal(size=(300_000, 1)))  # of rows, a coreset would be drawn
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = VCGMM(2, max_iter=1, init=np.array([[-1.0], [1.0]])).fit(large)
    assert len(model.coreset_) == 300_000


def test_a_smaller_size_draws_from_its_points() -> None:
    coreset = lightweight_coreset(X, 1000, random_state=1)
    for size in (200, 0.3):
        used = VCGMM(5, coreset_size=size, random_state=0).fit(coreset).coreset_
        assert len(used) < 350
        assert used.n_samples == 3000
        np.testing.assert_array_equal(used.points, X[used.indices])
        assert np.isin(used.indices, coreset.indices).all()


def test_labels_refinement_and_scores_are_of_its_points() -> None:
    coreset = lightweight_coreset(X, 600, random_state=1)
    model = VCGMM(5, random_state=0, compute_labels=True, refine=1)
    labels = model.fit_predict(coreset)
    np.testing.assert_array_equal(labels, model.labels_)
    error = model.quantization_error(coreset)
    assert model.inertia_ == error == model.quantization_error(coreset.points, coreset.weights)
    assert model.score(coreset) == model.score(coreset.points, sample_weight=coreset.weights)
    assert error == pytest.approx(model.quantization_error(X), rel=0.2)
    assert len(model.refine_bounds_) == 1


def test_weights_beside_a_coreset_are_refused() -> None:
    coreset = Coreset(X)
    model = VCGMM(5, random_state=0)
    with pytest.raises(ValueError, match="sample_weight is given, but X is a coreset"):
        model.fit(coreset, sample_weight=np.ones(len(X)))
    assert not hasattr(model, "means_")
    model.fit(coreset)
    for method in (model.score, model.quantization_error):
        with pytest.raises(ValueError, match="sample_weight is given"):
            method(coreset, sample_weight=np.ones(len(X)))


def test_too_few_points_are_told_as_of_rows() -> None:
    with pytest.raises(ValueError, match="n_samples=3 is fewer than n_components=5"):
        VCGMM(5).fit(Coreset(X[:3]))


@pytest.mark.parametrize("merged", [False, True])
def test_a_checkpoint_of_such_a_fit_remembers_the_rows(tmp_path: Path, merged: bool) -> None:
    coreset = lightweight_coreset(X, 600, random_state=1)
    if merged:
        coreset = coreset.merge(Coreset(X[:50]))
    options: dict[str, Any] = {"coreset_size": 300, "random_state": 0, "tol": 1e-9, "max_iter": 5}
    path = tmp_path / "run.ckpt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        expected = VCGMM(5, **options).fit(coreset)
        VCGMM(5, **options, checkpoint=path, callbacks=lambda facts: facts.iteration == 2).fit(coreset)
        again = VCGMM.resume(path)
    assert again.means_.tobytes() == expected.means_.tobytes()
    assert same(again.coreset_, expected.coreset_)


def test_a_model_file_keeps_what_the_coreset_stands_for(tmp_path: Path) -> None:
    merged = Coreset(X[:500], n_samples=1000).merge(Coreset(X[500:], n_samples=7))
    model = VCGMM(5, random_state=0).fit(merged)
    model.save(tmp_path / "model.vcgmm", coreset=True)
    assert same(VCGMM.load(tmp_path / "model.vcgmm").coreset_, merged)
