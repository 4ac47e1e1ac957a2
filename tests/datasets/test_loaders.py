"""Small files in the format of the originals; the sizes that are checked are made small too."""

from __future__ import annotations

import gzip
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from vcgmm.datasets import (
    cifar10,
    kdd,
    load_cifar10,
    load_kdd,
    load_prepared,
    load_rna,
    load_song,
    load_susy,
    rna,
    song,
    susy,
    tables,
)


@pytest.fixture(autouse=True)
def small_sets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Sets of a few rows, in a folder that VCGMM_DATA names."""
    monkeypatch.setenv("VCGMM_DATA", str(tmp_path))
    for module, n_samples in ((kdd, 5), (susy, 4), (song, 3)):
        monkeypatch.setattr(module, "N_SAMPLES", n_samples)
    monkeypatch.setattr(rna, "FILES", {"cod-rna": 3, "cod-rna.t": 2, "cod-rna.r": 1})
    monkeypatch.setattr(cifar10, "N_BATCH", 2)
    monkeypatch.setattr(cifar10, "N_TRAIN", 10)
    monkeypatch.setattr(cifar10, "N_TEST", 2)
    monkeypatch.setattr(tables, "LINES", 2)  # several blocks of lines


def numbers(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=30, size=(n, d)).round(2)


def write_kdd(folder: Path, n: int = 5, width: int = 74) -> np.ndarray:
    rows = numbers(n, width)
    lines = [f"279\t{261532 + i}\t{i % 2}\t" + "\t".join(f"{v:.2f}" for v in row) for i, row in enumerate(rows)]
    (folder / "bio_train.dat").write_text("\n".join(lines) + "\n")
    return rows.astype(np.float32)


def write_susy(folder: Path, n: int = 4, *, packed: bool = False) -> np.ndarray:
    rows = numbers(n, 18)
    text = "".join("1.000000000000000000e+00," + ",".join(f"{v:.18e}" for v in row) + "\n" for row in rows)
    if packed:
        (folder / "SUSY.csv.gz").write_bytes(gzip.compress(text.encode()))
    else:
        (folder / "SUSY.csv").write_text(text)
    return rows.astype(np.float32)


def write_song(folder: Path, n: int = 3) -> np.ndarray:
    rows = numbers(n, 90)
    text = "".join(f"{2001 + i}," + ",".join(f"{v:.5f}" for v in row) + "\n" for i, row in enumerate(rows))
    (folder / "YearPredictionMSD.txt").write_text(text)
    return rows.astype(np.float32)


def write_rna(folder: Path, counts: tuple[int, ...] = (3, 2, 1)) -> np.ndarray:
    pieces = []
    for seed, (name, n) in enumerate(zip(("cod-rna", "cod-rna.t", "cod-rna.r"), counts, strict=True)):
        rows = numbers(n, 8, seed)
        rows[0, 3] = 0.0  # left out of the file, as zeros are
        lines = ["-1 " + " ".join(f"{i}:{value}" for i, value in enumerate(row, 1) if value != 0) for row in rows]
        (folder / name).write_text("\n".join(lines) + "\n")
        pieces.append(rows)
    return np.concatenate(pieces).astype(np.float32)


def write_cifar10(folder: Path, n: int = 2) -> np.ndarray:
    folder.mkdir(exist_ok=True)
    images = np.random.default_rng(0).integers(0, 256, (6, n, 3072), dtype=np.uint8)
    for name, batch in zip((*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"), images, strict=True):
        content = {b"batch_label": b"a batch", b"labels": [0] * n, b"data": batch, b"filenames": [b"x.png"] * n}
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    return images.reshape(6 * n, 3072)


def test_kdd_leaves_out_block_example_and_target(tmp_path: Path) -> None:
    rows = write_kdd(tmp_path)
    np.testing.assert_array_equal(load_kdd(), rows)


@pytest.mark.parametrize("packed", [False, True])
def test_susy_leaves_out_the_class(tmp_path: Path, packed: bool) -> None:
    rows = write_susy(tmp_path, packed=packed)
    np.testing.assert_array_equal(load_susy(), rows)


def test_song_leaves_out_the_year(tmp_path: Path) -> None:
    rows = write_song(tmp_path)
    np.testing.assert_array_equal(load_song(), rows)


def test_rna_is_all_three_files_with_their_zeros(tmp_path: Path) -> None:
    rows = write_rna(tmp_path)
    np.testing.assert_array_equal(load_rna(), rows)


@pytest.mark.parametrize("subfolder", ["", "cifar-10-batches-py"])
def test_cifar10_comes_as_training_and_test_images(tmp_path: Path, subfolder: str) -> None:
    images = write_cifar10(tmp_path / subfolder)
    train, test = load_cifar10(noise=False)
    np.testing.assert_array_equal(train, images[:10])
    np.testing.assert_array_equal(test, images[10:])


def test_noise_is_uniform_and_seeded(tmp_path: Path) -> None:
    images = write_cifar10(tmp_path)
    train, test = load_cifar10()
    noise = np.vstack([train, test]) - images
    assert train.dtype == np.float32
    assert noise.min() >= 0
    assert noise.max() <= 1
    np.testing.assert_allclose(noise.mean(), 0.5, atol=0.01)
    np.testing.assert_array_equal(load_cifar10()[0], train)
    assert (load_cifar10(random_state=1)[0] != train).mean() > 0.9


LOADERS = [
    (load_kdd, "kdd", 74, "bio_train.dat", "cornell.edu"),
    (load_rna, "rna", 8, "cod-rna", "csie.ntu.edu.tw"),
    (load_cifar10, "cifar10", 3072, "data_batch_1", "toronto.edu"),
    (load_susy, "susy", 18, "SUSY.csv", "archive.ics.uci.edu"),
    (load_song, "song", 90, "YearPredictionMSD.txt", "archive.ics.uci.edu"),
]


@pytest.mark.parametrize(("loader", "name", "width", "file", "where"), LOADERS)
def test_a_missing_file_is_named_with_where_to_get_it(
    loader: Callable[[], object], name: str, width: int, file: str, where: str
) -> None:
    with pytest.raises(FileNotFoundError, match=rf"{file} is missing: get .*{where}.*VCGMM_DATA"):
        loader()


@pytest.mark.parametrize(("loader", "name", "width", "file", "where"), LOADERS)
def test_a_prepared_file_is_used_and_its_width_checked(
    loader: Callable[..., np.ndarray], name: str, width: int, file: str, where: str, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    rows = np.arange(12 * width, dtype=np.int64).reshape(12, width).astype(np.uint8)
    np.save(folder / f"{name}.npy", rows)
    found = np.vstack(load_cifar10(folder, noise=False)) if loader is load_cifar10 else loader(folder)
    np.testing.assert_array_equal(found, rows)
    np.save(folder / f"{name}.npy", rows[:, 1:])
    with pytest.raises(ValueError, match=rf"{name}.npy has {width - 1} columns, but {name} has {width}"):
        loader(folder)


@pytest.mark.parametrize(
    ("loader", "write"),
    [(load_kdd, write_kdd), (load_susy, write_susy), (load_song, write_song)],
)
def test_another_number_of_rows_is_refused(
    loader: Callable[[], np.ndarray], write: Callable[[Path, int], np.ndarray], tmp_path: Path
) -> None:
    write(tmp_path, 7)
    with pytest.raises(ValueError, match=r"has 7 rows, but the set has \d: it is cut off"):
        loader()


def test_rows_of_every_rna_file_are_counted(tmp_path: Path) -> None:
    write_rna(tmp_path, (3, 4, 1))
    with pytest.raises(ValueError, match=r"cod-rna\.t has 4 rows, but the set has 2"):
        load_rna()


def test_a_prepared_cifar10_has_all_images(tmp_path: Path) -> None:
    np.save(tmp_path / "cifar10.npy", np.zeros((11, 3072), np.uint8))
    with pytest.raises(ValueError, match=r"cifar10\.npy has 11 rows, but the set has 12"):
        load_cifar10()


def test_a_line_of_another_width_is_named(tmp_path: Path) -> None:
    write_kdd(tmp_path)
    path = tmp_path / "bio_train.dat"
    lines = path.read_text().splitlines()
    lines[3] = lines[3].rpartition("\t")[0]
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"bio_train\.dat, line 4, has 76 columns, but the set has 77"):
        load_kdd()


def test_what_is_no_number_is_named(tmp_path: Path) -> None:
    write_song(tmp_path)
    path = tmp_path / "YearPredictionMSD.txt"
    lines = path.read_text().splitlines()
    lines[2] = lines[2].replace(",", ",x", 1)
    path.write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"YearPredictionMSD\.txt, line 3: could not convert"):
        load_song()


def test_blank_lines_are_passed_over(tmp_path: Path) -> None:
    rows = write_song(tmp_path)
    path = tmp_path / "YearPredictionMSD.txt"
    path.write_text("\n" + path.read_text() + "\n\n")
    np.testing.assert_array_equal(load_song(), rows)


def test_a_file_that_is_no_libsvm_is_named(tmp_path: Path) -> None:
    write_rna(tmp_path)
    (tmp_path / "cod-rna.t").write_text("1 9:0.5\n")
    with pytest.raises(ValueError, match=r"cod-rna\.t is no file in LIBSVM format with features 1 to 8"):
        load_rna()


def test_a_pickle_that_would_run_code_is_refused(tmp_path: Path) -> None:
    write_cifar10(tmp_path)
    (tmp_path / "data_batch_3").write_bytes(pickle.dumps({b"data": Path("/")}))
    with pytest.raises(ValueError, match=r"data_batch_3 is no batch of CIFAR-10 .*which is no array"):
        load_cifar10()


@pytest.mark.parametrize(
    "content",
    [{b"data": np.zeros((2, 3071), np.uint8)}, {b"data": np.zeros((2, 3072))}, {b"data": [1, 2]}, {b"x": 1}, [1]],
)
def test_batches_without_images_are_refused(tmp_path: Path, content: object) -> None:
    write_cifar10(tmp_path)
    (tmp_path / "data_batch_2").write_bytes(pickle.dumps(content))
    with pytest.raises(ValueError, match=r"data_batch_2 (is no batch|holds no images)"):
        load_cifar10()


def test_a_batch_of_another_length_is_refused(tmp_path: Path) -> None:
    write_cifar10(tmp_path, n=3)
    with pytest.raises(ValueError, match="data_batch_1 has 3 rows, but the set has 2"):
        load_cifar10()


def test_a_prepared_set_of_any_name(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", np.ones((3, 2)))
    np.testing.assert_array_equal(load_prepared("mine"), np.ones((3, 2)))
    with pytest.raises(FileNotFoundError, match=r"yours\.npy is missing: save the set there"):
        load_prepared("yours")
    np.save(tmp_path / "flat.npy", np.ones(3))
    with pytest.raises(ValueError, match=r"flat\.npy holds an array of shape \(3,\)"):
        load_prepared("flat")
