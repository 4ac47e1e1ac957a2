"""How an entry of the plan is run and measured."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.metrics import normalized_mutual_info_score

from vcgmm import VCGMM
from vcgmm.algorithm.coreset.frame import moments
from vcgmm.algorithm.yardsticks import k_means
from vcgmm.data import ArrayRows
from vcgmm.datasets import load_cifar10, load_kdd, load_prepared, load_rna, load_song, load_susy
from vcgmm.evaluation import Evaluator
from vcgmm.parallel import Workers
from vcgmm.validation import draw_seed

from .plan import STUDIES, Entry, baseline
from .records import Records

#: The most iterations of any algorithm; none needs so many.
MAX_ITER = 500


LOADERS = {"kdd": load_kdd, "rna": load_rna, "susy": load_susy, "song": load_song}


@dataclass
class Data:
    """A set: the rows that are clustered, and those on which errors are told (the same but for cifar10)."""

    name: str
    rows: np.ndarray
    judged: np.ndarray
    narrow: np.ndarray | None = field(default=None, repr=False)

    def of(self, condition: str) -> np.ndarray:
        """The rows in the type that a condition asks for."""
        if condition == "paper":
            return self.rows
        if self.narrow is None:
            self.narrow = self.rows.astype(np.float32)
        return self.narrow


def load(name: str) -> Data:
    """A set from $VCGMM_DATA, in float64 as in the paper."""
    if name == "cifar10":
        train, test = (part.astype(np.float64) for part in load_cifar10())
        return Data(name, train, test)
    rows = (LOADERS[name]() if name in LOADERS else load_prepared(name)).astype(np.float64)
    return Data(name, rows, rows)


@dataclass
class Outcome:
    """Centres (C, D), and what finding them took: seconds and distances by step, iterations, points N'."""

    means: np.ndarray
    seconds: dict[str, float]
    distances: dict[str, int]
    iterations: int
    n_points: int
    bound: float | None = None


def split_g(g: str | None) -> dict:
    """C', G and the number of random clusters from words such as "3+1"."""
    near, _, explored = (g or "5").partition("+")
    return {"truncation": int(near), "n_neighbors": int(near), "n_explore": int(explored or 0)}


def fit(entry: Entry, rows: np.ndarray, records: Records) -> Outcome:
    """Run one entry on its rows."""
    n_threads = 1 if entry.condition == "paper" else None
    if entry.algorithm == "scikit-learn":
        return fit_sklearn(entry, rows, records)
    if entry.algorithm in ("k-means++", "LWCS", "AFK-MC2"):
        return fit_yardstick(entry, rows, n_threads)
    if entry.algorithm in ("vc-GMM", "var-GMM-S"):
        chosen = {"search": "pointwise", "init": "afkmc2", "relaxation": 1.0, **split_g(entry.g)}
        chosen |= {"chain_length": entry.chain_length, "coreset_size": entry.size, "n_warmup": entry.n_warmup}
    elif entry.algorithm == "ours":
        chosen = {"coreset_size": entry.size}
    else:  # untouched
        chosen = {}
    common = {"tol": entry.tol, "max_iter": MAX_ITER, "random_state": entry.seed, "n_threads": n_threads}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = VCGMM(entry.n_clusters, **common, **chosen).fit(rows)
    distances, n_points = dict(model.n_distance_evaluations_), len(model.coreset_.points)
    if n_points == len(rows):  # no coreset: the paper counts no distances for it
        distances["coreset"] = 0
    return Outcome(model.means_, model.timings_, distances, model.n_iter_, n_points, model.lower_bound_)


def fit_yardstick(entry: Entry, rows: np.ndarray, n_threads: int | None) -> Outcome:
    """k-means++, k-means on a coreset, or AFK-MC^2 alone."""
    with Workers(n_threads) as workers:
        found = k_means(
            ArrayRows(rows), entry.n_clusters,
            init="k-means++" if entry.algorithm == "k-means++" else "afkmc2",
            chain_length=entry.chain_length or 1, coreset_size=entry.size, tol=entry.tol,
            max_iter=0 if entry.algorithm == "AFK-MC2" else MAX_ITER,
            seed=draw_seed(entry.seed), dtype=rows.dtype, workers=workers,
        )  # fmt: skip
    bound = found.bounds[-1] if found.bounds else None
    return Outcome(found.means, found.timings, found.n_evaluations, len(found.bounds), found.n_points, bound)


def fit_sklearn(entry: Entry, rows: np.ndarray, records: Records) -> Outcome:
    """scikit-learn's k-means++, for as many iterations as ours took from the same seed.

    Its own rule, on the squared movement of the centres, is another one and mostly takes far longer.
    """
    from sklearn.cluster import KMeans
    from threadpoolctl import threadpool_limits

    ours = records.find(baseline(STUDIES[f"{entry.set}-{entry.n_clusters}"], entry.seed))
    n_iter = 13 if ours is None else ours["iterations"]
    model = KMeans(entry.n_clusters, n_init=1, max_iter=n_iter, tol=0.0, random_state=entry.seed, copy_x=False)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        begun = time.perf_counter()
        model.fit(rows)
        seconds = time.perf_counter() - begun
    return Outcome(model.cluster_centers_, {"all": seconds}, {}, model.n_iter_, len(rows))


def judge(rows: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, float]:
    """Labels and quantization error of rows, exact, in float64, outside the clock."""
    source = ArrayRows(rows)
    with Workers(None) as workers:
        frame = moments(source, None, workers, _silent).frame(np.dtype(np.float64))
        return Evaluator(means, frame, workers, _silent).labels_and_error(source, None)


def measure(entry: Entry, data: Data, records: Records, labels: Path) -> dict:
    """Run an entry, and tell its error and its agreement with k-means++ of the same seed.

    Parameters
    ----------
    entry : Entry
    data : Data
    records : Records
        Of k-means++, for scikit-learn.
    labels : Path
        Folder in which the partitions of k-means++ are kept for the runs to come.
    """
    rows = data.of(entry.condition)
    begun, busy = time.perf_counter(), time.process_time()
    outcome = fit(entry, rows, records)
    busy = (time.process_time() - busy) / (time.perf_counter() - begun)
    found, error = judge(data.judged, outcome.means)
    study = STUDIES[f"{entry.set}-{entry.n_clusters}"]
    path = labels / f"{study.name}-{entry.seed}.npy"
    if entry == baseline(study, entry.seed):
        labels.mkdir(parents=True, exist_ok=True)
        np.save(path, found)
    nmi = None
    if path.exists():
        nmi = round(float(normalized_mutual_info_score(np.load(path), found)), 5)
    return {
        **entry.key(),
        "error": error,
        "nmi": nmi,
        "iterations": outcome.iterations,
        "n_points": outcome.n_points,
        "bound": outcome.bound,
        "seconds": {name: round(value, 5) for name, value in outcome.seconds.items()},
        "busy": round(busy, 4),
        "distances": outcome.distances,
        "wall": round(time.perf_counter() - begun, 2),
    }


def warm_up(data: Data, entries: list[Entry], records: Records) -> None:
    """Compile every kernel that the entries need, on a few of the rows."""
    few = 8
    seen = set()
    for entry in entries:
        kind = (entry.algorithm, entry.condition, entry.size is None, bool(entry.g and "+" in entry.g))
        if kind not in seen:
            seen.add(kind)
            small = Entry(
                entry.set, few, entry.algorithm, entry.seed, entry.size and 512, entry.g, entry.chain_length,
                entry.n_warmup, entry.tol, entry.condition,
            )  # fmt: skip
            if entry.algorithm != "scikit-learn":
                fit(small, data.of(entry.condition)[:2048].copy(), records)


def _silent(amount: int) -> None:
    """Nothing is told while an error is computed."""
