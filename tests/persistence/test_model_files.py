"""What is saved comes back, to the last bit."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import vcgmm
from vcgmm import VCGMM, Coreset, load_coreset, save_coreset
from vcgmm.persistence import model as model_files

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 4)) * [1.0, 10.0, 0.1, 1.0] + [0.0, 1e4, 0.0, -3.0]

SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "a coreset, labels": {"coreset_size": 0.5, "compute_labels": True},
    "refined": {"coreset_size": 0.5, "refine": 2},
    "the paper's": {"search": "pointwise", "init": "afkmc2", "n_explore": 1, "n_warmup": 2},
    "float32": {"dtype": np.float32, "tol": np.float32(1e-3), "n_init": np.int64(2)},
    "given means": {"init": X[:6], "max_iter": 3, "tol": 0.0},
    "a list of means": {"init": X[:6].tolist(), "coreset_size": None},
}


def fit(**parameters: Any) -> VCGMM:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return VCGMM(6, random_state=0, **parameters).fit(X)


def roundtrip(model: VCGMM, folder: Path, **options: Any) -> VCGMM:
    model.save(folder / "model.vcgmm", **options)
    return VCGMM.load(folder / "model.vcgmm")


def assert_same(a: Any, b: Any) -> None:
    """Equal in every bit, whatever it is."""
    if isinstance(a, np.ndarray) and a.dtype != object:
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()
    elif isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            assert_same(a[key], b[key])
    elif hasattr(a, "__dataclass_fields__"):
        for name in a.__dataclass_fields__:
            assert_same(getattr(a, name), getattr(b, name))
    else:
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_attribute_comes_back(tmp_path: Path, setting: str) -> None:
    model = fit(**SETTINGS[setting])
    again = roundtrip(model, tmp_path, coreset=True)
    parameters = set(model.get_params())
    assert set(vars(again)) == set(vars(model))
    for name in set(vars(model)) - parameters:
        assert_same(getattr(model, name), getattr(again, name))
    for name in parameters - {"dtype", "init"}:
        assert getattr(again, name) == getattr(model, name), name
    np.testing.assert_array_equal(again.init, model.init)
    assert again.dtype == (None if model.dtype is None else "float32")


@pytest.mark.filterwarnings("ignore:The fit ended")
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_loaded_model_does_the_same(tmp_path: Path, setting: str) -> None:
    model = fit(**SETTINGS[setting])
    again = roundtrip(model, tmp_path)
    new = X[::-1] + 0.3
    for method in (VCGMM.predict, VCGMM.score_samples, VCGMM.nearest):
        for a, b in zip(method(model, new), method(again, new), strict=True):
            assert_same(np.asarray(a), np.asarray(b))
    assert_same(model.predict_proba(new).data, again.predict_proba(new).data)
    assert_same(model.sample(5)[0], again.sample(5)[0])
    # And fits the same, from the start and from where it was.
    assert_same(clone(model).fit(X).means_, clone(again).fit(X).means_)
    model.set_params(warm_start=True, max_iter=2)
    again.set_params(warm_start=True, max_iter=2)
    assert_same(model.fit(X).means_, again.fit(X).means_)


def test_every_attribute_that_is_documented_is_kept() -> None:
    documented = re.findall(r"^    (\w+_) : ", str(VCGMM.__doc__), flags=re.MULTILINE)
    assert len(documented) > 15
    kept = {*model_files.ARRAYS, *model_files.SCALARS, *model_files.BY_STEP, *model_files.SPECIAL}
    assert set(documented) == kept


def test_the_coreset_is_written_when_asked_for(tmp_path: Path) -> None:
    model = fit(coreset_size=100)
    assert not hasattr(roundtrip(model, tmp_path), "coreset_")
    assert_same(roundtrip(model, tmp_path, coreset=True).coreset_, model.coreset_)
    # A model loaded without it can be saved again, but not with what it has not.
    bare = roundtrip(roundtrip(model, tmp_path), tmp_path)
    with pytest.raises(ValueError, match="this model has no coreset_"):
        bare.save(tmp_path / "model.vcgmm", coreset=True)
    with pytest.raises(ValueError, match="coreset='yes'"):
        model.save(tmp_path / "model.vcgmm", coreset="yes")  # type: ignore[arg-type]


def test_no_row_of_the_data_is_in_a_model_file(tmp_path: Path) -> None:
    fit(coreset_size=None).save(tmp_path / "model.vcgmm")
    written = (tmp_path / "model.vcgmm").read_bytes()
    assert not any(row.tobytes() in written for row in X)
    fit(coreset_size=None).save(tmp_path / "model.vcgmm", coreset=True)
    assert X[7].tobytes() in (tmp_path / "model.vcgmm").read_bytes()


@pytest.mark.parametrize("dtype", ["float16", "uint8", "int64", ">f4", "bool"])
def test_coresets_keep_the_type_of_their_points(tmp_path: Path, dtype: str) -> None:
    points = np.asfortranarray(np.round(np.abs(X[:50])) % 2).astype(dtype)
    coreset = Coreset(points, np.linspace(0, 1, 50), indices=np.arange(50), n_samples=700)
    save_coreset(coreset, tmp_path / "core.vcgmm")
    again = load_coreset(tmp_path / "core.vcgmm")
    np.testing.assert_array_equal(again.points, points)
    assert again.points.dtype == points.dtype.newbyteorder("=")
    assert_same(again.indices, coreset.indices)
    assert_same(again.weights, coreset.weights)
    assert again.n_samples == 700
    assert again.points.flags.writeable


def test_a_type_that_a_file_cannot_hold_is_named(tmp_path: Path) -> None:
    coreset = Coreset(X[:5].astype(np.longdouble))
    with pytest.raises(ValueError, match=r"coreset.points has the dtype .*: convert it to float64"):
        save_coreset(coreset, tmp_path / "core.vcgmm")
    assert list(tmp_path.iterdir()) == []


def test_names_of_features_come_back(tmp_path: Path) -> None:
    names = ["a", 'quo"te', "Größe", '{"sha256":"' + "0" * 64 + '"']
    model = VCGMM(3, random_state=0).fit(pd.DataFrame(X, columns=names))
    again = roundtrip(model, tmp_path)
    assert again.feature_names_in_.tolist() == names
    assert again.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="feature names"):
        again.predict(pd.DataFrame(X, columns=list("wxyz")))


def test_a_random_state_goes_on_where_it_was(tmp_path: Path) -> None:
    state = np.random.RandomState(5)
    state.normal()  # leaves one number over for the next call
    model = fit().set_params(random_state=state)
    again = roundtrip(model, tmp_path)
    assert again.random_state.normal(size=3).tolist() == state.normal(size=3).tolist()


@pytest.mark.parametrize("source", [np.random.RandomState(np.random.PCG64(1)), np.random])
def test_other_sources_of_random_numbers_are_not_kept(tmp_path: Path, source: Any) -> None:
    with pytest.warns(UserWarning, match="the loaded model has random_state=None"):
        again = roundtrip(fit().set_params(random_state=source), tmp_path)
    assert again.random_state is None


def test_callbacks_are_not_kept(tmp_path: Path) -> None:
    assert roundtrip(fit(callbacks=lambda _: None), tmp_path).callbacks is None


def test_a_parameter_that_is_no_value_is_named(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"tol=<object .*> cannot be written"):
        fit().set_params(tol=object()).save(tmp_path / "model.vcgmm")


def test_infinite_values_come_back(tmp_path: Path) -> None:
    model = fit()
    model.lower_bound_ = -np.inf
    model.tol = np.inf
    again = roundtrip(model, tmp_path)
    assert again.lower_bound_ == -np.inf
    assert again.tol == np.inf


def test_what_is_not_fitted_is_not_saved(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        VCGMM().save(tmp_path / "model.vcgmm")


def test_subclasses_load_as_themselves(tmp_path: Path) -> None:
    class Special(VCGMM):
        pass

    fit().save(tmp_path / "model.vcgmm")
    assert type(Special.load(tmp_path / "model.vcgmm")) is Special


def test_equal_models_make_equal_files(tmp_path: Path) -> None:
    model = fit()
    for name in ("a", "b"):
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    VCGMM.load(tmp_path / "a").save(tmp_path / "c")
    assert (tmp_path / "c").read_bytes() == (tmp_path / "a").read_bytes()


def test_other_programs_can_read_the_file(tmp_path: Path) -> None:
    model = fit()
    model.save(tmp_path / "model.vcgmm")
    with safe_open(tmp_path / "model.vcgmm", framework="np") as file:
        np.testing.assert_array_equal(file.get_tensor("means_"), model.means_)
        header = json.loads(file.metadata()["vcgmm"])
    assert header["kind"] == "model"
    assert header["written_by"]["vcgmm"] == vcgmm.__version__
    assert header["parameters"]["n_components"] == 6
    assert header["attributes"]["n_iter_"] == model.n_iter_
    assert header["training"]["n_samples"] == 300
    assert header["training"]["dtype"] == "float64"
    assert header["training"]["versions"]["numpy"] == np.__version__


def test_saving_replaces_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.vcgmm"
    path.write_text("old")
    fit().save(str(path))
    assert VCGMM.load(str(path)).n_components == 6
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_written_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        fit().save(tmp_path / "nowhere" / "model.vcgmm")


def test_there_must_be_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from safetensors import SafetensorError

    from vcgmm.persistence import container

    def full(*_: Any) -> None:
        raise SafetensorError("No space left on device")

    monkeypatch.setattr(container, "save_file", full)
    with pytest.raises(OSError, match="could not be written: No space left"):
        fit().save(tmp_path / "model.vcgmm")
    assert list(tmp_path.iterdir()) == []
