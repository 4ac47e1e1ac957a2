"""Bytes that each launch of a GPU kernel asks for, and operations that it does, from its arguments.

A row of points counts wherever a program reads it, but once where the same program reads it again; a list of means
counts for each tile that is compared with it, and what is written counts as what is read.  Operations of tensor
cores are those of whole tiles, empty places included, and three for one where a product is taken in three parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Cost:
    """What a launch takes at the least.

    Attributes
    ----------
    n_bytes : float
    n_operations : float
    unit : str
        What does the operations: "bf16" or "tf32" (tensor cores), or "plain".
    link : bool
        Whether the bytes go to the host.
    """

    n_bytes: float
    n_operations: float = 0.0
    unit: str = "plain"
    link: bool = False


class Launch:
    """A launch of a kernel: its arguments by name, tensors as tensors.

    Parameters
    ----------
    grid : tuple of int
    values : dict
    """

    def __init__(self, grid: tuple[int, ...], values: dict[str, Any]) -> None:
        self.grid = grid
        self._values = values

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def n(self, name: str) -> int:
        """A number."""
        return int(self._values[name])

    def size(self, *names: str) -> int:
        """Bytes of whole tensors."""
        return sum(self[name].numel() * self[name].element_size() for name in names)

    def each(self, name: str) -> int:
        """Bytes of one value of a tensor."""
        return int(self[name].element_size())

    @property
    def row(self) -> int:
        """Bytes of a row of the points."""
        return self.each("points") * self.n("n_features")

    @property
    def mean(self) -> int:
        """Bytes of a mean in float32."""
        return 4 * self.n("n_features")

    def padded(self, value: Any, name: str) -> Any:
        """Values rounded up to multiples of a constant of the kernel."""
        step = self.n(name)
        return (value + step - 1) // step * step


COUNTS: dict[str, Callable[[Launch], Cost]] = {}


def counts(kernel: Callable[[Launch], Cost]) -> Callable[[Launch], Cost]:
    """The cost of a launch of the kernel of this name."""
    COUNTS[kernel.__name__] = kernel
    return kernel


# --------------------------------------------------------------------------------------- tiles and their lists


def _tiles(a: Launch) -> tuple[int, torch.Tensor]:
    """Points in all tiles, and how many centres each tile that is not empty is compared with."""
    table = a["tiles"]
    sizes = (table[:, 2] - table[:, 1]).clamp(min=0)
    cells = table[sizes > 0, 0]
    return int(sizes.sum()), a["list_start"][cells + 1] - a["list_start"][cells]


def _unit(a: Launch) -> tuple[str, int]:
    """What multiplies, and how many products are taken for one."""
    mode = a["MODE"]
    return ("bf16", 1) if mode == "bf16" else ("tf32", 3 if mode == "fp32" else 1)


def _products(a: Launch, lengths: torch.Tensor) -> float:
    """Operations of products of whole tiles with their lists."""
    features = a.padded(a.n("n_features"), "FEATURES")
    return 2.0 * a.n("POINTS") * features * float(a.padded(lengths, "CENTRES").sum())


@counts
def search_tiles(a: Launch) -> Cost:
    n_points, lengths = _tiles(a)
    per_point = a.row + 8 + 4 * a.n("N_BEST")  # place and winners
    if a["HAS_OLD"]:
        per_point += 8 * a.n("N_BEST")
    per_point += (4 + 4 * a.n("N_BEST") + a.each("keys") * a.n("N_BEST")) if a["POSTERIOR"] else 4 * a.n("N_BEST")
    own = a["FORM"] == "own"
    unit, parts = ("tf32", 6) if own else _unit(a)
    n_bytes = n_points * per_point + float(lengths.sum()) * (a.mean * (2 if own else 1) + 4)
    return Cost(n_bytes + len(lengths) * a.mean, parts * _products(a, lengths), unit)


@counts
def nearest_of_tiles(a: Launch) -> Cost:
    n_points, lengths = _tiles(a)
    unit, parts = _unit(a)
    n_bytes = n_points * (a.row + 16) + float(lengths.sum()) * (a.mean + 4) + len(lengths) * a.mean
    return Cost(n_bytes, parts * _products(a, lengths), unit)


@counts
def sum_tiles(a: Launch) -> Cost:
    """Distances and sums are a product each."""
    n_points, lengths = _tiles(a)
    n_bytes = n_points * (a.row + 12) + float(lengths.sum()) * (2 * a.mean + 4) + len(lengths) * a.mean
    return Cost(n_bytes, 2 * _products(a, lengths), "tf32")


@counts
def sum_by_nearest(a: Launch) -> Cost:
    """Distances are a product, sums two."""
    n_points, lengths = _tiles(a)
    unit, parts = _unit(a)
    n_bytes = n_points * (a.row + 12) + float(lengths.sum()) * (2 * a.mean + 4) + len(lengths) * a.mean
    return Cost(n_bytes, (parts + 2) * _products(a, lengths), unit)


@counts
def move_centres(a: Launch) -> Cost:
    sizes, n_centres = a["start"].diff(), a["list_start"].diff()
    n_tiles = (sizes + a.n("size") - 1) // a.n("size")
    n_values = float((n_tiles * n_centres).sum())
    return Cost(n_values * (a.mean + 4) + 2 * float(n_centres.sum()) * a.mean, n_values * a.n("n_features"))


@counts
def fill_pieces(a: Launch) -> Cost:
    return Cost(24 * a.n("n_pieces") + 8 * a.n("n_groups"))


# ------------------------------------------------------------------------------------------------ pairs and sums


@counts
def unlisted_costs(a: Launch) -> Cost:
    n_old = a.n("n_points") * a.n("N_BEST")
    n_found = int(torch.isfinite(a["extra"]).sum())
    looks = 1 if a["MARKED"] else a.n("STEPS") + 1
    return Cost(n_old * (8 + 4 * looks) + n_found * (a.row + a.mean + 12), 3.0 * n_found * a.n("n_features"))


@counts
def pair_distances(a: Launch) -> Cost:
    return Cost(a.n("n_pairs") * (a.row + a.mean + 16), 3.0 * a.n("n_pairs") * a.n("n_features"))


@counts
def sum_runs(a: Launch) -> Cost:
    n_entries = int(a["start"][(2 if a["HALVES"] else 1) * a.n("n_segments")])
    n_runs = n_entries // a.n("SIZE") + a.n("n_segments")
    moments = 2 if a["SQUARES"] else 1
    n_bytes = n_entries * (a.row + 12) + n_runs * a.mean * moments + a.n("n_segments") * a.mean
    return Cost(n_bytes, (1.0 + 2.0 * moments) * n_entries * a.n("n_features"))


@counts
def merge_runs(a: Launch) -> Cost:
    n_segments, n_features = a.grid[0], a.n("n_features")
    n_entries = int(a["start"][(2 if a["HALVES"] else 1) * n_segments])
    n_runs = n_entries // a.n("size") + n_segments
    n_wide = 1 + bool(a["MOVES"]) + bool(a["BEFORE"]) + bool(a["WIDENS"])
    n_bytes = n_runs * (a.mean + 4) + n_segments * n_features * (8 * n_wide + (4 if a["WIDENS"] else 0))
    return Cost(n_bytes, float(n_runs * n_features))


@counts
def row_products(a: Launch) -> Cost:
    n_values = a.n("n_rows") * a.n("n_features")
    return Cost(16 * n_values + 24 * a.n("n_rows"), 4.0 * n_values)


@counts
def add_up(a: Launch) -> Cost:
    n_values = a.n("n_facts") * a.n("FACTS") + (a.grid[0] - a.n("FACTS")) * a.n("n_columns")
    return Cost(8 * n_values, float(n_values))


@counts
def step_on(a: Launch) -> Cost:
    n_values = a.n("n_clusters") * a.n("n_features")
    return Cost(16 * n_values, 2.0 * n_values)


@counts
def go_along(a: Launch) -> Cost:
    n_values = a.n("n_clusters") * a.n("n_features")
    return Cost(28 * n_values, float(n_values))


@counts
def bring_home(a: Launch) -> Cost:
    n_values = a.n("n_clusters") * a.n("n_features")
    return Cost(8 * n_values + a.n("n_clusters") * (8 + 4 * a.n("n_neighbors")), 2.0 * n_values, link=True)


# ---------------------------------------------------------------------------------------------- sorts and lists


@counts
def rank_in_tiles(a: Launch) -> Cost:
    n_tiles = a.grid[0]
    counted = 4 * n_tiles * a.n("width")
    return Cost(a.n("n") * (a.each("labels") + 4 + 8) + counted, 2.0 * a.n("n") * a.n("CHUNK"))


@counts
def begin_groups(a: Launch) -> Cost:
    n_values = a.n("n_tiles") * a.n("width")
    return Cost(8 * n_values + 24 * a.n("n_groups"), 2.0 * n_values)


@counts
def put_by_group(a: Launch) -> Cost:
    return Cost(a.n("n") * (a.each("labels") + 4 + 8 + 4 + 8))


@counts
def rank_rows(a: Launch) -> Cost:
    """Every value is compared with a limit up to 32 times, and those that count with one another."""
    n, n_places, count = a.grid[0], a.n("n_places"), a.n("count")
    return Cost(n * (4 * n_places + a.each("found") * count), float(n) * (32 * n_places + count * count))


@counts
def order_rows(a: Launch) -> Cost:
    n, n_places = a.grid[0], a.n("n_places")
    n_bytes = n * (n_places * a.each("values") + a.n("count") * (8 + a.each("values")))
    return Cost(n_bytes, 2.0 * n * n_places * n_places)


@counts
def join_lists(a: Launch) -> Cost:
    n, n_places = a.grid[0], a.n("n_places")
    return Cost(n * (4 * n_places + 8 * n_places + 4 * a.n("length")), 2.0 * n * n_places * n_places)


@counts
def compare_all(a: Launch) -> Cost:
    n_rows, n_clusters, width = a.n("n_rows"), a.n("n_clusters"), a.n("stride")
    n_bytes = 4.0 * n_rows * n_clusters + 4.0 * (n_rows + n_clusters) * width
    done = a.padded(n_rows, "ROWS") * a.padded(n_clusters, "OTHERS") * a.padded(width, "FEATURES")
    return Cost(n_bytes, 6.0 * done, "tf32")


@counts
def list_by_band(a: Launch) -> Cost:
    return Cost(a.n("n_listed") * (4 + a.each("listed")))


@counts
def mark_listed(a: Launch) -> Cost:
    return Cost(a.grid[0] * (4 * a.n("length") + 8 * a.n("n_words")))


# ------------------------------------------------------------------------------------------------------- moves


@counts
def two_nearest(a: Launch) -> Cost:
    looked_at = a.n("LOOKED_AT")
    n_bytes = a.n("n_points") * (a.row + looked_at * (a.mean + 4) + 24)
    return Cost(n_bytes, 3.0 * a.n("n_points") * looked_at * a.n("n_features"))


@counts
def survey_rivals(a: Launch) -> Cost:
    return Cost(20 * a.n("n_points") + 24 * a.grid[0], 4.0 * a.n("n_points"))


@counts
def end_takers(a: Launch) -> Cost:
    return Cost(24 * a.n("n_cheapest"))


@counts
def list_takers(a: Launch) -> Cost:
    chosen = a["cheapest"][: a.grid[0]]
    return Cost(16 * float((a["start"][chosen + 1] - a["start"][chosen]).sum()))


@counts
def put_halves(a: Launch) -> Cost:
    return Cost(32 * a.n("n_moves") * a.n("n_features"))


@counts
def hand_over(a: Launch) -> Cost:
    return Cost(a.n("n_points") * (a.each("labels") + 4 + 4 + 1 + 4 * a.n("N_BEST")))


@counts
def only_nearest(a: Launch) -> Cost:
    return Cost(a.n("n_points") * (a.each("labels") + 4 * a.n("N_BEST")))


@counts
def halve_cells(a: Launch) -> Cost:
    """Seeds and steps look at a sample, the end at all points; a cell's rows are read once from afar."""
    chosen = a["cells"][: a.grid[0]]
    sizes = a["start"][chosen + 1] - a["start"][chosen]
    n_points, n_sampled = float(sizes.sum()), float(sizes.clamp(max=a.n("ROWS")).sum())
    passes = 3 * (1 + a.n("N_TRIALS")) + 7 * a.n("STEPS")
    operations = a.n("n_features") * (n_sampled * passes + 6 * n_points)
    return Cost(n_points * (a.row + 13) + 4 * a.mean * len(chosen), operations)


# ------------------------------------------------------------------------------------------------ start: seeds


@counts
def fill_tables(a: Launch) -> Cost:
    """Half of every table is computed, in three parts, and all of it written."""
    sizes = a["cell_start"].diff().double()
    tiles = torch.ceil(sizes / a.n("TILE"))
    squares = float((tiles * (tiles + 1) / 2).sum()) * a.n("TILE") ** 2
    n_bytes = 4 * float((sizes * sizes).sum()) + a.mean * float(sizes.sum())
    return Cost(n_bytes, 6.0 * squares * a.padded(a.n("n_features"), "FEATURES"), "tf32")


@counts
def seed_by_tables(a: Launch) -> Cost:
    """A candidate is a row of the table."""
    n_looks = float((a["cell_start"].diff() * a["seed_start"].diff()).sum()) * a.n("N_TRIALS")
    return Cost(4 * n_looks, 4 * n_looks)


@counts
def walk_chains(a: Launch) -> Cost:
    """A new centre is compared with all proposals of later chains, by a row of the table."""
    n_proposals = a.n("n_chains") * a.n("length")
    n_looks = n_proposals * (a.n("n_chains") - 1) / 2
    return Cost(24 * n_proposals + 20 * n_looks, n_looks)


@counts
def log_sums(a: Launch) -> Cost:
    """An exponential is counted as one operation."""
    n_values = a.grid[0] * a.n("n_columns")
    return Cost(8.0 * n_values + (8.0 * n_values if a["BY_DISTANCE"] else 0.0) + 8 * a.grid[0], 7.0 * n_values)


@counts
def seed_in_cells(a: Launch) -> Cost:
    """Rows of a cell are read for every seed, and compared with its candidates."""
    n_looks = float((a["cell_start"].diff() * a["seed_start"].diff()).sum())
    n_trials = a.n("N_TRIALS")
    return Cost(n_looks * (a.mean + 8 + 8 * n_trials + 12), 3 * n_looks * n_trials * a.n("n_features"))


@counts
def worths_of_seeds(a: Launch) -> Cost:
    return Cost(24 * a.n("n_seeds") + 8 * a.n("n_cleared"))


@counts
def count_chosen(a: Launch) -> Cost:
    return Cost(16 * a.n("n_chosen"))


@counts
def begin_cells(a: Launch) -> Cost:
    return Cost(40 * a.n("n_cells"))


@counts
def take_seeds(a: Launch) -> Cost:
    return Cost(8 * a.n("n_seeds") + 8 * float(a["centre_start"][a.n("n_cells")]))


@counts
def draw_in_strata(a: Launch) -> Cost:
    n_bytes = a.n("n_rows") * (16 if a["BY_DISTANCE"] else 0)
    return Cost(n_bytes + a.n("n_strata") * (16 + a.row + 4 * a.n("width")))


# --------------------------------------------------------------------------------- start: groups, rows, moments


@counts
def survey_groups(a: Launch) -> Cost:
    n_points = float(a["start"][a.grid[0]])
    return Cost(16 * n_points + 40 * a.grid[0], 3 * n_points)


@counts
def sample_groups(a: Launch) -> Cost:
    return Cost(24 * float(a["sample_start"][a.n("n_groups")]))


@counts
def gather_columns(a: Launch) -> Cost:
    return Cost(a.n("n_rows") * (8 + a.row + a.mean))


@counts
def gather_rows(a: Launch) -> Cost:
    return Cost(a.n("n_rows") * (8 + a.row + 4 * a.n("width")))


@counts
def survey_blocks(a: Launch) -> Cost:
    """Rows are read twice by one program; from afar once."""
    n_values = a.n("n_rows") * a.n("n_features")
    return Cost(n_values * a.each("rows") + a.size("means", "scatters"), 4.0 * n_values)


@counts
def merge_blocks(a: Launch) -> Cost:
    n_values = a.n("n_blocks") * a.n("n_features")
    return Cost(16 * n_values, 6.0 * n_values)


@counts
def mean_of_some(a: Launch) -> Cost:
    return Cost(a.n("n_rows") * a.row, float(a.n("n_rows") * a.n("n_features")))


@counts
def hash_rows(a: Launch) -> Cost:
    n_rows, n_features = a.n("n_rows"), a.n("n_features")
    return Cost(n_rows * (n_features * a.each("rows") + 9), 5.0 * n_rows * n_features)


@counts
def scatter_rows(a: Launch) -> Cost:
    width = a.padded(a.n("n_features") + 1, "FEATURES")
    n_bytes = a.n("n_rows") * (a.row + 12) + 4.0 * a.grid[0] * (a.n("n_features") + 1) ** 2
    return Cost(n_bytes, 6.0 * a.grid[0] * a.n("ROWS") * width * width, "tf32")


@counts
def add_blocks(a: Launch) -> Cost:
    n_values = a.n("n_blocks") * a.n("n_values")
    return Cost(4 * n_values + 8 * a.n("n_values"), float(n_values))


@counts
def multiply_parts(a: Launch) -> Cost:
    return Cost(8 * a.n("n"), 2.0 * a.n("n"))
