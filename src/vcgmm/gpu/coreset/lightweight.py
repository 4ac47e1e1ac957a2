"""Mean, variance and coreset of rows that lie on the device, where they lie."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from ...algorithm.coreset.frame import SMALLEST_SQUARE, Moments
from ..device.arena import empty
from ..device.exact import Urn
from ..device.sizes import pieces_of, power_of_two
from ..device.together import Part, alone
from ..kernels.surveying import merge_blocks, survey_blocks
from .hashing import row_hashes
from .tensors import TensorRows, blocks_of

#: Rows that one program looks at, at least, and most of such blocks.
SURVEYED, MOST_BLOCKS = 256, 1024

#: Rows, and features of them, that a program reads at a time; blocks, and features of those.
ROWS, FEATURES = 32, 64
MERGED, MERGED_FEATURES = 128, 16


def moments(rows: TensorRows, weights: torch.Tensor | None, advance: Callable[[int], None]) -> Moments:
    """Mean and variance of all rows, as `algorithm.coreset.frame.moments`; refuses rows that are not finite."""
    return begin_moments(rows, weights, advance)()


def begin_moments(
    rows: TensorRows, weights: torch.Tensor | None, advance: Callable[[int], None], home: Part | None = None
) -> Callable[[], Moments]:
    """Begin to look at all rows; what this gives waits for their `moments`.

    Parameters
    ----------
    rows : TensorRows
    weights : (N,) float64 tensor or None
    advance : callable
        Told how many rows have been read since the last call.
    home : Part, optional
        Room for two numbers a feature, by which rows as they are stored tell the host of theirs.
    """
    if weights is None and rows.as_stored:
        merged = home or alone(2 * rows.n_features, rows.tensor.device)
        _survey(rows.tensor, merged.tensor)
        return lambda: _moments(rows, None, *_waited(rows, merged, advance))
    return lambda: _moments(rows, weights, *_part_by_part(rows, weights, advance))


def _moments(
    rows: TensorRows, weights: torch.Tensor | None, mass: float, spread: float, mean: np.ndarray
) -> Moments:
    """What follows from weight, scatter and mean (D,) of rows; refuses those that vary too much or too little."""
    variance = spread / mass
    if not math.isfinite(variance):
        raise ValueError(
            f"{rows.name} holds values so large that their squares overflow float64: divide it by its largest "
            f"absolute value first."
        )
    if variance < SMALLEST_SQUARE and bool((rows.tensor != rows.tensor[0]).any()):
        raise ValueError(
            f"{rows.name} varies so little that its squares underflow float64: multiply it by a large number."
        )
    n_usable = rows.n_samples if weights is None else int(torch.count_nonzero(weights))
    return Moments(mass, mean, variance, n_usable)


def _survey(rows: torch.Tensor, merged: torch.Tensor) -> None:
    """Mean and scatter of rows (N, D) as they are stored, one after the other: (2 D,) float64, on the device."""
    (n_rows, n_features), device = rows.shape, rows.device
    size = max(SURVEYED, pieces_of(n_rows, MOST_BLOCKS))
    n_blocks, features = pieces_of(n_rows, size), min(FEATURES, power_of_two(n_features))
    means, scatters = empty((2, n_blocks, n_features), torch.float64, device)
    survey_blocks[(n_blocks, pieces_of(n_features, features))](
        rows, rows.stride(0), n_rows, n_features, size, means, scatters, ROWS=ROWS, FEATURES=features
    )
    merge_blocks[(pieces_of(n_features, MERGED_FEATURES),)](
        means, scatters, n_rows, n_features, size, n_blocks, merged, BLOCKS=MERGED, FEATURES=MERGED_FEATURES
    )


def _waited(rows: TensorRows, merged: Part, advance: Callable[[int], None]) -> tuple[float, float, np.ndarray]:
    """Weight, scatter and mean (D,) of rows, each of weight 1, as soon as the host knows what `_survey` gave."""
    n_rows, n_features = rows.tensor.shape
    mean, spreads = merged.array().reshape(2, n_features)
    if not np.isfinite(mean).all():
        for part in blocks_of(n_rows, n_features):
            _refuse_nonfinite(rows, part)
        _refuse_sums(rows)
    advance(n_rows)
    with np.errstate(over="ignore"):  # the caller refuses it
        return float(n_rows), float(spreads.sum()), mean.copy()


def _part_by_part(
    rows: TensorRows, weights: torch.Tensor | None, advance: Callable[[int], None]
) -> tuple[float, float, np.ndarray]:
    """Weight, scatter and mean (D,) of rows that are widened, scaled or weighted first."""
    mass, spread, mean = 0.0, 0.0, np.zeros(rows.n_features)
    for part in blocks_of(rows.n_samples, rows.n_features):
        block = rows.wide(part)
        here, scatter, own = _moments_of(block, None if weights is None else weights[part])
        if here > 0.0:
            if not np.isfinite(own).all():
                _refuse_nonfinite(rows, part)
                _refuse_sums(rows)
            away = own - mean
            with np.errstate(over="ignore"):  # the caller refuses it
                spread += scatter + mass * here / (mass + here) * float(away @ away)
            mean += away * (here / (mass + here))
            mass += here
        advance(len(block))
    return mass, spread, mean


def _moments_of(block: torch.Tensor, weights: torch.Tensor | None) -> tuple[float, float, np.ndarray]:
    """Weight, scatter and mean (D,) of rows (n, D) float64; the host waits once."""
    if weights is None:
        variances, own = torch.var_mean(block, 0, correction=0)
        told = torch.cat([variances.sum().view(1), own]).cpu().numpy()
        return float(len(block)), float(len(block) * told[0]), told[1:]
    mass = weights.sum()
    own = (weights @ block) / mass
    scatter = torch.dot(weights, ((block - own) ** 2).sum(1))
    told = torch.cat([mass.view(1), scatter.view(1), own]).cpu().numpy()
    return float(told[0]), float(told[1]), told[2:]


def lightweight_coreset(
    rows: TensorRows,
    facts: Moments,
    weights: torch.Tensor | None,
    size: int,
    rng: np.random.Generator,
    n_distinct: int,
    advance: Callable[[int], None],
) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw `size` rows as `algorithm.coreset.lightweight` does, and add unseen ones if too few differ.

    Returns
    -------
    indices : (N',) int64 tensor, ascending, none twice
    weights : (N',) float64 tensor
    """
    device = rows.tensor.device
    mean = torch.from_numpy(facts.mean).to(device)
    probabilities = torch.empty(rows.n_samples, dtype=torch.float64, device=device)
    for part in blocks_of(rows.n_samples, rows.n_features):
        block = rows.wide(part)
        squares = ((block - mean) ** 2).sum(1)
        share = 0.5 / facts.total_weight + (0.5 / facts.spread * squares if facts.spread > 0 else 0.0 * squares)
        probabilities[part] = share if weights is None else share * weights[part]
        advance(len(block))
    probabilities /= probabilities.sum()
    uniforms = torch.from_numpy(np.sort(rng.random(size))).to(device)
    indices, counts = torch.unique_consecutive(Urn(probabilities).draw(uniforms), return_counts=True)
    masses = torch.ones(len(indices), dtype=torch.float64, device=device) if weights is None else weights[indices]
    drawn = counts.double() * masses / (size * probabilities[indices])
    return _with_unseen(rows, weights, indices, drawn, n_distinct)


def _with_unseen(
    rows: TensorRows,
    weights: torch.Tensor | None,
    indices: torch.Tensor,
    drawn: torch.Tensor,
    n_distinct: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add rows that no draw has met, each with its own weight, until there are `n_distinct` different ones."""
    seen = torch.unique(row_hashes(rows.chosen(indices)))
    if len(seen) >= n_distinct or n_distinct < 2:
        return indices, drawn
    hashes = row_hashes(rows.chosen(None))
    new = ~torch.isin(hashes, seen)
    if weights is not None:
        new &= weights > 0
    places = torch.nonzero(new).view(-1)
    ordered, by_hash = torch.sort(hashes[places], stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    unseen = torch.sort(places[by_hash[first]]).values[: n_distinct - len(seen)]
    own = drawn.new_ones(len(unseen)) if weights is None else weights[unseen]
    indices, order = torch.sort(torch.cat([indices, unseen]))
    return indices, torch.cat([drawn, own])[order]


def _refuse_nonfinite(rows: TensorRows, part: slice) -> None:
    """Name the first NaN or infinity of a block, if there is any."""
    block = rows.tensor[part]
    bad = torch.nonzero(~torch.isfinite(block))
    if len(bad):
        row, feature = bad[0].tolist()
        kind = "NaN" if bool(torch.isnan(block[row, feature])) else "infinity (inf)"
        raise ValueError(
            f"Input {rows.name} contains {kind}: the first in {rows.locate(part.start + row)}, feature {feature}. "
            f"Remove such rows or impute their values (for example with sklearn.impute.SimpleImputer)."
        )


def _refuse_sums(rows: TensorRows) -> None:
    """Say that all values are finite, but their sums are not."""
    raise ValueError(
        f"{rows.name} holds values so large that their sums overflow float64: divide it by its largest absolute "
        f"value first."
    )
