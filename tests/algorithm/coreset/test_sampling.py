from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vcgmm.algorithm.coreset.sampling import taken, uniform_sample
from vcgmm.data import ArrayRows
from vcgmm.parallel import Workers

INLINE = Workers(1)


def numbered(n: int) -> ArrayRows:
    """Rows that say which they are."""
    return ArrayRows(np.arange(n, dtype=np.float64)[:, None])


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 50))
def test_rows_are_drawn_in_order_and_stand_for_all(n: int, size: int, seed: int) -> None:
    sample = uniform_sample(numbered(n), None, size, np.random.default_rng(seed), INLINE)
    drawn = sample.rows.array[:, 0]
    assert (np.diff(drawn) > 0).all()
    assert sample.weights.sum() == pytest.approx(n)
    if size <= n:  # runs of a row or more: nothing is drawn more than twice, and hardly that
        assert size / 2 <= len(drawn) <= size
    assert np.diff(drawn, prepend=-1, append=n).max() <= 2 * n / size + 2  # from everywhere


def test_each_row_is_drawn_as_often_as_it_weighs() -> None:
    weights = np.array([0.0, 1.0, 0.0, 2.5, 0.5, 4.0, 0.0])
    masses = np.zeros(7)
    n_times = 4000
    for seed in range(n_times):
        sample = uniform_sample(numbered(7), weights, 3, np.random.default_rng(seed), INLINE)
        masses[sample.rows.array[:, 0].astype(int)] += sample.weights
    np.testing.assert_allclose(masses / n_times, weights, atol=0.12)
    assert (masses[weights == 0] == 0).all()


@pytest.mark.parametrize("weights", [None, np.ones(5), np.array([1e-300, 0.0, 1.0, 1e-300, 0.0])])
def test_the_largest_number_below_one_draws_a_row_that_counts(weights: np.ndarray | None) -> None:
    class Largest(np.random.Generator):
        def random(self, size: int) -> np.ndarray:  # type: ignore[override]
            return np.full(size, np.nextafter(1.0, 0.0))

    sample = uniform_sample(numbered(5), weights, 2, Largest(np.random.PCG64(0)), INLINE)
    drawn = sample.rows.array[:, 0].astype(int)
    assert drawn[-1] <= 4
    assert weights is None or (weights[drawn] > 0).all()


def test_rows_are_told_where_they_were() -> None:
    sample = uniform_sample(numbered(100), None, 7, np.random.default_rng(0), INLINE)
    assert [sample.rows.locate(i) for i in range(7)] == [f"row {int(i)}" for i in sample.rows.array[:, 0]]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize("layout", ["rows", "columns", "fixed"])
def test_rows_are_fetched_however_they_lie(dtype: type, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vcgmm.parallel.WORTH_WAKING", 1)
    array = np.random.default_rng(0).integers(-99, 99, (300, 7)).astype(dtype)
    indices = np.random.default_rng(1).integers(0, 300, 100)
    given = np.asfortranarray(array) if layout == "columns" else array.copy()
    given.flags.writeable = layout != "fixed"
    with Workers(2) as workers:
        found = taken(ArrayRows(given), indices, workers)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, array[indices])
