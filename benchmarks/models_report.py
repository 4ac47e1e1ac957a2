"""Tables and a picture from the results of `models.py`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

OURS, PEER = "vcgmm", "GaussianMixture"

#: Nats per dimension by which a held-out log-likelihood may be worse and still count as reached.
TOLERANCE = 0.01


@dataclass(frozen=True)
class Fit:
    """A fit, or where one was on its way: seconds with the seeding, of that the seeding, iterations, nats."""

    setting: str
    seconds: float
    seeding: float
    iterations: int
    nats: float
    note: str


def fits_of(rows: list[dict[str, str]], key: tuple[str, str, str], system: str) -> list[Fit]:
    """What is known of a system on (set, C, type), in the order in which it was measured."""
    return [
        Fit(
            row["setting"],
            float(row["seeding"]) + float(row["seconds"]),
            float(row["seeding"]),
            int(row["iterations"]),
            float(row["nats"]),
            row["note"],
        )
        for row in rows
        if (row["set"], row["c"], row["type"], row["system"]) == (*key, system)
    ]


def report(rows: list[dict[str, str]], picture: Path) -> None:
    """Print a table of all fits in Markdown, and draw time against held-out log-likelihood."""
    keys = list(dict.fromkeys((row["set"], row["c"], row["type"]) for row in rows))
    sizes = {(row["set"], row["c"]): int(row["n"]) for row in rows}
    print("| set, type | rows | C | default: s, iterations, nats | soonest: s, setting, nats", end="")
    print(" | GaussianMixture: s (seeding), iterations, nats | default | soonest |")
    print("|---" * 8 + "|")
    for key in sorted(keys, key=lambda key: (int(key[1]), key[0], key[2])):
        name, c, kind = key
        ours = fits_of(rows, key, OURS)
        default = next(fit for fit in ours if fit.setting == "default")
        line = f"| {name}, {kind} | {sizes[name, c]:,} | {c} | {default.seconds:.2f}, {default.iterations}, "
        line += f"{default.nats:.4f} |"
        peers = [fit for fit in fits_of(rows, key, PEER) if fit.note != "on the way"]
        if peers:
            peer = peers[0]
            enough = [fit for fit in ours if fit.nats >= peer.nats - TOLERANCE]
            soonest = min(enough, key=lambda fit: fit.seconds, default=None)
            told = "– " if soonest is None else f"{soonest.seconds:.2f}, {soonest.setting}, {soonest.nats:.4f} "
            line += f" {told}| {peer.seconds:.1f} ({peer.seeding:.1f}), {peer.iterations}"
            line += f"{'*' if peer.note else ''}, {peer.nats:.4f} |"
            line += f" {peer.seconds / default.seconds:.0f}{'' if default in enough else ' (worse)'} |"
            line += " not reached |" if soonest is None else f" {peer.seconds / soonest.seconds:.0f} |"
        print(line)
    draw(rows, keys, picture)


def draw(rows: list[dict[str, str]], keys: list[tuple[str, str, str]], path: Path) -> None:
    """Time against held-out log-likelihood, a small picture for each set and number of components."""
    import matplotlib.pyplot as plt

    sets = list(dict.fromkeys(key[0] for key in keys))
    sizes = sorted({key[1] for key in keys}, key=int)
    figure, grid = plt.subplots(
        len(sizes), len(sets), figsize=(3.6 * len(sets), 3.2 * len(sizes)), layout="constrained", squeeze=False
    )
    for name, c, kind in keys:
        axes = grid[sizes.index(c)][sets.index(name)]
        colour = {"spherical": "C0", "diag": "C3"}.get(kind, "C2")
        ours = fits_of(rows, (name, c, kind), OURS)
        peer = fits_of(rows, (name, c, kind), PEER)
        both = sorted(fit.nats for fit in (*ours, *peer))
        axes.plot([f.seconds for f in ours], [f.nats for f in ours], "o", color=colour, label=f"vcgmm, {kind}")
        default = next(fit for fit in ours if fit.setting == "default")
        axes.plot(default.seconds, default.nats, "*", color=colour, markersize=15)
        axes.plot([f.seconds for f in peer], [f.nats for f in peer], "--x", color=colour, label=f"{PEER}, {kind}")
        if both[0] < -20:  # features that are constant in a cluster, and not in the rows held out
            axes.set_yscale("symlog", linthresh=1.0)
        axes.set_xscale("log")
        axes.set_title(f"{name}, C = {int(c):,}")
        axes.grid(alpha=0.3)
    for axes in grid[-1]:
        axes.set_xlabel("seconds")
    for line in grid:
        line[0].set_ylabel("held out, nats per dimension")
    grid[0][0].legend(fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=80)
    plt.close(figure)
