"""What the results of `peers.py` say: for every point of a peer, how long we take to its error."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean, median

OURS = "vcgmm"


@dataclass(frozen=True)
class Point:
    """A system's setting on one set: median seconds and mean error over seeds, or why there are none."""

    system: str
    setting: str
    seconds: float
    error: float
    n_runs: int
    note: str


@dataclass(frozen=True)
class Peer:
    """A peer's point, and the fastest of ours whose error is no larger, if there is one."""

    point: Point
    reached_by: Point | None
    dominates_default: bool

    @property
    def ratio(self) -> float:
        """Its time over ours; 0 where its error is not reached."""
        return 0.0 if self.reached_by is None else self.point.seconds / self.reached_by.seconds


@dataclass(frozen=True)
class Compared:
    """One set.

    Attributes
    ----------
    name : str
    n_clusters : int
    ours : list of Point
        That none of ours beats in both time and error, fastest first.
    default : Point or None
        With no option given; it may not have ended.
    peers : list of Peer
        That ended, fastest first.
    stopped : list of Point
        Of peers that did not.
    best : float
        The least error of all.
    """

    name: str
    n_clusters: int
    ours: list[Point]
    default: Point | None
    peers: list[Peer]
    stopped: list[Point]
    best: float

    def above_best(self, point: Point) -> float:
        """By how many percent an error is above the least."""
        return 100 * (point.error / self.best - 1)


def points_of(rows: list[dict[str, str]], name: str, c: int) -> list[Point]:
    """One point per setting."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        if row["set"] == name and row["c"] == str(c):
            groups.setdefault((row["system"], row["setting"]), []).append(row)
    points = []
    for (system, setting), runs in groups.items():
        done = [run for run in runs if run["seconds"]]
        if done:
            seconds = median(float(run["seconds"]) for run in done)
            points.append(
                Point(system, setting, seconds, fmean(float(run["error"]) for run in done), len(done), "")
            )
        else:
            points.append(Point(system, setting, float("nan"), float("nan"), 0, runs[0]["note"]))
    return points


def front(points: list[Point]) -> list[Point]:
    """Those that no other beats in both time and error, fastest first."""
    best = float("inf")
    kept = []
    for point in sorted(points, key=lambda p: (p.seconds, p.error)):
        if point.error < best:
            kept.append(point)
            best = point.error
    return kept


def time_to(points: list[Point], error: float) -> Point | None:
    """The fastest of these points whose error is no larger."""
    able = [point for point in points if point.error <= error]
    return min(able, key=lambda point: point.seconds, default=None)


def compare(rows: list[dict[str, str]], name: str, c: int) -> Compared | None:
    """One set's results; None where none of our fits has ended."""
    points = points_of(rows, name, c)
    done = [point for point in points if point.n_runs]
    ours = front([point for point in done if point.system == OURS])
    if not ours:
        return None
    default = next((p for p in points if p.system == OURS and p.setting == "default"), None)
    peers = [
        Peer(point, time_to(ours, point.error), dominates(point, default))
        for point in sorted(done, key=lambda p: p.seconds)
        if point.system != OURS
    ]
    stopped = [point for point in points if point.system != OURS and not point.n_runs]
    return Compared(name, c, ours, default, peers, stopped, min(point.error for point in done))


def dominates(point: Point, other: Point | None) -> bool:
    """Whether a point is no slower and no worse than another one that ended."""
    return other is not None and other.n_runs > 0 and point.seconds <= other.seconds and point.error <= other.error
