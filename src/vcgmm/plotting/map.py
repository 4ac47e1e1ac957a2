"""A map of the centres in two dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.decomposition import PCA

from ..data import ArrayRows, Source
from ..mixture_parameters import fitted_metric, in_metric
from .canvas import CENTRE, NIGHT, take_axes
from .density import dot_area, draw_density

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Rows that make the density: more would only take longer.
MOST_ROWS = 200_000
#: Beyond so many centres they are drawn as pixels, which keeps files of vectors (SVG, PDF) small.
MOST_VECTORS = 5_000
#: The map leaves out this share of rows and centres on each side: a few outliers would leave no room for the rest.
CUT = 0.002


def plot_map(model: Any, X: Any = None, ax: Axes | None = None, *, bins: int = 300) -> Axes:
    """Draw the centres on the plane in which they vary most, sized by weight, over the density of the data.

    The plane is that of the first two principal components of the centres; two features are drawn as they are.

    Parameters
    ----------
    model : VCGMM
        Fitted, of two features or more.
    X : array-like of shape (N, D) or source, optional
        The data; of more than 200,000 rows every so many are drawn.
    ax : matplotlib.axes.Axes, default=None
        Where to draw; None makes a new figure with `matplotlib.pyplot`.
    bins : int, default=300
        Cells of the density along the longer side of the map.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    ValueError
        If there is only one feature.
    """
    means = model.means_
    if means.shape[1] < 2:
        raise ValueError("A map needs two features or more, but the model has one.")
    plane: PCA | None = None
    if means.shape[1] > 2 and len(means) > 1:
        plane = PCA(2, svd_solver="auto", random_state=0).fit(means)
    centres = _project(means, plane)
    points = None if X is None else _project(drawn_rows(model, X), plane)

    ax = take_axes(ax, 8, 8)
    ax.set_facecolor(NIGHT)
    low, high = _view(centres if points is None else np.concatenate([points, centres]))
    if points is not None:
        inside = ((points >= low) & (points <= high)).all(axis=1)
        draw_density(ax, points[inside], bins)
    many = len(centres) > MOST_VECTORS
    shares = model.counts_ / max(model.counts_.mean(), np.finfo(float).tiny)
    ax.scatter(
        centres[:, 0],
        centres[:, 1],
        s=dot_area(2 * len(centres), least=0.4) * np.clip(shares, 0.2, 6.0),
        color=CENTRE,
        edgecolors="none" if many else NIGHT,
        linewidths=0.0 if many else 0.5,
        alpha=0.5 if many else 0.85,
        rasterized=many,
    )
    ax.set_aspect("equal", adjustable="box")
    ax.set_xlim(low[0], high[0])
    ax.set_ylim(low[1], high[1])
    ax.locator_params(nbins=5)
    _name_axes(ax, model, plane)
    outside = int((~((centres >= low) & (centres <= high)).all(axis=1)).sum())
    if outside:
        _say(ax, f"{outside:,} of {len(centres):,} centres lie outside")
    return ax


def thinned(X: Any) -> Any:
    """At most `MOST_ROWS` rows of an array or a source: every so many."""
    step = max(1, -(-len(X) // MOST_ROWS))
    return X.take(np.arange(0, len(X), step)) if isinstance(X, Source) else X[::step]


def drawn_rows(model: Any, X: Any) -> np.ndarray:
    """At most `MOST_ROWS` rows of an array or a source, as the model's metric compares them."""
    return in_metric(fitted_metric(model), ArrayRows(np.asarray(thinned(X)))).all()


def _project(rows: np.ndarray, plane: PCA | None) -> np.ndarray:
    """Rows (n, D) in the plane, (n, 2) float64; block by block, for the rows may be of a narrow type."""
    if plane is None:
        return np.asarray(rows[:, :2], float)
    out = np.empty((len(rows), 2))
    for first in range(0, len(rows), 4096):
        block = np.asarray(rows[first : first + 4096], float)
        out[first : first + 4096] = (block - plane.mean_) @ plane.components_.T
    return out


def _view(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Corners of the map: where all but the outermost points lie, and a margin."""
    low, high = np.quantile(points, [CUT, 1.0 - CUT], axis=0)
    margin = 0.06 * max((high - low).max(), 1e-9 * max(abs(low).max(), abs(high).max(), 1.0))
    low, high = low - margin, high + margin
    # A margin that reaches the outermost points cuts nothing off.
    least, most = points.min(axis=0) - margin, points.max(axis=0) + margin
    return np.maximum(low, least), np.minimum(high, most)


def _name_axes(ax: Axes, model: Any, plane: PCA | None) -> None:
    if plane is not None:
        shares = plane.explained_variance_ratio_
        ax.set_xlabel(f"first component of the centres ({shares[0]:.0%})")
        ax.set_ylabel(f"second component ({shares[1]:.0%})")
    else:
        names = getattr(model, "feature_names_in_", ["feature 0", "feature 1"])
        ax.set_xlabel(str(names[0]))
        ax.set_ylabel(str(names[1]))


def _say(ax: Axes, text: str) -> None:
    """A remark that can be read on the night."""
    ax.text(0.98, 0.02, text, transform=ax.transAxes, ha="right", va="bottom", fontsize="small", color="white")
