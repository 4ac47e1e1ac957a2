"""Device search: points, winners and sums stay on the device; EM sees arrays that NumPy works on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from ...algorithm.estep import State
from ...algorithm.mstep import Statistics, initial_variance
from ...algorithm.seeding.relocation import Relocated
from ..cells.costs import Costs
from ..cells.nearest import Lists, Posterior, distances_of, prepare_search, prepare_unlisted
from ..cells.neighbourhoods import DeviceNeighbourhoods
from ..cells.pieces import Pieces, prepare_cut, sort_by_group
from ..cells.sums import Entries, prepare_entries, prepare_sums
from ..coreset.points import DevicePoints
from ..device.arena import empty
from ..device.arrays import DeviceArray, Rounded, Told, as_tensor, on_its_way
from ..device.downloads import to_host
from ..device.functions import prepare_totals
from ..device.room import Room
from ..device.sizes import pieces_of, power_of_two
from ..device.streams import current_stream
from ..device.tiling import Tiling, aligned, tiling
from ..kernels.rivals import only_nearest
from ..kernels.stepping import go_along
from ..seeding.relocation import relocate
from .ahead import FEATURES, N_TOLD, ROWS, Step, Stepper
from .homecoming import Homecoming, can_come
from .statistics import DeviceStatistics, Facts, facts_of
from .ways import Means, Moved, Way

#: Points whose first winners a program puts down.
LABELLED = 512


@dataclass(frozen=True)
class Found:
    """What a search over all points has found, beside winners and shares.

    Attributes
    ----------
    facts : (n_pieces, 4) float64 tensor
        Those of `search_tiles`.
    pieces : Pieces
    n_evaluations : int
        Distances computed, without those of winners that were not listed.
    """

    facts: torch.Tensor
    pieces: Pieces
    n_evaluations: int

    def totals(self) -> Totals:
        """The facts added up, and all distances computed; the host waits for them."""
        log_sum, scatter, error, n_unlisted = self.facts.sum(0).tolist()
        return Totals(log_sum, scatter, error, self.n_evaluations + int(n_unlisted))


class Totals(NamedTuple):
    """Sums over all points: those of `search_tiles`, and distances computed."""

    log_sum: float
    scatter: float
    error: float
    n_evaluations: int


class Begun(NamedTuple):
    """An E-step that has begun: its means (C, D) float32, the step that led there, its search if under way.

    The step knows of itself once the facts of the E-step before are told.
    """

    means: torch.Tensor
    step: Step
    found: Found | None
    told: Callable[[], Facts]


class Cells(NamedTuple):
    """Points by their nearest cluster, and the tiles of a search over them.

    The order holds points as they lie one after the other, each `per_row` times as large or a bit more.
    """

    order: torch.Tensor
    per_row: int
    pieces: Pieces
    tiles: Tiling


class DeviceSearch:
    """The blocked search on the device, a `Search` like the local ones.

    Points are never put in another order: a row is one long read, wherever it lies.

    Parameters
    ----------
    points : DevicePoints
    labels : (N',) int32 tensor
        A near cluster of every point.
    neighbourhoods : DeviceNeighbourhoods
    truncation : int
    start_error : float or Told
        Weighted squared distance to `labels`; it may be on its way to the host.
    variance_floor : float

    Attributes
    ----------
    links_ahead : bool
        Whether clusters that were moved are linked at once.  Whoever says so goes on with the means that it is
        given, and looks at no state before it has.
    """

    links_ahead = False

    def __init__(
        self,
        points: DevicePoints,
        labels: torch.Tensor,
        neighbourhoods: DeviceNeighbourhoods,
        truncation: int,
        start_error: float | Told,
        variance_floor: float,
    ) -> None:
        self.points = points
        self.total_weight = points.total_weight
        self.neighbourhoods = neighbourhoods
        self.truncation = truncation
        self.variance_floor = variance_floor
        shape = (len(points), truncation)
        self.winners = empty(shape, torch.int32, points.device)
        only_nearest[(pieces_of(len(points), LABELLED),)](
            labels.contiguous(),
            len(points),
            self.winners,
            N_BEST=truncation,
            COLUMNS=power_of_two(truncation),
            POINTS=LABELLED,
        )
        n_clusters = len(neighbourhoods.nearest)
        self._posterior = Posterior.empty(shape, n_clusters, points.device)
        self._used: torch.Tensor | None = None
        self._moved: tuple[Any, torch.Tensor] | None = None  # means after moves, and as they will be used
        self._stepper: Stepper | None = None
        self._n_steps = 0  # that may follow, where there is one
        self._room = Room(points.device)
        self._told: dict[int, Told] = {}
        self._neighbors: tuple[torch.Tensor, Callable[[], np.ndarray]] | None = None  # on their way to the host
        self._begin_anew(start_error)
        self._stream = current_stream(points.device)

    def _begin_anew(self, error: float | Told) -> None:
        """Go on from the first winners alone, with the weighted squared distance to them."""
        self._only_labels = True
        self._start_error = error
        self._cells: Cells | None = None
        self._moves: torch.Tensor | None = None  # of the last E-step
        self._begun: Begun | None = None

    @property
    def start_error(self) -> float:
        """Weighted squared distance to the labels that it began with; the host may wait for it."""
        return float(self._start_error)

    @property
    def neighbors(self) -> np.ndarray:
        """G_c, (C, G) int32."""
        there = self.neighbourhoods.neighbors
        if self._neighbors is None or self._neighbors[0] is not there:
            self._neighbors = (there, on_its_way(DeviceArray(there)))
        return self._neighbors[1]()

    def labels(self) -> torch.Tensor:
        """The nearest known cluster of every point, (N',) int32."""
        return self.winners[:, 0]

    def warm_up(self, means: Any) -> tuple[float, int]:
        """One E-step without responsibilities: error of the nearest winners, distances computed."""
        used = self._as_used(means)
        linked = self.neighbourhoods.update(used)
        totals = self.search(used, -1.0).totals()
        return totals.error, linked + totals.n_evaluations

    def _as_used(self, means: Any) -> torch.Tensor:
        """Means as an E-step uses them, (C, D) float32; those of a start or after moves are there already."""
        moved, self._moved = self._moved, None
        if moved is not None and moved[0] is means:
            return moved[1]
        if isinstance(means, Rounded) and means.used is not None:
            used, means.used = means.used, None  # E-steps change it
            return used
        return aligned(as_tensor(means, self.points.device), self._used)

    def run_ahead(self, longest: float, n_steps: int) -> None:
        """Begin E-steps while the host is still busy with the one before, but for those that link clusters.

        EM must go on by `next_step` and `m_step`, and look at nothing here but at `neighbors` when it has ended:
        winners may then be of an E-step that nobody has asked for.

        Parameters
        ----------
        longest : float
            Step that `next_step` is given.
        n_steps : int
            E-steps that are asked for at most.
        """
        points, self._n_steps = self.points, n_steps
        self._room = Room(points.device, keeps=True)
        self._stepper = Stepper(longest, points.n_features, self.total_weight, self.variance_floor, points.device)

    def e_step(self, means: Any, variance: float | None) -> Statistics:
        """New winners and neighbours, and the sums of the M-step."""
        begun, self._begun, found, step = self._begun, None, None, None
        if begun is not None:
            begun.told()
        if begun is not None and begun.step.leads_to(means, variance):
            used, found, step = begun.means, begun.found, begun.step
        else:
            used = self._as_used(means)
        self._used = used
        near = self.neighbourhoods
        linked = near.update(used)
        if variance is None:  # the error of the start may still be on its way: clusters are linked in the meantime
            variance = initial_variance(self.start_error, self.total_weight, used.shape[1], self.variance_floor)
        has_old = found is not None or not self._only_labels
        if found is None:
            found = self.search(used, 0.5 / variance if step is None else step.variance)
        before, entries, room = self._moves, self.entries(), self._room
        room.turn = turn = 1 - room.turn
        there = room(("means", turn), used.shape, torch.float64)
        sums, take_sums = room.again(prepare_sums, self.points, entries, used, before, turn, False, there)
        take_sums()
        if isinstance(means, Rounded):
            means.are_in(there)
        self._n_steps -= 1
        stepper, step = self._stepper if self._n_steps > 0 else None, None
        n_more = 0 if stepper is None else N_TOLD
        totals, letter, add_up = room.again(prepare_totals, sums.told, found.facts, n_more, turn, True)
        add_up()
        way, last = Way(sums.moves), self._stepper is not None and self._n_steps <= 0
        if stepper is not None:
            has_before = before is not None
            variance_there = stepper.take(used, sums.moves, sums.n_parts, totals, has_before, room, letter)
            step = Step(way, variance_there)
        told = facts_of(self._tell(letter), sums.n_parts, step)
        # What the next step begins with, and what need not be in time, while the host waits for this one.
        self.group_by(entries)
        self._moves = sums.moves
        if last:  # nobody will link again, nor go any further
            frame = self.points.frame
            if can_come(there, frame.scale) and not frame.origin.any():
                way.home = home = Homecoming(there, sums.moves, sums.masses, near.neighbors, frame.scale)
                self._neighbors = (near.neighbors, home.neighbors)
            else:
                self._neighbors = (near.neighbors, on_its_way(DeviceArray(near.neighbors)))
        if step is not None:
            ahead = self.search(used, step.variance) if near.stays else None
            self._begun = Begun(used, step, ahead, told)
        if self._stepper is not None:
            self.points.do_chores()
        n_listed = linked + found.n_evaluations
        return DeviceStatistics(
            Means(there), variance, self.total_weight, sums, way, before, told, n_listed, has_old
        )

    def _tell(self, totals: torch.Tensor) -> Told:
        """Tell the host of an E-step; of the last it knows."""
        if not self._room.keeps:
            return Told(totals, self._stream)
        n_totals = totals.shape[0]
        self._told[n_totals] = told = Told(totals, self._stream, self._told.get(n_totals))
        return told

    def scatter(self, statistics: Statistics, means: Any) -> float:  # noqa: ARG002
        """Scatter of the last E-step's responsibilities about other means."""
        return self.scatter_about(aligned(as_tensor(means, self.points.device)))

    def scatter_about(self, centres: torch.Tensor) -> float:
        """The same, of centres (C, D) float32."""
        entries = self.entries()
        distances = distances_of(self.points, entries.rows(), entries.clusters(), centres)
        return float(torch.dot(entries.parts[entries.order].double(), distances.double()))

    def relocate(self, means: Any, rng: np.random.Generator) -> Relocated:
        """Move clusters to where more are needed; their points go with them."""
        draws = torch.Generator(self.points.device)
        draws.manual_seed(int(rng.integers(1 << 62)))
        wide, used = self._as_moved(means)
        cells = self._cells or self._group(wide.shape[0])
        moved = relocate(self.points, cells.order, self.winners, wide, draws, used, cells.per_row)
        del cells
        self._begin_anew(moved.error)
        if self.links_ahead:  # while the host finds its way to the next E-step
            self.neighbourhoods.update_ahead(used)
            self._moved = (moved.means, used)
        return moved

    def _as_moved(self, means: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """A copy of means in float64, and the same as an E-step uses them; those of the last one may be gone."""
        used = self._used
        if isinstance(means, Moved) and means.factor == 1.0 and used is not None:
            (n_clusters, n_features), start, way = means.shape, means.start.tensor, means.way.tensor
            wide = empty((n_clusters, n_features), torch.float64, used.device)
            go_along[(pieces_of(n_clusters, ROWS),)](
                start, way, n_clusters, n_features, wide, used, used.stride(0), ROWS=ROWS,
                FEATURES=min(FEATURES, power_of_two(n_features)),
            )  # fmt: skip
            return wide, used
        given = as_tensor(means, self.points.device)
        return given.clone(), aligned(given, used)

    def state(self) -> State:
        """All that the next E-step depends on, on the host; points lie in the order in which they were given."""
        return {
            "rows": np.arange(len(self.points)),
            "winners": to_host(self.winners).numpy(),
            "misplaced": 0,
            "start_error": self.start_error,
            **self.neighbourhoods.state(),
        }

    def restore(self, state: State) -> None:
        """Go on from a state."""
        self.winners.copy_(torch.from_numpy(state["winners"]))
        self._cells = None
        self._only_labels = bool((self.winners[:, 1:] < 0).all())
        self._start_error = state["start_error"]
        self.neighbourhoods.restore(state)

    def entries(self) -> Entries:
        """The winners of the last E-step with their responsibilities, by cluster."""
        entries, sort = self._room.again(_sorted, self._posterior, self.neighbourhoods.lists)
        sort()
        return entries

    def search(self, means: torch.Tensor, precision: float | torch.Tensor, costs: Costs | None = None) -> Found:
        """New winners and shares, for means (C, D) float32; `precision` as in `prepare_search`."""
        points, near, room = self.points, self.neighbourhoods, self._room
        cells = self._cells or self._group(len(means))
        self._cells, extra = None, None
        if not self._only_labels:
            extra, look_up = room.again(prepare_unlisted, points, near.listed, means, self.winners, costs)
            look_up()
        given = (points, cells, means, near.lists, self.winners, extra, precision, self._posterior, costs)
        facts, run = room.again(_searched, *given)
        run()
        self._only_labels = False
        return Found(facts, cells.pieces, len(points) * near.lists.longest)

    def group_by(self, entries: Entries) -> None:
        """Begin the next search with winners that are sorted already."""
        self._cells, cut = self._room.again(_grouped, self.points, entries, self.neighbourhoods.lists)
        cut()

    def _group(self, n_clusters: int) -> Cells:
        """Points by their nearest cluster, where no E-step has sorted its winners."""
        groups = sort_by_group(self.winners[:, 0], n_clusters)
        cells, cut = _tiled(self._room, self.points, groups.order, groups.start, 1, self.neighbourhoods.lists)
        cut()
        return cells


def _sorted(room: Room, posterior: Posterior, lists: Lists) -> tuple[Entries, Callable[[], None]]:
    """Winners of as many clusters as there are lists, by cluster, and what sorts them."""
    return prepare_entries(room, posterior.keys, posterior.shares, len(lists))


def _grouped(room: Room, points: DevicePoints, entries: Entries, lists: Lists) -> tuple[Cells, Callable[[], None]]:
    """Points by their nearest cluster from winners by cluster, and what cuts them into tiles."""
    nearest, start = entries.order[: len(points)], entries.start[: entries.n_clusters + 1]
    return _tiled(room, points, nearest, start, entries.per_row, lists)


def _tiled(
    room: Room, points: DevicePoints, order: torch.Tensor, start: torch.Tensor, per_row: int, lists: Lists
) -> tuple[Cells, Callable[[], None]]:
    """Points in an order (N',) as of `Cells`, those of each cluster from start (C + 1,) on, and what cuts them."""
    tiles = tiling(points.n_features, len(points) / (start.shape[0] - 1), lists.longest, points.precision)
    pieces, cut = prepare_cut(room, start, tiles.points, len(points))
    return Cells(order, per_row, pieces, tiles), cut


def _searched(
    room: Room,
    points: DevicePoints,
    cells: Cells,
    means: torch.Tensor,
    lists: Lists,
    winners: torch.Tensor,
    extra: torch.Tensor | None,
    precision: float | torch.Tensor,
    posterior: Posterior,
    costs: Costs | None,
) -> tuple[torch.Tensor, Callable[[], None]]:
    """The facts of a search, and what runs it."""
    order, per_row, pieces, tiles = cells
    posterior = posterior.with_facts(len(pieces), room)
    launch = prepare_search(
        points, order, pieces, means, lists, means, tiles, points.precision, winners,
        old=None if extra is None else winners, extra=extra, precision=precision, posterior=posterior, costs=costs,
        per_row=per_row,
    )  # fmt: skip
    return posterior.facts, launch
