"""Everything that takes an array takes a source of the same rows, and gives the same bits."""

from __future__ import annotations

import runpy
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vcgmm
from digits import digits
from vcgmm import VCGMM, lightweight_coreset, quantization_error
from vcgmm.algorithm.coreset.lightweight import Coreset
from vcgmm.data import Source
from vcgmm.datasets import make_grid

kinds = runpy.run_path(str(Path(__file__).parent / "data" / "kinds.py"))
EVERY = list(kinds["KINDS"])
FLOATS = {"csv": "f8", "tsv": "f8", "zarr group": "f8"}


def rows_of(kind: str, n: int = 4000) -> np.ndarray:
    X = make_grid(n, n_side=4, random_state=0)[0]
    return np.asarray(np.column_stack([X, X.sum(axis=1)]), FLOATS.get(kind, "f4"))


@pytest.fixture(params=EVERY)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Source, np.ndarray]:
    X = rows_of(request.param)
    return kinds["KINDS"][request.param][0](tmp_path, X), X


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many blocks of few rows."""
    monkeypatch.setattr("vcgmm.data.rows.BLOCK_VALUES", 3 * 97)


def same(a: Coreset, b: Coreset) -> None:
    assert a.points.dtype == b.points.dtype
    for name in ("indices", "points"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    alike(a.weights, b.weights)


def alike(ours: Any, theirs: Any) -> None:
    """Equal to the last bit; on a GPU, which adds up rows as they come, nearly so."""
    np.testing.assert_allclose(ours, theirs, rtol=digits(0.0), atol=digits(0.0))


def own_weights(source: Source) -> np.ndarray | None:
    return np.concatenate(list(source.weight_blocks())) if source.weighted else None


# --------------------------------------------------------------------------------------------------- the same bits


@pytest.mark.parametrize("n_threads", [1, 3])
def test_coresets_are_those_of_the_array(pair: tuple[Source, np.ndarray], n_threads: int) -> None:
    source, X = pair
    expected = lightweight_coreset(X, 500, sample_weight=own_weights(source), random_state=0)
    same(lightweight_coreset(source, 500, random_state=0, n_threads=n_threads), expected)


def test_fits_and_all_that_follows_are_those_of_the_array(pair: tuple[Source, np.ndarray]) -> None:
    source, X = pair
    weights = own_weights(source)
    options: dict[str, Any] = {"coreset_size": 600, "random_state": 0, "compute_labels": True}
    expected = VCGMM(16, **options).fit(X, sample_weight=weights)
    model = VCGMM(16, **options).fit(source)
    same(model.coreset_, expected.coreset_)
    alike(model.means_, expected.means_)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    alike((model.variance_, model.lower_bound_), (expected.variance_, expected.lower_bound_))
    alike(model.inertia_, expected.inertia_)
    np.testing.assert_array_equal(model.predict(source), expected.predict(X))
    alike(model.score_samples(source), expected.score_samples(X))
    alike(model.predict_proba(source).toarray(), expected.predict_proba(X).toarray())
    for ours, theirs in zip(model.nearest(source, 3), expected.nearest(X, 3), strict=True):
        alike(ours, theirs)
    alike(model.score(source), expected.score(X, sample_weight=weights))
    alike(model.quantization_error(source), expected.quantization_error(X, sample_weight=weights))
    assert quantization_error(source, model.means_) == quantization_error(X, model.means_, weights)


def test_refinement_is_that_of_the_array(pair: tuple[Source, np.ndarray]) -> None:
    source, X = pair
    weights = own_weights(source)
    settings: dict[str, Any] = {"coreset_size": 300, "refine": 2, "random_state": 0}
    model = VCGMM(16, **settings).fit(source)
    expected = VCGMM(16, **settings).fit(X, sample_weight=weights)
    alike(model.means_, expected.means_)
    np.testing.assert_allclose(model.refine_bounds_, expected.refine_bounds_, rtol=digits(1e-12))
    plain = VCGMM(16, coreset_size=300, random_state=0).fit(source)
    assert model.quantization_error(source) < plain.quantization_error(source)


def test_a_stream_may_be_a_source(pair: tuple[Source, np.ndarray]) -> None:
    source, X = pair
    weights = own_weights(source)
    model = VCGMM(16, coreset_size=600, random_state=0).partial_fit(source)
    assert model.coreset_.n_samples == (len(X) if weights is None else np.count_nonzero(weights))
    total = len(X) if weights is None else weights.sum()
    assert model.coreset_.total_weight == pytest.approx(total, rel=0.1)
    whole = VCGMM(16, coreset_size=None, random_state=0).fit(X, sample_weight=weights)
    assert model.quantization_error(source) < 1.3 * whole.quantization_error(X, weights)
    model.partial_fit(source)  # and goes on
    assert model.coreset_.total_weight == pytest.approx(2 * total, rel=0.1)


def test_all_rows_of_a_source_are_taken_where_they_are_asked_for(pair: tuple[Source, np.ndarray]) -> None:
    source, X = pair
    weights = own_weights(source)
    model = VCGMM(16, coreset_size=None, random_state=0).fit(source)
    expected = VCGMM(16, coreset_size=None, random_state=0).fit(X, sample_weight=weights)
    same(model.coreset_, expected.coreset_)
    alike(model.means_, expected.means_)


@pytest.mark.parametrize("values", [4, 1000, 1 << 22])
def test_the_length_of_reads_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, values: int) -> None:
    X = rows_of("npy")
    expected = lightweight_coreset(X, 300, random_state=1)
    for module in ("source", "archives", "arrow", "chunked", "tables"):
        monkeypatch.setattr(f"vcgmm.data.{module}.READ_VALUES", values)
    monkeypatch.setattr("vcgmm.data.streamed.PART_BLOCKS", 1 + values % 7)
    for i, kind in enumerate(("npy", "npz", "parquet", "feather", "hdf5", "list")):
        folder = tmp_path / str(i)
        folder.mkdir()
        same(lightweight_coreset(kinds["KINDS"][kind][0](folder, X), 300, random_state=1), expected)


def test_the_defaults_see_how_many_rows_a_source_has(tmp_path: Path) -> None:
    X = rows_of("npy")
    np.save(tmp_path / "X.npy", X)
    assert len(VCGMM(4, random_state=0).fit(vcgmm.open(tmp_path / "X.npy")).coreset_) == 4000
    assert len(VCGMM(4, coreset_size=0.01, random_state=0).fit(vcgmm.open(tmp_path / "X.npy")).coreset_) <= 40
    with pytest.raises(ValueError, match="n_samples=4000 is fewer than n_components=5000"):
        VCGMM(5000).fit(vcgmm.open(tmp_path / "X.npy"))


def test_centres_may_come_from_a_source(tmp_path: Path) -> None:
    X = rows_of("npy")
    np.save(tmp_path / "centres.npy", X[:7])
    given = vcgmm.open(tmp_path / "centres.npy")
    assert quantization_error(X, given) == quantization_error(X, X[:7])
    np.testing.assert_array_equal(VCGMM(7, init=given).fit(X).means_, VCGMM(7, init=X[:7]).fit(X).means_)


# --------------------------------------------------------------------------------------------------------- weights


def weighted_sources(folder: Path, X: np.ndarray, weights: np.ndarray) -> Iterator[tuple[str, Source]]:
    import h5py
    import pyarrow as pa
    import zarr
    from pyarrow import parquet

    from vcgmm.data.writing import write_array

    np.save(folder / "X.npy", X)
    np.save(folder / "w.npy", weights)
    np.savez(folder / "X.npz", X=X, w=weights)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "w": weights, "c": X[:, 2]})
    parquet.write_table(table, folder / "X.parquet")
    write_array(folder / "X.csv", np.column_stack([X, weights]), ["a", "b", "c", "w"])
    with h5py.File(folder / "X.h5", "w") as file:
        file["X"], file["w"] = X, weights
    zarr.save_group(str(folder / "X.zarr"), X=X, w=weights)
    (folder / "shards").mkdir()
    for i in range(4):
        parquet.write_table(table[i * 1000 : (i + 1) * 1000], folder / "shards" / f"{i}.parquet")
    yield "array", vcgmm.open(folder / "X.npy", weights=weights)
    yield "list", vcgmm.open(folder / "X.npy", weights=weights.tolist())
    yield "file", vcgmm.open(folder / "X.npy", weights=folder / "w.npy")
    yield (
        "file beside a table",
        vcgmm.open(folder / "X.csv", columns=["a", "b", "c"], weights=str(folder / "w.npy")),
    )
    yield "array of an archive", vcgmm.open(folder / "X.npz", key="X", weights="w")
    yield "column", vcgmm.open(folder / "X.parquet", weights="w")
    yield "column beside chosen ones", vcgmm.open(folder / "X.parquet", columns=["a", "b", "c"], weights="w")
    yield "column of text", vcgmm.open(folder / "X.csv", weights="w")
    yield "HDF5", vcgmm.open(folder / "X.h5", key="X", weights="w")
    yield "Zarr", vcgmm.open(folder / "X.zarr", key="X", weights="w")
    yield "shards", vcgmm.open(folder / "shards", weights="w")
    halves = [(X[:1234], weights[:1234]), (X[1234:], weights[1234:])]
    yield "pairs", vcgmm.open(halves)
    yield "object", vcgmm.open([X[:5], X[5:]], weights=weights)


@pytest.mark.parametrize("scale", [1.0, 2.0**60])
def test_weights_of_a_source_are_those_that_are_given(tmp_path: Path, scale: float) -> None:
    X = rows_of("csv")
    weights = np.random.default_rng(0).integers(0, 4, len(X)) * scale
    expected = lightweight_coreset(X, 500, sample_weight=weights, random_state=0)
    fitted = VCGMM(9, coreset_size=500, random_state=0).fit(X, sample_weight=weights)
    for name, source in weighted_sources(tmp_path, X, weights):
        assert source.weighted, name
        assert source.shape == X.shape, name
        same(lightweight_coreset(source, 500, random_state=0), expected)
        model = VCGMM(9, coreset_size=500, random_state=0).fit(source)
        np.testing.assert_array_equal(model.means_, fitted.means_, err_msg=name)
        np.testing.assert_array_equal(model.counts_, fitted.counts_, err_msg=name)
        assert model.lower_bound_ == fitted.lower_bound_, name
        assert model.score(source) == fitted.score(X, sample_weight=weights), name
        assert model.quantization_error(source) == fitted.quantization_error(X, sample_weight=weights), name
        np.testing.assert_array_equal(model.predict(source), fitted.predict(X))


def test_weights_given_for_a_source_without(tmp_path: Path) -> None:
    X = rows_of("npy")
    weights = np.random.default_rng(0).uniform(0, 2, len(X))
    np.save(tmp_path / "X.npy", X)
    source = vcgmm.open(tmp_path / "X.npy")
    expected = lightweight_coreset(X, 500, sample_weight=weights, random_state=0)
    same(lightweight_coreset(source, 500, sample_weight=weights, random_state=0), expected)
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\), but X has 4000 rows"):
        VCGMM(2).fit(source, sample_weight=[1, 2, 3])
    with pytest.raises(
        ValueError, match=r"sample_weight is given, but .*X.npy was opened with weights of its own"
    ):
        VCGMM(2).fit(vcgmm.open(tmp_path / "X.npy", weights=weights), sample_weight=weights)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, -2.0, 3.0], r"The weight of .*, row 1, is -2.0: weights are finite and not negative"),
        ([1.0, 2.0, np.nan], r"row 2, is nan"),
        ([0.0, 0.0, 0.0], r"are zero for every row"),
        ([1e308, 1e308, 1e308], r"sum to infinity"),
        ([1.0, 2.0], r"weights holds 2 weights, but .* has 3 rows"),
        (np.ones((3, 2)), r"weights has shape \(3, 2\): give one weight per row"),
    ],
)
def test_weights_that_are_no_good(weights: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        lightweight_coreset(vcgmm.open([np.eye(3)], weights=weights), 2)


def test_a_file_of_several_columns_is_no_weights(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.ones((5, 2)))
    with pytest.raises(ValueError, match=r"w.npy has 2 columns, but weights are one number per row"):
        vcgmm.open([np.ones((5, 3))], weights=tmp_path / "w.npy")


# ----------------------------------------------------------------------------------------------- names of features


def test_names_of_features_are_learned_and_compared(tmp_path: Path) -> None:
    import pandas as pd

    X = rows_of("csv")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame.to_csv(tmp_path / "X.csv", index=False)
    source = vcgmm.open(tmp_path / "X.csv")
    model = VCGMM(4, random_state=0).fit(source)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert model.n_features_in_ == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_array_equal(model.predict(frame), model.predict(source))
    with pytest.raises(ValueError, match=r"X.csv has 'b' as feature 0, but the model was fitted with 'a' there"):
        model.predict(vcgmm.open(tmp_path / "X.csv", columns=["b", "a", "c"]))
    with pytest.raises(ValueError, match=r"X.csv has 2 features, but VCGMM is expecting 3 features as input"):
        model.predict(vcgmm.open(f"{tmp_path}/X.csv:a,b"))
    np.save(tmp_path / "X.npy", X)
    np.testing.assert_array_equal(model.predict(vcgmm.open(tmp_path / "X.npy")), model.predict(source))
    model.fit(vcgmm.open(tmp_path / "X.npy"))
    assert not hasattr(model, "feature_names_in_")


def test_columns_are_chosen_by_name_and_number(tmp_path: Path) -> None:
    (tmp_path / "X.csv").write_text("# a,b,c\n1,2,3\n4,5,6\n")
    for columns in (["c", "a"], [2, 0], ["c", 0]):
        source = vcgmm.open(tmp_path / "X.csv", columns=columns)
        assert source.columns == ("c", "a")
        np.testing.assert_array_equal(source, [[3, 1], [6, 4]])
    np.testing.assert_array_equal(vcgmm.open(f"{tmp_path}/X.csv:c,a"), [[3, 1], [6, 4]])


# ----------------------------------------------------------------------------------------- passes, memory, writing


def test_a_source_of_unknown_length_is_counted_once() -> None:
    passes: list[int] = []
    X = rows_of("list")

    def blocks() -> Iterator[np.ndarray]:
        passes.append(1)
        yield from np.array_split(X, 5)

    source = vcgmm.open(blocks)
    assert "an unknown number of rows" in repr(source)
    passes.clear()
    VCGMM(4, coreset_size=100, random_state=0).fit(source)
    assert len(passes) == 3  # to count, to add up, to draw
    lightweight_coreset(source, 100, random_state=0)
    assert len(passes) == 5


def test_different_points_are_found_in_as_few_passes_as_there_can_be(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(30, 2)), 100, axis=0)[rng.permutation(3000)].astype(np.float32)
    X[:2000] = X[0]
    expected = VCGMM(25, coreset_size=26, random_state=0).fit(X)
    np.save(tmp_path / "X.npy", X)
    model = VCGMM(25, coreset_size=26, random_state=0).fit(vcgmm.open(tmp_path / "X.npy"))
    assert len(np.unique(model.coreset_.points, axis=0)) >= 25
    same(model.coreset_, expected.coreset_)
    # Rows of next to no weight are met by no draw, and looked up.
    weights = np.where(np.arange(3000) < 2000, 1.0, 1e-12)
    rare = VCGMM(10, coreset_size=20, random_state=0).fit(vcgmm.open(tmp_path / "X.npy", weights=weights))
    same(rare.coreset_, VCGMM(10, coreset_size=20, random_state=0).fit(X, sample_weight=weights).coreset_)
    assert len(np.unique(rare.coreset_.points, axis=0)) == 10


@pytest.mark.parametrize("suffix", [".npy", ".parquet"])
def test_labels_and_densities_go_straight_to_a_file(tmp_path: Path, suffix: str) -> None:
    from vcgmm.data.opening import open_vector

    X = rows_of("npy")
    np.save(tmp_path / "X.npy", X)
    source = vcgmm.open(tmp_path / "X.npy")
    model = VCGMM(9, random_state=0).fit(X)
    for data in (X, source):
        assert model.predict(data, output=tmp_path / f"labels{suffix}") is None
        labels = open_vector(tmp_path / f"labels{suffix}")
        assert labels.dtype == np.int32
        np.testing.assert_array_equal(np.asarray(labels)[:, 0], model.predict(X))
        assert model.score_samples(data, output=tmp_path / f"scores{suffix}") is None
        scores = open_vector(tmp_path / f"scores{suffix}")
        np.testing.assert_array_equal(np.asarray(scores)[:, 0], model.score_samples(X))


@pytest.mark.on_cpu  # a GPU refuses rows that are so far away
@pytest.mark.parametrize("together", [1, 1 << 25])
def test_approximate_labels_are_those_of_the_array(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    monkeypatch.setattr("vcgmm.evaluation.VALUES_TOGETHER", together)
    monkeypatch.setattr("vcgmm.evaluation.LEAST_TOGETHER", 1000)
    monkeypatch.setattr("vcgmm.algorithm.passes.routing.ALL_COMPARED", 8)
    X = rows_of("npy")
    X[5] = 1e30  # too far away for float32
    model = VCGMM(600, random_state=0, max_iter=3, tol=1.0).fit(X[6:])
    expected = model.predict(X, method="approximate")
    source = vcgmm.open(np.array_split(X, 3))
    np.testing.assert_array_equal(model.predict(source, method="approximate"), expected)
    model.predict(source, method="approximate", output=tmp_path / "labels.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected)
    exact = model.predict(X)
    assert (exact == expected).mean() > 0.9
    assert exact[5] == expected[5]


def test_rows_that_are_no_good_leave_no_labels(tmp_path: Path) -> None:
    X = rows_of("npy")
    model = VCGMM(9, random_state=0).fit(X)
    X[3999, 1] = np.nan
    with pytest.raises(ValueError, match=r"contains NaN: the first in row 3999, feature 1"):
        model.predict(vcgmm.open([X]), output=tmp_path / "labels.npy")
    assert list(tmp_path.iterdir()) == []


MEMORY = """
import resource, sys
import numpy as np, vcgmm

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

rng = np.random.default_rng(0)
small = rng.normal(size=(20_000, 64)).astype(np.float32)
np.save(sys.argv[1] + "/small.npy", small)
model = vcgmm.VCGMM(8, coreset_size=1000, random_state=0, n_threads=2)
model.fit(vcgmm.open(sys.argv[1] + "/small.npy")).predict(vcgmm.open(sys.argv[1] + "/small.npy"))
before = peak()
model.fit(vcgmm.open(sys.argv[1] + "/large.npy"))
model.predict(vcgmm.open(sys.argv[1] + "/large.npy"), output=sys.argv[1] + "/labels.npy")
print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are told in other units elsewhere")
def test_the_process_does_not_grow_with_the_file(tmp_path: Path) -> None:
    n = 2_000_000  # 512 MB, of which the disk holds the beginning and the end only
    with (tmp_path / "large.npy").open("wb") as file:
        header = {"descr": "<f4", "fortran_order": False, "shape": (n, 64)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32).tobytes())
        begin = file.tell()
        file.truncate(begin + (n - 1000) * 256)
    script = [sys.executable, "-c", MEMORY, str(tmp_path)]
    result = subprocess.run(script, capture_output=True, text=True, check=True)
    assert float(result.stdout) < 150  # megabytes: parts in hand, and what the C library keeps of them
