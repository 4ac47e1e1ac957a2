"""Refinement: a few EM steps over all rows, after EM on the coreset."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..data import Rows
from ..parallel import Workers
from ..progress import Callback, Iteration, Progress
from .em import Fit, variational_em
from .extent import Extent
from .local_points import LocalPoints
from .models.own import OwnModel
from .models.row_search import JointRowSearch
from .models.search import feature_sums
from .models.shared import Shared
from .models.start import rules_of, shared_model
from .row_search import RowSearch
from .snapshot import Attempt, Costs, Problem


def refine(
    rows: Rows,
    weights: np.ndarray | None,
    total_weight: float,
    problem: Problem,
    points: LocalPoints,
    attempt: Attempt,
    costs: Costs,
    callbacks: Sequence[Callback],
    progress: Progress,
    workers: Workers,
    begun: float,
) -> tuple[Attempt, list[float]]:
    """`settings.refine` EM steps over all rows, from where an attempt ended on the coreset.

    Parameters
    ----------
    rows : Rows
        All of them, not the coreset.
    weights : (N,) float64 or None
        In units, as in the problem; None: those that the rows come with, if any.
    total_weight : float
        Of all rows, likewise.
    problem : Problem
    points : LocalPoints
        The coreset's; put back in its order.
    attempt : Attempt
    costs : Costs
        Added to in place, as "refine".
    callbacks : sequence of Callback
        Told of every pass as of an iteration, with numbers that go on from those of EM.
    progress : Progress
    workers : Workers
    begun : float
        `time.perf_counter()` at the start of the fit.

    Returns
    -------
    attempt : Attempt
        With new means, variance, masses and neighbours; its bounds are still those of the coreset.
    bounds : list of float
        F of all rows in each pass, with the parameters it used, in units of the weights.
    """
    first, settings, frame = time.perf_counter(), problem.settings, problem.frame
    progress.start("refine", settings.refine * rows.n_samples)
    # In the frame of these rows the mean square of all features together is at most 2 for each of them.
    most = 2.0 * len(frame.origin)
    extent = Extent(
        total_weight,
        absolute=np.full(len(frame.origin), total_weight * math.sqrt(most)),
        squares=np.full(len(frame.origin), total_weight * most),
    )
    about = (rows, weights, extent, frame, settings, problem.variance_floor, workers)
    n_iter = len(attempt.fit.bounds)

    def numbered(callback: Callback) -> Callback:
        def told(facts: Iteration) -> bool | None:
            return callback(replace(facts, iteration=n_iter + facts.iteration))

        return told

    common: dict[str, Any] = {
        "tol": 0.0,
        "max_iter": settings.refine,
        "weight_unit": problem.weight_unit,
        "callbacks": [numbered(callback) for callback in callbacks],
        "progress": Progress(),  # rows are counted, not passes
        "begun": begun,
    }
    fit, mixture = Fit.at(attempt.fit.means), attempt.fit.mixture
    search: RowSearch
    if mixture is None:
        search = RowSearch(*about, progress.advance)
        model = shared_model(settings, search, total_weight, problem.variance_floor, frame)
        variational_em(model, Shared(fit.means, attempt.fit.variance), fit, **common)
    else:
        search = by_joints = JointRowSearch(*about, progress.advance)
        fit.n_shared, fit.sown = 0, np.zeros(len(fit.means), bool)
        own = _own_model(by_joints, problem, points, total_weight, workers)
        variational_em(own, mixture, fit, **common)
    progress.finish()
    costs.seconds["refine"] = time.perf_counter() - first
    costs.n_evaluations["refine"] = fit.n_evaluations
    ended = replace(attempt.fit, means=fit.means, variance=fit.variance, masses=fit.masses, mixture=fit.mixture)
    return Attempt(ended, search.neighbors), fit.bounds


def _own_model(
    search: JointRowSearch, problem: Problem, points: LocalPoints, total_weight: float, workers: Workers
) -> OwnModel:
    """Weights and variances of the clusters' own; the smallest variances are those of the coreset's features.

    Clusters that are dropped stay so: a few passes are too few for a new start.
    """
    settings, weights = problem.settings, problem.coreset.weights
    points.put_back()
    sums, squares = feature_sums(points.array, weights, workers)
    dtype = problem.frame.dtype
    rules = rules_of(settings, problem.variance_floor, sums, squares, float(weights.sum()), dtype)
    return OwnModel(
        search,
        replace(rules, reassign=False),
        total_weight,
        search.rows.n_samples,
        settings.relaxation,
        problem.frame.log_scale,
        settings.refine,
    )
