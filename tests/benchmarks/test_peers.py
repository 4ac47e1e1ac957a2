"""What is made of the results of `benchmarks/peers.py`."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def run(system: str, setting: str, seconds: object, error: object, note: str = "") -> dict[str, str]:
    """One line of the results."""
    values = {"set": "toy", "c": 10, "system": system, "setting": setting, "seconds": seconds, "error": error}
    return {**{name: str(value) for name, value in values.items()}, "note": note}


#: Seconds are medians and errors means over seeds; one of ours is beaten by another of ours.
RESULTS = [
    run("vcgmm", "quick", 0.3, 120.0),
    run("vcgmm", "quick", 0.1, 100.0),
    run("vcgmm", "quick", 0.2, 110.0),
    run("vcgmm", "beaten", 0.3, 111.0),
    run("vcgmm", "default", 1.0, 100.0),
    run("peer", "close", 0.5, 115.0),
    run("peer", "far behind", 4.0, 105.0),
    run("peer", "faster and better", 0.9, 99.0),
    run("peer", "too slow", "", "", "more than 5 s"),
]


@pytest.fixture(name="compared")
def compared_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("peers_compared")


@pytest.fixture(name="tables")
def tables_module(compared: ModuleType) -> ModuleType:
    assert compared  # its folder is where this one is
    return importlib.import_module("peers_tables")


def test_every_point_of_a_peer_meets_the_fastest_of_ours_that_is_no_worse(compared: ModuleType) -> None:
    found = compared.compare(RESULTS, "toy", 10)
    assert [(point.setting, point.seconds, point.error) for point in found.ours] == [
        ("quick", 0.2, 110.0),
        ("default", 1.0, 100.0),
    ]
    ratios = {peer.point.setting: peer.ratio for peer in found.peers}
    assert ratios == {"close": 2.5, "far behind": 4.0, "faster and better": 0.0}
    assert [peer.point.setting for peer in found.peers if peer.dominates_default] == ["faster and better"]
    assert [point.setting for point in found.stopped] == ["too slow"]
    assert found.above_best(found.default) == pytest.approx(100 * (100 / 99 - 1))


def test_other_sets_and_numbers_of_clusters_are_left_out(compared: ModuleType) -> None:
    assert compared.compare(RESULTS, "toy", 11) is None
    assert compared.compare(RESULTS, "other", 10) is None
    assert compared.compare(RESULTS[-4:], "toy", 10) is None  # none of ours


def test_a_default_that_has_not_ended_is_dominated_by_nobody(compared: ModuleType) -> None:
    results = [*RESULTS[:4], run("vcgmm", "default", "", "", "more than 5 s"), *RESULTS[5:]]
    found = compared.compare(results, "toy", 10)
    assert not any(peer.dominates_default for peer in found.peers)


def test_the_page_says_what_is_not_met_as_plainly_as_what_is(tables: ModuleType) -> None:
    page = tables.page(RESULTS, [("toy", 10), ("nothing", 5)])
    assert "3 points of peers: 1 not reached, 1 at 3 or more; of those reached the median ratio is 3.25." in page
    closest = [line for line in page.splitlines() if line.startswith(("| toy |", "|  |"))]
    assert [line.split(" | ")[5] for line in closest] == ["**not reached**", "**2.50**"]
    assert "1 of 3" in closest[0]
    assert "| peer (dominates our default) | faster and better |" in page
    assert "| peer | too slow | more than 5 s |" in page
    assert "| peer | far behind | 4 | 105 | 6.1 % | 1 | 1 s @ 100, default | 4.00 |" in page
    assert "nothing" not in page
