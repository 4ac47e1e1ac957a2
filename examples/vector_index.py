"""A codebook for a vector index: search a few clusters instead of all vectors.

The clusters of a mixture are the inverted lists of an index. A query is compared with the vectors of the `probes`
clusters nearest to it, and the question is how many of its true neighbours it finds there.

    python examples/vector_index.py --data vectors.npy --clusters 1024

With faiss installed the index is a faiss IndexIVFFlat made by `to_faiss`; without it, one in a few lines of NumPy.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import vcgmm
from vcgmm import VCGMM

Search = Callable[[np.ndarray, int, int], np.ndarray]
"""Takes queries (n, D), k and the number of probes; returns the k nearest vectors found, (n, k)."""


def make_vectors(n_samples: int, seed: int = 0) -> np.ndarray:
    """Vectors like those of words or images: many overlapping clusters on a few dozen dimensions."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(max(2, n_samples // 100), 32))
    noise = rng.normal(scale=0.7, size=(n_samples, 32))
    return (centers[rng.integers(len(centers), size=n_samples)] + noise).astype(np.float32)


def faiss_search(model: VCGMM, vectors: np.ndarray) -> Search:
    """Search with faiss: our clusters as its inverted lists."""
    index = model.to_faiss("ivf")
    index.add(vectors)

    def search(queries: np.ndarray, k: int, probes: int) -> np.ndarray:
        index.nprobe = probes
        found: np.ndarray = index.search(queries, k)[1]
        return found

    return search


def numpy_search(model: VCGMM, vectors: np.ndarray) -> Search:
    """Search with NumPy: the members of the nearest clusters, query by query."""
    labels = model.predict(vectors)
    order = np.argsort(labels, kind="stable")
    starts = np.searchsorted(labels[order], np.arange(len(model.means_) + 1))

    def search(queries: np.ndarray, k: int, probes: int) -> np.ndarray:
        clusters = model.nearest(queries, probes)[1]
        found = np.full((len(queries), k), -1)
        for i, query in enumerate(queries):
            members = np.concatenate([order[starts[c] : starts[c + 1]] for c in clusters[i]])
            distances = ((vectors[members] - query) ** 2).sum(axis=1)
            nearest = members[np.argsort(distances)[:k]]
            found[i, : len(nearest)] = nearest
        return found

    return search


def exact_search(vectors: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """The k nearest of all vectors, (n, k)."""
    out = np.empty((len(queries), k), int)
    squares = (vectors**2).sum(axis=1)
    for i, query in enumerate(queries):
        distances = squares - 2 * vectors @ query
        nearest = np.argpartition(distances, k)[:k]
        out[i] = nearest[np.argsort(distances[nearest])]
    return out


def recall(found: np.ndarray, truth: np.ndarray) -> float:
    """Share of the true neighbours that were found."""
    return float(np.mean([len(np.intersect1d(a, b)) / len(b) for a, b in zip(found, truth, strict=True)]))


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Build an index and print its recall by number of probes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="vectors, whatever vcgmm.open takes; default: made up")
    parser.add_argument("--samples", type=int, default=100_000, help="vectors to make up")
    parser.add_argument("--clusters", type=int, default=512)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--numpy", action="store_true", help="do without faiss")
    options = parser.parse_args(arguments)

    every = vcgmm.open(options.data) if options.data else make_vectors(options.samples)
    every = np.ascontiguousarray(every, dtype=np.float32)
    rng = np.random.default_rng(1)
    chosen = rng.permutation(len(every))
    queries, vectors = every[chosen[: options.queries]], every[chosen[options.queries :]]

    begun = time.perf_counter()
    model = VCGMM(n_components=options.clusters, random_state=0).fit(vectors)
    print(f"{len(vectors):,} vectors in {options.clusters:,} clusters in {time.perf_counter() - begun:.2f} s")
    if options.numpy:
        search, name = numpy_search(model, vectors), "NumPy"
    else:
        try:
            search, name = faiss_search(model, vectors), "faiss"
        except ImportError:
            search, name = numpy_search(model, vectors), "NumPy"

    truth = exact_search(vectors, queries, 10)
    results = []
    print(f"searched with {name}; recall of the 10 nearest of {len(queries)} queries:")
    for probes in (1, 2, 4, 8, 16, 32):
        if probes > options.clusters:
            break
        begun = time.perf_counter()
        found = search(queries, 10, probes)
        milliseconds = 1000 * (time.perf_counter() - begun) / len(queries)
        results.append({"probes": probes, "recall": recall(found, truth)})
        print(f"{probes:4} probes: {results[-1]['recall']:6.1%}, {milliseconds:.3f} ms a query")
    return results


if __name__ == "__main__":
    main()
