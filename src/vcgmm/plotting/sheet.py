"""All pictures of a model on one figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .bound import plot_bound
from .canvas import new_figure
from .coreset import plot_coreset
from .errors import plot_errors
from .images import plot_images
from .map import drawn_rows, plot_map
from .sizes import plot_sizes
from .steps import plot_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Names of the pictures, in the order in which they are drawn, with what each needs beside a model.
PICTURES = {
    "bound": "",
    "time": "the history of a fit",
    "sizes": "",
    "steps": "",
    "errors": "the data",
    "map": "two features or more",
    "coreset": "the data, of two features, and a coreset in the model (save it with coreset=True)",
    "images": "the shape of an image",
}

#: Of one picture among several, in inches.
WIDTH, HEIGHT = 5.0, 4.2

#: Columns for so many pictures that few places stay empty.
COLUMNS = (1, 1, 2, 3, 2, 3, 3, 4)

TITLES = {
    "bound": "Lower bound by iteration",
    "time": "Lower bound by time",
    "sizes": "Sizes of the clusters",
    "steps": "Time spent",
    "errors": "Error by cluster",
    "map": "Map of the centres",
}


def plot_sheet(
    model: Any, X: Any = None, *, pictures: Sequence[str] | None = None, image: tuple[int, ...] | None = None
) -> Figure:
    """Draw a model: everything that can be drawn, or the pictures asked for.

    Parameters
    ----------
    model : VCGMM
        Fitted.
    X : array-like of shape (N, D), optional
        The data, for the pictures that need it.
    pictures : sequence of str, optional
        Some of "bound", "time", "sizes", "steps", "errors", "map", "coreset" and "images"; None: all that the
        arguments allow.
    image : tuple of int, optional
        Shape of the images that the rows are, as in `plot_images`.

    Returns
    -------
    matplotlib.figure.Figure
        One that belongs to no window: save it with `savefig`. Its axes have the pictures' names as their `gid`.

    Raises
    ------
    ValueError
        If a picture is not known, or lacks what it needs.
    """
    possible = _possible(model, X, image)
    chosen = [name for name in PICTURES if name in possible] if pictures is None else list(dict.fromkeys(pictures))
    if not chosen:
        raise ValueError("pictures is empty: name at least one.")
    for name in chosen:
        if name not in PICTURES:
            raise ValueError(f"There is no picture {name!r}: choose from {', '.join(PICTURES)}.")
        if name not in possible:
            raise ValueError(f"The picture {name!r} cannot be drawn: it needs {PICTURES[name]}.")
    # Images get a row of their own, as wide as the others together.
    others = len(chosen) - ("images" in chosen)
    columns = COLUMNS[others]
    rows = -(-others // columns) + ("images" in chosen)
    figure = new_figure(*((7.5, 6.0) if len(chosen) == 1 else (WIDTH * columns, HEIGHT * rows)))
    grid = figure.add_gridspec(rows, columns)
    for place, name in enumerate(name for name in chosen if name != "images"):
        ax = _draw(name, model, X, figure.add_subplot(grid[divmod(place, columns)], gid=name))
        if name in TITLES:
            ax.set_title(TITLES[name], fontsize="medium")
    if image is not None and "images" in chosen:
        plot_images(model, image, figure.add_subplot(grid[-1, :], gid="images"), aspect=columns * WIDTH / HEIGHT)
    end = "converged" if model.converged_ else "not converged"
    n_clusters, n_features = model.means_.shape
    figure.suptitle(f"{n_clusters:,} clusters in {n_features:,} dimensions · {model.n_iter_} iterations, {end}")
    return figure


def _possible(model: Any, X: Any, image: tuple[int, ...] | None) -> set[str]:
    possible = {"bound", "sizes", "steps"}
    if hasattr(model, "history_"):
        possible.add("time")
    if X is not None:
        possible.add("errors")
    if model.means_.shape[1] > 1:
        possible.add("map")
    if X is not None and model.means_.shape[1] == 2 and hasattr(model, "coreset_"):
        possible.add("coreset")
    if image is not None:
        possible.add("images")
    return possible


def _draw(name: str, model: Any, X: Any, ax: Axes) -> Axes:
    if name == "bound":
        return plot_bound(model, ax)
    if name == "time":
        return plot_bound(model, ax, against="time")
    if name == "sizes":
        return plot_sizes(model, ax)
    if name == "steps":
        return plot_steps(model, ax)
    if name == "errors":
        return plot_errors(model, X, ax)
    if name == "map":
        return plot_map(model, X, ax)
    return plot_coreset(model.coreset_, drawn_rows(model, X), ax)
