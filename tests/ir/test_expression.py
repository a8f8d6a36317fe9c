"""Small graphs as expressions: what is read twice has a name, numbers are numbers, slices are as in Python."""

from __future__ import annotations

from rewright import ops
from rewright.ir.expression import expression
from rewright.ir.graph import GraphBuilder
from rewright.ir.types import DType, TensorType

KIND = TensorType((3, 5), DType.F32)
SCALAR = TensorType((), DType.F32)


def test_softmax() -> None:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", KIND))
    powers = b.add(ops.Exponential(), x)
    total = b.add(ops.BroadcastInDim((3, 5), (0,)), b.add(ops.Reduce("sum", (1,)), powers))
    b.output("result", b.add(ops.Divide(), powers, total))

    assert expression(b.build(), "result") == "divide(a, broadcast[3, 5](sum[1](a))) with a = exponential(x)"


def test_numbers_and_slices() -> None:
    b = GraphBuilder()
    a = b.input("a", ops.Input("a", KIND))
    two = b.add(ops.BroadcastInDim((3, 5), ()), b.add(ops.Constant(SCALAR, (2.0,))))
    twice = b.add(ops.Multiply(), a, two)
    b.output("odd", b.add(ops.Slice((0, 1), (3, 5), (1, 2)), twice))
    b.output("both", b.add(ops.Add(), twice, twice))

    assert expression(b.build(), "odd") == "multiply(a, 2.0)[:, 1::2]"
    # The name of an input is not taken again.
    assert expression(b.build(), "both") == "add(b, b) with b = multiply(a, 2.0)"


def test_what_is_long_is_counted() -> None:
    b = GraphBuilder()
    x = b.input("x", ops.Input("x", KIND))
    for _ in range(50):
        x = b.add(ops.Negate(), x)
    b.output("result", x)

    assert expression(b.build(), "result") == "50 operators of x"
    assert expression(b.build(), "result", most=50).startswith("negate(negate(")
