"""What is proved of two graphs, and the sizes that it is about."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from rewright.ir.dims import Dim, SizeExpr
from rewright.ir.graph import Graph
from rewright.terms.conditions import SizeCondition, sizes_of


@dataclass(frozen=True)
class Claim:
    """Two graphs with the same outputs over inputs of the same names, under conditions on sizes and on elements."""

    left: Graph
    right: Graph
    conditions: tuple[SizeCondition, ...] = ()
    facts: Graph | None = None
    """Boolean outputs whose elements are all true."""


def all_sizes(claim: Claim) -> Iterator[Dim]:
    """Every size expression of a claim."""
    graphs = [claim.left, claim.right, *([claim.facts] if claim.facts is not None else [])]
    for graph in graphs:
        for node in graph.nodes:
            yield from node.type.shape
            yield from attribute_sizes(node.op)
    for condition in claim.conditions:
        yield from sizes_of(condition)


def attribute_sizes(op: object) -> Iterator[Dim]:
    """The size expressions among the attributes of an operator, at any depth of tuples."""
    for name in getattr(op, "__dataclass_fields__", ()):
        yield from _nested(getattr(op, name))


def _nested(value: object) -> Iterator[Dim]:
    if isinstance(value, SizeExpr):
        yield value
    elif isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            yield from _nested(item)
