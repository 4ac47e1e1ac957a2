"""Every kind of source, made of the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

import vcgmm
from vcgmm.data import Source
from vcgmm.data.writing import write_array

Make = Callable[[Path, np.ndarray], Source]


def _npy(folder: Path, X: np.ndarray) -> Source:
    np.save(folder / "X.npy", X)
    return vcgmm.open(folder / "X.npy")


def _fortran(folder: Path, X: np.ndarray) -> Source:
    np.save(folder / "X.npy", np.asfortranarray(X))
    return vcgmm.open(folder / "X.npy")


def _npz(folder: Path, X: np.ndarray) -> Source:
    np.savez(folder / "X.npz", other=np.ones(3), X=X)
    return vcgmm.open(f"{folder}/X.npz:X")


def _packed(folder: Path, X: np.ndarray) -> Source:
    np.savez_compressed(folder / "X.npz", X=X)
    return vcgmm.open(folder / "X.npz")


def _fortran_npz(folder: Path, X: np.ndarray) -> Source:
    np.savez(folder / "X.npz", np.asfortranarray(X))
    return vcgmm.open(folder / "X.npz")


def _shards(folder: Path, X: np.ndarray) -> Source:
    cuts = [len(X) // 7, len(X) // 7, len(X) // 2]  # one of them is empty
    for i, piece in enumerate(np.split(X, cuts)):
        np.save(folder / f"part{i}.npy", piece)
    return vcgmm.open(folder)


def _pattern(folder: Path, X: np.ndarray) -> Source:
    for i, piece in enumerate(np.array_split(X, 3)):
        np.save(folder / f"part{i}.npy", piece)
    np.save(folder / "other.npy", np.ones((3, 99)))
    return vcgmm.open(f"{folder}/part*.npy")


def _csv(folder: Path, X: np.ndarray) -> Source:
    write_array(folder / "X.csv", X, [f"f{i}" for i in range(X.shape[1])])
    return vcgmm.open(folder / "X.csv")


def _tsv(folder: Path, X: np.ndarray) -> Source:
    write_array(folder / "X.tsv", X, [f"f{i}" for i in range(X.shape[1])])
    return vcgmm.open(folder / "X.tsv")


def _raw(folder: Path, X: np.ndarray) -> Source:
    X.tofile(folder / "X.dat")
    return vcgmm.open(folder / "X.dat", dtype=X.dtype, shape=(-1, X.shape[1]))


def _vecs(folder: Path, X: np.ndarray) -> Source:
    record = np.dtype([("length", "<i4"), ("row", X.dtype, X.shape[1])])
    out = np.empty(len(X), record)
    out["length"], out["row"] = X.shape[1], X
    path = folder / {"f": "X.fvecs", "u": "X.bvecs", "i": "X.ivecs"}[X.dtype.kind]
    out.tofile(path)
    return vcgmm.open(path)


def _bin(folder: Path, X: np.ndarray) -> Source:
    path = folder / {"f": "X.fbin", "u": "X.u8bin", "i": "X.ibin"}[X.dtype.kind]
    path.write_bytes(np.array(X.shape, "<u4").tobytes() + X.tobytes())
    return vcgmm.open(path)


def _parquet(folder: Path, X: np.ndarray) -> Source:
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({f"f{i}": column for i, column in enumerate(X.T)})
    parquet.write_table(table, folder / "X.parquet", row_group_size=max(1, len(X) // 5))
    return vcgmm.open(folder / "X.parquet")


def _vectors(fixed: bool) -> Make:
    def make(folder: Path, X: np.ndarray) -> Source:
        import pyarrow as pa
        from pyarrow import parquet

        values = pa.array(X.ravel())
        if fixed:
            column = pa.FixedSizeListArray.from_arrays(values, X.shape[1])
        else:
            column = pa.ListArray.from_arrays(np.arange(0, X.size + 1, X.shape[1], dtype=np.int32), values)
        table = pa.table({"id": np.arange(len(X)), "vector": column})
        parquet.write_table(table, folder / "X.parquet", row_group_size=max(1, len(X) // 3))
        return vcgmm.open(folder / "X.parquet")

    return make


def _feather(folder: Path, X: np.ndarray) -> Source:
    import pyarrow as pa
    from pyarrow import feather

    table = pa.table({f"f{i}": np.ascontiguousarray(column) for i, column in enumerate(X.T)})
    feather.write_feather(table, folder / "X.feather", chunksize=max(1, len(X) // 4))
    return vcgmm.open(folder / "X.feather")


def _hdf5(folder: Path, X: np.ndarray) -> Source:
    import h5py

    with h5py.File(folder / "X.h5", "w") as file:
        file.create_dataset("group/X", data=X, chunks=(max(1, min(7, len(X))), X.shape[1]), compression="gzip")
        file["one"] = np.ones(3)
    return vcgmm.open(folder / "X.h5")


def _zarr(folder: Path, X: np.ndarray) -> Source:
    import zarr

    zarr.save_array(str(folder / "X.zarr"), X)
    return vcgmm.open(folder / "X.zarr")


def _zarr_group(folder: Path, X: np.ndarray) -> Source:
    import zarr

    zarr.save_group(str(folder / "store"), a=X[:2], b=X)
    return vcgmm.open(folder / "store", key="b")


def _list(folder: Path, X: np.ndarray) -> Source:
    return vcgmm.open(np.array_split(X, 4))


def _function(folder: Path, X: np.ndarray) -> Source:
    def blocks() -> Iterator[np.ndarray]:
        for first in range(0, len(X), 11):
            yield X[first : first + 11]

    return vcgmm.open(blocks)


def _array(folder: Path, X: np.ndarray) -> Source:
    return vcgmm.open(X)


def _weighted(folder: Path, X: np.ndarray) -> Source:
    np.save(folder / "X.npy", X)
    return vcgmm.open(folder / "X.npy", weights=np.arange(len(X)))


#: How to make each kind, and the types in which its rows come.
KINDS: dict[str, tuple[Make, tuple[str, ...]]] = {
    "npy": (_npy, ("f4", "f8", ">f8", "f2", "u1", "i8", "?")),
    "npy in Fortran order": (_fortran, ("f4", "u1")),
    "npz": (_npz, ("f4", ">f4", "u1")),
    "packed npz": (_packed, ("f4", "f2")),
    "npz in Fortran order": (_fortran_npz, ("f4",)),
    "shards": (_shards, ("f4", "u1")),
    "pattern": (_pattern, ("f4",)),
    "csv": (_csv, ("f8",)),
    "tsv": (_tsv, ("f8",)),
    "raw": (_raw, ("f4", "f2", ">i2")),
    "vecs": (_vecs, ("f4", "u1", "i4")),
    "bin": (_bin, ("f4", "u1", "i4")),
    "parquet": (_parquet, ("f4", "f8", "u1", "f2")),
    "parquet of lists": (_vectors(False), ("f4",)),
    "parquet of fixed lists": (_vectors(True), ("f4", "u1", "f2")),
    "feather": (_feather, ("f4", "f8")),
    "hdf5": (_hdf5, ("f4", "u1")),
    "zarr": (_zarr, ("f4", "f2")),
    "zarr group": (_zarr_group, ("f8",)),
    "list": (_list, ("f4", "u1")),
    "function": (_function, ("f4",)),
    "array": (_array, ("f4",)),
    "weighted": (_weighted, ("f4",)),
}

CASES = [(kind, dtype) for kind, (_, dtypes) in KINDS.items() for dtype in dtypes]


def some_rows(dtype: str, n: int = 101, d: int = 3, seed: int = 0) -> np.ndarray:
    """Rows of any type, none twice in a row."""
    return (np.random.default_rng(seed).random((n, d)) * 100).astype(dtype)
