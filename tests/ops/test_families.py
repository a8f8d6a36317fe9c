"""What the families of operators promise, on random applications of every operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rewright import ops
from rewright.ir.attributes import field_names
from rewright.ir.types import DType, TensorType
from rewright.ops.base import Array, TensorOperator, array_dtype, identity_value
from rewright.ops.facts import REAL, facts_between
from rewright.ops.functions import FUNCTIONS
from rewright.ops.functions.order import COMPARISONS
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


@pytest.mark.parametrize("name", [n for n in CASES if ops.REGISTRY[n].follows is not TensorOperator.follows])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_operands_are_read_where_the_axes_are_that_they_follow(name: str, data: st.DataObject) -> None:
    """Elements at one index of such an axis make results at that index alone, and equal ones make equal results."""
    drawn = data.draw(CASES[name])
    result = drawn.op.infer(drawn.types)
    found = drawn.op.follows(drawn.types, result)
    assert found is not None and [len(own) for own in found] == [operand.ndim for operand in drawn.operands]
    whole = drawn.op.execute(drawn.operands)
    for number, (operand, own) in enumerate(zip(drawn.operands, found, strict=True)):
        for axis, to in enumerate(own):
            if to is not None and operand.shape[axis] > 1:
                assert operand.shape[axis] == whole.shape[to]
                other = operand.copy()
                other[(slice(None),) * axis + (0,)] = operand.take(1, axis)
                changed = drawn.op.execute([*drawn.operands[:number], other, *drawn.operands[number + 1 :]])
                assert np.array_equal(
                    changed.take(range(1, whole.shape[to]), to),
                    whole.take(range(1, whole.shape[to]), to),
                    equal_nan=whole.dtype.kind == "f",
                )
    for to in range(result.rank):
        even = [
            _even_along(x, [a for a, at in enumerate(own) if at == to])
            for x, own in zip(drawn.operands, found, strict=True)
        ]
        value = drawn.op.execute(even)
        if value.size and all(
            to is not None or n == 1
            for x, own in zip(even, found, strict=True)
            for n, to in zip(x.shape, own, strict=True)
        ):
            assert np.array_equal(
                value, np.broadcast_to(value.take([0], to), value.shape), equal_nan=value.dtype.kind == "f"
            )


def _even_along(x: Array, axes: Sequence[int]) -> Array:
    """An array whose elements along some axes are the first ones."""
    for axis in axes:
        x = np.broadcast_to(x.take([0], axis), x.shape) if x.size else x
    return np.array(x)


def shown(data: st.DataObject, name: str) -> tuple[list[int], range]:
    """The elements that a random view shows, by their places in its operand, and all of these places."""
    drawn = data.draw(CASES[name])
    (operand,) = drawn.operands
    places = range(operand.size)
    return drawn.op.execute([np.array(places, np.int64).reshape(operand.shape)]).reshape(-1).tolist(), places


@pytest.mark.parametrize("name", members(ops.Rearrangement))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_rearrangement_keeps_every_element_once(name: str, data: st.DataObject) -> None:
    found, places = shown(data, name)
    assert sorted(found) == list(places)


@pytest.mark.parametrize("name", members(ops.Lossless))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_lossless_view_shows_every_element(name: str, data: st.DataObject) -> None:
    found, places = shown(data, name)
    assert not found or set(found) == set(places)


def applied(name: str) -> list[TensorOperator]:
    """The elementwise operator of a name, for each of its attributes."""
    if name == "compare":
        return [ops.Compare(direction) for direction in COMPARISONS]
    return [ops.Convert(DType.F64), ops.Convert(DType.I64)] if name == "convert" else [ops.REGISTRY[name]()]


@pytest.mark.parametrize("name", members(ops.Homogeneous))
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 16), factor=st.integers(1, 9))
def test_homogeneous_operators_give_so_many_times_as_many(name: str, seed: int, factor: int) -> None:
    draws = np.random.default_rng(seed)
    for op in applied(name):
        operands = [draws.integers(1, 9, 5) * draws.choice((-1, 1), 5) for _ in range(op.arity or 0)]
        once, times = op.execute(operands), op.execute([operand * factor for operand in operands])
        assert np.array_equal(times, once if once.dtype == bool else once * factor)


@pytest.mark.parametrize("name", members(ops.Linear))
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 16))
def test_linear_operators_add_up(name: str, seed: int) -> None:
    draws = np.random.default_rng(seed)
    for op in applied(name):
        left, right = ([draws.integers(-9, 9, 5) for _ in range(op.arity or 0)] for _ in range(2))
        sums = [x + y for x, y in zip(left, right, strict=True)]
        assert np.array_equal(op.execute(sums), op.execute(left) + op.execute(right))


@pytest.mark.parametrize("name", members(ops.Scaling))
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 16))
def test_what_scales_gives_so_many_times_as_much(name: str, seed: int) -> None:
    draws = np.random.default_rng(seed)
    x, y = draws.standard_normal((2, 5))
    (op,) = applied(name)
    assert np.allclose(op.execute([3 * x, y]), 3 * op.execute([x, y]))


def test_sums_and_differences_are_additive() -> None:
    assert members(ops.Additive) == [n for n in members(ops.Binary) if issubclass(ops.REGISTRY[n], ops.Linear)]


@pytest.mark.parametrize("name", members(ops.Trigonometric))
def test_trigonometric_functions_repeat_themselves(name: str) -> None:
    (op,) = applied(name)
    angles = np.linspace(-4, 4, 17)
    assert np.allclose(op.execute([angles + 2 * np.pi]), op.execute([angles]))


@pytest.mark.parametrize("name", members(ops.Leaf))
def test_leaves_have_the_type_that_an_attribute_says(name: str) -> None:
    tensor = TensorType((2, 3), DType.F32)
    leaves = [ops.Input("x", tensor), ops.Constant(tensor, (0.0,)), ops.Iota(tensor, 0), ops.Recv(0, 0, tensor)]
    (leaf,) = (leaf for leaf in leaves if leaf.name == name)
    assert leaf.infer([]) == leaf.tensor == tensor


def test_every_reduction_combines() -> None:
    """Where an attribute says how elements become one, the family says that they do."""
    kinds = {name for name, operator in ops.REGISTRY.items() if "kind" in operator.__dataclass_fields__}
    assert kinds == set(members(ops.Combining))


ENDS = -np.inf, *(n / 4 for n in range(-12, 13)), np.inf


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", members(ops.Elementwise))
@settings(max_examples=30, deadline=None)
@given(data=st.data(), positive=st.booleans())
def test_an_operator_grows_with_the_operands_that_it_names(name: str, data: st.DataObject, *, positive: bool) -> None:
    """On numbers in order, beside one number that is as what is known of the other operands."""
    op = data.draw(CASES[name]).op
    assert isinstance(op, ops.Elementwise)
    count = op.arity or 0
    others = [data.draw(st.sampled_from(ENDS[14 if positive else 1 : -1])) for _ in range(count)]
    growing = np.array(sorted(data.draw(st.sets(st.sampled_from(ENDS), min_size=2))))
    for own in op.grows_with([facts_between(0.25, 3) if positive else REAL] * count):
        found = op.execute([growing if k == own else np.full_like(growing, other) for k, other in enumerate(others)])
        assert (found[1:] > found[:-1]).all()
    for own in op.falls_with:
        found = op.execute([growing if k == own else np.full_like(growing, 0.5) for k in range(count)])
        assert (found[1:] < found[:-1]).all()


def test_what_grows_with_all_operands() -> None:
    """Where the others are positive numbers; an operator that is defined at some numbers alone is none of them."""
    applied = {name: ops.REGISTRY[name]() for name in members(ops.Unary) + members(ops.Binary)}
    grown = {
        name for name, op in applied.items() if len(op.grows_with([facts_between(0.25, 3)] * op.arity)) == op.arity
    }
    increasing = {name for name, function in FUNCTIONS.items() if function.is_increasing}
    assert grown == {*increasing, "add", "multiply"}


@pytest.mark.parametrize("name", members(ops.RoundingToWhole))
@given(numbers=st.lists(st.sampled_from(ENDS)))
def test_rounding_keeps_the_order_and_whole_numbers(name: str, numbers: list[float]) -> None:
    rounded = ops.REGISTRY[name]().execute([np.array(sorted(numbers))])
    assert np.array_equal(rounded, np.sort(rounded))
    assert np.array_equal(rounded, np.round(rounded))
    assert np.array_equal(rounded, ops.REGISTRY[name]().execute([rounded]))


def test_collectives_are_met_by_groups_unless_they_are_messages() -> None:
    assert set(members(ops.Collective)) == {*members(ops.GroupCollective), *members(ops.Message), "collective_permute"}
    for name in members(ops.GroupCollective):
        assert {"groups", "communicator", "posted"} <= set(field_names(ops.REGISTRY[name]))


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
