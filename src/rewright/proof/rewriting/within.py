"""Numbers that are assumed to be in range, so that a proof may go on from what that decides.

    >>> sentences(graph, Within(inputs=(("i", 0, 6),)))
    ("the indices in input 'i' are in range: from 0 to 6, neither negative nor beyond",)

JAX counts a negative index from the end, where PyTorch has an error. Nothing here is taken for granted in silence: all
that a stage assumes is a sentence, which the certificate has to state.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence

from rewright import ops
from rewright.analysis.evenness import number_of
from rewright.analysis.values import Setting, Values, values_of_ranks
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.ops.base import integer_limits
from rewright.ops.facts import Facts, facts_between, integer_range, is_no_number, meet
from rewright.proof.rewriting.splices import Within
from rewright.proof.wrapping import SHORT

_INDICES = "the indices in input {0!r} are in range: from {1} to {2}, neither negative nor beyond"
_FITS = "what becomes {0} at {1} is a number that {0} holds"


def sentences(graph: Graph, within: Within) -> tuple[str, ...]:
    """What is assumed, in words."""
    nodes = [graph.nodes[position] for position in within.casts]
    found = [_INDICES.format(*one) for one in within.inputs]
    found += [_FITS.format(node.type.dtype.value, node.span) for node in nodes]
    return tuple(dict.fromkeys(found))


def without(graph: Graph, within: Within, sentence: str) -> Within:
    """What else is assumed."""
    inputs = tuple(one for one in within.inputs if sentence not in sentences(graph, Within((one,))))
    casts = tuple(position for position in within.casts if sentence not in sentences(graph, Within((), (position,))))
    return Within(inputs, casts)


def facts_within(graph: Graph, within: Within, *, counts: bool = False) -> list[Facts]:
    """What every node may be wherever the program is defined and its numbers are in range.

    With ``counts`` short integers have no end.
    """
    if counts and any(node.type.dtype in SHORT for node in graph.nodes):
        values = Values(graph, Setting(assumes=True), taken=known(graph, within))
        for position, node in enumerate(graph.nodes):
            values.step(position)
            if position in values.wraps and node.type.dtype in SHORT:
                values.assume(position, facts_between(-math.inf, math.inf, whole=True))
    else:
        (values,) = values_of_ranks([graph], Setting(assumes=True), [known(graph, within)])
    return [values.facts[position] for position in range(len(graph.nodes))]


def known(graph: Graph, within: Within) -> Mapping[int, Facts]:
    """What is assumed of nodes, by position."""
    found: dict[int, Facts] = {}
    for name, low, high in within.inputs:
        found[graph.inputs[name]] = facts_between(low, high, whole=True)
    for position in within.casts:
        source = fitting(graph, position)
        if source is not None:
            own = facts_between(*integer_limits(graph.nodes[position].type.dtype))
            found[source] = meet(found[source], own) if source in found else own
    return found


def why_not(graph: Graph, within: Within, held: Collection[str]) -> str | None:
    """Why what is assumed makes no sense; None where it does. ``held`` are inputs that have numbers of their own."""
    for name, low, high in within.inputs:
        if name not in graph.inputs or name not in held:
            return f"there is no input {name!r} whose numbers are in range"
        dtype = graph.nodes[graph.inputs[name]].type.dtype
        if not dtype.is_integer or not 0 <= low <= high <= integer_range(dtype)[1]:
            return f"the input {name!r} holds no indices from {low} to {high}"
    if len({name for name, *_ in within.inputs}) < len(within.inputs):
        return "an input has two ranges"
    for position in within.casts:
        if not 0 <= position < len(graph.nodes) or fitting(graph, position) is None:
            return f"at node {position} no choice is made of numbers that do not fit"
    met = facts_within(graph, within)
    for position in known(graph, within):
        if is_no_number(met[position]):
            return f"no number at node {position} is in range"
    return None


def fitting(graph: Graph, position: int) -> int | None:
    """The float of which a cast to an integer makes a choice where it does not fit; None where it makes none.

    All choices in front of the cast are among this float and constants, by comparisons of it with constants.
    """
    node = graph.nodes[position]
    if not isinstance(node.op, ops.Convert) or not node.type.dtype.is_integer:
        return None
    (operand,) = node.operands
    outer = graph.nodes[operand]
    if not isinstance(outer.op, ops.Select) or not outer.type.dtype.is_float:
        return None
    compared = _compare(graph, [outer.operands[0]])
    if compared is None or len(compared) != 1:
        return None
    (source,) = compared
    conditions: list[int] = []
    stack, seen = [operand], set[int]()
    while stack:
        at = stack.pop()
        own = graph.nodes[at]
        if at in seen:
            continue
        seen.add(at)
        if at == source:
            continue
        if isinstance(own.op, ops.Select):
            conditions.append(own.operands[0])
            stack.extend(own.operands[1:])
        elif number_of(graph, at) is None:
            return None
    return source if source in seen and _compare(graph, conditions) == compared else None


def _compare(graph: Graph, conditions: Sequence[int]) -> set[int] | None:
    """What conditions compare element by element, constants not counted; None where they read anything else."""
    found: set[int] = set()
    stack, seen = list(conditions), set[int]()
    while stack:
        at = stack.pop()
        node = graph.nodes[at]
        if at in seen or number_of(graph, at) is not None:
            continue
        seen.add(at)
        if node.type.dtype.is_float:
            found.add(at)
        elif node.type.dtype is DType.BOOL and isinstance(node.op, ops.Elementwise):
            stack.extend(node.operands)
        else:
            return None
    return found
