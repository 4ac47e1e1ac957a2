"""Every picture, by what is drawn on it."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from numpy.typing import NDArray

from vcgmm import VCGMM, Coreset, lightweight_coreset
from vcgmm.datasets import make_grid
from vcgmm.plotting import (
    PICTURES,
    plot_bound,
    plot_coreset,
    plot_errors,
    plot_images,
    plot_map,
    plot_sheet,
    plot_sizes,
    plot_steps,
)
from vcgmm.plotting.ranking import MOST_BARS, MOST_POINTS

X, _, _ = make_grid(3000, n_side=3, random_state=0)


@pytest.fixture(scope="module")
def model() -> VCGMM:
    return VCGMM(9, coreset_size=500, random_state=0).fit(X)


@pytest.fixture
def ax() -> Axes:
    return Figure(figsize=(4, 4), dpi=100).add_subplot()


def made_up(n_clusters: int, n_features: int = 3, **changes: Any) -> Any:
    """All of a model that pictures ask for, of any size."""
    rng = np.random.default_rng(0)
    facts = {
        "means_": rng.normal(size=(n_clusters, n_features)),
        "counts_": rng.lognormal(3.0, 1.0, size=n_clusters),
        "lower_bounds_": -100.0 - 50.0 * 0.5 ** np.arange(6),
        "history_": {"seconds": np.array([3.0, 4.0, 5.0, 6.0, 7.0, 9.0])},
        "timings_": {"coreset": 1.0, "seeding": 1.0, "em": 6.0},
        "converged_": True,
        "n_iter_": 6,
    }
    return SimpleNamespace(**{**facts, **changes})


def pixels(ax: Axes) -> NDArray[np.uint8]:
    """Render the figure of `ax`; (height, width, 3), the top row first."""
    canvas = FigureCanvasAgg(ax.get_figure(root=True))
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3]


def dots(ax: Axes) -> PathCollection:
    (collection,) = [artist for artist in ax.collections if isinstance(artist, PathCollection)]
    return collection


def texts(ax: Axes) -> str:
    return "\n".join(text.get_text() for text in ax.texts)


# ------------------------------------------------------------------------------------------------------ the bound


def test_the_bound_by_iteration(model: VCGMM, ax: Axes) -> None:
    assert plot_bound(model, ax) is ax
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), np.arange(1, model.n_iter_ + 1))
    np.testing.assert_array_equal(line.get_ydata(), model.lower_bounds_)
    assert line.get_marker() == "o"
    assert f"after {model.n_iter_} iterations" in texts(ax)
    assert texts(ax).startswith("converged")
    assert all(float(tick).is_integer() for tick in ax.get_xticks())


def test_the_bound_by_time(model: VCGMM, ax: Axes) -> None:
    plot_bound(model, ax, against="time")
    (line,) = ax.lines
    np.testing.assert_array_equal(line.get_xdata(), model.history_["seconds"])
    left, right = ax.get_xlim()
    assert left == 0.0
    assert right >= model.history_["seconds"][-1]


def test_a_remark_keeps_away_from_the_curve(ax: Axes) -> None:
    late, early = Figure().add_subplot(), Figure().add_subplot()
    plot_bound(made_up(3, history_={"seconds": 100.0 + np.arange(6)}), late, against="time")
    plot_bound(made_up(3, history_={"seconds": 1.0 + np.arange(6)}), early, against="time")
    assert late.texts[0].get_position() < (0.5, 0.5)
    assert early.texts[0].get_position() > (0.5, 0.5)


def test_many_iterations_have_no_marks_and_a_stopped_fit_says_so(ax: Axes) -> None:
    bounds = -100.0 - 50.0 * 0.9 ** np.arange(150)
    plot_bound(made_up(3, lower_bounds_=bounds, converged_=False), ax)
    assert ax.lines[0].get_marker() == ""
    assert texts(ax).startswith("not converged")


def test_the_bound_against_anything_else(model: VCGMM) -> None:
    with pytest.raises(ValueError, match="against='luck' is not known"):
        plot_bound(model, against="luck")


# ----------------------------------------------------------------------------------------------- sizes and errors


def test_sizes_of_a_few_clusters_are_bars(ax: Axes) -> None:
    assert plot_sizes(made_up(4, counts_=np.array([10.0, 1000.0, 0.0, 100.0])), ax) is ax
    # From the top of each bar: the largest first, the empty one has none.
    assert [bar.get_y() + bar.get_height() for bar in ax.patches] == pytest.approx([1000.0, 100.0, 10.0])
    assert [bar.get_x() + bar.get_width() / 2 for bar in ax.patches] == pytest.approx([1, 2, 3])
    assert ax.get_yscale() == "log"
    low, high = ax.get_ylim()
    assert 0 < low < 10
    assert high > 1000
    assert "1 empty" in texts(ax)
    legend = ax.get_legend()
    assert legend is not None
    assert legend.get_texts()[0].get_text() == "mean size 277.5"
    mean = ax.lines[-1]
    np.testing.assert_allclose(np.asarray(mean.get_ydata(), float), 277.5)


@pytest.mark.parametrize("n_clusters", [MOST_BARS + 1, 100_000])
def test_sizes_of_many_clusters_are_an_outline(ax: Axes, n_clusters: int) -> None:
    model = made_up(n_clusters)
    plot_sizes(model, ax)
    assert not ax.patches
    outline = ax.lines[0]
    ranks, sizes = np.asarray(outline.get_xdata(), int), np.asarray(outline.get_ydata(), float)
    assert len(ranks) <= MOST_POINTS
    assert (ranks[0], ranks[-1]) == (1, n_clusters)
    np.testing.assert_array_equal(sizes, np.sort(model.counts_)[::-1][ranks - 1])
    # The whole stands on the picture, and below the line it is filled.
    assert ax.get_xlim()[1] >= n_clusters
    image = pixels(ax)
    assert (image == [0xB9, 0xDB, 0xE5]).all(axis=2).sum() > 1000


def test_clusters_that_are_all_empty(ax: Axes) -> None:
    plot_sizes(made_up(5, counts_=np.zeros(5)), ax)
    assert "5 empty" in texts(ax)


def test_equal_sizes(ax: Axes) -> None:
    plot_sizes(made_up(5, counts_=np.ones(5)), ax)
    assert len(ax.patches) == 5
    assert ax.get_ylim()[0] < 1.0 < ax.get_ylim()[1]


def test_errors_are_those_of_the_data(model: VCGMM, ax: Axes) -> None:
    assert plot_errors(model, X, ax) is ax
    labels = model.predict(X)
    errors = [((X[labels == c] - model.means_[c]) ** 2).sum() for c in range(9)]
    tops = [bar.get_y() + bar.get_height() for bar in ax.patches]
    np.testing.assert_allclose(tops, np.sort(errors)[::-1], rtol=1e-6)
    assert sum(tops) == pytest.approx(model.quantization_error(X), rel=1e-6)


def test_an_error_of_rounding_is_none(ax: Axes) -> None:
    nearest = (np.array([[3.0], [1e-9], [4.0]]), np.array([[0], [1], [2]]))
    plot_errors(made_up(3, nearest=lambda _: nearest), np.zeros((3, 3)), ax)
    assert len(ax.patches) == 2
    assert "1 without error" in texts(ax)


# ----------------------------------------------------------------------------------------------------------- maps


def test_two_features_are_drawn_as_they_are(model: VCGMM, ax: Axes) -> None:
    assert plot_map(model, X, ax) is ax
    np.testing.assert_allclose(np.asarray(dots(ax).get_offsets()), model.means_)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 0", "feature 1")
    (image,) = ax.images
    counts = image.get_array()
    assert counts is not None
    assert 0.98 * len(X) < counts.sum() <= len(X)


def test_dots_are_sized_by_weight(ax: Axes) -> None:
    plot_map(made_up(3, 2, counts_=np.array([1.0, 2.0, 3.0])), ax=ax)
    sizes = dots(ax).get_sizes()
    np.testing.assert_allclose(sizes / sizes[0], [1.0, 2.0, 3.0])
    assert not ax.images


def test_more_features_are_projected_to_where_the_centres_vary(ax: Axes) -> None:
    # The centres vary along two diagonals of five dimensions, the data elsewhere.
    rng = np.random.default_rng(0)
    plane = np.linalg.qr(rng.normal(size=(5, 2)))[0].T
    flat = rng.normal(size=(200, 2)) * [10.0, 3.0]
    model = made_up(200, means_=flat @ plane + 7.0)
    plot_map(model, np.repeat(model.means_, 3, axis=0) + rng.normal(size=(600, 5)), ax)
    drawn = np.asarray(dots(ax).get_offsets())
    distances = np.linalg.norm(drawn[:, None] - drawn, axis=2)
    np.testing.assert_allclose(distances, np.linalg.norm(flat[:, None] - flat, axis=2), atol=1e-6)
    assert np.ptp(drawn[:, 0]) > np.ptp(drawn[:, 1])
    shares = flat.var(axis=0) / flat.var(axis=0).sum()
    assert f"({shares.max():.0%})" in ax.get_xlabel()


def test_data_and_centres_lie_in_one_plane(ax: Axes) -> None:
    # Of four far-off groups each has its centre in the middle of its density.
    rng = np.random.default_rng(1)
    means = 50.0 * np.eye(4, 6) + 3.0
    rows = np.repeat(means, 500, axis=0) + rng.normal(size=(2000, 6))
    plot_map(made_up(4, means_=means), rows, ax, bins=40)
    (image,) = ax.images
    counts = image.get_array()
    assert counts is not None
    left, right, bottom, top = image.get_extent()
    for x, y in np.asarray(dots(ax).get_offsets()):
        column = int((x - left) / (right - left) * counts.shape[1])
        row = int((y - bottom) / (top - bottom) * counts.shape[0])
        around = counts.filled(0)[max(0, row - 3) : row + 4, max(0, column - 3) : column + 4]
        assert around.sum() > 400


def test_a_map_is_not_ruled_by_outliers(ax: Axes) -> None:
    model = made_up(1000, 2)
    model.means_[:2] = [[1e6, 0.0], [0.0, -1e6]]
    plot_map(model, ax=ax)
    assert ax.get_xlim()[1] < 100
    assert ax.get_ylim()[0] > -100
    # The two, and hardly any of the others.
    outside = int(texts(ax).removesuffix(" of 1,000 centres lie outside"))
    assert 2 <= outside <= 6


def test_maps_of_a_hundred_thousand_centres_are_pixels(ax: Axes) -> None:
    many = made_up(100_000, 2)
    plot_map(many, ax=ax)
    assert dots(ax).get_rasterized()
    figure = ax.get_figure(root=True)
    assert figure is not None
    file = io.BytesIO()
    figure.savefig(file, format="svg")
    assert len(file.getvalue()) < 1_000_000
    # Smaller dots than a few get, on a picture that shows both them and the night.
    few = Figure().add_subplot()
    plot_map(made_up(10, 2), ax=few)
    assert np.median(dots(ax).get_sizes()) < 0.1 * np.median(dots(few).get_sizes())
    dark = (pixels(ax).max(axis=2) < 10).mean()
    assert 0.05 < dark < 0.9


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_maps_of_hardly_any_centres(ax: Axes, n_clusters: int) -> None:
    plot_map(made_up(n_clusters, 4), np.random.default_rng(0).normal(size=(50, 4)), ax)
    assert pixels(ax).std() > 0


def test_equal_centres(ax: Axes) -> None:
    plot_map(made_up(3, means_=np.full((3, 2), 5.0)), ax=ax)
    low, high = ax.get_xlim()
    assert low < 5.0 < high


def test_one_feature_is_no_map() -> None:
    with pytest.raises(ValueError, match="two features or more"):
        plot_map(made_up(3, 1))


# ------------------------------------------------------------------------------------------------------- coresets


def test_a_coreset_lies_over_its_data(ax: Axes) -> None:
    coreset = lightweight_coreset(X, 200, random_state=0)
    assert plot_coreset(coreset, X, ax) is ax
    np.testing.assert_allclose(np.asarray(dots(ax).get_offsets()), coreset.points, rtol=1e-6)
    sizes = dots(ax).get_sizes()
    heavy, light = np.argmax(coreset.weights), np.argmin(coreset.weights)
    assert sizes[heavy] > sizes[light]
    assert f"{len(coreset):,} points" in ax.get_title()
    assert len(ax.images) == 1


def test_a_coreset_of_other_dimensions_is_refused(ax: Axes) -> None:
    core = Coreset(np.ones((5, 3)))
    with pytest.raises(ValueError, match=r"coreset.points has shape \(5, 3\)"):
        plot_coreset(core, np.ones((5, 3)), ax)


# --------------------------------------------------------------------------------------------------------- images


def tile(sheet: NDArray[np.floating], place: tuple[int, int], size: tuple[int, int]) -> NDArray[np.floating]:
    """One image of a sheet with lines of one pixel."""
    y, x = place[0] * (size[0] + 1), place[1] * (size[1] + 1)
    return sheet[y : y + size[0], x : x + size[1]]


def drawn_sheet(ax: Axes) -> NDArray[np.floating]:
    (image,) = ax.images
    array = image.get_array()
    assert array is not None
    return np.asarray(array)


def test_grey_images_are_the_centres_sorted_by_size(ax: Axes) -> None:
    rng = np.random.default_rng(0)
    means = rng.uniform(0, 255, size=(4, 6))
    means[0, 0] = 250.0
    model = made_up(4, means_=means, counts_=np.array([2.0, 9.0, 5.0, 7.0]))
    assert plot_images(model, (2, 3), ax) is ax
    sheet = drawn_sheet(ax)
    assert sheet.shape == (5, 7)
    for place, cluster in zip([(0, 0), (0, 1), (1, 0), (1, 1)], [1, 3, 2, 0], strict=True):
        np.testing.assert_allclose(tile(sheet, place, (2, 3)), means[cluster].reshape(2, 3) / 255)
    assert (sheet[2] == 1.0).all()
    assert ax.get_title() == "all 4 centres, largest clusters first"


@pytest.mark.parametrize("first", [True, False])
def test_colours_come_last_or_first(ax: Axes, first: bool) -> None:
    rng = np.random.default_rng(0)
    picture = rng.uniform(0, 1, size=(5, 6, 3))
    row = (picture.transpose(2, 0, 1) if first else picture).reshape(1, -1)
    plot_images(made_up(1, means_=row), (3, 5, 6) if first else (5, 6, 3), ax)
    np.testing.assert_allclose(drawn_sheet(ax), picture)


def test_three_by_three_by_three_has_its_colours_last(ax: Axes) -> None:
    picture = np.random.default_rng(0).uniform(0, 1, size=(3, 3, 3))
    plot_images(made_up(1, means_=picture.reshape(1, -1)), (3, 3, 3), ax)
    np.testing.assert_allclose(drawn_sheet(ax), picture)


def test_what_is_drawn_is_what_the_eye_sees() -> None:
    # A white square in the upper left of a black image.
    picture = np.zeros((1, 8, 8))
    picture[0, :4, :4] = 255.0
    ax = Figure(figsize=(4, 4), dpi=100).add_axes((0, 0, 1, 1))
    plot_images(made_up(1, means_=picture.reshape(1, -1)), (8, 8), ax)
    ax.set_title("")
    image = pixels(ax)
    corners = [image[y, x, 0] for y, x in [(100, 100), (100, 300), (300, 100), (300, 300)]]
    assert corners == [255, 0, 0, 0]


@pytest.mark.parametrize(("low", "high"), [(-3.0, 5.0), (0.0, 16.0), (0.0, 1e4)])
def test_other_ranges_are_stretched(ax: Axes, low: float, high: float) -> None:
    means = np.linspace(low, high, 8).reshape(2, 4)
    plot_images(made_up(2, means_=means, counts_=np.array([2.0, 1.0])), (2, 2), ax)
    sheet = drawn_sheet(ax)
    np.testing.assert_allclose(tile(sheet, (0, 0), (2, 2)).ravel(), np.arange(4) / 7)
    np.testing.assert_allclose(tile(sheet, (0, 1), (2, 2)).ravel(), np.arange(4, 8) / 7)


def test_a_blank_sheet(ax: Axes) -> None:
    plot_images(made_up(2, means_=np.full((2, 4), -7.0)), (2, 2), ax)
    assert (tile(drawn_sheet(ax), (0, 0), (2, 2)) == 0).all()


def test_of_very_many_centres_some_are_drawn(ax: Axes) -> None:
    model = made_up(100_000, means_=np.repeat(np.linspace(0, 1, 100_000)[:, None], 4, axis=1))
    model.counts_ = np.arange(100_000.0)
    plot_images(model, (2, 2), ax)
    sheet = drawn_sheet(ax)
    assert sheet.shape == (12 * 3 - 1, 12 * 3 - 1)
    # From the largest to the smallest cluster.
    assert sheet[0, 0] == 1.0
    assert sheet[-1, -1] == 0.0
    assert ax.get_title().startswith("144 of 100,000 centres")


def test_a_sheet_can_be_wide(ax: Axes) -> None:
    plot_images(made_up(64, 16), (4, 4), ax, aspect=4.0)
    assert drawn_sheet(ax).shape == (4 * 5 - 1, 16 * 5 - 1)


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((4, 4), "has 16 values, but the model has 12 features"),
        ((12,), "An image of shape 12 cannot be drawn"),
        ((1, 1, 3, 4), "cannot be drawn"),
        ((0, 12), "cannot be drawn"),
        ((2, 3, 2), "1, 3 or 4 must come first or last"),
    ],
)
def test_shapes_that_are_no_images(shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_images(made_up(3, 12), shape)


def test_no_images_at_all() -> None:
    with pytest.raises(ValueError, match="n_images=0"):
        plot_images(made_up(3, 4), (2, 2), n_images=0)


# ---------------------------------------------------------------------------------------------------------- steps


def test_time_by_step_is_a_bar_each(ax: Axes) -> None:
    assert plot_steps(made_up(3), ax) is ax
    assert [bar.get_width() for bar in ax.patches] == [1.0, 1.0, 6.0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["coreset", "seeding", "EM"]
    assert texts(ax).splitlines() == ["1.00 s, 12%", "1.00 s, 12%", "6.00 s, 75%"]
    assert ax.yaxis_inverted()


def test_steps_that_took_no_time(ax: Axes) -> None:
    plot_steps(made_up(3, timings_={"coreset": 0.0, "em": 0.0}), ax)
    assert len(ax.patches) == 2


# ---------------------------------------------------------------------------------------------------------- sheet


def titles(figure: Figure) -> list[str]:
    return [ax.get_title() for ax in figure.axes]


def test_a_sheet_has_all_that_can_be_drawn(model: VCGMM) -> None:
    assert len(plot_sheet(model).axes) == 5
    whole = plot_sheet(model, X, image=(1, 2))
    assert len(whole.axes) == len(PICTURES)
    assert "Lower bound by time" in titles(whole)
    assert any("coreset" in title for title in titles(whole))
    # Images are as wide as all others together.
    widths = [ax.get_subplotspec().colspan for ax in whole.axes]  # type: ignore[union-attr]
    assert len(widths[-1]) == max(width.stop for width in widths[:-1]) == 4
    suptitle = whole.get_suptitle()
    assert suptitle.startswith("9 clusters in 2 dimensions")
    assert suptitle.endswith("converged")


@pytest.mark.parametrize("name", PICTURES)
def test_every_picture_alone(model: VCGMM, name: str) -> None:
    figure = plot_sheet(model, X, pictures=[name], image=(1, 2))
    assert len(figure.axes) == 1
    assert pixels(figure.axes[0]).std() > 1


def test_a_model_without_coreset_or_history_has_fewer_pictures() -> None:
    assert titles(plot_sheet(made_up(3, 1))) == [
        "Lower bound by iteration",
        "Lower bound by time",
        "Sizes of the clusters",
        "Time spent",
    ]
    bare = made_up(3, 1)
    del bare.history_
    assert "Lower bound by time" not in titles(plot_sheet(bare))


@pytest.mark.parametrize(
    ("pictures", "message"),
    [
        (["portrait"], "There is no picture 'portrait': choose from bound, time"),
        (["errors"], "'errors' cannot be drawn: it needs the data"),
        (["coreset"], "it needs the data, of two features, and a coreset in the model"),
        (["images"], "it needs the shape of an image"),
        ([], "name at least one"),
    ],
)
def test_pictures_that_lack_something(pictures: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plot_sheet(made_up(3), pictures=pictures)


# ----------------------------------------------------------------------------------------------------------- both


def test_a_new_figure_is_made_where_none_is_given(model: VCGMM) -> None:
    for draw in (plot_bound, plot_sizes, plot_steps, plot_map):
        ax = draw(model)
        assert plt.gcf() is ax.figure
        plt.close(plt.gcf())


def test_missing_matplotlib_is_explained(model: VCGMM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.colors", None)
    for draw in (plot_bound, plot_sizes, plot_steps, plot_map, plot_sheet):
        with pytest.raises(ImportError, match=r"pip install vcgmm\[plot\]"):
            draw(model)
