"""Convolutions with strides, padding, dilations and groups."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from rewright.ir.dims import Dim, divide, product
from rewright.ir.errors import TypeMismatch
from rewright.ir.operator import Unsupported
from rewright.ir.types import DType, TensorType
from rewright.ops.base import (
    Array,
    Demand,
    Real,
    TensorOperator,
    binder,
    check_count,
    check_demands,
    check_exact,
    check_same_dtype,
    fold_over,
    identity_value,
    static,
)
from rewright.ops.facts import Facts, join, multiply, of_values, repeated_sum
from rewright.ops.layout import dilate, dilation_demands
from rewright.ops.reduction import window_count, window_demands
from rewright.ops.sizes import Attributes, Axes, Sizes, same_each
from rewright.terms.index import Index, quotient, remainder
from rewright.terms.scalar import Apply, Condition, Fixed, IsZero, Read, Scalar, all_of, at_least, choose, less_than


@dataclass(frozen=True, slots=True)
class Convolution(TensorOperator):
    """Correlate (N, C, spatial..) with a kernel (O, C / groups, spatial..) to (N, O, spatial..).

    Per spatial axis a stride, (low, high) zeros around the input, and the distances at which the elements of the
    input (``lhs_dilation``) and of the kernel (``rhs_dilation``) are put. As in PyTorch the kernel is not reversed.
    """

    strides: tuple[int, ...]
    padding: tuple[tuple[Dim, Dim], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    feature_groups: int
    name: ClassVar[str] = "convolution"
    accumulates: ClassVar[bool] = True
    needs: ClassVar[str] = "it multiplies no zero by an infinity"
    arity: ClassVar[int | None] = 2

    def infer(self, operands: Sequence[TensorType]) -> TensorType:
        check_count(self.name, operands, 2)
        operand, kernel = operands
        check_exact(self.name, operand.dtype)
        if check_same_dtype(self.name, operands) is DType.BOOL:
            raise TypeMismatch("convolution is defined on numbers and got i1; convert to an integer first")
        self._check_fields(operand, kernel)
        channels, groups = operand.shape[1], self.feature_groups
        if groups < 1 or kernel.shape[1] * groups != channels or divide(kernel.shape[0], groups) is None:
            raise TypeMismatch(
                f"convolution of {operand} with kernel {kernel} in {groups} groups: input channels must be "
                "groups times kernel axis 1, and kernel axis 0 a multiple of groups"
            )
        spatial = [
            window_count(self.name, dilate(size, spread) + low + high, dilate(width, reach), stride)
            for size, width, (low, high), spread, reach, stride in zip(
                operand.shape[2:],
                kernel.shape[2:],
                self.padding,
                self.lhs_dilation,
                self.rhs_dilation,
                self.strides,
                strict=True,
            )
        ]
        return operand.with_shape((operand.shape[0], kernel.shape[0], *spatial))

    def _check_fields(self, operand: TensorType, kernel: TensorType) -> None:
        if operand.rank != kernel.rank or operand.rank < 2:
            raise TypeMismatch(f"convolution needs input and kernel of one rank above 1 and got {operand} and {kernel}")
        counts = {len(self.strides), len(self.padding), len(self.lhs_dilation), len(self.rhs_dilation)}
        if counts != {operand.rank - 2}:
            raise TypeMismatch(f"convolution of {operand} needs {operand.rank - 2} strides, paddings and dilations")
        check_demands(self, (operand, kernel))

    def demands(self, operands: Sequence[TensorType]) -> tuple[Demand, ...]:
        steps = (*self.strides, *self.lhs_dilation, *self.rhs_dilation)
        found = [Demand("strides and dilations of at least 1", 1, step) for step in steps]
        axes = zip(operands[0].shape[2:], operands[1].shape[2:], self.padding, self.lhs_dilation, strict=True)
        for (size, width, (low, high), spread), reach in zip(axes, self.rhs_dilation, strict=True):
            found += [Demand("padding of at least 0, else slice the input", 0, side) for side in (low, high)]
            found += (*dilation_demands(size, spread), *dilation_demands(width, reach))
            found += window_demands(dilate(size, spread) + low + high, dilate(width, reach))[1:]
        return tuple(found)

    def relate_sizes(self, sizes: Sizes, operands: Sequence[Axes], result: Axes) -> Attributes:
        source, kernel = operands
        sizes.fix((*source[2:], *kernel[2:], *result[2:]))
        sizes.same(source[0], result[0])
        if self.feature_groups == 1:
            same_each(sizes, (source[1], kernel[0]), (kernel[1], result[1]))
        else:
            sizes.fix((source[1], kernel[0], kernel[1], result[1]))
        return {}

    def compute(self, operands: Sequence[Array], real: Real) -> Array:
        operand, kernel = operands
        groups = self.feature_groups
        padded = self._pad(operand)
        shape = static(self.name, self.infer([_type(operand), _type(kernel)]).shape)
        batch, outputs, *spatial = shape
        split = padded.reshape(batch, groups, operand.shape[1] // groups, *padded.shape[2:])
        filters = kernel.reshape(groups, outputs // groups, *kernel.shape[1:])
        result = np.zeros((batch, groups, outputs // groups, *spatial), operand.dtype)
        if result.size:
            for offset in itertools.product(*(range(width) for width in kernel.shape[2:])):
                steps = zip(offset, self.rhs_dilation, self.strides, spatial, strict=True)
                window = tuple(slice(k * d, k * d + (n - 1) * s + 1, s) for k, d, s, n in steps)
                result += np.einsum("ngc...,goc->ngo...", split[(..., *window)], filters[(..., *offset)])
        return result.reshape(shape)

    def _pad(self, operand: Array) -> Array:
        spatial = operand.shape[2:]
        lows = static(self.name, tuple(low for low, _ in self.padding))
        highs = static(self.name, tuple(high for _, high in self.padding))
        spread = static(self.name, tuple(dilate(n, d) for n, d in zip(spatial, self.lhs_dilation, strict=True)))
        sizes = [low + size + high for low, size, high in zip(lows, spread, highs, strict=True)]
        padded = np.zeros((*operand.shape[:2], *sizes), operand.dtype)
        if padded.size and operand.size:
            steps = zip(lows, spread, self.lhs_dilation, strict=True)
            padded[(..., *(slice(low, low + size, step) for low, size, step in steps))] = operand
        return padded

    def denotation(
        self, operands: Sequence[TensorType], result: TensorType, index: tuple[Index, ...]
    ) -> Scalar | Unsupported:
        operand, kernel = operands
        channel = binder(0)
        over: list[tuple[Index, Dim]] = [(channel, kernel.shape[1])]
        places: list[Index] = [index[0], channel]
        if self.feature_groups != 1:
            outputs = divide(kernel.shape[0], self.feature_groups)
            places[1] = quotient(index[1], outputs if outputs is not None else 1) * kernel.shape[1] + channel
        inside: list[Condition] = []
        for axis, i in enumerate(index[2:]):
            over.append((binder(axis + 1), kernel.shape[axis + 2]))
            place, tests = self._place(axis, i, over[-1][0], operand.shape[axis + 2])
            places.append(place)
            inside += tests
        kernel_place = (index[1], *(place for place, _ in over))
        product = Apply("multiply", (Read(0, tuple(places)), Read(1, kernel_place)))
        zero = Fixed(identity_value("sum", operand.dtype))
        return fold_over("sum", operand.dtype, over, choose(all_of(inside), product, zero))

    def _place(self, axis: int, i: Index, offset: Index, size: Dim) -> tuple[Index, list[Condition]]:
        """Where the input is read along a spatial axis, and what must hold for that to be an element."""
        low, high = self.padding[axis]
        spread = self.lhs_dilation[axis]
        place = i * self.strides[axis] + offset * self.rhs_dilation[axis] - low
        tests: list[Condition] = []
        if low != 0:
            tests.append(at_least(place, 0))
        if high != 0:
            tests.append(less_than(place, dilate(size, spread)))
        if spread != 1:
            tests.append(IsZero(remainder(place, spread)))
        return quotient(place, spread), tests

    def facts(self, operands: Sequence[Facts], types: Sequence[TensorType], result: TensorType) -> Facts:
        count = product(types[1].shape[1:])
        return repeated_sum(multiply(join(operands[0], of_values([0])), operands[1]), count)


def _type(array: Array) -> TensorType:
    return TensorType(array.shape, DType.F64)
