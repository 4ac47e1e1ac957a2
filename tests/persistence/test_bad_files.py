"""Files that are cut off, changed, forged or of others: always a clear error, never a model, and nothing runs."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from vcgmm import VCGMM, Coreset, __version__, load_coreset, save_coreset
from vcgmm.persistence import FORMAT_VERSION, container, kind_of, read_header


@pytest.fixture(scope="module")
def model_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("model") / "model.vcgmm"
    X = np.random.default_rng(0).normal(size=(40, 2))
    VCGMM(2, random_state=0, max_iter=2, tol=1.0).fit(X).save(path)
    return path.read_bytes()


@pytest.fixture
def model_path(model_bytes: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "model.vcgmm"
    path.write_bytes(model_bytes)
    return path


def front_length(data: bytes) -> int:
    return 8 + int.from_bytes(data[:8], "little")


# ------------------------------------------------------------------------------------------------- by accident


def test_a_file_that_is_whole_loads(model_path: Path) -> None:
    assert VCGMM.load(model_path).n_components == 2


def test_a_file_cut_off_anywhere_is_refused(model_bytes: bytes, tmp_path: Path) -> None:
    path = tmp_path / "model.vcgmm"
    for length in {*range(64), *range(64, len(model_bytes), 3), len(model_bytes) - 1}:
        path.write_bytes(model_bytes[:length])
        with pytest.raises(ValueError, match=r"model.vcgmm is (not a file of vcgmm|cut off)"):
            VCGMM.load(path)
    # The header is whole: there it is certain.
    path.write_bytes(model_bytes[: front_length(model_bytes) + 5])
    with pytest.raises(ValueError, match=rf"is cut off: it has [\d,]+ bytes instead of {len(model_bytes):,}"):
        VCGMM.load(path)


def test_a_file_that_goes_on_is_refused(model_bytes: bytes, model_path: Path) -> None:
    model_path.write_bytes(model_bytes + b"\0")
    with pytest.raises(ValueError, match="goes on after its end"):
        VCGMM.load(model_path)


@pytest.mark.parametrize("flip", [0x01, 0x20, 0x80, 0xFF])
def test_any_changed_byte_is_noticed(model_bytes: bytes, tmp_path: Path, flip: int) -> None:
    path = tmp_path / "model.vcgmm"
    # With each way to change a byte another third of the places, and those where the header is padded.
    places = {*range(flip % 3, len(model_bytes), 3), *range(front_length(model_bytes) - 8, len(model_bytes), 7)}
    for place in places:
        changed = bytearray(model_bytes)
        changed[place] ^= flip
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=r"model\.vcgmm (is|has|holds|goes)"):
            VCGMM.load(path)


@pytest.mark.parametrize("blank", [b"\n", b"\t"])
def test_even_the_padding_counts(model_bytes: bytes, model_path: Path, blank: bytes) -> None:
    # Other white space at the end of the header is the same JSON, but not the same file.
    end = front_length(model_bytes)
    padded = model_bytes[:end].rstrip(b" ")
    if len(padded) == end:
        pytest.skip("this header needs no padding")
    model_path.write_bytes(padded + blank * (end - len(padded)) + model_bytes[end:])
    with pytest.raises(ValueError, match="checksum does not fit"):
        VCGMM.load(model_path)


# ------------------------------------------------------------------------------------------ of another program


def zipped() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("a", "b")
    return file.getvalue()


def saved_npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.ones(100))
    return file.getvalue()


FOREIGN = {
    "empty": b"",
    "one byte": b"\0",
    "zeros": bytes(1000),
    "text": b"x,y\n" + b"1,2\n" * 100,
    "JSON": json.dumps({"a": list(range(100))}).encode(),
    "npy": saved_npy(),
    "zip": zipped(),
    "picture": b"\x89PNG\r\n\x1a\n" + bytes(100),
    "noise": np.random.default_rng(0).bytes(5000),
    "huge header": (10**9).to_bytes(8, "little") + b'{"a":' + bytes(100),
    "no JSON": (4).to_bytes(8, "little") + b"{abc",
    "a list": (4).to_bytes(8, "little") + b"{}[]",
    "no tensors": (8).to_bytes(8, "little") + b'{"a": 1}',
    "deep": (10**5).to_bytes(8, "little") + b'{"a":' + b"[" * (10**5 - 5),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_other_files_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "model.vcgmm"
    path.write_bytes(FOREIGN[name])
    with pytest.raises(ValueError, match=r"model.vcgmm is not a file of vcgmm"):
        VCGMM.load(path)
    assert kind_of(path) is None


def test_tensors_of_others_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    for metadata in (None, {"format": "pt"}):
        save_file({"weight": np.ones(3)}, path, metadata)
        with pytest.raises(ValueError, match="is a safetensors file with 1 tensors, but not one that vcgmm wrote"):
            VCGMM.load(path)


def test_a_pickle_is_not_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
            return os.mkdir, (str(tmp_path / "sprung"),)

    path = tmp_path / "model.vcgmm"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(ValueError, match="not a file of vcgmm"):
        VCGMM.load(path)
    assert not (tmp_path / "sprung").exists()


def test_what_is_not_there_or_no_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        VCGMM.load(tmp_path / "nothing.vcgmm")
    with pytest.raises(IsADirectoryError):
        VCGMM.load(tmp_path)


# --------------------------------------------------------------------------------------------------- on purpose


def forge(
    path: Path, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None], kind: str = "model"
) -> None:
    """Write the model at `path` again with something changed and a checksum that fits."""
    content = container.read(path, "model")
    header = {k: v for k, v in content.header.items() if k not in ("sha256", "format_version", "kind")}
    tensors = dict(content.tensors)
    change(header, tensors)
    container.write(path, kind, header, tensors)


def test_a_model_that_is_written_again_loads(model_path: Path) -> None:
    # So that the tests below fail for what they change.
    forge(model_path, lambda _header, _tensors: None)
    assert VCGMM.load(model_path).n_components == 2


def edit(part: str, name: str, value: Any) -> Callable[[dict[str, Any], dict[str, np.ndarray]], None]:
    def change(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        where: dict[str, Any] = tensors if part == "tensors" else header[part]
        if value is None:
            del where[name]
        else:
            where[name] = value

    return change


FORGED: dict[str, tuple[tuple[str, str, Any], str]] = {
    "no means": (("tensors", "means_", None), "holds no means_"),
    "no frame": (("tensors", "frame.origin", None), r"holds no frame\.origin"),
    "no variance": (("attributes", "variance_", None), "not what vcgmm wrote"),
    "a mixture of tomorrow": (("training", "covariance_type", "curved"), "covariance_type='curved'.*a newer"),
    "a mixture that is none": (("training", "mixing", ["equal"]), "does not know"),
    "variances of another kind": (("tensors", "covariances_", np.ones((2, 2))), r"is not of shape \(2,\)"),
    "no positive variances": (("tensors", "covariances_", np.array([1.0, 0.0])), "covariances_ is not positive"),
    "weights of more than 1": (("tensors", "weights_", np.ones(2)), "does not add up to 1"),
    "no timings": (("attributes", "timings_", None), "not what vcgmm wrote"),
    "an unknown array": (("tensors", "extra", np.ones(3)), "holds 'extra', which this vcgmm does not know"),
    "narrow means": (("tensors", "means_", np.ones((2, 2), np.float32)), "means_ as float32.*should be float64"),
    "means of one dimension": (("tensors", "means_", np.ones(2)), r"means_ of shape \(2,\)"),
    "too many means": (("tensors", "means_", np.ones((3, 2))), "2 components.*of 3|of 3 components.*of 2"),
    "too many features": (("tensors", "frame.origin", np.ones(5)), "features and .* must agree"),
    "infinite means": (("tensors", "means_", np.full((2, 2), np.inf)), "means_ is empty or not finite"),
    "neighbours out of range": (("tensors", "neighbors_", np.full((2, 2), 9, np.int32)), "neighbors_ names"),
    "no variance at all": (("attributes", "variance_", 0.0), "variance_ is not positive"),
    "an infinite variance": (("attributes", "variance_", {"float": "inf"}), "variance_ is not positive"),
    "a variance in words": (("attributes", "variance_", "much"), "not what vcgmm wrote"),
    "a count that is no integer": (("attributes", "n_iter_", 2.5), "not what vcgmm wrote"),
    "a count that is a flag": (("attributes", "n_iter_", True), "not what vcgmm wrote"),
    "a wrong count": (("attributes", "n_iter_", 7), "n_iter_ is not the number of lower_bounds_"),
    "a wrong width": (("attributes", "n_features_in_", 7), "n_features_in_ is not the width"),
    "too many names": (("attributes", "feature_names_in_", ["a", "b", "c"]), "n_features_in_ is not the width"),
    "a frame of nothing": (("frame", "scale", 0.0), "not what vcgmm wrote"),
    "a frame of objects": (("frame", "dtype", "object"), "not what vcgmm wrote"),
    "a parameter of tomorrow": (("parameters", "magic", 3), "parameter 'magic', which this vcgmm"),
    "a tensor that is not there": (("parameters", "init", {"tensor": "nowhere"}), "not what vcgmm wrote"),
    "half a random state": (
        ("parameters", "random_state", {"random_state": {"pos": 3, "has_gauss": 0, "gauss": 0.0}}),
        "not what vcgmm wrote",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_forged_models_are_refused(model_path: Path, name: str) -> None:
    change, message = FORGED[name]
    forge(model_path, edit(*change))
    with pytest.raises(ValueError, match=message):
        VCGMM.load(model_path)


def test_a_random_state_beyond_its_end_is_refused(model_path: Path) -> None:
    def change(header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        tensors["parameters.random_state"] = np.zeros(624, np.uint32)
        header["parameters"]["random_state"] = {"random_state": {"pos": 10**6, "has_gauss": 0, "gauss": 0.0}}

    forge(model_path, change)
    with pytest.raises(ValueError, match="not what vcgmm wrote"):
        VCGMM.load(model_path)


@pytest.mark.parametrize("part", ["parameters", "attributes", "frame", "training"])
@pytest.mark.parametrize("value", [None, [], "text"])
def test_a_header_without_its_parts_is_refused(model_path: Path, part: str, value: object) -> None:
    forge(model_path, lambda header, _tensors: header.update({part: value}))
    with pytest.raises(ValueError, match="not what vcgmm wrote"):
        VCGMM.load(model_path)


def test_an_invalid_safetensors_file_with_a_fitting_checksum(model_path: Path) -> None:
    # The header gives a tensor more room than its shape needs: json is content, the library is not.
    data = bytearray(model_path.read_bytes())
    end = front_length(bytes(data))
    front = bytes(data[:end]).replace(
        b'"means_":{"dtype":"F64","shape":[2,2]', b'"means_":{"dtype":"F64","shape":[2,1]'
    )
    assert front != bytes(data[:end])
    model_path.write_bytes(front + bytes(data[end:]))
    with model_path.open("rb+") as file:
        place = container._CHECKSUM.search(front)
        assert place is not None
        digest = container._digest(file, front)
        file.seek(place.start(1))
        file.write(digest.encode())
    with pytest.raises(ValueError, match="is not a valid safetensors file"):
        VCGMM.load(model_path)


# ------------------------------------------------------------------------------------------- kinds and versions


def raw(path: Path, header: str, data: bytes = b"") -> None:
    """Write a safetensors file by hand."""
    path.write_bytes(len(header).to_bytes(8, "little") + header.encode() + data)


ENTRY = json.dumps({"format_version": 1, "kind": "model", "written_by": {}})


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"__metadata__": {"vcgmm": "[]"}}, "is damaged: its header is not what vcgmm writes"),
        ({"__metadata__": {"vcgmm": '"text"'}}, "is damaged: its header is not what vcgmm writes"),
        ({"__metadata__": {"vcgmm": "{}"}}, "is damaged: its header is not what vcgmm writes"),
        ({"__metadata__": {"vcgmm": "{"}}, "not a file of vcgmm, or is damaged"),
        ({"__metadata__": [1]}, "not a file of vcgmm, or is damaged"),
        ({"__metadata__": {"vcgmm": ENTRY}, "a": {"data_offsets": []}}, "no places of tensors"),
        ({"__metadata__": {"vcgmm": ENTRY}, "a": {"data_offsets": {"b": 1}}}, "no places of tensors"),
        ({"__metadata__": {"vcgmm": ENTRY}, "a": {"data_offsets": [0, float("inf")]}}, "no places of tensors"),
        ({"__metadata__": {"vcgmm": ENTRY}, "a": {"data_offsets": [0, 10**18]}}, "is cut off"),
        ({"__metadata__": {"vcgmm": ENTRY}}, "checksum does not fit"),
    ],
)
def test_headers_made_by_hand_are_refused(tmp_path: Path, header: dict[str, Any], message: str) -> None:
    raw(tmp_path / "model.vcgmm", json.dumps(header))
    with pytest.raises(ValueError, match=message):
        VCGMM.load(tmp_path / "model.vcgmm")


def test_a_large_file_of_others_is_not_read(tmp_path: Path) -> None:
    # What looks like the length of a header is the beginning of something else.
    path = tmp_path / "large.npy"
    path.write_bytes(saved_npy())
    with path.open("rb+") as file:
        file.truncate(1 << 33)  # a hole, which takes no room
        assert len(container._front(file)) == 9
    assert kind_of(path) is None


def test_a_newer_format_names_both_versions(model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(container, "FORMAT_VERSION", FORMAT_VERSION + 1)
    forge(model_path, lambda _header, _tensors: None)
    monkeypatch.undo()
    mine, theirs = FORMAT_VERSION, FORMAT_VERSION + 1
    message = rf"format version {theirs}, but this vcgmm \({__version__}\) knows versions up to {mine}"
    with pytest.raises(ValueError, match=message):
        VCGMM.load(model_path)


@pytest.mark.parametrize("version", [0, -1, "1", True, None])
def test_a_version_that_is_none_is_refused(
    model_path: Path, version: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = container.read(model_path, "model")
    monkeypatch.setattr(container, "FORMAT_VERSION", version)
    container.write(model_path, "model", {}, content.tensors)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="its format version is"):
        VCGMM.load(model_path)


def test_kinds_are_not_mixed_up(model_path: Path, tmp_path: Path) -> None:
    core = tmp_path / "core.vcgmm"
    save_coreset(Coreset(np.ones((3, 2))), core)
    assert (kind_of(core), kind_of(model_path)) == ("coreset", "model")
    with pytest.raises(ValueError, match=r"core.vcgmm holds a coreset, but a model is needed here"):
        VCGMM.load(core)
    with pytest.raises(ValueError, match=r"model.vcgmm holds a model, but a coreset is needed here"):
        load_coreset(model_path)


def test_a_kind_of_tomorrow_is_refused(model_path: Path) -> None:
    forge(model_path, lambda _header, _tensors: None, kind="dream")
    with pytest.raises(ValueError, match="holds a 'dream', of which this vcgmm knows nothing"):
        read_header(model_path)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("coreset.weights", np.array([1.0, -1.0]), "no valid coreset"),
        ("coreset.weights", np.array([1.0, np.nan]), "no valid coreset"),
        ("coreset.indices", np.array([-1, 3]), "no valid coreset"),
        ("coreset.weights", np.ones(3), "must agree"),
        ("coreset.points", np.ones(2), r"coreset\.points of shape"),
    ],
)
def test_forged_coresets_are_refused(tmp_path: Path, name: str, value: np.ndarray, message: str) -> None:
    tensors = {
        "coreset.indices": np.arange(2),
        "coreset.points": np.ones((2, 2)),
        "coreset.weights": np.ones(2),
        name: value,
    }
    container.write(tmp_path / "core.vcgmm", "coreset", {}, tensors)
    with pytest.raises(ValueError, match=message):
        load_coreset(tmp_path / "core.vcgmm")


def test_a_forged_number_of_rows_is_refused(tmp_path: Path) -> None:
    tensors = {"coreset.points": np.ones((2, 2)), "coreset.weights": np.ones(2)}
    container.write(tmp_path / "core.vcgmm", "coreset", {"n_samples": "many"}, tensors)
    with pytest.raises(ValueError, match=r"is not what vcgmm wrote .n_samples: 'many' is no int"):
        load_coreset(tmp_path / "core.vcgmm")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("levels", [1, 0]),
        ("lengths", [3]),
        ("lengths", "long"),
        ("n_rows", -1),
        ("seed", 0.5),
        ("scatter", "much"),
        ("n_reductions", None),
    ],
)
def test_forged_streams_are_refused(tmp_path: Path, name: str, value: Any) -> None:
    path = tmp_path / "model.vcgmm"
    model = VCGMM(2, random_state=0).partial_fit(np.random.default_rng(0).normal(size=(50, 2)))
    model.save(path, coreset=True)
    forge(path, edit("stream", name, value))
    with pytest.raises(ValueError, match="is not what vcgmm wrote"):
        VCGMM.load(path)


def test_an_empty_coreset_is_none(tmp_path: Path) -> None:
    save_coreset(Coreset.of(np.ones((0, 2)), np.ones(0), None, 0), tmp_path / "core.vcgmm")
    with pytest.raises(ValueError, match="no valid coreset"):
        load_coreset(tmp_path / "core.vcgmm")
