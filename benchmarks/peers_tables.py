"""The results of `peers.py` as a page of Markdown: the closest point of every set, then front and peers."""

from __future__ import annotations

import math
from pathlib import Path
from statistics import median

from peers_compared import Compared, Peer, Point, compare

#: A third of a peer's time is what we want to need at most.
HOPED_FOR = 3.0


def page(rows: list[dict[str, str]], sets: list[tuple[str, int]]) -> str:
    """A table of all sets, then one of each."""
    found = [compared for name, c in sets if (compared := compare(rows, name, c)) is not None]
    return "\n".join(["# Every point of every peer\n", closest_points(found), *map(points_of_set, found)])


def closest_points(found: list[Compared]) -> str:
    """For every set the peer that comes closest, and all others below what is hoped for."""
    ratios = [peer.ratio for compared in found for peer in compared.peers]
    reached = [ratio for ratio in ratios if ratio]
    lines = [
        f"{len(ratios)} points of peers: {len(ratios) - len(reached)} not reached, "
        f"{sum(ratio >= HOPED_FOR for ratio in ratios)} at {HOPED_FOR:g} or more"
        + (f"; of those reached the median ratio is {median(reached):.3g}.\n" if reached else ".\n"),
        f"| rows | C | peer | its time, error | ours, no worse | ratio | at {HOPED_FOR:g} or more | default |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for compared in found:
        near = sorted(compared.peers, key=lambda peer: peer.ratio)
        shown = [peer for i, peer in enumerate(near) if i == 0 or peer.ratio < HOPED_FOR]
        met = sum(peer.ratio >= HOPED_FOR for peer in near)
        for i, peer in enumerate(shown):
            first = (Path(compared.name).stem, f"{compared.n_clusters:,}") if i == 0 else ("", "")
            last = (f"{met} of {len(near)}", told(compared.default)) if i == 0 else ("", "")
            about = (f"{peer.point.system}, {peer.point.setting}", told(peer.point), *ours(peer))
            lines.append(row(*first, *about, *last))
    return "\n".join(lines) + "\n"


def points_of_set(compared: Compared) -> str:
    """Our front, and every peer."""
    title = f"{Path(compared.name).stem}, {compared.n_clusters:,} clusters"
    lines = [
        f"## {title}\n",
        f"Our default: {told(compared.default)}. From fastest to best:\n",
        "| seconds | error | above best | setting |",
        "|---|---|---|---|",
        *(row(*numbers(compared, point), point.setting) for point in compared.ours),
        "\n| peer | setting | seconds | error | above best | runs | ours, no worse | ratio |",
        "|---|---|---|---|---|---|---|---|",
        *(
            row(
                peer.point.system + (" (dominates our default)" if peer.dominates_default else ""),
                peer.point.setting, *numbers(compared, peer.point), str(peer.point.n_runs), *ours(peer),
            )
            for peer in compared.peers
        ),
        *(row(point.system, point.setting, point.note, "", "", "", "", "") for point in compared.stopped),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def row(*cells: str) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def told(point: Point | None) -> str:
    """Time and error in few words."""
    if point is None:
        return "–"
    return f"{point.seconds:.3g} s @ {point.error:.4g}" if point.n_runs else point.note


def numbers(compared: Compared, point: Point) -> tuple[str, str, str]:
    """Columns that every point has."""
    return f"{point.seconds:.3g}", f"{point.error:.4g}", f"{compared.above_best(point):.1f} %"


def ours(peer: Peer) -> tuple[str, str]:
    """How we come to a peer's error, and the ratio."""
    if peer.reached_by is None:
        return "–", "**not reached**"
    digits = max(0, 2 - int(math.log10(max(peer.ratio, 1))))
    ratio = f"{math.floor(peer.ratio * 10**digits) / 10**digits:.{digits}f}"  # never more than it is
    return (
        f"{told(peer.reached_by)}, {peer.reached_by.setting}",
        ratio if peer.ratio >= HOPED_FOR else f"**{ratio}**",
    )
