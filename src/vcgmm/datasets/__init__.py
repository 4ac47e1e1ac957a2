"""Data sets for demonstrations, tests and benchmarks: generators, and loaders of the paper's five sets."""

from .cifar10 import load_cifar10
from .grid import make_grid
from .kdd import load_kdd
from .mixture import MixtureSource, make_mixture
from .prepared import load_prepared
from .rna import load_rna
from .song import load_song
from .susy import load_susy

__all__ = [
    "MixtureSource",
    "load_cifar10",
    "load_kdd",
    "load_prepared",
    "load_rna",
    "load_song",
    "load_susy",
    "make_grid",
    "make_mixture",
]
