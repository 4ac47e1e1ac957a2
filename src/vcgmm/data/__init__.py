"""Where rows come from."""

from .rows import ArrayRows, Part, Rows
from .selection import Selection
from .source import Source
from .streamed import StreamedRows
from .unit import UnitRows

__all__ = ["ArrayRows", "Part", "Rows", "Selection", "Source", "StreamedRows", "UnitRows"]
