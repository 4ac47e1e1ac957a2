"""`partial_fit`: a stream is absorbed block by block, and the model follows it.

Of the stream a few coresets are kept (`algorithm.streams.stream`).  A block is added to the model by one
incremental EM step, at a cost that grows with the block alone (`algorithm.streams.online`).  Whenever the scatter
of all rows has grown by `GROWTH` since EM last ran, be it by many rows or by a few unlike all before, EM runs on
all that is kept: from the present means, and from new seeds, and the better bound is kept.  So EM runs a number
of times that grows with the logarithm of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np

from .algorithm.coreset.lightweight import count_distinct
from .algorithm.pipeline import Result, run
from .algorithm.settings import Settings
from .algorithm.streams.merging import Weighted
from .algorithm.streams.online import Model, add_block
from .algorithm.streams.stream import Stream, absorb, begin
from .backends import streaming_backend_of
from .coreset import Coreset, unpack
from .data import ArrayRows, Rows, UnitRows
from .mixture_parameters import fitted_metric, in_metric
from .parallel import Workers
from .parameters import settings_of, stream_size
from .progress import Callback, History, Progress, check_callbacks, make_progress
from .validation import (
    check_finite,
    check_float_type,
    check_rows,
    check_threads,
    check_verbosity,
    check_weights_of,
)

#: Share by which the scatter of all rows grows before EM runs again.
GROWTH = 0.5


def absorb_rows(model: Any, X: Any, sample_weight: Any) -> Result | None:
    """`VCGMM.partial_fit`; returns the fit to all that is kept, where there was one.

    Parameters
    ----------
    model : VCGMM
        Its attributes are replaced, never changed in place.
    X : array-like of shape (N, D), source or Coreset
    sample_weight : array-like of shape (N,) or None
    """
    backend = streaming_backend_of(model)
    callbacks = check_callbacks(model.callbacks)
    check_verbosity(model.verbose)
    n_rows = X.n_samples if isinstance(X, Coreset) else None
    X, sample_weight = unpack(X, sample_weight)
    known = hasattr(model, "coreset_") or hasattr(model, "means_")
    rows = check_rows(model, X, reset=not known)
    weights = check_weights_of(rows, sample_weight)
    settings = settings_of(model, rows, drawn=True, warm=False)
    if not settings.is_shared:
        raise ValueError(
            f"partial_fit is not offered yet for covariance_type={settings.covariance_type!r} with mixing="
            f"{settings.mixing!r}: build a Coreset of the stream (merge, reduce) and fit to it, or use "
            f"covariance_type='isotropic' with mixing='equal'."
        )
    if hasattr(model, "means_") and fitted_metric(model) != settings.metric:
        raise ValueError(
            f"metric={settings.metric!r}, but the rows that are kept of this stream are those of metric="
            f"{fitted_metric(model)!r}: go on with that one, or begin a new model."
        )
    rows = in_metric(settings.metric, rows)
    result = None
    with (
        Workers(check_threads(model.n_threads)) as workers,
        make_progress(model.verbose, settings.tol) as progress,
    ):
        progress.note(backend.remark)
        for block in _blocks(rows, weights):
            ended = _absorb_block(model, block, n_rows or len(block[0]), settings, callbacks, progress, workers)
            result = result if ended is None else ended
            if ended is not None and ended.stopped:
                break
    return result


def _blocks(rows: Rows, weights: np.ndarray | None) -> Iterator[Weighted]:
    """Rows that have any weight, and their weights: an array as a whole, a source as it is read."""
    if isinstance(rows, ArrayRows):
        check_finite(rows)
        yield _counting(rows.array, weights)
        return
    if isinstance(rows, UnitRows) and isinstance(rows.given, ArrayRows):
        yield _counting(rows.all(), weights)
        return
    with closing(rows.parts()) as parts:
        for part in parts:
            for first, last in part.bounds():
                part.refuse_nonfinite(first, last)
            mass = part.weights(weights)
            unit = rows.weight_unit if weights is None else 1.0
            block = _counting(part.rows, None if mass is None else mass * unit)
            if len(block[0]):
                yield block


def _absorb_block(
    model: Any,
    block: Weighted,
    n_rows: int,
    settings: Settings,
    callbacks: Sequence[Callback],
    progress: Progress,
    workers: Workers,
) -> Result | None:
    """Absorb one block that stands for `n_rows` rows."""
    size = stream_size(model)
    stream = _stream_of(model, size, settings.seed)
    progress.start("stream", len(block[0]))
    kept = (model.coreset_.points, model.coreset_.weights) if stream.lengths else None
    stream, kept = absorb(stream, kept, block, n_rows, size, settings.n_components, workers)
    result, after = None, _add(model, stream, block, settings, workers, progress)
    progress.finish()
    if after is not None:
        model._take_step(after)
    elif count_distinct(kept[0], settings.n_components) >= settings.n_components:
        history = History()
        dtype = check_float_type(model.dtype, kept[0].dtype)
        steps = replace(settings, coreset_size=None, refine=0, seed=stream.seed, dtype=dtype)
        result = _run(kept, steps, _present(model, steps), (*callbacks, history), progress, workers)
        model._take_over(result, history, stream.n_rows, block[0].dtype)
        stream = replace(stream, scatter=_model_of(model).scatter)
    model.coreset_ = Coreset.of(*kept, None, stream.n_rows)
    model._stream = stream
    return result


def _stream_of(model: Any, size: int | None, seed: int) -> Stream:
    """The model's stream: as it is, going on from the coreset of a fit, or new."""
    if hasattr(model, "_stream"):
        stream: Stream = model._stream
        return stream
    if hasattr(model, "coreset_"):
        coreset = model.coreset_
        return begin(seed, len(coreset), coreset.n_samples or len(coreset), size, _model_of(model).scatter)
    if hasattr(model, "means_"):
        raise ValueError(
            "this model has no coreset_, so partial_fit cannot go on from it: save with coreset=True what is to "
            "go on after loading, or begin a new model."
        )
    return Stream(seed)


def _counting(rows: np.ndarray, weights: np.ndarray | None) -> Weighted:
    """Rows that have any weight, and their weights."""
    if weights is None:
        return rows, np.ones(len(rows))
    counting = np.flatnonzero(weights)
    return np.ascontiguousarray(rows[counting]), weights[counting]


def _model_of(model: Any) -> Model:
    return Model(model.means_, model.variance_, model.counts_, model.neighbors_)


def _present(model: Any, settings: Settings) -> Model | None:
    """What has been fitted so far, if it has the shape that is asked for now."""
    if not hasattr(model, "means_") or model.means_.shape != (settings.n_components, model.n_features_in_):
        return None
    return _model_of(model)


def _add(
    model: Any, stream: Stream, block: Weighted, settings: Settings, workers: Workers, progress: Progress
) -> Model | None:
    """The model after one step for a block; None where EM should run on all that is kept."""
    present = _present(model, settings)
    if present is None:
        return None
    most = (1 + GROWTH) * stream.scatter
    rows, weights = ArrayRows(block[0]), block[1]
    return add_block(present, model._frame, rows, weights, settings, most, workers, progress.advance)


def _run(
    kept: Weighted,
    settings: Settings,
    present: Model | None,
    callbacks: Sequence[Callback],
    progress: Progress,
    workers: Workers,
) -> Result:
    """EM on all that is kept: from the present means where there are any, and from new seeds."""
    points, weights = ArrayRows(kept[0]), kept[1]
    if present is None:
        return run(points, weights, settings, callbacks, progress, workers)
    warm = replace(settings, init=present.means, initial_variance=present.variance, n_init=1)
    followed = run(points, weights, warm, callbacks, progress, workers)
    if followed.stopped:
        return followed
    seeded = run(points, weights, settings, callbacks, progress, workers)
    # Clusters keep their numbers unless new ones are really better.
    gain = seeded.bounds[-1] - followed.bounds[-1]
    return seeded if gain > settings.tol * abs(followed.bounds[-1]) else followed
