"""What a program without inputs computes, where floats are cut off to whole numbers or compared on the way.

    >>> evaluate(buckets).cut
    ((1.9999999999999998, 2.0),)

A number that only rounding takes from a whole one stands for it, and that is said; what is compared must be farther
apart than rounding makes it. Of what an infinite number is cut off to nothing is known: it may be chosen nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rewright import ops
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, TensorOperator, integer_limits
from rewright.ops.facts import REAL, of_values
from rewright.proof.rewriting.numbers.bounded import Bounded, compute, exact, is_whole
from rewright.proof.rewriting.numbers.elements import ends_of

_MOST_ELEMENTS = 1 << 22
_MOST_NODES = 4096
_CLOSE = 1e-7
"""Floats that are compared, and nearer to each other than this, may be other ones in the type that they have."""
_EXACT = 1e-12
"""What some operators in double precision move a number by is less."""
_EXACT_SINGLE = 2.0**-25
"""What is as near to a whole number is that number in single precision; what is farther away is another one."""


@dataclass(frozen=True)
class Evaluated:
    """A result, and what was taken for granted on the way."""

    result: Bounded
    cut: tuple[tuple[float, float], ...]
    """Numbers that were cut off, and the whole ones that they stand for; one for each operator."""
    is_folded: bool
    """Whether double precision decided what a number is cut off to, or how two compare."""


def evaluate(graph: Graph) -> Evaluated | None:
    """What a program of one output and no inputs computes; None where that is unknown, or too much."""
    if graph.inputs or len(graph.outputs) != 1:
        return None
    (root,) = graph.outputs.values()
    wanted = sorted(graph.ancestors([root]))
    if len(wanted) > _MOST_NODES or not all(_is_small(graph.nodes[p]) for p in wanted):
        return None
    run = _Run(graph)
    try:
        with np.errstate(all="ignore"):
            for position, last in zip(wanted, _last_reads(graph, wanted), strict=True):
                if not run.step(position):
                    return None
                for read in last:
                    run.forget(read)
    except (RewrightError, ArithmeticError, ValueError, NotImplementedError, MemoryError):
        return None
    return Evaluated(run.known[root], tuple(dict.fromkeys(run.cut)), run.is_folded)


def _is_small(node: Node) -> bool:
    size = node.type.size()
    return isinstance(size, int) and size <= _MOST_ELEMENTS


def _last_reads(graph: Graph, wanted: Sequence[int]) -> list[list[int]]:
    """For each node what nothing reads after it."""
    readers: dict[int, int] = {}
    for number, position in enumerate(wanted):
        for operand in graph.nodes[position].operands:
            readers[operand] = number
    found: list[list[int]] = [[] for _ in wanted]
    for operand, number in readers.items():
        found[number].append(operand)
    return found


@dataclass
class _Run:
    """The nodes of a program that were computed and are still read."""

    graph: Graph
    known: dict[int, Bounded] = field(default_factory=dict[int, Bounded])
    cut: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])
    is_folded: bool = False

    def step(self, position: int) -> bool:
        """Compute a node; whether that is possible."""
        node = self.graph.nodes[position]
        op = node.op
        if not isinstance(op, TensorOperator) or isinstance(op, ops.Collective):
            return False
        operands = [self.known[p] for p in node.operands]
        types = [self.graph.nodes[p].type for p in node.operands]
        if op.infer(types) != node.type:
            return False
        if not operands:
            self.known[position] = exact(np.asarray(op.execute([], np.float64)))
        elif _cuts(op, types, node.type):
            self.known[position] = self._cut_off(op, operands[0], types[0].dtype, node.type.dtype)
        elif isinstance(op, ops.Compare) and types[0].dtype.is_float:
            self.known[position] = self._compare(op, *operands)
        else:
            self.known[position] = compute(op, operands, types, node.type)
        return True

    def forget(self, position: int) -> None:
        """Give the memory of a node back."""
        del self.known[position]

    def _cut_off(self, op: TensorOperator, known: Bounded, source: DType, target: DType) -> Bounded:
        """Whole numbers for floats."""
        # What is rounded may go either way in the middle, too.
        parts = 2 if isinstance(op, ops.RoundNearestEven) else 1
        whole = np.round(known.value * parts) / parts
        near = (_EXACT if source is DType.F64 else _EXACT_SINGLE) * np.maximum(1.0, np.abs(whole))
        is_near = (
            (np.abs(known.value - whole) <= near) & (whole - known.low <= 2 * near) & (known.high - whole <= 2 * near)
        )
        moved = is_near & (whole != known.value)
        self.cut += [(float(a), float(b)) for a, b in zip(known.value[moved][:1], whole[moved][:1], strict=True)]
        decided = ~moved & ~known.is_point & is_near
        decided &= op.execute([known.low], np.float64) != op.execute([known.high], np.float64)
        self.is_folded |= bool(decided.any())
        settled = moved | decided
        value, low, high = (np.where(settled, whole, end) for end in (known.value, known.low, known.high))
        return _whole_between(op, value, low, high, target)

    def _compare(self, op: TensorOperator, a: Bounded, b: Bounded) -> Bounded:
        """Truth values, where floats are not as near to each other as rounding brings them."""
        are_points = a.is_point & b.is_point
        is_same = (a.value == b.value) & ~are_points
        is_near = np.abs(a.value - b.value) <= _CLOSE * np.maximum(1.0, np.abs(b.value))
        is_near &= (a.value != b.value) & ~(are_points & is_whole(a.value) & is_whole(b.value))
        is_apart = are_points | (a.high < b.low) | (b.high < a.low)
        known = (is_apart & ~is_near) | is_same
        self.is_folded |= bool(is_same.any())
        by_value, by_low = (op.execute(pair, np.float64) for pair in ([a.value, b.value], [a.low, b.low]))
        value = np.where(is_same, by_value, by_low)
        return Bounded(value, np.where(known, value, False), np.where(known, value, True))


def _cuts(op: TensorOperator, types: Sequence[TensorType], kind: TensorType) -> bool:
    """Whether an operator cuts off what is behind the point: it makes floats whole, and leaves those that are."""
    if len(types) != 1 or not types[0].dtype.is_float or kind.dtype is DType.BOOL:
        return False
    of_any, of_two = (op.facts([known], types, kind) for known in (REAL, of_values([2])))
    return of_any.whole and of_two.low == of_two.high == 2


def _whole_between(op: TensorOperator, value: Array, low: Array, high: Array, target: DType) -> Bounded:
    """What an operator that never decreases makes of bounded floats; unknown where they may not fit its type."""
    is_known = np.isfinite(low) & np.isfinite(high)
    if target.is_integer:
        least, most = integer_limits(target)
        is_known &= (np.trunc(low) >= float(least)) & (np.trunc(high) < float(most + 1))
    ends = [np.asarray(op.execute([np.where(is_known, end, 0.0)], np.float64)) for end in (value, low, high)]
    bottom, top = (np.asarray(end, ends[0].dtype) for end in ends_of(target))
    low, high = np.where(is_known, ends[1], bottom), np.where(is_known, ends[2], top)
    return Bounded(np.where(low == high, low, np.nan if target.is_float else ends[0]), low, high)
