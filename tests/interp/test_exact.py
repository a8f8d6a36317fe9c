"""Programs evaluated by their formulas: an identity that floats blur is exact here."""

from fractions import Fraction

import numpy as np
import pytest

from rewright import ops
from rewright.interp.exact import run_exactly
from rewright.interp.program import run
from rewright.interp.rationals import Rationals
from rewright.ir.dims import Dim, symbol
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph, GraphBuilder
from rewright.ir.types import DType, SourceSpan, TensorType
from rewright.ops.base import Array


def three_products(left_first: bool, rows: Dim = 2) -> Graph:
    """``(a b) c`` or ``a (b c)``."""
    builder = GraphBuilder()
    a = builder.input("a", ops.Input("a", TensorType((rows, 3), DType.F64)))
    b = builder.input("b", ops.Input("b", TensorType((3, 4), DType.F64)))
    c = builder.input("c", ops.Input("c", TensorType((4, 2), DType.F64)))
    product = ops.DotGeneral((), (), (1,), (0,))
    if left_first:
        result = builder.add(product, builder.add(product, a, b), c)
    else:
        result = builder.add(product, a, builder.add(product, b, c))
    builder.output("y", result)
    return builder.build()


GENERATOR = np.random.default_rng(3)
INPUTS: dict[str, Array] = {
    "a": GENERATOR.normal(size=(2, 3)),
    "b": GENERATOR.normal(size=(3, 4)),
    "c": GENERATOR.normal(size=(4, 2)),
}


def test_associativity_is_exact_in_rationals() -> None:
    left = run_exactly(three_products(True), INPUTS, Rationals())["y"]
    right = run_exactly(three_products(False), INPUTS, Rationals())["y"]
    assert left.tolist() == right.tolist()


def test_the_exact_value_is_close_to_the_float_value() -> None:
    exact = run_exactly(three_products(True), INPUTS, Rationals())["y"]
    assert np.allclose(exact.astype(float), run(three_products(True), INPUTS)["y"], rtol=1e-12)


def test_sizes_are_read_off_the_inputs() -> None:
    symbolic = run_exactly(three_products(True, symbol("n")), INPUTS, Rationals())["y"]
    assert symbolic.tolist() == run_exactly(three_products(True), INPUTS, Rationals())["y"].tolist()


def softmax() -> Graph:
    """Without the shift by the maximum."""
    builder = GraphBuilder()
    x = builder.input("x", ops.Input("x", TensorType((3,), DType.F64)))
    raised = builder.add(ops.Exponential(), x)
    total = builder.add(ops.BroadcastInDim((3,), ()), builder.add(ops.Reduce("sum", (0,)), raised))
    builder.output("y", builder.add(ops.Divide(), raised, total))
    return builder.build()


def test_masked_positions_get_exactly_nothing() -> None:
    y = run_exactly(softmax(), {"x": np.array([0.0, -np.inf, 0.0])}, Rationals())["y"]
    assert y.tolist() == [Fraction(1, 2), 0, Fraction(1, 2)]


def test_fractions_are_inputs_too() -> None:
    builder = GraphBuilder()
    x = builder.input("x", ops.Input("x", TensorType((2,), DType.F32)))
    builder.output("y", builder.add(ops.Add(), x, x))
    thirds = np.array([Fraction(1, 3), Fraction(2, 3)], dtype=object)
    assert run_exactly(builder.build(), {"x": thirds}, Rationals())["y"].tolist() == [Fraction(2, 3), Fraction(4, 3)]


def test_errors_name_the_source_line() -> None:
    builder = GraphBuilder()
    builder.span = SourceSpan("model.py", 5)
    x = builder.input("x", ops.Input("x", TensorType((2,), DType.F64)))
    builder.output("y", builder.add(ops.Tanh(), x))
    with pytest.raises(RewrightError, match=r"tanh at model.py:5: tanh\(1\) is no fraction"):
        run_exactly(builder.build(), {"x": np.ones(2)}, Rationals())


def test_opaque_calls_have_no_denotation() -> None:
    builder = GraphBuilder()
    builder.output("y", builder.add(ops.CustomCall("f", (), (TensorType((), DType.F64),), 0)))
    with pytest.raises(RewrightError, match="custom_call has no denotation: custom_call f is opaque"):
        run_exactly(builder.build(), {}, Rationals())


def test_reading_out_of_range_is_an_error() -> None:
    builder = GraphBuilder()
    table = builder.input("table", ops.Input("table", TensorType((4,), DType.F64)))
    token = builder.input("token", ops.Input("token", TensorType((1,), DType.I64)))
    builder.output("row", builder.add(ops.Gather((), (0,), (), (), (0,), 1, (1,)), table, token))
    with pytest.raises(RewrightError, match="index -1 of axis 0 of size 4 is out of range"):
        run_exactly(builder.build(), {"table": np.ones(4), "token": np.array([-1])}, Rationals())
