"""Where rows come from."""

from .rows import ArrayRows

__all__ = ["ArrayRows"]
