"""All parameters of a fit, checked, and what they mean for the rows at hand."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from .algorithm.settings import Settings
from .data import ArrayRows, Rows, UnitRows
from .mixture_parameters import check_kind
from .validation import (
    check_centers,
    check_choice,
    check_coreset_size,
    check_float_type,
    check_integer,
    check_number,
    check_relaxation,
    draw_seed,
)

INITS = ("two_level", "afkmc2", "k-means++", "random")
SEARCHES = ("blocked", "pointwise")

#: coreset_size="auto": so many points for each component, which costs 1 to 3 % in error against all points, and
#: not fewer than so many in all (docs/benchmarks.md).
AUTO_POINTS_PER_COMPONENT = 256
AUTO_POINTS = 65_536

#: Data up to so many times as large are taken whole: a coreset would save less time than it costs in error.
AUTO_ALL = 4


def settings_of(model: Any, rows: Rows, *, drawn: bool = False, warm: bool = True) -> Settings:
    """Check all parameters, and clip sizes that are larger than the problem: they mean "all".

    Of rows that were drawn already, coreset_size="auto" takes all.  `warm_start` is heeded where `warm` is.
    """
    n_components = check_integer("n_components", model.n_components, 1)
    kind = check_kind(model)
    init: str | np.ndarray
    initial_variance = None
    if isinstance(model.init, str):
        init = check_choice("init", model.init, INITS)
    elif np.ndim(model.init) == 2:
        init = check_centers("init", model.init, rows.n_features, n_components)
    else:
        raise ValueError(
            f"init={model.init!r} is not valid: choose from {', '.join(map(repr, INITS))}, or give an array of "
            f"shape ({n_components}, {rows.n_features})."
        )
    if warm and model.warm_start and hasattr(model, "means_"):
        if model.means_.shape != (n_components, rows.n_features):
            raise ValueError(
                f"warm_start=True cannot go on from means of shape {model.means_.shape} with n_components="
                f"{n_components} and {rows.n_features} features: set warm_start=False, or keep both."
            )
        init, initial_variance = model.means_, model.variance_
    if kind.metric == "cosine" and not isinstance(init, str):
        init = UnitRows(ArrayRows(init, "init")).all()
    n_init = check_integer("n_init", model.n_init, 1) if isinstance(init, str) else 1
    automatic = automatic_size(model)
    if drawn or rows.n_samples <= AUTO_ALL * automatic:
        automatic = rows.n_samples
    truncation = min(check_integer("truncation", model.truncation, 1), n_components)
    n_candidates = min(check_integer("n_candidates", model.n_candidates, 1), n_components)
    n_neighbors = min(check_integer("n_neighbors", model.n_neighbors, 1), n_components)
    search = check_choice("search", model.search, SEARCHES)
    return Settings(
        n_components=n_components,
        coreset_size=check_coreset_size(model.coreset_size, rows.n_samples, automatic),
        truncation=truncation,
        n_neighbors=n_neighbors,
        n_explore=min(check_integer("n_explore", model.n_explore, 0), n_components),
        search=search,
        n_candidates=max(n_candidates, truncation, n_neighbors),
        init=init,
        chain_length=check_integer("chain_length", model.chain_length, 1),
        n_warmup=check_integer("n_warmup", model.n_warmup, 0),
        tol=check_number("tol", model.tol, 0.0),
        max_iter=check_integer("max_iter", model.max_iter, 1),
        relaxation=check_relaxation(model.relaxation),
        n_init=n_init,
        refine=check_integer("refine", model.refine, 0),
        reg_covar=kind.reg_covar,
        initial_variance=initial_variance,
        seed=draw_seed(model.random_state),
        dtype=check_float_type(model.dtype, rows.dtype),
        covariance_type=kind.covariance_type,
        mixing=kind.mixing,
        n_shared=kind.n_shared,
        reassign=kind.reassign,
        metric=kind.metric,
    )


def automatic_size(model: Any) -> int:
    """What coreset_size="auto" is, where there are more rows."""
    return max(AUTO_POINTS, AUTO_POINTS_PER_COMPONENT * int(model.n_components))


def stream_size(model: Any) -> int | None:
    """Points of each coreset that is kept of a stream; None: every row is."""
    if isinstance(model.coreset_size, numbers.Real) and not isinstance(model.coreset_size, numbers.Integral):
        raise ValueError(
            f"coreset_size={model.coreset_size!r} is a share of all rows, and how many a stream will have is "
            f"not known: for partial_fit give 'auto', a number of points, or None (all)."
        )
    size = check_coreset_size(model.coreset_size, 0, automatic_size(model))
    # Reduced again and again, twice as many points tell as much as those that are drawn once from all rows.
    return None if size is None else 2 * size
