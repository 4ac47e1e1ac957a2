"""Values of clusters, sorted and on a logarithmic scale: bars for a few, an outline for very many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .canvas import FILL, LINE, MARK, note, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Up to so many clusters each gets a bar of its own.
MOST_BARS = 60
#: Points of an outline: more cannot be told apart, and would make files of vectors (SVG, PDF) large.
MOST_POINTS = 2000


def draw_ranking(ax: Axes, values: np.ndarray, *, kind: str, label: str, empty: str) -> None:
    """Draw values (C,), none negative, from the largest to the smallest.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
    values : (C,) array
    kind : str
        How the mean is called in the legend: "mean size".
    label : str
        Of the vertical axis.
    empty : str
        What a cluster with a value of 0 is called; a logarithmic scale has no place for it.
    """
    ranked = np.sort(values)[::-1]
    shown = ranked[ranked > 0]
    ranks = np.arange(1, len(shown) + 1)
    if len(shown):
        ax.set_yscale("log")
        # Bars on a logarithmic scale have to begin somewhere: a little below the smallest.
        floor = shown[-1] / (shown[0] / shown[-1]) ** 0.08 / 1.25
        if len(values) <= MOST_BARS:
            ax.bar(ranks, shown - floor, bottom=floor, color=FILL, edgecolor=LINE, linewidth=0.8)
        else:
            kept = _outline(len(shown))
            ax.fill_between(ranks[kept], floor, shown[kept], step="mid", color=FILL, linewidth=0)
            ax.step(ranks[kept], shown[kept], where="mid", color=LINE, linewidth=1.2)
        ax.set_ylim(floor, shown[0] * (shown[0] / floor) ** 0.08)
        mean = float(values.sum() / len(values))
        ax.axhline(mean, color=MARK, linewidth=1.2, linestyle="--", label=f"{kind} {mean:,.4g}")
        ax.legend(frameon=False, loc="upper right", fontsize="small")
    ax.set_xlim(0.4, len(values) + 0.6)
    ax.set_xlabel(f"clusters, largest first ({len(values):,})")
    ax.set_ylabel(label)
    missing = len(values) - len(shown)
    if missing:
        note(ax, f"{missing:,} {empty}", where="lower right")
    tidy(ax)


def _outline(n: int) -> np.ndarray:
    """Places of the points of an outline among n: evenly, and densely at the steep beginning and end."""
    if n <= MOST_POINTS:
        return np.arange(n)
    edge = np.geomspace(1, n, MOST_POINTS // 4) - 1
    even = np.linspace(0, n - 1, MOST_POINTS // 2)
    return np.unique(np.concatenate([edge, even, n - 1 - edge]).round().astype(int))
