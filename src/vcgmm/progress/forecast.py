"""How long EM will go on, told from how the bound's change has fallen so far.

Near an optimum EM converges linearly: the change of the bound falls by about the same factor in every iteration.
A straight line through the logarithms of the last few changes says when it will pass the tolerance.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from .callbacks import Iteration

#: Iterations the line is drawn through: enough to be steady, few enough to follow a change of pace.
WINDOW = 8
#: Changes needed before a line means anything.
LEAST = 3
#: A slope flatter than this (halving the change in 700 iterations) is rounding or a plateau, not a decay.
FLAT = -1e-3


@dataclass(frozen=True)
class TimeLeft:
    """Seconds until EM ends.

    Attributes
    ----------
    seconds : float
    at_most : bool
        The change is not falling, or would take longer than there are iterations left: this is the time to the
        last iteration allowed.
    """

    seconds: float
    at_most: bool


class Forecast:
    """Looks ahead from the iterations it has been told.

    Parameters
    ----------
    tol : float
        EM has converged when the relative change of the bound is below it.
    """

    def __init__(self, tol: float) -> None:
        self._tol = tol
        self._seen: deque[Iteration] = deque(maxlen=WINDOW)

    def add(self, facts: Iteration) -> None:
        """Take note of an iteration."""
        self._seen.append(facts)

    def iterations_left(self) -> float | None:
        """Iterations until the change passes the tolerance; None as long as it shows no sign of that."""
        known = [facts for facts in self._seen if 0.0 < facts.change < math.inf]
        if self._tol <= 0.0 or len(known) < LEAST:
            return None
        numbers = np.array([facts.iteration for facts in known], float)
        slope, offset = np.polyfit(numbers - numbers[-1], np.log([facts.change for facts in known]), 1)
        if slope > FLAT:
            return None
        return max(1.0, (math.log(self._tol) - float(offset)) / float(slope))

    def time_left(self, last: int | None) -> TimeLeft | None:
        """Time until EM ends; None before there is anything to tell it from.

        Parameters
        ----------
        last : int or None
            Number of the last iteration allowed.
        """
        if len(self._seen) < LEAST + 1:  # the first iteration has no change yet
            return None
        first, now = self._seen[0], self._seen[-1]
        pace = (now.seconds - first.seconds) / (now.iteration - first.iteration)
        allowed = math.inf if last is None else last - now.iteration
        expected = self.iterations_left()
        if expected is None or expected > allowed:
            return None if math.isinf(allowed) else TimeLeft(allowed * pace, at_most=True)
        return TimeLeft(expected * pace, at_most=False)
