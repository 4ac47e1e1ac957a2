"""Rows scaled to length 1, wherever they come from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import vcgmm
from vcgmm.data import ArrayRows, StreamedRows, UnitRows
from vcgmm.data.memory import MemorySource

rng = np.random.default_rng(0)
X = rng.normal(size=(9000, 40)) * rng.lognormal(sigma=3, size=(9000, 1))


def by_hand(rows: np.ndarray) -> np.ndarray:
    wide = rows.astype(np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.uint8, np.float32),
        (np.int64, np.float32),
        (np.float64, np.float64),
    ],
)
def test_all_ways_to_read_them_agree(dtype: type, expected: type) -> None:
    given = (np.abs(X) % 100 + 1).astype(dtype)
    rows = UnitRows(ArrayRows(given))
    assert rows.dtype == expected
    assert (rows.n_samples, rows.n_features, rows.name) == (9000, 40, "X")
    everything = rows.all()
    assert everything.dtype == expected
    np.testing.assert_allclose(everything, by_hand(given), rtol=4 * np.finfo(expected).eps)
    parts = list(rows.parts())
    assert len(parts) > 1
    assert [part.first for part in parts] == np.cumsum([0, *map(len, parts)])[:-1].tolist()
    np.testing.assert_array_equal(np.concatenate([part.rows for part in parts]), everything)
    picks = np.array([8999, 0, 17, 17])
    np.testing.assert_array_equal(rows.take(picks), everything[picks])
    streamed = UnitRows(StreamedRows(MemorySource(given, "X")))
    np.testing.assert_array_equal(np.concatenate([part.rows for part in streamed.parts()]), everything)
    np.testing.assert_array_equal(UnitRows(ArrayRows(np.asfortranarray(given))).all(), everything)


def test_a_row_of_zeros_is_named() -> None:
    given = X.copy()
    given[8123] = 0
    message = (
        r"X has a row of zeros, row 8123, which has no direction.*remove such rows, or use metric='euclidean'"
    )
    rows = UnitRows(ArrayRows(given))
    with pytest.raises(ValueError, match=message):
        list(rows.parts())
    with pytest.raises(ValueError, match=message):
        rows.all()
    with pytest.raises(ValueError, match=message):
        rows.take(np.array([3, 8123]))
    assert rows.take(np.array([3, 8122])).shape == (2, 40)


def test_values_that_are_not_finite_are_named_as_ever() -> None:
    given = X.copy()
    given[8123, 7] = np.nan
    with pytest.raises(ValueError, match=r"Input X contains NaN: the first in row 8123, feature 7"):
        UnitRows(ArrayRows(given)).all()


def test_a_row_of_a_file_is_named_by_it(tmp_path: Path) -> None:
    given = X[:500].copy()
    given[123] = 0
    np.save(tmp_path / "rows.npy", given)
    rows = UnitRows(StreamedRows(vcgmm.open(tmp_path / "rows.npy")))
    with pytest.raises(ValueError, match=r"rows.npy has a row of zeros, row 123"):
        list(rows.parts())


def test_weights_of_a_source_come_along(tmp_path: Path) -> None:
    weights = rng.uniform(1, 9, size=500)
    np.save(tmp_path / "rows.npy", X[:500])
    plain = StreamedRows(vcgmm.open(tmp_path / "rows.npy", weights=weights))
    rows = UnitRows(StreamedRows(vcgmm.open(tmp_path / "rows.npy", weights=weights)))
    assert rows.has_weights
    assert not rows.weighted
    plain.use_weights()
    rows.use_weights()
    assert rows.weighted
    assert rows.weight_unit == plain.weight_unit
    got = np.concatenate([part.own_weights for part in rows.parts()])
    np.testing.assert_array_equal(got, np.concatenate([part.own_weights for part in plain.parts()]))
    assert not UnitRows(ArrayRows(X)).has_weights
    with pytest.raises(TypeError, match="X has no weights"):
        ArrayRows(X).use_weights()
