"""vcgmm: millions of vectors into thousands of clusters, by variational EM on coresets."""

from ._version import __version__
from .building_blocks import afkmc2, kmeans_plus_plus, lightweight_coreset, quantization_error, two_level
from .coreset import Coreset, load_coreset, save_coreset
from .data.opening import open_rows as open  # noqa: A004 (vcgmm.open is meant to be called so)
from .estimator import VCGMM
from .progress import Iteration

__all__ = [
    "VCGMM",
    "Coreset",
    "Iteration",
    "__version__",
    "afkmc2",
    "kmeans_plus_plus",
    "lightweight_coreset",
    "load_coreset",
    "open",
    "quantization_error",
    "save_coreset",
    "two_level",
]
