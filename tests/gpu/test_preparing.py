"""How rows of the host become points on the device."""

from __future__ import annotations

import os
import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm import VCGMM  # noqa: E402
from vcgmm import open as open_source  # noqa: E402
from vcgmm.algorithm.coreset.frame import moments  # noqa: E402
from vcgmm.algorithm.coreset.lightweight import lightweight_coreset  # noqa: E402
from vcgmm.algorithm.snapshot import STEPS, Costs, Problem  # noqa: E402
from vcgmm.data import ArrayRows, UnitRows  # noqa: E402
from vcgmm.gpu import preparing  # noqa: E402
from vcgmm.gpu.attempts import DeviceAttempts  # noqa: E402
from vcgmm.gpu.coreset.lanes import Lanes  # noqa: E402
from vcgmm.gpu.coreset.passes import DevicePasses  # noqa: E402
from vcgmm.gpu.coreset.tensors import TensorRows  # noqa: E402
from vcgmm.gpu.preparing import Plan  # noqa: E402
from vcgmm.gpu.seeding.two_level import two_level  # noqa: E402
from vcgmm.parallel import Workers  # noqa: E402
from vcgmm.parameters import settings_of  # noqa: E402
from vcgmm.progress import Progress  # noqa: E402


def rows(n: int = 400) -> np.ndarray:
    return (np.random.default_rng(0).normal(size=(n, 3)) * [1.0, 5.0, 0.1] + 100).astype(np.float32)


def plan(device: Any, X: Any, precision: str = "tf32", **changes: Any) -> tuple[Plan, Any]:
    given = ArrayRows(X)
    settings = settings_of(VCGMM(**{"n_components": 5, "random_state": 0, "coreset_size": None, **changes}), given)
    return Plan(settings, device, precision, Workers(1), lambda _: None), given


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8", ">f4", "int64", "uint16"])
def test_passes_on_the_device_find_what_those_of_the_cpu_do(device: Any, dtype: str, weighted: bool) -> None:
    X = rows().astype(dtype)
    weights = np.random.default_rng(1).uniform(0.0, 2.0, len(X)) if weighted else None
    if weights is not None:
        weights[::7] = 0.0
    given, inline = ArrayRows(X), Workers(1)
    passes = DevicePasses(Lanes(device, inline))
    expected = moments(given, weights, inline, lambda _: None)
    found = moments(given, weights, inline, lambda _: None, passes.moments)
    assert found.n_usable == expected.n_usable
    assert found.total_weight == pytest.approx(expected.total_weight)
    digits = 1e-12 if dtype in ("float64", "int64") else 1e-6  # of the others the CPU takes squares in float32
    np.testing.assert_allclose(found.mean, expected.mean, rtol=digits)
    assert found.total_variance == pytest.approx(expected.total_variance, rel=digits)
    one, other = (
        lightweight_coreset(
            given, expected, weights, 60, np.random.default_rng(2), 5, inline, lambda _: None, *deviations_of
        )
        for deviations_of in ((), (passes.deviations,))
    )
    assert other.indices.tolist() == one.indices.tolist()
    np.testing.assert_allclose(other.weights, one.weights, rtol=1e-6)


def test_rows_that_are_not_finite_are_named(device: Any) -> None:
    X = rows()
    X[17, 2] = np.nan
    with pytest.raises(ValueError, match="row 17, feature 2"):
        moments(ArrayRows(X), None, Workers(1), lambda _: None, DevicePasses(Lanes(device, Workers(1))).moments)


@pytest.mark.parametrize("size", [None, 90])
@pytest.mark.parametrize(
    ("dtype", "precision", "kind"),
    [
        ("float32", "tf32", torch.float32),
        ("float32", "bf16", torch.bfloat16),
        ("float64", "tf32", torch.float32),
        ("uint8", "bf16", torch.uint8),
        ("int8", "tf32", torch.int8),
        ("float16", "tf32", torch.float16),
    ],
)
def test_points_are_stored_as_narrow_as_they_can_be(
    device: Any, dtype: str, precision: str, kind: Any, size: int | None
) -> None:
    X = rows().astype(dtype)
    made, given = plan(device, X, precision, coreset_size=size)
    prepared = made.prepare(given, None)
    points, frame = prepared.points, prepared.points.frame
    assert points.stored.dtype == kind
    assert len(points) == len(prepared.coreset) <= (size or len(X))
    local = points.at(slice(None)).double().cpu().numpy()
    digits = 1e-2 if kind is torch.bfloat16 else 1e-6
    expected = X.astype(np.float64)[prepared.coreset.indices]
    np.testing.assert_allclose(frame.leave(local), expected, rtol=0, atol=digits * np.abs(expected).max())
    np.testing.assert_allclose(prepared.moments.mean, X.astype(np.float64).mean(0), rtol=1e-9)


@pytest.mark.parametrize("tensor", [True, False])
def test_the_total_weight_is_that_of_the_weights(device: Any, tensor: bool) -> None:
    X = rows()
    for weights in (None, np.random.default_rng(1).uniform(0.5, 2.0, len(X))):
        made, given = plan(device, X)
        there = TensorRows(torch.from_numpy(X).to(device)) if tensor else given
        points = made.prepare(there, weights).points
        assert points.total_weight == pytest.approx(float(points.weights.double().sum()), rel=1e-12)


def test_a_weight_of_zero_leaves_a_row_out(device: Any) -> None:
    X, weights = rows(), np.ones(400)
    weights[100:] = 0.0
    made, given = plan(device, X)
    prepared = made.prepare(given, weights)
    assert prepared.coreset.indices.tolist() == list(range(100))
    np.testing.assert_allclose(prepared.moments.mean, X[:100].astype(np.float64).mean(0), rtol=1e-6)


def test_too_few_different_rows_are_refused(device: Any) -> None:
    made, given = plan(device, np.repeat(rows(4), 3, axis=0))
    with pytest.raises(ValueError, match="4 distinct point"):
        made.prepare(given, None)


def test_scaled_rows_of_the_host_come_scaled(device: Any) -> None:
    made, given = plan(device, rows())
    points = made.prepare(UnitRows(given), None).points
    back = points.frame.leave(points.at(slice(None)).double().cpu().numpy())
    np.testing.assert_allclose(np.linalg.norm(back, axis=1), 1.0, rtol=1e-5)


def test_a_source_is_fitted_and_predicted_in_parts(gpu: Any, tmp_path: Any) -> None:
    X = rows(300)
    np.save(tmp_path / "rows.npy", X)
    source = open_source(tmp_path / "rows.npy")
    options = {"n_components": 5, "init": X[:5], "coreset_size": 120, "random_state": 0, "max_iter": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = (VCGMM(device=d, precision="fp32", **options).fit(source) for d in ("cpu", "cuda"))
    assert there.coreset_.indices.tolist() == here.coreset_.indices.tolist()
    np.testing.assert_allclose(there.means_, here.means_, rtol=1e-5)
    assert there.predict(source).tolist() == here.predict(X).tolist()
    assert there.quantization_error(source) == pytest.approx(here.quantization_error(X), rel=1e-4)
    np.testing.assert_allclose(there.score_samples(source), here.score_samples(X), rtol=1e-4)


def test_rows_where_they_lie_are_looked_at_during_the_fit(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = plan(device, rows())
    asked: list[int] = []
    monkeypatch.setattr(preparing, "check_memory", lambda *given: asked.append(given[1]))
    points = made.in_place(TensorRows(torch.from_numpy(rows()).to(device))).points
    points.do_chores()
    assert points.chores  # how many differ is known by the next time
    points.end_chores()
    assert not points.chores
    assert not asked
    monkeypatch.setattr(preparing, "MANY", 399)
    points = made.in_place(TensorRows(torch.from_numpy(rows()).to(device))).points
    assert asked == [400]
    points.end_chores()
    assert asked == [400]


def test_where_memory_runs_out_it_is_said_how_much_is_needed(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(*_: Any) -> None:
        raise torch.OutOfMemoryError("none left")

    def refuse(*given: Any) -> None:
        raise MemoryError(f"{given[1]} points of {given[2]} features, {given[3]} bytes each")

    X = torch.from_numpy(rows()).to(gpu)
    monkeypatch.setattr(DeviceAttempts, "run", run_out)
    # As far as we know there is enough; on a GPU that is told with what there is.
    raised = MemoryError if gpu.type == "cuda" else torch.OutOfMemoryError
    with pytest.raises(raised, match="none left"):
        VCGMM(5, device="cuda", coreset_size=None).fit(X)
    monkeypatch.setattr(preparing, "check_memory", refuse)
    with pytest.raises(MemoryError, match=f"400 points of {X.shape[1]} features"):
        VCGMM(5, device="cuda", coreset_size=None).fit(X)


@pytest.mark.parametrize("init", ["two_level", "random"])
@pytest.mark.parametrize(("n_components", "n_features"), [(5, 3), (40, 3), (300, 3), (40, 60)])
def test_too_few_different_rows_where_they_lie_are_refused(
    device: Any, n_components: int, n_features: int, init: str
) -> None:
    different = np.random.default_rng(0).normal(size=(n_components - 1, n_features)) * (
        [9.0] + [1.0] * (n_features - 1)
    )
    X = np.tile(different.astype(np.float32), (3, 1))
    made, _ = plan(device, X, n_components=n_components, init=init)
    prepared = made.prepare(TensorRows(torch.from_numpy(X).to(device)), None)
    problem = Problem(made.settings, prepared.coreset, 1.0, prepared.points.frame, 1e-9)
    costs = Costs(dict.fromkeys(STEPS, 0.0), dict.fromkeys(STEPS, 0), 0.0)
    attempts = DeviceAttempts(problem, prepared.points, costs, (), Progress(), Workers(1), None, prepared.begun)
    with pytest.raises(ValueError, match=f"{n_components - 1} distinct point"):
        attempts.run()


@pytest.mark.parametrize(("n_components", "differ"), [(40, True), (300, True), (5, False)])
def test_where_seeds_show_that_enough_differ_nobody_counts(device: Any, n_components: int, differ: bool) -> None:
    X = np.random.default_rng(0).normal(size=(900, 3)).astype(np.float32)
    made, _ = plan(device, X, n_components=n_components)
    points = made.in_place(TensorRows(torch.from_numpy(X).to(device))).points
    two_level(points, n_components, np.random.default_rng(0))
    assert bool(points.chores) != differ  # few clusters are found without cells


def test_a_file_that_changes_between_the_two_passes_is_refused(
    gpu: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.npy"
    np.save(path, np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32))
    source, between, changed = open_source(path), preparing.make_coreset, []

    def change(*arguments: Any) -> Any:
        facts = path.stat()
        os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))
        changed.append(path)
        return between(*arguments)

    monkeypatch.setattr(preparing, "make_coreset", change)
    model = VCGMM(3, coreset_size=50, device="cuda")
    with pytest.raises(ValueError, match=r"rows.npy has changed since it was opened: leave it alone"):
        model.fit(source)
    assert changed
    assert not hasattr(model, "means_")
