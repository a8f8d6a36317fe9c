"""Rules between elements are matched at any shape, where facts decide their conditions, and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from rewright import ops
from rewright.analysis.evenness import splat
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType
from rewright.ops.facts import REAL, UNKNOWN, Facts, facts_between
from rewright.rules.pattern import floats, maximum, minimum
from rewright.rules.pointwise import Bound, build_right, match_elements
from rewright.rules.rule import Rule, rule

A, B = floats("A", 1), floats("B", 1)
FLOOR = rule("floor", "max(A, 0) = A where A >= 0", maximum(A, 0.0), A, where=[A >= 0.0])
SUM = rule("sum", "max(A, B) + min(A, B) = A + B", maximum(A, B) + minimum(A, B), A + B)
SHAPES = (), (3,), (2, 1, 4)
Write = Callable[[GraphBuilder, int, int], int]


def program(write: Write, shape: tuple[int, ...] = (3,), dtype: DType = DType.F32) -> Graph:
    b = GraphBuilder()
    x, y = (b.input(name, ops.Input(name, TensorType(shape, dtype))) for name in "xy")
    b.output("z", write(b, x, y))
    return b.build()


def matched(one: Rule, graph: Graph, known: Facts = REAL) -> Bound | None:
    facts = [known] * len(graph.nodes)
    return match_elements(one, graph, graph.outputs["z"], facts, lambda position: splat(graph, position))


def floor(b: GraphBuilder, x: int, y: int) -> int:
    zero = b.add(ops.Constant(TensorType((), b.type(x).dtype), (0,)))
    return b.add(ops.Maximum(), b.add(ops.BroadcastInDim(b.type(x).shape, ()), zero), x)


def both(b: GraphBuilder, x: int, y: int) -> int:
    return b.add(ops.Add(), b.add(ops.Minimum(), x, y), b.add(ops.Maximum(), y, x))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_rule_holds_at_any_shape(shape: tuple[int, ...]) -> None:
    graph = program(floor, shape)
    assert matched(FLOOR, graph, facts_between(0, math.inf)) == {"A": graph.inputs["x"]}


@pytest.mark.parametrize("known", [REAL, UNKNOWN, facts_between(-1, 5), replace(facts_between(0, 5), nan=True)])
def test_a_condition_that_is_open_is_not_met(known: Facts) -> None:
    assert matched(FLOOR, program(floor), known) is None


def test_integers_are_no_floats() -> None:
    assert matched(FLOOR, program(floor, dtype=DType.I32), facts_between(0, 5, whole=True)) is None


@pytest.mark.parametrize("shape", SHAPES)
def test_operands_of_what_commutes_are_found_in_either_order(shape: tuple[int, ...]) -> None:
    graph = program(both, shape)
    bound = matched(SUM, graph)
    assert bound is not None and set(bound.values()) == set(graph.inputs.values())
    b = GraphBuilder()
    inputs = {name: b.input(name, ops.Input(name, TensorType(shape, DType.BF16))) for name in "AB"}
    made = build_right(SUM, b, TensorType(shape, DType.BF16), inputs)
    assert b.node(made).op == ops.Add() and b.type(made) == TensorType(shape, DType.BF16)


def test_one_input_is_one_node() -> None:
    def other(b: GraphBuilder, x: int, y: int) -> int:
        return b.add(ops.Add(), b.add(ops.Maximum(), x, y), b.add(ops.Minimum(), x, x))

    assert matched(SUM, program(other)) is None
