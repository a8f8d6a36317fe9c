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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from rewright import ops
from rewright.ir.dims import Dim, Shape, SizeExpr
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, Node
from rewright.ir.operator import Operator
from rewright.ir.types import DType
from rewright.ops.resizing import with_sizes
from rewright.rules.free_sizes import Place, Places, Shifted, Sized, places_of, substitute
from rewright.rules.reading import Counted, Given, Number, Sides, Values, Where, canonical, inverse, with_operators
from rewright.rules.scheme import Scheme
from rewright.terms.normal.prove import prove

_PLAIN = (0, 1, -1)
"""Numbers that mean themselves."""
_Key = tuple[DType, Values, Shape]
_MOST_WAYS = 12
_SHARE = 0.2
"""The share of all seconds that the proof of one scheme may take; most take a few hundredths of a second."""
_MOST_SIZES = 3
_MOST_NODES = 120


def generalise(left: Graph, right: Graph, seconds: float = 3.0) -> Scheme | None:
    """The widest proved scheme that has two programs as an instance; None where there is none.

    Tried are all sizes that may be free; none that an equation relates to others; then none of one equation.
    """
    started, most = time.process_time(), _SHARE * seconds
    sides = canonical(left, right)
    if any(len(graph.nodes) > _MOST_NODES for graph in sides):
        return None
    shared = _shared_names(sides)
    related = _place(sides, shared)[0].related()
    widest = _first_proved(_schemes(sides, shared, ()), started + 0.4 * seconds, most)
    if widest is not None or not related:
        return widest
    narrow = _first_proved(_schemes(sides, shared, related), started + 0.8 * seconds, most)
    if narrow is not None and len(related) > 1:
        for group in related:
            found = _first_proved(
                _schemes(sides, shared, (group,)), min(time.process_time() + most, started + seconds), most
            )
            if found is not None:
                return found
    return narrow


def _first_proved(schemes: Iterable[Scheme], deadline: float, most: float) -> Scheme | None:
    for scheme in schemes:
        rest = deadline - time.process_time()
        if rest <= 0:
            return None
        try:
            claim = scheme.rule.claim()
        except RewrightError:
            continue
        if prove(claim, min(rest, most)).status == "proved":
            return scheme
    return None


def _schemes(sides: Sides, shared: Mapping[_Key, str], fixed: Sequence[Sequence[Place]]) -> Iterator[Scheme]:
    """Schemes that have programs as an instance, with some sizes fixed; the most general numbers come first."""
    places, found = _place(sides, shared)
    for group in fixed:
        places.fix(group)
    solution = places.solved()
    left, right = (_with_sizes(graph, own, solution.size, shared) for graph, own in zip(sides, found, strict=True))
    if left is None or right is None:
        return
    for way in _ways(sides, (left, right), shared, solution.example):
        scheme = Scheme(left, right, way, narrowed=bool(fixed))
        yield scheme
        numbers = {n.name for where, n in way if isinstance(n, Given) and scheme.is_number(where)}
        if numbers:
            yield replace(scheme, positive=tuple(sorted(numbers)))


def _place(sides: Sides, shared: Mapping[_Key, str]) -> tuple[Places, list[list[Sized]]]:
    """The places of both programs, which have a result of one shape."""
    places, inputs = Places(), dict[str, tuple[Place, ...]]()
    found = [places_of(graph, places, inputs) for graph in sides]
    results = [own[next(iter(graph.outputs.values()))].result for own, graph in zip(found, sides, strict=True)]
    for a, b in zip(*results, strict=True):
        places.same(a, b)
    _relate_tables(sides, found, places, shared)
    return places, found


def _constants(sides: Sides) -> Iterator[tuple[Where, ops.Constant]]:
    for side, graph in enumerate(sides):
        for position, node in enumerate(graph.nodes):
            if isinstance(node.op, ops.Constant):
                yield (side, position), node.op


def _key(op: ops.Constant) -> _Key:
    """What two constants have in common that are one number up to its sign or its inverse, or one table."""
    values, dtype = op.values, op.tensor.dtype
    if not _is_number(op):
        return dtype, values, op.tensor.shape
    found = inverse(abs(values[0])) if _is_inverted(op) else None
    return dtype, (abs(values[0]) if found is None else found,), ()


def _is_number(op: ops.Constant) -> bool:
    return not ops.is_table(op) and op.tensor.dtype is not DType.BOOL


def _is_inverted(op: ops.Constant) -> bool:
    """Whether a constant is read as the inverse of a number above one."""
    value = next(iter(op.values), 0)
    return _is_number(op) and op.tensor.dtype.is_float and 0 < abs(value) < 1 and inverse(value) is not None


def _shared_names(sides: Sides) -> dict[_Key, str]:
    """Names for the numbers and tables that both sides have and that do not mean themselves."""
    seen = tuple({_key(op): op for (side, _), op in _constants(sides) if side == k} for k in (0, 1))
    found: dict[_Key, str] = {}
    for key, op in seen[0].items():
        finite = all(math.isfinite(v) for v in op.values)
        if key in seen[1] and finite and ops.splat(op) not in _PLAIN:
            found[key] = f"c{len(found)}"
    return found


def _relate_tables(sides: Sides, found: Sequence[list[Sized]], places: Places, shared: Mapping[_Key, str]) -> None:
    """A table that both sides have is of one size; any other is what it is."""
    first: dict[str, tuple[Place, ...]] = {}
    for (side, position), op in _constants(sides):
        own = found[side][position].result
        if not ops.is_table(op):
            continue
        name = shared.get(_key(op))
        if name is None:
            places.fix(own)
        else:
            for a, b in zip(first.setdefault(name, own), own, strict=True):
                places.same(a, b)


def _with_sizes(graph: Graph, own: Sequence[Sized], size: Any, shared: Mapping[_Key, str]) -> Graph | None:
    """The program with expressions for its sizes and inputs for shared tables; None where these do not fit."""

    def in_free_sizes(mark: Shifted) -> Dim:
        return size(mark.place) + mark.offset

    def operator(position: int, node: Node, places: Sized) -> Operator:
        found = with_sizes(node.op, places.attributes, in_free_sizes)
        if isinstance(node.op, ops.Constant) and ops.is_table(node.op) and _key(node.op) in shared:
            return ops.Input(f"table {position}", cast(ops.Constant, found).tensor)
        return found

    nodes = enumerate(zip(graph.nodes, own, strict=True))
    return with_operators(graph, (operator(position, node, places) for position, (node, places) in nodes))


def _ways(
    sides: Sides, free: Sides, shared: Mapping[_Key, str], example: Mapping[str, Dim]
) -> Iterator[tuple[tuple[Where, Number], ...]]:
    """What the constants may be: given, sizes, or the numbers that they are."""
    groups: dict[_Key, list[tuple[Where, ops.Constant]]] = {}
    for where, op in _constants(sides):
        groups.setdefault(_key(op), []).append((where, op))
    choices: list[list[list[tuple[Where, Number]]]] = []
    for key, members in groups.items():
        options: list[list[tuple[Where, Number]]] = []
        if key in shared:
            options.append([(w, Given(shared[key], _is_negative(op), _is_inverted(op))) for w, op in members])
        for size in _sizes_of(free, key, example):
            options.append([(w, Counted(size, _is_inverted(op))) for w, op in members if not _is_negative(op)])
        if not (key in shared and len(key[1]) > 1):
            options.append([])
        choices.append(options)
    picks = itertools.islice(_picks([len(options) for options in choices]), _MOST_WAYS)
    for pick in dict.fromkeys((*picks, tuple(len(options) - 1 for options in choices))):
        yield tuple(entry for options, k in zip(choices, pick, strict=True) for entry in options[k])


def _picks(counts: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """One of each of several lists: the first of all, then another one of one of them, then of two."""
    for others in range(3):
        for changed in itertools.combinations(range(len(counts)), others):
            ranges = [range(1, n) if k in changed else range(1) for k, n in enumerate(counts)]
            yield from itertools.product(*ranges)


def _sizes_of(sides: Sides, key: _Key, example: Mapping[str, Dim]) -> list[Dim]:
    """The sizes that a number may be."""
    dtype, values, _ = key
    if len(values) != 1 or dtype is DType.BOOL or values[0] in _PLAIN or not float(values[0]).is_integer():
        return []
    sizes = dict.fromkeys(size for graph in sides for node in graph.nodes for size in node.type.shape)
    found: list[Dim] = [
        size for size in sizes if isinstance(size, SizeExpr) and substitute(size, example) == int(values[0])
    ]
    return found[:_MOST_SIZES]


def _is_negative(op: ops.Constant) -> bool:
    return _is_number(op) and op.values[0] < 0
