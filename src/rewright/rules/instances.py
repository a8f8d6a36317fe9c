"""Random instances of a rule: sizes that satisfy its conditions, boundary and empty ones often, and elements."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from rewright import ops
from rewright.interp.decimals import Decimals
from rewright.ir.dims import Dim, SizeExpr
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.types import DType
from rewright.rules.concrete import applies, concrete
from rewright.rules.elements import Place, Program
from rewright.rules.rule import Rule
from rewright.terms.conditions import AnyOf, IsFloor, IsMaximum, IsMinimum, Same, SizeCondition
from rewright.terms.parameters import parameters, value_of

Given = Mapping[str, Mapping[Place, Any]]
"""Elements of inputs as fractions, integers and booleans."""


@dataclass(frozen=True)
class Instance:
    """Sizes, and elements for every input of the left side."""

    sizes: Mapping[str, int]
    inputs: Given


def sample_sizes(
    rule: Rule, source: random.Random, most: int = 4, tries: int = 4000, form: bool = True
) -> dict[str, int] | None:
    """Values for all parameters at which the rule applies, small ones more often; None where none was found."""
    sorts = rule.parameters
    defined = list(_definitions(rule.conditions, source))
    names = [name for name in sorts if name not in {name for name, _ in defined}]
    for _ in range(tries):
        values: dict[str, int] = {}
        for name in names:
            low = {"size": 1, "natural": 0}.get(sorts[name], -most)
            values[name] = source.choice((low, low + 1, *range(low, most + 1)))
        try:
            for name, condition in defined:
                values[name] = _solution(condition, name, values)
        except (KeyError, ZeroDivisionError):
            continue
        if applies(rule, values, form):
            return values
    return None


def _definitions(conditions: tuple[SizeCondition, ...], source: random.Random) -> Iterator[tuple[str, SizeCondition]]:
    """Conditions that determine a parameter from others, in order."""
    for condition in conditions:
        if isinstance(condition, AnyOf):
            yield from _definitions(source.choice(condition.cases), source)
        elif isinstance(condition, (Same, IsMaximum, IsMinimum, IsFloor)):
            side = condition.left if isinstance(condition, Same) else condition.result
            name = single_parameter(side)
            if name is None and isinstance(condition, Same):
                name = single_parameter(condition.right)
            if name is not None:
                yield name, condition


def single_parameter(expression: Dim) -> str | None:
    """The parameter that an expression is, if it is nothing else."""
    found = parameters((expression,))
    if len(found) != 1 or not isinstance(expression, SizeExpr):
        return None
    (name,) = found
    return name if value_of(expression, {name: 5}) == 5 and value_of(expression, {name: 9}) == 9 else None


def _solution(condition: SizeCondition, name: str, values: Mapping[str, int]) -> int:
    if isinstance(condition, Same):
        other = condition.right if single_parameter(condition.left) == name else condition.left
        return value_of(other, values)
    if isinstance(condition, IsFloor):
        return value_of(condition.numerator, values) // value_of(condition.denominator, values)
    if isinstance(condition, IsMaximum):
        return max(value_of(condition.left, values), value_of(condition.right, values))
    assert isinstance(condition, IsMinimum), "only these conditions define a parameter"
    return min(value_of(condition.left, values), value_of(condition.right, values))


_FRACTIONS = tuple(Fraction(n, 2) for n in (-4, -2, -1, 0, 1, 2, 3, 4, 6))
_POSITIVE = tuple(f for f in _FRACTIONS if f > 0)


def sample_inputs(
    rule: Rule, sizes: Mapping[str, int], source: random.Random, tries: int = 60
) -> dict[str, dict[Place, Any]] | None:
    """Elements that satisfy the rule's facts about elements; None where none were found."""
    facts = concrete(rule.facts, sizes) if rule.facts is not None else None
    positive = source.random() < 0.5
    inputs = random_inputs(concrete(rule.left, sizes), source, positive)
    if facts is None:
        return inputs
    for _ in range(tries):
        wrong = _violations(facts, inputs)
        if not wrong:
            return inputs
        for label, place in wrong:
            dtype = next(n.op.tensor.dtype for n in facts.nodes if isinstance(n.op, ops.Input) and n.op.label == label)
            inputs[label][place] = _draw(dtype, source, positive)
    return None


def random_inputs(graph: Graph, source: random.Random, positive: bool = True) -> dict[str, dict[Place, Any]]:
    """Random elements for all inputs of a graph at numbers."""
    return {
        node.op.label: {place: _draw(node.op.tensor.dtype, source, positive) for place in _places(node.op.tensor.shape)}
        for node in graph.nodes
        if isinstance(node.op, ops.Input)
    }


def filled_inputs(graph: Graph, value: int) -> dict[str, dict[Place, Any]]:
    """One number for all elements of all inputs of a graph at numbers; truth values are whether it is not zero."""
    found: dict[str, dict[Place, Any]] = {}
    for node in graph.nodes:
        if isinstance(node.op, ops.Input):
            dtype = node.op.tensor.dtype
            element = Fraction(value) if dtype.is_float else value if dtype.is_integer else bool(value)
            found[node.op.label] = dict.fromkeys(_places(node.op.tensor.shape), element)
    return found


def satisfies(rule: Rule, sizes: Mapping[str, int], inputs: Given) -> bool:
    """Whether elements satisfy the rule's facts about elements."""
    return rule.facts is None or not _violations(concrete(rule.facts, sizes), inputs)


def _draw(dtype: DType, source: random.Random, positive: bool) -> Any:
    if dtype is DType.BOOL:
        return source.random() < 0.5
    if dtype.is_integer:
        return source.choice((0, 1, 2, 3, 4, 5) if positive else (-3, -2, -1, 0, 0, 1, 1, 2, 3))
    return source.choice(_POSITIVE if positive else _FRACTIONS)


def _places(shape: tuple[Dim, ...]) -> list[Place]:
    found: list[Place] = [()]
    for size in shape:
        found = [(*place, i) for place in found for i in range(value_of(size, {}))]
    return found


def _violations(facts: Graph, inputs: Given) -> list[tuple[str, Place]]:
    """The elements that a fact which fails reads at the place where it fails."""
    program = Program(facts, lift_inputs(facts, inputs), Decimals())
    found: list[tuple[str, Place]] = []
    for name, place in program.outputs():
        try:
            good = program.output(name, place)
        except RewrightError:
            good = False
        if not good:
            for node in facts.nodes:
                if isinstance(node.op, ops.Input):
                    label, values = node.op.label, inputs[node.op.label]
                    own = place if node.type.rank == len(place) and place in values else ()
                    found += [(label, p) for p in ([own] if own in values else values)]
    return found


def lift_inputs(graph: Graph, inputs: Given, arithmetic: Any = None) -> dict[str, dict[Place, Any]]:
    """Elements of inputs in an arithmetic."""
    target = Decimals() if arithmetic is None else arithmetic
    found: dict[str, dict[Place, Any]] = {}
    for node in graph.nodes:
        if isinstance(node.op, ops.Input):
            is_float = node.op.tensor.dtype.is_float
            values = inputs[node.op.label]
            found[node.op.label] = {p: _lift(v, target) if is_float else v for p, v in values.items()}
    return found


def _lift(value: Fraction, arithmetic: Any) -> Any:
    parts = [arithmetic.apply("convert_f64", (part,)) for part in Fraction(value).as_integer_ratio()]
    return arithmetic.apply("divide", parts)


def sample(rule: Rule, source: random.Random, most: int = 4) -> Instance | None:
    """A random instance, or None where none was found."""
    sizes = sample_sizes(rule, source, most)
    if sizes is None:
        return None
    inputs = sample_inputs(rule, sizes, source)
    return Instance(sizes, inputs) if inputs is not None else None
