"""From two programs at their sizes to one rule for all sizes: what the operators leave free becomes a parameter.

1. The free sizes of both programs are found (:mod:`rewright.rules.free_sizes`).
2. A number or a table that both programs have is given, whatever it is; one that is a size, as the divisor of a mean,
   may be that size.
3. The rule is proved, the widest first. Where it is not, fewer sizes are free: not those that reshapes, slices and the
   like relate.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from rewright import ops
from rewright.ir.dims import Dim, SizeExpr
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType
from rewright.rules.free_sizes import Place, Places, replaced
from rewright.rules.reading import Counted, Given, Number, Sides, Where, canonical
from rewright.rules.scheme import Scheme
from rewright.rules.size_relations import Attribute, Shifted, Sized, sized
from rewright.terms.normal.prove import prove

_PLAIN = (0, 1, -1, 2, -2, 0.5)
"""Numbers that mean themselves."""
_MOST_WAYS = 12
_MOST_SIZES = 3
_MOST_NODES = 120


def generalised(left: Graph, right: Graph, seconds: float = 3.0) -> Scheme | None:
    """The widest scheme that was proved of which two programs are an instance; None where there is none."""
    deadline = time.monotonic() + seconds
    sides = canonical(left, right)
    if any(len(graph.nodes) > _MOST_NODES for graph in sides):
        return None
    for narrow in (False, True):
        for scheme in _schemes(sides, narrow=narrow):
            rest = deadline - time.monotonic()
            if rest <= 0:
                return None
            if _is_proved(scheme, rest):
                return scheme
    return None


_SECONDS = 1.0
"""Seconds for the proof of one scheme; most take a few hundredths of one."""


def _is_proved(scheme: Scheme, seconds: float) -> bool:
    return prove(scheme.rule.claim(), min(seconds, _SECONDS)).status == "proved"


def _schemes(sides: Sides, *, narrow: bool) -> Iterator[Scheme]:
    """Schemes of which programs are an instance, those first that say most."""
    shared = _shared(sides)
    places, inputs = Places(), dict[str, tuple[Place, ...]]()
    found = [sized(graph, places, inputs) for graph in sides]
    for a, b in zip(
        *(s[next(iter(g.outputs.values()))].result for s, g in zip(found, sides, strict=True)), strict=True
    ):
        places.same(a, b)
    _relate_tables(sides, found, places, shared)
    if narrow:
        places.fix(places.related())
    solution = places.solved()
    left, right = (_with_sizes(graph, own, solution.size, shared) for graph, own in zip(sides, found, strict=True))
    if left is None or right is None:
        return
    for way in itertools.islice(_ways(sides, (left, right), shared, solution.example), _MOST_WAYS):
        scheme = Scheme(left, right, way)
        yield scheme
        numbers = {n.name for where, n in way if isinstance(n, Given) and scheme.is_number(where)}
        if numbers:
            yield replace(scheme, positive=tuple(sorted(numbers)))


def _constants(sides: Sides) -> Iterator[tuple[Where, ops.Constant]]:
    for side, graph in enumerate(sides):
        for position, node in enumerate(graph.nodes):
            if isinstance(node.op, ops.Constant):
                yield (side, position), node.op


def _key(op: ops.Constant) -> tuple[DType, tuple[float | int | bool, ...]]:
    """What two constants have in common that are one number up to its sign, or one table."""
    values = op.values
    return op.tensor.dtype, (abs(values[0]),) if len(values) == 1 and op.tensor.dtype is not DType.BOOL else values


def _shared(sides: Sides) -> dict[tuple[Any, ...], str]:
    """Names for the numbers and tables that both sides have and that do not mean themselves."""
    seen = tuple({_key(op): op for (side, _), op in _constants(sides) if side == k} for k in (0, 1))
    found: dict[tuple[Any, ...], str] = {}
    for key, op in seen[0].items():
        finite = all(math.isfinite(v) for v in op.values)
        if key in seen[1] and finite and (len(op.values) > 1 or op.values[0] not in _PLAIN):
            found[key] = f"c{len(found)}"
    return found


def _relate_tables(sides: Sides, found: Sequence[list[Sized]], places: Places, shared: Mapping[Any, str]) -> None:
    """A table that both sides have is of one size; any other is what it is."""
    first: dict[str, tuple[Place, ...]] = {}
    for (side, position), op in _constants(sides):
        own = found[side][position].result
        if len(op.values) == 1:
            continue
        name = shared.get(_key(op))
        if name is None or len(first.setdefault(name, own)) != len(own):
            places.fix(own)
        else:
            for a, b in zip(first[name], own, strict=True):
                places.same(a, b)


def _with_sizes(graph: Graph, own: Sequence[Sized], size: Any, shared: Mapping[Any, str]) -> Graph | None:
    """The program with expressions for its sizes and inputs for shared tables; None where these do not fit."""

    def attribute(value: Attribute) -> Any:
        if isinstance(value, Shifted):
            return size(value.place) + value.offset
        return tuple(map(attribute, value)) if isinstance(value, tuple) else size(value)

    builder = GraphBuilder(graph.name)
    try:
        for position, (node, places) in enumerate(zip(graph.nodes, own, strict=True)):
            changed = {name: attribute(value) for name, value in places.attributes.items()}
            if "tensor" in changed:
                changed["tensor"] = node.type.with_shape(changed["tensor"])
            if isinstance(node.op, ops.Constant) and len(node.op.values) > 1 and _key(node.op) in shared:
                op: Operator = ops.Input(f"table {position}", changed["tensor"])
            else:
                op = cast(Operator, replace(cast(Any, node.op), **changed)) if changed else node.op
            if isinstance(op, ops.Input):
                builder.input(op.label, op)
            else:
                builder.add(op, *node.operands)
    except (RewrightError, TypeError):
        return None
    for name, position in graph.outputs.items():
        builder.output(name, position)
    return builder.build()


def _ways(
    sides: Sides, free: Sides, shared: Mapping[tuple[Any, ...], str], example: Mapping[str, Dim]
) -> Iterator[tuple[tuple[Where, Number], ...]]:
    """What the constants may be: given, sizes, or the numbers that they are."""
    groups: dict[tuple[Any, ...], list[tuple[Where, ops.Constant]]] = {}
    for where, op in _constants(sides):
        groups.setdefault(_key(op), []).append((where, op))
    choices: list[list[list[tuple[Where, Number]]]] = []
    for key, members in groups.items():
        options: list[list[tuple[Where, Number]]] = []
        if key in shared:
            options.append([(where, Given(shared[key], _is_negative(op))) for where, op in members])
        for size in _sizes_of(free, key, example):
            options.append([(where, Counted(size)) for where, op in members if not _is_negative(op)])
        if not (key in shared and len(key[1]) > 1):
            options.append([])
        choices.append(options)
    for picked in itertools.product(*choices):
        yield tuple(entry for option in picked for entry in option)


def _sizes_of(sides: Sides, key: tuple[Any, ...], example: Mapping[str, Dim]) -> list[Dim]:
    """The sizes that a number may be."""
    dtype, values = key
    if len(values) != 1 or dtype is DType.BOOL or values[0] in _PLAIN or not float(values[0]).is_integer():
        return []
    sizes = dict.fromkeys(size for graph in sides for node in graph.nodes for size in node.type.shape)
    found = [size for size in sizes if isinstance(size, SizeExpr) and replaced(size, example) == int(values[0])]
    return found[:_MOST_SIZES]


def _is_negative(op: ops.Constant) -> bool:
    return len(op.values) == 1 and op.tensor.dtype is not DType.BOOL and op.values[0] < 0
