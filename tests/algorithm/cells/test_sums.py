from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM
from vcgmm.algorithm.cells import sums
from vcgmm.kernels.parts.selection import FEW
from vcgmm.kernels.search.short_survey import FEATURES

#: Where `search_tasks` is told whether it may take short integers.
IN_STEPS = 14


@pytest.fixture(name="asked")
def spy(monkeypatch: pytest.MonkeyPatch) -> list[bool | None]:
    """What every E-step was told."""
    answers: list[bool | None] = []
    search = sums.search_tasks

    def search_tasks(*arguments: Any) -> None:
        answers.append(arguments[IN_STEPS])
        search(*arguments)

    monkeypatch.setattr(sums, "search_tasks", search_tasks)
    return answers


def fitted(X: np.ndarray, **options: Any) -> VCGMM:
    settings = {"coreset_size": None, "max_iter": 4, "tol": 0.0, "random_state": 0, "init": X[:20], **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return VCGMM(20, **settings).fit(X)


def wide(D: int = FEATURES, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(2000, D)).astype(dtype)


@pytest.mark.on_cpu
def test_wide_rows_are_searched_by_short_integers_where_costs_are_distances(asked: list[bool | None]) -> None:
    for X, options, answer in (
        (wide(), {}, True),
        (wide(), {"truncation": 1}, True),
        (wide(FEATURES - 1), {}, None),
        (wide(), {"truncation": FEW + 1, "n_neighbors": FEW + 1}, None),
        (wide(), {"covariance_type": "spherical", "n_shared": 0}, None),
        (wide(), {"mixing": "learned", "n_shared": 0}, None),
        (wide(), {"dtype": "float64"}, None),
    ):
        asked.clear()
        fitted(X, **options)
        assert asked, options
        assert set(asked) == {answer}, options


@pytest.mark.on_cpu
def test_a_fit_by_short_integers_ends_where_one_by_floats_does(monkeypatch: pytest.MonkeyPatch) -> None:
    X = wide(96)
    short = fitted(X)
    monkeypatch.setattr(sums, "pays", lambda *_: False)
    floats = fitted(X)
    assert (short.means_ != floats.means_).any()  # in their last bits
    np.testing.assert_allclose(short.lower_bounds_, floats.lower_bounds_, rtol=1e-5)
    assert short.variance_ == pytest.approx(floats.variance_, rel=1e-5)
    assert (np.diff(short.lower_bounds_) >= 0).all()
