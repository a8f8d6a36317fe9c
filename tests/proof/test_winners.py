"""The law of the first largest in the checker: every part of it counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, cast

import pytest

from rewright import ops
from rewright.claims.language import Definition, Fold, Opaque, Pieces, Ranged, View
from rewright.ir.graph import Graph
from rewright.ir.placement import Mesh, RankProgram, place
from rewright.ir.types import DType, TensorType
from rewright.proof.certificate import NodeEquation
from rewright.proof.lemma import prove
from rewright.proof.programs import Applied
from rewright.proof.statement import Statement
from rewright.proof.theory import Theory
from rewright.refine.engine import refine
from tests.programs import Builder

ROWS, OWN, RANKS = 3, 2, 2
SECONDS = 20.0
COUNT = 19
LOOK_UP = ops.Gather((), (0,), (1,), (1,), (0,), 2, (1, 1))


def largest(build: Builder, x: int) -> int:
    return build.add(ops.Reshape((ROWS,)), build.add(ops.TopK(1, "indices"), x))


def sequential() -> Graph:
    build = Builder("whole")
    build.output("y", largest(build, build.tensor("x", (ROWS, OWN * RANKS))))
    return build.build()


def rank(number: int) -> Graph:
    build = Builder("rank")
    x = build.tensor("x", (ROWS, OWN))
    groups = (tuple(range(RANKS)),)

    def gathered(value: int) -> int:
        return build.add(ops.AllGather(0, groups), build.add(ops.Reshape((1, ROWS)), value))

    first = build.add(ops.Constant(TensorType((ROWS,), DType.I64), (number * OWN,)))
    places = gathered(build.add(ops.Add(), largest(build, x), first))
    values = gathered(build.add(ops.Reduce("maximum", (1,)), x))
    which = largest_of_columns(build, values)
    build.output("y", build.add(ops.Reshape((ROWS,)), build.add(LOOK_UP, places, which)))
    return build.build()


def largest_of_columns(build: Builder, values: int) -> int:
    found = build.add(ops.TopK(1, "indices"), build.add(ops.Transpose((1, 0)), values))
    return build.add(ops.Transpose((1, 0)), found)


@cache
def look_up() -> Statement:
    """The statement of the look-up in a proof that is right."""
    mesh = Mesh.of({"tp": RANKS})
    placements = {"x": place((ROWS, OWN * RANKS), mesh, ("Shard(1)",))}
    program = RankProgram(tuple(map(rank, range(RANKS))), mesh, placements, {})
    verdict = refine(sequential(), program, audit=True)
    assert verdict.status == "proved", verdict.reason
    certificate = verdict.certificate
    assert certificate is not None
    graph = program.graphs[0]
    claims: dict[tuple[int, int], int] = {}
    for equation in certificate.equations:
        members = [(equation.program, equation.position, equation.value)] if isinstance(equation, NodeEquation) else ()
        for program_, position, value in members or cast("Any", equation).members:
            claims[program_, position] = value
        node = graph.nodes[equation.position] if isinstance(equation, NodeEquation) and equation.program == 0 else None
        if isinstance(equation, NodeEquation) and node is not None and isinstance(node.op, ops.Gather):
            types = tuple(graph.nodes[p].type for p in node.operands)
            tensors = [certificate.values[claims[0, p]] for p in node.operands]
            theory = Theory(certificate.terms, frozenset())
            result = certificate.values[equation.value]
            statement, *_ = theory.statement(Applied(node.op, types), tensors, result, equation.unfold)
            return statement
    raise AssertionError("no look-up")


def with_definition(statement: Statement, number: int, definition: Definition) -> Statement:
    others = tuple((n, definition if n == number else d) for n, d in statement.definitions)
    return replace(statement, definitions=others)


def altered() -> Iterator[tuple[str, Statement]]:
    right = look_up()
    data, which = right.operands
    assert isinstance(data, Pieces) and isinstance(which, View) and isinstance(right.result, View)
    first, second = data.parts
    yield "parts in another order", replace(right, operands=(replace(data, parts=(second, first)), which))
    yield "one part twice", replace(right, operands=(replace(data, parts=(first, first)), which))
    assert isinstance(second, View)
    for step in (-1, 1):
        addends = tuple(
            replace(a, coefficient=a.coefficient + step) if a.coefficient == OWN else a for a in second.addends
        )
        moved = replace(data, parts=(first, replace(second, addends=addends)))
        yield f"a part that begins {step} further", replace(right, operands=(moved, which))
    twice = replace(right.result, addends=tuple(replace(a, coefficient=Fraction(2)) for a in right.result.addends))
    yield "twice the place", replace(right, result=twice)
    assert isinstance(first, View)
    yield "a part for the whole", replace(right, result=replace(right.result, addends=first.addends))
    for number, definition in right.definitions:
        content = definition.content
        if isinstance(content, Ranged):
            ((box, often),) = cast("Any", content.region)
            ((low, high),) = box
            for other in ((low + 1, high), (low, high - 1)):
                shorter = replace(definition, content=Ranged((((other,), often),)))
                yield f"the largest of {other} in {number}", with_definition(right, number, shorter)
        elif isinstance(content, Fold):
            lowest = replace(definition, content=replace(content, kind="minimum"))
            yield f"the smallest in {number}", with_definition(right, number, lowest)
        elif isinstance(content, Opaque) and content.op == ops.TopK(1, "indices"):
            smallest = replace(definition, content=replace(content, op=ops.Sort(1, False, "indices")))
            yield f"the smallest first in {number}", with_definition(right, number, smallest)
            ((variable, start, length),) = cast("Any", content.windows)
            moved = replace(definition, content=replace(content, windows=((variable, start + 1, length),)))
            yield f"another window in {number}", with_definition(right, number, moved)


def test_the_right_one_is_proved() -> None:
    assert prove(look_up(), SECONDS) is None


@pytest.mark.sample(4)
@pytest.mark.parametrize("number", range(COUNT))
def test_every_part_counts(number: int) -> None:
    wrong = list(altered())
    assert len(wrong) == COUNT
    name, statement = wrong[number]
    assert prove(statement, SECONDS) is not None, name
