from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from vcgmm.progress import Iteration
from vcgmm.progress.forecast import Forecast, TimeLeft


def forecast_of(changes: Iterable[float], tol: float, pace: float = 2.0) -> Forecast:
    forecast = Forecast(tol)
    for number, change in enumerate([math.inf, *changes], 1):
        forecast.add(Iteration(number, -1.0, change, 1.0, seconds=10.0 + pace * number))
    return forecast


def falling(n: int, factor: float = 0.5) -> list[float]:
    return [factor**i for i in range(n)]


def test_a_geometric_decay_is_followed_to_the_tolerance() -> None:
    # The last change is 2^-4; ten more halvings make 2^-14.
    forecast = forecast_of(falling(5), tol=2.0**-14)
    assert forecast.iterations_left() == pytest.approx(10)
    left = forecast.time_left(200)
    assert left is not None
    assert left.seconds == pytest.approx(20.0)
    assert not left.at_most


def test_noise_does_not_throw_the_line_off() -> None:
    noisy = [change * (1.3 if i % 2 else 0.77) for i, change in enumerate(falling(8))]
    assert forecast_of(noisy, tol=2.0**-17).iterations_left() == pytest.approx(10, rel=0.3)


def test_only_the_last_iterations_count() -> None:
    # A slow beginning is forgotten once the change falls.
    assert forecast_of([1.0] * 20 + falling(8), tol=2.0**-17).iterations_left() == pytest.approx(10)


def test_the_last_iteration_allowed_is_the_limit() -> None:
    assert forecast_of(falling(5), tol=1e-300).time_left(last=10) == TimeLeft(8.0, at_most=True)


@pytest.mark.parametrize("changes", [[0.1] * 6, [0.1 * i for i in range(1, 7)], [0.0] * 6])
def test_a_change_that_does_not_fall_leaves_the_limit(changes: list[float]) -> None:
    forecast = forecast_of(changes, tol=1e-4)
    left = forecast.time_left(last=17)
    assert left is not None
    assert left.seconds == pytest.approx(20.0)
    assert left.at_most
    assert forecast.time_left(None) is None


def test_there_is_nothing_to_tell_at_first() -> None:
    assert forecast_of(falling(2), tol=1e-4).time_left(200) is None
    assert forecast_of(falling(3), tol=1e-4).time_left(200) is not None


def test_without_a_tolerance_there_is_only_the_limit() -> None:
    assert forecast_of(falling(6), tol=0.0).iterations_left() is None


def test_what_should_be_over_has_one_iteration_left() -> None:
    assert forecast_of(falling(6), tol=0.5).iterations_left() == 1.0
