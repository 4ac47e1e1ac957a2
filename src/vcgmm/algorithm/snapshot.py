"""Where a fit is between two iterations: all that its end depends on from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .coreset.frame import Frame
from .coreset.lightweight import Coreset
from .em import Fit
from .estep import State
from .models.mixture import Mixture
from .settings import Settings

STEPS = ("coreset", "seeding", "em")


@dataclass(frozen=True)
class Problem:
    """What all attempts of a fit work on.

    Attributes
    ----------
    settings : Settings
    coreset : Coreset
        Its weights in units.
    weight_unit : float
        What the user's weights are multiples of.
    frame : Frame
    variance_floor : float
        In local coordinates.
    """

    settings: Settings
    coreset: Coreset
    weight_unit: float
    frame: Frame
    variance_floor: float


@dataclass
class Costs:
    """What a fit has cost so far.

    Attributes
    ----------
    seconds : dict of float
        By step: "coreset", "seeding" and "em".
    n_evaluations : dict of int
        Distances computed, likewise; those of an attempt's EM are added when it has ended.
    elapsed : float
        Seconds since the fit began, without those between an interruption and its end.
    """

    seconds: dict[str, float]
    n_evaluations: dict[str, int]
    elapsed: float


@dataclass(frozen=True)
class Attempt:
    """An attempt that has ended.

    Attributes
    ----------
    fit : Fit
    neighbors : (C, G) int32
    """

    fit: Fit
    neighbors: np.ndarray


@dataclass
class Snapshot:
    """A fit between two iterations of EM, or between seeding and the first one.

    Random numbers are drawn by purpose and count (`random.py`), so the settings' seed and the counts in the state
    of the search are all of their state.  The arrays are those of the running fit, not copies.

    Attributes
    ----------
    problem : Problem
    costs : Costs
    attempt : int
        Which of `n_init` it is, from 0.
    best : Attempt or None
        The best one before it.
    fit : Fit
        Where EM has come to in this one.
    means : (C, D) float64
        What the next E-step will use: over-relaxed, unlike those of `fit`.
    variance : float or None
        Likewise; None where the next E-step estimates it.
    search : State
    mixture : Mixture or None
        What the next E-step will use where clusters have weights or variances of their own already; `means` are
        its means, and `variance` is that of `fit`.
    """

    problem: Problem
    costs: Costs
    attempt: int
    best: Attempt | None
    fit: Fit
    means: np.ndarray
    variance: float | None
    search: State
    mixture: Mixture | None = None

    def hand_over(self) -> np.ndarray:
        """The means, which are not kept here any longer: EM leaves them behind in its first iteration."""
        means, self.means = self.means, np.empty((0, 0))
        return means


#: Told of every snapshot, and whether it is one to keep whatever the time: the first, the last, or before a stop.
Keep = Callable[[Snapshot, bool], None]
