"""Refinement: a few EM steps over all rows, after EM on the coreset."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..data import Rows
from ..progress import Callback, Iteration, Progress
from .em import Fit, variational_em
from .models.own import OwnModel
from .models.shared import Shared
from .models.start import rules_of, shared_model
from .row_searches import About, JointRowSteps, RowSearches, RowSteps
from .snapshot import Attempt, Costs, Problem


def refine(
    rows: Rows,
    weights: np.ndarray | None,
    total_weight: float,
    problem: Problem,
    searches: RowSearches,
    attempt: Attempt,
    costs: Costs,
    callbacks: Sequence[Callback],
    progress: Progress,
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
    searches : RowSearches
    attempt : Attempt
    costs : Costs
        Added to in place, as "refine".
    callbacks : sequence of Callback
        Told of every pass as of an iteration, with numbers that go on from those of EM.
    progress : Progress
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
    about = About(rows, weights, total_weight, problem, progress.advance)
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
    search: RowSteps | JointRowSteps
    if mixture is None:
        search = plain = searches.shared(about)
        model = shared_model(settings, plain, total_weight, problem.variance_floor, frame)
        variational_em(model, Shared(fit.means, attempt.fit.variance), fit, **common)
    else:
        search = by_joints = searches.joint(about)
        fit.n_shared, fit.sown = 0, np.zeros(len(fit.means), bool)
        own = _own_model(by_joints, about, searches.feature_sums())
        variational_em(own, mixture, fit, **common)
    progress.finish()
    costs.seconds["refine"] = time.perf_counter() - first
    costs.n_evaluations["refine"] = fit.n_evaluations
    ended = replace(attempt.fit, means=fit.means, variance=fit.variance, masses=fit.masses, mixture=fit.mixture)
    return Attempt(ended, search.neighbors), fit.bounds


def _own_model(search: JointRowSteps, about: About, of_features: tuple[np.ndarray, np.ndarray]) -> OwnModel:
    """Weights and variances of the clusters' own; the smallest variances are those of the coreset's features.

    Clusters that are dropped stay so: a few passes are too few for a new start.
    """
    problem, settings = about.problem, about.problem.settings
    weight = float(problem.coreset.weights.sum())
    rules = rules_of(settings, problem.variance_floor, *of_features, weight, problem.frame.dtype)
    return OwnModel(
        search,
        replace(rules, reassign=False),
        about.total_weight,
        about.rows.n_samples,
        settings.relaxation,
        problem.frame.log_scale,
        settings.refine,
    )
