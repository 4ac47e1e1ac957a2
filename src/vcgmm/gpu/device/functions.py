"""What NumPy's functions are called in torch, and where the two differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ..kernels.sums import add_up, row_products
from .arena import empty
from .room import Room
from .sizes import pieces_of, power_of_two

#: Rows, and features of them, that a program multiplies.
PRODUCT_ROWS, PRODUCT_FEATURES = 8, 128

#: What `multiply_rows` finds of each row.
N_PRODUCTS = 2

#: Numbers that a program adds up at a time, and warps that it has.
ADDED, ADDING_WARPS = 4096, 8


def _maximum(one: Any, other: Any) -> torch.Tensor:
    """`torch.maximum` takes no numbers."""
    if not isinstance(one, torch.Tensor):
        one, other = other, one
    return torch.maximum(one, torch.as_tensor(other).to(one))


def _where(condition: torch.Tensor, one: Any, other: Any) -> torch.Tensor:
    """Numbers are float64, as NumPy has them: torch would take the narrowest."""
    if not isinstance(one, torch.Tensor) and not isinstance(other, torch.Tensor):
        one = torch.full((), one, dtype=torch.float64, device=condition.device)
    return torch.where(condition, one, other)


def _einsum(subscripts: str, *operands: torch.Tensor) -> torch.Tensor:
    """Products of rows are one kernel by another name, where `torch.einsum` makes matrices of them."""
    return torch.linalg.vecdot(*operands) if subscripts == "cd,cd->c" else torch.einsum(subscripts, *operands)


def multiply_rows(masses: torch.Tensor, left: torch.Tensor, right: torch.Tensor, products: torch.Tensor) -> None:
    """Products of rows (C, D) float64 without gaps, left by left and left by right, times masses (C,): (2, C)."""
    n_rows, n_features = left.shape
    row_products[(pieces_of(n_rows, PRODUCT_ROWS),)](
        masses, left, right, n_rows, n_features, products, ROWS=PRODUCT_ROWS,
        FEATURES=min(PRODUCT_FEATURES, power_of_two(n_features)),
    )  # fmt: skip


def totals_of(rows: torch.Tensor, facts: torch.Tensor | None = None, n_more: int = 0) -> torch.Tensor:
    """Sums of the columns of facts (n, k) and of rows (m, C), all float64 without gaps: (k + m + n_more,) float64.

    The last n_more are left to whoever has something to add.
    """
    totals, _, launch = prepare_totals(Room(rows.device), rows, facts, n_more)
    launch()
    return totals


def prepare_totals(
    room: Room, rows: torch.Tensor, facts: torch.Tensor | None, n_more: int, turn: int = 0, tells: bool = False
) -> tuple[torch.Tensor, Any, Callable[[], None]]:
    """Likewise, as soon as and as often as it is launched; memory of the other turn is left as it is.

    They are put twice: where they are, and, if it is to be told, where the host is told from.
    """
    n_facts, width = (0, 0) if facts is None else facts.shape
    n_rows, n_columns = rows.shape
    n_totals = width + n_rows + n_more
    totals = room(("totals", turn, n_totals), (n_totals,), torch.float64)
    told = room.letter(("told of totals", n_totals), (n_totals,), torch.float64) if tells else None
    told = totals if told is None else told
    launch = add_up.bound(
        (width + n_rows,), rows if facts is None else facts, n_facts, rows, n_columns, totals, told, FACTS=width,
        AT_ONCE=ADDED, num_warps=ADDING_WARPS,
    )  # fmt: skip
    return totals, told, launch


def weighted_products(masses: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """As `algorithm.mstep.weighted_products`, of tensors (C,) and (C, D) float64 without gaps: (2,) float64."""
    products = empty((N_PRODUCTS, left.shape[0]), torch.float64, left.device)
    multiply_rows(masses, left, right, products)
    return totals_of(products)


def _matmul(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return torch.matmul(one, other.to(one))


def _flatnonzero(values: torch.Tensor) -> np.ndarray:
    """Places come to the host: they are few where they are asked for, and how many is always."""
    places: np.ndarray = torch.nonzero(values.view(-1)).view(-1).cpu().numpy()
    return places


def _argsort(values: torch.Tensor, kind: str = "stable") -> np.ndarray:
    """Likewise."""
    order: np.ndarray = torch.sort(values, stable=kind == "stable").indices.cpu().numpy()
    return order


def _norm(vectors: torch.Tensor, axis: int, keepdims: bool = False) -> torch.Tensor:
    return torch.linalg.vector_norm(vectors, dim=axis, keepdim=keepdims)


UFUNCS: dict[Any, Callable[..., torch.Tensor]] = {
    np.add: torch.add,
    np.subtract: torch.subtract,
    np.multiply: torch.multiply,
    np.true_divide: torch.true_divide,
    np.power: torch.pow,
    np.matmul: _matmul,
    np.greater: torch.gt,
    np.less: torch.lt,
    np.greater_equal: torch.ge,
    np.less_equal: torch.le,
    np.equal: torch.eq,
    np.not_equal: torch.ne,
    np.bitwise_and: torch.bitwise_and,
    np.bitwise_or: torch.bitwise_or,
    np.invert: torch.bitwise_not,
    np.maximum: _maximum,
    np.absolute: torch.abs,
    np.sqrt: torch.sqrt,
    np.log: torch.log,
    np.cos: torch.cos,
    np.sin: torch.sin,
    np.arctan2: torch.atan2,
}

FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.where: _where,
    np.einsum: _einsum,
    np.dot: torch.dot,
    np.count_nonzero: lambda values: int((values != 0).sum()),
    np.flatnonzero: _flatnonzero,
    np.argsort: _argsort,
    np.argmax: torch.argmax,
    np.tile: torch.tile,
    np.zeros_like: torch.zeros_like,
    np.linalg.norm: _norm,
}
