"""Functions of one byte, element by element: what programs make of packed and quantised codes.

A number of 8 bits is one of a few, so that such a function is a table of what it gives for each of them, computed
as the numbers of its types count. Functions of one table are one function, however bits are masked, shifted and moved:
all of them are written as the first one is, in the left program before the right one. Where one table is another one
times a number and plus a number, and floats come of it, it is written so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Union

import numpy as np

from rewright import ops
from rewright.ir.dims import Shape
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, array_dtype
from rewright.ops.facts import integer_range
from rewright.proof.rewriting.numbers.bytes import compute_for_numbers
from rewright.proof.rewriting.parts import convert_node
from rewright.refine.rewriting.drafts import Draft

_CODES = frozenset({DType.I8, DType.U8})
_WHOLE = 1 << 40


@dataclass(frozen=True)
class _Number:
    """A number for every element."""

    value: float | int | bool
    dtype: DType


@dataclass(frozen=True)
class _Code:
    """The code itself."""


@dataclass(frozen=True)
class _Looked:
    """What a table holds at a function of the code."""

    table: ops.Constant
    place: _Function


@dataclass(frozen=True)
class _Applied:
    """An operator on functions of the code."""

    op: Operator
    operands: tuple[_Function, ...]


_Function = Union[_Number, _Code, _Applied, _Looked]


@dataclass(frozen=True)
class _Table:
    """A node as a function of another one: what it gives for every number of the type of that one."""

    leaf: int
    values: Array
    function: _Function
    dtype: DType


@dataclass(frozen=True)
class _Known:
    """The first function of a table."""

    function: _Function
    dtype: DType
    first: Fraction
    step: Fraction
    """Its first number, and by how much the next other one is more."""


def codes_alike(drafts: Sequence[Draft]) -> tuple[Draft, ...]:
    """The programs with functions of one table written alike; those without bytes are returned as they are."""
    if not any(node.type.dtype in _CODES for draft in drafts for node in draft.graph.nodes):
        return tuple(drafts)
    known: dict[object, _Known] = {}
    return tuple(_written(draft, known) for draft in drafts)


def _written(draft: Draft, known: dict[object, _Known]) -> Draft:
    """The program with functions as they are ``known``, which learns those that are new."""
    graph = draft.graph
    tables = _tables(graph)
    last = _last(graph, tables)
    places: dict[int, int] = {}

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        places.update(zip(node.operands, operands, strict=True))
        table = last.get(position)
        return None if table is None else _put(builder, places[table.leaf], table, known)

    return draft.rebuild(make) if last else draft


def _tables(graph: Graph) -> dict[int, _Table]:
    """All nodes that are functions of one byte, and of numbers."""
    found: dict[int, _Table] = {}
    numbers: dict[int, _Number] = {}
    for position, node in enumerate(graph.nodes):
        if isinstance(node.op, ops.Constant) and len(node.op.values) == 1:
            numbers[position] = _Number(node.op.values[0], node.type.dtype)
        elif isinstance(node.op, ops.View) and node.operands[0] in numbers:
            numbers[position] = numbers[node.operands[0]]
        elif isinstance(node.op, ops.Gather):
            looked = _looked(graph, node, found)
            found |= {} if looked is None else {position: looked}
        elif isinstance(node.op, ops.Elementwise):
            table = _table(graph, node.op, node, found, numbers)
            if table is not None and table.leaf >= 0:
                found[position] = table
            elif table is not None:
                numbers[position] = _Number(table.values[0].item(), node.type.dtype)
    return found


def _table(
    graph: Graph, op: ops.Elementwise, node: Node, known: Mapping[int, _Table], numbers: Mapping[int, _Number]
) -> _Table | None:
    """A node as a function, of the leaf -1 where it is a number; None where it is one of several tensors or inexact."""
    leaves: set[int] = set()
    parts: list[tuple[Array, _Function]] = []
    for operand in node.operands:
        kind = graph.nodes[operand].type
        if operand in numbers:
            parts.append((np.array([numbers[operand].value], array_dtype(kind.dtype)), numbers[operand]))
        elif operand in known:
            leaves.add(known[operand].leaf)
            parts.append((known[operand].values, known[operand].function))
        elif kind.dtype in _CODES:
            low, high = integer_range(kind.dtype)
            leaves.add(operand)
            parts.append((np.arange(low, high + 1).astype(array_dtype(kind.dtype)), _Code()))
        else:
            return None
    values = compute_for_numbers(graph, op, node, [values for values, _ in parts]) if len(leaves) <= 1 else None
    if values is None or not np.isfinite(values).all():
        return None
    function = _Applied(node.op, tuple(part for _, part in parts))
    return _Table(leaves.pop() if leaves else -1, values, function, node.type.dtype)


def _looked(graph: Graph, node: Node, known: Mapping[int, _Table]) -> _Table | None:
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
    return _Table(place.leaf, values[place.values], _Looked(table.op, place.function), node.type.dtype)


def _last(graph: Graph, tables: dict[int, _Table]) -> dict[int, _Table]:
    """The functions that something else reads than a function of the same tensor."""
    found: dict[int, _Table] = {p: tables[p] for p in graph.outputs.values() if p in tables}
    for position, node in enumerate(graph.nodes):
        for operand in node.operands:
            own = tables.get(operand)
            if own is not None and (position not in tables or tables[position].leaf != own.leaf):
                found[operand] = own
    return found


def _put(builder: GraphBuilder, leaf: int, table: _Table, known: dict[object, _Known]) -> int:
    """A function of a node, as the first one of its table is written."""
    kind = builder.type(leaf)
    exact = [Fraction(v) for v in table.values.tolist()]
    first = exact[0]
    step = next((value - first for value in exact if value != first), Fraction(0))
    own = _Known(table.function, table.dtype, first, step)
    key = kind.dtype, table.dtype is DType.BOOL, tuple((value - first) / (step or 1) for value in exact)
    code = _Known(_Code(), kind.dtype, Fraction(integer_range(kind.dtype)[0]), Fraction(1))
    alike = known.setdefault(key, code if key[-1] == tuple(range(len(exact))) else own)
    times = step / alike.step if step else Fraction(1)
    more = first - times * alike.first
    if (times, more) != (1, 0) and not (table.dtype.is_float and _is_float(times, more)):
        alike, times, more = known.setdefault((*key, times, more), own), Fraction(1), Fraction(0)
    place = convert_node(builder, _built(builder, leaf, alike.function), TensorType(kind.shape, table.dtype))
    return _moved(builder, place, times, more)


def _is_float(*numbers: Fraction) -> bool:
    """Whether numbers, and what they are quotients of, are floats as they are."""
    parts = [part for number in numbers for part in (number.numerator, number.denominator)]
    return all(abs(part) < _WHOLE for part in parts) and all(Fraction(float(n)) == n for n in numbers[1:])


def _moved(builder: GraphBuilder, place: int, times: Fraction, more: Fraction) -> int:
    kind = builder.type(place)
    if times.numerator != 1:
        place = builder.add(ops.Multiply(), place, builder.add(ops.Constant(kind, (float(times.numerator),))))
    if times.denominator != 1:
        place = builder.add(ops.Divide(), place, builder.add(ops.Constant(kind, (float(times.denominator),))))
    return builder.add(ops.Add(), place, builder.add(ops.Constant(kind, (float(more),)))) if more else place


def _built(builder: GraphBuilder, leaf: int, function: _Function) -> int:
    """A function of a node."""
    shape: Shape = builder.type(leaf).shape
    places: dict[int, int] = {}

    def build(part: _Function) -> int:
        if id(part) not in places:
            if isinstance(part, _Code):
                places[id(part)] = leaf
            elif isinstance(part, _Looked):
                index, table = build(part.place), builder.add(part.table)
                op = ops.Gather((), (0,), (), (), (0,), len(shape), (1,))
                places[id(part)] = builder.add(op, table, index)
            elif isinstance(part, _Number):
                places[id(part)] = builder.add(ops.Constant(TensorType(shape, part.dtype), (part.value,)))
            else:
                places[id(part)] = builder.add(part.op, *(build(operand) for operand in part.operands))
        return places[id(part)]

    return build(function)
