"""What is put right in programs before they are compared over the reals, and that each of it is an assumption."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from rewright import ops
from rewright.equiv.rewrites.ideal import idealise
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.ops.functions.record import Direction
from rewright.ops.reference import building as rb
from rewright.proof.rewriting.numbers.taken import FOLDED, INVERSES, MASKS
from rewright.refine.rewriting.drafts import Draft, graphs_of
from tests.equiv.rewriting import taken

KIND = TensorType((2,), DType.F32)


def with_number(op: Operator, value: float) -> Graph:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", KIND))
    b.output("y", b.add(op, x, b.add(ops.Constant(KIND, (value,)))))
    return b.build()


@dataclass(frozen=True)
class Ideal:
    graphs: tuple[Graph, ...]
    assumptions: tuple[str, ...]


def ideal_of(graphs: Sequence[Graph]) -> Ideal:
    drafts = idealise([Draft(graph) for graph in graphs])
    return Ideal(tuple(graphs_of(drafts)), taken(drafts))


def constants(graph: Graph) -> list[float]:
    return [float(v) for node in graph.nodes if isinstance(node.op, ops.Constant) for v in node.op.values]


def test_the_most_negative_number_is_minus_infinity() -> None:
    ideal = ideal_of([with_number(ops.Add(), -3.4028234663852886e38)])
    assert constants(ideal.graphs[0]) == [-math.inf]
    assert ideal.assumptions == (MASKS,)
    assert constants(ideal_of([with_number(ops.Add(), -1e9)]).graphs[0]) == [-1e9]


def test_single_precision_rounds_a_number() -> None:
    ideal = ideal_of([with_number(ops.Add(), 1e-6), with_number(ops.Add(), 9.999999974752427e-07)])
    assert constants(ideal.graphs[0]) == constants(ideal.graphs[1]) == [1e-6]
    (assumption,) = ideal.assumptions
    assert "rounding of single precision" in assumption
    assert not ideal_of([with_number(ops.Add(), 1e-6), with_number(ops.Add(), 1.001e-6)]).assumptions


def test_a_quotient_by_a_root_is_a_product() -> None:
    ideal = ideal_of([with_number(ops.Divide(), 0.7), with_number(ops.Multiply(), 1 / 0.7)])
    assert [type(g.nodes[-1].op) for g in ideal.graphs] == [ops.Multiply, ops.Multiply]
    assert INVERSES in ideal.assumptions
    thirds = ideal_of([with_number(ops.Multiply(), 1 / 3), with_number(ops.Divide(), 3.0)])
    assert [type(g.nodes[-1].op) for g in thirds.graphs] == [ops.Divide, ops.Divide]
    assert INVERSES in thirds.assumptions
    assert not ideal_of([with_number(ops.Divide(), 4.0)]).assumptions


def test_roots_meet_where_programs_have_other_numbers() -> None:
    ideal = ideal_of([with_number(ops.Multiply(), 8**-0.5), with_number(ops.Multiply(), 8**-0.25)])
    assert [sum(isinstance(node.op, ops.Sqrt) for node in g.nodes) for g in ideal.graphs] == [1, 2]
    assert any("rounded roots" in text for text in ideal.assumptions)


def test_numbers_made_of_numbers_are_numbers() -> None:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", KIND))
    b.output("y", b.add(ops.Multiply(), x, b.add(ops.Exponential(), b.add(ops.Constant(KIND, (2.0,))))))
    ideal = ideal_of([b.build()])
    assert constants(ideal.graphs[0]) == [math.exp(2.0)]
    assert ideal.assumptions == (FOLDED,)


def test_positions_counted_in_floats_are_positions() -> None:
    b = GraphBuilder()
    whole, real = TensorType((2, 3), DType.I64), TensorType((2, 3), DType.F32)
    halves = b.add(ops.Multiply(), b.add(ops.Iota(real, 1)), b.add(ops.Constant(real, (2.0,))))
    odd = b.add(ops.Add(), b.add(ops.Multiply(), halves, b.add(ops.Constant(real, (0.5,)))), _one(b, real))
    b.output("y", b.add(ops.Convert(DType.I64), odd))
    (found,) = ideal_of([b.build()]).graphs
    assert [node.op for node in found.nodes] == [ops.Iota(whole, 1), ops.Constant(whole, (1,)), ops.Add()]


def _one(b: GraphBuilder, kind: TensorType) -> int:
    return b.add(ops.Constant(kind, (1.0,)))


def test_a_quotient_by_a_table_is_a_product() -> None:
    """As of positions by powers of a base, which others are multiplied by."""

    def with_table(op: Operator, *values: float) -> Graph:
        b = GraphBuilder()
        x = b.input("x", ops.Input("x", KIND))
        b.output("y", b.add(op, x, b.add(ops.Constant(KIND, values))))
        return b.build()

    divided, multiplied = with_table(ops.Divide(), 7.0, 3.0), with_table(ops.Multiply(), 1 / 7, 1 / 3)
    ideal = ideal_of([divided, multiplied])
    assert ideal.graphs[0].nodes == ideal.graphs[1].nodes
    assert INVERSES in ideal.assumptions
    assert any(
        isinstance(node.op, ops.Divide) for node in ideal_of([with_table(ops.Divide(), 7.0, 0.0)]).graphs[0].nodes
    )


@pytest.mark.parametrize(("masked", "direction", "chosen"), [
    (False, "EQ", ops.Reduce), (False, "NE", ops.Reduce), (True, "EQ", ops.Select), (True, "NE", ops.Select),
])  # fmt: skip
def test_the_largest_of_numbers_is_no_infinity(masked: bool, direction: Direction, chosen: type[Operator]) -> None:
    """What no row can be needs no other result; where some numbers may be masked, it stays."""
    b = GraphBuilder()
    x, mask = b.input("x", ops.Input("x", KIND)), b.input("mask", ops.Input("mask", TensorType((2,), DType.BOOL)))
    seen = rb.select(b, mask, x, rb.splat_like(b, -math.inf, x)) if masked else x
    most = rb.reduce(b, "maximum", seen, [0])
    asked = rb.compare(b, direction, most, rb.splat_like(b, -math.inf, most))
    sides = rb.splat_like(b, math.nan, most), rb.reduce(b, "sum", x, [0])
    b.output("y", rb.select(b, asked, *(sides if direction == "EQ" else sides[::-1])))
    (graph,) = ideal_of([b.build()]).graphs
    assert type(graph.nodes[graph.outputs["y"]].op) is chosen
