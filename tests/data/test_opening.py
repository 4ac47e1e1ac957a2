from __future__ import annotations

import importlib.util
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vcgmm
from vcgmm.data.opening import open_vector
from vcgmm.data.streams import read_stream
from vcgmm.data.writing import SUFFIXES, write_array

X = np.random.default_rng(0).normal(size=(20, 3))


@pytest.fixture(params=["pyarrow", "numpy"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test of tables holds for both ways to read them."""
    if request.param == "pyarrow":
        pytest.importorskip("pyarrow")
    else:
        monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    return str(request.param)


def write(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# -------------------------------------------------------------------------------------------------- NumPy's files


@pytest.mark.parametrize("dtype", ["float16", "float32", ">f8", "uint8", "int64", "bool"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_files_keep_their_type(tmp_path: Path, dtype: str, order: Any) -> None:
    array = np.array(np.abs(X), dtype=dtype, order=order)
    np.save(tmp_path / "X.npy", array)
    rows = vcgmm.open(tmp_path / "X.npy")
    assert (rows.shape, rows.dtype, len(rows)) == (array.shape, array.dtype, 20)
    np.testing.assert_array_equal(rows, array)
    assert np.asarray(rows, dtype=np.float64).dtype == np.float64


def test_an_opened_file_can_be_fitted(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    model = vcgmm.VCGMM(3, random_state=0).fit(vcgmm.open(str(tmp_path / "X.npy")))
    np.testing.assert_array_equal(model.means_, vcgmm.VCGMM(3, random_state=0).fit(X).means_)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_files(tmp_path: Path, save: Any) -> None:
    save(tmp_path / "one.npz", X=X)
    save(tmp_path / "two.npz", a=X, b=X + 1)
    np.testing.assert_array_equal(vcgmm.open(tmp_path / "one.npz"), X)
    np.testing.assert_array_equal(vcgmm.open(tmp_path / "two.npz", key="b"), X + 1)
    np.testing.assert_array_equal(vcgmm.open(f"{tmp_path}/two.npz:b"), X + 1)
    with pytest.raises(ValueError, match=r"two.npz holds the arrays a, b: say which one, as in two.npz:a"):
        vcgmm.open(tmp_path / "two.npz")
    with pytest.raises(ValueError, match=r"holds the arrays a, b: there is no 'c'"):
        vcgmm.open(tmp_path / "two.npz", key="c")


def test_files_with_pickled_objects_are_refused(tmp_path: Path) -> None:
    objects = np.array([["a", None]], object)
    np.save(tmp_path / "X.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "X.npz", objects)
    for name, kind in (("X.npy", "npy"), ("X.npz", "npz")):
        with pytest.raises(ValueError, match=rf"not a valid \.{kind} file: it holds Python objects"):
            vcgmm.open(tmp_path / name)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(5), r"shape \(5,\): rows of numbers are needed"),
        (np.ones((2, 2, 2)), r"shape \(2, 2, 2\)"),
        (np.ones((2, 2), complex), "complex128, but real numbers"),
        (np.array([["a", "b"]]), "<U1, but real numbers"),
        (np.array([["2020-01-01"]], "M8[D]"), "datetime64"),
    ],
)
def test_what_is_no_table_of_real_numbers_is_refused(tmp_path: Path, array: np.ndarray, message: str) -> None:
    np.save(tmp_path / "X.npy", array)
    np.savez(tmp_path / "X.npz", array)
    for name in ("X.npy", "X.npz"):
        with pytest.raises(ValueError, match=message):
            vcgmm.open(tmp_path / name)


def test_weights_have_one_dimension(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.ones(5))
    assert open_vector(tmp_path / "w.npy").shape == (5, 1)


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_damaged_files_are_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"X{suffix}"
    (np.save if suffix == ".npy" else np.savez_compressed)(path, X)
    whole = path.read_bytes()
    bad = [whole[:n] for n in (0, 3, 30, len(whole) // 2, len(whole) - 1)]
    bad += [b"text, really", pickle.dumps(X)]
    if suffix == ".npz":
        flipped = bytearray(whole)
        flipped[len(whole) // 3] ^= 0xFF
        bad += [bytes(flipped), io_bytes(X)]
    for content in bad:
        path.write_bytes(content)
        with pytest.raises(ValueError, match=rf"X{suffix} is not a valid {suffix} file: .+\. Write it with"):
            np.asarray(vcgmm.open(path))


def io_bytes(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_names_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"nothing.npy does not exist"):
        vcgmm.open(tmp_path / "nothing.npy")
    with pytest.raises(FileNotFoundError, match=r"nothing.npz does not exist"):
        vcgmm.open(f"{tmp_path}/nothing.npz:a")
    with pytest.raises(FileNotFoundError, match="holds no files"):
        vcgmm.open(tmp_path)
    with pytest.raises(ValueError, match=r"X.jpg is of an unknown kind: .* \.npy, \.npz, \.csv, \.tsv"):
        vcgmm.open(write(tmp_path / "X.jpg", "picture"))
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match=r"key='a' means nothing"):
        vcgmm.open(tmp_path / "X.npy", key="a")


# ---------------------------------------------------------------------------------------------------------- tables

TABLES = {
    "plain": ("a.csv", "1,2\n3,4\n"),
    "no end of line": ("a.csv", "1,2\n3,4"),
    "header": ("a.csv", "x,y\n1,2\n3,4\n"),
    "NumPy's header": ("a.csv", "# x,y\n1,2\n3,4\n"),
    "quoted": ("a.csv", '"x, really","y"\n"1",2\n3,4\n'),
    "Windows": ("a.csv", "x,y\r\n1,2\r\n3,4\r\n"),
    "marked": ("a.csv", b"\xef\xbb\xbf1,2\n3,4\n"),
    "marked with header": ("a.csv", b"\xef\xbb\xbfx,y\n1,2\n3,4\n"),
    "semicolons": ("a.csv", "1;2\n3;4\n"),
    "tabs": ("a.tsv", "x\ty\n1\t2\n3\t4\n"),
    "tabs in a .csv": ("a.csv", "1\t2\n3\t4\n"),
    "spaces": ("a.csv", "1, 2\n3 ,4\n"),
    "empty lines": ("a.csv", "\n\nx,y\n\n1,2\n\n3,4\n\n"),
    "floats": ("a.csv", "1e0,2.0\n+3,40e-1\n"),
    "upper case": ("a.CSV", "1,2\n3,4\n"),
}


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("name", TABLES)
def test_tables(tmp_path: Path, name: str) -> None:
    rows = vcgmm.open(write(tmp_path / TABLES[name][0], TABLES[name][1]))
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows, [[1.0, 2.0], [3.0, 4.0]])


@pytest.mark.usefixtures("reader")
def test_one_column_and_one_row(tmp_path: Path) -> None:
    assert vcgmm.open(write(tmp_path / "a.csv", "x\n1\n2\n3\n")).shape == (3, 1)
    assert vcgmm.open(write(tmp_path / "a.csv", "1,2,3\n")).shape == (1, 3)


@pytest.mark.usefixtures("reader")
def test_every_digit_is_read(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(50, 4)) * 10.0 ** np.arange(-100, 100, 50)
    write_array(tmp_path / "X.csv", values, list("abcd"))
    np.testing.assert_array_equal(vcgmm.open(tmp_path / "X.csv"), values)


@pytest.mark.usefixtures("reader")
def test_numbers_that_are_not_finite_are_read(tmp_path: Path) -> None:
    # A fit refuses them, and names row and feature.
    rows = vcgmm.open(write(tmp_path / "a.csv", "1,nan\n-inf,NaN\n"))
    np.testing.assert_array_equal(rows, [[1, np.nan], [-np.inf, np.nan]])


BAD_TABLES = {
    "empty": ("", "is empty"),
    "blank": ("\n\n\n", "is empty"),
    "only a header": ("x,y\n", "holds no rows of numbers"),
    "a word": ("x,y\n1,2\n3,four\n", r"has 'four', not a number, in line 3, column 2"),
    "a word in the first line": ("1,two\n3,4\n", r"has 'two', not a number, in line 1, column 2"),
    "a word after empty lines": ("\n\n1,2\n\n3,four\n", r"has 'four', not a number, in line 5, column 2"),
    "a hole": ("1,2\n,4\n", r"has an empty field in line 2, column 1: fill it in"),
    "NA": ("1,2\n3,NA\n", r"has 'NA', not a number, in line 2, column 2"),
    "thousands": ("1,2\n3,4_000\n", r"has '4_000', not a number, in line 2, column 2"),
    "too few fields": ("1,2\n3,4\n5\n", r"has 1 fields in line 3, but 2 in its first"),
    "too many fields": ("1,2\n3,4,5\n", r"has 3 fields in line 2, but 2 in its first"),
    "decimal commas": ("1,5;2,5\n", r"has '5;2', not a number, in line 1, column 2"),
    "binary": (b"1,2\0\n3,4\n", "is not a table of text"),
    "another encoding": (b"gr\xf6\xdfe,y\n1,2\n", "is not a table of text in UTF-8"),
    "an open quote": ('1,2\n"3,4\n', "has 1 fields in line|is not a table"),
    "another encoding further down": (b"x,y\n1,2\n\xff,4\n", "is not a table of"),
}


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("name", BAD_TABLES)
def test_bad_tables_are_explained(tmp_path: Path, name: str) -> None:
    content, message = BAD_TABLES[name]
    with pytest.raises(ValueError, match=rf"a\.csv ({message})"):
        vcgmm.open(write(tmp_path / "a.csv", content))


def test_rows_longer_than_a_read_of_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("vcgmm.data.tables._CHUNK", 16)
    wide = np.arange(3000.0).reshape(3, 1000)
    write_array(tmp_path / "X.csv", wide, [f"f{i}" for i in range(1000)])
    np.testing.assert_array_equal(vcgmm.open(tmp_path / "X.csv"), wide)


# --------------------------------------------------------------------------------------------------------- streams


class Pipe(io.RawIOBase):
    """Gives a few bytes at a time and cannot seek, like standard input."""

    def __init__(self, content: bytes) -> None:
        self._content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._content.readinto(memoryview(buffer)[:7])


def zipped(**arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


@pytest.mark.parametrize(
    "content", [io_bytes(X), zipped(X=X), "\n".join(",".join(map(repr, row)) for row in X.tolist()).encode()]
)
def test_streams_are_known_by_their_beginning(content: bytes) -> None:
    np.testing.assert_array_equal(read_stream(io.BytesIO(content)), X)
    np.testing.assert_array_equal(read_stream(io.BufferedReader(Pipe(content))), X)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "standard input is empty"),
        (b"a,b\n1,c\n", "standard input has 'c'"),
        (io_bytes(X)[:100], r"standard input is not a valid \.npy file"),
        (zipped(X=X)[:100], r"standard input is not a valid \.npz file"),
        (zipped(a=X, b=X), "standard input holds the arrays a, b: say which one"),
    ],
)
def test_bad_streams_are_explained(content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_stream(io.BytesIO(content))


# --------------------------------------------------------------------------------------------------------- writing


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".tsv"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32"])
def test_what_is_written_is_read(tmp_path: Path, suffix: str, dtype: str) -> None:
    array = (100 * X).astype(dtype)
    write_array(tmp_path / f"a{suffix}", array, ["x", 'qu"o,te', "t\tab"])
    np.testing.assert_array_equal(np.asarray(vcgmm.open(tmp_path / f"a{suffix}"), dtype), array)


def test_vectors_are_written_as_one_column(tmp_path: Path) -> None:
    labels = np.array([3, 1, 2], np.int32)
    write_array(tmp_path / "labels.csv", labels, ["label"])
    assert (tmp_path / "labels.csv").read_text() == "label\n3\n1\n2\n"


def test_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write_array(tmp_path / "a.parquet", X, ["x", "y", "z"])
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.column_names == ["x", "y", "z"]
    np.testing.assert_array_equal(np.column_stack([table.column(i).to_numpy() for i in range(3)]), X)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install vcgmm\[io\]"):
        write_array(tmp_path / "b.parquet", X, ["x", "y", "z"])
    assert not (tmp_path / "b.parquet").exists()


def test_fvecs(tmp_path: Path) -> None:
    write_array(tmp_path / "a.fvecs", X, ["x", "y", "z"])
    words = np.fromfile(tmp_path / "a.fvecs", "<i4").reshape(20, 4)
    assert (words[:, 0] == 3).all()
    np.testing.assert_array_equal(words[:, 1:].copy().view("<f4"), X.astype(np.float32))


def test_unknown_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"unknown kind: .*{SUFFIXES[-1]}"):
        write_array(tmp_path / "a.doc", X, ["x", "y", "z"])
    assert list(tmp_path.iterdir()) == []
