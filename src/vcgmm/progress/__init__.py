"""What a fit tells while it runs: facts for callbacks, a history of them, and lines on stderr."""

from .callbacks import Callback, Iteration, check_callbacks
from .display import RichProgress, make_progress
from .history import History
from .listener import Progress

__all__ = [
    "Callback",
    "History",
    "Iteration",
    "Progress",
    "RichProgress",
    "check_callbacks",
    "make_progress",
]
