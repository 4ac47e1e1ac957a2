"""Checkpoints that are cut off, changed, forged or of others: always a clear error, and no fit goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from vcgmm import VCGMM, __version__, load_coreset
from vcgmm.persistence import checkpoint as checkpoints
from vcgmm.persistence import container, kind_of

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

#: Kernels have no bounds checks: nothing here may come as far as one.
Change = Callable[[dict[str, Any], dict[str, np.ndarray]], None]


def written(folder: Path, **options: Any) -> bytes:
    path = folder / "run.ckpt"
    X = np.random.default_rng(0).normal(size=(60, 2))
    parameters = {"random_state": 0, "max_iter": 4, "tol": 0.0, "n_init": 2, "init": "random", **options}
    parameters["device"] = "cpu"  # what is forged below is a state of the CPU
    model = VCGMM(4, checkpoint=path, checkpoint_every=0, **parameters)
    with pytest.warns(ConvergenceWarning):
        model.fit(X)
    return path.read_bytes()


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("checkpoint")
    kinds = {
        "blocked": {},
        "pointwise": {"search": "pointwise"},
        "own": {"covariance_type": "diag", "n_shared": 1},
    }
    return {name: written(folder, **options) for name, options in kinds.items()}


@pytest.fixture
def path(states: dict[str, bytes], tmp_path: Path) -> Path:
    path = tmp_path / "run.ckpt"
    path.write_bytes(states["blocked"])
    return path


# ------------------------------------------------------------------------------------------------- by accident


def test_a_file_that_is_whole_is_gone_on_from(path: Path) -> None:
    assert VCGMM.resume(path).n_iter_ == 4
    assert kind_of(path) == "checkpoint"


def test_a_file_cut_off_anywhere_is_refused(states: dict[str, bytes], path: Path) -> None:
    data = states["blocked"]
    for length in {*range(0, len(data), 97), len(data) - 1}:
        path.write_bytes(data[:length])
        with pytest.raises(ValueError, match=r"run.ckpt is (not a file of vcgmm|cut off)"):
            VCGMM.resume(path)


def test_any_changed_byte_is_noticed(states: dict[str, bytes], path: Path) -> None:
    data = states["blocked"]
    for place in range(0, len(data), 31):
        changed = bytearray(data)
        changed[place] ^= 0x10
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"run\.ckpt (is|has|holds|goes)"):
            VCGMM.resume(path)


def test_files_of_other_kinds_are_refused(path: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.vcgmm"
    VCGMM.resume(path).save(model)
    with pytest.raises(ValueError, match=r"model.vcgmm holds a model, but a checkpoint is needed here"):
        VCGMM.resume(model)
    with pytest.raises(ValueError, match=r"run.ckpt holds a checkpoint, but a model is needed here"):
        VCGMM.load(path)
    with pytest.raises(ValueError, match=r"run.ckpt holds a checkpoint, but a coreset is needed here"):
        load_coreset(path)
    np.save(tmp_path / "rows.npy", np.ones(5))
    with pytest.raises(ValueError, match=r"rows.npy is not a file of vcgmm"):
        VCGMM.resume(tmp_path / "rows.npy")
    with pytest.raises(FileNotFoundError):
        VCGMM.resume(tmp_path / "nothing.ckpt")


# ---------------------------------------------------------------------------------------------------- versions


def forge(path: Path, change: Change) -> None:
    """Write the checkpoint again with something changed and a checksum that fits."""
    content = container.read(path, "checkpoint")
    header = {k: v for k, v in content.header.items() if k not in ("sha256", "format_version", "kind")}
    tensors = dict(content.tensors)
    change(header, tensors)
    container.write(path, "checkpoint", header, tensors)


def test_another_state_is_refused_by_name(path: Path) -> None:
    forge(path, lambda header, _tensors: header.update(state_version=99))
    message = (
        rf"of vcgmm {__version__} with state version 99, but this vcgmm \({__version__}\) goes on from version"
    )
    with pytest.raises(ValueError, match=message):
        VCGMM.resume(path)


def test_other_versions_of_what_computes_are_told(path: Path) -> None:
    forge(path, lambda header, _tensors: header["versions"].update(numba="0.1"))
    with pytest.warns(UserWarning, match=r"numba 0\.1.*may end with other last bits"):
        assert VCGMM.resume(path).n_iter_ == 4
    forge(path, lambda header, _tensors: header.update(versions=None))
    with pytest.warns(UserWarning, match="with unknown versions"):
        VCGMM.resume(path)


def test_a_newer_format_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "FORMAT_VERSION", container.FORMAT_VERSION + 1)
    forge(path, lambda _header, _tensors: None)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="upgrade vcgmm to read it"):
        VCGMM.resume(path)


# --------------------------------------------------------------------------------------------------- on purpose


def test_a_checkpoint_that_is_written_again_is_gone_on_from(states: dict[str, bytes], tmp_path: Path) -> None:
    # So that the tests below fail for what they change.
    for name, data in states.items():
        path = tmp_path / f"{name}.ckpt"
        path.write_bytes(data)
        forge(path, lambda _header, _tensors: None)
        model = VCGMM.resume(path)
        assert model.search == ("pointwise" if name == "pointwise" else "blocked")
        assert model.covariances_.ndim == (2 if name == "own" else 1)


def edit(where: str, name: str, value: Any) -> Change:
    """Set an entry of a part of the header ("snapshot.fit") or of the arrays; delete it for None."""

    def change(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        part: dict[str, Any] = tensors if where == "tensors" else header
        for step in where.split(".") if where not in ("", "tensors") else ():
            part = part[step]
        if value is None:
            del part[name]
        else:
            part[name] = value(part[name]) if callable(value) else value

    return change


def put(place: Any, value: float) -> Callable[[np.ndarray], np.ndarray]:
    """An array with one value changed."""

    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        array[place] = value
        return array

    return change


FORGED: dict[str, tuple[Change, str]] = {
    "no snapshot": (edit("", "snapshot", None), "not what vcgmm wrote"),
    "a snapshot in words": (edit("", "snapshot", "text"), "not what vcgmm wrote"),
    "no parameters": (edit("", "parameters", None), "not what vcgmm wrote"),
    "parameters in words": (edit("", "parameters", "text"), "not what vcgmm wrote"),
    "a parameter of tomorrow": (edit("parameters", "magic", 3), "parameter 'magic'"),
    "fewer rows than points": (edit("", "n_samples", 5), "tells of other data"),
    "too many names": (edit("", "feature_names", ["a", "b", "c"]), "tells of other data"),
    "an unknown search": (edit("snapshot.settings", "search", "wild"), "not what vcgmm wrote"),
    "a search of the other kind": (edit("snapshot.settings", "search", "pointwise"), "does not know"),
    "no means": (edit("tensors", "means", None), "holds no means"),
    "no winners": (edit("tensors", "search.winners", None), r"holds no search\.winners"),
    "no best": (edit("tensors", "best.means", None), r"holds no best\.means"),
    "an unknown array": (edit("tensors", "extra", np.ones(3)), "holds 'extra'"),
    "no counter": (edit("snapshot.search", "n_updates", None), "not what vcgmm wrote"),
    "a counter of halves": (edit("snapshot.search", "n_updates", 1.5), "not what vcgmm wrote"),
    "a counter that is negative": (edit("snapshot.search", "n_updates", -1), "n_updates is negative"),
    "negatively misplaced": (edit("snapshot.search", "misplaced", -1), "misplaced is out of range"),
    "a winner that is not there": (edit("tensors", "search.winners", put((3, 1), 4)), "winners names clusters"),
    "a winner that is unknown": (edit("tensors", "search.winners", put((3, 0), -1)), "winners names clusters"),
    "a neighbour that is not there": (edit("tensors", "search.neighbors", put((1, 1), -7)), "neighbors names"),
    "a neighbour of the best": (edit("tensors", "best.neighbors", put((1, 1), 99)), r"best\.neighbors names"),
    "a candidate that is not there": (edit("tensors", "search.candidates", put((1, 1), 99)), "candidates names"),
    "a nearest that is not there": (edit("tensors", "search.nearest", put((1, 1), -1)), "nearest names"),
    "a row twice": (edit("tensors", "search.rows", lambda a: np.append(a[1], a[1:])), "rows is no permutation"),
    "a row beyond": (edit("tensors", "search.rows", put(0, 60)), "rows is no permutation"),
    "a row before": (edit("tensors", "search.rows", put(0, -1)), "rows is no permutation"),
    "narrow candidates": (edit("tensors", "search.candidates", lambda a: a[:, :2].copy()), "candidates is not as"),
    "narrow nearest": (edit("tensors", "search.nearest", lambda a: a[:, :2].copy()), "nearest is not as wide"),
    "winners of another type": (edit("tensors", "search.winners", lambda a: a.astype(np.int64)), "as int64"),
    "winners of fewer points": (edit("tensors", "search.winners", lambda a: a[:5].copy()), "must agree"),
    "more components": (edit("snapshot.settings", "n_components", 5), "n_components is not the number"),
    "a wider truncation": (edit("snapshot.settings", "truncation", 9), "truncation is not the width"),
    "more neighbours": (edit("snapshot.settings", "n_neighbors", 9), "n_neighbors is not the width"),
    "fewer candidates": (edit("snapshot.settings", "n_candidates", 1), "n_candidates is out of range"),
    "explored without end": (edit("snapshot.settings", "n_explore", 10**9), "n_explore is out of range"),
    "a flag for a number": (edit("snapshot.settings", "n_explore", True), "not what vcgmm wrote"),
    "no iterations": (edit("snapshot.settings", "max_iter", 0), "max_iter or chain_length is not positive"),
    "fewer iterations": (edit("snapshot.settings", "max_iter", 2), "more iterations than max_iter"),
    "a negative seed": (edit("snapshot.settings", "seed", -5), "the seed, n_warmup or refine is negative"),
    "no seed": (edit("snapshot.settings", "seed", None), "not what vcgmm wrote"),
    "a relaxation of two": (edit("snapshot.settings", "relaxation", 2.0), "relaxation is out of range"),
    "another type": (edit("snapshot.settings", "dtype", "float32"), "dtype is not that of the frame"),
    "a type that is none": (edit("snapshot.settings", "dtype", "wild"), "not what vcgmm wrote"),
    "an attempt too many": (edit("snapshot", "attempt", 2), "none of n_init"),
    "an attempt without a best": (edit("snapshot", "attempt", 0), "first attempt has one before it"),
    "no variance": (edit("snapshot", "variance", 0.0), "variance is not positive"),
    "a variance in words": (edit("snapshot", "variance", "much"), "not what vcgmm wrote"),
    "an infinite variance": (edit("snapshot", "variance", {"float": "inf"}), "variance is not positive"),
    "an unknown variance": (
        lambda header, _: header["snapshot"].update(variance=None), "the variance is not known"
    ),
    "no variance of the fit": (edit("snapshot.fit", "variance", 0.0), "an attempt has no variance"),
    "no step": (edit("snapshot.fit", "step", 0.0), "a step is not positive"),
    "no moves": (edit("tensors", "fit.moves", None), "the last moves are not known"),
    "infinite moves": (edit("tensors", "fit.moves", put((0, 0), np.nan)), "the last moves are not known"),
    "no smallest variance": (edit("snapshot", "variance_floor", 0.0), "smallest variance is not positive"),
    "weights of nothing": (edit("snapshot", "weight_unit", 0.0), "unit of weights is not positive"),
    "a frame of nothing": (edit("snapshot.frame", "scale", 0.0), "not what vcgmm wrote"),
    "a step without time": (edit("snapshot.seconds", "em", None), "not what vcgmm wrote"),
    "infinite means": (edit("tensors", "means", put((0, 0), np.inf)), "means are not finite"),
    "infinite masses": (edit("tensors", "fit.masses", put(0, np.inf)), "means or masses that are not finite"),
    "a negative weight": (edit("tensors", "coreset.weights", put(0, -1.0)), "a weight is not valid"),
    "a negative index": (edit("tensors", "coreset.indices", put(0, -1)), "an index is negative"),
    "a point that is none": (edit("tensors", "coreset.points", put((7, 1), np.nan)), "contains NaN.*row 7"),
    "fewer points than clusters": (
        lambda _, tensors: tensors.update(
            {name: tensors[name][:3] for name in tensors if name.startswith("coreset.")}
            | {"search.rows": np.arange(3), "search.winners": tensors["search.winners"][:3]}
        ),
        "fewer points than clusters",
    ),
    "a best that never began": (edit("tensors", "best.bounds", lambda a: a[:0]), "ended before it began"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_checkpoints_are_refused(path: Path, name: str) -> None:
    change, message = FORGED[name]
    forge(path, change)
    with pytest.raises(ValueError, match=message):
        VCGMM.resume(path)


def test_a_forged_coreset_that_was_given_is_refused(path: Path) -> None:
    forge(path, lambda header, _tensors: header.update(given={"n_samples": "many"}))
    with pytest.raises(ValueError, match="not what vcgmm wrote"):
        VCGMM.resume(path)

    def give(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        header["given"] = {"n_samples": None}
        tensors["given.indices"] = np.arange(3)

    forge(path, give)
    with pytest.raises(ValueError, match="it tells of another coreset"):
        VCGMM.resume(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit("tensors", "search.winners", put((3, 1), -1)), "winners names clusters"),
        (edit("snapshot.search", "n_searches", -1), "n_searches is negative"),
    ],
)
def test_forged_states_of_the_pointwise_search_are_refused(
    states: dict[str, bytes], path: Path, change: Change, message: str
) -> None:
    path.write_bytes(states["pointwise"])
    forge(path, change)
    with pytest.raises(ValueError, match=message):
        VCGMM.resume(path)


OWN: dict[str, tuple[Change, str]] = {
    "no weights": (edit("tensors", "mixture.weights", None), "one of .* is missing"),
    "no mixture": (
        lambda _, tensors: [tensors.pop(f"mixture.{name}") for name in ("weights", "variances")],
        "a part of the mixture is missing",
    ),
    "no memory of those sown": (edit("tensors", "fit.sown", None), "a part of the mixture is missing"),
    "no first iterations": (
        lambda header, _: header["snapshot"]["fit"].update(n_shared=None), "a part of the mixture is missing"
    ),
    "too many first iterations": (edit("snapshot.fit", "n_shared", 99), "n_shared is none of the iterations"),
    "a best of another kind": (
        lambda _, tensors: [tensors.pop(f"best.mixture.{name}") for name in ("weights", "variances")],
        "the best attempt has another model",
    ),
    "a variance of nothing": (edit("tensors", "mixture.variances", put((0, 1), 0.0)), "variance is not positive"),
    "a variance of the best": (
        edit("tensors", "best.mixture.variances", put((0, 1), np.nan)), "a variance is not positive"
    ),
    "a negative weight": (edit("tensors", "fit.mixture.weights", put(0, -0.5)), "of a cluster is not valid"),
    "too few variances": (
        lambda _, tensors: tensors.update(
            {name: tensors[name][:, :1].copy() for name in tensors if name.endswith("variances")}
        ),
        "too few or many variances",
    ),
    "one variance for all": (
        lambda header, _: header["snapshot"]["settings"].update(covariance_type="isotropic", mixing="equal"),
        "are all that is asked for",
    ),
    "an unknown kind": (edit("snapshot.settings", "covariance_type", "round"), "is no known mixture"),
    "an unknown mixing": (edit("snapshot.settings", "mixing", "wild"), "is no known mixture"),
    "an unknown metric": (edit("snapshot.settings", "metric", "wild"), "is no known mixture"),
    "on the sphere": (edit("snapshot.settings", "metric", "cosine"), "is no known mixture"),
    "negative shared iterations": (edit("snapshot.settings", "n_shared", -1), "n_shared or reg_covar is negative"),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_forged_states_of_mixtures_are_refused(states: dict[str, bytes], path: Path, name: str) -> None:
    change, message = OWN[name]
    path.write_bytes(states["own"])
    forge(path, change)
    with pytest.raises(ValueError, match=message):
        VCGMM.resume(path)


def test_every_field_of_the_settings_is_written(path: Path) -> None:
    settings = container.read(path, "checkpoint").header["snapshot"]["settings"]
    for name in settings:
        forge(path, lambda header, _tensors, name=name: header["snapshot"]["settings"].pop(name))
        with pytest.raises(ValueError, match="not what vcgmm wrote"):
            VCGMM.resume(path)
        forge(path, lambda header, _, name=name: header["snapshot"]["settings"].update({name: settings[name]}))
    assert VCGMM.resume(path).n_iter_ == 4
    assert checkpoints.STATE_VERSION == 4  # raise it when settings or states change
