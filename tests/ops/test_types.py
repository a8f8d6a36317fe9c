"""Type rules: what fits, for numbers and for symbolic sizes, and the one sentence where something does not."""

import pytest

from rewright import ops
from rewright.ir.dims import Dim, symbol
from rewright.ir.errors import TypeMismatch
from rewright.ir.types import DType, TensorType
from rewright.ops.base import TensorOperator

B, S = symbol("b"), symbol("s")


def f32(*shape: Dim) -> TensorType:
    return TensorType(shape, DType.F32)


def f8(*shape: Dim) -> TensorType:
    return TensorType(shape, DType.F8E4M3FN)


def i64(*shape: Dim) -> TensorType:
    return TensorType(shape, DType.I64)


def i1(*shape: Dim) -> TensorType:
    return TensorType(shape, DType.BOOL)


PAIR = ((0, 1), (2, 3))

FITS: list[tuple[TensorOperator, tuple[TensorType, ...], TensorType]] = [
    (ops.Add(), (f32(B, S), f32(B, S)), f32(B, S)),
    (ops.Compare("LT"), (f32(B), f32(B)), i1(B)),
    (ops.Select(), (i1(B), f32(B), f32(B)), f32(B)),
    (ops.Maximum(), (f8(B), f8(B)), f8(B)),
    (ops.Convert(DType.F32), (f8(B),), f32(B)),
    (ops.Constant(f8(2), (448.0, 0.0625)), (), f8(2)),
    (ops.Convert(DType.I64), (f32(B),), i64(B)),
    (ops.IsFinite(), (f32(2),), i1(2)),
    (ops.BroadcastInDim((B, S, 4), (0, 2)), (f32(B, 1),), f32(B, S, 4)),
    (ops.BroadcastInDim((4, 3), (1, 0)), (f32(3, 4),), f32(4, 3)),
    (ops.Reshape((B * S, 8)), (f32(B, S, 2, 4),), f32(B * S, 8)),
    (ops.Transpose((2, 0, 1)), (f32(B, S, 3),), f32(3, B, S)),
    (ops.Slice((0, 1), (B, S), (1, 1)), (f32(B, S),), f32(B, S - 1)),
    (ops.Slice((0,), (2 * S,), (2,)), (f32(2 * S),), f32(S)),
    (ops.Slice((1,), (2 * S,), (2,)), (f32(2 * S),), f32(S)),
    (ops.Slice((1,), (8,), (3,)), (f32(8),), f32(3)),
    (ops.Pad((1, 0), (2, -1), (0, 1)), (f32(S, S), f32()), f32(S + 3, 2 * S - 2)),
    (ops.Concatenate(1), (f32(B, S), f32(B, 1)), f32(B, S + 1)),
    (ops.Reverse((0,)), (f32(B),), f32(B)),
    (ops.DotGeneral((0,), (0,), (2,), (2,)), (f32(B, S, 8), f32(B, S + 1, 8)), f32(B, S, S + 1)),
    (ops.Reduce("sum", (1,)), (f32(B, S),), f32(B)),
    (ops.ReduceWindow("sum", (1, S), (1, 1), ((0, 0), (S - 1, 0))), (f32(B, S),), f32(B, S)),
    (ops.ReduceWindow("maximum", (2,), (2,), ((0, 0),)), (f32(2 * S),), f32(S)),
    (ops.Gather((2,), (0,), (), (), (0,), 2, (1, 64)), (f32(1000, 64), i64(B, S)), f32(B, S, 64)),
    (ops.Scatter("sum", (1,), (0,), (), (), (0,), 1), (f32(9, 4), i64(B), f32(B, 4)), f32(9, 4)),
    (ops.DynamicSlice((1, S)), (f32(B, S), i64(), i64()), f32(1, S)),
    (ops.DynamicUpdateSlice(), (f32(B, 8), f32(B, 1), i64(), i64()), f32(B, 8)),
    (ops.Sort(0, True, "indices"), (f32(S),), i64(S)),
    (ops.TopK(2, "values"), (f32(B, 8),), f32(B, 2)),
    (ops.Convolution((2,), ((1, 1),), (1,), (1,), 2), (f32(B, 4, 9), f32(6, 2, 3)), f32(B, 6, 5)),
    (ops.Convolution((1,), ((1, 1),), (1,), (1,), 1), (f32(B, 4, S), f32(6, 4, 3)), f32(B, 6, S)),
    (ops.AllReduce("sum", PAIR), (f32(B),), f32(B)),
    (ops.AllGather(1, PAIR), (f32(B, S),), f32(B, 2 * S)),
    (ops.ReduceScatter("sum", 0, PAIR), (f32(2 * B),), f32(B)),
    (ops.AllToAll(0, 1, PAIR), (f32(2 * B, S),), f32(B, 2 * S)),
    (ops.AllToAll(0, 0, PAIR, (3, 1), (3, 2)), (f32(4, S),), f32(5, S)),
    (ops.AllToAll(0, 0, PAIR, None, (3, 2)), (f32(4, S),), f32(5, S)),
    (ops.CollectivePermute(((0, 1), (1, 0))), (f32(B),), f32(B)),
    (ops.CollectiveBroadcast(2, PAIR), (f32(B),), f32(B)),
    (ops.Send(1, 0), (f32(B),), f32(B)),
    (ops.Recv(1, 0, f32(B)), (), f32(B)),
    (ops.CustomCall("f", (), (f32(B), i1(2)), 1), (f32(3),), i1(2)),
]


@pytest.mark.parametrize(("op", "operands", "expected"), FITS, ids=lambda value: getattr(value, "name", ""))
def test_result_type(op: TensorOperator, operands: tuple[TensorType, ...], expected: TensorType) -> None:
    assert op.infer(operands) == expected


REFUSED: list[tuple[TensorOperator, tuple[TensorType, ...], str]] = [
    (ops.Add(), (f32(2),), "add takes 2 operands and got 1"),
    (ops.Add(), (f32(2), f32(1)), "add needs operands of one shape and got 2xf32 and 1xf32; broadcast one"),
    (ops.Add(), (f32(B), f32(S)), r"one shape and got \[b\]xf32 and \[s\]xf32"),
    (ops.Add(), (f32(2), i64(2)), "needs operands of one dtype and got f32 and i64; convert one"),
    (ops.Add(), (i1(2), i1(2)), "add is defined on numbers and got i1"),
    (ops.Add(), (f8(2), f8(2)), "add is not defined on f8E4M3FN, to which each result is rounded; convert it first"),
    (ops.Reduce("sum", (0,)), (f8(2),), "reduce of kind sum is not defined on f8E4M3FN"),
    (ops.DotGeneral((), (), (0,), (0,)), (f8(2), f8(2)), "dot_general is not defined on f8E4M3FN"),
    (ops.Constant(f8(1), (0.1,)), (), "has a value that the type has not; round it first"),
    (ops.Tanh(), (i64(2),), "tanh is defined on floats and got i64"),
    (ops.And(), (f32(2), f32(2)), "and is defined on booleans or integers and got f32"),
    (ops.Compare("XX"), (f32(2), f32(2)), "no direction 'XX'; use one of EQ, NE"),  # type: ignore[arg-type]
    (ops.Select(), (f32(2), f32(2), f32(2)), "needs a boolean predicate and got 2xf32; compare it first"),
    (ops.Constant(f32(3), (1.0, 2.0)), (), "constant of type 3xf32 has 2 values; give one, or 3"),
    (ops.Iota(i64(3), 1), (), "iota along axis 1 of 3xi64, which has 1 axes"),
    (ops.Iota(i1(3), 0), (), "would need numbers above 1"),
    (ops.BroadcastInDim((4,), ()), (f32(4),), "needs 1 dimensions and has"),
    (ops.BroadcastInDim((6,), (0,)), (f32(3),), "cannot stretch size 3 to 6 at result axis 0; only size 1 stretches"),
    (ops.BroadcastInDim((3, 3), (0, 0)), (f32(3, 3),), "names an axis twice in dimension"),
    (
        ops.Reshape((B, 3)),
        (f32(B, S),),
        r"\(b\*s elements\) to .* \(3\*b elements\); the numbers",
    ),
    (ops.Transpose((0, 0)), (f32(2, 2),), "is no permutation of the 2 axes"),
    (ops.Slice((0,), (9,), (1,)), (f32(8),), "slice needs the limit within the axis, but 9 > 8"),
    (ops.Slice((0,), (B + 1,), (1,)), (f32(B),), r"the limit within the axis, but b\+1 > b"),
    (ops.Slice((3,), (2,), (1,)), (f32(8),), "the start not above the limit, but 3 > 2"),
    (ops.Slice((0,), (8,), (0,)), (f32(8),), "a stride of at least 1, but 1 > 0"),
    (ops.Slice((0,), (S,), (2,)), (f32(S),), "no size that is a polynomial; use numbers"),
    (ops.Pad((-5,), (0,), (0,)), (f32(4), f32()), "at least 0 elements left, but 0 > -1"),
    (ops.Pad((0,), (0,), (0,)), (f32(4), f32(1)), "needs a scalar to pad with and got 1xf32"),
    (ops.Concatenate(0), (), "at least one operand"),
    (ops.Concatenate(1), (f32(2, 3), f32(3, 3)), "needs equal other axes and got 2x3xf32 and 3x3xf32"),
    (ops.Concatenate(2), (f32(2, 3),), "concatenate has dimension 2, but the operand has 2 axes"),
    (ops.DotGeneral((), (), (1,), (0,)), (f32(2, 3), f32(4, 5)), "left axis 1 has size 3, right axis 0 has size 4"),
    (ops.DotGeneral((), (), (1,), ()), (f32(2, 3), f32(3)), "names 1 left and 0 right contracting axes; pair them"),
    (ops.DotGeneral((0,), (0,), (0,), (0,)), (f32(2), f32(2)), "names an axis twice in left axis"),
    (ops.Reduce("mean", (0,)), (f32(2),), "reduce has no kind 'mean'"),  # type: ignore[arg-type]
    (ops.Reduce("and", (0,)), (f32(2),), "of kind and needs booleans or integers and got f32"),
    (ops.Reduce("sum", (0,)), (i1(2),), "convert to an integer first"),
    (ops.ReduceWindow("sum", (0,), (1,), ((0, 0),)), (f32(2),), "windows and strides of at least 1"),
    (
        ops.Gather((), (0,), (), (), (0,), 1, (2,)),
        (f32(4), i64(3)),
        "drops axis 0, so its slice size must be 1",
    ),
    (ops.Gather((), (0,), (), (), (0,), 1, (1,)), (f32(4), f32(3)), "needs integer indices and got 3xf32"),
    (
        ops.Gather((), (0,), (), (), (0,), 0, (1,)),
        (f32(4), i64(3)),
        "maps 1 index components, but index vectors",
    ),
    (
        ops.Scatter("sum", (1,), (0,), (), (), (0,), 1),
        (f32(9, 4), i64(3), f32(2, 4)),
        r"with batch sizes \(2,\), but the indices give \(3,\)",
    ),
    (ops.DynamicSlice((2,)), (f32(4),), r"takes 2 operands \(a start for every axis\) and got 1"),
    (ops.DynamicSlice((5,)), (f32(4), i64()), "a block within the operand, but 5 > 4"),
    (ops.DynamicUpdateSlice(), (f32(4), f32(5), i64()), "an update within the operand, but 5 > 4"),
    (ops.TopK(5, "values"), (f32(4),), "k within the last axis, but 5 > 4"),
    (ops.Sort(0, True, "both"), (f32(4),), "sort has no result 'both'"),  # type: ignore[arg-type]
    (
        ops.Convolution((1,), ((0, 0),), (1,), (1,), 2),
        (f32(1, 4, 9), f32(3, 2, 3)),
        "axis 0 a multiple of groups",
    ),
    (ops.Convolution((1,), ((-1, 0),), (1,), (1,), 1), (f32(1, 1, 9), f32(1, 1, 3)), "else slice the input"),
    (ops.AllReduce("sum", ((0, 1), (2,))), (f32(2),), "needs groups of one size"),
    (ops.AllReduce("sum", ((0, 0),)), (f32(2),), "needs every rank in one group only"),
    (ops.ReduceScatter("sum", 0, PAIR), (f32(3),), "cannot split axis 0 of size 3 into 2 equal parts"),
    (ops.AllToAll(0, 0, PAIR, (1, 2), (1, 1)), (f32(4),), "the splits must add up to it"),
    (ops.AllToAll(0, 1, PAIR, (2, 2), None), (f32(4, 4),), "to be the same axis"),
    (ops.CollectivePermute(((0, 1), (2, 1))), (f32(2),), "names a target twice"),
    (ops.CollectiveBroadcast(7, PAIR), (f32(2),), "from rank 7, which is in none of"),
    (ops.CustomCall("f", (), (f32(2),), 1), (), "custom_call f has 1 results and no number 1"),
]


@pytest.mark.parametrize(("op", "operands", "message"), REFUSED, ids=lambda value: getattr(value, "name", ""))
def test_what_does_not_fit_is_refused_in_one_sentence(
    op: TensorOperator, operands: tuple[TensorType, ...], message: str
) -> None:
    with pytest.raises(TypeMismatch, match=message) as caught:
        op.infer(operands)
    assert "\n" not in str(caught.value)


def test_an_order_that_symbols_leave_open_is_accepted() -> None:
    assert ops.Slice((0,), (S,), (1,)).infer([f32(2048)]) == f32(S)


def test_the_registry_has_every_operator_by_its_name() -> None:
    assert len(ops.REGISTRY) == 75
    assert all(operator.name == name for name, operator in ops.REGISTRY.items())
    assert {op.name for op, _, _ in FITS} <= set(ops.REGISTRY)


def test_negative_sizes_are_refused_where_sizes_enter() -> None:
    for op, operands in (
        (ops.Input("x", f32(2, -3)), ()),
        (ops.Constant(f32(-1), (0.0,)), ()),
        (ops.Iota(i64(-1), 0), ()),
        (ops.Recv(0, 0, f32(-B)), ()),
        (ops.Reshape((-2, -3)), (f32(6),)),
        (ops.BroadcastInDim((-1,), ()), (f32(),)),
    ):
        with pytest.raises(TypeMismatch, match=f"{op.name} has a negative size in"):
            op.infer(operands)


def test_offsets_are_in_ascending_order_as_in_stablehlo() -> None:
    swapped = ops.Gather((1, 0), (), (), (), (0,), 1, (1, 4))
    with pytest.raises(TypeMismatch, match=r"gather needs offset_dims in ascending order and got \(1, 0\)"):
        swapped.infer([f32(9, 4), i64(3, 1)])
