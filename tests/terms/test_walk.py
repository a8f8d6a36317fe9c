"""Substitution without capture, and composition of denotations."""

import numpy as np

from rewright import ops
from rewright.interp.arithmetic import Floats
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import TensorOperator
from rewright.terms.evaluate import Evaluator
from rewright.terms.index import Index, Variable, element, result_index, variable
from rewright.terms.scalar import Apply, Choose, Fixed, Fold, Number, Read, Scalar, at_least
from rewright.terms.walk import compose, substitute, subterms, variables

ROW, COLUMN = result_index(2)
K = Variable("k0")


def row_sum(body: Scalar) -> Fold:
    return Fold("sum", K, 3, body, Fixed(0.0))


def test_a_free_variable_is_replaced_everywhere() -> None:
    value = Choose(at_least(ROW, 1), Read(0, (ROW, COLUMN)), Number(ROW))
    assert substitute(value, {Variable("i0"): COLUMN + 2}) == Choose(
        at_least(COLUMN, -1), Read(0, (COLUMN + 2, COLUMN)), Number(COLUMN + 2)
    )


def test_a_binder_keeps_its_name_where_that_is_safe() -> None:
    value = row_sum(Read(0, (ROW, variable("k0"))))
    assert substitute(value, {Variable("i0"): COLUMN}) == row_sum(Read(0, (COLUMN, variable("k0"))))


def test_a_binder_that_would_capture_is_renamed() -> None:
    value = row_sum(Read(0, (ROW, variable("k0"))))
    fresh = variable("k0_0")
    assert substitute(value, {Variable("i0"): variable("k0")}) == Fold(
        "sum", Variable("k0_0"), 3, Read(0, (variable("k0"), fresh)), Fixed(0.0)
    )


def test_a_bound_variable_is_not_replaced() -> None:
    value = row_sum(Read(0, (variable("k0"),)))
    assert substitute(value, {K: ROW}) == value


def test_subterms_reach_into_indices() -> None:
    inner = Read(1, (ROW,))
    value = Apply("negate", (Read(0, (element(inner),)),))
    assert inner in list(subterms(value))
    assert variables(value) == {Variable("i0")}


def denotation(op: TensorOperator, *types: TensorType, index: tuple[Index, ...] | None = None) -> Scalar:
    value = op.denote(types, index)
    assert not isinstance(value, Unsupported)
    return value


def test_composition_of_two_products_is_the_product_of_three_matrices() -> None:
    a, b = TensorType((2, 3), DType.F64), TensorType((3, 4), DType.F64)
    c = TensorType((4, 2), DType.F64)
    product = ops.DotGeneral((), (), (1,), (0,))

    def operand(number: int, index: tuple[Index, ...]) -> Scalar:
        return denotation(product, a, b, index=index) if number == 0 else Read(2, index)

    value = compose(denotation(product, TensorType((2, 4), DType.F64), c), operand)
    folds = [part for part in subterms(value) if isinstance(part, Fold)]
    assert len({fold.binder for fold in folds}) == len(folds) == 2
    generator = np.random.default_rng(0)
    arrays = [generator.integers(-3, 4, t.shape).astype(float) for t in (a, b, c)]
    evaluator = Evaluator(Floats(), lambda number, index: float(arrays[number][index]))
    found = [[evaluator.scalar(value, {Variable("i0"): i, Variable("i1"): j}) for j in range(2)] for i in range(2)]
    assert np.array_equal(found, arrays[0] @ arrays[1] @ arrays[2])
