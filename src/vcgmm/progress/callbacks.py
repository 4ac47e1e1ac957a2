"""The facts that a callback receives after each EM iteration, and the check of the callbacks themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Iteration:
    """What a callback receives after each EM iteration.

    Attributes
    ----------
    iteration : int
        The number of the iteration, from 1.
    bound : float
        The objective F, a lower bound of the (weighted) log-likelihood.
    change : float
        Relative change |ΔF/F| to the iteration before; infinite at the first.
    variance : float
        The variance σ² the bound was evaluated with.
    seconds : float
        Wall time since the fit began.
    active : int or None
        Clusters that hold any weight; None where they were not counted.
    """

    iteration: int
    bound: float
    change: float
    variance: float
    seconds: float
    active: int | None = None


Callback = Callable[[Iteration], bool | None]
"""Called after each iteration; stops the fit by returning True."""


def check_callbacks(callbacks: Callback | Sequence[Callback] | None) -> tuple[Callback, ...]:
    """Bring the `callbacks` argument of an estimator into one form.

    Parameters
    ----------
    callbacks : callable, sequence of callables, or None
        What the user gave.

    Returns
    -------
    tuple of callables
        Empty for None.

    Raises
    ------
    TypeError
        If it is anything else.
    """
    if callbacks is None:
        return ()
    if callable(callbacks):
        return (callbacks,)
    remedy = "give None, a function that takes an Iteration, or a list of such functions"
    if not isinstance(callbacks, Sequence) or isinstance(callbacks, str | bytes):
        raise TypeError(f"callbacks={callbacks!r} is not callable: {remedy}.")
    for position, callback in enumerate(callbacks):
        if not callable(callback):
            raise TypeError(f"callbacks[{position}]={callback!r} is not callable: {remedy}.")
    return tuple(callbacks)
