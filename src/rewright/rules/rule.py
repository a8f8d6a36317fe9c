"""A rewrite rule: two programs over the same pattern variables, and when they are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from rewright import ops
from rewright.ir.dims import SizeExpr
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType
from rewright.rules.pattern import Tensor
from rewright.terms.claim import Claim, all_sizes
from rewright.terms.conditions import SizeCondition
from rewright.terms.parameters import Sort, parameters

Condition = SizeCondition | Tensor
"""A condition on sizes, or a boolean expression over inputs that is true at every index."""


@dataclass(frozen=True)
class Rule:
    """``left = right`` for all sizes and values for which the conditions hold and the left side is valid.

    Inputs of the graphs are the pattern variables, size symbols are the pattern variables for sizes and attributes.
    """

    name: str
    statement: str
    left: Graph
    right: Graph
    conditions: tuple[SizeCondition, ...] = ()
    facts: Graph | None = None
    provenance: str = ""
    ranks: str = ""
    """Why the proof at these ranks covers what the statement says, or at which ranks it holds."""

    @cached_property
    def parameters(self) -> dict[str, Sort]:
        """The size parameters with what they may be."""
        return parameters(all_sizes(self.claim()))

    def claim(self) -> Claim:
        """What there is to prove."""
        return Claim(self.left, self.right, self.conditions, self.facts)


def rule(
    name: str,
    statement: str,
    left: Tensor | Sequence[Tensor],
    right: Tensor | Sequence[Tensor],
    *,
    where: Iterable[Condition] = (),
    provenance: str = "",
    ranks: str = "",
) -> Rule:
    """A rule from its two sides; several results are sequences of the same length.

    Raises RewrightError where the right side has inputs that the left does not have, or a condition is no condition.
    """
    lefts, rights = _several(left), _several(right)
    if len(lefts) != len(rights):
        raise RewrightError(f"rule {name!r} has {len(lefts)} results on the left and {len(rights)} on the right")
    sizes: list[SizeCondition] = []
    facts: list[Tensor] = []
    for condition in where:
        if isinstance(condition, Tensor):
            if condition.type.dtype is not DType.BOOL:
                raise RewrightError(f"rule {name!r}: a condition on elements must be boolean and is {condition.type}")
            facts.append(condition)
        elif isinstance(condition, get_args(SizeCondition)):
            sizes.append(condition)
        else:
            raise RewrightError(
                f"rule {name!r}: {condition!r} is no condition; give AtMost, Same and the like, or a boolean expression"
            )
    program = graph(lefts, name), graph(rights, name)
    facts_graph = graph(facts, name) if facts else None
    _check_inputs(name, program[0], [program[1], *([facts_graph] if facts_graph is not None else [])])
    return Rule(name, statement, *program, tuple(sizes), facts_graph, provenance, ranks)


def _check_inputs(name: str, left: Graph, others: Sequence[Graph]) -> None:
    """Raise RewrightError where an input is not on the left, or has another type there."""
    for other in others:
        for label, position in other.inputs.items():
            found = other.nodes[position].type
            if label not in left.inputs:
                raise RewrightError(f"rule {name!r}: {label!r} is read, but the left side does not have it")
            if left.nodes[left.inputs[label]].type != found:
                raise RewrightError(
                    f"rule {name!r}: {label!r} has two types, one of them {found}; use one name for one"
                )


def graph(results: Sequence[Tensor], name: str) -> Graph:
    """Expressions as a graph with the results "0", "1", ...; equal nodes are one node.

    Raises RewrightError where one name is given to inputs of different types.
    """
    builder = GraphBuilder(name)
    known: dict[object, int] = {}
    done: dict[int, int] = {}

    def add(tensor: Tensor) -> int:
        operands = tuple(done[id(operand)] for operand in tensor.operands)
        key = (tensor.op, operands)
        if key not in known:
            if isinstance(tensor.op, ops.Input):
                known[key] = builder.input(tensor.op.label, tensor.op)
            else:
                known[key] = builder.add(tensor.op, *operands)
        return known[key]

    def visit(result: Tensor) -> int:
        stack = [result]
        while stack:
            waiting = [operand for operand in stack[-1].operands if id(operand) not in done]
            if waiting:
                stack.extend(reversed(waiting))
            else:
                tensor = stack.pop()
                done[id(tensor)] = add(tensor)
        return done[id(result)]

    for number, result in enumerate(results):
        builder.output(str(number), visit(result))
    return builder.build()


def within(tensor: Tensor, low: float | SizeExpr, high: float | SizeExpr) -> tuple[Tensor, Tensor]:
    """Conditions that all elements of an integer tensor are at least ``low`` and below ``high``."""
    return tensor >= low, tensor < high


def _several(tensors: Tensor | Sequence[Tensor]) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def digest(parts: Iterable[str]) -> str:
    """The SHA-256 digest of texts."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode())
        found.update(b"\0")
    return found.hexdigest()
