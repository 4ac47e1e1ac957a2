"""One block into a fitted model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from digits import digits
from vcgmm import VCGMM
from vcgmm.algorithm import reference
from vcgmm.algorithm.streams.online import Model, add_block
from vcgmm.data import ArrayRows
from vcgmm.parallel import Workers
from vcgmm.parameters import settings_of

rng = np.random.default_rng(0)
CENTRES = rng.normal(scale=6.0, size=(6, 3))


def draw(n: int, seed: int) -> np.ndarray:
    source = np.random.default_rng(seed)
    return CENTRES[source.integers(6, size=n)] + source.normal(size=(n, 3)) + 100.0


def fitted(X: np.ndarray, **changes: Any) -> tuple[VCGMM, Model]:
    model = VCGMM(6, random_state=0, truncation=6, **changes).fit(X)
    return model, Model(model.means_, model.variance_, model.counts_, model.neighbors_)


def add(
    model: VCGMM, present: Model, X: np.ndarray, weights: np.ndarray, most: float, workers: Workers
) -> Model | None:
    rows = ArrayRows(X)
    settings = settings_of(model, rows)
    return add_block(present, model._frame, rows, weights, settings, most, workers, lambda _: None)


@pytest.mark.parametrize("unit", [1.0, 1e-12])
def test_sums_of_before_and_of_the_block_make_the_new_means(workers: Workers, unit: float) -> None:
    X, new = draw(2000, 1), draw(300, 2)
    weights = rng.uniform(0.5, 2.0, 300) * unit
    model, present = fitted(X)
    present = Model(present.means, present.variance, present.masses * unit, present.neighbors)
    after = add(model, present, new, weights, math.inf, workers)
    assert after is not None
    s = reference.responsibilities(new, present.means, present.variance, np.tile(np.arange(6), (300, 1)))
    masses = present.masses + weights @ s
    means = (present.masses[:, None] * present.means + (weights[:, None] * s).T @ new) / masses[:, None]
    np.testing.assert_allclose(after.means, means, rtol=1e-9)
    np.testing.assert_allclose(after.masses, masses, rtol=1e-7)
    moved = ((means - present.means) ** 2).sum(axis=1)
    scatter = present.scatter + present.masses @ moved
    scatter += (weights[:, None] * s * ((new[:, None] - means) ** 2).sum(axis=2)).sum()
    assert after.variance == pytest.approx(scatter / (3 * masses.sum()), rel=1e-7)
    assert after.scatter == pytest.approx(scatter, rel=1e-7)


def test_clusters_without_new_rows_stay_where_they_are(workers: Workers) -> None:
    X = draw(2000, 1).astype(np.float32)
    model, present = fitted(X)
    cluster = 4
    near = present.means[[cluster]] + rng.normal(scale=0.1, size=(50, 3))
    after = add(model, present, near.astype(np.float32), np.ones(50), math.inf, workers)
    assert after is not None
    untouched = after.masses == present.masses
    assert untouched.sum() > 2  # the others overlap with it
    np.testing.assert_allclose(after.means[untouched], present.means[untouched], rtol=1e-12)
    assert after.masses.sum() == pytest.approx(2050)


@pytest.mark.parametrize("far", [1e3, 1e19, 1e30])
def test_a_block_unlike_all_before_is_not_added(workers: Workers, far: float) -> None:
    model, present = fitted(draw(2000, 1))
    block = draw(20, 3)
    most = 1.5 * present.scatter
    assert add(model, present, block, np.ones(20), most, workers) is not None
    block[7] = far
    assert add(model, present, block, np.ones(20), most, workers) is None


def test_where_little_scatter_is_left_it_is_not_rounding(workers: Workers) -> None:
    # One heavy row far out moves the nearest mean onto itself: nearly all of the scatter goes with it.
    X = np.vstack([draw(500, 1)])
    model, present = fitted(X)
    light = Model(present.means, present.variance, present.masses * 1e-9, present.neighbors)
    after = add(model, light, np.full((1, 3), 1e4), np.array([1e6]), math.inf, workers)
    assert after is not None
    assert np.abs(after.means - 1e4).max(axis=1).min() < 1e4 * digits(1e-10)
    assert 0 < after.variance < 1e-3
