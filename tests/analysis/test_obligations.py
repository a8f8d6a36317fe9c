"""Conditions that a proof needs: at poles beside infinities, at what another rank reads, and in what ranks add up."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from rewright import ops
from rewright.analysis.obligations import obligations, sentences
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, TensorType

REAL, WHOLE = TensorType((3, 3), DType.F32), TensorType((3, 3), DType.I64)
Body = Callable[[GraphBuilder, int], int]


def program(body: Body, kind: TensorType = REAL) -> Graph:
    b = GraphBuilder()
    b.output("y", body(b, b.input("x", ops.Input("x", kind))))
    return b.build()


def masked(value: float) -> Body:
    """``value`` above the diagonal."""

    def body(b: GraphBuilder, x: int) -> int:
        keeps = b.add(ops.Compare("GE"), b.add(ops.Iota(WHOLE, 0)), b.add(ops.Iota(WHOLE, 1)))
        return b.add(ops.Select(), keeps, x, b.add(ops.Constant(REAL, (value,))))

    return body


def said(*graphs: Graph) -> list[str]:
    """The conditions of the first program, and of the others, which run together."""
    return [text.replace("unknown line", "a line") for text in sentences(obligations(graphs))]


def same(kind: TensorType = REAL) -> Graph:
    return program(lambda b, x: x, kind)


def test_a_pole_is_named_where_an_operand_may_be_infinite_too() -> None:
    graph = program(lambda b, x: b.add(ops.Log(), b.add(ops.Abs(), masked(-math.inf)(b, x))))
    assert said(graph) == ["log at a line: its argument is positive"]


def test_what_is_not_a_number_is_named_where_it_is_computed_with() -> None:
    graph = program(lambda b, x: b.add(ops.Compare("EQ"), masked(math.nan)(b, x), x))
    assert said(graph) == ["compare at a line: none of its operands is NaN"]
    assert said(program(masked(math.nan))) == [], "what only moves it passes it on"


def sender() -> Graph:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", REAL))
    b.add(ops.Send(1, 0), b.add(ops.Log(), x))
    b.output("x", x)
    return b.build()


def receiver() -> Graph:
    b = GraphBuilder()
    b.input("x", ops.Input("x", REAL))
    b.output("y", b.add(ops.Recv(0, 0, REAL)))
    return b.build()


def test_what_only_another_rank_reads_has_conditions_too() -> None:
    assert said(same(), sender(), receiver()) == ["log at a line: its argument is positive"]


def reduced(value: float) -> Graph:
    return program(lambda b, x: b.add(ops.AllReduce("sum", ((0, 1),)), masked(value)(b, x)))


def test_ranks_that_add_infinities_of_opposite_signs() -> None:
    (text,) = said(same(), reduced(math.inf), reduced(-math.inf))
    assert text == "all_reduce at a line: it adds no infinities of opposite signs"
    assert said(same(), reduced(-math.inf), reduced(-math.inf)) == []


def test_integers_that_ranks_add_up_may_wrap() -> None:
    counts = program(lambda b, x: b.add(ops.AllReduce("sum", ((0, 1),)), x), WHOLE)
    assert said(same(WHOLE), counts, counts) == ["all_reduce at a line: it does not wrap in i64"]


@pytest.mark.parametrize(("dtype", "most"), [(DType.BF16, "256"), (DType.F32, "16,777,216")])
def test_integers_that_pass_through_a_float_type(dtype: DType, most: str) -> None:
    through = program(lambda b, x: b.add(ops.Convert(DType.I64), b.add(ops.Convert(dtype), x)), WHOLE)
    (text,) = said(through)
    assert text.startswith("convert at a line: the whole numbers that it") and most in text


def test_integers_that_become_floats_and_stay_so_have_no_condition() -> None:
    scaled = program(lambda b, x: b.add(ops.Cosine(), b.add(ops.Convert(DType.F32), x)), WHOLE)
    assert said(scaled) == []
