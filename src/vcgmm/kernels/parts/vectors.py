"""Whole vectors of numbers in the code that numba makes: what kernels written for registers have in common.

numba leaves it to LLVM to find vectors in loops over single numbers, which it does well for long loops and not at
all for a tile of sums that is to stay in registers.  Such kernels say what is a vector themselves (`intrinsic`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from llvmlite import binding, ir
from numba.core import cgutils
from numba.core.errors import TypingError

from ..jit import part


def _registers() -> tuple[int, int]:
    """Bytes in a vector register of this processor, and how many there are."""
    features = cast("Any", binding).get_host_cpu_features()
    if features.get("avx512f"):
        return 64, 32
    return (32, 16) if features.get("avx") else (16, 32 if features.get("neon") else 16)


VECTOR_BYTES, N_REGISTERS = _registers()

#: Left factors of tiles have a multiple of so many rows, on every machine.
ROWS = 8

#: Rows and vectors of columns in a tile, as many as there are registers for.
HEIGHT, VECTORS = (ROWS if N_REGISTERS == 32 else ROWS // 2), 2


@part
def aligned(n: int, like: np.ndarray) -> np.ndarray:
    """Memory for n numbers of the type of another array, in which no vector lies in two lines of the cache."""
    spare = np.empty(n + VECTOR_BYTES // like.itemsize, like.dtype)
    begin = -spare.ctypes.data % VECTOR_BYTES // like.itemsize
    return spare[begin : begin + n]


def lanes(itemsize: int) -> int:
    """Numbers in a vector."""
    return VECTOR_BYTES // itemsize


def require_alike(*arrays: Any) -> None:
    """Refuse to compile for arrays that are not C-ordered, or of several types of numbers."""
    if any(array.layout != "C" or array.dtype != arrays[0].dtype for array in arrays):
        raise TypingError(f"arrays are to be C-ordered and of one type, not {arrays}")


def bytes_of(kind: Any) -> int:
    """Of a number."""
    return kind.width // 8 if isinstance(kind, ir.IntType) else 8 if isinstance(kind, ir.DoubleType) else 4


def _suffix(kind: Any) -> str:
    """A type of vectors, as names of LLVM's functions end."""
    return f"v{kind.count}{'i' if isinstance(kind.element, ir.IntType) else 'f'}{8 * bytes_of(kind.element)}"


#: Flags of an operation that is not to be taken apart: numba gives a kernel's, which may reorder sums, to all that
#: have none.
AS_WRITTEN = ("nsz",)

#: … but a product and a sum may be one operation, as in `Vectors.multiply_add`.
FUSED = ("contract", "nsz")

#: A feature of processors, and LLVM's name of its instruction for pairs of short integers, by bytes of a vector.
#: There are two such instructions: one begins anew at the least number where a sum is too large, this one stops at
#: the largest.  For Sapphire Rapids and what came after it LLVM takes the first apart into a product and a sum,
#: to wait less for it, which halves the rate of a tile; this one it leaves alone.
PAIRS = {64: ("avx512vnni", "llvm.x86.avx512.vpdpwssds.512"), 32: ("avxvnni", "llvm.x86.avx512.vpdpwssds.256")}

#: What becomes of a loop's values: called with the loop's number and the values there are.
Body = Callable[[Any, list[Any]], list[Any]]

#: What is done beside the products of a feature.
Meanwhile = Callable[[Any], None]


class Vectors:
    """Vectors of one type of numbers in a function that is being made.

    Parameters
    ----------
    context, builder
        As numba hands them to an intrinsic.
    dtype : numba type
        Of the numbers.
    """

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self.context = context
        self.builder = builder
        self.number = context.get_value_type(dtype)
        self.size = self.number.get_abi_size(context.target_data)
        self.width = lanes(self.size)
        self.kind = ir.VectorType(self.number, self.width)
        self.whole = ir.IntType(64)

    def array(self, kind: Any, value: Any) -> Any:
        """What is known of an array: `data`, `shape`, `strides`."""
        return self.context.make_array(kind)(self.context, self.builder, value)

    def index(self, value: int) -> Any:
        """A number that is known now."""
        return ir.Constant(self.whole, value)

    def beyond(self, value: Any, offset: int) -> Any:
        """An index and a number that is known now."""
        return self.builder.add(value, self.index(offset))

    def address(self, array: Any, kind: Any, row: Any, column: Any) -> Any:
        """Where [row, column] of a C-ordered matrix, or with no row [column] of a vector, is."""
        size = kind.get_abi_size(self.context.target_data)
        if isinstance(kind, ir.VectorType):
            size = kind.element.get_abi_size(self.context.target_data)
        offset = self.builder.mul(column, self.index(size))
        if row is not None:
            offset = self.builder.add(offset, self.builder.mul(row, self.builder.extract_value(array.strides, 0)))
        bytes_ = self.builder.gep(self.builder.bitcast(array.data, ir.IntType(8).as_pointer()), [offset])
        return self.builder.bitcast(bytes_, kind.as_pointer())

    def load(self, array: Any, row: Any, column: Any) -> Any:
        """A vector from an array."""
        return self.builder.load(self.address(array, self.kind, row, column), align=self.size)

    def store(self, value: Any, array: Any, row: Any, column: Any) -> None:
        """A vector, of this or another type, into an array."""
        size = value.type.element.get_abi_size(self.context.target_data)
        self.builder.store(value, self.address(array, value.type, row, column), align=size)

    def spread(self, value: Any) -> Any:
        """A vector of one value, of any type."""
        none = ir.Constant(ir.VectorType(value.type, self.width), ir.Undefined)
        first = self.builder.insert_element(none, value, ir.Constant(ir.IntType(32), 0))
        mask = ir.Constant(ir.VectorType(ir.IntType(32), self.width), [0] * self.width)
        return self.builder.shuffle_vector(first, none, mask)

    def loaded_spread(self, array: Any, row: Any, column: Any) -> Any:
        """A vector of one number of an array."""
        return self.spread(self.builder.load(self.address(array, self.number, row, column), align=self.size))

    @property
    def of_integers(self) -> bool:
        """Whether the numbers are integers."""
        return isinstance(self.number, ir.IntType)

    def constant(self, value: float) -> Any:
        """A vector of a number that is known now."""
        return ir.Constant(self.kind, [int(value) if self.of_integers else value] * self.width)

    def number_at(self, array: Any, kind: Any, place: Any) -> Any:
        """One number of a vector, of any type."""
        return self.builder.load(self.address(array, kind, None, place), align=bytes_of(kind))

    def load_where(self, array: Any, kind: Any, row: Any, column: Any, wanted: Any) -> Any:
        """Numbers that follow each other, 0 where they are not wanted; those need not be there.

        Wanted may be None, for all of them.
        """
        if wanted is None:
            return self.load(array, row, column)
        many, small = ir.VectorType(kind, self.width), ir.IntType(32)
        pointer = self.address(array, many, row, column)
        name = f"llvm.masked.load.{_suffix(many)}.p0"
        function = self._function(name, many, [pointer.type, small, wanted.type, many])
        nothing = ir.Constant(many, [0] * self.width)
        return self.builder.call(function, [pointer, ir.Constant(small, bytes_of(kind)), wanted, nothing])

    def first_lanes(self, n: Any) -> Any:
        """Whether a number is one of the first n of a vector."""
        lane = ir.Constant(ir.VectorType(self.whole, self.width), list(range(self.width)))
        return self.builder.icmp_signed("<", lane, self.spread(n))

    def total(self, value: Any) -> Any:
        """The sum of a vector's numbers, in halves."""
        function = self._function(
            f"llvm.vector.reduce.fadd.{_suffix(self.kind)}", self.number, [self.number, self.kind]
        )
        return self.builder.call(function, [ir.Constant(self.number, 0.0), value], fastmath=("reassoc", "nsz"))

    def _function(self, name: str, result: Any, arguments: Sequence[Any]) -> Any:
        """One of LLVM's own functions."""
        kind = ir.FunctionType(result, arguments)
        return cast("Any", cgutils).get_or_insert_function(self.builder.module, kind, name)

    def least(self, left: Any, right: Any) -> Any:
        """The lesser of each two, of vectors of any floats but NaN."""
        return self._chosen("minnum", left, right)

    def greatest(self, left: Any, right: Any) -> Any:
        """The greater of each two, likewise."""
        return self._chosen("maxnum", left, right)

    def _chosen(self, name: str, left: Any, right: Any) -> Any:
        """By a function of LLVM's, which is one instruction where NaN need not be thought of.

        A comparison and a choice would be one too, but are two where the bits have been integers before.
        """
        function = self._function(f"llvm.{name}.{_suffix(left.type)}", left.type, [left.type, left.type])
        return self.builder.call(function, [left, right], fastmath=("nnan", "nsz"))

    def plus(self, left: Any, right: Any) -> Any:
        """Left + right."""
        return (self.builder.add if self.of_integers else self.builder.fadd)(left, right)

    def minus(self, left: Any, right: Any) -> Any:
        """Left - right."""
        return (self.builder.sub if self.of_integers else self.builder.fsub)(left, right)

    def is_below(self, left: Any, right: Any) -> Any:
        """Left < right, which NaN is not."""
        return (self.builder.icmp_signed if self.of_integers else self.builder.fcmp_ordered)("<", left, right)

    def multiply_add(self, left: Any, right: Any, added: Any) -> Any:
        """Left * right + added, in one operation where the processor has it.

        Integers are pairs of short ones (`shorts`), and both products are added; sums are to fit, at every step.
        """
        if self.of_integers:
            return self._multiply_pairs(left, right, added)
        function = self._function(f"llvm.fmuladd.{_suffix(self.kind)}", self.kind, [self.kind] * 3)
        return self.builder.call(function, [left, right, added])

    def _multiply_pairs(self, left: Any, right: Any, added: Any) -> Any:
        """By one instruction where there is one for it, or written in full, of which LLVM makes what it can."""
        builder, small = self.builder, ir.IntType(32)
        feature, name = PAIRS.get(VECTOR_BYTES, ("none", ""))
        if f"+{feature}" in self._features():
            function = self._function(name, self.kind, [self.kind] * 3)
            return builder.call(function, [added, left, right])
        halves, wide = (ir.VectorType(kind, 2 * self.width) for kind in (ir.IntType(16), small))
        factors = [builder.sext(builder.bitcast(value, halves), wide) for value in (left, right)]
        products = builder.mul(*factors, flags=("nsw",))
        none, kind = ir.Constant(wide, ir.Undefined), ir.VectorType(small, self.width)
        first, second = (
            builder.shuffle_vector(products, none, ir.Constant(kind, list(range(begin, 2 * self.width, 2))))
            for begin in (0, 1)
        )
        return builder.add(added, builder.add(first, second))

    def _features(self) -> list[str]:
        """What the processor can do that numba compiles for, which may be another one than this."""
        _triple, _name, features = self.context.codegen().magic_tuple()
        return str(features).split(",")

    def loop(
        self, n: Any, step: int, begun: Sequence[Any], body: Body, *, perhaps_none: bool = False
    ) -> list[Any]:
        """For 0, step, 2 step... below n; what is held from one to the next, and in the end.

        Parameters
        ----------
        n : int64 of the function that is made
        step : int
        begun : values to begin with, which stay in registers
        body : tells what becomes of the values; called once, with the number and the values there are then
        perhaps_none : whether n may be 0
        """
        builder = self.builder
        before, inside, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
        if perhaps_none:
            builder.cbranch(builder.icmp_signed("<", self.index(0), n), inside, after)
        else:
            builder.branch(inside)
        builder.position_at_end(inside)
        number = builder.phi(self.whole)
        held = [builder.phi(value.type) for value in begun]
        then = body(number, held)
        following = self.beyond(number, step)
        end = builder.block  # not the one begun above, where the body has a loop of its own
        ways_in = zip([number, *held], [self.index(0), *begun], [following, *then], strict=True)
        for value, at_first, later in ways_in:
            value.add_incoming(at_first, before)
            value.add_incoming(later, end)
        builder.cbranch(builder.icmp_signed("<", following, n), inside, after)
        builder.position_at_end(after)
        if not perhaps_none:
            return then
        ended = [builder.phi(value.type) for value in begun]
        for value, at_first, later in zip(ended, begun, then, strict=True):
            value.add_incoming(at_first, before)
            value.add_incoming(later, end)
        return ended

    def tile(
        self,
        left: Any,
        rows: Sequence[Any],
        columns: Any,
        places: Sequence[Any],
        meanwhile: Meanwhile | None = None,
    ) -> list[list[Any]]:
        """sum_f left[rows[r], f] columns[f, places[v]:] as [r][v], in registers while the features f go by.

        There is at least one feature; what is done meanwhile is told each.
        """

        def feature_added(feature: Any, held: list[Any]) -> list[Any]:
            if meanwhile is not None:
                meanwhile(feature)
            points = [self.load(columns, feature, place) for place in places]
            sums = iter(held)
            added = []
            for row in rows:
                factor = self.loaded_spread(left, row, feature)
                added += [self.multiply_add(factor, point, next(sums)) for point in points]
            return added

        n_features = self.builder.extract_value(columns.shape, 0)
        sums = self.loop(n_features, 1, [self.constant(0.0)] * (len(rows) * len(places)), feature_added)
        return [sums[r * len(places) :][: len(places)] for r in range(len(rows))]
