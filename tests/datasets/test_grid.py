from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vcgmm.datasets import make_grid


def test_shapes_and_types() -> None:
    X, labels, centers = make_grid(1003, n_side=5, random_state=0)
    assert X.shape == (1003, 2)
    assert X.dtype == np.float32
    assert X.flags.c_contiguous
    assert labels.shape == (1003,)
    assert labels.dtype == np.int32
    assert centers.shape == (25, 2)
    assert centers.dtype == np.float32


def test_clusters_are_of_equal_size_in_random_order() -> None:
    _, labels, _ = make_grid(1003, n_side=5, random_state=0)
    counts = np.bincount(labels, minlength=25)
    assert set(counts) == {40, 41}
    assert not np.array_equal(labels, np.sort(labels))


def test_fewer_points_than_clusters() -> None:
    X, labels, centers = make_grid(3, n_side=5, random_state=0)
    assert len(X) == len(labels) == 3
    assert len(centers) == 25


def test_centres_lie_within_the_jitter_of_their_nodes() -> None:
    _, _, centers = make_grid(1, n_side=4, jitter=0.1, random_state=0)
    nodes = np.array([(column, row) for row in range(4) for column in range(4)])
    distance = np.abs(centers - nodes)
    assert distance.max() <= 0.1 + 1e-6
    # … and use it: the largest of 32 uniform draws is close to the limit.
    assert distance.max() > 0.08


def test_points_scatter_about_their_centres() -> None:
    X, labels, centers = make_grid(200_000, n_side=3, spread=0.3, random_state=0)
    offsets = X - centers[labels]
    # Standard errors: 0.3/√200,000 ≈ 7e-4 for the mean, 5e-4 for the deviation.
    np.testing.assert_allclose(offsets.mean(axis=0), 0, atol=4e-3)
    np.testing.assert_allclose(offsets.std(axis=0), 0.3, atol=3e-3)
    assert abs(np.corrcoef(offsets.T)[0, 1]) < 0.015


def test_no_spread_and_no_jitter_give_the_nodes() -> None:
    X, labels, _ = make_grid(9, n_side=3, spread=0, jitter=0, random_state=0)
    np.testing.assert_array_equal(X, np.column_stack([labels % 3, labels // 3]))


def test_the_seed_decides() -> None:
    first = make_grid(100, n_side=3, random_state=7)
    for same in (7, np.random.RandomState(7)):
        for a, b in zip(first, make_grid(100, n_side=3, random_state=same), strict=True):
            np.testing.assert_array_equal(a, b)
    other, _, _ = make_grid(100, n_side=3, random_state=8)
    assert not np.array_equal(first[0], other)


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("n_samples", 0),
        ("n_samples", 10.0),
        ("n_samples", True),
        ("n_side", -1),
        ("n_side", "5"),
        ("spread", -0.1),
        ("spread", np.nan),
        ("spread", np.inf),
        ("jitter", -1),
        ("jitter", None),
    ],
)
def test_bad_arguments_are_named(argument: str, value: Any) -> None:
    arguments: dict[str, Any] = {"n_samples": 10, "n_side": 2, argument: value}
    with pytest.raises(ValueError, match=rf"^{argument}=.*: give "):
        make_grid(**arguments)
