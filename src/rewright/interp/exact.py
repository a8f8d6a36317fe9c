"""Execution by denotation: every element is the literal reading of its operator's formula.

Exact in rationals, for small shapes: the cost is one evaluation of a formula for each element.
The numpy execution is tested against this one.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from rewright.interp.program import execute
from rewright.ir.errors import RewrightError
from rewright.ir.graph import Graph
from rewright.ir.operator import Unsupported
from rewright.ir.types import TensorType
from rewright.ops.base import Array, TensorOperator, static, wrap_integer
from rewright.terms.evaluate import Arithmetic, Evaluator
from rewright.terms.index import Variable


def run_exactly(graph: Graph, inputs: Mapping[str, Array], arithmetic: Arithmetic) -> dict[str, Array]:
    """The outputs by name, as arrays of the elements of a number system (dtype ``object``).

    Inputs are arrays of floats (taken as the exact fractions that they are), fractions, integers or booleans.
    Raises RewrightError for inputs that do not fit, operators without a denotation, values that the number system
    does not have, and reads out of range.
    """
    return execute(graph, inputs, _Denotations(arithmetic)).outputs()


@dataclass(frozen=True)
class _Denotations:
    """Arrays of the elements of a number system, computed by formula."""

    arithmetic: Arithmetic

    def read(self, value: Array, tensor: TensorType) -> Array:
        return lift(value, tensor, self.arithmetic)

    def apply(self, op: TensorOperator, types: Sequence[TensorType], operands: Sequence[Array]) -> Array:
        return evaluate(op, types, operands, self.arithmetic)


def evaluate(
    op: TensorOperator, types: Sequence[TensorType], operands: Sequence[Array], arithmetic: Arithmetic
) -> Array:
    """The result of one operator by its denotation; ``operands`` hold elements of the number system.

    Formulas count integers without end. What an operator gives wraps around as its dtype does, which is the same as
    if every step had: sums and products keep remainders, and other functions read operands that have wrapped already.
    Raises RewrightError where the operator has no denotation or an element cannot be evaluated.
    """
    value = op.denote(types)
    if isinstance(value, Unsupported):
        raise RewrightError(f"{op.name} has no denotation: {value.why}")
    kind = op.infer(types)
    shape = static(op.name, kind.shape)
    variables = [Variable(f"i{axis}") for axis in range(len(shape))]
    evaluator = Evaluator(arithmetic, lambda operand, index: read(operands[operand], index))
    result = np.empty(shape, object)
    for index in itertools.product(*(range(size) for size in shape)):
        element = evaluator.scalar(value, dict(zip(variables, index, strict=True)))
        result[index] = wrap_integer(kind.dtype, element) if kind.dtype.is_integer else element
    return result


def read(operand: Array, index: tuple[int, ...]) -> Any:
    """One element; raises RewrightError where the index is out of range."""
    for axis, (position, size) in enumerate(zip(index, operand.shape, strict=True)):
        if not 0 <= position < size:
            raise RewrightError(f"index {position} of axis {axis} of size {size} is out of range")
    return operand[index]


def lift(value: Array, tensor: TensorType, arithmetic: Arithmetic) -> Array:
    """An array of numbers as elements of a number system, floats where the tensor has a float dtype."""
    result = np.empty(value.shape, object)
    for index in np.ndindex(*value.shape):
        plain = _plain(value[index])
        if tensor.dtype.is_float and isinstance(plain, (int, Fraction)):
            # Numerator and denominator are lifted on their own, because no float need hold the fraction.
            fraction = Fraction(plain)
            parts = [arithmetic.apply("convert_f64", (part,)) for part in fraction.as_integer_ratio()]
            result[index] = arithmetic.apply("divide", parts)
        else:
            result[index] = arithmetic.literal(plain)
    return result


def _plain(item: Any) -> Any:
    """Python's own number for a numpy scalar."""
    return item.item() if hasattr(item, "item") else item
