"""Rows that are wanted next are fetched while products are made, which leave memory idle.

A row that comes from memory takes up to a third as long as its products.  Fetched all at once rows are waited
for, since a core has but a dozen lines on their way; so each pair of a tile's features asks for as much of two
rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..parts.prefetch import emit_hint
from ..parts.vectors import Meanwhile, Vectors

#: Rows that a tile asks for: with 128 candidates and 32 registers all of the next block are.
ROWS_AT_ONCE = 2


@dataclass(frozen=True)
class Upcoming:
    """Rows source[order[after + j]], one for every column j of some tiles.

    Attributes
    ----------
    v : Vectors, of the rows' numbers
    source : what is known of an array (N', D) float
    order, number : of another (N',), and LLVM's type of its numbers
    after : int64
    n_slots : int64, left rows of all those tiles
    n_columns : int, of a tile of pairs
    """

    v: Vectors
    source: Any
    order: Any
    number: Any
    after: Any
    n_slots: Any
    n_columns: int

    def beside(self, first: Any) -> Meanwhile:
        """What the tile whose left rows begin with the first asks for."""
        v, builder = self.v, self.v.builder
        last = v.beyond(builder.extract_value(self.order.shape, 0), -1)
        share = builder.udiv(builder.mul(first, v.index(self.n_columns)), self.n_slots)
        begins = [self._begin(v.beyond(builder.add(self.after, share), k), last) for k in range(ROWS_AT_ONCE)]

        def hint(pair: Any) -> None:
            offset = builder.mul(pair, v.index(2 * v.size))
            for begin in begins:
                emit_hint(builder, self.source.data, builder.add(begin, offset))

        return hint

    def _begin(self, place: Any, last: Any) -> Any:
        """Bytes before the row of a place, or before that of the last one."""
        v, builder = self.v, self.v.builder
        there = builder.select(builder.icmp_signed("<", place, last), place, last)
        row = v.number_at(self.order, self.number, there)
        row = row if row.type == v.whole else builder.sext(row, v.whole)
        return builder.mul(row, builder.extract_value(self.source.strides, 0))
