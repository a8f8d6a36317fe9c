"""One operator applied to what is known about its operands: one function for each operator family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from rewright import ops
from rewright.claims.language import View
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.lifting.arithmetic import contraction
from rewright.lifting.arithmetic.pointwise import pointwise
from rewright.lifting.arithmetic.reduction import split_alike
from rewright.lifting.masks.inactive import under_mask
from rewright.lifting.moves import layout, lookups, padding
from rewright.lifting.moves.indexing import counted
from rewright.lifting.moves.layout import tidy
from rewright.lifting.moves.opaque import as_view, unknown
from rewright.lifting.recognition import tables
from rewright.lifting.recognition.placed import written_out
from rewright.lifting.recognition.tables import numbers
from rewright.lifting.recognition.unit_axes import open_axes, plain, plain_view, plainer, reads_ones, recognise, shut
from rewright.lifting.terms.algebra import Algebra, align
from rewright.lifting.terms.value import NotAView, Pieces, Value
from rewright.ops.reference import writes
from rewright.ops.reference.shifted_products import as_products

Law = Callable[..., Value]
"""The value of a result, by the algebra, the operator, and values and types of its operands, and its own type."""


def transfer(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    """The value of an operator's result; an operator without a law becomes an opaque function of its operands."""
    if algebra.forms.plain:
        known = [written_out(algebra.terms, plain(value)) for value in values]
        return written_out(algebra.terms, plain(_transfer(algebra, op, known, types, result)))
    found = _transfer(algebra, op, values, types, result)
    if algebra.sequential and isinstance(op, ops.Reshape) and not reads_ones(values[0]):
        return plain(found)
    if algebra.sequential or isinstance(op, ops.Layout) or _is_familiar(algebra, found):
        return found
    if algebra.is_strange(*(value for value in values if isinstance(value, View))):
        return found
    for others in plainer(values):
        other = _transfer(algebra, op, others, types, result)
        if _is_familiar(algebra, other):
            algebra.count_use("(another reading of one of many)")
            return other
    return found


def _is_familiar(algebra: Algebra, value: Value) -> bool:
    if isinstance(value, Pieces):
        return all(_is_familiar(algebra, part) for part in value.parts)
    return algebra.is_familiar(value)


def _transfer(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    try:
        return tidy(apply_law(algebra, op, values, types, result))
    except NotAView:
        pass
    whole = [as_view(algebra, v) for v in values]
    if any(isinstance(v, Pieces) for v in values):
        try:
            return tidy(apply_law(algebra, op, whole, types, result))
        except NotAView:
            pass
    algebra.count_use("(no law)")
    return unknown(algebra, op, whole, types, result)


def apply_law(
    algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    """The value that an operator's law gives; raises NotAView where it has none for such operands."""
    if isinstance(op, ops.Elementwise):
        return elementwise(algebra, op, values, types)
    law = LAWS.get(type(op))
    if law is None:
        raise NotAView(op.name)
    if 0 in result.shape:  # no elements, whatever they are computed from
        return algebra.zero(tuple((n,) for n in result.shape))
    return law(algebra, op, values, types, result)


def elementwise(algebra: Algebra, op: Operator, values: Sequence[Value], types: Sequence[TensorType]) -> Value:
    """An elementwise operator, piece by piece where an operand is in pieces."""
    cut = split_alike(values)
    if cut is not None and cut.is_stack and algebra.sequential and not any(map(reads_ones, values)):
        # What is stacked is read at no index, as everywhere in the sequential program.
        return cut.join([tidy(elementwise(algebra, op, list(map(plain, row)), types)) for row in cut.rows])
    if cut is not None:
        return cut.join([tidy(elementwise(algebra, op, row, types)) for row in cut.rows])

    def compute(views: Sequence[View]) -> View:
        return pointwise(algebra, op, align(views), types)

    views = [v for v in values if isinstance(v, View)]
    found = recognise(algebra, compute, views)
    if algebra.sequential or algebra.is_familiar(found) or len(views) < 2 or algebra.is_strange(*views):
        return found
    # A rank that holds one head may have no axis for it; what it computes may be one head of what all of them are.
    for longer in open_axes(align([plain_view(v) for v in views])):
        one = compute(longer)
        if algebra.is_familiar(one):
            return shut(one)
    for k, view in enumerate(views) if isinstance(op, ops.Add | ops.Subtract) else ():
        masked = under_mask(algebra, view, lambda own, k=k: compute([*views[:k], own, *views[k + 1 :]]))
        if masked is not None:
            return masked
    return found


def _convolution(
    algebra: Algebra, op: ops.Convolution, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    """The sum of what the elements of the kernel add; one function of all where sums of products are not looked for."""
    graph = _in_products(op, *types) if algebra.forms.products else None
    if graph is None:
        raise NotAView(op.name)
    return _by_graph(algebra, graph, values)


def _scatter(
    algebra: Algebra, op: ops.Scatter, values: Sequence[Value], types: Sequence[TensorType], result: TensorType
) -> Value:
    """Updates that are added; of those that replace, parts where the rows are numbers, a choice where there is one."""
    if op.kind == "sum":
        return lookups.scatter(algebra, op, values)
    if op.kind != "replace":
        raise NotAView("scatter " + op.kind)
    rows = numbers(algebra, values[1])
    graph = None if rows is None else _in_parts(op, *types, rows)
    if graph is None:
        graph = _as_choice(op, *types, counted(algebra, op, values[1]))
    if graph is None:
        raise NotAView("writes that may meet")
    return _by_graph(algebra, graph, values)


def _by_graph(algebra: Algebra, graph: Graph, values: Sequence[Value]) -> Value:
    """The value of what an operator is written as."""
    found: list[Value] = []
    given = iter(values)
    for node in graph.nodes:
        if isinstance(node.op, ops.Input):
            found.append(next(given))
            continue
        kinds = [graph.nodes[p].type for p in node.operands]
        found.append(transfer(algebra, node.op, [found[p] for p in node.operands], kinds, node.type))
    return found[graph.outputs["result"]]


@lru_cache(256)
def _in_products(op: ops.Convolution, x: TensorType, kernel: TensorType) -> Graph | None:
    return _graph([x, kernel], lambda b, places: as_products(b, op, *places))


@lru_cache(256)
def _as_choice(
    op: ops.Scatter, x: TensorType, indices: TensorType, updates: TensorType, counted: tuple[tuple[int, int], ...]
) -> Graph | None:
    types = [x, indices, updates]
    return _graph(types, lambda b, at: writes.as_choice(b, op, at[0], at[1], at[2], counted))


@lru_cache(256)
def _in_parts(
    op: ops.Scatter, x: TensorType, indices: TensorType, updates: TensorType, rows: tuple[int, ...]
) -> Graph | None:
    return _graph([x, indices, updates], lambda b, places: writes.as_parts(b, op, places[0], places[2], rows))


def _graph(types: Sequence[TensorType], build: Callable[[GraphBuilder, list[int]], int | None]) -> Graph | None:
    builder = GraphBuilder("definition")
    result = build(builder, [builder.input(f"x{n}", ops.Input(f"x{n}", kind)) for n, kind in enumerate(types)])
    if result is None:
        return None
    builder.output("result", result)
    return builder.build()


LAWS: dict[type[Operator], Law] = {
    **layout.LAWS,
    **padding.LAWS,
    **tables.LAWS,
    **contraction.LAWS,
    **lookups.LAWS,
    ops.Convolution: _convolution,
    ops.Scatter: _scatter,
}
"""By the class of an operator its law; operators element by element have their own."""
