"""Files and objects that are no good: each is named, with the place and what to do."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
import zarr
from pyarrow import feather, parquet

import vcgmm
from vcgmm import VCGMM, lightweight_coreset
from vcgmm.data.source import SequentialSource

X = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)


def save_npz(path: Path) -> None:
    np.savez(path, X)


def save_fvecs(path: Path) -> None:
    np.concatenate([np.full((300, 1), 4, "<i4").view("<f4"), X], axis=1).tofile(path)


def save_fbin(path: Path) -> None:
    path.write_bytes(np.array(X.shape, "<u4").tobytes() + X.tobytes())


def save_parquet(path: Path) -> None:
    parquet.write_table(pa.table({f"f{i}": X[:, i] for i in range(4)}), path)


def save_feather(path: Path) -> None:
    feather.write_feather(pa.table({f"f{i}": X[:, i] for i in range(4)}), path)


def save_hdf5(path: Path) -> None:
    with h5py.File(path, "w") as file:
        file["X"] = X


SAVE: dict[str, Callable[[Path], Any]] = {
    "X.npy": lambda path: np.save(path, X),
    "X.npz": save_npz,
    "X.fvecs": save_fvecs,
    "X.fbin": save_fbin,
    "X.parquet": save_parquet,
    "X.feather": save_feather,
    "X.h5": save_hdf5,
}


# ------------------------------------------------------------------------------------------------- what is cut off


@pytest.mark.parametrize("name", SAVE)
@pytest.mark.parametrize("kept", [0.0, 0.001, 0.5, 0.97])
def test_a_file_that_is_cut_off_is_named(tmp_path: Path, name: str, kept: float) -> None:
    path = tmp_path / name
    SAVE[name](path)
    np.testing.assert_array_equal(np.sort(np.asarray(vcgmm.open(path)), axis=0), np.sort(X, axis=0))
    # Not at the end of a row: where a file does not say how many there are, nobody could tell.
    path.write_bytes(path.read_bytes()[: max(0, int(kept * path.stat().st_size) - 1)])
    with pytest.raises(ValueError, match=rf"X\.{path.suffix[1:]} .*(cut off|not a valid|no rows)"):
        np.asarray(vcgmm.open(path))


def test_raw_binary_of_another_length_is_refused(tmp_path: Path) -> None:
    X.tofile(tmp_path / "X.dat")
    with pytest.raises(ValueError, match=r"X.dat has 4,800 bytes, but 301 rows of 4 values of float32 are 4,816"):
        vcgmm.open(tmp_path / "X.dat", dtype="float32", shape=(301, 4))
    with pytest.raises(ValueError, match="are 4,788: it is cut off, or type or shape is another one"):
        vcgmm.open(tmp_path / "X.dat", dtype="float32", shape=(-1, 7))
    for shape in ((4,), (-2, 4), (3, 0), "ab", (1.5, 2)):
        with pytest.raises(ValueError, match="give \\(rows, columns\\)"):
            vcgmm.open(tmp_path / "X.dat", dtype="float32", shape=shape)
    with pytest.raises(ValueError, match="dtype='furlong' is not known"):
        vcgmm.open(tmp_path / "X.dat", dtype="furlong", shape=(-1, 4))
    with pytest.raises(ValueError, match="needs both dtype= and shape="):
        vcgmm.open(tmp_path / "X.dat", dtype="float32")


def test_a_vector_of_another_length_within_a_file(tmp_path: Path) -> None:
    save_fvecs(tmp_path / "X.fvecs")
    whole = bytearray((tmp_path / "X.fvecs").read_bytes())
    whole[20 * 123] = 5
    (tmp_path / "X.fvecs").write_bytes(whole)
    with pytest.raises(ValueError, match=r"X.fvecs has 5 values in row 123, but 4 in its first"):
        lightweight_coreset(vcgmm.open(tmp_path / "X.fvecs"), 10)


# --------------------------------------------------------------------------------------------------- shards, kinds


def test_shards_must_be_alike(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X[:, :3])
    with pytest.raises(ValueError, match=r"b.npy has 3 features, but .*a.npy has 4 features: the files of"):
        vcgmm.open(tmp_path)
    np.save(tmp_path / "b.npy", X.astype(np.float64))
    with pytest.raises(
        ValueError, match=r"b.npy has values of type float64, but .*a.npy has values of type float32"
    ):
        vcgmm.open(f"{tmp_path}/*.npy")
    (tmp_path / "b.npy").unlink()
    (tmp_path / "b.csv").write_text("1,2\n")
    with pytest.raises(ValueError, match=r"holds files of several kinds, .csv, .npy: say which, as in \*.csv"):
        vcgmm.open(tmp_path)
    (tmp_path / "c.csv").write_text("x,y\n1,2\n")
    with pytest.raises(ValueError, match=r"c.csv has columns named x, y, but .*b.csv has no names of columns"):
        vcgmm.open(f"{tmp_path}/*.csv")
    with pytest.raises(FileNotFoundError, match=r"nothing\*.npy does not exist|holds no files"):
        vcgmm.open(f"{tmp_path}/nothing*.npy")
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(IsADirectoryError, match=r"folder.npy is a folder"):
        vcgmm.open(f"{tmp_path}/*.npy")


def test_what_means_nothing_for_a_kind_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(ValueError, match=r"columns=\['a'\] means nothing"):
        vcgmm.open(tmp_path / "X.npy", columns=["a"])
    zarr.save_array(str(tmp_path / "X.zarr"), X)
    with pytest.raises(ValueError, match="key='a' means nothing"):
        vcgmm.open(tmp_path / "X.zarr", key="a")
    with pytest.raises(ValueError, match="leave them out for an object"):
        vcgmm.open([X], key="a")


# ------------------------------------------------------------------------------------------------ tables and names


def test_a_missing_column_is_named(tmp_path: Path) -> None:
    save_parquet(tmp_path / "X.parquet")
    (tmp_path / "X.csv").write_text("x,y\n1,2\n3,4\n")
    (tmp_path / "bare.csv").write_text("1,2\n3,4\n")
    with pytest.raises(ValueError, match=r"X.parquet has no column 'g': it has the columns f0, f1, f2, f3"):
        vcgmm.open(tmp_path / "X.parquet", columns=["f0", "g"])
    with pytest.raises(ValueError, match=r"X.csv has no column 'z': it has the columns x, y"):
        vcgmm.open(tmp_path / "X.csv", columns="z")
    with pytest.raises(ValueError, match=r"X.csv has no column 'w'"):
        vcgmm.open(tmp_path / "X.csv", weights="w")
    with pytest.raises(ValueError, match=r"bare.csv has no column 'x': it has columns 0 to 1"):
        vcgmm.open(tmp_path / "bare.csv", columns="x")
    with pytest.raises(ValueError, match=r"bare.csv has no column 2"):
        vcgmm.open(tmp_path / "bare.csv", columns=[0, 2])
    (tmp_path / "twice.csv").write_text("x,x\n1,2\n")
    with pytest.raises(ValueError, match=r"twice.csv has several columns 'x'"):
        vcgmm.open(tmp_path / "twice.csv", columns="x")


def write_table(path: Path, **columns: Any) -> Path:
    parquet.write_table(pa.table(columns), path)
    return path


def test_columns_that_hold_no_numbers(tmp_path: Path) -> None:
    path = tmp_path / "X.parquet"
    write_table(path, a=[1.0, 2.0], name=["x", "y"])
    with pytest.raises(ValueError, match=r"X.parquet has a column 'name' of string, but real numbers are needed"):
        vcgmm.open(path)
    assert vcgmm.open(path, columns="a").shape == (2, 1)
    write_table(path, a=[[1.0, 2.0], [3.0, 4.0]], b=[[1.0], [2.0]], c=[1.0, 2.0])
    with pytest.raises(ValueError, match="several columns of vectors, a, b: choose one"):
        vcgmm.open(path)
    with pytest.raises(ValueError, match="one column of vectors, or columns of numbers, not both"):
        vcgmm.open(path, columns=["a", "c"])
    np.testing.assert_array_equal(vcgmm.open(f"{path}:a"), [[1, 2], [3, 4]])
    write_table(path, a=[["x"], ["y"]])
    with pytest.raises(ValueError, match="column 'a' of string"):
        vcgmm.open(path)


def test_values_that_are_missing_in_a_table(tmp_path: Path) -> None:
    path = tmp_path / "X.parquet"
    write_table(path, a=[1.0] * 7 + [None], b=np.ones(8))
    with pytest.raises(ValueError, match=r"X.parquet lacks a value in row 7 of column 'a'"):
        np.asarray(vcgmm.open(path))
    write_table(path, a=[[1.0, 2.0], [3.0, None]])
    with pytest.raises(ValueError, match=r"lacks a value in row 1 of column 'a'"):
        np.asarray(vcgmm.open(path))
    write_table(path, a=[[1.0, 2.0], None])
    with pytest.raises(ValueError, match=r"lacks a value in row 1 of column 'a'"):
        np.asarray(vcgmm.open(path))
    write_table(path, a=[[1.0, 2.0], [1.0], [3.0, 4.0, 5.0]])
    with pytest.raises(ValueError, match=r"has 1 values in row 1 of column 'a', but 2 in its first"):
        np.asarray(vcgmm.open(path))


def test_a_mistake_far_down_a_table_of_text(tmp_path: Path) -> None:
    lines = ["1,2"] * 1_200_000
    lines[1_100_000] = "1,two"
    (tmp_path / "X.csv").write_text("\n".join(lines))
    source = vcgmm.open(tmp_path / "X.csv")
    with pytest.raises(ValueError, match=r"X.csv has 'two', not a number, in line 1100001, column 2"):
        lightweight_coreset(source, 10)


def test_arrays_by_name(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["a"], file["b"], file["w"] = X, X, X[:, 0]
    zarr.save_group(str(tmp_path / "X.zarr"), a=X, b=X, w=X[:, 0])
    for name in ("X.h5", "X.zarr"):
        with pytest.raises(ValueError, match=rf"{name} holds the arrays a, b: say which one, as in {name}:a"):
            vcgmm.open(tmp_path / name)
        with pytest.raises(ValueError, match=rf"{name} holds the arrays a, b, w: there is no 'c'"):
            vcgmm.open(f"{tmp_path}/{name}:c")
        with pytest.raises(
            ValueError, match=rf"{name} holds an array of shape \(300,\): rows of numbers are needed"
        ):
            vcgmm.open(f"{tmp_path}/{name}:w")
    (tmp_path / "none.zarr").mkdir()
    with pytest.raises(ValueError, match=r"none.zarr is not a valid Zarr store"):
        vcgmm.open(tmp_path / "none.zarr")


# ------------------------------------------------------------------------------------------------------- zero rows


def test_no_rows_at_all(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X[:0])
    (tmp_path / "X.fbin").write_bytes(np.array([0, 4], "<u4").tobytes())
    (tmp_path / "X.dat").write_bytes(b"")
    write_table(tmp_path / "X.parquet", a=np.ones(0), b=np.ones(0))
    sources = [vcgmm.open(tmp_path / name) for name in ("X.npy", "X.fbin", "X.parquet")]
    sources += [vcgmm.open(tmp_path / "X.dat", dtype="f4", shape=(-1, 4)), vcgmm.open([X[:0], X[:0]])]
    for source in sources:
        assert source.shape[0] == 0
        for use in (lambda rows: lightweight_coreset(rows, 5), VCGMM(2).fit, VCGMM(1).fit(X[:, :2]).predict):
            with pytest.raises(ValueError, match=r"holds no rows\. Give at least one|has 4 features"):
                use(source)
    write_table(tmp_path / "X.parquet", a=pa.array([], pa.list_(pa.float32())))
    (tmp_path / "X.fvecs").write_bytes(b"")
    for name in ("X.parquet", "X.fvecs"):
        with pytest.raises(ValueError, match=rf"{name} holds no rows"):
            vcgmm.open(tmp_path / name)
    with pytest.raises(ValueError, match="yields no blocks"):
        vcgmm.open([])
    np.save(tmp_path / "X.npy", X[:, :0])
    with pytest.raises(ValueError, match="rows of no features"):
        vcgmm.open(tmp_path / "X.npy")


# ------------------------------------------------------------------------------- what changes between two passes


def touch(path: Path) -> None:
    facts = path.stat()
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns + 1))


@pytest.mark.parametrize("name", SAVE)
def test_a_file_that_has_changed_since_it_was_opened(tmp_path: Path, name: str) -> None:
    SAVE[name](tmp_path / name)
    source = vcgmm.open(tmp_path / name)
    lightweight_coreset(source, 10)
    touch(tmp_path / name)
    with pytest.raises(ValueError, match=rf"{name} has changed since it was opened"):
        lightweight_coreset(source, 10)
    with pytest.raises(ValueError, match=rf"{name} has changed since it was opened"):
        source.take(np.array([3]))


@pytest.mark.on_cpu  # between whose passes it changes
def test_a_file_that_changes_between_the_two_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vcgmm.algorithm import pipeline

    np.save(tmp_path / "X.npy", X)
    source = vcgmm.open(tmp_path / "X.npy")
    between = pipeline.make_coreset

    def change(*arguments: Any) -> Any:
        with (tmp_path / "X.npy").open("rb+") as file:
            file.seek(200)
            file.write(b"\0")
        touch(tmp_path / "X.npy")
        return between(*arguments)

    monkeypatch.setattr(pipeline, "make_coreset", change)
    model = VCGMM(3, coreset_size=50)
    with pytest.raises(ValueError, match=r"X.npy has changed since it was opened: leave it alone"):
        model.fit(source)
    assert not hasattr(model, "means_")


def test_a_shard_that_changes_during_a_pass(tmp_path: Path) -> None:
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / name, X)
    source = vcgmm.open(tmp_path)
    blocks = source.blocks(100)
    next(blocks)
    touch(tmp_path / "a.npy")
    with pytest.raises(ValueError, match=r"a.npy has changed"):
        list(blocks)


def test_a_file_that_is_cut_off_while_it_is_read(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", X)
    blocks = vcgmm.open(tmp_path / "X.npy").blocks(100)
    next(blocks)
    with (tmp_path / "X.npy").open("rb+") as file:
        file.truncate(3000)
    with pytest.raises(ValueError, match=r"X.npy has become shorter while it was read"):
        list(blocks)


def test_an_object_that_yields_other_rows_the_second_time() -> None:
    rng = np.random.default_rng(0)

    def afresh() -> Iterator[np.ndarray]:
        for _ in range(3):
            yield rng.normal(size=(100, 2))

    with pytest.raises(ValueError, match="afresh yields other rows each time it is gone through"):
        lightweight_coreset(vcgmm.open(afresh), 10)


def test_an_object_that_yields_fewer_rows_the_second_time() -> None:
    lengths = iter([100, 100, 50])
    source = vcgmm.open(lambda: [np.ones((next(lengths), 2))])
    assert len(source) == 100
    with pytest.raises(ValueError, match="yields other rows"):
        np.asarray(source)


def test_a_store_that_changes_between_two_passes(tmp_path: Path) -> None:
    zarr.save_array(str(tmp_path / "X.zarr"), X)
    source = vcgmm.open(tmp_path / "X.zarr")
    lightweight_coreset(source, 10)
    zarr.open(str(tmp_path / "X.zarr"), mode="r+")[7] = 99.0
    with pytest.raises(ValueError, match=r"X.zarr has changed between two passes"):
        lightweight_coreset(source, 10)


class Liar(SequentialSource):
    """Says ten rows, and gives as many as it likes."""

    def __init__(self, n: int) -> None:
        super().__init__("liar", 10, 2, np.dtype(np.float32))
        self.n = n

    def pieces(self) -> Generator[tuple[np.ndarray, None], None, None]:
        yield np.arange(2 * self.n, dtype=np.float32).reshape(-1, 2), None


@pytest.mark.parametrize("n", [9, 11])
def test_another_number_of_rows_than_was_said_is_noticed(n: int) -> None:
    for use in (np.asarray, lambda rows: lightweight_coreset(rows, 3), VCGMM(2, coreset_size=5).fit):
        with pytest.raises(ValueError, match=rf"liar gave {n} rows or more, but 10 before: it has changed"):
            use(Liar(n))


def test_rows_beyond_the_end() -> None:
    with pytest.raises(ValueError, match="liar gave 9 rows or more, but 10 before"):
        Liar(9).take(np.array([2, 9]))
    with pytest.raises(IndexError, match="liar has 10 rows, but row 10 was asked for"):
        Liar(10).take(np.array([2, 10]))


# --------------------------------------------------------------------------------------------------- not a number


def test_a_nan_is_named_by_file_and_row(tmp_path: Path) -> None:
    for i in range(3):
        part = X.copy()
        if i == 1:
            part[77, 2] = np.nan
        np.save(tmp_path / f"part{i}.npy", part)
    model = VCGMM(2, coreset_size=20).fit(X)
    where = r"part1.npy, row 77 \(row 377 of all\), feature 2"
    with pytest.raises(ValueError, match=rf"contains NaN: the first in .*{where}"):
        VCGMM(2).fit(vcgmm.open(tmp_path))
    with pytest.raises(ValueError, match=rf"contains NaN: the first in .*{where}"):
        model.predict(vcgmm.open(tmp_path))
    with pytest.raises(ValueError, match=r"Input .*part1.npy contains NaN: the first in row 77, feature 2"):
        lightweight_coreset(vcgmm.open(tmp_path / "part1.npy"), 10)


def test_a_nan_on_row_41_234_567() -> None:
    blank = np.zeros((1 << 20, 2), np.float32)

    def blocks() -> Iterator[np.ndarray]:
        for first in range(0, 42_000_000, len(blank)):
            if first <= 41_234_567 < first + len(blank):
                bad = blank.copy()
                bad[41_234_567 - first, 1] = np.nan
                yield bad
            else:
                yield blank

    with pytest.raises(ValueError, match=r"Input blocks contains NaN: the first in row 41234567, feature 1\."):
        lightweight_coreset(vcgmm.open(blocks), 10)


# -------------------------------------------------------------------------------------------------------- objects


def test_objects_that_yield_no_rows() -> None:
    with pytest.raises(TypeError, match="generator can be gone through only once"):
        vcgmm.open(block for block in [X])
    with pytest.raises(TypeError, match="3 cannot be opened"):
        vcgmm.open(3)
    with pytest.raises(ValueError, match=r"a list of blocks yields at row 0 an object of shape \(4,\)"):
        vcgmm.open([X[0]])
    with pytest.raises(ValueError, match=r"yields at row 0 an object of shape \(1, 1\) and type <U1"):
        vcgmm.open([[["a"]]])
    with pytest.raises(
        ValueError, match=r"a block of 3 features and type float32 at row 300, but its first has 4"
    ):
        np.asarray(vcgmm.open([X, X[:, :3]]))
    with pytest.raises(ValueError, match=r"a block of 4 features and type float64 at row 300"):
        np.asarray(vcgmm.open([X, X.astype(float)]))
    with pytest.raises(ValueError, match="a block at row 300 with no weights for 300 rows"):
        np.asarray(vcgmm.open([(X, X[:, 0]), X]))
    with pytest.raises(ValueError, match="a block at row 0 with 4 weights for 300 rows"):
        np.asarray(vcgmm.open([(X, X[0])]))
    with pytest.raises(ValueError, match=r"An array of shape \(4,\) holds no rows"):
        vcgmm.open(X[0])


def test_an_error_in_an_object_is_raised_as_it_is() -> None:
    def blocks() -> Iterator[np.ndarray]:
        yield X
        raise RuntimeError("the database is gone")

    with pytest.raises(RuntimeError, match="the database is gone"):
        lightweight_coreset(vcgmm.open(blocks), 10)


# ----------------------------------------------------------------------------------------------- missing packages


@pytest.mark.parametrize(
    ("name", "package"), [("X.parquet", "pyarrow"), ("X.feather", "pyarrow"), ("X.h5", "h5py"), ("X.zarr", "zarr")]
)
def test_a_package_that_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    if name == "X.zarr":
        zarr.save_array(str(tmp_path / name), X)
    else:
        SAVE[name](tmp_path / name)
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ImportError, match=rf"need {package}, which is not installed: pip install vcgmm\[io\]"):
        vcgmm.open(tmp_path / name)


def test_files_that_may_not_be_read_are_told_in_the_systems_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "X.npy", X)

    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", "X.npy")

    monkeypatch.setattr(builtins, "open", refuse)
    with pytest.raises(PermissionError, match="Permission denied"):
        vcgmm.open(tmp_path / "X.npy")
