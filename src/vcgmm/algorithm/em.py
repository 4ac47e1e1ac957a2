"""Variational EM on the merged objective: the loop of the paper's Algorithm 1, whatever the model."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np

from ..progress import Callback, Iteration, Progress
from .models.mixture import Mixture
from .mstep import next_step


@dataclass
class Fit:
    """Where EM has come to.

    Attributes
    ----------
    means : (C, D) float64
    variance : float
    masses : (C,) float64
        Weight of every cluster in the last M-step.
    bounds : list of float
        F after each E-step, with the parameters it used, in units of the weights.
    converged : bool
    stopped : bool
        A callback asked to stop.
    n_evaluations : int
        Distances computed in E-steps, warm-up included.
    step : float
        Length of the last M-step, as a multiple of the way to the weighted means.
    moves : (C, D) float64 or None
        That way.
    mixture : Mixture or None
        All parameters, where clusters have weights or variances of their own; `variance` is then their mean.
    n_shared : int or None
        Iterations before they had; None: they have none yet.
    sown : (C,) bool or None
        Clusters that have been given a new start, likewise.
    """

    means: np.ndarray
    variance: float
    masses: np.ndarray
    bounds: list[float] = field(default_factory=list)
    converged: bool = False
    stopped: bool = False
    n_evaluations: int = 0
    step: float = 1.0
    moves: np.ndarray | None = None
    mixture: Mixture | None = None
    n_shared: int | None = None
    sown: np.ndarray | None = None

    @classmethod
    def at(cls, means: np.ndarray) -> Fit:
        """Before the first iteration."""
        return cls(means, math.nan, np.zeros(len(means)))


class Parameters(Protocol):
    """What an E-step uses and an M-step finds; whatever else there is, there are means."""

    @property
    def means(self) -> np.ndarray:
        """(C, D) float."""
        ...


class Sums(Protocol):
    """What an E-step hands over to the M-step."""

    @property
    def means(self) -> np.ndarray:
        """The means (C, D) float that were used."""
        ...

    @property
    def masses(self) -> np.ndarray:
        """R_c, (C,) float64."""
        ...

    @property
    def n_evaluations(self) -> int:
        """Distances or costs computed."""
        ...


P = TypeVar("P", bound=Parameters)
S = TypeVar("S", bound=Sums)


class Model(Protocol[P, S]):
    """What is fitted: its E-step, M-step and bound, and what is done after each iteration."""

    @property
    def relaxation(self) -> float:
        """How far M-steps go at most, as a multiple of the way to the best means."""
        ...

    def e_step(self, now: P) -> S:
        """New winners, and the sums of the M-step over their responsibilities."""
        ...

    def bound(self, statistics: S) -> float:
        """F of an E-step, in data coordinates and units of the weights."""
        ...

    def m_step(self, statistics: S, step: float) -> P:
        """Parameters that raise F; with step 1 the best."""
        ...

    def used_variance(self, statistics: S) -> float:
        """The (mean) variance that an E-step used, in data coordinates."""
        ...

    def take_over(self, fit: Fit, statistics: S, plain: P, ahead: P) -> P:
        """Write down in `fit` what an M-step has found, and return what the next E-step uses.

        `plain` is from a step of length 1, `ahead` from one of the length that was taken.
        """
        ...


def variational_em(
    model: Model[P, S],
    now: P,
    fit: Fit,
    *,
    tol: float,
    max_iter: int,
    weight_unit: float,
    callbacks: Sequence[Callback],
    progress: Progress,
    begun: float,
    keep: Callable[[Fit, P], None] | None = None,
) -> Fit:
    """Iterate E- and M-steps until the bound converges.

    Parameters
    ----------
    model : Model
    now : parameters of the model
        What the first E-step uses.
    fit : Fit
        Where EM has come to, changed in place.
    tol : float
        Converged when the bound's relative change falls below it.
    max_iter : int
    weight_unit : float
        What the weights are multiples of, so that the bound is told in the user's weights.
    callbacks : sequence of Callback
    progress : Progress
    begun : float
        `time.perf_counter()` at the start of the fit.
    keep : callable, optional
        Told after every iteration where EM is, and the parameters that the next E-step will use.
    """
    while len(fit.bounds) < max_iter and not (fit.converged or fit.stopped):
        statistics = model.e_step(now)
        del now  # what was used is among the statistics
        fit.n_evaluations += statistics.n_evaluations
        fit.bounds.append(model.bound(statistics))
        change = relative_change(fit.bounds)  # in units of the weights, where nothing overflows
        fit.converged = change < tol

        plain = model.m_step(statistics, 1.0)
        fit.means = plain.means  # nobody needs those before, and they are as large as the sums
        ways = plain.means - statistics.means
        fit.step = next_step(fit.step, fit.moves, ways, statistics.masses, model.relaxation)
        fit.moves = ways
        used = model.used_variance(statistics)
        now = model.take_over(fit, statistics, plain, model.m_step(statistics, fit.step))

        n_active = int(np.count_nonzero(fit.masses))
        bound, seconds = weight_unit * fit.bounds[-1], time.perf_counter() - begun
        facts = Iteration(len(fit.bounds), bound, change, used, seconds, n_active)
        progress.iteration(facts)
        answers: list[Any] = [callback(facts) for callback in callbacks]  # every one of them is called
        fit.stopped = any(answers)
        if keep is not None:
            keep(fit, now)
        del statistics, plain, ways  # before the next E-step makes sums of its own
    return fit


def relative_change(bounds: Sequence[float]) -> float:
    """|dF / F| between the last two bounds; infinite before there are two."""
    if len(bounds) < 2:
        return math.inf
    change = abs(bounds[-1] - bounds[-2])
    return change / abs(bounds[-1]) if bounds[-1] != 0 else (math.inf if change else 0.0)
