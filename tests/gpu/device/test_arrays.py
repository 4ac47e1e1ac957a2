"""NumPy's functions on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")

from vcgmm.algorithm.mstep import (  # noqa: E402
    Statistics,
    as_used,
    m_step,
    next_step,
    weighted_products,
)
from vcgmm.gpu.device.arrays import DeviceArray, Told, on_host  # noqa: E402
from vcgmm.gpu.search.ways import Masses, Means, Way  # noqa: E402


def on(device: Any, array: np.ndarray) -> Any:
    return DeviceArray(torch.from_numpy(array).to(device))


def test_an_m_step_on_the_device_is_that_on_the_host(device: Any) -> None:
    rng = np.random.default_rng(0)
    means, shifts, masses = rng.normal(size=(6, 3)), rng.normal(size=(6, 3)), rng.random(6)
    masses[2] = shifts[2] = 0.0
    facts = {"variance": 1.0, "scatter": 50.0, "log_sum": -3.0, "total_weight": 9.0, "n_evaluations": 1}
    host = Statistics(means=means, shifts=shifts, masses=masses, **facts)
    there: Any = Statistics(means=on(device, means), shifts=on(device, shifts), masses=on(device, masses), **facts)

    def never(_statistics: Statistics, _means: np.ndarray) -> float:
        raise AssertionError

    new, variance = m_step(host, 1e-9, never, 1.3)
    new_there, variance_there = m_step(there, 1e-9, never, 1.3)
    np.testing.assert_allclose(on_host(new_there), new, rtol=1e-12)
    assert variance_there == pytest.approx(variance, rel=1e-12)
    assert as_used(new_there, there) is new_there  # they are rounded where an E-step asks for them
    step = next_step(1.3, shifts, means, masses, 1.8)
    assert next_step(1.3, on(device, shifts), on(device, means), on(device, masses), 1.8) == pytest.approx(
        step, rel=1e-12
    )
    assert int(np.count_nonzero(on(device, masses))) == 5


def test_numbers_and_arrays_of_the_host_mix_with_it(device: Any) -> None:
    array = on(device, np.array([[1.0, 2.0], [3.0, 4.0]]))
    assert on_host(np.array([1.0, 0.0]) + array / 2 - 1).tolist() == [[0.5, 0.0], [1.5, 1.0]]
    assert on_host(np.maximum(array, 2.5)).tolist() == [[2.5, 2.5], [3.0, 4.0]]
    assert on_host(array[:, None][0]).tolist() == [[1.0, 2.0]]
    assert (len(array), array.shape) == (2, (2, 2))
    assert np.asarray(array, np.float32).dtype == np.float32


def test_what_is_not_offered_is_refused_and_not_brought_to_the_host(device: Any) -> None:
    array = on(device, np.ones(3))
    with pytest.raises(TypeError):
        np.tan(array)
    with pytest.raises(TypeError):
        np.median(array)
    with pytest.raises(TypeError):
        np.add.reduce(array)
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(array, copy=False)


def test_products_of_rows_are_those_of_numpy(device: Any) -> None:
    rng = np.random.default_rng(0)
    masses, left, right = rng.random(37), rng.normal(size=(37, 150)), rng.normal(size=(37, 150))
    there = (DeviceArray(torch.from_numpy(a).to(device)) for a in (masses, left, right))
    assert weighted_products(*there) == pytest.approx(weighted_products(masses, left, right), rel=1e-12)


def test_a_counted_array_knows_how_many_are_not_zero(device: Any) -> None:
    counted = Masses(torch.tensor([0.0, 2.0, 0.0, 1.0], device=device), 2)
    assert np.count_nonzero(counted) == 2
    assert np.count_nonzero(DeviceArray(counted.tensor)) == 2
    assert float(np.dot(counted, counted)) == 5.0  # all else is as of any other


def test_products_that_an_e_step_has_told_are_not_computed_again(device: Any) -> None:
    numbers = torch.arange(12.0, dtype=torch.float64, device=device).view(2, 2, 3)
    before, now, other = DeviceArray(numbers[0]), DeviceArray(numbers[1]), DeviceArray(numbers[0].clone())
    weights = torch.tensor([1.0, 2.0], dtype=torch.float64, device=device)
    masses = Masses(weights, 2, (before.tensor, now.tensor), (-1.0, -2.0))
    assert weighted_products(masses, before, now) == (-1.0, -2.0)
    expected = (5.0 + 2 * 50.0, 23.0 + 2 * 122.0)
    assert weighted_products(masses, other, now) == expected
    assert weighted_products(DeviceArray(masses.tensor), before, now) == expected


def test_a_way_is_the_same_whatever_was_asked_before(device: Any) -> None:
    start = Means(torch.tensor([1e16, 1.0], dtype=torch.float64, device=device))
    way = Way(torch.tensor([1.0, 2.0], dtype=torch.float64, device=device))
    moved: Any = start + way
    assert (moved - start) is way  # 1 is lost beside 1e16
    assert on_host(moved).tolist() == [1e16, 3.0]
    assert (moved - start) is way
    assert len(start + way) == 2
    assert on_host(moved - on(device, np.array([1e16, 1.0]))).tolist() == [0.0, 2.0]  # of others it is computed


def test_a_multiple_of_a_way_is_what_numpy_says(device: Any) -> None:
    rng = np.random.default_rng(0)
    begin, ways = rng.normal(size=(2, 5, 3))
    start = Means(torch.from_numpy(begin).to(device))
    way = Way(torch.from_numpy(ways).to(device))
    ahead: Any = start + 1.5 * way
    np.testing.assert_allclose(on_host(ahead), begin + 1.5 * ways, rtol=1e-12)
    np.testing.assert_array_equal(on_host(ahead - start), 1.5 * ways)
    np.testing.assert_array_equal(on_host(1.5 * way), 1.5 * ways)
    np.testing.assert_array_equal(on_host(way * way), ways * ways)
    np.testing.assert_array_equal(on_host(start + 1.0), begin + 1.0)


def test_nothing_is_computed_for_a_shape(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    start, way = Means(torch.zeros((5, 3), device=device)), Way(torch.ones((5, 3), device=device))
    moved: Any = start + way
    with monkeypatch.context() as nobody_adds:
        nobody_adds.setattr(torch, "add", None)
        assert moved.shape == (1.5 * way).shape == (5, 3)
    assert on_host(moved).tolist() == [[1.0] * 3] * 5


def test_numbers_arrive(device: Any) -> None:
    told = Told(torch.tensor([1.0, -2.0], device=device))
    assert told.tolist() == [1.0, -2.0]
    assert float(told) == 1.0
