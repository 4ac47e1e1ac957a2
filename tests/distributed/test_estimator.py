"""The estimator around a Dask fit: parameters, what is kept, what is told, what is left behind."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
import time
from pathlib import Path

import dask.array as da
import numpy as np
import pytest
from distributed import Client
from sklearn.base import clone

from vcgmm import VCGMM, Iteration, quantization_error
from vcgmm.distributed import DaskVCGMM


@pytest.fixture(scope="module")
def lazy(X: np.ndarray) -> da.Array:
    return da.from_array(X, chunks=(1700, 5))


def test_parameters_are_those_of_the_local_one_and_three_more() -> None:
    ours, theirs = DaskVCGMM().get_params(), VCGMM().get_params()
    assert ours == {**theirs, "client": None, "em": "gathered", "seeding_size": "auto"}
    assert next(iter(inspect.signature(DaskVCGMM).parameters)) == "n_components"
    assert DaskVCGMM(7, tol=0.5).get_params()["tol"] == 0.5
    assert DaskVCGMM().set_params(n_components=9, em="distributed").n_components == 9
    assert repr(DaskVCGMM(7, em="distributed")) == "DaskVCGMM(em='distributed', n_components=7)"
    with pytest.raises(TypeError, match="no_such"):
        DaskVCGMM(no_such=1)


def test_a_clone_has_the_same_client_and_a_pickle_none(client: Client, lazy: da.Array, X: np.ndarray) -> None:
    model = DaskVCGMM(6, init=X[:6], client=client, em="distributed").fit(lazy)
    copy = clone(model)
    assert copy.client is client
    assert copy.em == "distributed"
    assert copy.init is not model.init
    assert not hasattr(copy, "means_")
    model = pickle.loads(pickle.dumps(model))
    assert model.client is None
    assert model.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("em", ["gathered", "distributed"])
def test_a_model_file_is_read_by_both(
    client: Client, lazy: da.Array, X: np.ndarray, tmp_path: Path, em: str
) -> None:
    model = DaskVCGMM(6, random_state=0, client=client, em=em, coreset_size=900).fit(lazy)
    path = tmp_path / "model.vcgmm"
    model.save(path)
    for kind in (VCGMM, DaskVCGMM):
        loaded = kind.load(path)
        assert type(loaded) is kind
        assert (loaded.means_ == model.means_).all()
        assert (loaded.predict(X) == model.to_local().predict(X)).all()
    with pytest.raises(ValueError, match="no coreset_"):
        loaded.save(tmp_path / "again.vcgmm", coreset=True)
    model.save(path, coreset=True)
    assert (VCGMM.load(path).coreset_.points == np.asarray(model.coreset_.points)).all()


def test_the_local_model_has_all_but_what_dask_holds(client: Client, lazy: da.Array) -> None:
    gathered = DaskVCGMM(6, random_state=0, client=client, compute_labels=True).fit(lazy)
    local = gathered.to_local()
    assert type(local) is VCGMM
    assert local.get_params() == {name: gathered.get_params()[name] for name in VCGMM().get_params()}
    assert local.coreset_ is gathered.coreset_
    assert isinstance(gathered.labels_, da.Array)
    assert not hasattr(local, "labels_")
    assert local.inertia_ == gathered.inertia_
    distributed = DaskVCGMM(6, random_state=0, client=client, em="distributed").fit(lazy)
    assert isinstance(distributed.coreset_.points, da.Array)
    assert not hasattr(distributed.to_local(), "coreset_")


def test_labels_and_error_of_the_fit(client: Client, lazy: da.Array, X: np.ndarray, weights: np.ndarray) -> None:
    model = DaskVCGMM(6, random_state=0, client=client, compute_labels=True).fit(lazy, sample_weight=weights)
    local = VCGMM(6, random_state=0, compute_labels=True).fit(X, sample_weight=weights)
    assert (model.labels_.compute() == local.labels_).all()
    assert model.inertia_ == pytest.approx(local.inertia_, rel=1e-9)
    assert (model.fit_predict(lazy).compute() == VCGMM(6, random_state=0).fit_predict(X)).all()


def test_a_checkpoint_of_a_gathered_fit_goes_on_locally(client: Client, lazy: da.Array, tmp_path: Path) -> None:
    path = tmp_path / "fit.ckpt"
    settings = {"n_components": 20, "random_state": 0, "coreset_size": 3000, "client": client}
    whole = DaskVCGMM(**settings).fit(lazy)
    stopped = DaskVCGMM(checkpoint=path, callbacks=lambda facts: facts.iteration == 2, **settings).fit(lazy)
    assert stopped.n_iter_ == 2 < whole.n_iter_
    for kind in (VCGMM, DaskVCGMM):
        resumed = kind.resume(path)
        assert type(resumed) is kind
        assert (resumed.means_ == whole.means_).all()


@pytest.mark.parametrize("em", ["gathered", "distributed"])
def test_callbacks_hear_of_every_iteration_and_may_stop(client: Client, lazy: da.Array, em: str) -> None:
    told: list[Iteration] = []

    def listen(facts: Iteration) -> bool:
        told.append(facts)
        return facts.iteration == 3

    model = DaskVCGMM(20, random_state=0, client=client, em=em, callbacks=listen, tol=0.0).fit(lazy)
    assert [facts.iteration for facts in told] == [1, 2, 3]
    assert model.n_iter_ == 3
    assert model.history_["bound"].tolist() == model.lower_bounds_.tolist() == [facts.bound for facts in told]
    assert set(model.timings_) == {"coreset", "seeding", "em"}


@pytest.mark.parametrize("seeding_size", ["auto", 6000])
def test_clusters_are_moved_where_the_start_is_made(client: Client, seeding_size: str | int) -> None:
    rng = np.random.default_rng(0)
    centres = np.stack(np.meshgrid(np.arange(20), np.arange(20)), axis=-1).reshape(-1, 2) * 3.0
    X = centres[rng.integers(400, size=12_000)] + 0.2 * rng.normal(size=(12_000, 2))
    errors = []
    for init in ("two_level", "random"):
        model = DaskVCGMM(
            400, random_state=0, client=client, em="distributed", seeding_size=seeding_size, init=init
        ).fit(da.from_array(X, chunks=(1700, 2)))
        errors.append(model.to_local().quantization_error(X) / quantization_error(X, centres))
    assert errors[0] < 1.1  # each has found its own, or nearly so
    assert errors[1] > 2.0  # which is not to be had for nothing


def test_progress_counts_all_rows_twice(
    client: Client, lazy: da.Array, capsys: pytest.CaptureFixture[str]
) -> None:
    DaskVCGMM(6, random_state=0, client=client, em="distributed", verbose=1, coreset_size=1000).fit(lazy)
    lines = [line.split() for line in capsys.readouterr().err.splitlines()]
    assert [line[0] for line in lines] == ["coreset", "seeding", "em"]
    assert "12,000" in lines[0]


def test_a_fit_that_did_not_converge_says_so(client: Client, lazy: da.Array) -> None:
    with pytest.warns(UserWarning, match="ended after max_iter=1 iterations"):
        DaskVCGMM(6, random_state=0, client=client, max_iter=1).fit(lazy)


def test_seeding_on_a_part_of_the_coreset(client: Client, lazy: da.Array, X: np.ndarray) -> None:
    settings = {"n_components": 40, "random_state": 1, "em": "distributed", "client": client}
    everything = DaskVCGMM(**settings).fit(lazy)
    some, again = (DaskVCGMM(seeding_size=1500, **settings).fit(lazy) for _ in range(2))
    assert (some.means_ == again.means_).all()
    assert (some.means_ != everything.means_).any()
    assert some.coreset_.indices.tolist() == everything.coreset_.indices.tolist()
    # Every point was compared with all means once, beside what the seeds of 1,500 points cost.
    assert some.n_distance_evaluations_["seeding"] > 6000 * 40
    assert some.quantization_error(X) < 1.3 * everything.quantization_error(X)
    bounds = some.lower_bounds_
    assert (np.diff(bounds) > -1e-9 * np.abs(bounds[1:])).all()


def test_a_fit_leaves_nothing_on_the_cluster(client: Client, lazy: da.Array) -> None:
    before = _tasks(client)
    for em in ("gathered", "distributed"):
        model = DaskVCGMM(10, random_state=0, client=client, em=em, seeding_size=2000).fit(lazy)
        assert model.n_iter_ > 0
        deadline = time.monotonic() + 60
        while _tasks(client) - before and time.monotonic() < deadline:  # released by messages on their way
            time.sleep(0.05)
        assert not _tasks(client) - before


def _tasks(client: Client) -> set[str]:
    return client.run_on_scheduler(lambda dask_scheduler: {str(key) for key in dask_scheduler.tasks})


def test_what_is_not_offered_is_refused(client: Client, lazy: da.Array) -> None:
    with pytest.raises(ValueError, match="device='cuda' is not offered for Dask"):
        DaskVCGMM(4, client=client, device="cuda").fit(lazy)
    with pytest.raises(ValueError, match="refine=2 is not offered for Dask"):
        DaskVCGMM(4, client=client, refine=2).fit(lazy)
    with pytest.raises(NotImplementedError, match="no partial_fit"):
        DaskVCGMM(4, client=client).partial_fit(lazy)


def test_the_current_client_is_the_default(client: Client, lazy: da.Array) -> None:
    with client.as_current():
        model = DaskVCGMM(6, random_state=0, em="distributed").fit(lazy)
    assert model.means_.shape == (6, 5)


def test_dask_is_imported_only_where_it_is_asked_for() -> None:
    code = "import sys, vcgmm; sys.exit(any(name in sys.modules for name in ('dask', 'distributed')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_dask_the_error_names_the_extra() -> None:
    code = "import sys; sys.modules['distributed'] = None; import vcgmm.distributed"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: vcgmm.distributed needs Dask" in done.stderr
    assert "pip install 'vcgmm[dask]'" in done.stderr
