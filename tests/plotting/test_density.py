from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from vcgmm.datasets import make_grid
from vcgmm.plotting import plot_density

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray


@pytest.fixture
def ax() -> Axes:
    return Figure(figsize=(4, 4), dpi=100).add_subplot()


def pixels(ax: Axes) -> NDArray[np.uint8]:
    """Render the figure of `ax`; (height, width, 3), the top row first."""
    canvas = FigureCanvasAgg(ax.get_figure(root=True))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def pixel_at(ax: Axes, x: float, y: float) -> NDArray[np.uint8]:
    """Render `ax` and return the colour at a place in data coordinates."""
    image = pixels(ax)
    column, row = ax.transData.transform((x, y))
    return image[image.shape[0] - 1 - round(row), round(column)]


def dots(ax: Axes) -> PathCollection:
    (collection,) = [artist for artist in ax.collections if isinstance(artist, PathCollection)]
    return collection


def test_draws_on_the_axes_given_and_returns_them(ax: Axes) -> None:
    X, _, centers = make_grid(2000, n_side=3, random_state=0)
    assert plot_density(X, centers, ax=ax) is ax


def test_centres_are_drawn_where_they_are(ax: Axes) -> None:
    X, _, centers = make_grid(2000, n_side=3, random_state=0)
    plot_density(X, centers, ax=ax)
    np.testing.assert_allclose(np.asarray(dots(ax).get_offsets()), centers)
    colour = (np.asarray(dots(ax).get_facecolor())[0, :3] * 255).round()
    for x, y in centers:
        np.testing.assert_allclose(pixel_at(ax, x, y), colour, atol=2)


def test_density_is_bright_where_points_are_and_dark_elsewhere(ax: Axes) -> None:
    rng = np.random.default_rng(0)
    # Few points at the lower left, many at the upper right; the corners span the picture.
    few, many = rng.normal((2, 2), 0.3, size=(500, 2)), rng.normal((8, 8), 0.3, size=(50_000, 2))
    X = np.concatenate([few, many, [[0, 0], [10, 10]]])
    plot_density(X, [[5.0, 5.0]], ax=ax, bins=20)
    sparse, dense, empty = (pixel_at(ax, x, y).astype(int).sum() for x, y in [(2, 2), (8, 8), (2, 8)])
    assert empty < 20 < sparse < dense
    # Not mirrored or transposed: the other empty corner is dark too.
    assert pixel_at(ax, 8, 2).astype(int).sum() < 20


def test_cells_are_square_and_cover_all_points(ax: Axes) -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform((0, 100), (40, 110), size=(5000, 2))
    plot_density(X, X[:5], ax=ax, bins=80)
    (image,) = ax.images
    counts = image.get_array()
    assert counts is not None
    assert counts.shape == (20, 80)
    assert counts.sum() == 5000
    left, right, bottom, top = image.get_extent()
    assert (right - left) / 80 == pytest.approx((top - bottom) / 20)
    assert left <= X[:, 0].min()
    assert X[:, 1].max() <= top


@pytest.mark.parametrize("where", [(0.0, 0.0), (1e6, -3.0)])
def test_equal_points(ax: Axes, where: tuple[float, float]) -> None:
    plot_density(np.tile(where, (10, 1)), [where], ax=ax)
    assert pixels(ax).std() > 0


def test_one_flat_direction(ax: Axes) -> None:
    plot_density(np.column_stack([np.arange(10.0), np.ones(10)]), [[3.0, 1.0]], ax=ax)
    assert pixels(ax).std() > 0


def test_more_centres_are_drawn_smaller() -> None:
    X, _, _ = make_grid(5000, n_side=3, random_state=0)
    few, many = (plot_density(X, X[:n], ax=Figure().add_subplot()) for n in (10, 4000))
    assert dots(many).get_sizes()[0] < dots(few).get_sizes()[0]


def test_makes_a_figure_where_none_is_given() -> None:
    X, _, centers = make_grid(500, n_side=2, random_state=0)
    ax = plot_density(X, centers)
    try:
        assert plt.gcf() is ax.figure
    finally:
        plt.close(plt.gcf())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"X": np.ones((5, 3))}, r"X has shape \(5, 3\)"),
        ({"X": np.ones(5)}, r"X has shape \(5,\)"),
        ({"X": np.ones((0, 2))}, r"X has shape \(0, 2\)"),
        ({"centers": np.ones((5, 1))}, r"centers has shape \(5, 1\)"),
        ({"bins": 0}, r"bins=0"),
    ],
)
def test_bad_arguments_are_named(ax: Axes, arguments: dict[str, Any], message: str) -> None:
    good = {"X": np.ones((5, 2)), "centers": np.ones((1, 2))}
    with pytest.raises(ValueError, match=message):
        plot_density(**{**good, **arguments}, ax=ax)


def test_missing_matplotlib_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.colors", None)
    with pytest.raises(ImportError, match=r"pip install vcgmm\[plot\]"):
        plot_density(np.ones((5, 2)), np.ones((1, 2)))
