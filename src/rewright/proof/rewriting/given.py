"""Lemmas as claims of the prover, with what is given of their inputs.

``maximum(x, 0) == x`` is given that ``x`` is at least 0, which becomes a condition of the claim. An input that is one
number everywhere becomes this number, and one of whole numbers is the image of an integer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from rewright import ops
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import UNKNOWN, Facts, integer_range, is_no_number
from rewright.ops.functions.record import Direction
from rewright.proof.rewriting.lemma import Lemma
from rewright.terms.claim import Claim

_EXACT = 1 << 53


def as_claim(lemma: Lemma) -> Claim:
    """What the prover is asked of a lemma."""
    known = {name: facts for name, facts in lemma.given if facts != UNKNOWN}
    whole = lemma.whole
    right, left = _read(lemma.right, known), _read(whole, known)
    return Claim(left, right, facts=_conditions((whole, lemma.right), known))


def number(facts: Facts) -> float | int | None:
    """The one number, or infinity, that all elements are; None where there may be several, or one that is rounded."""
    if facts.nan:
        return None
    if facts.is_finite and facts.low == facts.high and abs(facts.low) < _EXACT:
        return facts.low
    if is_no_number(facts) and facts.plus_infinity is not facts.minus_infinity:
        return math.inf if facts.plus_infinity else -math.inf
    return None


def is_of_numbers(facts: Facts) -> bool:
    """Whether the ends of what is given are numbers that a float comes near, or infinities."""
    try:
        return not any(math.isnan(float(end)) for end in (facts.low, facts.high))
    except OverflowError:
        return False


def _read(graph: Graph, known: Mapping[str, Facts]) -> Graph:
    """One side over inputs as they are known."""
    if not any(name in known for name in graph.inputs):
        return graph
    builder, places = GraphBuilder(graph.name), dict[int, int]()
    names = {position: name for name, position in graph.inputs.items()}
    for position, node in enumerate(graph.nodes):
        name = names.get(position)
        if name is None:
            places[position] = builder.add(node.op, *(places[p] for p in node.operands))
        else:
            places[position] = _input(builder, name, node.type, known.get(name, UNKNOWN))
    for name, position in graph.outputs.items():
        builder.output(name, places[position])
    return builder.build()


def _input(builder: GraphBuilder, name: str, kind: TensorType, facts: Facts) -> int:
    value = number(facts)
    if value is not None and (kind.dtype.is_float or _is_integer(value, kind.dtype)):
        typed = float(value) if kind.dtype.is_float else bool(value) if kind.dtype is DType.BOOL else int(value)
        return builder.add(ops.Constant(kind, (typed,)))
    own = _kind(kind, facts)
    place = builder.input(name, ops.Input(name, own))
    return place if own == kind else builder.add(ops.Convert(kind.dtype), place)


def _is_integer(value: float | int, dtype: DType) -> bool:
    """Whether a type of integers, or of truth values, has a number."""
    low, high = integer_range(dtype)
    return low <= value <= high and value == int(value)


def _kind(kind: TensorType, facts: Facts) -> TensorType:
    """The type of an input; integers where floats are whole numbers."""
    if kind.dtype.is_float and facts.whole and facts.is_finite:
        return TensorType(kind.shape, DType.I64)
    return kind


def _conditions(sides: Sequence[Graph], known: Mapping[str, Facts]) -> Graph | None:
    """That all elements of inputs lie where they are known to; None where nothing is known."""
    builder, count = GraphBuilder("facts"), 0
    kinds = {n: side.nodes[p].type for side in sides for n, p in side.inputs.items()}
    for name, facts in known.items():
        kind = kinds.get(name)
        if kind is None or kind.dtype is DType.BOOL or facts.nan or number(facts) is not None:
            continue
        own = _kind(kind, facts)
        bounds = list(_bounds(facts))
        place = builder.input(name, ops.Input(name, own)) if bounds else -1
        for direction, value in bounds:
            typed = float(value) if own.dtype.is_float else int(value)
            end = builder.add(ops.Constant(own, (typed,)))
            builder.output(str(count), builder.add(ops.Compare(direction), place, end))
            count += 1
    return builder.build() if count else None


def _bounds(facts: Facts) -> Iterator[tuple[Direction, float | int]]:
    if not facts.zero and facts.low < 0 < facts.high:
        yield "NE", 0
    low = math.isfinite(facts.low) and not facts.minus_infinity
    if low and abs(facts.low) < _EXACT:
        is_open = facts.low == 0 and not facts.zero
        yield ("GT" if is_open else "GE"), facts.low
    if math.isfinite(facts.high) and not facts.plus_infinity and abs(facts.high) < _EXACT:
        is_open = facts.high == 0 and not facts.zero
        yield ("LT" if is_open else "LE"), facts.high


__all__ = ["as_claim", "is_of_numbers", "number"]
