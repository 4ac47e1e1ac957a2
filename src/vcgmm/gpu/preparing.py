"""Rows become points on the device, where they lie or by way of pinned buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import torch

from ..algorithm.attempts import CORESET, SEEDING
from ..algorithm.coreset.frame import Frame, Moments
from ..algorithm.coreset.frame import moments as moments_by_parts
from ..algorithm.coreset.lightweight import Coreset, all_rows
from ..algorithm.models.families import FAMILIES
from ..algorithm.pipeline import check_distinct, make_coreset, refuse_too_few
from ..algorithm.random import generator
from ..algorithm.settings import Settings
from ..data import Rows, Selection
from ..parallel import Workers
from .coreset.hashing import Distinct
from .coreset.lanes import Lanes, Task
from .coreset.lightweight import begin_moments, lightweight_coreset
from .coreset.passes import DevicePasses
from .coreset.points import STORED, DevicePoints
from .coreset.scatter import FEW_FEATURES, Scatter, begin_scatter, n_told
from .coreset.tensors import TensorRows, blocks_of, rows_on
from .device.constants import equal_weights
from .device.downloads import to_host
from .device.together import Part, Together
from .memory import Shape, check_memory

FLOAT32 = np.dtype(np.float32)

#: Values that are copied to the device at a time.
COPIED_VALUES = 1 << 21

#: Types of rows on the host that are stored on the device as they are: they are small, and no digit is lost.
NARROW = {"uint8": torch.uint8, "int8": torch.int8, "float16": torch.float16}


#: Rows from which on memory is asked about at once; of fewer, only where it has turned out to be too little.
MANY = 1 << 20


class Begun(NamedTuple):
    """A start that has begun before all is known of the rows.

    Attributes
    ----------
    rng : numpy Generator
        As it is by now.
    scatter : Scatter or None
        Of a sample of the rows as they are stored.
    """

    rng: np.random.Generator
    scatter: Scatter | None


@dataclass(frozen=True)
class Prepared:
    """Rows of a fit, ready for EM.

    Attributes
    ----------
    coreset : Coreset
        Its points on the host, or the tensor that was given.
    points : DevicePoints
    moments : Moments
    begun : Begun or None
        The first start, where it has begun already.
    """

    coreset: Coreset
    points: DevicePoints
    moments: Moments
    begun: Begun | None = None


@dataclass(frozen=True)
class Plan:
    """How rows become points on the device.

    Attributes
    ----------
    settings : Settings
    device : torch.device
    precision : str
        What products are computed in; "bf16" is also what rows from the host are stored in.
    workers : Workers
    advance : callable
        Told how many rows have been read since the last call.
    """

    settings: Settings
    device: torch.device
    precision: str
    workers: Workers
    advance: Callable[[int], None]

    def prepare(self, rows: Rows, weights: np.ndarray | None) -> Prepared:
        """Points of the coreset; those of a tensor on this device are used where they lie."""
        there = rows_on(self.device, rows)
        if there is not None:
            return self.from_device(there, weights)
        whole = self.settings.coreset_size is None or self.settings.coreset_size >= rows.n_samples
        kind = NARROW.get(rows.dtype.name, torch.float32 if rows.dtype == FLOAT32 else None)
        if (
            whole
            and rows.at_hand
            and kind is not None
            and not (kind is torch.float32 and self.precision == "bf16")
        ):
            return self.all_at_once(rows, weights)
        return self.from_host(rows, weights)

    def all_at_once(self, rows: Rows, weights: np.ndarray | None) -> Prepared:
        """Copy all rows to the device as they are, and take their moments there."""
        plain = weights is None and not rows.weighted
        coreset = every_row(rows.all(), rows.n_samples) if plain else all_rows(rows, weights)
        kind = NARROW.get(rows.dtype.name, torch.float32)
        self._check_memory(len(coreset), rows.n_features, kind.itemsize)
        raw = self._copy(coreset.source, kind, None)
        masses = None if plain else coreset.weights
        given = None if masses is None else torch.from_numpy(masses).to(self.device)
        waited = begin_moments(TensorRows(raw, rows.name), given, self.advance)
        distinct = self._distinct(raw)
        facts = waited()
        self._check(distinct, rows.n_samples)
        frame = facts.frame(FLOAT32)
        if kind is not torch.float32:
            return Prepared(coreset, self._as_they_are(raw, masses, frame), facts)
        for part in blocks_of(*raw.shape):
            raw[part] = _entered(raw[part], frame)
        return Prepared(coreset, self._points(raw, 1.0, masses, frame), facts)

    def from_host(self, rows: Rows, weights: np.ndarray | None) -> Prepared:
        """Draw the coreset with passes over the rows that the device computes, and copy it there."""
        passes = DevicePasses(Lanes(self.device, self.workers))
        facts = moments_by_parts(rows, weights, self.workers, self.advance, passes.moments)
        coreset = make_coreset(rows, weights, facts, self.settings, self.workers, self.advance, passes.deviations)
        check_distinct(coreset, "n_components", self.settings.n_components, rows.n_samples)
        return Prepared(coreset, self.points_of(coreset, rows.dtype, facts.frame(FLOAT32)), facts)

    def points_of(self, coreset: Coreset, dtype: np.dtype[Any], frame: Frame) -> DevicePoints:
        """A coreset on the host, of rows of a type, as points on the device."""
        kind = NARROW.get(dtype.name)
        n_features = len(frame.origin)
        if kind is not None:
            self._check_memory(len(coreset), n_features, kind.itemsize)
            return self._as_they_are(self._copy(coreset.source, kind, None), coreset.weights, frame)
        kind = self._kind(frame)
        self._check_memory(len(coreset), n_features, kind.itemsize)
        return self._points(self._copy(coreset.source, kind, frame), 1.0, coreset.weights, frame)

    def from_device(self, rows: TensorRows, weights: np.ndarray | None) -> Prepared:
        """Draw the coreset on the device, or take all rows where they lie."""
        size, n_clusters = self.settings.coreset_size, self.settings.n_components
        if size is None and weights is None and rows.as_stored and rows.tensor.dtype in STORED:
            return self.in_place(rows)
        given = None if weights is None else torch.from_numpy(weights).to(self.device)
        points = None
        facts = begin_moments(rows, given, self.advance)()
        whole = size is None or size >= facts.n_usable
        if whole and facts.n_usable == rows.n_samples:
            points = tensor = rows.chosen(None)
        else:
            if size is None or whole:
                chosen = torch.nonzero(given).view(-1)
                drawn = chosen.new_ones(len(chosen), dtype=torch.float64) if given is None else given[chosen]
            else:
                rng = generator(self.settings.seed, CORESET)
                chosen, drawn = lightweight_coreset(rows, facts, given, size, rng, n_clusters, self.advance)
            tensor = rows.chosen(chosen)
        self._check(self._distinct(tensor), rows.n_samples)
        frame = facts.frame(FLOAT32)
        kind, in_place = self._kind(frame), tensor.dtype in STORED
        self._check_memory(len(tensor), rows.n_features, 0 if in_place else kind.itemsize)
        if points is None:
            coreset = Coreset(to_host(chosen).numpy(), TensorRows(tensor).all(), to_host(drawn).numpy())
        elif weights is None:
            coreset = every_row(points, len(points))
        else:
            coreset = Coreset(None, points, weights)
        told = None if weights is None and points is not None else coreset.weights
        if in_place:
            return Prepared(coreset, self._as_they_are(tensor, told, frame), facts)
        stored = torch.empty(tensor.shape, dtype=kind, device=self.device)
        for part in blocks_of(*tensor.shape):
            stored[part] = _entered(tensor[part], frame).to(kind)
        return Prepared(coreset, self._points(stored, 1.0, told, frame), facts)

    def in_place(self, rows: TensorRows) -> Prepared:
        """Take all rows where they lie; what need not be known before the start is looked at during it."""
        tensor, n_rows, n_features = rows.tensor, rows.n_samples, rows.n_features
        begins = self._looks_for_directions(n_features)
        home = Together([2 * n_features, n_told(n_features) if begins else 0], self.device).parts
        waited = begin_moments(rows, None, self.advance, home[0])
        make = equal_weights if n_rows <= MANY else torch.ones
        weights = make(n_rows, device=self.device)
        begun = self._begin(tensor, weights, home[1]) if begins else None
        if n_rows > MANY:
            self._check_memory(n_rows, n_features, 0)
        facts = waited()
        points = self._as_they_are(tensor, weights, facts.frame(FLOAT32))
        points.chores.append(lambda: self._look_at(points))
        return Prepared(every_row(tensor, n_rows), points, facts, begun)

    def _looks_for_directions(self, n_features: int) -> bool:
        """Whether a start of rows of so many features begins with how a sample of them scatters."""
        init = self.settings.init
        return isinstance(init, str) and init == "two_level" and n_features <= FEW_FEATURES

    def _begin(self, tensor: torch.Tensor, weights: torch.Tensor, home: Part) -> Begun:
        """Begin the first start of rows as they are stored."""
        rng = generator(self.settings.seed, SEEDING, 0)
        return Begun(rng, begin_scatter(tensor, 1.0, weights, rng, home))

    def check_room(self, points: DevicePoints) -> None:
        """Refuse a fit to points that are there and leave too little memory for it, and say what would fit."""
        self._check_memory(len(points), points.n_features, 0)

    def _look_at(self, points: DevicePoints) -> None:
        """Begin to count different points where they lie; how many there are is looked at the next time."""
        distinct = self._distinct(points.stored)
        points.chores.append(lambda: self._check(distinct, len(points)))

    def _copy(self, source: np.ndarray | Selection, kind: torch.dtype, frame: Frame | None) -> torch.Tensor:
        """Rows of the host, entered into a frame or as they are, on the device."""
        array = source if isinstance(source, np.ndarray) else source.array
        stored = torch.empty((len(source), array.shape[1]), dtype=kind, device=self.device)
        plain = array.dtype.isnative and array.flags.c_contiguous and array.flags.writeable
        if plain and frame is None and array is source:
            Lanes(self.device, self.workers).upload(array, stored)
            return stored
        step = max(1, COPIED_VALUES // array.shape[1])

        def tasks() -> Iterator[Task[slice]]:
            for first in range(0, len(source), step):
                place = slice(first, min(first + step, len(source)))
                yield place, lambda place=place: source[place]  # type: ignore[misc]

        lanes = Lanes(self.device, self.workers)
        with closing(lanes.blocks(tasks())) as blocks:
            for place, block in blocks:
                with lanes.beside:
                    stored[place] = block if frame is None else _entered(block, frame).to(kind)
        lanes.finish()
        return stored

    def _kind(self, frame: Frame) -> torch.dtype:
        """What local coordinates are stored in; rows without an origin had lain there, and lose no digit."""
        return torch.bfloat16 if self.precision == "bf16" and frame.origin.any() else torch.float32

    def _as_they_are(
        self, stored: torch.Tensor, weights: np.ndarray | torch.Tensor | None, frame: Frame
    ) -> DevicePoints:
        """Rows as they are stored: no origin but 0, and a power of two away from local coordinates."""
        frame = Frame(np.zeros(stored.shape[1]), frame.scale, FLOAT32)
        return self._points(stored, frame.scale, weights, frame)

    def _points(
        self, stored: torch.Tensor, scale: float, weights: np.ndarray | torch.Tensor | None, frame: Frame
    ) -> DevicePoints:
        """Points of these weights (N',) float64, or of weight 1, for which a tensor of ones may be given."""
        if isinstance(weights, np.ndarray):
            on_device = torch.from_numpy(np.ascontiguousarray(weights, dtype=np.float32)).to(self.device)
            return DevicePoints(stored, scale, on_device, frame, self.precision)
        ones = torch.ones(len(stored), device=self.device) if weights is None else weights
        points = DevicePoints(stored, scale, ones, frame, self.precision)
        points.total_weight = float(len(stored))
        return points

    def _distinct(self, tensor: torch.Tensor) -> Distinct:
        """Begin to count different rows."""
        return Distinct(tensor, self.settings.n_components)

    def _check(self, distinct: Distinct, n_samples: int) -> None:
        """Refuse to look for more clusters than there are different rows."""
        refuse_too_few(distinct.count(), "n_components", self.settings.n_components, n_samples)

    def _check_memory(self, n_points: int, n_features: int, itemsize: int) -> None:
        settings = self.settings
        n_variances = 0 if settings.is_shared else FAMILIES[settings.covariance_type].n_squares(n_features)
        n_candidates = settings.n_candidates + settings.n_explore
        shape = Shape(settings.n_components, settings.truncation, n_candidates, n_variances)
        check_memory(self.device, n_points, n_features, itemsize, shape)


def every_row(rows: Any, n_rows: int) -> Coreset:
    """All rows, each of weight 1, as a coreset that needs no memory for saying so."""
    return Coreset(None, rows, np.broadcast_to(1.0, n_rows))


def with_arrays(coreset: Coreset) -> Coreset:
    """The same, with an array of weights of its own."""
    return replace(coreset, weights=np.array(coreset.weights)) if coreset.weights.strides == (0,) else coreset


def _entered(block: torch.Tensor, frame: Frame) -> torch.Tensor:
    """Rows in local coordinates, float64."""
    return (block.double() - torch.from_numpy(frame.origin).to(block.device)) * frame.scale
