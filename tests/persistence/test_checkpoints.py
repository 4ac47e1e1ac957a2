"""A fit that goes on from a checkpoint ends like one that was never interrupted, to the last bit."""

from __future__ import annotations

import math
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM, Iteration
from vcgmm.algorithm.cells import neighbourhoods
from vcgmm.algorithm.coreset.local_points import LocalPoints
from vcgmm.algorithm.search import blocked

rng = np.random.default_rng(0)
N = 1500
X = (rng.normal(size=(40, 3))[rng.integers(40, size=N)] * 3 + rng.normal(size=(N, 3))).astype(np.float32)
WEIGHTS = rng.uniform(0.0, 3.0, N) * 1e6

#: Parameters, and whether rows are weighted.
SETTINGS: dict[str, tuple[dict[str, Any], bool]] = {
    "blocked": ({"coreset_size": None}, False),
    "float64": ({"coreset_size": None, "dtype": "float64", "init": "random"}, False),
    "a weighted coreset": ({"coreset_size": 600, "init": "afkmc2", "n_warmup": 2}, True),
    "all rows, weighted": ({"coreset_size": None, "relaxation": 1.0}, True),
    "short lists, explored": ({"coreset_size": None, "n_candidates": 6, "n_explore": 2, "init": "random"}, False),
    "several attempts": ({"coreset_size": 900, "n_init": 3, "init": "random", "max_iter": 5}, False),
    "the paper's": ({"search": "pointwise", "init": "afkmc2", "n_explore": 1, "n_warmup": 1}, True),
    "the paper's in float64": ({"search": "pointwise", "dtype": "float64", "n_init": 2, "max_iter": 5}, False),
    "hard": ({"truncation": 1, "tol": 1e-3}, False),
    "given means": ({"init": X[:40], "coreset_size": 700}, False),
    "spherical": ({"covariance_type": "spherical", "n_shared": 3, "n_explore": 1}, True),
    "diagonal from the start, sown again": (
        {"covariance_type": "diag", "n_shared": 0, "reassign": True, "n_components": 600, "max_iter": 12},
        False,
    ),
    "several attempts of their own": (
        {"covariance_type": "tied_diag", "n_shared": 2, "n_init": 3, "init": "random", "max_iter": 5},
        False,
    ),
    "learned weights, never let go": ({"mixing": "learned", "n_shared": 50, "dtype": "float64"}, False),
    "on the sphere": ({"metric": "cosine", "coreset_size": 700}, True),
    "the paper's on the sphere": ({"metric": "cosine", "search": "pointwise", "n_init": 2, "max_iter": 5}, False),
}


def parameters(**changes: Any) -> dict[str, Any]:
    return {"n_components": 40, "random_state": 3, "tol": 0.0, "max_iter": 9, **changes}


def fit(weighted: bool = False, **changes: Any) -> VCGMM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return VCGMM(**parameters(**changes)).fit(X, sample_weight=WEIGHTS if weighted else None)


def resume(path: Path, **options: Any) -> VCGMM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return VCGMM.resume(path, **options)


def collecting(path: Path, folder: Path) -> Callable[[Iteration], None]:
    """A callback that copies the checkpoint that was there before its iteration: every state but the last."""
    seen: list[Path] = []

    def copy(_facts: Iteration) -> None:
        seen.append(folder / f"{len(seen)}.ckpt")
        shutil.copy(path, seen[-1])

    return copy


def bits(value: Any) -> Any:
    """Whatever it is in a form that compares by its bits."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.dtype.str, value.shape, value.tobytes()
    if hasattr(value, "__dataclass_fields__"):
        return {name: bits(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, dict):
        return {name: bits(item) for name, item in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def fitted(model: VCGMM) -> dict[str, Any]:
    """Everything that a fit found, but for the time it took."""
    attributes = {name: value for name, value in vars(model).items() if name not in model.get_params()}
    del attributes["timings_"], attributes["_training"]
    attributes["history_"] = {name: told for name, told in model.history_.items() if name != "seconds"}
    return {name: bits(value) for name, value in attributes.items()}


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_checkpoint_leads_to_the_same_end(tmp_path: Path, setting: str) -> None:
    changes, weighted = SETTINGS[setting]
    alone = fit(weighted, **changes, n_threads=1)
    path = tmp_path / "run.ckpt"
    watched = fit(
        weighted,
        **changes,
        n_threads=1,
        checkpoint=path,
        checkpoint_every=0,
        callbacks=collecting(path, tmp_path),
    )
    assert fitted(watched) == fitted(alone)  # writing changes nothing
    states = sorted(tmp_path.glob("?*.ckpt"), key=lambda file: (len(file.name), file.name))
    assert len(states) >= alone.n_iter_ + 1
    for place in {0, 1, 2, len(states) // 2, len(states) - 2, len(states) - 1}:
        again = resume(states[place], n_threads=1 + place % 2)
        assert fitted(again) == fitted(alone), place
        assert again._training["n_samples"] == N
        assert again._training["dtype"] == "float32"


def test_weights_of_rows_in_several_blocks_are_added_up_alike(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    wide = np.random.default_rng(0).normal(size=(400, 4096)).astype(np.float32)  # in blocks of 64
    options = {"init": wide[:5], "n_components": 5, "max_iter": 2, "coreset_size": None, "refine": 1}
    for seed in range(4):
        weights = np.random.default_rng(seed).uniform(0.5, 3.0, len(wide))
        model = VCGMM(
            **parameters(**options, checkpoint=path, checkpoint_every=0, callbacks=collecting(path, tmp_path))
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(wide, sample_weight=weights)
        assert fitted(resume(tmp_path / "1.ckpt")) == fitted(model)


@pytest.mark.on_cpu  # a GPU leaves rows where they are
@pytest.mark.parametrize("covariance_type", ["isotropic", "diag"])
def test_wide_rows_that_were_written_by_cluster_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, covariance_type: str
) -> None:
    rng = np.random.default_rng(5)
    wide = (rng.normal(size=(N, 6)) @ rng.normal(size=(6, 60)) + 0.1 * rng.normal(size=(N, 60))).astype(np.float32)
    arranged: list[bool] = []
    arrange = LocalPoints.arrange
    monkeypatch.setattr(LocalPoints, "arrange", lambda *given: arranged.append(arrange(*given)) or arranged[-1])
    path = tmp_path / "run.ckpt"
    options = parameters(covariance_type=covariance_type, coreset_size=None, n_threads=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        alone = VCGMM(**options).fit(wide, sample_weight=WEIGHTS)
        assert arranged == [True]
        stop = {"callbacks": lambda facts: facts.iteration == 3, "checkpoint": path, "checkpoint_every": 0}
        VCGMM(**options, **stop).fit(wide, sample_weight=WEIGHTS)
    assert fitted(resume(path)) == fitted(alone)


def test_a_fit_of_their_own_that_drops_clusters_is_among_them() -> None:
    changes, _ = SETTINGS["diagonal from the start, sown again"]
    assert not fit(**{**changes, "reassign": False}).active_.all()


def test_neighbours_found_earlier_and_the_order_of_points_come_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As with more clusters than a pool holds, and with points that are often put in order again.
    monkeypatch.setattr(neighbourhoods, "POOL_SIZE", 16)
    monkeypatch.setattr(neighbourhoods, "GROUP_SIZE", 4)
    monkeypatch.setattr(blocked, "RESORT_SHARE", 0.01)
    changes = {"coreset_size": None, "n_candidates": 8, "init": "random"}
    alone, path = fit(**changes), tmp_path / "run.ckpt"
    fit(**changes, checkpoint=path, checkpoint_every=0, callbacks=collecting(path, tmp_path))
    for place in range(1, 9):
        assert fitted(resume(tmp_path / f"{place}.ckpt")) == fitted(alone), place


def test_a_fit_that_crashes_again_and_again_comes_to_its_end(tmp_path: Path) -> None:
    alone, path = fit(n_init=2), tmp_path / "run.ckpt"

    def crashing() -> Callable[[Iteration], None]:
        calls: list[Iteration] = []

        def crash(facts: Iteration) -> None:
            calls.append(facts)
            if len(calls) == 4:
                raise RuntimeError("crash")

        return crash

    with pytest.raises(RuntimeError, match="crash"):
        fit(n_init=2, checkpoint=path, checkpoint_every=0, callbacks=crashing())
    crashes = 0
    while True:
        try:
            model = resume(path, callbacks=crashing())
        except RuntimeError:
            crashes += 1
            continue
        break
    assert crashes > 3
    assert fitted(model) == fitted(alone)


@pytest.mark.parametrize("search", ["blocked", "pointwise"])
def test_a_fit_that_was_stopped_goes_on(tmp_path: Path, search: str) -> None:
    path = tmp_path / "run.ckpt"
    options = {"search": search, "n_init": 2}
    stopped = fit(**options, checkpoint=path, callbacks=lambda facts: facts.iteration == 3)
    assert (stopped.n_iter_, stopped.converged_) == (3, False)
    seen: list[Iteration] = []
    # The state at which it stopped was written, though no minute had passed.
    model = resume(path, callbacks=seen.append)
    assert [facts.iteration for facts in seen] == [*range(4, 10), *range(1, 10)]
    assert fitted(model) == fitted(fit(**options))


def test_a_fit_that_has_ended_is_returned(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    model = fit(tol=1e-3, max_iter=50, checkpoint=path)
    assert model.converged_
    before = path.read_bytes()
    again = VCGMM.resume(path, callbacks=lambda _: pytest.fail("there is nothing left to do"))
    assert fitted(again) == fitted(model)
    assert path.read_bytes() == before
    # One that ran out of iterations says so again.
    fit(max_iter=2, checkpoint=path)
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        assert VCGMM.resume(path).n_iter_ == 2


def test_a_warm_start_goes_on_too(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    ends = []
    for search in ("blocked", "pointwise"):
        model = fit(search=search, max_iter=2)
        model.set_params(warm_start=True, max_iter=6)
        alone = fit(search=search, max_iter=2).set_params(warm_start=True, max_iter=6)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            alone.fit(X)
            model.set_params(checkpoint=path, callbacks=lambda facts: facts.iteration == 2).fit(X)
        ends.append((fitted(resume(path)), fitted(alone)))
    for one, other in ends:
        assert one == other


@pytest.mark.on_cpu  # a fit goes on where it began, whatever "auto" would say
def test_parameters_come_back_but_for_those_of_the_run(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    state = np.random.RandomState(5)
    model = fit(random_state=state, checkpoint=path, checkpoint_every=7.5, callbacks=lambda _: None, verbose=0)
    moved = tmp_path / "moved.ckpt"
    path.rename(moved)
    callback = print
    again = resume(moved, callbacks=callback, n_threads=1)
    given = {"callbacks": callback, "n_threads": 1, "checkpoint": moved}
    expected = {**model.get_params(), **given}
    got = again.get_params()
    assert got.pop("random_state").normal() == expected.pop("random_state").normal()
    assert got == expected


def test_names_of_features_come_back(tmp_path: Path) -> None:
    path, names = tmp_path / "run.ckpt", ["a", "Größe", 'quo"te']
    model = VCGMM(5, random_state=0, checkpoint=path).fit(pd.DataFrame(X, columns=names))
    again = VCGMM.resume(path)
    assert again.feature_names_in_.tolist() == names
    assert again.n_features_in_ == 3
    assert fitted(again) == fitted(model)


def test_subclasses_resume_as_themselves(tmp_path: Path) -> None:
    class Special(VCGMM):
        pass

    fit(checkpoint=tmp_path / "run.ckpt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert type(Special.resume(tmp_path / "run.ckpt")) is Special


def test_times_go_on(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    for stop in (1, 4):
        stopped = fit(checkpoint=path, callbacks=lambda facts, stop=stop: facts.iteration == stop)
        model = resume(path)
        assert (np.diff(model.history_["seconds"]) > 0).all()
        np.testing.assert_array_equal(model.history_["seconds"][:stop], stopped.history_["seconds"])
        assert all(
            model.timings_[step] >= seconds > 0 for step, seconds in stopped.timings_.items() if step != "em"
        )


@pytest.mark.parametrize("dtype", ["float16", "uint8", ">f8", "bool"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_any_type_and_order(tmp_path: Path, dtype: str, order: Any) -> None:
    path = tmp_path / "run.ckpt"
    rows = np.asarray((np.abs(X) * 7).astype(np.uint8) % (2 if dtype == "bool" else 100), dtype, order=order)
    options = parameters(n_components=4, max_iter=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        alone = VCGMM(**options).fit(rows)
        VCGMM(**options, checkpoint=path, callbacks=lambda _: True).fit(rows)
    again = resume(path)
    np.testing.assert_array_equal(again.means_, alone.means_)
    np.testing.assert_array_equal(again.coreset_.points, rows)
    assert again.coreset_.points.dtype == rows.dtype.newbyteorder("=")


# ---------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("weighted", [False, True])
def test_labels_are_computed_where_the_file_holds_all_rows(tmp_path: Path, weighted: bool) -> None:
    path = tmp_path / "run.ckpt"
    options = {"coreset_size": None, "compute_labels": True}
    fit(weighted, **options, checkpoint=path, callbacks=lambda facts: facts.iteration == 2)
    again = resume(path)
    assert hasattr(again, "labels_")
    assert fitted(again) == fitted(fit(weighted, **options))


def test_else_their_absence_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    options = {"coreset_size": 500, "compute_labels": True}
    fit(**options, checkpoint=path, callbacks=lambda facts: facts.iteration == 2)
    with pytest.warns(UserWarning, match="holds the coreset only, .* of 1,500 rows: the model has no labels_"):
        again = resume(path)
    assert not hasattr(again, "labels_")
    assert bits(again.predict(X)) == bits(fit(**options).labels_)


@pytest.mark.parametrize("weighted", [False, True])
def test_all_rows_are_refined_on_as_they_would_have_been(tmp_path: Path, weighted: bool) -> None:
    path = tmp_path / "run.ckpt"
    options = {"coreset_size": None, "refine": 2}
    fit(weighted, **options, checkpoint=path, callbacks=lambda facts: facts.iteration == 2)
    again = resume(path)
    assert len(again.refine_bounds_) == 2
    assert fitted(again) == fitted(fit(weighted, **options))


def test_a_coreset_alone_cannot_be_refined_and_that_is_told(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    fit(coreset_size=500, refine=2, checkpoint=path, callbacks=lambda facts: facts.iteration == 2)
    with pytest.warns(UserWarning, match=r"refine=2, but .* of 1,500 rows: the model is not refined"):
        again = resume(path)
    assert bits(again.means_) == bits(fit(coreset_size=500).means_)
    assert len(again.refine_bounds_) == 0


# ------------------------------------------------------------------------------------------------------ parameters


def test_clones_and_files_of_models_keep_the_path(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    model = fit(checkpoint=path, checkpoint_every=5)
    assert clone(model).get_params()["checkpoint"] == path
    model.save(tmp_path / "model.vcgmm")
    loaded = VCGMM.load(tmp_path / "model.vcgmm")
    assert (loaded.checkpoint, loaded.checkpoint_every) == (str(path), 5)


@pytest.mark.parametrize("every", [-1.0, math.nan, math.inf, "60s", None, True])
def test_the_interval_is_checked(tmp_path: Path, every: Any) -> None:
    with pytest.raises(ValueError, match=r"checkpoint_every=.* is not valid"):
        fit(checkpoint=tmp_path / "run.ckpt", checkpoint_every=every)
    assert list(tmp_path.iterdir()) == []


def test_the_path_is_checked_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "data.npy").write_bytes(b"precious")
    fit().save(tmp_path / "model.vcgmm")
    bad = {
        "": "is not valid: give the name of a file",
        3: "is not valid: give the name of a file",
        b"run.ckpt": "is not valid: give the name of a file",
        tmp_path / "nowhere" / "run.ckpt": "the folder .*nowhere does not exist",
        tmp_path: "exists and is no checkpoint",
        tmp_path / "data.npy": "exists and is no checkpoint",
        tmp_path / "model.vcgmm": "exists and is no checkpoint",
    }
    for path, message in bad.items():
        with pytest.raises(ValueError, match=f"checkpoint=.*{message}"):
            fit(checkpoint=path, callbacks=lambda _: pytest.fail("too late"))
    assert (tmp_path / "data.npy").read_bytes() == b"precious"


def test_rows_that_a_file_cannot_hold_are_named_before_the_work(tmp_path: Path) -> None:
    if np.dtype(np.longdouble) == np.float64:
        pytest.skip("no longer type here")
    with pytest.raises(ValueError, match=r"X has the dtype .*, which a checkpoint cannot hold"):
        VCGMM(4, checkpoint=tmp_path / "run.ckpt").fit(X.astype(np.longdouble))
    with pytest.raises(ValueError, match=r"parameters.init has the dtype .*, which a file cannot hold"):
        fit(checkpoint=tmp_path / "run.ckpt", init=X[:40].astype(np.longdouble))
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_of_before_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    fit(checkpoint=path, max_iter=1)
    model = fit(checkpoint=path)
    assert fitted(resume(path)) == fitted(model)
    assert [file.name for file in tmp_path.iterdir()] == ["run.ckpt"]
