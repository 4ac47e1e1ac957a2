"""VCGMM on a GPU: as good as on the CPU, tensors in and out, and clear words where something is not there."""

from __future__ import annotations

import pickle
import subprocess
import sys
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm import VCGMM, Coreset  # noqa: E402
from vcgmm.gpu import backend, fitting, preparing  # noqa: E402
from vcgmm.gpu import memory as memory_module  # noqa: E402
from vcgmm.gpu.coreset.points import current  # noqa: E402
from vcgmm.gpu.memory import Shape, bytes_needed  # noqa: E402

N_CLUSTERS = 8


def blobs(n: int = 240, offset: float = 50.0) -> np.ndarray:
    rng = np.random.default_rng(0)
    centres = 6 * rng.normal(size=(N_CLUSTERS, 3)) + offset
    return (centres[rng.integers(N_CLUSTERS, size=n)] + 0.5 * rng.normal(size=(n, 3))).astype(np.float32)


def model(**changes: Any) -> VCGMM:
    options = {"random_state": 0, "device": "cuda", "n_candidates": 6, "max_iter": 6, "tol": 1e-3}
    return VCGMM(**{"n_components": N_CLUSTERS, **options, **changes})


@pytest.fixture(scope="module")
def on_cpu() -> VCGMM:
    return model(device="cpu").fit(blobs())


@pytest.mark.parametrize("precision", ["tf32", "fp32", "bf16"])
def test_a_fit_is_as_good_as_on_the_cpu(gpu: Any, on_cpu: VCGMM, precision: str) -> None:
    X = blobs()
    fitted = model(precision=precision).fit(X)
    assert fitted.quantization_error(X) < 1.1 * on_cpu.quantization_error(X)
    assert fitted.lower_bound_ > on_cpu.lower_bound_ - 0.02 * abs(on_cpu.lower_bound_)
    assert fitted.device_ == str(gpu)
    for name in ("means_", "counts_", "weights_", "covariances_", "neighbors_", "lower_bounds_"):
        assert isinstance(getattr(fitted, name), np.ndarray)
    assert fitted.counts_.sum() == pytest.approx(len(X), rel=1e-5)
    assert fitted.coreset_.points is X
    assert set(fitted.timings_) == {"coreset", "seeding", "em"}


def test_predictions_are_those_of_the_cpu(gpu: Any, on_cpu: VCGMM) -> None:
    X = blobs()
    there = clone(on_cpu).set_params(device="cuda")
    there.__dict__.update(
        {k: v for k, v in vars(on_cpu).items() if k.endswith("_") or k in ("_frame", "_training")}
    )
    assert there.predict(X).tolist() == on_cpu.predict(X).tolist()
    assert there.predict(X, method="approximate").tolist() == on_cpu.predict(X).tolist()
    np.testing.assert_allclose(there.score_samples(X), on_cpu.score_samples(X), rtol=1e-6)
    weights = np.linspace(0.5, 2.0, len(X))
    assert there.quantization_error(X, weights) == pytest.approx(on_cpu.quantization_error(X, weights), rel=1e-5)
    assert there.score(X, sample_weight=weights) == pytest.approx(on_cpu.score(X, sample_weight=weights), rel=1e-6)
    distances, ids = there.nearest(X, 3)
    expected, expected_ids = on_cpu.nearest(X, 3)
    assert ids.tolist() == expected_ids.tolist()
    np.testing.assert_allclose(distances, expected, rtol=1e-4, atol=1e-4)
    assert abs(there.predict_proba(X) - on_cpu.predict_proba(X)).max() < 1e-3


def test_a_tensor_has_features_without_names(gpu: Any) -> None:
    fitted = model(n_components=2, max_iter=1)
    fitted.feature_names_in_ = np.array(["of", "another", "fit"], object)
    fitted.fit(torch.from_numpy(blobs()).to(gpu))
    assert fitted.n_features_in_ == 3
    assert not hasattr(fitted, "feature_names_in_")
    with pytest.raises(ValueError, match="features"):
        fitted.predict(torch.zeros((5, 4), device=gpu))


@pytest.mark.usefixtures("gpu")
@pytest.mark.parametrize("looked_at", [3, 9, 1 << 20])
def test_predictions_are_taken_about_a_place_amid_the_data(
    monkeypatch: pytest.MonkeyPatch, looked_at: int
) -> None:
    monkeypatch.setattr(fitting, "AMID", looked_at)
    fitted = model(max_iter=1).fit(blobs().astype(np.float16))  # stored as they are, without an origin
    every = max(1, len(fitted.means_) // looked_at)
    expected = np.average(fitted.means_[::every], axis=0, weights=fitted.counts_[::every])
    np.testing.assert_allclose(fitted._frame.origin, expected, rtol=1e-9)


def test_a_tensor_is_used_where_it_lies_and_answered_by_tensors(gpu: Any) -> None:
    X = torch.from_numpy(blobs()).to(gpu)
    before = X.clone()
    fitted = model(coreset_size=None).fit(X)
    assert (before == X).all()
    labels = fitted.predict(X)
    assert isinstance(labels, torch.Tensor)
    assert (labels.device, labels.dtype) == (X.device, torch.int32)
    assert fitted.score_samples(X).dtype == torch.float64
    assert labels.tolist() == fitted.predict(X.cpu().numpy()).tolist()
    assert isinstance(fitted.means_, np.ndarray)
    assert fitted.n_features_in_ == 3
    with pytest.raises(ValueError, match="3 features"):
        fitted.predict(X[:, :2])


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16", "int16"])
def test_tensors_of_other_types_are_fitted_too(gpu: Any, on_cpu: VCGMM, dtype: str) -> None:
    X = torch.from_numpy(blobs()).to(gpu).to(getattr(torch, dtype))
    fitted = model().fit(X)
    assert fitted.quantization_error(X) < 1.6 * on_cpu.quantization_error(X.cpu().float().numpy())


def test_a_coreset_of_a_tensor_is_drawn_where_it_lies(gpu: Any, tmp_path: Any) -> None:
    X = torch.from_numpy(blobs(600)).to(gpu).to(torch.bfloat16)  # no type of NumPy's: never used on the host
    weights = torch.linspace(0.5, 1.5, 600)
    fitted = model(coreset_size=200).fit(X, sample_weight=weights)
    coreset = fitted.coreset_
    assert N_CLUSTERS <= len(coreset) <= 200
    assert (coreset.points == X[torch.from_numpy(coreset.indices).to(gpu)].float().cpu().numpy()).all()
    fitted.save(tmp_path / "model.vcgmm", coreset=True)
    whole = model(coreset_size=None, max_iter=2, tol=1.0).fit(X)
    assert isinstance(whole.coreset_.points, np.ndarray)
    if gpu.type == "cuda":  # under the interpreter rows are on the host all along
        assert whole.coreset_.there.data_ptr() == X.data_ptr()
    assert repr(len(whole.coreset_)) in repr(whole.coreset_)
    whole.save(tmp_path / "whole.vcgmm", coreset=True)
    assert (VCGMM.load(tmp_path / "whole.vcgmm").coreset_.points == X.float().cpu().numpy()).all()
    assert coreset.total_weight == pytest.approx(float(weights.sum()), rel=0.3)
    again = model(coreset_size=200).fit(X, sample_weight=weights)
    assert again.means_.tobytes() == fitted.means_.tobytes()


def test_a_small_coreset_has_enough_different_points(gpu: Any) -> None:
    X = torch.zeros((300, 2), device=gpu)
    X[:7] = torch.arange(1, 15, device=gpu).view(7, 2) * 0.001
    fitted = model(coreset_size=8, max_iter=1, tol=0.0)
    with pytest.warns(UserWarning, match="max_iter"):
        fitted.fit(X)
    assert len(np.unique(fitted.coreset_.points, axis=0)) == 8
    with pytest.raises(ValueError, match=r"8 distinct point.*n_components=9"):
        fitted.set_params(n_components=9).fit(X)


def test_rows_of_weight_zero_do_not_count(gpu: Any) -> None:
    X = torch.from_numpy(blobs(100)).to(gpu)
    weights = np.ones(100)
    weights[60:] = 0.0
    fitted = model(n_components=3).fit(X, sample_weight=weights)
    assert fitted.counts_.sum() == pytest.approx(60, rel=1e-5)
    assert fitted.coreset_.indices.tolist() == list(range(60))


def test_fits_are_the_same_to_the_last_bit(gpu: Any) -> None:
    X = blobs()
    one, other = (model(n_init=2, n_explore=1, n_warmup=1, max_iter=3).fit(X) for _ in range(2))
    assert one.means_.tobytes() == other.means_.tobytes()
    assert one.lower_bounds_.tolist() == other.lower_bounds_.tolist()


@pytest.mark.parametrize("init", ["afkmc2", "k-means++", "random", "array"])
def test_all_inits_are_offered(gpu: Any, on_cpu: VCGMM, init: str) -> None:
    X = blobs()
    given: Any = X[:N_CLUSTERS] if init == "array" else init
    fitted = model(init=given, tol=1.0).fit(Coreset(X))
    assert fitted.quantization_error(X) < 8 * on_cpu.quantization_error(X)
    assert fitted.n_distance_evaluations_["seeding"] >= len(X) * N_CLUSTERS


def test_warm_starts_labels_and_files(gpu: Any, tmp_path: Any) -> None:
    X = blobs()
    fitted = model(compute_labels=True).fit(X)
    assert fitted.labels_.tolist() == fitted.predict(X).tolist()
    assert fitted.inertia_ == pytest.approx(fitted.quantization_error(X))
    fitted.set_params(warm_start=True).fit(X)
    assert fitted.converged_
    fitted.save(tmp_path / "model.vcgmm")
    loaded = VCGMM.load(tmp_path / "model.vcgmm")
    assert (loaded.device, loaded.device_) == ("cuda", str(gpu))
    assert loaded.predict(X).tolist() == fitted.predict(X).tolist()


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # by the interpreter, which computes with NumPy
def test_bad_rows_are_named(gpu: Any) -> None:
    X = torch.from_numpy(blobs()).to(gpu)
    fitted = model(max_iter=2, tol=1.0).fit(X)
    for value in (torch.nan, torch.inf):
        bad = X.to(torch.bfloat16)
        bad[17, 2] = value
        with pytest.raises(ValueError, match="row 17, feature 2"):
            model().fit(bad)
        with pytest.raises(ValueError, match="row 17, feature 2"):
            fitted.predict(bad)
        with pytest.raises(ValueError, match="row 17, feature 2"):
            fitted.predict(bad.float().cpu().numpy())
    with pytest.raises(ValueError, match="overflow float32"):
        fitted.predict(np.full((2, 3), 1e30))


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (lambda: torch.ones(4), "1 dimension"),
        (lambda: torch.ones(0, 3), "at least one row"),
        (lambda: torch.ones(4, 2, dtype=torch.complex64), "real numbers"),
        (lambda: torch.eye(4).to_sparse(), "to_dense"),
    ],
)
def test_tensors_that_are_no_rows_are_refused(gpu: Any, tensor: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        model().fit(tensor().to(gpu))


def test_a_coreset_that_is_a_tensor_is_brought_when_it_is_asked_for(gpu: Any, tmp_path: Any) -> None:
    X = torch.from_numpy(blobs()).to(gpu)
    fitted = model(max_iter=1, tol=1.0).fit(X)
    brought: list[Any] = []

    def bring(points: Any) -> np.ndarray:
        brought.append(points)
        return np.asarray(points.cpu().numpy())

    def elsewhere() -> Coreset:  # as on a GPU, not on the host
        return Coreset.of(X, np.broadcast_to(np.ones(1), len(X)), range(len(X)), len(X), bring)

    coreset = elsewhere()
    assert (len(coreset), coreset.n_features) == tuple(X.shape)
    assert "features, float32, of weight" in repr(coreset)
    assert coreset.there is X
    fitted.fit(coreset)
    assert not (brought and gpu.type == "cuda")  # it is used where it lies
    fitted.coreset_ = coreset = elsewhere()
    before = set(coreset.__dict__)
    fitted.save(tmp_path / "model.vcgmm", coreset=True)
    coreset.save(tmp_path / "coreset.vcgmm")
    again = pickle.loads(pickle.dumps(fitted))
    assert set(coreset.__dict__) == before  # nothing is kept beside the tensor
    for other in (
        again.coreset_,
        VCGMM.load(tmp_path / "model.vcgmm").coreset_,
        Coreset.load(tmp_path / "coreset.vcgmm"),
    ):
        np.testing.assert_array_equal(other.points, blobs())
        assert other.there is other.points
        assert other.weights.tolist() == [1.0] * len(X)
        assert other.indices.tolist() == list(range(len(X)))
    assert again.means_.tobytes() == fitted.means_.tobytes()
    del brought[:]
    np.testing.assert_array_equal(coreset.points, blobs())
    assert coreset.points is coreset.points
    assert len(brought) == 1
    assert coreset.there is X
    assert len(coreset.merge(coreset)) == 2 * len(X)
    on_cpu = model(device="cpu", max_iter=1, tol=1.0).fit(coreset)
    assert on_cpu.quantization_error(coreset) == pytest.approx(on_cpu.quantization_error(blobs()))
    assert on_cpu.score(coreset) == pytest.approx(on_cpu.score(blobs()))
    assert len(on_cpu.partial_fit(coreset).coreset_) >= len(X)


def test_tensors_of_other_classes_are_taken_for_plain_ones(gpu: Any) -> None:
    class Special(torch.Tensor):
        pass

    X = torch.from_numpy(blobs()).to(gpu)
    expected = model(max_iter=2).fit(X)
    fitted = model(max_iter=2).fit(X.as_subclass(Special))
    assert fitted.means_.tobytes() == expected.means_.tobytes()


def test_a_fit_in_a_stream_of_the_callers_own_is_the_same(gpu: Any) -> None:
    if gpu.type != "cuda":
        pytest.skip("the host has no streams")
    X = np.tile(blobs(), (500, 1))
    expected = model(max_iter=2, coreset_size=None).fit(X)
    with torch.cuda.stream(torch.cuda.Stream(gpu)):
        fitted = model(max_iter=2, coreset_size=None).fit(X)
        labels = fitted.predict(X)
    assert fitted.means_.tobytes() == expected.means_.tobytes()
    assert labels.tobytes() == expected.predict(X).tobytes()


def test_where_memory_runs_out_it_is_said_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    device = torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "device", lambda _device: nullcontext())
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (3 << 29, 80 << 30))
    said = r"cuda:0 .* 1\.5 of its 80\.0 GiB .* Use a smaller coreset_size"
    with pytest.raises(MemoryError, match=said), current(device):
        raise torch.OutOfMemoryError("tried to allocate more")


def test_small_rows_need_little_memory() -> None:
    assert bytes_needed(1000, 2, 4, Shape(10, 5, 128)) < 1 << 22


def test_too_little_memory_is_said_before_it_begins(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shape = Shape(1000, 5, 128)
    need = bytes_needed(1_000_000, 1000, 4, shape)
    device = torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _device: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _device: 0)

    def free(amount: float) -> None:
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _device: (int(amount), 0))

    free(1.1 * need)
    memory_module.check_memory(device, 1_000_000, 1000, 4, shape)
    free(0.95 * need)
    with pytest.raises(
        MemoryError, match=r"needs about .* GiB on cuda:0.*precision='bf16', or coreset_size="
    ) as error:
        memory_module.check_memory(device, 1_000_000, 1000, 4, shape)
    fits = int(str(error.value).split("coreset_size=")[1].split()[0].replace("_", ""))
    assert 1000 < fits < 1_000_000
    memory_module.check_memory(device, fits, 1000, 4, shape)
    free(0.0)
    with pytest.raises(MemoryError, match="fewer components"):
        memory_module.check_memory(device, 1_000_000, 100, 0, shape)


def test_variances_of_the_clusters_own_are_counted(gpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    n_clusters, n_features = 50_000, 300
    shared, one, all_features = (
        bytes_needed(100_000, n_features, 4, Shape(n_clusters, 5, 128, n)) for n in (0, 1, n_features)
    )
    wide = n_clusters * n_features
    assert one - shared > 8 * wide  # sums of squares are taken by feature in any case
    # Those of this E-step, of this M-step and of the last; variances and precisions in float32 to compute with.
    assert all_features - one > (3 * 8 + 2 * 4) * wide
    asked = []
    monkeypatch.setattr(preparing, "check_memory", lambda *about: asked.append(about[-1].n_variances))
    for kind, mixing in (("isotropic", "equal"), ("isotropic", "learned"), ("spherical", None), ("diag", None)):
        options = {"covariance_type": kind, **({} if mixing is None else {"mixing": mixing})}
        model(max_iter=1, **options).fit(blobs())
    assert asked == [0, 1, 1, blobs().shape[1]]


def test_torch_without_cuda_is_said(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", None)
    with pytest.raises(RuntimeError, match=r"built with CUDA.*device='cpu'"):
        backend.find_device("cuda")
    fitted = model(device="auto", max_iter=2, tol=1.0).fit(blobs())  # takes what is there, and says so
    assert fitted.device_ == "cpu"
    assert fitted.predict(blobs()).shape == (240,)


def test_a_driver_that_does_not_do_is_said(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_old() -> None:
        raise RuntimeError("The NVIDIA driver on your system is too old.")

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "init", too_old)
    with pytest.raises(RuntimeError, match=r"CUDA 13.0.*driver on your system is too old.*device='cpu'"):
        model().fit(blobs())


def test_a_gpu_that_is_not_there_or_too_old_is_said(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(RuntimeError, match=r"cuda:5.*finds 2 GPU.*'cuda:1'"):
        backend.find_device("cuda:5")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _index: (7, 0))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _index: "V100")
    with pytest.raises(RuntimeError, match=r"V100.*\(7, 0\).*\(8, 0\)"):
        backend.find_device("cuda:1")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _index: (9, 0))
    assert backend.find_device("cuda:1") == torch.device("cuda", 1)


def test_a_tensor_of_the_host_is_fitted_on_the_cpu_too() -> None:
    X = blobs()
    expected = model(device="cpu").fit(X)
    fitted = model(device="cpu").fit(torch.from_numpy(X))
    assert fitted.means_.tobytes() == expected.means_.tobytes()
    labels = fitted.predict(torch.from_numpy(X))
    assert isinstance(labels, torch.Tensor)
    assert labels.tolist() == expected.predict(X).tolist()
    half = model(device="cpu").fit(torch.from_numpy(X).to(torch.bfloat16))
    assert half.quantization_error(X) < 1.5 * expected.quantization_error(X)


def test_a_tensor_on_a_gpu_is_refused_by_the_cpu() -> None:
    X = torch.empty((5, 2), device="meta")  # anything but the host
    with pytest.raises(ValueError, match=r"tensor on meta.*device='cpu'.*X.cpu\(\)"):
        model(device="cpu").fit(X)


def test_a_fit_is_the_same_to_the_last_bit_in_another_process(gpu: Any) -> None:
    if gpu.type != "cuda":
        pytest.skip("another process has no interpreter that stands for a GPU")
    program = (
        "import hashlib, numpy as np\n"
        "from vcgmm import VCGMM\n"
        "X = np.random.default_rng(0).normal(size=(20_000, 8)).astype(np.float32)\n"
        "for init, size in (('two_level', None), ('afkmc2', 5_000)):\n"
        "    model = VCGMM(100, init=init, coreset_size=size, random_state=0, device='cuda', max_iter=5)\n"
        "    print(hashlib.sha256(model.fit(X).means_.tobytes()).hexdigest())\n"
    )
    told = [
        subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert told[0].stdout == told[1].stdout
    assert len(set(told[0].stdout.split())) == 2
