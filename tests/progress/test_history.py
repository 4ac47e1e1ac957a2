from __future__ import annotations

import math

import numpy as np

from vcgmm import VCGMM
from vcgmm.progress import History, Iteration
from vcgmm.progress.history import as_columns, from_columns


def facts(iteration: int, bound: float, active: int | None = None) -> Iteration:
    change = math.inf if iteration == 1 else 0.5
    return Iteration(iteration, bound, change, variance=0.1 * iteration, seconds=float(iteration), active=active)


def test_the_try_that_was_kept_is_told() -> None:
    history = History()
    for bounds in ([-9.0, -8.0, -7.0], [-9.0, -6.0], [-9.0, -8.5]):
        for number, bound in enumerate(bounds, 1):
            history(facts(number, bound))
    kept = history.of([-9.0, -6.0])
    assert list(kept) == ["iteration", "bound", "change", "variance", "seconds"]
    assert kept["iteration"].tolist() == [1, 2]
    assert kept["bound"].tolist() == [-9.0, -6.0]
    assert kept["change"].tolist() == [math.inf, 0.5]
    assert kept["iteration"].dtype == np.int64
    assert kept["seconds"].dtype == np.float64


def test_what_is_told_after_the_last_bound_is_left_out() -> None:
    history = History()
    for number, bound in enumerate([-9.0, -6.0, -50.0], 1):  # the last is a pass over all rows, of another bound
        history(facts(number, bound))
    assert history.of([-9.0, -6.0])["iteration"].tolist() == [1, 2]


def test_active_clusters_are_told_where_they_were_counted() -> None:
    history = History()
    history(facts(1, -2.0, active=7))
    history(facts(2, -1.0, active=6))
    active = history.of([-2.0, -1.0])["active"]
    assert active.tolist() == [7, 6]
    assert active.dtype == np.int64


def test_bounds_that_are_no_numbers_find_their_try() -> None:
    history = History()
    history(facts(1, math.nan))
    assert len(history.of([math.nan])["bound"]) == 1


def test_a_fit_keeps_the_history_of_its_best_try() -> None:
    X = np.random.default_rng(0).normal(size=(400, 3))
    told: list[Iteration] = []
    model = VCGMM(6, n_init=3, random_state=0, callbacks=told.append).fit(X)
    assert len(told) > model.n_iter_
    history = model.history_
    np.testing.assert_array_equal(history["bound"], model.lower_bounds_)
    np.testing.assert_array_equal(history["iteration"], np.arange(1, model.n_iter_ + 1))
    assert (np.diff(history["seconds"]) > 0).all()
    first = next(i for i, one in enumerate(told) if one.bound == history["bound"][0])
    assert history["variance"].tolist() == [one.variance for one in told[first : first + model.n_iter_]]


def test_iterations_come_back_from_their_columns() -> None:
    history = History()
    for told in ([facts(1, -2.0, active=7), facts(2, -1.0, active=6)], [facts(1, math.nan), facts(2, -1.0)], []):
        for one in told:
            history(one)
        again = from_columns(as_columns(told))
        assert list(map(repr, again)) == list(map(repr, told))
    assert [one.iteration for one in history.told()] == [1, 2, 1, 2]
