"""Beyond one machine: the same steps over Dask collections, where their partitions lie."""

try:
    import dask.array  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"vcgmm.distributed needs Dask, of which something is not installed ({error}): pip install 'vcgmm[dask]'"
    ) from None

from .estimator import DaskVCGMM

__all__ = ["DaskVCGMM"]
