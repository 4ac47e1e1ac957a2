"""Clusters with weights and variances of their own on the device, held to plain formulas and to the CPU."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="tests of the GPU need torch")
pytest.importorskip("triton", reason="tests of the GPU need Triton")

from vcgmm import VCGMM, evaluation, prediction  # noqa: E402
from vcgmm.algorithm.coreset.frame import Frame  # noqa: E402
from vcgmm.algorithm.models import reference  # noqa: E402
from vcgmm.algorithm.models.collapse import drop_collapsed, sow_again  # noqa: E402
from vcgmm.algorithm.models.families import FAMILIES  # noqa: E402
from vcgmm.algorithm.models.mixture import Mixture  # noqa: E402
from vcgmm.algorithm.models.mstep import JointStatistics, joint_m_step  # noqa: E402
from vcgmm.gpu.cells.costs import Costs  # noqa: E402
from vcgmm.gpu.cells.nearest import distances_of, nearest_of_all  # noqa: E402
from vcgmm.gpu.cells.neighbourhoods import DeviceNeighbourhoods  # noqa: E402
from vcgmm.gpu.coreset.points import DevicePoints  # noqa: E402
from vcgmm.gpu.device.arrays import DeviceArray, on_host  # noqa: E402
from vcgmm.gpu.prediction.joint_evaluation import DeviceJointEvaluator  # noqa: E402
from vcgmm.gpu.search.joints import DeviceJointSearch  # noqa: E402
from vcgmm.parallel import Workers  # noqa: E402

KINDS = ("isotropic", "spherical", "diag", "tied_diag")
FLOAT32 = np.dtype(np.float32)

#: How far costs of unit-scale data may be from the truth, by what products are computed in.
TOLERANCE = {"fp32": 1e-4, "tf32": 5e-2, "bf16": 1.0}


def problem(kind: str, n: int = 90, n_clusters: int = 9, n_features: int = 5) -> tuple[Any, Any, Mixture]:
    """Points, weights, and a mixture of a kind."""
    rng = np.random.default_rng(0)
    Y, gamma = rng.normal(size=(n, n_features)).astype(np.float32), rng.uniform(0.5, 2.0, n).astype(np.float32)
    family = FAMILIES[kind]
    shape = (1 if family.shared else n_clusters, family.n_squares(n_features))
    variances = np.broadcast_to(rng.uniform(0.3, 2.0, shape), (n_clusters, shape[1])).copy()
    means = rng.normal(size=(n_clusters, n_features)).astype(np.float32).astype(np.float64)
    weights = rng.uniform(0.5, 2.0, n_clusters)
    return Y, gamma, Mixture(means, variances, weights / weights.sum())


def points_of(device: Any, Y: np.ndarray, gamma: np.ndarray, precision: str = "fp32") -> DevicePoints:
    frame = Frame(np.zeros(Y.shape[1]), 1.0, FLOAT32)
    return DevicePoints(torch.from_numpy(Y).to(device), 1.0, torch.from_numpy(gamma).to(device), frame, precision)


def joints_of(Y: np.ndarray, mixture: Mixture) -> np.ndarray:
    variances = np.broadcast_to(mixture.variances, mixture.means.shape)
    return reference.log_joint(Y.astype(np.float64), mixture.means, variances, mixture.weights)


def on(device: Any, array: np.ndarray) -> Any:
    return DeviceArray(torch.from_numpy(array).to(device))


def there(device: Any, mixture: Mixture) -> Mixture:
    return Mixture(on(device, mixture.means), on(device, mixture.variances), on(device, mixture.weights))


@pytest.mark.parametrize("mode", ["fp32", "tf32", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
def test_costs_are_log_joints(device: Any, kind: str, mode: str) -> None:
    Y, gamma, mixture = problem(kind, n_features=19)
    points = points_of(device, Y, gamma)
    natural = mixture.natural(FLOAT32)
    costs, centres = Costs.of(natural, FAMILIES[kind], device), torch.from_numpy(natural.means).to(device)
    ids, near = nearest_of_all(points, centres, 3, mode, costs)
    exact = -joints_of(Y, mixture) - natural.constant
    chosen = np.take_along_axis(exact, ids.cpu().numpy().astype(np.int64), 1)
    tolerance = TOLERANCE["fp32" if kind == "diag" else mode]  # with variances of both, all digits are taken
    np.testing.assert_allclose(near.cpu().numpy(), chosen, atol=tolerance)
    np.testing.assert_allclose(chosen, np.sort(exact, 1)[:, :3], atol=tolerance)
    rows = torch.arange(len(Y), device=device)
    pairs = distances_of(points, rows, ids[:, 1].contiguous(), centres, costs)
    np.testing.assert_allclose(pairs.cpu().numpy(), chosen[:, 1], rtol=1e-5)


def search_of(device: Any, kind: str, truncation: int, n_candidates: int, n: int = 90) -> DeviceJointSearch:
    Y, gamma, mixture = problem(kind, n)
    labels = torch.from_numpy(joints_of(Y, mixture).argmax(1).astype(np.int32)).to(device)
    near = DeviceNeighbourhoods(len(mixture.means), 3, n_candidates, 0, 0, device)
    return DeviceJointSearch(points_of(device, Y, gamma), labels, near, truncation, 1.0, 1e-12, FAMILIES[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_with_all_clusters_as_winners_it_is_exact_em(device: Any, kind: str) -> None:
    Y, gamma, mixture = problem(kind)
    n_clusters = len(mixture.means)
    search = search_of(device, kind, n_clusters, n_clusters)
    found = search.joint_e_step(mixture)
    joints, everything = joints_of(Y, mixture), np.tile(np.arange(n_clusters), (len(Y), 1))
    s = reference.responsibilities(joints, everything)
    assert found.log_sum == pytest.approx(reference.bound(joints, gamma, everything), rel=1e-6)
    np.testing.assert_allclose(on_host(found.masses), gamma @ s, rtol=1e-5)
    np.testing.assert_allclose(search.sums, gamma.astype(np.float64) @ Y.astype(np.float64), rtol=1e-6)
    np.testing.assert_allclose(search.squares, gamma.astype(np.float64) @ Y.astype(np.float64) ** 2, rtol=1e-6)
    new = joint_m_step(found, there(device, mixture), FAMILIES[kind], learned=True, floor=np.array([1e-9]))
    mu, v, pi = reference.m_step(Y.astype(np.float64), gamma.astype(np.float64), s, kind)
    np.testing.assert_allclose(on_host(new.means), mu, atol=1e-5)
    np.testing.assert_allclose(np.broadcast_to(on_host(new.variances), v.shape), v, rtol=1e-4)
    np.testing.assert_allclose(on_host(new.weights), pi, rtol=1e-5)
    # Cells are by first winners of before.
    first = joints.argmax(1)
    bounds = gamma * np.logaddexp.reduce(joints, axis=1)
    np.testing.assert_allclose(on_host(found.cell_bounds), np.bincount(first, bounds, n_clusters), rtol=1e-4)
    np.testing.assert_allclose(on_host(found.cell_masses), np.bincount(first, gamma, n_clusters), rtol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_neighbours_have_the_largest_mean_joints(device: Any, kind: str) -> None:
    _, _, mixture = problem(kind, n_clusters=9)
    search = search_of(device, kind, 3, 9)
    search.joint_e_step(mixture)
    expected = reference.mean_costs(
        mixture.means, np.broadcast_to(mixture.variances, mixture.means.shape), mixture.weights
    )
    np.fill_diagonal(expected, -np.inf)
    assert search.neighbors.tolist() == np.argsort(expected, axis=1)[:, :3].tolist()


def statistics(rng: np.random.Generator, n_clusters: int, n_squares: int) -> dict[str, Any]:
    masses = rng.uniform(1.0, 9.0, n_clusters)
    masses[1], masses[4] = 0.0, 1e-5
    return {
        "means": rng.normal(size=(n_clusters, 3)),
        "shifts": 0.1 * rng.normal(size=(n_clusters, 3)) * masses[:, None],
        "scatters": rng.uniform(1.0, 2.0, (n_clusters, n_squares)) * masses[:, None],
        "masses": masses,
        "cell_bounds": -rng.uniform(5.0, 9.0, n_clusters),
        "cell_masses": rng.uniform(4.0, 9.0, n_clusters),
    }


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_an_m_step_and_its_drops_on_the_device_are_those_on_the_host(
    device: Any, kind: str, learned: bool
) -> None:
    rng, n_clusters, family = np.random.default_rng(0), 8, FAMILIES[kind]
    sums = statistics(rng, n_clusters, family.n_squares(3))
    rest = {"log_sum": -1.0, "n_evaluations": 1, "noise": 1e-6}
    shape = (n_clusters, family.n_squares(3))
    mixture = Mixture(sums["means"], rng.uniform(0.5, 1.0, shape), np.full(n_clusters, 1 / n_clusters))
    floor = np.full(shape[1], 0.3)
    results = []
    for here, before in (
        (dict(sums), mixture),
        ({k: on(device, v) for k, v in sums.items()}, there(device, mixture)),
    ):
        stats = JointStatistics(**here, **rest)
        new = joint_m_step(stats, before, family, learned, floor, 1.4)
        left = drop_collapsed(new, stats.masses, family, learned, floor, 1.0)
        places = np.flatnonzero(~left.active)
        sown, given = sow_again(left, stats, places, True, 1.0, np.random.default_rng(1))
        equal, _ = sow_again(left, stats, places, False, 1.0, np.random.default_rng(1))
        natural = left.natural(FLOAT32)
        results.append(
            [
                *(new.means, new.variances, new.weights, left.weights, sown.means, sown.variances, sown.weights),
                *(
                    natural.means,
                    natural.precisions,
                    natural.offsets,
                    natural.constant,
                    equal.weights,
                    given,
                    places,
                ),
            ]
        )
    assert len(results[0][-1])
    for host, other in zip(*results, strict=True):
        np.testing.assert_allclose(on_host(other), host, rtol=1e-9)


def blobs(n: int = 120) -> np.ndarray:
    rng = np.random.default_rng(1)
    centres = 6 * rng.normal(size=(8, 3))
    return (centres[rng.integers(8, size=n)] + rng.normal(size=(n, 3)) * [1.0, 0.3, 2.0]).astype(np.float32)


def model(kind: str, **changes: Any) -> VCGMM:
    options = {"covariance_type": kind, "mixing": "learned", "random_state": 0, "tol": 1e-4, "max_iter": 8}
    return VCGMM(**{"n_components": 8, "device": "cuda", **options, **changes})


def fitted(kind: str, X: Any, **changes: Any) -> VCGMM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model(kind, **changes).fit(X)


@pytest.mark.parametrize(
    ("kind", "precision"), [*((kind, "fp32") for kind in KINDS), ("spherical", "tf32"), ("tied_diag", "bf16")]
)
def test_a_fit_from_given_means_is_that_of_the_cpu(gpu: Any, kind: str, precision: str) -> None:
    X = blobs()
    about = {"init": X[:8], "n_shared": 1, "max_iter": 4}
    one, other = fitted(kind, X, device="cpu", **about), fitted(kind, X, precision=precision, **about)
    tolerance = {"fp32": 1e-4, "tf32": 2e-3, "bf16": 3e-2}[precision]
    assert other.lower_bound_ == pytest.approx(one.lower_bound_, rel=tolerance)
    assert other.covariances_.shape == one.covariances_.shape
    if precision == "fp32":
        np.testing.assert_allclose(other.weights_, one.weights_, atol=1e-2)
        np.testing.assert_allclose(other.covariances_, one.covariances_, rtol=2e-2)
    if kind != "diag":
        return
    again = fitted(kind, X, precision=precision, **about)
    assert again.means_.tobytes() == other.means_.tobytes()
    assert again.covariances_.tobytes() == other.covariances_.tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_are_those_of_the_cpu(gpu: Any, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X = blobs()
    there = fitted(kind, X, max_iter=3, init=X[:8], n_shared=1)
    tensor = torch.from_numpy(X).to(gpu)
    labels, densities, shares = there.predict(tensor), there.score_samples(tensor), there.predict_proba(X)
    error, score = there.quantization_error(X), there.score(X)
    monkeypatch.setattr(prediction, "FEW_COMPONENTS", 1)
    near = there.predict(X, method="approximate")
    here = there.set_params(device="cpu")
    assert labels.tolist() == here.predict(X).tolist()
    np.testing.assert_allclose(densities.cpu().numpy(), here.score_samples(X), rtol=1e-5)
    np.testing.assert_allclose(shares.toarray(), here.predict_proba(X).toarray(), atol=1e-5)
    assert error == pytest.approx(here.quantization_error(X), rel=1e-5)
    assert score == pytest.approx(here.score(X), rel=1e-5)
    assert (near == labels.cpu().numpy()).mean() > 0.95
    assert evaluation.FEW_COMPONENTS > 1  # elsewhere all are compared


def test_clusters_that_collapse_are_dropped_and_sown_again(gpu: Any) -> None:
    X = np.repeat(blobs(30), 2, axis=0)
    about = {"n_components": 20, "init": X[::3], "n_shared": 0, "max_iter": 5, "reg_covar": 1e-2}
    dropped = fitted("diag", X, **about)
    assert (dropped.weights_ == 0).any()
    assert (dropped.counts_[dropped.weights_ == 0] == 0).all()
    assert dropped.weights_.sum() == pytest.approx(1.0)
    sown = fitted("diag", X, reassign=True, **about)
    assert np.isfinite(sown.means_).all()
    assert sown.lower_bound_ != dropped.lower_bound_
    labels, shares = dropped.predict(X), dropped.predict_proba(X)
    assert dropped.active_[labels].all()
    assert shares.sum() == pytest.approx(len(X))


@pytest.mark.parametrize("kind", ["diag", "spherical"])
def test_labels_of_a_fit_are_its_predictions(gpu: Any, kind: str) -> None:
    X = torch.from_numpy(blobs()).to(gpu)
    one = fitted(kind, X, compute_labels=True, n_shared=0, max_iter=2)
    assert one.labels_.tolist() == one.predict(X).tolist()
    assert one.inertia_ == pytest.approx(one.quantization_error(X))


@pytest.mark.parametrize("kind", ["spherical", "diag"])
def test_narrow_clusters_far_from_the_origin_keep_their_digits(device: Any, kind: str, workers: Workers) -> None:
    rng = np.random.default_rng(0)
    means = rng.uniform(5, 10, size=(3, 4)).astype(np.float32).astype(np.float64)
    Y = np.repeat(means, 10, axis=0).astype(np.float32)
    Y += (rng.integers(-2, 3, size=Y.shape) * 2.0**-20).astype(np.float32)
    mixture = Mixture(means, np.full((3, 4 if kind == "diag" else 1), 1e-12), np.full(3, 1 / 3))
    frame = Frame(np.zeros(4), 1.0, FLOAT32)
    evaluator = DeviceJointEvaluator(mixture, FAMILIES[kind], frame, device, workers, lambda _: None)
    found = evaluator._log_density(points_of(device, Y, np.ones(30, np.float32)), 1.0)
    np.testing.assert_allclose(found, np.logaddexp.reduce(joints_of(Y, mixture), axis=1), atol=1e-6)
