"""Mutants of a rule: every condition dropped, every number changed by one, every pair of operands swapped.

A rule whose mutants are refuted says exactly what it needs to say. One that survives is recorded: a condition may
follow from the others, and a change may make another true rule.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, cast

from rewright import ops
from rewright.ir.dims import SizeExpr
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.rules.counterexample import find
from rewright.rules.rule import Rule
from rewright.terms.normal.prove import prove

Fate = Literal["refuted", "ill-typed", "also true", "undecided"]


@dataclass(frozen=True)
class MutantResult:
    """What was changed, and what became of the rule."""

    change: str
    fate: Fate
    detail: str = ""


def examine(rule: Rule, seconds: float = 1.0, most: int = 40) -> list[MutantResult]:
    """The fate of every mutant of a rule, up to a number of them; each within the time."""
    found: list[MutantResult] = []
    for change, mutant in mutants(rule):
        if len(found) >= most:
            break
        if mutant is None:
            found.append(MutantResult(change, "ill-typed"))
            continue
        found.append(_fate(change, mutant, seconds))
    return found


def _fate(change: str, mutant: Rule, seconds: float) -> MutantResult:
    outcome = prove(mutant.claim(), seconds)
    if outcome.status == "proved":
        return MutantResult(change, "also true")
    counterexample = find(mutant, outcome.sizes, tries=25, seconds=seconds)
    if counterexample is not None:
        return MutantResult(change, "refuted", counterexample.difference)
    return MutantResult(change, "undecided", outcome.reason)


def mutants(rule: Rule) -> Iterator[tuple[str, Rule | None]]:
    """Mutants with what was changed; None for one that is not well typed."""
    for number, condition in enumerate(rule.conditions):
        rest = rule.conditions[:number] + rule.conditions[number + 1 :]
        yield f"without condition {type(condition).__name__}", dataclasses.replace(rule, conditions=rest)
    if rule.facts is not None:
        for name in rule.facts.outputs:
            kept = {label: position for label, position in rule.facts.outputs.items() if label != name}
            facts = dataclasses.replace(rule.facts, outputs=kept) if kept else None
            yield f"without the fact {name} about elements", dataclasses.replace(rule, facts=facts)
    for position, node in enumerate(rule.right.nodes):
        if node.operands:
            for change, op in _changed_operators(node.op):
                yield f"{node.op.name}: {change}", _with_node(rule, position, op, node.operands)
        if len(node.operands) > 1 and not isinstance(node.op, ops.Monoid):
            swapped = (node.operands[1], node.operands[0], *node.operands[2:])
            if swapped != node.operands:
                yield f"{node.op.name}: operands swapped", _with_node(rule, position, node.op, swapped)


def _changed_operators(op: Operator) -> Iterator[tuple[str, Operator]]:
    """The operator with one number of one attribute changed by one."""
    for field in dataclasses.fields(cast(Any, op)):
        value = getattr(op, field.name)
        if field.name == "shape" or not isinstance(value, (tuple, int)) or isinstance(value, bool):
            continue
        for changed in _change(value):
            yield (
                f"{field.name} {_text(value)} to {_text(changed)}",
                dataclasses.replace(cast(Any, op), **{field.name: changed}),
            )


def _change(value: Any) -> Iterator[Any]:
    if isinstance(value, (int, SizeExpr)) and not isinstance(value, bool):
        yield value + 1
        yield value - 1
    elif isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        for place, item in enumerate(items):
            for changed in _change(item):
                yield (*items[:place], changed, *items[place + 1 :])


def _with_node(rule: Rule, position: int, op: Operator, operands: tuple[int, ...]) -> Rule | None:
    """The rule with another node on its right side; None where that is not well typed."""
    try:
        return dataclasses.replace(rule, right=_rebuilt(rule.right, position, op, operands))
    except (RewrightError, TypeError, IndexError):
        return None


def _rebuilt(graph: Graph, position: int, op: Operator, operands: tuple[int, ...]) -> Graph:
    builder = GraphBuilder(graph.name)
    for number, node in enumerate(graph.nodes):
        if number == position:
            builder.add(op, *operands)
        else:
            builder.add(node.op, *node.operands)
    return dataclasses.replace(builder.build(), inputs=dict(graph.inputs), outputs=dict(graph.outputs))


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return "(" + ", ".join(_text(item) for item in cast("tuple[Any, ...]", value)) + ")"
    return str(value)
