"""Where nothing says what ranks should hold: addends of a sum that is computed later."""

import pytest

from rewright import ops
from rewright.ir.operator import Operator
from rewright.ir.types import DType, TensorType
from rewright.refine.findings.cuts import is_added_up_later
from tests.programs import Builder

LINEAR: dict[str, tuple[Operator, bool]] = {
    "negate": (ops.Negate(), True),
    "broadcast": (ops.BroadcastInDim((2, 4), (1,)), True),
    "reverse": (ops.Reverse((0,)), True),
    "rows": (ops.DynamicSlice((2,)), True),
    "convert": (ops.Convert(DType.BF16), True),
    "absolute value": (ops.Abs(), False),
    "sort": (ops.Sort(0, False, "values"), False),
    "exponential": (ops.Exponential(), False),
}


@pytest.mark.parametrize(("op", "expected"), LINEAR.values(), ids=LINEAR)
def test_addends_pass_through_what_is_linear(op: Operator, expected: bool) -> None:
    build = Builder("rank")
    x = build.tensor("x", (4,))
    start = [build.add(ops.Constant(TensorType((), DType.I64), (1,)))] if isinstance(op, ops.DynamicSlice) else []
    build.output("y", build.add(ops.AllReduce("sum", ((0, 1),)), build.add(op, x, *start)))
    assert is_added_up_later(build.build(), x) is expected


@pytest.mark.parametrize(("constant", "expected"), [(0, True), (1, True), (2, False)])
def test_a_product_with_a_number_is_linear(constant: int, expected: bool) -> None:
    build = Builder("rank")
    x = build.tensor("x", (4,))
    factors = [x, x]
    if constant < 2:
        number = build.add(ops.Constant(TensorType((), DType.F32), (2.0,)))
        factors[constant] = build.add(ops.BroadcastInDim((4,), ()), number)
    build.output("y", build.add(ops.AllReduce("sum", ((0, 1),)), build.add(ops.Multiply(), *factors)))
    assert is_added_up_later(build.build(), x) is expected
