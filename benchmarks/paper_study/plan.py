"""What is run: sets, algorithms and their settings, in the order in which they are run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from .published import SIZES, TABLE_1

#: Algorithms in the order of the tables; k-means++ comes first, since the others are told relative to it.
ALGORITHMS = ("k-means++", "scikit-learn", "var-GMM-S", "LWCS", "vc-GMM", "ours", "AFK-MC2")

#: What of the study an entry is for.
PARTS = ("table1", "figure1", "defaults", "remarks")


@dataclass(frozen=True)
class Study:
    """One row of the paper's Figure 1.

    Attributes
    ----------
    set, n_clusters : str, int
    paper : str
        The paper's name of the set, or of the one in whose place it stands.
    same : bool
        Whether it is that set, or a part of it.
    g : str
        G of vc-GMM; "3+1" is three neighbours and one random cluster.
    chain_length : int
        m of AFK-MC^2.
    size : int
        N' of Table 1.
    sizes : tuple of int
        N' of Figure 1.
    """

    set: str
    n_clusters: int
    paper: str
    same: bool
    g: str
    chain_length: int
    size: int
    sizes: tuple[int, ...]

    @property
    def name(self) -> str:
        """Set and clusters in one word."""
        return f"{self.set}-{self.n_clusters}"

    @property
    def title(self) -> str:
        """For people."""
        place = "" if self.same else f" (in the place of {self.paper})"
        return f"{self.set}, {self.n_clusters:,} clusters{place}"

    @property
    def published(self) -> dict:
        """The paper's lines of Table 1, where the set is the same or partly the same."""
        return TABLE_1[self.paper] if self.same and self.n_clusters == SIZES[self.paper][1] else {}


STUDIES = {
    study.name: study
    for study in (
        Study("kdd", 500, "KDD", True, "5", 2, 2**13, tuple(2**k for k in range(12, 17))),
        Study("rna", 500, "RNA", True, "3+1", 20, 2**15, tuple(2**k for k in range(13, 18))),
        Study("cifar10", 500, "CIFAR-10", True, "5", 2, 2**12, tuple(2**k for k in range(11, 16))),
        Study("covtype", 2000, "SUSY", False, "5", 2, 2**15, tuple(2**k for k in range(14, 19))),
        Study("glove50", 4000, "SONG", False, "5", 2, 2**16, tuple(2**k for k in range(14, 19))),
        Study("glove50", 2000, "SONG", False, "5", 2, 2**16, tuple(2**k for k in range(14, 19))),
        Study("susy", 2000, "SUSY", True, "5", 2, 2**15, tuple(2**k for k in range(14, 19))),
        Study("song", 4000, "SONG", True, "5", 2, 2**16, tuple(2**k for k in range(14, 19))),
        Study("song", 2000, "SONG", True, "5", 2, 2**16, tuple(2**k for k in range(14, 19))),
    )
}


@dataclass(frozen=True)
class Entry:
    """One run: an algorithm with its settings on a set, from one seed.

    Attributes
    ----------
    set, n_clusters, algorithm, seed : str, int, str, int
    size : int or None
        N'; None: all points.
    g : str or None
        C' and G, with "+1" for a random cluster.
    chain_length : int or None
    n_warmup : int
        Initial E-steps.
    tol : float
    condition : str
        "paper": one thread, float64.  "defaults": all threads, float32.
    """

    set: str
    n_clusters: int
    algorithm: str
    seed: int
    size: int | None = None
    g: str | None = None
    chain_length: int | None = None
    n_warmup: int = 0
    tol: float = 1e-4
    condition: str = "paper"

    def key(self) -> dict:
        """All that tells it from others."""
        return asdict(self)

    def without_seed(self) -> tuple:
        """What its repetitions share."""
        return tuple(value for name, value in asdict(self).items() if name != "seed")

    def __str__(self) -> str:
        """For progress lines."""
        words = [f"{self.set}-{self.n_clusters}", self.algorithm]
        words += [f"N'={self.size}"] if self.size else []
        words += [f"G={self.g}"] if self.g else []
        words += [f"m={self.chain_length}"] if self.algorithm == "AFK-MC2" else []
        words += [f"{self.n_warmup} initial E-steps"] if self.n_warmup else []
        words += [f"tol={self.tol:g}"] if self.tol != 1e-4 else []
        words += ["own defaults"] if self.condition != "paper" else []
        return f"{' '.join(words)}, seed {self.seed}"


def baseline(study: Study, seed: int, condition: str = "paper") -> Entry:
    """The run of k-means++ that others are told relative to."""
    return Entry(study.set, study.n_clusters, "k-means++", seed, condition=condition)


def table1(study: Study, seed: int) -> Iterator[Entry]:
    """Every algorithm once, as in the paper's Table 1."""
    start = baseline(study, seed)
    yield start
    yield replace(start, algorithm="vc-GMM", size=study.size, g=study.g, chain_length=study.chain_length)
    yield replace(start, algorithm="ours", size=study.size)
    yield replace(start, algorithm="LWCS", size=study.size, chain_length=study.chain_length)
    yield replace(start, algorithm="ours")
    yield replace(start, algorithm="var-GMM-S", g=study.g, chain_length=study.chain_length)
    yield replace(start, algorithm="AFK-MC2", chain_length=study.chain_length)
    yield replace(start, algorithm="scikit-learn")


def figure1(study: Study, seed: int) -> Iterator[Entry]:
    """The curves of the paper's Figure 1; what is in Table 1 too is run once."""
    start = baseline(study, seed)
    yield start
    for size in study.sizes:
        yield replace(start, algorithm="vc-GMM", size=size, g=study.g, chain_length=study.chain_length)
        yield replace(start, algorithm="ours", size=size)
        yield replace(start, algorithm="LWCS", size=size, chain_length=study.chain_length)
    yield replace(start, algorithm="ours")
    for g in ("3+1", "5", "7"):
        yield replace(start, algorithm="var-GMM-S", g=g, chain_length=study.chain_length)
    for chain_length in (2, 5, 10, 20):
        yield replace(start, algorithm="AFK-MC2", chain_length=chain_length)


def defaults(study: Study, seed: int) -> Iterator[Entry]:
    """Table 1 on all threads in float32, and our estimator with nothing set."""
    start = baseline(study, seed, "defaults")
    yield start
    yield replace(start, algorithm="vc-GMM", size=study.size, g=study.g, chain_length=study.chain_length)
    yield replace(start, algorithm="ours", size=study.size)
    yield replace(start, algorithm="untouched")


def remarks(study: Study, seed: int) -> Iterator[Entry]:
    """The supplement's remarks: initial E-steps on rna, thresholds on kdd."""
    start = baseline(study, seed)
    if study.set == "rna":
        for g in ("3+1", "5"):
            for n_warmup in (0, 2, 4):
                yield replace(
                    start, algorithm="var-GMM-S", g=g, chain_length=study.chain_length, n_warmup=n_warmup
                )
    if study.set == "kdd":
        for tol in (1e-4, 1e-5):
            yield replace(start, tol=tol)
            common = {"g": study.g, "chain_length": study.chain_length, "tol": tol}
            yield replace(start, algorithm="var-GMM-S", **common)
            yield replace(start, algorithm="vc-GMM", size=study.size, **common)


_PARTS = {"table1": table1, "figure1": figure1, "defaults": defaults, "remarks": remarks}


def plan(names: Sequence[str], parts: Sequence[str], algorithms: Sequence[str], n_seeds: int) -> list[Entry]:
    """All runs, none twice: seed by seed, and of each seed set by set, so that what is done early is complete."""
    entries: dict[Entry, None] = {}
    for seed in range(n_seeds):
        for name in names:
            for part in parts:
                for entry in _PARTS[part](STUDIES[name], seed):
                    if entry.algorithm in (*algorithms, "k-means++", "untouched"):
                        entries[entry] = None
    return list(entries)
