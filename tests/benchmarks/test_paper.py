"""The study of the paper's experiments, on a set so small that all of it runs."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(name="study")
def paper_study(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("paper")


@pytest.fixture(name="plan")
def paper_plan(study: ModuleType) -> ModuleType:
    return sys.modules["paper_study.plan"]


def test_seeds_come_in_rounds_and_k_means_before_all_that_is_told_relative_to_it(plan: ModuleType) -> None:
    names = ["kdd-500", "rna-500"]
    entries = plan.plan(names, ["table1", "figure1"], plan.ALGORITHMS, 3)
    assert len(set(entries)) == len(entries)
    assert [entry.seed for entry in entries] == sorted(entry.seed for entry in entries)
    seen = set()
    for entry in entries:
        if entry.algorithm == "k-means++":
            seen.add((entry.set, entry.seed))
        assert (entry.set, entry.seed) in seen


def test_a_choice_of_algorithms_keeps_the_yardstick(plan: ModuleType) -> None:
    entries = plan.plan(["kdd-500"], ["table1"], ["LWCS"], 1)
    assert [entry.algorithm for entry in entries] == ["k-means++", "LWCS"]


def test_a_set_that_is_not_there_is_left_out(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("VCGMM_DATA", str(tmp_path))
    records = sys.modules["paper_study.records"].Records(tmp_path / "r.jsonl")
    entries = sys.modules["paper_study.plan"].plan(["susy-2000"], ["table1"], ["LWCS"], 1)
    study.run(entries, records, tmp_path)
    assert "susy is left out:" in capsys.readouterr().err
    assert records.lines == []


def test_numbers_of_the_paper_stand_only_beside_the_same_set_and_clusters(plan: ModuleType) -> None:
    beside = {name for name, one in plan.STUDIES.items() if one.published}
    assert beside == {"kdd-500", "rna-500", "cifar10-500", "susy-2000", "song-4000"}


def test_g_in_words(study: ModuleType) -> None:
    runs = sys.modules["paper_study.runs"]
    assert runs.split_g("3+1") == {"truncation": 3, "n_neighbors": 3, "n_explore": 1}
    assert runs.split_g("5") == {"truncation": 5, "n_neighbors": 5, "n_explore": 0}


def line(
    plan: ModuleType, algorithm: str, seed: int, error: float, seconds: float, **changes: Any
) -> dict[str, Any]:
    entry = plan.Entry("kdd", 500, algorithm, seed, **changes)
    return {
        **entry.key(), "error": error, "nmi": 0.9, "iterations": 10, "n_points": 8000, "bound": -1.0,
        "seconds": {"coreset": 0.1 * seconds, "seeding": 0.2 * seconds, "em": 0.7 * seconds},
        "distances": {"coreset": 10, "seeding": 20, "em": int(1000 * seconds)}, "busy": 1.0, "wall": seconds,
    }  # fmt: skip


def test_a_summary_is_relative_to_the_mean_of_k_means(plan: ModuleType, tmp_path: Path) -> None:
    records = sys.modules["paper_study.records"].Records(tmp_path / "r.jsonl")
    summarise = sys.modules["paper_study.summary"].summarise
    for seed, error in enumerate((90.0, 110.0)):
        records.add("run", line(plan, "k-means++", seed, error, 50.0))
        records.add("run", line(plan, "LWCS", seed, 1.2 * error, 5.0, size=8192, chain_length=2))
    found = summarise(records, plan.Entry("kdd", 500, "LWCS", 0, size=8192, chain_length=2))
    assert found.n_seeds == 2
    assert found.eta == pytest.approx(20.0)
    assert found.eta_sem == pytest.approx(12.0)  # 8 and 32 %: standard deviation 16.97, over the root of 2
    assert found.time == pytest.approx(10.0)
    assert found.distances == pytest.approx(50_030 / 5_030)
    by_draws = 10 + 20 + 192 + 5000 * 8192 / 8000
    assert found.draw_distances == pytest.approx(50_030 / by_draws)
    assert found.share == pytest.approx(0.3)
    assert found.sklearn_time is None
    assert summarise(records, plan.Entry("kdd", 500, "ours", 0)) is None


def test_tables_take_the_place_between_their_marks(study: ModuleType) -> None:
    renew = sys.modules["paper_study.page"].renew
    text = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb"
    once = renew(text, "x", "| new |")
    assert once == "a\n<!-- begin x -->\n| new |\n<!-- end x -->\nb"
    assert renew(once, "x", "| new |") == once
    with pytest.raises(ValueError, match="no marks <!-- begin y -->"):
        renew(text, "y", "table")


def test_a_study_runs_goes_on_and_shows_what_came_out(
    study: ModuleType, plan: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tiny = plan.Study("tiny", 8, "KDD", False, "3+1", 2, 128, (64, 128, 256))
    monkeypatch.setitem(plan.STUDIES, tiny.name, tiny)
    monkeypatch.setenv("VCGMM_DATA", str(tmp_path))
    rng = np.random.default_rng(0)
    np.save(tmp_path / "tiny.npy", (10 * rng.normal(size=(8, 3))).repeat(75, axis=0) + rng.normal(size=(600, 3)))
    paths = ["--records", "runs.jsonl", "--page", "page.md", "--pictures", "pictures", "--scratch", "scratch"]
    command = ["paper.py", "--sets", "tiny-8", "--parts", "table1", "figure1", "defaults", *paths]
    monkeypatch.chdir(tmp_path)

    monkeypatch.setattr(sys, "argv", [*command, "--seeds", "1"])
    study.main()
    first = (tmp_path / "runs.jsonl").read_text()
    runs = [json.loads(text) for text in first.splitlines()]
    entries = plan.plan(["tiny-8"], ["table1", "figure1", "defaults"], plan.ALGORITHMS, 1)
    assert len(runs) == len(entries)
    assert {run["algorithm"] for run in runs} == {*plan.ALGORITHMS, "untouched"}
    assert all(run["machine"] and run["versions"] for run in runs)
    exact = next(run for run in runs if run["algorithm"] == "k-means++" and run["condition"] == "paper")
    assert exact["nmi"] == 1.0
    assert exact["distances"] == {"coreset": 0, "seeding": 4800, "em": 4800 * exact["iterations"]}
    drawn = [run for run in runs if run["algorithm"] == "vc-GMM" and run["size"] == 128]
    assert all(run["distances"]["coreset"] == 600 and run["n_points"] <= 128 for run in drawn)
    page = (tmp_path / "page.md").read_text()
    assert "**tiny, 8 clusters (in the place of KDD)**" in page
    assert "| vc-GMM | 3+1 | 2⁷ (" in page
    for name in ("paper-tiny-8.png", "paper-tiny-8.svg", "paper-nmi.png"):
        assert (tmp_path / "pictures" / name).stat().st_size > 10_000

    monkeypatch.setattr(sys, "argv", [*command, "--seeds", "2"])  # goes on with what is missing
    study.main()
    second = (tmp_path / "runs.jsonl").read_text()
    assert second.startswith(first)
    assert len(second.splitlines()) == 2 * len(runs)
    monkeypatch.setattr(sys, "argv", [*command, "--report"])
    study.main()
    assert (tmp_path / "runs.jsonl").read_text() == second


def test_costs_are_measured_once_and_told_as_powers(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = sys.modules["paper_study.costs"]
    monkeypatch.setattr(costs, "N_SAMPLES", 4096)
    monkeypatch.setattr(costs, "MIDDLE", {"size": 512, "n_clusters": 16, "n_features": 4})
    monkeypatch.setattr(costs, "FACTORS", (1, 2))
    records = sys.modules["paper_study.records"].Records(tmp_path / "r.jsonl")
    costs.measure_costs(records)
    assert len(records.lines) == 3 * 3 * 2
    costs.measure_costs(records)
    assert len(records.lines) == 3 * 3 * 2
    table = costs.costs_table(records)
    assert "| LWCS | C: 16 to 32 |" in table
    assert len(table.splitlines()) == 2 + 9
    grown = [{"factor": 1, "update": 2.0}, {"factor": 4, "update": 32.0}]
    assert costs.exponent(grown, "update") == pytest.approx(2.0)


def test_table_two_in_small_leaves_no_file_behind(
    study: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scale = sys.modules["paper_study.scale"]
    for name, value in {"N_FEATURES": 6, "N_TRUE": 40, "N_TEST": 50, "ROWS": 256, "CLUSTERS": (10, 20)}.items():
        monkeypatch.setattr(scale, name, value)
    records = sys.modules["paper_study.records"].Records(tmp_path / "r.jsonl")
    scale.measure_scale(records, tmp_path / "scratch", scale.Scale(3000, 600))
    found = {(line["form"], line["n_clusters"]): line for line in records.lines}
    assert set(found) == {(form, c) for form in ("vc-GMM", "ours") for c in (10, 20)}
    assert all(line["n_rows"] == 3000 and line["n_points"] <= 600 for line in records.lines)
    assert found["ours", 20]["error"] < found["ours", 10]["error"]
    assert list((tmp_path / "scratch").iterdir()) == []
    assert "| ours | 20 |" in scale.scale_table(records)
    scale.measure_scale(records, tmp_path / "scratch", scale.Scale(3000, 600))
    assert len(records.lines) == 4
