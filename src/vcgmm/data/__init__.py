"""Where rows come from."""

from .rows import ArrayRows, Part, Rows
from .source import Source
from .streamed import StreamedRows
from .unit import UnitRows

__all__ = ["ArrayRows", "Part", "Rows", "Source", "StreamedRows", "UnitRows"]
