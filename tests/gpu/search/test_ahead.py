"""E-steps that begin before they are asked for: the same fits, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm import VCGMM  # noqa: E402
from vcgmm.algorithm.mstep import Statistics, m_step, next_step  # noqa: E402
from vcgmm.gpu import attempts  # noqa: E402
from vcgmm.gpu.cells import neighbourhoods  # noqa: E402
from vcgmm.gpu.device.room import Room  # noqa: E402
from vcgmm.gpu.device.tiling import aligned  # noqa: E402
from vcgmm.gpu.search.ahead import N_TOLD, Stepper  # noqa: E402
from vcgmm.gpu.search.blocked import DeviceSearch  # noqa: E402


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """What the precision of every search is: 1 where the device has found it."""
    found = []

    def search_and_tell(self: DeviceSearch, means: Any, precision: Any, *others: Any) -> Any:
        found.append(int(not isinstance(precision, float)))
        return plainly(self, means, precision, *others)

    plainly = DeviceSearch.search
    monkeypatch.setattr(DeviceSearch, "search", search_and_tell)
    return found


def facts_of(model: VCGMM) -> list[Any]:
    """All that a fit has found, as bytes."""
    arrays = [model.means_, model.counts_, model.neighbors_, model.lower_bounds_, model.variance_]
    history = [model.history_[name] for name in sorted(model.history_) if name != "seconds"]
    return [np.asarray(one).tobytes() for one in (*arrays, *history)] + [model.n_distance_evaluations_]


@pytest.mark.filterwarnings("ignore:The fit ended")
@pytest.mark.parametrize(
    ("options", "begun"),
    [
        ({"max_iter": 7, "init": "random"}, 6),  # all but the first
        ({"max_iter": 3, "relaxation": 1.0}, None),  # some: a start of cells has made one already, or two
        ({"callbacks": [lambda facts: facts.iteration == 3], "init": "random"}, 3),
        ({"max_iter": 3, "n_explore": 2, "init": "random"}, 2),
    ],
)
def test_a_fit_is_the_same(
    gpu: Any, monkeypatch: pytest.MonkeyPatch, searches: list[int], options: dict[str, Any], begun: int | None
) -> None:
    rng = np.random.default_rng(0)
    X = torch.from_numpy((rng.integers(5, size=(150, 1)) + rng.normal(size=(150, 3))).astype(np.float32)).to(gpu)
    fits = []
    for few, expected in ((0, 0), (attempts.FEW, begun)):
        monkeypatch.setattr(attempts, "FEW", few)
        searches.clear()
        options = {"tol": 0.0, "n_candidates": 6, "device": "cuda", **options}
        model = VCGMM(9, coreset_size=None, random_state=0, **options)
        fits.append(facts_of(model.fit(X)))
        assert sum(searches) == expected if expected is not None else sum(searches) > 0
    assert fits[0] == fits[1]


@pytest.mark.filterwarnings("ignore:The fit ended")
def test_where_nothing_is_left_of_the_scatter_it_is_done_again(
    gpu: Any, monkeypatch: pytest.MonkeyPatch, searches: list[int]
) -> None:
    places = 50.0 * np.random.default_rng(0).normal(size=(6, 2))
    X = torch.from_numpy(np.repeat(places, 10, axis=0).astype(np.float32)).to(gpu)
    monkeypatch.setattr(neighbourhoods, "LINKED_AT_FIRST", 1)  # so that the second can begin before
    fits = []
    for few in (0, attempts.FEW):
        monkeypatch.setattr(attempts, "FEW", few)
        searches.clear()
        options: Any = {"init": places + 1.0, "max_iter": 3, "tol": 0.0, "relaxation": 1.05}
        model = VCGMM(6, coreset_size=None, random_state=0, device="cuda", **options).fit(X)
        fits.append(facts_of(model))
    assert searches[:3] == [0, 1, 0]  # asked for, begun before in vain, asked for
    assert fits[0] == fits[1]
    np.testing.assert_allclose(model.means_, places, atol=0.1)


@pytest.mark.filterwarnings("ignore:The fit ended")
def test_nobody_runs_ahead_where_the_search_is_looked_at(gpu: Any, searches: list[int], tmp_path: Any) -> None:
    X = torch.from_numpy(np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)).to(gpu)
    fit: Any = {"coreset_size": None, "random_state": 0, "device": "cuda", "max_iter": 2, "tol": 1.0}
    VCGMM(3, checkpoint=tmp_path / "fit.npz", **fit).fit(X)
    VCGMM(3, metric="cosine", **fit).fit(X)
    VCGMM(3, covariance_type="diag", **fit).fit(X)
    assert not any(searches)


@pytest.mark.parametrize("n_parts", [1, 3])
@pytest.mark.parametrize(("cross", "longest"), [(0.3, 1.8), (-0.5, 1.8), (1.5, 1.8), (0.3, 1.0)])
def test_steps_are_those_of_the_host(device: Any, n_parts: int, cross: float, longest: float) -> None:
    rng = np.random.default_rng(0)
    means, moves = rng.normal(size=(11, 5)).astype(np.float32), rng.normal(size=(11, 5))
    there = aligned(torch.from_numpy(means).double().to(device))
    way = torch.from_numpy(moves).to(device)
    stepper, step = Stepper(longest, 5, 100.0, 1e-3, device), 1.0
    for has_before in (False, True):
        gain, square, products = rng.random(n_parts), rng.random(n_parts), rng.random(n_parts)
        products *= cross * square.sum() / products.sum()
        told = np.concatenate([[1.0, 2.0 * gain.sum(), 3.0, 4.0, 5.0], gain, square, products, np.zeros(N_TOLD)])
        totals = torch.from_numpy(told).to(device)
        stepper.take(there, way, n_parts, totals, has_before, Room(device), totals)
        found = totals.cpu().numpy()[-N_TOLD:]
        if has_before:
            q = sum(products) / sum(square)
            step = min(longest, step / (1.0 - q)) if q < 1.0 and longest > 1.0 else longest
        else:
            step = next_step(step, None, moves, np.ones(11), longest)
        statistics = Statistics(means, 1.0, moves, np.ones(11), told[1], 0.0, 100.0, 0)
        object.__setattr__(statistics, "gain", sum(gain))
        expected, variance = m_step(statistics, 1e-3, lambda *_: np.nan, step)
        np.testing.assert_allclose(found, [step, variance], rtol=1e-14)
        means = there.cpu().numpy().copy()
        np.testing.assert_allclose(means, expected, rtol=1e-6)
