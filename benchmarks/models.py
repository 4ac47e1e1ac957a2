"""Held-out log-likelihood against time: our mixtures beside scikit-learn's GaussianMixture.

    python benchmarks/models.py [SET ...] [--components 64 256 1024] [--types spherical diag]
    python benchmarks/models.py --report                # tables and a picture from what was measured
    python benchmarks/models.py --cost                  # what an E-step costs, relative to one variance for all

Sets are .npy files in $VCGMM_DATA.  Features are standardised, a tenth of the rows (at most 20,000) is held out,
and both get the same rows, in float32 for us and float64 for scikit-learn.  The peer: k-means++ start (its time is
shown apart), tol 1e-3, max_iter 100, reg_covar 1e-6, which on standardised features is our own default.  A fit of
the peer that takes longer than its budget is cut short after the iteration that exceeds it, scored with what it
has reached, and marked so; its score on the way is written down too.  Where its (rows, components) arrays would
not fit into memory, both get fewer rows, and the table says so.  Ours: the defaults, and a few settings that end
sooner.

Times are those of the processor, with one thread on both sides: what else runs on the machine hardly changes them.
Each result is a line in the CSV as soon as it is there; a run goes on where the last one stopped.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from models_report import report
from results import Results
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from vcgmm import VCGMM
from vcgmm.progress import Iteration

DATA = Path(os.environ.get("VCGMM_DATA", Path.home() / ".cache" / "vcgmm"))
SETS = ("kdd", "covtype", "glove50", "mnist")
HELD_OUT = 20_000

#: Smallest variance of both: the default of both, on standardised features.
REG_COVAR = 1e-6

#: Arrays of (rows, components) float64 that the peer has at a time, and bytes that they may take.
PEER_ARRAYS, PEER_BYTES = 6, 10e9

#: Iterations of the peer after which its score is taken, beside that at its end.
ON_THE_WAY = {1, 2, 3, 5, 8, 12, 18, 27, 40, 60}


@dataclass(frozen=True)
class Run:
    """One line of the results: nats are the mean held-out log-likelihood per dimension."""

    set: str
    n: int
    d: int
    c: int
    type: str
    system: str
    setting: str
    seeding: float  # of the peer; ours is in `seconds`
    seconds: float
    iterations: int
    nats: float
    note: str


def standardised(name: str, most_rows: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit to and rows that are held out, float32."""
    rows = np.load(DATA / f"{name}.npy", mmap_mode="r")
    order = np.random.default_rng(0).permutation(len(rows))[:most_rows]
    X = np.asarray(rows[order], np.float64)
    spread = X.std(axis=0)
    X = ((X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)).astype(np.float32)
    held_out = min(HELD_OUT, len(X) // 10)
    return X[held_out:], X[:held_out]


def settings_of(n_components: int) -> dict[str, dict[str, Any]]:
    """Ours by name: the defaults, then what ends sooner."""
    return {
        "default": {},
        "tol=1e-3": {"tol": 1e-3},
        "all rows": {"coreset_size": None},
        "all rows, tol=1e-3": {"coreset_size": None, "tol": 1e-3},
        "coreset 256 C": {"coreset_size": 256 * n_components},
        "coreset 256 C, tol=1e-3": {"coreset_size": 256 * n_components, "tol": 1e-3},
        "coreset 64 C": {"coreset_size": 64 * n_components},
        "coreset 64 C, tol=1e-3": {"coreset_size": 64 * n_components, "tol": 1e-3},
        "coreset 16 C, tol=1e-3": {"coreset_size": 16 * n_components, "tol": 1e-3},
        "max_iter=4, n_shared=1": {"max_iter": 4, "n_shared": 1},
    }


class BudgetSpentError(Exception):
    """Ends a fit of the peer."""


class TimedMixture(GaussianMixture):  # type: ignore[misc]
    """scikit-learn's mixture with a clock: seconds of seeding and EM, scores on the way, an end in time."""

    def follow(self, held_out: np.ndarray, budget: float) -> None:
        """Say what to score on the way, and after how many seconds of EM to end."""
        self.held_out, self.budget = held_out, budget
        self.way: list[tuple[float, int, float]] = []  # seconds of EM, iterations, nats
        self.begun, self.paused, self.seeding = 0.0, 0.0, 0.0

    def seconds(self) -> float:
        """Of EM, without scoring."""
        return time.process_time() - self.begun - self.paused

    def nats(self) -> float:
        """Mean held-out log-likelihood per dimension of where the fit is."""
        scores = [self._log_density(self.held_out[i : i + 4096]) for i in range(0, len(self.held_out), 4096)]
        return float(np.concatenate(scores).mean() / self.held_out.shape[1])

    def _log_density(self, rows: np.ndarray) -> np.ndarray:
        return np.logaddexp.reduce(self._estimate_weighted_log_prob(rows), axis=1)

    def _initialize_parameters(self, X: np.ndarray, *args: Any, **kwargs: Any) -> None:
        begun = time.process_time()
        super()._initialize_parameters(X, *args, **kwargs)
        self.begun = time.process_time()
        self.seeding = self.begun - begun

    def _print_verbose_msg_iter_end(self, n_iter: int, diff_ll: float) -> None:
        seconds = self.seconds()
        over = seconds > self.budget
        if over or n_iter in ON_THE_WAY:
            self.way.append((seconds, n_iter, self.nats()))
            self.paused = time.process_time() - self.begun - seconds
        if over and abs(diff_ll) >= self.tol:
            raise BudgetSpentError


def write(results: Results, run: Run) -> None:
    """Keep a line, and show it."""
    row = {name: f"{x:.5g}" if isinstance(x, float) else str(x) for name, x in asdict(run).items()}
    results.add(row)
    print(" ".join(row.values()), flush=True)


def known(results: Results, name: str, c: int, kind: str, system: str, setting: str) -> bool:
    """Whether a fit has been measured to its end."""
    found = results.find(set=name, c=c, type=kind, system=system, setting=setting)
    return any(row["note"] != "on the way" for row in found)


def measure_ours(
    name: str, X: np.ndarray, held_out: np.ndarray, c: int, kind: str, reg_covar: float, results: Results
) -> None:
    """Fit with every setting that is missing."""
    for setting, parameters in settings_of(c).items():
        if known(results, name, c, kind, "vcgmm", setting):
            continue
        begun = time.process_time()
        model = VCGMM(c, covariance_type=kind, reg_covar=reg_covar, random_state=0, n_threads=1, **parameters)
        model.fit(X)
        seconds = time.process_time() - begun
        nats = model.score(held_out) / X.shape[1]
        write(results, Run(name, *X.shape, c, kind, "vcgmm", setting, 0.0, seconds, model.n_iter_, nats, ""))


def measure_theirs(
    name: str,
    X: np.ndarray,
    held_out: np.ndarray,
    c: int,
    kind: str,
    reg_covar: float,
    budget: float,
    results: Results,
) -> None:
    """Fit scikit-learn's mixture, if that is missing."""
    setting = "k-means++, tol=1e-3"
    if known(results, name, c, kind, "GaussianMixture", setting):
        return
    model = TimedMixture(
        c,
        covariance_type=kind,
        init_params="k-means++",
        tol=1e-3,
        reg_covar=reg_covar,
        max_iter=100,
        random_state=0,
    )
    model.follow(held_out.astype(np.float64), budget)
    run = partial(Run, name, *X.shape, c, kind, "GaussianMixture", setting)
    try:
        model.fit(X.astype(np.float64))
        seconds, iterations, note = model.seconds(), model.n_iter_, "" if model.converged_ else "100 iterations"
    except BudgetSpentError:
        (seconds, iterations, _), note = model.way.pop(), "cut short"
    for way in model.way:
        write(results, run(model.seeding, *way, "on the way"))
    write(results, run(model.seeding, seconds, iterations, model.nats(), note))


def compare(args: argparse.Namespace) -> None:
    """Measure all that is missing, one fit at a time."""
    results = Results(args.output)
    for kind in args.types:  # compiled before the clock runs
        for n_features in (4, 100):
            small = np.random.default_rng(0).normal(size=(3000, n_features)).astype(np.float32)
            VCGMM(8, covariance_type=kind, coreset_size=1000).fit(small)
    for c in args.components:
        fits = int(PEER_BYTES / (PEER_ARRAYS * 8 * c))
        budget = args.budget * (2 if c > 256 else 1)
        for name in args.sets or SETS:
            X, held_out = standardised(name, min(args.most_rows or fits, fits))
            label = name if args.reg_covar == REG_COVAR else f"{name}, reg_covar {args.reg_covar:g}"
            for kind in args.types:
                measure_ours(label, X, held_out, c, kind, args.reg_covar, results)
                if args.budget > 0:
                    measure_theirs(label, X, held_out, c, kind, args.reg_covar, budget, results)


def note(stamps: list[float], _facts: Iteration) -> None:
    """Write down how much processor time has gone by: on a shared machine seconds tell little."""
    stamps.append(time.process_time())


def cost(args: argparse.Namespace) -> None:
    """Print what an iteration costs in processor time, relative to that of one variance and equal weights."""
    print("set C type: least processor seconds of an iteration, ratio to isotropic")
    for name in args.sets or SETS:
        X, _ = standardised(name, args.most_rows)
        for n_components in args.components:
            times: dict[str, list[float]] = {}
            for _ in range(3):  # in turn, so that whatever else runs slows all of them
                for kind in ("isotropic", *args.types):
                    stamps: list[float] = []
                    settings = {"random_state": 0, "tol": 0, "max_iter": 24, "relaxation": 1.0, "n_threads": 1}
                    watch = partial(note, stamps)
                    VCGMM(n_components, covariance_type=kind, callbacks=watch, **settings).fit(X)
                    times.setdefault(kind, []).extend(np.diff(stamps)[8:])
            for kind, seconds in times.items():
                ratio = min(seconds) / min(times["isotropic"])
                print(f"{name} {n_components} {kind}: {min(seconds):.4f} {ratio:.2f}", flush=True)


def main() -> None:
    """Measure or report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--components", type=int, nargs="+", default=[64, 256, 1024])
    parser.add_argument("--types", nargs="+", default=["spherical", "diag"])
    parser.add_argument("--most-rows", type=int)
    parser.add_argument(
        "--budget", type=float, default=60.0, help="seconds of EM for the peer, twice that beyond 256; 0: none"
    )
    parser.add_argument("--reg-covar", type=float, default=REG_COVAR, help="smallest variance, for both")
    parser.add_argument("--output", type=Path, default=Path("docs/benchmarks/models.csv"))
    parser.add_argument("--picture", type=Path, default=Path("docs/images/models.png"))
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--cost", action="store_true")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    if arguments.cost:
        cost(arguments)
        return
    if not arguments.report:
        with threadpool_limits(1):
            compare(arguments)
    report(Results(arguments.output).rows, arguments.picture)


if __name__ == "__main__":
    main()
