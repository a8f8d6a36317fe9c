"""Programs as functions of real numbers: what rounding and finite number ranges made of them is put right, and said.

- The most negative number of a type, which masks add before a softmax, stands for minus infinity.
- Scalars and small tables that are computed from nothing but numbers become constants.
- Constants that agree to single precision are one number.
Each of these that happened is an assumption of the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from rewright import ops
from rewright.analysis.evenness import splat
from rewright.equiv.lemmas.building import values_of
from rewright.equiv.rewrites.equal_masks import changing, core
from rewright.equiv.rewrites.impossible import without_impossible
from rewright.equiv.rewrites.layouts import lay_out, views_behind
from rewright.equiv.rewrites.mask_values import fillings
from rewright.ir.dims import Shape
from rewright.ir.graph import Graph, GraphBuilder, Node
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array
from rewright.proof.rewriting.numbers.taken import EVERY_LOWEST, ROOTED, ROUNDING, are_close, as_infinity
from rewright.proof.rewriting.parts import depends_on_inputs
from rewright.refine.rewriting.drafts import Draft, graphs_of

_MOST_FOLDED = 4096


def idealise(drafts: Sequence[Draft], *, masks_choose: bool = False) -> list[Draft]:
    """The programs over the reals, in the order in which they were given; constants are compared over all of them.

    With ``masks_choose`` masks that are added are choices, for where no lemma can say that they are.
    """
    found: list[Draft] = []
    for draft, filled in zip(drafts, fillings(graphs_of(drafts), EVERY_LOWEST), strict=True):
        masked = without_impossible(_mask(draft, filled))
        chosen = _choose(masked) if masks_choose else masked
        found.append(_factors(_fold(chosen)))
    return _with_roots(_merge(found))


# --- masks


def with_infinities(graphs: Sequence[Graph]) -> tuple[Graph, ...]:
    """The programs with minus infinity for what stands for it, and nothing else changed.

    They have the same inputs and outputs.
    """
    pairs = zip(graphs, fillings(graphs, EVERY_LOWEST), strict=True)
    return tuple(_mask(Draft(graph), filled).graph for graph, filled in pairs)


def _mask(draft: Draft, filled: Mapping[int, float]) -> Draft:
    """The program with minus infinity where masks are filled with the most negative number, or with what stands for it.

    ``filled`` are the constants that do, and their values.
    """
    nodes = draft.graph.nodes
    if not filled and not any(is_lowest(node) or _is_mask(node) or _is_choice(node) for node in nodes):
        return draft

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if position in filled:
            return builder.add(ops.Constant(node.type, (-math.inf,)))
        if isinstance(node.op, ops.Constant) and (is_lowest(node) or _is_mask(node)):
            return _write_constant(builder, node.type, tuple(as_infinity(v, node.type.dtype) for v in node.op.values))
        if isinstance(node.op, ops.Constant) and _is_choice(node):
            return _spread(builder, node.type, node.op.values)
        return None

    return draft.rebuild(make)


def is_lowest(node: Node) -> bool:
    """Whether a node is a constant with the most negative number of a float type in it."""
    return isinstance(node.op, ops.Constant) and any(as_infinity(v, node.type.dtype) != v for v in set(node.op.values))


def _is_mask(node: Node) -> bool:
    """Whether a node is a table of zero and minus infinity."""
    return isinstance(node.op, ops.Constant) and node.type.dtype.is_float and set(node.op.values) == {0.0, -math.inf}


def _is_choice(node: Node) -> bool:
    """Whether a node is a table of truth values."""
    return isinstance(node.op, ops.Constant) and node.type.dtype is DType.BOOL and len(set(node.op.values)) > 1


def _spread(builder: GraphBuilder, kind: TensorType, values: Sequence[float | int | bool]) -> int:
    """A table of truth values without the axes along which nothing changes, and these put back."""
    whole = np.array(values, np.bool_).reshape([int(str(n)) for n in kind.shape])
    small = core(whole)
    made = builder.add(ops.Constant(TensorType(small.shape, DType.BOOL), tuple(small.reshape(-1).tolist())))
    kept = tuple(changing(whole))
    return made if small.shape == whole.shape else builder.add(ops.BroadcastInDim(kind.shape, kept), made)


def _write_constant(builder: GraphBuilder, kind: TensorType, values: tuple[float | int | bool, ...]) -> int:
    """A constant; a table of zero and minus infinity as a choice between both."""
    if set(values) != {0.0, -math.inf}:
        return builder.add(ops.Constant(kind, values))
    seen = _spread(builder, replace(kind, dtype=DType.BOOL), [value == 0.0 for value in values])
    zero, minus_infinity = (builder.add(ops.Constant(kind, (value,))) for value in (0.0, -math.inf))
    return builder.add(ops.Select(), seen, zero, minus_infinity)


def _choose(draft: Draft) -> Draft:
    """The program with sums of scores and masks of zero and minus infinity as a choice between both.

    A score is a number: nothing that a mask is added to is infinite.
    """

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if isinstance(node.op, ops.Select):
            return _with_condition(builder, *operands)
        if not isinstance(node.op, ops.Add) or not node.type.dtype.is_float:
            return None
        for k in (0, 1):
            found = _where_masked(builder, operands[k])
            if found is not None:
                condition, seen = found
                minus_infinity = builder.add(ops.Constant(node.type, (-math.inf,)))
                sides = (operands[1 - k], minus_infinity) if seen else (minus_infinity, operands[1 - k])
                return _with_condition(builder, condition, *sides)
        return None

    return draft.rebuild(make) if any(_is_minus_infinity(node) for node in draft.graph.nodes) else draft


def _with_condition(builder: GraphBuilder, condition: int, *sides: int) -> int:
    """A choice by a condition; by what a negation in front of it denies, with the sides exchanged."""
    inner, layouts = views_behind(builder.node, condition)
    node = builder.node(inner)
    if not isinstance(node.op, ops.Not):
        return builder.add(ops.Select(), condition, *sides)
    return _with_condition(builder, lay_out(builder, node.operands[0], layouts), *reversed(sides))


def _is_minus_infinity(node: Node) -> bool:
    return isinstance(node.op, ops.Constant) and node.op.values == (-math.inf,)


def _where_masked(builder: GraphBuilder, position: int) -> tuple[int, bool] | None:
    """The condition of a mask in the mask's own layout, and whether it holds where the mask is zero."""
    layouts: list[Node] = []
    node = builder.node(position)
    while isinstance(node.op, ops.View | ops.Convert):
        layouts.append(node)
        node = builder.node(node.operands[0])
    if not isinstance(node.op, ops.Select):
        return None
    values = [_number(builder, p) for p in node.operands[1:]]
    if sorted(v for v in values if v is not None) != [-math.inf, 0.0]:
        return None
    condition = node.operands[0]
    for layout in reversed(layouts):
        if not isinstance(layout.op, ops.Convert):
            condition = builder.add(layout.op, condition)
    return condition, values[0] == 0.0


def _number(builder: GraphBuilder, position: int) -> float | None:
    """The number that all elements of a node are; None where they are not one."""
    node = builder.node(position)
    while isinstance(node.op, ops.View | ops.Convert):
        node = builder.node(node.operands[0])
    value = ops.splat(node.op)
    return None if value is None else float(value)


# --- numbers made of numbers


def _fold(draft: Draft) -> Draft:
    """Small float tensors that depend on no input, as constants; what merely lays out constants stays."""
    graph = draft.graph
    depends = depends_on_inputs(graph)
    computed = [False] * len(graph.nodes)
    for position, node in enumerate(graph.nodes):
        moving = isinstance(node.op, ops.Leaf | ops.Lossless | ops.Convert)
        if not depends[position]:
            computed[position] = not moving or any(computed[p] for p in node.operands)
    wanted = [
        p
        for p, node in enumerate(graph.nodes)
        if computed[p] and _is_small(node.type.shape) and (_is_table(node) or _truncates(graph, node))
    ]
    if not wanted:
        return draft
    sources = {p: graph.nodes[p].operands[0] for p in wanted if _truncates(graph, graph.nodes[p])}
    values = values_of(graph, [*wanted, *sources.values()])

    chosen = set(wanted)

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        value = values.get(position)
        if position not in chosen or value is None or not np.isfinite(value).all():
            return None
        if position in sources and not (values[sources[position]] == np.round(values[sources[position]])).all():
            return None
        if position in sources:
            counted = _count(builder, node.type, value)
            if counted is not None:
                return counted
        flat = [float(v) if node.type.dtype.is_float else int(v) for v in value.reshape(-1)]
        same = len(set(flat)) == 1
        return builder.add(ops.Constant(node.type, (flat[0],) if same else tuple(flat)))

    return draft.rebuild(make)


def _count(builder: GraphBuilder, kind: TensorType, value: Array) -> int | None:
    """Whole numbers that count up by one along an axis, as the positions along it plus the first of them."""
    for axis, size in enumerate(value.shape):
        first = int(value.reshape(-1)[0])
        if size > 1 and np.array_equal(value, first + np.indices(value.shape)[axis]):
            place = builder.add(ops.Iota(kind, axis))
            return builder.add(ops.Add(), place, builder.add(ops.Constant(kind, (first,)))) if first else place
    return None


def _is_table(node: Node) -> bool:
    return node.type.dtype.is_float and node.type.rank <= 1


def _truncates(graph: Graph, node: Node) -> bool:
    """Whether floats become integers: positions that are counted in floats, for example."""
    source = graph.nodes[node.operands[0]].type.dtype if isinstance(node.op, ops.Convert) else None
    return source is not None and source.is_float and node.type.dtype.is_integer


def _is_small(shape: Shape) -> bool:
    return all(isinstance(n, int) for n in shape) and 0 < math.prod(int(str(n)) for n in shape) <= _MOST_FOLDED


# --- constants that were rounded


def _factors(draft: Draft) -> Draft:
    """Quotients by tables and numbers that are not whole as products, products with a rounded 1/n as quotients by n."""
    return _with_quotients(_with_inverses(_with_products(draft)))


def _with_products(draft: Draft) -> Draft:
    """``x / c`` as ``x * (1 / c)``, where c is a table or a number that is not whole."""
    graph = draft.graph

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if not isinstance(node.op, ops.Divide) or not node.type.dtype.is_float or _is_inverse(graph, node):
            return None
        value = splat(graph, node.operands[1])
        if value and math.isfinite(value) and value != int(value):
            divisor = builder.add(ops.Constant(node.type, (value,)))
            return builder.add(ops.Multiply(), operands[0], _inverse(builder, divisor))
        inverses = _inverses(builder, operands[1]) if value is None else None
        return None if inverses is None else builder.add(ops.Multiply(), operands[0], inverses)

    return draft.rebuild(make)


def _with_inverses(draft: Draft) -> Draft:
    """``1 / c`` as the number that it is in double precision, and numbers that are a rounded 1/n as ``1 / n``."""
    graph = draft.graph
    rounded = dict(_rounded_inverses(graph))

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if position in rounded:
            return _inverse(builder, builder.add(ops.Constant(node.type, (float(rounded[position]),))))
        divisor = graph.nodes[node.operands[1]].op if _is_inverse(graph, node) else None
        if not isinstance(divisor, ops.Constant) or not _is_divisor(divisor):
            return None
        return builder.add(ops.Constant(node.type, tuple(1.0 / value for value in divisor.values)))

    return draft.rebuild(make)


def _with_quotients(draft: Draft) -> Draft:
    """``x * (1 / n)`` as ``x / n``."""
    graph = draft.graph

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        for k in (0, 1) if isinstance(node.op, ops.Multiply) and node.type.dtype.is_float else ():
            inverse = graph.nodes[node.operands[k]]
            value = splat(graph, inverse.operands[1]) if _is_inverse(graph, inverse) else None
            if value is not None:
                divisor = builder.add(ops.Constant(node.type, (value,)))
                return builder.add(ops.Divide(), operands[1 - k], divisor)
        return None

    return draft.rebuild(make)


def _rounded_inverses(graph: Graph) -> Iterator[tuple[int, int]]:
    """Factors that are 1/n but for rounding, with n."""
    for node in graph.nodes:
        for factor in node.operands if isinstance(node.op, ops.Multiply) and node.type.dtype.is_float else ():
            value = splat(graph, factor)
            whole = round(1.0 / value) if value and abs(value) > 1e-6 and math.isfinite(value) else 0
            if value and abs(whole) > 1 and are_close(1.0 / whole, value) and Fraction(value) != Fraction(1, whole):
                yield factor, whole


def _inverse(builder: GraphBuilder, divisor: int) -> int:
    one = builder.add(ops.Constant(builder.type(divisor), (1.0,)))
    return builder.add(ops.Divide(), one, divisor)


def _is_inverse(graph: Graph, node: Node) -> bool:
    """Whether a node is one divided by a constant."""
    if not isinstance(node.op, ops.Divide) or not isinstance(graph.nodes[node.operands[1]].op, ops.Constant):
        return False
    return splat(graph, node.operands[0]) == 1 and node.type.dtype.is_float


def _is_divisor(op: ops.Constant) -> bool:
    """Whether quotients by a constant are written as products."""
    if not all(value and math.isfinite(value) for value in op.values):
        return False
    return len(op.values) > 1 or any(value != int(value) for value in op.values)


def _inverses(builder: GraphBuilder, position: int) -> int | None:
    """The inverses of a table of constants in the table's layout; None where it is no table, or has none."""
    inner, layouts = views_behind(builder.node, position)
    op = builder.node(inner).op
    if not isinstance(op, ops.Constant) or not _is_divisor(op):
        return None
    return lay_out(builder, _inverse(builder, inner), layouts)


def _merge(drafts: Sequence[Draft]) -> list[Draft]:
    """Constants that agree to single precision, over all programs, as the one that was met first."""
    graphs = graphs_of(drafts)
    scalars = sorted({float(v) for g in graphs for node in g.nodes for v in _numbers(node)})
    chosen = _representatives(scalars)
    tables = _tables(graphs)

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        if not isinstance(node.op, ops.Constant) or not node.type.dtype.is_float:
            return None
        if len(node.op.values) > 1:
            return builder.add(ops.Constant(node.op.tensor, tables.get(node.op.values, node.op.values)))
        values = tuple(chosen.get(float(value), value) for value in node.op.values)
        return builder.add(ops.Constant(node.op.tensor, values))

    return [draft.rebuild(make) for draft in drafts]


def _with_roots(drafts: Sequence[Draft]) -> list[Draft]:
    """Where programs have other scalars, those that are rounded roots of simple numbers as these roots."""
    own = [{v for node in graph.nodes for v in _numbers(node)} for graph in graphs_of(drafts)]
    roots = {v: found for v in set[float]().union(*own) if (found := _root(v)) is not None}
    if all(numbers == own[0] for numbers in own) or not roots:
        return list(drafts)

    def make(builder: GraphBuilder, position: int, node: Node, operands: tuple[int, ...]) -> int | None:
        found = roots.get(float(node.op.values[0])) if isinstance(node.op, ops.Constant) else None
        if found is None or not isinstance(node.op, ops.Constant) or len(node.op.values) > 1:
            return None
        simple, times = found
        place = builder.add(ops.Constant(node.op.tensor, (simple,)))
        for _ in range(times):
            place = builder.add(ops.Sqrt(), place)
        return place

    return [draft.rebuild(make) for draft in drafts]


def _root(value: float) -> tuple[float, int] | None:
    """A simple number and how often its root is taken to give a number, where that is so."""
    if value <= 0 or _is_simple(value) is not None:
        return None
    for times in (1, 2):
        simple = _is_simple(value ** (2**times))
        if simple is not None:
            return simple, times
    return None


def _is_simple(value: float) -> float | None:
    near = Fraction(value).limit_denominator(4096)
    if near and abs(float(near) / value - 1) < ROOTED and Fraction(float(near)) == near:
        return float(near)
    return None


def _numbers(node: Node) -> Iterable[float]:
    value = ops.splat(node.op)
    if value is not None and node.type.dtype.is_float and math.isfinite(value) and value != int(value):
        yield float(value)


def _representatives(numbers: Sequence[float]) -> dict[float, float]:
    """By number the shortest one among its neighbours in ascending order."""
    found: dict[float, float] = {}
    group: list[float] = []
    for number in [*numbers, math.inf]:
        if group and not are_close(group[0], number):
            best = min(group, key=lambda n: (len(repr(n)), n))
            found.update(dict.fromkeys(group, best))
            group = []
        group.append(number)
    return found


def _tables(
    graphs: Sequence[Graph],
) -> dict[tuple[float | int | bool, ...], tuple[float | int | bool, ...]]:
    """By table of floats the first one that it is equal to but for rounding."""
    found: dict[tuple[float | int | bool, ...], tuple[float | int | bool, ...]] = {}
    known: dict[TensorType, list[tuple[float | int | bool, ...]]] = {}
    for graph in graphs:
        for node in graph.nodes:
            if not isinstance(node.op, ops.Constant) or not ops.is_table(node.op) or not node.type.dtype.is_float:
                continue
            values = node.op.values
            if values in found:
                continue
            same = (t for t in known.setdefault(TensorType((len(values),), node.type.dtype), []) if _alike(t, values))
            found[values] = next(same, values)
            if found[values] is values:
                known[TensorType((len(values),), node.type.dtype)].append(values)
    return found


def _alike(a: Sequence[float | int | bool], b: Sequence[float | int | bool]) -> bool:
    return len(a) == len(b) and bool(np.allclose(np.array(a, float), np.array(b, float), rtol=ROUNDING, atol=0.0))
