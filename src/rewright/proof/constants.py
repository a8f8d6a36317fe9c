"""Constants of programs that were rounded, as the simple numbers that they were rounded from.

A program that divides by 3 and one that multiplies by ``0.3333333333333333`` compute the same but for rounding, as do
one that divides by the root of 2 twice and one that halves. Over the reals a double is the number that it is, and they
differ in the sixteenth digit. Where two programs have such constants that differ, a proof may take every one of them
for the number that it stands for, and says so: the programs are then written with quotients and roots of whole numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.rebuilding import rebuild
from rewright.ir.types import TensorType

STANDS = "constants stand for the numbers that they were rounded from: {0}"


@dataclass(frozen=True)
class _Precision:
    """How far a number may be from what it was rounded from, and how long numbers are that say something."""

    near: Fraction
    digits: int
    quotient: int
    root: int
    """Products of numerator and denominator are below these two: a longer one is near to any number."""


_DOUBLE = _Precision(Fraction(1, 1 << 51), 12, 1 << 40, 1 << 24)
"""Within four units in the last place, as a quotient of rounded numbers is."""
_SINGLE = _Precision(Fraction(1, 1 << 24), 5, 1 << 14, 1 << 12)
"""Within half a unit in the last place, so that no two numbers stand for one."""
_EXACT = 1 << 53
"""Whole numbers below this one are floats."""
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Number:
    """A rational number, or with ``is_root`` the root of one that is above zero; with a sign of its own."""

    value: Fraction
    is_root: bool = False
    is_negative: bool = False

    def __str__(self) -> str:
        text = f"the root of {self.value}" if self.is_root else str(self.value)
        return f"minus {text}" if self.is_negative else text


def differ(sequential: Graph, ranks: Sequence[Graph]) -> bool:
    """Whether the ranks have rounded constants that the sequential program has not, or the other way round."""
    mine, others = set(rounded([sequential])), set(rounded(ranks))
    return mine != others


def stands(graphs: Sequence[Graph]) -> str:
    """What every rounded constant of programs is taken for, in words; empty where they have none."""
    found = rounded(graphs)
    return STANDS.format(", ".join(f"{value!r} for {found[value]}" for value in sorted(found))) if found else ""


def rounded(graphs: Iterable[Graph]) -> Mapping[float, Number]:
    """The scalars of programs, and what tensors are filled with, that are simple numbers but for rounding."""
    values = {value for graph in graphs for node in graph.nodes for value in _scalar(node)}
    return {value: number for value in values if (number := stood_for(value)) is not None}


def written_out(sequential: Graph, ranks: Sequence[Graph]) -> tuple[Graph, tuple[Graph, ...]]:
    """The programs with rounded constants as quotients and roots of whole numbers, and nothing else changed.

    What these stand for is an assumption of the sequential program.
    """
    graphs = sequential, *ranks
    found, text = rounded(graphs), stands(graphs)

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        number = next((found[value] for value in _scalar(node) if value in found), None)
        return None if number is None else _write_number(builder, number, node.type)

    first, *others = (rebuild(graph, make, whole=True) for graph in graphs) if found else graphs
    said = [known for known in (first.metadata.get("assumptions", ""), text) if known]
    return replace(first, metadata={**first.metadata, "assumptions": "; ".join(said)}), tuple(others)


def stood_for(value: float) -> Number | None:
    """The simple number that a float was rounded from; None where it is near to none, or to one that floats have.

    A number that single precision has was rounded to that. What floats have is rounded to nothing else: just below 3
    is not 3.
    """
    size = abs(value)
    if not 0 < size < math.inf:
        return None
    is_single = size <= _LARGEST_SINGLE and float(np.float32(size)) == size
    exact, precision = Fraction(size), _SINGLE if is_single else _DOUBLE
    found = _decimal(np.float32(size) if is_single else size, precision.digits)
    found = found or _simplest(exact, precision.near, precision.quotient)
    is_root = found is None
    found = found or _simplest(exact * exact, 2 * precision.near, precision.root)
    if found is None or max(found.as_integer_ratio()) >= _EXACT or (not is_root and Fraction(float(found)) == found):
        return None
    return Number(found, is_root, value < 0)


def _decimal(value: float | np.float32, most: int) -> Fraction | None:
    """The shortest decimal that is rounded to a number; None where it has many digits."""
    found = Decimal(str(value))
    return Fraction(found) if len(found.normalize().as_tuple().digits) <= most else None


def _simplest(exact: Fraction, near: Fraction, most: int) -> Fraction | None:
    """The first convergent of a continued fraction that is as near, relative to its size; None where it is large."""
    before, last, rest = (0, 1), (1, 0), exact
    while True:
        whole = rest.numerator // rest.denominator
        before, last = last, (whole * last[0] + before[0], whole * last[1] + before[1])
        if last[0] * last[1] >= most:
            return None
        if abs(last[0] - exact * last[1]) <= near * exact * last[1]:
            return Fraction(*last)
        rest = 1 / (rest - whole)


def _scalar(node: Node) -> Iterator[float]:
    value = ops.splat(node.op)
    if node.type.dtype.is_float and value is not None:
        yield float(value)


def _write_number(builder: GraphBuilder, number: Number, kind: TensorType) -> int:
    """``p/q``, or the root of ``p/q`` as that of a whole number divided by one."""

    def whole(value: int) -> int:
        return builder.add(ops.Constant(kind, (float(value),)))

    over, under = number.value.numerator, number.value.denominator
    sign = -1 if number.is_negative else 1
    if not number.is_root:
        return builder.add(ops.Divide(), whole(sign * over), whole(under))
    root = builder.add(ops.Sqrt(), whole(over * under))
    return builder.add(ops.Divide(), builder.add(ops.Multiply(), whole(sign), root), whole(under))
