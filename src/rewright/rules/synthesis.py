"""From concrete pairs of programs to one proved rule: numbers become parameters, and the prover says which may.

1. The pairs agree on random elements, or there is nothing to find.
2. Their structure is one: operators, wiring, axes; what differs are sizes, attributes and constants.
3. Sizes that vary together are one expression: a new parameter, or a simple expression in smaller ones.
4. The rule is proved. Where it is not, conditions are proposed (that the left side is defined, and the orders of sizes
   that all examples have), and each is dropped without which the rule is still proved. Then every expression and every
   number that could be a parameter of its own is made one, and stays one where the rule is still proved.
5. The rule is tested on instances that were not among the examples.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from rewright import ops
from rewright.interp.program import run
from rewright.ir.dims import Dim
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import TensorType
from rewright.ops.base import Array
from rewright.rules.counterexample import find
from rewright.rules.matcher import match_at, rewritten
from rewright.rules.preconditions import Order, Vector, conditions, definedness, orders, partial_nodes
from rewright.rules.rule import Rule
from rewright.terms.normal.prove import prove
from rewright.terms.parameters import integer, natural, size

Pair = tuple[Graph, Graph]
_SIZE_FIELDS = frozenset(
    {
        "shape", "tensor", "start", "limit", "stride", "low", "high", "interior", "sizes", "slice_sizes", "window",
        "strides", "padding", "lhs_dilation", "rhs_dilation", "k",
    }
)  # fmt: skip
"""Attributes whose numbers are sizes; all others (axes, permutations) are structure."""
_PLAIN_CONSTANTS = (0.0, 1.0, -1.0, 2.0, 0.5)


@dataclass(frozen=True)
class Synthesis:
    """The rule that was found, or why none was."""

    rule: Rule | None
    reason: str
    proofs: int
    seconds: float


@dataclass
class _Search:
    """What is tried so far."""

    pairs: Sequence[Pair]
    name: str
    deadline: float
    proofs: int = 0
    expressions: dict[Vector, Dim] = field(default_factory=dict[Vector, Dim])
    derived: list[Vector] = field(default_factory=list[Vector])
    constants: dict[tuple[float, ...], str] = field(default_factory=dict[tuple[float, ...], str])
    names: Iterator[int] = field(default_factory=itertools.count)
    orders: list[Order] = field(default_factory=list[Order])
    defined: list[int] = field(default_factory=list[int])
    """Which of the partial nodes of the left side have to be defined."""


def synthesise(pairs: Sequence[Pair], name: str = "synthesised", budget: float = 5.0) -> Synthesis:
    """One rule that all pairs are instances of, proved for all sizes; the pairs name their inputs alike.

    Raises RewrightError for fewer than three pairs.
    """
    if len(pairs) < 3:
        raise RewrightError(f"synthesis needs at least three pairs of programs and got {len(pairs)}")
    started = time.monotonic()
    search = _Search(pairs, name, started + budget)
    try:
        _check_pairs(pairs)
        rule = _found(search)
    except _NoRule as error:
        return Synthesis(None, str(error), search.proofs, time.monotonic() - started)
    return Synthesis(rule, "", search.proofs, time.monotonic() - started)


def matches_pair(rule: Rule, pair: Pair) -> bool:
    """Whether an unseen pair is an instance: the rule matches its left side and gives its right side."""
    left, right = pair
    match = match_at(rule, left, next(iter(left.outputs.values())))
    if match is None:
        return False
    return _agree(rewritten(left, match), right, seed=3)


def _agree(left: Graph, right: Graph, seed: int) -> bool:
    """Whether two programs agree in double precision on random elements, to nine digits."""
    source = np.random.default_rng(seed)
    inputs: dict[str, Array] = {}
    for node in left.nodes:
        if isinstance(node.op, ops.Input):
            shape = tuple(int(str(n)) for n in node.op.tensor.shape)
            is_float = node.op.tensor.dtype.is_float
            inputs[node.op.label] = source.uniform(0.1, 2.0, shape) if is_float else source.integers(0, 2, shape)
    outputs = run(left, inputs), run(right, {name: inputs[name] for name in right.inputs})
    return all(
        outputs[0][name].shape == outputs[1][name].shape
        and np.allclose(outputs[0][name], outputs[1][name], rtol=1e-9, atol=1e-9)
        for name in left.outputs
    )


class _NoRule(Exception):
    """Why there is no rule."""


def _check_pairs(pairs: Sequence[Pair]) -> None:
    for number, (left, right) in enumerate(pairs):
        try:
            agree = all(_agree(left, right, seed) for seed in (1, 2))
        except RewrightError as error:
            raise _NoRule(f"the programs of pair {number} do not run on random elements: {error}") from None
        if not agree:
            raise _NoRule(f"the programs of pair {number} do not agree on random elements")
    skeletons = {tuple(_skeleton(graph) for graph in pair) for pair in pairs}
    if len(skeletons) != 1:
        raise _NoRule("the pairs do not have one structure")


def _skeleton(graph: Graph) -> str:
    """A graph without its numbers."""
    lines = [f"{_without_numbers(node.op)} {node.operands} {node.type.rank} {node.type.dtype}" for node in graph.nodes]
    return "\n".join([*lines, str(sorted(graph.inputs.items())), str(list(graph.outputs.items()))])


def _without_numbers(op: Operator) -> str:
    kept = {f.name: getattr(op, f.name) for f in dataclasses.fields(cast(Any, op)) if f.name not in _SIZE_FIELDS}
    if isinstance(op, ops.Constant):
        kept["values"] = len(op.values)
    return f"{type(op).__name__} {kept}"


# --- expressions for numbers


def _found(search: _Search) -> Rule:
    _assign(search)
    rule = _build(search)
    if rule is not None and not _proved(search, rule):
        rule = _under_conditions(search, rule)
    if rule is None:
        raise _NoRule("the pairs agree, but no rule with these sizes could be proved")
    rule = _generalised(search, rule)
    refuted = find(rule, tries=10, seconds=1.0)
    if refuted is not None:
        raise _NoRule(f"the rule found is wrong: {refuted}")
    return rule


def _assign(search: _Search) -> None:
    """An expression for every vector of numbers, smaller ones first; the right side has no parameters of its own."""
    left = {vector for vector, _ in _vectors([pair[0] for pair in search.pairs])}
    right = {vector for vector, _ in _vectors([pair[1] for pair in search.pairs])}
    for vector in sorted(left, key=lambda v: (sum(v), v)):
        if len(set(vector)) == 1:
            search.expressions[vector] = vector[0]
            continue
        known = _template(search, vector)
        if known is not None:
            search.derived.append(vector)
        search.expressions[vector] = known if known is not None else _parameter(search, vector)
    for vector in sorted(right - left, key=lambda v: (sum(v), v)):
        known = vector[0] if len(set(vector)) == 1 else _template(search, vector)
        if known is None:
            raise _NoRule(f"the numbers {list(vector)} of the right side follow from none of the left side")
        search.expressions[vector] = known


def _parameter(search: _Search, vector: Vector) -> Dim:
    name = f"n{next(search.names)}"
    return size(name) if min(vector) >= 1 else natural(name) if min(vector) >= 0 else integer(name)


def _template(search: _Search, vector: Vector) -> Dim | None:
    """The simplest expression in known vectors that gives this one in every example."""
    known = [(v, e) for v, e in search.expressions.items() if not isinstance(e, int) and v not in search.derived]
    for (v, e), factor, offset in itertools.product(known, (1, 2, 3, 4), (0, 1, -1)):
        if (factor, offset) != (1, 0) and all(factor * a + offset == b for a, b in zip(v, vector, strict=True)):
            return e * factor + offset
    for combine in _COMBINATIONS:
        for (v, e), (w, f) in itertools.permutations(known, 2):
            if all(combine(a, b) == c for a, b, c in zip(v, w, vector, strict=True)):
                return combine(e, f)
    for (u, d), (v, e), (w, f) in itertools.permutations(known, 3):
        for triple in _TRIPLES:
            if all(triple(x, a, b) == c for x, a, b, c in zip(u, v, w, vector, strict=True)):
                return triple(d, e, f)
    return None


_COMBINATIONS: tuple[Callable[[Any, Any], Any], ...] = (
    lambda a, b: a + b,
    lambda a, b: a * b,
    lambda a, b: a + b * 2,
    lambda a, b: a * b * 2,
    lambda a, b: a - b,
    lambda a, b: a * 2 + b * 2,
)
_TRIPLES: tuple[Callable[[Any, Any, Any], Any], ...] = (
    lambda a, b, c: a + b + c,
    lambda a, b, c: a * b * c,
    lambda a, b, c: (a + b) * c,
    lambda a, b, c: (a + b * 2) * c,
    lambda a, b, c: a * b + c,
)


def _vectors(graphs: Sequence[Graph]) -> Iterator[tuple[Vector, str]]:
    """The values over all examples of every size of one side, with the attribute that it is in."""
    for nodes in zip(*(graph.nodes for graph in graphs), strict=True):
        for f in dataclasses.fields(nodes[0].op):
            if f.name in _SIZE_FIELDS:
                numbers = [list(_numbers(getattr(node.op, f.name))) for node in nodes]
                for values in zip(*numbers, strict=True):
                    yield tuple(values), f.name


def _numbers(value: Any) -> Iterator[int]:
    if isinstance(value, TensorType):
        yield from _numbers(value.shape)
    elif isinstance(value, tuple):
        for item in cast("tuple[Any, ...]", value):
            yield from _numbers(item)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield value


# --- building the rule


def _build(search: _Search) -> Rule | None:
    """The rule with the present expressions; None where a side is not well typed."""
    lefts, rights = ([pair[side] for pair in search.pairs] for side in (0, 1))
    try:
        left, right = _abstract(search, lefts), _abstract(search, rights)
    except (RewrightError, TypeError):
        return None
    sizes, facts = conditions(search.orders, search.expressions), definedness(left, search.defined)
    return Rule(search.name, "found from examples", left, right, sizes, facts, provenance="synthesis")


def _abstract(search: _Search, graphs: Sequence[Graph]) -> Graph:
    builder = GraphBuilder(search.name)
    place: dict[int, int] = {}
    for number, nodes in enumerate(zip(*(graph.nodes for graph in graphs), strict=True)):
        operands = [place[p] for p in nodes[0].operands]
        place[number] = _abstract_node(search, builder, [node.op for node in nodes], operands)
    for name, position in graphs[0].outputs.items():
        builder.output(name, place[position])
    return builder.build()


def _abstract_node(search: _Search, builder: GraphBuilder, given: Sequence[Operator], operands: Sequence[int]) -> int:
    values: dict[str, Any] = {}
    for f in dataclasses.fields(cast(Any, given[0])):
        if f.name in _SIZE_FIELDS:
            values[f.name] = _abstract_value(search, [getattr(op, f.name) for op in given])
    op = cast(Operator, dataclasses.replace(cast(Any, given[0]), **values))
    if isinstance(op, ops.Input):
        return builder.input(op.label, op)
    if isinstance(op, ops.Constant):
        return _abstract_constant(search, builder, op, [o.values for o in given if isinstance(o, ops.Constant)])
    return builder.add(op, *operands)


def _abstract_value(search: _Search, values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, TensorType):
        return first.with_shape(_abstract_value(search, [value.shape for value in values]))
    if isinstance(first, tuple):
        return tuple(_abstract_value(search, items) for items in zip(*values, strict=True))
    return search.expressions[tuple(values)]


def _abstract_constant(
    search: _Search, builder: GraphBuilder, op: ops.Constant, values: Sequence[tuple[float | int | bool, ...]]
) -> int:
    """A number that varies is a size, where it is one in every example, else a scalar that is given."""
    infinite = any(isinstance(v, float) and not math.isfinite(v) for value in values for v in value)
    if infinite and len(set(values)) > 1:
        raise RewrightError("constants that are infinite in some examples are not generalised")
    if len(set(values)) == 1 and (infinite or not op.tensor.dtype.is_float or values[0][0] in _PLAIN_CONSTANTS):
        return builder.add(dataclasses.replace(op, values=values[0]))
    if len(values[0]) != 1:
        raise RewrightError("tables of constants that vary are not generalised")
    numbers = [value[0] for value in values]
    vector = tuple(int(n) for n in numbers)
    scalar_type = TensorType((), op.tensor.dtype)
    if all(float(v) == float(n) for v, n in zip(vector, numbers, strict=True)) and len(set(vector)) > 1:
        expression = search.expressions.get(vector)
        expression = expression if expression is not None else _template(search, vector)
        if expression is not None:
            one = 1.0 if op.tensor.dtype.is_float else 1
            ones = builder.add(ops.Constant(TensorType((expression,), op.tensor.dtype), (one,)))
            return _spread(builder, builder.add(ops.Reduce("sum", (0,)), ones), op)
    label = search.constants.setdefault(tuple(float(n) for n in numbers), f"c{len(search.constants)}")
    known = builder.build().inputs.get(label)
    scalar = known if known is not None else builder.input(label, ops.Input(label, scalar_type))
    return _spread(builder, scalar, op)


def _spread(builder: GraphBuilder, scalar: int, op: ops.Constant) -> int:
    if not op.tensor.rank:
        return scalar
    return builder.add(ops.BroadcastInDim(op.tensor.shape, ()), scalar)


# --- the prover as oracle


def _proved(search: _Search, rule: Rule) -> bool:
    left = search.deadline - time.monotonic()
    if left <= 0:
        return False
    search.proofs += 1
    return prove(rule.claim(), min(left, 2.0)).status == "proved"


def _under_conditions(search: _Search, rule: Rule) -> Rule | None:
    """The rule under conditions that are all needed; None where it is not proved under all that could be one."""
    seen = dict.fromkeys(vector for vector, _ in _vectors([pair[0] for pair in search.pairs]))
    search.orders = list(orders([vector for vector in seen if len(set(vector)) > 1 or vector[0] == 0]))
    search.defined = list(range(len(partial_nodes(rule.left))))
    found = _build(search)
    if found is None or not _proved(search, found):
        return None
    for proposed in (search.defined, search.orders):
        for position in reversed(range(len(proposed))):
            dropped = proposed.pop(position)  # type: ignore[arg-type]
            fewer = _build(search)
            if fewer is not None and _proved(search, fewer):
                found = fewer
            else:
                proposed.insert(position, dropped)  # type: ignore[arg-type]
    return found


def _generalised(search: _Search, rule: Rule) -> Rule:
    """Every derived expression, and every number of an input's shape, as a parameter where that is still proved."""
    for vector in [*search.derived, *_fixed_sizes(search)]:
        before = dict(search.expressions)
        search.expressions[vector] = _parameter(search, vector)
        wider = _build(search)
        if wider is not None and not _lost(rule, wider) and _proved(search, wider):
            rule = wider
        else:
            search.expressions = before
    return rule


def _lost(rule: Rule, wider: Rule) -> bool:
    """Whether an input of the right side would no longer be on the left."""
    return not wider.right.inputs.keys() <= wider.left.inputs.keys() or not rule.left.inputs


def _fixed_sizes(search: _Search) -> list[Vector]:
    """Numbers above one that are the same in every example, in shapes of inputs."""
    found: dict[Vector, None] = {}
    for node in search.pairs[0][0].nodes:
        if isinstance(node.op, ops.Input):
            for number in _numbers(node.op.tensor.shape):
                if number > 1:
                    found[(number,) * len(search.pairs)] = None
    return [vector for vector in found if isinstance(search.expressions.get(vector), int)]
