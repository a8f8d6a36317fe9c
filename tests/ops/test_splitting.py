"""The sharding facet: wherever it says that an operator may be split, splitting gives the same result."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rewright import ops
from rewright.ir.dims import symbol
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import REDUCERS, Array, TensorOperator
from rewright.ops.splitting import Split, axis_roles, part, splits
from rewright.terms.roles import Contracted, Follows, Role, Whole
from tests.ops.cases import CASES, Case


def sound_splits(op: TensorOperator, types: tuple[TensorType, ...]) -> tuple[Split, ...]:
    found = splits(op, types)
    assert not isinstance(found, Unsupported)
    return found


def run_split(case: Case, split: Split, cut: int, size: int) -> Array:
    """Compute the two parts at a cut and put them together."""
    results: list[Array] = []
    for low, high in ((0, cut), (cut, size)):
        operands = [
            operand if axis is None else operand.take(range(low, high), axis=axis)
            for operand, axis in zip(case.operands, split.operand_axes, strict=True)
        ]
        op = part(case.op, case.types, split, high - low)
        local = [TensorType(o.shape, t.dtype) for o, t in zip(operands, case.types, strict=True)]
        results.append(op.execute(operands))
        assert op.infer(local).shape == results[-1].shape
    if split.result_axis is not None:
        return np.concatenate(results, axis=split.result_axis)
    return np.asarray(REDUCERS[split.kind](*results))


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sorted(CASES))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_a_split_program_computes_the_whole(name: str, data: st.DataObject) -> None:
    case: Case = data.draw(CASES[name])
    whole = case.op.execute(case.operands)
    for split in sound_splits(case.op, case.types):
        sizes: set[object] = {t.shape[a] for t, a in zip(case.types, split.operand_axes, strict=True) if a is not None}
        if split.result_axis is not None:
            sizes.add(whole.shape[split.result_axis])
        (size,) = sizes
        assert isinstance(size, int)
        if size < 2:
            continue
        cut = data.draw(st.integers(1, size - 1))
        assert np.array_equal(run_split(case, split, cut, size), whole, equal_nan=True)


F32 = DType.F32
B, S = symbol("b"), symbol("s")


def roles_of(op: TensorOperator, *shapes: tuple[object, ...], indices: tuple[int, ...] = ()) -> list[list[Role]]:
    types = [TensorType(s, DType.I64 if k in indices else F32) for k, s in enumerate(shapes)]  # type: ignore[arg-type]
    found = axis_roles(op, types)
    assert not isinstance(found, Unsupported)
    return [list(operand) for operand in found.operands]


def test_roles_of_a_batched_matrix_product() -> None:
    assert roles_of(ops.DotGeneral((0,), (0,), (2,), (1,)), (B, S, 8), (B, 8, 4)) == [
        [Follows(0), Follows(1), Contracted("sum", 0)],
        [Follows(0), Contracted("sum", 0), Follows(2)],
    ]


def test_roles_of_a_reduction() -> None:
    assert roles_of(ops.Reduce("maximum", (1,)), (B, S)) == [[Follows(0), Contracted("maximum", 0)]]


def test_roles_of_a_reshape_keep_what_it_does_not_touch() -> None:
    assert roles_of(ops.Reshape((B, S, 4, 16)), (B, S, 64)) == [[Follows(0), Follows(1), Whole()]]


def test_roles_of_a_slice() -> None:
    assert roles_of(ops.Slice((0, 0), (B, 2), (1, 1)), (B, 4)) == [[Follows(0), Whole()]]


def test_roles_of_an_embedding() -> None:
    embedding = ops.Gather((2,), (0,), (), (), (0,), 2, (1, 64))
    assert roles_of(embedding, (1000, 64), (B, S), indices=(1,)) == [[Whole(), Follows(2)], [Follows(0), Follows(1)]]


def test_roles_of_a_sort() -> None:
    assert roles_of(ops.Sort(1, False, "values"), (B, S)) == [[Follows(0), Whole()]]


def test_roles_of_a_cache_update() -> None:
    update = ops.DynamicUpdateSlice()
    assert roles_of(update, (2, 16, 4), (2, 1, 4), (), (), (), indices=(2, 3, 4))[:2] == [
        [Follows(0), Whole(), Follows(2)],
        [Follows(0), Whole(), Follows(2)],
    ]


def test_an_operand_that_is_not_read_must_still_have_the_right_size() -> None:
    overwrite = TensorType((4,), F32), TensorType((4,), F32), TensorType((), DType.I64)
    assert sound_splits(ops.DynamicUpdateSlice(), overwrite) == ()


def test_a_diagonal_is_not_split() -> None:
    take_diagonal = ops.Gather((), (0, 1), (), (), (0, 1), 1, (1, 1))
    assert roles_of(take_diagonal, (4, 4), (4, 2), indices=(1,)) == [[Whole(), Whole()], [Follows(0), Whole()]]


def test_a_broadcast_may_be_split_along_its_new_axis() -> None:
    op = ops.BroadcastInDim((4, 3), (1,))
    assert sound_splits(op, (TensorType((3,), F32),)) == (
        Split("concatenate", 0, (None,)),
        Split("concatenate", 1, (0,)),
    )


def test_an_index_along_an_axis_is_not_split_along_it() -> None:
    assert sound_splits(ops.Iota(TensorType((4, 3), DType.I64), 0), ()) == (Split("concatenate", 1, ()),)


def test_collectives_say_why_not() -> None:
    found = splits(ops.AllReduce("sum", ((0, 1),)), [TensorType((4,), F32)])
    assert isinstance(found, Unsupported)
    assert "other ranks" in found.why
