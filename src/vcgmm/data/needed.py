"""Packages that only some kinds of files need."""

from __future__ import annotations

import importlib
from typing import Any


def needed(module: str, what: str) -> Any:
    """Import a module of an optional package.

    Raises
    ------
    ImportError
        Says what to install.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise ImportError(f"{what} need {package}, which is not installed: pip install vcgmm[io]") from None
