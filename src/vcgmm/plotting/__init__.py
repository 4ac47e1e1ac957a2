"""Pictures of clusterings, one file each; they need matplotlib, the extra `plot`.

Every function draws on the Axes it is given, or on new ones, and returns them; `plot_sheet` puts all that can be
drawn of a model on one figure.
"""

from .bound import plot_bound
from .coreset import plot_coreset
from .density import plot_density
from .errors import plot_errors
from .images import plot_images
from .map import plot_map
from .sheet import PICTURES, plot_sheet
from .sizes import plot_sizes
from .steps import plot_steps

__all__ = [
    "PICTURES",
    "plot_bound",
    "plot_coreset",
    "plot_density",
    "plot_errors",
    "plot_images",
    "plot_map",
    "plot_sheet",
    "plot_sizes",
    "plot_steps",
]
