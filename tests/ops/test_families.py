"""What the families of operators promise, on random applications of every operator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewright import ops
from rewright.ir.types import DType
from rewright.ops.base import TensorOperator, array_dtype, identity_value
from rewright.terms.scalar import Read
from tests.ops.cases import CASES, NUMBERS


def members(family: type[TensorOperator]) -> list[str]:
    return [name for name, operator in ops.REGISTRY.items() if issubclass(operator, family)]


@pytest.mark.parametrize("name", members(ops.Layout))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_layout_gives_the_places_of_elements(name: str, data: st.DataObject) -> None:
    """Elements are named by their number: what the layout does to names it does to every content."""
    drawn = data.draw(CASES[name])
    sizes = [operand.size for operand in drawn.operands]
    starts = np.cumsum([0, *sizes])
    names = [
        np.arange(first, first + operand.size).reshape(operand.shape)
        for first, operand in zip(starts, drawn.operands, strict=False)
    ]
    places = drawn.op.execute(names).astype(int)
    content = np.concatenate([operand.reshape(-1) for operand in drawn.operands])
    assert np.array_equal(drawn.op.execute(drawn.operands), content[places] if content.size else places)


@pytest.mark.parametrize("name", members(ops.View))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_view_reads_one_element_of_one_operand(name: str, data: st.DataObject) -> None:
    drawn = data.draw(CASES[name])
    assert isinstance(drawn.op.denote(drawn.types), Read)


@pytest.mark.parametrize("name", members(ops.Rearrangement))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_rearrangement_keeps_every_element_once(name: str, data: st.DataObject) -> None:
    drawn = data.draw(CASES[name])
    (operand,) = drawn.operands
    names = np.arange(operand.size).reshape(operand.shape)
    assert sorted(drawn.op.execute([names]).reshape(-1)) == list(range(operand.size))


REDUCED_BY = {"add": "sum", "multiply": "product"}


@pytest.mark.parametrize("name", members(ops.Monoid))
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 16))
def test_a_monoid_is_associative_commutative_and_has_a_neutral_element(name: str, seed: int) -> None:
    op = ops.REGISTRY[name]()
    dtypes = [d for d in NUMBERS if not (issubclass(type(op), ops.Bitwise) and d.is_float)]
    dtype = dtypes[seed % len(dtypes)]
    draws = np.random.default_rng(seed)
    x, y, z = (draws.integers(-8, 9, 5).astype(array_dtype(dtype)) for _ in range(3))
    assert np.array_equal(op.execute([x, y]), op.execute([y, x]))
    assert np.array_equal(op.execute([x, op.execute([y, z])]), op.execute([op.execute([x, y]), z]))
    if name != "xor":
        neutral = np.full(5, identity_value(REDUCED_BY.get(name, name), dtype), array_dtype(dtype))
        assert np.array_equal(op.execute([x, neutral]), x)


@pytest.mark.parametrize("name", [n for n in CASES if n in ("gather", "scatter", "dynamic_slice")])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_operands_that_hold_places_are_integers_beside_an_axis(name: str, data: st.DataObject) -> None:
    drawn = data.draw(CASES[name])
    for operand, axis in drawn.op.indexed(len(drawn.types)):
        assert drawn.types[operand].dtype.is_integer
        assert 0 <= axis < drawn.types[0].rank


@pytest.mark.parametrize("name", members(ops.Ordering))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_an_ordering_gives_elements_of_its_operand_or_their_places(name: str, data: st.DataObject) -> None:
    drawn = data.draw(CASES[name])
    assert isinstance(drawn.op, ops.Sort | ops.TopK)
    axis = drawn.op.dimension if isinstance(drawn.op, ops.Sort) else drawn.operands[0].ndim - 1
    values = replace(drawn.op, result="values").execute(drawn.operands)
    places = replace(drawn.op, result="indices").execute(drawn.operands)
    assert np.array_equal(np.take_along_axis(drawn.operands[0], places, axis), values, equal_nan=True)


@pytest.mark.parametrize("name", members(ops.Update))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_an_update_changes_no_more_elements_than_it_has(name: str, data: st.DataObject) -> None:
    drawn = data.draw(CASES[name])
    before, after = drawn.operands[0], drawn.op.execute(drawn.operands)
    updates = drawn.operands[1 if name == "dynamic_update_slice" else 2]
    assert np.count_nonzero(~((before == after) | ((before != before) & (after != after)))) <= updates.size


@pytest.mark.parametrize("name", members(ops.Special))
def test_a_special_function_is_elementwise_and_keeps_its_name(name: str) -> None:
    """Proofs know it by name alone."""
    op = ops.REGISTRY[name]()
    assert isinstance(op, ops.Elementwise) and op.function(DType.F32) == name


def test_what_only_moves_elements_by_attributes_is_a_layout() -> None:
    """A new operator that belongs to the family has to say so."""
    moving = {
        name
        for name, operator in ops.REGISTRY.items()
        if operator.moves is not TensorOperator.moves
        and operator.indexed is TensorOperator.indexed
        and not issubclass(operator, ops.Collective | ops.Elementwise | ops.Ordering)
    }
    assert moving == set(members(ops.Layout))
