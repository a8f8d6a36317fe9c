"""Functions of one byte, element by element: what programs make of packed and quantised codes.

A number of 8 bits is one of a few, so that such a function is a table of what it gives for each of them, computed
as the numbers of its types count. Functions of one table are one function, however bits are masked, shifted and moved:
``w & 15`` and ``w % 16`` are both looked up in the table of whole numbers 0, 1, .., 15, 0, 1, .., times a number and
plus a number where there are such; what only counts the code itself is the code. A function in which a number
does not fit its type counts from the other end there. Where proofs take it not to, it stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, array_dtype
from rewright.ops.facts import integer_range
from rewright.proof.rewriting.laws import as_maker
from rewright.proof.rewriting.numbers.bytes import compute_for_numbers
from rewright.proof.rewriting.parts import convert_node
from rewright.refine.rewriting.drafts import Draft

_CODES = frozenset({DType.I8, DType.U8})
_BITS = (ops.Bitwise, ops.Not)
_WHOLE = 1 << 40


@dataclass(frozen=True)
class _Table:
    """A node as a function of another one: what it gives for every number of the type of that one."""

    leaf: int
    values: Array
    whole: Array
    """The same where whole numbers have no end."""
    dtype: DType

    @property
    def fits(self) -> bool:
        """Whether a machine's numbers are those that have no end."""
        return np.array_equal(self.values, self.whole)


def with_tables(draft: Draft, *, counts: bool = False) -> Draft:
    """The program with its functions of bytes as what is looked up in their tables.

    With ``counts`` short integers count from the other end, and functions in which they do are tables, too.
    """
    graph = draft.graph
    if not any(node.type.dtype in _CODES for node in graph.nodes):
        return draft
    tables = _tables(graph)
    last = {p: table for p, table in _last(graph, tables).items() if counts or table.fits}

    def make(builder: GraphBuilder, position: int, places: Mapping[int, int]) -> int | None:
        table = last.get(position)
        return None if table is None else _put(builder, places[table.leaf], table)

    return draft.rebuild(as_maker(graph, make)) if last else draft


def _tables(graph: Graph) -> dict[int, _Table]:
    """All nodes that are functions of one byte, and of numbers."""
    found: dict[int, _Table] = {}
    numbers: dict[int, Array] = {}
    for position, node in enumerate(graph.nodes):
        if (value := ops.splat(node.op)) is not None:
            numbers[position] = np.array([value], array_dtype(node.type.dtype))
        elif isinstance(node.op, ops.View) and node.operands[0] in numbers:
            numbers[position] = numbers[node.operands[0]]
        elif isinstance(node.op, ops.Gather):
            looked = _look_up(graph, node, found)
            found |= {} if looked is None else {position: looked}
        elif isinstance(node.op, ops.Elementwise):
            table = _table(graph, node.op, node, found, numbers)
            if table is not None and table.leaf >= 0:
                found[position] = table
            elif table is not None:
                numbers[position] = table.values
    return found


def _table(
    graph: Graph, op: ops.Elementwise, node: Node, known: Mapping[int, _Table], numbers: Mapping[int, Array]
) -> _Table | None:
    """A node as a function, of the leaf -1 where it is a number; None where it is one of several tensors or inexact."""
    leaves: set[int] = set()
    parts: list[Array] = []
    endless: list[Array] = []
    for operand in node.operands:
        kind = graph.nodes[operand].type
        if operand in numbers:
            parts.append(numbers[operand])
            endless.append(numbers[operand])
        elif operand in known:
            leaves.add(known[operand].leaf)
            parts.append(known[operand].values)
            endless.append(known[operand].whole)
        elif kind.dtype in _CODES:
            low, high = integer_range(kind.dtype)
            leaves.add(operand)
            parts.append(np.arange(low, high + 1).astype(array_dtype(kind.dtype)))
            endless.append(parts[-1])
        else:
            return None
    values = compute_for_numbers(graph, op, node, parts) if len(leaves) <= 1 else None
    if values is None or not np.isfinite(values).all():
        return None
    return _Table(leaves.pop() if leaves else -1, values, _whole(op, node, endless, values), node.type.dtype)


def _whole(op: ops.Elementwise, node: Node, operands: list[Array], values: Array) -> Array:
    """What an operator gives where whole numbers have no end; bits are those of a machine."""
    if isinstance(op, _BITS):
        return values
    if isinstance(op, ops.Convert) and node.type.dtype.is_integer:
        return np.trunc(operands[0]).astype(np.int64)
    return op.execute([one.astype(np.int64) if one.dtype.kind in "iu" else one for one in operands])


def _look_up(graph: Graph, node: Node, known: Mapping[int, _Table]) -> _Table | None:
    """What a table of numbers holds at a function of a code; None for other look-ups, and any out of range."""
    op, table, place = node.op, graph.nodes[node.operands[0]], known.get(node.operands[1])
    assert isinstance(op, ops.Gather)
    if place is None or not isinstance(table.op, ops.Constant) or table.type.rank != 1 or op.offset_dims:
        return None
    values, count = np.array(table.op.values), len(table.op.values)
    is_plain = op.index_vector_dim == node.type.rank == graph.nodes[node.operands[1]].type.rank
    in_range = place.values.dtype.kind in "iu" and 0 <= place.values.min() <= place.values.max() < count
    if count != table.type.shape[0] or not is_plain or not in_range or not np.isfinite(values).all():
        return None
    held = values[place.values]
    return _Table(place.leaf, held, held if place.fits else np.full(len(held), np.nan), node.type.dtype)


def _last(graph: Graph, tables: dict[int, _Table]) -> dict[int, _Table]:
    """The functions that something else reads than a function of the same tensor."""
    found: dict[int, _Table] = {p: tables[p] for p in graph.outputs.values() if p in tables}
    for position, node in enumerate(graph.nodes):
        for operand in node.operands:
            own = tables.get(operand)
            if own is not None and (position not in tables or tables[position].leaf != own.leaf):
                found[operand] = own
    return found


def _put(builder: GraphBuilder, leaf: int, table: _Table) -> int:
    """A function of a node, by its table: whole numbers without a common factor from zero on, scaled and moved."""
    exact = [Fraction(v) for v in table.values.tolist()]
    first, step, low = exact[0], _step(exact), integer_range(builder.type(leaf).dtype)[0]
    if table.dtype is DType.BOOL or (table.dtype.is_float and not _is_float(step, first)):
        kind = DType.F32 if table.dtype.is_float else table.dtype
        return _as(builder, _looked_up(builder, leaf, kind, table.values.tolist()), table.dtype)
    counts = [int((value - first) / step) for value in exact]
    if counts == list(range(len(exact))):
        place, first = leaf, first - step * low
    else:
        place = _looked_up(builder, leaf, DType.I64, counts)
    wide = _as(builder, place, table.dtype if table.dtype.is_float else DType.I64)
    return _as(builder, _move(builder, wide, step, first), table.dtype)


def _as(builder: GraphBuilder, position: int, dtype: DType) -> int:
    return convert_node(builder, position, TensorType(builder.type(position).shape, dtype))


def _looked_up(builder: GraphBuilder, leaf: int, dtype: DType, values: Sequence[float | int | bool]) -> int:
    """What a table says of every code, the first of it being about the least one."""
    shape, low = builder.type(leaf).shape, integer_range(builder.type(leaf).dtype)[0]
    index = _move(builder, _as(builder, leaf, DType.I64), Fraction(1), Fraction(-low))
    row = builder.add(ops.Constant(TensorType((len(values),), dtype), tuple(values)))
    return builder.add(ops.Gather((), (0,), (), (), (0,), len(shape), (1,)), row, index)


def _step(exact: list[Fraction]) -> Fraction:
    """The largest number that divides all differences to the first one, with the sign of the first of them."""
    apart = [value - exact[0] for value in exact if value != exact[0]]
    below = math.lcm(*(one.denominator for one in apart))
    common = Fraction(math.gcd(*(int(one * below) for one in apart)), below)
    return (common if apart[0] > 0 else -common) if apart else Fraction(1)


def _is_float(*numbers: Fraction) -> bool:
    """Whether numbers, and what they are quotients of, are floats as they are."""
    parts = [part for number in numbers for part in (number.numerator, number.denominator)]
    return all(abs(part) < _WHOLE for part in parts) and all(Fraction(float(n)) == n for n in numbers[1:])


def _move(builder: GraphBuilder, place: int, times: Fraction, more: Fraction) -> int:
    """A tensor times a number and plus a number, in its own type."""
    kind = builder.type(place)

    def number(value: Fraction | int) -> int:
        return builder.add(ops.Constant(kind, (float(value) if kind.dtype.is_float else int(value),)))

    if times.numerator != 1:
        place = builder.add(ops.Multiply(), place, number(times.numerator))
    if times.denominator != 1:
        place = builder.add(ops.Divide(), place, number(times.denominator))
    return builder.add(ops.Add(), place, number(more)) if more else place
