"""Held-out log-likelihood against time: our mixtures beside scikit-learn's GaussianMixture.

    python benchmarks/models.py [SET ...] [--components 64 256 1024] [--types spherical diag] [--most-rows N]

Sets are .npy files in $VCGMM_DATA.  Features are standardised, a tenth of the rows (at most 20,000) is held out,
and both get the same rows, in float32 for us and float64 for scikit-learn.  The peer: k-means++ start (its time is
shown apart), tol 1e-3, max_iter 100, reg_covar 1e-6, which on standardised features is our own default.  A fit of
the peer that would take longer than --budget seconds, as judged by its first iteration, is cut to as many
iterations as fit into it, and marked so.  `--cost` measures what an E-step costs instead.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from vcgmm import VCGMM
from vcgmm.progress import Iteration

DATA = Path(os.environ.get("VCGMM_DATA", Path.home() / ".cache" / "vcgmm"))
SETS = ("kdd", "covtype", "glove50", "mnist")
HELD_OUT = 20_000


def standardised(name: str, most_rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit to and rows that are held out, float32."""
    rows = np.load(DATA / f"{name}.npy", mmap_mode="r")
    order = np.random.default_rng(0).permutation(len(rows))[:most_rows]
    X = np.asarray(rows[order], np.float64)
    spread = X.std(axis=0)
    X = ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).astype(np.float32)
    held_out = min(HELD_OUT, len(X) // 10)
    return X[held_out:], X[:held_out]


def ours(X: np.ndarray, n_components: int, kind: str, seed: int) -> tuple[VCGMM, float]:
    """A fit with all defaults, and its seconds."""
    begun = time.perf_counter()
    model = VCGMM(n_components, covariance_type=kind, random_state=seed).fit(X)
    return model, time.perf_counter() - begun


def theirs(
    X: np.ndarray, n_components: int, kind: str, seed: int, budget: float
) -> tuple[GaussianMixture, float, float, bool]:
    """scikit-learn's fit, seconds of its seeding and of its EM, and whether the budget has cut it short."""
    X = X.astype(np.float64)
    begun = time.perf_counter()
    kmeans_plusplus(X, n_components, random_state=seed)
    seeding = time.perf_counter() - begun
    settings = {"covariance_type": kind, "init_params": "k-means++", "tol": 1e-3, "reg_covar": 1e-6}

    def fit(max_iter: int) -> tuple[GaussianMixture, float]:
        begun = time.perf_counter()
        model = GaussianMixture(n_components, max_iter=max_iter, random_state=seed, **settings).fit(X)
        return model, time.perf_counter() - begun - seeding

    _, first = fit(1)
    most = int(min(100, max(2, budget // max(first, 1e-3))))
    model, seconds = fit(most)
    return model, seeding, seconds, most < 100 and not model.converged_


def compare(args: argparse.Namespace) -> None:
    """Print a line for each set, type and number of components."""
    print("set type C | ours: seconds, iterations, nats/dimension | theirs: seeding, EM, iterations, nats | ratio")
    for kind in args.types:  # compiled before the clock runs
        ours(np.random.default_rng(0).normal(size=(3000, 4)).astype(np.float32), 8, kind, 0)
    for name in args.sets or SETS:
        X, held_out = standardised(name, args.most_rows)
        scale = X.shape[1]
        for n_components in args.components:
            for kind in args.types:
                model, seconds = ours(X, n_components, kind, 0)
                score = model.score(held_out) / scale
                line = f"{name} {kind} {n_components} | {seconds:.2f} {model.n_iter_} {score:.4f}"
                if args.budget > 0:
                    peer, seeding, em, cut = theirs(X, n_components, kind, 0, args.budget)
                    peer_score = peer.score(held_out.astype(np.float64)) / scale
                    line += f" | {seeding:.2f} {em:.2f} {peer.n_iter_}{'*' if cut else ''} {peer_score:.4f}"
                    line += f" | {(seeding + em) / seconds:.1f}x, {score - peer_score:+.4f}"
                print(line, flush=True)


def note(stamps: list[float], _facts: Iteration) -> None:
    """Write down how much processor time has gone by: on a shared machine seconds tell little."""
    stamps.append(time.process_time())


def cost(args: argparse.Namespace) -> None:
    """Print what an iteration costs in processor time, relative to that of one variance and equal weights."""
    print("set C type: median processor seconds of an iteration, ratio to isotropic")
    for name in args.sets or SETS:
        X, _ = standardised(name, args.most_rows)
        for n_components in args.components:
            times: dict[str, list[float]] = {}
            for _ in range(3):  # in turn, so that whatever else runs slows all of them
                for kind in ("isotropic", *args.types):
                    stamps: list[float] = []
                    settings = {"random_state": 0, "tol": 0, "max_iter": 24, "relaxation": 1.0}
                    watch = partial(note, stamps)
                    VCGMM(n_components, covariance_type=kind, callbacks=watch, **settings).fit(X)
                    times.setdefault(kind, []).extend(np.diff(stamps)[8:])
            for kind, seconds in times.items():
                ratio = np.median(seconds) / np.median(times["isotropic"])
                print(f"{name} {n_components} {kind}: {np.median(seconds):.4f} {ratio:.2f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--components", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--types", nargs="+", default=["spherical", "diag"])
    parser.add_argument("--most-rows", type=int)
    parser.add_argument("--budget", type=float, default=600.0, help="seconds for a fit of the peer; 0: none")
    parser.add_argument("--cost", action="store_true")
    warnings.simplefilter("ignore", ConvergenceWarning)
    arguments = parser.parse_args()
    (cost if arguments.cost else compare)(arguments)
